// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::manual_clock and pawl::manual_timer: test timeouts without waiting for them.
#ifndef PAWL_MANUAL_CLOCK_HPP
#define PAWL_MANUAL_CLOCK_HPP

#include <pawl/config.hpp>

#include <pawl/basic_waitable_timer.hpp>
#include <pawl/expire_all.hpp>

#include <boost/asio/execution_context.hpp>
#include <boost/asio/wait_traits.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>

namespace pawl {

/// A clock that stands still until a test moves it.
///
/// Code under test takes its timer type as a template parameter or as an alias. Its tests use
/// pawl::manual_timer: the class template of pawl::steady_timer, on this clock. Pending waits are
/// outstanding work, as on any clock. Only advance() ends them, so a test calls `poll()`, not
/// `run()`.
///
/// @code
/// boost::asio::io_context ctx;
/// pawl::manual_timer timer(ctx, std::chrono::seconds(30));
/// bool timed_out = false;
/// timer.async_wait([&](boost::system::error_code ec) { timed_out = !ec; });
///
/// pawl::manual_clock::advance(ctx, std::chrono::seconds(30));
/// ctx.poll();
/// assert(timed_out);
/// @endcode
///
/// `now()` is static, so there is one time per process. Tests that run in parallel in one process
/// must not share it.
///
/// @par Thread safety
/// All members may be called from any thread. Moving the clock synchronizes with each now() and
/// wait_until() that observes the new time.
class manual_clock {
public:
    static constexpr const char* label = "manual_clock"; ///< In statistics.

    using duration = std::chrono::nanoseconds;                ///< Its unit.
    using rep = duration::rep;                                ///< Type of a count.
    using period = duration::period;                          ///< Length of a count.
    using time_point = std::chrono::time_point<manual_clock>; ///< A point in its time.
    static constexpr bool is_steady = true;                   ///< It never goes back.

    /// Timers on this clock are exact, unless pawl::options set a precision.
    static constexpr duration default_precision{1};

    /// The current time. It starts at `time_point()`.
    static time_point now() noexcept {
        return time_point(duration(ticks_.load(std::memory_order_acquire))); // pairs with advance()
    }

    /// Blocks until another thread has moved the clock to `t` or later.
    static void wait_until(const time_point& t) noexcept {
        for (rep seen = ticks_.load(std::memory_order_acquire); seen < t.time_since_epoch().count();
             seen = ticks_.load(std::memory_order_acquire))               // pairs with advance()
            detail::atomic_wait(ticks_, seen, std::memory_order_relaxed); // relaxed: loaded again
    }

    /// Moves the clock by `d`, to `time_point::max()` at most, and makes the waits of `context` that are due ready to run. A
    /// negative `d` counts as zero: the clock is steady.
    /// @par Complexity
    /// Amortised O(levels) per wait that falls due.
    static void advance(boost::asio::execution_context& context, detail::saturated<duration> d) {
        if (d > duration::zero()) {
            constexpr rep most = duration::max().count();
            rep seen = ticks_.load(std::memory_order_relaxed);
            while (!ticks_.compare_exchange_weak(seen, seen + std::min(d.count(), most - seen),
                                                 std::memory_order_release, // pairs with now()
                                                 std::memory_order_relaxed)) {
            }
            ticks_.notify_all();
        }
        collect(context);
    }

    /// Moves the clock to the next deadline of `context`, and makes the waits with that deadline
    /// ready to run.
    /// @return the distance moved. Zero if waits were already due, or if none is pending. If all
    ///     pending waits have an expiry of never, the clock may move to the deadline of a cancelled
    ///     wait.
    static duration advance_to_next(boost::asio::execution_context& context);

private:
    /// Makes all timers of a context read their clocks.
    /// @return how many waits on this clock have fallen due.
    static std::size_t collect(boost::asio::execution_context& context) {
        std::size_t count = 0;
        boost::asio::use_service<detail::service_registry>(context).for_each(
            [&](detail::registered_service& s) {
                const std::size_t fallen_due = s.clock_moved();
                if (s.clock() == &detail::registered_service_on<manual_clock>::clock_tag)
                    count += fallen_due;
            });
        return count;
    }

    static inline std::atomic<rep> ticks_{0};
};

} // namespace pawl

/// @cond
/// Waiting does not move a manual clock, so timers need not poll it.
template <>
struct boost::asio::wait_traits<pawl::manual_clock> {
    static pawl::manual_clock::duration to_wait_duration(const pawl::manual_clock::duration&) {
        return pawl::manual_clock::duration::max();
    }
    static pawl::manual_clock::duration to_wait_duration(const pawl::manual_clock::time_point&) {
        return pawl::manual_clock::duration::max();
    }
};
/// @endcond

namespace pawl {

/// A timer on manual_clock. See basic_waitable_timer.
using manual_timer = basic_waitable_timer<manual_clock>;

inline manual_clock::duration
manual_clock::advance_to_next(boost::asio::execution_context& context) {
    auto& registry = boost::asio::use_service<detail::service_registry>(context);
    const auto for_each = [&](auto f) {
        registry.for_each([&](detail::registered_service& s) {
            using mine = detail::registered_service_on<manual_clock>;
            if (s.clock() == &mine::clock_tag)
                f(static_cast<const mine&>(s));
        });
    };
    std::size_t due = 0;
    for_each([&](const auto& service) { due += service.due_count(); });
    if (due != 0)
        return duration::zero();

    const time_point begin = now();
    // The next wake-up is a lower bound: timers that were moved later are found on the way. Count
    // the waits that fell due; another thread may have run them already.
    for (std::size_t fallen_due = 0; fallen_due == 0; fallen_due = collect(context)) {
        time_point next = time_point::max();
        for_each([&](const auto& service) { next = std::min(next, service.next_wake()); });
        if (next == time_point::max())
            break;
        rep seen = ticks_.load(std::memory_order_relaxed); // relaxed: compared below
        while (seen < next.time_since_epoch().count() &&
               // release: pairs with now(). relaxed: tried again.
               !ticks_.compare_exchange_weak(seen, next.time_since_epoch().count(),
                                             std::memory_order_release,
                                             std::memory_order_relaxed)) {
        }
        ticks_.notify_all();
    }
    return now() - begin;
}

} // namespace pawl

#endif // PAWL_MANUAL_CLOCK_HPP
