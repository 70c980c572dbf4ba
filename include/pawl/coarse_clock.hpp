// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::coarse_clock: the steady clock, for deadlines that may be some milliseconds late.
#ifndef PAWL_COARSE_CLOCK_HPP
#define PAWL_COARSE_CLOCK_HPP

#include <pawl/config.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/time/durations.hpp>

#include <chrono>

#if defined(__linux__)
#include <time.h>
#endif

namespace PAWL_DETAIL_BUILD {

/// The steady clock, for timers that set their deadlines from a coarse reading of it.
///
/// Most of the cost of setting a deadline is the reading of the clock. Linux has a cheaper reading,
/// `CLOCK_MONOTONIC_COARSE`: the steady clock as of the kernel's last update. It takes a fifth of
/// the time. A timer on this clock, such as pawl::coarse_timer, turns a delay `d` into the deadline
/// `latest_now() + d`, and compares that deadline with now(). So a wait
/// @li is never early by the steady clock, and
/// @li is late by at most `latest_now() - now()`, which is at most three resolutions, plus what any
///     timer may be late: one pawl::options::precision, and the executor.
///
/// Without a coarse reading this is the steady clock: resolution() is zero, and latest_now() is
/// now(). The same holds in a build with virtual time, on pawl::virtual_clock.
///
/// Its time points are those of `std::chrono::steady_clock`: the two clocks show the same time.
///
/// @note latest_now() relies on the kernel's timer interrupt and tolerates one missed interrupt. A
///     virtual machine that is short of CPU time may miss more while a thread runs. Then
///     latest_now() may be before now(), and an expiry that is set at that moment is early by the
///     difference.
///
/// @par Thread safety
/// All members may be called from any thread.
#if defined(PAWL_VIRTUAL_TIME) && !defined(PAWL_DETAIL_DOXYGEN)
class coarse_clock : public virtual_clock {
public:
    static constexpr const char* label = "coarse_clock";
    static time_point latest_now() noexcept { return now(); }
    static duration resolution() noexcept { return duration::zero(); }
};
#else
class coarse_clock {
    using steady = std::chrono::steady_clock;

public:
    static constexpr const char* label = "coarse_clock"; ///< In statistics.

    using duration = steady::duration;      ///< As the steady clock.
    using rep = steady::rep;                ///< Type of a count.
    using period = steady::period;          ///< Length of a count.
    using time_point = steady::time_point;  ///< As the steady clock.
    static constexpr bool is_steady = true; ///< It never goes back.

    /// The time of the steady clock, at the same cost.
    static time_point now() noexcept { return steady::now(); }

    /// A time at or after the time of the call: the coarse reading plus three resolutions.
    static time_point latest_now() noexcept {
        const duration d = slack();
        return d == duration::zero() ? now() : reading() + d;
    }

    /// The step of the coarse reading: 1 to 10 ms, depending on the kernel's configuration. Zero if
    /// there is no coarse reading.
    static duration resolution() noexcept {
#if defined(__linux__) && defined(CLOCK_MONOTONIC_COARSE)
        ::timespec t{};
        if (::clock_getres(CLOCK_MONOTONIC_COARSE, &t) == 0)
            return since_epoch(t);
#endif
        return duration::zero();
    }

private:
    // Why three: the kernel advances the reading by whole periods of its timer interrupt, but the
    // interrupts do not come at multiples of the period. So the reading is up to one period old
    // right after an interrupt, up to two before the next one, and up to three if that one is
    // missed.
    static duration slack() noexcept {
        static const duration d = 3 * resolution();
        return d;
    }

#if defined(__linux__) && defined(CLOCK_MONOTONIC_COARSE)
    static time_point reading() noexcept {
        ::timespec t; // cannot fail if clock_getres() succeeded
        (void)::clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
        return time_point(since_epoch(t));
    }

    static duration since_epoch(const ::timespec& t) noexcept {
        return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
    }
#else
    static time_point reading() noexcept { return now(); }
#endif
};

namespace detail {
template <>
inline constexpr bool tells_steady_time<coarse_clock> = true;
} // namespace detail
#endif

} // namespace PAWL_DETAIL_BUILD

#ifdef PAWL_VIRTUAL_TIME
/// @cond
template <>
struct boost::asio::wait_traits<pawl::coarse_clock>
    : boost::asio::wait_traits<pawl::virtual_clock> {};
/// @endcond
#endif

#endif // PAWL_COARSE_CLOCK_HPP
