#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# gdb's pretty-printers print gdb/states.cpp as in gdb/states.txt, with two compilers, optimised and not.

source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in gdb

sources=test/package/gdb
for compiler in g++ clang++-19; do
    for level in -O0 -O2; do
        program=$work/states-$compiler$level
        quietly "$compiler" -std=c++20 -pthread -g "$level" -I include "$sources/states.cpp" -o "$program"
        gdb -nx -batch -x "$sources/states.gdb" "$program" >"$work/log" 2>&1 </dev/null || true
        grep -q '^--- ' "$work/log" || {
            cut -c1-300 "$work/log" >&2
            fail "gdb has not come to the first stop; if it may not trace processes here, run the container with --cap-add=SYS_PTRACE"
        }
        # Addresses differ from run to run, and so does the time since the last reading of the clock.
        sed -E -n -e 's/^\$[0-9]+ = //; s/0x[0-9a-f]+/ADDRESS/g; s/in 360[0-9](\.[0-9]+)? s/in 360x s/' \
            -e '/^--- /,$p' "$work/log" >"$work/said"
        case $level in
            -O0) gone=$'1\n1' ;;
            -O2) gone=$'<optimized out>\n<cannot be shown: value has been optimized out>' ;;
        esac
        { cat "$sources/states.txt" && printf -- '--- optimised\n%s\n' "$gone"; } >"$work/expected"
        diff -u --label expected --label "what gdb says" "$work/expected" "$work/said" >&2 ||
            fail "gdb does not say of a program of $compiler $level what $sources/states.txt says"
        say "$(grep -vc '^---' "$work/said") values of a program of $compiler $level are said as expected"
    done
done
