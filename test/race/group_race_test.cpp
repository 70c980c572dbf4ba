// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Groups in several threads: members join and end while the group, or the group around it, is
//   cancelled and destroyed, and while others wait for its end. Each test lists the allowed
//   outcomes.

#define BOOST_TEST_MODULE group_race
#include <boost/test/unit_test.hpp>

#include "race_support.hpp"

#include "../support/seed.hpp"

#include <pawl/alarm.hpp>
#include <pawl/error.hpp>
#include <pawl/group.hpp>
#include <pawl/steady_timer.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>

namespace group_race {

using namespace race_support;
using namespace std::chrono_literals;
using boost::system::error_code;

const auto runners = data::make({2, 4, 8});
const error_code shutting_down = pawl::error::shutting_down;

struct arena : race_support::arena<> {
    explicit arena(int threads) : race_support::arena<>(with(1, 1, 1us), threads) {}
};

using strand_type = asio::strand<asio::io_context::executor_type>;

/// Starts one wait after the other in a group, each of a few microseconds, on a strand of its own.
struct user {
    user(asio::io_context& context, pawl::group& g, std::uint64_t seed)
        : strand(asio::make_strand(context)), timer(strand), group(&g), random(seed) {}

    void next() {
        if (left-- == 0)
            return;
        timer.expires_after(std::chrono::microseconds(random() % 30));
        timer.async_wait(pawl::in_group(*group, asio::bind_executor(strand, [this](error_code ec) {
            ++called;
            if (!ec)
                ++succeeded;
            else if (ec == shutting_down)
                ++cancelled;
            else
                ++strange;
            next();
        })));
    }

    strand_type strand;
    pawl::steady_timer timer;
    pawl::group* group;
    std::mt19937_64 random;
    int left = 200;
    int called = 0;
    int succeeded = 0;
    int cancelled = 0;
    int strange = 0;
};

// Users on strands join and leave, in a group and in an inner group. Another thread cancels the
// outer group after a while, and others wait for the end of both, again and again.
BOOST_DATA_TEST_CASE(P3_members_come_and_go_while_their_group_is_cancelled,
                     runners* data::make({0, 200, 2000}), threads, microseconds) {
    constexpr unsigned users = 16;
    arena a(threads);
    pawl::group outer(a.context);
    pawl::group inner(outer);
    const std::uint64_t seed = pawl_test::seed();
    std::deque<user> all; // their strands must not outlive the context
    for (unsigned i = 0; i < users; ++i) {
        user& each = all.emplace_back(a.context, i % 2 == 0 ? outer : inner, seed + i);
        asio::post(each.strand, [&each] { each.next(); });
    }
    std::atomic<int> drained{0};
    const auto count = [&drained](error_code ec) { drained += ec ? 1000 : 1; };
    std::jthread other([&, us = microseconds] {
        for (int i = 0; i < 20; ++i) {
            outer.async_drained(count);
            inner.async_drained(count);
        }
        std::this_thread::sleep_for(std::chrono::microseconds(us));
        outer.cancel(shutting_down);
        inner.async_drained(count);
        outer.cancel(pawl::error::timed_out); // the first cause counts
        outer.async_drained(count);
    });
    other.join();
    a.finish();

    // Allowed: each wait completes once, with success or with the cause; each wait for the end
    // completes once, with success.
    for (const user& each : all) {
        BOOST_REQUIRE_EQUAL(each.called, 200);
        BOOST_REQUIRE_EQUAL(each.strange, 0);
        BOOST_REQUIRE_EQUAL(each.succeeded + each.cancelled, 200);
    }
    BOOST_TEST(drained == 42);
    BOOST_TEST(outer.size() == 0u);
    BOOST_TEST(inner.size() == 0u);
    BOOST_TEST((inner.cause() == shutting_down));
}

// At the same time the last member ends, a wait for the end starts, and its caller cancels it.
BOOST_DATA_TEST_CASE(P3_a_wait_for_the_end_against_the_end_and_its_caller, runners, threads) {
    constexpr int rounds = 300;
    arena a(threads);
    const std::uint64_t seed = pawl_test::seed();
    std::mt19937_64 random(seed);
    std::atomic<int> drained{0};
    std::atomic<int> aborted{0};
    std::atomic<int> strange{0};
    struct round {
        explicit round(asio::io_context& context)
            : group(context), strand(asio::make_strand(context)), timer(context, 20us) {}
        pawl::group group;
        strand_type strand;
        pawl::steady_timer timer;
        asio::cancellation_signal signal;
    };
    for (int i = 0; i < rounds; ++i) {
        const auto r = std::make_shared<round>(a.context);
        r->timer.async_wait(pawl::in_group(r->group, [r](error_code) {}));
        asio::post(r->strand, [&, r, stops = random() % 2 == 0] {
            r->group.async_drained(asio::bind_cancellation_slot(
                r->signal.slot(), asio::bind_executor(r->strand, [&, r](error_code ec) {
                    ++(!ec ? drained : ec == asio::error::operation_aborted ? aborted : strange);
                })));
            if (stops)
                asio::post(r->strand, [r] { r->signal.emit(asio::cancellation_type::terminal); });
        });
    }
    a.finish();

    // Allowed: success or operation_aborted, once.
    BOOST_TEST(drained + aborted == rounds);
    BOOST_TEST(strange == 0);
}

// Inner groups are made, used and destroyed in several threads, while another thread cancels and
// destroys the outer one.
BOOST_DATA_TEST_CASE(P10_groups_go_while_the_one_that_they_are_in_is_cancelled, runners, threads) {
    constexpr int rounds = 50;
    constexpr int inner_groups = 20;
    std::atomic<int> told{0};
    std::atomic<int> strange{0};
    std::atomic<int> drained{0};
    {
        arena a(threads);
        for (int i = 0; i < rounds; ++i) {
            auto outer = std::make_shared<pawl::group>(a.context);
            for (int k = 0; k < inner_groups; ++k)
                asio::post(a.context, [&, outer] {
                    pawl::group inner(*outer);
                    const auto timer =
                        std::make_shared<pawl::steady_timer>(asio::make_strand(a.context), 1h);
                    timer->async_wait(pawl::in_group(inner, [&, timer](error_code ec) {
                        ++(ec == shutting_down || ec == asio::error::operation_aborted ? told
                                                                                       : strange);
                    }));
                }); // which destroys inner
            outer->async_drained([&](error_code ec) { drained += ec ? 1000 : 1; });
            asio::post(a.context, [outer] { outer->cancel(shutting_down); });
        }
        a.finish();
    }

    // Allowed: each wait gets the cause of the outer group, or the error that its own group was
    // destroyed.
    BOOST_TEST(told == rounds * inner_groups);
    BOOST_TEST(strange == 0);
    BOOST_TEST(drained == rounds);
}

/// Makes, arms, moves, replaces and disarms an alarm of a group, on a strand of its own.
struct alarm_user {
    struct function {
        alarm_user* user;
        void operator()() const { ++user->called; }
        using executor_type = strand_type;
        executor_type get_executor() const noexcept { return user->strand; }
    };

