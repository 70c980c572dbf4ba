// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Each memory order of a claim with copies is needed: one copy gets the object, and the last copy
// to end knows whether any has. See support/explored.hpp.

#define BOOST_TEST_MODULE claim_orders

#include <pawl/detail/wait/claim.hpp>

#include "explored_sites.hpp"
#include "orders/orders_support.hpp"

#include <boost/test/unit_test.hpp>

#include <utility>
#include <vector>

using explored::data;
using explored::execution;
using pawl::detail::claim;

namespace {

/// The owned object. Its user destroys it, exactly once.
struct owned {
    data<int> uses{0};

    void use() { uses.write(uses.read() + 1); }
};

/// A function object that is called, or not, and then destroyed.
struct function {
    claim<owned> object;

    void call() const {
        if (owned* const o = object.take())
            o->use();
    }
    void end() const {
        object.end([](owned* o) { o->use(); });
    }
};

const std::vector<orders::named_scenario> scenarios{
    {"one copy is called while two end",
     [](execution& e) {
         owned object;
         const function a{claim<owned>(&object)};
         const function b = a;
         const function c = b;
         e.together(
             [&a] {
                 a.call();
                 a.end();
             },
             [&b] { b.end(); }, [&c] { c.end(); });
         e.require(object.uses.read() == 1, "the object is not used once");
     }},
    {"two copies are called",
     [](execution& e) {
         owned object;
         const function a{claim<owned>(&object)};
         const function b = a;
         const auto call = [](const function& f) {
             f.call();
             f.end();
         };
         e.together([&] { call(a); }, [&] { call(b); });
         e.require(object.uses.read() == 1, "the object is not used once");
     }},
    {"the last copy is made while another one ends",
     [](execution& e) {
         owned object;
         const function a{claim<owned>(&object)};
         const function b = a;
         e.together(
             [&a] {
                 const function c = a;
                 a.end();
                 c.end();
             },
             [&b] { b.end(); });
         e.require(object.uses.read() == 1, "the object is not used once");
     }},
};

} // namespace

BOOST_AUTO_TEST_CASE(an_object_is_used_once_in_each_execution_that_the_memory_model_allows) {
    orders::all_is_well_as_written(explored_sites, scenarios);
}

BOOST_AUTO_TEST_CASE(each_memory_order_of_a_claim_is_needed) {
    orders::each_order_is_needed(explored_sites, scenarios);
}
