// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Counts the units that drain a shard's due queue, and owns the memory in which they are queued.
///
/// Model
///   A runner is a unit, queued or running, that completes a fixed number of entries. For each such
///   portion of the queue one is queued, up to `most`. A runner that leaves entries behind is
///   queued again, after the I/O that is ready by then (P6). Tokens are added when a wait is
///   started, as room in the due queue is, so that neither an expiry nor a cancel needs memory.
///
///   A handler may run the context in a loop of its own. There no runner comes that the frames
///   around this loop hold: one in the middle of its turn, and, if one thread runs the context, one
///   that was queued in such a frame (Asio then keeps it in a queue of that frame). So these
///   runners are set aside, and others are queued in their place. The second kind is known by its
///   ticket: a context runs units in the order in which they are queued, so a unit that begins
///   before an older one has overtaken it. If another thread then begins the older one, it was not
///   held, nor is any other: several threads run the context, and Asio holds no units; or that
///   thread has taken the context over. So the pool counts as shared, and overtaking means nothing,
///   until a thread queues a runner in another call of the context than the last one: it runs a
///   loop, and the frame around it may hold units.
///
///   A runner of one entry each is queued for whatever becomes due in the loop, and finds out. With
///   more entries for each, those that are held may seem to be enough. So it is noted in which call
///   of the context the last one was queued: in another call of the same thread, one more is.
///
/// Threads
///   Guarded by the shard's lock.
#ifndef PAWL_DETAIL_SERVICE_RUNNER_POOL_HPP
#define PAWL_DETAIL_SERVICE_RUNNER_POOL_HPP

#include <pawl/detail/service/optional_mutex.hpp>
#include <pawl/detail/service/own_block.hpp>

#include <pawl/config.hpp>

#include <boost/asio/detail/thread_context.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pawl::detail {

class runner_target;

/// The right to queue one unit, with the memory for it: queueing does not allocate.
struct runner_token {
#if defined(_WIN32)
    using block_type = own_block<96>; // Asio's operations begin with an OVERLAPPED
#else
    using block_type = own_block<64>;
#endif

    runner_target* target = nullptr;
    runner_token* next = nullptr;
    std::uint64_t ticket = 0; ///< its place in the order in which tokens are queued
    block_type block;         ///< free again before run() is called, which hands the token back
};

/// What a runner runs.
class runner_target {
public:
    virtual void run(runner_token& token) = 0;

protected:
    ~runner_target() = default;
};

class runner_pool {
public:
    static constexpr std::size_t most = 64;

    /// Tokens for some runners.
    struct part {
        static constexpr std::size_t length = 16;

        runner_token tokens[length];
        part* next = nullptr; ///< owned
    };

