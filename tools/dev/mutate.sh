#: mutate [ARGUMENTS]               plant the defects of test/mutants in the headers, one at a time; the tests must notice each;
#:                                  ./dev mutate --help
#: mutate --generate [ARGUMENTS]    the same with thousands of small defects that are made from the syntax trees of the headers;
#:                                  installs a parser from PyPI; ./dev mutate --generate --help

need g++:g++ cmake:cmake ninja:ninja-build python3:python3 \
    "libboost${system_boost:-1.81}-dev" "libboost-test${system_boost:-1.81}-dev" libcli11-dev libssl-dev
[[ " $* " =~ " "(--list|--table|--check|--help|-h)" " ]] || lock_folder build/mutants
if [[ ${1-} == --generate ]]; then
    shift
    syntax_trees
    build/syntax_trees/bin/python tools/mutate_generate.py "$@"
else
    tools/mutate.py "$@"
fi
