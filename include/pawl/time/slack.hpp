// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::time::best_in_range(): the tick for a timer that may be due anywhere in a range, on any
/// backend. It costs least, and other timers are most likely to choose it as well.
///
/// Model
///   One tick of a range has more trailing zero bits than all others. A node is moved only if a
///   lower digit of its due tick is not zero; and timers with overlapping ranges tend to choose the
///   same round tick, and so share a wake-up. HiTime calls it start_range (hitime_start_range in
///   its src/hitime.c).
///
///       100 = 0b01100100 .. 200 = 0b11001000  ->  128 = 0b10000000
#ifndef PAWL_TIME_SLACK_HPP
#define PAWL_TIME_SLACK_HPP

#include <pawl/time/tick.hpp>

#include <pawl/config.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace pawl::time {

/// The tick within `min` .. `max`, inclusive, that has the most trailing zero bits.
///
/// Every tick up to `now` is equally due, so if the range has begun, only the ticks after `now`
/// count; if there are none, the result is `max`. The result is never() only if no other tick is
/// left. For a node that is already filed: `backend.rearm(node, best_in_range(...))`.
///
/// @pre `min <= max`
/// @par Complexity
/// O(1).
[[nodiscard]] constexpr tick best_in_range(tick now, tick min, tick max) noexcept {
    PAWL_ASSERT(min <= max);
    if (max <= now)
        return max;
    // Clears the bits of `max` below the highest bit in which it differs from the tick before the
    // range. The result is in the range, and the only multiple of that bit there.
    const std::uint64_t before = std::max(min.count(), now.count() + 1) - 1;
    return tick{max.count() & ~(std::bit_floor(before ^ max.count()) - 1)};
}

} // namespace pawl::time

#endif // PAWL_TIME_SLACK_HPP
