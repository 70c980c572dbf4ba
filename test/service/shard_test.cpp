// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The shard without an io_context, on a wheel, on one that grows and on the slow ordered map: counts of
//   runners, P4, P6, P7, expire_all, growth, the end, and a long random walk beside a model of a few
//   lines.

#define BOOST_TEST_MODULE shard
#include <boost/test/unit_test.hpp>

#include "shard_bench.hpp"

#include "../support/ordered_map_backend.hpp"
#include "../support/seed.hpp"
#include "../support/typed_cases.hpp"

#include <pawl/ring_timer.hpp>
#include <pawl/time/growing_wheel.hpp>
#include <pawl/time/hierarchical_wheel.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace shard_bench;

/// Counts what it does to grow, and lets a test do something else meanwhile, as another thread would.
class growing : public counting_backend<pawl::time::growing_wheel> {
    using base = counting_backend<pawl::time::growing_wheel>;
    using wheel_room = pawl::time::growing_wheel::room;

public:
    using base::base;

    class counted_room {
    public:
        explicit counted_room(wheel_room r) : room_(std::move(r)) { rooms += room_ != nullptr; }
        counted_room(counted_room&&) = default;
        ~counted_room() { reset(); }
        void reset() {
            if (!room_)
                return;
            room_.reset();
            --rooms;
            meanwhile(freed);
        }

    private:
        friend growing;
        wheel_room room_;
    };

    class detached : public base::detached {
    public:
        explicit detached(const growing& b) : base::detached(b) { meanwhile(made_a_set); }
    };

    bool wants_to_grow() const noexcept {
        return base::wants_to_grow() || (may_grow() && size() >= early);
    }
    static counted_room make_room() {
        meanwhile(allocates);
        return counted_room(std::exchange(no_memory, false) ? nullptr : base::make_room());
    }
    void grow(counted_room to) noexcept {
        if (to.room_) {
            ++growths;
            --rooms;
            moved += size();
        }
        base::grow(std::move(to.room_));
    }

    static void forget() {
        rooms = growths = moved = 0;
        early = ~std::size_t{0};
        allocates = freed = made_a_set = nullptr;
        no_memory = false;
    }

    static inline std::size_t rooms = 0; ///< that are in no wheel
    static inline std::size_t growths = 0;
    static inline std::size_t moved = 0;               ///< timers
    static inline std::size_t early = ~std::size_t{0}; ///< so many are a crowd, too
    static inline bool no_memory = false;              ///< once
    static inline std::function<void()> allocates;     ///< called once
    static inline std::function<void()> freed;      ///< likewise: a room for which there is no use
    static inline std::function<void()> made_a_set; ///< likewise: what all timers may be moved to

private:
    static void meanwhile(std::function<void()>& what) {
        if (const auto f = std::exchange(what, nullptr))
            f();
    }
};

/// Lets another thread do something when a timer was filed anew, at the end of a step of set_back().
class interrupted : public counting_backend<pawl::time::hierarchical_wheel> {
    using base = counting_backend<pawl::time::hierarchical_wheel>;

public:
    using base::base;

    void refile(pawl::time::timer_node& node) noexcept {
        base::refile(node);
        if (const auto f = std::exchange(refiled, nullptr))
            f();
    }

    static inline std::function<void()> refiled; ///< called once
};

using wheel = counting_backend<pawl::time::hierarchical_wheel>;
using oracle = counting_backend<pawl_test::ordered_map_backend>;
using backends = pawl_test::types<wheel, growing, oracle>;

/// Timers with one wait each.
template <class Backend>
struct crowd {
    crowd(bench<Backend>& on, std::size_t n) : b(on) {
        for (std::size_t i = 0; i < n; ++i) {
            timers.emplace_back();
            waits.emplace_back();
        }
    }
    ~crowd() {
        for (timer_core& t : timers)
            b.release(t);
        b.run_all();
    }
    void start(std::uint64_t due) {
        for (std::size_t i = 0; i < timers.size(); ++i)
            b.start(timers[i], waits[i], due);
    }
    std::size_t completed() const {
        return static_cast<std::size_t>(std::count_if(
            waits.begin(), waits.end(), [](const test_wait& w) { return w.completed == 1; }));
    }

    bench<Backend>& b;
    std::deque<timer_core> timers; // addresses stay
    std::deque<test_wait> waits;
};

pawl::options with(unsigned batch, unsigned per_turn) {
    pawl::options o;
    o.batch_limit = batch;
    o.completions_per_turn = per_turn;
    return o;
}

} // namespace

// ---- runners (I1) ---------------------------------------------------------------------------------

