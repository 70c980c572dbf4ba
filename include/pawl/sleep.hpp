// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::sleep_for and pawl::sleep_until, for coroutines.
#ifndef PAWL_SLEEP_HPP
#define PAWL_SLEEP_HPP

#include <pawl/basic_waitable_timer.hpp>

#include <pawl/detail/service/clocks.hpp>

#include <pawl/detail/time/durations.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/wait_traits.hpp>

#include <chrono>

namespace pawl {

/// Suspends a coroutine until a time point of any clock. The clock's last time point means never.
///
/// @code
/// co_await pawl::sleep_until(std::chrono::steady_clock::now() + 5s);
/// @endcode
///
/// @throws boost::system::system_error with `operation_aborted` if the coroutine is cancelled.
/// @par Executor
/// The coroutine's executor.
/// @par Complexity
/// O(1). One allocation for the wait, plus the coroutine frame.
template <class Executor = boost::asio::any_io_executor, class Clock, class Duration>
[[nodiscard]] boost::asio::awaitable<void, Executor>
sleep_until(std::chrono::time_point<Clock, Duration> t) {
    using clock = detail::clock_behind<Clock>;
    basic_waitable_timer<clock, boost::asio::wait_traits<clock>, Executor> timer(
        co_await boost::asio::this_coro::executor);
    timer.expires_at(typename Clock::time_point(
        detail::saturating_cast<typename Clock::duration>(t.time_since_epoch())));
    co_await timer.async_wait(boost::asio::deferred);
}

/// Suspends a coroutine for a duration on a clock. With zero or less: until the next turn of the
/// executor.
///
/// @code
/// co_await pawl::sleep_for<pawl::coarse_clock>(30s);
/// @endcode
///
/// As sleep_until(). The duration counts from the moment of the await.
template <class Clock, class Executor = boost::asio::any_io_executor, class Rep, class Period>
    requires requires { typename Clock::time_point; }
[[nodiscard]] boost::asio::awaitable<void, Executor>
sleep_for(std::chrono::duration<Rep, Period> d) {
    basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>, Executor> timer(
        co_await boost::asio::this_coro::executor);
    timer.expires_after(detail::saturating_cast<typename Clock::duration>(d));
    co_await timer.async_wait(boost::asio::deferred);
}

/// As above, on the steady clock.
///
/// @code
/// co_await pawl::sleep_for(100ms);
/// @endcode
template <class Executor = boost::asio::any_io_executor, class Rep, class Period>
    requires(!requires { typename Executor::time_point; })
[[nodiscard]] boost::asio::awaitable<void, Executor>
sleep_for(std::chrono::duration<Rep, Period> d) {
    return sleep_for<detail::steady_clock, Executor>(d);
}

/// @cond
template <class..., class T>
    requires(!detail::is_duration<T>)
boost::asio::awaitable<void> sleep_for(const T&) {
    static_assert(detail::is_duration<T>,
                  "pawl: sleep_for takes a duration with a unit, such as sleep_for(100ms); for a "
                  "point in time write sleep_until(t)");
    return {};
}
template <class..., class T>
    requires(!detail::is_time_point<T>)
boost::asio::awaitable<void> sleep_until(const T&) {
    static_assert(detail::is_time_point<T>,
                  "pawl: sleep_until takes a point in time, such as that of a deadline, "
                  "d.expiry(); for a duration write sleep_for(100ms)");
    return {};
}
/// @endcond

} // namespace pawl

#endif // PAWL_SLEEP_HPP
