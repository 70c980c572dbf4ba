// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The shard without an io_context, on a wheel, on one that grows and on the slow ordered map:
//   when the driver is armed (P2, P8), what keeps the context running (P9), waits that are
//   withdrawn, and how all waits end at once (P10).

#define BOOST_TEST_MODULE shard_work
#include <boost/test/unit_test.hpp>

#include "shard_scenes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <initializer_list>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

using namespace shard_bench;

// ---- the driver -----------------------------------------------------------------------------------

PAWL_TYPED_CASE(the_driver_is_armed_for_the_earliest_wait_only, Backend, backends) {
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

// Runners arm it, and collect.
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

/// The context of a shard: its count of work, and whether the thread is in a unit.
struct test_context final : pawl::detail::work_context {
    bool work_started() noexcept override {
        work += counts;
        return counts;
    }
    bool may_go_quiet_here(bool counted) noexcept override { return !counted || in_unit; }
    bool driver_stays(bool counted) noexcept override { return counted && stays; }

    bool counts = true;
    bool in_unit = true;
    bool stays = true;
    int work = 0;
};

template <class Backend>
void start(bench<Backend>& b, timer_core& timer, wait_operation& op, std::uint64_t due,
           unsigned users = 1) {
    auto [begun, todo] = b.state().start(timer, op, tick{due}, users);
    BOOST_REQUIRE(begun == pawl::detail::admission::started);
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
    BOOST_CHECK_EQUAL(context.work, 1); // for the shard, not for each wait

    auto found = b.state().collect(tick{10}, 0, outside<Backend>);
    BOOST_CHECK(found.todo.runners);
    BOOST_CHECK(!goes_quiet(found.todo)); // no wait is armed, but runners are claimed
    b.apply(found.todo, false);
    b.run_unit();
    BOOST_CHECK(b.state().busy());
    auto last = b.state().take(b.next_unit(), true, false);

    BOOST_CHECK(last.todo.after == sequel::give_back);
    BOOST_CHECK(!b.state().busy());
    BOOST_CHECK_EQUAL(context.work, 1); // the caller gives it back
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
        b.wake(50); // for no wait
        test_wait again;
        b.start(c.timers[0], again, 300);
        BOOST_CHECK_EQUAL(b.armings() - armings, stays ? 2u : 3u);
        b.cancel(c.timers[0]);
        b.run_all();
    }
}

// Outside a unit the count of the context might become zero, which stops it.
PAWL_TYPED_CASE(P9_the_last_end_outside_a_unit_sends_one_to_give_the_work_back, Backend, backends) {
    const second_thread there_is;
    test_context context;
    bench<Backend> b({}, {}, &context);
    crowd<Backend> c(b, 1);
    c.start(10);
    context.in_unit = false;

    auto [withdrawn, todo] = b.withdraw(c.waits[0]);

    BOOST_CHECK(withdrawn);
    BOOST_CHECK(!goes_quiet(todo));
    BOOST_REQUIRE(todo.runners);
    BOOST_CHECK(!todo.runners->next);
    BOOST_CHECK(b.state().busy());
    BOOST_CHECK(!b.state().errands_done()); // so that the context does not end in the meantime
    b.apply(todo);
    BOOST_CHECK(b.state().errands_done());
    context.in_unit = true;
    auto taken = b.state().take(b.next_unit(), true, false);
    BOOST_CHECK(!taken.op);
    BOOST_CHECK(taken.todo.after == sequel::give_back);
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

    auto [withdrawn, todo] = b.withdraw(c.waits[0]);

    BOOST_CHECK(withdrawn);
    BOOST_CHECK(todo.after == sequel::go_quiet && !todo.runners);
    BOOST_CHECK(!b.state().errands_done()); // so that the context does not end in the meantime
    b.apply(todo);
    BOOST_CHECK(b.state().errands_done());
    b.start(c.timers[1], c.waits[1], 20); // a thread was told to set the driver
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
    BOOST_CHECK(taken.todo.after == sequel::give_back);
    taken.op->complete();
    b.state().count_work(); // the shard is quiet
    BOOST_CHECK_EQUAL(context.work, 1);
}

