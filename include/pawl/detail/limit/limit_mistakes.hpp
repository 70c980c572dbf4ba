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

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <type_traits>
#include <utility>

namespace pawl {

template <class Late, class Token>
struct abandoning; // abandon.hpp

} // namespace pawl

namespace pawl::detail {

template <class Limit, class Report>
struct partial_limit;
template <class Token, class Limit, class Report>
struct limited_token;
template <class Initiation, class Limit, class Report, class... Signatures>
class limited_initiation;

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

template <class T>
inline constexpr bool is_abandoning = false;
template <class Late, class Token>
inline constexpr bool is_abandoning<abandoning<Late, Token>> = true;
/// Whether one is within an adapter.
template <class T>
inline constexpr bool hides_abandoning = false;
template <template <class...> class Adapter, class... T>
inline constexpr bool hides_abandoning<Adapter<T...>> =
    ((is_abandoning<T> || hides_abandoning<T>) || ...);

/// Whether a handler asks for a default executor although it may have one of its own: an
/// any_completion_handler, also within the adapters of Asio.
template <class Handler>
inline constexpr bool asks_for_executor = false;
template <class... Signatures>
inline constexpr bool asks_for_executor<boost::asio::any_completion_handler<Signatures...>> = true;
template <template <class...> class Adapter, class... T>
    requires(!requires { typename Adapter<T...>::executor_type; })
inline constexpr bool asks_for_executor<Adapter<T...>> = (asks_for_executor<T> || ...);

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
template <bool OtherCoroutine, bool IsTimer, bool HidesAbandoning>
constexpr void explain_token() {
    static_assert(!OtherCoroutine,
                  "pawl: the only coroutine that timeout takes is boost::asio::awaitable; "
                  "spawn any other one under the limit: co_await cobalt::spawn(executor, f(), "
                  "timeout(5s, cobalt::use_op))");
    static_assert(!IsTimer, "pawl: the timer comes before the limit: timeout(timer, 5s)");
    static_assert(!HidesAbandoning,
                  "pawl: adapters go behind abandon, or around the limit: timeout(5s, abandon, "
                  "as_tuple(token)), not timeout(5s, as_tuple(abandon)), where the limit does not "
                  "reach it");
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

/// A limit of an operation and a handler without an executor.
template <bool HasExecutor>
constexpr void explain_executor() {
    static_assert(
        HasExecutor,
        "pawl: this limit has no executor to keep time on. Bind one to the completion handler, "
        "inside the limit: timeout(5s, bind_executor(ex, handler)); or pass a timer of your own.");
}

/// Converts from each token, but worse than a template parameter.
struct any_token {
    template <class T>
    any_token(T&&) noexcept {}
};

/// A token that does not take the results of the operation.
template <class Token>
constexpr void explain_results() {
    static_assert(!std::is_same_v<Token, Token>,
                  "pawl: the handler in a limit or group takes all results of the operation: "
                  "timeout(5s, [](error_code ec, std::size_t n) { ... })");
}

template <class T>
inline constexpr bool is_limited = false;
template <class Limit, class Report>
inline constexpr bool is_limited<partial_limit<Limit, Report>> = true;
template <class Token, class Limit, class Report>
inline constexpr bool is_limited<limited_token<Token, Limit, Report>> = true;
/// A deferred operation under a limit.
template <template <class...> class Operation, class Signature, class Initiation, class Limit,
          class Report, class... Signatures, class... Args>
inline constexpr bool is_limited<
    Operation<Signature, limited_initiation<Initiation, Limit, Report, Signatures...>, Args...>> =
    true;

template <class T>
concept a_limited_operation = is_limited<std::remove_cvref_t<T>>;

/// For awaitable_operators, which take only coroutines.
template <class A, class B>
    requires(a_limited_operation<A> || a_limited_operation<B>)
auto operator||(A&&, B&&) {
    static_assert(!a_limited_operation<A> && !a_limited_operation<B>,
                  "pawl: || and && of awaitable_operators need coroutines: pass timeout(5s, "
                  "use_awaitable) to the operations on both sides");
    return boost::asio::async_initiate<const boost::asio::deferred_t&, void()>(
        no_operation(), boost::asio::deferred);
}
template <class A, class B>
    requires(a_limited_operation<A> || a_limited_operation<B>)
auto operator&&(A&& a, B&& b) {
    return std::forward<A>(a) || std::forward<B>(b);
}

} // namespace pawl::detail

#endif // PAWL_DETAIL_LIMIT_LIMIT_MISTAKES_HPP
