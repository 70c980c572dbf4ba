#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# mixed_builds.sh COMPILER INCLUDE_DIR: the linker refuses a program of translation units with and without
# PAWL_VIRTUAL_TIME, in either order, even if they share no type of Pawl's. It accepts a program whose units all have
# it, or none. Units without it name nothing of it. CXXFLAGS is passed to the compiler, too.
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
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
boost::asio::awaitable<void> library();
int main() {
    boost::asio::io_context context;
    pawl::steady_timer timer(context, std::chrono::milliseconds(1));
    timer.async_wait([](boost::system::error_code) {});
    boost::asio::co_spawn(context, library(), boost::asio::detached);
    return context.run() == 0;
}
CPP

for unit in main library; do
    # shellcheck disable=SC2086 # several flags
    "$compiler" -std=c++20 ${CXXFLAGS-} -I"$include" -c "$work/$unit.cpp" -o "$work/$unit.real.o"
    # shellcheck disable=SC2086
    "$compiler" -std=c++20 ${CXXFLAGS-} -I"$include" -DPAWL_VIRTUAL_TIME -c "$work/$unit.cpp" -o "$work/$unit.virtual.o"
done

for unit in main library; do
    nm -C "$work/$unit.virtual.o" >"$work/names"
    grep -q virtual_clock "$work/names" || die "$unit.virtual.o names nothing of virtual time"
    nm -C "$work/$unit.real.o" >"$work/names"
    ! grep -E 'virtual_(time|clock|contexts)' "$work/names" || die "$unit.real.o names something of virtual time"
done

link() {
    "$compiler" -pthread "$work/$1.o" "$work/$2.o" -o "$work/program" >"$work/said" 2>&1
}

for time in real virtual; do
    link main.$time library.$time || die "units that are all on $time time are not linked: $(<"$work/said")"
    "$work/program" || die "the program on $time time fails"
done
for units in "main.real library.virtual" "library.virtual main.real" "main.virtual library.real" "library.real main.virtual"; do
    # shellcheck disable=SC2086 # two names
    ! link $units || die "$units: linked, although they do not fit"
    grep -q service_registry "$work/said" || die "$units: refused for another reason: $(<"$work/said")"
done
printf 'four mixed programs were refused\n'
