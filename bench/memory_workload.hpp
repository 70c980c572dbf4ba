// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Bytes per outstanding wait: the timer object, the allocations of the wait, and an equal share
///   of the memory of the context and its timer service. The share of the service's tables is large
///   with 1e3 waits and negligible with 1e6.
#ifndef PAWL_BENCH_MEMORY_WORKLOAD_HPP
#define PAWL_BENCH_MEMORY_WORKLOAD_HPP

#include "fleet.hpp"
#include "harness.hpp"
#include "libraries.hpp"

#include <cstddef>
#include <malloc.h>
#include <vector>

namespace bench {

namespace detail {

/// Bytes in use in this thread's heap, and in separately mapped blocks.
inline double heap_in_use() {
    const auto info = ::mallinfo2();
    return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

} // namespace detail

template <class Library>
sample memory_per_wait(const plan& what) {
    using timer = typename Library::timer;
    auto timeouts = around_timeout_for(what.size);
    const auto before = detail::heap_in_use();
    fleet<Library> f(what.size);
    for (std::size_t i = 0; i < f.size(); ++i)
        f.wait_after(static_cast<index>(i), timeouts());

    const auto timers = static_cast<double>(what.size);
    const auto bytes = (detail::heap_in_use() - before) / timers;
    f.cancel_all();
    return {bytes, seen, {{"sizeof(timer)", static_cast<double>(sizeof(timer))}}};
}

} // namespace bench

#endif // PAWL_BENCH_MEMORY_WORKLOAD_HPP
