// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The default clock of timers: std::chrono::steady_clock, or pawl::virtual_clock in a build with
///   PAWL_VIRTUAL_TIME. And readings of clocks.
///
///   An upper bound of a clock's time serves expiries that are set relative to now. Such a wait is
///   never early, and late by the error of the bound. Whether an expiry has come is decided by
///   `Clock::now()`.
#ifndef PAWL_DETAIL_SERVICE_CLOCKS_HPP
#define PAWL_DETAIL_SERVICE_CLOCKS_HPP

#include <pawl/config.hpp>
#include <pawl/virtual_clock.hpp>

#include <pawl/detail/time/durations.hpp>

#include <chrono>
#include <concepts>
#include <type_traits>

namespace pawl::detail {

#ifdef PAWL_VIRTUAL_TIME
using steady_clock = virtual_clock;

/// The clock that a timer uses for time points of `Clock`.
template <class Clock>
using clock_behind =
    std::conditional_t<std::is_same_v<Clock, std::chrono::steady_clock>, virtual_clock, Clock>;

/// Whether the clock may pass at another rate than real time.
template <class Clock>
inline constexpr bool can_stand = std::is_base_of_v<virtual_clock, Clock>;
#else
using steady_clock = std::chrono::steady_clock;

/// The clock that a timer uses for time points of `Clock`.
template <class Clock>
using clock_behind = Clock;

/// Whether the clock may pass at another rate than real time.
template <class Clock>
inline constexpr bool can_stand = false;
#endif

// --- readings -------------------------------------------------------------------------------------

/// A clock with a cheaper reading that is never before now().
template <class Clock>
concept has_latest_now = requires {
    { Clock::latest_now() } -> std::same_as<typename Clock::time_point>;
};

/// A time no earlier than `Clock::now()` before the call.
template <class Clock>
[[nodiscard]] typename Clock::time_point latest_now() {
    if constexpr (has_latest_now<Clock>)
        return Clock::latest_now();
    else
        return Clock::now();
}

/// `d` from now, saturating, or a little later. Exact if `d` is not positive: that time has passed.
template <class Clock>
[[nodiscard]] typename Clock::time_point sum_from_now(const typename Clock::duration& d) {
    return saturating_sum(d > Clock::duration::zero() ? latest_now<Clock>() : Clock::now(), d);
}

/// A reading of a clock. If the clock may be set, the steady time shows whether it was.
template <class Clock>
struct clock_sight {
    typename Clock::time_point now;
    std::chrono::steady_clock::time_point steady{}; ///< not of a steady clock
};

template <class Clock>
[[nodiscard]] clock_sight<Clock> see_clock() {
    if constexpr (Clock::is_steady)
        return {Clock::now()};
    else
        return {Clock::now(), std::chrono::steady_clock::now()};
}

/// The clock whose time `Clock` tells, for those who move it.
template <class Clock>
struct told_clock {
    using type = Clock;
};

/// Whether `Clock::now()` is the time of the steady clock. Specialised for clocks that wrap it.
template <class Clock>
inline constexpr bool tells_steady_time = std::is_same_v<Clock, std::chrono::steady_clock>;

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_CLOCKS_HPP
