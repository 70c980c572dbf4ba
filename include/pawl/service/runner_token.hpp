// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// The units that a shard has queued on its context, without saying how.
#ifndef PAWL_SERVICE_RUNNER_TOKEN_HPP
#define PAWL_SERVICE_RUNNER_TOKEN_HPP

#include <cstddef>

namespace pawl::detail {

class runner_host;

/// The right to have one unit queued on the context, and the memory for it: queueing does not
/// allocate.
struct runner_token {
    runner_host* host = nullptr;
    runner_token* next = nullptr;
    alignas(std::max_align_t) std::byte block[64];
};

/// Runs a unit.
class runner_host {
public:
    virtual void run(runner_token& token) = 0;

protected:
    ~runner_host() = default;
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_RUNNER_TOKEN_HPP
