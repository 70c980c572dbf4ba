#: package [STEP...]                test the package as a user sees it: install, CMake, Conan and Meson consumers, the archive
#:                                  of a release, unsupported compilers, a newer Boost, single header, standalone Asio,
#:                                  gdb printers, metrics, reference, and the commands of getting-started.md (which install
#:                                  to /usr/local and uninstall). Needs a clone, PyPI, and Debian 12 for its old compilers
#:                                  and Boost. STEP: of test/package/STEP.sh (default: all except third_party)
#: package third_party              test Boost.Redis, Boost.MySQL and Boost.MQTT5 on Pawl's timers, converted by tools/migrate,
#:                                  against a redis-server, a mariadbd and a mosquitto; compile Boost.Cobalt. Two minutes; needs PyPI

steps=(newer_boost standalone conan archive gdb metrics cmake refusals single_header vcpkg doxygen readme)
together=()
for each in "$@"; do
    [[ " third_party ${steps[*]} " == *" $each "* ]] ||
        misused "no such step: $each (there are ${steps[*]}, and third_party)"
done
(($#)) || set -- "${steps[@]}"
need g++:g++ clang++-19:clang-19 make:make cmake:cmake ninja:ninja-build git:git pipx:pipx \
    gdb:gdb doxygen:doxygen pkg-config:pkg-config python3:python3 python3-venv \
    "libboost${system_boost:-1.81}-dev"
[[ " $* " != *" third_party "* ]] || need redis-server mariadb-server mosquitto libssl-dev
# In parallel, the longest first: each runs one compiler after another. The commands of getting-started.md run last and
# alone, because they install things system-wide.
for each in third_party "${steps[@]}"; do
    [[ " $* " != *" $each "* || $each == readme ]] || together+=("$each")
done
((!${#together[@]})) || printf '%s\0' "${together[@]}" |
    xargs -0 -P "$(nproc)" -I{} bash -c 'test/package/{}.sh && echo "dev: {}: done"' ||
    die "a step has failed: see the lines that begin with 'package:' above."
[[ " $* " != *" readme "* ]] || test/package/readme.sh
