// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The output of one call of expire(): the room that it was given, and the emitted nodes in
///   order.
///
/// Cost
///   emit(): one pass over nodes that are in order, two more over nodes in reverse order.
#ifndef PAWL_DETAIL_TIME_DUE_BATCH_HPP
#define PAWL_DETAIL_TIME_DUE_BATCH_HPP

#include <pawl/config.hpp>

#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <algorithm>
#include <cstddef>

namespace pawl::time::detail {

/// The position of a wheel stops here, so that never() is not reached.
inline constexpr tick last_tick{tick::never().count() - 1};

struct due_batch {
    due_batch(timer_node** first, std::size_t size) noexcept : out(first), room(size), left(size) {}

    /// Appends nodes that are already at end(), in the order of `before(a, b)`.
    ///
    /// Usually they are sorted, in either direction. Exceptions: re-arms, erasures between pushes,
    /// and nodes that were filed again among others.
    template <class Before>
    void emit(std::size_t count, Before before) noexcept {
        timer_node** const first = end();
        const auto by_address = [&](const timer_node* a, const timer_node* b) {
            return before(*a, *b);
        };
        emitted += count;
        if (std::is_sorted(first, end(), by_address))
            return;
        std::reverse(first, end());
        if (!std::is_sorted(first, end(), by_address))
            std::sort(first, end(), by_address);
    }

    /// A turn of the loop of expire() begins. Most turns take a node; one that does not prepares the next.
    void turn() noexcept { PAWL_ASSERT(turns++ / 4 <= room); }

    /// Behind the emitted nodes.
    [[nodiscard]] timer_node** end() const noexcept { return out + emitted; }

    timer_node** out;
    std::size_t room;        ///< of the whole call
    std::size_t left;        ///< how many more nodes may be handled
    std::size_t emitted = 0; ///< how many are at the front of `out`
    std::size_t turns = 0;   ///< counted in debug builds only
};

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_DUE_BATCH_HPP
