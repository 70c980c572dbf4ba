#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: newer_boost.sh [VERSION]
#
# What Pawl and a newer Boost do together (VERSION: of tools/fetch_boost.sh): the contracts of the timers and of
# cancel_after, limits, streams under Beast, Asio's configurations, boost::asio::cancel_after beside Pawl's, and the programs
# of tools/migrate --to asio. All tests: ./dev test --boost VERSION.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in newer_boost

boost=${1:-1.90.0}
prefix=$(tools/fetch_boost.sh "$boost")

if [[ -e $prefix/include/boost/asio/cancel_after.hpp ]]; then
    quietly clang++-19 -std=c++20 -Wall -Wextra -Werror -isystem "$prefix/include" -I include -pthread \
        test/package/newer_boost/both.cpp -o "$work/both"
    quietly timeout 60 "$work/both"
    say "Boost $(<"$work/log") limits, of Asio and of Pawl in one program"
fi

CXXFLAGS="-isystem $prefix/include" quietly test/migrate/same_output.sh g++
say "Boost $boost: tools/migrate --to asio: $(tail -n 1 "$work/log")"

tests='contract_pawl|(timeouts_(cancel_after|deadline|timeout_stream|timeout_stream_beast|socket|composed_kinds)'
tests+='|conformance_composed_limits|service_asio_config)_test'
quietly ./dev test --boost "$boost" --only "^($tests)\$"
say "Boost $boost: $(grep 'tests passed' "$work/log")"
