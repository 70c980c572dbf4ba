// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::ring_timer: for timeouts with a few fixed delays.
#ifndef PAWL_RING_TIMER_HPP
#define PAWL_RING_TIMER_HPP

#include <pawl/basic_waitable_timer.hpp>
#include <pawl/on_backend.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/service/ring_filing.hpp>

#include <pawl/detail/time/timeout_rings.hpp>

#include <boost/asio/wait_traits.hpp>

namespace pawl {

/// A steady timer in a ring of timers with the same delay, such as the idle timeouts of
/// connections.
///
/// It has the members of pawl::steady_timer. Declare the delays before the first timer is made:
///
/// @code
/// pawl::options o;
/// o.rings.delays = {{.delay = 5s}, {.delay = 30s, .capacity = 100'000}};
/// pawl::make_timer_service<pawl::ring_timer>(context, o);
///
/// pawl::ring_timer timer(context, 30s);
/// @endcode
///
/// Differences:
/// @li Timers whose expiries lie in the same period expire together; a delay d has k periods
///     (pawl::ring_options::marks). A timer expires at least d after async_wait() or the re-arm,
///     and at most d plus one period plus one pawl::options::precision after it, with d and the
///     period rounded up to whole precisions. A lone timer is exact. Timers of one ring expire in
///     the order of these periods; within a period, in the order in which they came to it.
///     Different rings have no common order.
/// @li expires_after(), rearm_after(), expires_within() and rearm_within() use the ring with
///     exactly that delay or, with pawl::ring_options::round_up, the next longer one. Otherwise
///     they throw `std::invalid_argument`, which lists the delays, and change nothing. A delay of
///     zero or less needs no ring: the wait is due as soon as it starts.
/// @li expires_at() and rearm_at() use the remaining time as the delay. In practice they need
///     `round_up`.
/// @li A ring may be full; pawl::ring_overflow says what happens to the wait.
///
/// Moving a timer within its period only writes to the timer, unless expire_all() is running.
/// Otherwise the timer takes a new slot. If the ring is full and has to grow, the re-arm may throw
/// `std::bad_alloc`, with nothing moved. All other properties, such as thread safety and
/// cancellation, are those of basic_waitable_timer.
using ring_timer = basic_waitable_timer<
    detail::steady_clock,
    on_backend<time::timeout_rings, boost::asio::wait_traits<detail::steady_clock>>>;

} // namespace pawl

#endif // PAWL_RING_TIMER_HPP
