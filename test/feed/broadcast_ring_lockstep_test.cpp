// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// broadcast_ring against a list of all messages, in lockstep, by random calls. The printed seed is
// enough to repeat a failure; PAWL_TRACE=1 prints the calls.

#include <pawl/broadcast_ring.hpp>

#include "../support/broadcast_ring_lockstep.hpp"
#include "../support/seed.hpp"

#define BOOST_TEST_MODULE broadcast_ring_lockstep
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>

BOOST_AUTO_TEST_CASE(the_ring_does_what_a_list_of_all_messages_does) {
    pawl_test::random_choices random(pawl_test::seed());
    const std::uint64_t steps = pawl_test::steps(1'000'000);

    for (std::uint64_t done = 0; done < steps;) {
        std::uint64_t left = std::min<std::uint64_t>(steps - done, 1 + random.below(2000));
        done += left;
        pawl_test::broadcast_ring_run(random, [&] { return left-- != 0; });
    }
    BOOST_TEST(pawl_test::owned_message::alive == 0);
}
