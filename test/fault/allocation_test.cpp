// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The n-th allocation fails, for every n until none does. Whatever then throws bad_alloc leaves the
// timer as it was and loses nothing.

#include <pawl/pawl.hpp>

#define BOOST_TEST_MODULE allocation
#include <boost/test/unit_test.hpp>

#include "fault/live_blocks.hpp"
#include "service/counted_new.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <vector>

namespace fault {

namespace asio = boost::asio;
using boost::system::error_code;
using namespace std::chrono_literals;

/// Calls `attempt(context)` in a new context, with the n-th allocation failing, for n = 0, 1, ...
/// until it succeeds. `prepare` and `verify(succeeded)` run with memory. Nothing may leak.
template <class Prepare, class Attempt, class Verify>
void with_failing_allocations(Prepare prepare, Attempt attempt, Verify verify) {
    for (long n = 0;; ++n) {
        const std::size_t before = live_blocks();
        bool succeeded = false;
        {
            asio::io_context context;
            auto state = prepare(context);
            counted_new::fuse = n;
            try {
                attempt(*state);
                succeeded = true;
            } catch (const std::bad_alloc&) {
            }
            counted_new::fuse = counted_new::never;
            verify(*state, context, succeeded);
        }
        if (n > 0) // what is made once per process has been made by then
            BOOST_TEST(live_blocks() == before);
        if (succeeded)
            return;
        BOOST_REQUIRE_LT(n, 1000);
    }
}

struct one_timer {
    explicit one_timer(asio::io_context& context) : timer(context, 1h) {}

