// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   binary_wheel::invariant(): checks every node and every bin. For tests and for a debugger; O(size).
#ifndef PAWL_DETAIL_TIME_BINARY_WHEEL_INVARIANT_HPP
#define PAWL_DETAIL_TIME_BINARY_WHEEL_INVARIANT_HPP

#include <pawl/detail/time/bit_bins.hpp>
#include <pawl/detail/time/invariant_check.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pawl::time::detail {

struct binary_wheel_invariant {
    template <class Wheel>
    static void check(const Wheel& wheel) {
        const invariant_check require{"binary_wheel"};
        const bit_bins& time = wheel.time();
        const bit_bins& stage = wheel.stage();
        const tick now = wheel.now();
        auto bin = Wheel::present;
        std::size_t total = 0;

        const auto check_node = [&](const timer_node& node, timer_node* const& pointer) {
            const std::uint64_t due = node.due.count();
            require(node.link == &pointer,
                    "back-link invariant: a node is not linked to what points at it",
                    {{"bin", bin}, {"due", due}});
            require(Wheel::bin_of(node) == bin && wheel.is_here(node),
                    "bin-name invariant: a node names another bin",
                    {{"bin", bin},
                     {"node.slot", node.slot()},
                     {"epoch", wheel.epochs_.present()},
                     {"due", due}});
            // Ends a circular list.
            require(++total <= wheel.size_,
                    "bin-name invariant: there are more nodes than the size",
                    {{"bin", bin}, {"size", wheel.size_}});
            if (bin == Wheel::parked) {
                require(node.due == tick::never(),
                        "bin-name invariant: a parked node has a due tick", {{"due", due}});
            } else if (bin >= Wheel::first_of_time) {
                const tick begin = wheel.begin(bin);
                require(
                    begin <= std::max(node.due, now),
                    "bin-begin invariant: a node is due before its bin begins",
                    {{"bin", bin}, {"begin", begin.count()}, {"due", due}, {"now", now.count()}});
                require(bin % 64 >= time.below || due >= time.least,
                        "least-key invariant: a node is due before the earliest",
                        {{"bin", bin}, {"least", time.least}, {"due", due}});
            } else if (bin >= Wheel::first_of_stage) {
                const std::uint64_t sequence = wheel.starts_.of(node);
                require(sequence >= stage.begin(bin % 64) || bin % 64 == stage.entered(),
                        "bin-begin invariant: a node in the stage is older than its bin",
                        {{"bin", bin}, {"begin", stage.begin(bin % 64)}, {"sequence", sequence}});
                require(bin % 64 >= stage.below || sequence >= stage.least,
                        "least-key invariant: a node in the stage is older than the oldest",
                        {{"bin", bin}, {"least", stage.least}, {"sequence", sequence}});
            }
        };

        for (; bin <= Wheel::parked; ++bin) {
            const bool occupied = (wheel.words_[bin / 64].occupied >> (bin % 64) & 1) != 0;
            require(occupied == (wheel.head(bin) != nullptr),
                    "bin-name invariant: the occupancy set is wrong",
                    {{"bin", bin}, {"occupied", occupied}});
            for (timer_node* const* at = &wheel.heads_[bin - Wheel::present]; *at;
                 at = &(*at)->next)
                check_node(**at, *at);
        }
        require(total == wheel.size_, "bin-name invariant: the size is not the number of nodes",
                {{"nodes", total}, {"size", wheel.size_}});

        for (const bit_bins& bins : wheel.words_) {
            require(std::popcount(bins.occupied & bins.position) <= 1,
                    "one-entered invariant: two bins are entered",
                    {{"occupied", bins.occupied}, {"position", bins.position}});
        }
        require(stage.position != Wheel::closed || stage.occupied == 0,
                "stage invariant: the stage is occupied, but not open",
                {{"occupied", stage.occupied}});
        require(stage.position == Wheel::closed || time.entered() == bit_bins::none,
                "stage invariant: the stage is open, and a bin of time is entered",
                {{"now", now.count()}});
        require(wheel.asked_ >= now, "target invariant: the position is beyond what was asked for",
                {{"asked", wheel.asked_.count()}, {"now", now.count()}});
    }
};

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_BINARY_WHEEL_INVARIANT_HPP
