// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::coarse_timer: for timeouts that are set often and may be some milliseconds late.
#ifndef PAWL_COARSE_TIMER_HPP
#define PAWL_COARSE_TIMER_HPP

#include <pawl/basic_waitable_timer.hpp>
#include <pawl/coarse_clock.hpp>

namespace pawl {

/// A timer on pawl::coarse_clock, for idle timeouts and the like. Moving its deadline costs about
/// half as much as with pawl::steady_timer.
///
/// @code
/// pawl::coarse_timer idle(context, 30s);
/// idle.async_wait(close_connection);
/// ... idle.rearm_after(30s);   // for each read
/// @endcode
///
/// It is never early by the steady clock. An expiry that is set as a duration may be late by three
/// times the clock's resolution: 12 ms if Linux ticks 250 times a second. expiry() returns the
/// resulting time. An expiry that is set as a time point is exact. Both may also be late as any
/// timer may: by one pawl::options::precision, and by the executor.
///
/// Members, errors, thread safety, cancellation and complexity are those of basic_waitable_timer.
/// Like every timer type, it has its own service in each context.
using coarse_timer = basic_waitable_timer<coarse_clock>;

} // namespace pawl

#endif // PAWL_COARSE_TIMER_HPP
