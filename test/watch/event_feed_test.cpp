// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A reader gets every event of a timer: each kind of event, on each backend, on each clock, and the
// books balance.

#define BOOST_TEST_MODULE event_feed
#include <boost/test/unit_test.hpp>

#include "../support/asio_configuration.hpp"
#include "../support/scripted_clock.hpp"
#include "../support/seed.hpp"
#include "../support/typed_cases.hpp"
#include "watch_support.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace watch_test {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using boost::test_tools::per_element;
using namespace std::chrono_literals;
using pawl::event_feed;
using pawl::read_status;

using set_clock = pawl_test::scripted_clock<1>;
using set_timer = pawl::basic_waitable_timer<set_clock>;

constexpr auto ignore = [](error_code) {};

/// Options with which each kind of timer has room for any delay.
pawl::options roomy() {
    pawl::options o;
    for (const std::chrono::nanoseconds d :
         {std::chrono::nanoseconds(1ms), std::chrono::nanoseconds(1h)})
        o.rings.delays.push_back({.delay = d, .capacity = 16});
    o.rings.round_up = true;
    return o;
}

/// A context with a reader that joined at the start.
struct watched {
    explicit watched(pawl::event_kinds which = pawl::event_kinds::all())
        : feed(context), reader(feed.join(which)) {
        pawl::make_timer_service<pawl::ring_timer>(context, roomy());
    }

    [[nodiscard]] seen read() { return read_all(reader); }

    asio::io_context context;
    event_feed feed;
    event_feed::reader reader;
};

using every_timer = pawl_test::types<pawl::steady_timer, pawl::system_timer, pawl::compact_timer,
                                     pawl::ring_timer, pawl::coarse_timer>;

// ---- kinds of events ----------------------------------------------------------------------------

PAWL_TYPED_CASE(a_wait_is_armed_moved_and_cancelled, Timer, every_timer) {
    watched w;
    Timer timer(w.context, 30min);
    timer.async_wait(ignore);
    BOOST_TEST(timer.rearm_after(40min) == 1U);
    BOOST_TEST(timer.cancel() == 1U);
    w.context.run();

    const seen s = w.read();
    BOOST_TEST(s.kinds() == (kinds{kind::armed, kind::moved, kind::cancelled}), per_element());
    for (const auto& e : s.all) {
        BOOST_TEST(e.waits == 1U);
        BOOST_TEST(e.timer == pawl::timer_id(timer));
        BOOST_TEST(e.lateness.count() == 0);
    }
    BOOST_TEST(s.all[0].tick < s.all[1].tick);
    BOOST_TEST(s.all[1].tick == s.all[2].tick);
    BOOST_TEST(s.open() == 0U);
}

PAWL_TYPED_CASE(a_wait_is_armed_due_and_started, Timer, every_timer) {
    watched w;
    Timer timer(w.context, 1ms);
    timer.async_wait(ignore);
    w.context.run();

    const seen s = w.read();
    BOOST_TEST(s.kinds() == (kinds{kind::armed, kind::due, kind::started}), per_element());
    BOOST_TEST(s.all[1].lateness.count() >= 0);
    BOOST_TEST(s.all[2].lateness.count() >= s.all[1].lateness.count());
    BOOST_TEST(s.all[0].tick == s.all[2].tick);
}

PAWL_TYPED_CASE(waits_of_one_timer_start_one_by_one, Timer, every_timer) {
    watched w;
    Timer timer(w.context, 1ms);
    for (int i = 0; i != 3; ++i)
        timer.async_wait(ignore);
    w.context.run();

    const seen s = w.read();
    BOOST_TEST(s.kinds() == (kinds{kind::armed, kind::armed, kind::armed, kind::due, kind::started,
                                   kind::started, kind::started}),
               per_element());
    BOOST_TEST(s.all[3].waits == 3U);
}

PAWL_TYPED_CASE(a_cancel_counts_its_waits, Timer, every_timer) {
    watched w;
    Timer timer(w.context, 30min);
    for (int i = 0; i != 3; ++i)
        timer.async_wait(ignore);
    timer.cancel_one();
    timer.expires_after(20min);
    timer.async_wait(ignore);
    { const Timer dies = std::move(timer); }
    w.context.run();

    const seen s = w.read();
    std::vector<std::uint32_t> ended;
    for (const auto& e : s.all)
        if (e.kind == kind::cancelled)
            ended.push_back(e.waits);
    BOOST_TEST(ended == (std::vector<std::uint32_t>{1, 2, 1}), per_element());
    BOOST_TEST(s.open() == 0U);
}

