# What several commands of ./dev need.

# did_you_mean WORD CANDIDATE...: names the candidate that is a slip or two away: a character too many, too few, wrong or swapped.
did_you_mean() {
    local word=${1%%=*} each nearest= least=$(((${#1} > 4) + 2)) i j cost best
    local -A d
    shift
    for each in "$@"; do
        for ((i = 0; i <= ${#word}; ++i)); do d[$i, 0]=$i; done
        for ((j = 0; j <= ${#each}; ++j)); do d[0, $j]=$j; done
        for ((i = 1; i <= ${#word}; ++i)); do
            for ((j = 1; j <= ${#each}; ++j)); do
                [[ ${word:i-1:1} == "${each:j-1:1}" ]] && cost=0 || cost=1
                best=$((d[$((i - 1)), $((j - 1))] + cost))
                ((d[$((i - 1)), $j] + 1 >= best)) || best=$((d[$((i - 1)), $j] + 1))
                ((d[$i, $((j - 1))] + 1 >= best)) || best=$((d[$i, $((j - 1))] + 1))
                if ((i > 1 && j > 1)) && [[ ${word:i-2:2} == "${each:j-1:1}${each:j-2:1}" ]]; then
                    ((d[$((i - 2)), $((j - 2))] + 1 >= best)) || best=$((d[$((i - 2)), $((j - 2))] + 1))
                fi
                d[$i, $j]=$best
            done
        done
        ((d[${#word}, ${#each}] >= least)) || { least=${d[${#word}, ${#each}]} && nearest=$each; }
    done
    [[ -z $nearest ]] || printf ' (did you mean %s?)' "$nearest"
}

# does_not_know WORD [CANDIDATE...]: the candidates are also the options of the last take_options.
does_not_know() { misused "$command does not know '$1'$(did_you_mean "$@" ${names:+${names// / --}})"; }

# Systems with known packages, and the Boost version of each.
system=$( (. /etc/os-release && echo "$ID $VERSION_ID") 2>/dev/null || true)
case $system in
    "debian 12") system_boost=1.81 ;;
    "ubuntu 24.04") system_boost=1.83 ;;
    *) system_boost= ;;
esac

installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# need [COMMAND:]PACKAGE...: installs each package that is missing, or whose command is missing; or names them.
need() {
    local wanted missing=() other as_root=()
    for wanted in "$@"; do
        if [[ $wanted == *:* ]]; then
            command -v "${wanted%%:*}" >/dev/null || missing+=("${wanted#*:}")
        else
            installed "$wanted" || missing+=("$wanted")
        fi
    done
    ((${#missing[@]})) || return 0
    if [[ -z $system_boost || -n ${PAWL_NO_INSTALL:-} ]]; then
        printf 'dev: install what you lack of these packages (Debian names): %s\n' "${missing[*]}" >&2
        return
    fi

    if [[ " ${missing[*]} " == *" libboost$system_boost-dev "* ]]; then
        for other in $(dpkg-query -W -f '${Package}\n' 'libboost1.*-dev' 2>/dev/null); do
            if [[ $other =~ ^libboost1\.[0-9]+-dev$ ]] && installed "$other"; then
                die "$other is installed and conflicts with libboost$system_boost-dev, which Pawl needs." \
                    "Remove it (apt-get remove $other), or set PAWL_NO_INSTALL=1 and CMAKE_PREFIX_PATH to a newer Boost."
            fi
        done
    fi
    if ((EUID != 0)); then
        command -v sudo >/dev/null || die "missing: ${missing[*]}; run as root or install sudo to install them."
        as_root=(sudo)
    fi
    printf 'dev: installing %s\n' "${missing[*]}"
    as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
    "${as_root[@]}" update
    "${as_root[@]}" install -y --no-install-recommends --no-remove "${missing[@]}" ||
        die "apt-get could not install ${missing[*]}; see its messages above."
}

# lock_folder FOLDER: waits until no other ./dev uses this build folder. Two at once would replace each other's records of
# what is built. The lock ends with this shell, or with `unlock`.
lock_folder() {
    mkdir -p "$1"
    exec {lock}<"$1"
    command -v flock >/dev/null || return 0 # not on Linux
    if ! flock --nonblock "$lock"; then
        printf 'dev: %s is in use by %s; waiting for its end\n' "$1" "$(cat "$1/.dev_holder" 2>/dev/null || echo "another ./dev")" >&2
        flock "$lock"
    fi
    printf './dev %s, process %d, since %(%H:%M)T\n' "$invocation" $$ -1 >"$1/.dev_holder"
}

# unlock: for commands that go on to run what they have built, without changing it.
unlock() { exec {lock}<&-; }

# configure PRESET COMPILER [CMAKE-ARGUMENT...]: locks the build folder, sets $dir to it.
configure() {
    local preset=$1 compiler=$2 version needed
    shift 2
    compiler_start "$compiler"
    version=${compiler##*++}
    version=${version#-}
    case ${compiler##*/} in
        g++*) needed=("$compiler:g++${version:+-$version}") ;;
        clang++*)
            needed=("$compiler:clang${version:+-$version}")
            # Without a symbolizer, clang's sanitizers print no function names and ignore suppressions by function name.
            [[ $preset != *san* ]] ||
                needed+=("libclang-rt-${version:+$version-}dev" "llvm-symbolizer${version:+-$version}:llvm${version:+-$version}")
            ;;
    esac
    need "${needed[@]}" cmake:cmake ninja:ninja-build \
        "libboost${system_boost:-1.81}-dev" "libboost-test${system_boost:-1.81}-dev" "libboost-context${system_boost:-1.81}-dev" \
        libcli11-dev libssl-dev liblua5.4-dev libedit-dev libuv1-dev libevent-dev libev-dev libhiredis-dev

    dir=build/$preset-${compiler##*/}$folder_suffix
    lock_folder "$dir"
    commit=$(git describe --always --dirty --abbrev=7 2>/dev/null || echo unknown)
    cmake --preset "$preset" -B "$dir" -D CMAKE_CXX_COMPILER="$compiler" "$@"
}
folder_suffix=

# build PRESET COMPILER TARGET...
build() {
    local preset=$1 compiler=$2
    shift 2
    configure "$preset" "$compiler"
    compile "$@"
}

# compile TARGET...: in $dir; shows how many steps are left, and the seconds that have passed.
compile() { NINJA_STATUS="[%f/%t, %e s] " cmake --build "$dir" --parallel "$(nproc)" --target "$@"; }

# take_options "NAME..." ARGUMENT...: each leading --NAME VALUE or --NAME=VALUE sets the caller's variable NAME; the other
# arguments go to $rest.
take_options() {
    local name
    names=" $1"
    shift
    while [[ ${1-} == --?* ]]; do
        name=${1%%=*}
        name=${name#--}
        [[ "$names " == *" $name "* ]] || break
        if [[ $1 == *=* ]]; then
            set -- "${1%%=*}" "${1#*=}" "${@:2}"
        fi
        (($# > 1)) || misused "$1 needs a value"
        printf -v "$name" %s "$2"
        shift 2
    done
    rest=("$@")
}
names=

# sanitizers_start: sets $steady to the prefix that commands need.
sanitizers_start() {
    # Sanitizers of these compilers do not start if the kernel randomises more than 28 bits of an address.
    steady=()
    if setarch "$(uname -m)" -R true 2>/dev/null; then steady=(setarch "$(uname -m)" -R); fi
    export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
    export TSAN_OPTIONS=${TSAN_OPTIONS:-"halt_on_error=1 suppressions='$PWD/test/tsan.supp'"}
}

# preset_start PRESET: like sanitizers_start, if the programs of the preset need it.
preset_start() {
    case $1 in
        release | debug | optimised | optimised+assertions | coverage) steady=() ;;
        asan+ubsan | tsan) sanitizers_start ;;
        *) misused "no such preset: $1$(did_you_mean "$1" release debug optimised optimised+assertions asan+ubsan tsan coverage)" ;;
    esac
}

# compiler_start COMPILER: refuses what no command can use.
compiler_start() { [[ ${1##*/} =~ ^(g|clang)\+\+ ]] || misused "neither g++ nor clang++: $1"; }

# evidence NAME KEY=JSON...: writes build/evidence/NAME.json, the record from which ./dev evidence makes its page; after
# `configure`.
evidence() {
    mkdir -p build/evidence
    python3 - "$1" "./dev $invocation" "${commit:-$(git describe --always --dirty --abbrev=7)}" "$("$compiler" --version | head -n 1)" "${@:2}" <<'PYTHON'
import datetime, json, sys
name, what, commit, compiler, *found = sys.argv[1:]
date = f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
record = {"what": what, "date": date, "commit": commit, "compiler": compiler}
record |= {key: json.loads(value) for key, value in (each.split("=", 1) for each in found)}
open(f"build/evidence/{name}.json", "w").write(json.dumps(record, indent=1) + "\n")
PYTHON
}

# syntax_trees: installs the parser that tools/mutate_generate.py uses into build/syntax_trees, from PyPI.
syntax_trees() {
    [[ -e build/syntax_trees/done ]] && return
    need python3:python3 python3-venv && python3 -m venv build/syntax_trees &&
        build/syntax_trees/bin/pip -q --disable-pip-version-check install tree-sitter==0.26.1 tree-sitter-cpp==0.23.4 &&
        touch build/syntax_trees/done
}