PAWL_TYPED_CASE(I1_there_is_a_runner_for_each_due_wait_up_to_64, Backend, backends) {
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

PAWL_TYPED_CASE(I1_a_turn_completes_completions_per_turn_waits, Backend, backends) {
    for (const unsigned per_turn : {1u, 2u, 7u, 64u}) {
        for (const std::size_t n : {1u, 64u, 65u, 1000u}) {
            bench<Backend> b(with(2000, per_turn));
            crowd<Backend> c(b, n);
            c.start(10);

            b.collect(10);

            const std::size_t needed = (n + per_turn - 1) / per_turn;
            BOOST_CHECK_EQUAL(b.units(), std::min<std::size_t>(needed, 64));
            std::size_t units = 0;
            for (; b.units() != 0; ++units)
                BOOST_CHECK_LE(b.run_unit(), per_turn);
            BOOST_CHECK_EQUAL(c.completed(), n);
            // A unit that completes nothing may be left over where a turn ended exactly.
            BOOST_CHECK_LE(units, needed + 1);
        }
    }
}

// C30: the driver's own wake-up completes a lone wait; no further unit is needed.
PAWL_TYPED_CASE(C30_a_lone_expiry_is_one_unit, Backend, backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 1);
    c.start(5);

    BOOST_CHECK(b.wake(5));

    BOOST_CHECK_EQUAL(c.completed(), 1u);
    BOOST_CHECK_EQUAL(b.units(), 0u);
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

// One runner may complete two waits. What falls due while the last handler of its turn runs is not for it.
PAWL_TYPED_CASE(I1_what_falls_due_during_the_last_handler_of_a_turn_gets_a_unit, Backend,
                backends) {
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

// The first of its two segments is used up but for one entry when the second one is filled.
PAWL_TYPED_CASE(I1_there_is_room_for_each_wait_when_a_part_of_the_due_queue_is_used_up, Backend,
                backends) {
    bench<Backend> b(with(2000, 1));
    crowd<Backend> c(b, 600);
    crowd<Backend> next(b, 935);
    c.start(10);
    b.collect(10);
    for (int i = 0; i < 511; ++i)
        b.run_unit();

    next.start(20);
    b.collect(20);
    b.run_all();

    BOOST_CHECK_EQUAL(c.completed(), 600u);
    BOOST_CHECK_EQUAL(next.completed(), 935u);
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

// A jump of a day: every timer has to be moved from high levels, and comes out in order.
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
    BOOST_CHECK_EQUAL(b.state().armed_count(), 0u);
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

PAWL_TYPED_CASE(C11_cancel_counts_each_pending_wait_once, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    std::deque<test_wait> w(5);
    for (test_wait& each : w)
        b.start(t, each, 10);

    BOOST_CHECK_EQUAL(b.cancel(t, 1), 1u); // C12: the oldest
    b.run_all();
    BOOST_CHECK_EQUAL(w[0].completed, 1);
    BOOST_CHECK_EQUAL(b.cancel(t), 4u);
    BOOST_CHECK_EQUAL(b.cancel(t), 0u);
    b.run_all();

    BOOST_REQUIRE_EQUAL(b.log().size(), 5u);
    for (std::size_t i = 0; i < 5; ++i) {
        BOOST_CHECK(b.log()[i] == &w[i]); // FIFO
        BOOST_CHECK_EQUAL(w[i].told, aborted);
    }
    b.release(t);
}

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

PAWL_TYPED_CASE(P4_a_wait_that_was_handed_over_is_cancelled_until_it_arrives, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w(false);
    b.start(t, w, 10);
    b.wake(10);
    BOOST_REQUIRE_EQUAL(b.carriers().size(), 1u);

    BOOST_CHECK_EQUAL(b.cancel(t), 1u);
    BOOST_CHECK_EQUAL(b.cancel(t), 0u);
    BOOST_CHECK_EQUAL(b.state().due_count(), 0u);
    b.arrive(0);

    BOOST_CHECK_EQUAL(w.completed, 1);
    BOOST_CHECK_EQUAL(w.told, aborted);
    b.release(t);
}

PAWL_TYPED_CASE(P4_a_wait_whose_handler_runs_is_not_cancelled, Backend, backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 1);
    c.start(10);
    b.wake(10);
    BOOST_REQUIRE_EQUAL(c.waits[0].completed, 1);

    BOOST_CHECK_EQUAL(b.cancel(c.timers[0]), 0u);
    BOOST_CHECK_EQUAL(b.rearm(c.timers[0], 20), 0u);
}

PAWL_TYPED_CASE(P4_a_due_wait_that_is_pulled_back_leaves_one_entry_and_one_completion, Backend,
                backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 1);
    c.start(10);
    b.collect(10);

    BOOST_CHECK_EQUAL(b.rearm(c.timers[0], 20), 1u);
    BOOST_CHECK_EQUAL(b.state().armed_count(), 1u);
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

    BOOST_CHECK_EQUAL(b.run_all(), 0u); // the runner finds an entry that has been called off
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

PAWL_TYPED_CASE(I2_a_timer_that_goes_is_not_filed_any_more, Backend, backends) {
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

// I2: cancel leaves the timer filed; a new wait must be due at the new tick, be it earlier or later.
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

PAWL_TYPED_CASE(C31_a_slot_cancels_its_wait_only_in_every_state, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    std::deque<test_wait> w(3);
    std::deque<slot_link> links;
    for (test_wait& each : w) {
        links.emplace_back(b.host(), each);
        b.start(t, each, 10);
    }

    links[1](boost::asio::cancellation_type::terminal); // armed
    links[1](boost::asio::cancellation_type::terminal);
    b.run_all();
    b.collect(10);
    links[0](boost::asio::cancellation_type::total); // due
    b.run_all();
    links[2](boost::asio::cancellation_type::partial); // done

    BOOST_CHECK_EQUAL(b.log().size(), 3u);
    BOOST_CHECK_EQUAL(w[0].told, aborted);
    BOOST_CHECK_EQUAL(w[1].told, aborted);
    BOOST_CHECK_EQUAL(w[2].told, error_code());
    b.release(t);
}

PAWL_TYPED_CASE(P3_the_newest_wait_leaves_the_others_to_their_timer, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    std::deque<test_wait> w(2);
    slot_link link(b.host(), w[1]);
    b.start(t, w[0], 10);
    b.start(t, w[1], 10);

    link(boost::asio::cancellation_type::terminal);

    BOOST_REQUIRE(t.newest() == &w[0]);
    BOOST_CHECK_EQUAL(b.cancel(t), 1u);
    b.run_all();
    b.release(t);
}

PAWL_TYPED_CASE(C32_a_slot_finds_its_wait_after_the_timer_has_moved, Backend, backends) {
    bench<Backend> b;
    timer_core from;
    timer_core to;
    test_wait w;
    slot_link link(b.host(), w);
    b.start(from, w, 10);
    b.move(from, to);
    BOOST_REQUIRE(w.owner() == &to);

    link(boost::asio::cancellation_type::terminal);
    b.run_all();

    BOOST_CHECK_EQUAL(w.told, aborted);
    BOOST_CHECK_EQUAL(b.cancel(to), 0u);
    b.release(to);
}

// A cancel that is only noted in the due queue leaves the wait as it is: the slot would cancel it again.
PAWL_TYPED_CASE(C32_a_slot_finds_its_wait_cancelled_after_a_cancel, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w;
    slot_link link(b.host(), w);
    b.start(t, w, 10);

    BOOST_CHECK_EQUAL(b.cancel(t), 1u);

    BOOST_REQUIRE(w.state.phase() == wait_phase::cancelled);
    link(boost::asio::cancellation_type::terminal);
    b.run_all();
    BOOST_CHECK_EQUAL(w.completed, 1);
    b.release(t);
}

PAWL_TYPED_CASE(I5_a_slot_that_goes_last_is_the_last_user, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w;
    auto link = std::make_unique<slot_link>(b.host(), w);
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

// The later start is filed on a lower level than the earlier one, which is still far up.
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

// ---- the driver -----------------------------------------------------------------------------------

PAWL_TYPED_CASE(I3_the_driver_is_armed_for_the_earliest_wait_only, Backend, backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 3);

    b.start(c.timers[0], c.waits[0], 100);
    BOOST_CHECK(b.driver() == tick{100});
    b.start(c.timers[1], c.waits[1], 200);
    BOOST_CHECK(b.driver() == tick{100});
    b.start(c.timers[2], c.waits[2], 50);
    BOOST_CHECK(b.driver() == tick{50});
    b.rearm(c.timers[2], 300);
    BOOST_CHECK(b.driver() == tick{50}); // a stale wake-up instead of a system call
    b.rearm(c.timers[1], 20);
    BOOST_CHECK(b.driver() == tick{20});
}

PAWL_TYPED_CASE(P8_only_an_earlier_deadline_arms_the_driver, Backend, backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 3);
    b.start(c.timers[0], c.waits[0], 100);
    BOOST_REQUIRE_EQUAL(b.armings(), 1u);

    b.start(c.timers[1], c.waits[1], 100);
    b.start(c.timers[2], c.waits[2], 200);
    b.rearm(c.timers[2], 100);

    BOOST_CHECK_EQUAL(b.armings(), 1u);
}

// Runners see to it, and collect.
PAWL_TYPED_CASE(a_start_arms_the_driver_that_could_not_be_armed_before, Backend, backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 2);
    b.start(c.timers[0], c.waits[0], 100);
    b.state().arm_failed();

    b.start(c.timers[1], c.waits[1], 200);

    BOOST_CHECK_EQUAL(b.armings(), 2u);
}

PAWL_TYPED_CASE(P8_a_start_during_a_backlog_does_not_arm_the_driver, Backend, backends) {
    bench<Backend> b(with(1, 1));
    crowd<Backend> c(b, 3);
    crowd<Backend> overdue(b, 1);
    c.start(10);
    b.collect(10);
    const std::size_t armings = b.armings();

    overdue.start(5);

    BOOST_CHECK_EQUAL(b.armings(), armings);
    b.run_all();
    BOOST_CHECK_EQUAL(overdue.completed(), 1u);
}

namespace {

/// While there is one thread only, nobody needs to be told anything.
struct second_thread {
    std::promise<void> end;
    std::jthread thread{[wait = end.get_future()] { wait.wait(); }};

    ~second_thread() { end.set_value(); }
};

/// The context of a shard: what it counts, and where its thread is.
struct test_context final : pawl::detail::work_host {
    bool work_started() noexcept override {
        work += counts;
        return counts;
    }
    bool may_rest_here(bool counted) noexcept override { return !counted || in_unit; }
    bool driver_stays(bool counted) noexcept override { return counted && stays; }

    bool counts = true;
    bool in_unit = true;
    bool stays = true;
    int work = 0;
};

template <class Backend>
constexpr auto outside = pawl::detail::shard<Backend>::looker::outside;
template <class Backend>
constexpr auto runner = pawl::detail::shard<Backend>::looker::runner;

template <class Backend>
void start(bench<Backend>& b, timer_core& timer, wait_operation& op, std::uint64_t due,
           unsigned users = 1) {
    auto [open, todo] = b.state().start(timer, op, tick{due}, users);
    BOOST_REQUIRE(open);
    b.apply(todo, false);
}

} // namespace

PAWL_TYPED_CASE(P9_work_is_counted_from_the_first_start_to_the_unit_of_the_last_end, Backend,
                backends) {
    test_context context;
    bench<Backend> b({}, {}, &context);
    crowd<Backend> c(b, 2);
    BOOST_CHECK_EQUAL(context.work, 0);
    c.start(10);
    BOOST_CHECK_EQUAL(context.work, 1); // for the shard, not for each of them

    auto found = b.state().collect(tick{10}, 0, outside<Backend>);
    BOOST_CHECK(found.todo.runners);
    BOOST_CHECK(!found.todo.rest); // nothing is armed, but runners are claimed
    b.apply(found.todo, false);
    b.run_unit();
    BOOST_CHECK(b.state().busy());
    auto last = b.state().take(b.next_unit(), true, false);

    BOOST_CHECK(last.todo.rest && last.todo.give_back);
    BOOST_CHECK(!b.state().busy());
    BOOST_CHECK_EQUAL(context.work, 1); // it is the caller's to give back
    last.op->complete();
}

PAWL_TYPED_CASE(P9_the_driver_stays_set_when_the_last_wait_is_gone, Backend, backends) {
    for (const bool stays : {true, false}) {
        test_context context;
        context.stays = stays;
        bench<Backend> b({}, {}, &context);
        crowd<Backend> c(b, 1);
        c.start(100);
        b.cancel(c.timers[0]);
        b.run_all();
        BOOST_CHECK(!b.state().busy());
        const std::size_t armings = b.armings();

        test_wait later;
        b.start(c.timers[0], later, 200);
        BOOST_CHECK_EQUAL(b.armings() - armings, stays ? 0u : 1u);
        test_wait earlier;
        timer_core t;
        b.start(t, earlier, 50);
        BOOST_CHECK_EQUAL(b.armings() - armings, stays ? 1u : 2u);

        b.release(t);
        b.cancel(c.timers[0]);
        b.run_all();
        b.wake(50); // for nobody
        test_wait again;
        b.start(c.timers[0], again, 300);
        BOOST_CHECK_EQUAL(b.armings() - armings, stays ? 2u : 3u);
        b.cancel(c.timers[0]);
        b.run_all();
    }
}

// Elsewhere than in a unit the count of the context might become zero, and stop it.
PAWL_TYPED_CASE(P9_the_last_end_outside_a_unit_sends_one_to_give_the_work_back, Backend, backends) {
    const second_thread there_is;
    test_context context;
    bench<Backend> b({}, {}, &context);
    crowd<Backend> c(b, 1);
    c.start(10);
    context.in_unit = false;

    auto [withdrawn, todo] = b.state().withdraw(c.waits[0]);

    BOOST_CHECK(withdrawn);
    BOOST_CHECK(!todo.rest);
    BOOST_REQUIRE(todo.runners);
    BOOST_CHECK(!todo.runners->next);
    BOOST_CHECK(b.state().busy());
    b.apply(todo);
    context.in_unit = true;
    auto taken = b.state().take(b.next_unit(), true, false);
    BOOST_CHECK(!taken.op);
    BOOST_CHECK(taken.todo.rest && taken.todo.give_back);
    BOOST_CHECK(!b.state().busy());
}

PAWL_TYPED_CASE(P9_a_context_that_cannot_be_told_of_work_is_left_anywhere, Backend, backends) {
    const second_thread there_is;
    test_context context;
    context.counts = context.in_unit = false;
    bench<Backend> b({}, {}, &context);
    crowd<Backend> c(b, 2);
    b.start(c.timers[0], c.waits[0], 10);
    const std::size_t armings = b.armings();

    auto [withdrawn, todo] = b.state().withdraw(c.waits[0]);

    BOOST_CHECK(withdrawn);
    BOOST_CHECK(todo.rest && !todo.give_back && !todo.runners);
    BOOST_CHECK(!b.state().all_have_left()); // so that the context does not end meanwhile
    b.apply(todo);
    BOOST_CHECK(b.state().all_have_left());
    b.start(c.timers[1], c.waits[1], 20); // the driver was told to go
    BOOST_CHECK_EQUAL(b.armings(), armings + 1);
}

PAWL_TYPED_CASE(P9_a_context_that_becomes_known_counts_the_busy_shard_once, Backend, backends) {
    test_context context;
    context.counts = false;
    bench<Backend> b({}, {}, &context);
    crowd<Backend> c(b, 1);
    c.start(10);
    BOOST_CHECK_EQUAL(context.work, 0);

    context.counts = true;
    b.state().count_work();
    b.state().count_work();

    BOOST_CHECK_EQUAL(context.work, 1);
    b.collect(10);
    auto taken = b.state().take(b.next_unit(), true, false);
    BOOST_CHECK(taken.todo.give_back);
    taken.op->complete();
    b.state().count_work(); // quiet
    BOOST_CHECK_EQUAL(context.work, 1);
}

// Between the lock and the queueing nothing but the claimed runner keeps the context at work.
PAWL_TYPED_CASE(P9_a_shard_is_busy_while_a_cancel_has_yet_to_queue_its_runner, Backend, backends) {
    const second_thread there_is;
    test_context context;
    bench<Backend> b({}, {}, &context);
    crowd<Backend> c(b, 1);
    c.start(10);
    auto [count, held_up] = b.state().cancel(c.timers[0], 1);
    BOOST_REQUIRE_EQUAL(count, 1u);
    BOOST_REQUIRE(held_up.runners);
    BOOST_CHECK_EQUAL(b.state().armed_count(), 0u);
    BOOST_CHECK(!b.state().all_have_left());

    auto found = b.state().collect(tick{10}, 0, runner<Backend>); // the driver wakes up
    BOOST_CHECK(!found.claimed);                                  // no turn for it
    BOOST_CHECK(found.todo.empty());
    BOOST_CHECK(b.state().busy());

    b.apply(held_up, false);
    BOOST_CHECK(b.state().all_have_left());
    b.run_all();
    BOOST_CHECK_EQUAL(c.completed(), 1u);
    BOOST_CHECK(!b.state().busy());
}

// The driver has to be set before the context may do without what keeps it at work now.
PAWL_TYPED_CASE(P9_a_shard_is_busy_while_a_start_has_yet_to_set_the_driver, Backend, backends) {
    const second_thread there_is;
    for (const bool in_unit : {true, false}) {
        test_context context;
        bench<Backend> b({}, {}, &context);
        crowd<Backend> c(b, 1);
        auto [open, held_up] = b.state().start(c.timers[0], c.waits[0], tick{10}, true);
        BOOST_REQUIRE(open && held_up.arm && held_up.pinned);
        b.hold_up(true);
        b.cancel(c.timers[0]); // by another thread; and its unit runs
        b.run_all();
        BOOST_CHECK_EQUAL(c.completed(), 1u);
        BOOST_CHECK(b.state().busy());
        BOOST_CHECK(!b.state().all_have_left());

        context.in_unit = in_unit;
        const auto end = b.state().unpin();

        BOOST_CHECK_EQUAL(end.rest, in_unit);
        BOOST_CHECK_EQUAL(end.runners != nullptr, !in_unit);
        BOOST_CHECK_EQUAL(b.state().busy(), !in_unit);
        context.in_unit = true;
        b.hold_up(false);
        b.apply(end, false);
        b.run_all();
        BOOST_CHECK(!b.state().busy());
        BOOST_CHECK(b.state().all_have_left());
        (void)b.state().release(c.timers[0]);
    }
}

// A thread that is pinned in one shard sets the driver for all; no other one need be.
PAWL_TYPED_CASE(P9_who_looks_at_the_clock_outside_a_unit_is_pinned, Backend, backends) {
    const second_thread there_is;
    using looker = typename pawl::detail::shard<Backend>::looker;
    bench<Backend> b;
    crowd<Backend> c(b, 1);
    c.start(100);

    BOOST_CHECK(!b.state().collect(tick{10}, 0, looker::runner).todo.pinned);
    BOOST_CHECK(!b.state().collect(tick{11}, 0, looker::covered).todo.pinned);
    auto found = b.state().collect(tick{12}, 0, looker::outside);
    BOOST_CHECK(found.todo.arm && found.todo.pinned);
    b.apply(found.todo);
    BOOST_CHECK(b.state().all_have_left());
}

PAWL_TYPED_CASE(P9_a_runner_that_meets_a_pulled_back_wait_leaves_the_shard_busy, Backend,
                backends) {
    const second_thread there_is;
    test_context context;
    bench<Backend> b({}, {}, &context);
    crowd<Backend> c(b, 1);
    c.start(10);
    b.collect(10);
    BOOST_REQUIRE_EQUAL(b.units(), 1u);
    BOOST_REQUIRE(!b.driver());
    auto [count, refused, held_up] = b.state().rearm(c.timers[0], tick{30});
    BOOST_REQUIRE_EQUAL(count, 1u);
    BOOST_REQUIRE(held_up.arm && held_up.pinned);

    BOOST_CHECK(!b.state().take(b.next_unit(), true, false).op);

    BOOST_CHECK(b.state().busy());
    BOOST_CHECK_EQUAL(c.completed(), 0u);
    b.apply(held_up);
    b.collect(30);
    b.run_all();
    BOOST_CHECK_EQUAL(c.completed(), 1u);
}

PAWL_TYPED_CASE(P9_a_wait_that_is_pulled_back_from_its_carrier_makes_the_shard_busy, Backend,
                backends) {
    test_context context;
    bench<Backend> b({}, {}, &context);
    timer_core t;
    test_wait w(false);
    b.start(t, w, 10);
    b.wake(10);
    BOOST_REQUIRE_EQUAL(b.carriers().size(), 1u);
    BOOST_CHECK(!b.state().busy()); // the carrier is somebody else's work

    BOOST_CHECK_EQUAL(b.rearm(t, 30), 1u);
    BOOST_CHECK(b.state().busy());

    b.arrive(0);
    BOOST_CHECK(b.state().busy());
    b.wake(30);
    b.arrive(0);
    BOOST_CHECK_EQUAL(w.completed, 1);
    BOOST_CHECK(!b.state().busy());
    b.release(t);
}

PAWL_TYPED_CASE(a_start_beside_one_whose_driver_fails_arms_the_driver_itself, Backend, backends) {
    const second_thread there_is;
    bench<Backend> b;
    crowd<Backend> c(b, 2);
    const auto failing = b.state().start(c.timers[0], c.waits[0], tick{10}, true);
    BOOST_REQUIRE(failing.todo.arm && failing.todo.pinned);
    const auto beside = b.state().start(c.timers[1], c.waits[1], tick{20}, true);

    BOOST_CHECK(beside.todo.arm && beside.todo.pinned); // does not rely on the first
    BOOST_CHECK(b.state().withdraw(c.timers[0], c.waits[0]).value);
    b.state().arm_failed();
    BOOST_CHECK(b.state().unpin().empty()); // the other one is armed
    BOOST_CHECK(b.state().unpin().empty());

    test_wait third;
    timer_core timer;
    auto next = b.state().start(timer, third, tick{30}, true);
    BOOST_CHECK(next.todo.arm);
    b.apply(next.todo, false);
    b.collect(40);
    b.run_all();
    BOOST_CHECK_EQUAL(c.waits[0].completed, 0);
    BOOST_CHECK_EQUAL(c.waits[1].completed, 1);
    BOOST_CHECK_EQUAL(third.completed, 1);
    (void)b.state().release(timer);
    (void)b.state().release(c.timers[0]);
    (void)b.state().release(c.timers[1]);
}

PAWL_TYPED_CASE(a_start_whose_driver_fails_is_withdrawn_without_a_trace, Backend, backends) {
    const second_thread there_is;
    test_context context;
    bench<Backend> b({}, {}, &context);
    timer_core t;
    test_wait w;
    const auto unheeded = b.state().start(t, w, tick{10}, true);
    BOOST_REQUIRE(unheeded.todo.arm);

    auto [withdrawn, todo] = b.state().withdraw(t, w);
    BOOST_CHECK(withdrawn && todo.empty()); // it is pinned
    b.state().arm_failed();
    const auto end = b.state().unpin();
    BOOST_CHECK(end.rest && !end.runners);
    b.apply(end);

    BOOST_CHECK_EQUAL(b.state().armed_count(), 0u);
    BOOST_CHECK_EQUAL(b.cancel(t), 0u);
    b.collect(10);
    BOOST_CHECK_EQUAL(w.completed, 0);
    (void)b.state().release(t);
}

PAWL_TYPED_CASE(a_start_whose_driver_fails_gives_work_back_where_nobody_is_pinned, Backend,
                backends) {
    test_context context;
    pawl::options o;
    o.locking = false; // as in a process of one thread
    bench<Backend> b(o, {}, &context);
    timer_core t;
    test_wait w;
    const auto unheeded = b.state().start(t, w, tick{10}, true);
    BOOST_REQUIRE(unheeded.todo.arm && !unheeded.todo.pinned);
    BOOST_REQUIRE(b.state().busy());

    b.state().arm_failed();
    auto [withdrawn, todo] = b.state().withdraw(t, w);
    BOOST_CHECK(withdrawn);
    BOOST_CHECK(todo.rest && todo.give_back && !todo.runners);
    b.apply(todo);

    BOOST_CHECK(!b.state().busy());
    (void)b.state().release(t);
}

// ---- waits that are part of a larger object -----------------------------------------------------------

namespace {

struct held_test_wait final : wait_operation {
    held_test_wait()
        : wait_operation([](wait_operation&, action, wait_host*) {}, true, kind::held) {}
};

/// Not inlined: where g++ 12 sees the object's size, it warns of a cast to a slotted_wait that this
/// kind of wait never reaches (-Warray-bounds).
[[gnu::noinline]] std::unique_ptr<held_test_wait> make_held_test_wait() {
    return std::make_unique<held_test_wait>();
}

} // namespace

PAWL_TYPED_CASE(an_armed_wait_is_withdrawn_without_a_word, Backend, backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 2);
    c.start(10);

    auto [withdrawn, todo] = b.state().withdraw(c.waits[0]);
    BOOST_CHECK(withdrawn);
    BOOST_CHECK(todo.empty()); // another one is armed
    b.apply(todo);
    b.collect(10);
    b.run_all();

    BOOST_CHECK_EQUAL(c.waits[0].completed + c.waits[0].destroyed, 0);
    BOOST_CHECK_EQUAL(c.waits[1].completed, 1);
}

