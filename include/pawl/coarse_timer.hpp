// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::coarse_timer, for timeouts that are set often and may be some milliseconds late.
#ifndef PAWL_COARSE_TIMER_HPP
#define PAWL_COARSE_TIMER_HPP

#include <pawl/basic_waitable_timer.hpp>
#include <pawl/coarse_clock.hpp>

namespace pawl {

/// A timer on pawl::coarse_clock, for idle timeouts and the like, whose 30 s may be some milliseconds more.
/// Moving its deadline costs about half of what it costs with pawl::steady_timer.
///
/// @code
/// pawl::coarse_timer idle(context, 30s);
/// idle.async_wait(close_connection);
/// ... idle.rearm_after(30s);   // for each read
/// @endcode
///
/// It is never early by the steady clock. An expiry that is given as a duration may be late by
/// three times the clock's resolution, 12 ms where Linux ticks 250 times a second; expiry() says when it
/// is. One that is given as a point in time is exact. Both are then late by what any other
/// timer may be late, one pawl::options::precision and the executor.
///
/// Members, errors, thread safety, cancellation and complexity are those of basic_waitable_timer. Its
/// timers have a service of their own in a context, as all types of timers have.
using coarse_timer = basic_waitable_timer<coarse_clock>;

} // namespace pawl

#endif // PAWL_COARSE_TIMER_HPP
