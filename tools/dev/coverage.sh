#: coverage [--only R] [--list R] [--html]
#:                                  which lines, branches and conditions (MC/DC) of include/pawl the tests cover, by clang 19;
#:                                  fails if that is less than test/coverage.toml asks for. Some 20 minutes.
#:                                  --only: of these tests, as for test, and never fails; --list: what is not covered, in
#:                                  headers whose names match R; --html: each line, in build/coverage/html

only= list= html= compiler=clang++-19
take_options "only list" "$@"
set -- "${rest[@]}"
[[ ${1-} != --html ]] || { html=1 && shift; }
(($# == 0)) || does_not_know "$1" --html
need llvm-cov-19:llvm-19 readelf:binutils python3:python3
profiles=$PWD/build/coverage
rm -rf "$profiles"
mkdir -p "$profiles"
export LLVM_PROFILE_FILE=$profiles/%4m.profraw # four files for each program, into which its processes merge
"$PWD/dev" test --preset coverage --compiler clang++-19 ${only:+--only "$only"} -- --label-exclude '^slow$'
dirs=(build/coverage-clang++-19*) # few tests are compiled alone, in a folder of their own

# Program by program: a function that is compiled otherwise in another one has another map.
export_all() {
    local id program file
    local -A program_of files_of
    while read -r program; do
        id=$({ readelf -n "$program" 2>/dev/null || true; } | sed -n 's/^ *Build ID: //p') # or a script
        [[ -z $id ]] || program_of[$id]=$program
    done < <(find "${dirs[@]}" -type f -executable ! -path '*/CMakeFiles/*')
    for file in "$profiles"/*.profraw; do
        id=$(llvm-profdata-19 show --binary-ids "$file" | tail -n 1)
        files_of[$id]+=" $file"
    done
    for id in "${!files_of[@]}"; do
        [[ -n ${program_of[$id]-} ]] || continue # of a program that a test has built and removed
        # shellcheck disable=SC2086 # a list of files
        llvm-profdata-19 merge -sparse -o "$profiles/$id.profdata" ${files_of[$id]}
        llvm-cov-19 export --skip-functions -instr-profile "$profiles/$id.profdata" "${program_of[$id]}" -sources include/pawl \
            >"$profiles/$id.json"
    done
}
printf 'dev: adding up what the programs counted\n'
export_all
compgen -G "$profiles/[0-9a-f]*.json" >/dev/null || die "none of the programs has counted anything"
if [[ -n $html ]]; then
    llvm-profdata-19 merge -sparse -o "$profiles/all.profdata" "$profiles"/*.profdata
    mapfile -t programs < <(find "${dirs[@]}" -type f -executable -size +64k ! -path '*/CMakeFiles/*')
    llvm-cov-19 show -format=html -show-branches=count -show-mcdc -output-dir "$profiles/html" \
        -instr-profile "$profiles/all.profdata" "${programs[@]/#/-object=}" -sources include/pawl >/dev/null
    printf 'dev: %s\n' "build/coverage/html/index.html"
fi
python3 tools/coverage.py --root include/pawl --wanted test/coverage.toml --json "$profiles/table.json" \
    ${list:+--list "$list"} ${only:+--part} "$profiles"/[0-9a-f]*.json || wrong=$?
[[ -n $only ]] || evidence coverage "files=$(<"$profiles/table.json")" "enough=$([[ -n ${wrong-} ]] && echo false || echo true)"
exit "${wrong-0}"
