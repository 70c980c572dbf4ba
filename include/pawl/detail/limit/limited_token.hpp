// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Completion tokens that put an operation under a limit, and the functions that make them.
///
/// Model
///   limit_function(limit, token) --> limited_token --async_result--> limited_initiation, which
///   starts a limited_operation. Without a token the result is a partial one. It is a completion
///   token that stands for the default token of the operation's executor, and also a function
///   object that takes the token. limit_mistakes.hpp explains calls that do not compile.
#ifndef PAWL_DETAIL_LIMIT_LIMITED_TOKEN_HPP
#define PAWL_DETAIL_LIMIT_LIMITED_TOKEN_HPP

#include <pawl/detail/limit/limit_mistakes.hpp>
#include <pawl/detail/limit/limit_timer.hpp>
#include <pawl/detail/limit/limited_operation.hpp>

#include <pawl/detail/service/clocks.hpp>

#include <pawl/detail/wait/wait_handler.hpp>

#include <pawl/detail/time/durations.hpp>

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

/// In place of the token of an abandoning token that has none.
struct no_token {};

template <class T>
inline constexpr bool is_bare_abandoning = false;
template <class Late>
inline constexpr bool is_bare_abandoning<abandoning<Late, no_token>> = true;

/// A completion signature without qualifiers.
template <class Signature>
struct plain_signature;
template <class R, class... Args, bool NoThrow>
struct plain_signature<R(Args...) noexcept(NoThrow)> {
    using type = R(Args...);
    using result = std::tuple<std::decay_t<Args>...>;
};
template <class R, class... Args, bool NoThrow>
struct plain_signature<R(Args...) & noexcept(NoThrow)> : plain_signature<R(Args...)> {};
template <class R, class... Args, bool NoThrow>
struct plain_signature<R(Args...) && noexcept(NoThrow)> : plain_signature<R(Args...)> {};

template <class First, class... Rest>
struct first_signature : plain_signature<First> {};

template <class Initiation>
concept has_executor = requires(const Initiation& initiation) {
    typename Initiation::executor_type;
    { initiation.get_executor() } -> std::convertible_to<typename Initiation::executor_type>;
};

/// Forwards the executor of an initiation that wraps another one.
template <class Initiation>
struct executor_of_initiation {};
template <has_executor Initiation>
struct executor_of_initiation<Initiation> {
    using executor_type = typename Initiation::executor_type;
};

/// The executor of an operation whose handler has none.
template <class Limit, class Initiation>
[[nodiscard]] decltype(auto) default_executor([[maybe_unused]] const Limit& limit,
                                              [[maybe_unused]] const Initiation& initiation) {
    if constexpr (has_executor<Initiation>)
        return initiation.get_executor();
    else if constexpr (requires { limit.timer->get_executor(); })
        return limit.timer->get_executor();
    else if constexpr (requires { limit.group->get_executor(); })
        return limit.group->get_executor();
    else
        return no_executor();
}

/// Starts an operation under a limit.
template <class Initiation, class Limit, class Report, class... Signatures>
class limited_initiation : public executor_of_initiation<Initiation> {
public:
    /// Whether the operation may block the context of its I/O object: see abandon.hpp.
    static constexpr bool blocks_its_context =
        requires { requires Initiation::blocks_its_context; };

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
        // Not get_associated_executor(), which requires an executor as the fallback.
        using fallback_type = std::decay_t<decltype(fallback)>;
        using associated = boost::asio::associated_executor<std::decay_t<Handler>, fallback_type>;
        constexpr bool has_executor_for_time =
            (!std::is_same_v<fallback_type, no_executor> && !blocks_its_context) ||
            !(std::is_same_v<typename associated::type, no_executor> ||
              asks_for_executor<std::decay_t<Handler>>);
        explain_executor<has_executor_for_time>();
        if constexpr (has_executor_for_time)
            launch_on<associated>(fallback, std::forward<I>(initiation),
                                  std::forward<Handler>(handler), std::forward<Args>(args)...);
    }

    template <class Associated, class Fallback, class I, class Handler, class... Args>
    void launch_on(const Fallback& fallback, I&& initiation, Handler&& handler,
                   Args&&... args) const {
        using executor = std::decay_t<decltype(Associated::get(handler, fallback))>;
        if constexpr (requires { limit_.time.passed(); }) {
            if (limit_.time.passed())
                return Report::template post_failure<typename first_signature<Signatures...>::type>(
                    executor(Associated::get(handler, fallback)), // a copy: the handler is moved
                    fallback, std::forward<Handler>(handler));
        }
        using operation =
            limited_operation<typename Limit::timer_type, Report, std::decay_t<Handler>, executor,
                              typename plain_signature<Signatures>::result...>;
        const auto start = [&](const auto& timer_executor) {
            operation::launch(std::forward<Handler>(handler), fallback, timer_executor, limit_,
                              type_, std::forward<I>(initiation), std::forward<Args>(args)...);
        };
        // If the context of the I/O object is known, it keeps the time. The handler's context may
        // only be a place to run in, as with use_future. An operation that may be abandoned may
        // block its context.
        if constexpr (has_executor<Initiation> && !blocks_its_context)
            start(initiation.get_executor());
        else
            start(executor(Associated::get(handler, fallback)));
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

    awaited_limit operator()(an_object_pointer auto /*frame*/) const {
        return await_limit<Limit>();
    }

    /// The same limit of another token.
    template <class T>
    [[nodiscard]] constexpr limited_token<std::decay_t<T>, Limit, Report> with(T&& other) const {
        return {std::forward<T>(other), limit, type};
    }
};

