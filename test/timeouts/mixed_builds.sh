#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# mixed_builds.sh COMPILER INCLUDE_DIR: a program of translation units with and without PAWL_VIRTUAL_TIME ends with an
# error, even if they share no type of Pawl's, in either order of linking, and if one of them is a shared library. A
# program whose units all have it, or none, runs. Units without it name nothing of it. CXXFLAGS is passed to the
# compiler, too.
set -Eeuo pipefail

die() {
    printf 'mixed_builds.sh: %s\n' "$*" >&2
    exit 1
}

(($# == 2)) || die "usage: mixed_builds.sh COMPILER INCLUDE_DIR"
compiler=$1
include=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/library.cpp" <<'CPP'
#include <pawl/sleep.hpp>
boost::asio::awaitable<void> library() { return pawl::sleep_for(std::chrono::milliseconds(1)); }
CPP
cat >"$work/main.cpp" <<'CPP'
#include <pawl/steady_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
boost::asio::awaitable<void> library();
int main() {
    boost::asio::io_context context;
    pawl::steady_timer timer(context, std::chrono::milliseconds(1));
    timer.async_wait([](boost::system::error_code) {});
    boost::asio::co_spawn(context, library(), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    return context.run() == 0;
}
CPP

cat >"$work/test.cpp" <<'CPP'
#include <pawl/virtual_time.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
boost::asio::awaitable<void> library();
int main(int argc, char**) {
    boost::asio::io_context context;
    boost::asio::co_spawn(context, library(), boost::asio::detached); // swallows the first error
    if (argc == 1)
        pawl::virtual_time::advance(std::chrono::hours(1));
    context.run();
    pawl::virtual_time::pause();
}
CPP

# shellcheck disable=SC2086 # several flags
"$compiler" -std=c++20 ${CXXFLAGS-} -I"$include" -DPAWL_VIRTUAL_TIME -c "$work/test.cpp" -o "$work/test.virtual.o"
for unit in main library; do
    # shellcheck disable=SC2086
    "$compiler" -std=c++20 ${CXXFLAGS-} -I"$include" -c "$work/$unit.cpp" -o "$work/$unit.real.o"
    # shellcheck disable=SC2086
    "$compiler" -std=c++20 ${CXXFLAGS-} -I"$include" -DPAWL_VIRTUAL_TIME -c "$work/$unit.cpp" -o "$work/$unit.virtual.o"
done
# shellcheck disable=SC2086
"$compiler" -std=c++20 ${CXXFLAGS-} -I"$include" -fPIC -shared "$work/library.cpp" -o "$work/library.shared.o"

for unit in main library; do
    nm -C "$work/$unit.virtual.o" >"$work/names"
    grep -q virtual_clock "$work/names" || die "$unit.virtual.o names nothing of virtual time"
    nm -C "$work/$unit.real.o" >"$work/names"
    ! grep -E 'virtual_(time|clock|contexts)' "$work/names" || die "$unit.real.o names something of virtual time"
done

link() {
    "$compiler" -pthread "$work/$1.o" "$work/$2.o" -o "$work/program" >"$work/said" 2>&1 ||
        die "$1 and $2 are not linked: $(<"$work/said")"
}
refuses() {
    # The shell's own message that the program was aborted is not shown.
    ! { "$work/program" "$@" >"$work/said" 2>&1; } 2>/dev/null || die "$units $*: runs, although its units do not fit"
    grep -q 'mixes translation units with and without PAWL_VIRTUAL_TIME' "$work/said" ||
        die "$units $*: ends for another reason: $(<"$work/said")"
}

for units in "main.real library.real" "main.virtual library.virtual" "test.virtual library.virtual"; do
    # shellcheck disable=SC2086 # two names
    link $units
    "$work/program" || die "$units: the program fails"
done
for units in "main.real library.virtual" "library.virtual main.real" "main.virtual library.real" \
    "library.real main.virtual" "main.virtual library.shared" "test.virtual library.real"; do
    # shellcheck disable=SC2086
    link $units
    refuses
    refuses library_first
done
printf 'six mixed programs were refused\n'
