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
#include <pawl/time/geometry.hpp>
#include <pawl/time/timer_node.hpp>

#include <pawl/config.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pawl::time::detail {

/// A heap array whose size is fixed at construction. Compiles in a fifth of the time of a std::vector, once per element type
/// in every program that includes a timer.
template <class T>
class fixed_array {
public:
    /// `size` elements, value-initialised.
    explicit fixed_array(std::size_t size) : data_(new T[size]()), size_(size) {}
    fixed_array& operator=(fixed_array&&) = delete;
    ~fixed_array() { delete[] data_; }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] T& operator[](std::size_t i) noexcept {
        PAWL_ASSERT(i < size_);
        return data_[i];
    }
    [[nodiscard]] const T& operator[](std::size_t i) const noexcept {
        PAWL_ASSERT(i < size_);
        return data_[i];
    }

    /// Exchanges the elements with those of an array of the same size, by pointer.
    void swap(fixed_array& other) noexcept {
        T* const mine = data_;
        data_ = other.data_;
        other.data_ = mine;
    }

private:
    T* data_;
    std::size_t size_;
};

/// The set of occupied slots: a bitmap, and a second bitmap of its non-zero words. Up to 4096 slots, two counts of trailing
/// zeros find the first; beyond that, one more test per 4096 slots.
class occupancy {
public:
    /// Returned if there is no such slot.
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    explicit occupancy(std::uint32_t slots)
        : words_(slots / 64 + 1), summary_(words_.size() / 64 + 1) {}

    void set(std::uint32_t slot) noexcept {
        const std::size_t word = slot / 64;
        words_[word] |= bit(slot);
        summary_[word / 64] |= bit(word);
    }

    void reset(std::uint32_t slot) noexcept {
        const std::size_t word = slot / 64;
        words_[word] &= ~bit(slot);
        if (words_[word] == 0)
            summary_[word / 64] &= ~bit(word);
    }

    /// @pre same number of slots
    void swap(occupancy& other) noexcept {
        words_.swap(other.words_);
        summary_.swap(other.summary_);
    }

    /// The first slot of the set; none if it is empty.
    [[nodiscard]] std::uint32_t first() const noexcept {
        for (std::size_t i = 0; i != summary_.size(); ++i) {
            if (summary_[i] != 0)
                return first_in(i * 64 + trailing_zeros(summary_[i]));
        }
        return none;
    }

    /// The first slot of the set greater than `slot`; none if there is none.
    [[nodiscard]] std::uint32_t after(std::uint32_t slot) const noexcept {
        const std::size_t word = slot / 64;
        if (const std::uint64_t rest = words_[word] & above(slot))
            return static_cast<std::uint32_t>(word * 64 + trailing_zeros(rest));
        std::uint64_t rest = summary_[word / 64] & above(word);
        for (std::size_t i = word / 64;; rest = summary_[i]) {
            if (rest != 0)
                return first_in(i * 64 + trailing_zeros(rest));
            if (++i == summary_.size())
                return none;
        }
    }

private:
    static constexpr std::uint64_t bit(std::size_t index) noexcept {
        return std::uint64_t{1} << (index % 64);
    }
    static constexpr std::uint64_t above(std::size_t index) noexcept {
        return ~std::uint64_t{1} << (index % 64);
    }
    static std::size_t trailing_zeros(std::uint64_t word) noexcept {
        return static_cast<std::size_t>(std::countr_zero(word));
    }
    std::uint32_t first_in(std::size_t word) const noexcept {
        return static_cast<std::uint32_t>(word * 64 + trailing_zeros(words_[word]));
    }

    fixed_array<std::uint64_t> words_;
    fixed_array<std::uint64_t> summary_;
};

/// Slots of a wheel, or of a set that was detached from it, each with its list if it is occupied.
class slot_lists {
public:
    using slot_type = std::uint32_t;
    static constexpr slot_type none = occupancy::none;

    /// @param pool has a list for each slot that will be occupied, plus one. That of a set is known once it has
    ///             nodes.
    explicit slot_lists(std::uint32_t slots, list_pool* pool = nullptr)
        : occupied_(slots), lists_(slots), pool_(pool) {}

    [[nodiscard]] std::uint32_t size() const noexcept {
        return static_cast<std::uint32_t>(lists_.size());
    }
    [[nodiscard]] bool occupied(slot_type slot) const noexcept {
        return lists_[slot] != list_pool::none;
    }
    /// The lowest occupied slot; none.
    [[nodiscard]] slot_type first() const noexcept { return occupied_.first(); }
    /// The lowest occupied slot above another one; none.
    [[nodiscard]] slot_type after(slot_type slot) const noexcept { return occupied_.after(slot); }

    /// The list of an occupied slot.
    [[nodiscard]] const striped_list& operator[](slot_type slot) const noexcept {
        return list_of(slot);
    }

