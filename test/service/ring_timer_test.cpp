// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// ring_timer: the window in which it expires, its delays, the outcome of a wait whose ring is full.
// Otherwise it is a timer like the others.

#define BOOST_TEST_MODULE ring_timer
#include "shard_bench.hpp"
#include "support/archetypes.hpp"
#include "support/seed.hpp"

#include <pawl/expire_all.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/ring_timer.hpp>

#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/system/system_error.hpp>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;
using boost::system::error_code;
using pawl::manual_clock;
using pawl::ring_overflow;
using clock_duration = manual_clock::duration;

using timer = pawl::basic_waitable_timer<
    manual_clock, pawl::on_backend<pawl::time::timeout_rings, asio::wait_traits<manual_clock>>>;

pawl::options with(std::vector<pawl::ring_options::ring> delays,
                   ring_overflow when_full = ring_overflow::grow) {
    pawl::options o;
    o.precision = 1ms;
    o.rings.delays = std::move(delays);
    o.rings.when_full = when_full;
    return o;
}

auto& service_of(asio::execution_context& context) {
    return asio::use_service<pawl::timer_service<timer::clock_type, timer::traits_type>>(context);
}

/// Ten seconds: waits that were started in a ring of 8 s fall due. Runs no handler.
void ten_seconds(asio::execution_context& context) {
    for (int i = 0; i < 20; ++i)
        manual_clock::advance(context, 500ms);
}

/// A context with rings.
struct arena {
    explicit arena(const pawl::options& o = with({{.delay = 8s}, {.delay = 80s}})) {
        pawl::make_timer_service<timer>(context, o);
    }

    void poll() {
        context.restart();
        context.poll();
    }

    /// Moves the clock like a driver: it stops at each tick with work to do.
    void pass(clock_duration d) {
        const auto end = manual_clock::now() + d;
        auto& service = service_of(context);
        while (service.next_wake() <= end) {
            const auto step = service.next_wake() - manual_clock::now();
            manual_clock::advance(context, step);
            poll();
        }
        manual_clock::advance(context, end - manual_clock::now());
        poll();
    }

    asio::io_context context;
};

/// How one wait ended, and when.
struct outcome {
    int calls = 0;
    error_code code;
    manual_clock::time_point at;

    auto record() {
        return [this](const error_code& ec) {
            ++calls;
            code = ec;
            at = manual_clock::now();
        };
    }
    [[nodiscard]] bool success() const { return calls == 1 && !code; }
    [[nodiscard]] bool aborted() const {
        return calls == 1 && code == asio::error::operation_aborted;
    }
};

// --- the window -------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(P2_a_timer_that_is_alone_in_its_period_is_exact) {
    arena a;
    timer t(a.context, 8s);
    outcome r;
    t.async_wait(r.record());
    const auto start = manual_clock::now();
    a.pass(10s);
    BOOST_TEST(r.success());
    BOOST_TEST((r.at >= start + 8s && r.at <= start + 8s + 2ms));
}

// A period is a second here, and takes the timers that expire less than that after its first.
BOOST_DATA_TEST_CASE(P2_a_timer_waits_for_the_last_of_its_period_and_for_no_other,
                     boost::unit_test::data::make({999, 1000}), milliseconds) {
    arena a;
    timer first(a.context, 8s);
    outcome one;
    first.async_wait(one.record());
    const auto start = manual_clock::now();
    const std::chrono::milliseconds later(milliseconds);
    a.pass(later);
    timer second(a.context, 8s);
    outcome two;
    second.async_wait(two.record());

    a.pass(10s);
    BOOST_TEST((one.at - start - 8s < 2ms) == (later == 1000ms));
    BOOST_TEST((two.at - start - 8s - later < 2ms));
}

// A handler that blocks, run() that is called late, a test that moves the clock in one step.
BOOST_DATA_TEST_CASE(P2_a_context_that_comes_late_delays_a_ring_by_no_more_than_that,
                     boost::unit_test::data::make({7, 8, 9, 20, 1000}), seconds) {
    arena a;
    timer first(a.context, 8s);
    outcome one;
    first.async_wait(one.record());
    a.pass(300ms);
    timer second(a.context, 8s);
    outcome two;
    second.async_wait(two.record());

    manual_clock::advance(a.context, std::chrono::seconds(seconds)); // from 300 ms on
    a.poll();
    // The second is the last of its period.
    BOOST_TEST(one.success() == (seconds >= 8));
    BOOST_TEST(two.success() == (seconds >= 8));
    a.pass(1s);
    BOOST_TEST(one.success());
    BOOST_TEST(two.success());
}

BOOST_DATA_TEST_CASE(P1_P2_a_timer_expires_within_the_window_of_its_ring,
                     boost::unit_test::data::make({1u, 2u, 8u, 100u}), marks) {
    pawl::options o = with({{.delay = 8s}, {.delay = 80s}});
    o.rings.marks = marks;
    arena a(o);
    std::mt19937_64 random(pawl_test::seed());
    std::uniform_int_distribution<int> step(1, 900);
    std::deque<timer> timers;
    std::deque<std::pair<outcome, clock_duration>> all;
    std::vector<manual_clock::time_point> starts;
    for (int i = 0; i < 600; ++i) {
        const clock_duration delay = i % 3 == 0 ? 80s : 8s;
        auto& t = timers.emplace_back(a.context, delay);
        starts.push_back(manual_clock::now());
        t.async_wait(all.emplace_back(outcome{}, delay).first.record());
        a.pass(std::chrono::milliseconds(step(random)));
    }
    a.pass(200s);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto& [o1, delay] = all[i];
        BOOST_TEST_REQUIRE(o1.success());
        const auto age = o1.at - starts[i];
        BOOST_REQUIRE(age >= delay);
        // Rounding to ticks of 1 ms adds up to two.
        BOOST_REQUIRE(age <= delay + delay / marks + 2ms);
        BOOST_REQUIRE(o1.at >= timers[i].expiry());
    }
}

