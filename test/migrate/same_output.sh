#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: [CXXFLAGS=...] same_output.sh COMPILER
#
# The programs of the fixtures with deadline_timer print the same before and after `tools/migrate --to asio`. Those after
# it use nothing that Boost deprecates, except in the fixture with what the tool leaves.
set -euo pipefail
fixtures=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/fixtures
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# builds and runs SOURCE FLAG...
prints() {
    # shellcheck disable=SC2086 # several flags
    "$compiler" -std=c++20 -O0 -Wall -Wextra -Werror "${@:2}" ${CXXFLAGS-} "$1" -o "$work/program" -lpthread
    timeout 60 "$work/program"
}

compiler=$1
count=0
for before in "$fixtures"/to_asio_*/before/*.cpp; do
    after=${before/\/before\///after/}
    flags=()
    [[ $before == */to_asio_undecided/* ]] && flags=(-Wno-deprecated-declarations)
    prints "$before" -Wno-deprecated-declarations >"$work/before"
    prints "$after" "${flags[@]}" >"$work/after"
    diff -u "$work/before" "$work/after" || { echo "${before#"$fixtures"/} prints something else afterwards" >&2; exit 1; }
    [[ -s $work/before ]] || { echo "${before#"$fixtures"/} prints nothing" >&2; exit 1; }
    count=$((count + 1))
done
((count >= 8)) || { echo "only $count programs in $fixtures" >&2; exit 1; }
echo "$count programs print the same"
