// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   hierarchical_wheel::invariant(): checks every node and every slot. For tests and for a debugger;
///   O(size + slots).
#ifndef PAWL_DETAIL_TIME_HIERARCHICAL_WHEEL_INVARIANT_HPP
#define PAWL_DETAIL_TIME_HIERARCHICAL_WHEEL_INVARIANT_HPP

#include <pawl/detail/time/detached_sets.hpp>
#include <pawl/detail/time/invariant_check.hpp>
#include <pawl/detail/time/list_pool.hpp>
#include <pawl/detail/time/striped_list.hpp>
#include <pawl/time/geometry.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace pawl::time::detail {

struct hierarchical_wheel_invariant {
    template <class Wheel>
    static void check(const Wheel& wheel) {
        using slot_type = slot_lists::slot_type;
        const invariant_check require{"hierarchical_wheel"};
        const std::uint32_t base = wheel.sets_.base();
        const std::uint32_t parked = wheel.sets_.parked_slot();
        const tick now = wheel.now();
        std::size_t total = 0;

        const auto check_list = [&](const striped_list& list, std::uint32_t slot,
                                    auto&& check_node) {
            std::uint32_t count = 0;
            list.for_each([&](const timer_node& node, timer_node* const& pointer) {
                ++count;
                require(node.link == &pointer,
                        "back-link invariant: a node is not linked to what points at it",
                        {{"slot", slot}, {"nth", count}, {"due", node.due.count()}});
                require(node.slot() == base + slot,
                        "slot-name invariant: a node names another slot",
                        {{"slot", slot},
                         {"node.slot", node.slot()},
                         {"base", base},
                         {"due", node.due.count()}});
                require(wheel.starts_.of(node) >= list.least(),
                        "least-sequence invariant: a node is older than the oldest",
                        {{"slot", slot},
                         {"sequence", wheel.starts_.of(node)},
                         {"least", list.least()}});
                check_node(node);
                // Ends a circular list.
                require(count <= list.count(),
                        "count invariant: a slot has more nodes than it counts",
                        {{"slot", slot}, {"count", list.count()}});
            });
            require(count == list.count(), "count invariant: a slot has fewer nodes than it counts",
                    {{"slot", slot}, {"nodes", count}, {"count", list.count()}});
            total += count;
        };

        std::uint32_t occupied_slots = 0;
        const auto check_digits = [&](const auto& digits, std::uint32_t first, auto&& check_node) {
            const geometry& shape = digits.shape();
            const slot_type present = digits.slot_of(digits.position());
            slot_type next = digits.first();
            for (slot_type slot = 0; slot != shape.slots(); ++slot) {
                const bool occupied = digits.occupied(slot);
                require(occupied == (next == slot),
                        "occupancy invariant: the occupancy set is wrong",
                        {{"slot", first + slot}, {"has_a_list", occupied}, {"next", next}});
                if (!occupied)
                    continue;
                next = digits.after(slot);
                ++occupied_slots;
                require(!digits[slot].empty(), "occupancy invariant: a slot is occupied by nothing",
                        {{"slot", first + slot}});
                require(slot == present || slot == digits.entered() ||
                            digits.begin(slot) > digits.position(),
                        "no-slot-behind invariant: a slot behind the position is occupied",
                        {{"slot", first + slot},
                         {"begin", digits.begin(slot)},
                         {"position", digits.position()}});
                check_list(digits[slot], first + slot,
                           [&](const timer_node& node) { check_node(node, slot); });
            }
        };

        check_digits(wheel.time_, 0, [&](const timer_node& node, slot_type slot) {
            require(slot == wheel.cascade() ||
                        wheel.time_.begin(slot) <= std::max(node.due, now).count(),
                    "slot-begin invariant: a node is due before its slot begins",
                    {{"slot", slot},
                     {"begin", wheel.time_.begin(slot)},
                     {"due", node.due.count()},
                     {"now", now.count()}});
        });
        for (slot_type slot = 0; slot != wheel.time_.shape().slots(0); ++slot) {
            if (!wheel.time_.occupied(slot) || !wheel.time_[slot].ascends())
                continue;
            std::uint64_t last = 0;
            wheel.time_[slot].for_each_in_order([&](const timer_node& node) {
                if (wheel.starts_.of(node) >= wheel.cascaded_at_)
                    return;
                require(wheel.starts_.of(node) > last,
                        "cascade-order invariant: a slot says that it is in order, and is not",
                        {{"slot", slot}, {"sequence", wheel.starts_.of(node)}, {"behind", last}});
                last = wheel.starts_.of(node);
            });
        }
        check_list(wheel.parked_, parked, [&](const timer_node& node) {
            require(node.due == tick::never(), "slot-name invariant: a parked node has a due tick",
                    {{"due", node.due.count()}});
        });
        check_digits(wheel.stage_, parked + 1, [&](const timer_node& node, slot_type slot) {
            const std::uint64_t key = wheel.stage_.key(wheel.starts_.of(node));
            require(slot == wheel.stage_.entered() || key >= wheel.stage_.begin(slot),
                    "slot-begin invariant: a node in the stage comes before its slot begins",
                    {{"slot", slot}, {"begin", wheel.stage_.begin(slot)}, {"key", key}});
        });

        require(wheel.stage_.is_open() || wheel.stage_.first() == slot_lists::none,
                "stage invariant: the stage is occupied, but not open",
                {{"slot", wheel.stage_.first()}});
        const auto check_set = [&](const detached_sets::set& set, const slot_lists& slots,
                                   std::uint32_t first) {
            for (slot_type slot = 0; slot != slots.size(); ++slot) {
                if (!slots.occupied(slot))
                    continue;
                ++occupied_slots;
                const striped_list& list = slots.list(wheel.pool_, slot);
                std::uint32_t count = 0;
                list.for_each([&](const timer_node& node, timer_node* const&) {
                    ++count;
                    require(node.slot() == set.base_ + first + slot,
                            "slot-name invariant: a node of a set names another slot",
                            {{"slot", first + slot}, {"node.slot", node.slot()}});
                });
                require(count != 0 && count == list.count(),
                        "lent-list invariant: a slot of a set counts wrong",
                        {{"slot", first + slot}, {"nodes", count}, {"count", list.count()}});
            }
        };
        for (const auto* set = wheel.sets_.sets_; set; set = set->next_) {
            check_set(*set, set->time_, 0);
            check_set(*set, set->stage_, parked + 1);
        }
        require(occupied_slots == wheel.pool_.lent(),
                "lent-list invariant: a list is lent to no slot, or to two",
                {{"slots", occupied_slots}, {"lent", wheel.pool_.lent()}});
        require(total == wheel.size_, "slot-name invariant: the size is not the number of nodes",
                {{"nodes", total}, {"size", wheel.size_}});
    }
};

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_HIERARCHICAL_WHEEL_INVARIANT_HPP
