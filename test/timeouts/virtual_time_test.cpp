// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   pawl::virtual_time: every kind of timer and limit on virtual time, pauses and leaps, and the
//   conditions under which run() lets time leap: with threads, several contexts, shards, and real
//   sockets.

#define PAWL_VIRTUAL_TIME
#define BOOST_TEST_MODULE virtual_time
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "../service/counted_new.hpp"
#include "../support/asio_configuration.hpp"

#include <pawl/pawl.hpp>
#include <pawl/stats.hpp>

#include <boost/asio.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio::awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using pawl::virtual_time;
using clock_type = pawl::steady_timer::clock_type;
using real_clock = std::chrono::steady_clock;

static_assert(std::is_same_v<clock_type, pawl::virtual_clock>);
static_assert(std::is_same_v<clock_type::time_point, real_clock::time_point>);
static_assert(std::is_same_v<pawl::deadline::clock_type, clock_type>);
static_assert(!std::is_same_v<pawl::steady_timer, pawl::coarse_timer>);

/// Time stands still while a test runs.
struct standing_time {
    standing_time() { virtual_time::pause(); }
    ~standing_time() { virtual_time::resume(); }
};

struct fixture : standing_time {
    asio::io_context context;
    clock_type::time_point begin = clock_type::now();

    [[nodiscard]] clock_type::duration passed() const { return clock_type::now() - begin; }

    void start(awaitable<void> coroutine, std::optional<error_code>& ending) {
        asio::co_spawn(context, std::move(coroutine), [&](std::exception_ptr e) {
            ending = error_code();
            try {
                if (e)
                    std::rethrow_exception(e);
            } catch (const boost::system::system_error& failure) {
                ending = failure.code();
            }
        });
        context.poll();
    }
};

// --- features on virtual time --------------------------------------------------------------------

/// A feature that takes ten seconds, and its result.
struct feature {
    const char* name;
    error_code ending;
    std::function<awaitable<void>()> wait;
};

std::ostream& operator<<(std::ostream& out, const feature& f) { return out << f.name; }

template <class Timer>
awaitable<void> wait_on() {
    Timer timer(co_await asio::this_coro::executor, 10s);
    co_await timer.async_wait(asio::deferred);
}

void declare_ring(asio::io_context& context) {
    pawl::options o;
    o.precision = 1ns;
    o.rings.delays = {{.delay = 10s}};
    pawl::make_timer_service<pawl::ring_timer>(context, o);
}

awaitable<void> for_ever() { co_await pawl::sleep_until(clock_type::time_point::max()); }

template <class Token>
awaitable<void> wait_under(Token limit) {
    pawl::steady_timer timer(co_await asio::this_coro::executor, 1h);
    co_await timer.async_wait(limit);
}

awaitable<void> read_from_silent_peer() {
    const auto ex = co_await asio::this_coro::executor;
    tcp::acceptor acceptor(ex, {asio::ip::address_v4::loopback(), 0});
    tcp::socket peer(ex);
    pawl::tcp_stream stream(ex);
    stream.socket().connect(acceptor.local_endpoint());
    acceptor.accept(peer);
    stream.expires_after(10s);
    std::array<char, 1> byte;
    co_await stream.async_read_some(asio::buffer(byte), asio::deferred);
}

const feature features[] = {
    {"steady_timer", {}, wait_on<pawl::steady_timer>},
    {"compact_timer", {}, wait_on<pawl::compact_timer>},
    {"ring_timer", {}, wait_on<pawl::ring_timer>},
    {"coarse_timer", {}, wait_on<pawl::coarse_timer>},
    {"interval_timer",
     {},
     []() -> awaitable<void> {
         pawl::interval_timer timer(co_await asio::this_coro::executor, clock_type::now() + 10s,
                                    1s);
         co_await timer.async_wait(asio::deferred);
     }},
    {"sleep_for", {}, [] { return pawl::sleep_for(10s); }},
    {"sleep_for on the steady clock", {}, [] { return pawl::sleep_for<clock_type>(10s); }},
    {"sleep_for on the coarse clock", {}, [] { return pawl::sleep_for<pawl::coarse_clock>(10s); }},
    {"sleep_until", {}, [] { return pawl::sleep_until(clock_type::now() + 10s); }},
    {"timeout of a coroutine", pawl::error::timed_out,
     [] { return pawl::timeout(10s, for_ever()); }},
    {"timeout", pawl::error::timed_out, [] { return wait_under(pawl::timeout(10s)); }},
    {"coarse_timeout", pawl::error::timed_out,
     [] { return wait_under(pawl::coarse_timeout(10s)); }},
    {"timeout_at", pawl::error::timed_out,
     [] { return wait_under(pawl::timeout_at(clock_type::now() + 10s)); }},
    {"timeout_at with a deadline", pawl::error::timed_out,
     [] { return wait_under(pawl::timeout_at(pawl::deadline::after(10s))); }},
    {"with_deadline", pawl::error::timed_out,
     [] { return pawl::with_deadline(pawl::deadline::after(10s), for_ever()); }},
    {"cancel_after", asio::error::operation_aborted,
     [] { return wait_under(pawl::cancel_after(10s)); }},
    {"cancel_at", asio::error::operation_aborted,
     [] { return wait_under(pawl::cancel_at(clock_type::now() + 10s)); }},
    {"tcp_stream", boost::beast::error::timeout, read_from_silent_peer},
};

