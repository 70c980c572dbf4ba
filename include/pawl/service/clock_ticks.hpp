// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Ticks of a clock that may stand before its epoch. Ticks count from zero upward, and tick_scale
///   takes everything before the epoch for tick 0, which has always begun.
#ifndef PAWL_SERVICE_CLOCK_TICKS_HPP
#define PAWL_SERVICE_CLOCK_TICKS_HPP

#include <pawl/service/saturating.hpp>

#include <pawl/time/tick.hpp>

#include <chrono>

namespace pawl::detail {

/// time::tick_scale, shifted for clocks that are, or that may be set, before their epoch.
template <class Clock>
class clock_ticks {
public:
    using time_point = typename Clock::time_point;
    using duration = typename Clock::duration;

    explicit clock_ticks(std::chrono::nanoseconds precision) : scale_(precision) {
        // A whole number of ticks, so that ticks begin where they would without it.
        if (!Clock::is_steady || Clock::now() < time_point())
            shift_ =
                scale_.time_of(scale_.floor(time_point(duration::max() / 2))).time_since_epoch();
    }

    /// The first tick that begins at or after `t`.
    [[nodiscard]] time::tick ceil(const time_point& t) const noexcept {
        return scale_.ceil(shifted(t));
    }

    /// The tick in which `t` lies.
    [[nodiscard]] time::tick floor(const time_point& t) const noexcept {
        return scale_.floor(shifted(t));
    }

    /// When tick `t` begins; time_point::max() if the clock cannot say it.
    [[nodiscard]] time_point time_of(time::tick t) const noexcept {
        const time_point begin = scale_.time_of(t);
        return begin == time_point::max() ? begin : saturating_sum(begin, -shift_);
    }

private:
    [[nodiscard]] time_point shifted(const time_point& t) const noexcept {
        return shift_ == duration::zero() ? t : saturating_sum(t, shift_);
    }

    time::tick_scale<Clock> scale_;
    duration shift_ = duration::zero();
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_CLOCK_TICKS_HPP