BOOST_AUTO_TEST_CASE(P1_a_late_driver_makes_no_timer_early) {
    pawl::options o = with({{.delay = 10s}});
    o.rings.marks = 1; // like the circular timeout buffer: two marks
    arena a(o);
    timer first(a.context, 10s);
    outcome f;
    first.async_wait(f.record());
    a.pass(1s);
    manual_clock::advance(a.context, 16900ms); // the tick at 10 s comes at 17.9 s
    timer t(a.context, 10s);
    outcome r;
    t.async_wait(r.record());
    const auto start = manual_clock::now();
    a.pass(9999ms);
    BOOST_TEST(r.calls == 0);
    a.pass(11s);
    BOOST_TEST(r.success());
    BOOST_TEST((r.at >= start + 10s));
    BOOST_TEST(f.success());
}

BOOST_AUTO_TEST_CASE(P1_a_ring_takes_any_delay_be_it_no_whole_number_of_ticks) {
    for (const clock_duration delay :
         {clock_duration(1ns), clock_duration(300us), clock_duration(10'900us)}) {
        arena a(with({{.delay = delay}}));
        for (int i = 0; i < 20; ++i) {
            timer t(a.context, delay);
            outcome r;
            const auto start = manual_clock::now();
            t.async_wait(r.record());

            a.pass(20ms + 50us); // so that the next one starts elsewhere in a tick

            BOOST_TEST_REQUIRE(r.success());
            BOOST_TEST((r.at >= start + delay));
        }
    }
}

BOOST_AUTO_TEST_CASE(P8_a_sparse_timer_costs_one_wake_up) {
    arena a;
    const auto& service = service_of(a.context);
    for (int round = 0; round < 5; ++round) {
        timer t(a.context, 8s);
        outcome r;
        t.async_wait(r.record());
        int stops = 0;
        for (; r.calls == 0; ++stops) {
            manual_clock::advance(a.context, service.next_wake() - manual_clock::now());
            a.poll();
        }
        BOOST_TEST(stops == 1);
        manual_clock::advance(a.context, 37s);
    }
}

BOOST_AUTO_TEST_CASE(P7_timers_of_one_ring_expire_in_start_order) {
    arena a;
    std::deque<timer> timers;
    std::vector<int> order;
    for (int i = 0; i < 1000; ++i) {
        timers.emplace_back(a.context, 8s).async_wait([&, i](const error_code& ec) {
            BOOST_TEST(!ec);
            order.push_back(i);
        });
        if (i % 100 == 0)
            manual_clock::advance(a.context, 700ms);
    }
    a.pass(30s);
    BOOST_TEST(order.size() == 1000U);
    BOOST_TEST(std::is_sorted(order.begin(), order.end()));
}

// --- moving -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_timer_that_is_moved_expires_from_then_on_and_takes_a_slot_a_period) {
    arena a(with({{.delay = 8s, .capacity = 16}}, ring_overflow::reject));
    timer t(a.context, 8s);
    outcome r;
    t.async_wait(r.record());
    for (int i = 0; i < 5000; ++i) { // a read every 20 ms: 5000 moves, 100 s
        a.pass(20ms);
        BOOST_TEST_REQUIRE(t.rearm_after(8s) == 1U);
    }
    const auto last = manual_clock::now();
    a.pass(20s);
    BOOST_TEST(r.success());
    BOOST_TEST((r.at >= last + 8s));
    BOOST_TEST((r.at <= last + 9s + 2ms));
}

BOOST_AUTO_TEST_CASE(P4_a_wait_that_is_due_is_pulled_back_into_another_ring) {
    arena a;
    timer t(a.context, 8s);
    outcome r;
    t.async_wait(r.record());
    while (t.expiry() + 2s > manual_clock::now())
        manual_clock::advance(a.context, 500ms); // it is due, but its handler has not run
    BOOST_TEST(t.rearm_after(80s) == 1U);
    const auto start = manual_clock::now();
    a.poll();
    BOOST_TEST(r.calls == 0);
    a.pass(79s);
    BOOST_TEST(r.calls == 0);
    a.pass(20s);
    BOOST_TEST(r.success());
    BOOST_TEST((r.at >= start + 80s));
}

BOOST_DATA_TEST_CASE(P4_a_handler_cancels_and_moves_peers_of_its_own_batch,
                     boost::unit_test::data::make({1u, 64u}), completions) {
    auto options = with({{.delay = 8s}, {.delay = 80s}});
    options.completions_per_turn = completions;
    arena a(options);
    timer first(a.context, 8s);
    timer cancelled(a.context, 8s);
    timer moved(a.context, 8s);
    timer last(a.context, 8s);
    outcome c, m, f;
    std::size_t answers = 0;
    first.async_wait([&](const error_code&) {
        answers += cancelled.cancel();
        answers += moved.rearm_after(8s);
        answers += last.rearm_after(80s);
    });
    cancelled.async_wait(c.record());
    moved.async_wait(m.record());
    last.async_wait(f.record());
    ten_seconds(a.context);
    BOOST_TEST(service_of(a.context).due_count() == 4U);

    const auto start = manual_clock::now();
    a.poll();
    BOOST_TEST(answers == 3U);
    BOOST_TEST(c.aborted());
    BOOST_TEST(m.calls == 0);
    BOOST_TEST(f.calls == 0);

    a.pass(100s);
    BOOST_TEST(c.calls == 1);
    BOOST_TEST(m.success());
    BOOST_TEST((m.at >= start + 8s && m.at <= start + 9s + 2ms));
    BOOST_TEST(f.success());
    BOOST_TEST((f.at >= start + 80s && f.at <= start + 90s + 2ms));
}

// --- delays -----------------------------------------------------------------------------------

// The expiry that a timer has before it is set was never checked against the rings.
BOOST_AUTO_TEST_CASE(an_expiry_that_was_never_set_and_that_no_ring_serves_is_refused) {
    using early_clock = pawl_test::stepped_clock<struct stands_before_its_epoch>;
    early_clock::set(-10h);
    using early_timer = pawl::basic_waitable_timer<
        early_clock, pawl::on_backend<pawl::time::timeout_rings, asio::wait_traits<early_clock>>>;
    asio::io_context context;
    pawl::options o;
    o.rings.delays = {{.delay = 1h}};
    pawl::make_timer_service<early_timer>(context, o);
    early_timer t(context);
    bool called = false;
    const auto wait = [&] { t.async_wait([&](const error_code&) { called = true; }); };
    const auto says = [](const std::invalid_argument& e) {
        return std::string(e.what()).find("no ring for a delay of 36000 s") != std::string::npos;
    };

    BOOST_CHECK_EXCEPTION(wait(), std::invalid_argument, says);
    BOOST_TEST(context.run() == 0U); // nothing was left behind
    BOOST_TEST(!called);

    t.expires_after(1h);
    wait();
    BOOST_TEST(t.cancel() == 1U);
    context.restart();
    context.run();
    BOOST_TEST(called);
}

BOOST_AUTO_TEST_CASE(an_unknown_delay_is_refused_with_the_known_ones_and_nothing_is_lost) {
    arena a;
    timer t(a.context, 8s);
    outcome r;
    t.async_wait(r.record());
    const auto expiry = t.expiry();
    const auto says = [](const std::invalid_argument& e) {
        const std::string text = e.what();
        return text.find("a delay of 9 s") != std::string::npos &&
               text.find("has 8 s, 80 s, and") != std::string::npos &&
               text.find("round_up is false") != std::string::npos;
    };
    BOOST_CHECK_EXCEPTION(t.expires_after(9s), std::invalid_argument, says);
    BOOST_CHECK_EXCEPTION(t.rearm_after(9s), std::invalid_argument, says);
    BOOST_CHECK_EXCEPTION(t.expires_at(manual_clock::now() + 9s), std::invalid_argument, says);
    BOOST_CHECK_EXCEPTION(t.rearm_at(manual_clock::now() + 9s), std::invalid_argument, says);
    BOOST_CHECK_EXCEPTION(timer(a.context, 9s), std::invalid_argument, says);
    BOOST_CHECK_THROW(t.expires_at(manual_clock::time_point::max()), std::invalid_argument);
    BOOST_CHECK_THROW(t.expires_within(9s, 10s), std::invalid_argument);
    BOOST_CHECK_THROW(t.expires_within(10s, 9s), std::invalid_argument);
    BOOST_TEST((t.expiry() == expiry));
    a.pass(10s);
    BOOST_TEST(r.success());
}

BOOST_AUTO_TEST_CASE(with_round_up_a_delay_takes_the_next_longer_ring) {
    auto o = with({{.delay = 80s}, {.delay = 8s}});
    o.rings.round_up = true;
    arena a(o);
    timer t(a.context, 3s);
    outcome r;
    t.async_wait(r.record());
    const auto start = manual_clock::now();
    a.pass(30s);
    BOOST_TEST(r.success());
    BOOST_TEST((r.at >= start + 3s && r.at <= start + 9s + 2ms));
    BOOST_CHECK_THROW(t.expires_after(81s), std::invalid_argument);
    BOOST_TEST(t.expires_at(manual_clock::now() + 79s) == 0U);
}

BOOST_AUTO_TEST_CASE(a_range_takes_the_longest_ring_that_fits) {
    arena a;
    timer t(a.context);
    const auto now = manual_clock::now();
    t.expires_within(5s, 20s);
    BOOST_TEST((t.expiry() == now + 8s));
    t.expires_within(5s, 100s);
    BOOST_TEST((t.expiry() == now + 80s));
    t.expires_within(0s, 5s); // no ring has it, but it needs none
    BOOST_TEST((t.expiry() == now));
    t.expires_within(-5s, -1s);
    BOOST_TEST((t.expiry() < now));
}

BOOST_AUTO_TEST_CASE(a_range_moves_all_waits_to_the_longest_ring_that_fits) {
    arena a;
    timer t(a.context, 8s);
    BOOST_TEST(t.rearm_within(5s, 100s) == 0U); // nothing is pending: only the expiry is set
    BOOST_TEST((t.expiry() == manual_clock::now() + 80s));
    outcome one, two;
    t.async_wait(one.record());
    t.async_wait(two.record());
    a.pass(3s);
    BOOST_TEST(t.rearm_within(5s, 20s) == 2U);
    BOOST_TEST((t.expiry() == manual_clock::now() + 8s));
    ten_seconds(a.context); // both are due, and are pulled back
    BOOST_TEST(t.rearm_within(5s, 100s) == 2U);
    BOOST_TEST((t.expiry() == manual_clock::now() + 80s));
    a.pass(79s);
    BOOST_TEST(one.calls + two.calls == 0);
    BOOST_TEST(t.rearm_within(8s, 8s) == 2U);
    const auto start = manual_clock::now();
    a.pass(12s);
    for (const outcome* each : {&one, &two}) {
        BOOST_TEST(each->success());
        BOOST_TEST((each->at >= start + 8s && each->at <= start + 9s + 2ms));
    }
    BOOST_TEST(t.rearm_within(5s, 20s) == 0U); // all have completed

    timer now(a.context, 8s);
    outcome n;
    now.async_wait(n.record());
    BOOST_TEST(now.rearm_within(0s, 5s) == 1U); // no ring has it, but it needs none
    BOOST_TEST((now.expiry() == manual_clock::now()));
    BOOST_TEST(n.calls == 0);
    a.poll();
    BOOST_TEST(n.success());
}

BOOST_AUTO_TEST_CASE(a_range_without_a_ring_moves_nothing) {
    arena a;
    timer t(a.context, 8s);
    outcome one, two;
    t.async_wait(one.record());
    t.async_wait(two.record());
    const auto start = manual_clock::now();
    a.pass(3s);
    BOOST_CHECK_EXCEPTION(t.rearm_within(9s, 10s), std::invalid_argument,
                          [](const std::invalid_argument& e) {
                              return std::string(e.what()).find("9 s .. 10 s") != std::string::npos;
                          });
    BOOST_CHECK_THROW(t.rearm_within(81s, 1h), std::invalid_argument);
    BOOST_CHECK_THROW(t.rearm_within(1s, 7s), std::invalid_argument);
    BOOST_CHECK_THROW(t.rearm_within(10s, 9s), std::invalid_argument);
    BOOST_TEST((t.expiry() == start + 8s));
    a.pass(9s);
    for (const outcome* each : {&one, &two}) {
        BOOST_TEST(each->success());
        BOOST_TEST((each->at >= start + 8s && each->at <= start + 9s + 2ms));
    }
}

BOOST_AUTO_TEST_CASE(without_delays_every_delay_is_refused_and_the_text_says_what_to_do) {
    asio::io_context context;
    timer t(context);
    BOOST_CHECK_EXCEPTION(
        t.expires_after(1s), std::invalid_argument, [](const std::invalid_argument& e) {
            return std::string(e.what()).find("options::rings.delays first") != std::string::npos;
        });
    outcome r;
    t.async_wait(r.record()); // its expiry has passed
    context.run();
    BOOST_TEST(r.success());
}

BOOST_AUTO_TEST_CASE(bad_options_are_refused_by_name) {
    asio::io_context context;
    const auto refused = [&](const pawl::options& o, const std::string& name) {
        BOOST_CHECK_EXCEPTION(pawl::make_timer_service<timer>(context, o), std::invalid_argument,
                              [&](const std::invalid_argument& e) {
                                  return std::string(e.what()).find(name) != std::string::npos;
                              });
    };
    refused(with({{.delay = 0s}}), "rings.delays[].delay is 0 s");
    refused(with({{.delay = -1s}}), "rings.delays[].delay");
    refused(with({{.delay = 24h * 365 * 11}}), "rings.delays[].delay");
    refused(with({{.delay = 1s, .capacity = 0}}), "rings.delays[].capacity is 0");
    refused(with({{.delay = 1s}, {.delay = 2s}, {.delay = 1000ms}}), "has the delay 1 s twice");
    refused(with({{.delay = std::chrono::years(10) + 1ns}}), "between 1 ns and 315569520 s");
    refused(with({{.delay = 1s, .capacity = (1UL << 31) + 1}}), "between 1 and 2147483648");
    refused(with(std::vector<pawl::ring_options::ring>(1001)), "between 0 and 1000");
    auto o = with({{.delay = 1s}});
    o.rings.marks = 0;
    refused(o, "rings.marks is 0; it must be between 1 and 1024");
    o.rings.marks = 1025;
    refused(o, "rings.marks is 1025");
    for (const int outside : {-1, 4})
        refused(with({{.delay = 1s}}, static_cast<ring_overflow>(outside)), "rings.when_full");
    pawl::make_timer_service<timer>(context, with({{.delay = 1s}})); // nothing was made before
}

BOOST_AUTO_TEST_CASE(the_ends_of_the_ranges_of_rings_are_accepted) {
    pawl::options o = with({{1ns, 1}, {std::chrono::years(10), 1UL << 31}});
    for (const unsigned marks : {1U, 1024U}) {
        o.rings.marks = marks;
        BOOST_CHECK_NO_THROW(pawl::detail::validated(o));
    }
    for (const auto w : {ring_overflow::grow, ring_overflow::flush_oldest}) {
        o.rings.when_full = w;
        BOOST_CHECK_NO_THROW(pawl::detail::validated(o));
    }
    for (int i = 1; o.rings.delays.size() != 1000; ++i)
        o.rings.delays.push_back({std::chrono::seconds(i)});
    BOOST_CHECK_NO_THROW(pawl::detail::validated(o));
    o.rings.delays.clear();
    BOOST_CHECK_NO_THROW(pawl::detail::validated(o));
}

BOOST_AUTO_TEST_CASE(a_range_has_the_longest_ring_that_is_in_it) {
    auto o = with({{.delay = 10s}, {.delay = 1s}, {.delay = 3s}});
    const pawl::detail::ring_table exact(o);
    o.rings.round_up = true;
    const pawl::detail::ring_table rounded(o);
    for (const auto* rings : {&exact, &rounded}) {
        BOOST_CHECK(rings->within(1s, 2s) == 1s); // `min` is in it, and so is `max`
        BOOST_CHECK(rings->within(2s, 3s) == 3s);
        BOOST_CHECK(rings->within(500ms, 9s) == 3s);
        BOOST_CHECK(rings->within(0s, 500ms) == 0s); // what has passed needs no ring
        BOOST_CHECK(rings->within(-1s, 500ms) == 0s);
        BOOST_CHECK(rings->within(-2s, -1s) == -1s);
        BOOST_CHECK(rings->within(-2s, 0s) == 0s);
        BOOST_CHECK_THROW((void)rings->within(11s, 12s), std::invalid_argument);
    }
    using range = std::pair<clock_duration, clock_duration>;
    for (const auto& [min, max] : {range(1ns, 999ms), range(4ns, 4ns), range(4s, 9s)}) {
        BOOST_CHECK_THROW((void)exact.within(min, max), std::invalid_argument);
        BOOST_CHECK(rounded.within(min, max) == max); // as a delay of `max`
    }
}

BOOST_AUTO_TEST_CASE(a_time_is_refused_that_is_beyond_the_longest_ring) {
    const pawl::detail::ring_table rings(with({{.delay = 10s}, {.delay = 1s}}));
    BOOST_CHECK_NO_THROW(rings.require_longest(9s)); // none has this delay
    BOOST_CHECK_NO_THROW(rings.require_longest(10s));
    BOOST_CHECK_THROW(rings.require_longest(10s + 1ns), std::invalid_argument);
    const pawl::detail::ring_table none(with({}));
    BOOST_CHECK_NO_THROW(none.require_longest(0s)); // it has passed
    BOOST_CHECK_THROW(none.require_longest(1ns), std::invalid_argument);
}

// --- full rings -------------------------------------------------------------------------------

struct full_ring : arena {
    explicit full_ring(ring_overflow when_full, std::size_t capacity = 4)
        : arena(with({{.delay = 8s, .capacity = capacity}, {.delay = 80s}}, when_full)) {
        for (std::size_t i = 0; i < capacity; ++i)
            timers.emplace_back(context, 8s).async_wait(outcomes.emplace_back().record());
    }
    outcome& one_more() {
        timers.emplace_back(context, 8s).async_wait(outcomes.emplace_back().record());
        return outcomes.back();
    }
    std::deque<outcome> outcomes;
    std::deque<timer> timers;
};

BOOST_AUTO_TEST_CASE(P4_a_full_ring_refuses_one_more_and_keeps_the_others) {
    full_ring a(ring_overflow::reject);
    outcome& r = a.one_more();
    BOOST_TEST(r.calls == 0);                   // never inline
    BOOST_TEST(a.timers.back().cancel() == 0U); // it is no wait of the timer any more
    a.poll();
    BOOST_TEST(r.calls == 1);
    BOOST_TEST((r.code == asio::error::no_buffer_space));
    timer other(a.context, 80s); // the other ring has room
    outcome o;
    other.async_wait(o.record());
    // A re-arm into the full ring is refused, and the wait is unchanged.
    const auto says = [](const boost::system::system_error& e) {
        return e.code() == asio::error::no_buffer_space;
    };
    BOOST_CHECK_EXCEPTION(other.rearm_after(8s), boost::system::system_error, says);
    BOOST_CHECK_EXCEPTION(other.rearm_within(1s, 8s), boost::system::system_error, says);
    BOOST_TEST((other.expiry() == manual_clock::now() + 80s));
    a.pass(12s);
    for (std::size_t i = 0; i < 4; ++i)
        BOOST_TEST(a.outcomes[i].success());
    BOOST_TEST(o.calls == 0);
    a.pass(90s);
    BOOST_TEST(o.success());
    BOOST_TEST(a.one_more().calls == 0); // there is room again
    a.pass(12s);
    BOOST_TEST(a.outcomes.back().success());
}

BOOST_AUTO_TEST_CASE(a_full_ring_expires_one_more_at_once) {
    full_ring a(ring_overflow::expire_now);
    outcome& r = a.one_more();
    BOOST_TEST(r.calls == 0);
    a.poll();
    BOOST_TEST(r.success());
    timer other(a.context, 80s);
    outcome o;
    other.async_wait(o.record());
    BOOST_TEST(other.rearm_after(8s) == 1U);
    a.poll();
    BOOST_TEST(o.success());
    BOOST_TEST(a.outcomes.front().calls == 0);
    a.pass(12s);
    for (const outcome& each : a.outcomes)
        BOOST_TEST(each.success());
}

BOOST_AUTO_TEST_CASE(a_full_ring_flushes_its_oldest_for_one_more) {
    full_ring a(ring_overflow::flush_oldest);
    outcome& r = a.one_more();
    a.poll();
    BOOST_TEST(a.outcomes.front().success());
    BOOST_TEST(a.outcomes[1].calls == 0);
    BOOST_TEST(r.calls == 0);
    const auto start = manual_clock::now();
    a.pass(12s);
    BOOST_TEST(r.success());
    BOOST_TEST((r.at >= start + 8s)); // the others keep their delay
    for (const outcome& each : a.outcomes)
        BOOST_TEST(each.success());
}

const auto policies_that_end_a_wait = boost::unit_test::data::make(
    {static_cast<int>(ring_overflow::reject), static_cast<int>(ring_overflow::expire_now),
     static_cast<int>(ring_overflow::flush_oldest)});

int calls_of(const std::deque<outcome>& outcomes) {
    int calls = 0;
    for (const outcome& each : outcomes)
        calls += each.calls;
    return calls;
}

// In a handler, where the context could run others at once.
BOOST_DATA_TEST_CASE(P3_a_full_ring_invokes_no_handler_within_a_call, policies_that_end_a_wait,
                     policy) {
    const auto when_full = static_cast<ring_overflow>(policy);
    full_ring a(when_full);
    timer other(a.context, 80s);
    outcome o;
    other.async_wait(o.record());
    const auto told = [&] { return calls_of(a.outcomes) + o.calls; };
    outcome again;
    asio::post(a.context, [&] {
        a.one_more(); // ends itself, or the oldest
        BOOST_TEST(told() == 0);
        if (when_full == ring_overflow::reject)
            BOOST_CHECK_THROW(other.rearm_after(8s), boost::system::system_error);
        else
            BOOST_TEST(other.rearm_after(8s) == 1U); // the same
        BOOST_TEST(told() == 0);
        BOOST_TEST(a.timers[2].expires_after(8s) == 1U); // aborts
        a.timers[2].async_wait(again.record());
        BOOST_TEST(told() == 0);
    });
    a.poll();
    BOOST_TEST(told() == (when_full == ring_overflow::reject ? 2 : 3));
    BOOST_TEST(a.outcomes[2].aborted());
    BOOST_TEST(again.calls == 0);
    a.pass(100s);
    BOOST_TEST(told() == 6);
    BOOST_TEST(again.success());
}

BOOST_DATA_TEST_CASE(a_full_ring_takes_nothing_from_that_of_another_context,
                     policies_that_end_a_wait, policy) {
    full_ring a(static_cast<ring_overflow>(policy));
    full_ring b(static_cast<ring_overflow>(policy));
    a.poll();
    b.poll();
    BOOST_TEST(calls_of(a.outcomes) + calls_of(b.outcomes) == 0); // each has room for four
    for (int i = 1; i <= 2; ++i) {
        a.one_more();
        a.poll();
        b.poll();
        BOOST_TEST(calls_of(a.outcomes) == i);
        BOOST_TEST(calls_of(b.outcomes) == 0);
    }
    b.one_more(); // so it was full all the time
    b.poll();
    BOOST_TEST(calls_of(b.outcomes) == 1);
}

BOOST_DATA_TEST_CASE(a_full_ring_takes_nothing_from_another_of_its_context,
                     policies_that_end_a_wait, policy) {
    arena a(with({{.delay = 8s, .capacity = 4}, {.delay = 80s, .capacity = 3}},
                 static_cast<ring_overflow>(policy)));
    std::deque<timer> timers;
    std::deque<outcome> short_ones;
    std::deque<outcome> long_ones;
    const auto start = [&](int count, clock_duration delay, std::deque<outcome>& outcomes) {
        for (int i = 0; i < count; ++i)
            timers.emplace_back(a.context, delay).async_wait(outcomes.emplace_back().record());
        a.poll();
    };
    start(4, 8s, short_ones);
    start(3, 80s, long_ones);
    BOOST_TEST(calls_of(short_ones) + calls_of(long_ones) == 0);
    start(1, 80s, long_ones);
    BOOST_TEST(calls_of(short_ones) == 0);
    BOOST_TEST(calls_of(long_ones) == 1);
    start(1, 8s, short_ones);
    BOOST_TEST(calls_of(short_ones) == 1);
    BOOST_TEST(calls_of(long_ones) == 1);
}

BOOST_AUTO_TEST_CASE(with_several_shards_each_has_the_capacity_to_itself) {
    auto options = with({{.delay = 8s, .capacity = 4}}, ring_overflow::reject);
    options.shards = 2;
    arena a(options);
    std::deque<timer> here; // a timer belongs to the shard of the thread that makes it
    std::deque<timer> there;
    const auto make_five = [&](std::deque<timer>& timers) {
        for (int i = 0; i < 5; ++i)
            timers.emplace_back(a.context, 8s);
    };
    make_five(here);
    std::thread(make_five, std::ref(there)).join();
    std::deque<outcome> h(5);
    std::deque<outcome> t(5);
    for (std::size_t i = 0; i < 4; ++i) {
        here[i].async_wait(h[i].record());
        there[i].async_wait(t[i].record());
    }
    a.poll();
    BOOST_TEST(calls_of(h) + calls_of(t) == 0);
    here[4].async_wait(h[4].record());
    a.poll();
    BOOST_TEST((h[4].code == asio::error::no_buffer_space));
    BOOST_TEST(calls_of(t) == 0);
    there[4].async_wait(t[4].record());
    a.poll();
    BOOST_TEST((t[4].code == asio::error::no_buffer_space));
    a.pass(12s);
    for (std::size_t i = 0; i < 4; ++i) {
        BOOST_TEST(h[i].success());
        BOOST_TEST(t[i].success());
    }
}

/// As with 2^31 slots.
struct rings_at_their_limit : pawl::time::timeout_rings {
    using pawl::time::timeout_rings::timeout_rings;
    std::size_t next_room_part(const deadline&) const noexcept { return 0; }
};

BOOST_AUTO_TEST_CASE(a_full_ring_that_cannot_grow_refuses_one_more) {
    using limited = pawl::basic_waitable_timer<
        manual_clock, pawl::on_backend<rings_at_their_limit, asio::wait_traits<manual_clock>>>;
    asio::io_context context;
    pawl::make_timer_service<limited>(context, with({{.delay = 8s, .capacity = 2}}));
    std::deque<limited> timers;
    std::deque<outcome> outcomes;
    for (int i = 0; i < 3; ++i)
        timers.emplace_back(context, 8s).async_wait(outcomes.emplace_back().record());

    context.poll();

    BOOST_TEST(outcomes[0].calls == 0);
    BOOST_TEST(outcomes[1].calls == 0);
    BOOST_TEST((outcomes[2].code == asio::error::no_buffer_space));
}

BOOST_AUTO_TEST_CASE(a_full_ring_grows_and_all_keep_their_window) {
    full_ring a(ring_overflow::grow, 2);
    const auto start = manual_clock::now();
    for (int i = 0; i < 1000; ++i)
        a.one_more();
    a.poll();
    for (const outcome& each : a.outcomes)
        BOOST_TEST_REQUIRE(each.calls == 0);
    a.pass(12s);
    for (const outcome& each : a.outcomes) {
        BOOST_TEST_REQUIRE(each.success());
        BOOST_REQUIRE(each.at >= start + 8s);
        BOOST_REQUIRE(each.at <= start + 9s + 2ms);
    }
}

BOOST_DATA_TEST_CASE(what_was_cancelled_makes_room,
                     boost::unit_test::data::make({static_cast<int>(ring_overflow::reject),
                                                   static_cast<int>(ring_overflow::flush_oldest)}),
                     policy) {
    full_ring a(static_cast<ring_overflow>(policy));
    a.timers[0].cancel(); // the timer stays, its wait is over
    a.timers[1].cancel();
    outcome& r = a.one_more();
    outcome& s = a.one_more();
    a.poll();
    BOOST_TEST(a.outcomes[0].aborted());
    BOOST_TEST(a.outcomes[1].aborted());
    BOOST_TEST(a.outcomes[2].calls == 0);
    BOOST_TEST(r.calls == 0);
    BOOST_TEST(s.calls == 0);
    a.timers.pop_front(); // and timers that are gone
    a.timers.pop_front();
    a.timers.pop_front();
    BOOST_TEST(a.one_more().calls == 0);
    a.poll();
    BOOST_TEST(a.outcomes[2].aborted());
    BOOST_TEST(a.outcomes.back().calls == 0);
    a.pass(12s);
    for (std::size_t i = 3; i < a.outcomes.size(); ++i)
        BOOST_TEST(a.outcomes[i].success());
}

BOOST_AUTO_TEST_CASE(a_timer_may_be_moved_within_a_ring_that_it_fills_alone) {
    arena a(with({{.delay = 8s, .capacity = 1}}, ring_overflow::reject));
    timer t(a.context, 8s);
    outcome r;
    t.async_wait(r.record());
    for (int i = 0; i < 50; ++i) {
        a.pass(3s); // another period each time
        BOOST_TEST_REQUIRE(t.rearm_after(8s) == 1U);
    }
    const auto last = manual_clock::now();
    a.pass(12s);
    BOOST_TEST(r.success());
    BOOST_TEST((r.at >= last + 8s));
}

// --- several waits on one timer ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(P2_a_second_wait_on_an_overdue_timer_does_not_inherit_an_old_place) {
    arena a;
    timer t(a.context, 80s);
    outcome old, one, two;
    t.async_wait(old.record());
    t.expires_after(0s); // the old wait is cancelled; its slot in the ring is still in use
    t.async_wait(one.record());
    t.async_wait(two.record());
    a.poll();
    BOOST_TEST(old.aborted());
    BOOST_TEST(one.success());
    BOOST_TEST(two.success());

    timer moved(a.context, 80s);
    outcome first, second;
    moved.async_wait(first.record());
    BOOST_TEST(moved.rearm_after(-1s) == 1U);
    moved.async_wait(second.record());
    a.poll();
    BOOST_TEST(first.success());
    BOOST_TEST(second.success());
}

