// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Completion tokens that put an operation under a limit, and the functions that make them.
///
/// Model
///   limit_function(limit, token) --> limited_token --async_result--> limited_initiation, which
///   starts a limited_operation. Without a token the result is a partial one: it is itself a
///   completion token, which stands for the default one of the operation's executor, and a function
///   object that takes the token.
#ifndef PAWL_LIMIT_LIMITED_TOKEN_HPP
#define PAWL_LIMIT_LIMITED_TOKEN_HPP

#include <pawl/limit/limit_timer.hpp>
#include <pawl/limit/limited_operation.hpp>

#include <pawl/service/steady_clock.hpp>

#include <pawl/wait/wait_handler.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/deferred.hpp>

#include <chrono>
#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

namespace pawl::detail {

/// A completion signature without qualifiers.
template <class Signature>
struct plain_signature;
template <class R, class... Args>
struct plain_signature<R(Args...)> {
    using type = R(Args...);
    using result = std::tuple<std::decay_t<Args>...>;
};
template <class R, class... Args>
struct plain_signature<R(Args...)&> : plain_signature<R(Args...)> {};
template <class R, class... Args>
struct plain_signature<R(Args...) &&> : plain_signature<R(Args...)> {};
template <class R, class... Args>
struct plain_signature<R(Args...) noexcept> : plain_signature<R(Args...)> {};
template <class R, class... Args>
struct plain_signature<R(Args...) & noexcept> : plain_signature<R(Args...)> {};
template <class R, class... Args>
struct plain_signature<R(Args...) && noexcept> : plain_signature<R(Args...)> {};

template <class First, class... Rest>
struct first_signature : plain_signature<First> {};

template <class Initiation>
concept has_executor = requires(const Initiation& initiation) {
    typename Initiation::executor_type;
    { initiation.get_executor() } -> std::convertible_to<typename Initiation::executor_type>;
};

/// What an initiation that wraps another one says of its executor.
template <class Initiation>
struct executor_of_initiation {};
template <has_executor Initiation>
struct executor_of_initiation<Initiation> {
    using executor_type = typename Initiation::executor_type;
};

/// The executor of an operation whose handler has none of its own.
template <class Limit, class Initiation>
[[nodiscard]] decltype(auto) default_executor([[maybe_unused]] const Limit& limit,
                                              [[maybe_unused]] const Initiation& initiation) {
    if constexpr (has_executor<Initiation>)
        return initiation.get_executor();
    else if constexpr (requires { limit.timer->get_executor(); })
        return limit.timer->get_executor();
    else
        return no_executor();
}

/// Starts an operation under a limit.
template <class Initiation, class Limit, class Report, class... Signatures>
class limited_initiation : public executor_of_initiation<Initiation> {
public:
    template <class I>
    limited_initiation(I&& initiation, const Limit& limit, boost::asio::cancellation_type_t type)
        : initiation_(std::forward<I>(initiation)), limit_(limit), type_(type) {}

    auto get_executor() const noexcept
        requires has_executor<Initiation>
    {
        return initiation_.get_executor();
    }

    template <class Handler, class... Args>
    void operator()(Handler&& handler, Args&&... args) && {
        launch(std::move(initiation_), std::forward<Handler>(handler), std::forward<Args>(args)...);
    }
    template <class Handler, class... Args>
    void operator()(Handler&& handler, Args&&... args) const& {
        launch(initiation_, std::forward<Handler>(handler), std::forward<Args>(args)...);
    }

private:
    template <class I, class Handler, class... Args>
    void launch(I&& initiation, Handler&& handler, Args&&... args) const {
        const auto& fallback = default_executor(limit_, initiation);
        // Not get_associated_executor(), which wants the fallback to be an executor.
        using associated = boost::asio::associated_executor<std::decay_t<Handler>,
                                                            std::decay_t<decltype(fallback)>>;
        using executor = std::decay_t<decltype(associated::get(handler, fallback))>;
        static_assert(
            !std::is_same_v<executor, no_executor>,
            "pawl: this limit does not know on which executor to keep time. Bind one to the "
            "completion handler, inside the limit: timeout(5s, bind_executor(ex, handler)); "
            "or pass a timer of your own.");
        if constexpr (requires { limit_.time.passed(); }) {
            if (limit_.time.passed())
                return Report::template post_failure<typename first_signature<Signatures...>::type>(
                    executor(associated::get(handler, fallback)), // a copy: the handler is moved
                    fallback, std::forward<Handler>(handler));
        }
        using operation =
            limited_operation<typename Limit::timer_type, Report, std::decay_t<Handler>, executor,
                              typename plain_signature<Signatures>::result...>;
        const auto start = [&](const auto& timer_executor) {
            operation::launch(std::forward<Handler>(handler), fallback, timer_executor, limit_,
                              type_, std::forward<I>(initiation), std::forward<Args>(args)...);
        };
        // The time is kept by the context of the I/O object if that is known, since that of a
        // handler may be nothing but a place to run in, as with use_future.
        if constexpr (has_executor<Initiation>)
            start(initiation.get_executor());
        else
            start(executor(associated::get(handler, fallback)));
    }

