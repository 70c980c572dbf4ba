// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   pawl::timeout_stream in strands, while other threads post calls to those strands, deliver the
//   waits of the streams, and call expire_all().
//
// Model
//   The layer below is in memory, and reports the stream's calls to it. Each end of an operation
//   has a cause: the peer, the caller, or else a limit, which must have been reached at that very
//   moment. The result of the handler must follow from the cause. An operation that starts after a
//   limit for everything was reached must be refused. An operation that starts after the stream was
//   idle for too long may be refused.
//   The model reads the clock before the stream does, so its limits are never later than those of
//   the stream. It does not measure how late a limit acts. If a limit never acts, run() does not
//   return.
//
// Threads
//   A stream and its state belong to a strand, or to a context that one thread runs. Other threads
//   construct streams, and post functions.

#ifndef PAWL_TEST_SIMULATION_THREADS_STREAMS_HPP
#define PAWL_TEST_SIMULATION_THREADS_STREAMS_HPP

#include "simulation/threads/company.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace simulation::threads {

class streams final : public feature {
public:
    explicit streams(company c);
    ~streams() override;

    void operate(random_source& random, arena& a) override;
    void close(ending how) override;
    void leave() override;
    tally check(const settings& clock) override;

private:
    struct operation;
    struct stream;
    struct place {
        std::mutex mutex;
        stream* last = nullptr;
        bool closed = false;
    };

    stream& make(random_source& random, arena& a);

    std::array<place, 3> places_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<stream>> streams_; ///< with signals, which outlive all contexts
};

} // namespace simulation::threads

#endif
