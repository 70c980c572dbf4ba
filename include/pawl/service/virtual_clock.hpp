// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::virtual_clock: the steady clock of a build with PAWL_VIRTUAL_TIME. In any other this header is
/// empty.
#ifndef PAWL_SERVICE_VIRTUAL_CLOCK_HPP
#define PAWL_SERVICE_VIRTUAL_CLOCK_HPP

#include <pawl/service/saturating.hpp>

#include <pawl/config.hpp>

#ifdef PAWL_VIRTUAL_TIME

#include <boost/asio/wait_traits.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace PAWL_DETAIL_BUILD {

/// The clock of pawl::steady_timer, `timeout`, `sleep_for`, streams, intervals and deadlines in a program
/// that is compiled with PAWL_VIRTUAL_TIME. It is the steady clock until pawl::virtual_time pauses it or
/// moves it; from then on it may be ahead of the steady clock, or behind.
///
/// Code under test reads it as `pawl::steady_timer::clock_type::now()`, which is the steady clock in every
/// other build.
///
/// Its time points are those of `std::chrono::steady_clock`. Timers on it are exact to the nanosecond
/// unless pawl::options say otherwise.
///
/// @par Thread safety
/// All members may be called from any thread.
class virtual_clock {
    using steady = std::chrono::steady_clock;

public:
    static constexpr const char* label = "steady_clock"; ///< In statistics: what it stands for.

    using duration = steady::duration;      ///< That of the steady clock.
    using rep = steady::rep;                ///< What it counts in.
    using period = steady::period;          ///< Of one count.
    using time_point = steady::time_point;  ///< That of the steady clock.
    static constexpr bool is_steady = true; ///< It never goes back.

    /// Timers on this clock are exact unless pawl::options say otherwise.
    static constexpr duration default_precision{1};

    /// The time of the process.
    static time_point now() noexcept {
        state& s = the();
        const std::scoped_lock lock(s.mutex);
        return s.now();
    }

    /// Blocks until the clock has come to `t`, by itself or because another thread has moved it.
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
        time_point stands{}; ///< while it is paused
        duration ahead{};    ///< of the steady clock, while it is not

        [[nodiscard]] time_point now() const noexcept {
            return paused ? stands : detail::saturating_sum(steady::now(), ahead);
        }
    };

    static state& the() {
        static state& s = *new state; // for threads that outlive main(), too
        return s;
    }

    static bool paused() {
        state& s = the();
        const std::scoped_lock lock(s.mutex);
        return s.paused;
    }

    static void pause() {
        state& s = the();
        const std::scoped_lock lock(s.mutex);
        s.stands = s.now();
        s.paused = true;
        s.moved.notify_all(); // those who sleep for a time that does not pass any more
    }

    static void resume() {
        state& s = the();
        const std::scoped_lock lock(s.mutex);
        if (s.paused)
            s.ahead = s.stands - steady::now();
        s.paused = false;
        s.moved.notify_all();
    }

    /// Not back, and not to the last time point, which is never.
    static void move_to(time_point t) {
        t = std::min(t, time_point::max() - duration(1));
        state& s = the();
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
/// While the clock stands, sleeping does not make it move: there is no need to look at it.
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

#if defined(__ELF__)
// Linkers refuse a program in which a symbol is of a thread here and of the process there. So this one
// refuses translation units that make timers and are compiled without PAWL_VIRTUAL_TIME: their services
// find each other by detail::service_registry::id, which here is in a namespace of its own. In assembler,
// since lld compares strong symbols only, and a strong one may stand in each translation unit only in a
// group that has another name.
__asm__(".pushsection .tbss.pawl_virtual_time,\"awGT\",%nobits,pawl_virtual_time,comdat\n"
        ".globl _ZN4pawl6detail16service_registry2idE\n"
        ".type _ZN4pawl6detail16service_registry2idE,%object\n"
        "_ZN4pawl6detail16service_registry2idE: .zero 1\n"
        ".popsection");
#endif

#endif // PAWL_VIRTUAL_TIME

#endif // PAWL_SERVICE_VIRTUAL_CLOCK_HPP
