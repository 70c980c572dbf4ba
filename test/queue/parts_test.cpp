// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The parts of a queue, each alone: functions (orders/function_queue_test.cpp explores their use by
// several threads), events in their order, who is told of them, and the threads that sleep.

#define BOOST_TEST_MODULE queue_parts
#include <boost/test/unit_test.hpp>

#include "../service/counted_new.hpp"

#include <pawl/manual_clock.hpp>

#include <pawl/detail/queue/event_buffer.hpp>
#include <pawl/detail/queue/function_queue.hpp>
#include <pawl/detail/queue/queue_leader.hpp>
#include <pawl/detail/queue/queue_waker.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#if !defined(_WIN32)
#include <poll.h>
#endif

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using pawl::manual_clock;
using pawl::detail::function_queue;
using pawl::detail::queue_leader;
using pawl::detail::queue_waker;
using pawl::detail::queued_function;

namespace {

constexpr std::size_t length = 4;
using short_blocks = function_queue<length>;

void push(short_blocks& queue, std::vector<int>& ran, int n) {
    queue.push(queued_function([&ran, n] { ran.push_back(n); }));
}

} // namespace

BOOST_AUTO_TEST_CASE(functions_are_taken_in_the_order_in_which_they_were_pushed) {
    short_blocks queue;
    std::vector<int> ran;
    int pushed = 0;
    // For each length of the queue, and each position of a block's end.
    for (int there = 0; there != 3 * static_cast<int>(length); ++there) {
        for (int i = 0; i != there; ++i)
            push(queue, ran, pushed++);
        BOOST_TEST(queue.size() == static_cast<std::size_t>(there));
        for (int i = 0; i != there; ++i)
            queue.take()();
        BOOST_TEST(queue.size() == 0U);
    }
    std::vector<int> all(static_cast<std::size_t>(pushed));
    std::iota(all.begin(), all.end(), 0);
    BOOST_TEST(ran == all, boost::test_tools::per_element());
    BOOST_TEST(queue.pushed() == static_cast<std::size_t>(pushed));
    BOOST_TEST(queue.taken() == queue.pushed());
}

BOOST_AUTO_TEST_CASE(P8_a_queue_keeps_two_blocks_and_gives_back_what_a_burst_has_taken) {
    std::vector<int> ran;
    ran.reserve(2000);
    const std::size_t before = counted_new::live;
    {
        short_blocks queue;
        BOOST_TEST(counted_new::live - before == 0U);
        for (int i = 0; i != 1000; ++i)
            push(queue, ran, i);
        BOOST_TEST(counted_new::live - before == 1000 / length);
        while (queue.size() != 0)
            queue.take()();
        BOOST_TEST(counted_new::live - before == 2U);

        const std::size_t calls = counted_new::calls;
        for (int i = 0; i != 1000; ++i) {
            push(queue, ran, i);
            queue.take()();
        }
        BOOST_TEST(counted_new::calls - calls == 0U);
    }
    BOOST_TEST(counted_new::live - before == 0U);
}

BOOST_AUTO_TEST_CASE(functions_that_are_not_taken_are_destroyed_with_the_queue) {
    const auto alive = std::make_shared<int>(0);
    {
        short_blocks queue;
        for (std::size_t i = 0; i != 3 * length; ++i)
            queue.push(queued_function([alive] { ++*alive; }));
        queue.take()();
        BOOST_TEST(alive.use_count() == 3L * static_cast<long>(length));
    }
    BOOST_TEST(alive.use_count() == 1);
    BOOST_TEST(*alive == 1);
}

BOOST_AUTO_TEST_CASE(P8_what_could_not_be_pushed_is_as_it_was_and_the_queue_goes_on) {
    short_blocks queue;
    std::vector<int> ran;
    ran.reserve(100);
    for (int i = 0; i != 50; ++i) {
        queued_function f([&ran, i] { ran.push_back(i); });
        counted_new::fuse = 0;
        try {
            queue.push(std::move(f));
        } catch (const std::bad_alloc&) {
            counted_new::fuse = counted_new::never;
            queue.push(std::move(f)); // NOLINT(bugprone-use-after-move): this is tested
        }
        counted_new::fuse = counted_new::never;
    }
    BOOST_TEST(queue.size() == 50U);
    while (queue.size() != 0)
        queue.take()();
    std::vector<int> all(50);
    std::iota(all.begin(), all.end(), 0);
    BOOST_TEST(ran == all, boost::test_tools::per_element());
}

namespace {

using buffer = pawl::detail::event_buffer<manual_clock, boost::asio::wait_traits<manual_clock>>;

/// A timer of no queue.
template <class F>
[[nodiscard]] buffer::timer_ptr make_timer(boost::asio::io_context& context, F f) {
    using timer =
        pawl::detail::queue_timer_for<manual_clock, boost::asio::wait_traits<manual_clock>, F>;
    auto t = std::make_shared<timer>(nullptr, context.get_executor(), std::move(f));
    t->due = manual_clock::now();
    return t;
}

/// Events that are only counted.
struct counted {
    [[nodiscard]] std::size_t size() const noexcept { return number; }
    void watch() noexcept { is_watched = true; }
    [[nodiscard]] bool watched() const noexcept { return is_watched; }

