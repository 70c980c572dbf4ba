// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::timeout and pawl::timeout_at: any asynchronous operation, and any coroutine, under a limit
/// in time that is told apart from a cancellation.
#ifndef PAWL_TIMEOUT_HPP
#define PAWL_TIMEOUT_HPP

#include <pawl/config.hpp>

#include <pawl/coarse_clock.hpp>
#include <pawl/deadline.hpp>
#include <pawl/error.hpp>

#include <pawl/limit/deadline_executor.hpp>
#include <pawl/limit/limited_token.hpp>
#include <pawl/limit/report_timeout.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <optional>
#include <type_traits>
#include <utility>

namespace pawl {

namespace detail {

/// A limit at a deadline: an operation is not even started when it has passed.
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

template <class T>
inline constexpr bool is_awaitable = false;
template <class T, class Executor>
inline constexpr bool is_awaitable<boost::asio::awaitable<T, Executor>> = true;

template <class T>
inline constexpr bool makes_awaitable = false;
template <class T>
    requires requires(T& t) { t(); }
inline constexpr bool makes_awaitable<T> =
    is_awaitable<std::decay_t<decltype(std::declval<T&>()())>>;

template <class T, class Executor>
[[nodiscard]] boost::asio::awaitable<void, Executor>
keep_result(boost::asio::awaitable<T, Executor> coroutine, std::optional<T>& result) {
    result.emplace(co_await std::move(coroutine));
}

/// run_limited() for what co_spawn cannot carry, since it makes a T where there is none.
template <class T, class Executor, class Limit>
[[nodiscard]] boost::asio::awaitable<T, Executor>
run_limited_aside(Executor ex, boost::asio::awaitable<T, Executor> coroutine, Limit partial_limit) {
    std::optional<T> result;
    co_await boost::asio::co_spawn(ex, keep_result(std::move(coroutine), result),
                                   partial_limit(boost::asio::use_awaitable_t<Executor>()));
    co_return std::move(*result);
}

/// Runs a coroutine on `ex` under a limit.
///
/// Not boost::asio::deferred: what that makes of (exception_ptr, T) cannot be awaited in Boost 1.81.
template <class T, class Executor, class Limit>
[[nodiscard]] boost::asio::awaitable<T, Executor>
run_limited(const Executor& ex, boost::asio::awaitable<T, Executor> coroutine,
            const Limit& partial_limit) {
    if constexpr (std::is_void_v<T> || std::is_default_constructible_v<T>)
        return boost::asio::co_spawn(ex, std::move(coroutine),
                                     partial_limit(boost::asio::use_awaitable_t<Executor>()));
    else
        return run_limited_aside(ex, std::move(coroutine), partial_limit);
}

/// The overloads of timeout() and timeout_at(): those for operations, and those for coroutines.
template <class Times>
class timeout_function : public limit_function<Times, report_timeout> {
    using base = limit_function<Times, report_timeout>;

public:
    template <class... Args>
        requires(!(is_awaitable<std::decay_t<Args>> || ...))
    [[nodiscard]] constexpr auto operator()(Args&&... args) const {
        static_assert(!(makes_awaitable<std::decay_t<Args>> || ...),
                      "pawl: call the coroutine: timeout(5s, f()), not timeout(5s, f)");
        return base::operator()(std::forward<Args>(args)...);
    }

    /// A coroutine without a limit, or with what cannot be one.
    template <class... Args>
        requires(is_awaitable<std::decay_t<Args>> || ...)
    [[nodiscard]] constexpr auto operator()(Args&&... args) const {
        static_assert(sizeof...(Args) > 1, "pawl: the limit comes first: timeout(5s, coroutine)");
        if constexpr (sizeof...(Args) > 1)
            explain<std::decay_t<Args>...>();
        return (std::forward<Args>(args), ...);
    }

    template <class Time, class T, class Executor>
    [[nodiscard]] boost::asio::awaitable<T, Executor>
    operator()(Time time, boost::asio::awaitable<T, Executor> coroutine) const {
        return (*this)(time, boost::asio::cancellation_type_t::terminal, std::move(coroutine));
    }

    template <class Time, class T, class Executor>
    [[nodiscard]] boost::asio::awaitable<T, Executor>
    operator()(Time time, boost::asio::cancellation_type_t type,
               boost::asio::awaitable<T, Executor> coroutine) const {
        const Executor ex = co_await boost::asio::this_coro::executor;
        co_return co_await run_limited(ex, std::move(coroutine), (*this)(time, type));
    }

    template <a_timer Timer, class Time, class T, class Executor>
    [[nodiscard]] boost::asio::awaitable<T, Executor>
    operator()(Timer& timer, Time time, boost::asio::awaitable<T, Executor> coroutine) const {
        return (*this)(timer, time, boost::asio::cancellation_type_t::terminal,
                       std::move(coroutine));
    }

