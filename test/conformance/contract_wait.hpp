// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Rows C17, C20-C24: when a wait ends, and in which order.

#ifndef PAWL_TEST_CONFORMANCE_CONTRACT_WAIT_HPP
#define PAWL_TEST_CONFORMANCE_CONTRACT_WAIT_HPP

#include "contract_support.hpp"

#include <deque>
#include <stdexcept>

namespace contract {

BOOST_AUTO_TEST_SUITE(waiting)

// ---- C17 ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C17_wait_blocks_until_the_expiry) {
    asio::io_context io;
    tut::steady_timer t(io, 3ms), u(io, 1500us);
    error_code code = asio::error::fault;

    t.wait();
    const auto after_first = clock::now();
    u.expires_after(1500us);
    u.wait(code);
    const auto after_second = clock::now();

    BOOST_TEST((after_first >= t.expiry()));
    BOOST_TEST((after_second >= u.expiry()));
    BOOST_TEST(!code);
}

BOOST_AUTO_TEST_CASE(C17_wait_returns_at_once_when_expired) {
    asio::io_context io;
    tut::steady_timer t(io, past()), u(io, clock::time_point::min());
    error_code code = asio::error::fault;

    t.wait();
    u.wait(code);

    BOOST_TEST(!code);
}

BOOST_AUTO_TEST_CASE(C17_wait_runs_no_handlers_and_leaves_other_waits_alone) {
    asio::io_context io;
    tut::steady_timer t(io, 2ms);
    std::string order;
    fate f{};
    t.async_wait(record(f));
    asio::post(io, say(order, 'a'));

    t.wait();
    const fate during = f;
    const std::string ran = order;
    run_to_end(io);

    BOOST_TEST(during == fate::pending);
    BOOST_TEST(ran == "");
    BOOST_TEST(f == fate::success);
    BOOST_TEST(order == "a");
}

BOOST_AUTO_TEST_CASE(C17_wait_in_a_handler_does_not_complete_the_other_waits) {
    asio::io_context io;
    tut::steady_timer t(io, 2ms);
    fate f{}, during{};
    t.async_wait(record(f));

    asio::post(io, [&] {
        t.wait();
        during = f;
    });
    run_to_end(io);

    BOOST_TEST(during == fate::pending);
    BOOST_TEST(f == fate::success);
}

// ---- C20 ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C20_an_expired_wait_never_completes_in_the_initiating_function) {
    asio::io_context io;
    tut::steady_timer t(io, past());
    fate outside{}, inside{}, after_inside{};
    bool inline_outside = false, inline_inside = false;

    t.async_wait(record(outside));
    inline_outside = outside != fate::pending;
    asio::post(io, [&] {
        t.async_wait(record(inside));
        inline_inside = inside != fate::pending;
        asio::post(io, [&] { after_inside = inside; });
    });
    run_to_end(io);

    BOOST_TEST(!inline_outside);
    BOOST_TEST(!inline_inside);
    BOOST_TEST(outside == fate::success);
    BOOST_TEST(inside == fate::success);
}

BOOST_AUTO_TEST_CASE(C20_an_expired_wait_queues_behind_what_is_posted_around_it) {
    asio::io_context io;
    tut::steady_timer t(io, past());
    std::string order;

    asio::post(io, say(order, 'a'));
    t.async_wait(record(order, 'T'));
    asio::post(io, say(order, 'b'));
    run_to_end(io);

    BOOST_TEST(order == "abT");
}

BOOST_AUTO_TEST_CASE(C20_the_same_in_a_context_that_has_run_before) {
    asio::io_context io;
    tut::steady_timer t(io, past());
    std::string order;
    t.async_wait(ignore);
    run_to_end(io);

    asio::post(io, [&] {
        asio::post(io, say(order, 'a'));
        t.async_wait(record(order, 'T'));
        asio::post(io, say(order, 'b'));
    });
    run_to_end(io);

    BOOST_TEST(order == "abT");
}

BOOST_AUTO_TEST_CASE(C20_a_wait_completes_once) {
    asio::io_context io;
    tut::steady_timer t(io, 1ms);
    fate f{};
    t.async_wait(record(f));
    run_to_end(io);

    t.cancel();
    t.expires_after(1ms);
    run_to_end(io);

    BOOST_TEST(f == fate::success);
}