    std::size_t number = 0;
    bool is_watched = false;
};

} // namespace

BOOST_AUTO_TEST_CASE(events_are_taken_in_order_up_to_a_mark_and_a_timer_goes_with_its_last_slot) {
    boost::asio::io_context context;
    const pawl::event_queue_options options;
    buffer events(options);
    const auto first = make_timer(context, [] {});
    const auto second = make_timer(context, [] {});
    const auto destroyed = make_timer(context, [] {});
    for (const auto& t : {first, second, destroyed})
        events.add(t);
    const auto now = pawl::detail::see_clock<manual_clock>();
    BOOST_TEST(events.idle());

    (void)events.emit(*destroyed, now, true);
    events.kill(*destroyed);
    events.unlist_if_over(*destroyed);
    BOOST_TEST(!events.take_over()); // a slot points at it
    (void)events.emit(*first, now, true);
    events.push(queued_function([] {}));
    events.push_last(*second); // not handled
    const auto end = events.now();
    events.push(queued_function([] {}));

    BOOST_TEST(events.size() == 4U);
    BOOST_TEST(events.pending() == 3U);
    BOOST_TEST(!events.function_is_next(end));
    const auto one = events.take(end);
    BOOST_TEST((one.timer == first && one.handled));
    BOOST_TEST((events.take_over() == destroyed));
    BOOST_TEST((first->phase == buffer::timer_type::phase_type::ended));
    BOOST_TEST(!events.take(end).timer); // a function precedes it
    BOOST_TEST(events.function_is_next(end));
    events.take_function()();
    const auto other = events.take(end);
    BOOST_TEST((other.timer == second && !other.handled));
    BOOST_TEST(!events.function_is_next(end)); // it came later
    BOOST_TEST(events.size() == 1U);
    BOOST_TEST(events.timers() == 0U);

    BOOST_TEST(!events.has_leftovers());
    for (const auto& t : {first, second}) {
        events.unlist_if_over(*t); // its function runs
        BOOST_TEST(!events.take_over());
        t->run_by = {};
        events.unlist_if_over(*t);
        BOOST_TEST((events.take_over() == t));
    }
}

#if !defined(_WIN32)
BOOST_AUTO_TEST_CASE(
    a_descriptor_is_cleared_also_if_a_thread_begins_to_wait_before_the_waker_looks) {
    counted events;
    queue_leader nobody(false);
    queue_waker<counted> waker(events, nobody);
    const auto readable = [fd = waker.descriptor(false)] {
        ::pollfd one{fd, POLLIN, 0};
        return ::poll(&one, 1, 0) == 1;
    };
    BOOST_TEST(!readable());
    waker.change([&] { events.number = 1; });
    BOOST_TEST(readable());
    events.number = 0; // without the lock, as a function is taken
    {
        const std::scoped_lock lock(waker.mutex());
        waker.expect();
    }

    waker.change([] {});

    BOOST_TEST(!readable());
    waker.change([&] { events.number = 1; });
    BOOST_TEST(readable());
}
#endif

BOOST_AUTO_TEST_CASE(all_threads_that_sleep_are_woken_by_the_next_event_and_one_of_them_has_led) {
    for (const bool own : {true, false}) {
        counted events;
        queue_leader leader(own);
        queue_waker<counted> waker(events, leader);
        int asleep = 0;
        int led = 0;
        std::array<std::thread, 3> threads;
        for (auto& t : threads)
            t = std::thread([&] {
                const auto end = std::chrono::steady_clock::now() + 20s;
                std::unique_lock lock(waker.mutex());
                waker.expect();
                ++asleep;
                while (events.number == 0 && std::chrono::steady_clock::now() < end)
                    led += leader.sleep(lock, end);
                BOOST_TEST(events.number == 1U);
            });
        for (bool all = false; !all; std::this_thread::yield()) {
            const std::scoped_lock lock(waker.mutex());
            all = asleep == 3;
        }

        waker.change([&] { events.number = 1; });

        for (auto& t : threads)
            t.join();
        BOOST_TEST((led != 0) == own);
        BOOST_TEST(leader.is_free() == own);
    }
}

BOOST_AUTO_TEST_CASE(the_leader_that_polls_runs_what_was_asked_for_and_is_not_stopped) {
    queue_leader leader(true);
    std::mutex mutex;
    std::unique_lock lock(mutex);
    int ran = 0;
    for (int i = 0; i != 5; ++i)
        boost::asio::post(*leader.context(), [&] {
            const std::scoped_lock inside(mutex);
            BOOST_TEST((leader.leads() && !leader.is_free()));
            leader.wake();
            ++ran;
        });

    BOOST_TEST(leader.poll(lock, 3, false)); // there may be more
    BOOST_TEST(ran == 3);
    BOOST_TEST(lock.owns_lock());
    BOOST_TEST((!leader.leads() && leader.is_free()));
    BOOST_TEST(!leader.poll(lock, 3, false));
    BOOST_TEST(ran == 5);

    boost::asio::post(*leader.context(), [] { throw 1; });
    BOOST_CHECK_THROW(leader.poll(lock, 3, false), int);
    BOOST_TEST((lock.owns_lock() && leader.is_free()));
}