    [[no_unique_address]] Initiation initiation_;
    Limit limit_;
    boost::asio::cancellation_type_t type_;
};

/// A completion token with a limit.
template <class Token, class Limit, class Report>
struct limited_token {
    Token token;
    Limit limit;
    boost::asio::cancellation_type_t type;
};

/// A limit that lacks its completion token.
template <class Limit, class Report>
struct partial_limit {
    Limit limit;
    boost::asio::cancellation_type_t type;

    template <class Token>
    [[nodiscard]] constexpr limited_token<std::decay_t<Token>, Limit, Report>
    operator()(Token&& token) const {
        return {std::forward<Token>(token), limit, type};
    }
};

template <class Timer>
concept a_timer = requires(Timer& timer, const typename Timer::duration& d) {
    typename Timer::traits_type;
    timer.rearm_after(d); // not one of Asio's
};

/// What looks like a timer, but is not one of Pawl's.
template <class T>
concept a_foreign_timer = !a_timer<T> && requires(T& timer, const typename T::duration& d) {
    typename T::traits_type;
    timer.expires_after(d);
};

template <class T>
inline constexpr bool is_duration = false;
template <class Rep, class Period>
inline constexpr bool is_duration<std::chrono::duration<Rep, Period>> = true;
template <class T>
inline constexpr bool is_time_point = false;
template <class Clock, class Duration>
inline constexpr bool is_time_point<std::chrono::time_point<Clock, Duration>> = true;

/// What a coroutine may await, and is no completion token.
template <class T>
concept an_awaitable_object = requires(T& t) { t.operator co_await(); } || requires(T& t) {
    operator co_await(t);
} || requires(T& t) { t.await_ready(); };

/// What a limit cannot be made of; says what to write.
template <class... Args>
constexpr void explain() {
    static_assert(!(a_foreign_timer<Args> || ...),
                  "pawl: a limit is kept by a timer of Pawl's, not by one of Asio's: make it a "
                  "pawl::steady_timer, or leave it out: timeout(5s)");
    static_assert(!(is_duration<Args> || ...) || (a_foreign_timer<Args> || ...),
                  "pawl: timeout_at and cancel_at take a point in time; for a duration write "
                  "timeout(5s) or cancel_after(5s)");
    static_assert(!(is_time_point<Args> || ...),
                  "pawl: timeout and cancel_after take a duration; for a point in time write "
                  "timeout_at(t) or cancel_at(t)");
    static_assert((a_foreign_timer<Args> || ...) || (is_duration<Args> || ...) ||
                      (is_time_point<Args> || ...),
                  "pawl: a limit begins with a duration, which has a unit: timeout(5s), not "
                  "timeout(5); timeout_at and cancel_at with a point in time");
}

/// The completion token of an operation that is given none: the default one of its executor, or
/// boost::asio::deferred if it has none.
template <class Initiation>
struct default_token {
    using of_executor =
        boost::asio::default_completion_token_t<boost::asio::associated_executor_t<Initiation>>;
    using type =
        std::conditional_t<std::is_void_v<of_executor>, boost::asio::deferred_t, of_executor>;
};

/// A function that puts an operation under a limit. See cancel_after() for its overloads.
///
/// @tparam Times  `limit(t)` turns what the caller gives into a limit_after or limit_at, and
///                `limit<Clock>(t)` into one on a certain clock.
template <class Times, class Report>
class limit_function {
    using cancellation_type_t = boost::asio::cancellation_type_t;

public:
    template <class Time, class... Rest>
        requires requires(const Time& t) { Times::limit(t); }
    [[nodiscard]] constexpr auto operator()(const Time& time, Rest&&... rest) const {
        return make(own_limit<decltype(Times::limit(time))>{Times::limit(time)},
                    std::forward<Rest>(rest)...);
    }