PAWL_TYPED_CASE(shutdown_ends_what_is_armed_and_what_is_due, Timer, every_timer) {
    std::optional<event_feed::reader> reader;
    seen s;
    {
        watched w;
        reader.emplace(w.feed.join());
        static std::optional<Timer> soon, late;
        soon.emplace(w.context, 1ms);
        late.emplace(w.context, 30min);
        for (Timer* t : {&*soon, &*soon, &*late})
            t->async_wait(ignore);
        std::this_thread::sleep_for(20ms);
        while (s.count(kind::due) == 0) { // by the wake-up; the next start is the first
            w.context.run_one();
            s.read(*reader);
        }
        BOOST_TEST(s.open() == (3U - s.count(kind::started)));
    }
    s.read(*reader);
    BOOST_TEST(s.count(kind::armed) == 3U);
    BOOST_TEST(s.count(kind::shut_down) + s.count(kind::started) == 3U);
    BOOST_TEST(s.count(kind::shut_down) >= 2U);
    BOOST_TEST(s.open() == 0U);
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(shutdown_that_delivers_is_told_as_shutdown) {
    std::optional<event_feed::reader> reader;
    int delivered = 0;
    {
        asio::io_context context;
        pawl::options o;
        o.on_shutdown = pawl::shutdown_policy::deliver;
        pawl::make_timer_service(context, o);
        reader.emplace(event_feed(context).join(asio::system_executor()));
        pawl::steady_timer* const timer = new pawl::steady_timer(context, 1h);
        timer->async_wait([&, timer](error_code) {
            ++delivered;
            delete timer;
        });
    }
    BOOST_TEST(delivered == 1);
    BOOST_TEST(read_all(*reader).kinds() == (kinds{kind::armed, kind::shut_down}), per_element());
}

PAWL_TYPED_CASE(expire_all_cancels, Timer, every_timer) {
    watched w;
    Timer a(w.context, 30min), b(w.context, 40min);
    a.async_wait(ignore);
    a.async_wait(ignore);
    b.async_wait(ignore);
    BOOST_TEST(pawl::expire_all(w.context) == 3U);
    w.context.run();
    const seen s = w.read();
    BOOST_TEST(s.count(kind::cancelled) == 3U);
    BOOST_TEST(s.count(kind::started) == 0U);
    BOOST_TEST(s.open() == 0U);
}

BOOST_AUTO_TEST_CASE(an_event_may_be_about_thousands_of_waits) {
    watched w({kind::cancelled, kind::moved, kind::due});
    pawl::manual_timer timer(w.context, 1h);
    for (const std::uint32_t waits : {4'095U, 4'096U, 5'000U}) {
        timer.expires_after(1h);
        for (std::uint32_t i = 0; i != waits; ++i)
            timer.async_wait(ignore);
        BOOST_TEST(timer.rearm_after(2h) == waits);
        BOOST_TEST(timer.cancel() == waits);
        const seen s = w.read();
        BOOST_TEST(s.kinds() == (kinds{kind::moved, kind::cancelled}), per_element());
        for (const auto& e : s.all)
            BOOST_TEST(e.waits == waits);
        w.context.poll();
        w.context.restart();
    }
    using record = pawl::detail::event_record;
    const auto most = (std::size_t{1} << 28) - 1; // no more fit in a record
    for (const std::size_t waits : {most, most + 1, std::size_t{1} << 40}) {
        const auto r = record::of(kind::due, 1, 2, 3ns, waits, true);
        BOOST_TEST((r.what >> record::waits_at) == most);
        BOOST_TEST(r.named());
        BOOST_TEST(!r.names());
    }
}

BOOST_AUTO_TEST_CASE(a_wait_that_is_due_is_cancelled) {
    watched w;
    pawl::manual_timer first(w.context, 1s), second(w.context, 1s);
    first.async_wait([&](error_code) { second.cancel(); });
    second.async_wait(ignore);
    pawl::manual_clock::advance(w.context, 1s);
    w.context.run();
    BOOST_TEST(w.read().kinds() == (kinds{kind::armed, kind::armed, kind::due, kind::due,
                                          kind::started, kind::cancelled}),
               per_element());
}

BOOST_AUTO_TEST_CASE(a_wait_that_is_due_is_pulled_back_and_falls_due_again) {
    watched w;
    pawl::manual_timer first(w.context, 1s), second(w.context, 1s);
    first.async_wait([&](error_code) { BOOST_TEST(second.rearm_after(1s) == 1U); });
    second.async_wait(ignore);
    pawl::manual_clock::advance(w.context, 1s);
    w.context.poll();
    pawl::manual_clock::advance(w.context, 1s);
    w.context.run();
    BOOST_TEST(w.read().kinds() == (kinds{kind::armed, kind::armed, kind::due, kind::due,
                                          kind::started, kind::moved, kind::due, kind::started}),
               per_element());
}

BOOST_AUTO_TEST_CASE(a_slot_cancels_one_wait) {
    watched w;
    pawl::steady_timer timer(w.context, 1h);
    asio::cancellation_signal signal;
    timer.async_wait(asio::bind_cancellation_slot(signal.slot(), ignore));
    timer.async_wait(ignore);
    signal.emit(asio::cancellation_type::terminal);
    timer.cancel();
    const seen s = w.read();
    BOOST_TEST(s.count(kind::cancelled) == 2U);
    BOOST_TEST(s.all.back().waits == 1U);
    w.context.run();
}

BOOST_AUTO_TEST_CASE(a_limit_that_is_not_needed_is_cancelled) {
    watched w;
    pawl::steady_timer work(w.context, 1ms);
    work.async_wait(pawl::timeout(1h, ignore));
    w.context.run();
    const seen s = w.read();
    BOOST_TEST(s.count(kind::armed) == 2U);
    BOOST_TEST(s.count(kind::started) == 1U);
    BOOST_TEST(s.count(kind::cancelled) == 1U);
}

BOOST_AUTO_TEST_CASE(a_limit_that_is_reached_starts) {
    watched w;
    pawl::steady_timer work(w.context, 1h);
    work.async_wait(pawl::timeout(1ms, ignore));
    w.context.run();
    const seen s = w.read();
    BOOST_TEST(s.count(kind::started) == 1U);
    BOOST_TEST(s.count(kind::cancelled) == 1U);
    BOOST_TEST(s.open() == 0U);
}

BOOST_AUTO_TEST_CASE(limits_of_a_stream_are_told) {
    watched w;
    asio::ip::tcp::acceptor acceptor(w.context, {asio::ip::address_v4::loopback(), 0});
    pawl::tcp_stream stream(w.context);
    asio::ip::tcp::socket peer(w.context);
    stream.socket().connect(acceptor.local_endpoint());
    acceptor.accept(peer);
    stream.expires_after(50ms);
    char byte = 0;
    error_code told;
    stream.async_read_some(asio::buffer(&byte, 1), [&](error_code ec, std::size_t) { told = ec; });
    w.context.run();
    BOOST_TEST(told.failed());
    const seen s = w.read();
    BOOST_TEST(s.count(kind::armed) >= 1U);
    BOOST_TEST(s.open() == 0U);
}

// ---- rings --------------------------------------------------------------------------------------

/// Options with a ring of one slot.
pawl::options tight(pawl::ring_overflow when_full) {
    pawl::options o;
    o.rings.delays = {{.delay = 1h, .capacity = 1}};
    o.rings.marks = 1;
    o.rings.round_up = true;
    o.rings.when_full = when_full;
    return o;
}

struct full_ring {
    explicit full_ring(pawl::ring_overflow when_full) : feed(context), reader(feed.join()) {
        pawl::make_timer_service<pawl::ring_timer>(context, tight(when_full));
        for (auto* t : {&first, &second}) {
            t->emplace(context, 30min);
            (*t)->async_wait([this, t](error_code ec) { (t == &first ? one : two) = ec; });
        }
    }

    asio::io_context context;
    event_feed feed;
    event_feed::reader reader;
    std::optional<pawl::ring_timer> first, second;
    std::optional<error_code> one, two;
};

BOOST_AUTO_TEST_CASE(a_ring_that_grows_does_not_overflow) {
    full_ring r(pawl::ring_overflow::grow);
    BOOST_CHECK(r.reader.get_executor() == r.context.get_executor());
    BOOST_TEST(read_all(r.reader).kinds() == (kinds{kind::armed, kind::armed}), per_element());
    BOOST_TEST(pawl::stats(r.context).total().overflowed == 0U);
}

BOOST_AUTO_TEST_CASE(a_ring_that_refuses_says_overflowed_and_cancelled) {
    full_ring r(pawl::ring_overflow::reject);
    const seen s = read_all(r.reader);
    BOOST_TEST(s.kinds() == (kinds{kind::armed, kind::armed, kind::overflowed, kind::cancelled}),
               per_element());
    BOOST_TEST(s.all[2].timer == pawl::timer_id(*r.second));
    BOOST_TEST(s.open() == 1U);
    r.context.poll();
    BOOST_TEST((r.two == asio::error::no_buffer_space));
    const auto stats = pawl::stats(r.context).total();
    BOOST_TEST(stats.overflowed == 1U);
    BOOST_TEST(stats.cancelled == 1U);
}

BOOST_AUTO_TEST_CASE(a_rearm_that_is_refused_is_no_event) {
    asio::io_context context;
    pawl::options o = tight(pawl::ring_overflow::reject);
    o.rings.delays.push_back({.delay = 2h, .capacity = 1});
    pawl::make_timer_service<pawl::ring_timer>(context, o);
    event_feed feed(context);
    pawl::ring_timer first(context, 30min), second(context, 90min);
    first.async_wait(ignore);
    second.async_wait(ignore);
    auto reader = feed.join();
    BOOST_CHECK_THROW(first.rearm_after(90min), boost::system::system_error);
    BOOST_TEST(read_all(reader).all.empty());
    BOOST_TEST(pawl::stats(context).total().moved == 0U);
}

BOOST_AUTO_TEST_CASE(a_ring_that_expires_now_says_overflowed_and_started) {
    full_ring r(pawl::ring_overflow::expire_now);
    r.context.poll();
    const seen s = read_all(r.reader);
    BOOST_TEST(s.kinds() == (kinds{kind::armed, kind::armed, kind::overflowed, kind::started}),
               per_element());
    BOOST_TEST(s.all[2].timer == pawl::timer_id(*r.second));
    BOOST_TEST(s.all[3].lateness.count() == 0);
    BOOST_TEST(pawl::stats(r.context).total().overflowed == 1U);
}

BOOST_AUTO_TEST_CASE(a_ring_that_flushes_says_overflowed_of_the_oldest) {
    full_ring r(pawl::ring_overflow::flush_oldest);
    r.context.poll();
    const seen s = read_all(r.reader);
    BOOST_TEST(s.count(kind::overflowed) == 1U);
    BOOST_TEST(s.count(kind::started) == 1U);
    for (const auto& e : s.all) {
        if (e.kind == kind::overflowed || e.kind == kind::started)
            BOOST_TEST(e.timer == pawl::timer_id(*r.first));
    }
    BOOST_TEST((r.one && !*r.one));
    BOOST_TEST(s.open() == 1U);
    BOOST_TEST(pawl::stats(r.context).total().overflowed == 1U);
}

BOOST_AUTO_TEST_CASE(a_ring_timer_that_is_overdue_when_it_starts_is_due) {
    watched w;
    pawl::ring_timer timer(w.context, -1s);
    timer.async_wait(ignore);
    w.context.run();
    const seen s = w.read();
    BOOST_TEST(s.kinds() == (kinds{kind::armed, kind::due, kind::started}), per_element());
    for (const std::size_t each : {std::size_t{1}, std::size_t{2}}) {
        BOOST_TEST((s.all[each].lateness >= 1s));
        BOOST_TEST((s.all[each].lateness < 1min));
    }
    BOOST_TEST(s.all[2].tick == s.all[0].tick);
}

// ---- clocks -------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(lateness_is_exact_on_a_manual_clock) {
    watched w;
    pawl::manual_timer timer(w.context, 10s);
    timer.async_wait(ignore);
    pawl::manual_clock::advance(w.context, 13s);
    w.context.run();
    const seen s = w.read();
    BOOST_TEST(s.kinds() == (kinds{kind::armed, kind::due, kind::started}), per_element());
    BOOST_TEST(s.all[1].lateness.count() == std::chrono::nanoseconds(3s).count());
    BOOST_TEST(s.all[2].lateness.count() == std::chrono::nanoseconds(3s).count());
}

BOOST_AUTO_TEST_CASE(lateness_is_exact_for_a_reader_that_came_when_the_wait_was_due_already) {
    asio::io_context context;
    event_feed feed(context);
    std::optional<event_feed::reader> reader;
    pawl::manual_timer first(context, 10s), second(context, 10s), third(context, 10s);
    first.async_wait([&](error_code) {
        reader.emplace(feed.join());
        pawl::manual_clock::advance(context, 2s);
    });
    second.async_wait([&](error_code) { pawl::manual_clock::advance(context, 1s); });
    third.async_wait(ignore);
    pawl::manual_clock::advance(context, 13s);
    context.run();
    const seen s = read_all(*reader);
    BOOST_TEST(s.kinds() == (kinds{kind::started, kind::started}), per_element());
    BOOST_TEST(s.all[0].lateness.count() == std::chrono::nanoseconds(5s).count());
    BOOST_TEST(s.all[1].lateness.count() == std::chrono::nanoseconds(6s).count());
}

// On a clock without notification, so that the turn that starts the waits finds the rest of a
// crowd.
BOOST_AUTO_TEST_CASE(lateness_is_exact_for_each_of_a_crowd) {
    for (const unsigned batch : {1U, 2U, 3U, 256U})
        for (const unsigned per_turn : {1U, 2U, 64U})
            for (const unsigned shards : {1U, 2U, 4U}) {
                asio::io_context context;
                pawl::options o;
                o.batch_limit = batch;
                o.completions_per_turn = per_turn;
                o.shards = shards;
                pawl::make_timer_service<set_timer>(context, o);
                auto reader = event_feed(context).join({kind::started});
                set_clock::set(100s);
                std::vector<std::unique_ptr<set_timer>> timers;
                for (int i = 0; i != 10; ++i) {
                    timers.push_back(std::make_unique<set_timer>(context, 5ms));
                    timers.back()->async_wait(
                        [i](error_code) { set_clock::set(101s + 5ms + 1s * i); });
                }
                set_clock::set(100s + 5ms);
                context.run();
                const seen s = read_all(reader);
                BOOST_TEST_REQUIRE(s.all.size() == 10U);
                for (std::size_t i = 0; i != 10; ++i)
                    BOOST_TEST(s.all[i].lateness.count() ==
                               std::chrono::nanoseconds(1s).count() * static_cast<std::int64_t>(i));
            }
}

BOOST_AUTO_TEST_CASE(a_clock_that_is_set_back_is_late_by_nothing) {
    watched w;
    set_clock::set(100s);
    set_timer first(w.context, 1s), second(w.context, 1s);
    first.async_wait([](error_code) { set_clock::set(50s); });
    second.async_wait(ignore);
    set_clock::set(102s);
    while (w.read().all.empty() && w.context.run_one() != 0) {
    }
    w.context.run_for(10s);
    const seen s = w.read();
    for (const auto& e : s.all)
        BOOST_TEST(e.lateness.count() >= 0);
    BOOST_TEST(s.count(kind::started) == 2U);
}

BOOST_AUTO_TEST_CASE(a_clock_that_is_set_back_and_forth_loses_no_event) {
    watched w;
    set_clock::set(100s);
    std::vector<std::unique_ptr<set_timer>> timers;
    int fired = 0;
    for (int i = 0; i != 40; ++i) {
        timers.push_back(std::make_unique<set_timer>(w.context, std::chrono::seconds(i)));
        timers.back()->async_wait([&](error_code) { ++fired; });
    }
    seen s;
    for (const auto t : {110s, 90s, 120s, 60s, 200s}) {
        set_clock::set(t);
        timers[0]->expires_after(-1s); // makes the service check the clock
        timers[0]->async_wait(ignore);
        w.context.run_for(3ms);
        w.context.restart();
        s.read(w.reader);
    }
    w.context.run_for(10s);
    s.read(w.reader);
    BOOST_TEST(fired == 40);
    BOOST_TEST(s.count(kind::armed) == 45U);
    BOOST_TEST(s.open() == 0U);
}

BOOST_AUTO_TEST_CASE(clocks_and_backends_of_a_context_are_in_one_feed) {
    watched w;
    pawl::steady_timer a(w.context, 1ms);
    pawl::compact_timer b(w.context, 1ms);
    pawl::system_timer c(w.context, 1ms);
    pawl::ring_timer d(w.context, 1ms);
    pawl::coarse_timer e(w.context, 1ms);
    a.async_wait(ignore);
    b.async_wait(ignore);
    c.async_wait(ignore);
    d.async_wait(ignore);
    e.async_wait(ignore);
    w.context.run();
    const seen s = w.read();
    for (const std::uint64_t id : {pawl::timer_id(a), pawl::timer_id(b), pawl::timer_id(c),
                                   pawl::timer_id(d), pawl::timer_id(e)}) {
        watch_test::kinds mine;
        for (const auto& event : s.all)
            if (event.timer == id)
                mine.push_back(event.kind);
        BOOST_TEST(mine == (kinds{kind::armed, kind::due, kind::started}), per_element());
    }
    BOOST_TEST(s.all.size() == 15U);
}

// ---- where handlers run -------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_wait_on_a_strand_starts_where_its_handler_does) {
    watched w;
    auto strand = asio::make_strand(w.context);
    pawl::manual_timer first(w.context, 1s), second(w.context, 1s);
    first.async_wait(asio::bind_executor(strand, [&](error_code) { second.cancel(); }));
    second.async_wait(asio::bind_executor(strand, ignore));
    pawl::manual_clock::advance(w.context, 4s);
    w.context.run();
    const seen s = w.read();
    BOOST_TEST(s.count(kind::due) == 2U);
    BOOST_TEST(s.count(kind::started) == 1U);
    BOOST_TEST(s.count(kind::cancelled) == 1U);
    for (const auto& e : s.all)
        if (e.kind == kind::started)
            BOOST_TEST(e.lateness.count() == std::chrono::nanoseconds(3s).count());
}

