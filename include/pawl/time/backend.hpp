// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::time::backend, the concept of a time structure.
///
/// Purpose
///   The requirements of the service on a time structure, and the promises of each call. One
///   conformance suite runs over every backend, and over a slow ordered map.
///
/// Model
///   A backend files nodes under the tick at which they are due, and hands them out once that tick
///   has come. Its position, now(), is moved forward by expire() only. It reads no clock.
///
/// Promises
///   - Never early: expire(t) emits no node with due > max(t, now()).
///   - Exactly once: a filed node is emitted, erased, or popped from a detached set, exactly once.
///   - Order: by due tick; within one tick, in the order of insert() or rearm(). A bounded_backend
///     has an order of its own. A node that is filed late, with due <= now(), counts as due at now(). A single call of expire() sorts late
///     nodes by due tick as well, if they fit into the given room.
///   - Bounded: expire() handles at most as many nodes as it was given room for, and may be
///     continued at any later time. All other calls are correct in between.
///
/// Threads
///   None. The owner serialises all calls, including those on a detached set. Only the constructor
///   of a detached set may run concurrently.
///
/// Cost
///   All calls are O(1), except expire() and detach_all(). Only constructors allocate. A backend that
///   needs memory for nodes is given it: reserving_backend.
#ifndef PAWL_TIME_BACKEND_HPP
#define PAWL_TIME_BACKEND_HPP

#include <pawl/time/geometry.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

