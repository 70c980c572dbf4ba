// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::expire_all and pawl::cancel_all, to shut down a server.
#ifndef PAWL_EXPIRE_ALL_HPP
#define PAWL_EXPIRE_ALL_HPP

#include <pawl/config.hpp>

#include <pawl/timer_service.hpp>

#include <pawl/detail/service/service_registry.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>

namespace pawl {

/// Completes all pending waits of all timers of `context` now, on every clock, and makes all limits
/// of the context expire.
///
/// @code
/// pawl::expire_all(context, pawl::error::shutting_down);
/// @endcode
///
/// The handlers are queued, not invoked here. They receive `ec`. With success as `ec`, a wait may
/// succeed before its expiry; nothing else in Pawl does that. The waits can no longer be cancelled
/// or re-armed, and complete in no particular order. Waits that are already due keep their own
/// result. Timers keep their expiry, and new waits may be started at any time.
///
/// An alarm that is not due yet is called with `ec` if its function takes an `error_code`; otherwise
/// it is disarmed.
///
/// An operation under a limit is cancelled. pawl::timeout reports `ec`, or pawl::error::timed_out
/// if `ec` is success. Operations without a timer or limit continue. A timeout_stream reports what
/// it reports for a limit; on a clock that may be set its limits expire only with an error as `ec`.
///
/// @return the number of waits that were completed early, and of alarms that were called or disarmed.
/// @throws std::bad_alloc. Timers that were not yet reached are unchanged.
/// @par Thread safety
/// May be called from any thread, also while other threads use timers of the context. Each lock is
/// held for a bounded number of timers.
/// @par Complexity
/// O(levels x slots) to detach all timers, O(1) per wait.
inline std::size_t expire_all(boost::asio::execution_context& context,
                              const boost::system::error_code& ec = {}) {
    std::size_t count = 0;
    boost::asio::use_service<detail::service_registry>(context).for_each(
        [&](detail::registered_service& s) {
            count += s.expire_all(ec, detail::wait_ending::early);
        });
    return count;
}

/// expire_all() for the timers of one type, such as a type that only idle connections use.
///
/// @tparam Timer a timer type, such as pawl::steady_timer or pawl::ring_timer. The call reaches all
///     timers with the same clock and wait traits. The limits of timeout(), cancel_after() and
///     tcp_stream are steady timers, too.
template <class Timer>
    requires requires(Timer& t) {
        typename Timer::traits_type;
        t.rearm_at(t.expiry()); // rejects Asio's timers
    }
std::size_t expire_all(boost::asio::execution_context& context,
                       const boost::system::error_code& ec = {}) {
    using service = typename detail::service_of<Timer>::type;
    // A new service would have default options; the program may still want to set others.
    return boost::asio::has_service<service>(context)
               ? boost::asio::use_service<service>(context).expire_all(ec)
               : 0;
}

/// Cancels all timers of `context`, on every clock, as their cancel() does.
///
/// Pending waits report `operation_aborted`. Limits are lifted: their operations continue without a
/// limit. A server does this to let its last requests finish. Exceptions: the limits of a
/// timeout_stream expire, as with expire_all(), and so do those of cancel_after() and cancel_at()
/// on a timer of yours. Alarms that are not due yet are
/// disarmed.
///
/// @return the number of waits and limits that were ended.
/// @throws std::bad_alloc. Timers that were not yet reached are unchanged.
/// @par Thread safety
/// As expire_all().
/// @par Complexity
/// As expire_all().
inline std::size_t cancel_all(boost::asio::execution_context& context) {
    std::size_t count = 0;
    boost::asio::use_service<detail::service_registry>(context).for_each(
        [&](detail::registered_service& s) {
            count +=
                s.expire_all(boost::asio::error::operation_aborted, detail::wait_ending::cancelled);
        });
    return count;
}

} // namespace pawl

#endif // PAWL_EXPIRE_ALL_HPP
