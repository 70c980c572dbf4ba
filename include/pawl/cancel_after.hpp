// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::cancel_after and pawl::cancel_at: any asynchronous operation, cancelled when its time is
/// up.
#ifndef PAWL_CANCEL_AFTER_HPP
#define PAWL_CANCEL_AFTER_HPP

#include <pawl/config.hpp>

#include <pawl/limit/limited_token.hpp>

#include <utility>

namespace pawl {

namespace detail {

/// The operation's results go to the handler as they are.
struct report_results {
    template <class Signature>
    using signature = Signature;

    template <class Handler, class... Args>
    static void invoke(Handler&& handler, const verdict&, Args&&... args) {
        std::move(handler)(std::forward<Args>(args)...);
    }
};

} // namespace detail

/// Cancels an asynchronous operation that has not completed within a time.
///
/// Call it where the operation takes its completion token, with the token that you would use
/// otherwise:
///
/// @code
/// std::size_t n = co_await socket.async_read_some(buffer, pawl::cancel_after(5s));
/// socket.async_read_some(buffer, pawl::cancel_after(5s, [](error_code ec, std::size_t n) { ... }));
/// @endcode
///
/// Name and shape are those of `boost::asio::cancel_after` in Boost 1.86. What is better: the limit
/// is kept by Pawl's timer service, in the one block of memory that the operation's state takes; an
/// operation that completes first ends it on the spot, with nothing to wait for, and nothing posted,
/// unless it was the last limit of its context and ends outside of `run()`.
///
/// Overloads, where `type` says how to cancel (`boost::asio::cancellation_type`, `terminal` if it
/// is not given):
/// @li `cancel_after(duration, token)`, `cancel_after(duration, type, token)`
/// @li `cancel_after(duration)`, `cancel_after(duration, type)`: partial forms. Each is a completion
///     token that stands for the default one of the operation's executor, or else for
///     `boost::asio::deferred`, which can be awaited; and a function object that takes the token.
/// @li `cancel_after(timer, ...)`: the same four with a pawl timer of the caller's on any clock. The
///     limit is a wait on that timer: the call sets its expiry, as `expires_after()` does, which
///     cancels its other waits; `rearm_after()` moves the limit of the operation that is running;
///     `cancel()` and the destruction of the timer lift it. Use it to allocate nothing for a timer,
///     to extend a limit, and to test on pawl::manual_clock.
///
/// The duration is counted from the start of the operation, a deferred one's as well. Zero and less
/// mean now: the operation is started, and cancelled as soon as the executor can. What is too large
/// to be counted means never.
///
/// @par Completion
/// As without a limit, once, with what the operation completes with: an operation that is cancelled
/// says `boost::asio::error::operation_aborted`, whoever has cancelled it. pawl::timeout tells the
/// two apart. An operation that ignores cancellation completes when it does.
///
/// @par Executor
/// The operation is cancelled on the associated executor of the handler, by default that of the I/O
/// object. Its limit is kept by the context of the I/O object; an operation that does not say which
/// that is, as some of Beast's do not, uses the handler's, and does not compile if that has none, and
/// no timer is given. In a context that is run by several threads the handler's executor must be a
/// strand. An implicit strand is none any more: the limit is a second chain of handlers.
///
/// @par Cancellation
/// A cancellation from outside, through the handler's associated cancellation slot, is forwarded to
/// the operation.
///
/// @par Complexity
/// O(1), and one allocation by the handler's associated allocator, freed before the handler is
/// invoked.
///
/// @throws std::bad_alloc from the initiating function, with nothing started.
/// @throws std::invalid_argument where it is called, if a pawl::ring_timer is given and has no ring for
///         the duration, or for what is left then until the point in time.
inline constexpr detail::limit_function<detail::limit_durations, detail::report_results>
    cancel_after;

/// cancel_after() with a limit that is a point in time of any clock: `cancel_at(time_point, token)`
/// and the overloads of cancel_after().
inline constexpr detail::limit_function<detail::limit_time_points, detail::report_results>
    cancel_at;

} // namespace pawl

#endif // PAWL_CANCEL_AFTER_HPP
