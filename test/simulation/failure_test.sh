#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: failure_test.sh SIMULATION COMPILER FLAG...
#
# A planted failure of the simulation: it is shrunk to the few steps that it needs, and the printed program compiles. So
# do the programs of other seeds, which together have steps of all kinds.

set -euo pipefail
simulation=${1:?usage: failure_test.sh SIMULATION COMPILER FLAG...}
shift
compile=("$@" -std=c++20 -fsyntax-only)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

complain() {
    printf 'failure_test: %s\n' "$1" >&2
    exit 1
}

status=0
"$simulation" --from 1001 --seeds 20 --jobs 2 --plant --output "$scratch/failure.cpp" >"$scratch/out" || status=$?
((status == 1)) || complain "status $status of a failure"
grep -q 'planted: a wait completes with success' "$scratch/out" || complain "no word of the failure: $(<"$scratch/out")"
steps=$(sed -n 's/^\/\/ Seed [0-9]*, shrunk to \([0-9]*\) steps: planted: .*/\1/p' "$scratch/failure.cpp")
[[ -n $steps ]] || complain "no number of steps: $(head -1 "$scratch/failure.cpp")"
# A timer is made, a wait is started, the context runs.
((steps <= 3)) || complain "$steps steps are left: $(<"$scratch/failure.cpp")"
(($(grep -c 'steps.push_back' "$scratch/failure.cpp") == steps)) || complain "the program has not $steps steps"

# All in one, because compiling the headers takes longer than compiling the programs.
sed 's/int main()/void failure()/' "$scratch/failure.cpp" >"$scratch/all.cpp"
for seed in {8..19}; do
    "$simulation" --seed "$seed" --print | sed "s/int main()/void seed_$seed()/" >>"$scratch/all.cpp"
done
for word in coarse edge_ring expire_all_of reset_interval_after limit_stream advance_to_next immediate cancel_after posts acquire insert retry; do
    grep -q "::$word\b" "$scratch/all.cpp" || complain "no program has $word: take other seeds"
done
"${compile[@]}" "$scratch/all.cpp"
