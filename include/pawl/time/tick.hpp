// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::time::tick, the unit of everything in pawl::time, and pawl::time::tick_scale, which
/// converts time points of a clock to it. Nothing here reads a clock.
///
/// Model
///   Tick n is the half-open interval [n, n + 1) in precisions after the clock's epoch; or, for a
///   clock that reads, or may be set to, a time before its epoch, after the first multiple of the
///   precision before the clock's range. An expiry is rounded up to the first tick that begins at
///   or after it; the present is rounded down to the tick that has begun. A timer is handed out
///   when floor(present) >= ceil(expiry), hence
///
///       expiry <= start of ceil(expiry) <= start of floor(present) <= present:
///
///   never early, and late by less than one precision.
///
/// Invariants
///   - Not-early invariant: time_of(ceil(t)) >= t, by less than one tick, unless t is before tick 0
///     or saturates.
///   - Begun-tick invariant: time_of(floor(t)) <= t, unless t is before tick 0.
///   - Monotonicity: ceil and floor are monotonic.
///   - Saturation invariant: nothing overflows. Times before tick 0 count as tick 0;
///     time_point::max(), and times that cannot be rounded up, are tick::never(); a tick that
///     begins outside the clock's range is time_point::min() or max().
///
/// Cost
///   A conversion is one multiplication and one shift. detail::reciprocal has the proof.
#ifndef PAWL_TIME_TICK_HPP
#define PAWL_TIME_TICK_HPP

#include <pawl/config.hpp>
#include <pawl/detail/time/durations.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>
#include <ratio>
#include <stdexcept>
#include <type_traits>

namespace pawl::time {

/// A point on the time line of a backend: a number of precisions since its origin.
class tick {
public:
    /// The first tick.
    constexpr tick() = default;

    /// The tick that begins `count` precisions after the origin.
    explicit constexpr tick(std::uint64_t count) noexcept : count_(count) {}

    /// The number of precisions since the origin.
    [[nodiscard]] constexpr std::uint64_t count() const noexcept { return count_; }

    /// The tick that never comes: later than every other.
    [[nodiscard]] static constexpr tick never() noexcept {
        return tick{std::numeric_limits<std::uint64_t>::max()};
    }

    /// Earlier is less.
    friend constexpr auto operator<=>(const tick&, const tick&) = default;

private:
    std::uint64_t count_ = 0;
};

namespace detail {

/// Divides 63-bit numbers by one and the same divisor without dividing.
///
/// With L = ceil(log2 d) and m = floor(2^(63+L) / d) + 1, for all 0 <= n < 2^63:
///
///     floor(n / d) == floor(n m / 2^(63+L))
///
/// Proof. m d = 2^(63+L) + e with 0 < e <= d, so n m / 2^(63+L) = n/d + (n e) / (d 2^(63+L)). The
/// last term is less than 1/d, because n e < 2^63 d <= 2^63 2^L. Adding less than 1/d to n/d does
/// not reach the next integer. And m < 2^64 for d >= 2: from d > 2^(L-1) follows
/// 2^(63+L) / d < 2^64, and d >= 2^(L-1) + 1 keeps it below 2^64 - 1. Then L >= 1, so that the
/// high word of the product, shifted by L - 1, is the quotient. d == 1 needs no multiplication.
class reciprocal {
public:
    /// @pre 0 < divisor < 2^63.
    explicit reciprocal(std::uint64_t divisor) noexcept : divisor_(divisor) {
#ifdef __SIZEOF_INT128__
        if (divisor > 1) {
            const auto log2 = static_cast<int>(std::bit_width(divisor - 1));
            shift_ = static_cast<unsigned>(log2 - 1);
            multiplier_ =
                static_cast<std::uint64_t>((wide{1} << (63 + log2)) / divisor) + std::uint64_t{1};
        }
#endif
    }

    /// `dividend / divisor()`. @pre dividend < 2^63.
    [[nodiscard]] std::uint64_t divide(std::uint64_t dividend) const noexcept {
#ifdef __SIZEOF_INT128__
        if (divisor_ == 1)
            return dividend;
        return static_cast<std::uint64_t>((wide{dividend} * multiplier_) >> 64) >> shift_;
#else
        return dividend / divisor_;
#endif
    }

    [[nodiscard]] std::uint64_t divisor() const noexcept { return divisor_; }

private:
#ifdef __SIZEOF_INT128__
    __extension__ using wide = unsigned __int128;

