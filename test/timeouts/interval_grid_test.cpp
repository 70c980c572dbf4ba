// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The grid of an interval without timers: its state if two threads change it between two calls.

#define BOOST_TEST_MODULE interval_grid
#include <boost/test/unit_test.hpp>

#include <pawl/interval/interval_grid.hpp>

#include <chrono>

namespace {

using namespace std::chrono_literals;
using grid_type = pawl::detail::interval_grid<std::chrono::steady_clock>;
using time_point = grid_type::time_point;

const time_point start{1h};

} // namespace

BOOST_AUTO_TEST_CASE(a_tick_is_awaited_until_its_last_wait_has_left) {
    grid_type grid(start, 1s, pawl::missed_tick_policy::burst);
    const auto tick = grid.join();
    (void)grid.join();

    grid.leave(tick.number);
    BOOST_CHECK(grid.awaited(tick.number));
    grid.leave(tick.number);

    BOOST_CHECK(!grid.awaited(tick.number));
}

// If a ring refuses a reset, the reset is undone. In the meantime another thread may have delivered
// the tick.
BOOST_AUTO_TEST_CASE(what_is_taken_back_leaves_the_tick_that_follows_a_delivered_one) {
    grid_type grid(start, 1s, pawl::missed_tick_policy::burst);
    const auto tick = grid.join();
    const auto before = grid.save();
    BOOST_REQUIRE_EQUAL(grid.deliver(tick.number, start), 0u);

    grid.restore(before);

    BOOST_CHECK_EQUAL(grid.scheduled().number, tick.number + 1);
    BOOST_CHECK(grid.scheduled().due == start + 1s);
}