BOOST_AUTO_TEST_CASE(P1_a_second_wait_after_an_overflow_is_not_early) {
    arena a(with({{.delay = 8s}, {.delay = 80s, .capacity = 1}}, ring_overflow::expire_now));
    std::optional<timer> full(std::in_place, a.context, 80s);
    outcome f, one, two;
    full->async_wait(f.record());
    timer t(a.context, 8s);
    t.async_wait(one.record());
    BOOST_TEST(t.rearm_after(80s) == 1U); // no room: due at once
    full.reset();
    t.async_wait(two.record()); // there is room now
    a.pass(79s);
    BOOST_TEST(f.aborted());
    BOOST_TEST(one.success());
    BOOST_TEST(two.calls == 0);
    a.pass(12s);
    BOOST_TEST(two.success());
    BOOST_TEST((two.at >= t.expiry()));
}

BOOST_DATA_TEST_CASE(P2_a_second_wait_on_the_oldest_timer_of_a_full_ring_leaves_its_place,
                     boost::unit_test::data::make({static_cast<int>(ring_overflow::grow),
                                                   static_cast<int>(ring_overflow::reject),
                                                   static_cast<int>(ring_overflow::expire_now),
                                                   static_cast<int>(ring_overflow::flush_oldest)}),
                     policy) {
    arena a(with({{.delay = 8s, .capacity = 1}}, static_cast<ring_overflow>(policy)));
    timer t(a.context, 8s);
    outcome one, two;
    const auto start = manual_clock::now();
    t.async_wait(one.record());
    a.pass(7s);
    t.async_wait(two.record());
    a.pass(20s);
    for (const outcome* each : {&one, &two}) {
        BOOST_TEST(each->success());
        BOOST_TEST((each->at >= start + 8s && each->at <= start + 9s + 2ms));
    }
}