PAWL_TYPED_CASE(P9_the_last_withdrawal_in_a_unit_gives_the_work_back_and_queues_nothing, Backend,
                backends) {
    const second_thread there_is;
    test_context context;
    bench<Backend> b({}, {}, &context);
    crowd<Backend> c(b, 3);
    b.start(c.timers[0], c.waits[0], 10);
    b.start(c.timers[1], c.waits[1], 10);

    auto first = b.state().withdraw(c.waits[0]);
    BOOST_CHECK(first.value);
    BOOST_CHECK(first.todo.empty());

    auto last = b.state().withdraw(c.waits[1]);
    BOOST_CHECK(last.value);
    BOOST_CHECK(!last.todo.runners);
    BOOST_CHECK(last.todo.rest && last.todo.give_back);
    BOOST_CHECK(!b.state().busy());

    b.start(c.timers[2], c.waits[2], 10);
    BOOST_CHECK_EQUAL(context.work,
                      2); // counted anew, whether the other was given back by now or not
    BOOST_CHECK_EQUAL(b.units(), 0u);
}

PAWL_TYPED_CASE(a_wait_with_a_carrier_is_cancelled_instead_and_its_carrier_comes, Backend,
                backends) {
    for (const bool pulled_back : {false, true}) {
        bench<Backend> b;
        crowd<Backend> c(b, 1);
        c.start(10);
        b.collect(10);
        if (pulled_back)
            BOOST_REQUIRE_EQUAL(b.rearm(c.timers[0], 20), 1u);

        const auto withdraw = [&] {
            auto [withdrawn, todo] = b.state().withdraw(c.waits[0]);
            b.apply(todo);
            return withdrawn;
        };
        BOOST_CHECK(!withdraw());
        BOOST_CHECK(!withdraw());

        BOOST_CHECK_EQUAL(b.state().armed_count(), 0u);
        b.run_all();
        BOOST_CHECK_EQUAL(c.waits[0].completed, 1);
        BOOST_CHECK(c.waits[0].told == aborted);
        BOOST_CHECK(!withdraw()); // it is over
    }
}

