// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Numbers the slots of a hierarchical_wheel and of the sets detached from it, and holds those
///   sets, whose nodes are still filed.
///
/// Model
///   `slot` of a node counts from base(): the slots of time, never, the slots of the stage. Its 16
///   bits hold several times that number; each such range is an epoch (node_list.hpp). A detached node
///   is recognised by its slot without having been visited. If all epochs are in use, the nodes of
///   one more set are visited, and moved to one list.
///
/// Cost
///   take O(1), or O(nodes) while some fifty sets are being drained. erase O(sets).
#ifndef PAWL_DETAIL_TIME_DETACHED_SETS_HPP
#define PAWL_DETAIL_TIME_DETACHED_SETS_HPP

#include <pawl/detail/time/digit_slots.hpp>
#include <pawl/detail/time/list_pool.hpp>
#include <pawl/detail/time/node_list.hpp>
#include <pawl/time/timer_node.hpp>

#include <pawl/config.hpp>
#include <pawl/time/geometry.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pawl::time::detail {

class detached_sets {
public:
    class set;

    /// @param time_slots the number of slots of time
    /// @param pool       has the lists of all slots
    detached_sets(std::uint32_t time_slots, list_pool& pool)
        : never_slot(time_slots), slots(time_slots + 1 + tick_sorter::every_shape.slots()),
          most(std::min(epochs::most, list_pool::most / slots)), pool_(pool) {
        // 12 bits on each level, the maximum, make 20673 slots.
        PAWL_ASSERT(most >= 2);
    }

    detached_sets& operator=(detached_sets&&) = delete;

    const std::uint32_t never_slot; ///< the number of the nodes due never, and of the slots of time
    const std::uint32_t slots;      ///< how many numbers the wheel has, as does each set
    const std::uint32_t most;       ///< how many epochs there are

    /// The number of the wheel's first slot.
    [[nodiscard]] std::uint32_t base() const noexcept { return base_; }
    /// How many epochs the wheel and its sets use.
    [[nodiscard]] std::uint32_t used() const noexcept { return epochs_.used(); }

    /// The pool has lists for fewer nodes than this, in the wheel and its sets together (lent-list
    /// invariant of hierarchical_wheel.hpp).
    [[nodiscard]] std::size_t room() const noexcept { return room_; }
    /// The same with `more` sets.
    [[nodiscard]] std::size_t room_with(std::uint32_t more) const noexcept {
        const std::uint32_t lists = pool_.size();
        // The nodes due never are a list of their own.
        const std::uint32_t needed = (slots - 1) * std::min(used() + more, most);
        return needed <= lists ? ~std::size_t{0} : lists;
    }
    /// The pool has grown.
    // Kept, since each start asks for it.
    void count_room() noexcept { room_ = room_with(0); }

    /// Moves all nodes of a wheel to an empty set.
    void take(set& to, slot_lists& time, slot_lists& stage, striped_list& never) noexcept;

    /// Unlinks a node of a set.
    void erase(timer_node& node) noexcept;

private:
    template <class>
    friend struct pawl::detail::invariant_of;

    static constexpr std::uint32_t loose_slot = 0xffff; ///< in a set, beyond all epochs

    void give_epoch_back(set& emptied) noexcept;

    list_pool& pool_;
    std::uint32_t base_ = 0; ///< epochs_.present() * slots
    std::size_t room_ = 0;
    epochs epochs_;
    set* sets_ = nullptr; ///< those with an epoch
};

class detached_sets::set {
public:
    /// Allocates room for all nodes that a wheel of this shape will ever hold.
    /// @throws std::bad_alloc
    explicit set(const geometry& shape)
        : time_(shape.slots()), stage_(tick_sorter::every_shape.slots()) {}

    set& operator=(set&&) = delete;

    /// Unfiles the nodes that are left.
    ~set() {
        while (pop()) {
        }
    }

    /// Unfiles a node and returns it; nullptr if none is left.
    [[nodiscard]] timer_node* pop() noexcept {
        if (!home_)
            return nullptr;
        // Staged nodes are due at now(), the others never.
        if (timer_node* const node = stage_.pop())
            return node;
        if (timer_node* const node = time_.pop())
            return node;
        if (timer_node* const node = never_.pop())
            return node;
        if (epoch_ != 0)
            home_->give_epoch_back(*this);
        home_ = nullptr;
        return nullptr;
    }

private:
    friend class detached_sets;
    template <class>
    friend struct pawl::detail::invariant_of;

    slot_lists time_;
    slot_lists stage_;
    striped_list never_;            ///< and all nodes of a set without an epoch
    detached_sets* home_ = nullptr; ///< non-null while there may be nodes
    std::uint64_t epoch_ = 0;       ///< to give back, if any
    std::uint32_t base_ = 0;        ///< first slot of that epoch
    set* next_ = nullptr;           ///< another set with an epoch
};

inline void detached_sets::take(set& to, slot_lists& time, slot_lists& stage,
                                striped_list& never) noexcept {
    PAWL_ASSERT(!to.home_);
    to.home_ = this;
    to.never_.take(never);
    to.epoch_ = epochs_.move_on(most);
    if (to.epoch_ != 0) {
        time.move_to(to.time_);
        stage.move_to(to.stage_);
        to.base_ = std::exchange(base_, epochs_.present() * slots);
        to.next_ = std::exchange(sets_, &to);
        count_room();
        return;
    }
    to.never_.for_each(
        [](const timer_node&, timer_node* const& node) { node->set_slot(loose_slot); });
    for (slot_lists* const from : {&time, &stage}) {
        for (std::uint32_t slot = from->size(); slot-- != 0;) {
            if (!from->occupied(slot))
                continue;
            from->walk(slot, (*from)[slot].count(), [&to](timer_node& node) {
                node.set_slot(loose_slot);
                to.never_.push(node, 0);
            });
        }
    }
}

inline void detached_sets::erase(timer_node& node) noexcept {
    for (set* each = sets_; each; each = each->next_) {
        const std::uint32_t slot = node.slot() - each->base_; // wraps around for earlier epochs
        if (slot < never_slot)
            return each->time_.erase(slot, node);
        if (slot > never_slot && slot < slots)
            return each->stage_.erase(slot - never_slot - 1, node);
    }
    unlink(node); // in the set's own list
}

inline void detached_sets::give_epoch_back(set& emptied) noexcept {
    epochs_.give_back(emptied.epoch_);
    set** at = &sets_;
    while (*at != &emptied) {
        PAWL_ASSERT(*at);
        at = &(*at)->next_;
    }
    *at = emptied.next_;
    count_room();
}

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_DETACHED_SETS_HPP
