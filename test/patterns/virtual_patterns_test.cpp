// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   debounce, throttle, heartbeat, expiring_map and delay_queue on virtual time, and any duration
//   wherever a pattern takes one.

#define PAWL_VIRTUAL_TIME
#define BOOST_TEST_MODULE virtual_patterns
#include <boost/test/unit_test.hpp>

#include <pawl/debounce.hpp>
#include <pawl/delay_queue.hpp>
#include <pawl/expiring_map.hpp>
#include <pawl/heartbeat.hpp>
#include <pawl/hedge.hpp>
#include <pawl/rate_limiter.hpp>
#include <pawl/retry_policy.hpp>
#include <pawl/sleep.hpp>
#include <pawl/virtual_time.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using pawl::virtual_time;
using clock_type = pawl::detail::steady_clock;

/// Runs a day of virtual time.
struct fixture {
    fixture() { virtual_time::pause(); }
    ~fixture() { virtual_time::resume(); }

    asio::io_context context;
    clock_type::time_point begin = clock_type::now();

    [[nodiscard]] clock_type::duration passed() const { return clock_type::now() - begin; }
    void run(asio::awaitable<void> coroutine) {
        asio::co_spawn(context, std::move(coroutine), [](std::exception_ptr e) {
            if (e)
                std::rethrow_exception(e);
        });
        virtual_time::run(context);
    }
};

BOOST_FIXTURE_TEST_CASE(an_hour_of_triggers_takes_no_time, fixture) {
    int debounced = 0;
    int throttled = 0;
    pawl::debounce d(context, 10s, [&] { ++debounced; }, {.max_wait = 1min});
    pawl::throttle t(context, 10s, [&] { ++throttled; });
    run([&]() -> asio::awaitable<void> {
        for (int i = 0; i != 3600; ++i) {
            d();
            t();
            co_await pawl::sleep_for(1s);
        }
    }());
    BOOST_TEST(debounced >= 59);
    BOOST_TEST(debounced <= 61);
    BOOST_TEST(throttled >= 327); // a trigger comes up to a second after the interval
    BOOST_TEST(throttled <= 361);
    BOOST_TEST((passed() >= 1h));
}

BOOST_FIXTURE_TEST_CASE(an_hour_of_silence_is_noticed_in_no_time, fixture) {
    int sends = 0;
    clock_type::duration failed{};
    pawl::heartbeat beat(
        context, {.interval = 20min, .misses = 3}, [&] { ++sends; }, [&] { failed = passed(); });
    virtual_time::run(context);
    BOOST_TEST(sends == 2);
    BOOST_TEST((failed >= 1h));
    BOOST_TEST((failed < 1h + 1s));
}

BOOST_FIXTURE_TEST_CASE(entries_expire_in_no_time_and_in_their_order, fixture) {
    pawl::expiring_map<std::string, int> m(context, {.ttl = 1h, .keep_expired = true});
    pawl::delay_queue<std::string> q(context);
    std::string order;
    run([&]() -> asio::awaitable<void> {
        m.insert("late", 1);
        m.insert("early", 2, 10min);
        q.push("queued", 30min);
        order += (co_await m.async_pop_expired(asio::use_awaitable))->first + ' ';
        order += (co_await q.async_pop())->second + ' ';
        order += (co_await m.async_pop_expired(asio::use_awaitable))->first;
    }());
    BOOST_TEST(order == "early queued late");
    BOOST_TEST((passed() >= 1h));
    BOOST_TEST((passed() < 1h + 1s));
}

BOOST_FIXTURE_TEST_CASE(a_duration_of_any_type_saturates_and_nan_is_refused, fixture) {
    using std::chrono::hours;
    constexpr auto longest = std::chrono::nanoseconds::max();
    using seconds = std::chrono::duration<double>;

    const pawl::retry_policy policy{.first = seconds(0.1),
                                    .cap = hours::max(),
                                    .attempt_limit = seconds(2.5),
                                    .limit = hours::max()};
    policy.check();
    BOOST_TEST((policy.first == 100ms && policy.cap == longest));
    BOOST_TEST((policy.attempt_limit == 2500ms && policy.limit == longest));
    BOOST_TEST((pawl::hedge_policy{hours::max()}.delay == longest));
    const pawl::rate_limiter never(context, {.period = longest});
    const pawl::rate_limiter rare(context, {.period = hours::max()});
    BOOST_TEST(rare.available() == never.available());
    const pawl::heartbeat silent(
        context, {.interval = hours::max()}, [] {}, [] {});
    int calls = 0;
    pawl::debounce d(context, hours::max(), [&] { ++calls; }, {.max_wait = hours::max()});
    pawl::throttle t(context, seconds(0.5), [&] { ++calls; });
    BOOST_TEST(d());
    BOOST_TEST(t());
    pawl::expiring_map<int, int> m(context, {.ttl = hours::max(), .slack = seconds(0.1)});
    m.insert(1, 1);
    m.insert(2, 2, seconds(0.5));
    m.insert_or_assign(3, 3, hours::max());
    BOOST_TEST(m.touch(2, hours::max()));
    virtual_time::run_for(context, 1s);
    BOOST_TEST(calls == 1); // the throttle's
    BOOST_TEST(m.size() == 3U);

    const seconds nan(std::numeric_limits<double>::quiet_NaN());
    BOOST_CHECK_THROW((pawl::throttle(context, nan, [] {})), std::invalid_argument);
    BOOST_CHECK_THROW(m.insert(4, 4, nan), std::invalid_argument);
    BOOST_CHECK_THROW((void)(pawl::hedge_policy{nan}), std::invalid_argument);
    d.cancel();
}

} // namespace
