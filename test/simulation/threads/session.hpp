// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The threads of one seed. See main.cpp.

#ifndef PAWL_TEST_SIMULATION_THREADS_SESSION_HPP
#define PAWL_TEST_SIMULATION_THREADS_SESSION_HPP

#include "simulation/random.hpp"

#include <cstdint>
#include <string>

namespace simulation::threads {

struct totals {
    std::uint64_t waits = 0;
    std::uint64_t calls = 0; ///< on timers, and expire_all()
    std::uint64_t units = 0; ///< that io_contexts ran
};

/// The choices of the seed in progress.
extern std::string about;

/// Runs one seed, or the bytes of a fuzzer. Fails if a promise is broken.
totals run(const random_source& random);

} // namespace simulation::threads

#endif
