// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// The units that a shard has queued on its context, without saying how.
#ifndef PAWL_SERVICE_RUNNER_TOKEN_HPP
#define PAWL_SERVICE_RUNNER_TOKEN_HPP

#include <pawl/service/own_block.hpp>

namespace pawl::detail {

class runner_host;

/// The right to have one unit queued on the context, and the memory for it: queueing does not
/// allocate.
struct runner_token {
    using block_type = own_block<64>;

    runner_host* host = nullptr;
    runner_token* next = nullptr;
    block_type block; ///< free whenever the token is being queued
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
