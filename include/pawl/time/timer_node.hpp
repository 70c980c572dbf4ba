// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// Purpose
//   The hook by which a timer hangs in a backend. The owner embeds it in its own object; a backend
//   links it, writes it and lets go of it, and never allocates.
//
// Model
//   Singly linked forward, and backward by the address of the pointer that points here. So a node
//   is unlinked without knowing which list it is in, and a list head is one pointer.
//
// Invariants
//   N1  link != nullptr exactly while the node is filed; then *link == this.
//   N2  next != nullptr implies next->link == &next.
//   N3  A filed node has a fixed address. Only move_node() of the backend that holds it changes it.
//
// Cost
//   32 bytes on a 64-bit machine: half a cache line.

#ifndef PAWL_TIME_TIMER_NODE_HPP
#define PAWL_TIME_TIMER_NODE_HPP

#include <pawl/time/tick.hpp>

#include <cstdint>

namespace pawl::time {

/// What a backend knows of one timer. Embedded by the owner of the timer.
///
/// Everything but `user()` belongs to the backend while the node is filed. Copying a filed node does
/// not file the copy and leaves it with dangling links; use `move_node()` of the backend.
struct timer_node {
    /// Bits of `order()`. Two nodes compare right if fewer than 2^44 starts lie between them: twenty
    /// days of ten million starts a second.
    static constexpr unsigned order_bits = 44;
    /// What `user()` can be: 0 to 15.
    static constexpr unsigned user_bits = 4;
    /// What `slot()` can be: 0 to 65535.
    static constexpr unsigned slot_bits = 16;

    tick due; ///< Never emitted before this tick.

private:
    // Order, user and slot, from the top. Always stored as a whole: timers lie anywhere in memory,
    // and of how many at a time a processor waits is limited by its room for stores that wait. To
    // load more than was just stored takes as long as all stores before it, besides.
    std::uint64_t word_ = 0;

public:
    // A timer that is re-armed and stays where it is has no need of the rest.
    union {
        timer_node* next = nullptr; ///< The next node of the same list.
        std::uint64_t ticket;       ///< Of a node in a ring.
    };
    /// The pointer that points at this node, or, in a ring, some pointer; nullptr: filed nowhere.
    timer_node** link = nullptr;

    /// Number of its start, modulo 2^44.
    [[nodiscard]] std::uint64_t order() const noexcept { return word_ >> (slot_bits + user_bits); }
    /// The owner's: every backend leaves it as it is.
    [[nodiscard]] unsigned user() const noexcept {
        return static_cast<unsigned>(word_ >> slot_bits) & low(user_bits);
    }
    /// Which slot of the backend holds it.
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
    /// To be serialised with the calls of the backend, which write to the same word.
    /// @param value is taken modulo 2^4.
    /// @param mask which bits of it are set; the others stay.
    void set_user(unsigned value, unsigned mask = low(user_bits)) noexcept {
        mask &= low(user_bits);
        word_ = (word_ & ~(std::uint64_t{mask} << slot_bits)) | std::uint64_t{value & mask}
                                                                    << slot_bits;
    }

    /// Whether some backend, or a set detached from one, holds this node.
    [[nodiscard]] bool filed() const noexcept { return link != nullptr; }

private:
    [[nodiscard]] static constexpr std::uint32_t low(unsigned bits) noexcept {
        return (std::uint32_t{1} << bits) - 1;
    }
};

static_assert(sizeof(void*) != 8 || sizeof(timer_node) == 32);

} // namespace pawl::time

#endif
