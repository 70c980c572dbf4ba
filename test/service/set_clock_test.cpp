// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Clocks that are set at a critical moment of the service: between a reading and its use, while
//   the driver is idle, after a lack of memory. The clock itself acts like another thread there, in a
//   chosen reading.

#define BOOST_TEST_MODULE set_clock
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "counted_new.hpp"
#include "service_support.hpp"
#include "shard_bench.hpp"

#include "../support/scripted_clock.hpp"
#include "../support/system_timer.hpp"

#include <pawl/cancel_after.hpp>

#include <pawl/time/hierarchical_wheel.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <new>
#include <thread>

namespace {

using namespace service_test;
using pawl::manual_clock;
using pawl::manual_timer;

template <int Tag>
using wall = pawl_test::scripted_clock<Tag>;
template <class Clock>
using timer_of = pawl::basic_waitable_timer<Clock>;

constexpr auto noon = std::chrono::nanoseconds(1000h);

/// Makes the services of the context check the clock, as their drivers do.
void collect_in(asio::io_context& context) {
    asio::use_service<pawl::detail::service_registry>(context).for_each(
        [](pawl::detail::registered_service& s) { s.clock_moved(); });
}

/// Runs everything that is ready, if that ends. @return the number of units.
std::size_t poll_to_end(asio::io_context& context) {
    context.restart();
    std::size_t units = 0;
    while (context.poll_one() != 0)
        BOOST_REQUIRE_LT(++units, 1000U);
    return units;
}

/// How often the only shard of the service has followed a clock that was set back.
template <class Clock>
unsigned set_backs(asio::io_context& context) {
    return asio::use_service<pawl::timer_service<Clock>>(context).enter().state().seen().set_backs;
}

} // namespace

// ---- a driver that is idle ------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(resting)

// The driver was set for a time that the clock has since passed; it was not told.
BOOST_AUTO_TEST_CASE(a_wait_that_starts_while_the_driver_rests_is_due_by_a_clock_that_has_leapt) {
    asio::io_context context;
    asio::io_context other;
    manual_timer timer(context, 1h);
    outcome cancelled;
    timer.async_wait(record(cancelled));
    asio::post(context, [&] { timer.cancel(); });
    poll_to_end(context);
    BOOST_REQUIRE(cancelled.aborted());
    BOOST_REQUIRE(context.stopped()); // it is idle

    outcome o;
    manual_clock::advance(other, 3h);
    timer.expires_at(manual_clock::now() - 1h); // later than the driver's time
    timer.async_wait(record(o));
    poll_to_end(context);

    BOOST_CHECK(o.succeeded());
    BOOST_CHECK(context.stopped());
}

BOOST_DATA_TEST_CASE(P2_the_system_timer_is_set_anew_for_a_wait_that_starts_while_the_driver_rests,
                     boost::unit_test::data::make({false, true}), steady) {
    const auto with_clock = [](auto clock_type) {
        using clock = decltype(clock_type);
        clock::set(noon);
        asio::io_context context;
        timer_of<clock> timer(context, 900ms);
        outcome cancelled;
        timer.async_wait(record(cancelled));
        asio::post(context, [&] { timer.cancel(); });
        poll_to_end(context);
        BOOST_REQUIRE(cancelled.aborted());
        BOOST_REQUIRE(context.stopped());

        outcome o;
        clock::set(noon + 10h);
        timer.expires_after(1ms); // not the remaining part of those 900
        timer.async_wait(record(o));
        poll_to_end(context);
        BOOST_CHECK(system_timer::sleeps_at_most(1ms));
        BOOST_CHECK(o.pending());
        clock::set(noon + 11h);
        run_to_end(context); // is not told

        BOOST_CHECK(o.succeeded());
        BOOST_CHECK(context.stopped());
    };
    if (steady)
        with_clock(pawl_test::scripted_clock<1, true>());
    else
        with_clock(pawl_test::scripted_clock<1, false>());
}

