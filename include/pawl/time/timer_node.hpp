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
/// All members but `user` belong to the backend while the node is filed. Copying a filed node does
/// not file the copy and leaves it with dangling links; use `move_node()` of the backend.
struct timer_node {
    /// Bits of `order()`. Two nodes compare right if fewer than 2^44 starts lie between them: twenty
    /// days of ten million starts a second.
    static constexpr unsigned order_bits = 44;

    tick due; ///< Never emitted before this tick.

    // No two of these share a word that a compiler would load at once: to load more than was just
    // stored takes as long as the store takes to reach the cache, with all stores before it.
    std::uint32_t order_low = 0;     ///< Bits 0 to 31 of order().
    std::uint8_t order_middle = 0;   ///< Bits 32 to 39.
    std::uint8_t order_high : 4 = 0; ///< Bits 40 to 43.
    std::uint8_t user : 4 = 0;       ///< The owner's. No backend reads or changes it.
    std::uint16_t slot = 0;          ///< Which slot of the backend holds it.

    // A timer that is re-armed and stays where it is has no need of the rest.
    union {
        timer_node* next = nullptr; ///< The next node of the same list.
        std::uint64_t ticket;       ///< Of a node in a ring.
    };
    /// The pointer that points at this node, or, in a ring, some pointer; nullptr: filed nowhere.
    timer_node** link = nullptr;

    /// Number of its start, modulo 2^44.
    [[nodiscard]] std::uint64_t order() const noexcept {
        return std::uint64_t{order_high} << 40 | std::uint64_t{order_middle} << 32 | order_low;
    }
    /// @param number is taken modulo 2^44.
    void set_order(std::uint64_t number) noexcept {
        order_low = static_cast<std::uint32_t>(number);
        order_middle = static_cast<std::uint8_t>(number >> 32);
        order_high = (number >> 40) & 15;
    }

    /// Whether some backend, or a set detached from one, holds this node.
    [[nodiscard]] bool filed() const noexcept { return link != nullptr; }
};

static_assert(sizeof(void*) != 8 || sizeof(timer_node) == 32);

} // namespace pawl::time

#endif