namespace pawl::time {

/// What expire() did.
struct expire_result {
    /// How many nodes were written to the front of the given room.
    std::size_t emitted = 0;
    /// Work up to the given tick is left: call again.
    bool more = false;
};

namespace detail {

template <class B>
struct deadline_of {
    using type = tick;
};
template <class B>
    requires requires { typename B::deadline; }
struct deadline_of<B> {
    using type = typename B::deadline;
};

} // namespace detail

/// What a backend files a node under: a due tick, unless the backend needs more to find its place.
template <class B>
using deadline_of = typename detail::deadline_of<B>::type;

/// A structure that files timer nodes under their due ticks. Calls:
///
/// - `b.insert(node, due)` files a node with a new start order. If `due <= b.now()`, the next
///   expire() emits it; if `due == tick::never()`, none does. Preconditions: `!node.filed()`; a
///   reserving_backend or bounded_backend has room.
/// - `b.erase(node)` unfiles a node. Precondition: filed here, or in a set detached from here.
/// - `b.rearm(node, due)` is erase() followed by insert(), and cheaper, above all if `due` is later
///   than before. A node of a detached set returns to the backend. Precondition: as erase().
/// - `b.move_node(from, to)` moves all fields of `from` to `to`, including its place; `from` is
///   then as if default constructed. `from` need not be filed. Precondition: `!to.filed()`.
/// - `b.expire(now, out)` moves the position towards `now` (at least the current position) and
///   writes the due nodes, unfiled, to the front of `out`. It handles at most `out.size()` nodes, including
///   those that it only moves; and at least one, if there is one and any room. An emitted node keeps `due`, `order` and `user`.
/// - `b.now()` is the position. Every node with an earlier due tick has been emitted, unless it was
///   filed late.
/// - `b.size()` counts the filed nodes, excluding detached sets (a bounded_backend may include
///   them); `b.empty()`.
/// - `b.next_wake()` is a lower bound of the tick at which expire() emits something. It is exact
///   for a single node, unless the last expire() was left incomplete. It is never() only if no node
///   will ever be due.
/// - `typename B::detached set(b)` allocates room for all nodes that `b` will ever hold, so that
///   nothing after it can fail. May throw std::bad_alloc.
/// - `b.detach_all(set)` moves all nodes to the set. They are still filed. Preconditions: the set
///   was made for this backend and is empty. Postcondition for the owner: pop the set until it
///   returns nullptr, before it is filled again and before the backend is destroyed.
template <class B>
concept backend = !std::copyable<B> && std::is_constructible_v<typename B::detached, const B&> &&
                  requires(B& b, const B& c, timer_node& node, const deadline_of<B>& due, tick now,
                           std::span<timer_node*> out, typename B::detached& set) {
                      { b.insert(node, due) } noexcept -> std::same_as<void>;
                      { b.erase(node) } noexcept -> std::same_as<void>;
                      { b.rearm(node, due) } noexcept -> std::same_as<void>;
                      { b.move_node(node, node) } noexcept -> std::same_as<void>;
                      { b.expire(now, out) } noexcept -> std::same_as<expire_result>;
                      { c.now() } noexcept -> std::same_as<tick>;
                      { c.size() } noexcept -> std::same_as<std::size_t>;
                      { c.empty() } noexcept -> std::same_as<bool>;
                      { c.next_wake() } noexcept -> std::same_as<tick>;
                      { b.detach_all(set) } noexcept -> std::same_as<void>;
                  };

/// A backend for any deadline, also on a clock that is set back.
///
/// - `b.any()` is some filed node; nullptr if there is none. For emptying a backend without
///   allocating.
/// - `set.pop()` unfiles a node of a detached set and returns it, roughly in ascending order of
///   due; nullptr if none is left.
/// - `b.refile(node)` is insert() that keeps the node's due tick and start order. The order promise
///   holds for it, unless expire() was left incomplete: then the nodes that are already due are
///   ordered among themselves.
/// - `b.rewind(now)` sets the position, which may go backwards. Precondition: `b.empty()`.
template <class B>
concept rewindable_backend =
    backend<B> && std::is_constructible_v<B, const geometry&, tick> &&
    requires(B& b, const B& c, timer_node& node, tick now, typename B::detached& set) {
        { c.any() } noexcept -> std::same_as<timer_node*>;
        { set.pop() } noexcept -> std::same_as<timer_node*>;
        { b.refile(node) } noexcept -> std::same_as<void>;
        { b.rewind(now) } noexcept -> std::same_as<void>;
    };

/// A backend that may be full for a deadline, as rings are.
///
/// - `b.has_room(node, due)`: whether the node may be filed, or filed again. Always true for a
///   deadline that has passed.
/// - `b.oldest(due)` is the node that expires next among those that take room from this deadline;
///   nullptr if there is none, and then there is room. Erasing it makes room as well.
/// - `typename B::room_part part(b.next_room_part(due))` allocates memory for more; not for size 0.
///   `b.add_room(due, part)` takes it over, unless another one was added since the size was read.
/// - `b.take_any(node)` and `set.pop(node)` unfile a node, or come across room without a node and
///   set `node` to nullptr. They return false if nothing is left.
/// - `b.next_wake(due)` is next_wake(), as far as nodes with this deadline are concerned.
template <class B>
concept bounded_backend =
    backend<B> && std::is_constructible_v<typename B::room_part, std::size_t> &&
    requires(B& b, const B& c, timer_node& node, timer_node*& found, const deadline_of<B>& due,
             typename B::room_part& part, typename B::detached& set) {
        { c.has_room(node, due) } noexcept -> std::same_as<bool>;
        { b.oldest(due) } noexcept -> std::same_as<timer_node*>;
        { c.next_room_part(due) } noexcept -> std::same_as<std::size_t>;
        { b.add_room(due, part) } noexcept -> std::same_as<void>;
        { b.take_any(found) } noexcept -> std::same_as<bool>;
        { set.pop(found) } noexcept -> std::same_as<bool>;
        { c.next_wake(due) } noexcept -> std::same_as<tick>;
    };

/// A backend in which a pressure decides when a node is due, between its due tick and a spread
/// later. Its deadline converts to a due tick.
///
/// - `typename B::node_type` is the type of its nodes, which have more fields.
/// - `b.follow(p)`: the pressure is in `p`. The owner calls expire() after each change.
template <class B>
concept scaled_backend = backend<B> && std::derived_from<typename B::node_type, timer_node> &&
                         requires(B& b, const std::atomic<double>& p) { b.follow(p); };

/// A backend that needs memory for the nodes filed in it and in sets detached from it. None of its
/// calls allocates: the owner provides the memory, and chooses where to allocate it.
///
/// - `b.has_room_for(n)`: whether `n` nodes may be filed. Stays true until more are filed or a set
///   is detached.
/// - `b.has_room_to_detach(n)`: the same for the time after detach_all(), whose precondition it is.
/// - `typename B::room_part part(b.next_room_part())` allocates. May throw std::bad_alloc. May run
///   concurrently with other calls once the size is known.
/// - `b.add_room(part)` takes the part over, unless another one was added since the size was read.
///   Repeat until the queries above are true.
template <class B>
concept reserving_backend =
    backend<B> && std::is_constructible_v<typename B::room_part, std::size_t> &&
    requires(B& b, const B& c, std::size_t nodes, typename B::room_part& part) {
        { c.has_room_for(nodes) } noexcept -> std::same_as<bool>;
        { c.has_room_to_detach(nodes) } noexcept -> std::same_as<bool>;
        { c.next_room_part() } noexcept -> std::same_as<std::size_t>;
        { b.add_room(part) } noexcept -> std::same_as<void>;
    };

} // namespace pawl::time

#endif // PAWL_TIME_BACKEND_HPP
