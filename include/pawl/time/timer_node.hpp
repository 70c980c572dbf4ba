// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The hook that links a timer into a backend. The owner embeds it in its own object; a backend
///   links, writes and unlinks it, and never allocates.
///
/// Model
///   Singly linked forward; backward, it stores the address of the pointer that points at it. So a
///   node is unlinked without knowing its list, and a list head is one pointer.
///
/// Invariants
///   - Back-link invariant: link != nullptr if and only if the node is filed; then *link == this.
///     next != nullptr implies next->link == &next.
///   - Fixed-address invariant: a filed node does not move, except by move_node() of its backend.
///
/// Cost
///   32 bytes on a 64-bit machine: half a cache line.
#ifndef PAWL_TIME_TIMER_NODE_HPP
#define PAWL_TIME_TIMER_NODE_HPP

#include <pawl/time/tick.hpp>

#include <cstdint>

namespace pawl::time {

/// The part of a timer that a backend knows. Embedded by the owner of the timer.
///
/// While the node is filed, everything but `user()` belongs to the backend. A copy of a filed node
/// is not filed and has dangling links; use `move_node()` of the backend.
struct timer_node {
    /// Bits of `order()`. Two nodes compare correctly if fewer than 2^44 starts lie between them:
    /// twenty days at ten million starts a second.
    static constexpr unsigned order_bits = 44;
    /// `user()` is 0 to 15.
    static constexpr unsigned user_bits = 4;
    /// `slot()` is 0 to 65535.
    static constexpr unsigned slot_bits = 16;

    tick due; ///< Never emitted before this tick.

private:
    // Order, user and slot, from the top. Always stored as a whole: timers are scattered in memory,
    // and the store buffer of a processor limits how many of their cache misses overlap. And a load
    // that is wider than the last store to the same place would have to wait for that store.
    std::uint64_t word_ = 0;

public:
    // A timer that is re-armed in place needs nothing below.
    union {
        timer_node* next = nullptr; ///< The next node of the same list.
        std::uint64_t ticket;       ///< For a node in a ring.
    };
    /// The pointer that points at this node; in a ring, some pointer. nullptr: not filed.
    timer_node** link = nullptr;

    /// The number of its start, modulo 2^44.
    [[nodiscard]] std::uint64_t order() const noexcept { return word_ >> (slot_bits + user_bits); }
    /// For the owner. No backend changes it.
    [[nodiscard]] unsigned user() const noexcept {
        return static_cast<unsigned>(word_ >> slot_bits) & low(user_bits);
    }
    /// The slot of the backend that holds it.
    [[nodiscard]] std::uint32_t slot() const noexcept {
        return static_cast<std::uint32_t>(word_) & low(slot_bits);
    }

    /// @param number is taken modulo 2^44.
    void set_order(std::uint64_t number) noexcept {
        word_ = number << (slot_bits + user_bits) | (word_ & low(slot_bits + user_bits));
    }
    /// @param value is taken modulo 2^16.
    void set_slot(std::uint32_t value) noexcept {
        word_ = (word_ & ~std::uint64_t{low(slot_bits)}) | (value & low(slot_bits));
    }
    /// set_order() and set_slot() in one.
    void set_order_and_slot(std::uint64_t number, std::uint32_t slot) noexcept {
        word_ = number << (slot_bits + user_bits) |
                (word_ & (std::uint64_t{low(user_bits)} << slot_bits)) | (slot & low(slot_bits));
    }
    /// Must be serialised with the calls of the backend, which write to the same word.
    /// @param value is taken modulo 2^4.
    /// @param mask selects the bits to set.
    void set_user(unsigned value, unsigned mask = low(user_bits)) noexcept {
        mask &= low(user_bits);
        word_ = (word_ & ~(std::uint64_t{mask} << slot_bits)) | std::uint64_t{value & mask}
                                                                    << slot_bits;
    }

    /// Whether a backend, or a set detached from one, holds this node.
    [[nodiscard]] bool filed() const noexcept { return link != nullptr; }

private:
    [[nodiscard]] static constexpr std::uint32_t low(unsigned bits) noexcept {
        return (std::uint32_t{1} << bits) - 1;
    }
};

static_assert(sizeof(void*) != 8 || sizeof(timer_node) == 32);

} // namespace pawl::time

namespace pawl::time::detail {

// Numbers the starts of nodes, so that nodes of one tick are handed out in start order.
//
// Invariants
//   - Sequence invariant: a sequence is the number of a start, and does not wrap around. A node
//     keeps its low 44 bits, which are unambiguous for the last 2^44 starts. The sequences of
//     filed nodes only grow.
//
// Cost
//   8 bytes. All calls are O(1), and read no other node.

struct start_sequence {
    static constexpr std::uint64_t order_mask = (std::uint64_t{1} << timer_node::order_bits) - 1;

    std::uint64_t next = order_mask + 1; ///< never less: sequence invariant

    /// The full sequence of a node.
    [[nodiscard]] std::uint64_t of(const timer_node& node) const noexcept {
        return next - ((next - node.order()) & order_mask);
    }
    /// Whether `a` was started before `b`.
    [[nodiscard]] bool before(const timer_node& a, const timer_node& b) const noexcept {
        return of(a) < of(b);
    }
};

} // namespace pawl::time::detail

#endif // PAWL_TIME_TIMER_NODE_HPP
