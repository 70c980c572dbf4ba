// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The time of a clock from above. That is enough where an expiry is set a duration from now: the
///   wait is not early, and late by what the bound is off. Whether an expiry has come is judged by the
///   clock itself, `Clock::now()`.
///
/// Cost
///   A reading of the clock, or what a clock such as coarse_clock has instead.
#ifndef PAWL_SERVICE_LATEST_NOW_HPP
#define PAWL_SERVICE_LATEST_NOW_HPP

#include <pawl/service/saturating.hpp>

#include <chrono>
#include <concepts>
#include <type_traits>

namespace pawl::detail {

/// A clock that has a cheaper reading than now(), which is not before it.
template <class Clock>
concept has_latest_now = requires {
    { Clock::latest_now() } -> std::same_as<typename Clock::time_point>;
};

/// At least what `Clock::now()` said before the call.
template <class Clock>
[[nodiscard]] typename Clock::time_point latest_now() {
    if constexpr (has_latest_now<Clock>)
        return Clock::latest_now();
    else
        return Clock::now();
}

/// `d` from now, saturating, and not before that. Exact, if `d` is zero or less: then it has passed.
template <class Clock>
[[nodiscard]] typename Clock::time_point sum_from_now(const typename Clock::duration& d) {
    return saturating_sum(d > Clock::duration::zero() ? latest_now<Clock>() : Clock::now(), d);
}

/// Whether `Clock::now()` is that of the steady clock. Specialised for clocks that are no other.
template <class Clock>
inline constexpr bool tells_steady_time = std::is_same_v<Clock, std::chrono::steady_clock>;

} // namespace pawl::detail

#endif // PAWL_SERVICE_LATEST_NOW_HPP
