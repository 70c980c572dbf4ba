// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The result for the handler of an operation under pawl::timeout, which tells an expired limit
///   from a cancellation. And coroutines under such a limit, or as members of a group.
#ifndef PAWL_DETAIL_LIMIT_REPORT_TIMEOUT_HPP
#define PAWL_DETAIL_LIMIT_REPORT_TIMEOUT_HPP

#include <pawl/detail/limit/limited_operation.hpp>
#include <pawl/detail/limit/post_result.hpp>

#include <pawl/error.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/channel_error.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <optional>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

namespace pawl::detail {

// --- coroutines ---------------------------------------------------------------------------------

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

/// run_limited() for a T without a default constructor, which co_spawn cannot return.
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
/// Not boost::asio::deferred: its result for (exception_ptr, T) cannot be awaited in Boost 1.81.
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

/// A report for limits that take coroutines, too.
struct limits_coroutines {
    /// Runs a coroutine on the executor of the one that awaits it.
    template <class Limit, class T, class Executor>
    [[nodiscard]] static boost::asio::awaitable<T, Executor>
    run(Limit partial_limit, boost::asio::awaitable<T, Executor> coroutine) {
        const Executor ex = co_await boost::asio::this_coro::executor;
        partial_limit.limit.check();
        co_return co_await run_limited(ex, std::move(coroutine), partial_limit);
    }
};

// --- results -------------------------------------------------------------------------------------

/// Whether the operation reports a cancellation.
[[nodiscard]] inline bool is_cancellation(const boost::system::error_code& ec) noexcept {
    return ec == boost::system::errc::operation_canceled ||
           ec == boost::asio::error::operation_aborted || // standalone: equals no std::errc
           ec == boost::asio::experimental::error::channel_cancelled;
}

[[nodiscard]] inline bool is_cancellation(const std::exception_ptr& e) {
    try {
        std::rethrow_exception(e);
    } catch (const boost::system::system_error& error) {
        return is_cancellation(error.code());
        // only with Boost {
    } catch (const std::system_error& error) {
        return error.code() == std::errc::operation_canceled;
        // } only with Boost
    } catch (const boost::asio::multiple_exceptions& error) { // thrown by awaitable_operators
        return is_cancellation(error.first_exception());
    } catch (...) {
        return false;
    }
}

/// Replaces the error of the operation by `code`, if the operation was cancelled.
inline void replace(boost::system::error_code& error, const boost::system::error_code& code) {
    if (is_cancellation(error))
        error = code;
}
inline void replace(std::exception_ptr& error, const boost::system::error_code& code) {
    if (error && is_cancellation(error))
        error = as_exception(code);
}

/// Whether results begin with the result of as_tuple, which begins with an error.
template <class... Args>
inline constexpr bool hides_error = false;
template <class First, class... Rest, class... More>
inline constexpr bool hides_error<std::tuple<First, Rest...>, More...> = is_error<First>;

/// The signature, if its error is not hidden.
template <class Signature>
struct open_signature;
template <class R, class... Args>
struct open_signature<R(Args...)> {
    static_assert(!hides_error<std::decay_t<Args>...>,
                  "pawl: put as_tuple inside: timeout(5s, as_tuple(token)), not "
                  "as_tuple(timeout(5s, token)), which hides the error code from timeout");
    using type = R(Args...);
};

template <class Signature>
struct timeout_signature;
template <class R, class... Args>
struct timeout_signature<R(Args...)> : open_signature<R(Args...)> {
    using type = R(boost::system::error_code, Args...);
};
template <class R, class First, class... Rest>
    requires is_error<First>
struct timeout_signature<R(First, Rest...)> {
    using type = R(First, Rest...);
};

/// An expired limit has an error of its own.
struct report_timeout : limits_coroutines {
    template <class Signature>
    using signature = typename timeout_signature<Signature>::type;

    template <class Handler, class First, class... Rest>
        requires is_error<First>
    static void invoke(Handler&& handler, const verdict& v, First&& first, Rest&&... rest) {
        std::decay_t<First> error(std::forward<First>(first));
        if (v.by == verdict::who::limit)
            replace(error, code_of(v));
        std::move(handler)(std::move(error), std::forward<Rest>(rest)...);
    }

    template <class Handler, class... Args>
    static void invoke(Handler&& handler, const verdict& v, Args&&... args) {
        std::move(handler)(v.by == verdict::who::limit ? code_of(v) : boost::system::error_code(),
                           std::forward<Args>(args)...);
    }

    /// The time was up before the operation could start. As for an operation that fails at once,
    /// the hand-over goes through the I/O object's executor. The handler's executor may be the
    /// system executor, as within an async_compose without I/O objects; posting there would switch
    /// threads.
    /// @param ex the handler's executor, used without an I/O object.
    template <class Signature, class Executor, class Fallback, class Handler>
    static void post_failure([[maybe_unused]] const Executor& ex,
                             [[maybe_unused]] const Fallback& fallback, Handler&& handler) {
        using failed = failure<signature<Signature>>;
        if constexpr (requires { failed::post(fallback, std::forward<Handler>(handler)); })
            failed::post(fallback, std::forward<Handler>(handler));
        else
            failed::post(ex, std::forward<Handler>(handler));
    }

private:
    /// expire_all() may have given the wait an error code.
    static boost::system::error_code code_of(const verdict& v) noexcept {
        return v.code ? v.code : error::timed_out;
    }

    template <class Signature>
    struct failure;
    template <class R, class First, class... Rest>
    struct failure<R(First, Rest...)> {
        static_assert((std::is_default_constructible_v<std::decay_t<Rest>> && ...),
                      "pawl: timeout_at may not start the operation, so the results must be "
                      "default constructible");

        template <class Executor, class Handler>
            requires requires(const Executor& ex, void (*function)()) {
                boost::asio::post(ex, function);
            }
        static void post(const Executor& ex, Handler&& handler) {
            std::decay_t<First> error{};
            set_error(error, pawl::error::timed_out);
            detail::post_result(ex, std::forward<Handler>(handler), std::move(error),
                                std::decay_t<Rest>()...);
        }
    };
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_LIMIT_REPORT_TIMEOUT_HPP
