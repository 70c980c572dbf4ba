// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// event_queue against a model. The first bytes of an input choose the options and the context; the
// others are calls, and the actions of functions (event_queue_lockstep.hpp).

#include "../support/event_queue_lockstep.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    pawl_test::byte_choices choices({data, size});
    pawl_test::event_queue_lockstep<pawl_test::byte_choices> both(choices);
    while (!choices.empty() && both.goes_on())
        both.step();
    both.finish();
    return 0;
}
