// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The shard without an io_context, on a wheel, on one that grows and on the slow ordered map: counts of
//   runners, P4, P6, P7, slots, a clock that is set back, moves, and what observers are told.

#define BOOST_TEST_MODULE shard
#include <boost/test/unit_test.hpp>

#include "shard_scenes.hpp"

#include "../support/seed.hpp"

#include <pawl/timer_event.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace shard_bench;

// ---- runners ---------------------------------------------------------------------------------

PAWL_TYPED_CASE(there_is_a_runner_for_each_due_wait_up_to_64, Backend, backends) {
    for (const std::size_t n : {1u, 2u, 63u, 64u, 65u, 1000u}) {
        bench<Backend> b(with(2000, 1));
        crowd<Backend> c(b, n);
        c.start(10);

        b.collect(9);
        BOOST_CHECK_EQUAL(b.units(), 0u);
        b.collect(10);

        BOOST_CHECK_EQUAL(b.units(), std::min<std::size_t>(n, 64));
        std::size_t left = n;
        while (b.units() != 0) {
            BOOST_CHECK_EQUAL(b.run_unit(), 1u);
            BOOST_CHECK_EQUAL(b.units(), std::min<std::size_t>(--left, 64));
        }
        BOOST_CHECK_EQUAL(c.completed(), n);
    }
}

PAWL_TYPED_CASE(a_turn_completes_completions_per_turn_waits, Backend, backends) {
    for (const unsigned per_turn : {1u, 2u, 7u, 64u}) {
        for (const std::size_t n : {1u, 64u, 65u, 1000u}) {
            bench<Backend> b(with(2000, per_turn));
            crowd<Backend> c(b, n);
            c.start(10);

            b.collect(10);

            // The first is relied on for one wait, whose handler may run a loop.
            const std::size_t needed = 1 + (n - 1 + per_turn - 1) / per_turn;
            BOOST_CHECK_EQUAL(b.units(), std::min<std::size_t>(needed, 64));
            std::size_t units = 0;
            for (; b.units() != 0; ++units)
                BOOST_CHECK_LE(b.run_unit(), per_turn);
            BOOST_CHECK_EQUAL(c.completed(), n);
            // A unit that completes nothing may be left over if a turn ended exactly.
            BOOST_CHECK_LE(units, needed + 1);
        }
    }
}

PAWL_TYPED_CASE(C30_the_wake_up_of_the_driver_is_one_of_the_units, Backend, backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 10);
    c.start(5);

    BOOST_CHECK(b.wake(5));

    BOOST_CHECK_EQUAL(c.completed(), 1u);
    BOOST_CHECK_EQUAL(b.units(), 9u);
    b.run_all();
    BOOST_CHECK_EQUAL(c.completed(), 10u);
}

PAWL_TYPED_CASE(a_wake_up_that_finds_nothing_is_no_runner, Backend, backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 1);
    c.start(500);

    BOOST_CHECK(!b.wake(499));

    BOOST_CHECK_EQUAL(b.units(), 0u);
    BOOST_CHECK(b.driver().has_value());
}

// One runner may complete two waits. A wait that falls due while the last handler of its turn runs
// needs another one.
PAWL_TYPED_CASE(what_falls_due_during_the_last_handler_of_a_turn_gets_a_unit, Backend, backends) {
    bench<Backend> b(with(16, 2));
    crowd<Backend> c(b, 1);
    crowd<Backend> next(b, 1);
    c.start(10);
    next.start(11);
    std::size_t units = 0;
    c.waits[0].handler = [&] {
        b.collect(11);
        units = b.units();
    };

    b.collect(10);
    b.run_all();

    BOOST_CHECK_EQUAL(units, 1u);
    BOOST_CHECK_EQUAL(next.completed(), 1u);
}

// Other runners take what falls due during the handler.
PAWL_TYPED_CASE(a_turn_ends_with_the_last_entry_that_is_there, Backend, backends) {
    bench<Backend> b(with(16, 4));
    crowd<Backend> c(b, 2);
    c.start(10);
    b.collect(10);
    auto* const token = b.next_unit();

    auto first = b.state().take(token, false, false);
    BOOST_CHECK(first.op && !first.retired);
    b.apply(first.todo, false);
    first.op->complete();
    auto second = b.state().take(token, false, false, false);
    BOOST_CHECK(second.op && second.retired);
    b.apply(second.todo, false);
    second.op->complete();
}

// In a nested loop those that were overtaken are held by the frames around it, and come one by one. If one of them comes
// in another thread, the threads were only faster than each other: none is held.
BOOST_AUTO_TEST_CASE(a_runner_that_was_overtaken_is_relied_on_again_when_it_comes) {
    for (const bool concurrent : {false, true}) {
        pawl::detail::runner_pool pool(2, nullptr);
        runner_token* list = nullptr;
        pool.claim(4, false, list);
        std::vector<runner_token*> t;
        for (; list; list = list->next)
            t.push_back(list);
        BOOST_REQUIRE_EQUAL(t.size(), 3u);
        const auto relied_on = [&] { // each completes two, the last one only one for sure
            std::size_t entries = 0;
            while (!pool.wants_more(entries + 1, false))
                ++entries;
            return (entries + 1) / 2;
        };
        BOOST_CHECK_EQUAL(relied_on(), 3u);

        BOOST_CHECK(pool.begin(*t[2]));
        BOOST_CHECK_EQUAL(pool.count(), 3u);
        BOOST_CHECK_EQUAL(relied_on(), 1u);
        pool.retire(t[2]);
        BOOST_CHECK_EQUAL(relied_on(), 0u);

        bool overtakes = true;
        const auto come = [&] { overtakes = pool.begin(*t[0]); };
        if (concurrent)
            std::thread(come).join();
        else
            come();
        BOOST_CHECK(!overtakes);
        BOOST_CHECK_EQUAL(relied_on(), concurrent ? 2u : 1u);
        pool.set_aside(); // for a handler in the middle of its turn
        BOOST_CHECK_EQUAL(relied_on(), concurrent ? 1u : 0u);
        pool.rely_on();
        pool.retire(t[0]);

        BOOST_CHECK(!pool.begin(*t[1]));
        BOOST_CHECK_EQUAL(relied_on(), 1u);
        pool.retire(t[1]);
        BOOST_CHECK_EQUAL(pool.count(), 0u);
    }
}

