// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Counts the units that drain a shard's due queue, and owns the memory in which they are queued.
///
/// Model
///   A runner is a unit, queued or running, that completes a fixed number of entries. There is one
///   for each such portion of the queue, up to `most`. A runner that leaves entries behind is
///   queued again, after the I/O that is ready by then (P6). Tokens are added when a wait is
///   started, as room in the due queue is, so that neither an expiry nor a cancel needs memory.
///
/// Threads
///   Guarded by the shard's lock.
#ifndef PAWL_SERVICE_RUNNER_POOL_HPP
#define PAWL_SERVICE_RUNNER_POOL_HPP

#include <pawl/service/runner_token.hpp>

#include <pawl/config.hpp>

#include <cstddef>
#include <utility>

namespace pawl::detail {

class runner_pool {
public:
    static constexpr std::size_t most = 64;

    /// Tokens for some runners.
    struct part {
        static constexpr std::size_t length = 16;

        runner_token tokens[length];
        part* next = nullptr; ///< owned
    };

    /// @param per_turn entries that a runner completes. @param host runs the runners.
    runner_pool(std::size_t per_turn, runner_host* host) noexcept
        : per_turn_(per_turn), host_(host) {
        give_back_all(first_);
    }
    runner_pool& operator=(runner_pool&&) = delete;
    ~runner_pool() {
        while (part* const p = first_.next) {
            first_.next = p->next;
            delete p;
        }
    }

    /// True if there is a token for each runner that so many entries need.
    [[nodiscard]] bool has_room_for(std::size_t entries) const noexcept { return entries <= room_; }

    /// Takes ownership.
    void add_room(part& p) noexcept {
        p.next = std::exchange(first_.next, &p);
        give_back_all(p);
    }

    [[nodiscard]] std::size_t count() const noexcept { return count_; }

    /// Whether more runners are needed, for `entries` or to continue an expiry that stopped
    /// halfway.
    [[nodiscard]] bool wants_more(std::size_t entries, bool backlog) const noexcept {
        if (entries == 0)
            return backlog && count_ == 0;
        return count_ * per_turn_ < entries && count_ < most;
    }

    /// Claims the runners that are needed and prepends them to `list`, for the caller to queue.
    /// @pre there is room for the entries.
    void claim(std::size_t entries, bool backlog, runner_token*& list) noexcept {
        while (wants_more(entries, backlog))
            claim_one_more(list);
    }

    /// Claims one runner.
    /// @pre there are none.
    void claim_one_more(runner_token*& list) noexcept {
        PAWL_ASSERT(free_);
        ++count_;
        runner_token* const token = std::exchange(free_, free_->next);
        token->next = std::exchange(list, token);
    }

    /// The caller offers to be a runner.
    /// @return true if it now is one.
    [[nodiscard]] bool claim_one(std::size_t entries, bool backlog) noexcept {
        const bool wanted = wants_more(entries, backlog);
        count_ += wanted;
        return wanted;
    }

    /// A runner ends. `token` is the token it was queued with; nullptr if it was not queued.
    void retire(runner_token* token) noexcept {
        --count_;
        if (token)
            give_back(token);
    }

private:
    void give_back(runner_token* token) noexcept { token->next = std::exchange(free_, token); }

    void give_back_all(part& p) noexcept {
        for (runner_token& t : p.tokens) {
            t.host = host_;
            give_back(&t);
        }
        tokens_ += part::length;
        room_ = tokens_ < most ? tokens_ : ~std::size_t{0};
    }

    std::size_t count_ = 0;
    std::size_t room_ = 0; ///< for so many entries
    const std::size_t per_turn_;
    runner_host* const host_;
    runner_token* free_ = nullptr;
    std::size_t tokens_ = 0; ///< free or not
    part first_;
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_RUNNER_POOL_HPP