/// A limit without its completion token.
template <class Limit, class Report>
struct partial_limit {
    Limit limit;
    boost::asio::cancellation_type_t type;

    template <class Token>
        requires(!an_object_pointer<std::decay_t<Token>>)
    [[nodiscard]] constexpr limited_token<std::decay_t<Token>, Limit, Report>
    operator()(Token&& token) const {
        return {std::forward<Token>(token), limit, type};
    }

    awaited_limit operator()(an_object_pointer auto /*frame*/) const {
        return await_limit<Limit>();
    }
};

/// A limit with the arguments behind it: `type` and `token`, both optional. A report that has
/// `run(partial_limit, coroutine)` takes coroutines, too.
template <class Report, class Limit>
[[nodiscard]] constexpr partial_limit<Limit, Report>
limited(Limit limit,
        boost::asio::cancellation_type_t type = boost::asio::cancellation_type::terminal) {
    limit.check();
    return {limit, type};
}
template <class Report, class Limit, class Token>
    requires(!std::is_same_v<std::decay_t<Token>, boost::asio::cancellation_type_t>)
[[nodiscard]] constexpr auto limited(Limit limit, Token&& token) {
    return limited<Report>(limit, boost::asio::cancellation_type::terminal,
                           std::forward<Token>(token));
}
template <class Report, class Limit, class Token>
[[nodiscard]] constexpr auto limited(Limit limit, boost::asio::cancellation_type_t type,
                                     Token&& token) {
    using partial = partial_limit<Limit, Report>;
    constexpr bool runs = requires { Report::run(std::declval<partial>(), std::declval<Token>()); };
    constexpr bool is_coroutine = an_awaitable_object<std::decay_t<Token>>;
    constexpr bool is_timer = a_timer<std::decay_t<Token>> || a_foreign_timer<std::decay_t<Token>>;
    constexpr bool is_abandoned = is_abandoning<std::decay_t<Token>>;
    explain_token<!runs && is_coroutine, is_timer,
                  !is_abandoned && hides_abandoning<std::decay_t<Token>>>();
    if constexpr (runs)
        return Report::run(partial{limit, type}, std::forward<Token>(token));
    else if constexpr (is_timer)
        return limited<Report>(refused_limit{});
    else if constexpr (is_coroutine)
        return std::decay_t<Token>(std::forward<Token>(token));
    else if constexpr (is_bare_abandoning<std::decay_t<Token>>) // it stays outside: see abandon.hpp
        return token.with(limited<Report>(limit, type));
    else if constexpr (is_abandoned)
        return token.with(limited<Report>(limit, type, std::forward<Token>(token).token));
    else
        return limited<Report>(limit, type)(std::forward<Token>(token));
}
template <class Report, class Limit, class Late, class Token>
[[nodiscard]] constexpr auto limited(Limit limit, boost::asio::cancellation_type_t type,
                                     const abandoning<Late, no_token>& a, Token&& token) {
    return limited<Report>(limit, type, a.with(std::forward<Token>(token)));
}
template <class Report, class Limit, class Late, class Token>
[[nodiscard]] constexpr auto limited(Limit limit, const abandoning<Late, no_token>& a,
                                     Token&& token) {
    return limited<Report>(limit, a.with(std::forward<Token>(token)));
}

/// Whether `Times` makes a limit of the arguments that follow a timer.
template <class Times, class... Args>
inline constexpr bool limits_on_timer = false;
template <class Times, a_timer Timer, class Time, class... Rest>
inline constexpr bool limits_on_timer<Times, Timer, Time, Rest...> =
    requires(const Time& t) { Times::template limit<typename Timer::clock_type>(t); };

/// The completion token of an operation without one: the default token of its executor, or else
/// boost::asio::deferred.
template <class Initiation>
struct default_token {
    using of_executor =
        boost::asio::default_completion_token_t<boost::asio::associated_executor_t<Initiation>>;
    using type =
        std::conditional_t<std::is_void_v<of_executor>, boost::asio::deferred_t, of_executor>;
};

/// A function that puts an operation under a limit. See cancel_after() for its overloads.
///
/// @tparam Times  `limit(t)` turns the caller's argument into a limit_after or limit_at;
///     `limit<Clock>(t)` makes one on a given clock.
template <class Times, class Report>
class limit_function {
public:
    template <class Time, class... Rest>
        requires requires(const Time& t) { Times::limit(t); }
    [[nodiscard]] constexpr auto operator()(const Time& time, Rest&&... rest) const {
        return limited<Report>(own_limit<decltype(Times::limit(time))>{Times::limit(time)},
                               std::forward<Rest>(rest)...);
    }

