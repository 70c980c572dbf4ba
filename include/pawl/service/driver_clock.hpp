// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The clock and the wait traits with which a driver waits on an Asio timer: those of its service.
///   So Asio looks at a clock that is moved, or set, as often as for a timer of its own. A look that
///   comes early completes nothing and is no unit of the context.
///
/// Threads
///   Asio calls both under the lock of its reactor, as it does for its own timers.
#ifndef PAWL_SERVICE_DRIVER_CLOCK_HPP
#define PAWL_SERVICE_DRIVER_CLOCK_HPP

#include <pawl/service/latest_now.hpp>
#include <pawl/service/on_backend.hpp>

#include <boost/asio/wait_traits.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace pawl::detail {

/// Whether `Clock` is the plain steady clock, or reads it, with wait traits that do not shorten the
/// sleep.
template <class Clock, class WaitTraits>
inline constexpr bool keeps_time =
    tells_steady_time<Clock> &&
    std::is_same_v<typename backend_choice<WaitTraits>::traits, boost::asio::wait_traits<Clock>>;

/// `Clock`, with time points that Asio can subtract from each other: signed. It stops before max(),
/// which is never.
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

    static time_point now() {
        constexpr duration last =
            exact ? duration(std::numeric_limits<rep>::max() - 1) : duration::max() / 2;
        return std::min(at(Clock::now()), time_point(last));
    }

    /// The time at which `Clock` reads `t`.
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

/// Wait traits of their own give the drivers of one kind of service, of which a context has one, a
/// timer queue of their own: only the first arming of it can lack memory.
template <class Clock, class WaitTraits>
struct driver_wait_traits {
    using duration = typename driver_clock<Clock>::duration;

    /// How long Asio may sleep if `left` is left.
    static duration to_wait_duration(const duration& left) {
        using source = typename Clock::duration;
        if (!(left > duration::zero()))
            return duration::zero(); // not a question for traits, which need not look at it
        const source asked = left < source::max()
                                 ? source(static_cast<typename source::rep>(left.count()))
                                 : source::max();
        const source sleep = WaitTraits::to_wait_duration(asked);
        if (!(sleep > source::zero()))
            return duration::zero();
        return sleep < longest ? duration(static_cast<typename duration::rep>(sleep.count()))
                               : longest;
    }

    /// The traits do not shorten the sleep: a timer that is not needed may stay set.
    static bool look_seldom() { return to_wait_duration(duration::max()) == longest; }

private:
    // A clock that can jump is looked at every second; any other is, by Asio, every five minutes.
    static constexpr duration longest = std::chrono::ceil<duration>(
        Clock::is_steady ? std::chrono::seconds(3600) : std::chrono::seconds(1));
};

template <class Clock, class WaitTraits>
    requires keeps_time<Clock, WaitTraits>
struct driver_wait_traits<Clock, WaitTraits> : boost::asio::wait_traits<Clock> {
    static constexpr bool look_seldom() noexcept { return true; }
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_DRIVER_CLOCK_HPP
