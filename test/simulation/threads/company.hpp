// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The services of the session for alarms, limits, intervals and streams.

#ifndef PAWL_TEST_SIMULATION_THREADS_COMPANY_HPP
#define PAWL_TEST_SIMULATION_THREADS_COMPANY_HPP

#include "simulation/random.hpp"
#include "simulation/threads/arena.hpp"

#include <cstdint>
#include <functional>

namespace simulation::threads {

struct company {
    bool hastens = false;   ///< expire_all() is called
    bool abandoned = false; ///< the context is destroyed with waits pending
    bool delivers = false;  ///< and their handlers are told

    std::function<std::function<void()>(random_source&)> then; ///< the action of a handler, or null
    std::function<destination(random_source&)> bound;          ///< for a handler
    std::function<std::int64_t(random_source&)> duration;      ///< in nanoseconds
};

} // namespace simulation::threads

#endif
