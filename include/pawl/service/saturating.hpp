// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Arithmetic on time points that stops at the ends of their range.
#ifndef PAWL_SERVICE_SATURATING_HPP
#define PAWL_SERVICE_SATURATING_HPP

#include <chrono>

namespace pawl::detail {

/// `t + d`, or the end of the range that the sum would pass.
template <class Clock, class Duration>
[[nodiscard]] constexpr std::chrono::time_point<Clock, Duration>
saturating_sum(std::chrono::time_point<Clock, Duration> t, Duration d) noexcept {
    using time_point = std::chrono::time_point<Clock, Duration>;
    if (d > Duration::zero() && t > time_point::max() - d)
        return time_point::max();
    if (d < Duration::zero() && t < time_point::min() - d)
        return time_point::min();
    return t + d;
}

/// `a - b`, or the end of the range that the difference would pass.
template <class Clock, class Duration>
[[nodiscard]] constexpr Duration
saturating_difference(std::chrono::time_point<Clock, Duration> a,
                      std::chrono::time_point<Clock, Duration> b) noexcept {
    const Duration x = a.time_since_epoch();
    const Duration y = b.time_since_epoch();
    if (y < Duration::zero() && x > Duration::max() + y)
        return Duration::max();
    if (y > Duration::zero() && x < Duration::min() + y)
        return Duration::min();
    return x - y;
}

} // namespace pawl::detail

#endif // PAWL_SERVICE_SATURATING_HPP
