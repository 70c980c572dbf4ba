#!/usr/bin/env bash
# check.sh MODEL.pml: explores the model with Spin, in full, and then each MUTANT_... that it names, which must be rejected.
# Formulas (ltl) are checked one by one, under weak fairness.
set -Eeuo pipefail

die() {
    printf '%s: %s\n' "${model##*/}" "$*" >&2
    exit 1
}

model=$(readlink -f "${1?usage: check.sh MODEL.pml}")
[[ -r $model ]] || die "no such model"
for tool in spin "${CC:=cc}"; do
    command -v "$tool" >/dev/null || die "needs $tool"
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# explore DEFINE FLAGS RUN-OPTIONS: leaves what the verifier says in ./said.
explore() {
    rm -f pan* ./*.trail said
    spin ${1:+-D"$1"} -a "$model" >said 2>&1 || { cat said >&2; die "${1:-the model} is not accepted by Spin"; }
    # shellcheck disable=SC2086 # several flags
    "$CC" -w $2 -o pan pan.c || die "${1:-the model}: the verifier does not compile"
    # shellcheck disable=SC2086
    ./pan -m100000 $3 >said 2>&1 || { cat said >&2; die "${1:-the model}: the verifier failed"; }
}

errors() { sed -n 's/.*, errors: \([0-9]*\)$/\1/p' said; }

# in_full WHAT: nothing was found, and nothing was left out.
in_full() {
    if [[ $(errors) != 0 ]] || grep -Eq 'max search depth too small|out of memory|Search not completed|pan: reached' said; then
        cat said >&2
        die "$1 does not hold, or was not explored in full"
    fi
    printf '%s: %s: %s states, depth %s\n' "${model##*/}" "$1" "$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' said)" \
        "$(sed -n 's/.*depth reached \([0-9]*\),.*/\1/p' said)"
}

explore "" "-O1 -DSAFETY -DNOCLAIM" "-w24"
in_full "assertions and end states"

for formula in $(sed -n 's/^ltl \([a-z_]*\) .*/\1/p' "$model"); do
    explore "" "-O1" "-a -f -w23 -N $formula"
    in_full "$formula"
done

mapfile -t mutants < <(grep -Eo '^#\w*if\w* .*' "$model" | grep -Eo 'MUTANT_\w+' | sort -u)
((${#mutants[@]} >= 3)) || die "names ${#mutants[@]} mutants; 3 is the least"
for mutant in "${mutants[@]}"; do
    explore "$mutant" "-DSAFETY -DNOCLAIM" "-w22"
    [[ $(errors) == 1 ]] || die "$mutant is not rejected: the model does not see this mistake"
    printf '%s: %s is rejected: %s\n' "${model##*/}" "$mutant" "$(sed -n 's/^pan:1: \(.*\) (at depth .*/\1/p' said)"
done