// Between the lock and the queueing, only the claimed runner keeps the context running.
PAWL_TYPED_CASE(P9_a_shard_is_busy_while_a_cancel_has_yet_to_queue_its_runner, Backend, backends) {
    const second_thread there_is;
    test_context context;
    bench<Backend> b({}, {}, &context);
    crowd<Backend> c(b, 1);
    c.start(10);
    auto [count, held_up] = b.state().cancel(c.timers[0], 1);
    BOOST_REQUIRE_EQUAL(count, 1u);
    BOOST_REQUIRE(held_up.runners);
    BOOST_CHECK_EQUAL(b.state().timers().counts().armed, 0u);
    BOOST_CHECK(!b.state().errands_done());

    auto found = b.state().collect(tick{10}, 0, candidate<Backend>); // the driver wakes up
    BOOST_CHECK(!found.claimed);                                     // no turn for it
    BOOST_CHECK(found.todo.empty());
    BOOST_CHECK(b.state().busy());

    b.apply(held_up, false);
    BOOST_CHECK(b.state().errands_done());
    b.run_all();
    BOOST_CHECK_EQUAL(c.completed(), 1u);
    BOOST_CHECK(!b.state().busy());
}

// The driver must be set before the context may lose the work that keeps it running now.
PAWL_TYPED_CASE(P9_a_shard_is_busy_while_a_start_has_yet_to_set_the_driver, Backend, backends) {
    const second_thread there_is;
    for (const bool in_unit : {true, false}) {
        test_context context;
        bench<Backend> b({}, {}, &context);
        crowd<Backend> c(b, 1);
        auto [begun, held_up] = b.state().start(c.timers[0], c.waits[0], tick{10}, true);
        BOOST_REQUIRE(begun == pawl::detail::admission::started);
        BOOST_REQUIRE(held_up.arm && held_up.after == sequel::unpin);
        b.hold_up(true);
        b.cancel(c.timers[0]); // by another thread, whose unit runs
        b.run_all();
        BOOST_CHECK_EQUAL(c.completed(), 1u);
        BOOST_CHECK(b.state().busy());
        BOOST_CHECK(!b.state().errands_done());

        context.in_unit = in_unit;
        const auto end = b.state().unpin();

        BOOST_CHECK_EQUAL(goes_quiet(end), in_unit);
        BOOST_CHECK_EQUAL(end.runners != nullptr, !in_unit);
        BOOST_CHECK_EQUAL(b.state().busy(), !in_unit);
        context.in_unit = true;
        b.hold_up(false);
        b.apply(end, false);
        b.run_all();
        BOOST_CHECK(!b.state().busy());
        BOOST_CHECK(b.state().errands_done());
        (void)b.state().leave(c.timers[0]);
    }
}

// A thread that is pinned in one shard sets the driver for all shards; no other thread has to.
PAWL_TYPED_CASE(P9_who_looks_at_the_clock_outside_a_unit_is_pinned, Backend, backends) {
    const second_thread there_is;
    using collector = typename pawl::detail::shard<Backend>::collector;
    bench<Backend> b;
    crowd<Backend> c(b, 1);
    c.start(100);

    BOOST_CHECK(b.state().collect(tick{10}, 0, collector::candidate).todo.after != sequel::unpin);
    BOOST_CHECK(b.state().collect(tick{11}, 0, collector::covered).todo.after != sequel::unpin);
    auto found = b.state().collect(tick{12}, 0, collector::outside);
    BOOST_CHECK(found.todo.arm && found.todo.after == sequel::unpin);
    b.apply(found.todo);
    BOOST_CHECK(b.state().errands_done());
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
    BOOST_REQUIRE(held_up.arm && held_up.after == sequel::unpin);

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
    BOOST_CHECK(!b.state().busy()); // the carrier is work of another executor

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
    pawl::detail::wait_ledger::trial trial;
    const auto failing = b.state().start_on_trial(c.timers[0], c.waits[0], tick{10}, true, trial);
    BOOST_REQUIRE(failing.todo.arm && failing.todo.after == sequel::unpin);
    const auto beside = b.state().start(c.timers[1], c.waits[1], tick{20}, true);

    BOOST_CHECK(beside.todo.arm &&
                beside.todo.after == sequel::unpin); // does not rely on the first thread
    BOOST_CHECK(b.state().take_back(trial).value);
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
    (void)b.state().leave(timer);
    (void)b.state().leave(c.timers[0]);
    (void)b.state().leave(c.timers[1]);
}