PAWL_TYPED_CASE(a_wait_whose_carrier_has_gone_elsewhere_is_not_withdrawn, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w(false);
    b.start(t, w, 10);
    b.collect(10);
    b.run_all();
    BOOST_REQUIRE_EQUAL(b.carriers().size(), 1u);

    auto [withdrawn, todo] = b.state().withdraw(w);
    BOOST_CHECK(!withdrawn);
    b.apply(todo);
    BOOST_CHECK_EQUAL(w.completed, 0);
    b.arrive(0);

    BOOST_CHECK_EQUAL(w.completed, 1);
    BOOST_CHECK(w.told == aborted);
    b.release(t);
}

// Somebody points at it besides the timer, so that the due queue's entry cannot say it all.
PAWL_TYPED_CASE(a_held_wait_knows_at_once_that_its_timer_was_cancelled, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    const auto owner = make_held_test_wait();
    held_test_wait& w = *owner;
    b.start(t, w, 10);
    BOOST_CHECK(w.observed());
    auto [count, cancelled] = b.state().cancel(t, 1);
    BOOST_CHECK_EQUAL(count, 1u);

    BOOST_CHECK(w.state.phase() == wait_phase::cancelled);
    BOOST_CHECK(!b.state().withdraw(w).value);

    BOOST_CHECK(w.result() == aborted);
    BOOST_CHECK(b.state().take(cancelled.runners, true, false).op == &w);
    (void)b.state().release(t);
}

PAWL_TYPED_CASE(a_timer_leaves_together_with_its_wait, Backend, backends) {
    for (const bool due : {false, true}) {
        bench<Backend> b;
        timer_core t;
        test_wait w;
        start(b, t, w, 10);
        if (due)
            b.apply(b.state().collect(tick{10}, 0, outside<Backend>).todo, false);

        auto [left, todo] = b.state().leave(t, w);
        BOOST_CHECK_EQUAL(left, !due);
        BOOST_CHECK(!todo.last); // the service is one
        BOOST_CHECK(!t.filed());
        BOOST_CHECK(!t.newest());
        b.apply(todo);
        b.run_all();
        BOOST_CHECK_EQUAL(w.completed, due ? 1 : 0);
        BOOST_CHECK(!due || w.told == aborted);
    }
}

