// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::virtual_time: a test pauses and moves the time of a program compiled with
/// PAWL_VIRTUAL_TIME.
#ifndef PAWL_VIRTUAL_TIME_HPP
#define PAWL_VIRTUAL_TIME_HPP

#include <pawl/config.hpp>

#if defined(PAWL_VIRTUAL_TIME) && defined(PAWL_DETAIL_REAL_TIME)
#error "pawl: define PAWL_VIRTUAL_TIME before the first Pawl header, best by -D PAWL_VIRTUAL_TIME"
#endif

#include <pawl/coarse_clock.hpp>
#include <pawl/virtual_clock.hpp>

#include <pawl/detail/service/service_registry.hpp>

#include <cstddef>

#ifdef PAWL_VIRTUAL_TIME

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace PAWL_DETAIL_BUILD {

/// The time of a test program: pause it, move it, and run a context in it.
///
/// A program is compiled with the macro `PAWL_VIRTUAL_TIME` in all of its translation units. Then
/// these use pawl::virtual_clock: pawl::steady_timer, `compact_timer`, `ring_timer`,
/// `coarse_timer`, `interval_timer`, `timeout`, `coarse_timeout`, `cancel_after`, `sleep_for`,
/// `deadline`, `tcp_stream` and `timeout_stream`; and `timeout_at`, `cancel_at` and `sleep_until`
/// with a time point of the steady clock. The code under test is the source of the shipped program,
/// which is compiled without the macro and contains nothing of this.
///
/// @code
/// pawl::virtual_time::pause();
/// boost::asio::io_context context;
/// boost::asio::co_spawn(context, fetch_with_retries(), on_result);
/// pawl::virtual_time::run(context); // an hour of retries passes while there is nothing else to do
/// @endcode
///
/// These stay on real time: `std::chrono::steady_clock::now()` itself, `basic_waitable_timer` and
/// similar templates with that clock as an explicit argument, `system_timer`,
/// `high_resolution_timer`, `event_queue`, and Asio's timers.
///
/// There is one time per process. Tests that run in parallel in one process must not share it.
///
/// @par Thread safety
/// All members may be called from any thread, also within handlers. Exception: a handler that run()
/// or run_for() executes must not call either. A member that moves the time looks at the timers of
/// all contexts: with options::locking = false, call it from their thread.
class virtual_time {
    using time_point = virtual_clock::time_point;

public:
    using duration = virtual_clock::duration; ///< Duration of the steady clock.

    /// The default `grace` of run(): how long it waits in real time for bytes in transit.
    static constexpr std::chrono::milliseconds default_grace{5};

    /// Stops the time. No effect if it is already stopped.
    static void pause() { virtual_clock::pause(); }

    /// Resumes the time at the rate of the steady clock, from where it stands.
    static void resume() {
        virtual_clock::resume();
        time_goes_on();
    }

    /// Whether the time is stopped.
    [[nodiscard]] static bool paused() { return virtual_clock::paused(); }

    /// Moves the time by `d` at once, and makes the waits that are due by then ready to run, in all
    /// contexts. Runs no handler; `poll()` does. A negative `d` counts as zero.
    ///
    /// The time leaps: anything that handlers start begins after all of `d`. run_for() stops at
    /// each deadline instead.
    /// @par Complexity
    /// As the expiry of those waits, plus O(timer services of the process).
    static void advance(detail::saturated<duration> d) {
        crew& c = the_crew();
        const std::scoped_lock lock(c.mutex);
        virtual_clock::move_to(
            detail::saturating_sum(virtual_clock::now(), std::max<duration>(d, duration::zero())));
        collect();
        c.begin_round();
    }

    /// Moves the time to the next deadline in any context of the process, and makes the waits with
    /// that deadline ready to run.
    /// @return the distance moved. Zero if no wait is pending.
    static duration advance_to_next() {
        crew& c = the_crew();
        const std::scoped_lock lock(c.mutex);
        const time_point begin = virtual_clock::now();
        leap(time_point::max());
        c.begin_round();
        return virtual_clock::now() - begin;
    }

    /// Pauses the time, and runs `context` until it has no work or is stopped. Whenever nothing is
    /// ready, the time moves to the next deadline. The time stays paused afterwards.
    ///
    /// **When the time moves.** `context` must have had nothing ready for `grace` in real time. The
    /// same must hold for every other context in run() or run_for(), counted from the last handler
    /// that any of them executed. The time then moves to the earliest deadline in any context of
    /// the process. Without a deadline, run() waits in real time for other events, such as bytes
    /// from a socket.
    ///
    /// `grace` allows for things in transit that no handler shows: bytes between loopback sockets,
    /// a peer in a thread outside run(), the resolution of a name. If they take longer than
    /// `grace`, their limit may expire. A `grace` of zero does not wait at all. It is the fastest,
    /// and right for programs without such things.
    ///
    /// @tparam Context `boost::asio::io_context`, or a class with its `poll()`, `run_one_for()` and
    ///     `stopped()`. Several threads may run one context, or several contexts.
    /// @return the number of executed handlers.
    /// @throws what a handler throws.
    template <class Context>
    static std::size_t run(Context& context, duration grace = default_grace) {
        pause();
        return run_until(context, time_point::max(), grace);
    }

    /// As run(), and also returns when `d` has passed and nothing is ready. Deadlines at exactly
    /// that time are reached.
    template <class Context>
    static std::size_t run_for(Context& context, duration d, duration grace = default_grace) {
        pause();
        return run_until(context, detail::saturating_sum(virtual_clock::now(), d), grace);
    }

private:
    /// A thread in run().
    struct runner {
        time_point end; ///< no leap goes past it
        bool over = false;
    };

    /// The threads in run(). A round is a period in which none of them executed a handler and
    /// nothing was moved. A thread is idle if it had nothing to do for its grace within this round.
    /// When all are idle, the time leaps.
    struct crew {
        std::mutex mutex;
        std::condition_variable changed;
        std::vector<runner*> runners;
        std::size_t idle = 0;
        std::uint64_t round = 0;

        void begin_round() {
            ++round;
            idle = 0;
            changed.notify_all();
        }
    };

    static crew& the_crew() {
        static crew& c = *new crew; // never destroyed, for threads that outlive main()
        return c;
    }

    /// The membership of a thread in the crew.
    class membership {
    public:
        explicit membership(time_point end) : self_{end} {
            const std::scoped_lock lock(crew_.mutex);
            crew_.runners.push_back(&self_);
            crew_.begin_round();
        }
        membership& operator=(membership&&) = delete;
        ~membership() {
            const std::scoped_lock lock(crew_.mutex);
            std::erase(crew_.runners, &self_);
            crew_.begin_round();
        }

        [[nodiscard]] std::uint64_t round() const {
            const std::scoped_lock lock(crew_.mutex);
            return crew_.round;
        }

        /// Handlers were executed.
        void worked() {
            const std::scoped_lock lock(crew_.mutex);
            crew_.begin_round();
        }

        /// There was nothing to do since `round` was read.
        /// @return false if the time is up.
        [[nodiscard]] bool rest(std::uint64_t round, duration grace) {
            std::unique_lock lock(crew_.mutex);
            if (crew_.round != round)
                return true;
            // Longer than the grace of any other thread, so that they meet; and no busy loop.
            const duration longest = 2 * std::clamp<duration>(grace, std::chrono::milliseconds(1),
                                                              std::chrono::hours(1));
            ++crew_.idle;
            if (crew_.idle == crew_.runners.size()) {
                end_or_leap();
                if (crew_.round != round)
                    return !self_.over;
            }
            crew_.changed.wait_for(lock, longest,
                                   [&] { return crew_.round != round || self_.over; });
            if (crew_.round == round)
                --crew_.idle;
            return !self_.over;
        }

    private:
        /// All threads are idle.
        void end_or_leap() {
            const time_point now = virtual_clock::now();
            time_point end = time_point::max();
            bool over = false;
            for (runner* const r : crew_.runners) {
                r->over = r->end <= now;
                over = over || r->over;
                end = std::min(end, r->end);
            }
            if (over || leap(end))
                crew_.begin_round();
        }

        crew& crew_ = the_crew();
        runner self_;
    };

    /// @pre the time is paused.
    template <class Context>
    static std::size_t run_until(Context& context, time_point end, duration grace) {
        membership member(end);
        std::size_t count = 0;
        for (;;) {
            const std::uint64_t round = member.round();
            std::size_t executed = context.poll();
            if (executed == 0 && grace > duration::zero() && !context.stopped())
                executed = context.run_one_for(grace);
            count += executed;
            if (executed != 0)
                member.worked();
            else if (context.stopped() || !member.rest(round, grace))
                return count;
        }
    }

    /// Calls `f` for every timer service on virtual time.
    template <class Function>
    static void for_each_service(Function f) {
        const auto on = [&]<class Clock>(detail::registered_service& s, Clock*) {
            using mine = detail::registered_service_on<Clock>;
            if (s.clock() == &mine::clock_tag)
                f(static_cast<mine&>(s));
        };
        detail::virtual_contexts::for_each([&](detail::service_registry& registry) {
            registry.for_each([&](detail::registered_service& s) {
                on(s, static_cast<virtual_clock*>(nullptr));
                on(s, static_cast<coarse_clock*>(nullptr));
            });
        });
    }

    /// @return the number of waits that fell due.
    static std::size_t collect() {
        std::size_t count = 0;
        for_each_service([&](auto& service) { count += service.clock_moved(); });
        if (!paused())
            time_goes_on();
        return count;
    }

    static void time_goes_on() {
        for_each_service([](auto& service) { service.time_goes_on(); });
    }

    /// Moves to the next deadline, or to `end` if that is earlier.
    /// @return whether there was one.
    static bool leap(time_point end) {
        // The next wake-up is a lower bound: timers that were moved later are found on the way.
        for (;;) {
            time_point next = end;
            for_each_service([&](auto& s) { next = std::min(next, s.next_wake()); });
            if (next == time_point::max())
                return false;
            virtual_clock::move_to(next);
            if (collect() != 0 || next == end)
                return true;
        }
    }
};

} // namespace PAWL_DETAIL_BUILD

#else

namespace pawl {

// In other builds it only explains itself.
class virtual_time {
    template <class... Args>
    static constexpr bool none = sizeof...(Args) == static_cast<std::size_t>(-1);
    template <class... Args>
    static void explain() {
        static_assert(none<Args...>, "pawl: virtual_time needs PAWL_VIRTUAL_TIME: compile all "
                                     "sources of the test with -D PAWL_VIRTUAL_TIME");
    }

public:
    // clang-format off
    template <class... Args> static void pause(Args&&...) { explain<Args...>(); }
    template <class... Args> static void resume(Args&&...) { explain<Args...>(); }
    template <class... Args> static bool paused(Args&&...) { explain<Args...>(); return false; }
    template <class... Args> static void advance(Args&&...) { explain<Args...>(); }
    template <class... Args> static int advance_to_next(Args&&...) { explain<Args...>(); return 0; }
    template <class... Args> static int run(Args&&...) { explain<Args...>(); return 0; }
    template <class... Args> static int run_for(Args&&...) { explain<Args...>(); return 0; }
    // clang-format on
};

} // namespace pawl

#endif // PAWL_VIRTUAL_TIME

#endif // PAWL_VIRTUAL_TIME_HPP
