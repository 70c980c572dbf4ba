// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::expire_all, for shutting a server down.
#ifndef PAWL_EXPIRE_ALL_HPP
#define PAWL_EXPIRE_ALL_HPP

#include <pawl/config.hpp>

#include <pawl/service/service_registry.hpp>
#include <pawl/service/timer_service.hpp>

#include <boost/asio/execution_context.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>

namespace pawl {

/// Completes every pending wait of every timer of `context` at once, whatever its clock.
///
/// The handlers are queued and told the value and the category of `ec`; none is invoked here. This
/// is the one case in which a wait completes with success, if `ec` is success, before its expiry.
/// It is final: the waits are neither cancelled nor re-armed any more. They complete in no
/// particular order. Waits that are due already keep their own result. The timers keep their
/// expiry, and new waits may be started at any time.
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
        [&](detail::registered_service& s) { count += s.expire_all(ec); });
    return count;
}

/// The same for the timers of one type, for instance those that only idle connections wait on.
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

} // namespace pawl

#endif // PAWL_EXPIRE_ALL_HPP
