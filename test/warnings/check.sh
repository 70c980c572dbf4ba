#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: check.sh COMPILER INCLUDE
#
# Compiles every public header, and uses.cpp, with warnings that users have asked for, optimised, because some are only
# found then. Warnings in Boost do not count: some of these also appear for Asio's own timers.
set -Eeuo pipefail
compiler=$1 include=$2
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flags=(-Wall -Wextra)
for flag in -Wnull-dereference -Wduplicated-cond -Wduplicated-branches -Wlogical-op -Wunused-parameter -Wdouble-promotion \
    -Wformat=2 -Wcast-align -Woverloaded-virtual -Wnon-virtual-dtor -Wextra-semi; do
    "$compiler" -Werror "$flag" -fsyntax-only -x c++ /dev/null 2>/dev/null && flags+=("$flag") # if it knows the flag
done

for header in "$include"/pawl/*.hpp; do
    printf '#include <pawl/%s>\n' "${header##*/}"
done >"$work/all.cpp"
printf '#include "%s"\n' "$here/uses.cpp" >>"$work/all.cpp"

# Not as a system folder, whose warnings are suppressed.
read -ra more <<<"${CXXFLAGS:-}"
"$compiler" -std=c++20 -O2 "${flags[@]}" -I"$include" "${more[@]}" -c "$work/all.cpp" -o "$work/all.o" 2>"$work/log" || {
    cat "$work/log"
    exit 1
}
if grep -E "^($include/|$here/|$work/).*warning:" "$work/log"; then
    exit 1
fi
echo "none, by ${#flags[@]} flags"
