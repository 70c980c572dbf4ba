#!/usr/bin/env bash
# check.sh MODEL.pml: explores a model with Spin, completely: its assertions and end states, also of the VARIANT that its
# head names, then its formulas under weak fairness, with FAIR defined. Then each MUTANT_... in the model, which must be
# rejected; MUTANT_VARIANT_... is one of that variant.
set -Eeuo pipefail

model=$(readlink -f "${1:?usage: check.sh MODEL.pml}")
name=${model##*/}

die() {
    printf '%s: %s\n' "$name" "$*" >&2
    exit 1
}

[[ -r $model ]] || die "no such model"
for tool in spin cc; do
    command -v "$tool" >/dev/null || die "$tool is needed, and not installed"
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# explore WHAT DEFINES FLAGS OPTIONS: leaves the output of the verifier in ./said.
explore() {
    rm -f pan* ./*.trail
    # shellcheck disable=SC2086 # several defines
    spin ${2:+-D${2// / -D}} -a "$model" >said 2>&1 || die "$1: Spin does not accept it:" "$(<said)"
    # shellcheck disable=SC2086 # several flags, several options
    cc -w $3 -o pan pan.c || die "$1: the verifier does not compile"
    # shellcheck disable=SC2086
    ./pan -m100000 $4 >said 2>&1 || die "$1: the verifier has failed:" "$(<said)"
    errors=$(sed -n 's/.*, errors: \([0-9]*\)$/\1/p' said)
    [[ -n $errors ]] || die "$1: the verifier has not come to an end:" "$(<said)"
}

# holds WHAT: there was no error, and the exploration was complete.
holds() {
    if [[ $errors != 0 ]] || grep -Eqi 'max search depth too small|out of memory|not completed' said; then
        die "$1: not so, or not explored in full:" "$(<said)"
    fi
    printf '%s: %s: hold in all of %s states\n' "$name" "$1" "$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' said)"
}

explore "assertions and end states" "" "-Og -DSAFETY -DNOCLAIM" "-w24"
holds "assertions and end states"
variant=$(sed -n 's/.*check\.sh also explores the variant \(\w*\).*/\1/p' "$model")
if [[ $variant ]]; then
    explore "$variant" "$variant" "-Og -DSAFETY -DNOCLAIM" "-w24"
    holds "$variant"
fi

for formula in $(sed -n 's/^ltl \(\w*\) .*/\1/p' "$model"); do
    explore "$formula" FAIR -Og "-w24 -a -f -N $formula"
    holds "$formula"
done

# No optimisation: finding a mistake takes less time than compiling a faster verifier. The model names the search order.
order=$(sed -n 's/.*check\.sh looks for mutants with \(-D[A-Z_]*\).*/\1/p' "$model")
mapfile -t mutants < <(grep -Eo '^ *#.*\bMUTANT_\w+' "$model" | grep -Eo 'MUTANT_\w+' | sort -u)
((${#mutants[@]} >= 3)) || die "names ${#mutants[@]} mutants, and should name 3 at least"
for mutant in "${mutants[@]}"; do
    defines=$mutant
    [[ $variant && $mutant == MUTANT_"$variant"_* ]] && defines+=" $variant"
    explore "$mutant" "$defines" "-DSAFETY -DNOCLAIM $order" "-w22"
    ((errors)) || die "$mutant is not rejected: the model does not see this mistake"
    printf '%s: %s is rejected: %s\n' "$name" "$mutant" "$(sed -n 's/^pan:1: \(.*\) (at depth .*/\1/p' said)"
done
