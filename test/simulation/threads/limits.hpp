// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Operations under pawl::timeout and pawl::cancel_after, pawl::timeout_at and pawl::cancel_at, in
//   strands, while other threads end them, cancel them, and move or lift their limits, by functions
//   that they post to the strand.
//
// Model
//   An operation is a wait on a timer, or one that ends when it is told to, and obeys cancellation at
//   once, later, or never. Of the latter kind all is seen: its handler must be told exactly what
//   follows from who has cancelled it first, and from how it has ended. Of a wait only its end is seen:
//   it must not be told of a time that has not come, nor of a cancellation that nobody has made.
//   An operation must not start under a pawl::deadline that has passed.
//
// Threads
//   The state of an operation belongs to its strand. One thread may start it elsewhere, before
//   others know it: what follows is ordered by the library alone.

#ifndef PAWL_TEST_SIMULATION_THREADS_LIMITS_HPP
#define PAWL_TEST_SIMULATION_THREADS_LIMITS_HPP

#include "simulation/threads/company.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace simulation::threads {

class limits {
public:
    explicit limits(company c);
    ~limits();

    /// Starts an operation in the strand of `a`, or does something to another one.
    void operate(random_source& random, arena& a);

    enum class ending { nothing, endless, everything };
    /// Starts nothing any more. Ends nothing, or what would not end by itself, or everything.
    void close(ending what);
    /// Destroys the operations that have not ended, as I/O objects are before their context.
    void leave();
    /// All threads have ended. @return how many operations there were.
    std::size_t check();

private:
    struct operation;
    struct place {
        std::mutex mutex;
        operation* last = nullptr;
        bool closed = false;
    };

    operation& make(random_source& random, arena& a);

    const company company_;
    std::array<place, 4> places_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<operation>>
        operations_; ///< with their signals, which outlive all contexts
};

} // namespace simulation::threads

#endif
