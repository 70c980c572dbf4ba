// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Operations under pawl::timeout and pawl::cancel_after, pawl::timeout_at and pawl::cancel_at, in
//   strands, while other threads end them, cancel them, and move or lift their limits, by functions
//   that they post to the strand.
//
// Model
//   An operation is a wait on a timer, or one that ends on request, and obeys cancellation at once,
//   later, or never. The latter kind is observed completely: the result of its handler must follow
//   exactly from the first canceller, and from its own end. Of a wait only its end is observed: its
//   result must not be a time that has not come, or a cancellation without a canceller.
//   An operation must not start under a pawl::deadline that has passed.
//
// Threads
//   The state of an operation belongs to its strand. A thread may start it elsewhere, before others
//   know it: only the library orders the steps that follow.

#ifndef PAWL_TEST_SIMULATION_THREADS_LIMITS_HPP
#define PAWL_TEST_SIMULATION_THREADS_LIMITS_HPP

#include "simulation/threads/company.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace simulation::threads {

class limits final : public feature {
public:
    explicit limits(company c);
    ~limits() override;

    void operate(random_source& random, arena& a) override;
    void close(ending how) override;
    void leave() override;
    tally check(const settings& clock) override;

private:
    struct operation;
    struct place {
        std::mutex mutex;
        operation* last = nullptr;
        bool closed = false;
    };

    operation& make(random_source& random, arena& a);

    std::array<place, 4> places_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<operation>>
        operations_; ///< with their signals, which outlive all contexts
};

} // namespace simulation::threads

#endif
