#: evidence [--run]                 write doc/evidence.md: for each promise and public header the tests by name, and what has run,
#:                                  at which commit, from the records that other commands leave in build/evidence
#:                                  --run: first the tests, simulations, fuzzers and a sample of planted defects: an hour or two

case ${1-} in
    "" | --run) ;;
    *) does_not_know "$1" --run ;;
esac
need git:git python3:python3
failed=()
if (($#)); then
    for each in test "test --slow" simulate "simulate threads" fuzz "mutate --sample 40"; do
        # shellcheck disable=SC2086 # a command with its arguments
        ./dev $each || failed+=("./dev $each")
    done
fi
tools/evidence.py
((!${#failed[@]})) || die "the page is written; these have failed: $(IFS=, && printf '%s' "${failed[*]}")"