    std::uint64_t multiplier_ = 0;
    unsigned shift_ = 0;
#endif
    std::uint64_t divisor_;
};

} // namespace detail

/// Where tick 0 of a clock lies. Ticks begin at multiples of the precision in either case.
enum class tick_origin {
    epoch, ///< Tick 0 begins at the epoch. Earlier times count as tick 0.
    least, ///< Tick 0 contains the clock's first time point: the full range of a 64-bit clock is distinguished.
};

/// Converts between the time points of `Clock` and ticks.
///
/// Works in the clock's own unit if the clock counts in integers of up to 64 bits; a tick is then
/// the largest number of units within the precision, at least one. Other representations, such as
/// `double`, go through nanoseconds.
///
/// @par Complexity
/// O(1): a conversion is one multiplication and one shift.
template <class Clock>
class tick_scale {
public:
    using time_point = typename Clock::time_point;  ///< Time point of the clock.
    using duration = typename time_point::duration; ///< Duration in the clock's own unit.

    /// The smallest precision that is accepted.
    static constexpr std::chrono::nanoseconds least_precision{1};
    /// The largest precision that is accepted.
    static constexpr std::chrono::nanoseconds most_precision = std::chrono::hours{1};

    /// @throws std::invalid_argument if `precision` is not within 1 ns .. 1 h.
    explicit tick_scale(std::chrono::nanoseconds precision, tick_origin origin = tick_origin::epoch)
        : precision_(checked(precision)), units_(units_in(precision)),
          last_(last_count() / units_.divisor()),
          epoch_(origin == tick_origin::epoch ? 0 : divided_up(count_before_epoch())) {}

    /// The first tick that begins at or after `when`.
    ///
    /// Once that tick has begun, `when` has been reached. tick::never() for `time_point::max()`,
    /// and for times that cannot be rounded up.
    [[nodiscard]] tick ceil(time_point when) const noexcept {
        if constexpr (exact) {
            const rep count = when.time_since_epoch().count();
            if (count <= 0)
                return epoch_ == 0 ? tick{} : tick{epoch_ - distance(count) / units_.divisor()};
            if (count == std::numeric_limits<rep>::max())
                return tick::never();
            // n > 0: (n - 1) / d + 1 rounds up and cannot overflow.
            return tick{epoch_ + divide(static_cast<std::uint64_t>(count) - 1) + 1};
        } else {
            const long double since_epoch = nanoseconds(when);
            if (since_epoch < 0)
                return epoch_ == 0 ? tick{}
                                   : tick{epoch_ - units_.divide(whole<false>(-since_epoch))};
            const std::uint64_t count = whole<true>(since_epoch);
            if (count == saturated)
                return tick::never();
            return tick{epoch_ + (count == 0 ? 0 : units_.divide(count - 1) + 1)};
        }
    }

    /// The tick in which `when` lies.
    [[nodiscard]] tick floor(time_point when) const noexcept {
        if constexpr (exact) {
            const rep count = when.time_since_epoch().count();
            if (count < 0)
                return epoch_ == 0 ? tick{} : tick{epoch_ - divided_up(distance(count))};
            return tick{epoch_ + divide(static_cast<std::uint64_t>(count))};
        } else {
            const long double since_epoch = nanoseconds(when);
            if (since_epoch < 0)
                return epoch_ == 0 ? tick{} : tick{epoch_ - divided_up(whole<true>(-since_epoch))};
            return tick{epoch_ + units_.divide(whole<false>(since_epoch))};
        }
    }

    /// The time point at which `when` begins; `time_point::max()` or `min()` if the clock cannot
    /// represent it.
    [[nodiscard]] time_point time_of(tick when) const noexcept {
        if (when.count() < epoch_)
            return time_before_epoch(epoch_ - when.count());
        const std::uint64_t count = when.count() - epoch_;
        if (count > last_)
            return time_point::max();
        if constexpr (exact)
            return time_point{duration{static_cast<rep>(count * units_.divisor())}};
        else
            return time_after_epoch(static_cast<double>(count * units_.divisor()));
    }

    /// The precision given to the constructor.
    ///
    /// A tick is shorter if the precision is not a multiple of the clock's unit. It is longer,
    /// namely one unit, if the clock is coarser than the precision.
    [[nodiscard]] std::chrono::nanoseconds precision() const noexcept { return precision_; }

private:
    using rep = typename duration::rep;
    using period = typename duration::period;

    static constexpr bool exact = std::is_integral_v<rep> && sizeof(rep) <= sizeof(std::uint64_t);

    /// The result of whole() for times that are too far to be counted.
    static constexpr std::uint64_t saturated = std::numeric_limits<std::int64_t>::max();

    static std::chrono::nanoseconds checked(std::chrono::nanoseconds precision) {
        if (precision < least_precision || precision > most_precision) {
            throw std::invalid_argument("pawl: precision is " + detail::text_of(precision) +
                                        ", allowed are " + detail::text_of(least_precision) +
                                        " to " + detail::text_of(most_precision));
        }
        return precision;
    }

