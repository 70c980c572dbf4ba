// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::missed_tick_policy, for interval timers and event queues.
#ifndef PAWL_MISSED_TICK_POLICY_HPP
#define PAWL_MISSED_TICK_POLICY_HPP

#include <pawl/config.hpp>

namespace pawl {

/// What an interval timer does after a missed tick: one that is delivered more than 5 ms late. The
/// three policies are those of tokio's `MissedTickBehavior`. If the clock was set ahead, each skips
/// the ticks that it left out.
enum class missed_tick_policy {
    /// The missed ticks follow at once, one after the other.
    burst,
    /// The next tick is due one period after the delivery of the late one. The grid moves.
    delay,
    /// Missed ticks are skipped: the next tick is due on the next point of the same grid.
    skip,
};

} // namespace pawl

#endif // PAWL_MISSED_TICK_POLICY_HPP
