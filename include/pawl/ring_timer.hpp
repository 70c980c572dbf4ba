// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::ring_timer, for timeouts of a few fixed delays.
#ifndef PAWL_RING_TIMER_HPP
#define PAWL_RING_TIMER_HPP

#include <pawl/basic_waitable_timer.hpp>

#include <pawl/service/on_backend.hpp>
#include <pawl/service/ring_filing.hpp>
#include <pawl/service/steady_clock.hpp>

#include <pawl/time/timeout_rings.hpp>

#include <boost/asio/wait_traits.hpp>

namespace pawl {

/// A steady timer in a ring of timers that all have the same delay, such as the idle timeouts of
/// connections.
///
/// It has the members of pawl::steady_timer. The delays are declared before the first timer is made:
///
/// @code
/// pawl::options o;
/// o.rings.delays = {{.delay = 5s}, {.delay = 30s, .capacity = 100'000}};
/// pawl::make_timer_service<pawl::ring_timer>(context, o);
///
/// pawl::ring_timer timer(context, 30s);
/// @endcode
///
/// What differs:
/// @li A timer of the delay d expires together with the last one that was started in the same k-th
///     part of d, where k is pawl::ring_options::marks: at the earliest d after async_wait(), or the
///     re-arm, and at the latest d, one such part and one pawl::options::precision after it, d and
///     the part rounded up to whole precisions. A lone timer is exact. Timers of one ring expire in the
///     order of the k-th parts of the delay in which they were started or last moved, and within
///     one such part in the order in which they came to it; there is no order between rings.
/// @li expires_after(), rearm_after(), expires_within() and rearm_within() take the ring of exactly
///     that delay, or, with pawl::ring_options::round_up, the next longer one. With any other delay
///     they throw `std::invalid_argument`, which names the delays there are; the timer and its waits
///     are as they were. A delay of zero or less needs no ring; such a wait is queued when it is
///     started.
/// @li expires_at() and rearm_at() do the same for the time that is left, so that in practice they
///     need `round_up`.
/// @li A ring may be full; pawl::ring_overflow says what becomes of the wait.
///
/// Moving a timer within the same k-th part of its delay writes the timer and nothing else, unless
/// expire_all() is at work. Otherwise it takes a new slot, and where the ring is full and has to grow
/// for that, the re-arm may throw `std::bad_alloc`, with nothing moved. Everything else, such as thread
/// safety and cancellation, is as with basic_waitable_timer.
using ring_timer = basic_waitable_timer<
    detail::steady_clock,
    on_backend<time::timeout_rings, boost::asio::wait_traits<detail::steady_clock>>>;

} // namespace pawl

#endif // PAWL_RING_TIMER_HPP
