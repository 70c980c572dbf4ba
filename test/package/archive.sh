#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# The archive of a release: the same twice, and what Meson and FetchContent make of it. vcpkg.sh and conan.sh use one, too.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in archive
release_files

(
    umask 077
    export TZ=Pacific/Kiritimati GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_{0=core.autocrlf,1=tar.umask} GIT_CONFIG_VALUE_{0=true,1=user}
    "$work/tree/packaging/make_release.sh" HEAD "file://$release" "$work/again"
)
diff -r "$release" "$work/again" || fail "a release that is made twice differs"
if grep -rn --exclude='*.gz' -E '@\w+@' "$release"; then fail "the lines above are not filled in"; fi
say "archive and recipes are the same byte for byte, whatever git's configuration, umask and time zone are"

# runs COMMAND...: it is the program of README.md.
runs() {
    quietly timeout 60 "$@"
    grep -qx 'timed out' "$work/log" || fail "$* has not timed out: $work/log"
}

# pypi PACKAGE==VERSION COMMAND [ARGUMENT...]
pypi() {
    local venv=$root/build/package/venv-${1%%=*}
    if command -v pipx >/dev/null; then
        PIPX_HOME=$root/build/package/pipx pipx run --spec "$@"
    else
        [[ -x $venv/bin/$2 ]] || { python3 -m venv "$venv" && "$venv/bin/pip" install "$1"; }
        "$venv/bin/$2" "${@:3}"
    fi
}

sed 's|file:///|https://example.org/|' "$release/pawl-$version.spdx.json" >"$work/pawl.spdx.json" # SPDX knows no file:
quietly pypi spdx-tools==0.8.5 pyspdxtools -i "$work/pawl.spdx.json"
(cd "$release" && quietly sha256sum --strict -c SHA256SUMS)
hash=$(sha256sum <"$archive" | cut -d' ' -f1)
for each in "${archive##*/}" pawl.wrap "pawl-$version.spdx.json"; do
    grep -q "  $each\$" "$release/SHA256SUMS" || fail "SHA256SUMS lacks $each"
    [[ $each == *.gz ]] || grep -q "$hash" "$release/$each" || fail "$each has not the hash of the archive"
done
say "the bill of materials is valid SPDX 2.3, and names the archive by its hash; SHA256SUMS fit"

mkdir -p "$work/meson/subprojects"
cp "$release/pawl.wrap" "$work/meson/subprojects"
twenty_lines >"$work/meson/main.cpp"
cat >"$work/meson/meson.build" <<MESON
project('consumer', 'cpp', default_options: ['cpp_std=c++20', 'warning_level=3', 'werror=true'])
executable('consumer', 'main.cpp', dependencies: dependency('pawl', version: '$version'))
MESON
# A warning of Meson: a feature that is newer than the oldest Meson that meson.build accepts.
quietly pypi meson==1.12.1 meson setup --fatal-meson-warnings --wrap-mode forcefallback "$work/meson/build" "$work/meson"
quietly ninja -C "$work/meson/build"
runs "$work/meson/build/consumer"
say "Meson builds and runs the twenty lines, with pawl.wrap"

mkdir "$work/cmake"
twenty_lines >"$work/cmake/main.cpp"
# What CPMAddPackage(NAME pawl URL ... URL_HASH ...) of CPM.cmake calls; no package that pip or apt installs contains CPM.
cat >"$work/cmake/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.24)
project(consumer LANGUAGES CXX)
include(FetchContent)
FetchContent_Declare(pawl URL "file://$archive" URL_HASH SHA256=$(sha256sum <"$archive" | cut -d' ' -f1))
FetchContent_MakeAvailable(pawl)
add_executable(consumer main.cpp)
target_link_libraries(consumer PRIVATE pawl::pawl)
CMAKE
quietly cmake -S "$work/cmake" -B "$work/cmake/build"
quietly cmake --build "$work/cmake/build"
runs "$work/cmake/build/consumer"
say "CMake builds and runs them, with FetchContent and the hash of the archive"
