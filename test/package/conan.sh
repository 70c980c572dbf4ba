#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# The Conan package, from the archive of a release, with a Conan home of its own and no remote: made and tested with two
# compilers, used by the quickstart and by pkg-config, refused if a requirement is missing, and in the form of a pull
# request to conan-center.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in conan

if command -v pipx >/dev/null; then
    export PIPX_HOME=$root/build/package/pipx
    conan() { pipx run conan "$@"; }
else
    venv=$root/build/package/venv
    [[ -x $venv/bin/conan ]] || {
        quietly python3 -m venv "$venv"
        quietly "$venv/bin/pip" install conan
    }
    conan() { "$venv/bin/conan" "$@"; }
fi
export CONAN_HOME=$work/home
quietly conan remote remove conancenter

release_files
tree=$work/pawl-$version
tar -xzf "$archive" -C "$work"
cd "$tree"
profile=packaging/conan/profiles/system-boost

# tested: the last command has built the test package, and run its timeout.
tested() {
    grep -qx "pawl $version: The operation timed out" "$work/log" || fail "the test package has not run: $work/log"
}

# revision: of the package that was just made; it depends only on its files.
revision() {
    sed -n 's/^Full package reference: .*#//p' "$work/log" | grep . || fail "no package was made: $work/log"
}

# refused SENTENCE ARGUMENT...: conan fails with this sentence.
refused() {
    local sentence=$1
    shift
    if conan "$@" >"$work/log" 2>&1; then fail "not refused: conan $*"; fi
    grep -qF -- "$sentence" "$work/log" || fail "conan $* does not say: $sentence  It says: $(tail -n 3 "$work/log")"
    say "refused: $sentence"
}

refused "Pawl needs C++20: set compiler.cppstd=20 in the profile, or pass -s compiler.cppstd=20." \
    create . -pr:a "$profile" -s compiler.cppstd=17

# oldest MACRO: the oldest compiler that config.hpp accepts; the recipe must agree.
oldest() { sed -nE "s/.*\b$1 < ([0-9]+)\b.*/\1/p" include/pawl/config.hpp | grep .; }
gcc=$(oldest __GNUC__)
clang=$(oldest __clang_major__)
refused "Pawl needs gcc $gcc or newer: install one, and set compiler.version in the profile to its version." \
    create . -pr:a "$profile" -s compiler.version=$((gcc - 1))
refused "Pawl needs clang $clang or newer: install one, and set compiler.version in the profile to its version." \
    create . -pr:a "$profile-clang" -s compiler.version=$((clang - 1))

# An older Boost cannot even be resolved, unless a consumer overrides Pawl's requirement.
sed 's|^boost/.*|boost/1.74.0|' "$profile" >"$work/old-boost"
refused "Version range '>=1.81 <2' from requirement 'boost/[>=1.81 <2]' required by 'pawl/$version' could not be resolved." \
    create . -pr:a "$work/old-boost"
mkdir "$work/override"
cat >"$work/override/conanfile.py" <<'PYTHON'
from conan import ConanFile


class Override(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def requirements(self):
        self.requires("pawl/[*]")
        self.requires("boost/1.74.0", override=True)
PYTHON
refused "Pawl needs Boost 1.81 or newer: require one instead of boost/1.74.0." \
    install "$work/override" -pr:a "$work/old-boost"

quietly conan create . -pr:a "$profile"
tested
made=$(revision)
say "conan create passes with g++, version $version"
quietly conan create . -pr:a "$profile-clang"
tested
grep -q 'The CXX compiler identification is Clang 19' "$work/log" || fail "clang 19 was not taken: $work/log"
say "and with clang 19"

quietly conan build examples/quickstart -pr:a "$profile"
grep -qx 'timed out' "$work/log" || fail "the quickstart has not timed out: $work/log"
grep -q '^pawl_DIR:PATH=.*/generators$' examples/quickstart/build/Release/CMakeCache.txt ||
    fail "the quickstart has not taken the package"
say "conan build examples/quickstart builds and runs it, with the package"

quietly conan install --requires="pawl/$version" -pr:a "$profile" -g PkgConfigDeps -of "$work/pkg-config"
read -ra flags < <(PKG_CONFIG_PATH=$work/pkg-config pkg-config --cflags --libs "pawl = $version")
quietly g++ -std=c++20 test/package/conan/test_package.cpp "${flags[@]}" -o "$work/pkg-config/test"
quietly "$work/pkg-config/test"
tested
say "PkgConfigDeps gives what g++ needs"

# In place of conan-center's Boost, which is not available, the system's, in a recipe with the same option and
# component.
mkdir "$work/boost"
cat >"$work/boost/conanfile.py" <<'PYTHON'
import os

from conan import ConanFile


class Boost(ConanFile):
    name = "boost"
    version = "1.81.0"
    options = {"header_only": [True, False]}
    default_options = {"header_only": False}

    def validate(self):
        assert self.options.header_only

    def package(self):
        include = os.path.join(self.package_folder, "include")
        os.mkdir(include)
        os.symlink("/usr/include/boost", os.path.join(include, "boost"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "Boost")
        headers = self.cpp_info.components["headers"]
        headers.set_property("cmake_target_name", "Boost::headers")
        headers.libdirs = []
PYTHON
sed -e '/^\[platform_requires\]/,$d' -e '/cppstd/d' "$profile" >"$work/default"
quietly conan export "$work/boost"
quietly conan create . -pr:a "$work/default" -pr:a packaging/conan/profiles/boost-header-only --build='boost/*' --build='pawl/*'
tested
grep -q 'Boost::headers' "$work/log" || fail "CMakeDeps did not declare Boost::headers: $work/log"
say "a Boost from a recipe, header-only, is taken too"

quietly conan remove -c "pawl/*"
quietly conan remote add conan-center "$release/conan-center" --type=local-recipes-index
quietly conan install --requires="pawl/$version" --build=missing -pr:a "$profile" -of "$work/install"
[[ $(revision) == "$made" ]] || fail "its package is not the one of conan create: $work/log"
quietly conan test "$release/conan-center/recipes/pawl/all/test_package" "pawl/$version" -pr:a "$profile"
tested
say "the recipe for conan-center makes the same package from a release archive, and its test passes"
mkdir "$work/consumer"
cp examples/quickstart/{conanfile.py,CMakeLists.txt} "$work/consumer"
twenty_lines >"$work/consumer/main.cpp"
quietly conan build "$work/consumer" -pr:a "$profile"
grep -qx 'timed out' "$work/log" || fail "the twenty lines have not timed out: $work/log"
say "a Conan consumer builds and runs the twenty lines of README.md with it"