// The driver comes in its place, where units cannot be queued. Later they can.
PAWL_TYPED_CASE(a_runner_that_is_not_queued_is_overtaken_by_none, Backend, backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 1);
    c.start(10);
    b.collect(10);
    b.hold_up(true);
    b.state().unclaim(*b.next_unit());
    b.hold_up(false);

    b.collect(10);

    BOOST_REQUIRE_EQUAL(b.units(), 1u);
    BOOST_CHECK_EQUAL(b.run_unit(), 1u);
}

// Otherwise the units that it queues would come after its handler.
BOOST_AUTO_TEST_CASE(
    a_wake_up_in_a_context_that_handlers_may_run_is_a_runner_for_a_lone_wait_only) {
    pawl::detail::runner_pool pool(1, nullptr);
    BOOST_CHECK(!pool.claim_lone(2, false));
    BOOST_CHECK(!pool.claim_lone(0, false));
    BOOST_CHECK(pool.claim_lone(1, false));
    BOOST_CHECK(!pool.claim_lone(2, false)); // a unit can be queued for the second
    pool.retire(nullptr);
    BOOST_CHECK(pool.claim_lone(0, true)); // an expiry goes on
    pool.retire(nullptr);
    BOOST_CHECK_EQUAL(pool.count(), 0u);
}

// When the second segment is filled, only one entry is left in the first.
PAWL_TYPED_CASE(there_is_room_for_each_wait_when_a_part_of_the_due_queue_is_used_up, Backend,
                backends) {
    constexpr std::size_t length = pawl::detail::due_queue::length;
    bench<Backend> b(with(2000, 1));
    crowd<Backend> c(b, 2 * length);
    crowd<Backend> next(b, length - 1);
    c.start(10);
    b.collect(10);
    for (std::size_t i = 0; i < length - 1; ++i)
        b.run_unit();

    next.start(20);
    b.collect(20);
    b.run_all();

    BOOST_CHECK_EQUAL(c.completed(), 2 * length);
    BOOST_CHECK_EQUAL(next.completed(), length - 1);
}

// ---- P6 -------------------------------------------------------------------------------------------

PAWL_TYPED_CASE(P6_no_call_collects_more_than_batch_limit_timers, Backend, backends) {
    for (const unsigned limit : {1u, 3u, 256u}) {
        bench<Backend> b(with(limit, 1));
        crowd<Backend> c(b, 1000);
        c.start(10);
        Backend::room = 0;

        b.collect(10);
        BOOST_CHECK_LE(b.state().due_count(), limit);
        while (b.units() != 0) {
            Backend::handled = 0;
            b.run_unit();
            BOOST_CHECK_LE(Backend::handled, limit);
        }

        BOOST_CHECK_LE(Backend::room, limit);
        BOOST_CHECK_EQUAL(c.completed(), 1000u);
    }
}

// A jump of a day: every timer moves down from a high level, and expires in order.
PAWL_TYPED_CASE(P6_P7_a_jump_of_a_day_expires_in_order_and_in_batches, Backend, backends) {
    bench<Backend> b(with(16, 1), tick{1'000'000});
    crowd<Backend> c(b, 500);
    std::vector<std::uint64_t> due(500);
    std::mt19937_64 random(pawl_test::seed());
    for (std::size_t i = 0; i < due.size(); ++i) {
        due[i] = 1'000'001 + random() % 86'400'000;
        b.start(c.timers[i], c.waits[i], due[i]);
    }
    Backend::room = 0;

    b.collect(1'000'000 + 86'400'000);
    BOOST_CHECK_LE(b.state().due_count(), 16u);
    b.run_all();

    BOOST_CHECK_LE(Backend::room, 16u);
    BOOST_REQUIRE_EQUAL(b.log().size(), 500u);
    std::uint64_t last = 0;
    for (const test_wait* w : b.log()) {
        const auto at = static_cast<std::size_t>(
            std::find_if(c.waits.begin(), c.waits.end(), [&](auto& x) { return &x == w; }) -
            c.waits.begin());
        BOOST_CHECK_LE(last, due[at]);
        last = due[at];
    }
}

