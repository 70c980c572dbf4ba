// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// Purpose
//   timeout_ring::invariant(): visits every slot and every mark, and says with all operands which
//   invariant does not hold. For tests and for a debugger; O(capacity).

#ifndef PAWL_TIME_TIMEOUT_RING_INVARIANT_HPP
#define PAWL_TIME_TIMEOUT_RING_INVARIANT_HPP

#include <pawl/time/timeout_ring.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

namespace pawl::time {

template <class T>
void timeout_ring<T>::invariant() const {
    const auto require = [](bool holds, const char* what,
                            std::initializer_list<std::pair<const char*, std::uint64_t>> operands) {
        if (holds)
            return;
        std::string message = std::string("pawl: timeout_ring: ") + what + ":";
        for (const auto& [name, value] : operands)
            message.append(" ").append(name).append(" = ").append(std::to_string(value));
        throw std::logic_error(message);
    };

    // relaxed: no other call runs.
    constexpr auto quiet = std::memory_order_relaxed;
    const std::uint64_t word = tail_.load(quiet);
    const std::uint64_t tail = number_in(word);
    const std::uint64_t head = head_.load(quiet);
    require(head <= tail && tail - head <= capacity(), "R1: more slots are in use than there are",
            {{"head", head}, {"tail", tail}, {"capacity", capacity()}});

    std::uint64_t in_use = 0;
    for (unsigned i = 0; i != most_blocks; ++i) {
        const slot* const slots = block_at(i);
        require(slots != nullptr || i > block_in(word), "R2: a block is missing", {{"block", i}});
        for (std::size_t k = 0; slots != nullptr && k != slots_in(i); ++k) {
            const std::uint64_t state = slots[k].state.load(quiet);
            const std::uint64_t number = state >> phase_bits;
            require(state == 0 || state == live(number) || state == done(number),
                    "R2: a slot has no state", {{"block", i}, {"slot", k}, {"state", state}});
            require(number < tail && (state == 0 || place_in(i, number) == k),
                    "R2: a slot has a ticket that is not its own",
                    {{"block", i}, {"slot", k}, {"ticket", number}, {"tail", tail}});
            require(state == 0 || state == done(number) || number >= head,
                    "R2: a timer is live in front of the ring",
                    {{"block", i}, {"slot", k}, {"ticket", number}, {"head", head}});
            require(state != live(number) || slots[k].item.load(quiet) != nullptr,
                    "R2: a live timer has no item", {{"block", i}, {"slot", k}});
            in_use += state != 0 && number >= head ? 1U : 0U;
        }
    }
    require(in_use == tail - head, "R2: a ticket is in no slot, or in two",
            {{"slots", in_use}, {"head", head}, {"tail", tail}});

    const std::uint64_t open = open_from_.load(quiet);
    std::uint64_t number = 0;
    tick stamp{};
    for (const time_mark& mark : marks_) {
        require(number == 0 || (mark.number > number && mark.stamp >= stamp),
                "R3: a mark does not rise",
                {{"number", mark.number}, {"stamp", mark.stamp.count()}, {"last", stamp.count()}});
        number = mark.number;
        stamp = mark.stamp;
    }
    require(number <= open && open <= tail && stamp <= begin_,
            "R3: the open sub-period begins before the newest mark, or behind all",
            {{"mark", number}, {"open", open}, {"tail", tail}, {"begin", begin_.count()}});
    require(!driver_.load(quiet), "a driver is at work", {});
}

} // namespace pawl::time

#endif
