// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The service against a model, on virtual time: the bytes are the choices of the simulation
// (test/simulation), which makes a program of them and checks P1 to P10 after each step. The first
// byte chooses whether several threads make the timers, so that several shards fill.
//
// To see the steps: PAWL_TRACE=1.

#include "simulation/makers.hpp"
#include "simulation/report.hpp"
#include "simulation/scenario.hpp"
#include "simulation/world.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    simulation::on_failure = [](const std::string& text) {
        std::fprintf(stderr, "%s\n", text.c_str());
        std::abort(); // the fuzzer keeps the input
    };
    simulation::world::trace = std::getenv("PAWL_TRACE") != nullptr;
    simulation::makers::instance(); // the same process for each input: locks are always taken

    pawl_test::byte_choices choices({data, size});
    const bool threads = choices.below(2) != 0;
    simulation::run(simulation::generate(simulation::random_source(choices), threads));
    return 0;
}
