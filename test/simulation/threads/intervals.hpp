// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Interval timers that several threads use, each behind a mutex, while others deliver their ticks.
//
// Model
//   A wait succeeds neither before the tick that was scheduled when it started, nor before a time
//   to which the interval was set later. The number of operation_aborted equals the counts of
//   cancel(). If each wait follows the last one, and only waits move the ticks, then the sum of the
//   ticks gives the time of the next one.

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

    /// Operates on an interval, or makes one in `a`.
    void operate(random_source& random, arena& a);

    enum class ending { nothing, cancel, destroy };
    /// Stops operating.
    void close(ending how);
    /// Destroys intervals in a strand, which must not outlive their context.
    void leave();

    struct totals {
        std::size_t waits = 0;
        std::size_t expired = 0; ///< that got the error of expire_all()
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
