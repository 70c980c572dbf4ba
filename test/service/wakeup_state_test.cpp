// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   A shard's part in P9, by hand: each row of the table in wakeup_state.hpp, which thread must set
//   the driver, and which threads are in flight. model/wakeup.pml explores its interplay with the
//   rest.

#define BOOST_TEST_MODULE wakeup_state
#include <boost/test/unit_test.hpp>

#include <pawl/detail/service/runner_pool.hpp>
#include <pawl/detail/service/wakeup_state.hpp>

namespace {

using pawl::detail::commitment;
using sequel = commitment::sequel;
using pawl::detail::wakeup_state;
using pawl::time::tick;

constexpr bool active = true;

/// A shard asks it, and tells it.
struct fake_context final : pawl::detail::work_context {
    bool work_started() noexcept override {
        work += counts;
        return counts;
    }
    bool may_go_quiet_here(bool counted) noexcept override {
        asked_with = counted;
        return in_unit;
    }
    bool driver_stays(bool counted) noexcept override {
        asked_with = counted;
        return stays;
    }

    bool counts = true;
    bool in_unit = true;
    bool stays = true;
    bool asked_with = false;
    int work = 0;
};

} // namespace

// ---- the table ------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(P9_work_is_counted_once_when_a_shard_becomes_busy) {
    fake_context context;
    wakeup_state s(&context);
    BOOST_CHECK(!s.busy());

    s.begin();
    BOOST_CHECK(s.busy());
    BOOST_CHECK_EQUAL(context.work, 1);
    s.begin();
    BOOST_CHECK_EQUAL(context.work, 1);
}

BOOST_AUTO_TEST_CASE(P9_a_pin_keeps_a_shard_busy_until_it_is_taken_out) {
    fake_context context;
    wakeup_state s(&context);
    s.begin();
    commitment start;
    s.arm_pinned(tick{5}, start);
    BOOST_CHECK(start.arm && start.after == sequel::unpin);
    BOOST_CHECK(start.wake == tick{5});

    commitment meanwhile;
    BOOST_CHECK(!s.settle(!active, meanwhile)); // its wait has ended already
    BOOST_CHECK(meanwhile.empty());
    BOOST_CHECK(s.busy() && !s.errands_done());

    s.unpin();
    BOOST_CHECK(s.errands_done());
    commitment out;
    BOOST_CHECK(!s.settle(!active, out));
    BOOST_CHECK(out.after == sequel::give_back);
    BOOST_CHECK(!s.busy());
}

BOOST_AUTO_TEST_CASE(P9_nothing_is_given_back_while_anything_is_armed_or_claimed) {
    fake_context context;
    wakeup_state s(&context);
    s.begin();
    commitment out;

    BOOST_CHECK(!s.settle(active, out));

    BOOST_CHECK(out.empty());
    BOOST_CHECK(s.busy());
    BOOST_CHECK_EQUAL(context.work, 1);
}

BOOST_AUTO_TEST_CASE(P9_a_quiet_shard_for_which_a_runner_is_claimed_becomes_busy) {
    fake_context context;
    wakeup_state s(&context);
    commitment out;

    BOOST_CHECK(!s.settle(active, out));

    BOOST_CHECK(s.busy());
    BOOST_CHECK_EQUAL(context.work, 1);
}

BOOST_AUTO_TEST_CASE(P9_work_is_given_back_once_in_a_unit) {
    fake_context context;
    wakeup_state s(&context);
    s.begin();

    commitment out;
    BOOST_CHECK(!s.settle(!active, out));
    BOOST_CHECK(context.asked_with);
    BOOST_CHECK(out.after == sequel::give_back);
    BOOST_CHECK(!s.busy());
    BOOST_CHECK_EQUAL(context.work, 1); // the caller gives it back, unlocked

    commitment again;
    BOOST_CHECK(!s.settle(!active, again));
    BOOST_CHECK(again.empty());

    s.begin();
    BOOST_CHECK_EQUAL(context.work, 2);
}