BOOST_AUTO_TEST_CASE(P6_places_of_cancelled_timers_are_let_go_of_one_at_a_time) {
    namespace time = pawl::time;
    const time::timeout_rings::shape shape{8, 128};
    time::timeout_rings rings(std::span(&shape, 1), 8, time::tick{0});
    std::deque<time::timer_node> nodes(102);
    for (auto& node : nodes)
        rings.insert(node, {time::tick{8}, 0});
    for (std::size_t i = 1; i <= 100; ++i)
        rings.erase(nodes[i]);
    time::timeout_rings::detached all(rings);
    rings.detach_all(all);
    time::timer_node* node = nullptr;
    BOOST_TEST(all.pop(node));
    BOOST_TEST(node == &nodes.front());
    for (int i = 0; i < 100; ++i) {
        BOOST_TEST_REQUIRE(all.pop(node));
        BOOST_TEST_REQUIRE(!node);
    }
    BOOST_TEST(all.pop(node));
    BOOST_TEST(node == &nodes.back());
    BOOST_TEST(!all.pop(node));
    BOOST_TEST(rings.empty());
}

// --- as any other timer -----------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_timer_starts_again_in_the_handler_of_the_first_of_its_two_waits) {
    arena a;
    timer t(a.context, 8s);
    outcome second, third;
    auto start = manual_clock::now();
    t.async_wait([&](const error_code& ec) {
        BOOST_TEST(!ec);
        BOOST_TEST(t.expires_after(8s) == 1U); // the second one is due, too
        start = manual_clock::now();
        t.async_wait(third.record());
    });
    t.async_wait(second.record());
    ten_seconds(a.context);
    a.poll();
    BOOST_TEST(second.aborted());
    BOOST_TEST(third.calls == 0);
    a.pass(12s);
    BOOST_TEST(third.success());
    BOOST_TEST((third.at >= start + 8s && third.at <= start + 9s + 2ms));
}