BOOST_DATA_TEST_CASE_F(fixture, each_feature_is_on_virtual_time_to_the_nanosecond,
                       boost::unit_test::data::make(features), f) {
    declare_ring(context);
    std::optional<error_code> ending;
    start(f.wait(), ending);

    virtual_time::advance(10s - 1ns);
    context.poll();
    BOOST_TEST(!ending.has_value());

    virtual_time::advance(1ns);
    while (context.poll() != 0) {
    }
    BOOST_REQUIRE(ending.has_value());
    BOOST_TEST(*ending == f.ending);
}

BOOST_DATA_TEST_CASE_F(fixture, run_takes_each_feature_to_its_end,
                       boost::unit_test::data::make(features), f) {
    declare_ring(context);
    std::optional<error_code> ending;
    start(f.wait(), ending);

    virtual_time::run(context, 1ms);
    BOOST_REQUIRE(ending.has_value());
    BOOST_TEST(*ending == f.ending);
    BOOST_TEST((passed() >= 10s));
}

BOOST_FIXTURE_TEST_CASE(options_by_clock_or_by_default_are_those_of_virtual_timers, fixture) {
    pawl::options o;
    o.precision = 1s;
    pawl::make_timer_service(context, o);
    BOOST_CHECK_THROW(pawl::make_timer_service<real_clock>(context, o),
                      asio::service_already_exists);
    BOOST_CHECK_THROW(pawl::make_timer_service<pawl::steady_timer>(context, o),
                      asio::service_already_exists);
}

BOOST_FIXTURE_TEST_CASE(a_timer_that_names_the_steady_clock_is_on_real_time, fixture) {
    pawl::basic_waitable_timer<real_clock> timer(context, 1h);
    bool ended = false;
    timer.async_wait([&](error_code) { ended = true; });

    virtual_time::advance(2h);
    context.poll();
    BOOST_TEST(!ended);
    BOOST_TEST((virtual_time::advance_to_next() == 0s)); // it has no deadline on virtual time
    BOOST_TEST((passed() == 2h));
}

