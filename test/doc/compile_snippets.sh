#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# compile_snippets.sh COMPILER INCLUDE_DIR [FILE.md...]: compiles the programs in README.md and doc/*.md, or in FILE.md.
# The line above the ```cpp fence of a program determines the check:
#
#   <!-- compile -->    it must compile
#   <!-- run -->        it must compile, and end with 0 when it is run; `<!-- run: NAME -->` is the same
#   <!-- output -->     above the block after a program: what it must have printed
#
# A complete program, that is, one with a main(), must have such a line. CXXFLAGS is passed to the compiler, too.
set -Eeuo pipefail

die() {
    printf 'compile_snippets.sh: %s\n' "$*" >&2
    exit 1
}

(($# >= 2)) || die "usage: compile_snippets.sh COMPILER INCLUDE_DIR [FILE.md...]"
compiler=$1
include=$(readlink -e "$2") || die "no such folder: $2"
shift 2
command -v "$compiler" >/dev/null || die "no such compiler: $compiler"
root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..
(($#)) || set -- "$root"/README.md "$root"/doc/*.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Writes NUMBER.compile.cpp or NUMBER.run.cpp and NUMBER.output for the programs of one file.
extract() {
    awk -v file="$1" -v prefix="$work/$2" '
        function complain(line, what) {
            printf "%s:%d: %s\n", file, line, what > "/dev/stderr"
            failed = 1
            exit 1
        }
        /^```/ && open {
            if (target) close(target)
            open = 0; target = ""
            next
        }
        open {
            if (target) print > target
            else if (language == "cpp" && /^(int|auto) main\(/)
                complain(NR, "a program without <!-- compile --> or <!-- run --> above it")
            next
        }
        /^```/ {
            open = NR; language = substr($0, 4)
            if (action == "output") {
                if (!programs) complain(NR, "an output without a program")
                target = sprintf("%s-%02d.output", prefix, programs)
                printf "" > target
            } else if (action && language == "cpp") {
                target = sprintf("%s-%02d.%s.cpp", prefix, ++programs, action)
                printf "#line %d \"%s\"\n", NR + 1, file > target
            } else if (action && !named)
                complain(NR, "no ```cpp block after <!-- " action " -->")
            action = ""
            next
        }
        /^<!-- (compile|run|output)(: .*)? -->$/ {
            if (action && !named) complain(NR, "two marks above one block")
            action = $2; named = sub(/:$/, "", action)
            next
        }
        /[^ ]/ && action {
            if (!named) complain(NR, "no block after <!-- " action " -->")
            action = ""
        }
        END {
            if (failed) exit 1
            if (open) complain(open, "a block that is not closed")
            if (action && !named) complain(NR, "no block after <!-- " action " -->")
        }' "$1"
}

number=0
for file in "$@"; do
    [[ -r $file ]] || die "no such file: $file"
    extract "$file" "$(printf '%02d-%s' $((++number)) "$(basename "$file" .md)")" || exit 1
done

shopt -s nullglob
programs=("$work"/*.cpp)
((${#programs[@]})) || die "not one program was found in $*"
for source in "${programs[@]}"; do
    place=$(sed -n '1s/^#line \([0-9]*\) "\(.*\)"$/\2:\1/p' "$source")
    name=${source%.cpp}
    action=${name##*.}
    name=${name%.*}
    link=()
    [[ $action == run ]] || link=(-c)
    # shellcheck disable=SC2086 # several flags
    "$compiler" -std=c++20 -pthread -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror ${CXXFLAGS-} -I"$include" \
        "${link[@]}" "$source" -o "$name" >"$name.said" 2>&1 || {
        cut -c1-200 "$name.said" | head -n 40 >&2
        die "$place: does not compile"
    }
    if [[ $action == run ]]; then
        timeout 60 "$name" >"$name.printed" || die "$place: ended with $?, after printing: $(<"$name.printed")"
        if [[ -e $name.output ]]; then
            diff -u --label documented --label printed "$name.output" "$name.printed" >&2 ||
                die "$place: does not print what is documented"
        fi
    elif [[ -e $name.output ]]; then
        die "$place: has an output, and is not run; write <!-- run --> above it"
    fi
    printf '%s: %s\n' "$place" "$([[ $action == run ]] && echo "compiles and runs" || echo compiles)"
done
