// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

/// @file
/// pawl::time::backend, what the service asks of a time structure.

// Purpose
//   What the service asks of a time structure, and what each call promises. The hierarchical wheel
//   is one; the conformance tests run the same suite over every one and over a slow ordered map.
//   Rings take fixed delays only, and are no backend in this sense (timeout_rings.hpp): of that suite
//   they are asked what holds for them, too.
//
// Model
//   A backend files nodes by the tick at which they are due and hands them out when that tick has
//   come. It has a position, now(), that only expire() moves forward. It reads no clock.
//
// Invariants
//   B1  Never early: expire(t) emits no node with due > max(t, now()).
//   B2  Exactly once: a filed node is emitted, erased, or popped from a detached set, once.
//   B3  Order: by due tick; within one tick in the order in which insert() or rearm() filed them.
//       A node that is filed when its tick has already been reached (due <= now()) is due at
//       now(). A single call of expire() sorts such late-comers by due tick as well, as long as
//       they fit into the room that it was given.
//   B4  Bounded: expire() handles no more nodes than it was given room for, and may be continued at
//       any later time; every other call is correct in between.
//
// Threads
//   None of its own. The owner serialises all calls, those on a detached set included. Only the
//   constructor of a detached set may run beside other calls.
//
// Cost
//   All calls but expire(), detach_all() and invariant() are O(1); nothing but constructors and
//   invariant() allocates.

#ifndef PAWL_TIME_BACKEND_HPP
#define PAWL_TIME_BACKEND_HPP

#include <pawl/time/fixed_array.hpp>
#include <pawl/time/geometry.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace pawl::time {

/// What expire() did.
struct expire_result {
    /// So many nodes were written to the front of the given room.
    std::size_t emitted = 0;
    /// Work at or before the given tick is left: call again.
    bool more = false;
};

/// A structure that files timer nodes by their due ticks. In all calls:
///
/// - `b.insert(node, due)` files a node with a new start order. `due <= b.now()`: at the next
///   expire. `due == tick::never()`: filed, never emitted. Precondition: `!node.filed()`.
/// - `b.refile(node)` is insert() that keeps the node's due tick and its start order. B3 holds for
///   it unless expire() was left incomplete: then what is due already is in order by itself.
/// - `b.erase(node)` lets go of a node. Precondition: filed here or in a set detached from here.
/// - `b.rearm(node, due)` is erase() followed by insert(), and cheaper, above all when `due` is
///   later than before. A node of a detached set returns to the backend.
///   Precondition: filed here or in a set detached from here.
/// - `b.move_node(from, to)` puts `to` in the place of `from`, all its fields included; `from` is
///   then as if default constructed. Works for a node that is not filed, too.
///   Precondition: `!to.filed()`.
/// - `b.expire(now, out)` moves the position towards `now` (a `now` before the position is taken as
///   the position) and writes the nodes that are due, unfiled, to the front of `out`, any contiguous
///   range. It handles at most `std::size(out)` nodes, those that it only moves included, and at
///   least one if there is one to handle and any room. A node that it hands out keeps `due`,
///   `order` and `user`.
/// - `b.now()` is the position: no node with an earlier due tick has yet to come, except those that
///   were filed too late for it.
/// - `b.size()` counts the filed nodes, without those of detached sets; `b.empty()`.
/// - `b.next_wake()` is a tick before which expire() has nothing to emit: exact for a node that is
///   alone, unless the last expire() was left incomplete; never() only if no node will ever be due.
/// - `b.any()` is some filed node; nullptr if there is none. For emptying without allocating.
/// - `typename B::detached set(b)` makes room for all the nodes that b will ever hold; may throw
///   std::bad_alloc, so that the rest cannot fail.
/// - `b.detach_all(set)` empties the backend into the set. The nodes are still filed.
///   Preconditions: the set was made for this backend, is empty, and is emptied, by calling pop()
///   until it answers nullptr, before the backend is destroyed and before it is filled again.
/// - `set.pop()` lets go of a node and returns it, roughly ascending in due; nullptr: none is left.
/// - `b.rewind(now)` sets the position, backward as well. Precondition: `b.empty()`.
/// - `b.invariant()` checks everything that can be checked. Throws std::logic_error.
template <class B>
concept backend = std::is_constructible_v<B, const geometry&, tick> && !std::copyable<B> &&
                  std::is_constructible_v<typename B::detached, const B&> &&
                  requires(B& b, const B& c, timer_node& node, tick when,
                           detail::fixed_array<timer_node*>& out, typename B::detached& set) {
                      { b.insert(node, when) } noexcept -> std::same_as<void>;
                      { b.refile(node) } noexcept -> std::same_as<void>;
                      { b.erase(node) } noexcept -> std::same_as<void>;
                      { b.rearm(node, when) } noexcept -> std::same_as<void>;
                      { b.move_node(node, node) } noexcept -> std::same_as<void>;
                      { b.expire(when, out) } noexcept -> std::same_as<expire_result>;
                      { c.now() } noexcept -> std::same_as<tick>;
                      { c.size() } noexcept -> std::same_as<std::size_t>;
                      { c.empty() } noexcept -> std::same_as<bool>;
                      { c.next_wake() } noexcept -> std::same_as<tick>;
                      { c.any() } noexcept -> std::same_as<timer_node*>;
                      { b.detach_all(set) } noexcept -> std::same_as<void>;
                      { set.pop() } noexcept -> std::same_as<timer_node*>;
                      { b.rewind(when) } noexcept -> std::same_as<void>;
                      { c.invariant() } -> std::same_as<void>;
                  };

} // namespace pawl::time

#endif
