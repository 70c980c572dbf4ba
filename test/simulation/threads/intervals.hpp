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

class intervals final : public feature {
public:
    explicit intervals(company c);
    ~intervals() override;

    void operate(random_source& random, arena& a) override;
    void close(ending how) override;
    void leave() override;
    tally check(const settings& clock) override;

private:
    struct tick_wait;
    struct book;
    struct place;

    void make(random_source& random, place& p, arena& a);
    static void drop(place& p);
    void begin_wait(random_source& random, place& p);
    void check(const book& b, tally& t) const;

    std::array<std::unique_ptr<place>, 3> places_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<book>> books_;
};

} // namespace simulation::threads

#endif