BOOST_AUTO_TEST_CASE(lateness_of_a_wait_on_another_context_is_that_of_its_start_there) {
    asio::io_context other;
    watched w;
    set_clock::set(100s);
    set_timer timer(w.context, 0s);
    timer.async_wait(asio::bind_executor(other, ignore));
    w.context.run_for(20ms);
    set_clock::set(107s + 400us); // within a tick
    other.run();
    const seen s = w.read();
    BOOST_TEST_REQUIRE(s.all.size() == 3U);
    BOOST_TEST(s.all.back().lateness.count() == std::chrono::nanoseconds(7s + 400us).count());
}

BOOST_AUTO_TEST_CASE(a_wait_on_another_context_starts_there) {
    asio::io_context other;
    watched w;
    pawl::steady_timer timer(w.context, 1ms);
    timer.async_wait(asio::bind_executor(other, ignore));
    while (w.context.run_one_for(20ms) != 0) {
    }
    seen s = w.read();
    BOOST_TEST(s.kinds() == (kinds{kind::armed, kind::due}), per_element());
    other.run();
    s.read(w.reader);
    BOOST_TEST(s.kinds() == (kinds{kind::armed, kind::due, kind::started}), per_element());
}

BOOST_AUTO_TEST_CASE(a_handler_whose_context_is_destroyed_is_shut_down) {
    auto other = std::make_unique<asio::io_context>();
    watched w;
    pawl::steady_timer timer(w.context, 1ms);
    timer.async_wait(asio::bind_executor(*other, ignore));
    while (w.context.run_one_for(20ms) != 0) {
    }
    other.reset();
    BOOST_TEST(w.read().kinds() == (kinds{kind::armed, kind::due, kind::shut_down}), per_element());
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(timers_that_outlive_their_context_are_told_until_it_ends) {
    std::optional<event_feed::reader> reader;
    std::optional<pawl::steady_timer> timer;
    {
        watched w;
        reader.emplace(w.feed.join(asio::system_executor()));
        timer.emplace(w.context, 1h);
        pawl::set_name(*timer, "survivor");
        timer->async_wait(ignore);
    }
    BOOST_TEST(timer->cancel() == 0U);
    timer.reset();
    const seen s = read_all(*reader);
    BOOST_TEST(s.kinds() == (kinds{kind::armed, kind::shut_down}), per_element());
    BOOST_TEST(s.all.back().name.view() == "survivor");
}

// ---- presence of readers ------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_reader_sees_what_happens_from_now_on) {
    watched w;
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    auto late = w.feed.join(); // the event is not in the ring yet
    timer.cancel();
    BOOST_TEST(read_all(late).kinds() == (kinds{kind::cancelled}), per_element());
    BOOST_TEST(w.read().kinds() == (kinds{kind::armed, kind::cancelled}), per_element());
}