    pawl::steady_timer timer;
    std::optional<asio::strand<asio::io_context::executor_type>> strand;
    std::vector<error_code> told = [] {
        std::vector<error_code> v;
        v.reserve(1000); // recording does not allocate
        return v;
    }();
    auto record() {
        return [this](error_code ec) { told.push_back(ec); };
    }
};

auto a_timer = [](asio::io_context& context) { return std::make_unique<one_timer>(context); };

BOOST_AUTO_TEST_CASE(C26_the_first_wait_starts_or_leaves_the_timer_as_it_was) {
    with_failing_allocations(
        a_timer, [](one_timer& t) { t.timer.async_wait(t.record()); },
        [](one_timer& t, asio::io_context& context, bool succeeded) {
            BOOST_TEST(t.timer.cancel() == (succeeded ? 1u : 0u));
            t.timer.expires_after(0s);
            t.timer.async_wait(t.record());
            context.run();
            BOOST_TEST(t.told.size() == (succeeded ? 2u : 1u));
            BOOST_TEST(!t.told.back());
        });
}

BOOST_AUTO_TEST_CASE(C26_a_wait_on_a_strand_starts_or_leaves_the_timer_as_it_was) {
    with_failing_allocations(
        [](asio::io_context& context) {
            auto t = a_timer(context);
            t->strand.emplace(asio::make_strand(context));
            return t;
        },
        [](one_timer& t) { t.timer.async_wait(asio::bind_executor(*t.strand, t.record())); },
        [](one_timer& t, asio::io_context& context, bool succeeded) {
            BOOST_TEST(t.timer.rearm_after(0s) == (succeeded ? 1u : 0u));
            context.run();
            BOOST_TEST(t.told.size() == (succeeded ? 1u : 0u));
        });
}

BOOST_AUTO_TEST_CASE(C26_among_many_waits_each_starts_or_not_and_none_is_lost) {
    with_failing_allocations(
        a_timer,
        [](one_timer& t) {
            for (int i = 0; i < 600; ++i) // more than one segment of the due queue
                t.timer.async_wait(t.record());
        },
        [](one_timer& t, asio::io_context& context, bool) {
            const std::size_t started = t.timer.cancel();
            context.run();
            BOOST_TEST(t.told.size() == started);
        });
}

BOOST_AUTO_TEST_CASE(P8_cancel_and_rearm_succeed_without_memory) {
    asio::io_context context;
    one_timer t(context);
    t.timer.async_wait(t.record());
    t.timer.async_wait(t.record());
    pawl::steady_timer other(context, 2h);
    other.async_wait(t.record());

    counted_new::fuse = 0;
    const std::size_t later = t.timer.rearm_after(3h);
    const std::size_t earlier = t.timer.rearm_after(1ms);
    const std::size_t cancelled = other.cancel();
    const std::size_t one = t.timer.cancel_one();
    counted_new::fuse = counted_new::never;

    BOOST_TEST(later == 2u);
    BOOST_TEST(earlier == 2u);
    BOOST_TEST(cancelled == 1u);
    BOOST_TEST(one == 1u);
    context.run();
    BOOST_TEST(t.told.size() == 3u);
}

// Each service has a queue of its own in Asio, so that nobody takes the place that its driver leaves for
// a moment when it wakes up.
BOOST_AUTO_TEST_CASE(P8_a_driver_is_set_again_without_memory_whatever_other_clocks_do) {
    asio::io_context context;
    std::vector<error_code> told;
    told.reserve(4);
    const auto record = [&](error_code ec) { told.push_back(ec); };
    pawl::steady_timer soon(context, 1ms);
    pawl::steady_timer later(context, 20ms);
    pawl::manual_timer by_hand(context, 1h);
    pawl::system_timer wall(context, 1h);
    by_hand.async_wait(record);
    soon.async_wait(record);
    later.async_wait(record);
    std::this_thread::sleep_for(10ms);
    asio::post(context, [] {});
    context.run_one(); // what is due has left Asio's queue, and has not been run
    wall.async_wait(record);

    counted_new::fuse = 0;
    BOOST_CHECK_NO_THROW(context.poll());
    counted_new::fuse = counted_new::never;

    by_hand.cancel();
    wall.cancel();
    context.run();
    BOOST_TEST(told.size() == 4u);
    BOOST_TEST(later.cancel() == 0u);
}

BOOST_AUTO_TEST_CASE(a_timer_is_made_or_its_context_is_as_it_was) {
    with_failing_allocations(
        [](asio::io_context& context) { return std::make_unique<asio::io_context*>(&context); },
        [](asio::io_context*& context) { pawl::steady_timer timer(*context, 1ms); },
        [](asio::io_context*&, asio::io_context& context, bool) {
            pawl::steady_timer timer(context, 0ms);
            bool called = false;
            timer.async_wait([&](error_code ec) { called = !ec; });
            context.run();
            BOOST_TEST(called);
        });
}

BOOST_AUTO_TEST_CASE(P10_expire_all_happens_or_not_and_can_be_repeated) {
    with_failing_allocations(
        [](asio::io_context& context) {
            auto t = std::make_unique<one_timer>(context);
            t->timer.async_wait(t->record());
            return t;
        },
        [](one_timer& t) {
            pawl::expire_all(asio::query(t.timer.get_executor(), asio::execution::context));
        },
        [](one_timer& t, asio::io_context& context, bool succeeded) {
            BOOST_TEST(pawl::expire_all(context) == (succeeded ? 0u : 1u));
            context.run();
            BOOST_TEST(t.told.size() == 1u);
            BOOST_TEST(!t.told.back());
        });
}

BOOST_AUTO_TEST_CASE(a_service_with_options_is_made_or_not) {
    with_failing_allocations(
        [](asio::io_context& context) { return std::make_unique<asio::io_context*>(&context); },
        [](asio::io_context*& context) {
            pawl::options o;
            o.shards = 3;
            pawl::make_timer_service(*context, o);
        },
        [](asio::io_context*&, asio::io_context& context, bool) {
            pawl::steady_timer timer(context, 0ms);
            timer.async_wait([](error_code) {});
            BOOST_TEST(context.run() == 1u);
        });
}

} // namespace fault
