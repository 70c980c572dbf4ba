// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Several rings as one backend against queues. The first bytes of an input choose delays, capacities
// and marks; the others are calls (timeout_rings_lockstep.hpp).

#include <pawl/detail/time/timeout_rings.hpp>

#include "../support/timeout_rings_lockstep.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    pawl_test::byte_choices choices({data, size});
    pawl_test::timeout_rings_lockstep<pawl_test::byte_choices> both(choices);
    while (!choices.empty())
        both.step();
    both.finish();
    return 0;
}