// ---- C21, C22 -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C21_the_waits_of_one_timer_complete_in_the_order_of_their_start) {
    asio::io_context io;
    tut::steady_timer t(io, 2ms);
    std::string order;
    std::vector<fate> fates(5);
    for (std::size_t i = 0; i < fates.size(); ++i)
        t.async_wait(record(fates[i], order, static_cast<char>('0' + i)));

    run_to_end(io);

    BOOST_TEST(order == "01234");
    for (const fate f : fates)
        BOOST_TEST(f == fate::success);
}

BOOST_AUTO_TEST_CASE(C21_a_wait_started_by_a_handler_does_not_join_those_that_are_due) {
    asio::io_context io;
    tut::steady_timer t(io, 2ms);
    std::string order;
    t.async_wait([&](error_code) {
        order += '0';
        t.async_wait(record(order, '3'));
    });
    t.async_wait(record(order, '1'));
    t.async_wait(record(order, '2'));

    run_to_end(io);

    BOOST_TEST(order == "0123");
}

// In one ring the order is that of the starts. Waits that are already due need no ring, and have
// the same order.
inline constexpr const char* order_of_distinct_expiries = for_rings("312", "123");

// With rings so far ahead that all waits that start within 0.8 s are in the ring of one second.
inline constexpr auto deep_in_the_ring_of_a_second = for_rings(900ms, 0ms);

BOOST_AUTO_TEST_CASE(C22_timers_complete_in_the_order_of_their_expiry) {
    asio::io_context io;
    const auto base = clock::now() + deep_in_the_ring_of_a_second;
    tut::steady_timer late(io, base + 10ms), middle(io, base + 6ms), soon(io, base + 2ms);
    std::string order;
    late.async_wait(record(order, '3'));
    soon.async_wait(record(order, '1'));
    middle.async_wait(record(order, '2'));

    std::this_thread::sleep_until(base + 11ms);
    run_to_end(io);

    BOOST_TEST(order == order_of_distinct_expiries);
}

BOOST_AUTO_TEST_CASE(C22_so_do_timers_whose_expiry_was_past_when_the_wait_began) {
    asio::io_context io;
    const auto now = clock::now();
    tut::steady_timer late(io, now - 10ms), middle(io, now - 60ms), soon(io, now - 200ms);
    std::string order;
    late.async_wait(record(order, '3'));
    soon.async_wait(record(order, '1'));
    middle.async_wait(record(order, '2'));

    run_to_end(io);

    BOOST_TEST(order == order_of_distinct_expiries);
}

inline std::string complete_twelve(asio::io_context& io, clock::time_point when) {
    std::deque<tut::steady_timer> timers;
    std::string order;
    for (char name = 'a'; name < 'm'; ++name) {
        timers.emplace_back(io, when);
        timers.back().async_wait(record(order, name));
    }
    std::this_thread::sleep_until(when);
    run_to_end(io);
    return order;
}

// P7. Asio's binary heap does not keep the order of equal deadlines.
BOOST_AUTO_TEST_CASE(C22_equal_deadlines) {
    asio::io_context io;

    const std::string ahead =
        complete_twelve(io, clock::now() + deep_in_the_ring_of_a_second + 200ms);
    const std::string behind = complete_twelve(io, past());

    BOOST_TEST(ahead.size() == 12u);
    BOOST_TEST(behind.size() == 12u);
    if constexpr (under_test_is_pawl) {
        BOOST_TEST(ahead == "abcdefghijkl");
        BOOST_TEST(behind == "abcdefghijkl");
    } else {
        BOOST_TEST(ahead != "abcdefghijkl");
        BOOST_TEST(behind != "abcdefghijkl");
    }
}

// ---- C23 ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C23_no_wait_ends_before_its_expiry) {
    asio::io_context io;
    constexpr clock::duration delays[] = {1ns,    1us,    300us,  999us, 1000us,
                                          1001us, 1500us, 2999us, 7ms,   13ms};
    std::deque<tut::steady_timer> timers;
    int early = 0;
    std::size_t completed = 0;

    for (const auto delay : delays) {
        tut::steady_timer& t = timers.emplace_back(io, delay);
        t.async_wait([&, when = t.expiry()](error_code) {
            early += clock::now() < when;
            ++completed;
        });
    }
    run_to_end(io);

    BOOST_TEST(early == 0);
    BOOST_TEST(completed == std::size(delays));
}

BOOST_AUTO_TEST_CASE(C23_no_wait_of_a_chain_ends_before_its_expiry) {
    asio::io_context io;
    tut::steady_timer t(io);
    int early = 0, left = 20;
    std::function<void()> next = [&] {
        t.expires_after(std::chrono::microseconds(100 * left));
        t.async_wait([&](error_code) {
            early += clock::now() < t.expiry();
            if (--left > 0)
                next();
        });
    };

    next();
    run_to_end(io);

    BOOST_TEST(early == 0);
    BOOST_TEST(left == 0);
}

