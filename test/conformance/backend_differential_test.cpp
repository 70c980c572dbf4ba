// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Each wheel against the oracle, in lockstep, by random calls. The printed seed is enough to repeat
// a failure; PAWL_TRACE=1 prints the calls.

#include <pawl/time/binary_wheel.hpp>
#include <pawl/time/hierarchical_wheel.hpp>

#include "../support/backend_lockstep.hpp"
#include "../support/seed.hpp"

#define BOOST_TEST_MODULE backend_differential
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace {

using pawl::time::geometry;
using pawl_test::random_choices;

using wheels = boost::mpl::list<pawl::time::hierarchical_wheel, pawl::time::binary_wheel>;

geometry draw_geometry(random_choices& random) {
    std::vector<int> bits;
    int sum = 0;
    for (std::size_t levels = 1 + random.below(6); levels != 0 && sum < 64; --levels) {
        bits.push_back(static_cast<int>(1 + random.below(random.below(4) == 0 ? 12 : 7)));
        sum += bits.back();
    }
    return geometry(std::span<const int>(bits));
}

} // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(the_wheel_emits_what_the_oracle_emits_in_the_same_order, Wheel,
                              wheels) {
    random_choices random(pawl_test::seed());
    const std::uint64_t steps = pawl_test::steps(1'000'000);

    for (std::uint64_t done = 0; done < steps;) {
        const std::uint64_t run = std::min<std::uint64_t>(steps - done, 1 + random.below(20'000));
        const std::size_t timers = 1 + random.below(random.below(4) == 0 ? 3000 : 100);
        pawl_test::backend_lockstep<Wheel, random_choices> both(random, draw_geometry(random),
                                                                timers);
        for (std::uint64_t i = 0; i != run; ++i)
            both.step();
        both.finish();
        done += run;
    }
}
