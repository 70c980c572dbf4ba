// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#ifndef PAWL_TEST_SIMULATION_SHRINK_HPP
#define PAWL_TEST_SIMULATION_SHRINK_HPP

#include "simulation/scenario.hpp"

#include <functional>

namespace simulation {

/// The smallest scenario that can be found for which `fails` still holds: steps, actions of
/// handlers, and options are removed one after the other until no removal is possible.
/// @param goes_on is asked before each try.
[[nodiscard]] scenario shrink(scenario s, const std::function<bool(const scenario&)>& fails,
                              const std::function<bool()>& goes_on);

} // namespace simulation

#endif
