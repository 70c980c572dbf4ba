// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Numbers the intervals of one precision from a start, for a timing_wheel: which interval
///   contains a time, and when an interval begins. tick.hpp counts from the epoch of a clock and
///   rounds an expiry up; here interval 0 begins at a start of the user's, before or after the
///   epoch, and everything rounds down.
///
/// Invariants
///   - begin(number(t)) <= t, by less than one precision.
///   - Exact on the whole range: between time_point::min() and max() there are fewer than 2^64
///     units, and differences are computed modulo 2^64.
#ifndef PAWL_TIME_INTERVALS_HPP
#define PAWL_TIME_INTERVALS_HPP

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace pawl::time::detail {

/// The half-open intervals of one precision, from a start to the end of time.
template <class TimePoint>
class intervals {
public:
    using time_point = TimePoint;
    using duration = typename TimePoint::duration;
    using rep = typename duration::rep;

    static_assert(std::is_integral_v<rep> && sizeof(rep) <= sizeof(std::uint64_t),
                  "pawl: a timing_wheel counts time in integers of up to 64 bits");

    /// @pre precision > 0
    intervals(time_point start, duration precision) noexcept
        : start_(start), units_(static_cast<std::uint64_t>(precision.count())),
          last_(number(time_point::max())) {}

    [[nodiscard]] time_point start() const noexcept { return start_; }

    /// The interval that contains `time`.
    /// @pre time >= start()
    [[nodiscard]] std::uint64_t number(time_point time) const noexcept {
        return (count(time) - count(start_)) / units_;
    }

    /// The first time of interval `n`.
    /// @pre n <= last()
    [[nodiscard]] time_point begin(std::uint64_t n) const noexcept {
        return time_point{duration{static_cast<rep>(count(start_) + n * units_)}};
    }

    /// The interval of time_point::max().
    [[nodiscard]] std::uint64_t last() const noexcept { return last_; }

    /// Bits of last(), at least one.
    [[nodiscard]] int width() const noexcept {
        return std::max(1, static_cast<int>(std::bit_width(last_)));
    }

private:
    static std::uint64_t count(time_point time) noexcept {
        return static_cast<std::uint64_t>(time.time_since_epoch().count());
    }

    time_point start_;
    std::uint64_t units_; ///< units per interval
    std::uint64_t last_;
};

} // namespace pawl::time::detail

#endif // PAWL_TIME_INTERVALS_HPP