PAWL_TYPED_CASE(a_start_whose_driver_fails_is_withdrawn_without_a_trace, Backend, backends) {
    const second_thread there_is;
    test_context context;
    bench<Backend> b({}, {}, &context);
    timer_core t;
    test_wait w;
    pawl::detail::wait_ledger::trial trial;
    const auto unheeded = b.state().start_on_trial(t, w, tick{10}, true, trial);
    BOOST_REQUIRE(unheeded.todo.arm);

    auto [withdrawn, todo] = b.state().take_back(trial);
    BOOST_CHECK(withdrawn && todo.empty()); // it is pinned
    b.state().arm_failed();
    const auto end = b.state().unpin();
    BOOST_CHECK(goes_quiet(end) && !end.runners);
    b.apply(end);

    BOOST_CHECK_EQUAL(b.state().timers().counts().armed, 0u);
    BOOST_CHECK_EQUAL(b.cancel(t), 0u);
    b.collect(10);
    BOOST_CHECK_EQUAL(w.completed, 0);
    (void)b.state().leave(t);
}

// Another thread reads flags of such a wait without the lock, while its start ends the trial. The
// flag of the trial is in the same byte.
PAWL_TYPED_CASE(a_wait_that_is_handed_over_is_on_trial_no_more, Backend, backends) {
    const second_thread there_is;
    bench<Backend> b;
    timer_core t;
    test_wait w(false);
    pawl::detail::wait_ledger::trial trial;
    const auto started = b.state().start_on_trial(t, w, tick{10}, true, trial);
    BOOST_REQUIRE(started.todo.arm && w.on_trial());

    b.collect(10);
    b.run_all();
    BOOST_REQUIRE_EQUAL(b.carriers().size(), 1u);
    BOOST_CHECK(!w.on_trial());
    const auto [withdrawn, todo] = b.state().take_back(trial);
    BOOST_CHECK(!withdrawn && todo.empty());
    b.apply(b.state().unpin());

    b.arrive_in_unit(0);
    BOOST_CHECK_EQUAL(w.completed, 1);
    (void)b.state().leave(t);
}

PAWL_TYPED_CASE(a_start_whose_driver_fails_gives_work_back_where_nobody_is_pinned, Backend,
                backends) {
    test_context context;
    pawl::options o;
    o.locking = false; // as in a process of one thread
    bench<Backend> b(o, {}, &context);
    timer_core t;
    test_wait w;
    pawl::detail::wait_ledger::trial trial;
    const auto unheeded = b.state().start_on_trial(t, w, tick{10}, true, trial);
    BOOST_REQUIRE(unheeded.todo.arm && unheeded.todo.after != sequel::unpin);
    BOOST_REQUIRE(b.state().busy());

    b.state().arm_failed();
    auto [withdrawn, todo] = b.state().take_back(trial);
    BOOST_CHECK(withdrawn);
    BOOST_CHECK(todo.after == sequel::give_back && !todo.runners);
    b.apply(todo);

    BOOST_CHECK(!b.state().busy());
    (void)b.state().leave(t);
}

// ---- waits that are part of a larger object -----------------------------------------------------------

namespace {

struct held_test_wait final : wait_operation {
    held_test_wait()
        : wait_operation([](wait_operation&, action, wait_arbiter*) {}, true, kind::embedded) {}
};

/// Not inlined: if g++ 12 sees the object's size, it warns of a cast to a slotted_wait that this
/// kind of wait never reaches (-Warray-bounds).
[[gnu::noinline]] std::unique_ptr<held_test_wait> make_held_test_wait() {
    return std::make_unique<held_test_wait>();
}

} // namespace

