// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   What pawl::retry, pawl::hedge and pawl::rate_limiter add to an operation of one post that
///   succeeds. A separate file: see workloads.hpp.
#ifndef PAWL_BENCH_PATTERN_WORKLOADS_HPP
#define PAWL_BENCH_PATTERN_WORKLOADS_HPP

#include "harness.hpp"

#include <vector>

namespace bench {

/// `poll_every` operations are outstanding, and each starts its successor in its handler. No
/// timers.
[[nodiscard]] std::vector<variant> pattern_variants();

/// Lookups of keys that are there, in a random order.
[[nodiscard]] std::vector<variant> lookup_variants();

/// How a byte of life is noted; `asio` moves the deadline of a timer without a wait.
[[nodiscard]] std::vector<variant> life_variants();

} // namespace bench

#endif // PAWL_BENCH_PATTERN_WORKLOADS_HPP
