// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// The units that a shard queues on its context, independent of how.
#ifndef PAWL_DETAIL_SERVICE_RUNNER_TOKEN_HPP
#define PAWL_DETAIL_SERVICE_RUNNER_TOKEN_HPP

#include <pawl/detail/service/own_block.hpp>

#include <cstdint>

namespace pawl::detail {

class runner_host;

/// The right to queue one unit, with the memory for it: queueing does not allocate.
struct runner_token {
#if defined(_WIN32)
    using block_type = own_block<96>; // Asio's operations begin with an OVERLAPPED
#else
    using block_type = own_block<64>;
#endif

    runner_host* host = nullptr;
    runner_token* next = nullptr;
    std::uint64_t ticket = 0; ///< its place in the order in which tokens are queued
    block_type block;         ///< free again before run() is called, which hands the token back
};

/// Runs a unit.
class runner_host {
public:
    virtual void run(runner_token& token) = 0;

protected:
    ~runner_host() = default;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_RUNNER_TOKEN_HPP
