// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// Purpose
//   A monotonic radix structure: nodes filed by a key that never lies before a position, and taken
//   out in ascending order of their keys while the position follows. The hierarchical wheel is made
//   of two: one keyed by due ticks, one by start sequences. What a node's key is, only they know.
//
// Model
//   geometry.hpp says which slot a key has seen from the position. With enter(), the position moves
//   into the lowest occupied slot. At level 0 all keys in it are the position: they can be taken
//   out. At a level above, its nodes are filed anew, and land below, since they agree with the
//   position in that slot's digit. Until this entered slot is empty, nothing is taken out below.
//
// Invariants
//   D1  A slot is in the occupancy set exactly if it is not empty.
//   D2  Nothing is in a slot before the position's own, apart from the entered one.
//   D3  A node in a slot that is not the entered one has a key that is not before that slot begins.
//
// Cost
//   push and erase O(1). A node whose key stays is moved at most once for each level.

#ifndef PAWL_TIME_DIGIT_SLOTS_HPP
#define PAWL_TIME_DIGIT_SLOTS_HPP

#include <pawl/time/fixed_array.hpp>
#include <pawl/time/geometry.hpp>
#include <pawl/time/occupancy.hpp>
#include <pawl/time/striped_list.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pawl::time::detail {

class digit_slots {
public:
    using key_type = std::uint64_t;
    using slot_type = std::uint32_t;

    static constexpr slot_type none = occupancy::none;

    digit_slots(const geometry& shape, key_type position)
        : shape_(shape), position_(position), occupied_(shape.slots()), lists_(shape.slots()) {}

    [[nodiscard]] const geometry& shape() const noexcept { return shape_; }
    [[nodiscard]] key_type position() const noexcept { return position_; }
    [[nodiscard]] const striped_list& operator[](slot_type slot) const noexcept {
        return lists_[slot];
    }
    [[nodiscard]] bool occupied(slot_type slot) const noexcept { return occupied_.test(slot); }

    /// The slot of a key. Precondition: key >= position().
    [[nodiscard]] slot_type slot_of(key_type key) const noexcept {
        assert(key >= position_);
        return shape_.slot(key, position_);
    }
    /// The smallest key of a slot that is not before the position's own.
    [[nodiscard]] key_type begin(slot_type slot) const noexcept {
        return shape_.begin(slot, position_);
    }
    /// The largest key of such a slot.
    [[nodiscard]] key_type last(slot_type slot) const noexcept {
        return shape_.last(slot, position_);
    }

    /// The slot above level 0 that the position has entered and that still has nodes; none.
    [[nodiscard]] slot_type entered() const noexcept {
        return entered_ != none && !lists_[entered_].empty() ? entered_ : none;
    }
    /// The lowest occupied slot, which holds the smallest keys; none.
    [[nodiscard]] slot_type first() const noexcept { return occupied_.first(); }
    /// The lowest occupied slot above another one; none.
    [[nodiscard]] slot_type after(slot_type slot) const noexcept { return occupied_.after(slot); }

    /// Moves the position over empty slots. Preconditions: entered() == none, and no occupied slot
    /// begins at or before `key`.
    void advance(key_type key) noexcept {
        assert(entered() == none);
        position_ = key;
        entered_ = none; // that slot is ahead again, a round later
    }

    /// Moves the position into the lowest occupied slot.
    ///
    /// Preconditions: slot == first(), entered() == none, begin(slot) <= key <= last(slot), and no
    /// node in it has a smaller key.
    void enter(slot_type slot, key_type key) noexcept {
        assert(slot == first() && entered() == none);
        assert(begin(slot) <= key && key <= last(slot));
        position_ = key;
        entered_ = slot < shape_.slots(0) ? none : slot;
    }

    /// Starts anew at any position. Precondition: first() == none.
    void restart(key_type position) noexcept {
        assert(first() == none);
        position_ = position;
        entered_ = none;
    }

    void push(slot_type slot, timer_node& node, std::uint64_t sequence) noexcept {
        if (lists_[slot].empty())
            occupied_.set(slot);
        lists_[slot].push(node, sequence);
    }

    void erase(slot_type slot, timer_node& node) noexcept {
        lists_[slot].erase(node);
        if (lists_[slot].empty())
            occupied_.reset(slot);
    }

    /// striped_list::walk for one slot. The sink may push to any other one.
    template <class Sink>
    void walk(slot_type slot, std::size_t limit, Sink&& sink) noexcept {
        lists_[slot].walk(limit, std::forward<Sink>(sink));
        if (lists_[slot].empty())
            occupied_.reset(slot);
    }

    /// Leaves all lists to `spare` in exchange for its empty ones. Precondition: same size.
    ///
    /// O(1): the heads stay where they are, so that no node notices.
    void swap_lists(fixed_array<striped_list>& spare) noexcept {
        assert(spare.size() == lists_.size());
        lists_.swap(spare);
        occupied_.clear();
        entered_ = none;
    }

private:
    geometry shape_;
    key_type position_;
    slot_type entered_ = none;
    occupancy occupied_;
    fixed_array<striped_list> lists_;
};

} // namespace pawl::time::detail

#endif
