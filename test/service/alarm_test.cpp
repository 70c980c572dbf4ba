// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Alarms, in every state that an arming, an end or a move can meet. Mostly on the manual clock: due
//   and not yet begun is then a state that a test can hold.

#define BOOST_TEST_MODULE alarm
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <pawl/alarm.hpp>

#include "../support/asio_configuration.hpp"
#include "counted_new.hpp"
#include "service_support.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace alarm_test {

using namespace service_test;
using pawl::manual_clock;
namespace data = boost::unit_test::data;

using function = std::function<void()>;
using told = std::function<void(error_code)>;

/// An alarm that counts its calls.
struct counted {
    explicit counted(asio::io_context& c) : context(c), alarm(c, [this] { ++calls; }) {}

    /// The clock moves on: the alarm may be due, and has not begun.
    void advance(manual_clock::duration d) { manual_clock::advance(context, d); }

    asio::io_context& context;
    int calls = 0;
    pawl::manual_alarm<function> alarm;
};

BOOST_AUTO_TEST_CASE(the_function_is_called_once_for_each_arming) {
    asio::io_context context;
    counted c(context);
    BOOST_TEST(!c.alarm.armed());
    for (int i = 1; i <= 3; ++i) {
        c.alarm.arm_after(10s);
        BOOST_TEST(c.alarm.armed());
        BOOST_TEST((c.alarm.expiry() == manual_clock::now() + 10s));
        c.advance(9s);
        poll(context);
        BOOST_TEST(c.calls == i - 1);
        c.advance(1s);
        BOOST_TEST(c.alarm.armed()); // until it begins
        BOOST_TEST(c.calls == i - 1);
        poll(context);
        BOOST_TEST(!c.alarm.armed());
        BOOST_TEST(c.calls == i);
        c.advance(1h);
        poll(context);
        BOOST_TEST(c.calls == i);
    }
}

BOOST_AUTO_TEST_CASE(P1_an_alarm_is_never_early) {
    asio::io_context context;
    std::optional<pawl::alarm<function>> alarm;
    std::chrono::steady_clock::time_point at;
    int calls = 0;
    alarm.emplace(context, [&] {
        BOOST_TEST((std::chrono::steady_clock::now() >= at));
        BOOST_TEST((alarm->expiry() == at));
        if (++calls < 20) {
            alarm->arm_after(std::chrono::microseconds(100 * calls));
            at = alarm->expiry();
        }
    });
    alarm->arm_at(at = std::chrono::steady_clock::now() + 1ms);
    context.run();
    BOOST_TEST(calls == 20);
}

BOOST_AUTO_TEST_CASE(an_armed_alarm_moves_earlier_and_later) {
    asio::io_context context;
    counted c(context);
    c.alarm.arm_after(10s);
    c.alarm.arm_after(20s);
    c.advance(15s);
    poll(context);
    BOOST_TEST(c.calls == 0);
    c.alarm.arm_after(1s);
    c.advance(1s);
    poll(context);
    BOOST_TEST(c.calls == 1);
    c.advance(1h);
    poll(context);
    BOOST_TEST(c.calls == 1);
}

// The carrier of the first expiry is still queued when the alarm is due again.
BOOST_AUTO_TEST_CASE(the_carrier_of_an_earlier_expiry_calls_the_function_once) {
    for (const bool disarmed : {false, true}) {
        asio::io_context context;
        counted c(context);
        c.alarm.arm_after(1s);
        c.advance(1s);
        if (disarmed)
            BOOST_TEST(c.alarm.disarm());
        c.alarm.arm_after(1s);
        c.advance(1s);
        BOOST_TEST(c.alarm.armed());
        poll(context);
        BOOST_TEST(c.calls == 1);
        BOOST_TEST(!c.alarm.armed());
        c.alarm.arm_after(1s);
        c.advance(1s);
        poll(context);
        BOOST_TEST(c.calls == 2);
    }
}

BOOST_AUTO_TEST_CASE(P4_a_handler_ahead_of_it_disarms_a_due_alarm) {
    asio::io_context context;
    counted c(context);
    pawl::manual_timer first(context, 1s);
    bool won = false;
    first.async_wait([&](error_code) { won = c.alarm.disarm(); });
    c.alarm.arm_after(1s);
    c.advance(1s);
    poll(context);
    BOOST_TEST(won);
    BOOST_TEST(c.calls == 0);
}

BOOST_AUTO_TEST_CASE(equal_deadlines_follow_the_order_of_their_start) {
    asio::io_context context;
    std::vector<int> order;
    pawl::manual_alarm a(context, [&] { order.push_back(1); });
    pawl::manual_timer b(context, 1s);
    pawl::manual_alarm c(context, [&] { order.push_back(3); });
    a.arm_after(1s);
    b.async_wait([&](error_code) { order.push_back(2); });
    c.arm_after(1s);
    manual_clock::advance(context, 1s);
    poll(context);
    BOOST_TEST((order == std::vector{1, 2, 3}));
}

// --- what a function may do ---------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(the_function_may_arm_its_alarm_again) {
    asio::io_context context;
    int calls = 0;
    std::optional<pawl::manual_alarm<function>> alarm;
    alarm.emplace(context, [&] {
        BOOST_TEST(!alarm->armed());
        if (++calls < 3)
            alarm->arm_after(1s);
    });
    alarm->arm_after(1s);
    for (int i = 0; i < 5; ++i) {
        manual_clock::advance(context, 1s);
        poll(context);
    }
    BOOST_TEST(calls == 3);
}

