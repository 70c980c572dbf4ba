// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

/// @file
/// pawl::time::best_in_range(), which chooses a tick for a timer that may be due anywhere in a range.

// Purpose
//   Chooses the tick of a timer that may be due anywhere in a range: the one that costs least, and
//   that others are most likely to choose, too. For every backend.
//
// Model
//   Of the ticks in a range one has more trailing zero bits than all the others. Nodes are filed
//   anew only where a lower digit of their due tick is not zero, and timers whose ranges overlap
//   tend to meet at the same round tick, hence in one wake-up. HiTime calls it start_range
//   (hitime_start_range in its src/hitime.c).
//
//       100 = 0b01100100 .. 200 = 0b11001000  ->  128 = 0b10000000
//
// Cost
//   O(1): one count of leading zeros.

#ifndef PAWL_TIME_SLACK_HPP
#define PAWL_TIME_SLACK_HPP

#include <pawl/time/tick.hpp>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>

namespace pawl::time {

/// The tick within `min` .. `max`, both included, that has the most trailing zero bits.
///
/// What is due at `now` or before is due at once, whenever that was: of a range that has begun only
/// the ticks after `now` count, and if there are none the answer is `max`. The answer is never()
/// only if no other tick is left. For a node that is filed already:
/// `backend.rearm(node, best_in_range(...))`.
///
/// The idea is that of HiTime, where it is called `start_range`.
///
/// @pre `min <= max`
/// @par Complexity
/// O(1).
[[nodiscard]] constexpr tick best_in_range(tick now, tick min, tick max) noexcept {
    assert(min <= max);
    if (max <= now)
        return max;
    // Below the highest bit in which max differs from what is before the range, max is cleared. The
    // result is in the range, and no other multiple of that bit is.
    const std::uint64_t before = std::max(min.count(), now.count() + 1) - 1;
    return tick{max.count() & ~(std::bit_floor(before ^ max.count()) - 1)};
}

} // namespace pawl::time

#endif
