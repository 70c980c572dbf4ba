// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Timers whose deadlines are set from a bound of the time, and checked against the time. First on
//   a clock of the test, with a loose bound, so that each reading shows which of the two was used.
//   Then on coarse_clock, in real time: no timer is early by the steady clock, whichever way it is
//   set, and no wake-up comes before its time.

#define BOOST_TEST_MODULE coarse_timer
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "service_support.hpp"

#include "../support/asio_configuration.hpp"
#include "../support/seed.hpp"
#include "../support/system_timer.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>

#if defined(BOOST_ASIO_HAS_EPOLL)
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace coarse_timer_test {

/// How often a context has asked the system for events.
std::atomic<std::size_t> looks{0}; // relaxed: a count

} // namespace coarse_timer_test

#if defined(BOOST_ASIO_HAS_EPOLL)
extern "C" int epoll_wait(int fd, epoll_event* events, int most, int timeout) {
    coarse_timer_test::looks.fetch_add(1, std::memory_order_relaxed);
    return static_cast<int>(::syscall(SYS_epoll_pwait, fd, events, most, timeout, nullptr, 0));
}
#endif

namespace coarse_timer_test {

using pawl::coarse_clock;
using steady = std::chrono::steady_clock;

/// coarse_clock, except that its bound is never before its time, even if the kernel has missed
/// interrupts: their effect is not Pawl's fault, and depends on the machine.
struct punctual_clock {
    using duration = coarse_clock::duration;
    using rep = coarse_clock::rep;
    using period = coarse_clock::period;
    using time_point = coarse_clock::time_point;
    static constexpr bool is_steady = true;

    static time_point now() { return coarse_clock::now(); }
    static time_point latest_now() {
        const auto before = steady::now();
        return std::max(before, coarse_clock::latest_now());
    }
};

} // namespace coarse_timer_test

template <>
inline constexpr bool pawl::detail::tells_steady_time<coarse_timer_test::punctual_clock> = true;

// Not an unnamed namespace: the cases of Boost.Test that take data are templates with external linkage.
namespace coarse_timer_test {

using namespace service_test;
namespace data = boost::unit_test::data;
using pawl::coarse_timer;

/// A clock that a test moves, and whose bound differs from its time by `off`.
struct bounded_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<bounded_clock>;
    static constexpr bool is_steady = true;
    static constexpr duration default_precision{1};
    static constexpr duration off = 5s;

    static time_point now() {
        ++readings;
        return time;
    }
    static time_point latest_now() { return time + off; }

    static inline time_point time{1h};
    static inline std::size_t readings = 0; ///< of the time
};

using bounded_timer = pawl::basic_waitable_timer<bounded_clock>;
using bounded_deadline = pawl::basic_deadline<bounded_clock>;

struct fixture {
    asio::io_context context;
    outcome o;

    void pass(bounded_clock::duration d) {
        bounded_clock::time += d;
        asio::use_service<pawl::detail::service_registry>(context).for_each(
            [](pawl::detail::registered_service& s) { s.clock_moved(); });
        poll(context);
    }
    /// A wait that is set to come in `d` comes after that, plus the offset of the bound.
    template <class Done>
    void expect_in(bounded_clock::duration d, Done done) {
        poll(context);
        pass(d);
        BOOST_TEST(!done());
        pass(bounded_clock::off - 1ns);
        BOOST_TEST(!done());
        pass(1ns);
        BOOST_TEST(done());
    }
    void expect_in(bounded_clock::duration d) {
        expect_in(d, [this] { return !o.pending(); });
    }
};

// ---- the two readings ---------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(readings)

