#: mutate [ARGUMENTS]               plant the defects of test/mutants in the headers, one at a time; the tests must notice each;
#:                                  ./dev mutate --help

need g++:g++ cmake:cmake ninja:ninja-build python3:python3 \
    "libboost${boost:-1.81}-dev" "libboost-test${boost:-1.81}-dev" libssl-dev
[[ " $* " =~ " "(--list|--table|--check|--help|-h)" " ]] || lock_folder build/mutants
tools/mutate.py "$@"
