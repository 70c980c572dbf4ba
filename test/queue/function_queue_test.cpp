// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The queue of functions alone: order, memory, and functions that are not taken.
// orders/function_queue_test.cpp explores its use by several threads.

#define BOOST_TEST_MODULE function_queue
#include <boost/test/unit_test.hpp>

#include "../service/counted_new.hpp"

#include <pawl/detail/queue/function_queue.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <numeric>
#include <vector>

using pawl::detail::function_queue;
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
