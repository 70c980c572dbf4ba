// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The queue against a model, in lockstep, by random calls. The printed seed is enough to repeat a
// failure; PAWL_TRACE=1 prints the calls.

#include "../support/event_queue_lockstep.hpp"
#include "../support/seed.hpp"

#define BOOST_TEST_MODULE event_queue_lockstep
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>

BOOST_AUTO_TEST_CASE(the_queue_handles_what_the_model_handles) {
    pawl_test::random_choices random(pawl_test::seed());
    const std::uint64_t steps = pawl_test::steps(500'000);

    for (std::uint64_t done = 0; done < steps;) {
        const std::uint64_t run = std::min<std::uint64_t>(steps - done, 1 + random.below(1000));
        pawl_test::event_queue_lockstep<pawl_test::random_choices> both(random);
        std::uint64_t i = 0;
        for (; i != run && both.goes_on(); ++i)
            both.step();
        both.finish();
        done += i;
    }
}
