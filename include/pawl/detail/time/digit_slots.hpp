// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A monotone radix structure: nodes are filed under a key that is never before a position, and
///   taken out in ascending order of keys while the position follows. The hierarchical wheel has
///   two: one keyed by due ticks, one by start sequences. Only the wheel knows the key of a node.
///
/// Model
///   geometry.hpp gives the slot of a key, seen from the position. enter() moves the position into
///   the lowest occupied slot. At level 0, all keys in it equal the position and can be taken out.
///   At a higher level, its nodes are filed again, in lower slots, since they agree with the
///   position in that slot's digit. Until the entered slot is empty, nothing below is taken out.
///
/// Invariants
///   - Occupancy invariant: a slot is in the occupancy set, and has a list of the pool, if and only
///     if it is not empty.
///   - No-slot-behind invariant: no slot before that of the position is occupied, except the
///     entered one.
///   - Slot-begin invariant: a node in a slot other than the entered one has a key that is not
///     before the start of the slot.
///
/// Cost
///   push and erase O(1). A node whose key stays is moved at most once per level.
#ifndef PAWL_DETAIL_TIME_DIGIT_SLOTS_HPP
#define PAWL_DETAIL_TIME_DIGIT_SLOTS_HPP

#include <pawl/detail/time/list_pool.hpp>
#include <pawl/detail/time/striped_list.hpp>
#include <pawl/time/geometry.hpp>

#include <pawl/config.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace pawl::time::detail {

/// @tparam Shape geometry, or a reference to one that is shared: it takes as much memory as all else here.
template <class Shape = geometry>
class digit_slots {
public:
    using key_type = std::uint64_t;
    using slot_type = std::uint32_t;

    static constexpr slot_type none = slot_lists::none;

    /// @param lists  has a list for each slot that will be occupied, plus one.
    digit_slots(const geometry& shape, key_type position, list_pool& lists)
        : shape_(shape), position_(position), slots_(shape.slots()), pool_(lists) {}

    [[nodiscard]] const geometry& shape() const noexcept { return shape_; }
    [[nodiscard]] key_type position() const noexcept { return position_; }
    /// The list of an occupied slot.
    [[nodiscard]] const striped_list& operator[](slot_type slot) const noexcept {
        return slots_.list(pool_, slot);
    }
    [[nodiscard]] bool occupied(slot_type slot) const noexcept { return slots_.occupied(slot); }

    /// The slot of a key.
    /// @pre key >= position()
    [[nodiscard]] slot_type slot_of(key_type key) const noexcept {
        PAWL_ASSERT(key >= position_);
        return shape_.slot(key, position_);
    }
    /// The smallest key of a slot. The slot must not be before that of the position.
    [[nodiscard]] key_type begin(slot_type slot) const noexcept {
        return shape_.begin(slot, position_);
    }
    /// The largest key of such a slot.
    [[nodiscard]] key_type last(slot_type slot) const noexcept {
        return shape_.last(slot, position_);
    }

    /// The slot above level 0 that the position has entered and that is not yet empty; none.
    [[nodiscard]] slot_type entered() const noexcept {
        return entered_ != none && occupied(entered_) ? entered_ : none;
    }
    /// The lowest occupied slot, which holds the smallest keys; none.
    [[nodiscard]] slot_type first() const noexcept { return slots_.first(); }
    /// The lowest occupied slot above another one; none.
    [[nodiscard]] slot_type after(slot_type slot) const noexcept { return slots_.after(slot); }

    /// Moves the position over empty slots.
    /// @pre entered() == none, and no occupied slot begins at or before `key`.
    void advance(key_type key) noexcept {
        PAWL_ASSERT(entered() == none);
        position_ = key;
        entered_ = none; // that slot is reused in the next round
    }

    /// Moves the position into the lowest occupied slot.
    /// @pre slot == first(), entered() == none, begin(slot) <= key <= last(slot), and no node in it
    /// has a smaller key.
    void enter(slot_type slot, key_type key) noexcept {
        PAWL_ASSERT(slot == first() && entered() == none);
        PAWL_ASSERT(begin(slot) <= key && key <= last(slot));
        position_ = key;
        entered_ = slot < shape_.slots(0) ? none : slot;
    }

    /// Restarts at any position.
    /// @pre first() == none
    void restart(key_type position) noexcept {
        PAWL_ASSERT(first() == none);
        position_ = position;
        entered_ = none;
    }

    void push(slot_type slot, timer_node& node, std::uint64_t sequence) noexcept {
        slots_.push(pool_, slot, node, sequence);
    }

    void erase(slot_type slot, timer_node& node) noexcept { slots_.erase(pool_, slot, node); }

    /// striped_list::walk() for one slot. The sink may push to any other slot.
    template <class Sink>
    void walk(slot_type slot, std::size_t limit, Sink&& sink) noexcept {
        slots_.walk(pool_, slot, limit, std::forward<Sink>(sink));
    }

    /// walk() for all slots, the highest first.
    template <class Sink>
    void walk_all(Sink&& sink) noexcept {
        for (slot_type slot = shape_.slots(); slot-- != 0;) {
            if (occupied(slot))
                walk(slot, (*this)[slot].count(), sink);
        }
        entered_ = none;
    }

    /// Exchanges all slots with the empty ones of `spare`. O(1)
    /// @pre same size
    void swap_slots(slot_lists& spare) noexcept {
        slots_.swap(spare);
        entered_ = none;
    }

private:
    Shape shape_;
    key_type position_;
    slot_type entered_ = none;
    slot_lists slots_;
    list_pool& pool_;
};

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_DIGIT_SLOTS_HPP