    template <a_timer Timer, class Time, class T, class Executor>
    [[nodiscard]] boost::asio::awaitable<T, Executor>
    operator()(Timer& timer, Time time, boost::asio::cancellation_type_t type,
               boost::asio::awaitable<T, Executor> coroutine) const {
        const Executor ex = co_await boost::asio::this_coro::executor;
        co_return co_await run_limited(ex, std::move(coroutine), (*this)(timer, time, type));
    }
};

} // namespace detail

/// Puts an asynchronous operation, or a coroutine, under a limit in time, and says so when the limit
/// was what ended it.
///
/// For an operation it is called where that takes its completion token, as pawl::cancel_after is,
/// with the same overloads and the same rules. For a coroutine, it is called with the coroutine:
///
/// @code
/// std::size_t n = co_await socket.async_read_some(buffer, pawl::timeout(5s));
/// reply r = co_await pawl::timeout(30s, handle(request));      // awaitable<reply> handle(...)
/// auto [ec, n] = co_await socket.async_read_some(buffer, pawl::timeout(5s, as_tuple(deferred)));
/// if (ec == pawl::error::timed_out) ...
/// @endcode
///
/// Overloads for coroutines: `timeout(duration, [type,] awaitable)` and
/// `timeout(timer, duration, [type,] awaitable)`. The result is an `awaitable` of the same type. The
/// coroutine runs on the executor of the one that awaits it. Its frame is destroyed, with all that is
/// in it, before the result is delivered; exceptions that it throws pass unchanged, but for one that
/// says that it was cancelled by the limit (or `boost::asio::multiple_exceptions`, the first of which
/// says so): that becomes a `boost::system::system_error` with pawl::error::timed_out.
///
/// @par Completion
/// What the handler is told is what the operation completed with, with one exception: where the
/// first argument is an `error_code` or an `exception_ptr`, the limit has cut the operation short,
/// and the operation says that it was cancelled (`operation_aborted`, `channel_cancelled`), it is
/// pawl::error::timed_out. So:
/// @li an operation that completes first, or that completes with a result although it was being
///     cancelled, keeps its result: nothing is lost;
/// @li an operation that was cancelled from outside before its limit was reached says
///     `operation_aborted`, and one whose limit was reached before says `timed_out`: the first one
///     counts.
///
/// Where the signature of the operation begins with neither, an `error_code` is put in front:
/// `void(int)` becomes `void(error_code, int)`. It is pawl::error::timed_out if the limit was reached
/// before the operation completed, and before a cancellation from outside; the other arguments are
/// what it completed with.
///
/// If expire_all() ends the limit early, the operation is cancelled as if the limit had been reached,
/// and told the error code that was given to expire_all() in place of `timed_out`, if any. cancel_all()
/// lifts the limit, as cancel() of a timer of the caller's does.
///
/// @par Executor, Cancellation, Complexity
/// As for pawl::cancel_after. A coroutine is one more of `boost::asio::co_spawn`.
inline constexpr detail::timeout_function<detail::limit_durations> timeout;

/// timeout() for limits of seconds, such as those of idle connections: kept on pawl::coarse_clock, so that
/// to set one reads the clock at a fifth of the cost. It is not early by the steady clock, and late by a
/// few milliseconds at most; pawl::coarse_timer says how many.
///
/// @code
/// std::size_t n = co_await socket.async_read_some(buffer, pawl::coarse_timeout(30s));
/// @endcode
inline constexpr detail::timeout_function<detail::limit_durations_on<coarse_clock>> coarse_timeout;

/// timeout() with a limit that is a point in time of any clock, or a pawl::deadline.
///
/// An operation under a deadline that has passed when it is started is not started: its handler is
/// posted, with pawl::error::timed_out and default values for the rest. A coroutine is destroyed
/// unstarted.
inline constexpr detail::timeout_function<detail::limit_time_points_and_deadlines> timeout_at;

/// Runs a coroutine under a deadline, or the one that is in force already if that is earlier, as
/// timeout_at() does; this_deadline() tells it, and all that it awaits, what the deadline is.
///
/// @code
/// reply r = co_await pawl::with_deadline(pawl::deadline::after(5s), handle(request));
/// @endcode
///
/// What is made on the coroutine's executor and outlives it, such as a socket, carries no deadline
/// from then on.
///
/// @par Completion
/// As timeout_at(): `boost::system::system_error` with pawl::error::timed_out when the time was up.
/// @par Complexity
/// One more allocation than timeout_at(); the executor that carries the deadline makes operations on
/// I/O objects outside of it a little slower. Use timeout_at() where nobody asks for this_deadline().
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
