// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The timers that several threads use, on clocks that they may read.

#ifndef PAWL_TEST_SIMULATION_THREADS_TIMERS_HPP
#define PAWL_TEST_SIMULATION_THREADS_TIMERS_HPP

#include "simulation/timers.hpp"

#include <pawl/coarse_timer.hpp>
#include <pawl/compact_timer.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/ring_timer.hpp>
#include <pawl/steady_timer.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace simulation::threads {

inline std::int64_t steady_now() noexcept {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The steady clock plus `ahead` nanoseconds. It may be set at any time.
struct shared_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<shared_clock>;
    static constexpr bool is_steady = false;

    static inline std::atomic<std::int64_t> ahead{0};

    static time_point now() noexcept { // relaxed: a clock orders nothing
        return time_point(duration(steady_now() + ahead.load(std::memory_order_relaxed)));
    }
};

enum class sort : std::uint8_t { steady, compact, coarse, ring, manual, shared };
inline constexpr int sorts = 6;

/// Calls `f.template operator()<Timer>()` for the timers of a sort.
template <class Function>
decltype(auto) with_timer(sort s, Function&& f) {
    switch (s) {
    case sort::steady:
        break;
    case sort::compact:
        return f.template operator()<pawl::compact_timer>();
    case sort::coarse:
        return f.template operator()<pawl::coarse_timer>();
    case sort::ring:
        return f.template operator()<pawl::ring_timer>();
    case sort::manual:
        return f.template operator()<pawl::manual_timer>();
    case sort::shared:
        return f.template operator()<pawl::basic_waitable_timer<shared_clock>>();
    }
    return f.template operator()<pawl::steady_timer>();
}

std::unique_ptr<any_timer> make_timer(sort s, const asio::any_io_executor& ex);
void make_service(sort s, asio::execution_context& context, const pawl::options& o);
std::size_t expire_all_of(sort s, asio::execution_context& context, const error_code& ec);
std::int64_t now_of(sort s) noexcept;

} // namespace simulation::threads

#endif
