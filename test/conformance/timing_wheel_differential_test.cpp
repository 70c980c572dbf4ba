// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// timing_wheel against a multimap, by random calls. PAWL_SEED repeats a run, PAWL_STEPS makes it
// longer, PAWL_TRACE=1 prints the calls.

#include <pawl/time/timing_wheel.hpp>

#include "../support/invariants.hpp"
#include "../support/seed.hpp"
#include "../support/timing_wheel_lockstep.hpp"

#define BOOST_TEST_MODULE timing_wheel_differential
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

using pawl_test::random_choices;

BOOST_DATA_TEST_CASE(a_wheel_and_a_map_cannot_be_told_apart,
                     boost::unit_test::data::make(pawl_test::timing_wheel_scenes()), scene) {
    random_choices random(pawl_test::seed());
    std::size_t fired = 0;
    std::size_t thrown = 0;
    std::size_t most = 0;

    for (std::uint64_t left = pawl_test::steps(20'000); left != 0;) {
        pawl_test::timing_wheel_lockstep<random_choices> both(random, scene);
        for (std::uint64_t i = std::min<std::uint64_t>(left, 2000); i != 0; --i, --left) {
            both.step();
            if (i % 64 == 0)
                pawl_test::check_invariant(both);
        }
        both.finish();
        fired += both.fired();
        thrown += both.thrown();
        most = std::max(most, both.most());
    }

    BOOST_TEST(fired != 0U);
    BOOST_TEST_MESSAGE(fired << " fired, " << thrown << " threw, at most " << most << " at once");
}
