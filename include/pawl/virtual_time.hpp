// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::virtual_time: tests hold the time of a program still, and move it. In a build without
/// PAWL_VIRTUAL_TIME this header declares nothing.
#ifndef PAWL_VIRTUAL_TIME_HPP
#define PAWL_VIRTUAL_TIME_HPP

#include <pawl/config.hpp>

#include <pawl/coarse_clock.hpp>
#include <pawl/service/service_registry.hpp>
#include <pawl/service/virtual_clock.hpp>
#include <pawl/service/virtual_contexts.hpp>

#ifdef PAWL_VIRTUAL_TIME

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace PAWL_DETAIL_BUILD {

/// The time of a test program: pauses it, moves it, and runs a context in it.
///
/// A program that is compiled with the macro `PAWL_VIRTUAL_TIME`, in all of its translation units, keeps
/// these on pawl::virtual_clock: pawl::steady_timer, `compact_timer`, `ring_timer`, `coarse_timer`,
/// `interval_timer`, `timeout`, `coarse_timeout`, `cancel_after`, `sleep_for`, `deadline`, `tcp_stream` and
/// `timeout_stream`; and `timeout_at`, `cancel_at` and `sleep_until` with a point in time of the steady
/// clock. The code under test is the same source as in the program that is shipped, which is compiled
/// without the macro and has nothing of this.
///
/// @code
/// pawl::virtual_time::pause();
/// boost::asio::io_context context;
/// boost::asio::co_spawn(context, fetch_with_retries(), on_result);
/// pawl::virtual_time::run(context); // an hour of retries passes while there is nothing else to do
/// @endcode
///
/// What stays on real time: `std::chrono::steady_clock::now()` itself, `basic_waitable_timer` and the like
/// with that clock as an explicit argument, `system_timer`, `high_resolution_timer`, `event_queue`, Asio's
/// timers.
///
/// There is one time for the process. Tests that run in parallel in one process must not share it.
///
/// @par Thread safety
/// All members may be called from any thread, also within handlers, but for run() and run_for(), which
/// must not be called within a handler that either of them runs. A member that moves the time looks at
/// the timers of all contexts: with options::locking = false it must be called by the thread of those.
class virtual_time {
    using time_point = virtual_clock::time_point;

public:
    using duration = virtual_clock::duration; ///< That of the steady clock.

    /// What run() waits in real time for bytes that are on their way, unless told otherwise.
    static constexpr std::chrono::milliseconds default_grace{5};

    /// Stops the time. Does nothing if it stands already.
    static void pause() { virtual_clock::pause(); }

    /// Lets the time go on as the steady clock does, from where it stands.
    static void resume() {
        virtual_clock::resume();
        time_goes_on();
    }

    /// Whether the time stands.
    [[nodiscard]] static bool paused() { return virtual_clock::paused(); }

    /// Moves the time by `d` at once, and makes the waits that are due by then ready to run, in all
    /// contexts. Runs no handler: `poll()` does. A negative `d` counts as zero.
    ///
    /// It leaps: what handlers start is started when all of `d` has passed. run_for() goes from one
    /// deadline to the next.
    /// @par Complexity
    /// As the expiry of those waits, and O(timer services of the process).
    static void advance(duration d) {
        crew& c = the_crew();
        const std::scoped_lock lock(c.mutex);
        virtual_clock::move_to(
            detail::saturating_sum(virtual_clock::now(), std::max(d, duration::zero())));
        look();
        c.begin_turn();
    }

    /// Moves the time to the next deadline in any context of the process, and makes the waits that it is
    /// the deadline of ready to run.
    /// @return by how much the time was moved. Zero if no wait is pending.
    static duration advance_to_next() {
        crew& c = the_crew();
        const std::scoped_lock lock(c.mutex);
        const time_point begin = virtual_clock::now();
        leap(time_point::max());
        c.begin_turn();
        return virtual_clock::now() - begin;
    }

    /// Pauses the time and runs `context` until it has run out of work or is stopped. Whenever nothing is
    /// ready, the time moves to the next deadline. It is left paused.
    ///
    /// **When the time moves.** Only if `context` had nothing ready for `grace` in real time, and so has
    /// every other context that a thread runs by run() or run_for(), since the last of their handlers
    /// returned. It moves to the earliest deadline in any context of the process. If there is none,
    /// what has to come, such as bytes from a socket, is waited for in real time.
    ///
    /// `grace` is for what is on its way where no handler shows it: bytes between loopback sockets, a peer
    /// in another thread that is not in run(), a name that is being resolved. What takes longer may find
    /// that its limit has expired. With a `grace` of zero nothing is waited for: right for programs without
    /// such things, and fastest.
    ///
    /// @tparam Context `boost::asio::io_context`, or a class with its `poll()`, `run_one_for()` and `stopped()`.
    ///         Several threads may run one context, and several contexts.
    /// @return the number of handlers that were executed.
    /// @throws what a handler throws.
    template <class Context>
    static std::size_t run(Context& context, duration grace = default_grace) {
        return run_until(context, time_point::max(), grace);
    }

    /// As run(), and returns as well when `d` has passed and nothing is ready then. Deadlines of exactly
    /// then are reached.
    template <class Context>
    static std::size_t run_for(Context& context, duration d, duration grace = default_grace) {
        pause();
        return run_until(context, detail::saturating_sum(virtual_clock::now(), d), grace);
    }

private:
    /// A thread in run().
    struct runner {
        time_point end; ///< no leap passes it
        bool over = false;
        runner* next = nullptr;
    };

    /// The threads in run(). A turn is a time in which none of them has executed a handler and nothing was
    /// moved. Those that had nothing to do for their grace, all of it in this turn, are idle; when all
    /// are, the time leaps.
    struct crew {
        std::mutex mutex;
        std::condition_variable changed;
        runner* first = nullptr;
        std::size_t size = 0;
        std::size_t idle = 0;
        std::uint64_t turn = 0;

        void begin_turn() {
            ++turn;
            idle = 0;
            changed.notify_all();
        }
    };

    static crew& the_crew() {
        static crew& c = *new crew; // for threads that outlive main(), too
        return c;
    }

    /// A runner in the crew.
    class membership {
    public:
        explicit membership(time_point end) : self_{end} {
            const std::scoped_lock lock(crew_.mutex);
            self_.next = crew_.first;
            crew_.first = &self_;
            ++crew_.size;
            crew_.begin_turn();
        }
        membership(const membership&) = delete;
        membership& operator=(const membership&) = delete;
        ~membership() {
            const std::scoped_lock lock(crew_.mutex);
            runner** link = &crew_.first;
            while (*link != &self_)
                link = &(*link)->next;
            *link = self_.next;
            --crew_.size;
            crew_.begin_turn();
        }

        [[nodiscard]] std::uint64_t turn() const {
            const std::scoped_lock lock(crew_.mutex);
            return crew_.turn;
        }

        /// Handlers were executed.
        void worked() {
            const std::scoped_lock lock(crew_.mutex);
            crew_.begin_turn();
        }

        /// There was nothing to do since `turn` was read.
        /// @return false if the time is up.
        [[nodiscard]] bool rest(std::uint64_t turn, duration grace) {
            std::unique_lock lock(crew_.mutex);
            if (crew_.turn != turn)
                return true;
            // Longer than another one's grace, so that they meet; and no busy loop.
            const duration longest = 2 * std::clamp<duration>(grace, std::chrono::milliseconds(1),
                                                              std::chrono::hours(1));
            ++crew_.idle;
            if (crew_.idle == crew_.size) {
                end_or_leap();
                if (crew_.turn != turn)
                    return !self_.over;
            }
            crew_.changed.wait_for(lock, longest, [&] { return crew_.turn != turn || self_.over; });
            if (crew_.turn == turn)
                --crew_.idle;
            return !self_.over;
        }

    private:
        /// All are idle.
        void end_or_leap() {
            const time_point now = virtual_clock::now();
            time_point end = time_point::max();
            bool over = false;
            for (runner* r = crew_.first; r; r = r->next) {
                r->over = r->end <= now;
                over = over || r->over;
                end = std::min(end, r->end);
            }
            if (over || leap(end))
                crew_.begin_turn();
        }

        crew& crew_ = the_crew();
        runner self_;
    };

    template <class Context>
    static std::size_t run_until(Context& context, time_point end, duration grace) {
        pause();
        membership member(end);
        std::size_t count = 0;
        for (;;) {
            const std::uint64_t turn = member.turn();
            std::size_t executed = context.poll();
            if (executed == 0 && grace > duration::zero() && !context.stopped())
                executed = context.run_one_for(grace);
            count += executed;
            if (executed != 0)
                member.worked();
            else if (context.stopped() || !member.rest(turn, grace))
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

    /// @return how many waits have fallen due.
    static std::size_t look() {
        std::size_t count = 0;
        for_each_service([&](auto& service) { count += service.clock_moved(); });
        if (!paused())
            time_goes_on();
        return count;
    }

    static void time_goes_on() {
        for_each_service([](auto& service) { service.time_goes_on(); });
    }

    /// To the next deadline, or to `end` if that is earlier.
    /// @return whether there was either.
    static bool leap(time_point end) {
        // The next wake-up is a lower bound: timers that were moved later are found on the way.
        for (;;) {
            time_point next = end;
            for_each_service([&](auto& s) { next = std::min(next, s.next_wake()); });
            if (next == time_point::max())
                return false;
            virtual_clock::move_to(next);
            if (look() != 0 || next == end)
                return true;
        }
    }
};

} // namespace PAWL_DETAIL_BUILD

#endif // PAWL_VIRTUAL_TIME

#endif // PAWL_VIRTUAL_TIME_HPP
