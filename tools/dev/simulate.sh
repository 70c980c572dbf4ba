#: simulate [threads] [--preset P] [--compiler C] [ARGUMENTS]
#:                                  run random programs against a naive model, for all but the event queue and the broadcast ring; the first
#:                                  failure is shrunk and printed as a C++ program; --seeds N, --seed S; ./dev simulate -h
#:                                  threads: the same operations from several threads, then a check of what must hold in any
#:                                  order; --seconds N; ./dev simulate threads -h
#:                                  P: as for test, optimised (default); C: g++ (default), clang++-19, ...

program=simulation preset=optimised compiler=g++
if [[ ${1-} == threads ]]; then
    program=simulation_threads
    shift
fi
take_options "preset compiler" "$@"
preset_start "$preset"
build "$preset" "$compiler" "$program"
unlock
if [[ $program == simulation_threads ]]; then # of the other one, simulation_failure is a test
    planted=$("$dir/test/simulation/$program" --plant --seeds 20 2>&1) || true
    [[ $planted == *'planted: a wait completes with success'* ]] || die "a planted failure is not reported: $planted"
fi
said=build/$program.log record=${program/simulation/simulate}
record=${record/_/-}
"${steady[@]}" "$dir/test/simulation/$program" "${rest[@]}" | tee "$said" || {
    status=$?
    rm -f "build/evidence/$record.json" # of an earlier run, which proves less now
    exit "$status"
}
if [[ $(<"$said") =~ ([0-9]+)\ seeds(\ from\ [0-9]+\ on)?[:,]\ ([0-9]+)\ (operations|calls) ]]; then
    found=("preset=\"$preset\"" "seeds=${BASH_REMATCH[1]}" "${BASH_REMATCH[4]}=${BASH_REMATCH[3]}")
    [[ ! $(<"$said") =~ from\ (seed\ )?([0-9]+)\ on ]] || found+=("first_seed=\"${BASH_REMATCH[2]}\"")
    evidence "$record" "${found[@]}"
fi
