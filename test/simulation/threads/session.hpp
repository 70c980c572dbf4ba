// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The threads of one seed. See main.cpp.

#ifndef PAWL_TEST_SIMULATION_THREADS_SESSION_HPP
#define PAWL_TEST_SIMULATION_THREADS_SESSION_HPP

#include "simulation/random.hpp"
#include "simulation/report.hpp"

#include <functional>
#include <string>

namespace simulation::threads {

/// The choices of the seed in progress.
extern std::string about;

/// Runs one seed, or the bytes of a fuzzer. Fails if a promise is broken.
/// @param begins is called when `about` is known.
totals run(
    const random_source& random, const std::function<void()>& begins = [] {});

} // namespace simulation::threads

#endif
