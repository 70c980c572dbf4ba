// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Interval timers: the grid and the three policies against hand-written tables in the style of
//   tokio's documentation; waits that are moved, cancelled, shared and abandoned; and the
//   guarantees of every asynchronous operation to its handler.
//
// Model
//   manual_clock, whose timers are exact to the nanosecond here. A tick is delivered late if its
//   context is polled late.

#include <pawl/interval_timer.hpp>
#include <pawl/ring_timer.hpp>

#define BOOST_TEST_MODULE interval_timer
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "../service/service_support.hpp"
#include "../support/asio_configuration.hpp"

#include "../support/scripted_clock.hpp"
#include "../support/seed.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace pawl {

inline std::ostream& operator<<(std::ostream& out, missed_tick_policy policy) {
    return out << (policy == missed_tick_policy::burst   ? "burst"
                   : policy == missed_tick_policy::delay ? "delay"
                                                         : "skip");
}

} // namespace pawl

BOOST_TEST_DONT_PRINT_LOG_VALUE(boost::asio::cancellation_type)

namespace {

using namespace service_test;
using pawl::manual_clock;
using pawl::missed_tick_policy;
using interval = pawl::basic_interval_timer<manual_clock>;
using duration = manual_clock::duration;
using time_point = manual_clock::time_point;

constexpr time_point never = time_point::max();

/// A wait, and its outcome.
struct delivery {
    auto handler() {
        return [this](error_code c, std::uint64_t m) {
            ++calls;
            code = c;
            missed = m;
        };
    }

    delivery() = default;
    template <class Interval>
    explicit delivery(Interval& ticks) {
        ticks.async_wait(handler());
    }
    delivery(const delivery&) = delete;
    delivery& operator=(const delivery&) = delete;

    int calls = 0;
    error_code code;
    std::uint64_t missed = 0;

    bool pending() const noexcept { return calls == 0; }
    bool ticked() const noexcept { return calls == 1 && !code; }
    bool aborted() const noexcept {
        return calls == 1 && code == asio::error::operation_aborted && missed == 0;
    }
};

/// A context, and the time since it was made.
struct world {
    asio::io_context context;
    const time_point start = manual_clock::now();

    duration now() const { return manual_clock::now() - start; }
    duration since_start(time_point t) const { return t - start; }

    /// Lets time pass, and runs due waits.
    void pass(duration d) {
        manual_clock::advance(context, d);
        poll(context);
    }
    /// Lets time pass while the context does other work.
    void be_busy_for(duration d) { manual_clock::advance(context, d); }

    /// Moves the clock from deadline to deadline.
    template <class Predicate>
    void run_until(Predicate done) {
        for (poll(context); !done(); poll(context))
            manual_clock::advance_to_next(context);
    }
};

/// One tick: the time and the result of its delivery.
struct tick {
    duration at;
    std::uint64_t missed;

    friend bool operator==(const tick&, const tick&) = default;
    friend std::ostream& operator<<(std::ostream& out, const tick& t) {
        return out << t.at / 1us << " us, missed " << t.missed;
    }
};

/// Waits for one tick after the other, and works for a given time after each.
struct worker {
    worker(world& where, interval& i, std::vector<duration> work)
        : w(&where), ticks(&i), work_times(std::move(work)) {}

    /// All ticks until the work is done.
    std::vector<tick> run() {
        wait();
        w->run_until([&] { return done.size() == work_times.size(); });
        return done;
    }

    void wait() {
        ticks->async_wait([this](error_code code, std::uint64_t missed) {
            BOOST_REQUIRE(!code);
            const duration work = work_times[done.size()];
            done.push_back({w->now(), missed});
            w->be_busy_for(work);
            if (done.size() < work_times.size())
                wait();
        });
    }

    world* w;
    interval* ticks;
    std::vector<duration> work_times;
    std::vector<tick> done;
};

void check(const std::vector<tick>& seen, const std::vector<tick>& expected) {
    BOOST_CHECK_EQUAL_COLLECTIONS(seen.begin(), seen.end(), expected.begin(), expected.end());
}

/// A token that only sees the initiation.
struct looking_token {
    std::optional<asio::any_io_executor>* executor;
};

} // namespace

template <class... Args>
class boost::asio::async_result<looking_token, void(Args...)> {
public:
    using return_type = int;

    template <class Initiation>
    static int initiate(Initiation&& initiation, looking_token token) {
        static_assert(noexcept(initiation.get_executor()));
        static_assert(
            std::is_same_v<typename std::decay_t<Initiation>::executor_type, any_io_executor>);
        token.executor->emplace(initiation.get_executor());
        return 7;
    }
};

// ---- the grid ---------------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(grid, world)

BOOST_AUTO_TEST_CASE(the_first_tick_is_due_at_once_and_the_others_every_period) {
    interval ticks(context, 50ms);

    check(worker(*this, ticks, {10ms, 20ms, 0ms, 49ms, 0ms}).run(),
          {{0ms, 0}, {50ms, 0}, {100ms, 0}, {150ms, 0}, {200ms, 0}});
}

BOOST_AUTO_TEST_CASE(with_a_start_the_first_tick_is_due_there) {
    interval ticks(context, start + 70ms, 50ms);

    BOOST_CHECK(ticks.next_tick() == start + 70ms);
    check(worker(*this, ticks, {0ms, 0ms, 0ms}).run(), {{70ms, 0}, {120ms, 0}, {170ms, 0}});
    BOOST_CHECK(ticks.next_tick() == start + 220ms);
}

BOOST_AUTO_TEST_CASE(a_start_that_has_passed_has_missed_ticks) {
    interval ticks(context, start - 120ms, 50ms, missed_tick_policy::skip);

    check(worker(*this, ticks, {0ms, 0ms}).run(), {{0ms, 2}, {30ms, 0}});
}

BOOST_AUTO_TEST_CASE(a_tick_is_not_a_nanosecond_early) {
    interval ticks(context, start + 50ms, 50ms);
    delivery d(ticks);

    pass(50ms - 1ns);
    BOOST_CHECK(d.pending());
    pass(1ns);

    BOOST_CHECK(d.ticked());
}

BOOST_AUTO_TEST_CASE(a_tick_that_nobody_waits_for_waits) {
    interval ticks(context, start + 50ms, 50ms);
    BOOST_CHECK(!busy(context)); // and keeps nothing alive

    be_busy_for(70ms);
    BOOST_CHECK(ticks.next_tick() == start + 50ms);

    check(worker(*this, ticks, {0ms, 0ms}).run(), {{70ms, 0}, {100ms, 0}});
}

BOOST_AUTO_TEST_CASE(it_says_what_it_was_given) {
    interval ticks(context, 50ms);
    BOOST_CHECK(ticks.period() == 50ms);
    BOOST_CHECK(ticks.missed_tick_policy() == missed_tick_policy::burst);
    BOOST_CHECK(ticks.get_executor() == asio::any_io_executor(context.get_executor()));

    ticks.set_missed_tick_policy(missed_tick_policy::delay);
    ticks.set_period(1s);

    BOOST_CHECK(ticks.period() == 1s);
    BOOST_CHECK(ticks.missed_tick_policy() == missed_tick_policy::delay);
}

BOOST_DATA_TEST_CASE(a_period_that_is_not_positive_is_refused_with_its_value,
                     boost::unit_test::data::make({0, -1, -50'000'000}), nanoseconds) {
    const duration period{nanoseconds};
    const auto refusal = [](auto f) {
        try {
            f();
        } catch (const std::invalid_argument& e) {
            return std::string(e.what());
        }
        return std::string("nothing was thrown");
    };
    interval ticks(context, start + 10ms, 20ms);
    delivery d(ticks);

    const std::string value = pawl::time::detail::text_of(period);
    for (const std::string& text : {refusal([&] { interval(context, period); }),
                                    refusal([&] { interval(context.get_executor(), period); }),
                                    refusal([&] { interval(context, start, period); }),
                                    refusal([&] { ticks.set_period(period); })}) {
        BOOST_CHECK_MESSAGE(text.find("a period of " + value + " for") != std::string::npos, text);
        BOOST_CHECK_MESSAGE(text.find("must be greater than zero") != std::string::npos, text);
    }

    pass(10ms);
    BOOST_CHECK(d.ticked()); // unchanged
    BOOST_CHECK(ticks.next_tick() == start + 30ms);
}

