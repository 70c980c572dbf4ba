// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Readers of the event feeds of the contexts. One of each feed is there from the beginning, and
//   one may sleep in async_read() on a strand; others join, read, are suspended, resume and leave
//   while the timers are used. A feed overwrites what a slow reader has not read: rings of many
//   sizes, and names, which take room beside their events.
//
// Model
//   Conservation. What a reader has read and missed is what was published while it was there:
//   exactly for the first reader, for the others as exactly as the moment of joining is known. Of
//   the waits that were armed each has ended once, if no event was missed.

#ifndef PAWL_TEST_SIMULATION_THREADS_FEEDS_HPP
#define PAWL_TEST_SIMULATION_THREADS_FEEDS_HPP

#include "simulation/threads/company.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace simulation::threads {

class feeds final : public feature {
public:
    /// Before any timer is used.
    feeds(random_source& random, company c, const std::vector<std::unique_ptr<arena>>& arenas);
    ~feeds() override;

    void operate(random_source& random, arena& a) override;
    void close(ending how) override;
    void leave() override;
    tally check(const settings& clock) override;

private:
    struct watcher;
    struct sleeper;
    struct source;

    std::vector<std::unique_ptr<source>> sources_;
};

} // namespace simulation::threads

#endif
