// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Event queues, on a context of the session or with timers of their own, each with a thread that
//   waits and processes, while other threads post, make timers, disarm and destroy them, and wait
//   for events.
//
// Model
//   Conservation. What is posted runs once. A one-off runs once, unless it was disarmed in time or
//   destroyed. The events of an interval, and the ticks that they stand for, are at least its ticks
//   until the last event, and at most those until now. Ticks that were dropped are among them. No
//   function runs after destroy(), nor before its event was due, nor is it destroyed twice.

#ifndef PAWL_TEST_SIMULATION_THREADS_QUEUES_HPP
#define PAWL_TEST_SIMULATION_THREADS_QUEUES_HPP

#include "simulation/threads/company.hpp"

#include <array>
#include <cstddef>
#include <memory>

namespace simulation::threads {

class queues final : public feature {
public:
    explicit queues(company c);
    ~queues() override;

    void operate(random_source& random, arena& a) override;
    void close(ending how) override;
    void leave() override;
    tally check(const settings& clock) override;

private:
    struct record;
    struct place;

    void make(random_source& random, place& p, arena& a);
    void add(random_source& random, place& p);
    static void process_rest(place& p);

    std::array<std::unique_ptr<place>, 2> places_;
};

} // namespace simulation::threads

#endif