    template <a_timer Timer, class Time, class... Rest>
        requires requires(const Time& t) { Times::template limit<typename Timer::clock_type>(t); }
    [[nodiscard]] constexpr auto operator()(Timer& timer, const Time& time, Rest&&... rest) const {
        const auto on_clock = Times::template limit<typename Timer::clock_type>(time);
        // Here, and not only where the operation starts: what is thrown there does not come to a
        // coroutine that awaits it.
        on_clock.check(timer_access::handle(timer));
        return make(callers_limit<std::remove_const_t<decltype(on_clock)>, Timer>{on_clock, &timer},
                    std::forward<Rest>(rest)...);
    }

    /// Anything else is a mistake. Returns what a limit is, so that there is no error but the one.
    template <class First, class... Rest>
        requires(!requires(const First& t) { Times::limit(t); } && !a_timer<std::decay_t<First>>)
    [[nodiscard]] constexpr auto operator()(First&&, Rest&&...) const {
        explain<std::decay_t<First>, std::decay_t<Rest>...>();
        return make(own_limit<limit_after<std::chrono::steady_clock>>{});
    }

private:
    template <class Limit>
    [[nodiscard]] static constexpr partial_limit<Limit, Report>
    make(Limit limit, cancellation_type_t type = cancellation_type_t::terminal) {
        return {limit, type};
    }
    template <class Limit, class Token>
        requires(!std::is_same_v<std::decay_t<Token>, cancellation_type_t>)
    [[nodiscard]] static constexpr auto make(Limit limit, Token&& token) {
        return make(limit, cancellation_type_t::terminal, std::forward<Token>(token));
    }
    template <class Limit, class Token>
    [[nodiscard]] static constexpr auto make(Limit limit, cancellation_type_t type, Token&& token) {
        static_assert(!an_awaitable_object<std::decay_t<Token>>,
                      "pawl: of coroutines timeout takes boost::asio::awaitable; spawn another one "
                      "under the limit: co_await cobalt::spawn(executor, f(), timeout(5s, "
                      "cobalt::use_op))");
        if constexpr (an_awaitable_object<std::decay_t<Token>>)
            return std::decay_t<Token>(std::forward<Token>(token));
        else
            return make(limit, type)(std::forward<Token>(token));
    }
};

/// Limits that are given as durations.
template <class OwnClock>
struct limit_durations_on {
    template <class Clock = OwnClock, class Rep, class Period>
    [[nodiscard]] static constexpr limit_after<Clock>
    limit(const std::chrono::duration<Rep, Period>& d) {
        return {saturating_cast<typename Clock::duration>(d)};
    }
};

using limit_durations = limit_durations_on<steady_clock>;

/// Limits that are given as points in time.
struct limit_time_points {
    template <class Clock, class Duration>
    [[nodiscard]] static constexpr limit_at<clock_behind<Clock>>
    limit(const std::chrono::time_point<Clock, Duration>& t) {
        return {typename Clock::time_point(
            saturating_cast<typename Clock::duration>(t.time_since_epoch()))};
    }