BOOST_FIXTURE_TEST_CASE(P1_a_delay_is_counted_from_the_bound, fixture) {
    {
        bounded_timer t(context, 10s);
        t.async_wait(record(o));
        expect_in(10s);
    }
    bounded_timer t(context);
    o = {};
    t.expires_after(10s);
    t.async_wait(record(o));
    expect_in(10s);

    o = {};
    t.expires_after(1h);
    t.async_wait(record(o));
    BOOST_TEST(t.rearm_after(10s) == one);
    expect_in(10s);

    o = {};
    t.expires_within(10s, 10s);
    t.async_wait(record(o));
    expect_in(10s);

    o = {};
    t.expires_after(1h);
    t.async_wait(record(o));
    BOOST_TEST(t.rearm_within(10s, 10s) == one);
    expect_in(10s);
}

BOOST_FIXTURE_TEST_CASE(P1_a_range_is_counted_from_the_bound, fixture) {
    bounded_timer t(context);
    for (const bounded_clock::duration min : {1ns, 900'000'000ns, 10'000'000'000ns}) {
        t.expires_within(min, min + 7s);
        BOOST_TEST((t.expiry() >= bounded_clock::latest_now() + min));
        BOOST_TEST((t.expiry() <= bounded_clock::latest_now() + min + 7s));
        t.rearm_within(min, min + 7s);
        BOOST_TEST((t.expiry() >= bounded_clock::latest_now() + min));
        BOOST_TEST((t.expiry() <= bounded_clock::latest_now() + min + 7s));
    }
}

BOOST_FIXTURE_TEST_CASE(P1_a_point_in_time_is_what_it_is, fixture) {
    bounded_timer t(context, bounded_clock::time + 1h);
    t.async_wait(record(o));
    BOOST_TEST(t.rearm_at(bounded_clock::time + 10s) == one);
    BOOST_TEST((t.expiry() == bounded_clock::time + 10s));
    pass(10s - 1ns);
    BOOST_TEST(o.pending());
    pass(1ns);
    BOOST_TEST(o.succeeded());
}

// It lies before the bound: compared with the bound it would have passed, and its tick would be
// rounded down.
BOOST_FIXTURE_TEST_CASE(P1_a_point_in_time_before_the_bound_has_not_passed, fixture) {
    pawl::options options;
    options.precision = 1s;
    pawl::make_timer_service<bounded_timer>(context, options);
    bounded_clock::time = bounded_clock::time_point(2h);
    bounded_timer t(context);
    for (const bool rearmed : {false, true}) {
        o = {};
        const auto expiry = bounded_clock::time + 1500ms;
        if (rearmed) {
            t.expires_after(1h);
            t.async_wait(record(o));
            BOOST_TEST(t.rearm_at(expiry) == one);
        } else {
            t.expires_at(expiry);
            t.async_wait(record(o));
        }
        poll(context);
        pass(1499ms);
        BOOST_TEST(o.pending());
        pass(501ms);
        BOOST_TEST(o.succeeded());
    }
}

BOOST_FIXTURE_TEST_CASE(what_is_over_already_completes_at_once, fixture) {
    bounded_timer t(context);
    for (const bounded_clock::duration d : {0s, -1s}) {
        o = {};
        t.expires_after(d);
        t.async_wait(record(o));
        BOOST_TEST((t.expiry() == bounded_clock::time + d));
        poll(context);
        BOOST_TEST(o.succeeded());

        o = {};
        t.expires_after(1h);
        t.async_wait(record(o));
        BOOST_TEST(t.rearm_after(d) == one);
        poll(context);
        BOOST_TEST(o.succeeded());

        o = {};
        t.expires_within(d - 1s, d);
        t.async_wait(record(o));
        poll(context);
        BOOST_TEST(o.succeeded());

        o = {};
        t.expires_at(bounded_clock::time + d);
        t.async_wait(record(o));
        poll(context);
        BOOST_TEST(o.succeeded());

        BOOST_TEST(bounded_deadline::after(d).expired());
    }
}

// Pawl does not know that this clock cannot leap.
BOOST_FIXTURE_TEST_CASE(P8_a_deadline_reads_a_clock_that_may_leap_once, fixture) {
    bounded_timer first(context, 1h);
    first.async_wait(record(o));
    outcome second;
    bounded_timer t(context, 2h);
    t.async_wait(record(second));
    poll(context);
    const std::size_t before = bounded_clock::readings;

    for (int i = 1; i <= 100; ++i) {
        t.rearm_after(2h);
        t.rearm_at(bounded_clock::time + 3h);
        t.rearm_within(2h, 3h);
    }
    BOOST_TEST(bounded_clock::readings == before + 300);
}

// ---- objects that consist of timers

BOOST_FIXTURE_TEST_CASE(P1_a_deadline_counts_from_the_bound_and_is_judged_by_the_time, fixture) {
    const auto d = bounded_deadline::after(10s);
    BOOST_TEST((d.expiry() == bounded_clock::time + 10s + bounded_clock::off));
    BOOST_TEST((d.within(1s).expiry() == bounded_clock::time + 1s + bounded_clock::off));
    pass(10s);
    BOOST_TEST(!d.expired());
    BOOST_TEST((d.remaining() == bounded_clock::off));
    pass(bounded_clock::off);
    BOOST_TEST(d.expired());
    BOOST_TEST((bounded_deadline::after(bounded_clock::duration::max()).is_never()));
}

BOOST_FIXTURE_TEST_CASE(P1_the_limit_of_an_operation_counts_from_the_bound, fixture) {
    bounded_timer operation(context, 1h);
    bounded_timer timer(context);
    operation.async_wait(pawl::timeout(timer, 10s, record(o)));
    expect_in(10s);
    BOOST_TEST((o.code == pawl::error::timed_out));

    o = {};
    operation.async_wait(pawl::cancel_after(timer, 10s, record(o)));
    expect_in(10s);
    BOOST_TEST(o.aborted());
}

BOOST_FIXTURE_TEST_CASE(P1_a_coroutine_sleeps_from_the_bound_on, fixture) {
    asio::co_spawn(context, pawl::sleep_for<bounded_clock>(10s),
                   [this](std::exception_ptr e) { o.calls += !e; });
    expect_in(10s);
}

BOOST_FIXTURE_TEST_CASE(P1_an_interval_that_is_reset_counts_from_the_bound, fixture) {
    pawl::basic_interval_timer<bounded_clock> t(context, 10s);
    const auto tick = [this](error_code ec, std::uint64_t) { record(o)(ec); };
    t.async_wait(tick);
    poll(context);
    BOOST_TEST(o.succeeded()); // the first one is due at once

    o = {};
    t.reset();
    t.async_wait(tick);
    expect_in(10s);

    o = {};
    t.reset_after(3s);
    t.async_wait(tick);
    expect_in(3s);

    o = {};
    t.reset_within(3s, 3s);
    t.async_wait(tick);
    expect_in(3s);

    o = {};
    t.reset_immediately();
    t.async_wait(tick);
    poll(context);
    BOOST_TEST(o.succeeded());
}

BOOST_FIXTURE_TEST_CASE(P1_an_interval_is_not_told_of_ticks_that_only_the_bound_has_passed,
                        fixture) {
    pawl::basic_interval_timer<bounded_clock> t(context, bounded_clock::time, 1s);
    std::uint64_t missed = 99;
    t.async_wait([&](error_code, std::uint64_t n) { missed = n; });
    poll(context);
    BOOST_TEST(missed == 0U);
}

BOOST_FIXTURE_TEST_CASE(P1_the_timers_of_an_event_queue_count_from_the_bound, fixture) {
    pawl::basic_event_queue<bounded_clock> events(context);
    int calls = 0;
    const auto count = [&] { ++calls; };
    const auto called = [&] {
        events.process_events();
        return std::exchange(calls, 0) != 0;
    };

    events.once(10s, count);
    expect_in(10s, called);
    events.every(10s, count);
    expect_in(10s, called);
    pass(10s); // the grid has no more ticks in it
    BOOST_TEST(called());
}

BOOST_AUTO_TEST_SUITE_END()

// ---- streams

BOOST_AUTO_TEST_SUITE(streams)

struct stream_fixture : fixture {
    using socket = asio::local::stream_protocol::socket;
    pawl::timeout_stream<socket, bounded_clock> stream{context};
    socket peer{context};
    char byte = 0;

    stream_fixture() { asio::local::connect_pair(stream.socket(), peer); }
    void read() {
        o = {};
        stream.async_read_some(asio::buffer(&byte, 1),
                               [this](error_code ec, std::size_t) { record(o)(ec); });
    }
    void limit(pawl::stream_limits limits) {
        limits.action = pawl::on_limit::cancel;
        stream.set_limits(limits);
    }
};

BOOST_FIXTURE_TEST_CASE(P1_limits_count_from_the_bound, stream_fixture) {
    limit({.read = 10s});
    read();
    expect_in(10s);

    limit({});
    stream.expires_after(10s);
    read();
    expect_in(10s);
    stream.expires_never();

    limit({.handshake = 10s});
    {
        const auto scope = stream.limit_handshake();
        read();
        expect_in(10s);
    }

    read();
    limit({.read = 10s}); // for pending operations, from now on
    expect_in(10s);

    limit({.idle = 10s});
    read();
    expect_in(10s);
}

BOOST_FIXTURE_TEST_CASE(P1_idleness_counts_from_the_bound_when_a_byte_came, stream_fixture) {
    limit({.idle = 10s});
    read();
    pass(9s);
    asio::write(peer, asio::buffer("x", 1));
    poll(context);
    BOOST_TEST(o.succeeded());
    read();
    expect_in(10s);
}

BOOST_FIXTURE_TEST_CASE(P1_nothing_is_refused_before_the_time_of_its_limit, stream_fixture) {
    stream.expires_at(bounded_clock::time + 3s); // the bound has already passed it
    limit({.idle = 1h, .read = 1h});
    read();
    poll(context);
    BOOST_TEST(o.pending());
    pass(3s - 1ns);
    BOOST_TEST(o.pending());
    pass(1ns);
    BOOST_TEST(!o.pending());
}

BOOST_FIXTURE_TEST_CASE(P8_a_byte_that_comes_costs_no_reading_of_the_time, stream_fixture,
                        *boost::unit_test::enable_if<system_timer::seen>()) {
    limit({.idle = 1h});
    read();
    poll(context);
    const std::size_t before = bounded_clock::readings;

    for (int i = 0; i < 10; ++i) {
        asio::write(peer, asio::buffer("x", 1));
        poll(context);
        BOOST_TEST(o.succeeded());
        read();
    }
    BOOST_TEST(bounded_clock::readings == before);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- the clock ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(clock)

/// The maximum offset of the bound.
const steady::duration most_off = 3 * coarse_clock::resolution();

using punctual_timer = pawl::basic_waitable_timer<punctual_clock>;
static_assert(pawl::detail::keeps_time<punctual_clock, asio::wait_traits<punctual_clock>>);

#ifndef _LIBCPP_VERSION // which lacks it
static_assert(std::chrono::is_clock_v<coarse_clock>);
#endif
static_assert(coarse_clock::is_steady);
static_assert(std::is_same_v<coarse_clock::time_point, steady::time_point>);
static_assert(pawl::detail::keeps_time<coarse_clock, asio::wait_traits<coarse_clock>>);
static_assert(!pawl::detail::has_latest_now<steady> &&
              !pawl::detail::has_latest_now<pawl::manual_clock>);

BOOST_AUTO_TEST_CASE(the_bound_is_between_the_time_and_what_it_may_be_off) {
#if defined(__linux__)
    ::timespec step{};
    BOOST_REQUIRE(::clock_getres(CLOCK_MONOTONIC_COARSE, &step) == 0);
    BOOST_TEST((coarse_clock::resolution() ==
                std::chrono::seconds(step.tv_sec) + std::chrono::nanoseconds(step.tv_nsec)));
    // A machine with regular interrupts does not show what the slack is for.
    ::timespec reading{};
    BOOST_REQUIRE(::clock_gettime(CLOCK_MONOTONIC_COARSE, &reading) == 0);
    BOOST_TEST((coarse_clock::latest_now().time_since_epoch() >=
                std::chrono::seconds(reading.tv_sec) + std::chrono::nanoseconds(reading.tv_nsec) +
                    most_off));
#endif
    int early = 0; // because the kernel has missed interrupts
    for (int i = 0; i < 1'000'000; ++i) {
        const auto before = steady::now();
        const auto bound = coarse_clock::latest_now();
        const auto after = steady::now();
        early += bound < before;
        BOOST_REQUIRE((bound <= after + most_off));
    }
    BOOST_TEST(early < 50'000);
}

BOOST_AUTO_TEST_CASE(the_time_is_that_of_the_steady_clock) {
    for (int i = 0; i < 1000; ++i) {
        const auto before = steady::now();
        const auto now = coarse_clock::now();
        const auto after = steady::now();
        BOOST_REQUIRE((before <= now && now <= after));
    }
}

// ---- never early --------------------------------------------------------------------------------------

/// The ways to set an expiry to `d` from now.
const std::vector<std::function<void(punctual_timer&, steady::duration)>> ways{
    [](punctual_timer& t, auto d) { t.expires_after(d); },
    [](punctual_timer& t, auto d) { t.rearm_after(d); },
    [](punctual_timer& t, auto d) { t.expires_within(d, 2 * d); },
    [](punctual_timer& t, auto d) { t.rearm_within(d, d + 1us); },
    [](punctual_timer& t, auto d) { t.expires_at(steady::now() + d); },
    [](punctual_timer& t, auto d) { t.rearm_at(coarse_clock::now() + d); },
    [](punctual_timer& t, auto d) {
        t.expires_at(pawl::basic_deadline<punctual_clock>::after(d).expiry());
    },
    [](punctual_timer& t, auto d) { t = punctual_timer(t.get_executor(), d); },
};

pawl::options random_options(std::mt19937_64& random, unsigned shards) {
    const std::chrono::nanoseconds precisions[] = {1ns, 1us, 100us, 1ms, 3ms};
    pawl::options o;
    o.precision = precisions[random() % std::size(precisions)];
    o.shards = shards;
    o.batch_limit = random() % 2 ? 256 : 1 + static_cast<unsigned>(random() % 3);
    o.completions_per_turn = 1 + static_cast<unsigned>(random() % 64);
    return o;
}

/// Waits that start each other, and count those that are early by the steady clock.
class chain {
public:
    chain(asio::io_context& context, std::uint64_t seed, int n)
        : timer_(asio::make_strand(context)), random_(seed), left_(n) {}

    void start() {
        asio::post(timer_.get_executor(), [this] { go_on(); });
    }
    [[nodiscard]] int early() const noexcept { return early_; }
    [[nodiscard]] bool over() const noexcept { return left_ == 0; }

private:
    void go_on() {
        if (left_-- == 0) {
            left_ = 0;
            return;
        }
        const auto d = std::chrono::microseconds(1 + random_() % 6000);
        const bool waits = random_() % 2; // setting the expiry cancels it, so it goes on at once
        if (waits) {
            timer_.expires_after(1h);
            wait();
        }
        due_ = steady::now() + d;
        ways[random_() % ways.size()](timer_, d);
        if (!waits)
            wait();
    }
    void wait() {
        timer_.async_wait([this](error_code ec) {
            early_ += !ec && steady::now() < due_;
            go_on();
        });
    }

    punctual_timer timer_;
    std::mt19937_64 random_;
    int left_;
    steady::time_point due_{};
    int early_ = 0;
};

PAWL_NEEDS_THREADS
BOOST_DATA_TEST_CASE(P1_no_wait_is_early_by_the_steady_clock,
                     data::make({1U, 2U, 4U}) * data::make({1U, 2U}), shards, threads) {
    std::mt19937_64 random(seed());
    asio::io_context context;
    pawl::make_timer_service<punctual_timer>(context, random_options(random, shards));
    std::deque<chain> chains;
    for (unsigned i = 0; i < 2 * shards; ++i) {
        const auto steps = static_cast<int>(pawl_test::steps(100));
        std::thread([&, chain_seed = random()] { // the thread takes the next shard
            chains.emplace_back(context, chain_seed, steps).start();
        })
            .join();
    }
    std::vector<std::thread> others;
    for (unsigned i = 1; i < threads; ++i)
        others.emplace_back([&] { context.run(); });
    context.run();
    for (std::thread& t : others)
        t.join();

    for (const chain& c : chains) {
        BOOST_TEST(c.early() == 0);
        BOOST_TEST(c.over());
    }
}

BOOST_AUTO_TEST_CASE(coarse_timeout_ends_operations_and_coroutines) {
    asio::io_context context;
    coarse_timer operation(context, 1h);
    outcome o;
    operation.async_wait(pawl::coarse_timeout(5ms, record(o)));
    run_to_end(context);
    BOOST_TEST((o.code == pawl::error::timed_out));

    asio::co_spawn(context, pawl::coarse_timeout(5ms, pawl::sleep_for<coarse_clock>(1h)),
                   [&](std::exception_ptr e) {
                       BOOST_CHECK_THROW(std::rethrow_exception(e), boost::system::system_error);
                   });
    run_to_end(context);
}

// ---- with the steady clock ----------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(points_in_time_and_deadlines_of_the_steady_clock_serve_coarse_timers) {
    asio::io_context context;
    coarse_timer operation(context, 1h);
    coarse_timer timer(context);
    outcome o;
    operation.async_wait(pawl::timeout_at(timer, steady::now() - 1s, record(o)));
    run_to_end(context);
    BOOST_TEST((o.code == pawl::error::timed_out));

    o = {};
    operation.async_wait(pawl::timeout_at(timer, pawl::deadline::after(0s), record(o)));
    run_to_end(context);
    BOOST_TEST((o.code == pawl::error::timed_out));

    o = {};
    operation.async_wait(pawl::cancel_at(timer, coarse_clock::now(), record(o)));
    run_to_end(context);
    BOOST_TEST(o.aborted());

    o = {};
    operation.async_wait(
        pawl::timeout_at(pawl::basic_deadline<coarse_clock>::after(0s), record(o)));
    run_to_end(context);
    BOOST_TEST((o.code == pawl::error::timed_out));
}

BOOST_AUTO_TEST_CASE(coarse_timers_have_a_service_of_their_own) {
    asio::io_context context;
    pawl::options options;
    options.precision = 10ms;
    pawl::make_timer_service<coarse_timer>(context, options);
    BOOST_CHECK_THROW(pawl::make_timer_service<coarse_clock>(context, options),
                      asio::service_already_exists);
    pawl::make_timer_service(context, options);

    coarse_timer coarse(context, 1h);
    pawl::steady_timer precise(context, 1h);
    outcome a;
    outcome b;
    coarse.async_wait(record(a));
    precise.async_wait(record(b));
    BOOST_TEST(pawl::expire_all<coarse_timer>(context) == one);
    poll(context);
    BOOST_TEST(a.succeeded());
    BOOST_TEST(b.pending());
    BOOST_TEST(pawl::expire_all(context, asio::error::shut_down) == one);
    poll(context);
    BOOST_TEST((b.code == asio::error::shut_down));
}

BOOST_AUTO_TEST_CASE(coarse_timers_may_be_kept_in_other_structures) {
    asio::io_context context;
    using small = pawl::basic_waitable_timer<
        coarse_clock, pawl::on_backend<pawl::time::binary_wheel, asio::wait_traits<coarse_clock>>>;
    using ring = pawl::basic_waitable_timer<
        coarse_clock, pawl::on_backend<pawl::time::timeout_rings, asio::wait_traits<coarse_clock>>>;
    pawl::options options;
    options.rings.delays = {{.delay = 5ms}}; // exactly that delay, although the bound differs
    pawl::make_timer_service<ring>(context, options);
    outcome a;
    outcome b;
    steady::time_point ended{};

    const auto due = steady::now() + 5ms;
    small t(context, 5ms);
    t.async_wait(record(a));
    ring r(context, 5ms);
    r.async_wait([&](error_code ec) {
        record(b)(ec);
        ended = steady::now();
    });
    BOOST_TEST(r.rearm_after(5ms) == one);
    run_to_end(context);

    BOOST_TEST(a.succeeded());
    BOOST_TEST(b.succeeded());
    BOOST_TEST((ended >= due));
}

// ---- costs -------------------------------------------------------------------------------------

// A driver that slept by the coarse reading would wake up, find that the reading has not come so
// far, and ask the system again and again, until the kernel advances it.
PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(P8_a_lone_wait_wakes_up_once) {
    asio::io_context context;
    outcome o;
    coarse_timer t(context);
    for (int i = 0; i < 20; ++i) { // at different ages of the reading
        o = {};
        t.expires_after(std::chrono::microseconds(2000 + 313 * i));
        t.async_wait(record(o));
        const std::size_t settings = system_timer::settings.load();
        const std::size_t before = looks;
        BOOST_TEST(run_to_end(context) == one); // of run_one()
        BOOST_TEST(o.succeeded());
        // It was set when the wait was started. Disarming it at the end may set it once more.
        BOOST_TEST(system_timer::settings.load() - settings <= 2U);
        BOOST_TEST(looks - before <= 3U);
    }
}

BOOST_AUTO_TEST_CASE(P2_the_system_timer_is_set_by_the_steady_clock,
                     *boost::unit_test::enable_if<system_timer::seen>()) {
    asio::io_context context;
    pawl::options options;
    options.precision = 10s;
    pawl::make_timer_service<coarse_timer>(context, options);
    outcome o;
    const auto before = steady::now();
    coarse_timer t(context, 1min);
    t.async_wait(record(o));
    const auto after = steady::now();

    BOOST_TEST((system_timer::sleeps_at_most(1min + most_off + 10s))); // P2
    BOOST_TEST(
        (system_timer::sleeps_at_least(1min - (after - before) - 1s))); // P1, with an old reading
}

// ---- bad input ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(what_a_steady_timer_refuses_a_coarse_one_refuses_with_nothing_changed) {
    asio::io_context context;
    outcome o;
    coarse_timer t(context, 1h);
    const auto expiry = t.expiry();
    t.async_wait(record(o));

    BOOST_CHECK_THROW(t.expires_within(2s, 1s), std::invalid_argument);
    BOOST_CHECK_THROW(t.rearm_within(2s, 1s), std::invalid_argument);
    BOOST_TEST((t.expiry() == expiry));
    poll(context);
    BOOST_TEST(o.pending());

    BOOST_CHECK_THROW(pawl::basic_interval_timer<coarse_clock>(context, 0s), std::invalid_argument);
    pawl::basic_event_queue<coarse_clock> events(context);
    BOOST_CHECK_THROW(events.once(-1s, [] {}), std::invalid_argument);
    BOOST_CHECK_THROW(events.every(0s, [] {}), std::invalid_argument);
    asio::io_context other;
    pawl::options options;
    options.precision = 0ns;
    BOOST_CHECK_THROW(pawl::make_timer_service<coarse_timer>(other, options),
                      std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace coarse_timer_test
