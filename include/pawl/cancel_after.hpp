// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::cancel_after and pawl::cancel_at: cancel an asynchronous operation when its time is up.
#ifndef PAWL_CANCEL_AFTER_HPP
#define PAWL_CANCEL_AFTER_HPP

#include <pawl/config.hpp>

#include <pawl/detail/limit/limited_token.hpp>
#include <pawl/detail/limit/outer_adapter.hpp>

#include <utility>

namespace pawl {

namespace detail {

/// Passes the operation's results to the handler unchanged.
struct report_results {
    template <class Signature>
    using signature = Signature;

    /// As with Asio's cancel_after, any end of a wait on the caller's timer cancels the operation.
    static constexpr bool any_end_counts = true;

    template <class Handler, class... Args>
    static void invoke(Handler&& handler, const verdict&, Args&&... args) {
        std::move(handler)(std::forward<Args>(args)...);
    }
};

} // namespace detail

/// Cancels an asynchronous operation that does not complete in time.
///
/// Use it as the completion token of the operation, around the token that you would use otherwise:
///
/// @code
/// std::size_t n = co_await socket.async_read_some(buffer, pawl::cancel_after(5s));
/// socket.async_read_some(buffer, pawl::cancel_after(5s, [](error_code ec, std::size_t n) { ... }));
/// @endcode
///
/// The name and the overloads are those of `boost::asio::cancel_after` in Boost 1.86. Some things
/// are better. The state of the limit shares the one memory block of the operation. And when the
/// operation completes first, its limit ends immediately, without a posted handler, unless it was
/// the last limit of its context and ends outside `run()`. Adapters of Asio's around it, such as
/// `bind_cancellation_slot(slot, cancel_after(5s))`, count as inside.
///
/// Overloads; `type` is the `boost::asio::cancellation_type` to emit, by default `terminal`:
/// @li `cancel_after(duration, token)`, `cancel_after(duration, type, token)`
/// @li `cancel_after(duration)`, `cancel_after(duration, type)`: partial forms. Each is a
///     completion token that stands for the default token of the operation's executor, or else for
///     `boost::asio::deferred`, which can be awaited. It is also a function object that takes the
///     token.
/// @li `cancel_after(timer, ...)`: the same four with a Pawl timer of yours, on any clock. The
///     limit is a wait on that timer. The call sets its expiry as `expires_after()` does, which
///     cancels its other waits. `rearm_after()` moves the limit of the running operation. As with
///     Asio, anything that ends the wait cancels the operation at once: `cancel()`,
///     `expires_after()`, the destructor of the timer. (pawl::timeout() differs: there they lift
///     the limit.) Use this to extend a limit, or to test on pawl::manual_clock.
///
/// The duration counts from the start of the operation, also for a deferred one. Zero or less means
/// now: the operation is started, and cancelled as soon as the executor allows. A duration that is
/// too large for the clock means never.
///
/// @par Completion
/// Once, with the result of the operation, as without a limit. A cancelled operation reports
/// `boost::asio::error::operation_aborted`, whether the limit or the caller cancelled it;
/// pawl::timeout distinguishes the two. An operation that ignores cancellation completes in its own
/// time. Beyond options::max_pending it is not started: its handler gets
/// `boost::asio::error::no_buffer_space` and default values. Without an error code in its signature,
/// or without default values, it is started, and cancelled at once.
///
/// @par Executor
/// The operation is cancelled on the associated executor of the handler, by default that of the I/O
/// object. If several threads run the context, that executor must be a strand; an implicit strand
/// is not enough, because the limit is a second chain of handlers. The limit belongs to the context
/// of the I/O object. If the operation does not expose it, as some of Beast's do not, the limit
/// uses the handler's executor; without that, pass a timer, or the call does not compile.
///
/// @par Cancellation
/// A cancellation through the handler's associated cancellation slot is forwarded to the operation.
///
/// @par Complexity
/// O(1). One allocation by the handler's associated allocator, freed before the handler is invoked.
///
/// @throws std::bad_alloc from the initiating function, with nothing started.
/// @throws std::invalid_argument from this call, if a pawl::ring_timer is given and has no ring for
///     the duration, or for the time left until the time point.
inline constexpr detail::limit_function<detail::limit_durations, detail::report_results>
    cancel_after;

/// cancel_after() with a time point of any clock as the limit: `cancel_at(time_point, token)`, and
/// the other overloads of cancel_after().
inline constexpr detail::limit_function<detail::limit_time_points, detail::report_results>
    cancel_at;

} // namespace pawl

#endif // PAWL_CANCEL_AFTER_HPP