// --- pause, advance, resume ----------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(time_is_real_until_it_is_paused_and_goes_on_from_where_it_stands) {
    BOOST_TEST(!virtual_time::paused());
    const auto real = real_clock::now();
    const auto first = clock_type::now();
    BOOST_TEST((first >= real));

    virtual_time::pause();
    const auto stands = clock_type::now();
    virtual_time::pause();
    BOOST_TEST((stands >= first));
    BOOST_TEST((clock_type::now() == stands));
    BOOST_TEST(virtual_time::paused());
    virtual_time::advance(-1h);
    BOOST_TEST((clock_type::now() == stands));
    virtual_time::advance(1h);
    BOOST_TEST((clock_type::now() == stands + 1h));
    BOOST_TEST((pawl::coarse_clock::resolution() == 0s)); // it has no coarse reading

    using traits = asio::wait_traits<pawl::virtual_clock>; // a clock that stands is not polled
    BOOST_TEST((traits::to_wait_duration(stands + 2h) == pawl::virtual_clock::duration::max()));
    virtual_time::resume();
    BOOST_TEST((traits::to_wait_duration(stands + 2h) <= 1h));
    BOOST_TEST(!virtual_time::paused());
    const auto later = clock_type::now();
    BOOST_TEST((later >= stands + 1h));
    std::this_thread::sleep_for(1ms);
    BOOST_TEST((clock_type::now() >= later + 1ms));
}

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(a_wait_of_real_time_is_stopped_by_a_pause_and_goes_on_after_it) {
    asio::io_context context;
    pawl::steady_timer timer(context, 300ms);
    bool ended = false;
    timer.async_wait([&](error_code ec) { ended = !ec; });

    virtual_time::pause();
    BOOST_TEST(context.run_for(400ms) == 0U);
    BOOST_TEST(!ended);
    virtual_time::resume();
    context.run();
    BOOST_TEST(ended);
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(a_thread_in_run_sees_time_that_is_moved_and_time_that_goes_on) {
    asio::io_context context;
    pawl::steady_timer timer(context);
    virtual_time::pause();
    std::array<std::promise<void>, 4> started;
    std::size_t next = 0;
    std::function<void()> wait = [&] {
        if (next + 1 != started.size()) {
            timer.expires_after(1h);
            timer.async_wait([&](error_code) { wait(); });
        }
        started[next++].set_value();
    };
    wait();
    std::thread thread([&] { context.run(); });

    virtual_time::advance(1h);
    started[1].get_future().get();
    virtual_time::advance(1h - 20ms);
    virtual_time::resume();
    started[2].get_future().get();
    virtual_time::advance(1h); // on a time that is not paused
    started[3].get_future().get();
    thread.join();
}

/// Runs until `ended`; time is not paused, so a wait that is lost does not end.
bool ends(asio::io_context& context, const bool& ended) {
    const auto patience = real_clock::now() + 20s;
    while (!ended && real_clock::now() < patience) {
        context.restart();
        context.run_one_for(1s);
    }
    return ended;
}

BOOST_AUTO_TEST_CASE(time_that_is_not_paused_leaps_and_goes_on) {
    asio::io_context context;
    pawl::steady_timer due(context, 1h), soon(context, 1h + 30ms);
    pawl::coarse_timer coarse(context, 1h + 30ms);
    bool ended = false, later = false, coarse_ended = false;
    due.async_wait([&](error_code ec) { ended = !ec; });
    soon.async_wait([&](error_code ec) { later = !ec; });
    coarse.async_wait([&](error_code ec) { coarse_ended = !ec; });
    context.poll(); // the driver is set for an hour from now

    const auto before = clock_type::now();
    virtual_time::advance(1h);
    const auto after = clock_type::now();
    BOOST_TEST(!virtual_time::paused());
    BOOST_TEST((after >= before + 1h));
    BOOST_TEST((after < before + 2h));
    context.poll();
    BOOST_TEST(ended); // by the leap
    BOOST_TEST(ends(context, later));
    BOOST_TEST(ends(context, coarse_ended));

    auto stands = clock_type::now();
    virtual_time::advance(-1h);
    BOOST_TEST((clock_type::now() >= stands));
    due.expires_after(1ms); // its deadline passes before the clock is looked at
    due.async_wait([](error_code) {});
    std::this_thread::sleep_for(50ms);
    stands = clock_type::now();
    virtual_time::advance_to_next();
    BOOST_TEST((clock_type::now() >= stands));
    virtual_time::resume(); // it was not paused
    BOOST_TEST((clock_type::now() >= stands));
    BOOST_TEST((clock_type::now() < stands + 1h));
}

BOOST_AUTO_TEST_CASE(waits_that_begin_in_a_pause_or_after_it_end_after_resume) {
    asio::io_context context;
    virtual_time::pause();
    virtual_time::advance(1h);
    pawl::steady_timer steady(context, 20ms);
    pawl::coarse_timer coarse(context, 20ms);
    bool steady_ended = false, coarse_ended = false, later_ended = false;
    steady.async_wait([&](error_code ec) { steady_ended = !ec; });
    coarse.async_wait([&](error_code ec) { coarse_ended = !ec; });
    context.run_for(50ms);
    BOOST_TEST(!steady_ended);
    BOOST_TEST(!coarse_ended);

    virtual_time::resume();
    pawl::steady_timer later(context, 20ms);
    later.async_wait([&](error_code ec) { later_ended = !ec; });
    BOOST_TEST(ends(context, steady_ended));
    BOOST_TEST(ends(context, coarse_ended));
    BOOST_TEST(ends(context, later_ended));
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(a_blocking_wait_in_real_time_sees_a_pause_a_leap_and_the_end_of_a_pause) {
    asio::io_context context;
    std::atomic<int> ended{0};
    pawl::steady_timer by_leap(context, 1h), by_time(context, 1h + 100ms);
    std::thread thread([&] {
        by_leap.wait();
        ++ended;
        by_time.wait();
        ++ended;
    });
    std::this_thread::sleep_for(20ms); // usually it sleeps by now
    const auto becomes = [&](int number) {
        const auto patience = real_clock::now() + 20s;
        while (ended != number && real_clock::now() < patience)
            std::this_thread::sleep_for(1ms);
        return ended == number;
    };
    virtual_time::advance(1h); // while time is not paused
    BOOST_TEST(becomes(1));
    virtual_time::pause();
    std::this_thread::sleep_for(150ms);
    BOOST_TEST(ended == 1);
    virtual_time::resume();
    BOOST_TEST(becomes(2));
    virtual_time::advance(3h); // lets the thread go
    thread.join();
}

PAWL_NEEDS_THREADS
BOOST_FIXTURE_TEST_CASE(a_blocking_wait_is_released_by_another_thread, fixture) {
    pawl::steady_timer steady(context, 1h);
    pawl::coarse_timer coarse(context, 1h);
    std::thread thread([&] {
        steady.wait();
        coarse.wait();
    });
    virtual_time::advance(1h);
    thread.join();
    BOOST_TEST((passed() == 1h));
}

BOOST_FIXTURE_TEST_CASE(advance_concerns_all_contexts, fixture) {
    asio::io_context other;
    int count = 0;
    pawl::steady_timer a(context, 1min);
    pawl::steady_timer b(other, 1min);
    a.async_wait([&](error_code) { ++count; });
    b.async_wait([&](error_code) { ++count; });

    virtual_time::advance(1min);
    other.poll();
    BOOST_TEST(count == 1);
    context.poll();
    BOOST_TEST(count == 2);
}

BOOST_FIXTURE_TEST_CASE(advance_to_next_finds_the_next_deadline, fixture) {
    BOOST_TEST((virtual_time::advance_to_next() == 0s));
    pawl::steady_timer a(context, 1min);
    pawl::coarse_timer b(context, 10s);
    a.async_wait([](error_code) {});
    b.async_wait([](error_code) {});
    a.rearm_after(2min); // found on the way

    BOOST_TEST((virtual_time::advance_to_next() == 10s));
    BOOST_TEST((virtual_time::advance_to_next() == 110s));
    BOOST_TEST((virtual_time::advance_to_next() == 0s));
}

// --- run -----------------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(run_goes_from_one_deadline_to_the_next, fixture) {
    std::vector<clock_type::duration> seen;
    std::optional<error_code> ending;
    const auto sleeps = [&]() -> awaitable<void> { // outlives its coroutine
        for (int i = 0; i < 3; ++i) {
            co_await pawl::sleep_for(20min);
            seen.push_back(passed());
        }
    };
    start(sleeps(), ending);

    virtual_time::run(context, 0ms);
    const std::vector<clock_type::duration> expected{20min, 40min, 60min};
    BOOST_TEST((seen == expected));
    BOOST_TEST((passed() == 1h));
    BOOST_TEST(virtual_time::paused());
}

BOOST_FIXTURE_TEST_CASE(run_for_ends_when_its_time_has_passed, fixture) {
    int ticks = 0;
    pawl::interval_timer timer(context, clock_type::now() + 1s, 1s);
    std::function<void()> next = [&] {
        timer.async_wait([&](error_code, std::uint64_t) {
            ++ticks;
            next();
        });
    };
    next();

    virtual_time::run_for(context, 10s, 0ms);
    BOOST_TEST(ticks == 10);
    virtual_time::run_for(context, 500ms, 0ms);
    BOOST_TEST(ticks == 10);
    BOOST_TEST((passed() == 10'500ms));
    virtual_time::run_for(context, 500ms, 0ms);
    BOOST_TEST(ticks == 11);
}

BOOST_FIXTURE_TEST_CASE(run_ends_when_the_context_is_stopped_or_a_handler_throws, fixture) {
    pawl::steady_timer timer(context, 1h);
    timer.async_wait([&](error_code) { context.stop(); });
    const auto guard = asio::make_work_guard(context);
    virtual_time::run(context, 0ms);
    BOOST_TEST((passed() == 1h));

    context.restart();
    timer.expires_after(1h);
    timer.async_wait([](error_code) { throw std::runtime_error("expected"); });
    BOOST_CHECK_THROW(virtual_time::run(context, 0ms), std::runtime_error);

    timer.expires_after(1h); // the thread that has left does not keep time from leaping
    timer.async_wait([&](error_code) { context.stop(); });
    virtual_time::run(context, 0ms);
    BOOST_TEST((passed() == 3h));
}

PAWL_NEEDS_THREADS
BOOST_FIXTURE_TEST_CASE(without_a_deadline_run_waits_for_what_comes_from_other_threads, fixture) {
    auto guard = std::make_optional(asio::make_work_guard(context));
    std::thread thread([&] {
        std::this_thread::sleep_for(20ms);
        asio::post(context, [&] { guard.reset(); });
    });
    BOOST_TEST(virtual_time::run(context, 0ms) == 1U);
    BOOST_TEST((passed() == 0s));
    thread.join();
}

// --- threads, contexts, shards -------------------------------------------------------------------

/// A log of events, from any thread.
class journal {
public:
    void add(std::string what) {
        const std::scoped_lock lock(mutex_);
        entries_.push_back(std::move(what));
    }
    [[nodiscard]] std::vector<std::string> entries() const { return entries_; }

private:
    std::mutex mutex_;
    std::vector<std::string> entries_;
};

PAWL_NEEDS_THREADS
BOOST_FIXTURE_TEST_CASE(contexts_that_are_run_together_have_their_deadlines_in_one_order, fixture) {
    asio::io_context other;
    journal events;
    const auto tick = [&](std::string name, std::chrono::seconds first) -> awaitable<void> {
        co_await pawl::sleep_for(first);
        for (int i = 0; i < 50; ++i) {
            events.add(name);
            co_await pawl::sleep_for(2s);
        }
    };
    asio::co_spawn(context, tick("even", 2s), asio::detached);
    asio::co_spawn(other, tick("odd", 3s), asio::detached);
    const auto both = asio::make_work_guard(other); // neither ends before the other
    asio::co_spawn(
        other,
        [&]() -> awaitable<void> {
            co_await pawl::sleep_for(3min);
            other.stop();
        },
        asio::detached);

    std::thread thread([&] { virtual_time::run(other, 1ms); });
    asio::co_spawn(
        context, [&]() -> awaitable<void> { co_await pawl::sleep_for(3min); }, asio::detached);
    // Until both threads have arrived, time would not wait for the other context.
    std::promise<void> there, here;
    asio::post(other, [&] {
        there.set_value();
        here.get_future().get();
    });
    asio::post(context, [&] { here.set_value(); });
    there.get_future().get();
    virtual_time::run(context, 1ms);
    thread.join();

    const auto entries = events.entries();
    BOOST_REQUIRE(entries.size() == 100U);
    for (std::size_t i = 0; i < entries.size(); ++i)
        BOOST_TEST(entries[i] == (i % 2 == 0 ? "even" : "odd"));
}

PAWL_NEEDS_THREADS
BOOST_FIXTURE_TEST_CASE(threads_in_run_for_end_each_at_its_own_time, fixture) {
    for (const auto grace : {0ms, 1ms}) {
        asio::io_context mine, other;
        const auto start = clock_type::now();
        std::atomic<int> ours{0}, its{0};
        std::vector<std::unique_ptr<pawl::steady_timer>> timers;
        for (int i = 1; i <= 100; ++i) {
            timers.push_back(std::make_unique<pawl::steady_timer>(mine, start + i * 100ms));
            timers.back()->async_wait([&](error_code) { ++ours; });
            timers.push_back(std::make_unique<pawl::steady_timer>(other, start + i * 100ms));
            timers.back()->async_wait([&](error_code) { ++its; });
        }
        std::promise<void> there, here; // until both are there, time does not leap
        asio::post(other, [&] {
            there.set_value();
            here.get_future().get();
        });
        asio::post(mine, [&] { here.set_value(); });
        clock_type::time_point end;
        std::thread thread([&] {
            virtual_time::run_for(other, 7'250ms, grace);
            end = clock_type::now();
        });
        there.get_future().get();
        virtual_time::run_for(mine, 3'550ms, grace);
        BOOST_TEST((clock_type::now() >= start + 3'550ms));
        thread.join();
        BOOST_TEST((end == start + 7'250ms)); // it is the last
        BOOST_TEST(ours == 35);
        BOOST_TEST(its == 72);
        BOOST_TEST((clock_type::now() == start + 7'250ms));
    }
}

PAWL_NOT_ON_IO_URING
BOOST_FIXTURE_TEST_CASE(run_returns_the_number_of_handlers_and_pauses_the_time, fixture) {
    virtual_time::resume();
    pawl::steady_timer timer(context, 1h);
    timer.async_wait([&](error_code) { asio::post(context, [] {}); });
    BOOST_TEST(virtual_time::run_for(context, 30min, 0ms) == 0U);
    BOOST_TEST(virtual_time::paused());
    virtual_time::resume();
    BOOST_TEST(virtual_time::run(context, 0ms) >= 2U);
    BOOST_TEST(virtual_time::paused());
    BOOST_TEST((passed() >= 1h));
    BOOST_TEST((passed() < 2h));
    BOOST_TEST(virtual_time::run(context, 0ms) == 0U); // stopped: there was no work
    context.restart();
    BOOST_TEST(virtual_time::run_for(context, 30min, 0ms) == 0U);
}

PAWL_NEEDS_THREADS
BOOST_FIXTURE_TEST_CASE(time_does_not_leap_while_another_thread_is_in_a_handler, fixture) {
    asio::io_context other;
    journal events;
    std::promise<void> there;
    pawl::steady_timer late(context, 10s);
    late.async_wait([&](error_code) { events.add("late"); });
    pawl::steady_timer early(other);
    asio::post(other, [&] {
        there.set_value();
        std::this_thread::sleep_for(50ms); // many times the grace period
        early.expires_after(1s);
        early.async_wait([&](error_code) { events.add("early"); });
    });

    std::thread thread([&] { virtual_time::run(other, 1ms); });
    there.get_future().get();
    virtual_time::run(context, 1ms);
    thread.join();

    const std::vector<std::string> expected{"early", "late"};
    BOOST_TEST(events.entries() == expected, boost::test_tools::per_element());
}

PAWL_NEEDS_THREADS
BOOST_FIXTURE_TEST_CASE(time_does_not_leap_past_what_a_handler_gives_to_another_context, fixture) {
    asio::io_context other;
    journal events;
    const auto guard = asio::make_work_guard(context);
    std::promise<void> there, here;
    pawl::steady_timer early(context), late(other, 10s);
    late.async_wait([&](error_code) {
        events.add("late");
        context.stop();
    });
    asio::post(other, [&] {
        there.set_value();
        here.get_future().get();
        std::this_thread::sleep_for(20ms); // usually the other thread is idle by now
        asio::post(context, [&] {
            early.expires_after(1s);
            early.async_wait([&](error_code) { events.add("early"); });
        });
    });
    asio::post(context, [&] { here.set_value(); });

    std::thread thread([&] { virtual_time::run(other, 0ms); });
    there.get_future().get();
    virtual_time::run(context, 0ms);
    thread.join();

    const std::vector<std::string> expected{"early", "late"};
    BOOST_TEST(events.entries() == expected, boost::test_tools::per_element());
}

PAWL_NEEDS_THREADS
BOOST_FIXTURE_TEST_CASE(two_threads_run_one_context_with_two_shards, fixture) {
    pawl::options o;
    o.precision = 1ns;
    o.shards = 2;
    pawl::make_timer_service(context, o);
    std::atomic<int> count{0};
    std::atomic<bool> early{false};
    for (int i = 1; i <= 20; ++i) {
        asio::co_spawn(
            asio::make_strand(context),
            [&, i]() -> awaitable<void> {
                for (int round = 1; round <= 10; ++round) {
                    const auto before = clock_type::now();
                    co_await pawl::timeout(1h, pawl::sleep_for(std::chrono::seconds(i)));
                    early = early || clock_type::now() < before + std::chrono::seconds(i);
                    ++count;
                }
            },
            asio::detached);
    }

    std::thread thread([&] { virtual_time::run(context, 1ms); });
    virtual_time::run(context, 1ms);
    thread.join();
    BOOST_TEST(count == 200);
    BOOST_TEST(!early);
    BOOST_TEST((passed() >= 200s));
}

PAWL_NEEDS_THREADS
BOOST_FIXTURE_TEST_CASE(contexts_come_and_go_while_time_is_moved, fixture) {
    std::atomic<bool> over{false};
    std::thread thread([&] {
        while (!over)
            virtual_time::advance(1s);
    });
    int count = 0;
    for (int i = 0; i < 200; ++i) {
        asio::io_context c;
        pawl::steady_timer waits(c, 1s);
        pawl::coarse_timer left(c, 1h);
        waits.async_wait([&](error_code) { ++count; });
        left.async_wait([](error_code) {});
        // If this thread is kept waiting, the hour passes, too, and that handler may come first.
        while (count == i && c.run_one() == 1) {
        }
    }
    over = true;
    thread.join();
    BOOST_TEST(count == 200);
}

// --- real sockets --------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(bytes_on_loopback_arrive_before_the_time_leaps, fixture) {
    tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
    int answers = 0;
    error_code ending;
    asio::co_spawn(
        context,
        [&]() -> awaitable<void> {
            pawl::tcp_stream stream(co_await acceptor.async_accept(asio::use_awaitable));
            std::array<char, 4> data;
            try {
                for (;;) {
                    stream.expires_after(30s);
                    const auto n =
                        co_await stream.async_read_some(asio::buffer(data), asio::use_awaitable);
                    co_await asio::async_write(stream, asio::buffer(data, n), asio::use_awaitable);
                }
            } catch (const boost::system::system_error& e) {
                ending = e.code();
            }
        },
        asio::detached);
    asio::co_spawn(
        context,
        [&]() -> awaitable<void> {
            tcp::socket socket(context);
            co_await socket.async_connect(acceptor.local_endpoint(), pawl::timeout(1s));
            std::array<char, 4> data{'p', 'i', 'n', 'g'};
            for (int i = 0; i < 100; ++i) {
                co_await asio::async_write(socket, asio::buffer(data), pawl::timeout(1s));
                co_await asio::async_read(socket, asio::buffer(data), pawl::timeout(1s));
                ++answers;
                co_await pawl::sleep_for(29s);
            }
            co_await pawl::sleep_for(1h); // idle now
        },
        asio::detached);

    virtual_time::run(context);
    BOOST_TEST(answers == 100);
    BOOST_TEST(ending == error_code(boost::beast::error::timeout));
    BOOST_TEST((passed() == 100 * 29s + 1h));
}

// The n-th allocation of an act fails, for every n until none does. Then the act can be repeated, and
// no wait is lost or done twice.
BOOST_FIXTURE_TEST_CASE(P3_time_that_moves_without_memory_loses_no_wait, standing_time) {
    using act = void (*)(asio::io_context&);
    for (const act each : {+[](asio::io_context&) { virtual_time::advance(1h); },
                           +[](asio::io_context&) { virtual_time::advance_to_next(); },
                           +[](asio::io_context& c) { virtual_time::run(c, 0s); },
                           +[](asio::io_context& c) { virtual_time::run_for(c, 1h, 0s); }}) {
        bool failed = true;
        for (long n = 0; failed; ++n) {
            asio::io_context context;
            int calls = 0;
            pawl::steady_timer timer(context, 1h);
            timer.async_wait([&](error_code ec) { calls += !ec; });
            pawl::coarse_timer(context, 1h).async_wait([&](error_code) {});

            counted_new::fuse = n;
            try {
                each(context);
            } catch (const std::bad_alloc&) {
                BOOST_TEST(calls == 0);
            }
            failed = counted_new::fuse.exchange(counted_new::never) == counted_new::never;
            if (calls == 0) {
                context.restart();
                each(context);
                context.restart();
                context.poll();
            }

            BOOST_TEST(calls == 1);
            BOOST_REQUIRE_LT(n, 1000);
        }
    }
}

// --- the last test: the time of the process stays where it moves it ------------------------------

BOOST_FIXTURE_TEST_CASE(time_does_not_go_to_its_end, fixture) {
    pawl::steady_timer never(context, clock_type::time_point::max());
    bool ended = false;
    never.async_wait([&](error_code) { ended = true; });
    virtual_time::advance(clock_type::duration::max());
    context.poll();
    BOOST_TEST(!ended);
    BOOST_TEST((clock_type::now() < clock_type::time_point::max()));
    BOOST_TEST((virtual_time::advance_to_next() == 0s));
    never.cancel();
    context.poll();
    BOOST_TEST(ended);
}

} // namespace
