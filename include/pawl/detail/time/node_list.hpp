// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// What both wheels use.
///
/// Purpose
///   - Lists of timer nodes: a head is one pointer, and a node is unlinked without knowing its list.
///     Each function keeps the back-link invariant of timer_node.hpp.
///   - due_batch, the output of one call of expire(): the room that it was given, and the emitted
///     nodes in order.
///   - epochs tells the nodes of a wheel from those of sets that were detached from it. detach_all()
///     leaves the present epoch to the set and moves on to an unused one. A node names the epoch in
///     which it was filed, so no node is visited.
///
/// Invariants
///   - Unused-epoch invariant: an epoch is used by the wheel, or by one set until that is empty. So
///     a node is in the wheel if and only if it names the present epoch.
///
/// Cost
///   O(1). A function of lists writes to one node, its neighbours and the head. due_batch::emit():
///   one pass over nodes that are in order, two more over nodes in reverse order.
#ifndef PAWL_DETAIL_TIME_NODE_LIST_HPP
#define PAWL_DETAIL_TIME_NODE_LIST_HPP

#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <pawl/config.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pawl::time::detail {

/// Prefetches the cache lines of `node`: one, or two if it crosses a boundary.
inline void prefetch(const timer_node* node) noexcept {
    if (!node)
        return;
    const char* const begin = reinterpret_cast<const char*>(node);
    pawl::detail::prefetch_to_write(begin);
    pawl::detail::prefetch_to_write(begin + sizeof(timer_node) - 1);
}

/// Prepends `node` to the list that begins at `head`.
inline void link_front(timer_node*& head, timer_node& node) noexcept {
    PAWL_ASSERT(!head || head->link == &head);
    node.next = head;
    node.link = &head;
    if (head)
        head->link = &node.next;
    head = &node;
}

/// Removes `node` from its list.
inline void unlink(timer_node& node) noexcept {
    PAWL_ASSERT(node.link && *node.link == &node);
    *node.link = node.next;
    if (node.next)
        node.next->link = node.link;
    node.next = nullptr;
    node.link = nullptr;
}

/// Moves all fields of `from` to `to`, including its place if it is in a list; `from` is then as if
/// default constructed.
/// @pre `!to.filed()`
inline void move_node(timer_node& from, timer_node& to) noexcept {
    PAWL_ASSERT(!to.filed());
    to = from;
    if (to.filed()) {
        *to.link = &to;
        if (to.next)
            to.next->link = &to.next;
    }
    from = timer_node{};
}

/// The position of a wheel stops here, so that never() is not reached.
inline constexpr tick last_tick{tick::never().count() - 1};

struct due_batch {
    explicit due_batch(std::span<timer_node*> to) noexcept
        : out(to.data()), room(to.size()), left(to.size()) {}

    /// Appends nodes that are already at end(), in the order of `before(a, b)`.
    ///
    /// Usually they are sorted, in either direction. Exceptions: re-arms, erasures between pushes,
    /// and nodes that were filed again among others.
    template <class Before>
    void emit(std::size_t count, Before before) noexcept {
        timer_node** const first = end();
        const auto by_address = [&](const timer_node* a, const timer_node* b) {
            return before(*a, *b);
        };
        emitted += count;
        if (std::is_sorted(first, end(), by_address))
            return;
        std::reverse(first, end());
        if (!std::is_sorted(first, end(), by_address))
            std::sort(first, end(), by_address);
    }

    /// Another pass through the loop of expire(). Most take a node; one that does not prepares the next.
    void count_pass() noexcept { PAWL_ASSERT(passes++ / 4 <= room); }

    /// Behind the emitted nodes.
    [[nodiscard]] timer_node** end() const noexcept { return out + emitted; }

    timer_node** out;
    std::size_t room;        ///< of the whole call
    std::size_t left;        ///< how many more nodes may be handled
    std::size_t emitted = 0; ///< how many are at the front of `out`
    std::size_t passes = 0;  ///< counted in debug builds only
};

class epochs {
public:
    /// The maximum number of epochs: bits of used_.
    static constexpr std::uint32_t most = 64;

    /// The epoch of the wheel.
    [[nodiscard]] std::uint32_t present() const noexcept { return present_; }
    /// How many epochs the wheel and its sets use.
    [[nodiscard]] std::uint32_t used() const noexcept {
        return static_cast<std::uint32_t>(std::popcount(used_));
    }

    /// Leaves the present epoch to a set, and moves on to an unused one of the first `count`.
    /// @return the argument for give_back(); 0 if no epoch is unused, and nothing has changed.
    [[nodiscard]] std::uint64_t move_on(std::uint32_t count) noexcept {
        const auto unused = static_cast<std::uint32_t>(std::countr_one(used_));
        if (unused >= count)
            return 0;
        const std::uint64_t left = std::uint64_t{1} << present_;
        used_ |= std::uint64_t{1} << unused;
        present_ = unused;
        return left;
    }

    /// The set that has this epoch is empty.
    void give_back(std::uint64_t epoch) noexcept { used_ &= ~epoch; }

private:
    std::uint64_t used_ = 1; ///< one bit each
    std::uint32_t present_ = 0;
};

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_NODE_LIST_HPP
