// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// Purpose
//   binary_wheel::invariant(): visits every node and every bin, and says with all operands which
//   invariant does not hold. For tests and for a debugger; O(size).

#ifndef PAWL_TIME_BINARY_WHEEL_INVARIANT_HPP
#define PAWL_TIME_BINARY_WHEEL_INVARIANT_HPP

#include <pawl/time/binary_wheel.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

namespace pawl::time {

inline void binary_wheel::invariant() const {
    bin_type bin = present;
    std::size_t total = 0;

    const auto require =
        [&](bool holds, const char* what,
            std::initializer_list<std::pair<const char*, std::uint64_t>> operands) {
            if (holds)
                return;
            std::string message = std::string("pawl: binary_wheel: ") + what;
            message.append(": bin = ").append(std::to_string(bin));
            for (const auto& [name, value] : operands)
                message.append(", ").append(name).append(" = ").append(std::to_string(value));
            throw std::logic_error(message);
        };

    const auto check_node = [&](const timer_node& node, timer_node* const& pointer) {
        require(node.link == &pointer, "N1, N2: a node is not linked to what points at it",
                {{"due", node.due.count()}});
        require(bin_of(node) == bin && is_here(node), "X1: a node names another bin",
                {{"node.slot", node.slot()}, {"epoch", epoch_}, {"due", node.due.count()}});
        // A list that runs in a circle would not end.
        require(++total <= size_, "X1: there are more nodes than the size", {{"size", size_}});
        if (bin == parked) {
            require(node.due == tick::never(), "X1: a parked node has a due tick",
                    {{"due", node.due.count()}});
        } else if (bin >= first_of_time) {
            require(
                begin(bin) <= std::max(node.due, now()), "X3: a node is due before its bin begins",
                {{"begin", begin(bin).count()}, {"due", node.due.count()}, {"now", now().count()}});
            require(bin % 64 >= time().below || node.due.count() >= time().least,
                    "G4: a node is due before the earliest",
                    {{"least", time().least}, {"due", node.due.count()}});
        } else if (bin >= first_of_stage) {
            require(sequence(node) >= stage().begin(bin % 64) || bin % 64 == stage().entered(),
                    "X3: a node in the stage is older than its bin",
                    {{"begin", stage().begin(bin % 64)}, {"sequence", sequence(node)}});
            require(bin % 64 >= stage().below || sequence(node) >= stage().least,
                    "G4: a node in the stage is older than the oldest",
                    {{"least", stage().least}, {"sequence", sequence(node)}});
        }
    };

    for (; bin <= parked; ++bin) {
        const bool occupied = (words_[bin / 64].occupied >> (bin % 64) & 1) != 0;
        require(occupied == (head(bin) != nullptr), "X1: the occupancy set is wrong",
                {{"occupied", occupied}});
        for (timer_node* const* at = &heads_[bin - present]; *at != nullptr; at = &(*at)->next)
            check_node(**at, *at);
    }
    require(total == size_, "X1: the size is not the number of nodes",
            {{"nodes", total}, {"size", size_}});

    for (const detail::bit_bins& bins : words_) {
        require(std::popcount(bins.occupied & bins.position) <= 1, "X2: two bins are entered",
                {{"occupied", bins.occupied}, {"position", bins.position}});
    }
    require(stage().position != closed || stage().occupied == 0,
            "X4: the stage is occupied, but not open", {{"occupied", stage().occupied}});
    require(stage().position == closed || time().entered() == detail::bit_bins::none,
            "X4: the stage is open, and a bin of time is entered", {{"now", now().count()}});
    require(asked_ >= now(), "X5: the position is beyond what was asked for",
            {{"asked", asked_.count()}, {"now", now().count()}});
}

} // namespace pawl::time

#endif