BOOST_AUTO_TEST_CASE(while_a_handler_runs_another_thread_starts_moves_and_cancels_in_its_ring) {
    arena a(with({{.delay = 8s, .capacity = 1}})); // it also has to grow
    timer t(a.context, 8s);
    std::deque<timer> others;
    outcome started, moved, cancelled;
    auto start = manual_clock::now();
    t.async_wait([&](const error_code& ec) {
        BOOST_TEST(!ec);
        start = manual_clock::now();
        std::thread([&] {
            for (outcome* each : {&started, &moved, &cancelled})
                others.emplace_back(a.context, 8s).async_wait(each->record());
            others[1].rearm_after(8s);
            others[2].cancel();
        }).join(); // would block forever if it had to wait for this handler
        BOOST_TEST(started.calls + moved.calls + cancelled.calls == 0);
    });
    a.pass(10s);
    BOOST_TEST(cancelled.aborted());
    a.pass(12s);
    for (const outcome* each : {&started, &moved}) {
        BOOST_TEST(each->success());
        BOOST_TEST((each->at >= start + 8s && each->at <= start + 9s + 2ms));
    }
}

// Tests the shard, which lets others in between two batches.
BOOST_AUTO_TEST_CASE(P10_a_wait_that_starts_while_expire_all_runs_is_not_ended_by_it) {
    pawl::options o;
    o.batch_limit = 1;
    o.rings.delays = {{.delay = 1s}};
    shard_bench::bench<pawl::time::timeout_rings> b(o);
    auto& shard = b.state();
    const auto tick_1000 = pawl::time::timeout_rings::deadline{pawl::time::tick{1000}, 0};
    pawl::detail::timer_core timers[3];
    shard_bench::test_wait waits[3], later;
    const auto start = [&](std::size_t i, shard_bench::test_wait& wait, bool first_wait) {
        auto [begun, todo] = shard.start(timers[i], wait, tick_1000, first_wait);
        BOOST_REQUIRE(begun == pawl::detail::admission::started);
        b.apply(todo);
    };
    const auto cancel = [&](std::size_t i) {
        auto [count, todo] = shard.cancel(timers[i], 1);
        BOOST_TEST(count == 1U);
        b.apply(todo);
    };
    for (std::size_t i = 0; i != 3; ++i)
        start(i, waits[i], true);

    bool first = true;
    const std::size_t ended =
        shard.expire_all(asio::error::timed_out, [&](const pawl::detail::commitment& todo) {
            b.apply(todo);
            if (!std::exchange(first, false))
                return;
            cancel(1);
            start(1, later, false);
        });
    b.run_all();

    BOOST_TEST(ended == 2U);
    BOOST_TEST(later.completed == 0);
    cancel(1);
    b.run_all();
    BOOST_TEST(later.completed == 1);
    for (const auto& w : waits)
        BOOST_TEST(w.completed == 1);
    for (auto& t : timers)
        BOOST_CHECK(shard.leave(t).after != shard_bench::sequel::destroy);
}