BOOST_DATA_TEST_CASE(after_a_huge_period_there_is_no_tick,
                     boost::unit_test::data::make({missed_tick_policy::burst,
                                                   missed_tick_policy::delay,
                                                   missed_tick_policy::skip}) *
                         boost::unit_test::data::make({0, 100}),
                     policy, milliseconds_late) {
    interval ticks(context, duration::max(), policy);
    be_busy_for(std::chrono::milliseconds(milliseconds_late));
    delivery first;
    delivery second;
    ticks.async_wait(first.handler());
    poll(context);
    BOOST_CHECK(first.ticked());
    BOOST_CHECK(ticks.next_tick() == never);

    ticks.async_wait(second.handler());
    pass(10 * 365 * 24h);

    BOOST_CHECK(second.pending());
    BOOST_CHECK_EQUAL(ticks.cancel(), one);
    poll(context);
    BOOST_CHECK(second.aborted());
}

BOOST_AUTO_TEST_CASE(a_start_at_the_end_of_time_is_never) {
    interval ticks(context, never, 1ns);
    delivery d(ticks);

    pass(24h);
    BOOST_CHECK(d.pending());
    BOOST_CHECK(ticks.next_tick() == never);

    ticks.reset_after(duration::max());
    pass(24h);
    BOOST_CHECK(d.pending());
}

BOOST_AUTO_TEST_SUITE_END()

// ---- the three policies -----------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(policies, world)

// tokio:  Expected ticks: |     1     |     2     |     3     |     4     |     5     |     6     |
//         Actual ticks:   | work -----|          delay          | work | work | work -| work -----|
BOOST_AUTO_TEST_CASE(burst_makes_up_for_what_was_missed) {
    interval ticks(context, 50ms, missed_tick_policy::burst);

    check(worker(*this, ticks, {10ms, 170ms, 10ms, 10ms, 10ms, 10ms}).run(),
          {{0ms, 0}, {50ms, 0}, {220ms, 2}, {230ms, 1}, {240ms, 0}, {250ms, 0}});
}

// tokio:  Expected ticks: |     1     |     2     |     3     |     4     |     5     |     6     |
//         Actual ticks:   | work -----|          delay          | work -----| work -----| work -----|
BOOST_AUTO_TEST_CASE(delay_moves_the_grid) {
    interval ticks(context, 50ms, missed_tick_policy::delay);

    check(worker(*this, ticks, {10ms, 170ms, 10ms, 10ms, 10ms}).run(),
          {{0ms, 0}, {50ms, 0}, {220ms, 2}, {270ms, 0}, {320ms, 0}});
}

// tokio:  Expected ticks: |     1     |     2     |     3     |     4     |     5     |     6     |
//         Actual ticks:   | work -----|          delay          | work ---| work -----| work -----|
BOOST_AUTO_TEST_CASE(skip_goes_on_with_the_next_point_of_the_grid) {
    interval ticks(context, 50ms, missed_tick_policy::skip);

    check(worker(*this, ticks, {10ms, 170ms, 10ms, 10ms, 10ms}).run(),
          {{0ms, 0}, {50ms, 0}, {220ms, 2}, {250ms, 0}, {300ms, 0}});
}

// The four code examples of tokio's documentation: a period of 50 ms, and a tick that is requested
// late.
BOOST_AUTO_TEST_CASE(the_examples_of_tokio) {
    interval burst(context, 50ms, missed_tick_policy::burst);
    be_busy_for(200ms);
    check(worker(*this, burst, {0ms, 0ms, 0ms, 0ms, 0ms, 0ms}).run(),
          {{200ms, 4}, {200ms, 3}, {200ms, 2}, {200ms, 1}, {200ms, 0}, {250ms, 0}});

    interval delay(context, 50ms, missed_tick_policy::delay); // begins at 250 ms
    be_busy_for(75ms);
    check(worker(*this, delay, {0ms, 0ms}).run(), {{325ms, 1}, {375ms, 0}});

    interval skip(context, 50ms, missed_tick_policy::skip); // begins at 375 ms
    be_busy_for(75ms);
    check(worker(*this, skip, {0ms, 0ms}).run(), {{450ms, 1}, {475ms, 0}});
}

BOOST_AUTO_TEST_CASE(late_by_exactly_whole_periods_skip_waits_a_whole_one) {
    interval ticks(context, 50ms, missed_tick_policy::skip);
    be_busy_for(100ms);

    check(worker(*this, ticks, {0ms, 0ms}).run(), {{100ms, 2}, {150ms, 0}});
}

struct lateness_case {
    missed_tick_policy policy;
    duration late;
    duration next;
};
std::ostream& operator<<(std::ostream& out, const lateness_case& c) {
    return out << c.policy << ", late by " << c.late.count() << " ns";
}
const std::vector<lateness_case> latenesses{
    {missed_tick_policy::burst, 5ms, 50ms},
    {missed_tick_policy::delay, 5ms, 50ms},
    {missed_tick_policy::skip, 5ms, 50ms},
    {missed_tick_policy::burst, 5ms + 1ns, 50ms},
    {missed_tick_policy::delay, 5ms + 1ns, 55ms + 1ns},
    {missed_tick_policy::skip, 5ms + 1ns, 50ms},
};
BOOST_DATA_TEST_CASE(up_to_five_milliseconds_are_not_late, latenesses, c) {
    interval ticks(context, 50ms, c.policy);
    delivery d(ticks);

    pass(c.late);

    BOOST_CHECK(d.ticked());
    BOOST_CHECK_EQUAL(d.missed, 0u);
    BOOST_CHECK(since_start(ticks.next_tick()) == c.next);
}

// Like tokio's: within the tolerance no policy skips a tick, even if several fit into it.
BOOST_AUTO_TEST_CASE(a_period_shorter_than_the_tolerance_skips_nothing_within_it) {
    interval ticks(context, 2ms, missed_tick_policy::skip);
    be_busy_for(5ms);

    check(worker(*this, ticks, {0ms, 0ms, 0ms, 8ms, 0ms}).run(),
          {{5ms, 0}, {5ms, 0}, {5ms, 0}, {6ms, 0}, {14ms, 3}});
    BOOST_CHECK(since_start(ticks.next_tick()) == 16ms);
}

BOOST_AUTO_TEST_CASE(a_policy_may_change_between_ticks) {
    interval ticks(context, 50ms, missed_tick_policy::burst);
    be_busy_for(120ms);
    check(worker(*this, ticks, {0ms}).run(), {{120ms, 2}});

    ticks.set_missed_tick_policy(missed_tick_policy::skip); // two ticks still to be made up for

    check(worker(*this, ticks, {0ms, 0ms}).run(), {{120ms, 1}, {150ms, 0}});
}

