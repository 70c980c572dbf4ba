// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Lists of timer nodes: a head is one pointer, and a node is unlinked without knowing its list.
///   Each function keeps the back-link invariant of timer_node.hpp.
///
/// Cost
///   O(1). Each function writes to one node, its neighbours and the head.
#ifndef PAWL_DETAIL_TIME_NODE_LIST_HPP
#define PAWL_DETAIL_TIME_NODE_LIST_HPP

#include <pawl/time/timer_node.hpp>

#include <pawl/config.hpp>

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

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_NODE_LIST_HPP
