#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: newer_boost.sh [VERSION [TARGET...]]
#
# Pawl on a Boost that is newer than the system's, from the Python package cmeel-boost (for x86-64 Linux: 1.82.0,
# 1.83.0, 1.84.0, 1.87.0.1, 1.88.0, 1.89.0, 1.90.0): the contracts of the timers and of cancel_after, limits, streams
# under Beast, Asio's configurations, boost::asio::cancel_after beside Pawl's, and the programs of tools/migrate --to asio.
# TARGET: of the build, `all` for all tests.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in newer_boost

boost=${1:-1.90.0}
shift $(($# > 0))
(($#)) || set -- contract_pawl timeouts_cancel_after_test timeouts_deadline_test timeouts_timeout_stream_test \
    timeouts_timeout_stream_beast_test timeouts_socket_test conformance_composed_limits_test \
    timeouts_composed_kinds_test service_asio_config_test

fetch_boost "$boost"

if [[ -e $prefix/include/boost/asio/cancel_after.hpp ]]; then
    quietly clang++-19 -std=c++20 -Wall -Wextra -Werror -isystem "$prefix/include" -I include -pthread \
        test/package/newer_boost/both.cpp -o "$work/both"
    quietly timeout 60 "$work/both"
    say "Boost $(<"$work/log") limits, of Asio and of Pawl in one program"
fi

CXXFLAGS="-isystem $prefix/include" quietly test/migrate/same_output.sh g++
say "Boost $boost: tools/migrate --to asio: $(tail -n 1 "$work/log")"

dir=build/newer-boost
quietly cmake --preset debug -B "$dir" -D CMAKE_CXX_COMPILER=clang++-19 -D CMAKE_CXX_FLAGS=-O0 -D PAWL_TESTS_TOGETHER=OFF \
    -D PAWL_BUILD_EXAMPLES=OFF -D PAWL_BUILD_BENCH=OFF -D CMAKE_VERIFY_INTERFACE_HEADER_SETS=OFF \
    -D Boost_DIR:PATH="$(echo "$prefix"/lib/cmake/Boost-*)"
grep -q "^Boost_DIR:PATH=$prefix/" "$dir/CMakeCache.txt" || fail "another Boost has been found"
quietly cmake --build "$dir" --target "$@"
only=()
[[ $* == all ]] || only=(-R "^($(IFS='|' && printf '%s' "$*"))\$")
quietly ctest --test-dir "$dir" --output-on-failure --no-tests=error --parallel "$(nproc)" "${only[@]}"
say "Boost $boost: $(grep 'tests passed' "$work/log")"
