// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Each memory order of service_life is needed: the last user frees the memory that a service shares
// with the threads that cache it. See support/explored.hpp.

#define BOOST_TEST_MODULE service_cache_orders

#include <pawl/detail/service/service_cache.hpp>

#include "explored_sites.hpp"
#include "orders/orders_support.hpp"

#include <boost/test/unit_test.hpp>

#include <vector>

using explored::execution;
using pawl::detail::service_life;

namespace {

const std::vector<orders::named_scenario> scenarios{
    {"a service ends while two threads that remember it ask and forget",
     [](execution& e) {
         service_life& life = service_life::begin();
         life.share();
         life.share();
         const auto remembers = [&life] {
             (void)life.over();
             life.leave();
         };
         e.together(
             [&life] {
                 life.end();
                 life.leave();
             },
             remembers, remembers);
     }},
    {"a thread remembers a service that another thread forgets",
     [](execution& e) {
         service_life& life = service_life::begin();
         life.share();
         e.together(
             [&life] {
                 life.share();
                 life.leave();
                 life.leave();
             },
             [&life] { life.leave(); });
     }},
};

} // namespace

BOOST_AUTO_TEST_CASE(a_life_is_freed_by_the_last_in_each_execution_that_the_memory_model_allows) {
    orders::all_is_well_as_written(explored_sites, scenarios);
}

BOOST_AUTO_TEST_CASE(each_memory_order_of_a_life_is_needed) {
    orders::each_order_is_needed(explored_sites, scenarios);
}