    alarm_user(asio::io_context& context, pawl::group& g, std::uint64_t seed)
        : strand(asio::make_strand(context)), group(&g), random(seed) {}

    void next() {
        if (left-- == 0)
            return alarm.reset();
        if (!alarm || random() % 4 == 0)
            alarm.emplace(strand, pawl::in_group(*group, function{this}));
        const auto us = std::chrono::microseconds(random() % 30);
        alarm->arm_after(us);
        if (random() % 2 == 0)
            alarm->arm_after(us / 2);
        if (random() % 4 == 0)
            alarm->disarm();
        asio::post(strand, [this] { next(); });
    }

    strand_type strand;
    std::optional<pawl::alarm<pawl::grouped<function>>> alarm;
    pawl::group* group;
    std::mt19937_64 random;
    int left = 200;
    int called = 0;
};

// Alarms come and go on strands, while another thread cancels the group around theirs.
BOOST_DATA_TEST_CASE(P3_alarms_come_and_go_while_their_group_is_cancelled,
                     runners* data::make({0, 200, 2000}), threads, microseconds) {
    constexpr unsigned users = 16;
    arena a(threads);
    pawl::group outer(a.context);
    pawl::group inner(outer);
    const std::uint64_t seed = pawl_test::seed();
    std::deque<alarm_user> all; // their strands must not outlive the context
    for (unsigned i = 0; i < users; ++i) {
        alarm_user& each = all.emplace_back(a.context, i % 2 == 0 ? outer : inner, seed + i);
        asio::post(each.strand, [&each] { each.next(); });
    }
    pawl::alarm kept(a.context, pawl::in_group(inner, [] { BOOST_ERROR("it is called"); }));
    kept.arm_after(1h);
    std::atomic<int> drained{0};
    std::jthread other([&, us = microseconds] {
        std::this_thread::sleep_for(std::chrono::microseconds(us));
        outer.cancel(shutting_down);
        BOOST_TEST(!kept.armed());
        outer.async_drained([&](error_code ec) { drained += ec ? 1000 : 1; });
    });
    other.join();
    a.finish();

    // Allowed: any number of calls up to one for each arming.
    for (const alarm_user& each : all)
        BOOST_REQUIRE_LE(each.called, 400);
    BOOST_TEST(drained == 1);
    BOOST_TEST(outer.size() == 0u);
    BOOST_TEST(inner.size() == 0u);
    kept.arm_after(0s);
    BOOST_TEST(!kept.armed());
}

} // namespace group_race