PAWL_TYPED_CASE(P6_a_backlog_is_finished_although_nothing_else_happens, Backend, backends) {
    bench<Backend> b(with(1, 1));
    crowd<Backend> c(b, 50);
    for (std::size_t i = 0; i < 50; ++i)
        b.start(c.timers[i], c.waits[i], 5000 + i);

    b.collect(100'000);

    b.run_all();
    BOOST_CHECK_EQUAL(c.completed(), 50u);
    BOOST_CHECK_EQUAL(b.state().timers().counts().armed, 0u);
}

PAWL_TYPED_CASE(a_wait_started_during_a_backlog_is_not_forgotten, Backend, backends) {
    bench<Backend> b(with(4, 1));
    crowd<Backend> c(b, 20);
    crowd<Backend> late(b, 1);
    c.start(10);
    b.collect(10);
    BOOST_REQUIRE_LE(b.state().due_count(), 4u);

    late.start(12);
    b.run_all();

    BOOST_CHECK_EQUAL(c.completed(), 20u);
    BOOST_REQUIRE(b.driver().has_value());
    BOOST_CHECK(*b.driver() <= tick{12});
    b.wake(12);
    BOOST_CHECK_EQUAL(late.completed(), 1u);
}

PAWL_TYPED_CASE(a_unit_goes_through_a_backlog_of_timers_without_waits, Backend, backends) {
    for (const unsigned per_turn : {1U, 4U}) {
        bench<Backend> b(with(1, per_turn));
        crowd<Backend> c(b, 10);
        c.start(10);
        for (std::size_t i = 1; i != 9; ++i)
            BOOST_CHECK_EQUAL(b.cancel(c.timers[i]), 1u);
        b.run_all(); // those have ended; their timers stay filed

        b.collect(10);
        b.run_all();

        BOOST_CHECK_EQUAL(c.completed(), 10u);
        BOOST_CHECK_EQUAL(b.units(), 0u);
        BOOST_CHECK_EQUAL(b.state().timers().counts().expired, 2u);
    }
}

PAWL_TYPED_CASE(cancelling_the_whole_backlog_completes_all_as_aborted, Backend, backends) {
    bench<Backend> b(with(4, 1));
    crowd<Backend> c(b, 20);
    c.start(10);
    b.collect(10);

    for (timer_core& t : c.timers)
        BOOST_CHECK_EQUAL(b.cancel(t), 1u);
    b.run_all();

    for (const test_wait& w : c.waits)
        BOOST_CHECK(w.completed == 1 && w.told == aborted);
    BOOST_CHECK(!b.driver());
}

// ---- P4: cancel and re-arm in every state -----------------------------------------------------------

PAWL_TYPED_CASE(P4_a_wait_in_the_due_queue_is_cancelled_and_keeps_its_one_entry, Backend,
                backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 1);
    c.start(10);
    b.collect(10);
    BOOST_REQUIRE_EQUAL(b.state().due_count(), 1u);

    BOOST_CHECK_EQUAL(b.cancel(c.timers[0]), 1u);

    BOOST_CHECK_EQUAL(b.state().due_count(), 1u);
    BOOST_CHECK_EQUAL(b.run_all(), 1u);
    BOOST_CHECK_EQUAL(c.waits[0].completed, 1);
    BOOST_CHECK_EQUAL(c.waits[0].told, aborted);
}

PAWL_TYPED_CASE(P4_a_due_wait_that_is_pulled_back_leaves_one_entry_and_one_completion, Backend,
                backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 1);
    c.start(10);
    b.collect(10);

    BOOST_CHECK_EQUAL(b.rearm(c.timers[0], 20), 1u);
    BOOST_CHECK_EQUAL(b.state().timers().counts().armed, 1u);
    b.collect(20); // due again before the runner came
    BOOST_CHECK_EQUAL(b.state().due_count(), 1u);
    BOOST_CHECK_EQUAL(b.run_all(), 1u);

    BOOST_CHECK_EQUAL(c.waits[0].completed, 1);
    BOOST_CHECK_EQUAL(c.waits[0].told, error_code());
    BOOST_CHECK(c.waits[0].completed_at == tick{20});
}

PAWL_TYPED_CASE(P1_a_pulled_back_wait_does_not_complete_before_its_new_deadline, Backend,
                backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 1);
    c.start(10);
    b.collect(10);
    b.rearm(c.timers[0], 20);

    BOOST_CHECK_EQUAL(b.run_all(), 0u); // the runner finds a cancelled entry
    BOOST_REQUIRE(b.driver().has_value());
    b.wake(19);
    BOOST_CHECK_EQUAL(c.completed(), 0u);
    b.wake(20);

    BOOST_CHECK_EQUAL(c.completed(), 1u);
}

PAWL_TYPED_CASE(a_pulled_back_wait_can_be_cancelled_before_its_runner_comes, Backend, backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 1);
    c.start(10);
    b.collect(10);
    b.rearm(c.timers[0], 20);

    BOOST_CHECK_EQUAL(b.cancel(c.timers[0]), 1u);
    BOOST_CHECK_EQUAL(b.state().due_count(), 1u);
    b.run_all();

    BOOST_CHECK_EQUAL(c.waits[0].completed, 1);
    BOOST_CHECK_EQUAL(c.waits[0].told, aborted);
}

PAWL_TYPED_CASE(P4_a_wait_pulled_back_on_its_way_to_a_strand_waits_again, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w(false);
    b.start(t, w, 10);
    b.wake(10);

    BOOST_CHECK_EQUAL(b.rearm(t, 30), 1u);
    b.arrive(0);
    BOOST_CHECK_EQUAL(w.completed, 0);
    b.wake(30);
    BOOST_REQUIRE_EQUAL(b.carriers().size(), 1u);
    b.arrive(0);

    BOOST_CHECK_EQUAL(w.completed, 1);
    BOOST_CHECK_EQUAL(w.told, error_code());
    b.release(t);
}

