// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// timeout_rings, and timeout_ring, against queues, in lockstep, by random calls. The printed
// seed is enough to repeat a failure; PAWL_TRACE=1 prints the calls.

#include <pawl/detail/time/timeout_rings.hpp>
#include <pawl/time/timeout_ring.hpp>

#include "../support/seed.hpp"
#include "../support/timeout_ring_lockstep.hpp"
#include "../support/timeout_rings_lockstep.hpp"

#define BOOST_TEST_MODULE timeout_rings_differential
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>

using pawl_test::random_choices;
using drivers = boost::mpl::list<pawl_test::timeout_rings_lockstep<random_choices>,
                                 pawl_test::timeout_ring_lockstep<random_choices>>;

BOOST_AUTO_TEST_CASE_TEMPLATE(the_rings_emit_in_order_and_in_time, Driver, drivers) {
    random_choices random(pawl_test::seed());
    const std::uint64_t steps = pawl_test::steps(1'000'000);

    for (std::uint64_t done = 0; done < steps;) {
        const std::uint64_t run =
            std::min<std::uint64_t>(steps - done, 1 + random.below(Driver::longest_run));
        Driver both(random);
        for (std::uint64_t i = 0; i != run; ++i)
            both.step();
        both.finish();
        done += run;
    }
}

BOOST_AUTO_TEST_CASE(a_set_into_which_nothing_was_detached_is_empty) {
    const pawl::time::timeout_rings::shape shapes[] = {{.delay = 10, .capacity = 4}};
    const pawl::time::timeout_rings rings(shapes, 8, pawl::time::tick{0});
    pawl::time::timeout_rings::detached set(rings);
    pawl::time::timer_node* node = nullptr;
    BOOST_TEST(!set.pop(node));
}
