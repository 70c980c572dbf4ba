#: simulate [threads] [--preset P] [--compiler C] [ARGUMENTS]
#:                                  run random programs against a naive model, for everything except the event queue; the first
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
"${steady[@]}" "$dir/test/simulation/$program" "${rest[@]}"
