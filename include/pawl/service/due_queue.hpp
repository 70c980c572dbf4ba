// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   FIFO of the waits that are due or cancelled and whose handlers have not begun.
///
/// Model
///   A chain of circular buffers of fixed size. Room is added when a wait is started, one buffer at
///   a time and outside the lock, so that neither an expiry nor a cancel allocates or fails, and so
///   that no growth copies a million pointers under the lock. Pointers in a circular buffer, rather
///   than waits linked into a list, let the consumer prefetch the waits ahead of it. The buffers are
///   not boost::circular_buffer: with its header come Boost.Preprocessor and Boost's concept checks,
///   which cost more to compile than all of this library.
///
/// Invariants
///   I1  Room for every live wait: a wait has at most one entry (wait_state.hpp, I1).
///
/// Cost
///   O(1) each; 8 bytes per wait that was ever outstanding at the same time.
#ifndef PAWL_SERVICE_DUE_QUEUE_HPP
#define PAWL_SERVICE_DUE_QUEUE_HPP

#include <pawl/wait/wait_operation.hpp>

#include <pawl/config.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace pawl::detail {

/// A wait in the due queue.
class due_entry {
public:
    due_entry() = default;
    explicit due_entry(wait_operation& op, bool cancelled = false) noexcept
        : word_(reinterpret_cast<std::uintptr_t>(&op) | (cancelled ? 1 : 0)) {
        static_assert(alignof(wait_operation) > 1);
    }

    [[nodiscard]] wait_operation& operation() const noexcept {
        return *reinterpret_cast<wait_operation*>(word_ & ~std::uintptr_t{1});
    }

    /// The wait was cancelled, but is not told yet: it is armed, and nothing but this entry points
    /// at it. Whoever takes the entry makes that transition. So a cancel need not fetch the wait.
    [[nodiscard]] bool cancelled() const noexcept { return (word_ & 1) != 0; }

private:
    std::uintptr_t word_ = 0;
};

class due_queue {
public:
    static constexpr std::size_t length = 512;

    /// A circular buffer of fixed size. The positions count on without end.
    struct segment {
        static_assert((length & (length - 1)) == 0, "positions wrap by a mask");

        [[nodiscard]] due_entry& at(std::size_t position) noexcept {
            return ring[position & (length - 1)];
        }
        [[nodiscard]] std::size_t size() const noexcept { return end - begin; }

        std::size_t begin = 0;
        std::size_t end = 0;
        segment* next = nullptr; ///< owned, like the first one by the queue
        due_entry ring[length];
    };

    due_queue() : head_(new segment), tail_(head_), last_(head_) {}
    due_queue(const due_queue&) = delete;
    due_queue& operator=(const due_queue&) = delete;
    ~due_queue() {
        while (head_)
            delete std::exchange(head_, head_->next);
    }

    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    /// True if `waits` entries are sure to fit. The first segment may be used up in part.
    [[nodiscard]] bool has_room_for(std::size_t waits) const noexcept {
        return waits <= (segments_ - 1) * length || (segments_ == 1 && waits <= length);
    }

    /// Takes ownership.
    void add_room(segment& s) noexcept {
        append(s);
        ++segments_;
    }

    /// @pre there is room.
    void push(due_entry entry) noexcept {
        if (tail_->size() == length) {
            PAWL_ASSERT(tail_->next);
            tail_ = tail_->next;
        }
        tail_->at(tail_->end++) = entry;
        ++size_;
    }

    /// @pre !empty()
    [[nodiscard]] due_entry pop() noexcept {
        PAWL_ASSERT(!empty());
        if (head_->size() == 0)
            recycle_head();
        segment& head = *head_;
        const due_entry entry = head.at(head.begin++);
        --size_;
        // The waits ahead lie anywhere in memory. Two cache lines hold one with a small handler.
        if (constexpr std::size_t ahead = 4; head.size() > ahead) {
            const char* soon =
                reinterpret_cast<const char*>(&head.at(head.begin + ahead).operation());
            prefetch(soon);
            prefetch(soon + 48);
        }
        return entry;
    }

    /// For all entries, in order.
    template <class Function>
    void for_each(Function f) const {
        for (segment* s = head_; s != tail_->next; s = s->next) {
            for (std::size_t position = s->begin; position != s->end; ++position)
                f(s->at(position));
        }
    }

private:
    void append(segment& s) noexcept {
        last_->next = &s;
        last_ = &s;
    }

    void recycle_head() noexcept {
        segment& used = *head_;
        head_ = std::exchange(used.next, nullptr);
        append(used);
    }

    // Not by unique_ptr, which takes as long to compile as the whole queue.
    segment* head_;
    segment* tail_; ///< the segment that is being filled
    segment* last_; ///< the end of the chain; the segments behind the tail are empty
    std::size_t segments_ = 1;
    std::size_t size_ = 0;
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_DUE_QUEUE_HPP
