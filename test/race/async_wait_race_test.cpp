// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   A handler runs while other threads use the timer or the context: before the async_wait() that
//   started it has returned, while a timer is used in its strand, while a clock is moved or set
//   back. Timers that are shared behind a mutex are in backend_race_test.cpp. Run under
//   ThreadSanitizer and AddressSanitizer by .ci/run.
//
// Model
//   Threads record their observations; nothing is asserted before all of them have been joined.

#include <pawl/pawl.hpp>

#define BOOST_TEST_MODULE async_wait_race
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "race/race_support.hpp"
#include "support/archetypes.hpp"
#include "support/asio_configuration.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <type_traits>
#include <utility>

namespace async_wait_race {

namespace asio = boost::asio;
using boost::system::error_code;
using race_support::in_threads;
using race_support::per_turn;
using race_support::shards;
using namespace std::chrono_literals;

/// Counts the ends of waits by their kind.
struct tally {
    std::atomic<int> started{0};
    std::atomic<int> succeeded{0};
    std::atomic<int> aborted{0};
    std::atomic<int> strange{0};

    auto count() {
        return [this](error_code ec) {
            if (!ec)
                ++succeeded;
            else if (ec == asio::error::operation_aborted)
                ++aborted;
            else
                ++strange;
        };
    }
};

template <class Clock = std::chrono::steady_clock>
struct arena : race_support::arena<Clock> {
    arena(unsigned s, unsigned p, int runners = 3)
        : race_support::arena<Clock>(race_support::with(s, p, 1us), runners) {}
};

// ---- async_wait() has not returned yet ------------------------------------------------------------

// The handler owns the last reference to the timer. Like Asio's, async_wait() must not touch the
// timer once the threads that run the context can find the wait.
BOOST_DATA_TEST_CASE(a_handler_may_destroy_its_timer_before_async_wait_has_returned,
                     shards* per_turn, s, p) {
    constexpr int waits = 10'000;
    tally t;
    {
        arena a(s, p);
        in_threads(4, [&](int) {
            for (int i = 0; i < waits; ++i) {
                auto owner = std::make_shared<pawl::steady_timer>(a.context, 0us);
                pawl::steady_timer& timer = *owner;
                timer.async_wait([owner = std::move(owner), &t](error_code ec) { t.count()(ec); });
            }
        });
    }

    // Allowed: every wait succeeds, once.
    BOOST_CHECK_EQUAL(t.succeeded, 4 * waits);
    BOOST_CHECK_EQUAL(t.aborted + t.strange, 0);
}

// A thread that does not run the context starts the first wait of a timer: the usual way to start a
// periodic timer. Its handler starts the next one.
BOOST_DATA_TEST_CASE(a_handler_may_use_its_timer_before_async_wait_has_returned, shards* per_turn,
                     s, p) {
    constexpr int timers = 3'000;
    struct periodic {
        explicit periodic(asio::io_context& context) : timer(context, 0us) {}
        void start() {
            timer.async_wait([this](error_code ec) {
                t.count()(ec);
                if (--left > 0) {
                    timer.expires_after(0us);
                    start();
                } else if (left == 0) {
                    timer.expires_after(1h); // the last wait is cancelled, and must be found
                    start();
                    found = timer.cancel();
                }
            });
        }
        pawl::steady_timer timer;
        tally t;
        int left = 3;
        std::size_t found = 0;
    };
    std::array<std::deque<periodic>, 2> all;
    {
        arena a(s, p);
        in_threads(2, [&](int me) {
            for (int i = 0; i < timers; ++i)
                all[static_cast<std::size_t>(me)].emplace_back(a.context).start();
        });
    }

    // Allowed: three successes, then one abort that cancel() has counted.
    for (const auto& mine : all) {
        for (const periodic& each : mine) {
            BOOST_REQUIRE_EQUAL(each.t.succeeded, 3);
            BOOST_REQUIRE_EQUAL(each.t.aborted, 1);
            BOOST_REQUIRE_EQUAL(each.found, 1u);
        }
    }
}

// As with Asio, a context may end as soon as its handlers have run, when the threads that started
// the waits may not yet have returned from async_wait().
BOOST_AUTO_TEST_CASE(a_context_may_be_destroyed_before_async_wait_has_returned) {
    constexpr int rounds = 3'000;
    std::atomic<std::shared_ptr<pawl::steady_timer>*> job{nullptr};
    std::atomic<int> taken{0};
    std::atomic<int> returned{0};
    tally t;
    std::thread starting([&] {
        while (returned != rounds) {
            if (auto* const mine = job.exchange(nullptr)) {
                auto owner = std::move(*mine);
                ++taken;
                pawl::steady_timer& timer = *owner;
                timer.async_wait([owner = std::move(owner), &t](error_code ec) { t.count()(ec); });
                ++returned;
            }
        }
    });
    for (int round = 1; round <= rounds; ++round) {
        std::optional<asio::io_context> context(std::in_place);
        std::deque<pawl::steady_timer> others; // so that the driver is already set
        for (int i = 0; i < 8; ++i)
            others.emplace_back(*context, std::chrono::microseconds(5 * i))
                .async_wait([](error_code) {});
        auto timer = std::make_shared<pawl::steady_timer>(*context, 0us);
        const std::weak_ptr<pawl::steady_timer> alive = timer;
        job = &timer;
        while (taken != round) {
        }
        while (!alive.expired()) { // until its handler, which owns it, has run
            context->run();
            context->restart();
        }
        others.clear();
        context.reset();
        while (returned != round) {
        }
    }
    starting.join();

    // Allowed: every wait succeeds, once.
    BOOST_CHECK_EQUAL(t.succeeded, rounds);
}

BOOST_AUTO_TEST_CASE(
    on_a_thread_pool_a_handler_may_destroy_its_timer_before_async_wait_has_returned) {
    constexpr int waits = 20'000;
    tally t;
    asio::thread_pool pool(3);
    for (int i = 0; i < waits; ++i) {
        auto owner = std::make_shared<pawl::steady_timer>(pool, 0us);
        pawl::steady_timer& timer = *owner;
        timer.async_wait([owner = std::move(owner), &t](error_code ec) { t.count()(ec); });
    }
    pool.join();

    // Allowed: every wait succeeds, once.
    BOOST_CHECK_EQUAL(t.succeeded, waits);
}

// A handler that runs in another thread may destroy the timer before rearm_*() has returned.
// Regression: it wrote the expiry after the move.
BOOST_AUTO_TEST_CASE(P4_a_handler_destroys_its_timer_while_the_call_that_moved_it_returns) {
    constexpr int waits = 2'000;
    tally t;
    asio::thread_pool pool(2);
    for (int i = 0; i < waits; ++i) {
        auto owner = std::make_unique<pawl::steady_timer>(pool, 1h);
        pawl::steady_timer& timer = *owner;
        timer.async_wait([owner = std::move(owner), &t](error_code ec) { t.count()(ec); });
        (void)timer.rearm_after(-1ms);
        while (t.succeeded <= i) { // takes no lock, after which a late write would be in order
        }
    }
    pool.join();

    // Allowed: every wait succeeds, once.
    BOOST_CHECK_EQUAL(t.succeeded, waits);
}

// ---- one timer, several threads, in a strand ---------------------------------------------------------

// A timer is used in its strand only, in any thread; its handlers run there, too.
BOOST_DATA_TEST_CASE(P4_a_timer_that_lives_in_a_strand, shards* per_turn, s, p) {
    constexpr int sessions = 16;
    constexpr int reads = 400;
    struct session {
        explicit session(asio::io_context& context)
            : strand(asio::make_strand(context)), idle(strand) {}
        void start() {
            idle.expires_after(2ms);
            wait();
            read();
        }
        void wait() {
            idle.async_wait([this](error_code ec) {
                ++handlers;
                if (!ec)
                    ++expired;
            });
        }
        void read() {
            asio::post(strand, [this] {
                if (++done == reads) {
                    cancelled = static_cast<int>(idle.cancel());
                    return;
                }
                const std::size_t moved = idle.rearm_after(2ms);
                if (moved == 0) { // a loaded machine: it has expired
                    ++restarts;
                    wait();
                }
                read();
            });
        }
        asio::strand<asio::io_context::executor_type> strand;
        pawl::steady_timer idle;
        int done = 0;
        int handlers = 0;
        int expired = 0;
        int restarts = 0;
        int cancelled = 0;
    };
    arena a(s, p);
    std::deque<session> all; // their strands must not outlive the context
    for (int i = 0; i < sessions; ++i) {
        session& each = all.emplace_back(a.context);
        asio::post(each.strand, [&each] { each.start(); });
    }
    a.finish();

    // Allowed: rearm_after() returned 0 exactly if the handler had started with success, except for
    // the last wait, which may have started before cancel().
    for (const session& each : all) {
        BOOST_CHECK_EQUAL(each.handlers, 1 + each.restarts);
        BOOST_CHECK_EQUAL(each.expired, each.restarts + (each.cancelled == 0 ? 1 : 0));
    }
}

// ---- clocks -----------------------------------------------------------------------------------------

BOOST_DATA_TEST_CASE(P1_P3_manual_clock_advanced_against_starts_and_re_arms, shards* per_turn, s,
                     p) {
    using pawl::manual_clock;
    constexpr int waits = 4'000;
    tally t;
    std::atomic<int> early{0};
    {
        arena<manual_clock> a(s, p);
        std::atomic<bool> end{false};
        std::thread hand([&] {
            while (!end)
                manual_clock::advance(a.context, 10us);
        });
        in_threads(2, [&](int me) {
            std::mt19937_64 random(static_cast<std::uint64_t>(me));
            std::deque<pawl::manual_timer> timers;
            for (int i = 0; i < waits; ++i) {
                pawl::manual_timer& timer =
                    timers.emplace_back(a.context, std::chrono::microseconds(random() % 100));
                // Re-arming only moves it later, so the first expiry is a bound.
                timer.async_wait([&t, &early, first = timer.expiry()](error_code ec) {
                    t.count()(ec);
                    early += manual_clock::now() < first;
                });
                if (i % 2 == 0)
                    (void)timer.rearm_at(timer.expiry() + 50us);
            }
            while (t.succeeded < 2 * waits)
                std::this_thread::yield();
        });
        end = true;
        hand.join();
    }

    // Allowed: every wait succeeds, once, and none is early.
    BOOST_CHECK_EQUAL(t.succeeded, 2 * waits);
    BOOST_CHECK_EQUAL(early, 0);
}

// The clock may go back, so every expiry compares its reading with the shard's. Threads read the
// clock one after the other and reach the shard in another order.
BOOST_DATA_TEST_CASE(P1_P3_a_clock_that_is_set_while_its_timers_are_used, shards* per_turn, s, p) {
    using clock = pawl_test::stepped_clock<std::integral_constant<int, 1>, false>;
    using timer_type = pawl::basic_waitable_timer<clock>;
    constexpr int waits = 3'000;
    constexpr auto begin = std::chrono::nanoseconds(1000h);
    clock::set(begin);
    tally t;
    {
        arena<clock> a(s, p);
        std::atomic<bool> end{false};
        std::thread hand([&] {
            std::mt19937_64 random(7);
            for (auto at = begin; !end;) {
                at += std::chrono::microseconds(random() % 50);
                if (random() % 50 == 0)
                    at -= 400us;
                clock::set(at);
                asio::use_service<pawl::detail::service_registry>(a.context).for_each(
                    [](pawl::detail::registered_service& each) { each.clock_moved(); });
            }
        });
        in_threads(2, [&](int me) {
            std::mt19937_64 random(static_cast<std::uint64_t>(me));
            std::deque<timer_type> timers;
            for (int i = 0; i < waits; ++i) {
                timers.emplace_back(a.context, std::chrono::microseconds(random() % 200))
                    .async_wait(t.count());
                if (random() % 3 == 0)
                    (void)timers[random() % timers.size()].rearm_after(
                        std::chrono::microseconds(random() % 200));
                if (timers.size() > 200)
                    timers.pop_front();
            }
            while (t.succeeded + t.aborted < 2 * waits - 2 * 201)
                std::this_thread::yield();
        });
        end = true;
        hand.join();
        clock::set(begin + 48h);
        asio::use_service<pawl::detail::service_registry>(a.context).for_each(
            [](pawl::detail::registered_service& each) { each.clock_moved(); });
    }

    // Allowed: success, or aborted by the destruction of its timer; exactly once.
    BOOST_CHECK_EQUAL(t.succeeded + t.aborted, 2 * waits);
    BOOST_CHECK_EQUAL(t.strange, 0);
}

// ---- the service itself -------------------------------------------------------------------------------

// use_service() may construct two services and destroy one.
// On a user-defined context, Asio's scheduler has a thread, which continues while the services shut
// down: it runs the driver's wake-ups, and this thread runs the waits' handlers.
PAWL_NEEDS_A_CONTEXT_OF_ITS_OWN
BOOST_AUTO_TEST_CASE(P10_a_context_whose_driver_has_a_thread_of_its_own_may_be_destroyed) {
    using executor = pawl_test::manual_context::executor_type;
    using timer_type =
        pawl::basic_waitable_timer<std::chrono::steady_clock,
                                   asio::wait_traits<std::chrono::steady_clock>, executor>;
    for (int round = 0; round < 500; ++round) {
        tally t;
        std::deque<timer_type> timers; // outlive the context
        {
            pawl_test::manual_context context;
            timers.emplace_back(context, 1h).async_wait(t.count());
            timers.emplace_back(context, 1us * (round % 150)).async_wait(t.count());
            timers.emplace_back(context, 1us * (round % 100)).async_wait(t.count());
            if (round % 2 == 0)
                std::this_thread::sleep_for(1us * (round % 100));
            if (round % 3 == 0)
                timers.front().cancel();
            if (round % 5 == 0)
                context.poll();
        }

        // Allowed: the due waits have succeeded, and the first was aborted; or they are destroyed
        // uncalled.
        BOOST_REQUIRE_LE(t.succeeded, 2);
        BOOST_REQUIRE_LE(t.aborted, round % 3 == 0 ? 1 : 0);
        BOOST_REQUIRE_EQUAL(t.strange, 0);
        for (auto& timer : timers)
            BOOST_REQUIRE_EQUAL(timer.cancel(), 0u);
    }
}

BOOST_AUTO_TEST_CASE(threads_that_make_the_first_timers_of_a_context_share_one_service) {
    for (int round = 0; round < 200; ++round) {
        asio::io_context context;
        tally t;
        std::atomic<int> ready{0};
        std::array<std::optional<pawl::steady_timer>, 4> timers;
        in_threads(4, [&](int me) {
            ++ready;
            while (ready < 4)
                std::this_thread::yield();
            auto& timer = timers[static_cast<std::size_t>(me)];
            timer.emplace(context, 1h);
            timer->async_wait(t.count());
        });

        // Allowed: all four are found.
        BOOST_REQUIRE_EQUAL(pawl::expire_all(context), 4u);
        context.run();
        BOOST_REQUIRE_EQUAL(t.succeeded, 4);
    }
}

BOOST_AUTO_TEST_CASE(of_threads_that_make_the_service_one_succeeds) {
    for (int round = 0; round < 100; ++round) {
        asio::io_context context;
        std::atomic<int> made{0};
        std::atomic<int> refused{0};
        in_threads(4, [&](int) {
            try {
                pawl::make_timer_service(context, {});
                ++made;
            } catch (const asio::service_already_exists&) {
                ++refused;
            }
        });

        // Allowed: one has made it, and the others were refused.
        BOOST_REQUIRE_EQUAL(made, 1);
        BOOST_REQUIRE_EQUAL(refused, 3);
    }
}

} // namespace async_wait_race