BOOST_AUTO_TEST_CASE(burst_delivers_every_point_of_the_grid_however_late) {
    std::mt19937_64 random(seed());
    const std::uint64_t count = steps(100'000);
    std::uniform_int_distribution<duration::rep> work(0, duration(19ms).count());
    interval ticks(context, 10ms);
    std::uint64_t delivered = 0;
    bool on_grid = true;
    std::function<void()> wait = [&] {
        const duration due = since_start(ticks.next_tick());
        on_grid = on_grid && due == 10ms * static_cast<duration::rep>(delivered);
        ticks.async_wait([&, due](error_code, std::uint64_t missed) {
            const duration late = now() - due;
            on_grid = on_grid && late >= 0ns &&
                      missed == (late > 5ms ? static_cast<std::uint64_t>(late / 10ms) : 0);
            be_busy_for(delivered % 2 == 0 ? duration(work(random)) : 0ns);
            if (++delivered < count)
                wait();
        });
    };

    wait();
    run_until([&] { return delivered == count; });

    BOOST_CHECK(on_grid);
    BOOST_CHECK(since_start(ticks.next_tick()) == 10ms * static_cast<duration::rep>(count));
}

BOOST_AUTO_TEST_CASE(skip_delivers_or_counts_every_point_of_the_grid) {
    std::mt19937_64 random(seed());
    const std::uint64_t count = steps(100'000);
    std::uniform_int_distribution<duration::rep> work(0, duration(35ms).count());
    interval ticks(context, 10ms, missed_tick_policy::skip);
    std::uint64_t delivered = 0;
    std::uint64_t points = 0; // delivered or skipped
    bool on_grid = true;
    std::function<void()> wait = [&] {
        on_grid =
            on_grid && since_start(ticks.next_tick()) == 10ms * static_cast<duration::rep>(points);
        ticks.async_wait([&](error_code, std::uint64_t missed) {
            points += 1 + missed;
            be_busy_for(duration(work(random)));
            if (++delivered < count)
                wait();
        });
    };

    wait();
    run_until([&] { return delivered == count; });

    BOOST_CHECK(on_grid);
    BOOST_CHECK_GT(points, count); // some were skipped
}

BOOST_AUTO_TEST_SUITE_END()

// ---- changes while waiting --------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(changes, world)

namespace {

/// A period of 100 ms, one tick delivered, a wait for the next, and 40 ms passed since.
struct waiting : world {
    waiting() {
        ticks.async_wait(first.handler());
        poll(context);
        ticks.async_wait(d.handler());
        pass(40ms);
        BOOST_REQUIRE(first.ticked());
        BOOST_REQUIRE(d.pending());
    }

    /// Checks that the wait is delivered so long after the first tick.
    void check_delivered_at(duration at) {
        if (at > now()) {
            BOOST_CHECK(since_start(ticks.next_tick()) == at);
            pass(at - 1ns - now());
            BOOST_CHECK(d.pending());
            pass(1ns);
        }
        poll(context);
        BOOST_CHECK(d.ticked());
        BOOST_CHECK_EQUAL(d.missed, 0u);
    }

    interval ticks{context, 100ms};
    delivery first;
    delivery d;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_change_moves_the_wait_and_the_tick_after) {
    const auto expect = [](duration at, duration next, auto change) {
        BOOST_TEST_CONTEXT("delivered after " << at / 1ms << " ms, the next after " << next / 1ms) {
            waiting w;
            if constexpr (std::is_void_v<decltype(change(w))>)
                change(w);
            else
                BOOST_CHECK_EQUAL(change(w), one); // wait was moved
            BOOST_CHECK(w.d.pending());            // never inline
            w.check_delivered_at(at);
            BOOST_CHECK(w.since_start(w.ticks.next_tick()) == next);
        }
    };
    // A period counts from the last tick.
    expect(250ms, 500ms, [](waiting& w) { return w.ticks.set_period(250ms); });
    expect(60ms, 120ms, [](waiting& w) { return w.ticks.set_period(60ms); });
    expect(40ms, 50ms, [](waiting& w) { return w.ticks.set_period(10ms); }); // that was before
    expect(100ms, 200ms, [](waiting& w) { w.ticks.set_period(100ms); });
    expect(48h, 96h, [](waiting& w) {
        w.ticks.set_period(duration::max());
        w.pass(24h);
        BOOST_CHECK(w.d.pending());
        w.ticks.set_period(48h);
    });
    expect(110ms, 180ms, [](waiting& w) { // or from the reset
        w.ticks.reset();
        w.pass(10ms);
        w.ticks.set_period(70ms);
    });
    expect(333ms, 340ms, [](waiting& w) { // and does not move a tick that was reset
        w.ticks.reset_at(w.start + 333ms);
        w.ticks.set_period(7ms);
    });
    // A reset counts from now.
    expect(140ms, 240ms, [](waiting& w) { return w.ticks.reset(); });
    expect(40ms, 140ms, [](waiting& w) { return w.ticks.reset_immediately(); });
    expect(60ms, 160ms, [](waiting& w) { return w.ticks.reset_after(20ms); });
    expect(333ms, 433ms, [](waiting& w) { return w.ticks.reset_at(w.start + 333ms); });
    // Both pull back a tick that is queued.
    expect(150ms, 300ms, [](waiting& w) {
        w.be_busy_for(60ms);
        return w.ticks.set_period(150ms);
    });
    expect(200ms, 300ms, [](waiting& w) {
        w.be_busy_for(60ms);
        return w.ticks.reset();
    });
}

BOOST_AUTO_TEST_CASE(a_change_of_the_period_does_not_move_a_start) {
    interval ticks(context, start + 100ms, 100ms);
    delivery d(ticks);

    ticks.set_period(10ms);

    BOOST_CHECK(since_start(ticks.next_tick()) == 100ms);
    pass(100ms);
    BOOST_CHECK(d.ticked());
    BOOST_CHECK(since_start(ticks.next_tick()) == 110ms);
}

BOOST_AUTO_TEST_CASE(a_change_of_the_period_between_waits_moves_the_next_tick) {
    interval ticks(context, 100ms);
    check(worker(*this, ticks, {0ms}).run(), {{0ms, 0}});

    BOOST_CHECK_EQUAL(ticks.set_period(30ms), none); // no wait is pending

    check(worker(*this, ticks, {0ms, 0ms}).run(), {{30ms, 0}, {60ms, 0}});
}

BOOST_AUTO_TEST_CASE(a_tick_that_is_overdue_stays_so_when_the_period_gets_shorter) {
    interval ticks(context, 100ms);
    check(worker(*this, ticks, {150ms}).run(), {{0ms, 0}});

    ticks.set_period(20ms);

    BOOST_CHECK(since_start(ticks.next_tick()) == 100ms);
    check(worker(*this, ticks, {0ms, 0ms, 0ms, 0ms}).run(),
          {{150ms, 2}, {150ms, 1}, {150ms, 0}, {160ms, 0}});
}

BOOST_AUTO_TEST_CASE(after_skipped_ticks_a_new_period_begins_at_the_last_point_of_the_grid) {
    interval ticks(context, 50ms, missed_tick_policy::skip);
    be_busy_for(120ms);
    check(worker(*this, ticks, {0ms}).run(), {{120ms, 2}});

    ticks.set_period(100ms);

    BOOST_CHECK(since_start(ticks.next_tick()) == 200ms);
}

BOOST_AUTO_TEST_CASE(after_a_delayed_tick_a_new_period_begins_at_its_delivery) {
    interval ticks(context, 50ms, missed_tick_policy::delay);
    be_busy_for(120ms);
    check(worker(*this, ticks, {0ms}).run(), {{120ms, 2}});

    ticks.set_period(100ms);

    BOOST_CHECK(since_start(ticks.next_tick()) == 220ms);
}

BOOST_FIXTURE_TEST_CASE(reset_within_makes_the_tick_due_in_the_range, waiting) {
    const auto from = now();
    BOOST_CHECK_EQUAL(ticks.reset_within(20ms, 30ms), one);

    const auto due = since_start(ticks.next_tick());
    BOOST_CHECK(from + 20ms <= due && due <= from + 30ms);
    check_delivered_at(due);
    BOOST_CHECK(since_start(ticks.next_tick()) == due + 100ms);
}

BOOST_AUTO_TEST_CASE(intervals_that_are_reset_to_overlapping_ranges_tick_together) {
    std::vector<interval> all;
    std::vector<delivery> deliveries(100);
    for (int i = 0; i < 100; ++i) {
        pass(7ms); // started at different times
        all.emplace_back(context, 1h);
        all.back().reset_within(3s, 4s);
        all.back().async_wait(deliveries[static_cast<std::size_t>(i)].handler());
    }
    std::size_t stops = 0;
    while (std::ranges::any_of(deliveries, &delivery::pending)) {
        manual_clock::advance_to_next(context);
        poll(context);
        ++stops;
    }
    BOOST_TEST_MESSAGE(stops << " wake-ups for 100 intervals");
    BOOST_CHECK_LE(stops, 5U);
}

BOOST_FIXTURE_TEST_CASE(a_range_that_is_none_changes_nothing, waiting) {
    const auto due = ticks.next_tick();
    const auto names_it = [](const std::invalid_argument& e) {
        return std::string(e.what()).find("max must not be less than min") != std::string::npos;
    };
    BOOST_CHECK_EXCEPTION(ticks.reset_within(2s, 1s), std::invalid_argument, names_it);

    BOOST_CHECK(ticks.next_tick() == due);
    BOOST_CHECK(d.pending());
    check_delivered_at(since_start(due));
}

// With rings, a wait may not be movable.
BOOST_FIXTURE_TEST_CASE(a_reset_that_is_refused_changes_nothing, world) {
    using ring_traits =
        pawl::on_backend<pawl::time::timeout_rings, asio::wait_traits<manual_clock>>;
    using ring_interval = pawl::basic_interval_timer<manual_clock, ring_traits>;
    pawl::options o;
    o.precision = 1ms;
    o.rings.delays = {{1s}, {8s, 1}};
    o.rings.round_up = true;
    o.rings.when_full = pawl::ring_overflow::reject;
    pawl::make_timer_service<pawl::basic_waitable_timer<manual_clock, ring_traits>>(context, o);
    ring_interval fills_the_ring(context, start + 8s, 8s);
    ring_interval ticks(context, start + 500ms, 500ms);
    delivery other, d;
    fills_the_ring.async_wait(other.handler());
    ticks.async_wait(d.handler());

    using boost::system::system_error;
    BOOST_CHECK_THROW(ticks.reset_within(4s, 7s), system_error);
    BOOST_CHECK_THROW(ticks.reset_after(4s), system_error);
    BOOST_CHECK_THROW(ticks.reset_after(20s), std::invalid_argument);
    BOOST_CHECK(since_start(ticks.next_tick()) == 500ms);
    BOOST_CHECK(d.pending());
    pass(1200ms); // within the window of the ring of a second
    BOOST_CHECK(d.ticked());

    delivery next(ticks);
    BOOST_CHECK_THROW(ticks.set_period(6s), system_error);
    BOOST_CHECK(ticks.period() == 500ms);
    BOOST_CHECK(since_start(ticks.next_tick()) == 1s);
    pass(1200ms);
    BOOST_CHECK(next.ticked());
}

BOOST_AUTO_TEST_CASE(a_reset_forgets_what_was_missed) {
    interval ticks(context, 50ms);
    be_busy_for(220ms);

    BOOST_CHECK_EQUAL(ticks.reset(), none); // no wait is pending

    check(worker(*this, ticks, {0ms, 0ms}).run(), {{270ms, 0}, {320ms, 0}});
}

BOOST_AUTO_TEST_CASE(a_reset_in_the_handler_moves_the_tick_after) {
    interval ticks(context, 50ms);
    ticks.async_wait([&](error_code, std::uint64_t) { ticks.reset_after(5ms); });
    poll(context);

    check(worker(*this, ticks, {0ms, 0ms}).run(), {{5ms, 0}, {55ms, 0}});
}

BOOST_AUTO_TEST_SUITE_END()

// ---- cancellation -----------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(cancellation, world)

BOOST_AUTO_TEST_CASE(a_cancelled_wait_consumes_no_tick) {
    interval ticks(context, start + 50ms, 50ms);
    delivery d(ticks);

    BOOST_CHECK_EQUAL(ticks.cancel(), one);
    BOOST_CHECK_EQUAL(ticks.cancel(), none);
    BOOST_CHECK(d.pending()); // never inline
    poll(context);

    BOOST_CHECK(d.aborted());
    check(worker(*this, ticks, {0ms, 0ms}).run(), {{50ms, 0}, {100ms, 0}});
}

BOOST_AUTO_TEST_CASE(a_wait_cancelled_when_its_tick_is_queued_consumes_no_tick) {
    interval ticks(context, start + 50ms, 50ms);
    delivery d(ticks);
    be_busy_for(120ms);

    BOOST_CHECK_EQUAL(ticks.cancel(), one);
    poll(context);

    BOOST_CHECK(d.aborted());
    check(worker(*this, ticks, {0ms, 0ms}).run(), {{120ms, 1}, {120ms, 0}});
}

BOOST_DATA_TEST_CASE(a_slot_cancels_its_own_wait_only,
                     boost::unit_test::data::make({asio::cancellation_type::terminal,
                                                   asio::cancellation_type::partial,
                                                   asio::cancellation_type::total}),
                     type) {
    interval ticks(context, start + 50ms, 50ms);
    asio::cancellation_signal signal;
    delivery mine;
    delivery other;
    ticks.async_wait(asio::bind_cancellation_slot(signal.slot(), mine.handler()));
    ticks.async_wait(other.handler());

    signal.emit(type);
    BOOST_CHECK(mine.pending()); // never inline
    poll(context);

    BOOST_CHECK(mine.aborted());
    BOOST_CHECK(other.pending());
    pass(50ms);
    BOOST_CHECK(other.ticked());
    BOOST_CHECK(since_start(ticks.next_tick()) == 100ms);
    signal.emit(type); // finds nothing
}

BOOST_AUTO_TEST_CASE(a_slot_may_be_emitted_when_the_interval_is_gone) {
    asio::cancellation_signal signal;
    delivery d;
    {
        interval ticks(context, start + 50ms, 50ms);
        ticks.async_wait(asio::bind_cancellation_slot(signal.slot(), d.handler()));
    }
    signal.emit(asio::cancellation_type::all);
    poll(context);
    signal.emit(asio::cancellation_type::all);

    BOOST_CHECK(d.aborted());
}

BOOST_AUTO_TEST_CASE(destruction_cancels_all_waits) {
    delivery a;
    delivery b;
    {
        interval ticks(context, start + 50ms, 50ms);
        ticks.async_wait(a.handler());
        ticks.async_wait(b.handler());
        be_busy_for(70ms);
    }
    BOOST_CHECK(a.pending()); // never inline
    run_to_end(context);

    BOOST_CHECK(a.aborted());
    BOOST_CHECK(b.aborted());
}

BOOST_AUTO_TEST_CASE(an_interval_may_outlive_its_context_and_its_waits) {
    delivery d;
    std::optional<interval> ticks;
    {
        asio::io_context other;
        ticks.emplace(other, start + 50ms, 50ms);
        ticks->async_wait(d.handler());
    }

    BOOST_CHECK(d.pending()); // destroyed uncalled
    BOOST_CHECK_EQUAL(ticks->cancel(), none);
    BOOST_CHECK_EQUAL(ticks->reset(), none);
    BOOST_CHECK_EQUAL(ticks->set_period(1ms), none);
}

BOOST_AUTO_TEST_CASE(a_context_may_own_the_interval_through_its_handler) {
    handler_log log;
    {
        asio::io_context other;
        auto ticks = std::make_shared<interval>(other, start + 50ms, 50ms);
        ticks->async_wait([ticks, h = counting_handler(log)](error_code, std::uint64_t) {});
    }

    BOOST_CHECK_EQUAL(log.live, 0);
}

BOOST_AUTO_TEST_CASE(expire_all_lets_a_wait_go_and_keeps_its_tick) {
    interval ticks(context, start + 50ms, 50ms);
    delivery d(ticks);

    BOOST_CHECK_EQUAL(pawl::expire_all(context), one);
    poll(context);

    BOOST_CHECK(d.ticked());
    BOOST_CHECK_EQUAL(d.missed, 0u);
    check(worker(*this, ticks, {0ms, 0ms}).run(), {{50ms, 0}, {100ms, 0}});
}

BOOST_AUTO_TEST_SUITE_END()

// ---- several waits ----------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(several_waits, world)

BOOST_AUTO_TEST_CASE(all_of_them_wait_for_the_same_tick) {
    interval ticks(context, start + 50ms, 50ms);
    delivery a(ticks);
    delivery b(ticks);

    pass(50ms);

    BOOST_CHECK(a.ticked());
    BOOST_CHECK(b.ticked());
    BOOST_CHECK(since_start(ticks.next_tick()) == 100ms); // counts once
}

BOOST_AUTO_TEST_CASE(all_of_them_are_moved_and_cancelled) {
    interval ticks(context, start + 50ms, 50ms);
    delivery a(ticks);
    delivery b(ticks);

    BOOST_CHECK_EQUAL(ticks.reset_after(200ms), 2u);
    pass(199ms);
    BOOST_CHECK_EQUAL(ticks.cancel(), 2u);
    poll(context);

    BOOST_CHECK(a.aborted());
    BOOST_CHECK(b.aborted());
}

BOOST_AUTO_TEST_CASE(each_is_told_what_was_missed_when_it_came_to_it) {
    interval ticks(context, 50ms, missed_tick_policy::skip);
    delivery first;
    delivery second;
    ticks.async_wait([&](error_code code, std::uint64_t missed) {
        first.handler()(code, missed);
        be_busy_for(100ms);
    });
    ticks.async_wait(second.handler());

    pass(70ms);

    BOOST_CHECK_EQUAL(first.missed, 1u);
    BOOST_CHECK_EQUAL(second.missed, 3u);
    BOOST_CHECK(since_start(ticks.next_tick()) == 100ms); // by the first
}

// The first handler moves the tick that is scheduled then. The second wait is for the tick before.
BOOST_AUTO_TEST_CASE(a_change_leaves_the_waits_of_a_tick_that_was_delivered) {
    const std::array<std::function<std::size_t(interval&)>, 4> changes{
        [](interval& ticks) { return ticks.set_period(200ms); },
        [](interval& ticks) { return ticks.reset(); },
        [](interval& ticks) { return ticks.reset_after(200ms); },
        [](interval& ticks) { return ticks.reset_at(manual_clock::now() + 200ms); },
    };
    for (const auto& change : changes) {
        interval ticks(context, 200ms);
        delivery first;
        delivery second;
        std::size_t moved = 7;
        ticks.async_wait([&](error_code code, std::uint64_t missed) {
            first.handler()(code, missed);
            moved = change(ticks);
        });
        ticks.async_wait(second.handler());

        poll(context);

        BOOST_CHECK(first.ticked());
        BOOST_CHECK_EQUAL(moved, none);
        BOOST_CHECK(second.ticked());
        BOOST_CHECK(ticks.next_tick() == manual_clock::now() + 200ms);
    }
}

/// Each of several users waits again in its own handler: all of them get every tick.
BOOST_AUTO_TEST_CASE(a_wait_for_the_next_tick_does_not_take_the_peers_along) {
    interval ticks(context, 50ms);
    std::vector<std::vector<tick>> seen(3);
    std::function<void(std::size_t)> wait = [&](std::size_t user) {
        ticks.async_wait([&, user](error_code code, std::uint64_t missed) {
            if (code)
                return;
            seen[user].push_back({now(), missed});
            wait(user);
        });
    };
    for (std::size_t user = 0; user < seen.size(); ++user)
        wait(user);

    poll(context);
    for (int i = 0; i < 4; ++i)
        pass(50ms);

    for (const auto& s : seen)
        check(s, {{0ms, 0}, {50ms, 0}, {100ms, 0}, {150ms, 0}, {200ms, 0}});
    BOOST_CHECK_EQUAL(ticks.cancel(), 3u);
    run_to_end(context);
}

namespace {

/// The handler of one wait is delayed in another context for several ticks, which others get.
struct held_up : world {
    held_up() {
        ticks.async_wait(asio::bind_executor(elsewhere.get_executor(), late.handler()));
        for (int i = 0; i < 4; ++i) {
            delivery d(ticks);
            poll(context);
            BOOST_REQUIRE(d.ticked());
            BOOST_REQUIRE_EQUAL(d.missed, 0u);
            if (i < 3)
                be_busy_for(50ms);
        }
        BOOST_REQUIRE(late.pending());
    }

    manual_context elsewhere;
    interval ticks{context, 50ms};
    delivery late;
};

} // namespace

BOOST_FIXTURE_TEST_CASE(a_handler_that_is_held_up_gets_its_own_tick_and_how_many_it_missed,
                        held_up) {
    elsewhere.poll();

    BOOST_CHECK(late.ticked());
    BOOST_CHECK_EQUAL(late.missed, 3u);
    BOOST_CHECK(since_start(ticks.next_tick()) == 200ms);
}

BOOST_FIXTURE_TEST_CASE(handlers_of_several_ticks_may_be_held_up, held_up) {
    delivery second;
    delivery in_time;
    delivery next;
    ticks.async_wait(asio::bind_executor(elsewhere.get_executor(), second.handler()));
    ticks.async_wait(in_time.handler());
    pass(50ms);
    ticks.async_wait(next.handler());

    elsewhere.poll();

    BOOST_CHECK(late.ticked());
    BOOST_CHECK_EQUAL(late.missed, 4u);
    BOOST_CHECK(second.ticked());
    BOOST_CHECK_EQUAL(second.missed, 0u);
    BOOST_CHECK(in_time.ticked());
    BOOST_CHECK(next.pending());
}

BOOST_FIXTURE_TEST_CASE(a_handler_that_is_held_up_is_still_cancelled, held_up) {
    delivery next(ticks);

    BOOST_CHECK_EQUAL(ticks.cancel(), 2u);
    elsewhere.poll();
    poll(context);

    BOOST_CHECK(late.aborted());
    BOOST_CHECK(next.aborted());
}

BOOST_FIXTURE_TEST_CASE(a_handler_that_is_held_up_is_not_moved_by_a_reset, held_up) {
    delivery next(ticks);

    BOOST_CHECK_EQUAL(ticks.reset_after(1h), one);
    elsewhere.poll();

    BOOST_CHECK(late.ticked());
    BOOST_CHECK(next.pending());
}

BOOST_FIXTURE_TEST_CASE(a_handler_that_is_held_up_moves_with_the_interval, held_up) {
    interval other(context, 1h);
    other = std::move(ticks);

    BOOST_CHECK_EQUAL(other.cancel(), one);
    elsewhere.poll();

    BOOST_CHECK(late.aborted());
}

BOOST_FIXTURE_TEST_CASE(an_interval_that_is_assigned_to_itself_keeps_its_waits, held_up) {
    delivery next(ticks);
    interval& same = ticks;
    ticks = std::move(same);
    elsewhere.poll();
    poll(context);

    BOOST_CHECK(late.ticked());
    BOOST_CHECK(next.pending());
    BOOST_CHECK_EQUAL(ticks.cancel(), one);
}

BOOST_FIXTURE_TEST_CASE(a_handler_that_is_held_up_is_aborted_by_destruction, held_up) {
    { const interval doomed(std::move(ticks)); }
    elsewhere.poll();

    BOOST_CHECK(late.aborted());
}

BOOST_AUTO_TEST_SUITE_END()

// ---- objects ----------------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(objects, world)

BOOST_AUTO_TEST_CASE(a_move_takes_the_schedule_and_the_waits_along) {
    auto ticks = std::make_unique<interval>(context, start + 50ms, 50ms, missed_tick_policy::skip);
    delivery d;
    ticks->async_wait(d.handler());
    interval moved(std::move(*ticks));
    ticks.reset();

    pass(70ms);

    BOOST_CHECK(d.ticked());
    BOOST_CHECK(moved.missed_tick_policy() == missed_tick_policy::skip);
    check(worker(*this, moved, {0ms, 0ms}).run(), {{100ms, 0}, {150ms, 0}});
}

BOOST_AUTO_TEST_CASE(a_move_assignment_cancels_the_waits_it_replaces) {
    interval target(context, start + 10ms, 10ms);
    interval source(context, start + 50ms, 50ms);
    delivery replaced(target);
    delivery kept(source);

    target = std::move(source);
    pass(50ms);

    BOOST_CHECK(replaced.aborted());
    BOOST_CHECK(kept.ticked());
    BOOST_CHECK(since_start(target.next_tick()) == 100ms);
}

BOOST_AUTO_TEST_CASE(intervals_can_be_swapped_and_a_moved_from_one_assigned_to) {
    interval a(context, start + 10ms, 10ms);
    interval b(context, start + 50ms, 50ms);
    delivery of_a(a);
    delivery of_b(b);

    std::swap(a, b);

    BOOST_CHECK_EQUAL(a.reset_after(1h), one);
    pass(10ms);
    BOOST_CHECK(of_a.ticked());
    BOOST_CHECK(of_b.pending());
    BOOST_CHECK(b.period() == 10ms);
}

// The target has a timer for its own tick with the number that is scheduled in the source.
BOOST_AUTO_TEST_CASE(a_move_assignment_does_not_mistake_the_tick_of_one_for_that_of_the_other) {
    interval source(context, 50ms);
    interval target(context, 10ms);
    check(worker(*this, source, {0ms, 0ms, 0ms}).run(), {{0ms, 0}, {50ms, 0}, {100ms, 0}});
    worker(*this, target, {0ms, 0ms, 0ms}).run();
    delivery replaced(target);
    BOOST_REQUIRE(since_start(source.next_tick()) == 150ms);

    target = std::move(source);
    check(worker(*this, target, {0ms, 0ms}).run(), {{150ms, 0}, {200ms, 0}});
    BOOST_CHECK(replaced.aborted());
}

BOOST_AUTO_TEST_CASE(a_wait_for_a_later_tick_can_be_moved_after_a_move_of_its_interval) {
    using native = interval::rebind_executor<asio::io_context::executor_type>::other;
    const auto with_one_pending = [&](auto& source, delivery& d) {
        for (int i = 0; i < 2; ++i) {
            delivery first(source);
            manual_clock::advance_to_next(context);
            poll(context);
            BOOST_REQUIRE(first.ticked());
        }
        source.async_wait(d.handler());
    };
    delivery constructed;
    delivery assigned;
    delivery converted;
    {
        interval source(context, 50ms);
        with_one_pending(source, constructed);
        interval target(std::move(source));
        BOOST_CHECK_EQUAL(target.reset_after(1h), one);
        poll(context);
        BOOST_CHECK(constructed.pending());
    }
    {
        interval source(context, 50ms);
        interval target(context, 10ms);
        with_one_pending(source, assigned);
        target = std::move(source);
        BOOST_CHECK_EQUAL(target.reset_after(1h), one);
    }
    {
        native source(context, 50ms);
        with_one_pending(source, converted);
        const interval target(std::move(source));
        BOOST_CHECK_EQUAL(const_cast<interval&>(target).reset_after(1h), one);
    }
    run_to_end(context);
    BOOST_CHECK(constructed.aborted());
    BOOST_CHECK(assigned.aborted());
    BOOST_CHECK(converted.aborted());
}

// The handler of the first wait is held up in another context; its wait is for an earlier tick.
BOOST_AUTO_TEST_CASE(waits_for_earlier_ticks_come_along_to_another_executor_type) {
    using native = interval::rebind_executor<asio::io_context::executor_type>::other;
    manual_context elsewhere;
    std::optional<native> ticks(std::in_place, context, 50ms);
    delivery late;
    delivery other;
    delivery next;
    ticks->async_wait(asio::bind_executor(elsewhere.get_executor(), late.handler()));
    ticks->async_wait(other.handler());
    poll(context);
    BOOST_REQUIRE(other.ticked());
    ticks->async_wait(next.handler());

    interval any(std::move(*ticks));
    ticks.reset();
    BOOST_CHECK_EQUAL(any.reset_after(1h), one); // leaves the earlier one
    BOOST_CHECK_EQUAL(any.cancel(), 2u);
    elsewhere.poll();
    poll(context);

    BOOST_CHECK(late.aborted());
    BOOST_CHECK(next.aborted());
}

BOOST_AUTO_TEST_CASE(a_move_across_contexts_leaves_the_waits_where_they_are) {
    asio::io_context other;
    interval target(other, 1h);
    interval source(context, start + 50ms, 50ms);
    delivery d(source);

    target = std::move(source);
    pass(50ms);

    BOOST_CHECK(d.ticked());
    BOOST_CHECK(target.get_executor() == asio::any_io_executor(context.get_executor()));
}

BOOST_AUTO_TEST_CASE(an_interval_on_another_executor_type_is_taken_over_with_its_waits) {
    using native = interval::rebind_executor<asio::io_context::executor_type>::other;
    native ticks(context, start + 50ms, 50ms);
    delivery d(ticks);

    interval any(std::move(ticks));
    pass(50ms);
    BOOST_CHECK(d.ticked());

    any = native(context, start + 60ms, 1ms);
    BOOST_CHECK(any.next_tick() == start + 60ms);
    check(worker(*this, any, {0ms, 0ms}).run(), {{60ms, 0}, {61ms, 0}});
}

BOOST_AUTO_TEST_CASE(a_handler_may_destroy_its_interval) {
    auto ticks = std::make_unique<interval>(context, 50ms);
    delivery peer;
    int calls = 0;
    ticks->async_wait([&](error_code code, std::uint64_t) {
        ++calls;
        BOOST_CHECK(!code);
        ticks.reset();
    });
    ticks->async_wait(peer.handler());

    run_to_end(context);

    BOOST_CHECK_EQUAL(calls, 1);
    BOOST_CHECK(peer.aborted());
}

BOOST_AUTO_TEST_CASE(a_handler_that_throws_has_had_its_tick) {
    interval ticks(context, 50ms);
    ticks.async_wait([](error_code, std::uint64_t) { throw std::runtime_error("mine"); });

    BOOST_CHECK_THROW(context.poll(), std::runtime_error);

    check(worker(*this, ticks, {0ms, 0ms}).run(), {{50ms, 0}, {100ms, 0}});
}

BOOST_AUTO_TEST_CASE(a_wait_that_finds_no_memory_changes_nothing) {
    interval ticks(context, start + 50ms, 50ms);
    allocation_log memory;
    memory.fail = true;
    delivery d;

    BOOST_CHECK_THROW(
        ticks.async_wait(asio::bind_allocator(counting_allocator<void>(memory), d.handler())),
        std::bad_alloc);

    BOOST_CHECK(!busy(context));
    BOOST_CHECK(d.pending());
    check(worker(*this, ticks, {0ms, 0ms}).run(), {{50ms, 0}, {100ms, 0}});
}

BOOST_AUTO_TEST_CASE(it_works_on_the_steady_clock) {
    pawl::interval_timer ticks(context, 1ms);
    const auto first = ticks.next_tick();
    int count = 0;
    std::function<void()> wait = [&] {
        ticks.async_wait([&](error_code code, std::uint64_t) {
            if (!code && ++count < 4)
                wait();
        });
    };

    wait();
    run_to_end(context);

    BOOST_CHECK_EQUAL(count, 4);
    BOOST_CHECK(std::chrono::steady_clock::now() >= first + 3ms); // not early
}

// A clock that is set back between expiry and handler: the tick is delivered, and its time comes
// again.
BOOST_AUTO_TEST_CASE(a_clock_that_is_set_back_does_not_make_the_schedule_leap) {
    using clock = stepped_clock<struct set_back, false>;
    pawl::detail::interval_grid<clock> grid(clock::time_point(100ms), 50ms,
                                            missed_tick_policy::delay, {clock::time_point(10ms)});
    const auto wait = grid.join();

    BOOST_CHECK_EQUAL(grid.deliver(wait.number, {clock::time_point(10ms)}), 0u);
    BOOST_CHECK(grid.scheduled().due == clock::time_point(100ms));
}

namespace {

struct seconds_clock {
    using duration = std::chrono::seconds;
    using time_point = std::chrono::time_point<seconds_clock>;
    static constexpr bool is_steady = true;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_clock_that_counts_seconds_will_do) {
    using at = seconds_clock::time_point;
    pawl::detail::interval_grid<seconds_clock> grid(at(10s), 10s, missed_tick_policy::delay,
                                                    {at(0s)});

    BOOST_CHECK_EQUAL(grid.deliver(grid.join().number, {at(10s)}), 0u);
    BOOST_CHECK(grid.scheduled().due == at(20s));
    BOOST_CHECK_EQUAL(grid.deliver(grid.join().number, {at(31s)}),
                      1u); // a second is more than 5 ms
    BOOST_CHECK(grid.scheduled().due == at(41s));
}

BOOST_AUTO_TEST_SUITE_END()

// ---- clocks that are set ----------------------------------------------------------------------------

namespace {

/// Each test has its own clock.
template <int Tag>
struct on_a_wall_clock : world {
    using clock = pawl_test::scripted_clock<Tag>;
    static constexpr std::chrono::nanoseconds noon = 1000h;

    on_a_wall_clock() { clock::set(noon); }

    /// Sets the clock. The services notice, as their drivers do once a second.
    void set(duration t) {
        clock::set(t);
        asio::use_service<pawl::detail::service_registry>(context).for_each(
            [](pawl::detail::registered_service& s) { s.clock_moved(); });
        poll(context);
    }
    auto next_tick(const pawl::basic_interval_timer<clock>& ticks) {
        return ticks.next_tick().time_since_epoch() - noon;
    }
};

} // namespace

BOOST_AUTO_TEST_SUITE(set_clocks)

// It burst into a tick for each of them.
BOOST_FIXTURE_TEST_CASE(ticks_that_a_clock_leaves_out_when_it_is_set_ahead_do_not_follow,
                        on_a_wall_clock<1>) {
    const std::array<std::pair<missed_tick_policy, duration>, 3> nexts{
        {{missed_tick_policy::burst, 1h + 100ms},
         {missed_tick_policy::delay, 1h + 130ms},
         {missed_tick_policy::skip, 1h + 100ms}}};
    for (const auto& [policy, next] : nexts) {
        set(noon);
        pawl::basic_interval_timer<clock> ticks(context, 100ms, policy);
        delivery first;
        delivery second;
        delivery third;
        ticks.async_wait(first.handler());
        poll(context);
        BOOST_REQUIRE(first.ticked());

        ticks.async_wait(second.handler());
        set(noon + 1h + 30ms);
        BOOST_CHECK(second.ticked());
        BOOST_CHECK_EQUAL(second.missed, 35'999u);
        BOOST_CHECK_MESSAGE(next_tick(ticks) == next, policy);

        ticks.async_wait(third.handler());
        set(noon + next - 1ns);
        BOOST_CHECK(third.pending());
        set(noon + next);
        BOOST_CHECK(third.ticked());
        BOOST_CHECK_EQUAL(third.missed, 0u);
    }
}

BOOST_FIXTURE_TEST_CASE(an_interval_whose_clock_is_set_ahead_before_its_first_tick_does_not_burst,
                        on_a_wall_clock<2>) {
    pawl::basic_interval_timer<clock> ticks(context, clock::time_point(noon + 1s), 1s);
    delivery d(ticks);

    set(noon + 1h);

    BOOST_CHECK(d.ticked());
    BOOST_CHECK_EQUAL(d.missed, 3599u);
    BOOST_CHECK(next_tick(ticks) == 1h + 1s);
}

BOOST_FIXTURE_TEST_CASE(
    P1_after_its_clock_was_set_back_a_tick_comes_at_its_time_or_where_it_is_reset,
    on_a_wall_clock<3>) {
    pawl::basic_interval_timer<clock> ticks(context, clock::time_point(noon + 1s), 1s);
    delivery waits;
    delivery reset;
    ticks.async_wait(waits.handler());
    set(noon - 1h);
    set(noon + 1s - 1ns);
    BOOST_CHECK(waits.pending());
    set(noon + 1s);
    BOOST_CHECK(waits.ticked());

    ticks.async_wait(reset.handler());
    set(noon - 1h);
    BOOST_CHECK(reset.pending());
    BOOST_CHECK_EQUAL(ticks.reset(), one);
    BOOST_CHECK(next_tick(ticks) == 1s - 1h);
    set(noon - 1h + 1s);
    BOOST_CHECK(reset.ticked());
    BOOST_CHECK_EQUAL(reset.missed, 0u);
    BOOST_CHECK(next_tick(ticks) == 2s - 1h);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- handlers and tokens ----------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(handlers, world)

BOOST_AUTO_TEST_CASE(a_move_only_handler_is_moved_and_never_copied) {
    interval ticks(context, 50ms);
    int seen = 0;
    ticks.async_wait([&, owned = std::make_unique<int>(41)](error_code, std::uint64_t) mutable {
        seen = ++*owned;
    });

    poll(context);

    BOOST_CHECK_EQUAL(seen, 42);
}

namespace {

/// handler_archetype for ticks.
class tick_archetype : public handler_archetype {
public:
    using handler_archetype::handler_archetype;
    void operator()(error_code code, std::uint64_t) { handler_archetype::operator()(code); }
};

} // namespace

BOOST_AUTO_TEST_CASE(the_poorest_handler_waits) {
    asio::cancellation_signal signal;
    executor_log executed;
    handler_log expired;
    handler_log cancelled;
    allocation_log memory;
    const property_executor ex(context.get_executor(), executed);
    interval ticks(context, 50ms);
    interval later(context, start + 1h, 50ms);

    ticks.async_wait(tick_archetype(expired, ex, memory, {}));
    later.async_wait(tick_archetype(cancelled, ex, memory, signal.slot()));
    BOOST_CHECK_GE(memory.live(), 2u);
    signal.emit(asio::cancellation_type::terminal);
    poll(context);

    BOOST_CHECK_EQUAL(expired.calls, 1);
    BOOST_CHECK(!expired.last);
    BOOST_CHECK_EQUAL(cancelled.calls, 1);
    BOOST_CHECK(cancelled.last == asio::error::operation_aborted);
    BOOST_CHECK_EQUAL(expired.copies + cancelled.copies, 0);
    BOOST_CHECK_EQUAL(expired.live + cancelled.live, 0);
    BOOST_CHECK_EQUAL(executed.executed.load(), 2);
    BOOST_CHECK_EQUAL(memory.live(), 0u);
}

BOOST_AUTO_TEST_CASE(the_memory_of_a_wait_is_free_before_its_handler_runs) {
    interval ticks(context, 50ms);
    allocation_log memory;
    std::size_t live = 99;
    ticks.async_wait(
        asio::bind_allocator(counting_allocator<void>(memory),
                             [&](error_code, std::uint64_t) { live = memory.live(); }));
    BOOST_CHECK_EQUAL(memory.allocations, 1u);

    poll(context);

    BOOST_CHECK_EQUAL(live, 0u);
}

BOOST_AUTO_TEST_CASE(a_handler_runs_in_its_strand_or_in_that_of_the_interval) {
    auto strand = asio::make_strand(context);
    interval plain(context, 50ms);
    interval in_strand(asio::any_io_executor(strand), 50ms);
    int inside = 0;

    plain.async_wait(asio::bind_executor(
        strand, [&](error_code, std::uint64_t) { inside += strand.running_in_this_thread(); }));
    in_strand.async_wait(
        [&](error_code, std::uint64_t) { inside += strand.running_in_this_thread(); });
    plain.async_wait(
        [&](error_code, std::uint64_t) { inside += strand.running_in_this_thread() ? 100 : 1; });
    poll(context);

    BOOST_CHECK_EQUAL(inside, 3);
}

BOOST_AUTO_TEST_CASE(a_tick_is_delivered_when_the_executor_of_the_handler_comes_to_it) {
    manual_context elsewhere;
    interval ticks(context, 50ms, missed_tick_policy::skip);
    delivery d;
    ticks.async_wait(asio::bind_executor(elsewhere.get_executor(), d.handler()));
    BOOST_CHECK_EQUAL(elsewhere.work(), 1);
    pass(20ms);
    BOOST_CHECK(d.pending());
    BOOST_CHECK(ticks.next_tick() == start);

    pass(100ms);
    elsewhere.poll();

    BOOST_CHECK(d.ticked());
    BOOST_CHECK_EQUAL(d.missed, 2u);
    BOOST_CHECK(since_start(ticks.next_tick()) == 150ms);
}

// The wrapper must not hide that a handler has no associations of its own.
BOOST_AUTO_TEST_CASE(what_a_handler_does_not_have_its_wait_does_not_have) {
    struct plain {
        void operator()(error_code, std::uint64_t) const {}
    };
    struct candidate {};
    using wrapped = pawl::detail::interval_handler<manual_clock, plain>;

    static_assert(
        std::is_same_v<asio::associated_executor_t<wrapped, pawl::detail::inline_executor>,
                       pawl::detail::inline_executor>);
    static_assert(
        std::is_same_v<asio::associated_cancellation_slot_t<wrapped, candidate>, candidate>);
    static_assert(std::is_same_v<asio::associated_allocator_t<wrapped, std::allocator<int>>,
                                 std::allocator<int>>);
    using bound = pawl::detail::interval_handler<
        manual_clock, asio::executor_binder<plain, asio::io_context::executor_type>>;
    static_assert(
        std::is_same_v<asio::associated_executor_t<bound>, asio::io_context::executor_type>);
    static_assert(std::is_same_v<asio::associated_executor_t<bound, asio::system_executor>,
                                 asio::io_context::executor_type>);
}

BOOST_AUTO_TEST_CASE(a_coroutine_waits_tick_by_tick) {
    interval ticks(context, 50ms, missed_tick_policy::skip);
    std::vector<tick> seen;
    asio::co_spawn(
        context,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i < 4; ++i) {
                const std::uint64_t missed = co_await ticks.async_wait(asio::use_awaitable);
                seen.push_back({now(), missed});
                if (i == 1)
                    be_busy_for(120ms);
            }
        },
        asio::detached);

    poll(context);
    for (int i = 0; i < 3; ++i) {
        manual_clock::advance_to_next(context);
        poll(context);
    }

    check(seen, {{0ms, 0}, {50ms, 0}, {170ms, 1}, {200ms, 0}});
}

BOOST_AUTO_TEST_CASE(a_coroutine_that_is_cancelled_is_told_and_loses_no_tick) {
    interval ticks(context, start + 50ms, 50ms);
    asio::cancellation_signal signal;
    delivery d;
    asio::co_spawn(
        context,
        [&]() -> asio::awaitable<void> {
            const auto [code, missed] =
                co_await ticks.async_wait(asio::as_tuple(asio::use_awaitable));
            d.handler()(code, missed);
        },
        asio::bind_cancellation_slot(signal.slot(), asio::detached));
    poll(context);

    signal.emit(asio::cancellation_type::terminal);
    poll(context);

    BOOST_CHECK(d.aborted());
    BOOST_CHECK(ticks.next_tick() == start + 50ms);
}

BOOST_AUTO_TEST_CASE(the_default_token_of_the_executor_is_used) {
    using awaiting = asio::use_awaitable_t<>::as_default_on_t<interval>;
    awaiting ticks(context, 50ms);
    int count = 0;
    asio::co_spawn(
        context,
        [&]() -> asio::awaitable<void> {
            co_await ticks.async_wait();
            ++count;
        },
        asio::detached);

    poll(context);

    BOOST_CHECK_EQUAL(count, 1);
}

BOOST_AUTO_TEST_CASE(a_deferred_wait_is_for_the_tick_that_is_scheduled_when_it_starts) {
    interval ticks(context, 50ms);
    auto wait = ticks.async_wait(asio::deferred);
    check(worker(*this, ticks, {0ms, 0ms}).run(), {{0ms, 0}, {50ms, 0}});
    delivery d;

    std::move(wait)(d.handler());
    poll(context);
    BOOST_CHECK(d.pending());
    pass(50ms);

    BOOST_CHECK(d.ticked());
}

BOOST_AUTO_TEST_CASE(a_future_gets_the_number_of_missed_ticks) {
    interval ticks(context, 50ms);
    std::future<std::uint64_t> missed = ticks.async_wait(asio::use_future);

    pass(120ms);

    BOOST_CHECK_EQUAL(missed.get(), 2u);
}

BOOST_AUTO_TEST_CASE(a_type_erased_handler_waits) {
    interval ticks(context, 50ms);
    delivery d;
    asio::any_completion_handler<void(error_code, std::uint64_t)> handler = d.handler();

    ticks.async_wait(std::move(handler));
    poll(context);

    BOOST_CHECK(d.ticked());
}

BOOST_AUTO_TEST_CASE(the_initiation_brings_the_executor_and_the_token_makes_the_result) {
    interval ticks(context, 50ms);
    std::optional<asio::any_io_executor> seen;

    BOOST_CHECK_EQUAL(ticks.async_wait(looking_token{&seen}), 7);

    BOOST_CHECK(seen == ticks.get_executor());
    BOOST_CHECK(!busy(context)); // a token need not start the operation
}

BOOST_AUTO_TEST_SUITE_END()

// ---- threads ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(threads)

// Handlers run in two threads, while a third changes the interval. Allowed: any order. Not allowed:
// a wait that completes twice or never, or a data race, which ThreadSanitizer reports.
PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(an_interval_may_be_changed_while_its_waits_complete_elsewhere) {
    std::mt19937_64 random(seed());
    const int rounds = 2'000;
    asio::io_context context;
    pawl::interval_timer ticks(context, 20us, missed_tick_policy::skip);
    std::atomic<int> completed{0};
    auto work = asio::make_work_guard(context);
    std::thread first([&] { context.run(); });
    std::thread second([&] { context.run(); });
    for (int i = 0; i < rounds; ++i) {
        ticks.async_wait([&](error_code, std::uint64_t) {
            completed.fetch_add(1,
                                std::memory_order_relaxed); // read after the threads are joined
        });
        switch (random() % 8) {
        case 0:
            ticks.cancel();
            break;
        case 1:
            ticks.reset_immediately();
            break;
        case 2:
            ticks.reset();
            break;
        case 3:
            ticks.set_period(std::chrono::microseconds(1 + random() % 50));
            break;
        case 4:
            ticks = pawl::interval_timer(std::move(ticks));
            break;
        default:
            break;
        }
    }
    ticks.cancel();
    work.reset();
    first.join();
    second.join();

    BOOST_CHECK_EQUAL(completed.load(), rounds);
}

BOOST_AUTO_TEST_SUITE_END()
