// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#ifndef PAWL_TEST_SIMULATION_SHRINK_HPP
#define PAWL_TEST_SIMULATION_SHRINK_HPP

#include "simulation/scenario.hpp"

#include <functional>

namespace simulation {

/// A scenario as small as can be found of which `fails` still holds: steps, what handlers do, and
/// options are taken away one after the other until nothing more can be.
/// @param goes_on is asked before each try.
[[nodiscard]] scenario shrink(scenario s, const std::function<bool(const scenario&)>& fails,
                              const std::function<bool()>& goes_on);

} // namespace simulation

#endif
