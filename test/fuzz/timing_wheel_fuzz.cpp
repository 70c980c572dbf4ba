// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// timing_wheel against a multimap. The first byte of an input chooses the configuration, the others
// are calls (timing_wheel_lockstep.hpp).

#include <pawl/time/timing_wheel.hpp>

#include "../support/invariants.hpp"
#include "../support/timing_wheel_lockstep.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    pawl_test::byte_choices choices({data, size});
    const auto& scenes = pawl_test::timing_wheel_scenes();
    const auto& scene = scenes[choices.below(scenes.size())];
    pawl_test::timing_wheel_lockstep<pawl_test::byte_choices> both(choices, scene);
    for (std::size_t i = 0; !choices.empty(); ++i) {
        both.step();
        if (i % 8 == 0)
            pawl_test::check_invariant(both);
    }
    both.finish();
    return 0;
}
