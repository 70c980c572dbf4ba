// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The grid of an interval without timers: its state if two threads change it between two calls, or
//   if its clock is set.

#define BOOST_TEST_MODULE interval_grid
#include <boost/test/unit_test.hpp>

#include "../service/counted_new.hpp"

#include <pawl/basic_interval_timer.hpp>

#include <pawl/detail/interval/interval_grid.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>

namespace {

using namespace std::chrono_literals;
using grid_type = pawl::detail::interval_grid<std::chrono::steady_clock>;
using time_point = grid_type::time_point;

const time_point start{1h};

/// A clock that may be set.
struct wall_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<wall_clock>;
    static constexpr bool is_steady = false;
};
using wall_grid = pawl::detail::interval_grid<wall_clock>;

/// The wall clock shows `wall`, so long after some beginning.
wall_grid::sight at(wall_clock::duration wall, std::chrono::nanoseconds after) {
    return {wall_clock::time_point(wall), std::chrono::steady_clock::time_point(7h + after)};
}

} // namespace

BOOST_AUTO_TEST_CASE(a_tick_is_awaited_until_its_last_wait_has_left) {
    grid_type grid(start, 1s, pawl::missed_tick_policy::burst, {start});
    const auto tick = grid.join();
    (void)grid.join();

    grid.end_wait(tick.number);
    BOOST_CHECK(grid.awaited(tick.number));
    grid.end_wait(tick.number);

    BOOST_CHECK(!grid.awaited(tick.number));
}

// If a ring refuses a reset, the reset is undone. In the meantime another thread may have delivered
// the tick.
BOOST_AUTO_TEST_CASE(what_is_taken_back_leaves_the_tick_that_follows_a_delivered_one) {
    grid_type grid(start, 1s, pawl::missed_tick_policy::burst, {start});
    const auto tick = grid.join();
    const auto before = grid.save();
    BOOST_REQUIRE_EQUAL(grid.deliver(tick.number, {start}), 0u);

    grid.restore(before);

    BOOST_CHECK_EQUAL(grid.scheduled().number, tick.number + 1);
    BOOST_CHECK(grid.scheduled().due == start + 1s);
}

// What a reset has changed besides the time of the tick shows when the period changes.
BOOST_AUTO_TEST_CASE(what_is_taken_back_leaves_no_trace) {
    grid_type grid(start, 1s, pawl::missed_tick_policy::burst, {start});
    BOOST_REQUIRE_EQUAL(grid.deliver(grid.join().number, {start}), 0u);
    auto before = grid.save();
    grid.reset_at(start + 5s);
    grid.restore(before);
    BOOST_CHECK(grid.set_period(3s, start).due == start + 3s);

    before = grid.save();
    grid.reset(start + 500ms);
    grid.restore(before);
    BOOST_CHECK(grid.set_period(2s, start).due == start + 2s);

    before = grid.save();
    grid.set_period(7s, start);
    grid.restore(before);
    BOOST_CHECK(grid.period() == 2s);
    BOOST_CHECK(grid.scheduled().due == start + 2s);
}

BOOST_AUTO_TEST_CASE(waits_for_one_tick_need_no_memory_in_the_grid) {
    grid_type grid(start, 1s, pawl::missed_tick_policy::burst, {start});
    const auto before = counted_new::calls.load();
    for (int i = 0; i < 100; ++i)
        (void)grid.join();

    BOOST_CHECK_EQUAL(counted_new::calls.load(), before);
}

BOOST_AUTO_TEST_CASE(a_policy_that_is_none_is_refused_and_changes_nothing) {
    using policy = pawl::missed_tick_policy;
    const auto none = static_cast<policy>(7);
    BOOST_CHECK_THROW(grid_type(start, 1s, none, {start}), std::invalid_argument);
    for (const policy p : {policy::burst, policy::delay, policy::skip}) {
        grid_type grid(start, 1s, p, {start});
        BOOST_CHECK_THROW(grid.set_policy(none), std::invalid_argument);
        BOOST_CHECK(grid.policy() == p);
    }
}

