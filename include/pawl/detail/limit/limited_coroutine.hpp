// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Runs a coroutine under a limit, or as a member of a group.
#ifndef PAWL_DETAIL_LIMIT_LIMITED_COROUTINE_HPP
#define PAWL_DETAIL_LIMIT_LIMITED_COROUTINE_HPP

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <optional>
#include <type_traits>
#include <utility>

namespace pawl::detail {

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

} // namespace pawl::detail

#endif // PAWL_DETAIL_LIMIT_LIMITED_COROUTINE_HPP