// The driver sleeps for another wait, by the time before. That wait may be late; the new one has read the clock.
BOOST_DATA_TEST_CASE(P2_a_wait_that_starts_or_moves_after_a_leap_is_not_late,
                     boost::unit_test::data::make({false, true}) *
                         boost::unit_test::data::make({false, true}),
                     steady, moved) {
    const auto with_clock = [&](auto clock_type) {
        using clock = decltype(clock_type);
        clock::set(noon);
        asio::io_context context;
        timer_of<clock> known(context, 5s), fresh(context, 20h);
        outcome of_known, of_fresh;
        known.async_wait(record(of_known));
        if (moved)
            fresh.async_wait(record(of_fresh));
        poll_to_end(context);

        clock::set(noon + 10h);
        if (moved) {
            BOOST_CHECK_EQUAL(fresh.rearm_after(1ms), 1U);
        } else {
            fresh.expires_after(1ms);
            fresh.async_wait(record(of_fresh));
        }
        poll_to_end(context);
        BOOST_CHECK(of_known.succeeded());
        BOOST_CHECK(of_fresh.pending());
        BOOST_CHECK(system_timer::sleeps_at_most(1ms));
        clock::set(noon + 11h);
        run_to_end(context);
        BOOST_CHECK(of_fresh.succeeded());
    };
    if (steady)
        with_clock(pawl_test::scripted_clock<9, true>());
    else
        with_clock(pawl_test::scripted_clock<9, false>());
}

BOOST_DATA_TEST_CASE(P8_at_the_end_of_its_range_a_clock_that_is_looked_at_runs_nothing,
                     boost::unit_test::data::make({false, true}), steady) {
    const auto with_clock = [](auto clock_type) {
        using clock = decltype(clock_type);
        clock::set(clock::duration::max());
        asio::io_context context;
        timer_of<clock> never(context, clock::time_point::max());
        outcome o;
        never.async_wait(record(o));
        poll_to_end(context);
        for (int i = 0; i != 3; ++i) {
            collect_in(context);
            BOOST_CHECK_EQUAL(poll_to_end(context), 0U);
        }
    };
    if (steady)
        with_clock(pawl_test::scripted_clock<10, true>());
    else
        with_clock(wall<10>());
}

BOOST_AUTO_TEST_CASE(P9_a_driver_that_rests_wakes_for_a_clock_that_was_set_back_and_rests_again) {
    using clock = wall<2>;
    clock::set(noon);
    asio::io_context context;
    timer_of<clock> timer(context, 1h);
    for (const auto hour : {3h, 1h, 2h}) {
        outcome cancelled;
        timer.expires_after(1h);
        timer.async_wait(record(cancelled));
        asio::post(context, [&] { timer.cancel(); });
        poll_to_end(context);
        BOOST_REQUIRE(context.stopped());

        clock::set(noon + hour);
        outcome o;
        timer.expires_after(10min);
        timer.async_wait(record(o));
        poll_to_end(context);
        BOOST_CHECK(o.pending());
        BOOST_CHECK(!context.stopped());
        clock::set(noon + hour + 10min);
        collect_in(context);
        poll_to_end(context);

        BOOST_CHECK(o.succeeded());
        BOOST_CHECK(context.stopped());
    }
}

BOOST_AUTO_TEST_SUITE_END()

// ---- between a reading and its use --------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(readings)

// A thread that has read the clock is overtaken by another one that reads it later. Otherwise all
// timers would be refiled.
BOOST_AUTO_TEST_CASE(P8_a_reading_that_another_thread_has_overtaken_is_no_set_back) {
    using clock = wall<10>;
    clock::set(noon);
    asio::io_context context;
    timer_of<clock> timer(context, 1h);
    outcome o;
    timer.async_wait(record(o));
    collect_in(context);
    BOOST_REQUIRE_EQUAL(set_backs<clock>(context), 0U);

    for (const int n : {1, 2}) {
        clock::at_reading(n, [&] {
            clock::set(noon + n * 1min);
            collect_in(context);
        });
        collect_in(context);
        (void)clock::forget();
        BOOST_CHECK_EQUAL(set_backs<clock>(context), 0U);
    }

    clock::set(noon - 1h); // a real set-back
    collect_in(context);
    BOOST_CHECK_EQUAL(set_backs<clock>(context), 1U);
    collect_in(context);
    BOOST_CHECK_EQUAL(set_backs<clock>(context), 1U);
    clock::set(noon + 1h);
    collect_in(context);
    poll_to_end(context);
    BOOST_CHECK(o.succeeded());
}