PAWL_TYPED_CASE(an_armed_wait_is_withdrawn_without_a_word, Backend, backends) {
    bench<Backend> b;
    crowd<Backend> c(b, 2);
    c.start(10);

    auto [withdrawn, todo] = b.withdraw(c.waits[0]);
    BOOST_CHECK(withdrawn);
    BOOST_CHECK(todo.empty()); // another wait is armed
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

    auto first = b.withdraw(c.waits[0]);
    BOOST_CHECK(first.value);
    BOOST_CHECK(first.todo.empty());

    auto last = b.withdraw(c.waits[1]);
    BOOST_CHECK(last.value);
    BOOST_CHECK(!last.todo.runners);
    BOOST_CHECK(last.todo.after == sequel::give_back);
    BOOST_CHECK(!b.state().busy());

    b.start(c.timers[2], c.waits[2], 10);
    BOOST_CHECK_EQUAL(context.work,
                      2); // counted again, even if the other one has been given back by now
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
            auto [withdrawn, todo] = b.withdraw(c.waits[0]);
            b.apply(todo);
            return withdrawn;
        };
        BOOST_CHECK(!withdraw());
        BOOST_CHECK(!withdraw());

        BOOST_CHECK_EQUAL(b.state().timers().counts().armed, 0u);
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

    auto [withdrawn, todo] = b.withdraw(w);
    BOOST_CHECK(!withdrawn);
    b.apply(todo);
    BOOST_CHECK_EQUAL(w.completed, 0);
    b.arrive(0);

    BOOST_CHECK_EQUAL(w.completed, 1);
    BOOST_CHECK(w.told == aborted);
    b.release(t);
}

// An object besides the timer points at it, so the due queue's entry cannot hold the whole result.
PAWL_TYPED_CASE(an_embedded_wait_knows_at_once_that_its_timer_was_cancelled, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    const auto owner = make_held_test_wait();
    held_test_wait& w = *owner;
    b.start(t, w, 10);
    BOOST_CHECK(w.shared());
    auto [count, cancelled] = b.state().cancel(t, 1);
    BOOST_CHECK_EQUAL(count, 1u);

    BOOST_CHECK(w.state.phase() == wait_phase::cancelled);
    BOOST_CHECK(!b.withdraw(w).value);

    BOOST_CHECK(w.result() == aborted);
    BOOST_CHECK(b.state().take(cancelled.runners, true, false).op == &w);
    (void)b.state().leave(t);
}

PAWL_TYPED_CASE(a_timer_leaves_together_with_its_wait, Backend, backends) {
    for (const bool due : {false, true}) {
        bench<Backend> b;
        timer_core t;
        test_wait w;
        start(b, t, w, 10);
        if (due)
            b.apply(b.state().collect(tick{10}, 0, outside<Backend>).todo, false);

        auto [left, todo] = b.state().template withdraw<parting::timer>(&t, w);
        BOOST_CHECK_EQUAL(left, !due);
        BOOST_CHECK(todo.after != sequel::destroy); // the service is still a user
        BOOST_CHECK(!t.filed());
        BOOST_CHECK(!t.newest());
        b.apply(todo);
        b.run_all();
        BOOST_CHECK_EQUAL(w.completed, due ? 1 : 0);
        BOOST_CHECK(!due || w.told == aborted);
    }
}

PAWL_TYPED_CASE(a_timer_that_leaves_after_the_service_is_the_last_user, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w;
    start(b, t, w, 10);
    b.close();
    BOOST_CHECK(!b.release_service());

    auto [left, todo] = b.state().template withdraw<parting::timer>(&t, w);
    BOOST_CHECK(left);
    BOOST_CHECK(todo.after == sequel::destroy);
    BOOST_CHECK(!todo.runners); // it would never run
    BOOST_CHECK(b.state().errands_done());
}