BOOST_AUTO_TEST_CASE(P10_expire_all_completes_every_wait_once) {
    arena a(with({{.delay = 8s, .capacity = 2}, {.delay = 80s, .capacity = 2}}));
    std::deque<timer> timers;
    std::deque<outcome> outcomes;
    for (int i = 0; i < 1000; ++i)
        timers.emplace_back(a.context, i % 2 == 0 ? 8s : 80s)
            .async_wait(outcomes.emplace_back().record());
    timers[3].cancel();
    BOOST_TEST(pawl::expire_all(a.context) == 999U);
    a.poll();
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        BOOST_TEST_REQUIRE((i == 3 ? outcomes[i].aborted() : outcomes[i].success()));
    BOOST_TEST(pawl::expire_all(a.context) == 0U);
    outcome later;
    timers[0].async_wait(later.record());
    a.pass(10s);
    BOOST_TEST(later.success());
}

BOOST_AUTO_TEST_CASE(P10_under_the_deliver_policy_a_destroyed_context_tells_every_wait_once) {
    auto options = with({{.delay = 8s, .capacity = 2}, {.delay = 80s, .capacity = 2}});
    options.on_shutdown = pawl::shutdown_policy::deliver;
    std::optional<arena> a(std::in_place, options);
    timer early(a->context, 8s);
    outcome due;
    early.async_wait(due.record());
    ten_seconds(a->context); // its handler has not started
    std::deque<timer> timers;
    std::deque<outcome> outcomes;
    for (int i = 0; i < 1000; ++i)
        timers.emplace_back(a->context, i % 2 == 0 ? 8s : 80s)
            .async_wait(outcomes.emplace_back().record());
    timers[3].cancel();
    BOOST_TEST(due.calls + calls_of(outcomes) == 0);

    a.reset();

    BOOST_TEST(due.success());
    for (const outcome& each : outcomes)
        BOOST_TEST_REQUIRE(each.aborted());
    BOOST_TEST(timers[0].cancel() == 0U);
}

} // namespace
