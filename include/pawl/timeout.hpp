// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::timeout and pawl::timeout_at: any asynchronous operation or coroutine under a time limit.
/// Expiry and cancellation report different errors.
#ifndef PAWL_TIMEOUT_HPP
#define PAWL_TIMEOUT_HPP

#include <pawl/config.hpp>

#include <pawl/coarse_clock.hpp>
#include <pawl/deadline.hpp>
#include <pawl/error.hpp>

#include <pawl/detail/limit/deadline_executor.hpp>
#include <pawl/detail/limit/limited_token.hpp>
#include <pawl/detail/limit/outer_adapter.hpp>
#include <pawl/detail/limit/report_timeout.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>

#include <type_traits>
#include <utility>

namespace pawl {

namespace detail {

/// A limit at a deadline. If the deadline has passed, the operation is not started.
template <class Clock>
struct limit_by_deadline : limit_at<Clock> {
    [[nodiscard]] bool passed() const { return basic_deadline<Clock>(this->expiry).expired(); }
};

struct limit_time_points_and_deadlines : limit_time_points {
    using limit_time_points::limit;

    template <class Clock>
    [[nodiscard]] static constexpr limit_by_deadline<Clock> limit(const basic_deadline<Clock>& d) {
        return {{d.expiry()}};
    }
    template <class Clock>
        requires(!std::is_same_v<Clock, typename Clock::time_point::clock>)
    [[nodiscard]] static constexpr limit_by_deadline<Clock>
    limit(const basic_deadline<typename Clock::time_point::clock>& d) {
        return {{d.expiry()}};
    }
};

/// timeout() and timeout_at(), for operations and for coroutines.
template <class Times>
struct timeout_function : limit_function<Times, report_timeout> {
    template <class... Args>
    [[nodiscard]] constexpr auto operator()(Args&&... args) const {
        static_assert(!(makes_awaitable<std::decay_t<Args>> || ...),
                      "pawl: call the coroutine: timeout(5s, f()), not timeout(5s, f)");
        return limit_function<Times, report_timeout>::operator()(std::forward<Args>(args)...);
    }
};

} // namespace detail

/// Puts an asynchronous operation or a coroutine under a time limit, and reports when the limit
/// ended it.
///
/// For an operation, use it as the completion token, with the overloads and rules of
/// pawl::cancel_after, except that `cancel()`, `expires_after()` and the destructor of a timer of
/// yours lift the limit: the operation continues without one. For a coroutine, pass the coroutine:
///
/// @code
/// std::size_t n = co_await socket.async_read_some(buffer, pawl::timeout(5s));
/// reply r = co_await pawl::timeout(30s, handle(request));      // awaitable<reply> handle(...)
/// auto [ec, n] = co_await socket.async_read_some(buffer, pawl::timeout(5s, as_tuple(deferred)));
/// if (ec == pawl::error::timed_out) ...
/// @endcode
///
/// Overloads for coroutines: `timeout(duration, [type,] awaitable)` and `timeout(timer, duration,
/// [type,] awaitable)`. The result is an `awaitable` of the same type. The coroutine runs on the
/// executor of the awaiting coroutine. Its frame is destroyed before the result is delivered. Its
/// exceptions pass unchanged, with one exception: if the limit cancelled it and it throws the
/// resulting error (or `boost::asio::multiple_exceptions` with that error first), the caller gets a
/// `boost::system::system_error` with pawl::error::timed_out.
///
/// @par Completion
/// The handler receives the result of the operation. One case differs: the first argument is an
/// `error_code` or an `exception_ptr`, the limit cancelled the operation, and the operation reports
/// a cancellation (`operation_aborted`, `channel_cancelled`). Then the handler receives
/// pawl::error::timed_out instead. So:
/// @li No result is lost: an operation that completes first, or with a result despite the
///     cancellation, keeps its result.
/// @li The first cause counts: `operation_aborted` if the caller cancelled the operation before the
///     limit expired, `timed_out` if the limit expired first.
///
/// If the operation's signature begins with neither type, an `error_code` is prepended: `void(int)`
/// becomes `void(error_code, int)`. It is pawl::error::timed_out if the limit expired before the
/// operation completed and before any cancellation by the caller. The other arguments are the
/// operation's own.
///
/// If expire_all() ends the limit early, the operation is cancelled as if the limit had expired. It
/// then reports the error code given to expire_all(), if any, instead of `timed_out`. cancel_all()
/// lifts the limit, as cancel() does for a timer of yours.
///
/// @par Executor, Cancellation, Complexity
/// As for pawl::cancel_after. A coroutine adds one `boost::asio::co_spawn`.
inline constexpr detail::timeout_function<detail::limit_durations> timeout;

/// timeout() on pawl::coarse_clock, for limits of seconds, such as those of idle connections.
/// Setting the limit reads the clock at a fifth of the cost. The limit is never early by the steady
/// clock, and at most a few milliseconds late: see pawl::coarse_timer.
///
/// @code
/// std::size_t n = co_await socket.async_read_some(buffer, pawl::coarse_timeout(30s));
/// @endcode
inline constexpr detail::timeout_function<detail::limit_durations_on<coarse_clock>> coarse_timeout;

/// timeout() with a time point of any clock, or a pawl::deadline, as the limit.
///
/// If a deadline has already passed, the operation is not started: its handler is posted with
/// pawl::error::timed_out and default values for the other arguments. A coroutine is destroyed
/// without being started.
inline constexpr detail::timeout_function<detail::limit_time_points_and_deadlines> timeout_at;

/// Runs a coroutine under a deadline, or under the deadline already in force if that is earlier.
/// this_deadline() returns it to the coroutine and to everything that it awaits.
///
/// @code
/// reply r = co_await pawl::with_deadline(pawl::deadline::after(5s), handle(request));
/// @endcode
///
/// An object that is made on the coroutine's executor and outlives the coroutine, such as a socket,
/// has no deadline afterwards.
///
/// @par Completion
/// As timeout_at(): `boost::system::system_error` with pawl::error::timed_out if the deadline
/// passed.
/// @par Complexity
/// One more allocation than timeout_at(). The executor with the deadline makes operations on I/O
/// objects outside it slightly slower. Use timeout_at() if the coroutine does not call
/// this_deadline().
template <class Clock, class T>
[[nodiscard]] boost::asio::awaitable<T> with_deadline(basic_deadline<Clock> d,
                                                      boost::asio::awaitable<T> coroutine) {
    const auto ex = co_await boost::asio::this_coro::executor;
    d = earlier_of(d, basic_deadline<Clock>(detail::deadline_of<Clock>(ex)));
    const detail::deadline_guard<Clock> guard(d.expiry());
    co_return co_await detail::run_limited(guard.executor(ex), std::move(coroutine), timeout_at(d));
}

} // namespace pawl

#endif // PAWL_TIMEOUT_HPP