BOOST_AUTO_TEST_CASE(P9_elsewhere_a_runner_is_claimed_that_gives_it_back) {
    fake_context context;
    context.in_unit = false;
    wakeup_state s(&context);
    s.begin();
    commitment out;

    BOOST_CHECK(s.settle(!active, out));

    BOOST_CHECK(out.empty());
    BOOST_CHECK(s.busy());
}

// ---- contexts that count nothing, or only later ---------------------------------------------------

BOOST_AUTO_TEST_CASE(P9_what_was_not_counted_is_not_given_back) {
    fake_context context;
    context.counts = false;
    wakeup_state s(&context);
    s.begin();
    BOOST_CHECK(s.busy());

    context.counts = true; // from now on, but too late for this time
    context.asked_with = true;
    commitment out;
    BOOST_CHECK(!s.settle(!active, out));

    BOOST_CHECK(!context.asked_with);
    BOOST_CHECK(out.after == sequel::go_quiet);
    BOOST_CHECK(!s.busy());
    BOOST_CHECK_EQUAL(context.work, 0);
}

BOOST_AUTO_TEST_CASE(P9_a_busy_shard_is_counted_when_the_context_can_be_told) {
    fake_context context;
    context.counts = false;
    wakeup_state s(&context);
    s.begin();

    context.counts = true;
    s.count_work();
    BOOST_CHECK_EQUAL(context.work, 1);
    s.count_work(); // the shard is busy
    s.begin();
    BOOST_CHECK_EQUAL(context.work, 1);

    commitment out;
    BOOST_CHECK(!s.settle(!active, out));
    BOOST_CHECK(out.after == sequel::give_back);
    s.count_work(); // the shard is quiet
    BOOST_CHECK_EQUAL(context.work, 1);
}

BOOST_AUTO_TEST_CASE(a_shard_without_a_context_is_busy_and_quiet_all_the_same) {
    wakeup_state s(nullptr);
    s.begin();
    BOOST_CHECK(s.busy());
    commitment start;
    s.arm(tick{5}, start);

    commitment out;
    BOOST_CHECK(!s.settle(!active, out));

    BOOST_CHECK(out.after == sequel::go_quiet);
    BOOST_CHECK(!s.busy());
    BOOST_CHECK(!s.must_arm(tick{5}));
    BOOST_CHECK(!s.driver_stays());
}

// ---- setting the driver ------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(the_driver_is_set_for_what_is_earlier_only) {
    fake_context context;
    wakeup_state s(&context);
    BOOST_CHECK(s.must_arm(tick{9}));
    BOOST_CHECK(s.must_arm(tick::never()));

    commitment out;
    s.arm(tick{5}, out);
    BOOST_CHECK(out.arm && out.after != sequel::unpin);
    BOOST_CHECK(out.wake == tick{5});
    BOOST_CHECK(s.must_arm(tick{4}));
    BOOST_CHECK(!s.must_arm(tick{5}));
    BOOST_CHECK(!s.must_arm(tick{9}));

    s.will_collect_at(tick{7});
    BOOST_CHECK(s.must_arm(tick{6}));
    BOOST_CHECK(!s.must_arm(tick{7}));

    s.will_not_collect();
    BOOST_CHECK(s.must_arm(tick{9}));
    BOOST_CHECK(s.must_arm(tick::never()));
    BOOST_CHECK(!s.passed(tick{8}));
    commitment later;
    s.begin();
    s.arm_pinned(tick{9}, later);
    BOOST_CHECK(later.wake == tick{9}); // what it was set for before does not count
}

BOOST_AUTO_TEST_CASE(a_wait_for_ever_is_collected_too) {
    fake_context context;
    wakeup_state s(&context);
    commitment out;
    s.arm(tick::never(), out);
    BOOST_CHECK(!s.must_arm(tick::never()));
    BOOST_CHECK(s.must_arm(tick{9}));
}

// It may fail, and then takes back only its own wait.
BOOST_AUTO_TEST_CASE(a_thread_that_is_about_to_set_the_driver_is_not_relied_on) {
    fake_context context;
    wakeup_state s(&context);
    s.begin();
    commitment first;
    s.arm_pinned(tick{5}, first);
    BOOST_CHECK(s.must_arm(tick{5}));
    BOOST_CHECK(s.must_arm(tick{9}));

    commitment second;
    s.arm_pinned(tick{9}, second);
    BOOST_CHECK(second.wake == tick{5}); // also for the first one's wait

    s.unpin();
    BOOST_CHECK(s.must_arm(tick{9}));
    s.unpin();
    BOOST_CHECK(!s.must_arm(tick{9}));
}

