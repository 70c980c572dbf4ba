// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   FIFO of the waits that are due or cancelled and whose handlers have not begun.
///
/// Model
///   A chain of circular buffers of fixed size. Starting a wait adds room, one buffer at a time and
///   outside the lock. So an expiry or a cancel neither allocates nor fails, and growing never
///   copies a million pointers under the lock. The queue stores pointers instead of linking the
///   waits, so that the consumer can prefetch the waits ahead. It does not use
///   boost::circular_buffer, whose header takes longer to compile than the rest of the library.
///
/// Invariants
///   - Room invariant: there is room for every live wait. A wait has at most one entry (one-carrier
///     invariant of wait_state.hpp).
///
/// Cost
///   O(1) per call; 8 bytes per wait of the largest number that were outstanding at once.
#ifndef PAWL_DETAIL_SERVICE_DUE_QUEUE_HPP
#define PAWL_DETAIL_SERVICE_DUE_QUEUE_HPP

#include <pawl/detail/wait/wait_operation.hpp>

#include <pawl/config.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace pawl::detail {

/// An entry of the due queue: a wait, and whether its cancel is only noted.
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

    /// The cancel is only noted: the wait is still `armed`, and reachable from this entry only.
    /// Taking the entry makes the transition. So a cancel need not fetch the wait.
    [[nodiscard]] bool cancelled() const noexcept { return (word_ & 1) != 0; }

private:
    std::uintptr_t word_ = 0;
};

class due_queue {
public:
    static constexpr std::size_t length = 64;

    /// A circular buffer of fixed size. Positions are never reset.
    struct segment {
        static_assert((length & (length - 1)) == 0, "positions wrap by a mask");

        [[nodiscard]] due_entry& at(std::size_t position) noexcept {
            return ring[position & (length - 1)];
        }
        [[nodiscard]] std::size_t size() const noexcept { return end - begin; }

        std::size_t begin = 0;
        std::size_t end = 0;
        segment* next = nullptr; ///< owned by this segment; the queue owns the first
        due_entry ring[length];
    };

    due_queue() : head_(new segment), tail_(head_), last_(head_) {}
    due_queue& operator=(due_queue&&) = delete;
    ~due_queue() {
        while (head_)
            delete std::exchange(head_, head_->next);
    }

    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    /// Whether `waits` entries fit in any case. The first segment may be partly used up.
    [[nodiscard]] bool has_room_for(std::size_t waits) const noexcept { return waits <= room_; }

    /// Takes ownership.
    void add_room(segment& s) noexcept {
        append(s);
        room_ = segments_++ * length;
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
        // The waits ahead are scattered in memory. Two cache lines hold a wait with a small
        // handler.
        if (constexpr std::size_t ahead = 4; head.size() > ahead) {
            const char* soon =
                reinterpret_cast<const char*>(&head.at(head.begin + ahead).operation());
            prefetch(soon);
            prefetch(soon + 48);
        }
        return entry;
    }

    /// Calls `f` for all entries, in order.
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
        PAWL_ASSERT(used.next && used.next->size() != 0); // size_ counts what is in the segments
        head_ = std::exchange(used.next, nullptr);
        append(used);
    }

    // Not a unique_ptr, which takes as long to compile as the whole queue.
    segment* head_;
    segment* tail_; ///< the segment that is being filled
    segment* last_; ///< end of the chain; segments after the tail are empty
    std::size_t segments_ = 1;
    std::size_t room_ = length; ///< a lone segment cannot be partly used up: it is circular
    std::size_t size_ = 0;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_DUE_QUEUE_HPP
