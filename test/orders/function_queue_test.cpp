// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Each memory order of function_queue is needed: functions that are taken without the lock were
// written before, a block is reused only when it is no longer read, and a thread notices that the
// queue has become empty. See support/explored.hpp.

#define BOOST_TEST_MODULE function_queue_orders

#include <pawl/detail/queue/function_queue.hpp>

#include "explored_sites.hpp"
#include "orders/orders_support.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <vector>

using explored::data;
using explored::execution;
using pawl::detail::function_queue;
using pawl::detail::queued_function;

namespace {

/// Takes the functions that it sees, but at most `most`.
template <std::size_t Length>
void take(function_queue<Length>& queue, int most) {
    for (int i = 0; i != most && queue.size() != 0; ++i)
        queue.take()();
}

const std::vector<orders::named_scenario> scenarios{
    {"a function is taken as soon as it is seen",
     [](execution& e) {
         function_queue<2> queue;
         data<int> written{0};
         e.together(
             [&] {
                 written.write(1);
                 queue.push(queued_function([&written] { (void)written.read(); }));
             },
             [&queue] { take(queue, 1); });
     }},
    {"the last function is taken while somebody begins to watch",
     [](execution& e) {
         function_queue<2> queue;
         queue.push(queued_function([] {}));
         bool told = false;
         bool sees_one = false;
         e.together(
             [&] {
                 queue.take()();
                 told = queue.watched() && queue.size() == 0;
             },
             [&] {
                 queue.watch();
                 sees_one = queue.size() != 0;
             });
         e.require(told || !sees_one, "nobody is told that the queue is empty");
     }},
    {"somebody looks how many there are while one is pushed and taken",
     [](execution& e) {
         function_queue<2> queue;
         e.together([&queue] { queue.push(queued_function([] {})); }, [&queue] { take(queue, 1); },
                    [&] { e.require(queue.size() <= 1, "there are more than were pushed"); });
     }},
    {"a block that was emptied is used again",
     [](execution& e) {
         function_queue<1> queue;
         queue.push(queued_function([] {}));
         queue.push(queued_function([] {}));
         e.together([&queue] { take(queue, 2); },
                    [&queue] {
                        queue.push(queued_function([] {}));
                        queue.push(queued_function([] {}));
                    });
     }},
};

} // namespace

BOOST_AUTO_TEST_CASE(functions_are_handed_over_in_each_execution_that_the_memory_model_allows) {
    orders::all_is_well_as_written(explored_sites, scenarios);
}

BOOST_AUTO_TEST_CASE(each_memory_order_of_the_queue_is_needed) {
    orders::each_order_is_needed(explored_sites, scenarios);
}