BOOST_AUTO_TEST_CASE(a_call_that_arms_twice_is_pinned_once) {
    fake_context context;
    wakeup_state s(&context);
    s.begin();
    commitment out;
    s.arm_pinned(tick{9}, out);
    s.arm_pinned(tick{5}, out);
    BOOST_CHECK(out.wake == tick{5});

    s.unpin();

    BOOST_CHECK(s.errands_done());
}

BOOST_AUTO_TEST_CASE(a_quiet_shard_relies_on_a_driver_that_stays_set_and_on_no_other) {
    for (const bool stays : {true, false}) {
        fake_context context;
        context.stays = stays;
        wakeup_state s(&context);
        s.begin();
        commitment start;
        s.arm(tick{5}, start);

        commitment out;
        BOOST_CHECK(!s.settle(!active, out));

        BOOST_CHECK(out.after == sequel::give_back);
        BOOST_CHECK_EQUAL(s.must_arm(tick{9}), !stays);
        BOOST_CHECK(s.must_arm(tick{4}));
    }
}

BOOST_AUTO_TEST_CASE(a_driver_stays_only_with_a_context_that_says_so) {
    fake_context context;
    BOOST_CHECK(wakeup_state(&context).driver_stays());
    BOOST_CHECK(context.asked_with);
    context.stays = false;
    BOOST_CHECK(!wakeup_state(&context).driver_stays());
    BOOST_CHECK(!wakeup_state(nullptr).driver_stays());
}

// ---- threads in flight -------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(P10_errands_are_done_when_each_that_was_begun_has_ended) {
    fake_context context;
    wakeup_state s(&context);
    BOOST_CHECK(s.errands_done());

    commitment one;
    s.begin_errand(one);
    s.begin_errand(one); // it is the same
    BOOST_CHECK(one.after == sequel::end_errand);
    commitment other;
    s.begin_errand(other);
    BOOST_CHECK(!s.errands_done());

    s.end_errand();
    BOOST_CHECK(!s.errands_done());
    s.end_errand();
    BOOST_CHECK(s.errands_done());
}

BOOST_AUTO_TEST_CASE(P10_a_thread_that_is_pinned_has_not_left) {
    fake_context context;
    wakeup_state s(&context);
    s.begin();
    commitment out;
    s.arm_pinned(tick{5}, out);
    BOOST_CHECK(!s.errands_done());

    s.unpin();

    BOOST_CHECK(s.errands_done());
}

// ---- commitments ----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_commitment_is_empty_if_nothing_is_to_be_done) {
    pawl::detail::runner_token token;
    const auto is_empty = [](auto set) {
        commitment c;
        set(c);
        return c.empty();
    };

    BOOST_CHECK(is_empty([](commitment&) {}));
    BOOST_CHECK(is_empty([](commitment& c) { c.wake = tick{5}; })); // nothing is armed for it
    BOOST_CHECK(!is_empty([&](commitment& c) { c.runners = &token; }));
    BOOST_CHECK(!is_empty([](commitment& c) { c.arm = true; }));
    BOOST_CHECK(!is_empty([](commitment& c) { c.after = commitment::sequel::go_quiet; }));
    BOOST_CHECK(!is_empty([](commitment& c) { c.after = commitment::sequel::destroy; }));
}

BOOST_AUTO_TEST_CASE(P9_the_end_gives_back_what_was_counted_once) {
    for (const bool counts : {true, false}) {
        for (const bool busy : {true, false}) {
            fake_context context;
            context.counts = counts;
            wakeup_state s(&context);
            if (busy)
                s.begin();

            BOOST_CHECK_EQUAL(s.end(), counts && busy);

            BOOST_CHECK(!s.busy());
            BOOST_CHECK(!s.end());
        }
    }
}
