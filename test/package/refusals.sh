#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# If Pawl cannot work with something, the refusal is one sentence: by CMake when it configures, and as the first error
# of the compiler. The old Boost and the old compilers are real; apt fetches the missing ones.

source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in refusals

missing=()
for compiler in g++-11 clang++-13; do
    command -v "$compiler" >/dev/null || missing+=("${compiler/clang++/clang}")
done
if ((${#missing[@]})); then
    [[ -z ${PAWL_NO_INSTALL-} ]] || fail "missing: ${missing[*]} (PAWL_NO_INSTALL is set)"
    as_root=()
    ((EUID == 0)) || as_root=(sudo)
    quietly "${as_root[@]}" apt-get update
    quietly "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}"
fi
mkdir "$work/apt" "$work/old"
(cd "$work/apt" && quietly apt-get download libboost1.74-dev)
quietly dpkg -x "$work"/apt/*.deb "$work/old"
old=$work/old/usr

# CMake searches only the given folders.
hidden=(-D CMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF -D CMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF
    -D CMAKE_MAKE_PROGRAM="$(command -v make)")

quietly cmake -S . -B "$work/build" -D PAWL_BUILD_TESTS=OFF -D PAWL_BUILD_EXAMPLES=OFF -D PAWL_BUILD_BENCH=OFF
quietly cmake --install "$work/build" --prefix "$work/installed"

# cmake_refuses SENTENCE CMAKE-ARGUMENT...: both Pawl's CMakeLists.txt and the package that it installs refuse.
cmake_refuses() {
    local sentence=$1 from
    shift
    for from in add_subdirectory find_package; do
        rm -rf "$work/consumer"
        if cmake -S test/package/consumer -B "$work/consumer" -G "Unix Makefiles" -D PAWL_FROM=$from -D PAWL_SOURCE="$root" \
            -D pawl_DIR="$work/installed/share/cmake/pawl" -D CMAKE_CXX_COMPILER="$(command -v g++)" "$@" >"$work/log" 2>&1; then
            fail "$from takes $*"
        fi
        # CMake breaks lines.
        [[ $(tr -s '\n ' ' ' <"$work/log") == *"$sentence"* ]] || fail "$from refuses $* otherwise: $(<"$work/log")"
        [[ $(grep -c '^CMake Error' "$work/log") == 1 ]] || fail "$from says more than one thing of $*: $(<"$work/log")"
    done
    say "CMake: $sentence"
}

# compiler_refuses SENTENCE COMPILER OPTION...: this is the first error with $header, followed only by the end of the
# compilation.
compiler_refuses() {
    local sentence=$1 first
    shift
    if "$@" -x c++ -fsyntax-only -H -I include "$header" >"$work/log" 2>&1; then fail "$* takes $header"; fi
    first=$(grep -m 1 'error:' "$work/log" | cut -c1-200)
    [[ $first == *"$sentence"* ]] || fail "the first error of $* in $header is another: $first"
    [[ $(grep -c 'error:' "$work/log") == 2 ]] || fail "$* goes on after the first error in $header"
}

cmake_refuses "Pawl needs Boost 1.81 or newer, and CMake finds 1.74.0: install it" "${hidden[@]}" -D CMAKE_PREFIX_PATH="$old"
cmake_refuses "Pawl needs Boost 1.81 or newer, and CMake finds none: install it" "${hidden[@]}"
cmake_refuses "Pawl needs exceptions: compile without -fno-exceptions." -D CMAKE_CXX_FLAGS=-fno-exceptions
cmake_refuses "Pawl needs g++ 12 or newer" -D CMAKE_CXX_COMPILER=g++-11
cmake_refuses "Pawl needs clang 14 or newer" -D CMAKE_CXX_COMPILER=clang++-13

# config.hpp makes the refusals, so each public header must include it first.
for header in include/pawl/*.hpp include/pawl/time/{timing_wheel,hierarchical_wheel,binary_wheel,timeout_ring}.hpp; do
    [[ $header != */version.hpp ]] || continue # three numbers, for any compiler
    compiler_refuses "Pawl needs C++20" g++ -std=c++17
    foreign=$(sed '/error:/q' "$work/log" | grep -E '^\.+ ' | grep -v ' include/pawl/' || true) # the list of -H
    [[ -z $foreign ]] || fail "$header includes others before pawl/config.hpp: ${foreign%%$'\n'*}"
done
say "each public header includes pawl/config.hpp first"

header=include/pawl/pawl.hpp
for compiler in g++ clang++-19; do
    compiler_refuses "Pawl needs C++20" $compiler -std=c++17
    compiler_refuses "Pawl needs exceptions" $compiler -std=c++20 -fno-exceptions
    compiler_refuses "Pawl needs NOMINMAX" $compiler -std=c++20 "-Dmax(a, b)=a"
    compiler_refuses "Pawl needs Boost 1.81 or newer: an older one" $compiler -std=c++20 -I "$old/include"
    compiler_refuses "Pawl needs Boost 1.81 or newer: none" $compiler -std=c++20 -nostdinc
    say "$compiler says what it lacks: C++20, exceptions, a newer Boost, any Boost"
done
compiler_refuses "Pawl needs g++ 12 or newer" g++-11 -std=c++20
compiler_refuses "Pawl needs clang 14 or newer" clang++-13 -std=c++20
say "g++ 11 and clang 13 say that they are too old"