    void push(slot_type slot, timer_node& node, std::uint64_t sequence) noexcept {
        list_pool::index which = lists_[slot];
        if (which == list_pool::none) [[unlikely]]
            which = occupy(slot);
        (*pool_)[which].push(node, sequence);
    }

    void erase(slot_type slot, timer_node& node) noexcept {
        striped_list& list = list_of(slot);
        list.erase(node);
        if (list.empty())
            give_back(slot);
    }

    /// striped_list::walk() for one slot. The sink may push to any other slot, which may take one
    /// list more than there are nodes.
    template <class Sink>
    void walk(slot_type slot, std::size_t limit, Sink&& sink) noexcept {
        striped_list& list = list_of(slot);
        list.walk(limit, std::forward<Sink>(sink));
        if (list.empty())
            give_back(slot);
    }

    /// Unlinks a node of the lowest occupied slot; nullptr if there is none.
    // Out of line: what g++ inlines here it does not inline in a start.
    [[nodiscard]] PAWL_DETAIL_NOINLINE timer_node* pop() noexcept {
        const slot_type slot = first();
        if (slot == none)
            return nullptr;
        striped_list& list = list_of(slot);
        timer_node* const node = list.pop();
        if (list.empty())
            give_back(slot);
        return node;
    }

    /// Moves all nodes to empty slots of the same number. O(1): the lists do not move.
    void move_to(slot_lists& other) noexcept {
        PAWL_ASSERT(size() == other.size() && other.first() == none);
        occupied_.swap(other.occupied_);
        lists_.swap(other.lists_);
        other.pool_ = pool_;
    }

private:
    [[nodiscard]] striped_list& list_of(slot_type slot) const noexcept {
        PAWL_ASSERT(occupied(slot));
        return (*pool_)[lists_[slot]];
    }
    // Out of line, as is give_back(): that keeps push() and erase() short.
    PAWL_DETAIL_NOINLINE list_pool::index occupy(slot_type slot) noexcept {
        occupied_.set(slot);
        return lists_[slot] = pool_->take();
    }
    PAWL_DETAIL_NOINLINE void give_back(slot_type slot) noexcept {
        pool_->put(std::exchange(lists_[slot], list_pool::none));
        occupied_.reset(slot);
    }

    occupancy occupied_;
    fixed_array<list_pool::index> lists_;
    list_pool* pool_;
};

/// @tparam Shape geometry, or a reference to one that is shared: it takes as much memory as all else here.
template <class Shape = geometry>
class digit_slots : public slot_lists {
public:
    using key_type = std::uint64_t;

    digit_slots(const geometry& shape, key_type position, list_pool& lists)
        : slot_lists(shape.slots(), &lists), shape_(shape), position_(position) {}

    [[nodiscard]] const geometry& shape() const noexcept { return shape_; }
    [[nodiscard]] key_type position() const noexcept { return position_; }

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

private:
    Shape shape_;
    key_type position_;
    slot_type entered_ = none;
};

/// The stage of a hierarchical_wheel: sorts many nodes that are due at one tick by start sequence, in bounded
/// steps. Only the wheel moves nodes, and knows whether they are still due. It is opened for such a tick, whose oldest node
/// has key 0, and closed once it is empty. It has 176 slots in all wheels; a node is moved at most once per level, of which there are 11.
class tick_sorter : public digit_slots<const geometry&> {
public:
    /// Few slots, since it is rarely used. All wheels share it.
    static constexpr geometry every_shape = geometry({4}, timer_node::order_bits);

    explicit tick_sorter(list_pool& pool) : digit_slots(every_shape, 0, pool) {}

    [[nodiscard]] bool is_open() const noexcept { return open_; }

    /// @param oldest the least sequence of these nodes
    /// @pre first() == none
    void open(std::uint64_t oldest) noexcept {
        open_ = true;
        base_ = oldest;
        restart(0);
    }
    /// @pre first() == none
    void close() noexcept { open_ = false; }

    /// The key of a sequence. A node older than those handed out is next.
    [[nodiscard]] key_type key(std::uint64_t sequence) const noexcept {
        const key_type distance = sequence > base_ ? sequence - base_ : 0;
        return std::clamp(distance, position(), start_sequence::order_mask);
    }

    /// The entered slot; if there is none, enters the lowest one.
    /// @pre first() != none
    slot_type enter_lowest() noexcept {
        if (const slot_type slot = entered(); slot != none)
            return slot;
        // Entered at the oldest node, not at the first key, which spreads the rest more widely.
        const slot_type slot = first();
        enter(slot, std::clamp(key((*this)[slot].least()), begin(slot), last(slot)));
        return slot;
    }

private:
    std::uint64_t base_ = 0; ///< the sequence whose key is 0
    bool open_ = false;
};

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_DIGIT_SLOTS_HPP
