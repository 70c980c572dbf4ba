#: fuzz [oss] [--seconds N] [--target T] [--preset P] [--compiler C]
#:                                  fuzz the structures against their models, the service in one thread and in several, the
#:                                  example server, and what tools read, starting from test/fuzz/corpus
#:                                  N: total, 60 (default); T: as in test/fuzz/T_fuzz.* (default: each of them in turn)
#:                                  P: asan+ubsan (default), or tsan, for the target service_threads
#:                                  PAWL_SEED in the environment is the seed; C: clang++-19 (default), clang++, ...
#:                                  oss: as OSS-Fuzz does, with what test/fuzz/oss-fuzz/build.sh builds

mode=
[[ ${1-} != oss ]] || { mode=oss && shift; }
seconds=60 target= compiler=clang++-19 preset=asan+ubsan
take_options "seconds target preset compiler" "$@"
((${#rest[@]} == 0)) || does_not_know "${rest[0]}" oss
[[ $seconds =~ ^[1-9][0-9]*$ ]] || misused "not a number of seconds: $seconds"
[[ ${compiler##*/} == clang++* ]] || misused "only clang has a fuzzer: $compiler"
[[ $preset == asan+ubsan || $preset == tsan ]] || misused "no preset for fuzzers: $preset$(did_you_mean "$preset" asan+ubsan tsan)"
[[ $mode != oss || $preset$target == asan+ubsan ]] || misused "fuzz oss takes no --target and no --preset"
if [[ $preset == tsan ]]; then
    [[ -z $target || $target == service_threads ]] || misused "$target has no threads; only service_threads has"
    target=service_threads
fi
targets=(test/fuzz/*_fuzz.[cp]*)
targets=("${targets[@]##*/}")
targets=("${targets[@]%_fuzz.*}")
if [[ -n $target ]]; then
    [[ " ${targets[*]} " == *" $target "* ]] || misused "no such target: $target (there are ${targets[*]})"
    targets=("$target")
fi
sanitizers_start
programs=()
for each in "${targets[@]}"; do [[ $each == tools ]] || programs+=("fuzz_$each"); done
if [[ $mode == oss ]]; then
    need zip:zip unzip:unzip libssl-dev
    out=build/fuzz/oss/out
    lock_folder build/fuzz/oss
    mkdir -p build/fuzz/oss/src "$out"
    ln -sfn "$PWD" build/fuzz/oss/src/pawl
    SRC=$PWD/build/fuzz/oss/src OUT=$PWD/$out CXX=$compiler LIB_FUZZING_ENGINE=-fsanitize=fuzzer \
        CXXFLAGS="-O0 -gline-tables-only -fsanitize=address -fsanitize=fuzzer-no-link" test/fuzz/oss-fuzz/build.sh
    unlock
elif ((${#programs[@]})); then
    build "$preset" "$compiler" "${programs[@]}"
    unlock
fi
runs=
share=$(((seconds + ${#targets[@]} - 1) / ${#targets[@]}))
rm -f build/evidence/fuzz.json # a run that fails leaves no record
for each in "${targets[@]}"; do
    found=build/fuzz/$each # inputs that reach code that no other input has reached
    mkdir -p "$found"
    if [[ $each == tools ]]; then
        [[ $mode != oss ]] || continue # Python
        if [[ ! -e build/fuzz/venv/done ]]; then
            need python3:python3 python3-venv && python3 -m venv build/fuzz/venv
            build/fuzz/venv/bin/pip -q --disable-pip-version-check install hypothesis==6.170.15
            touch build/fuzz/venv/done
        fi
        build/fuzz/venv/bin/python test/fuzz/tools_fuzz.py "$share" >"$found.log" 2>&1 || {
            cat "$found.log"
            die "the tools fail with the inputs above."
        }
        sed 's/^/dev: tools: /' "$found.log"
        continue
    fi
    program=${dir-}/test/fuzz_$each seeds=test/fuzz/corpus/$each dictionary=test/fuzz/${each}_fuzz.dict
    if [[ $mode == oss ]]; then # only what is in $OUT
        program=$out/${each}_fuzz seeds=$out/${each}_seeds dictionary=$out/${each}_fuzz.dict
        [[ ! -e ${program}_seed_corpus.zip ]] || unzip -q -o -d "$seeds" "${program}_seed_corpus.zip"
    fi
    [[ -d $seeds ]] || seeds=
    [[ -e $dictionary ]] || dictionary=
    "${steady[@]}" "$program" -max_total_time="$share" -seed=$((${PAWL_SEED:-0} % 2147483647)) -max_len=6000 -len_control=0 -timeout=25 \
        -rss_limit_mb=4096 -verbosity=0 -print_final_stats=1 -artifact_prefix="build/fuzz/$each-" \
        ${dictionary:+-dict="$dictionary"} "$found" ${seeds:+"$seeds"} >"$found.log" 2>&1 || {
        cat "$found.log"
        die "$each fails with the input that is named above." \
            "To see its calls: PAWL_TRACE=1 ${steady[*]}${steady[*]:+ }$program INPUT"
    }
    count=$(sed -n 's/^stat::number_of_executed_units: *//p' "$found.log")
    printf 'dev: %s: %s inputs, no difference\n' "$each" "$count"
    runs+=${runs:+, }\"$each\":\ $count
done
[[ -z $runs ]] || evidence "fuzz${mode:+_$mode}" seconds="$seconds" preset="\"$preset\"" inputs="{$runs}"
