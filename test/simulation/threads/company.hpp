// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// What threads use besides timers: alarms, limits, groups, intervals, streams, queues and feeds; and
// the services of the session for them.

#ifndef PAWL_TEST_SIMULATION_THREADS_COMPANY_HPP
#define PAWL_TEST_SIMULATION_THREADS_COMPANY_HPP

#include "simulation/random.hpp"
#include "simulation/threads/arena.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace simulation::threads {

/// How everything ends.
enum class ending {
    expiry,     ///< all waits expire
    cancel,     ///< they are cancelled
    destroy,    ///< the timers are destroyed
    expire_all, ///< of every context
    abandon,    ///< the context is stopped and destroyed
};

/// The services of the session.
struct company {
    bool hastens = false;   ///< expire_all() is called
    bool abandoned = false; ///< the context is destroyed with waits pending
    bool delivers = false;  ///< and their handlers are told

    std::function<std::function<void()>(random_source&)> then; ///< the action of a handler, or null
    std::function<destination(random_source&)> bound;          ///< for a handler
    std::function<std::int64_t(random_source&)> duration;      ///< in nanoseconds
};

class settings;

/// What was done with a feature.
struct tally {
    std::size_t waits = 0;
    std::size_t expired = 0;   ///< waits that were told the error of expire_all()
    std::size_t perhaps = 0;   ///< others that it may have counted
    std::size_t each_time = 0; ///< the same, in each of its calls
};

/// Something other than a timer. It outlives all contexts, because its signals must.
class feature {
public:
    feature(company c, const char* n) : name(n), company_(std::move(c)) {}
    feature(const feature&) = delete;
    feature& operator=(const feature&) = delete;
    virtual ~feature() = default;

    /// Operates on one, or makes one in `a`.
    virtual void operate(random_source& random, arena& a) = 0;
    /// Stops operating. Ends what would not end by itself, or what `how` tells.
    virtual void close(ending how) = 0;
    /// Destroys what must not outlive its context.
    virtual void leave() = 0;
    /// All contexts have ended, or will run nothing that was started before.
    virtual void finish() {}
    /// All other threads have ended. Fails if a promise is broken.
    virtual tally check(const settings& clock) = 0;

    const char* const name;

protected:
    const company company_;
};

} // namespace simulation::threads

#endif