BOOST_AUTO_TEST_CASE(a_suspended_reader_sees_nothing_and_misses_nothing) {
    watched w;
    pawl::steady_timer timer(w.context, 1h);
    auto other = w.feed.join();
    w.reader.suspend();
    w.reader.suspend();
    BOOST_TEST(w.reader.suspended());
    BOOST_TEST(w.feed.readers() == 1U);
    timer.async_wait(ignore);
    std::array<pawl::timer_event, 4> some;
    BOOST_TEST(w.reader.try_read(some).status == read_status::suspended);
    w.reader.resume();
    w.reader.resume();
    BOOST_TEST(!w.reader.suspended());
    timer.cancel();
    const seen s = w.read();
    BOOST_TEST(s.kinds() == (kinds{kind::cancelled}), per_element());
    BOOST_TEST(s.missed == 0U);
    BOOST_TEST(read_all(other).kinds() == (kinds{kind::armed, kind::cancelled}), per_element());
}

BOOST_AUTO_TEST_CASE(nothing_is_published_while_nobody_looks) {
    watched w;
    pawl::steady_timer timer(w.context, 1h);
    w.reader.suspend();
    for (int i = 0; i != 1000; ++i)
        timer.async_wait(ignore);
    timer.cancel();
    w.context.run();
    BOOST_TEST(w.feed.readers() == 0U);
    BOOST_TEST(w.feed.published() == 0U);
}

