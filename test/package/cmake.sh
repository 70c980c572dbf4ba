#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# Pawl in a foreign project (consumer/), by each way of CMake and pkg-config. `./dev headers` shows that each header
# compiles alone, by CMAKE_VERIFY_INTERFACE_HEADER_SETS.

source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in cmake

# install_pawl FOLDER [CMAKE-ARGUMENT...]: installs to $work/FOLDER.
install_pawl() {
    local to=$1
    shift
    quietly cmake -S . -B "$work/build" -D PAWL_BUILD_TESTS=OFF -D PAWL_BUILD_EXAMPLES=OFF -D PAWL_BUILD_BENCH=OFF "$@"
    quietly cmake --install "$work/build" --prefix "$work/$to"
    rm -r "$work/build"
}

# configure FROM [CMAKE-ARGUMENT...]: configures the consumer in $work/consumer-FROM.
configure() {
    local from=$1
    shift
    cmake -S "$work/consumer" -B "$work/consumer-$from" -D PAWL_FROM="$from" -D PAWL_SOURCE="$root" \
        -D CMAKE_PREFIX_PATH="$work/moved" "$@"
}

# consume FROM GENERATOR COMPILER [CMAKE-ARGUMENT...]: builds the consumer and runs it.
consume() {
    local from=$1 generator=$2 compiler=$3
    rm -rf "$work/consumer-$from"
    quietly configure "$from" -G "$generator" -D CMAKE_CXX_COMPILER="$compiler" "${@:4}"
    quietly cmake --build "$work/consumer-$from"
    quietly timeout 60 "$work/consumer-$from/consumer"
    say "$*: $(<"$work/log")"
}

# accepts VERSION, refuses VERSION: expected result of find_package(pawl VERSION).
accepts() {
    quietly configure find_package -D PAWL_WANTED="$1"
    say "find_package(pawl $1) takes $version"
}
refuses() {
    if configure find_package -D PAWL_WANTED="$1" >"$work/log" 2>&1; then fail "find_package(pawl $1) takes $version"; fi
    # CMake breaks lines.
    [[ $(tr -s '\n ' ' ' <"$work/log") == *"compatible with requested version \"$1\""* ]] ||
        fail "find_package(pawl $1) fails in another way: $(<"$work/log")"
    say "find_package(pawl $1) does not take $version"
}

install_pawl first
# A path is matched only at its start: share/pawl/ is no path of a checkout in /pawl.
if grep -rnE "(^|-[IL]|[^A-Za-z0-9_}.>])($(sed 's/[][\.*^$+?(){}|]/\\&/g' <<<"$root")|/usr)(/|\$|[\"';) ])" "$work/first"; then fail "the lines above hold an absolute path"; fi
mv "$work/first" "$work/moved"
say "what is installed holds no absolute path"
[[ -f $work/moved/share/doc/pawl/LICENSE ]] || fail "the licence is not installed"
diff <(cd include && find . -type f | sort) <(cd "$work/moved/include" && find . -type f | sort) ||
    fail "not the headers of include/ are installed"
say "the licence and all headers are installed"

cp -r test/package/consumer "$work/consumer"
consume FetchContent "Unix Makefiles" g++ -D CMAKE_CXX_STANDARD=17 # which Pawl's target raises
consume add_subdirectory Ninja g++
consume find_package "Unix Makefiles" clang++-19
consume find_package Ninja g++

IFS=. read -r major minor patch <<<"$version"
accepts "$major.$minor"
accepts "$version"
refuses "$major.$minor.$((patch + 1))"
refuses "$major.$((minor + 1))"
refuses "$((major + 1))"
refuses 0.0.1

export PKG_CONFIG_PATH=$work/moved/share/pkgconfig
[[ $(pkg-config --modversion pawl) == "$version" ]] || fail "pawl.pc has version $(pkg-config --modversion pawl), not $version"
read -ra flags <<<"$(pkg-config --cflags --libs pawl)"
quietly g++ -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror "$work"/consumer/*.cpp "${flags[@]}" \
    -o "$work/consumer-pkg-config"
quietly timeout 60 "$work/consumer-pkg-config"
say "pkg-config g++: $(<"$work/log")"

for from in FetchContent add_subdirectory; do
    quietly cmake --install "$work/consumer-$from" --prefix "$work/installed-$from"
    [[ $(cd "$work/installed-$from" && find . -type f) == ./bin/consumer ]] ||
        fail "a project with Pawl by $from installs $(find "$work/installed-$from" -type f)"
done
quietly configure add_subdirectory -D PAWL_INSTALL=ON
quietly cmake --install "$work/consumer-add_subdirectory" --prefix "$work/installed-with-pawl"
[[ -f $work/installed-with-pawl/include/pawl/pawl.hpp && -f $work/installed-with-pawl/share/cmake/pawl/pawl-config.cmake ]] ||
    fail "PAWL_INSTALL=ON does not install Pawl"
say "a project that takes Pawl in installs it with PAWL_INSTALL=ON only"

install_pawl elsewhere -D CMAKE_INSTALL_INCLUDEDIR=inc -D CMAKE_INSTALL_DATADIR=data/of/it -D PAWL_INSTALL_CMAKEDIR=lib/cmake/pawl
rm -r "$work/consumer-find_package"
quietly configure find_package -D CMAKE_PREFIX_PATH="$work/elsewhere"
included=$(PKG_CONFIG_PATH=$work/elsewhere/data/of/it/pkgconfig pkg-config --variable=includedir pawl)
[[ $(realpath "$included") == "$work/elsewhere/inc" ]] || fail "pawl.pc names $included"
say "the folders of the headers, of pawl-config.cmake and of pawl.pc can be chosen"
