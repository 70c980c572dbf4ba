// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A coroutine that performs operations one after the other, each under a timeout, in a server
///   whose other connections wait. In a file of their own: see workloads.hpp.
#ifndef PAWL_BENCH_TIMEOUT_WORKLOADS_HPP
#define PAWL_BENCH_TIMEOUT_WORKLOADS_HPP

#include "harness.hpp"

#include <vector>

namespace bench {

/// `size - 1` other connections have a timeout of theirs pending.
[[nodiscard]] std::vector<variant> posted_operation_variants();
[[nodiscard]] std::vector<variant> empty_read_variants();
[[nodiscard]] std::vector<variant> ready_read_variants();

} // namespace bench

#endif // PAWL_BENCH_TIMEOUT_WORKLOADS_HPP
