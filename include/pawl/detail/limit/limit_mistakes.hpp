// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   One clear error for each wrong use of a limit, and what stands for its result, so that no
///   other errors follow.
#ifndef PAWL_DETAIL_LIMIT_LIMIT_MISTAKES_HPP
#define PAWL_DETAIL_LIMIT_LIMIT_MISTAKES_HPP

#include <pawl/detail/limit/limit_timer.hpp>

#include <pawl/detail/service/clocks.hpp>

#include <pawl/detail/time/durations.hpp>

#include <type_traits>

namespace pawl::detail {

template <class Timer>
concept a_timer = requires(Timer& timer, const typename Timer::duration& d) {
    typename Timer::traits_type;
    timer.rearm_after(d); // rejects Asio's timers
};

/// A timer type that is not Pawl's.
template <class T>
concept a_foreign_timer = !a_timer<T> && requires(T& timer, const typename T::duration& d) {
    typename T::traits_type;
    timer.expires_after(d);
};

/// A type that a coroutine can await and that is not a completion token.
template <class T>
concept an_awaitable_object = requires(T& t) { t.operator co_await(); } || requires(T& t) {
    operator co_await(t);
} || requires(T& t) { t.await_ready(); };

/// The limit of a call that does not compile.
struct refused_limit : own_limit<limit_after<steady_clock>> {};

/// What `co_await` makes of a limit without an operation: it passes its frame, and takes a thread.
struct awaited_limit {
    template <class Thread>
    operator Thread*() const; // not defined
};

/// Explains the mistake, unless it follows from another one.
template <class Limit>
[[nodiscard]] awaited_limit await_limit() {
    static_assert(std::is_same_v<Limit, refused_limit>,
                  "pawl: a limit or group needs an operation: co_await "
                  "socket.async_read_some(buffer, timeout(5s)); for a pause: co_await "
                  "sleep_for(5s)");
    return {};
}

template <class T>
concept an_object_pointer = std::is_pointer_v<T> && std::is_object_v<std::remove_pointer_t<T>>;

/// The result of a call that does not compile, so that there is only one error.
struct no_operation {
    template <class Handler>
    void operator()(Handler&&) const {}
};

/// What follows a limit, instead of a completion token.
template <bool OtherCoroutine, bool IsTimer>
constexpr void explain_token() {
    static_assert(!OtherCoroutine,
                  "pawl: the only coroutine that timeout takes is boost::asio::awaitable; "
                  "spawn any other one under the limit: co_await cobalt::spawn(executor, f(), "
                  "timeout(5s, cobalt::use_op))");
    static_assert(!IsTimer, "pawl: the timer comes before the limit: timeout(timer, 5s)");
}

/// An invalid limit; explains what to write.
template <class First, class... Rest>
constexpr void explain() {
    constexpr bool foreign_timer = a_foreign_timer<First> || (a_foreign_timer<Rest> || ...);
    constexpr bool duration = is_duration<First> || (is_duration<Rest> || ...);
    constexpr bool time_point = is_time_point<First> || (is_time_point<Rest> || ...);
    constexpr bool limit_is_missing =
        an_awaitable_object<First> ||
        (!a_timer<First> && !a_foreign_timer<First> && !is_duration<First> &&
         !is_time_point<First> && (duration || time_point));
    static_assert(!limit_is_missing,
                  "pawl: the limit comes first: timeout(5s, token), timeout(5s, coroutine)");
    static_assert(limit_is_missing || !foreign_timer,
                  "pawl: a limit needs a Pawl timer, not an Asio timer: use pawl::steady_timer, or "
                  "leave the timer out: timeout(5s)");
    static_assert(limit_is_missing || foreign_timer || !duration,
                  "pawl: timeout_at and cancel_at take a point in time; for a duration write "
                  "timeout(5s) or cancel_after(5s)");
    static_assert(limit_is_missing || !time_point,
                  "pawl: timeout and cancel_after take a duration; for a point in time write "
                  "timeout_at(t) or cancel_at(t)");
    static_assert(limit_is_missing || foreign_timer || duration || time_point,
                  "pawl: a limit is a duration with a unit: timeout(5s) or timeout(timer, 5s), not "
                  "timeout(5); for timeout_at and cancel_at it is a point in time");
}

} // namespace pawl::detail

#endif // PAWL_DETAIL_LIMIT_LIMIT_MISTAKES_HPP