BOOST_AUTO_TEST_CASE(what_the_last_reader_has_not_read_is_not_published_later) {
    watched w;
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    w.reader.suspend(); // the event is not in the ring yet
    w.reader.resume();
    timer.cancel();
    const seen s = w.read();
    BOOST_TEST(s.kinds() == (kinds{kind::cancelled}), per_element());
    BOOST_TEST(s.missed == 0U);
    BOOST_TEST(w.feed.published() == 1U);
}

BOOST_AUTO_TEST_CASE(services_that_are_made_later_are_watched) {
    asio::io_context context;
    event_feed feed(context);
    auto reader = feed.join();
    pawl::steady_timer a(context, 1h);
    a.async_wait(ignore);
    pawl::compact_timer b(context, 1h);
    b.async_wait(ignore);
    BOOST_TEST(read_all(reader).count(kind::armed) == 2U);
}

BOOST_AUTO_TEST_CASE(shards_that_are_made_later_are_watched) {
    for (const unsigned shards : {0U, 2U, 4U}) {
        asio::io_context context;
        pawl::options o;
        o.shards = shards;
        pawl::make_timer_service(context, o);
        event_feed feed(context);
        auto reader = feed.join();
        pawl::steady_timer here(context, 1h);
        here.async_wait(ignore);
        std::thread([&] {
            pawl::steady_timer there(context, 1h);
            there.async_wait(ignore);
        }).join();
        const seen s = read_all(reader);
        BOOST_TEST(s.count(kind::armed) == 2U);
        BOOST_TEST(s.count(kind::cancelled) == 1U);
    }
}

