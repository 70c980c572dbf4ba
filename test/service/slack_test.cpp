// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// expires_within() and rearm_within() on the default backend and on the binary wheel: any expiry in
// the range is allowed, and they choose the one that saves wake-ups.

#define BOOST_TEST_MODULE slack
#include "support/seed.hpp"

#include <pawl/manual_clock.hpp>
#include <pawl/on_backend.hpp>
#include <pawl/time/binary_wheel.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;
using boost::system::error_code;
using pawl::manual_clock;
using clock_duration = manual_clock::duration;

using binary_manual_timer = pawl::basic_waitable_timer<
    manual_clock, pawl::on_backend<pawl::time::binary_wheel, asio::wait_traits<manual_clock>>>;
using timers = boost::mpl::list<pawl::manual_timer, binary_manual_timer>;

template <class Timer>
void with_precision(asio::io_context& context, std::chrono::nanoseconds precision) {
    pawl::options o;
    o.precision = precision;
    pawl::make_timer_service<Timer>(context, o);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(P1_P2_the_expiry_lies_in_the_range, Timer, timers) {
    std::mt19937_64 random(pawl_test::seed());
    std::uniform_int_distribution<clock_duration::rep> offset(-5'000'000, 40'000'000);
    for (const auto precision : {std::chrono::nanoseconds(1ns), std::chrono::nanoseconds(1ms)}) {
        asio::io_context context;
        with_precision<Timer>(context, precision);
        Timer timer(context);
        for (int i = 0; i < 2000; ++i) {
            const clock_duration a(offset(random));
            const clock_duration b(offset(random));
            const auto [min, max] = std::minmax(a, b);
            const auto now = manual_clock::now();
            if (i % 2 == 0)
                timer.expires_within(min, max);
            else
                timer.rearm_within(min, max);
            BOOST_REQUIRE(now + min <= timer.expiry());
            BOOST_REQUIRE(timer.expiry() <= now + max);

            bool done = false;
            timer.async_wait([&](const error_code& ec) { done = !ec; });
            context.restart();
            context.poll();
            if (max > clock_duration::zero() && !done) {
                // It is due at its expiry, or within the tick that follows.
                manual_clock::advance(context, timer.expiry() - now - 1ns);
                context.restart();
                context.poll();
                BOOST_REQUIRE(!done || manual_clock::now() >= timer.expiry());
                manual_clock::advance(context, precision);
                context.restart();
                context.poll();
            }
            BOOST_REQUIRE(done);
            manual_clock::advance(context, clock_duration(i * 7919));
        }
    }
}

// A tick that has started cannot be used: a wait that expires now or before is due at once.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_range_that_no_tick_is_to_begin_in_expires_at_its_end, Timer,
                              timers) {
    asio::io_context context;
    with_precision<Timer>(context, 1ms);
    Timer timer(context);
    manual_clock::advance(context, 1ms - manual_clock::now().time_since_epoch() % 1ms);
    for (const auto min : {clock_duration(-5ms), clock_duration::zero()}) {
        const auto now = manual_clock::now();

        timer.expires_within(min, 500us);
        BOOST_TEST((timer.expiry() == now + 500us));
        timer.rearm_within(min, 600us);
        BOOST_TEST((timer.expiry() == now + 600us));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_range_in_which_one_tick_begins_expires_there, Timer, timers) {
    asio::io_context context;
    with_precision<Timer>(context, 1ms);
    Timer timer(context);
    manual_clock::advance(context, 1ms - manual_clock::now().time_since_epoch() % 1ms);
    const auto now = manual_clock::now();

    timer.expires_within(9500us, 10400us);

    BOOST_TEST((timer.expiry() == now + 10ms));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_range_is_moved_without_completing_the_wait, Timer, timers) {
    asio::io_context context;
    Timer timer(context);
    timer.expires_within(10s, 12s);
    int calls = 0;
    timer.async_wait([&](const error_code& ec) {
        BOOST_TEST(!ec);
        ++calls;
    });
    const auto first = timer.expiry();
    manual_clock::advance(context, 9s);
    BOOST_TEST(timer.rearm_within(10s, 12s) == 1U);
    BOOST_TEST((timer.expiry() > first));
    manual_clock::advance(context, 9s);
    context.poll();
    BOOST_TEST(calls == 0);
    manual_clock::advance(context, 3s);
    context.restart();
    context.poll();
    BOOST_TEST(calls == 1);
    BOOST_TEST(timer.rearm_within(1s, 2s) == 0U); // nothing pending: only the expiry was set
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_range_of_one_point_is_that_point, Timer, timers) {
    asio::io_context context;
    Timer timer(context);
    timer.expires_within(2s, 2s);
    BOOST_TEST((timer.expiry() == manual_clock::now() + 2s));
    (void)timer.rearm_within(3s, 3s);
    BOOST_TEST((timer.expiry() == manual_clock::now() + 3s));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_range_that_is_none_is_refused_and_nothing_is_lost, Timer, timers) {
    asio::io_context context;
    Timer timer(context, 5s);
    const auto expiry = timer.expiry();
    bool aborted = false;
    timer.async_wait([&](const error_code& ec) { aborted = bool(ec); });
    const auto says_it = [](const std::invalid_argument& e) {
        return std::string(e.what()).find("max must not be less than min") != std::string::npos;
    };
    BOOST_CHECK_EXCEPTION(timer.expires_within(2s, 1s), std::invalid_argument, says_it);
    BOOST_CHECK_EXCEPTION(timer.rearm_within(2s, 1s), std::invalid_argument, says_it);
    context.poll();
    BOOST_TEST(!aborted);
    BOOST_TEST((timer.expiry() == expiry));
    BOOST_TEST(timer.cancel() == 1U);
    context.restart();
    context.poll();
}

/// How often the clock has to stop until 1000 timers, due within a minute, have expired.
template <class Timer>
std::size_t stops(int slack_percent) {
    std::mt19937_64 random(1);
    std::uniform_int_distribution<int> delay(1'000, 60'000);
    asio::io_context context;
    with_precision<Timer>(context, 1ms);
    std::vector<std::unique_ptr<Timer>> all;
    std::size_t expired = 0;
    for (int i = 0; i < 1000; ++i) {
        const std::chrono::milliseconds least(delay(random));
        all.push_back(std::make_unique<Timer>(context));
        all.back()->expires_within(least, least * (100 + slack_percent) / 100);
        all.back()->async_wait([&](const error_code& ec) { expired += !ec; });
    }
    std::size_t count = 0;
    while (expired != all.size()) {
        manual_clock::advance_to_next(context);
        context.restart();
        context.poll();
        ++count;
    }
    return count;
}

BOOST_AUTO_TEST_CASE_TEMPLATE(slack_saves_wake_ups, Timer, timers) {
    const auto exact = stops<Timer>(0);
    const auto five = stops<Timer>(5);
    const auto twenty = stops<Timer>(20);
    BOOST_TEST_MESSAGE(exact << " stops without slack, " << five << " with 5 %, " << twenty
                             << " with 20 %");
    BOOST_TEST(exact > 900U);
    BOOST_TEST(five < exact / 4);
    BOOST_TEST(twenty < five / 2);
}

} // namespace
