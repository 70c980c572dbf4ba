// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// timeout_ring against a queue. The bytes of an input are the ring's shape, then calls
// (timeout_ring_lockstep.hpp).

#include <pawl/time/timeout_ring.hpp>

#include "../support/timeout_ring_lockstep.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    pawl_test::byte_choices choices({data, size});
    pawl_test::timeout_ring_lockstep<pawl_test::byte_choices> both(choices);
    while (!choices.empty())
        both.step();
    both.finish();
    return 0;
}
