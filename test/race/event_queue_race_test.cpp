// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// Purpose
//   pawl::event_queue between threads: what may come of two calls that meet, and what must hold of the
//   sums whatever meets. For ThreadSanitizer, and without it.

#define BOOST_TEST_MODULE event_queue_race
#include <boost/test/unit_test.hpp>

#include "race_support.hpp"

#include <pawl/event_queue.hpp>
#include <pawl/timer_service.hpp>

#include "../support/seed.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using pawl::overflow_policy;

namespace {

/// A context that other threads run.
class running_context {
public:
    explicit running_context(unsigned threads, unsigned shards = 1) {
        pawl::options o;
        o.shards = shards;
        o.precision = 10us;
        pawl::make_timer_service(context, o);
        for (unsigned i = 0; i != threads; ++i)
            threads_.emplace_back([this] { context.run(); });
    }
    ~running_context() {
        work_.reset();
        for (auto& t : threads_)
            t.join();
    }
    asio::io_context context;

private:
    asio::executor_work_guard<asio::io_context::executor_type> work_{context.get_executor()};
    std::vector<std::thread> threads_;
};

/// Two calls that meet.
template <class A, class B>
void together(A a, B b) {
    std::atomic<int> ready{0};
    const auto meet = [&ready] {
        ++ready;
        while (ready != 2)
            ;
    };
    std::thread other([&] {
        meet();
        b();
    });
    meet();
    a();
    other.join();
}

const std::uint64_t rounds = pawl_test::steps(300);

} // namespace

// ---- pairs ---------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(pairs)

// Outcomes: the function has run, and destroy() has waited for it; or it has not, and never will.
BOOST_AUTO_TEST_CASE(destroy_meets_the_function_of_the_timer) {
    for (std::uint64_t i = 0; i != rounds; ++i) {
        pawl::event_queue queue;
        int runs = 0; // not atomic: destroy() is what makes it safe to read
        auto timer = queue.once(0s, [&runs] { ++runs; });
        BOOST_TEST_REQUIRE(queue.pending() == 1U);
        std::size_t handled = 0;
        together([&] { handled = queue.process_events(); },
                 [&] {
                     timer.destroy();
                     const int seen = runs;
                     if (seen != 0 && seen != 1)
                         std::abort();
                 });
        BOOST_TEST(handled == static_cast<std::size_t>(runs));
        BOOST_TEST(timer.ended());
        BOOST_TEST(queue.inqueue() == 0U);
        BOOST_TEST(queue.timers() == 0U);
    }
}

// Outcomes: one of them has disarmed it. There is one last event, behind all others.
BOOST_AUTO_TEST_CASE(disarm_meets_disarm_and_the_expiry) {
    running_context other(1);
    for (std::uint64_t i = 0; i != rounds; ++i) {
        pawl::event_queue queue(other.context);
        std::size_t runs = 0;
        auto timer = queue.every(20us, [&runs] { ++runs; });
        bool first = false;
        bool second = false;
        together([&] { first = timer.disarm(); }, [&] { second = timer.disarm(); });
        BOOST_TEST(first != second);
        const std::size_t pending = queue.pending();
        BOOST_TEST(queue.inqueue() == pending + 1);
        BOOST_TEST(queue.process_events() == pending);
        BOOST_TEST(runs == pending);
        BOOST_TEST(timer.ended());
        BOOST_TEST(queue.inqueue() == 0U);
    }
}

// Outcomes: the wait finds the event. It does not sleep on.
BOOST_AUTO_TEST_CASE(a_push_meets_a_wait) {
    running_context other(1);
    for (const bool own : {true, false}) {
        for (std::uint64_t i = 0; i != rounds; ++i) {
            auto queue = own ? std::make_unique<pawl::event_queue>()
                             : std::make_unique<pawl::event_queue>(other.context);
            together([&] { queue->wait(); }, [&] { asio::post(*queue, [] {}); });
            BOOST_TEST(queue->process_events() == 1U);
            together([&] { queue->wait(); }, [&] { queue->once(0s, [] {}); });
            BOOST_TEST(queue->process_events() == 1U);
        }
    }
}