PAWL_TYPED_CASE(a_wait_that_falls_due_again_on_its_way_is_not_handed_over_twice, Backend,
                backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w(false);
    b.start(t, w, 10);
    b.wake(10);

    b.rearm(t, 30);
    b.wake(30);
    BOOST_CHECK_EQUAL(b.carriers().size(), 1u);
    BOOST_CHECK_EQUAL(b.state().due_count(), 0u);
    b.arrive(0);

    BOOST_CHECK_EQUAL(w.completed, 1);
    b.release(t);
}

PAWL_TYPED_CASE(a_wait_that_falls_due_while_its_carrier_parks_is_completed_by_it, Backend,
                backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w(false);
    b.start(t, w, 10);
    b.wake(10);
    b.rearm(t, 30);

    b.arrive(0, true);

    BOOST_CHECK_EQUAL(w.completed, 1);
    BOOST_CHECK_EQUAL(b.state().due_count(), 0u);
    b.release(t);
}

PAWL_TYPED_CASE(P3_an_abandoned_carrier_destroys_a_due_wait_and_keeps_an_armed_one, Backend,
                backends) {
    bench<Backend> b;
    timer_core t1;
    timer_core t2;
    test_wait due(false);
    test_wait armed(false);
    b.start(t1, due, 10);
    b.start(t2, armed, 10);
    b.wake(10);
    b.run_all();
    BOOST_REQUIRE_EQUAL(b.carriers().size(), 2u);
    b.rearm(t2, 50);

    b.abandon_carrier(1);
    b.abandon_carrier(0);

    BOOST_CHECK(due.destroyed == 1 && due.completed == 0);
    BOOST_CHECK(armed.destroyed == 0 && armed.completed == 0);
    BOOST_CHECK_EQUAL(b.cancel(t2), 1u);
    b.run_all();
    BOOST_REQUIRE_EQUAL(b.carriers().size(), 1u);
    b.arrive(0);
    BOOST_CHECK_EQUAL(armed.told, aborted);
    b.release(t1);
    b.release(t2);
}

PAWL_TYPED_CASE(rearm_moves_due_and_armed_waits_of_one_timer_together, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    std::deque<test_wait> w(3);
    b.start(t, w[0], 10);
    b.start(t, w[1], 10);
    b.collect(10);
    b.start(t, w[2], 10); // expired at its start, and not yet collected

    BOOST_CHECK_EQUAL(b.rearm(t, 40), 3u);
    b.run_all();
    b.wake(39);
    BOOST_CHECK(b.log().empty());
    b.wake(40);
    b.run_all();

    BOOST_CHECK_EQUAL(b.log().size(), 3u);
    b.release(t);
}

PAWL_TYPED_CASE(each_rearm_counts_all_waits_of_its_timer, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    std::deque<test_wait> w(2);
    b.start(t, w[0], 10);
    b.start(t, w[1], 10);

    BOOST_CHECK_EQUAL(b.rearm(t, 20), 2u);
    BOOST_CHECK_EQUAL(b.rearm(t, 30), 2u);

    b.release(t);
    b.run_all();
}

PAWL_TYPED_CASE(a_timer_that_goes_is_not_filed_any_more, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w;
    b.start(t, w, 10);
    b.cancel(t);
    b.run_all();
    BOOST_REQUIRE(t.filed()); // cancel does not touch the time structure

    b.release(t);

    BOOST_CHECK(!t.filed());
}

// Filing invariant: cancel leaves the timer filed; a new wait must be due at the new tick, earlier
// or later.
PAWL_TYPED_CASE(C37_cancel_and_start_again_uses_the_new_deadline, Backend, backends) {
    for (const std::uint64_t due : {20u, 100u, 500u}) {
        bench<Backend> b;
        timer_core t;
        std::deque<test_wait> w(2);
        b.start(t, w[0], 100);
        b.cancel(t);
        b.run_all();

        b.start(t, w[1], due);
        b.wake(due - 1);
        BOOST_CHECK_EQUAL(w[1].completed, 0);
        b.wake(due);

        BOOST_CHECK_EQUAL(w[1].completed, 1);
        b.release(t);
    }
}

// ---- slots ----------------------------------------------------------------------------------------

PAWL_TYPED_CASE(P3_the_newest_wait_leaves_the_others_to_their_timer, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    std::deque<test_wait> w(2);
    slot_link link(b.arbiter(), w[1]);
    b.start(t, w[0], 10);
    b.start(t, w[1], 10);

    link(boost::asio::cancellation_type::terminal);

    BOOST_REQUIRE(t.newest() == &w[0]);
    BOOST_CHECK_EQUAL(b.cancel(t), 1u);
    b.run_all();
    b.release(t);
}

// A cancel that is only noted in the due queue does not change the wait: the slot would cancel it
// again.
PAWL_TYPED_CASE(C32_a_slot_finds_its_wait_cancelled_after_a_cancel, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w;
    slot_link link(b.arbiter(), w);
    b.start(t, w, 10);

    BOOST_CHECK_EQUAL(b.cancel(t), 1u);

    BOOST_REQUIRE(w.state.phase() == wait_phase::cancelled);
    link(boost::asio::cancellation_type::terminal);
    b.run_all();
    BOOST_CHECK_EQUAL(w.completed, 1);
    b.release(t);
}

