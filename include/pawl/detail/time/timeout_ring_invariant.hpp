// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   timeout_ring::invariant(): checks every slot and every mark. For tests and for a debugger;
///   O(capacity).
#ifndef PAWL_DETAIL_TIME_TIMEOUT_RING_INVARIANT_HPP
#define PAWL_DETAIL_TIME_TIMEOUT_RING_INVARIANT_HPP

#include <pawl/detail/time/invariant_check.hpp>
#include <pawl/detail/time/ring_slots.hpp>
#include <pawl/time/tick.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pawl::time::detail {

struct timeout_ring_invariant {
    template <class Ring>
    static void check(const Ring& ring) {
        const invariant_check require{"timeout_ring"};

        // relaxed: no other call runs.
        constexpr auto quiet = std::memory_order_relaxed;
        const std::uint64_t word = ring.tail_.load(quiet);
        const std::uint64_t tail = ring_word::number_in(word);
        const std::uint64_t head = ring.head_.load(quiet);
        require(head <= tail && tail - head <= ring.capacity(),
                "capacity invariant: more slots are in use than there are",
                {{"head", head}, {"tail", tail}, {"capacity", ring.capacity()}});

        std::uint64_t in_use = 0;
        for (unsigned i = 0; i != ring_word::most_blocks; ++i) {
            const auto* const slots = ring.slots_.block_at(i);
            require(slots || i > ring_word::block_in(word),
                    "one-slot invariant: a block is missing", {{"block", i}});
            for (std::size_t k = 0; slots && k != ring.slots_.size(i); ++k) {
                const std::uint64_t state = slots[k].state.load(quiet);
                const std::uint64_t number = state >> ring_word::phase_bits;
                require(state == 0 || state == ring_word::live(number) ||
                            state == ring_word::done(number),
                        "one-slot invariant: a slot has no state",
                        {{"block", i}, {"slot", k}, {"state", state}});
                require(number < tail && (state == 0 || ring.slots_.place_in(i, number) == k),
                        "one-slot invariant: a slot has a ticket that is not its own",
                        {{"block", i}, {"slot", k}, {"ticket", number}, {"tail", tail}});
                require(state == 0 || state == ring_word::done(number) || number >= head,
                        "one-slot invariant: a timer is live in front of the ring",
                        {{"block", i}, {"slot", k}, {"ticket", number}, {"head", head}});
                require(state != ring_word::live(number) || slots[k].item.load(quiet),
                        "one-slot invariant: a live timer has no item",
                        {{"block", i}, {"slot", k}});
                in_use += state != 0 && number >= head ? 1U : 0U;
            }
        }
        require(in_use == tail - head, "one-slot invariant: a ticket is in no slot, or in two",
                {{"slots", in_use}, {"head", head}, {"tail", tail}});

        const std::uint64_t open = ring.open_from_.load(quiet);
        std::uint64_t number = 0;
        tick stamp{};
        for (const auto& mark : ring.marks_) {
            require(
                number == 0 || (mark.number > number && mark.stamp >= stamp),
                "mark invariant: a mark does not rise",
                {{"number", mark.number}, {"stamp", mark.stamp.count()}, {"last", stamp.count()}});
            number = mark.number;
            stamp = mark.stamp;
        }
        require(number <= open && open <= tail && stamp <= ring.begin_,
                "mark invariant: the open sub-period begins before the newest mark, or behind all",
                {{"mark", number}, {"open", open}, {"tail", tail}, {"begin", ring.begin_.count()}});
        require(!ring.driver_.load(quiet), "a driver is at work", {});
    }
};

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_TIMEOUT_RING_INVARIANT_HPP
