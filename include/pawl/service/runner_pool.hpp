// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Counts the units that drain the due queue of a shard, and owns the memory with which they are
///   queued.
///
/// Model
///   A runner is a unit that is queued on the context, or running, and that completes a fixed
///   number of entries. There is one for each such portion of the queue, but never more than
///   `most`: a runner that leaves entries behind is queued again, behind the I/O that is ready by
///   then (P6).
///
/// Threads
///   Guarded by the lock of the shard.
#ifndef PAWL_SERVICE_RUNNER_POOL_HPP
#define PAWL_SERVICE_RUNNER_POOL_HPP

#include <pawl/service/runner_token.hpp>

#include <cstddef>
#include <utility>

namespace pawl::detail {

class runner_pool {
public:
    static constexpr std::size_t most = 64;

    /// @param per_turn entries that a runner completes. @param host runs the runners.
    runner_pool(std::size_t per_turn, runner_host* host) noexcept : per_turn_(per_turn) {
        for (runner_token& t : tokens_) {
            t.host = host;
            give_back(&t);
        }
    }

    [[nodiscard]] std::size_t count() const noexcept { return count_; }

    /// More runners are needed for `entries`, or to go on with an expiry that stopped halfway.
    [[nodiscard]] bool wants_more(std::size_t entries, bool backlog) const noexcept {
        if (entries == 0)
            return backlog && count_ == 0;
        return count_ * per_turn_ < entries && count_ < most;
    }

    /// Adds the runners that are needed to the front of `list`, for the caller to queue.
    void claim(std::size_t entries, bool backlog, runner_token*& list) noexcept {
        while (wants_more(entries, backlog))
            claim_one_more(list);
    }

    /// @pre there are none.
    void claim_one_more(runner_token*& list) noexcept {
        ++count_;
        runner_token* const token = std::exchange(free_, free_->next);
        token->next = std::exchange(list, token);
    }

    /// The caller offers to be a runner itself.
    /// @return true if the caller is one.
    [[nodiscard]] bool claim_one(std::size_t entries, bool backlog) noexcept {
        const bool wanted = wants_more(entries, backlog);
        count_ += wanted;
        return wanted;
    }

    /// A runner ends. `token` is what it was queued with; nullptr if it was not queued.
    void retire(runner_token* token) noexcept {
        --count_;
        if (token)
            give_back(token);
    }

private:
    void give_back(runner_token* token) noexcept { token->next = std::exchange(free_, token); }

    std::size_t count_ = 0;
    const std::size_t per_turn_;
    runner_token tokens_[most];
    runner_token* free_ = nullptr; ///< as many as there may be more runners
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_RUNNER_POOL_HPP
