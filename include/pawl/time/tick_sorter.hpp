// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The stage of a hierarchical_wheel: sorts a crowd that is due at one tick by start sequence, in
///   bounded steps. Only the wheel moves nodes, and knows whether they are still due.
///
/// Model
///   digit_slots keyed by start sequence. The stage is opened for a crowd, whose oldest node has
///   key 0, and closed once it is empty.
///
/// Cost
///   176 slots, two bytes each, in all wheels. A node is moved at most once per level, of which
///   there are 11.
#ifndef PAWL_TIME_TICK_SORTER_HPP
#define PAWL_TIME_TICK_SORTER_HPP

#include <pawl/time/digit_slots.hpp>
#include <pawl/time/geometry.hpp>
#include <pawl/time/list_pool.hpp>
#include <pawl/time/start_sequence.hpp>
#include <pawl/time/timer_node.hpp>

#include <algorithm>
#include <cstdint>

namespace pawl::time::detail {

class tick_sorter : public digit_slots<const geometry&> {
public:
    /// Few slots, since it is rarely used. All wheels share it.
    static constexpr geometry every_shape = geometry({4}, timer_node::order_bits);

    explicit tick_sorter(list_pool& pool) : digit_slots(every_shape, 0, pool) {}

    [[nodiscard]] bool is_open() const noexcept { return open_; }

    /// @param oldest the least sequence of the crowd
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

#endif // PAWL_TIME_TICK_SORTER_HPP
