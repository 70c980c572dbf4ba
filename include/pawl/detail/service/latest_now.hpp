// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   An upper bound of a clock's time, for expiries that are set relative to now. Such a wait is
///   never early, and late by the error of the bound. Whether an expiry has come is decided by
///   `Clock::now()`. Also a reading that shows whether the clock was set.
///
/// Cost
///   One clock reading, or whatever a clock such as coarse_clock offers instead. see_clock() reads
///   the steady clock, too, if `Clock` is not steady.
#ifndef PAWL_DETAIL_SERVICE_LATEST_NOW_HPP
#define PAWL_DETAIL_SERVICE_LATEST_NOW_HPP

#include <pawl/detail/time/saturating.hpp>

#include <chrono>
#include <concepts>
#include <type_traits>

namespace pawl::detail {

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

/// Whether `Clock::now()` is the time of the steady clock. Specialised for clocks that wrap it.
template <class Clock>
inline constexpr bool tells_steady_time = std::is_same_v<Clock, std::chrono::steady_clock>;

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_LATEST_NOW_HPP
