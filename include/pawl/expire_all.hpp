// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::expire_all and pawl::cancel_all, for shutting a server down.
#ifndef PAWL_EXPIRE_ALL_HPP
#define PAWL_EXPIRE_ALL_HPP

#include <pawl/config.hpp>

#include <pawl/service/service_registry.hpp>
#include <pawl/service/timer_service.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>

namespace pawl {

/// Completes every pending wait of every timer of `context` at once, whatever its clock, and ends every
/// limit as if it had been reached.
///
/// @code
/// pawl::expire_all(context, pawl::error::shutting_down);
/// @endcode
///
/// The handlers are queued and told the value and the category of `ec`; none is invoked here. This
/// is the one case in which a wait completes with success, if `ec` is success, before its expiry.
/// It is final: the waits are neither cancelled nor re-armed any more. They complete in no
/// particular order. Waits that are due already keep their own result. The timers keep their
/// expiry, and new waits may be started at any time.
///
/// An operation under a limit is cancelled, whatever `ec` is, and pawl::timeout tells it `ec`; success
/// means no code of its own, so that it is told pawl::error::timed_out. Operations and waits that have
/// neither a timer nor a limit go on. A timeout_stream reports what it reports when a limit is reached.
///
/// @return how many waits were completed early.
/// @throws std::bad_alloc, with nothing changed for the timers that were not yet reached.
/// @par Thread safety
/// May be called from any thread, also while other threads use timers of the context. Locks are
/// held for a bounded number of timers at a time.
/// @par Complexity
/// O(levels x slots) to detach all timers, O(1) for each wait.
inline std::size_t expire_all(boost::asio::execution_context& context,
                              const boost::system::error_code& ec = {}) {
    std::size_t count = 0;
    boost::asio::use_service<detail::service_registry>(context).for_each(
        [&](detail::registered_service& s) {
            count += s.expire_all(ec, detail::wait_ending::early);
        });
    return count;
}

/// expire_all() for the timers of one type, for instance those that only idle connections wait on.
///
/// @tparam Timer such as pawl::steady_timer or pawl::ring_timer: all that are kept by the same
///               service, which are those with its clock and its wait traits. The limits of
///               timeout(), cancel_after() and tcp_stream are steady timers, too.
template <class Timer>
    requires requires(Timer& t) {
        typename Timer::traits_type;
        t.rearm_at(t.expiry()); // not a timer of Asio's
    }
std::size_t expire_all(boost::asio::execution_context& context,
                       const boost::system::error_code& ec = {}) {
    using service = typename detail::service_of<Timer>::type;
    // Not made here, without the options that it may still be given.
    return boost::asio::has_service<service>(context)
               ? boost::asio::use_service<service>(context).expire_all(ec)
               : 0;
}

/// Does to every timer of `context`, whatever its clock, what its cancel() does.
///
/// Pending waits are told `operation_aborted`. Limits are lifted: their operations go on, without a
/// limit, which is what a server does that gives its last requests as long as they take. Only the limits
/// of a timeout_stream are not lifted: they are reached, as with expire_all().
///
/// @return how many waits and limits there were.
/// @throws std::bad_alloc, with nothing changed for the timers that were not yet reached.
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
