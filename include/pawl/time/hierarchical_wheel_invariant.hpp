// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// Purpose
//   hierarchical_wheel::invariant(): visits every node and every slot, and says with all operands
//   which invariant does not hold. For tests and for a debugger; O(size + slots).

#ifndef PAWL_TIME_HIERARCHICAL_WHEEL_INVARIANT_HPP
#define PAWL_TIME_HIERARCHICAL_WHEEL_INVARIANT_HPP

#include <pawl/time/hierarchical_wheel.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>

namespace pawl::time {

namespace detail {

struct operand {
    const char* name;
    std::uint64_t value;
};

/// Throws a std::logic_error with the names and values of `operands` unless `holds`.
template <class = void>
void require(bool holds, const char* what, std::initializer_list<operand> operands) {
    if (holds)
        return;
    std::string message = "pawl: hierarchical_wheel: ";
    message += what;
    const char* separator = ": ";
    for (const auto& [name, value] : operands) {
        message.append(separator).append(name).append(" = ").append(std::to_string(value));
        separator = ", ";
    }
    throw std::logic_error(message);
}

} // namespace detail

template <class>
void hierarchical_wheel::invariant() const {
    using detail::require;
    std::size_t total = 0;

    const auto check_list = [&](const detail::striped_list& list, std::uint32_t slot,
                                auto&& check_node) {
        std::uint32_t count = 0;
        list.for_each([&](const timer_node& node, timer_node* const& pointer) {
            ++count;
            require(node.link == &pointer, "N1, N2: a node is not linked to what points at it",
                    {{"slot", slot}, {"nth", count}, {"due", node.due.count()}});
            require(node.slot() == base() + slot, "W1: a node names another slot",
                    {{"slot", slot},
                     {"node.slot", node.slot()},
                     {"base", base()},
                     {"due", node.due.count()}});
            require(sequence(node) >= list.least(), "S3: a node is older than the oldest",
                    {{"slot", slot}, {"sequence", sequence(node)}, {"least", list.least()}});
            check_node(node);
            // A list that runs in a circle would not end.
            require(count <= list.count(), "S1: a slot has more nodes than it counts",
                    {{"slot", slot}, {"count", list.count()}});
        });
        require(count == list.count(), "S1: a slot has fewer nodes than it counts",
                {{"slot", slot}, {"nodes", count}, {"count", list.count()}});
        total += count;
    };

    const auto check_digits = [&](const detail::digit_slots& digits, std::uint32_t first,
                                  auto&& check_node) {
        const geometry& shape = digits.shape();
        const slot_type present = digits.slot_of(digits.position());
        for (slot_type slot = 0; slot != shape.slots(); ++slot) {
            const bool occupied = digits.occupied(slot);
            require(
                occupied == !digits[slot].empty(), "D1: the occupancy set is wrong",
                {{"slot", first + slot}, {"occupied", occupied}, {"count", digits[slot].count()}});
            if (!occupied)
                continue;
            require(slot == present || slot == digits.entered() ||
                        digits.begin(slot) > digits.position(),
                    "D2: a slot behind the position is occupied",
                    {{"slot", first + slot},
                     {"begin", digits.begin(slot)},
                     {"position", digits.position()}});
            check_list(digits[slot], first + slot,
                       [&](const timer_node& node) { check_node(node, slot); });
        }
    };

    check_digits(time_, 0, [&](const timer_node& node, slot_type slot) {
        require(slot == cascade() || time_.begin(slot) <= std::max(node.due, now()).count(),
                "W2: a node is due before its slot begins",
                {{"slot", slot},
                 {"begin", time_.begin(slot)},
                 {"due", node.due.count()},
                 {"now", now().count()}});
    });
    for (slot_type slot = 0; slot != time_.shape().slots(0); ++slot) {
        if (!time_[slot].ascends())
            continue;
        std::uint64_t last = 0;
        time_[slot].for_each_in_order([&](const timer_node& node) {
            if (sequence(node) >= cascaded_at_)
                return;
            require(sequence(node) > last, "S4, W5: a slot says that it is in order, and is not",
                    {{"slot", slot}, {"sequence", sequence(node)}, {"behind", last}});
            last = sequence(node);
        });
    }
    check_list(parked_, parked_slot_, [&](const timer_node& node) {
        require(node.due == tick::never(), "W1: a parked node has a due tick",
                {{"due", node.due.count()}});
    });
    check_digits(stage_, parked_slot_ + 1, [&](const timer_node& node, slot_type slot) {
        const std::uint64_t key = stage_key(sequence(node));
        require(slot == stage_.entered() || key >= stage_.begin(slot),
                "D3: a node in the stage comes before its slot begins",
                {{"slot", slot}, {"begin", stage_.begin(slot)}, {"key", key}});
    });

    require(staging_ || stage_.first() == none, "W3: the stage is occupied, but not open",
            {{"slot", stage_.first()}});
    require(total == size_, "W1: the size is not the number of nodes",
            {{"nodes", total}, {"size", size_}});
}

} // namespace pawl::time

#endif