BOOST_AUTO_TEST_CASE(C23_an_earlier_timer_that_starts_later_is_not_kept_waiting) {
    asio::io_context io;
    tut::steady_timer late(io, 1h), soon(io, 2ms);
    fate f{}, g{};

    late.async_wait(record(f));
    soon.async_wait(record(g));
    run_until(io, [&] { return g != fate::pending; });
    late.cancel();
    run_to_end(io);

    BOOST_TEST(g == fate::success);
    BOOST_TEST((clock::now() >= soon.expiry()));
    BOOST_TEST(f == fate::aborted);
}

// ---- C24 ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C24_past_negative_and_minimal_expiries_succeed) {
    asio::io_context io;
    tut::steady_timer past_point(io, past()), epoch(io, clock::time_point());
    tut::steady_timer negative(io, -1h), minimal(io, clock::time_point::min());
    tut::steady_timer before_epoch(io, clock::time_point() - 1h), zero(io, 0ms);
    std::vector<fate> fates(6);

    past_point.async_wait(record(fates[0]));
    epoch.async_wait(record(fates[1]));
    negative.async_wait(record(fates[2]));
    minimal.async_wait(record(fates[3]));
    before_epoch.async_wait(record(fates[4]));
    zero.async_wait(record(fates[5]));
    run_to_end(io);

    for (const fate f : fates)
        BOOST_TEST(f == fate::success);
    BOOST_TEST((negative.expiry() < clock::now()));
    BOOST_TEST((minimal.expiry() == clock::time_point::min()));
}

BOOST_AUTO_TEST_CASE(C24_the_maximal_expiry_never_comes_and_is_work_until_cancelled) {
    asio::io_context io;
    tut::steady_timer t(io, latest()), near_max(io, latest() - 1ns);
    fate f{}, g{};
    t.async_wait(record(f));
    near_max.async_wait(record(g));

    io.run_for(20ms);
    BOOST_TEST(!io.stopped());
    BOOST_TEST(f == fate::pending);
    if constexpr (rings_under_test) {
        // No ring is that long. The timer and its wait do not change.
        const auto when = t.expiry();
        BOOST_CHECK_THROW(t.expires_at(clock::time_point::max()), std::invalid_argument);
        BOOST_CHECK_THROW(tut::steady_timer(io, clock::time_point::max()), std::invalid_argument);
        BOOST_TEST((t.expiry() == when));
    }
    BOOST_TEST(t.cancel() == one);
    BOOST_TEST(near_max.cancel() == one);
    run_to_end(io);

    BOOST_TEST(f == fate::aborted);
    BOOST_TEST(g == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C24_a_wait_without_end_does_not_keep_others_waiting) {
    asio::io_context io;
    tut::steady_timer never(io, latest()), soon(io, 2ms);
    fate f{}, g{};

    never.async_wait(record(f));
    soon.async_wait([&](error_code code) {
        settle(g, code);
        never.cancel();
    });
    run_to_end(io);

    BOOST_TEST(g == fate::success);
    BOOST_TEST(f == fate::aborted);
}

BOOST_AUTO_TEST_CASE(C24_now_plus_a_duration_saturates) {
    asio::io_context io;
    tut::steady_timer t(io, for_rings(clock::duration(1h), clock::duration::max()));
    fate f{};

    if constexpr (rings_under_test) {
        const auto when = t.expiry();
        BOOST_CHECK_THROW(t.expires_after(clock::duration::max()), std::invalid_argument);
        BOOST_TEST((t.expiry() == when));
    } else {
        BOOST_TEST((t.expiry() == clock::time_point::max()));
        t.expires_after(clock::duration::max() - 1ns);
        BOOST_TEST((t.expiry() == clock::time_point::max()));
    }
    t.async_wait(record(f));
    BOOST_TEST(busy_after_poll(io));
    BOOST_TEST(t.expires_after(clock::duration::min()) == one);
    BOOST_TEST((t.expiry() < clock::time_point()));
    run_to_end(io);
    BOOST_TEST(f == fate::aborted);

    f = fate::pending;
    t.async_wait(record(f));
    run_to_end(io);
    BOOST_TEST(f == fate::success);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace contract

#endif // PAWL_TEST_CONFORMANCE_CONTRACT_WAIT_HPP