PAWL_TYPED_CASE(I5_a_timer_that_leaves_after_the_service_is_the_last_user, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w;
    start(b, t, w, 10);
    b.close();
    BOOST_CHECK(!b.release_service());

    auto [left, todo] = b.state().leave(t, w);
    BOOST_CHECK(left);
    BOOST_CHECK(todo.last);
    BOOST_CHECK(!todo.runners); // nobody would run it
    BOOST_CHECK(b.state().all_have_left());
}

PAWL_TYPED_CASE(I5_a_limit_that_ends_after_its_timer_and_the_service_is_the_last_user, Backend,
                backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w;
    start(b, t, w, 10, 2);
    b.cancel(t);
    b.run_all();
    BOOST_CHECK(!b.state().release(t).last);
    BOOST_CHECK(!b.release_service());

    auto [withdrawn, todo] = b.state().withdraw(w, true);
    BOOST_CHECK(!withdrawn); // it is over
    BOOST_CHECK(todo.last);
    BOOST_CHECK(!todo.runners);
    BOOST_CHECK(b.state().all_have_left());
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

// ---- moves ----------------------------------------------------------------------------------------

PAWL_TYPED_CASE(P1_a_time_that_was_read_before_a_set_back_expires_nothing, Backend, backends) {
    bench<Backend> b({}, tick{100});
    crowd<Backend> c(b, 1);
    const unsigned before = b.state().seen().set_backs;
    // Another thread reads 250 here, and is held up. Meanwhile the clock is set back.
    b.state().set_back(tick{50});
    b.collect(50);
    c.start(120);

    auto found = b.state().collect(tick{250}, before, outside<Backend>);
    BOOST_CHECK_EQUAL(found.fallen_due, 0u);

    BOOST_CHECK(found.todo.arm); // it looks at the clock again
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

// ---- expire_all -----------------------------------------------------------------------------------

PAWL_TYPED_CASE(P10_expire_all_completes_every_armed_wait_with_its_code, Backend, backends) {
    bench<Backend> b(with(16, 1));
    crowd<Backend> c(b, 100);
    for (std::size_t i = 0; i < 100; ++i)
        b.start(c.timers[i], c.waits[i], i < 10 ? 5 : 1000 * i);
    b.collect(5); // ten are due already and keep their own result
    b.cancel(c.timers[99]);

    BOOST_CHECK_EQUAL(b.expire_all(boost::asio::error::shut_down), 89u);
    BOOST_CHECK_EQUAL(b.expire_all(boost::asio::error::shut_down), 0u);
    b.run_all();

    BOOST_CHECK_EQUAL(c.completed(), 100u);
    for (std::size_t i = 0; i < 100; ++i)
        BOOST_CHECK_EQUAL(c.waits[i].told, i < 10    ? error_code()
                                           : i == 99 ? aborted
                                                     : error_code(boost::asio::error::shut_down));
    BOOST_CHECK(!b.state().busy());
}

PAWL_TYPED_CASE(P10_a_due_wait_keeps_its_result_although_its_timer_has_an_armed_one, Backend,
                backends) {
    bench<Backend> b;
    timer_core t;
    std::deque<test_wait> w(2);
    b.start(t, w[0], 10);
    b.collect(10);
    b.start(t, w[1], 20);

    BOOST_CHECK_EQUAL(b.expire_all(boost::asio::error::shut_down), 1u);
    b.run_all();

    BOOST_CHECK_EQUAL(w[0].told, error_code());
    BOOST_CHECK_EQUAL(w[1].told, error_code(boost::asio::error::shut_down));
    b.release(t);
}

PAWL_TYPED_CASE(P6_P10_expire_all_detaches_in_one_step_and_ends_waits_in_batches, Backend,
                backends) {
    constexpr unsigned batch = 16;
    bench<Backend> b(with(batch, 1));
    crowd<Backend> c(b, 1000);
    for (std::size_t i = 0; i < 1000; ++i)
        b.start(c.timers[i], c.waits[i], 1000 * i + 1);
    test_wait later;
    timer_core newcomer;

    std::size_t holds = 0;
    std::size_t due = 0;
    const std::size_t count =
        b.state().expire_all(boost::asio::error::shut_down, [&](const commitment& out) {
            const std::size_t now_due = b.state().due_count();
            BOOST_CHECK_LE(now_due - due, batch);
            due = now_due;
            b.apply(out, false);
            if (++holds != 1)
                return;
            // All others are out of the wheel already.
            BOOST_CHECK_EQUAL(b.state().armed_count(), 1000 - batch);
            BOOST_CHECK(b.state().next_wake() == tick::never());
            b.start(newcomer, later, 77);
            BOOST_CHECK(b.state().next_wake() == tick{77});
        });

    BOOST_CHECK_EQUAL(count, 1000U);
    BOOST_CHECK_GE(holds, 1000 / batch);
    b.run_all();
    BOOST_CHECK_EQUAL(c.completed(), 1000U);
    BOOST_CHECK_EQUAL(later.completed, 0);
    b.wake(77);
    BOOST_CHECK_EQUAL(later.completed, 1);
    BOOST_CHECK(!later.told);
    b.release(newcomer);
}

// One thread files timers anew, one in each step, while another one ends all: the second timer is filed
// when the first has been taken, and behind the back of that thread. No lock: the one would keep it.
BOOST_AUTO_TEST_CASE(P10_expire_all_ends_what_a_set_back_files_meanwhile) {
    pawl::options o = with(1, 1);
    o.locking = false;
    bench<interrupted> b(o, tick{10'000});
    crowd<interrupted> c(b, 3);
    c.start(20'000);
    std::promise<void> filed_one;
    std::promise<void> taken_one;
    interrupted::refiled = [&] {
        filed_one.set_value();
        taken_one.get_future().wait();
    };
    std::thread other([&] { b.state().set_back(tick{5'000}); });
    filed_one.get_future().wait();

    const std::size_t count =
        b.state().expire_all(boost::asio::error::shut_down, [&](const commitment& out) {
            if (other.joinable()) {
                taken_one.set_value();
                other.join();
            }
            b.apply(out, false);
        });
    b.run_all();

    BOOST_CHECK_EQUAL(count, 3u);
    BOOST_CHECK_EQUAL(c.completed(), 3u);
    BOOST_CHECK_EQUAL(b.state().armed_count(), 0u);
}

PAWL_TYPED_CASE(P10_waits_that_never_end_are_expired_as_well, Backend, backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 3);
    c.start(tick::never().count());

    BOOST_CHECK_EQUAL(b.expire_all(), 3u);
    b.run_all();

    BOOST_CHECK_EQUAL(c.completed(), 3u);
}

PAWL_TYPED_CASE(a_timer_is_used_again_after_expire_all, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    std::deque<test_wait> w(2);
    b.start(t, w[0], 10);
    b.expire_all();
    b.run_all();

    b.start(t, w[1], 20);
    b.wake(20);

    BOOST_CHECK(w[0].completed == 1 && w[1].completed == 1);
    b.release(t);
}

// ---- the end --------------------------------------------------------------------------------------

namespace {
template <class Backend>
std::size_t drain(bench<Backend>& b, const std::function<void(test_wait&)>& each = {}) {
    std::size_t count = 0;
    const auto end = [&](wait_operation* op) {
        while (op) {
            auto& w = static_cast<test_wait&>(*std::exchange(op, op->next));
            w.destroy();
            ++count;
            if (each)
                each(w);
        }
    };
    while (b.state().drain(end)) {
    }
    return count;
}
} // namespace

PAWL_TYPED_CASE(P3_draining_finds_each_wait_once_in_whatever_state, Backend, backends) {
    bench<Backend> b(with(8, 1));
    crowd<Backend> c(b, 60);
    for (std::size_t i = 0; i < 60; ++i)
        b.start(c.timers[i], c.waits[i], i < 20 ? 5 : 10 * i);
    b.collect(5);                         // 8 are due, 12 are backlog
    b.rearm(c.timers[0], 900);            // pulled back
    for (std::size_t i = 50; i < 60; ++i) // cancelled
        b.cancel(c.timers[i]);

    b.close();

    BOOST_CHECK_EQUAL(drain(b), 60u);
    for (const test_wait& w : c.waits)
        BOOST_CHECK(w.destroyed == 1 && w.completed == 0);
}

PAWL_TYPED_CASE(a_closed_shard_starts_and_moves_nothing, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w;
    b.close();

    BOOST_CHECK(!b.start(t, w, 10));

    BOOST_CHECK_EQUAL(b.rearm(t, 20), 0u);
    BOOST_CHECK_EQUAL(b.cancel(t), 0u);
    BOOST_CHECK(!b.state().drain([](wait_operation* op) { BOOST_CHECK(!op); }));
    BOOST_CHECK(b.state().begin_draining());
    BOOST_CHECK(!b.state().begin_draining());
    BOOST_CHECK(b.state().end_draining() == &w); // it is for whoever drains to destroy
    BOOST_CHECK(!b.state().end_draining());
    BOOST_CHECK(b.state().begin_draining());
}

PAWL_TYPED_CASE(a_closed_shard_moves_no_wait_that_it_has, Backend, backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 1);
    c.start(10);
    b.close();

    BOOST_CHECK_EQUAL(b.rearm(c.timers[0], 20), 0u);
}

// Handlers own other timers, whose destructors cancel waits that have not been drained yet.
PAWL_TYPED_CASE(waits_that_are_cancelled_while_others_drain_are_drained_as_well, Backend,
                backends) {
    bench<Backend> b(with(4, 1));
    crowd<Backend> c(b, 100);
    c.start(10);
    b.close();
    std::size_t next = 99;

    const std::size_t drained = drain(b, [&](test_wait&) {
        if (next > 50)
            b.release(c.timers[next--]);
    });

    BOOST_CHECK_EQUAL(drained, 100u);
    for (const test_wait& w : c.waits)
        BOOST_CHECK_EQUAL(w.destroyed, 1);
}

// P6: timers that are still filed although their waits are gone count, too.
PAWL_TYPED_CASE(P6_no_call_of_drain_looks_at_more_than_batch_limit_timers, Backend, backends) {
    bench<Backend> b(with(16, 1));
    crowd<Backend> c(b, 1000);
    c.start(10);
    for (std::size_t i = 0; i < 999; ++i)
        b.cancel(c.timers[i]);
    b.run_all();
    b.close();

    std::size_t most = 0;
    Backend::handled = 0;
    const auto end = [&](wait_operation* op) {
        most = std::max(most, std::exchange(Backend::handled, 0));
        while (op)
            std::exchange(op, op->next)->destroy();
    };
    while (b.state().drain(end)) {
    }

    BOOST_CHECK_LE(most, 17u);
}

PAWL_TYPED_CASE(I5_the_last_user_is_told_to_delete_the_shard, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w(false);
    b.start(t, w, 10);
    b.wake(10);
    b.close();

    BOOST_CHECK(!b.release_service());
    BOOST_CHECK(!b.release(t)); // the carrier is still on its way
    auto [owned, todo] = b.state().arrive(w);
    BOOST_CHECK(owned);

    BOOST_CHECK(todo.last);
}

// ---- growth ---------------------------------------------------------------------------------------

namespace {

constexpr std::size_t crowded = growing::crowd;

/// A bench on a wheel that grows, and timers that come one by one. With a second thread whoever calls
/// the shard while it holds its lock waits for himself, until ctest ends the test.
struct growth_scene {
    explicit growth_scene(const pawl::options& o = {}, tick now = {}) : b(o, now) {
        growing::forget();
    }
    ~growth_scene() {
        growing::forget();
        for (timer_core& t : timers)
            b.release(t);
        b.run_all();
    }

    void start(std::uint64_t due) {
        const std::size_t i = timers.size();
        timers.emplace_back();
        waits.emplace_back();
        dues.push_back(due);
        if (b.start(timers[i], waits[i], due))
            started.push_back(i); // after those that it was interrupted by
    }
    void start(std::size_t count, std::uint64_t due) {
        for (; count != 0; --count)
            start(due);
    }

    /// What has not ended completes when it is due, in order of that and of the starts.
    void expect_order(std::uint64_t last) {
        std::erase_if(started, [&](std::size_t i) { return waits[i].completed != 0; });
        std::vector<std::pair<std::uint64_t, std::size_t>> order; // due, number of the start
        for (const std::size_t i : started)
            order.emplace_back(dues[i], order.size());
        std::sort(order.begin(), order.end());
        const std::size_t before = b.log().size();
        b.collect(last);
        b.run_all();
        BOOST_REQUIRE_EQUAL(b.log().size() - before, started.size());
        for (std::size_t i = 0; i < started.size(); ++i) {
            const test_wait& w = waits[started[order[i].second]];
            BOOST_REQUIRE(b.log()[before + i] == &w);
            BOOST_REQUIRE(w.completed == 1 && !w.told);
        }
        BOOST_CHECK_EQUAL(b.state().armed_count(), 0u);
        BOOST_CHECK_EQUAL(growing::rooms, 0u);
    }

    const second_thread there_is;
    bench<growing> b;
    std::deque<timer_core> timers;
    std::deque<test_wait> waits;
    std::vector<std::uint64_t> dues;
    std::vector<std::size_t> started; ///< in this order
};

} // namespace

BOOST_AUTO_TEST_CASE(P6_a_crowd_of_256_timers_moves_once_in_one_step) {
    growth_scene s;
    s.start(crowded, 100);
    BOOST_CHECK_EQUAL(growing::growths, 0u);

    s.start(200);
    BOOST_CHECK_EQUAL(growing::growths, 1u);
    BOOST_CHECK_EQUAL(growing::moved, 256u);
    s.start(300, 300);

    BOOST_CHECK_EQUAL(growing::growths, 1u);
    s.expect_order(300);
}

// More came together while it could not grow: as many as that may not be moved at once.
BOOST_AUTO_TEST_CASE(P6_a_crowd_that_has_become_too_large_moves_when_it_is_smaller) {
    growth_scene s(with(16, 1));
    s.start(crowded, 100);
    (void)s.b.state().expire_all({}, [&](const commitment& out) {
        s.b.apply(out, false);
        if (s.timers.size() == crowded)
            s.start(growing::most_moved + 50, 200);
    });
    s.b.run_all();

    s.start(100, 300);
    BOOST_CHECK_EQUAL(growing::growths, 0u);
    for (std::size_t i = crowded; i < crowded + 200; ++i)
        s.b.release(s.timers[i]);
    s.start(200, 400);

    BOOST_CHECK_EQUAL(growing::growths, 1u);
    BOOST_CHECK_LE(growing::moved, 1024u);
    s.b.run_all();
    s.expect_order(400);
}

// Deadlines near and far; of the near ones many share a tick.
BOOST_AUTO_TEST_CASE(P7_waits_from_before_and_after_growth_complete_in_order) {
    std::mt19937_64 random(pawl_test::seed());
    for (const std::uint64_t span : {1u, 40u, 5'000u, 100'000'000u}) {
        for (const unsigned batch : {7u, 256u}) {
            growth_scene s(with(batch, 1), tick{1'000});
            while (s.waits.size() < crowded + 100)
                s.start(1'001 + random() % span);
            BOOST_CHECK_EQUAL(growing::growths, 1u);
            s.expect_order(1'001 + span);
        }
    }
}

// Waits of a tick are due, others of the same are backlog, and more come.
BOOST_AUTO_TEST_CASE(P7_growth_in_the_middle_of_a_backlog_keeps_the_order) {
    for (const unsigned batch : {1u, 7u, 50u}) {
        growth_scene s(with(batch, 1));
        for (std::size_t i = 0; i < crowded; ++i)
            s.start(300 + 200 * (i % 3));
        s.b.collect(600);
        BOOST_REQUIRE_LE(s.b.state().due_count(), batch);
        while (growing::growths == 0 && s.waits.size() < 2 * crowded)
            s.start(500);

        BOOST_CHECK_EQUAL(growing::growths, 1u);
        s.start(10, 500);
        s.expect_order(700);
    }
}

BOOST_AUTO_TEST_CASE(P4_waits_from_before_growth_are_cancelled_and_moved_and_so_are_their_timers) {
    constexpr std::size_t n = 300;
    growth_scene s;
    s.start(n, 1'000);
    BOOST_REQUIRE_EQUAL(growing::growths, 1u);
    std::deque<timer_core> elsewhere;
    for (std::size_t i = 0; i < n; i += 3) {
        BOOST_CHECK_EQUAL(s.b.cancel(s.timers[i]), 1u);
        BOOST_CHECK_EQUAL(s.b.rearm(s.timers[i + 1], i % 2 == 0 ? 500 : 2'000), 1u);
        s.b.move(s.timers[i + 2], elsewhere.emplace_back());
    }
    for (const std::uint64_t now : {500u, 1'000u, 2'000u}) {
        s.b.collect(now);
        s.b.run_all();
    }

    for (std::size_t i = 0; i < n; ++i) {
        const test_wait& w = s.waits[i];
        BOOST_REQUIRE_EQUAL(w.completed, 1);
        BOOST_REQUIRE_EQUAL(w.told == aborted, i % 3 == 0);
        if (i % 3 == 1)
            BOOST_REQUIRE(w.completed_at == tick{i % 2 == 1 ? 500u : 2'000u});
        else if (i % 3 == 2)
            BOOST_REQUIRE(w.completed_at == tick{1'000});
    }
    for (timer_core& t : elsewhere)
        s.b.release(t);
}

BOOST_AUTO_TEST_CASE(P5_P8_growth_allocates_with_the_lock_released) {
    growth_scene s;
    s.start(crowded, 100);
    std::size_t seen = 0;
    growing::allocates = [&] { seen = s.b.state().armed_count(); };

    s.start(100);

    BOOST_CHECK_EQUAL(seen, crowded);
    BOOST_CHECK_EQUAL(growing::growths, 1u);
    s.expect_order(100);
}

BOOST_AUTO_TEST_CASE(P5_P8_room_is_freed_with_the_lock_released_if_another_start_was_quicker) {
    growth_scene s;
    s.start(crowded, 100);
    growing::allocates = [&] { s.start(100); };
    std::size_t seen = 0;
    growing::freed = [&] {
        BOOST_CHECK_EQUAL(growing::growths, 1u);
        seen = s.b.state().armed_count();
        s.start(100); // takes the lock as well
    };

    s.start(100);

    BOOST_CHECK_EQUAL(seen, crowded + 1);
    BOOST_CHECK_EQUAL(growing::growths, 1u);
    BOOST_CHECK_EQUAL(growing::rooms, 0u);
    s.expect_order(100);
}

BOOST_AUTO_TEST_CASE(room_is_freed_if_the_crowd_has_gone_meanwhile_and_another_crowd_gets_it) {
    growth_scene s;
    s.start(crowded, 100);
    growing::allocates = [&] {
        for (std::size_t i = 0; i < 10; ++i)
            s.b.release(s.timers[i]);
    };

    s.start(100);
    BOOST_CHECK_EQUAL(growing::growths, 0u);
    BOOST_CHECK_EQUAL(growing::rooms, 0u);
    s.start(10, 100);

    BOOST_CHECK_EQUAL(growing::growths, 1u);
    s.b.run_all();
    s.expect_order(100);
}

// While a start allocates for growth, others take the room for the waits that it has found.
BOOST_AUTO_TEST_CASE(a_start_that_has_grown_the_wheel_looks_for_room_for_its_wait_again) {
    growth_scene s;
    s.start(crowded, 100);
    std::deque<test_wait> others(pawl::detail::due_queue::length - crowded);
    growing::allocates = [&] {
        for (test_wait& each : others)
            s.b.start(s.timers[0], each, 100);
    };

    s.start(100);
    for (int turn = 0; turn != 8; ++turn) // more than one batch at one tick is ordered before
        s.b.collect(100);

    BOOST_CHECK_EQUAL(s.b.state().due_count(), pawl::detail::due_queue::length + 1);
    BOOST_CHECK_EQUAL(s.b.run_all(), pawl::detail::due_queue::length + 1);
    for (const test_wait& each : others)
        BOOST_REQUIRE_EQUAL(each.completed, 1);
    for (const test_wait& each : s.waits)
        BOOST_REQUIRE_EQUAL(each.completed, 1);
}

BOOST_AUTO_TEST_CASE(without_memory_to_grow_it_goes_on_and_tries_again_with_one_timer_more) {
    growth_scene s;
    s.start(crowded, 100);

    for (std::size_t again = 1; again <= 3; ++again) {
        growing::no_memory = true;
        s.start(100);

        BOOST_CHECK(!growing::no_memory); // was tried
        BOOST_CHECK_EQUAL(growing::growths, 0u);
        BOOST_CHECK_EQUAL(s.b.state().armed_count(), crowded + again);
    }
    s.b.release(s.timers.front());
    growing::no_memory = true;
    s.start(100);
    BOOST_CHECK(growing::no_memory); // there are no more than the last time
    growing::no_memory = false;

    s.start(100);
    BOOST_CHECK_EQUAL(growing::growths, 1u);
    BOOST_CHECK_EQUAL(growing::moved, crowded + 3);
    s.start(10, 100);
    s.b.run_all();
    s.expect_order(100);
}

BOOST_AUTO_TEST_CASE(P10_expire_all_ends_a_crowd_that_grows_when_it_has_begun) {
    growth_scene s(with(16, 1));
    s.start(crowded, 1'000);
    growing::made_a_set = [&] { s.start(50, 1'000); };

    BOOST_CHECK_EQUAL(s.b.expire_all(boost::asio::error::shut_down), crowded + 50);
    s.b.run_all();

    BOOST_CHECK_EQUAL(growing::growths, 1u);
    for (const test_wait& w : s.waits)
        BOOST_REQUIRE(w.completed == 1 && w.told == boost::asio::error::shut_down);
    s.start(50, 2'000);
    s.expect_order(2'000);
}

// What expire_all has detached belongs to the wheel that it was in.
BOOST_AUTO_TEST_CASE(P10_a_crowd_that_comes_during_expire_all_waits_in_the_wheel_and_grows_later) {
    for (const std::size_t before : {std::size_t{100}, crowded + 100}) {
        growth_scene s(with(16, 1));
        s.start(before, 1'000);
        const std::size_t growths = before > crowded ? 1 : 0;
        BOOST_REQUIRE_EQUAL(growing::growths, growths);
        std::vector<std::size_t> detached; // in the midst of it
        const std::size_t ended =
            s.b.state().expire_all(boost::asio::error::shut_down, [&](const commitment& out) {
                s.b.apply(out, false);
                if (s.waits.size() != before)
                    return;
                for (std::size_t i = 0; i < before; ++i)
                    if (s.timers[i].newest())
                        detached.push_back(i);
                BOOST_REQUIRE_GE(detached.size(), before - 16);
                s.start(crowded + 10, 2'000);
                BOOST_CHECK_EQUAL(growing::growths, growths);
                BOOST_CHECK_EQUAL(s.b.cancel(s.timers[detached[0]]), 1u);
                BOOST_CHECK_EQUAL(s.b.rearm(s.timers[detached[1]], 2'500), 1u);
            });
        BOOST_CHECK_EQUAL(ended, before - 2);
        s.b.run_all();
        s.dues[detached[1]] = 2'500;

        s.start(2'000);
        BOOST_CHECK_EQUAL(growing::growths, 1u);
        s.expect_order(2'500);
    }
}

BOOST_AUTO_TEST_CASE(room_that_came_while_expire_all_drains_is_freed) {
    growth_scene s(with(16, 1));
    s.start(crowded, 1'000);
    std::promise<void> begun;
    std::promise<void> go_on;
    std::jthread other;
    growing::allocates = [&] {
        other = std::jthread([&] {
            bool first = true;
            (void)s.b.state().expire_all(boost::asio::error::shut_down, [&](const commitment& out) {
                s.b.apply(out, false);
                if (!std::exchange(first, false))
                    return;
                begun.set_value();
                go_on.get_future().wait();
            });
        });
        begun.get_future().wait();
    };

    s.start(2'000);

    BOOST_CHECK_EQUAL(growing::growths, 0u);
    BOOST_CHECK_EQUAL(growing::rooms, 0u);
    go_on.set_value();
    other.join();
    s.b.run_all();
    for (std::size_t i = 0; i < crowded; ++i)
        BOOST_REQUIRE(s.waits[i].told == boost::asio::error::shut_down);
    s.expect_order(2'000);
}

BOOST_AUTO_TEST_CASE(
    P1_P7_a_crowd_keeps_its_order_if_the_clock_is_set_back_before_or_after_growth) {
    for (const std::size_t before : {crowded - 1, crowded, crowded + 100}) {
        for (const bool grows_meanwhile : {false, true}) {
            growth_scene s(with(8, 1), tick{10'000});
            for (std::size_t i = 0; i < before; ++i)
                s.start(20'000 + i % 3);
            if (grows_meanwhile)
                growing::made_a_set = [&] { s.start(50, 20'001); };

            s.b.state().set_back(tick{5'000});

            BOOST_CHECK(s.b.state().seen().now == tick{5'000});
            s.b.collect(5'000);
            s.start(50, 20'001);
            BOOST_CHECK_EQUAL(growing::growths, 1u);
            s.b.collect(19'999);
            BOOST_CHECK(s.b.log().empty());
            s.expect_order(20'002);
        }
    }
}

BOOST_AUTO_TEST_CASE(P3_draining_finds_a_crowd_that_has_grown) {
    growth_scene s(with(8, 1));
    s.start(crowded + 100, 1'000);
    BOOST_REQUIRE_EQUAL(growing::growths, 1u);
    s.b.close();

    BOOST_CHECK_EQUAL(drain(s.b), crowded + 100);

    for (const test_wait& w : s.waits)
        BOOST_REQUIRE(w.destroyed == 1 && w.completed == 0);
}

BOOST_AUTO_TEST_CASE(a_closed_shard_does_not_grow) {
    for (const bool closed_meanwhile : {false, true}) {
        growth_scene s;
        s.start(crowded, 1'000);
        bool allocated = false;
        growing::allocates = [&] {
            allocated = true;
            s.b.close();
        };
        if (!closed_meanwhile)
            s.b.close();

        s.start(1'000);

        BOOST_CHECK_EQUAL(allocated, closed_meanwhile);
        BOOST_CHECK_EQUAL(s.started.size(), crowded);
        BOOST_CHECK_EQUAL(growing::rooms, 0u);
        BOOST_CHECK_EQUAL(drain(s.b), crowded);
        BOOST_CHECK(s.b.state().begin_draining());
        BOOST_CHECK(s.b.state().end_draining() == &s.waits.back());
    }
}

// ---- a random walk beside a model ---------------------------------------------------------------------

namespace {

/// What the walk knows of one wait.
struct modelled {
    test_wait wait;
    std::unique_ptr<slot_link> link;
    std::uint64_t due = 0;
    bool cancelled = false;

    explicit modelled(bool direct) : wait(direct) {}
    bool over() const { return wait.completed + wait.destroyed != 0; }
};

template <class Backend>
class walk {
public:
    walk(std::uint64_t seed, const pawl::options& o) : random_(seed), b_(o, tick{1000}) {
        for (std::size_t i = 0; i < timers; ++i) {
            cores_.push_back(std::make_unique<timer_core>());
            due_.push_back(1000);
            pending_.emplace_back();
        }
    }

    void step() {
        const std::size_t t = pick(timers);
        switch (pick(14)) {
        case 0:
        case 1:
        case 2:
            start(t);
            break;
        case 3:
            expect(t, b_.cancel(*cores_[t]), all, "cancel");
            break;
        case 4:
            expect(t, b_.cancel(*cores_[t], 1), 1, "cancel_one");
            break;
        case 5:
        case 6:
            rearm(t);
            break;
        case 7:
            slot(t);
            break;
        case 8:
            b_.collect(now() + pick(20));
            break;
        case 9:
            b_.wake(now() + (pick(8) == 0 ? pick(100'000) : pick(5)));
            break;
        case 10:
            move(t);
            break;
        case 11:
            if (b_.units() != 0)
                b_.run_unit();
            break;
        case 12:
            if (!b_.carriers().empty())
                b_.arrive(pick(b_.carriers().size()));
            break;
        case 13:
            if (pick(20) == 0)
                destroy(t);
            else if (pick(200) == 0)
                rest();
            break;
        }
        settle();
    }

    void finish() {
        for (std::size_t i = 0; i < timers; ++i)
            destroy(i);
        while (b_.units() != 0 || !b_.carriers().empty()) {
            if (b_.units() != 0)
                b_.run_unit();
            else
                b_.arrive(0);
        }
        settle();
        BOOST_CHECK(loose_.empty());
        BOOST_CHECK_EQUAL(b_.state().armed_count(), 0u);
        BOOST_CHECK(!b_.state().busy());
    }

    std::size_t completed = 0;

private:
    static constexpr std::size_t timers = 12;
    static constexpr std::size_t all = ~std::size_t{0};

    std::size_t pick(std::size_t n) { return random_() % n; }
    std::uint64_t now() const { return b_.now().count(); }
    std::uint64_t deadline() {
        return now() - std::min<std::uint64_t>(now(), 3) + (pick(4) == 0 ? pick(50'000) : pick(40));
    }

    void start(std::size_t t) {
        if (pending_[t].empty())
            due_[t] = deadline(); // as expires_at() before async_wait()
        auto m = std::make_unique<modelled>(pick(3) != 0);
        m->due = due_[t];
        if (pick(2) == 0)
            m->link = std::make_unique<slot_link>(b_.host(), m->wait);
        BOOST_REQUIRE(b_.start(*cores_[t], m->wait, due_[t]));
        pending_[t].push_back(std::move(m));
    }
    /// The oldest `limit` waits of timer t must have been cancelled.
    void expect(std::size_t t, std::size_t count, std::size_t limit, const char* what) {
        const std::size_t n = std::min(limit, pending_[t].size());
        BOOST_REQUIRE_MESSAGE(count == n, what << ": " << count << " instead of " << n);
        for (std::size_t i = 0; i < n; ++i) {
            pending_[t].front()->cancelled = true;
            loose_.push_back(std::move(pending_[t].front()));
            pending_[t].pop_front();
        }
    }
    void rearm(std::size_t t) {
        const std::uint64_t due = deadline();
        const std::size_t count = b_.rearm(*cores_[t], due);
        BOOST_REQUIRE_EQUAL(count, pending_[t].size());
        due_[t] = due;
        for (auto& m : pending_[t])
            m->due = due;
    }
    void slot(std::size_t t) {
        if (pending_[t].empty())
            return;
        const std::size_t i = pick(pending_[t].size());
        auto& m = pending_[t][i];
        if (!m->link)
            return;
        if (pick(4) == 0) {
            m->link.reset(); // the signal is destroyed
            return;
        }
        (*m->link)(boost::asio::cancellation_type::terminal);
        m->cancelled = true;
        loose_.push_back(std::move(m));
        pending_[t].erase(pending_[t].begin() + static_cast<std::ptrdiff_t>(i));
    }
    void move(std::size_t t) {
        auto to = std::make_unique<timer_core>();
        b_.move(*cores_[t], *to);
        cores_[t] = std::move(to);
    }
    void destroy(std::size_t t) {
        const std::size_t n = pending_[t].size();
        b_.release(*cores_[t]);
        cores_[t] = std::make_unique<timer_core>();
        expect(t, n, all, "destroy");
    }
    /// Nobody does anything but the units, the carriers and the driver: all waits complete.
    void rest() {
        for (;;) {
            if (b_.units() != 0)
                b_.run_unit();
            else if (!b_.carriers().empty())
                b_.arrive(0);
            else if (b_.driver())
                b_.wake(b_.driver()->count());
            else
                break;
            settle();
        }
        for (const auto& list : pending_)
            BOOST_REQUIRE_MESSAGE(list.empty(), "a wait was forgotten");
        BOOST_REQUIRE(loose_.empty());
    }
    /// Checks what has completed, and forgets it.
    void settle() {
        const auto check = [&](const std::unique_ptr<modelled>& m) {
            if (!m->over())
                return false;
            BOOST_REQUIRE_EQUAL(m->wait.completed, 1);
            BOOST_REQUIRE_EQUAL(m->wait.told == aborted, m->cancelled);
            if (!m->cancelled)
                BOOST_REQUIRE_LE(m->due, m->wait.completed_at.count()); // P1
            ++completed;
            return true;
        };
        for (auto& list : pending_)
            std::erase_if(list, check);
        std::erase_if(loose_, check);
    }

    std::mt19937_64 random_;
    bench<Backend> b_;
    std::vector<std::unique_ptr<timer_core>> cores_;
    std::vector<std::uint64_t> due_;
    std::vector<std::deque<std::unique_ptr<modelled>>> pending_;
    std::deque<std::unique_ptr<modelled>> loose_; // cancelled, not yet completed
};

} // namespace

PAWL_TYPED_CASE(P1_P3_P4_hold_on_a_random_walk, Backend, backends) {
    const std::uint64_t seed = pawl_test::seed();
    for (const auto& [batch, per_turn] :
         {std::pair(256u, 1u), std::pair(2u, 1u), std::pair(1u, 64u), std::pair(5u, 3u)}) {
        walk<Backend> w(seed + batch, with(batch, per_turn));
        for (std::uint64_t n = pawl_test::steps(40'000); n != 0; --n)
            w.step();
        w.finish();
        BOOST_CHECK_GT(w.completed, 0u);
    }
}

// The first timers of each walk are a crowd.
BOOST_AUTO_TEST_CASE(P1_P3_P4_hold_on_random_walks_during_which_the_wheel_grows) {
    const std::uint64_t seed = pawl_test::seed();
    growing::forget();
    std::size_t walks = 0;
    for (std::uint64_t n = pawl_test::steps(40'000) / 200; n != 0; --n, ++walks) {
        growing::early = n % 7;
        walk<growing> w(seed + n, with(n % 2 == 0 ? 2 : 256, n % 3 == 0 ? 3 : 1));
        for (int i = 0; i < 200; ++i)
            w.step();
        w.finish();
        BOOST_CHECK_GT(w.completed, 0u);
    }
    BOOST_CHECK_GT(growing::growths, walks / 2);
    growing::forget();
}
