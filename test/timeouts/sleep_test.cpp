// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   pawl::sleep_for and pawl::sleep_until.

#define BOOST_TEST_MODULE sleep
#include <boost/test/unit_test.hpp>

#include "timeout_support.hpp"

#include <pawl/sleep.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace {

using namespace timeouts;
using asio::awaitable;

struct fixture {
    asio::io_context context;
    asio::cancellation_signal signal;
    int calls = 0;
    std::exception_ptr error;

    void start(awaitable<void> coroutine) {
        calls = 0;
        error = nullptr;
        asio::co_spawn(context, std::move(coroutine),
                       asio::bind_cancellation_slot(signal.slot(), [this](std::exception_ptr e) {
                           ++calls;
                           error = std::move(e);
                       }));
        poll(context);
    }
    [[nodiscard]] bool woke() const { return calls == 1 && !error; }
};

BOOST_FIXTURE_TEST_CASE(sleeps_until_a_point_in_time_and_not_shorter, fixture) {
    start(pawl::sleep_until(manual_clock::now() + 10s));
    pass(context, 10s - 1ns);
    BOOST_TEST(calls == 0);
    pass(context, 1ns);
    BOOST_TEST(woke());
    BOOST_TEST(context.stopped());
}

BOOST_FIXTURE_TEST_CASE(a_unit_that_the_clock_does_not_have_is_rounded_up, fixture) {
    using half = std::chrono::duration<double, std::nano>;
    const std::chrono::time_point<manual_clock, half> t(
        half(manual_clock::now().time_since_epoch()) + half(1000.5));
    start(pawl::sleep_until(t));
    pass(context, 1000ns);
    BOOST_TEST(calls == 0);
    pass(context, 1us);
    BOOST_TEST(woke());
}

BOOST_FIXTURE_TEST_CASE(what_has_passed_is_the_next_turn, fixture) {
    for (int kind = 0; kind < 4; ++kind) {
        switch (kind) {
        case 0:
            start(pawl::sleep_until(manual_clock::now() - 1s));
            break;
        case 1:
            start(pawl::sleep_for(0s));
            break;
        case 2:
            start(pawl::sleep_for(std::chrono::hours::min()));
            break;
        default:
            start(pawl::sleep_until(manual_clock::time_point::min()));
        }
        run_until(context, [&] { return calls != 0; });
        BOOST_TEST(woke());
    }
}

BOOST_FIXTURE_TEST_CASE(sleeps_for_ever_and_is_cancelled, fixture) {
    for (int kind = 0; kind < 3; ++kind) {
        if (kind == 0)
            start(pawl::sleep_until(manual_clock::time_point::max()));
        else if (kind == 1)
            start(pawl::sleep_for(std::chrono::hours::max()));
        else
            start(pawl::sleep_for(std::chrono::duration<double>(1e40)));
        pass(context, 24h);
        BOOST_TEST(calls == 0);
        signal.emit(cancellation_type::terminal);
        poll(context);
        BOOST_TEST(calls == 1);
        BOOST_TEST(code_in(error) == aborted);
    }
}

BOOST_FIXTURE_TEST_CASE(the_time_is_counted_from_when_it_is_awaited, fixture) {
    const auto body = [](asio::io_context& c) -> awaitable<void> {
        auto lazy = pawl::sleep_until(manual_clock::now() + 1s); // fixed
        const auto before = std::chrono::steady_clock::now();
        auto later = pawl::sleep_for(1ms);
        co_await pawl::sleep_for(1ms);
        co_await std::move(later);
        BOOST_TEST((std::chrono::steady_clock::now() - before >= 2ms));
        manual_clock::advance(c, 1s);
        co_await std::move(lazy);
    };
    start(body(context));
    run_until(context, [&] { return calls != 0; });
    BOOST_TEST(woke());
}

BOOST_FIXTURE_TEST_CASE(sleeps_under_a_limit_and_on_a_strand, fixture) {
    start(pawl::timeout_at(manual_clock::now() + 1s, pawl::sleep_for(1h)));
    pass(context, 1s);
    BOOST_TEST(calls == 1);
    BOOST_TEST(code_in(error) == timed_out);

    bool woken = false;
    const auto strand = asio::make_strand(context);
    const auto body = [&]() -> awaitable<void> {
        co_await pawl::sleep_until(manual_clock::now() + 1s);
        woken = strand.running_in_this_thread();
    };
    asio::co_spawn(strand, body(), asio::detached);
    poll(context);
    pass(context, 1s);
    BOOST_TEST(woken);
}

BOOST_FIXTURE_TEST_CASE(sleeps_with_another_executor_type, fixture) {
    using executor = asio::io_context::executor_type;
    bool woken = false;
    const auto body = [&]() -> awaitable<void, executor> {
        co_await pawl::sleep_until<executor>(manual_clock::now() + 1s);
        co_await pawl::sleep_for<executor>(0s);
        woken = true;
    };
    asio::co_spawn(context.get_executor(), body(), asio::detached);
    poll(context);
    pass(context, 1s);
    run_until(context, [&] { return woken; });
    BOOST_TEST(woken);
}

BOOST_AUTO_TEST_CASE(a_sleeper_is_destroyed_with_its_context) {
    bool gone = false;
    {
        asio::io_context context;
        const auto body = [](std::shared_ptr<bool> flag) -> awaitable<void> {
            co_await pawl::sleep_for(1h);
            (void)flag;
        };
        asio::co_spawn(context, body(std::shared_ptr<bool>(&gone, [](bool* b) { *b = true; })),
                       asio::detached);
        poll(context);
    }
    BOOST_TEST(gone);
}

} // namespace
