// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Interval timers that several threads use, each behind a mutex, while others deliver their ticks.
//
// Model
//   A wait succeeds neither before the tick that was scheduled when it began, nor before what the
//   interval was set to meanwhile. As many waits are told operation_aborted as cancel() has counted.
//   Where one wait follows the other, and nothing but that moves the ticks, their sum is the time of
//   the next one.

#ifndef PAWL_TEST_SIMULATION_THREADS_INTERVALS_HPP
#define PAWL_TEST_SIMULATION_THREADS_INTERVALS_HPP

#include "simulation/threads/company.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace simulation::threads {

class intervals {
public:
    explicit intervals(company c);
    ~intervals();

    /// Does something to an interval, or makes one in `a`.
    void operate(random_source& random, arena& a);

    enum class ending { nothing, cancel, destroy };
    /// Does nothing any more.
    void close(ending how);
    /// Destroys those in a strand, which must not outlive their context.
    void leave();

    struct totals {
        std::size_t waits = 0;
        std::size_t expired = 0; ///< that were told of expire_all()
    };
    /// All threads have ended.
    totals check();

private:
    struct tick_wait;
    struct book;
    struct place;

    void make(random_source& random, place& p, arena& a);
    static void drop(place& p);
    void begin_wait(random_source& random, place& p);
    void check(const book& b, totals& t) const;

    const company company_;
    std::array<std::unique_ptr<place>, 3> places_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<book>> books_;
};

} // namespace simulation::threads

#endif
