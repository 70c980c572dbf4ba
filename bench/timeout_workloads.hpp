// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Operations under a timeout in a server whose other connections wait: those of a coroutine, one
///   after the other, and those of completion handlers. A separate file: see workloads.hpp.
#ifndef PAWL_BENCH_TIMEOUT_WORKLOADS_HPP
#define PAWL_BENCH_TIMEOUT_WORKLOADS_HPP

#include "harness.hpp"

#include <vector>

namespace bench {

/// `size - 1` other connections have a timeout pending.
[[nodiscard]] std::vector<variant> posted_operation_variants();
[[nodiscard]] std::vector<variant> empty_read_variants();
[[nodiscard]] std::vector<variant> ready_read_variants();

/// `size` other connections have a timeout pending. From outside, the context is polled after every
/// `poll_every` operations. In handlers, this many operations are outstanding, and each starts its
/// successor.
[[nodiscard]] std::vector<variant> limit_variants();
[[nodiscard]] std::vector<variant> limit_in_handlers_variants();

} // namespace bench

#endif // PAWL_BENCH_TIMEOUT_WORKLOADS_HPP
