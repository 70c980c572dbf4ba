// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::virtual_clock: the steady clock of a build with PAWL_VIRTUAL_TIME. Other builds take only
/// one_time_only() from here.
#ifndef PAWL_VIRTUAL_CLOCK_HPP
#define PAWL_VIRTUAL_CLOCK_HPP

#include <pawl/config.hpp>

#include <pawl/detail/time/durations.hpp>

#include <atomic>
#include <stdexcept>

namespace pawl::detail {

enum class time_kind : unsigned char { unknown, real, virtual_time, mixed };

/// The time of this program. One object, in whatever namespace the rest of a build is.
inline constinit std::atomic<time_kind> time_of_program{time_kind::unknown};

/// Each build calls this before its first timer, and before it stops or moves the time. Timers of
/// translation units without PAWL_VIRTUAL_TIME do not follow the time of those with it.
/// @throws std::logic_error if the program is a mix of both, from then on in each call: a detached
///         coroutine swallows an exception.
inline void one_time_only(time_kind mine) {
    time_kind before = time_kind::unknown;
    // relaxed: guards no data.
    if (time_of_program.compare_exchange_strong(before, mine, std::memory_order_relaxed) ||
        before == mine)
        return;
    time_of_program.store(time_kind::mixed, std::memory_order_relaxed);
    throw std::logic_error("pawl: this program mixes translation units with and without "
                           "PAWL_VIRTUAL_TIME: define it in all of them, or in none");
}

} // namespace pawl::detail

#ifdef PAWL_VIRTUAL_TIME

#include <boost/asio/wait_traits.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace PAWL_DETAIL_BUILD {

/// The clock of pawl::steady_timer, `timeout`, `sleep_for`, streams, intervals and deadlines in a
/// program compiled with PAWL_VIRTUAL_TIME. It follows the steady clock until pawl::virtual_time
/// pauses or moves it; after that it may be ahead or behind.
///
/// Code under test reads it as `pawl::steady_timer::clock_type::now()`, which in other builds is
/// the steady clock.
///
/// Its time points are those of `std::chrono::steady_clock`. Timers on it are exact to the
/// nanosecond, unless pawl::options set a precision.
///
/// @par Thread safety
/// All members may be called from any thread.
class virtual_clock {
    using steady = std::chrono::steady_clock;

public:
    static constexpr const char* label = "steady_clock"; ///< Its name in statistics.

    using duration = steady::duration;      ///< That of the steady clock.
    using rep = steady::rep;                ///< The type of its counts.
    using period = steady::period;          ///< The unit of its counts.
    using time_point = steady::time_point;  ///< That of the steady clock.
    static constexpr bool is_steady = true; ///< It never goes back.

    /// Timers on this clock are exact, unless pawl::options set a precision.
    static constexpr duration default_precision{1};

    /// The time of the process.
    static time_point now() noexcept {
        state& s = the();
        const std::scoped_lock lock(s.mutex);
        return s.now();
    }

    /// Blocks until the clock reaches `t`, by itself or because another thread moves it.
    static void wait_until(const time_point& t) {
        state& s = the();
        std::unique_lock lock(s.mutex);
        while (s.now() < t) {
            if (s.paused)
                s.moved.wait(lock);
            else
                s.moved.wait_for(lock, std::min<duration>(t - s.now(), std::chrono::hours(1)));
        }
    }

private:
    friend class virtual_time;
    friend struct boost::asio::wait_traits<virtual_clock>;

    struct state {
        std::mutex mutex;
        std::condition_variable moved;
        bool paused = false;
        time_point stands{}; ///< its time, while paused
        duration ahead{};    ///< of the steady clock, while not paused

        [[nodiscard]] time_point now() const noexcept {
            return paused ? stands : detail::saturating_sum(steady::now(), ahead);
        }
    };

    static state& the() {
        static state& s = *new state; // leaked, for threads that outlive main()
        return s;
    }

    /// To stop or move the time.
    static state& to_control() {
        detail::one_time_only(detail::time_kind::virtual_time);
        return the();
    }

    static bool paused() {
        state& s = the();
        const std::scoped_lock lock(s.mutex);
        return s.paused;
    }

    static void pause() {
        state& s = to_control();
        const std::scoped_lock lock(s.mutex);
        s.stands = s.now();
        s.paused = true; // wait_until() looks again when the time that it waits for has passed
    }

    static void resume() {
        state& s = to_control();
        const std::scoped_lock lock(s.mutex);
        if (s.paused)
            s.ahead = s.stands - steady::now();
        s.paused = false;
        s.moved.notify_all();
    }

    /// Moves forward only, and not to time_point::max(), which means never.
    static void move_to(time_point t) {
        t = std::min(t, time_point::max() - duration(1));
        state& s = to_control();
        const std::scoped_lock lock(s.mutex);
        const time_point now = s.now();
        if (t <= now)
            return;
        if (s.paused)
            s.stands = t;
        else
            s.ahead += t - now;
        s.moved.notify_all();
    }
};

} // namespace PAWL_DETAIL_BUILD

/// @cond
/// While the clock is paused, there is no need to poll it.
template <>
struct boost::asio::wait_traits<pawl::virtual_clock> {
    static pawl::virtual_clock::duration to_wait_duration(const pawl::virtual_clock::duration& d) {
        return pawl::virtual_clock::paused() ? pawl::virtual_clock::duration::max() : d;
    }
    static pawl::virtual_clock::duration
    to_wait_duration(const pawl::virtual_clock::time_point& t) {
        return to_wait_duration(pawl::detail::saturating_difference(t, pawl::virtual_clock::now()));
    }
};
/// @endcond

#endif // PAWL_VIRTUAL_TIME

#endif // PAWL_VIRTUAL_CLOCK_HPP
