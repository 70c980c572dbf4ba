// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The lock of a shard: it excludes, no thread starves beside a thread that takes it again and
//   again, and a holder of lower priority on the same processor makes progress.

#include <pawl/detail/service/spin_mutex.hpp>

#define BOOST_TEST_MODULE spin_mutex_race
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__linux__) // where a thread can be kept on one processor
#include <pthread.h>
#include <sched.h>
#endif

namespace spin_mutex_race {

using pawl::detail::spin_mutex;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_CASE(one_thread_at_a_time_is_inside) {
    constexpr int threads = 4;
    constexpr int rounds = 20000;
    spin_mutex mutex;
    long plain = 0; // ThreadSanitizer reports two threads inside, or a missing happens-before
    std::vector<std::jthread> crowd;
    for (int i = 0; i < threads; ++i)
        crowd.emplace_back([&] {
            for (int n = 0; n < rounds; ++n) {
                const std::scoped_lock lock(mutex);
                ++plain;
            }
        });
    crowd.clear();
    BOOST_TEST(plain == long{threads} * rounds);
}

BOOST_AUTO_TEST_CASE(try_lock_fails_while_it_is_held_and_only_then) {
    spin_mutex mutex;
    BOOST_TEST(mutex.try_lock());
    BOOST_TEST(!mutex.try_lock());
    mutex.unlock();
    BOOST_TEST(mutex.try_lock());
    mutex.unlock();
}

// The batches of expire_all(). Without a signal from the waiting threads, the thread that has just
// unlocked has the cache line, and nearly always gets the lock again: it would run through all of
// its batches.
BOOST_AUTO_TEST_CASE(a_waiting_thread_gets_in_between_the_batches_of_another) {
    spin_mutex mutex;
    std::atomic<bool> inside{false};
    std::atomic<bool> done{false};
    std::jthread other([&] {
        pawl::detail::atomic_wait(inside, false, std::memory_order_seq_cst);
        const std::scoped_lock lock(mutex);
        done = true;
    });
    do {
        {
            const std::scoped_lock lock(mutex);
            inside = true;
            inside.notify_all();
            const auto until = std::chrono::steady_clock::now() + 20us;
            while (std::chrono::steady_clock::now() < until) {
            }
        }
        mutex.give_way();
    } while (!done);
    other.join();
    BOOST_TEST(done);
}

BOOST_AUTO_TEST_CASE(way_is_given_to_nobody_in_no_time) {
    spin_mutex mutex;
    mutex.give_way(); // no thread waits
    const std::scoped_lock lock(mutex);
    mutex.give_way(); // returns although it is held
    BOOST_TEST(!mutex.try_lock());
}

#if defined(__linux__)

namespace {

/// @return false if this process has no permission.
bool run_with_priority(int priority) {
    sched_param p{};
    p.sched_priority = priority;
    return ::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &p) == 0;
}

bool stay_on_processor(int processor) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(processor), &one);
    return ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one) == 0;
}

} // namespace

// A lock that only spins, or only yields, hangs here: yielding lets no thread of lower priority
// run.
BOOST_AUTO_TEST_CASE(a_holder_of_lower_priority_on_the_same_processor_gets_on) {
    const int here = ::sched_getcpu();
    BOOST_REQUIRE(here >= 0);
    spin_mutex mutex;
    std::atomic<bool> may_start{false};
    std::atomic<bool> waits{false};
    std::atomic<bool> permitted{true};
    std::atomic<int> staying{0};
    bool got_it = false;
    std::thread high([&] {
        staying += stay_on_processor(here);
        may_start.wait(false);
        waits = true;
        const std::scoped_lock lock(mutex);
        got_it = true;
    });
    std::thread low([&] {
        staying += stay_on_processor(here);
        permitted = run_with_priority(1);
        {
            const std::scoped_lock lock(mutex);
            if (permitted) {
                sched_param p{};
                p.sched_priority = 2;
                permitted = ::pthread_setschedparam(high.native_handle(), SCHED_FIFO, &p) == 0;
            }
            may_start = true;
            may_start.notify_one();
            while (!waits)
                ::sched_yield();
        } // the other thread waits, and would run forever
    });
    low.join();
    high.join();
    BOOST_TEST(got_it);
    BOOST_TEST(staying == 2);
    if (!permitted)
        BOOST_TEST_MESSAGE("SCHED_FIFO is not permitted here: both threads had the same priority");
}

#endif

} // namespace spin_mutex_race