    static std::uint64_t units_in(std::chrono::nanoseconds precision) noexcept {
        if constexpr (exact) {
            // One hour of nanoseconds is 3.6e12; in femtoseconds it still fits into 63 bits.
            static_assert(std::ratio_greater_equal_v<period, std::femto>,
                          "pawl: clocks that count in less than a femtosecond are not supported");
            using wide = std::chrono::duration<std::int64_t, period>;
            const auto units = std::chrono::duration_cast<wide>(precision).count();
            return static_cast<std::uint64_t>(std::max<std::int64_t>(units, 1));
        } else {
            return static_cast<std::uint64_t>(precision.count());
        }
    }

    /// The largest count of units that a time point represents. Beyond it, time_of() says max().
    static constexpr std::uint64_t last_count() noexcept {
        if constexpr (exact)
            return static_cast<std::uint64_t>(std::numeric_limits<rep>::max());
        else
            return saturated - 1;
    }

    std::uint64_t divide(std::uint64_t count) const noexcept {
        // Only an unsigned clock reaches the upper half, which the reciprocal does not cover.
        if constexpr (std::is_unsigned_v<rep> && sizeof(rep) == sizeof(std::uint64_t)) {
            if (count > saturated)
                return count / units_.divisor();
        }
        return units_.divide(count);
    }

    /// The count of units from the first time point to the epoch.
    static constexpr std::uint64_t count_before_epoch() noexcept {
        if constexpr (exact)
            return distance(std::numeric_limits<rep>::min());
        else
            return saturated;
    }

    /// From `count` <= 0 to the epoch.
    static constexpr std::uint64_t distance(rep count) noexcept {
        return std::uint64_t{0} - static_cast<std::uint64_t>(count);
    }

    // Before the epoch: without the reciprocal, which does not cover 2^63. Few clocks come here.
    std::uint64_t divided_up(std::uint64_t count) const noexcept {
        return count / units_.divisor() + (count % units_.divisor() != 0 ? 1 : 0);
    }

    time_point time_before_epoch(std::uint64_t ticks) const noexcept {
        if (ticks > count_before_epoch() / units_.divisor())
            return time_point::min();
        const std::uint64_t count = ticks * units_.divisor();
        if constexpr (exact)
            return time_point{duration{static_cast<rep>(std::uint64_t{0} - count)}};
        else
            return time_after_epoch(-static_cast<double>(count));
    }

    static time_point time_after_epoch(double nanoseconds) noexcept {
        using nano = std::chrono::duration<double, std::nano>;
        return time_point{std::chrono::duration_cast<duration>(nano{nanoseconds})};
    }

    static long double nanoseconds(time_point when) noexcept {
        using nano = std::chrono::duration<long double, std::nano>;
        return std::chrono::duration_cast<nano>(when.time_since_epoch()).count();
    }

    /// A number of nanoseconds within 0 .. saturated. NaN counts as 0.
    template <bool Up>
    static std::uint64_t whole(long double count) noexcept {
        if (!(count > 0))
            return 0;
        if (count >= static_cast<long double>(saturated))
            return saturated;
        const auto below = static_cast<std::uint64_t>(count);
        return below + (Up && static_cast<long double>(below) < count ? 1U : 0U);
    }

    std::chrono::nanoseconds precision_;
    detail::reciprocal units_;
    std::uint64_t last_;  ///< the last tick after the epoch whose start the clock can represent
    std::uint64_t epoch_; ///< the tick that begins at the epoch
};

// pawl::time::best_in_range(): the tick for a timer that may be due anywhere in a range, on any
// backend. It costs least, and other timers are most likely to choose it as well.
//
// Model
//   One tick of a range has more trailing zero bits than all others. A node is moved only if a
//   lower digit of its due tick is not zero; and timers with overlapping ranges tend to choose the
//   same round tick, and so share a wake-up. HiTime calls it start_range (hitime_start_range in
//   its src/hitime.c).
//
//       100 = 0b01100100 .. 200 = 0b11001000  ->  128 = 0b10000000

/// The tick within `min` .. `max`, inclusive, that has the most trailing zero bits.
///
/// Every tick up to `now` is equally due, so if the range has begun, only the ticks after `now`
/// count; if there are none, the result is `max`. The result is never() only if no other tick is
/// left. For a node that is already filed: `backend.rearm(node, best_in_range(...))`.
///
/// @pre `min <= max`
/// @par Complexity
/// O(1).
[[nodiscard]] constexpr tick best_in_range(tick now, tick min, tick max) noexcept {
    PAWL_ASSERT(min <= max);
    if (max <= now)
        return max;
    // Clears the bits of `max` below the highest bit in which it differs from the tick before the
    // range. The result is in the range, and the only multiple of that bit there.
    const std::uint64_t before = std::max(min.count(), now.count() + 1) - 1;
    return tick{max.count() & ~(std::bit_floor(before ^ max.count()) - 1)};
}

} // namespace pawl::time

#endif // PAWL_TIME_TICK_HPP