BOOST_AUTO_TEST_CASE(the_function_may_arm_and_disarm_its_alarm) {
    asio::io_context context;
    int calls = 0;
    std::optional<pawl::manual_alarm<function>> alarm;
    alarm.emplace(context, [&] {
        ++calls;
        BOOST_TEST(!alarm->disarm());
        alarm->arm_after(0s);
        BOOST_TEST(alarm->disarm());
    });
    alarm->arm_after(1s);
    manual_clock::advance(context, 1s);
    poll(context);
    manual_clock::advance(context, 1h);
    poll(context);
    BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(the_function_may_destroy_its_alarm_and_go_on) {
    asio::io_context context;
    std::string seen;
    const auto watched = std::make_shared<int>(0);
    std::optional<pawl::manual_alarm<function>> alarm;
    alarm.emplace(context, [&, text = std::string(100, 'x'), watched] {
        alarm.reset();
        seen = text; // it has not been destroyed
    });
    alarm->arm_after(1s);
    manual_clock::advance(context, 1s);
    poll(context);
    BOOST_TEST(seen == std::string(100, 'x'));
    BOOST_TEST(watched.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(the_function_may_arm_its_alarm_and_destroy_it) {
    asio::io_context context;
    int calls = 0;
    std::optional<pawl::manual_alarm<function>> alarm;
    alarm.emplace(context, [&] {
        ++calls;
        alarm->arm_after(0s);
        alarm.reset();
    });
    alarm->arm_after(0s);
    manual_clock::advance(context, 1s);
    poll(context);
    BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(the_function_may_move_its_alarm) {
    asio::io_context context;
    int calls = 0;
    std::optional<pawl::manual_alarm<function>> from;
    std::optional<pawl::manual_alarm<function>> to;
    from.emplace(context, [&, text = std::string(100, 'x')] {
        if (from) {
            to.emplace(std::move(*from));
            from.reset();
            to->arm_after(1s);
        }
        calls += text.size() == 100;
    });
    from->arm_after(1s);
    for (int i = 0; i < 2; ++i) {
        manual_clock::advance(context, 1s);
        poll(context);
    }
    BOOST_TEST(calls == 2);
}

BOOST_AUTO_TEST_CASE(the_function_may_throw) {
    asio::io_context context;
    int calls = 0;
    pawl::manual_alarm alarm(context, [&] {
        ++calls;
        throw std::runtime_error("from the function");
    });
    for (int i = 1; i <= 2; ++i) {
        alarm.arm_after(1s);
        manual_clock::advance(context, 1s);
        BOOST_CHECK_THROW(poll(context), std::runtime_error);
        BOOST_TEST(calls == i);
        BOOST_TEST(!alarm.armed());
    }
}

BOOST_AUTO_TEST_CASE(a_function_may_throw_after_it_has_destroyed_its_alarm) {
    asio::io_context context;
    const auto watched = std::make_shared<int>(0);
    std::optional<pawl::manual_alarm<function>> alarm;
    alarm.emplace(context, [&alarm, watched] {
        alarm.reset();
        throw std::runtime_error("from the function");
    });
    alarm->arm_after(1s);
    manual_clock::advance(context, 1s);
    BOOST_CHECK_THROW(poll(context), std::runtime_error);
    BOOST_TEST(watched.use_count() == 1);
}

struct moves_until {
    explicit moves_until(const bool& throws) : throws_(throws) {}
    moves_until(const moves_until& other) : throws_(other.throws_) { // as one that copies a string
        if (throws_)
            throw std::bad_alloc();
    }
    void operator()() const {}

private:
    const bool& throws_;
};

BOOST_AUTO_TEST_CASE(an_alarm_goes_though_the_move_of_its_function_throws) {
    asio::io_context context;
    bool throws = false;
    {
        pawl::manual_alarm alarm(context, moves_until(throws));
        throws = true;
        alarm.arm_after(1s);
    }
    BOOST_CHECK_THROW(pawl::manual_alarm(context, moves_until(throws)), std::bad_alloc);
}

BOOST_AUTO_TEST_CASE(a_function_may_be_movable_only) {
    asio::io_context context;
    int result = 0;
    pawl::manual_alarm alarm(context, [&, p = std::make_unique<int>(5)] { result = *p; });
    alarm.arm_after(1s);
    manual_clock::advance(context, 1s);
    poll(context);
    BOOST_TEST(result == 5);
}

// --- the end of an alarm ------------------------------------------------------------------------

enum class when {
    idle,
    armed,
    disarmed,
    passed, ///< disarmed, and what was its deadline has passed
    due,
    moved_disarmed, ///< due, moved to a later deadline, and disarmed
    disarmed_due,
    armed_again,
    due_again
};

std::ostream& operator<<(std::ostream& out, when w) { return out << static_cast<int>(w); }

const auto every_state =
    data::make({when::idle, when::armed, when::disarmed, when::passed, when::due,
                when::moved_disarmed, when::disarmed_due, when::armed_again, when::due_again});

/// Brings an alarm into a state.
template <class Alarm>
void bring(Alarm& alarm, asio::io_context& context, when w) {
    if (w == when::idle)
        return;
    alarm.arm_after(1s);
    if (w == when::armed)
        return;
    if (w == when::disarmed || w == when::passed)
        BOOST_REQUIRE(alarm.disarm());
    if (w == when::disarmed)
        return;
    manual_clock::advance(context, 1s);
    if (w == when::due || w == when::passed)
        return;
    if (w == when::moved_disarmed)
        alarm.arm_after(1h);
    BOOST_REQUIRE(alarm.disarm());
    if (w == when::disarmed_due || w == when::moved_disarmed)
        return;
    alarm.arm_after(1s);
    if (w == when::due_again)
        manual_clock::advance(context, 1s);
}

BOOST_DATA_TEST_CASE(a_destroyed_alarm_calls_nothing, every_state, state) {
    for (const bool context_first : {false, true}) {
        const auto watched = std::make_shared<int>(0);
        std::optional<asio::io_context> context(std::in_place);
        std::optional<pawl::manual_alarm<function>> alarm;
        alarm.emplace(*context, [watched] { ++*watched; });
        bring(*alarm, *context, state);
        if (context_first) {
            context.reset();
            BOOST_TEST(!alarm->armed());
            BOOST_TEST(!alarm->disarm());
            const auto expiry = alarm->expiry();
            alarm->arm_after(0s); // has no effect, as these
            BOOST_TEST((alarm->expiry() == expiry));
            alarm->keep_running(false);
            alarm->keep_running(true);
            BOOST_TEST(!alarm->armed());
            alarm.reset();
        } else {
            alarm.reset();
            manual_clock::advance(*context, 1h);
            poll(*context);
            BOOST_TEST(context->stopped()); // P9
            context.reset();
        }
        BOOST_TEST(*watched == 0);
        BOOST_TEST(watched.use_count() == 1);
    }
}

BOOST_DATA_TEST_CASE(a_moved_alarm_stays_as_it_was, every_state, state) {
    asio::io_context context;
    counted c(context);
    bring(c.alarm, context, state);
    const bool armed = c.alarm.armed();
    const auto expiry = c.alarm.expiry();
    pawl::manual_alarm<function> moved(std::move(c.alarm));
    BOOST_TEST(!c.alarm.armed());
    BOOST_TEST(!c.alarm.disarm());
    BOOST_TEST(moved.armed() == armed);
    BOOST_TEST((moved.expiry() == expiry));
    c.advance(1h);
    poll(context);
    BOOST_TEST(c.calls == (armed ? 1 : 0));
    moved.arm_after(1s);
    BOOST_TEST(moved.disarm());
    moved.arm_after(1s);
    c.advance(1s);
    poll(context);
    BOOST_TEST(c.calls == (armed ? 2 : 1));
}

BOOST_DATA_TEST_CASE(an_alarm_can_be_armed_in_any_state, every_state, state) {
    for (const bool kept_running : {false, true}) {
        asio::io_context context;
        counted c(context);
        bring(c.alarm, context, state);
        c.alarm.keep_running(kept_running); // has no effect on a manual clock
        c.alarm.arm_after(1s);
        BOOST_TEST(c.alarm.armed());
        poll(context);
        BOOST_TEST(c.calls == 0);
        c.advance(1s);
        poll(context);
        BOOST_TEST(c.calls == 1);
        BOOST_TEST(!c.alarm.disarm());
        BOOST_TEST(context.stopped()); // P9
    }
}

BOOST_DATA_TEST_CASE(an_assigned_alarm_disarms_what_it_was, every_state, state) {
    asio::io_context context;
    counted c(context);
    bring(c.alarm, context, state);
    int others = 0;
    pawl::manual_alarm<function> other(context, [&] { ++others; });
    other.arm_after(1s);
    c.alarm = std::move(other);
    BOOST_TEST(c.alarm.armed());
    auto& self = c.alarm;
    c.alarm = std::move(self);
    c.advance(1s);
    poll(context);
    BOOST_TEST(c.calls == 0);
    BOOST_TEST(others == 1);
}

BOOST_AUTO_TEST_CASE(an_alarm_can_be_assigned_from_another_context) {
    asio::io_context context;
    asio::io_context other;
    counted c(context);
    int others = 0;
    c.alarm.arm_after(1s);
    c.alarm = pawl::manual_alarm<function>(other, [&] { ++others; });
    c.alarm.arm_after(1s);
    c.advance(1s);
    manual_clock::advance(other, 0s);
    poll(context);
    BOOST_TEST(others == 0);
    poll(other);
    BOOST_TEST(others == 1);
    BOOST_TEST(c.calls == 0);
}

// --- work ---------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(P9_run_returns_when_no_alarm_is_armed) {
    asio::io_context context;
    int calls = 0;
    pawl::alarm a(context, [&] { ++calls; });
    pawl::alarm b(context, [&] { ++calls; });
    context.run();
    context.restart();
    a.arm_after(1ms);
    b.arm_after(1h);
    asio::post(context, [&] { BOOST_TEST(b.disarm()); });
    context.run();
    BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(P9_a_disarm_in_another_thread_lets_run_return) {
    asio::io_context context;
    pawl::alarm alarm(context, [] {});
    alarm.arm_after(1h);
    std::thread runner([&] { context.run(); });
    BOOST_TEST(alarm.disarm());
    runner.join();
    BOOST_TEST(context.stopped());
}

template <template <class, class> class Alarm>
void check_keep_running() {
    using alarm_type = Alarm<function, asio::any_io_executor>;
    asio::io_context context;
    int calls = 0;
    alarm_type housekeeping(context, [&] { ++calls; });
    housekeeping.keep_running(false);
    housekeeping.arm_after(1h);
    context.run(); // returns
    BOOST_TEST(housekeeping.armed());
    context.restart();

    // It is called while something else keeps the context running.
    std::optional<alarm_type> again;
    again.emplace(context, [&] {
        if (++calls < 3)
            again->arm_after(1ms);
    });
    again->keep_running(false);
    again->arm_after(1ms);
    pawl::steady_timer other(context, 1h);
    other.async_wait([](error_code) {});
    alarm_type stops(context, [&] { other.cancel(); });
    while (calls < 3)
        context.run_one();
    stops.arm_after(0s);
    context.run();
    BOOST_TEST(context.stopped());
    BOOST_TEST(calls == 3);
    context.restart();

    // A change while it is armed counts at once.
    again->arm_after(1h);
    context.run();
    BOOST_TEST(again->armed());
    context.restart();
    again->keep_running(true);
    again->arm_after(1ms);
    context.run();
    BOOST_TEST(calls == 4);
    context.restart();
    again->arm_after(1h);
    asio::post(context, [&] { again->keep_running(false); });
    context.run();
    BOOST_TEST(again->armed());
    again.reset();
    BOOST_TEST(housekeeping.disarm());
    context.restart();
    context.run();
}

BOOST_AUTO_TEST_CASE(P9_an_alarm_need_not_keep_its_context_running) {
    check_keep_running<pawl::alarm>();
    check_keep_running<pawl::coarse_alarm>();
}

BOOST_AUTO_TEST_CASE(
    P9_an_alarm_that_does_not_keep_its_context_running_becomes_work_when_it_is_due) {
    asio::io_context context;
    bool called = false;
    pawl::alarm alarm(context, [&] { asio::post(context, [&] { called = true; }); });
    alarm.keep_running(false);
    alarm.arm_after(1ms);
    const auto guard = asio::make_work_guard(context);
    while (!called)
        context.run_one();
    BOOST_TEST(!alarm.armed());
}

// A crowd of both kinds, moved, disarmed and expired in every order of two.
BOOST_AUTO_TEST_CASE(P9_the_last_alarm_that_keeps_the_context_running_lets_run_return) {
    asio::io_context context;
    std::deque<pawl::alarm<function>> alarms;
    int calls = 0;
    for (int i = 0; i < 60; ++i) {
        alarms.emplace_back(context, [&] { ++calls; });
        alarms.back().keep_running(i % 2 == 0);
        alarms.back().arm_after(i % 3 == 0 ? std::chrono::nanoseconds(1ms) : 1h);
    }
    for (std::size_t i = 0; i < alarms.size(); i += 2) {
        if (i % 3 != 0)
            BOOST_TEST(alarms[i].disarm());
    }
    context.run(); // until all ten that keep it running have been called
    BOOST_TEST(calls >= 10);
    for (std::size_t i = 1; i < alarms.size(); i += 2)
        BOOST_TEST((i % 3 == 0 || alarms[i].armed()));
}

BOOST_AUTO_TEST_CASE(P9_an_alarm_of_another_shard_need_not_keep_the_context_running) {
    asio::io_context context;
    pawl::options o;
    o.shards = 4;
    pawl::make_timer_service<pawl::steady_timer>(context, o);
    int calls = 0;
    pawl::alarm<function> here(context, [&] { ++calls; });
    std::optional<pawl::alarm<function>> there;
    std::thread([&] {
        there.emplace(context, [&] { ++calls; });
        there->keep_running(false);
        there->arm_after(1h);
    }).join();
    here.arm_after(1ms);
    context.run(); // returns
    BOOST_TEST(calls == 1);
    BOOST_TEST(there->armed());
    context.restart();
    there->arm_after(1ms);
    here.arm_after(1h);
    while (calls == 1)
        context.run_one(); // it is called beside the other shard's
    BOOST_TEST(here.disarm());
    context.run();
    BOOST_TEST(calls == 2);
}

BOOST_AUTO_TEST_CASE(an_alarm_elsewhere_always_keeps_its_context_running) {
    asio::io_context context;
    int calls = 0;
    pawl::manual_alarm alarm(context, [&] { ++calls; });
    alarm.keep_running(false);
    alarm.arm_after(1s);
    std::thread other([&] { manual_clock::advance(context, 1s); });
    context.run();
    other.join();
    BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(a_beaten_alarm_posts_nothing) {
    asio::io_context context;
    counted c(context);
    pawl::manual_timer other(context, 1s); // beside others, as in a server
    other.async_wait([](error_code) {});
    const auto beat = [&] {
        for (int i = 0; i < 100; ++i) {
            c.alarm.arm_after(1s);
            c.alarm.arm_after(2s);
            BOOST_TEST(c.alarm.disarm());
        }
    };
    asio::post(context, beat);
    poll(context);
    asio::post(context, beat);
    BOOST_TEST(poll(context) == one); // the posted function
    BOOST_TEST(c.calls == 0);
}

BOOST_AUTO_TEST_CASE(P8_nothing_but_the_constructor_allocates) {
    asio::io_context context;
    std::deque<counted> all;
    for (int i = 0; i < 500; ++i)
        all.emplace_back(context);

    counted_new::fuse = 0;
    bool armed = true;
    for (int round = 0; round < 3; ++round) {
        for (counted& c : all) {
            c.alarm.arm_after(2s);
            c.alarm.arm_after(1s);
        }
        for (std::size_t i = 0; i < all.size(); i += 2)
            armed = armed && all[i].alarm.disarm();
        manual_clock::advance(context, 1s);
        for (std::size_t i = 1; i < all.size(); i += 4)
            armed = armed && all[i].alarm.disarm();
        context.restart();
        context.poll();
    }
    counted_new::fuse = counted_new::never;
    BOOST_TEST(armed);
    for (std::size_t i = 0; i < all.size(); ++i)
        BOOST_TEST(all[i].calls == (i % 4 == 3 ? 3 : 0));
}

// There the driver also queues units.
PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(P8_an_alarm_of_a_context_of_unknown_type_is_armed_without_memory) {
    for (const bool leaves_the_context_busy : {true, false}) {
        manual_context context;
        pawl::basic_alarm<function, pawl::manual_clock, manual_context::executor_type> alarm(
            context.get_executor(), [] {});
        alarm.keep_running(leaves_the_context_busy);
        counted_new::fuse = 0;
        alarm.arm_after(2s);
        alarm.arm_after(1s);
        const bool armed = alarm.disarm();
        const long left = counted_new::fuse.exchange(counted_new::never);
        BOOST_TEST(armed);
        BOOST_TEST(left == 0);
    }
}

template <class Alarm, class Clock>
constexpr bool arming_throws_nothing = noexcept(std::declval<Alarm&>().arm_after(
    std::declval<const std::chrono::hours&>()))&& noexcept(std::declval<Alarm&>()
                                                               .arm_at(std::declval<
                                                                       const typename Clock::
                                                                           time_point&>()));

struct clock_that_may_throw : manual_clock {
    using time_point = std::chrono::time_point<clock_that_may_throw, duration>;
    static time_point now() { return time_point(manual_clock::now().time_since_epoch()); }
};

static_assert(arming_throws_nothing<pawl::alarm<function>, std::chrono::steady_clock>);
static_assert(arming_throws_nothing<pawl::coarse_alarm<function>, pawl::coarse_clock>);
static_assert(arming_throws_nothing<pawl::manual_alarm<function>, manual_clock>);
static_assert(!arming_throws_nothing<pawl::basic_alarm<function, clock_that_may_throw>,
                                     clock_that_may_throw>);

// --- executors ----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(the_function_runs_on_its_strand) {
    asio::io_context context;
    auto strand = asio::make_strand(context);
    int calls = 0;
    pawl::manual_alarm bound(
        context, asio::bind_executor(strand, [&] { calls += strand.running_in_this_thread(); }));
    pawl::manual_alarm on_strand(strand, [&] { calls += strand.running_in_this_thread(); });
    bound.arm_after(1s);
    on_strand.arm_after(1s);
    manual_clock::advance(context, 1s);
    poll(context);
    BOOST_TEST(calls == 2);
}

// The carrier waits where the function is to run: there P4 is decided.
BOOST_DATA_TEST_CASE(P4_on_another_executor_a_disarm_wins_until_the_function_begins,
                     data::make({"nothing", "disarm", "arm", "arm and expire", "destroy", "move"}),
                     act) {
    asio::io_context context;
    asio::io_context there;
    int calls = 0;
    const std::string what = act;
    const auto f = asio::bind_executor(there.get_executor(), [&] { ++calls; });
    std::optional<pawl::manual_alarm<std::decay_t<decltype(f)>>> alarm(std::in_place, context, f);
    alarm->arm_after(1s);
    manual_clock::advance(context, 1s);
    poll(context);
    BOOST_TEST(calls == 0);
    BOOST_TEST(alarm->armed());
    if (what == "disarm") {
        BOOST_TEST(alarm->disarm());
    } else if (what == "destroy") {
        alarm.reset();
    } else if (what == "move") {
        auto moved = std::move(*alarm);
        alarm.reset();
        alarm.emplace(std::move(moved));
    } else if (what != "nothing") {
        alarm->arm_after(1s);
        if (what == "arm and expire") {
            manual_clock::advance(context, 1s);
            poll(context);
        }
    }
    poll(there);
    BOOST_TEST(calls == (what == "disarm" || what == "destroy" || what == "arm" ? 0 : 1));
    manual_clock::advance(context, 1s);
    poll(context);
    poll(there);
    BOOST_TEST(calls == (what == "disarm" || what == "destroy" ? 0 : 1));
}

BOOST_AUTO_TEST_CASE(an_alarm_that_is_disarmed_when_due_sends_nothing_to_its_executor) {
    asio::io_context context;
    asio::io_context there;
    pawl::manual_alarm alarm(context, asio::bind_executor(there.get_executor(), [] {}));
    alarm.arm_after(1s);
    manual_clock::advance(context, 1s);
    BOOST_TEST(alarm.disarm());
    poll(context);
    BOOST_TEST(poll(there) == none);
}

BOOST_AUTO_TEST_CASE(an_executor_that_is_gone_destroys_the_carrier_and_the_alarm_goes_on) {
    asio::io_context context;
    int calls = 0;
    std::optional<asio::io_context> other(std::in_place);
    pawl::manual_alarm alarm(context, asio::bind_executor(other->get_executor(), [&] { ++calls; }));
    alarm.arm_after(1s);
    manual_clock::advance(context, 1s);
    poll(context); // the carrier is queued in the other context
    BOOST_TEST(alarm.armed());
    other.reset();
    BOOST_TEST(!alarm.armed());
    BOOST_TEST(!alarm.disarm());
    BOOST_TEST(calls == 0);
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(an_alarm_runs_on_any_context_and_executor) {
    asio::thread_pool pool(2);
    std::atomic<int> calls = 0;
    pawl::alarm on_pool(pool, [&] { ++calls; });
    on_pool.arm_after(1ms);
    pool.join();
    BOOST_TEST(calls == 1);

    asio::io_context context;
    pawl::alarm erased(asio::any_io_executor(context.get_executor()), [&] { ++calls; });
    pawl::alarm fixed(context.get_executor(), [&] { ++calls; });
    static_assert(std::is_same_v<decltype(erased)::executor_type, asio::any_io_executor>);
    static_assert(std::is_same_v<decltype(fixed)::executor_type, asio::io_context::executor_type>);
    BOOST_TEST((erased.get_executor() == asio::any_io_executor(context.get_executor())));
    erased.arm_after(1ms);
    fixed.arm_after(2ms);
    context.run();
    BOOST_TEST(calls == 3);
}

BOOST_AUTO_TEST_CASE(the_block_is_from_the_associated_allocator) {
    struct counting : std::pmr::memory_resource {
        int blocks = 0;
        void* do_allocate(std::size_t bytes, std::size_t) override {
            ++blocks;
            return ::operator new(bytes);
        }
        void do_deallocate(void* p, std::size_t, std::size_t) override {
            --blocks;
            ::operator delete(p);
        }
        bool do_is_equal(const memory_resource& other) const noexcept override {
            return this == &other;
        }
    } memory;
    asio::io_context context;
    {
        pawl::manual_alarm alarm(
            context,
            asio::bind_allocator(std::pmr::polymorphic_allocator<std::byte>(&memory), [] {}));
        BOOST_TEST(memory.blocks == 1);
        alarm.arm_after(1s);
        manual_clock::advance(context, 1s);
        poll(context);
        BOOST_TEST(memory.blocks == 1);
    }
    BOOST_TEST(memory.blocks == 0);
}

// --- all at once --------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(expire_all_tells_those_that_take_a_code_and_disarms_the_others) {
    asio::io_context context;
    counted silent(context);
    std::vector<error_code> codes;
    pawl::manual_alarm<told> loud(context, [&](error_code ec) { codes.push_back(ec); });
    silent.alarm.arm_after(1s);
    loud.arm_after(1s);
    BOOST_TEST(pawl::expire_all(context, pawl::error::shutting_down) == 2U);
    BOOST_TEST(!silent.alarm.armed());
    BOOST_TEST(!loud.armed());
    poll(context);
    BOOST_TEST(silent.calls == 0);
    BOOST_TEST((codes == std::vector<error_code>{pawl::error::shutting_down}));

    loud.arm_after(1s);
    silent.alarm.arm_after(1s);
    manual_clock::advance(context, 1s);
    poll(context);
    BOOST_TEST(silent.calls == 1);
    BOOST_TEST(codes.size() == 2U);
    BOOST_TEST(!codes.back());
}

BOOST_AUTO_TEST_CASE(cancel_all_disarms) {
    asio::io_context context;
    counted silent(context);
    int calls = 0;
    pawl::manual_alarm<told> loud(context, [&](error_code) { ++calls; });
    silent.alarm.arm_after(1s);
    loud.arm_after(1s);
    BOOST_TEST(pawl::cancel_all(context) == 2U);
    BOOST_TEST(!loud.armed());
    manual_clock::advance(context, 1s);
    poll(context);
    BOOST_TEST(silent.calls + calls == 0);
    loud.arm_after(1s);
    manual_clock::advance(context, 1s);
    poll(context);
    BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(an_alarm_that_was_expired_with_a_code_can_be_armed_before_it_is_told) {
    asio::io_context context;
    std::vector<error_code> codes;
    pawl::manual_alarm<told> loud(context, [&](error_code ec) { codes.push_back(ec); });
    loud.arm_after(1s);
    pawl::expire_all(context, pawl::error::shutting_down);
    loud.arm_after(1s); // P4: it has not begun
    poll(context);
    manual_clock::advance(context, 1s);
    poll(context);
    BOOST_TEST(codes.size() == 1U);
    BOOST_TEST(!codes.back());
}

BOOST_AUTO_TEST_CASE(an_alarm_that_was_expired_with_a_code_is_not_told_once_it_is_destroyed) {
    asio::io_context context;
    const auto watched = std::make_shared<int>(0);
    std::optional<pawl::manual_alarm<told>> loud;
    loud.emplace(context, [watched](error_code) { ++*watched; });
    loud->arm_after(1s);
    pawl::expire_all(context, pawl::error::shutting_down);
    BOOST_TEST(!loud->disarm());
    loud.reset();
    poll(context);
    BOOST_TEST(*watched == 0);
    BOOST_TEST(watched.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(P10_the_shutdown_calls_those_that_take_a_code_if_it_delivers) {
    for (const bool deliver : {false, true}) {
        std::vector<error_code> codes;
        int calls = 0;
        std::optional<asio::io_context> context(std::in_place);
        pawl::options o;
        o.on_shutdown = deliver ? pawl::shutdown_policy::deliver : pawl::shutdown_policy::destroy;
        pawl::make_timer_service<manual_clock>(*context, o);
        pawl::manual_alarm<told> loud(*context, [&](error_code ec) { codes.push_back(ec); });
        pawl::manual_alarm<function> silent(*context, [&] { ++calls; });
        loud.arm_after(1s);
        silent.arm_after(1s);
        context.reset();
        BOOST_TEST(calls == 0);
        BOOST_TEST(codes.size() == (deliver ? 1U : 0U));
        BOOST_TEST((codes.empty() || codes[0] == asio::error::operation_aborted));
        BOOST_TEST(!loud.armed());
        BOOST_TEST(!silent.armed());
    }
}

// The shutdown takes all waits, then calls the functions: one of them was called although a function
// before it had destroyed its alarm.
BOOST_AUTO_TEST_CASE(an_alarm_that_is_destroyed_by_a_function_of_the_shutdown_is_not_called) {
    std::optional<asio::io_context> context(std::in_place);
    pawl::options o;
    o.on_shutdown = pawl::shutdown_policy::deliver;
    pawl::make_timer_service<manual_clock>(*context, o);
    int calls = 0;
    std::optional<pawl::manual_alarm<told>> a, b;
    const auto ends = [&calls](auto& other) {
        return [&calls, &other](error_code) {
            ++calls;
            other.reset();
        };
    };
    a.emplace(*context, ends(b));
    b.emplace(*context, ends(a));
    a->arm_after(1s);
    b->arm_after(1s);
    manual_clock::advance(*context, 1s);

    context.reset();

    BOOST_TEST(calls == 1); // of either: the shutdown has no order
    BOOST_TEST(a.has_value() != b.has_value());
}

// --- bad input ----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(any_duration_saturates) {
    asio::io_context context;
    counted c(context);
    c.alarm.arm_after(std::chrono::hours::max());
    BOOST_TEST((c.alarm.expiry() == manual_clock::time_point::max()));
    c.advance(1h);
    poll(context);
    BOOST_TEST(c.calls == 0);
    const std::chrono::duration<double> nan(std::numeric_limits<double>::quiet_NaN());
    BOOST_CHECK_THROW(c.alarm.arm_after(nan), std::invalid_argument);
    BOOST_TEST(c.alarm.armed());
    BOOST_TEST((c.alarm.expiry() == manual_clock::time_point::max()));
    for (const auto d : {std::chrono::hours::min(), -1h, 0h}) {
        const int before = c.calls;
        c.alarm.arm_after(d);
        c.advance(0s);
        poll(context);
        BOOST_TEST(c.calls == before + 1);
    }
    c.alarm.arm_at(manual_clock::time_point::min());
    c.advance(0s);
    poll(context);
    BOOST_TEST(c.calls == 4);
}

BOOST_AUTO_TEST_CASE(a_range_that_is_none_changes_nothing) {
    asio::io_context context;
    counted c(context);
    c.alarm.arm_after(1s);
    BOOST_CHECK_THROW(c.alarm.arm_within(2s, 1s), std::invalid_argument);
    BOOST_TEST(c.alarm.armed());
    c.alarm.arm_within(2s, 4s);
    BOOST_TEST((c.alarm.expiry() - manual_clock::now() >= 2s));
    BOOST_TEST((c.alarm.expiry() - manual_clock::now() <= 4s));
    c.advance(4s);
    poll(context);
    BOOST_TEST(c.calls == 1);
}

// --- options, clocks, crowds --------------------------------------------------------------------

BOOST_DATA_TEST_CASE(P6_a_crowd_of_alarms_is_called_each_once, data::make({1U, 3U, 64U}),
                     per_turn) {
    asio::io_context context(1);
    pawl::options o;
    o.completions_per_turn = per_turn;
    o.batch_limit = 16;
    o.locking = false;
    pawl::make_timer_service<manual_clock>(context, o);
    std::deque<counted> all;
    for (int i = 0; i < 1000; ++i)
        all.emplace_back(context);
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i].alarm.arm_after(std::chrono::milliseconds(1 + i % 10));
    manual_clock::advance(context, 1s);
    for (std::size_t i = 0; i < all.size(); i += 3)
        BOOST_TEST(all[i].alarm.disarm());
    poll(context);
    for (std::size_t i = 0; i < all.size(); ++i)
        BOOST_TEST(all[i].calls == (i % 3 == 0 ? 0 : 1));
}

BOOST_AUTO_TEST_CASE(P1_an_alarm_on_a_clock_that_is_set_back_waits_for_it) {
    using clock = stepped_clock<struct set_back, false>;
    asio::io_context context;
    bool called = false;
    pawl::basic_alarm<function, clock, asio::any_io_executor, polling_traits<clock>> alarm(
        context, [&] {
            called = true;
            BOOST_TEST((clock::now() >= alarm.expiry()));
        });
    clock::set(1h);
    alarm.arm_after(1h);
    clock::set(30min);
    context.run_for(20ms);
    BOOST_TEST(!called);
    clock::set(3h);
    context.run_for(patience);
    BOOST_TEST(called);
}

BOOST_AUTO_TEST_CASE(statistics_count_alarms_as_waits) {
    asio::io_context context;
    counted c(context);
    c.alarm.arm_after(1s);
    BOOST_TEST(pawl::stats(context).total().armed == 1U);
    c.alarm.arm_after(2s);
    c.alarm.disarm();
    c.alarm.arm_after(1s);
    c.advance(1s);
    BOOST_TEST(c.alarm.disarm()); // its carrier is on its way
    c.alarm.arm_after(1s);
    c.advance(1s);
    poll(context);
    const auto s = pawl::stats(context).total();
    BOOST_TEST(s.started == 3U);
    BOOST_TEST(s.moved == 1U);
    BOOST_TEST(s.expired == 1U);
    BOOST_TEST(s.cancelled == 2U);
    BOOST_TEST(s.pending == 0U);
    c.alarm.arm_after(1s);
    c.advance(1s);
    BOOST_TEST(c.alarm.disarm());
    poll(context); // its carrier ends
    BOOST_TEST(pawl::stats(context).total().pending == 0U);
}

BOOST_AUTO_TEST_CASE(an_alarm_has_a_name_as_a_timer_has) {
    asio::io_context context;
    std::optional<counted> c(std::in_place, context);
    pawl::set_name(c->alarm, "idle");
    BOOST_REQUIRE(pawl::named_timers(context).size() == one);
    BOOST_TEST(pawl::named_timers(context)[0].name.view() == "idle");
    c.reset();
    BOOST_TEST(pawl::named_timers(context).empty());
}

BOOST_AUTO_TEST_CASE(an_event_feed_tells_what_happens_to_an_alarm) {
    asio::io_context context;
    counted c(context);
    auto reader = pawl::event_feed(context).join();
    const std::uint64_t id = pawl::timer_id(c.alarm);
    c.alarm.arm_after(1s);
    c.alarm.arm_after(2s);
    BOOST_TEST(c.alarm.disarm());
    c.alarm.arm_after(1s);
    c.advance(1s);
    poll(context);
    std::vector<pawl::timer_event_kind> kinds;
    std::array<pawl::timer_event, 16> events;
    const std::size_t read = reader.try_read(events).count;
    for (std::size_t i = 0; i != read; ++i) {
        BOOST_TEST(events.at(i).timer == id);
        kinds.push_back(events.at(i).kind);
    }
    using kind = pawl::timer_event_kind;
    BOOST_TEST((kinds == std::vector{kind::armed, kind::moved, kind::cancelled, kind::armed,
                                     kind::due, kind::started}));
}

// ---- max_pending ------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(beyond_max_pending_an_alarm_stays_as_it_was) {
    asio::io_context context;
    pawl::options o;
    o.max_pending = 2;
    pawl::make_timer_service<manual_clock>(context, o);
    counted c(context), d(context), e(context);
    BOOST_TEST(c.alarm.arm_after(1s));
    BOOST_TEST(d.alarm.arm_at(manual_clock::now() + 1s));
    BOOST_TEST(!e.alarm.arm_after(1s));
    BOOST_TEST(!e.alarm.arm_within(1s, 2s));
    BOOST_TEST(!e.alarm.armed());
    BOOST_TEST((e.alarm.expiry() == manual_clock::time_point()));
    BOOST_TEST(!e.alarm.disarm());
    BOOST_TEST(pawl::stats(context).total().refused == 2U);
    BOOST_TEST(pawl::stats(context).total().started == 2U);

    BOOST_TEST(c.alarm.arm_after(2s)); // moves
    c.advance(1s);
    BOOST_TEST(d.alarm.arm_after(1s)); // pulled back
    BOOST_TEST(!e.alarm.arm_after(1s));
    BOOST_TEST(c.alarm.disarm());
    BOOST_TEST(e.alarm.arm_after(1s));
    BOOST_TEST(!c.alarm.arm_after(1s));
    c.advance(1s);
    poll(context);
    BOOST_TEST(d.calls == 1);
    BOOST_TEST(e.calls == 1);
    BOOST_TEST(c.calls == 0);
    BOOST_TEST(c.alarm.arm_after(1s));
    BOOST_TEST(d.alarm.arm_after(1s));
    BOOST_TEST(!e.alarm.arm_after(1s));
}

// The place of a due alarm is free when its carrier has come.
BOOST_AUTO_TEST_CASE(at_max_pending_a_due_alarm_that_is_disarmed_can_be_armed_again) {
    asio::io_context context;
    pawl::options o;
    o.max_pending = 1;
    pawl::make_timer_service<manual_clock>(context, o);
    counted c(context), d(context);
    c.alarm.arm_after(1s);
    c.advance(1s);
    BOOST_TEST(c.alarm.disarm());
    BOOST_TEST(!d.alarm.arm_after(1s));
    BOOST_TEST(c.alarm.arm_after(1s));
    BOOST_TEST(c.alarm.disarm());
    poll(context);
    BOOST_TEST(d.alarm.arm_after(1s));
    { const auto gone = std::move(d.alarm); }
    BOOST_TEST(c.alarm.arm_after(1s));
    BOOST_TEST(pawl::expire_all(context) == one);
    poll(context);
    BOOST_TEST(c.alarm.arm_after(1s)); // each has left its place once
    pawl::manual_timer timer(context, 1s);
    outcome beyond;
    timer.async_wait(record(beyond));
    poll(context);
    BOOST_TEST((beyond.code == asio::error::no_buffer_space));
}

BOOST_AUTO_TEST_CASE(at_max_pending_the_carrier_of_a_disarmed_alarm_has_its_place_elsewhere) {
    asio::io_context context;
    asio::io_context other;
    pawl::options o;
    o.max_pending = 1;
    pawl::make_timer_service<manual_clock>(context, o);
    auto elsewhere = asio::bind_executor(other, function([] {}));
    pawl::manual_alarm<decltype(elsewhere)> alarm(context, elsewhere);
    counted c(context);
    alarm.arm_after(1s);
    manual_clock::advance(context, 1s);
    poll(context); // hands it over
    BOOST_TEST(alarm.disarm());
    BOOST_TEST(!c.alarm.arm_after(1s));
    poll(other);
    BOOST_TEST(c.alarm.arm_after(1s));
}

BOOST_AUTO_TEST_CASE(at_max_pending_the_function_of_an_alarm_finds_its_own_place) {
    asio::io_context context;
    pawl::options o;
    o.max_pending = 1;
    pawl::make_timer_service<manual_clock>(context, o);
    int armed = 0;
    std::optional<pawl::manual_alarm<function>> alarm;
    alarm.emplace(context, [&] { armed += alarm->arm_after(1s); });
    alarm->arm_after(1s);
    for (int i = 0; i < 3; ++i) {
        manual_clock::advance(context, 1s);
        poll(context);
    }
    BOOST_TEST(armed == 3);
}

} // namespace alarm_test
