#: fuzz [--seconds N] [--target T] [--compiler C]
#:                                  fuzz the time structures against their models, starting from test/fuzz/corpus
#:                                  N: total, 60 (default); T: as in test/fuzz/T_fuzz.cpp (default: each of them in turn)
#:                                  PAWL_SEED in the environment is the seed; C: clang++-19 (default), clang++, ...

seconds=60 target= compiler=clang++-19
take_options "seconds target compiler" "$@"
((${#rest[@]} == 0)) || does_not_know "${rest[0]}"
[[ $seconds =~ ^[1-9][0-9]*$ ]] || misused "not a number of seconds: $seconds"
[[ ${compiler##*/} == clang++* ]] || misused "only clang has a fuzzer: $compiler"
targets=(test/fuzz/*_fuzz.cpp)
targets=("${targets[@]##*/}")
targets=("${targets[@]%_fuzz.cpp}")
if [[ -n $target ]]; then
    [[ " ${targets[*]} " == *" $target "* ]] || misused "no such target: $target (there are ${targets[*]})"
    targets=("$target")
fi
sanitizers_start
build asan+ubsan "$compiler" "${targets[@]/#/fuzz_}"
unlock
for each in "${targets[@]}"; do
    found=build/fuzz/$each # inputs that reach code that no other input has reached
    mkdir -p "$found"
    "${steady[@]}" "$dir/test/fuzz_$each" -max_total_time=$(((seconds + ${#targets[@]} - 1) / ${#targets[@]})) \
        -seed=$((${PAWL_SEED:-0} % 2147483647)) -max_len=1500 -timeout=10 -verbosity=0 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/$each-" "$found" "test/fuzz/corpus/$each" >"$found.log" 2>&1 || {
        cat "$found.log"
        die "$each fails with the input that is named above." \
            "To see its calls: PAWL_TRACE=1 ${steady[*]}${steady[*]:+ }$dir/test/fuzz_$each INPUT"
    }
    printf 'dev: %s: %s inputs, no difference\n' "$each" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$found.log")"
done
