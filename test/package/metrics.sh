#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# The parser of Prometheus' own client library reads the output of pawl::to_prometheus(), and Python's parser that of
# to_json(): names, types, buckets, and the counts that metrics.cpp has made.

source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in metrics

quietly python3 -m venv "$work/venv"
quietly "$work/venv/bin/pip" install --quiet 'prometheus_client>=0.20'
for compiler in g++ clang++-19; do
    quietly "$compiler" -std=c++20 -pthread -Wall -Wextra -Werror -I include test/package/metrics/metrics.cpp \
        -o "$work/metrics-$compiler"
    "$work/metrics-$compiler" "$work/text" "$work/json"
    said=$("$work/venv/bin/python" test/package/metrics/metrics.py "$work/text" "$work/json") ||
        fail "what a program of $compiler writes is not as expected"
    say "$said, of a program of $compiler"
done
