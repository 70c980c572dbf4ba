// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Groups in groups, whose members come and go in strands, while other threads cancel, destroy and
//   await the groups, and move, cancel and destroy the timers of their members.
//
// Model
//   A member is a wait in a strand, perhaps under a limit inside or outside of the group. It ends
//   once: at its time, at its limit, or with a cause that somebody has given to its group or the one
//   around it; all members of a group are told the same one. A member that starts in its strand
//   after cancel() has returned does not succeed. When async_drained() completes, in the strand of
//   all members, those that had joined before that call have ended.

#ifndef PAWL_TEST_SIMULATION_THREADS_GROUPS_HPP
#define PAWL_TEST_SIMULATION_THREADS_GROUPS_HPP

#include "simulation/threads/company.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace simulation::threads {

class groups final : public feature {
public:
    explicit groups(company c);
    ~groups() override;

    void operate(random_source& random, arena& a) override;
    void close(ending how) override;
    void leave() override;
    tally check(const settings& clock) override;

private:
    struct book;
    struct member;
    struct drain;
    struct place;

    book& make(place& p, arena& a);
    void join(random_source& random, place& p);

    std::array<std::unique_ptr<place>, 3> places_; ///< the first is around the others
    std::mutex mutex_;                             ///< of the lists
    std::vector<std::unique_ptr<book>> books_;
    std::vector<std::unique_ptr<member>> members_;
    std::vector<std::unique_ptr<drain>> drains_;
};

} // namespace simulation::threads

#endif
