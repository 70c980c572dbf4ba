// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   A service on the wheel of compact_timer with a crowd: its allocations, and threads that use it
//   at the same time.

#define BOOST_TEST_MODULE compact_timer
#include <boost/test/unit_test.hpp>

#include "counted_new.hpp"
#include "service_support.hpp"
#include "support/meeting.hpp"

#include <pawl/time/binary_wheel.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/wait_traits.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace service_test;

/// It can be set back.
using clock = stepped_clock<struct compact_clock, false>;
using timer = pawl::basic_waitable_timer<
    clock, pawl::on_backend<pawl::time::binary_wheel, asio::wait_traits<clock>>>;

constexpr std::size_t crowd = 256;

/// Makes the service check the clock, as its driver does once a second.
void collect_in(asio::io_context& context) {
    asio::use_service<pawl::detail::service_registry>(context).for_each(
        [](pawl::detail::registered_service& s) { (void)s.clock_moved(); });
}

void collect_and_poll(asio::io_context& context) {
    collect_in(context);
    poll(context);
}

/// A timer with one wait.
struct one {
    one(asio::io_context& context, clock::duration after_epoch)
        : t(context, clock::time_point(after_epoch)) {}

    void start() {
        t.async_wait([this](error_code ec) {
            ++calls;
            code = ec;
            at = turn.fetch_add(1);
        });
    }

    timer t;
    int calls = 0;
    error_code code;
    std::size_t at = 0; ///< how many were called before it

    static inline std::atomic<std::size_t> turn{0};
};

struct scene {
    explicit scene(unsigned batch_limit = 256) {
        clock::set(1h);
        pawl::options o;
        o.precision = 1ms;
        o.batch_limit = batch_limit;
        pawl::make_timer_service<timer>(*context, o);
    }

    one& start(clock::duration expiry) {
        one& o = waits.emplace_back(*context, expiry);
        o.start();
        return o;
    }

    /// In two threads at once: `use(its number)`.
    template <class Function>
    static void in_two_threads(Function use) {
        pawl_test::latch both(2);
        const auto run = [&](std::size_t me) {
            both.arrive_and_wait();
            use(me);
        };
        std::thread other([&] { run(1); });
        run(0);
        other.join();
    }

    std::deque<one> waits; // outlive the context
    std::optional<asio::io_context> context{std::in_place};
};

BOOST_AUTO_TEST_CASE(P10_expire_all_allocates_nothing) {
    for (const std::size_t n : {1U, 10U, 1000U}) {
        scene s;
        for (std::size_t i = 0; i < n; ++i)
            s.start(5h + std::chrono::seconds(i));
        const std::size_t before = counted_new::calls;

        BOOST_CHECK_EQUAL(pawl::expire_all(*s.context), n);

        BOOST_CHECK_EQUAL(counted_new::calls, before);
        s.context->poll();
        for (const one& each : s.waits)
            BOOST_REQUIRE(each.calls == 1 && !each.code);
    }
}

BOOST_AUTO_TEST_CASE(P8_a_start_allocates_for_its_wait_and_now_and_then_for_the_due_queue) {
    scene s;
    constexpr std::size_t n = 1000;
    for (std::size_t i = 0; i < n; ++i)
        s.waits.emplace_back(*s.context, 5h + std::chrono::seconds(i));
    s.waits[0].start(); // sets up the driver
    const std::size_t before = counted_new::calls;

    for (std::size_t i = 1; i < n; ++i)
        s.waits[i].start();

    BOOST_CHECK_LE(counted_new::calls - before, n + n / 64 + 1 + 3);
    BOOST_CHECK_EQUAL(pawl::expire_all(*s.context), n);
    poll(*s.context);
}

BOOST_AUTO_TEST_CASE(P10_expire_all_ends_each_wait_once_while_two_threads_start_a_crowd) {
    for (int round = 0; round < 20; ++round) {
        for (const std::size_t there : {std::size_t{0}, crowd - 10, crowd + 100}) {
            scene s(4);
            for (std::size_t i = 0; i < there; ++i)
                s.start(5h);
            std::deque<one> mine[2];
            for (auto& each : mine)
                for (int i = 0; i < 300; ++i)
                    each.emplace_back(*s.context, 5h);

            std::atomic<std::size_t> ended{0};
            std::atomic<bool> go_on{true};
            std::thread expires([&] {
                while (go_on)
                    ended += pawl::expire_all(*s.context, asio::error::shut_down);
            });
            scene::in_two_threads([&](std::size_t me) {
                for (one& each : mine[me])
                    each.start();
            });
            go_on = false;
            expires.join();
            ended += pawl::expire_all(*s.context, asio::error::shut_down);
            poll(*s.context);

            BOOST_REQUIRE_EQUAL(ended, there + 600);
            for (const auto* waits : {&s.waits, &mine[0], &mine[1]})
                for (const one& each : *waits)
                    BOOST_REQUIRE(each.calls == 1 && each.code == asio::error::shut_down);
        }
    }
}

BOOST_AUTO_TEST_CASE(P1_P7_a_clock_is_set_back_while_another_thread_starts_a_crowd) {
    for (int round = 0; round < 20; ++round) {
        for (const std::size_t there : {std::size_t{150}, crowd, crowd + 100}) {
            scene s(2); // in many steps, with the other thread in between
            constexpr std::size_t more = 100;
            for (std::size_t i = 0; i < there; ++i)
                s.start(5h + std::chrono::seconds(i % 10));
            std::deque<one> mine;
            for (std::size_t i = 0; i < more; ++i)
                mine.emplace_back(*s.context, 5h + std::chrono::seconds(i % 10));
            clock::set(2h);
            collect_in(*s.context);

            scene::in_two_threads([&](std::size_t me) {
                for (std::size_t i = 0; me == 0 && i < more; ++i)
                    mine[i].start();
                for (int i = 0; me == 1 && i < 5; ++i) {
                    clock::set(30min);
                    collect_in(*s.context);
                    clock::set(2h);
                    collect_in(*s.context);
                }
            });

            poll(*s.context);
            clock::set(5h - 1ms);
            collect_and_poll(*s.context);
            const auto waits = {&s.waits, &mine};
            for (const auto* list : waits)
                for (const one& each : *list)
                    BOOST_REQUIRE_EQUAL(each.calls, 0);
            clock::set(6h);
            collect_and_poll(*s.context);
            for (const auto* list : waits) {
                std::vector<std::pair<clock::time_point, std::size_t>> order; // expiry, start
                for (const one& each : *list)
                    order.emplace_back(each.t.expiry(), order.size());
                std::sort(order.begin(), order.end());
                for (std::size_t i = 0; i < order.size(); ++i) {
                    const one& each = (*list)[order[i].second];
                    BOOST_REQUIRE(each.calls == 1 && !each.code);
                    BOOST_REQUIRE(i == 0 || (*list)[order[i - 1].second].at < each.at);
                }
            }
        }
    }
}

} // namespace
