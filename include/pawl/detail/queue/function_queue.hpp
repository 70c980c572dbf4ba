// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The functions that executors have submitted, in order.
///
/// Model
///   front block --> ... --> back block, to which push() appends
///
///   One emptied block is kept as a spare and used for the next block needed. So a queue that is
///   emptied as fast as it is filled neither allocates nor leaves the cache, and the memory of a
///   burst is freed.
///
/// Threads
///   push(): any thread, under the owner's lock. take(): one thread at a time, without the lock,
///   for functions that pushed() shows. So it never reads a place that is being written.
///
/// Cost
///   push(): O(1), and one block per 64 functions if there is no spare. Functions in the queue are
///   never moved. take(): O(1).
#ifndef PAWL_DETAIL_QUEUE_FUNCTION_QUEUE_HPP
#define PAWL_DETAIL_QUEUE_FUNCTION_QUEUE_HPP

#include <pawl/config.hpp>

#include <pawl/detail/wait/wait_allocator.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace pawl::detail {

/// Any callable that can be moved, to be invoked once or destroyed. A trivially copyable one of at
/// most 40 bytes, such as a lambda with a few references, is stored inline. Any other one takes a
/// block, from the threads' cache (wait/wait_allocator.hpp) if it is small enough. So moving the
/// object calls nothing of the function, and is allowed under a lock.
class queued_function {
public:
    /// An empty object, as after a move.
    queued_function() noexcept = default;
    /// @throws std::bad_alloc, and what the function's own constructor throws.
    template <class F>
        requires(!std::is_same_v<std::decay_t<F>, queued_function>)
    explicit queued_function(F&& f) {
        using function = std::decay_t<F>;
        if constexpr (is_small<function>) {
            ::new (static_cast<void*>(room_)) function(std::forward<F>(f));
            does_ = &here<function>;
        } else {
            allocated_block<function, wait_allocator<function>> memory{wait_allocator<function>()};
            ::new (static_cast<void*>(room_)) function*(memory.make(std::forward<F>(f)));
            does_ = &elsewhere<function>;
        }
    }

    queued_function(queued_function&& other) noexcept : does_(std::exchange(other.does_, nullptr)) {
        std::memcpy(room_, other.room_, room_bytes);
    }
    /// @pre this object is empty.
    queued_function& operator=(queued_function&& other) noexcept {
        PAWL_ASSERT(!does_);
        does_ = std::exchange(other.does_, nullptr);
        std::memcpy(room_, other.room_, room_bytes);
        return *this;
    }
    ~queued_function() {
        if (does_)
            does_->destroy(room_);
    }

    /// @pre it was not moved from.
    void operator()() {
        PAWL_ASSERT(does_);
        does_->invoke(room_);
    }

private:
    static constexpr std::size_t room_bytes = 40; ///< makes a slot of a queue one cache line

    struct operations {
        void (*invoke)(void*);
        void (*destroy)(void*) noexcept;
    };

    template <class F>
    static constexpr bool is_small =
        sizeof(F) <= room_bytes && alignof(F) <= alignof(void*) && std::is_trivially_copyable_v<F>;

    template <class F>
    static constexpr operations here{[](void* room) { std::move (*static_cast<F*>(room))(); },
                                     [](void*) noexcept {}};

    /// The storage has a pointer to the function.
    template <class F>
    static constexpr operations elsewhere{
        [](void* room) { std::move (**static_cast<F**>(room))(); },
        [](void* room) noexcept {
            const allocated_object<F, wait_allocator<F>> last(wait_allocator<F>(),
                                                              **static_cast<F**>(room));
        }};

    const operations* does_ = nullptr;
    alignas(void*) std::byte room_[room_bytes];
};

/// @tparam BlockLength functions per block; small in tests.
template <std::size_t BlockLength = 64>
class function_queue {
public:
    function_queue& operator=(function_queue&&) = delete;
    /// Destroys the functions, in order.
    ~function_queue() {
        clear();
        delete front_;
        delete spare_.load(std::memory_order_relaxed);
    }

    /// @throws std::bad_alloc, with `f` unchanged.
    void push(queued_function&& f) {
        if (back_at_ == BlockLength)
            grow();
        back_->functions[back_at_++] = std::move(f);
        // release: for take(), which reads the function.
        pushed_.store(pushed_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }

    /// Number of functions pushed so far. From any thread.
    [[nodiscard]] std::uint64_t pushed() const noexcept {
        return pushed_.load(std::memory_order_acquire);
    }
    /// Number of functions taken so far. From any thread.
    [[nodiscard]] std::uint64_t taken() const noexcept {
        return taken_.load(std::memory_order_seq_cst);
    }
    /// Number of functions in the queue.
    [[nodiscard]] std::size_t size() const noexcept {
        // In this order: pushed() counts at least those that taken() counts.
        const std::uint64_t gone = taken();
        return static_cast<std::size_t>(pushed() - gone);
    }

    /// Takes the next function.
    /// @pre this thread has seen size() != 0.
    [[nodiscard]] queued_function take() noexcept {
        if (front_at_ == BlockLength) {
            block* const emptied = std::exchange(front_, front_->next);
            front_at_ = 0;
            block* none = nullptr;
            // release: this thread no longer reads the block.
            if (!spare_.compare_exchange_strong(none, emptied, std::memory_order_release,
                                                std::memory_order_relaxed))
                delete emptied;
        }
        // seq_cst: see watch().
        taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
        return std::move(front_->functions[front_at_++]);
    }

    /// From now on, the thread that takes checks whether it took the last function. The caller looks at
    /// size() next, so at least one of the two sees an empty queue.
    void watch() noexcept { watched_.store(true, std::memory_order_seq_cst); }
    /// Whether watch() was called.
    [[nodiscard]] bool watched() const noexcept { return watched_.load(std::memory_order_seq_cst); }

    /// Destroys the functions. @pre as for take(), and no push() runs.
    void clear() noexcept {
        while (size() != 0)
            (void)take();
    }

private:
    struct block {
        queued_function functions[BlockLength];
        block* next = nullptr;
    };

    PAWL_DETAIL_NOINLINE void grow() {
        // acquire: its former reader has finished with it.
        block* added = spare_.exchange(nullptr, std::memory_order_acquire);
        if (!added)
            added = new block;
        (back_ ? back_->next : front_) = added;
        back_ = added;
        back_at_ = 0;
    }

    // Written by push().
    block* back_ = nullptr;
    std::size_t back_at_ = BlockLength; ///< also while there is no block
    std::atomic<std::uint64_t> pushed_{0};

    // Written by take(). On a cache line of its own; otherwise each push would wait for it.
    alignas(cache_line) block* front_ = nullptr;
    std::size_t front_at_ = 0;
    std::atomic<std::uint64_t> taken_{0};
    std::atomic<bool> watched_{false};
    std::atomic<block*> spare_{nullptr};
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_QUEUE_FUNCTION_QUEUE_HPP
