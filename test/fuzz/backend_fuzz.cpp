// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The wheels against the oracle. The first byte of an input chooses the shape of the hierarchical
// wheel, the second the number of timers; the others are calls (backend_lockstep.hpp), made on each
// wheel in turn.

#include <pawl/time/binary_wheel.hpp>
#include <pawl/time/hierarchical_wheel.hpp>

#include "../support/backend_lockstep.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace {

using pawl::time::geometry;
using pawl_test::byte_choices;

// The default; the smallest and the largest levels; different levels, the top one trimmed.
const std::array shapes{geometry({6}),          geometry({1}),    geometry({2}),
                        geometry({3, 5, 4}),    geometry({1, 7}), geometry({8, 4}),
                        geometry({5, 2, 2, 3}), geometry({12, 3})};

// Few, so that each is used often; and more than the largest room of expire().
constexpr std::array<std::size_t, 4> timers{1, 4, 20, 400};

template <class Wheel>
void run(std::span<const std::uint8_t> input) {
    byte_choices choices(input);
    const geometry& shape = shapes[choices.below(shapes.size())];
    const std::size_t count = timers[choices.below(timers.size())];
    pawl_test::backend_lockstep<Wheel, byte_choices> both(choices, shape, count);
    while (!choices.empty())
        both.step();
    both.finish();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    run<pawl::time::hierarchical_wheel>({data, size});
    run<pawl::time::binary_wheel>({data, size});
    return 0;
}
