// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The clock and the wait traits of the driver's Asio timer: those of its service. Asio polls a
///   clock that may be moved or set as often as it does for its own timers. A poll that is early
///   completes nothing, and is not a unit of the context.
///
/// Threads
///   Asio calls both under the lock of its reactor, as for its own timers.
#ifndef PAWL_DETAIL_SERVICE_DRIVER_CLOCK_HPP
#define PAWL_DETAIL_SERVICE_DRIVER_CLOCK_HPP

#include <pawl/on_backend.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/time/durations.hpp>

#include <boost/asio/wait_traits.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace pawl::detail {

/// Whether `Clock` tells steady time, and the wait traits do not shorten the sleep.
template <class Clock, class WaitTraits>
inline constexpr bool keeps_time =
    tells_steady_time<Clock> &&
    std::is_same_v<typename backend_choice<WaitTraits>::traits, boost::asio::wait_traits<Clock>>;

/// `Clock` with signed time points, which Asio can subtract. now() stays below max(), which means
/// never. If `Clock` throws, all is due: Asio could not bear an exception, so the driver wakes up,
/// and reads the clock outside of Asio.
template <class Clock>
class driver_clock {
    using source = typename Clock::duration;
    static constexpr bool exact =
        std::is_integral_v<typename source::rep> && sizeof(typename source::rep) <= 8;

public:
    using rep = std::conditional_t<exact, std::int64_t, typename source::rep>;
    using period = typename source::period;
    using duration = std::chrono::duration<rep, period>;
    using time_point = std::chrono::time_point<driver_clock>;
    static constexpr bool is_steady = Clock::is_steady;

    static time_point now() noexcept {
        constexpr time_point last(exact ? duration(std::numeric_limits<rep>::max() - 1)
                                        : duration::max() / 2);
        try {
            return std::min(at(Clock::now()), last);
        } catch (...) {
            return last;
        }
    }

    /// Converts a time point of `Clock`.
    static time_point at(const typename Clock::time_point& t) {
        if (t == Clock::time_point::max())
            return time_point::max();
        const auto count = t.time_since_epoch().count();
        if constexpr (exact && std::is_unsigned_v<typename source::rep>) {
            constexpr std::uint64_t half = std::uint64_t{1} << 63;
            return time_point(duration(static_cast<rep>(std::uint64_t{count} - half)));
        } else {
            return time_point(duration(static_cast<rep>(count)));
        }
    }
};

/// A distinct traits type gives each kind of service its own timer queue in Asio. A context has one
/// service of each kind, so only its first arming can run out of memory.
template <class Clock, class WaitTraits>
struct driver_wait_traits {
    using duration = typename driver_clock<Clock>::duration;

    /// How long Asio may sleep when `left` is left.
    static duration to_wait_duration(const duration& left) {
        using source = typename Clock::duration;
        if (!(left > duration::zero()))
            return duration::zero(); // the traits are not asked
        const source asked = left < source::max()
                                 ? source(static_cast<typename source::rep>(left.count()))
                                 : source::max();
        const source sleep = WaitTraits::to_wait_duration(asked);
        if (!(sleep > source::zero()))
            return duration::zero();
        return sleep < longest ? duration(static_cast<typename duration::rep>(sleep.count()))
                               : longest;
    }

    /// Whether the traits do not shorten the sleep, so that an unneeded timer may stay set.
    static bool polls_seldom() { return to_wait_duration(duration::max()) == longest; }

private:
    // A clock that can jump is polled every second; Asio polls any other every five minutes.
    static constexpr duration longest = std::chrono::ceil<duration>(
        Clock::is_steady ? std::chrono::seconds(3600) : std::chrono::seconds(1));
};

template <class Clock, class WaitTraits>
    requires keeps_time<Clock, WaitTraits>
struct driver_wait_traits<Clock, WaitTraits> : boost::asio::wait_traits<Clock> {
    static constexpr bool polls_seldom() noexcept { return true; }
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_DRIVER_CLOCK_HPP