// Otherwise a timer would be kept for it.
BOOST_AUTO_TEST_CASE(a_wait_that_ends_without_its_tick_is_not_awaited) {
    using ticket = pawl::detail::interval_ticket<std::chrono::steady_clock>;
    const auto grid = std::make_shared<grid_type>(start, 1s, pawl::missed_tick_policy::burst,
                                                  grid_type::sight{start});
    {
        const ticket destroyed(grid);
        BOOST_CHECK(grid->awaited(0));
    }
    BOOST_CHECK(!grid->awaited(0));

    bool awaited = true;
    const auto look = [&](const boost::system::error_code&, std::uint64_t) {
        awaited = grid->awaited(0);
    };
    pawl::detail::interval_handler<std::chrono::steady_clock, decltype(look)> handler(ticket(grid),
                                                                                      look);
    BOOST_CHECK(grid->awaited(0));
    handler(boost::asio::error::operation_aborted);
    BOOST_CHECK(!awaited); // by a wait that the handler starts
}

// The clock gains while a tick is pending. Up to a second may be an adjustment.
BOOST_AUTO_TEST_CASE(a_burst_makes_up_for_time_that_has_passed_and_not_for_a_clock_that_was_set) {
    const auto missed_until = [](const wall_grid::sight& delivery) {
        wall_grid grid(at(0s, 0s).now, 1s, pawl::missed_tick_policy::burst, at(0s, 0s));
        const std::uint64_t missed = grid.deliver(grid.join().number, delivery);
        BOOST_CHECK_EQUAL(missed, 3600u);
        return grid.scheduled().due.time_since_epoch();
    };

    BOOST_CHECK(missed_until(at(1h, 1h)) == 1s);
    BOOST_CHECK(missed_until(at(1h, 2h)) == 1s);
    BOOST_CHECK(missed_until(at(1h, 1h - 1s)) == 1s);
    BOOST_CHECK(missed_until(at(1h, 1h - 1s - 1ns)) == 1h + 1s);
    BOOST_CHECK(missed_until(at(1h + 1ms, 0s)) == 1h + 1s); // on the grid
}

BOOST_AUTO_TEST_CASE(a_clock_that_was_set_once_is_trusted_from_then_on) {
    wall_grid grid(at(0s, 0s).now, 1s, pawl::missed_tick_policy::burst, at(0s, 0s));
    BOOST_CHECK_EQUAL(grid.deliver(grid.join().number, at(1h, 0s)), 3600u);
    BOOST_REQUIRE(grid.scheduled().due.time_since_epoch() == 1h + 1s);

    for (const auto due : {1s, 2s, 3s}) { // one after the other
        BOOST_CHECK(grid.scheduled().due.time_since_epoch() == 1h + due);
        BOOST_CHECK_EQUAL(grid.deliver(grid.join().number, at(1h + 3s, 3s)),
                          static_cast<std::uint64_t>((3s - due) / 1s));
    }
    BOOST_CHECK(grid.scheduled().due.time_since_epoch() == 1h + 4s);
}

// No tick is early by its clock.
BOOST_AUTO_TEST_CASE(a_clock_that_was_set_back_leaves_the_tick_where_it_is) {
    wall_grid grid(at(3h, 0s).now, 1s, pawl::missed_tick_policy::burst, at(3h, 0s));
    BOOST_CHECK_EQUAL(grid.deliver(grid.join().number, at(3h, 0s)), 0u);

    BOOST_CHECK_EQUAL(grid.deliver(grid.join().number, at(1h, 1h)), 0u); // by expire_all()
    BOOST_CHECK(grid.scheduled().due.time_since_epoch() == 3h + 1s);
    BOOST_CHECK_EQUAL(grid.deliver(grid.join().number, at(3h + 3s, 3h + 3s)), 2u);
    BOOST_CHECK(grid.scheduled().due.time_since_epoch() == 3h + 2s); // and makes up for the others
}
