// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// broadcast_ring against a list, in lockstep, in one thread. The first bytes of an input choose messages,
// policy, writers and sizes; the others are calls (broadcast_ring_lockstep.hpp).

#include <pawl/broadcast_ring.hpp>

#include "../support/broadcast_ring_lockstep.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    pawl_test::byte_choices choices({data, size});
    pawl_test::broadcast_ring_run(choices, [&] { return !choices.empty(); });
    return 0;
}