    /// @param per_turn entries that a runner completes. @param target runs them.
    runner_pool(std::size_t per_turn, runner_target* target) noexcept
        : per_turn_(per_turn), rest_of_turn_(per_turn - 1), target_(target) {
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

    /// Including those that are set aside.
    [[nodiscard]] std::size_t count() const noexcept { return count_ + aside_; }

    /// Whether more runners are needed, for `entries` or to continue an expiry that stopped
    /// halfway.
    [[nodiscard]] bool wants_more(std::size_t entries, bool backlog) const noexcept {
        // The next runner counts for one entry, since the handler of that may run a loop. So does
        // the one that continues an expiry.
        const std::size_t needed = entries + backlog;
        return needed != 0 && count_ * per_turn_ < needed + rest_of_turn_ && count_ < most;
    }

    /// Claims the runners that are needed and adds them to `list`, for the caller to queue.
    /// @pre there is room for the entries.
    void claim(std::size_t entries, bool backlog, runner_token*& list) noexcept {
        runner_token** last = &list;
        while (wants_more(entries, backlog) && free_)
            last = &append_one(last)->next;
    }

    /// Claims one runner.
    /// @pre a token is free.
    void claim_one_more(runner_token*& list) noexcept { append_one(&list); }

    /// The caller offers to be a runner.
    /// @return true if it now is one.
    [[nodiscard]] bool claim_one(std::size_t entries, bool backlog) noexcept {
        const bool wanted = wants_more(entries, backlog);
        count_ += wanted;
        return wanted;
    }

    /// The same where a handler may run the context. What the caller queues comes after its
    /// handler, so it becomes a runner only if it has nothing to queue.
    [[nodiscard]] bool claim_lone(std::size_t entries, bool backlog) noexcept {
        return (count() == 0 ? entries <= 1 : !free_) && claim_one(entries, backlog);
    }

    /// The caller becomes a runner, needed or not.
    void join() noexcept { ++count_; }

    /// If all runners that are needed have been queued before, queues another one, which finds out
    /// whether they are held.
    void claim_to_find_out(std::size_t entries, runner_token*& list) noexcept {
        if (count() != 0 && free_ && !wants_more(entries, false))
            claim_one_more(list);
    }

    /// The same if the last one was queued by this thread, in another call of the context: a frame
    /// around this one, perhaps.
    void claim_if_held(std::size_t entries, runner_token*& list) noexcept {
        if (rest_of_turn_ != 0 && entries != 0) [[unlikely]]
            claim_beside_other_frame(entries, list);
    }

    /// A runner that was queued begins.
    /// @return true if it has overtaken others. Then it runs no handler, since the units that it
    ///         queues in their place would come after that.
    [[nodiscard]] bool begin(const runner_token& token) noexcept {
        if (token.ticket == next_) [[likely]] {
            ++next_;
            return false;
        }
        return begin_out_of_order(token.ticket);
    }

    /// A runner is about to invoke a handler in the middle of its turn.
    void set_aside() noexcept {
        PAWL_ASSERT(count_ != 0);
        --count_;
        ++aside_;
        set_room();
    }
    /// It is not any more.
    void rely_on() noexcept {
        PAWL_ASSERT(aside_ > (shared_ ? 0 : passed_));
        ++count_;
        --aside_;
        set_room();
    }

    /// A runner ends. `token` is the token it was queued with; nullptr if it was not queued.
    void retire(runner_token* token) noexcept {
        PAWL_ASSERT(count_ != 0);
        --count_;
        if (token)
            give_back(token);
    }

private:
    /// A thread, and the innermost call by which it runs a context, or null.
    struct frame {
        static frame here() noexcept { return {this_thread(), innermost_call()}; }
        static const void* innermost_call() noexcept {
            // Asio has no public name for such a call.
            return boost::asio::detail::thread_context::top_of_thread_call_stack();
        }

        const void* thread = nullptr;
        const void* call = nullptr;
    };

    /// Whether a frame around this one may have queued the last runner.
    [[nodiscard]] bool beside_other_frame(const frame& here) const noexcept {
        return here.call && queued_in_.thread == here.thread && queued_in_.call != here.call;
    }

    PAWL_DETAIL_COLD void claim_beside_other_frame(std::size_t entries,
                                                   runner_token*& list) noexcept {
        if (beside_other_frame(frame::here()))
            claim_to_find_out(entries, list);
    }

    /// A runner is queued here.
    void note_frame() noexcept {
        if (frame::innermost_call() != queued_in_.call) [[unlikely]]
            note_other_frame();
    }

    PAWL_DETAIL_COLD void note_other_frame() noexcept {
        const frame here = frame::here();
        if (!here.call)
            return; // Asio holds nothing for this thread
        if (shared_ && beside_other_frame(here)) {
            shared_ = false;
            overtaker_ = here.thread;
            set_aside_passed(passed_);
        }
        queued_in_ = here;
    }

    PAWL_DETAIL_COLD bool begin_out_of_order(std::uint64_t ticket) noexcept {
        const void* const here = frame::here().thread;
        if (ticket > next_) {
            const auto passed = static_cast<std::size_t>(ticket - next_);
            next_ = ticket + 1;
            passed_ += passed;
            if (shared_)
                return false;
            overtaker_ = here;
            set_aside_passed(passed);
            return true;
        }
        // It comes after all.
        PAWL_ASSERT(passed_ != 0);
        if (!shared_) {
            shared_ = overtaker_ != here;
            const std::size_t back = shared_ ? passed_ : 1;
            aside_ -= back;
            count_ += back;
            set_room();
        }
        --passed_;
        return false;
    }

    /// So many runners may be held.
    void set_aside_passed(std::size_t n) noexcept {
        aside_ += n;
        count_ -= n;
        set_room();
    }

    /// Room for one runner at least, whatever is set aside.
    void set_room() noexcept {
        const std::size_t left = tokens_ - std::min(tokens_, aside_ + 1);
        room_ = left < most ? left : ~std::size_t{0};
    }

    /// @param last the first link of a list, or the last link of what was added to it. What was
    ///        there before comes last: that is rare, and then taken for overtaken for a while.
    runner_token* append_one(runner_token** last) noexcept {
        PAWL_ASSERT(free_);
        ++count_;
        runner_token* const token = std::exchange(free_, free_->next);
        token->ticket = tickets_++;
        token->next = std::exchange(*last, token);
        if (rest_of_turn_ != 0 || shared_) [[unlikely]]
            note_frame();
        return token;
    }

    void give_back(runner_token* token) noexcept { token->next = std::exchange(free_, token); }

    void give_back_all(part& p) noexcept {
        for (runner_token& t : p.tokens) {
            t.target = target_;
            give_back(&t);
        }
        tokens_ += part::length;
        set_room();
    }

    std::size_t count_ = 0;           ///< relied on
    std::size_t aside_ = 0;           ///< not relied on
    std::uint64_t tickets_ = 0;       ///< given out
    std::uint64_t next_ = 0;          ///< the oldest that has neither begun nor been overtaken
    std::size_t passed_ = 0;          ///< overtaken; set aside, unless shared_
    bool shared_ = false;             ///< to overtake means nothing
    const void* overtaker_ = nullptr; ///< the last thread that did
    frame queued_in_;                 ///< the last one, if shared_ or with several entries each
    std::size_t room_ = 0;            ///< for so many entries
    const std::size_t per_turn_;
    const std::size_t rest_of_turn_;
    runner_target* const target_;
    runner_token* free_ = nullptr;
    std::size_t tokens_ = 0; ///< free or not
    part first_;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_RUNNER_POOL_HPP