PAWL_TYPED_CASE(a_limit_that_ends_after_its_timer_and_the_service_is_the_last_user, Backend,
                backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w;
    start(b, t, w, 10, 2);
    b.cancel(t);
    b.run_all();
    BOOST_CHECK(b.state().leave(t).after != sequel::destroy);
    BOOST_CHECK(!b.release_service());

    auto [withdrawn, todo] = b.state().template withdraw<parting::limit>(nullptr, w);
    BOOST_CHECK(!withdrawn); // it is over
    BOOST_CHECK(todo.after == sequel::destroy);
    BOOST_CHECK(!todo.runners);
    BOOST_CHECK(b.state().errands_done());
}

// ---- expire_all -----------------------------------------------------------------------------------

namespace {

/// Lets another thread intervene when a timer was refiled, at the end of a step of set_back().
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

} // namespace

PAWL_TYPED_CASE(P10_expire_all_completes_every_armed_wait_with_its_code, Backend, backends) {
    bench<Backend> b(with(16, 1));
    crowd<Backend> c(b, 100);
    for (std::size_t i = 0; i < 100; ++i)
        b.start(c.timers[i], c.waits[i], i < 10 ? 5 : 1000 * i);
    b.collect(5); // ten are already due and keep their own result
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
            // All others are already out of the wheel.
            BOOST_CHECK_EQUAL(b.state().timers().counts().armed, 1000 - batch);
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

// The slots of the detached timers and those of the wheel are in use at the same time, nearly all
// of them.
PAWL_TYPED_CASE(P10_what_is_moved_while_expire_all_ends_waits_is_filed_anew, Backend, backends) {
    bench<Backend> b(with(16, 1));
    const auto due = [](std::uint64_t i) { return (i % 63 + 1) << (6 * (i / 126)); };
    crowd<Backend> c(b, std::size_t{9} * 126);
    for (std::size_t i = 0; i < c.timers.size(); ++i)
        b.start(c.timers[i], c.waits[i], due(i));
    std::vector<std::size_t> moved;

    const std::size_t ended =
        b.state().expire_all(boost::asio::error::shut_down, [&](const commitment& out) {
            b.apply(out, false);
            if (!moved.empty())
                return;
            for (std::size_t i = 0; i < c.timers.size(); ++i)
                if (i % 126 < 63 && b.rearm(c.timers[i], due(i)) != 0)
                    moved.push_back(i);
        });

    BOOST_CHECK_GE(moved.size(), 9U * 63 - 16);
    BOOST_CHECK_EQUAL(ended + moved.size(), c.timers.size());
    b.run_all();
    BOOST_CHECK_EQUAL(c.completed(), ended);
    b.wake(due(c.timers.size() - 1));
    b.run_all();
    BOOST_CHECK_EQUAL(c.completed(), c.timers.size());
}

// One thread refiles timers, one in each step. When it has filed the first one, another thread ends
// all, and files the others itself. No lock, because the first thread would keep it.
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
    BOOST_CHECK_EQUAL(b.state().timers().counts().armed, 0u);
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
    BOOST_CHECK(!b.state().empty_batch([](wait_operation* op) { BOOST_CHECK(!op); }));
    BOOST_CHECK(b.state().begin_emptying());
    BOOST_CHECK(!b.state().begin_emptying());
    BOOST_CHECK(b.state().end_emptying() == &w); // the caller of end_emptying() destroys it
    BOOST_CHECK(!b.state().end_emptying());
    BOOST_CHECK(b.state().begin_emptying());
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

// P6: timers that are still filed although their waits have ended count, too.
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
    while (b.state().empty_batch(end)) {
    }

    BOOST_CHECK_LE(most, 17u);
}

PAWL_TYPED_CASE(the_last_user_is_told_to_delete_the_shard, Backend, backends) {
    bench<Backend> b;
    timer_core t;
    test_wait w(false);
    b.start(t, w, 10);
    b.wake(10);
    b.close();

    BOOST_CHECK(!b.release_service());
    BOOST_CHECK(!b.release(t)); // the carrier is still in flight
    auto [owned, todo] = b.state().arrive(w);
    BOOST_CHECK(owned);

    BOOST_CHECK(todo.after == sequel::destroy);
}