BOOST_AUTO_TEST_CASE(a_feed_made_last_watches_what_was_there) {
    asio::io_context context;
    pawl::steady_timer timer(context, 1h);
    timer.async_wait(ignore);
    event_feed feed(context);
    auto reader = feed.join();
    timer.rearm_after(2h);
    timer.cancel();
    BOOST_TEST(read_all(reader).kinds() == (kinds{kind::moved, kind::cancelled}), per_element());
}

// ---- filters, slow readers, options -------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_filter_passes_only_its_kinds) {
    watched w({kind::started, kind::moved});
    auto none = w.feed.join(pawl::event_kinds{});
    pawl::steady_timer timer(w.context, 1ms);
    timer.async_wait(ignore);
    timer.rearm_after(2ms);
    w.context.run();
    BOOST_TEST(w.read().kinds() == (kinds{kind::moved, kind::started}), per_element());
    BOOST_TEST(read_all(none).all.empty());
}

BOOST_AUTO_TEST_CASE(a_read_passes_over_what_it_does_not_want) {
    std::optional<event_feed::reader> reader;
    std::array<pawl::timer_event, 1> one;
    {
        watched w({kind::moved});
        reader.emplace(std::move(w.reader));
        pawl::steady_timer timer(w.context, 1h);
        BOOST_TEST(reader->try_read(one).status == read_status::nothing);
        for (int i = 0; i != 200; ++i) {
            timer.async_wait(ignore);
            timer.cancel();
        }
        // All events are filtered out.
        const auto none = reader->try_read(one);
        BOOST_TEST(none.count == 0U);
        BOOST_TEST(none.missed == 0U);
        BOOST_TEST(none.status == read_status::nothing);
        for (int i = 0; i != 200; ++i)
            timer.async_wait(ignore);
        timer.rearm_after(2h);
        timer.cancel();
        const auto some = reader->try_read(one);
        BOOST_TEST(some.count == 1U);
        BOOST_TEST(some.status == read_status::messages);
        BOOST_TEST(one[0].kind == kind::moved);
        BOOST_TEST(one[0].waits == 200U);
        timer.async_wait(ignore);
    }
    const auto none = reader->try_read(one);
    BOOST_TEST(none.count == 0U);
    BOOST_TEST((none.status == read_status::nothing || none.status == read_status::closed));
    BOOST_TEST(reader->try_read(one).status == read_status::closed);
}

BOOST_AUTO_TEST_CASE(a_read_finds_what_is_not_published_yet_behind_what_it_does_not_want) {
    watched w({kind::moved});
    auto other = w.feed.join();
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    BOOST_TEST(read_all(other).kinds() == (kinds{kind::armed}), per_element()); // publishes it
    timer.rearm_after(2h);
    std::array<pawl::timer_event, 64> events;
    BOOST_TEST(w.reader.try_read(events).count == 1U);
    BOOST_TEST(events[0].kind == kind::moved);
}

BOOST_AUTO_TEST_CASE(a_slow_reader_is_told_how_many_it_missed) {
    asio::io_context context;
    event_feed feed(context, {.capacity = 64, .readers = 4});
    auto slow = feed.join();
    auto filtered = feed.join({kind::started});
    pawl::steady_timer timer(context, 1h);
    for (int i = 0; i != 1000; ++i) {
        timer.async_wait(ignore);
        timer.cancel();
    }
    auto moved = feed.join();
    moved = std::move(slow);
    const seen s = read_all(moved);
    BOOST_TEST(s.missed + s.all.size() == 2000U);
    BOOST_TEST(s.missed + s.all.size() == feed.published());
    BOOST_TEST(s.all.size() <= 128U); // the ring, and unpublished events
    BOOST_TEST(s.all.back().kind == kind::cancelled);
    const seen f = read_all(filtered);
    BOOST_TEST(f.all.empty());
    BOOST_TEST(f.missed == 2000U - 64U); // all are published, and the ring has the last ones
    context.run();
}

