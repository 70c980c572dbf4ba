// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The functions that executors have submitted, in order.
///
/// Model
///   front block --> ... --> back block, to which push() appends
///
///   A block that was emptied is kept as the spare one, and used for the next that is needed. So a queue
///   that is emptied as fast as it is filled does not allocate, and stays in the cache; and what a burst
///   has taken is given back.
///
/// Threads
///   push() is called under the owner's lock, by any thread; take() by one thread at a time, without
///   it, for what it has seen in pushed(). So it reads no place that is being written to.
///
/// Cost
///   push(): O(1), one block for each 64 functions if there is no spare one. Nothing that stands in the
///   queue is moved. take(): O(1).
#ifndef PAWL_QUEUE_FUNCTION_QUEUE_HPP
#define PAWL_QUEUE_FUNCTION_QUEUE_HPP

#include <pawl/queue/queued_function.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pawl::detail {

/// @tparam BlockLength functions in a block: few in tests.
template <std::size_t BlockLength = 64>
class function_queue {
public:
    function_queue() = default;
    function_queue(const function_queue&) = delete;
    function_queue& operator=(const function_queue&) = delete;
    /// Destroys the functions, in order.
    ~function_queue() {
        clear();
        delete front_;
        delete spare_.load(std::memory_order_relaxed);
    }

    /// @throws std::bad_alloc, with `f` as it was.
    void push(queued_function&& f) {
        if (!back_) {
            front_ = back_ = new block;
        } else if (back_at_ == BlockLength) {
            // acquire: whoever has emptied it does not read it any more.
            block* added = spare_.exchange(nullptr, std::memory_order_acquire);
            if (!added)
                added = new block;
            back_->next = added;
            back_ = added;
            back_at_ = 0;
        }
        back_->functions[back_at_++] = std::move(f);
        // release: for take(), which reads what was written.
        pushed_.store(pushed_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }

    /// How many there have been. From any thread.
    [[nodiscard]] std::uint64_t pushed() const noexcept {
        return pushed_.load(std::memory_order_acquire);
    }
    /// How many were taken. From any thread.
    [[nodiscard]] std::uint64_t taken() const noexcept {
        return taken_.load(std::memory_order_seq_cst);
    }
    /// How many are there.
    [[nodiscard]] std::size_t size() const noexcept {
        // In this order: what is there was not all taken then.
        const std::uint64_t gone = taken();
        return static_cast<std::size_t>(pushed() - gone);
    }

    /// The next one.
    /// @pre this thread has seen that size() is not 0.
    [[nodiscard]] queued_function take() noexcept {
        if (front_at_ == BlockLength) {
            block* const emptied = std::exchange(front_, front_->next);
            front_at_ = 0;
            block* none = nullptr;
            // release: the block is not read any more.
            if (!spare_.compare_exchange_strong(none, emptied, std::memory_order_release,
                                                std::memory_order_relaxed))
                delete emptied;
        }
        // seq_cst: see watch().
        taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
        return std::move(front_->functions[front_at_++]);
    }

    /// From now on the one that takes looks whether it has taken the last one. Who calls this looks at
    /// size() then: so one of the two sees that nothing is there.
    void watch() noexcept { watched_.store(true, std::memory_order_seq_cst); }
    /// Whether somebody has called watch().
    [[nodiscard]] bool watched() const noexcept { return watched_.load(std::memory_order_seq_cst); }

    /// Destroys them. @pre as for take(), and nobody pushes.
    void clear() noexcept {
        while (size() != 0)
            (void)take();
    }

private:
    static constexpr std::size_t cache_line = 64;

    struct block {
        queued_function functions[BlockLength];
        block* next = nullptr;
    };

    // Of those that push.
    block* back_ = nullptr;
    std::size_t back_at_ = 0;
    std::atomic<std::uint64_t> pushed_{0};

    // Of the one that takes. A line of its own, or else each push waits for it.
    alignas(cache_line) block* front_ = nullptr;
    std::size_t front_at_ = 0;
    std::atomic<std::uint64_t> taken_{0};
    std::atomic<bool> watched_{false};
    std::atomic<block*> spare_{nullptr};
};

} // namespace pawl::detail

#endif // PAWL_QUEUE_FUNCTION_QUEUE_HPP
