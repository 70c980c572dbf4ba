#: test [--preset P] [--compiler C] [--boost B] [--only R | --slow] [-- CTEST-ARGUMENTS]
#:                                  build and run the tests; README.md says how long that takes, and what it installs
#:                                  R: a regular expression; only tests, their programs and examples with a matching name
#:                                  --slow: what the preset release leaves out otherwise: models, code of the pages, warnings,
#:                                  and that the benchmarks run
#:                                  P: release (default; without optimisation, which builds faster), debug, asan+ubsan, tsan,
#:                                  optimised (everything as users compile it), optimised+assertions
#:                                  C: clang++-19 (default, needs half the time), g++, clang++, g++-13, ...
#:                                  B: a newer Boost, from PyPI: 1.90.0 and others that tools/fetch_boost.sh lists
#: test --platform F [--only R | --all] [-- CTEST-ARGUMENTS]
#:                                  run tests for another platform: hello_timer, waits, test vectors of the time structures;
#:                                  without emulation also the contract and races; R: as above; --all: all programs that can run
#:                                  F: windows (MinGW-w64, Wine), libc++ (clang++-19), select (Asio without epoll and timerfd),
#:                                  kqueue (Asio's reactor of the BSDs and macOS, on an emulation), io_uring, no_threads,
#:                                  separate (how Asio is configured, or compiled), no_rtti (and with handler tracking,
#:                                  and Asio without exceptions), x86 (32 bit),
#:                                  arm64, s390x (qemu)

if [[ ${1-} == --platform* ]]; then
    source tools/dev/lib/platform.sh
    platform= only= all=
    take_options "platform only" "$@"
    set -- "${rest[@]}"
    [[ ${1-} != --all ]] || { all=1 && shift; }
    [[ -z $all || -z $only ]] || misused "--only and --all exclude each other"
    (($# == 0)) || [[ $1 == -- ]] || does_not_know "$1" --all
    (($# == 0)) || shift
    test_platform "$platform" "$only" "$all" "$@"
    exit
fi

preset=release compiler=clang++-19 boost= only= slow= targets=(all)
take_options "preset compiler boost only" "$@"
set -- "${rest[@]}"
[[ ${1-} != --slow ]] || { slow=1 && shift; }
[[ -z $slow || -z $only && $preset == release ]] || misused "--slow is for the preset release, without --only"
(($# == 0)) || [[ $1 == -- ]] || does_not_know "$1" --platform --slow
(($# == 0)) || shift
preset_start "$preset"
compiler_start "$compiler"
need curl:curl git:git openssl:openssl python3:python3 lua5.4:lua5.4 redis-server:redis-server
quick= options=()
if [[ $preset == release ]]; then
    [[ -n $only$slow ]] || quick=1
    options=(-D PAWL_BUILD_BENCH="$([[ -n $quick ]] && echo OFF || echo ON)")
fi
if [[ -n $boost ]]; then
    need python3-venv
    prefix=$(tools/fetch_boost.sh "$boost") || die "no Boost $boost from PyPI"
    options+=(-D Boost_DIR:PATH="$(echo "$prefix"/lib/cmake/Boost-*)")
    folder_suffix=-boost-$boost
fi
[[ -n $quick || $preset == *san* ]] || need spin:spin cc:gcc
[[ -z $quick ]] || syntax_trees || printf 'dev: without that parser, from PyPI, mutants_generated is skipped\n' >&2

# wanted: the targets that --only names, among those of the folder.
wanted() { cmake --build "$dir" --target help | sed -n 's/^\([a-z0-9_]*\): phony$/\1/p' | grep -E -- "$only" | grep -v _together_; }

configure "$preset" "$compiler" "${options[@]}"
[[ -z $boost ]] || grep -q "^Boost_DIR:PATH=$prefix/" "$dir/CMakeCache.txt" || die "CMake has found another Boost"
[[ $preset != optimised ]] || targets+=(all_verify_interface_header_sets)
if [[ -n $only ]]; then
    # A test that needs a program has a target of its name. Others, such as the models, need none.
    mapfile -t targets < <(wanted)
    mapfile -t tests < <(ctest --test-dir "$dir" -N | sed -n 's/^ *Test *#[0-9]*: //p' | grep -E -- "$only")
    ((${#targets[@]} + ${#tests[@]})) || die "nothing matches $only; the names of the tests: ctest --test-dir $dir -N"
    # A few are compiled faster alone than with their neighbours, and in a folder of its own.
    if ((${#targets[@]} && ${#targets[@]} <= 3)) && grep -q '^PAWL_TESTS_TOGETHER:BOOL=ON' "$dir/CMakeCache.txt"; then
        unlock
        folder_suffix+=-alone
        configure "$preset" "$compiler" "${options[@]}" -D PAWL_TESTS_TOGETHER=OFF >/dev/null
    fi
    names=("${targets[@]}" "${tests[@]}")
    set -- -R "^(example_)?($(IFS='|' && printf '%s' "${names[*]}"))(_beside_a_thread)?\$" "$@"
fi
((!${#targets[@]})) || compile "${targets[@]}"
[[ -z $quick ]] || set -- --label-exclude '^slow$' "$@"
[[ -z $slow ]] || set -- --label-regex '^slow$' "$@"
if [[ -n $only ]] && ctest --test-dir "$dir" -N "$@" | grep -q '^Total Tests: 0$'; then
    die "no test runs ${targets[*]} alone. Built below $dir; the scripts that use it: ctest --test-dir $dir -N"
fi
# More than there are processors: those of the HTTP server mostly sleep.
junit=$PWD/$dir/junit.xml status=0
rm -f "$junit"
"${steady[@]}" ctest --test-dir "$dir" --output-on-failure --no-tests=error --parallel "$(($(nproc) + 3))" --output-junit "$junit" "$@" ||
    status=$?
[[ ! -s $junit ]] || tools/evidence.py --junit "$junit" "test-$preset-${compiler##*/}${boost:+-boost-$boost}" "$commit" "$("$compiler" --version | head -n 1)"
exit "$status"