BOOST_AUTO_TEST_CASE(a_slow_reader_is_told_how_many_it_missed_whether_they_have_names_or_not) {
    std::mt19937_64 random(pawl_test::seed());
    for (int round = 0; round != 50; ++round) {
        asio::io_context context;
        event_feed feed(context, {.capacity = 64, .readers = 4});
        auto slow = feed.join();
        pawl::steady_timer named(context, 1h), nameless(context, 1h);
        pawl::set_name(named, "a name of 23 bytes long");
        seen s;
        std::size_t events = 0;
        for (auto steps = random() % 400; steps != 0; --steps) {
            auto& timer = random() % 2 == 0 ? named : nameless;
            timer.async_wait(ignore);
            timer.cancel();
            events += 2;
            if (random() % 40 == 0) { // sometimes, so that a name may be read before its event
                std::vector<pawl::timer_event> some(random() % 70);
                const auto got = slow.try_read(some);
                s.missed += got.missed;
                s.all.insert(s.all.end(), some.begin(),
                             some.begin() + static_cast<std::ptrdiff_t>(got.count));
            }
        }
        const seen rest = read_all(slow);
        s.missed += rest.missed;
        s.all.insert(s.all.end(), rest.all.begin(), rest.all.end());
        BOOST_TEST(s.missed + s.all.size() == events);
        BOOST_TEST(feed.published() == events);
        for (const auto& e : s.all)
            BOOST_TEST(e.name.view() ==
                       (e.timer == pawl::timer_id(named) ? "a name of 23 bytes long" : ""));
        context.run();
    }
}