    /// For a timer on a clock whose time points are those of another one, as with coarse_clock.
    template <class Clock, class Duration>
        requires(!std::is_same_v<Clock, typename Clock::time_point::clock>)
    [[nodiscard]] static constexpr limit_at<Clock>
    limit(const std::chrono::time_point<typename Clock::time_point::clock, Duration>& t) {
        return {limit<typename Clock::time_point::clock>(t).expiry};
    }
};

template <class T>
inline constexpr bool is_limited = false;
template <class Limit, class Report>
inline constexpr bool is_limited<partial_limit<Limit, Report>> = true;
/// A deferred operation under a limit.
template <template <class...> class Operation, class Signature, class Initiation, class Limit,
          class Report, class... Signatures, class... Args>
inline constexpr bool is_limited<
    Operation<Signature, limited_initiation<Initiation, Limit, Report, Signatures...>, Args...>> =
    true;

template <class T>
concept a_limited_operation = is_limited<std::remove_cvref_t<T>>;

/// An operation for code that is not compiled, so that it has no error but the one.
struct no_operation {
    template <class Handler>
    void operator()(Handler&&) const {}
};

/// For awaitable_operators, which take coroutines only.
template <class A, class B>
    requires(a_limited_operation<A> || a_limited_operation<B>)
auto operator||(A&&, B&&) {
    static_assert(!a_limited_operation<A> && !a_limited_operation<B>,
                  "pawl: || and && of awaitable_operators take coroutines: give the operations on "
                  "both sides timeout(5s, use_awaitable)");
    return boost::asio::async_initiate<const boost::asio::deferred_t&, void()>(
        no_operation(), boost::asio::deferred);
}
template <class A, class B>
    requires(a_limited_operation<A> || a_limited_operation<B>)
auto operator&&(A&& a, B&& b) {
    return std::forward<A>(a) || std::forward<B>(b);
}

/// The return_type of an async_result, if it has one: initiating functions that are declared with
/// BOOST_ASIO_INITFN_RESULT_TYPE, as those of beast::ssl_stream are, ask for it.
template <class Result>
struct return_type_of {};

template <class Result>
    requires requires { typename Result::return_type; }
struct return_type_of<Result> {
    using return_type = typename Result::return_type;
};

} // namespace pawl::detail

/// The operation's own completion signatures become those that Report says.
template <class Token, class Limit, class Report, class... Signatures>
class boost::asio::async_result<pawl::detail::limited_token<Token, Limit, Report>, Signatures...>
    : public pawl::detail::return_type_of<boost::asio::async_result<
          std::decay_t<Token>, typename Report::template signature<
                                   typename pawl::detail::plain_signature<Signatures>::type>...>> {
    template <class Initiation>
    using initiation_type =
        pawl::detail::limited_initiation<std::decay_t<Initiation>, Limit, Report, Signatures...>;

public:
    template <class Initiation, class RawToken, class... Args>
    static auto initiate(Initiation&& initiation, RawToken&& raw, Args&&... args)
        -> decltype(boost::asio::async_initiate<
                    std::conditional_t<std::is_const_v<std::remove_reference_t<RawToken>>,
                                       const Token, Token>,
                    typename Report::template signature<
                        typename pawl::detail::plain_signature<Signatures>::type>...>(
            std::declval<initiation_type<Initiation>>(), raw.token, std::forward<Args>(args)...)) {
        return boost::asio::async_initiate<
            std::conditional_t<std::is_const_v<std::remove_reference_t<RawToken>>, const Token,
                               Token>,
            typename Report::template signature<
                typename pawl::detail::plain_signature<Signatures>::type>...>(
            initiation_type<Initiation>(std::forward<Initiation>(initiation), raw.limit, raw.type),
            raw.token, std::forward<Args>(args)...);
    }
};

template <class Limit, class Report, class... Signatures>
class boost::asio::async_result<pawl::detail::partial_limit<Limit, Report>, Signatures...> {
    template <class Initiation>
    using token = pawl::detail::limited_token<
        typename pawl::detail::default_token<std::decay_t<Initiation>>::type, Limit, Report>;

public:
    template <class Initiation, class RawToken, class... Args>
    static auto initiate(Initiation&& initiation, RawToken&& raw, Args&&... args)
        -> decltype(boost::asio::async_result<token<Initiation>, Signatures...>::initiate(
            std::forward<Initiation>(initiation), token<Initiation>{{}, raw.limit, raw.type},
            std::forward<Args>(args)...)) {
        return boost::asio::async_result<token<Initiation>, Signatures...>::initiate(
            std::forward<Initiation>(initiation), token<Initiation>{{}, raw.limit, raw.type},
            std::forward<Args>(args)...);
    }
};

#endif // PAWL_LIMIT_LIMITED_TOKEN_HPP
