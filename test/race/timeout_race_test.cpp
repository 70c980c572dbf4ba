// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Operations under limits in several threads: completion, cancellation, the start and the end of
//   the context come at the same time. Each test lists the allowed outcomes.

#define BOOST_TEST_MODULE timeout_race
#include <boost/test/unit_test.hpp>

#include "race_support.hpp"

#include "../support/seed.hpp"

#include <pawl/cancel_after.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <random>
#include <thread>
#include <utility>

namespace timeout_race {

using namespace race_support;
using namespace std::chrono_literals;
using boost::system::error_code;

const auto runners = data::make({2, 4, 8});
const auto own_or_callers = data::make({true, false});

/// The results of the handlers.
struct tally {
    std::atomic<int> succeeded{0};
    std::atomic<int> timed_out{0};
    std::atomic<int> aborted{0};
    std::atomic<int> strange{0};

    void note(const error_code& ec) {
        if (!ec)
            ++succeeded;
        else if (ec == pawl::error::timed_out)
            ++timed_out;
        else if (ec == asio::error::operation_aborted)
            ++aborted;
        else
            ++strange;
    }
    auto record() {
        return [this](error_code ec) { note(ec); };
    }
    [[nodiscard]] int all() const { return succeeded + timed_out + aborted; }
};

struct arena : race_support::arena<> {
    explicit arena(int threads) : race_support::arena<>(with(1, 1, 1us), threads) {}
};

using strand_type = asio::strand<asio::io_context::executor_type>;

// Every user has a strand. There, within the same few microseconds, the operation completes, its
// limit falls due, and the user cancels; then the next operation starts.
BOOST_DATA_TEST_CASE(P3_an_operation_its_limit_and_its_caller_on_a_strand, runners* own_or_callers,
                     threads, own) {
    constexpr int users = 16;
    constexpr int operations = 300;
    struct user {
        user(asio::io_context& context, std::uint64_t seed)
            : strand(asio::make_strand(context)), timer(strand), limit(strand), random(seed) {}
        void next(bool own_limit) {
            if (left-- == 0)
                return;
            timer.expires_after(soon());
            auto handler = asio::bind_cancellation_slot(
                signal.slot(), asio::bind_executor(strand, [this, own_limit](error_code ec) {
                    ++called;
                    t.note(ec);
                    next(own_limit);
                }));
            if (own_limit)
                timer.async_wait(pawl::timeout(soon(), std::move(handler)));
            else
                timer.async_wait(pawl::timeout(limit, soon(), std::move(handler)));
            if (random() % 3 != 0)
                return;
            asio::post(strand, [this] { signal.emit(asio::cancellation_type::terminal); });
        }
        std::chrono::microseconds soon() { return std::chrono::microseconds(random() % 30); }

        strand_type strand;
        pawl::steady_timer timer;
        pawl::steady_timer limit;
        asio::cancellation_signal signal;
        std::mt19937_64 random;
        tally t;
        int left = operations;
        int called = 0;
    };
    arena a(threads);
    const std::uint64_t seed = pawl_test::seed();
    std::deque<user> all; // their strands must not outlive the context
    for (unsigned i = 0; i < users; ++i) {
        user& each = all.emplace_back(a.context, seed + i);
        asio::post(each.strand, [&each, own = own] { each.next(own); });
    }
    a.finish();

    // Allowed: each operation completes once, as completed, timed out or cancelled.
    std::array<int, 3> seen{};
    for (const user& each : all) {
        BOOST_REQUIRE_EQUAL(each.called, operations);
        BOOST_REQUIRE_EQUAL(each.t.all(), operations);
        seen[0] += each.t.succeeded;
        seen[1] += each.t.timed_out;
        seen[2] += each.t.aborted;
    }
    BOOST_TEST_MESSAGE("completed " << seen[0] << ", timed out " << seen[1] << ", cancelled "
                                    << seen[2]);
}

// The limit is due before a thread outside of the strand has started the operation.
BOOST_DATA_TEST_CASE(a_limit_of_zero_is_not_lost_when_the_operation_is_started_elsewhere,
                     runners* own_or_callers, threads, own) {
    constexpr int operations = 2'000;
    tally t;
    {
        arena a(threads);
        in_threads(2, [&, own = own](int) {
            std::deque<std::pair<pawl::steady_timer, pawl::steady_timer>> timers;
            for (int i = 0; i < operations; ++i) {
                const auto strand = asio::make_strand(a.context);
                auto& [timer, limit] = timers.emplace_back(a.context, a.context);
                timer.expires_after(1h);
                auto handler = asio::bind_executor(strand, t.record());
                if (own)
                    timer.async_wait(pawl::timeout(0s, std::move(handler)));
                else
                    timer.async_wait(pawl::timeout(limit, 0s, std::move(handler)));
            }
            while (t.all() < 2 * operations)
                std::this_thread::yield();
        });
    }

    // Allowed: timed out. The operation itself takes an hour.
    BOOST_CHECK_EQUAL(t.timed_out, 2 * operations);
    BOOST_CHECK_EQUAL(t.strange, 0);
}

// The same, and the operation completes at once, too.
BOOST_DATA_TEST_CASE(an_operation_that_completes_while_it_is_started_elsewhere,
                     runners* own_or_callers, threads, own) {
    constexpr int operations = 2'000;
    tally t;
    {
        arena a(threads);
        in_threads(2, [&, own = own](int me) {
            std::mt19937_64 random(pawl_test::seed() + static_cast<std::uint64_t>(me));
            std::deque<std::pair<pawl::steady_timer, pawl::steady_timer>> timers;
            for (int i = 0; i < operations; ++i) {
                const auto strand = asio::make_strand(a.context);
                const auto some = std::chrono::microseconds(random() % 3);
                auto& [timer, limit] = timers.emplace_back(a.context, a.context);
                timer.expires_after(0s);
                auto handler = asio::bind_executor(strand, t.record());
                if (own)
                    timer.async_wait(pawl::timeout(some, std::move(handler)));
                else
                    timer.async_wait(pawl::timeout(limit, some, std::move(handler)));
            }
            while (t.all() < 2 * operations)
                std::this_thread::yield();
        });
    }

    // Allowed: each completes once, with success or timed out.
    BOOST_CHECK_EQUAL(t.succeeded + t.timed_out, 2 * operations);
    BOOST_CHECK_EQUAL(t.aborted + t.strange, 0);
}

// The timers are cancelled under a lock, so such an operation needs no strand.
BOOST_DATA_TEST_CASE(an_operation_that_is_thread_safe_itself_needs_no_strand, runners, threads) {
    constexpr int chains = 8;
    constexpr int operations = 500;
    struct chain {
        chain(asio::io_context& context, std::uint64_t seed) : timer(context), random(seed) {}
        void next() {
            timer.expires_after(std::chrono::microseconds(random() % 20));
            timer.async_wait(
                pawl::timeout(std::chrono::microseconds(random() % 20), [this](error_code ec) {
                    t.note(ec);
                    if (--left > 0)
                        next();
                }));
        }
        pawl::steady_timer timer;
        std::mt19937_64 random;
        tally t;
        int left = operations;
    };
    arena a(threads);
    const std::uint64_t seed = pawl_test::seed();
    std::deque<chain> all;
    for (unsigned i = 0; i < chains; ++i)
        all.emplace_back(a.context, seed + i).next();
    a.finish();

    // Allowed: each completes once, with success or timed out.
    for (const chain& each : all)
        BOOST_CHECK_EQUAL(each.t.succeeded + each.t.timed_out, operations);
}

// The operation and its handler belong to another context than the timer that keeps the limit.
BOOST_DATA_TEST_CASE(a_handler_on_another_context_than_the_timer, own_or_callers, own) {
    constexpr int operations = 3'000;
    tally t;
    {
        arena keeping(2);
        arena working(1);
        std::mt19937_64 random(pawl_test::seed());
        const auto soon = [&] { return std::chrono::microseconds(random() % 40); };
        std::deque<pawl::steady_timer> timers;
        std::deque<pawl::steady_timer> limits;
        for (int i = 0; i < operations; ++i) {
            auto handler = asio::bind_executor(working.context, t.record());
            pawl::steady_timer& timer = timers.emplace_back(keeping.context, soon());
            if (own) {
                timer.async_wait(pawl::timeout(soon(), std::move(handler)));
            } else {
                pawl::steady_timer& limit = limits.emplace_back(keeping.context);
                timer.async_wait(pawl::timeout(limit, soon(), std::move(handler)));
                if (i % 3 == 0)
                    (void)limit.rearm_after(soon());
                if (i % 7 == 0)
                    limits.pop_front(); // lifts a limit
            }
        }
        while (t.all() < operations)
            std::this_thread::yield();
    }

    // Allowed: each completes once, with success or timed out.
    BOOST_CHECK_EQUAL(t.succeeded + t.timed_out, operations);
    BOOST_CHECK_EQUAL(t.aborted + t.strange, 0);
}

// run() has returned, so the context may be destroyed: the thread that has ended the last limit, in
// another context, no longer uses it.
BOOST_AUTO_TEST_CASE(P9_the_context_may_go_when_run_has_returned) {
    constexpr int rounds = 1'000;
    tally t;
    arena working(1);
    std::mt19937_64 random(pawl_test::seed());
    const auto soon = [&] { return std::chrono::microseconds(random() % 20); };
    for (int round = 1; round <= rounds; ++round) {
        {
            asio::io_context keeping;
            std::deque<pawl::steady_timer> timers;
            for (int i = 0; i < 3; ++i)
                timers.emplace_back(keeping, soon())
                    .async_wait(pawl::timeout(i == 0 ? soon() : 1h,
                                              asio::bind_executor(working.context, t.record())));
            keeping.run();
        }
        while (t.all() < 3 * round)
            std::this_thread::yield();
    }

    // Allowed: each completes once, with success or, if its limit is short, timed out.
    BOOST_CHECK_EQUAL(t.succeeded + t.timed_out, 3 * rounds);
}

// The caller's timer that keeps the limit is destroyed with its context at the moment when the
// operation completes in another one.
BOOST_AUTO_TEST_CASE(the_context_of_a_limit_may_go_while_the_operation_completes) {
    constexpr int rounds = 2'000;
    tally t;
    arena working(1);
    std::mt19937_64 random(pawl_test::seed());
    const auto soon = [&] { return std::chrono::microseconds(random() % 40); };
    std::deque<pawl::steady_timer> timers;
    for (int round = 0; round < rounds; ++round) {
        asio::io_context keeping;
        pawl::steady_timer limit(keeping);
        timers.emplace_back(working.context, soon())
            .async_wait(pawl::timeout(limit, 1h, asio::bind_executor(working.context, t.record())));
        const auto until = std::chrono::steady_clock::now() + soon();
        while (std::chrono::steady_clock::now() < until) {
        }
    }
    while (t.all() < rounds)
        std::this_thread::yield();

    // Allowed: each completes once, with success.
    BOOST_CHECK_EQUAL(t.succeeded, rounds);
}

// An operation that a coroutine has left behind reads the coroutine's deadline, which ends in
// another thread.
BOOST_DATA_TEST_CASE(a_deadline_ends_while_others_ask_for_it, runners, threads) {
    constexpr int calls = 500;
    std::atomic<int> asked{0};
    std::atomic<int> within{0};
    std::atomic<int> strange{0};
    arena a(threads);
    const auto deadline = pawl::deadline::after(1h);
    const auto linger = [&]() -> asio::awaitable<void> {
        for (int i = 0; i < 3; ++i) {
            const auto d = co_await pawl::this_deadline();
            ++asked;
            strange += d != deadline && !d.is_never();
            co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
        }
    };
    const auto call = [&]() -> asio::awaitable<void> {
        within += co_await pawl::this_deadline() == deadline;
        asio::co_spawn(co_await asio::this_coro::executor, linger(), asio::detached);
        co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    };
    for (int i = 0; i < calls; ++i)
        asio::co_spawn(a.context.get_executor(), pawl::with_deadline(deadline, call()),
                       asio::detached);
    while (asked < 3 * calls)
        std::this_thread::yield();

    // Allowed: the deadline while it is in force, and none afterwards.
    BOOST_CHECK_EQUAL(strange, 0);
    BOOST_CHECK_EQUAL(within, calls);
}

// The threads are stopped in the middle of the operations, and the context is destroyed.
BOOST_DATA_TEST_CASE(P3_what_is_under_a_limit_when_its_context_is_destroyed,
                     runners* own_or_callers, threads, own) {
    constexpr int rounds = 60;
    struct ghost { // counts handlers
        explicit ghost(std::atomic<int>& n) : count(&n) { ++*count; }
        ghost(ghost&& other) noexcept : count(std::exchange(other.count, nullptr)) {}
        ghost& operator=(ghost&&) = delete;
        ~ghost() {
            if (count)
                --*count;
        }
        std::atomic<int>* count;
    };
    std::mt19937_64 random(pawl_test::seed());
    std::atomic<int> alive{0};
    tally t;
    for (int round = 0; round < rounds; ++round) {
        asio::io_context context;
        std::deque<std::pair<pawl::steady_timer, pawl::steady_timer>> timers;
        const auto soon = [&] { return std::chrono::microseconds(random() % 100); };
        for (int i = 0; i < 100; ++i) {
            auto& [timer, limit] = timers.emplace_back(context, context);
            timer.expires_after(soon());
            auto handler = asio::bind_executor(
                asio::make_strand(context), [&t, g = ghost(alive)](error_code ec) { t.note(ec); });
            if (own)
                timer.async_wait(pawl::timeout(soon(), std::move(handler)));
            else
                timer.async_wait(pawl::timeout(limit, soon(), std::move(handler)));
        }
        std::deque<std::thread> running;
        for (int i = 0; i < threads; ++i)
            running.emplace_back([&] { context.run(); });
        const auto until = std::chrono::steady_clock::now() + soon();
        while (std::chrono::steady_clock::now() < until)
            std::this_thread::yield();
        context.stop();
        for (std::thread& each : running)
            each.join();
        if (round % 2 == 0)
            timers.clear(); // otherwise they outlive it
        else
            timers.erase(timers.begin(), timers.begin() + 50);
    }

    // Allowed: each handler is called once or destroyed uncalled.
    BOOST_CHECK_EQUAL(alive, 0);
    BOOST_CHECK_LE(t.all(), 100 * rounds);
    BOOST_CHECK_EQUAL(t.strange, 0);
}

// Coroutines on a thread pool, each on its own strand.
BOOST_AUTO_TEST_CASE(P3_coroutines_under_limits_on_a_thread_pool) {
    // Not any_io_executor: its reference count has a fence, which ThreadSanitizer does not support.
    using executor = asio::strand<asio::thread_pool::executor_type>;
    using timer_type =
        pawl::basic_waitable_timer<std::chrono::steady_clock,
                                   asio::wait_traits<std::chrono::steady_clock>, executor>;
    constexpr int coroutines = 200;
    constexpr int operations = 10;
    struct body {
        static asio::awaitable<int, executor> work(std::chrono::microseconds d) {
            timer_type timer(co_await asio::this_coro::executor, d);
            co_await timer.async_wait(asio::use_awaitable_t<executor>());
            co_return 1;
        }
        static asio::awaitable<void, executor> run(tally& told, std::atomic<int>& done,
                                                   std::uint64_t seed) {
            std::mt19937_64 random(seed);
            const auto soon = [&] { return std::chrono::microseconds(random() % 50); };
            for (int i = 0; i < operations; ++i) {
                try {
                    const int n = co_await pawl::timeout(soon(), work(soon()));
                    told.note(n == 1 ? error_code() : asio::error::fault);
                } catch (const boost::system::system_error& error) {
                    told.note(error.code());
                }
            }
            ++done;
        }
    };
    tally t;
    std::atomic<int> ended{0};
    {
        asio::thread_pool pool(4);
        const std::uint64_t seed = pawl_test::seed();
        for (unsigned i = 0; i < coroutines; ++i)
            asio::co_spawn(asio::make_strand(pool), body::run(t, ended, seed + i), asio::detached);
        pool.join();
    }

    // Allowed: each ends once, with its value or timed out.
    BOOST_CHECK_EQUAL(ended, coroutines);
    BOOST_CHECK_EQUAL(t.succeeded + t.timed_out, coroutines * operations);
}

} // namespace timeout_race
