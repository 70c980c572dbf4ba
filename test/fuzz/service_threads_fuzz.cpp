// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The service with several threads, in real time: the first bytes choose contexts, options and
// types; each of the two to four threads that make calls, and the one that moves clocks, has a share
// of the others (test/simulation/threads). What must hold in any order is checked at the end. The
// bytes choose the calls, not their order: a failing input may have to be run many times.

#include "simulation/report.hpp"
#include "simulation/threads/session.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    simulation::on_failure = [](const std::string& text) {
        std::fprintf(stderr, "%s\n%s\n", text.c_str(), simulation::threads::about.c_str());
        std::abort(); // the fuzzer keeps the input
    };
    simulation::threads::run(simulation::random_source(pawl_test::byte_choices({data, size})));
    return 0;
}
