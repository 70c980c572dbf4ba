// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The counts and the memory of an interval timer over many ticks: the numbers of skipped ticks,
//   as delayed waits see them, and the timers of past ticks.

#include <pawl/interval_timer.hpp>

#define BOOST_TEST_MODULE interval_cost
#include <boost/test/unit_test.hpp>

#include "../service/counted_new.hpp"
#include "../service/service_support.hpp"

#include <boost/asio/bind_executor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace {

using namespace service_test;
using pawl::manual_clock;
using pawl::missed_tick_policy;
using interval = pawl::basic_interval_timer<manual_clock>;

/// The outcome of a wait.
struct delivery {
    auto record() {
        return [this](error_code ec, std::uint64_t n) {
            ++calls;
            code = ec;
            missed = n;
        };
    }
    bool ticked() const noexcept { return calls == 1 && !code; }

    int calls = 0;
    error_code code;
    std::uint64_t missed = 0;
};

} // namespace

// The grid has points 0, 10, 20 ms and so on. The delayed wait is for the first of them. Its result
// is the number of points that have passed, whether they were delivered to others or skipped.
BOOST_AUTO_TEST_CASE(skip_counts_every_point_of_the_grid_also_for_a_wait_that_is_held_up) {
    for (const int overrun : {1, 2, 3, 7}) {
        for (const int overruns : {1, 2, 5}) {
            asio::io_context context;
            manual_context elsewhere;
            interval ticks(context, 10ms, missed_tick_policy::skip);
            delivery held_up;
            delivery first;
            ticks.async_wait(asio::bind_executor(elsewhere.get_executor(), held_up.record()));
            ticks.async_wait(first.record());
            poll(context);
            BOOST_REQUIRE(first.ticked());

            std::uint64_t points = 0; // after the first
            for (int i = 0; i < overruns; ++i) {
                delivery late;
                ticks.async_wait(late.record());
                // So many more points pass before the next one is delivered.
                manual_clock::advance(context, 10ms * (1 + overrun));
                poll(context);
                BOOST_REQUIRE(late.ticked());
                BOOST_CHECK_EQUAL(late.missed, static_cast<std::uint64_t>(overrun));
                points += 1 + late.missed;
            }
            elsewhere.poll();

            BOOST_CHECK(held_up.ticked());
            BOOST_CHECK_EQUAL(held_up.missed, points);
        }
    }
}

BOOST_AUTO_TEST_CASE(delay_counts_every_tick_that_was_left_out_for_a_wait_that_is_held_up) {
    asio::io_context context;
    manual_context elsewhere;
    interval ticks(context, 10ms, missed_tick_policy::delay);
    delivery held_up;
    delivery first;
    ticks.async_wait(asio::bind_executor(elsewhere.get_executor(), held_up.record()));
    ticks.async_wait(first.record());
    poll(context);
    delivery late;
    ticks.async_wait(late.record());
    manual_clock::advance(context, 45ms);
    poll(context);
    BOOST_REQUIRE(late.ticked());
    BOOST_CHECK_EQUAL(late.missed, 3U);

    elsewhere.poll();

    BOOST_CHECK_EQUAL(held_up.missed, 4U);
}

// If waits overlap, each tick has a timer of its own until the last of its waits is over.
BOOST_AUTO_TEST_CASE(P8_ticks_whose_waits_overlap_leave_nothing_behind) {
    asio::io_context context;
    std::array<manual_context, 2> elsewhere;
    std::array<delivery, 2> held_up;
    interval ticks(context, 10ms);
    std::size_t i = 0;
    const auto one_tick = [&] {
        manual_context& there = elsewhere[i % 2];
        delivery& late = held_up[i % 2];
        there.poll(); // the wait for the second last tick
        BOOST_REQUIRE_EQUAL(late.calls, i < 2 ? 0 : 1);
        late = {};
        delivery in_time;
        ticks.async_wait(asio::bind_executor(there.get_executor(), late.record()));
        ticks.async_wait(in_time.record());
        manual_clock::advance(context, 10ms);
        poll(context);
        BOOST_REQUIRE(in_time.ticked());
        ++i;
    };
    while (i != 50)
        one_tick();
    const std::size_t before = counted_new::live;

    while (i != 1050)
        one_tick();

    BOOST_CHECK_LE(counted_new::live, before + 10); // a constant, whatever the number of ticks
}

BOOST_AUTO_TEST_CASE(P8_a_wait_per_tick_keeps_the_memory_of_one,
                     *boost::unit_test::enable_if<pawl::detail::block_cache::keeps>()) {
    asio::io_context context;
    interval ticks(context, 10ms);
    const auto one_tick = [&] {
        delivery d;
        ticks.async_wait(d.record());
        manual_clock::advance(context, 10ms);
        poll(context);
        BOOST_REQUIRE(d.ticked());
    };
    for (int i = 0; i < 10; ++i)
        one_tick();
    const std::size_t calls = counted_new::calls;
    const std::size_t live = counted_new::live;

    for (int i = 0; i < 1000; ++i)
        one_tick();

    BOOST_CHECK_EQUAL(counted_new::calls - calls, none);
    BOOST_CHECK_EQUAL(counted_new::live, live);
}