// Outcomes: the last event of each timer is there, or the timer has gone with the queue.
BOOST_AUTO_TEST_CASE(the_end_of_a_queue_meets_expiries) {
    running_context other(2);
    for (std::uint64_t i = 0; i != rounds; ++i) {
        auto queue = std::make_unique<pawl::event_queue>(other.context);
        std::vector<pawl::event_queue::timer> timers;
        for (int t = 0; t != 4; ++t) {
            timers.push_back(queue->every(10us, [] {}));
            timers.push_back(queue->once(30us, [] {}));
        }
        if (i % 2 == 0)
            std::this_thread::sleep_for(30us);
        queue.reset();
        for (const auto& t : timers)
            BOOST_TEST(t.ended());
    }
}

BOOST_AUTO_TEST_SUITE_END()

// ---- sums ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(sums)

// Each function that was submitted runs once; each one-off runs or was destroyed or disarmed; nothing
// is there afterwards.
BOOST_AUTO_TEST_CASE(nothing_is_lost_between_threads) {
    std::mt19937_64 random(pawl_test::seed());
    for (int run = 0; run != 6; ++run) {
        const unsigned shards = 1U << (random() % 3);
        const bool own = run % 3 == 2;
        std::optional<running_context> other;
        if (!own)
            other.emplace(1 + random() % 2, shards);
        const pawl::event_queue_options o{.capacity = 1 + random() % 50,
                                          .overflow = static_cast<overflow_policy>(run % 3)};
        auto queue = own ? std::make_unique<pawl::event_queue>(o)
                         : std::make_unique<pawl::event_queue>(other->context, o);
        std::atomic<std::uint64_t> submitted{0};
        std::uint64_t ran = 0; // by the host
        std::atomic<std::uint64_t> made{0};
        std::uint64_t fired = 0;
        std::atomic<std::uint64_t> withdrawn{0};
        std::atomic<int> producing{3};

        std::vector<std::thread> producers;
        for (int p = 0; p != 3; ++p) {
            producers.emplace_back([&, seed = random()] {
                std::mt19937_64 mine(seed);
                std::vector<pawl::event_queue::timer> intervals;
                for (std::uint64_t i = 0; i != rounds; ++i) {
                    asio::post(*queue, [&ran] { ++ran; });
                    ++submitted;
                    auto one_off =
                        queue->once(std::chrono::microseconds(mine() % 200), [&fired] { ++fired; });
                    ++made;
                    if (mine() % 4 == 0)
                        withdrawn += one_off.disarm();
                    if (mine() % 3 == 0)
                        intervals.push_back(queue->every(
                            std::chrono::microseconds(10 + mine() % 100), [] {},
                            static_cast<pawl::missed_tick_policy>(mine() % 3)));
                    if (mine() % 3 == 0 && !intervals.empty()) {
                        if (mine() % 2 == 0)
                            intervals.back().destroy();
                        else
                            intervals.back().disarm();
                        intervals.pop_back();
                    }
                }
                for (auto& t : intervals)
                    t.destroy();
                --producing;
                asio::post(*queue, [&ran] { ++ran; });
                ++submitted;
            });
        }
        while (producing != 0 || queue->timers() != 0 || queue->inqueue() != 0) {
            queue->wait_for(10ms);
            queue->process_events(random() % 100);
        }
        for (auto& p : producers)
            p.join();
        queue->process_events();

        BOOST_TEST(ran == submitted);
        BOOST_TEST(fired + withdrawn == made);
        BOOST_TEST(queue->inqueue() == 0U);
        BOOST_TEST(queue->pending() == 0U);
        BOOST_TEST(queue->timers() == 0U);
    }
}

BOOST_AUTO_TEST_SUITE_END()