BOOST_AUTO_TEST_CASE(numbers_of_events_may_wrap_around) {
    pawl::detail::event_unpacker events;
    events.begin_at((std::uint64_t{7} << 32) - 2);
    const auto record = [](std::uint32_t number, bool named = false) {
        auto r = pawl::detail::event_record::of(kind::armed, 1, 2, 3ns, 4, named);
        r.number = number;
        return r;
    };
    auto name = pawl::detail::event_record::of(pawl::timer_name("n"));
    name.number = 2;
    std::array<pawl::timer_event, 8> out;
    BOOST_TEST(events.unpack(0, std::array{record(0xffff'fffe), record(1)}, out.data()) == 2U);
    BOOST_TEST(events.take_missed() == 2U);
    BOOST_TEST(out[1].waits == 4U);
    BOOST_TEST(out[1].lateness.count() == 3);

    BOOST_TEST(events.unpack(0, std::array{name, record(2, true)}, out.data()) == 1U);
    BOOST_TEST(out[0].name.view() == "n");
    BOOST_TEST(events.unpack(0, std::array{record(3, true)}, out.data()) == 0U); // its name is gone
    name.number = 5;
    BOOST_TEST(events.unpack(0, std::array{name, record(6)}, out.data()) == 1U);
    BOOST_TEST(out[0].name.view() == "");
    BOOST_TEST(events.take_missed() == 3U); // 3, 4 and 5

    // So many that the number is a lower bound: as many as the records, without names.
    const std::uint64_t many = (std::uint64_t{5} << 32) + 3;
    BOOST_TEST(events.unpack(many, {}, out.data()) == 0U);
    BOOST_TEST(events.unpack(0, std::array{record(7 + 3)}, out.data()) == 1U);
    BOOST_TEST(events.take_missed() == many);
    // With a name for each.
    BOOST_TEST(events.unpack(6'000'000'000, std::array{record(11 + 3'000'000'000)}, out.data()) ==
               1U);
    BOOST_TEST(events.take_missed() == 3'000'000'000U);

    // A reader that begins anew has missed nothing, and knows no name.
    name.number = 20;
    BOOST_TEST(events.unpack(many, std::array{name}, out.data()) == 0U);
    (void)events.take_missed();
    BOOST_TEST(events.unpack(many, {}, out.data()) == 0U);
    events.begin_at(20);
    BOOST_TEST(events.unpack(0, std::array{record(20)}, out.data()) == 1U);
    BOOST_TEST(out[0].name.view() == "");
    BOOST_TEST(events.take_missed() == 0U);
}

BOOST_AUTO_TEST_CASE(a_reader_with_a_small_buffer_reads_all_in_order) {
    watched w;
    pawl::steady_timer timer(w.context, 1h);
    for (int i = 0; i != 50; ++i) {
        timer.async_wait(ignore);
        timer.cancel();
    }
    std::array<pawl::timer_event, 1> one;
    std::size_t n = 0;
    while (w.reader.try_read(one).count != 0)
        BOOST_TEST(one[0].kind == (n++ % 2 == 0 ? kind::armed : kind::cancelled));
    BOOST_TEST(n == 100U);
    BOOST_TEST(w.reader.try_read({}).count == 0U);
    w.context.run();
}

BOOST_AUTO_TEST_CASE(a_reader_with_a_large_buffer_reads_all_in_order_at_once) {
    for (const bool filtered : {false, true}) {
        watched w(filtered ? pawl::event_kinds({kind::armed, kind::moved})
                           : pawl::event_kinds::all());
        pawl::steady_timer a(w.context, 1h), b(w.context, 1h);
        std::vector<std::uint64_t> expected;
        for (int i = 0; i != 150; ++i) {
            auto& timer = i % 7 < 3 ? a : b;
            timer.async_wait(ignore);
            expected.push_back(pawl::timer_id(timer));
            if (filtered)
                timer.cancel();
        }
        std::vector<pawl::timer_event> some(200);
        const auto got = w.reader.try_read(some);
        BOOST_TEST(got.status == read_status::messages);
        // A read that has found something does not publish the rest.
        const auto rest = w.reader.try_read(std::span(some).subspan(got.count));
        BOOST_TEST_REQUIRE(got.count + rest.count == 150U);
        BOOST_TEST(got.count > 64U);
        BOOST_TEST(got.count < 150U);
        for (std::size_t i = 0; i != 150; ++i) {
            BOOST_TEST(some[i].timer == expected[i]);
            BOOST_TEST(some[i].kind == kind::armed);
        }
    }
}

BOOST_AUTO_TEST_CASE(bad_options_are_refused) {
    asio::io_context context;
    BOOST_CHECK_EXCEPTION((event_feed(context, {.capacity = 32})), std::invalid_argument,
                          [](const std::invalid_argument& e) {
                              return std::string(e.what()) ==
                                     "pawl::event_feed_options::capacity is 32; it must be at "
                                     "least 64";
                          });
    for (const std::size_t capacity : {0U, 3U, 32U})
        BOOST_CHECK_THROW((event_feed(context, {.capacity = capacity})), std::invalid_argument);
    for (const std::size_t capacity : {65U, 1000U})
        BOOST_CHECK_THROW((event_feed(context, {.capacity = capacity})), pawl::broadcast_error);
    BOOST_CHECK_THROW((event_feed(context, {.capacity = 64, .readers = 3})), pawl::broadcast_error);
    BOOST_CHECK_THROW((event_feed(context, {.capacity = 64, .readers = 0})), pawl::broadcast_error);
    const event_feed works(context, {.capacity = 64});
}

BOOST_AUTO_TEST_CASE(two_feeds_with_different_options_are_refused) {
    asio::io_context context;
    event_feed feed(context, {.capacity = 128, .readers = 2});
    event_feed same(context, {.capacity = 128, .readers = 2});
    BOOST_CHECK_THROW((event_feed(context, {.capacity = 256, .readers = 2})),
                      std::invalid_argument);
    BOOST_CHECK_THROW((event_feed(context, {.capacity = 128, .readers = 4})),
                      std::invalid_argument);
    event_feed any(context);
    auto reader = any.join();
    BOOST_TEST(feed.readers() == 1U);
    BOOST_TEST(same.readers() == 1U);
}

BOOST_AUTO_TEST_CASE(too_many_readers_are_refused_and_change_nothing) {
    asio::io_context context;
    event_feed feed(context, {.capacity = 64, .readers = 2});
    auto a = feed.join();
    std::optional<event_feed::reader> b(feed.join());
    BOOST_CHECK_THROW((void)feed.join(), pawl::broadcast_error);
    BOOST_TEST(feed.readers() == 2U);
    b.reset();
    auto c = feed.join();
    BOOST_TEST(feed.readers() == 2U);
    pawl::steady_timer timer(context, 1h);
    timer.async_wait(ignore);
    BOOST_TEST(read_all(a).all.size() == 1U);
    BOOST_TEST(read_all(c).all.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_reader_can_be_moved_and_assigned) {
    watched w;
    auto other = std::move(w.reader);
    BOOST_TEST(w.feed.readers() == 1U);
    pawl::steady_timer timer(w.context, 1h);
    timer.async_wait(ignore);
    w.reader = std::move(other);
    BOOST_TEST(w.read().all.size() == 1U);
    w.reader = w.feed.join();
    BOOST_TEST(w.feed.readers() == 1U);
}

BOOST_AUTO_TEST_CASE(a_reader_outlives_its_context_and_reads_what_is_left) {
    std::optional<event_feed::reader> reader;
    {
        watched w;
        reader.emplace(std::move(w.reader));
        pawl::steady_timer timer(w.context, 1h);
        timer.async_wait(ignore);
    }
    std::array<pawl::timer_event, 8> some;
    BOOST_TEST(reader->try_read(some).count == 2U);
    BOOST_TEST(reader->try_read(some).status == read_status::closed);
    reader->suspend();
    reader->resume();
    BOOST_TEST(reader->try_read(some).status == read_status::closed);
}

BOOST_AUTO_TEST_CASE(without_locks_the_feed_works_in_the_thread_of_the_context) {
    asio::io_context context;
    pawl::options o;
    o.locking = false;
    o.completions_per_turn = 64;
    o.batch_limit = 1;
    pawl::make_timer_service(context, o);
    event_feed feed(context);
    auto reader = feed.join();
    std::vector<std::unique_ptr<pawl::steady_timer>> timers;
    for (int i = 0; i != 100; ++i) {
        timers.push_back(std::make_unique<pawl::steady_timer>(context, 1ms));
        timers.back()->async_wait(ignore);
    }
    context.run();
    const seen s = read_all(reader);
    BOOST_TEST(s.count(kind::due) == 100U);
    BOOST_TEST(s.count(kind::started) == 100U);
}

// ---- words --------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(every_kind_has_a_word) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i != pawl::timer_event_kinds; ++i)
        words.emplace_back(pawl::to_string(static_cast<kind>(i)));
    BOOST_TEST(words == (std::vector<std::string>{"armed", "moved", "due", "started", "cancelled",
                                                  "overflowed", "shut_down"}),
               per_element());
    BOOST_TEST(pawl::to_string(static_cast<kind>(99)) == "?");
    BOOST_TEST(pawl::to_string(static_cast<kind>(pawl::timer_event_kinds)) == "?");
    BOOST_TEST(pawl::event_kinds::all().are_all());
    BOOST_TEST(pawl::event_kinds({kind::armed, kind::moved, kind::due, kind::started,
                                  kind::cancelled, kind::overflowed, kind::shut_down})
                   .are_all());
    for (std::size_t i = 0; i != pawl::timer_event_kinds; ++i) {
        const auto k = static_cast<kind>(i);
        BOOST_TEST(pawl::event_kinds::all().contains(k));
        BOOST_TEST(!pawl::event_kinds({k}).are_all());
        for (std::size_t j = 0; j != pawl::timer_event_kinds; ++j)
            BOOST_TEST(pawl::event_kinds({k}).contains(static_cast<kind>(j)) == (i == j));
    }
}

} // namespace
} // namespace watch_test