PAWL_TYPED_CASE(a_slot_that_goes_last_is_the_last_user, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w;
    auto link = std::make_unique<slot_link>(b.arbiter(), w);
    b.start(t, w, 10);
    b.cancel(t);
    b.run_all();

    BOOST_CHECK(!b.release_service());
    BOOST_CHECK(!b.release(t));
    link.reset();

    BOOST_CHECK(b.over());
}

// ---- order ----------------------------------------------------------------------------------------

PAWL_TYPED_CASE(P7_equal_deadlines_complete_in_start_order, Backend, backends) {
    for (const unsigned batch : {1u, 7u, 256u}) {
        bench<Backend> b(with(batch, 1));
        crowd<Backend> c(b, 100);
        c.start(1000);

        b.collect(1000);
        b.run_all();

        BOOST_REQUIRE_EQUAL(b.log().size(), 100u);
        for (std::size_t i = 0; i < 100; ++i)
            BOOST_CHECK(b.log()[i] == &c.waits[i]);
    }
}

// The later start is filed on a lower level than the earlier one, which is still on a high level.
PAWL_TYPED_CASE(P7_start_order_holds_across_levels_and_re_arms, Backend, backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 4);
    b.start(c.timers[0], c.waits[0], 10'000);
    b.start(c.timers[3], c.waits[3], 20'000);
    b.collect(9'990);
    b.start(c.timers[1], c.waits[1], 10'000);
    b.start(c.timers[2], c.waits[2], 10'000);
    b.rearm(c.timers[3], 10'000); // re-arming is a new start

    b.collect(10'000);
    b.run_all();

    BOOST_REQUIRE_EQUAL(b.log().size(), 4u);
    for (std::size_t i = 0; i < 4; ++i)
        BOOST_CHECK(b.log()[i] == &c.waits[i]);
}

// ---- a clock that is set back ------------------------------------------------------------------------

PAWL_TYPED_CASE(P1_P7_after_a_set_back_waits_keep_their_deadlines_and_their_order, Backend,
                backends) {
    bench<Backend> b(with(8, 1), tick{10'000});
    crowd<Backend> c(b, 50);
    for (std::size_t i = 0; i < 50; ++i)
        b.start(c.timers[i], c.waits[i], 20'000);

    b.state().set_back(tick{5'000});

    BOOST_CHECK(b.state().seen().now == tick{5'000});
    auto found = b.state().collect(tick{5'000}, b.state().seen().set_backs, outside<Backend>);
    BOOST_CHECK(found.todo.arm);
    b.apply(found.todo);
    b.collect(19'999);
    BOOST_CHECK(b.log().empty());
    b.collect(20'000);
    b.run_all();
    BOOST_REQUIRE_EQUAL(b.log().size(), 50u);
    for (std::size_t i = 0; i < 50; ++i)
        BOOST_CHECK(b.log()[i] == &c.waits[i]);
}

// It relies on the thread that has followed the clock, which looks afterwards. The next start does not.
PAWL_TYPED_CASE(P2_a_set_back_that_another_thread_has_followed_is_none, Backend, backends) {
    bench<Backend> b({}, tick{100});
    crowd<Backend> c(b, 1);

    b.state().set_back(tick{100});

    c.start(120);
    BOOST_REQUIRE(b.driver());
    BOOST_CHECK(*b.driver() == tick{120});
}

// ---- moves ----------------------------------------------------------------------------------------

PAWL_TYPED_CASE(P1_a_time_that_was_read_before_a_set_back_expires_nothing, Backend, backends) {
    bench<Backend> b({}, tick{100});
    crowd<Backend> c(b, 1);
    const unsigned before = b.state().seen().set_backs;
    // Another thread reads 250 here, and is delayed. In the meantime the clock is set back.
    b.state().set_back(tick{50});
    b.collect(50);
    c.start(120);

    auto found = b.state().collect(tick{250}, before, outside<Backend>);
    BOOST_CHECK_EQUAL(found.fallen_due, 0u);

    BOOST_CHECK(found.todo.arm); // it checks the clock again
    BOOST_CHECK(found.todo.wake == tick{});
    b.apply(found.todo);
    b.collect(119);
    BOOST_CHECK_EQUAL(b.units(), 0u);
    b.collect(120);
    b.run_all();
    BOOST_CHECK_EQUAL(c.completed(), 1u);
}

PAWL_TYPED_CASE(C6_a_moved_timer_takes_its_armed_and_its_due_waits_along, Backend, backends) {
    bench<Backend> b;
    timer_core from;
    timer_core to;
    std::deque<test_wait> w(2);
    b.start(from, w[0], 10);
    b.collect(10);
    b.start(from, w[1], 50);

    b.move(from, to);

    BOOST_CHECK(!from.filed());
    BOOST_CHECK(!from.newest());
    BOOST_CHECK_EQUAL(b.cancel(from), 0u);
    BOOST_CHECK_EQUAL(b.rearm(to, 60), 2u);
    b.run_all();
    b.wake(60);
    b.run_all();
    BOOST_CHECK_EQUAL(b.log().size(), 2u);
    b.release(to);
}

// ---- observers ------------------------------------------------------------------------------------

namespace {

using words = std::vector<std::string>;

/// A shard with the timers a, b and c, and an observer that writes down what it is told.
template <class Backend>
class watched_shard final : pawl::detail::shard_observer {
public:
    using shard = pawl::detail::shard<Backend>;

    explicit watched_shard(unsigned batch = 16) : b(with(batch, 1)) {}
    ~watched_shard() {
        observe(false, false);
        for (timer_core& each : t)
            b.release(each);
        b.run_all();
        while (!b.carriers().empty())
            b.abandon_carrier(0);
    }

    void observe(bool watched, bool named) {
        const std::scoped_lock lock(b.state().mutex());
        b.state().observe(this, watched, named, {tick{1}, std::chrono::nanoseconds(2)});
    }
    test_wait& start(int timer, std::uint64_t due, bool direct = true) {
        b.start(t[static_cast<std::size_t>(timer)], w.emplace_back(direct), due);
        return w.back();
    }
    /// A turn of a unit, which calls begin_turn() as a dispatcher does. @return whether to tell().
    bool begin_turn(std::uint64_t at) {
        auto* const told_by = b.state().begin_turn({tick{at}, std::chrono::nanoseconds(7)});
        BOOST_CHECK(!told_by || told_by == this);
        return told_by != nullptr;
    }

    bench<Backend> b;
    std::array<timer_core, 3> t;
    std::deque<test_wait> w;
    std::deque<slot_link> links;
    words told;
    pawl::detail::moment noted_at{}; ///< the latest event
    pawl::detail::wait_ledger::trial trial;
    bool asleep = false; ///< a reader sleeps

private:
    char name(const timer_core& timer) const { return static_cast<char>('a' + (&timer - &t[0])); }

    bool note(const pawl::detail::happening& h, const pawl::detail::moment& now) noexcept override {
        noted_at = now;
        std::ostringstream word;
        word << to_string(h.what) << ' ' << name(*h.timer) << ' ' << h.due.count();
        if (h.waits != 1)
            word << " x" << h.waits;
        if (h.what == pawl::timer_event_kind::due)
            word << " at " << h.now.count();
        told.push_back(word.str());
        return asleep;
    }
    void publish() noexcept override { told.push_back("publish"); }
    void moved(const timer_core& from, const timer_core* to) noexcept override {
        told.push_back(std::string("named ") + name(from) + " is " +
                       (to ? std::string(1, name(*to)) : "gone"));
    }
    void tell() override {}
    void complete(pawl::detail::wait_operation& op, pawl::detail::observed_shard::lock_type&,
                  pawl::detail::turn_watch&) override {
        op.complete();
    }
};

/// What is done to a shard, and what its observer is told.
template <class Backend>
struct observed_act {
    using function = std::function<void(watched_shard<Backend>&)>;

    const char* name;
    function before;
    function act;
    words events; ///< told if every event is asked for
    words names;  ///< told if named timers are asked for
};

template <class Backend>
std::vector<observed_act<Backend>> observed_acts() {
    using scene = watched_shard<Backend>;
    const auto nothing = [](scene&) {};
    const auto two_of_a = [](scene& s) {
        s.start(0, 10);
        s.start(0, 10);
    };
    const auto two_due = [=](scene& s) {
        two_of_a(s);
        s.b.collect(12);
    };
    const auto slotted = [](scene& s) {
        s.links.emplace_back(s.b.arbiter(), s.w.emplace_back());
        s.b.start(s.t[0], s.w.back(), 10);
    };
    const auto emit = [](scene& s) { s.links[0](boost::asio::cancellation_type::terminal); };
    const auto elsewhere = [](scene& s) {
        s.start(0, 10, false);
        s.b.collect(12);
        s.b.run_unit();
        BOOST_REQUIRE_EQUAL(s.b.carriers().size(), 1u);
    };
    const auto withdraw = [](scene& s) {
        s.b.state().enroll(); // the limit
        s.b.apply(s.b.state().template withdraw<parting::limit>(nullptr, s.w[0]).todo);
    };
    const auto leave = [](scene& s) {
        s.b.apply(s.b.state().template withdraw<parting::timer>(&s.t[0], s.w[0]).todo);
    };
    // As a timer, which counts as a user, without the bench.
    const auto alone = [](scene& s) {
        s.b.apply(s.b.state().start(s.t[0], s.w.emplace_back(), tick{10}, 1).todo, false);
    };
    const auto unheeded = [](scene& s) {
        s.start(0, 10);
        s.b.state().arm_failed();
        s.b.apply(s.b.state().start_on_trial(s.t[0], s.w.emplace_back(), tick{10}, 0, s.trial).todo,
                  false);
    };
    const auto unheed = [](scene& s) { s.b.apply(s.b.state().take_back(s.trial).todo); };
    const auto arrive = [](scene& s) { s.b.arrive_in_unit(0); };
    const auto drained = [](scene& s) {
        s.b.close();
        drain(s.b);
    };
    return {
        {"a start", nothing, [](scene& s) { s.start(1, 10); }, {"armed b 10"}, {}},
        {"a second start",
         [](scene& s) { s.start(0, 10); },
         [](scene& s) { s.start(0, 30); },
         {"armed a 30"},
         {}},
        {"a start that is refused",
         [](scene& s) { s.b.close(); },
         [](scene& s) { s.start(0, 10); },
         {},
         {}},
        {"a cancel of all",
         two_of_a,
         [](scene& s) { s.b.cancel(s.t[0]); },
         {"cancelled a 10 x2"},
         {}},
        {"a cancel of one",
         two_of_a,
         [](scene& s) { s.b.cancel(s.t[0], 1); },
         {"cancelled a 10"},
         {}},
        {"a cancel of what is due",
         two_due,
         [](scene& s) { s.b.cancel(s.t[0]); },
         {"cancelled a 10 x2"},
         {}},
        {"a cancel of nothing", two_of_a, [](scene& s) { s.b.cancel(s.t[1]); }, {}, {}},
        {"a slot", slotted, emit, {"cancelled a 10"}, {}},
        {"a slot of what is due",
         [=](scene& s) {
             slotted(s);
             s.b.collect(12);
         },
         emit,
         {"cancelled a 10"},
         {}},
        {"a slot of what was cancelled",
         [=](scene& s) {
             slotted(s);
             s.b.cancel(s.t[0]);
         },
         emit,
         {},
         {}},
        {"a start that is taken back", unheeded, unheed, {"cancelled a 10"}, {}},
        {"a start that is taken back too late",
         [=](scene& s) {
             unheeded(s);
             s.b.collect(12);
         },
         unheed,
         {},
         {}},
        {"a withdrawal", two_of_a, withdraw, {"cancelled a 10"}, {}},
        {"a withdrawal of what is due", two_due, withdraw, {"cancelled a 10"}, {}},
        {"a withdrawal of what was cancelled",
         [=](scene& s) {
             two_due(s);
             s.b.cancel(s.t[0]);
         },
         withdraw,
         {},
         {}},
        {"a timer that leaves with its wait",
         alone,
         leave,
         {"cancelled a 10"},
         {"named a is gone"}},
        {"a re-arm", two_of_a, [](scene& s) { s.b.rearm(s.t[0], 20); }, {"moved a 20 x2"}, {}},
        {"a re-arm of what is due",
         two_due,
         [](scene& s) { s.b.rearm(s.t[0], 20); },
         {"moved a 20 x2"},
         {}},
        {"a re-arm of nothing", two_of_a, [](scene& s) { s.b.rearm(s.t[1], 20); }, {}, {}},
        {"a re-arm in a closed shard",
         [=](scene& s) {
             two_of_a(s);
             s.b.close();
         },
         [](scene& s) { s.b.rearm(s.t[0], 20); },
         {},
         {}},
        {"an expiry",
         [=](scene& s) {
             two_of_a(s);
             s.start(1, 11);
             s.start(2, 13);
         },
         [](scene& s) { s.b.collect(12); },
         {"due a 10 x2 at 12", "due b 11 at 12"},
         {}},
        {"a wake-up",
         [](scene& s) { s.start(0, 10); },
         [](scene& s) { s.b.wake(12); },
         {"due a 10 at 12", "started a 10"},
         {}},
        {"a wake-up for a wait that is on its way",
         [=](scene& s) {
             elsewhere(s);
             s.b.rearm(s.t[0], 20);
         },
         [](scene& s) { BOOST_CHECK_EQUAL(s.b.wake(20), s.asleep); }, // only a reader needs a unit
         {"due a 20 at 20"},
         {}},
        {"an expiry of a timer without waits",
         [=](scene& s) {
             two_of_a(s);
             s.b.cancel(s.t[0]);
         },
         [](scene& s) { s.b.collect(12); },
         {},
         {}},
        {"an expiry of one wait beside one that is due",
         [=](scene& s) {
             two_due(s);
             s.start(0, 20);
         },
         [](scene& s) { s.b.collect(20); },
         {"due a 20 at 20"},
         {}},
        {"a turn", two_due, [](scene& s) { s.b.run_unit(); }, {"started a 10"}, {}},
        {"the last turn",
         [](scene& s) {
             s.start(0, 10);
             s.b.collect(12);
         },
         [](scene& s) { s.b.run_unit(); },
         {"started a 10"},
         {}},
        {"a turn with what was cancelled",
         [=](scene& s) {
             two_due(s);
             s.b.cancel(s.t[0]);
         },
         [](scene& s) { s.b.run_unit(); },
         {},
         {}},
        {"a turn with what was pulled back",
         [=](scene& s) {
             two_due(s);
             s.b.rearm(s.t[0], 20);
         },
         [](scene& s) { s.b.run_unit(); },
         {},
         {}},
        {"a turn that hands over",
         [](scene& s) {
             s.start(0, 10, false);
             s.b.collect(12);
         },
         [](scene& s) { s.b.run_unit(); },
         {},
         {}},
        {"an arrival", elsewhere, [](scene& s) { s.b.arrive(0); }, {"started a 10"}, {}},
        {"an arrival in a unit", elsewhere, arrive, {"started a 10"}, {}},
        {"an arrival of what was cancelled",
         [=](scene& s) {
             elsewhere(s);
             s.b.cancel(s.t[0]);
         },
         [](scene& s) { s.b.arrive(0); },
         {},
         {}},
        {"an arrival of what was pulled back",
         [=](scene& s) {
             elsewhere(s);
             s.b.rearm(s.t[0], 20);
         },
         [](scene& s) { s.b.arrive(0); },
         {},
         {}},
        {"an arrival in a unit of what was pulled back",
         [=](scene& s) {
             elsewhere(s);
             s.b.rearm(s.t[0], 20);
         },
         arrive,
         {},
         {}},
        {"a carrier that is destroyed",
         elsewhere,
         [](scene& s) { s.b.abandon_carrier(0); },
         {"shut_down a 10"},
         {}},
        {"expire_all",
         [=](scene& s) {
             two_of_a(s);
             s.start(1, 5);
             s.b.collect(5);
         },
         [](scene& s) { s.b.expire_all(); },
         {"cancelled a 10 x2"},
         {}},
        {"the end",
         [=](scene& s) {
             two_of_a(s);
             s.start(1, 5);
             s.start(1, 5);
             s.b.collect(5);
             s.start(2, 6);
             s.b.collect(6);
             s.b.cancel(s.t[2]);
         },
         drained,
         {"shut_down b 5", "shut_down b 5", "shut_down a 10 x2"},
         {}},
        {"a move",
         [](scene& s) { s.start(0, 10); },
         [](scene& s) { s.b.move(s.t[0], s.t[2]); },
         {},
         {"named a is c"}},
        {"the end of a timer",
         [](scene& s) {
             s.start(0, 10);
             s.b.cancel(s.t[0]);
         },
         [](scene& s) { s.b.release(s.t[0]); },
         {},
         {"named a is gone"}},
    };
}

} // namespace

PAWL_TYPED_CASE(observers_are_told_of_each_act_what_they_ask_for, Backend, backends) {
    for (const auto& each : observed_acts<Backend>()) {
        for (const bool watched : {false, true}) {
            for (const bool named : {false, true}) {
                watched_shard<Backend> s;
                each.before(s);
                s.observe(watched, named);
                each.act(s);

                words expected = watched ? each.events : words();
                if (named)
                    expected.insert(expected.end(), each.names.begin(), each.names.end());
                BOOST_TEST_CONTEXT(each.name << (watched ? ", watched" : "")
                                             << (named ? ", named" : "")) {
                    BOOST_TEST(s.told == expected, boost::test_tools::per_element());
                    BOOST_CHECK_EQUAL(s.b.state().watched(), watched);
                }
            }
        }
    }
}

// The unit publishes what was noted, and then tells.
PAWL_TYPED_CASE(a_reader_that_sleeps_is_told_of_each_event_by_a_unit, Backend, backends) {
    for (const auto& each : observed_acts<Backend>()) {
        for (const bool asleep : {false, true}) {
            watched_shard<Backend> s;
            each.before(s);
            s.observe(true, false);
            s.asleep = asleep;
            each.act(s);

            BOOST_TEST_CONTEXT(each.name << (asleep ? ", asleep" : ", awake")) {
                const bool tells = asleep && !each.events.empty() && !s.b.closed();
                s.told.clear();
                BOOST_CHECK(!tells || (s.b.units() != 0 && s.b.state().turn_is_news()));
                BOOST_CHECK_EQUAL(s.begin_turn(40), tells);
                BOOST_CHECK(!s.begin_turn(41)); // once
                const words expected = tells ? words{"publish"} : words();
                BOOST_TEST(s.told == expected, boost::test_tools::per_element());
            }
        }
    }
}

// That of the observer's arrival, then that of a carrier's, or of the turn.
PAWL_TYPED_CASE(an_event_is_told_with_the_latest_time, Backend, backends) {
    watched_shard<Backend> s;
    s.observe(true, false);
    const auto noted_at = [&](std::uint64_t at, int past) {
        s.start(0, 10);
        return s.noted_at.tick == tick{at} && s.noted_at.past == std::chrono::nanoseconds(past);
    };

    BOOST_CHECK(noted_at(1, 2));
    s.b.state().now_is({tick{5}, std::chrono::nanoseconds(3)});
    BOOST_CHECK(noted_at(5, 3));
    BOOST_CHECK(!s.begin_turn(6));
    BOOST_CHECK(noted_at(6, 7));
}

// Then each expired wait starts at the time of its turn.
PAWL_TYPED_CASE(turns_count_until_the_last_expired_wait_starts, Backend, backends) {
    watched_shard<Backend> s;
    s.observe(true, false);
    for (const int timer : {0, 1, 1})
        s.start(timer, 10);
    BOOST_CHECK(!s.b.state().turn_is_news());

    s.b.collect(10);
    for (const bool more : {true, true, false}) {
        BOOST_CHECK(s.b.state().turn_is_news());
        (void)s.begin_turn(11);
        BOOST_CHECK_EQUAL(s.b.state().turn_is_news(), more);
        s.b.run_unit();
    }
}

PAWL_TYPED_CASE(turns_count_while_there_is_a_backlog, Backend, backends) {
    watched_shard<Backend> s(1);
    s.observe(true, false);
    for (const int timer : {0, 1, 2})
        s.start(timer, 10);

    s.b.collect(10);
    while (s.b.state().timers().counts().armed != 0) {
        (void)s.begin_turn(11);
        BOOST_CHECK(s.b.state().due_count() == 0 || s.b.state().turn_is_news());
        s.b.run_unit();
    }
}

PAWL_TYPED_CASE(turns_count_for_what_was_due_when_the_observer_came, Backend, backends) {
    for (const bool watched : {false, true}) {
        watched_shard<Backend> s;
        s.start(0, 10);
        s.observe(watched, true);
        BOOST_CHECK(!s.b.state().turn_is_news());
        s.b.collect(10);
        BOOST_CHECK_EQUAL(s.b.state().turn_is_news(), watched);
        s.observe(false, true);
        BOOST_CHECK(!s.b.state().turn_is_news());
        s.observe(watched, false);
        BOOST_CHECK_EQUAL(s.b.state().turn_is_news(), watched);
    }
}

PAWL_TYPED_CASE(a_reader_that_leaves_is_not_told_any_more, Backend, backends) {
    for (const bool leaves : {false, true}) {
        watched_shard<Backend> s;
        s.observe(true, false);
        s.asleep = true;
        s.start(0, 10);
        s.observe(!leaves, true);
        s.observe(true, false);

        BOOST_CHECK_EQUAL(s.begin_turn(1), !leaves);
    }
}