// A thread reads the clock. Before it uses that reading, the clock is set back, and another thread
// has followed it.
BOOST_AUTO_TEST_CASE(P1_a_reading_from_before_a_set_back_makes_no_wait_early) {
    using clock = wall<11>;
    for (const int n : {1, 2}) {
        clock::set(noon);
        asio::io_context context;
        timer_of<clock> timer(context, 1h);
        outcome o;
        timer.async_wait(record(o));
        collect_in(context);

        clock::set(noon + 1h);
        clock::at_reading(n, [&] {
            clock::set(noon + 30min);
            collect_in(context); // has seen noon, or noon and one hour
            clock::set(noon - 1h);
            collect_in(context);
        });
        collect_in(context);
        const bool too_late = clock::forget(); // it was due at the last reading of the clock
        clock::set(noon + 59min);
        collect_in(context);
        poll_to_end(context);
        BOOST_CHECK(o.pending() || too_late);

        clock::set(noon + 1h);
        collect_in(context);
        poll_to_end(context);
        BOOST_CHECK(o.succeeded());
        BOOST_CHECK(context.stopped());
    }
}

// If the clock is set forward and back between the readings of one call, no wait is early, lost, or
// completed twice.
BOOST_AUTO_TEST_CASE(P1_P3_a_clock_that_is_set_in_any_reading_keeps_every_wait) {
    using clock = wall<12>;
    for (const auto to : {noon - 5h, noon + 30min, noon + 5h}) {
        for (int n = 1; n <= 6; ++n) {
            clock::set(noon);
            asio::io_context context;
            std::deque<timer_of<clock>> timers;
            std::deque<outcome> o(3);
            bool early = false;
            const auto wait = [&](std::size_t i) {
                const auto expiry = timers[i].expiry();
                timers[i].async_wait([&, i, expiry](error_code ec) {
                    ++o[i].calls;
                    o[i].code = ec;
                    early = early || clock::now() < expiry;
                });
            };
            for (const std::chrono::minutes delay : {10min, 60min, 120min})
                timers.emplace_back(context, delay);
            for (std::size_t i = 0; i < 3; ++i)
                wait(i);
            clock::at_reading(n, [&] { clock::set(to); });
            timers[1].rearm_after(90min);
            collect_in(context);
            poll_to_end(context);
            collect_in(context);
            poll_to_end(context);
            (void)clock::forget();

            clock::set(noon + 10h);
            collect_in(context);
            poll_to_end(context);

            BOOST_CHECK(!early);
            for (const outcome& each : o)
                BOOST_CHECK(each.succeeded());
            BOOST_CHECK(context.stopped());
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

// ---- lack of memory -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(faults)

BOOST_AUTO_TEST_CASE(C26_a_set_back_that_finds_no_memory_is_tried_again_by_the_driver) {
    using clock = wall<20>;
    int failures = 0;
    for (long n = 0;; ++n) {
        BOOST_REQUIRE_LT(n, 20);
        clock::set(noon);
        asio::io_context context;
        std::deque<timer_of<clock>> timers;
        std::deque<outcome> o(2);
        for (std::size_t i = 0; i < 2; ++i)
            timers.emplace_back(context, std::chrono::hours(1 + i)).async_wait(record(o[i]));
        collect_in(context);
        poll_to_end(context);
        clock::set(noon - 1h);

        counted_new::fuse = n;
        bool failed = false;
        try {
            timers[0].rearm_after(30min); // earlier than the driver's time
            poll_to_end(context);
        } catch (const std::bad_alloc&) {
            failed = true;
        }
        counted_new::fuse = counted_new::never;

        failures += failed;
        BOOST_CHECK(!context.stopped());
        poll_to_end(context); // no other thread checks
        BOOST_CHECK_EQUAL(set_backs<clock>(context), 1U);
        BOOST_CHECK(o[0].pending() && o[1].pending());
        BOOST_CHECK(!context.stopped()); // P9
        clock::set(noon - 30min);
        collect_in(context);
        poll_to_end(context);
        BOOST_CHECK(o[0].succeeded() && o[1].pending());
        clock::set(noon + 2h);
        collect_in(context);
        poll_to_end(context);
        BOOST_CHECK(o[1].succeeded());
        if (!failed)
            break;
    }
    BOOST_CHECK_GT(failures, 0);
}

// Two threads start the first two waits. The first may find no memory for the driver, and takes
// back only its own wait.
BOOST_AUTO_TEST_CASE(C26_a_wait_that_starts_while_another_thread_arms_the_driver_arms_it_too) {
    using namespace shard_bench;
    std::thread([] {}).join(); // from now on locks are taken
    pawl::detail::shard<pawl::time::hierarchical_wheel> s(pawl::options{}, tick{});
    timer_core first;
    timer_core second;
    test_wait a;
    test_wait b;
    pawl::detail::wait_ledger::trial trial;
    const auto of_first = s.start_on_trial(first, a, tick{10}, true, trial);
    BOOST_REQUIRE(of_first.todo.arm && of_first.todo.after == sequel::unpin);

    const auto of_second = s.start(second, b, tick{20}, true);
    BOOST_CHECK(of_second.todo.arm && of_second.todo.after == sequel::unpin);
    BOOST_CHECK(of_second.todo.wake <= tick{10}); // the first to set it sets it for both
    BOOST_REQUIRE(trial.begun);
    BOOST_CHECK(s.take_back(trial).value); // no memory
    s.arm_failed();
    BOOST_CHECK(s.unpin().empty());
    BOOST_CHECK(s.unpin().empty());

    test_wait c;
    const auto later = s.start(first, c, tick{30}, false);
    BOOST_CHECK(later.todo.arm); // after a failure the next start tries again
    BOOST_CHECK(s.unpin().empty());
    for (timer_core* t : {&first, &second}) {
        auto [count, out] = s.cancel(*t, 1);
        BOOST_CHECK_EQUAL(count, one);
        s.take(out.runners, true, false).op->complete();
        BOOST_CHECK(s.leave(*t).after != sequel::destroy);
    }
    BOOST_CHECK(s.leave().after == sequel::destroy);
}

// Before the first thread finds no memory, another one ends its wait, and destroys the timer. A new wait
// may have the same memory.
BOOST_AUTO_TEST_CASE(C26_a_wait_that_has_gone_while_its_thread_arms_the_driver_is_not_read) {
    using namespace shard_bench;
    std::thread([] {}).join(); // from now on locks are taken
    enum class end { cancelled, run, withdrawn };
    for (const end how : {end::cancelled, end::run, end::withdrawn}) {
        pawl::detail::shard<pawl::time::hierarchical_wheel> s(pawl::options{}, tick{});
        timer_core timer;
        timer_core other;
        std::array<test_wait, 2> waits;
        pawl::detail::wait_ledger::trial trial;
        pawl::detail::wait_ledger::trial beside;
        BOOST_REQUIRE(s.start_on_trial(timer, waits[0], tick{10}, 1, trial).todo.arm &&
                      trial.begun);
        BOOST_REQUIRE(s.start_on_trial(other, waits[1], tick{5}, 1, beside).todo.arm &&
                      beside.begun);

        runner_token* unit = nullptr;
        if (how == end::withdrawn) {
            s.enroll(); // the limit
            BOOST_CHECK(s.withdraw<parting::limit>(nullptr, waits[0]).value);
        } else {
            auto [count, out] = s.cancel(timer, 1);
            BOOST_REQUIRE_EQUAL(count, one);
            unit = out.runners;
        }
        BOOST_CHECK(s.leave(timer).after != sequel::destroy);
        if (how == end::run)
            s.take(std::exchange(unit, nullptr), true, false).op->complete();
        if (how != end::cancelled) {
            std::destroy_at(&waits[0]);
            std::construct_at(&waits[0]);
            BOOST_CHECK(s.start(other, waits[0], tick{5}, 0).value ==
                        pawl::detail::admission::started);
        }
        const bool more = how != end::cancelled;

        BOOST_CHECK(!s.take_back(trial).value);
        s.end_trial(beside);

        if (unit)
            s.take(unit, true, false).op->complete();
        auto [count, out] = s.cancel(other, 2);
        BOOST_CHECK_EQUAL(count, 1u + more);
        for (runner_token* each = out.runners; each;) {
            runner_token* const next = each->next;
            s.take(each, true, false).op->complete();
            each = next;
        }
        BOOST_CHECK_EQUAL(waits[0].completed, 1);
        BOOST_CHECK_EQUAL(waits[1].completed, 1);
        for (int pins = 2 + more; pins != 0; --pins)
            BOOST_CHECK(!s.unpin().runners);

        test_wait later;
        BOOST_CHECK(s.driver_was_set());
        BOOST_CHECK(s.start(other, later, tick{1}, 0).todo.arm);
        s.take(s.cancel(other, 1).todo.runners, true, false).op->complete();
        BOOST_CHECK(!s.unpin().runners);
        BOOST_CHECK(s.leave(other).after != sequel::destroy);
        BOOST_CHECK(s.leave().after == sequel::destroy);
    }
}

BOOST_AUTO_TEST_SUITE_END()

// ---- a clock that throws ------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(throwing)

namespace {

using failing = wall<30>;
struct broken {};

/// Calls `f`; the clock throws in the `n`th reading. @return whether `f` did: what Asio reads for
/// the driver must not.
template <class Function>
bool throws_in_reading(int n, Function f) {
    failing::at_reading(n, [] { throw broken(); });
    bool thrown = false;
    try {
        f();
    } catch (const broken&) {
        thrown = true;
    }
    (void)failing::forget();
    return thrown;
}

/// The ways to start a wait, the first of its timer or not.
enum class way { wait, slot, limit, own_limit };
const std::array ways{way::wait, way::slot, way::limit, way::own_limit};

} // namespace

// The handler is destroyed, and the timer can be used as before.
BOOST_AUTO_TEST_CASE(C26_a_wait_that_starts_while_its_clock_throws_leaves_nothing_behind) {
    for (const way w : ways) {
        for (const auto expiry : {noon - 1h, noon + 1h}) {
            for (const bool used : {false, true}) {
                int failures = 0;
                for (int reading = 1; reading != 12; ++reading) {
                    failing::set(noon);
                    const auto alive = std::make_shared<int>();
                    outcome before, o;
                    {
                        asio::io_context context;
                        timer_of<failing> timer(context);
                        pawl::steady_timer operation(context, 1h);
                        asio::cancellation_signal signal;
                        const auto handler = [alive](error_code) {};
                        if (used) {
                            timer.async_wait(record(before));
                            timer.cancel();
                            poll_to_end(context);
                        }
                        timer.expires_at(failing::time_point(expiry));

                        const bool thrown = throws_in_reading(reading, [&] {
                            switch (w) {
                            case way::wait:
                                return timer.async_wait(handler);
                            case way::slot:
                                return timer.async_wait(
                                    asio::bind_cancellation_slot(signal.slot(), handler));
                            case way::limit:
                                return operation.async_wait(
                                    pawl::cancel_at(timer, failing::time_point(expiry), handler));
                            case way::own_limit:
                                return operation.async_wait(
                                    pawl::cancel_at(failing::time_point(expiry), handler));
                            }
                        });

                        failures += thrown;
                        if (thrown) {
                            BOOST_CHECK_EQUAL(alive.use_count(), 2); // here
                            timer.expires_at(failing::time_point(noon));
                            timer.async_wait(record(o));
                            poll_to_end(context);
                            BOOST_CHECK(o.succeeded());
                            BOOST_CHECK(context.stopped());
                        }
                    }
                    BOOST_CHECK_EQUAL(alive.use_count(), 1);
                }
                BOOST_CHECK_GT(failures, 0);
            }
        }
    }
}

// run() throws, and what is due comes when it is called again.
BOOST_AUTO_TEST_CASE(P3_a_clock_that_throws_while_its_context_runs_costs_no_wait) {
    int failures = 0;
    for (int reading = 1; reading != 12; ++reading) {
        failing::set(noon);
        asio::io_context context;
        timer_of<failing> due(context, failing::time_point(noon));
        timer_of<failing> later(context, failing::time_point(noon + 1h));
        outcome first, second;
        due.async_wait(record(first));
        later.async_wait(record(second));

        failures += throws_in_reading(reading, [&] { poll_to_end(context); });

        poll_to_end(context);
        BOOST_CHECK(first.succeeded());
        BOOST_CHECK(second.pending());
        failing::set(noon + 1h);
        collect_in(context);
        poll_to_end(context);
        BOOST_CHECK(second.succeeded());
    }
    BOOST_CHECK_GT(failures, 0);
}

BOOST_AUTO_TEST_SUITE_END()