    template <a_timer Timer, class Time, class... Rest>
        requires requires(const Time& t) { Times::template limit<typename Timer::clock_type>(t); }
    [[nodiscard]] constexpr auto operator()(Timer& timer, const Time& time, Rest&&... rest) const {
        auto on_clock = Times::template limit<typename Timer::clock_type>(time);
        return limited<Report>(callers_limit<decltype(on_clock), Timer>{on_clock, &timer},
                               std::forward<Rest>(rest)...);
    }

    /// Anything else is a mistake. Returns a limit, or the coroutine, so that there is only one
    /// error.
    template <class First, class... Rest>
        requires(!requires(const First& t) { Times::limit(t); } &&
                 !limits_on_timer<Times, std::decay_t<First>, std::decay_t<Rest>...>)
    [[nodiscard]] constexpr auto operator()(First&& first, Rest&&...) const {
        explain<std::decay_t<First>, std::decay_t<Rest>...>();
        if constexpr (an_awaitable_object<std::decay_t<First>>)
            return std::decay_t<First>(std::forward<First>(first));
        else
            return limited<Report>(refused_limit{});
    }
};

/// Limits given as durations.
template <class OwnClock>
struct limit_durations_on {
    template <class Clock = OwnClock, class Rep, class Period>
    [[nodiscard]] static constexpr limit_after<Clock>
    limit(const std::chrono::duration<Rep, Period>& d) {
        return {saturating_cast<typename Clock::duration>(d)};
    }
    /// For pawl::scaled.
    template <class Clock = OwnClock, class Time>
        requires requires(const Time& t) { t.template limit<Clock>(); }
    [[nodiscard]] static constexpr auto limit(const Time& t) {
        return t.template limit<Clock>();
    }
};

using limit_durations = limit_durations_on<steady_clock>;

/// Limits given as time points.
struct limit_time_points {
    template <class Clock, class Duration>
    [[nodiscard]] static constexpr limit_at<clock_behind<Clock>>
    limit(const std::chrono::time_point<Clock, Duration>& t) {
        return {typename Clock::time_point(
            saturating_cast<typename Clock::duration>(t.time_since_epoch()))};
    }

    /// For a timer on a clock with the time points of another clock, such as coarse_clock.
    template <class Clock, class Duration>
        requires(!std::is_same_v<Clock, typename Clock::time_point::clock>)
    [[nodiscard]] static constexpr limit_at<Clock>
    limit(const std::chrono::time_point<typename Clock::time_point::clock, Duration>& t) {
        return {limit<typename Clock::time_point::clock>(t).expiry};
    }
};

/// The signature that `Report` makes of a signature of the operation.
template <class Report, class Signature>
using reported_signature =
    typename Report::template signature<typename plain_signature<Signature>::type>;

/// The return_type of an async_result, if it has one. Initiating functions declared with
/// BOOST_ASIO_INITFN_RESULT_TYPE need it, such as those of beast::ssl_stream.
template <class Result>
struct return_type_of {};

template <class Result>
    requires requires { typename Result::return_type; }
struct return_type_of<Result> {
    using return_type = typename Result::return_type;
};

} // namespace pawl::detail

/// Report replaces the operation's completion signatures.
template <class Token, class Limit, class Report, class... Signatures>
class boost::asio::async_result<pawl::detail::limited_token<Token, Limit, Report>, Signatures...>
    : public pawl::detail::return_type_of<boost::asio::async_result<
          std::decay_t<Token>, pawl::detail::reported_signature<Report, Signatures>...>> {
    template <class Initiation>
    using initiation_type =
        pawl::detail::limited_initiation<std::decay_t<Initiation>, Limit, Report, Signatures...>;
    template <class RawToken>
    using token_type =
        std::conditional_t<std::is_const_v<std::remove_reference_t<RawToken>>, const Token, Token>;

public:
    template <class Initiation, class RawToken, class... Args>
    static auto initiate(Initiation&& initiation, RawToken&& raw, Args&&... args)
        -> decltype(boost::asio::async_initiate<
                    token_type<RawToken>, pawl::detail::reported_signature<Report, Signatures>...>(
            std::declval<initiation_type<Initiation>>(), raw.token, std::forward<Args>(args)...)) {
        return boost::asio::async_initiate<token_type<RawToken>,
                                           pawl::detail::reported_signature<Report, Signatures>...>(
            initiation_type<Initiation>(std::forward<Initiation>(initiation), raw.limit, raw.type),
            raw.token, std::forward<Args>(args)...);
    }

    /// A token that does not take these results. The other initiate() is better if it is viable.
    template <class Initiation, class... Args>
    static void initiate(Initiation&&, pawl::detail::any_token, Args&&...) {
        pawl::detail::explain_results<Token>();
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

#endif // PAWL_DETAIL_LIMIT_LIMITED_TOKEN_HPP
