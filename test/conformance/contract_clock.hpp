// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Rows C40, C41, and the parts of C22 and C24 on clocks that stand still: the user's own clocks and
// wait traits.

#ifndef PAWL_TEST_CONFORMANCE_CONTRACT_CLOCK_HPP
#define PAWL_TEST_CONFORMANCE_CONTRACT_CLOCK_HPP

#include "contract_support.hpp"

#include <atomic>
#include <deque>
#include <stdexcept>
#include <thread>

namespace contract {

BOOST_AUTO_TEST_SUITE(clocks)

template <typename Clock>
using polling_timer = tut::basic_waitable_timer<Clock, polling_traits<Clock>>;

// ---- C40 ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C40_a_wait_follows_a_clock_that_is_moved_by_hand) {
    using stepped = stepped_clock<struct C40_follows>;
    io_context_for<polling_timer<stepped>> io;
    stepped::set(100h);
    polling_timer<stepped> t(io, 10min);
    fate f{}, before{}, almost{};
    t.async_wait(record(f));

    io.run_for(5ms);
    before = f;
    stepped::set(100h + 10min - 1ns);
    io.run_for(5ms);
    almost = f;
    stepped::set(100h + 10min);
    run_to_end(io);

    BOOST_TEST((t.expiry() == stepped::time_point(100h + 10min)));
    BOOST_TEST(before == fate::pending);
    BOOST_TEST(almost == fate::pending);
    BOOST_TEST(f == fate::success);
    BOOST_TEST(polling_traits<stepped>::calls.load() > 0);
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(C40_a_wait_follows_a_clock_that_is_moved_while_run_sleeps) {
    using stepped = stepped_clock<struct C40_sleeps>;
    io_context_for<polling_timer<stepped>> io;
    polling_timer<stepped> t(io, 24h);
    fate f{};
    bool early = true;
    t.async_wait([&](error_code code) {
        settle(f, code);
        early = stepped::now() < t.expiry();
    });

    std::thread mover([] {
        std::this_thread::sleep_for(5ms);
        stepped::set(25h);
    });
    run_to_end(io);
    mover.join();

    BOOST_TEST(f == fate::success);
    BOOST_TEST(!early);
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(C40_a_blocking_wait_follows_the_clock_too) {
    using stepped = stepped_clock<struct C40_blocking>;
    io_context_for<polling_timer<stepped>> io;
    polling_timer<stepped> t(io, 24h);

    std::thread mover([] {
        std::this_thread::sleep_for(5ms);
        stepped::set(24h);
    });
    t.wait();
    const bool early = stepped::now() < t.expiry();
    mover.join();

    BOOST_TEST(!early);
}

BOOST_AUTO_TEST_CASE(C40_timers_of_a_stepped_clock_are_cancelled_moved_and_counted) {
    using stepped = stepped_clock<struct C40_counted>;
    io_context_for<polling_timer<stepped>> io;
    polling_timer<stepped> t(io, 1h), u(io, 2h);
    fate f{}, g{}, h{};
    t.async_wait(record(f));
    u.async_wait(record(g));

    BOOST_TEST(t.cancel() == one);
    polling_timer<stepped> target(std::move(u));
    target.async_wait(record(h));
    BOOST_TEST(target.cancel_one() == one);
    stepped::set(2h);
    run_to_end(io);

    BOOST_TEST(f == fate::aborted);
    BOOST_TEST(g == fate::aborted);
    BOOST_TEST(h == fate::success);
}

BOOST_AUTO_TEST_CASE(C40_several_clocks_share_a_context) {
    using first = stepped_clock<struct C40_first>;
    using second = stepped_clock<struct C40_second>;
    io_context_for<polling_timer<first>, polling_timer<second>, tut::basic_waitable_timer<first>>
        io;
    polling_timer<first> t(io, 1h);
    polling_timer<second> u(io, 1h);
    tut::basic_waitable_timer<first> v(io, 1h); // the same clock, other traits
    tut::steady_timer real(io, 2ms);
    fate f{}, g{}, h{}, i{};
    t.async_wait(record(f));
    u.async_wait(record(g));
    v.async_wait(record(h));
    real.async_wait(record(i));

    second::set(1h);
    run_until(io, [&] { return g != fate::pending && i != fate::pending; });
    const fate f_then = f;
    first::set(1h);
    run_until(io, [&] { return f != fate::pending; });
    v.cancel();
    run_to_end(io);

    BOOST_TEST(g == fate::success);
    BOOST_TEST(i == fate::success);
    BOOST_TEST(f_then == fate::pending);
    BOOST_TEST(f == fate::success);
    BOOST_TEST(h != fate::pending);
}

struct seconds_clock {
    using duration = std::chrono::duration<int, std::ratio<1>>;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<seconds_clock>;
    static constexpr bool is_steady = true;
    static time_point now() { return time_point(duration(current.load())); }
    inline static std::atomic<int> current{0};
};

struct seconds_traits {
    static seconds_clock::duration to_wait_duration(const seconds_clock::duration&) {
        return seconds_clock::duration(0); // shorter than the unit: asks again at once
    }
};

BOOST_AUTO_TEST_CASE(C40_a_clock_may_be_coarse_and_narrow) {
    using timer = tut::basic_waitable_timer<seconds_clock, seconds_traits>;
    using duration = seconds_clock::duration;
    using time_point = seconds_clock::time_point;
    asio::io_context io;
    timer t(io, duration(10)), never(io, duration::max());
    fate f{}, g{};

    seconds_clock::current.store(5);
    never.expires_after(duration::max());
    BOOST_TEST((never.expiry() == time_point::max()));
    t.async_wait(record(f));
    never.async_wait(record(g));
    io.run_for(3ms);
    BOOST_TEST(f == fate::pending);
    seconds_clock::current.store(10);
    run_until(io, [&] { return f != fate::pending; });
    BOOST_TEST(f == fate::success);
    BOOST_TEST(g == fate::pending);
    BOOST_TEST(never.cancel() == one);
    run_to_end(io);
    BOOST_TEST(g == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C40_a_clock_may_stand_before_its_epoch) {
    using stepped = stepped_clock<struct C40_epoch>;
    stepped::set(-10h);
    io_context_for<polling_timer<stepped>> io;
    polling_timer<stepped> t(io, 1h), unset(io), least(io);
    fate f{}, g{}, h{};

    BOOST_TEST((t.expiry() == stepped::time_point(-9h)));
    least.expires_after(stepped::duration::min());
    BOOST_TEST((least.expiry() == stepped::time_point::min()));
    t.async_wait(record(f));
    unset.async_wait(record(g)); // the epoch is in the future
    least.async_wait(record(h));
    run_until(io, [&] { return h != fate::pending; });
    io.run_for(3ms);
    BOOST_TEST(h == fate::success);
    BOOST_TEST(f == fate::pending);
    stepped::set(-9h);
    run_until(io, [&] { return f != fate::pending; });
    BOOST_TEST(f == fate::success);
    BOOST_TEST(g == fate::pending);
    stepped::set(0h);
    run_to_end(io);
    BOOST_TEST(g == fate::success);
}

BOOST_AUTO_TEST_CASE(C40_sums_saturate_at_both_ends_of_the_clock) {
    using stepped = stepped_clock<struct C40_saturates>;
    using time_point = stepped::time_point;
    using duration = stepped::duration;
    io_context_for<polling_timer<stepped>> io;
    polling_timer<stepped> t(io);

    stepped::set(time_point::max() - 5ns);
    t.expires_after(duration(5));
    BOOST_TEST((t.expiry() == time_point::max()));
    t.expires_after(duration(6));
    BOOST_TEST((t.expiry() == time_point::max()));
    t.expires_after(duration(-1));
    BOOST_TEST((t.expiry() == time_point::max() - 6ns));
    stepped::set(time_point::min() + 5ns);
    t.expires_after(duration(-6));
    BOOST_TEST((t.expiry() == time_point::min()));
    if constexpr (rings_under_test) {
        BOOST_CHECK_THROW(t.expires_at(time_point::max()), std::invalid_argument);
        BOOST_TEST((t.expiry() == time_point::min()));
    } else {
        t.expires_at(time_point::max());
        fate f{};
        t.async_wait(record(f));
        BOOST_TEST(busy_after_poll(io));
        BOOST_TEST(t.cancel() == one);
        run_to_end(io);
        BOOST_TEST(f == fate::aborted);
    }
}

// ---- C22 on a clock that stands still -----------------------------------------------------------

BOOST_AUTO_TEST_CASE(C22_after_a_jump_of_a_day_timers_complete_in_the_order_of_their_expiry) {
    using stepped = stepped_clock<struct C22_jump>;
    io_context_for<polling_timer<stepped>> io;
    std::deque<polling_timer<stepped>> timers;
    std::vector<int> order, expected;
    constexpr int n = 97;                    // coprime to the step, so that all are visited
    constexpr auto base = for_rings(2h, 0h); // all use the ring of a day, in the order of starts
    for (int i = 0; i < n; ++i) {
        const int minute = (i * 31) % n;
        timers.emplace_back(io, base + std::chrono::minutes(minute + 1));
        timers.back().async_wait([&order, minute](error_code) { order.push_back(minute); });
        expected.push_back(for_rings(minute, i));
    }

    stepped::set(24h);
    run_to_end(io);

    BOOST_TEST(order == expected, boost::test_tools::per_element());
}

// P7: within one tick of Pawl's precision (1 ms) the order is that of the starts.
BOOST_AUTO_TEST_CASE(C22_expiries_within_one_tick) {
    using stepped = stepped_clock<struct C22_tick>;
    io_context_for<polling_timer<stepped>> io;
    stepped::set(0h);
    polling_timer<stepped> later(io, 1h + 200us), sooner(io, 1h + 100us);
    std::string order;
    later.async_wait(record(order, 'l'));
    sooner.async_wait(record(order, 's'));

    stepped::set(2h);
    run_to_end(io);

    BOOST_TEST(order == by_design(std::string("ls"), std::string("sl")));
}

// ---- C41 ----------------------------------------------------------------------------------------

// No wait traits shorten the sleep here. The longest sleep of the service notices the jump: one
// second in Pawl, five minutes in Asio.
BOOST_AUTO_TEST_CASE(C41_a_jump_of_a_clock_that_is_not_steady) {
    using stepped = stepped_clock<struct C41_jump, false>;
    asio::io_context io;
    stepped::set(1h);
    tut::basic_waitable_timer<stepped> t(io, 1h);
    fate f{};
    bool early = true;
    t.async_wait([&](error_code code) {
        settle(f, code);
        early = stepped::now() < t.expiry();
    });
    io.run_for(5ms);
    const fate before = f;

    stepped::set(3h);
    if constexpr (under_test_is_pawl) {
        run_to_end(io);
        BOOST_TEST(f == fate::success);
        BOOST_TEST(!early);
    } else {
        io.run_for(40ms);
#if !defined(                                                                                      \
    BOOST_ASIO_DISABLE_TIMERFD) // otherwise Asio reads all clocks whenever its reactor runs
        BOOST_TEST(f == fate::pending);
#endif
        t.cancel();
        run_to_end(io);
    }

    BOOST_TEST(before == fate::pending);
}

BOOST_AUTO_TEST_CASE(C41_no_wait_ends_early_when_the_clock_goes_back) {
    using stepped = stepped_clock<struct C41_back, false>;
    asio::io_context io;
    stepped::set(10h);
    polling_timer<stepped> t(io, 1h), u(io, 2h), soon(io, 1min);
    fate f{}, g{}, h{};
    t.async_wait(record(f));
    u.async_wait(record(g));
    soon.async_wait(record(h));

    stepped::set(10h + 30min);
    run_until(io, [&] { return h != fate::pending; });
    stepped::set(5h);
    polling_timer<stepped> again(io, 1h);
    fate i{};
    again.async_wait(record(i));
    io.run_for(5ms);
    BOOST_TEST(f == fate::pending);
    BOOST_TEST(i == fate::pending);
    stepped::set(6h);
    run_until(io, [&] { return i != fate::pending; });
    BOOST_TEST(i == fate::success);
    BOOST_TEST(f == fate::pending);
    stepped::set(11h);
    run_until(io, [&] { return f != fate::pending; });
    BOOST_TEST(f == fate::success);
    BOOST_TEST(g == fate::pending);
    stepped::set(12h);
    run_to_end(io);
    BOOST_TEST(g == fate::success);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace contract

#endif // PAWL_TEST_CONFORMANCE_CONTRACT_CLOCK_HPP
