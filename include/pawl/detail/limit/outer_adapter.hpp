// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Adapters of completion tokens around a limit, such as `redirect_error(timeout(5s, token), ec)`.
///   There an adapter would come between the limit and the operation, and hide the error code, the
///   cancellation slot or the executor from the limit. So it is moved inside:
///   `timeout(5s, redirect_error(token, ec))`.
#ifndef PAWL_DETAIL_LIMIT_OUTER_ADAPTER_HPP
#define PAWL_DETAIL_LIMIT_OUTER_ADAPTER_HPP

#include <pawl/detail/limit/limited_token.hpp>

#include <boost/asio/append.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/consign.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/prepend.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/version.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

namespace pawl::detail {

/// Whether a token is a limit, or adapters around one.
template <class T>
inline constexpr bool has_limit = is_limited<T> || is_abandoning<T>;
template <class T>
inline constexpr bool has_limit<boost::asio::as_tuple_t<T>> = has_limit<T>;
template <class T>
inline constexpr bool has_limit<boost::asio::redirect_error_t<T>> = has_limit<T>;
template <class T, class... Values>
inline constexpr bool has_limit<boost::asio::append_t<T, Values...>> = has_limit<T>;
template <class T, class... Values>
inline constexpr bool has_limit<boost::asio::prepend_t<T, Values...>> = has_limit<T>;
template <class T, class... Values>
inline constexpr bool has_limit<boost::asio::consign_t<T, Values...>> = has_limit<T>;
template <class T, class Executor>
inline constexpr bool has_limit<boost::asio::executor_binder<T, Executor>> = has_limit<T>;
template <class T, class Allocator>
inline constexpr bool has_limit<boost::asio::allocator_binder<T, Allocator>> = has_limit<T>;
template <class T, class Slot>
inline constexpr bool has_limit<boost::asio::cancellation_slot_binder<T, Slot>> = has_limit<T>;

/// The token in an adapter.
template <class Adapter>
[[nodiscard]] constexpr auto& token_in(Adapter& a) {
    if constexpr (requires { a.token_; })
        return a.token_;
    else
        return a.get();
}

/// Before Boost 1.82, some adapters need a return_type of the token's async_result.
template <class Token, class Adapt>
[[nodiscard]] constexpr auto adapt_unless_deferred(Token&& token, Adapt adapt) {
#if BOOST_VERSION < 108200
    constexpr bool is_deferred = std::is_same_v<Token, boost::asio::deferred_t>;
    static_assert(!is_deferred,
                  "pawl: before Boost 1.82, redirect_error, bind_allocator and "
                  "bind_cancellation_slot need another token than deferred, such as in "
                  "redirect_error(timeout(5s, use_awaitable), ec)");
    if constexpr (is_deferred)
        return std::move(token);
    else
#endif
        return adapt(std::move(token));
}

/// Puts an adapter around another token.
template <class T, class Token>
[[nodiscard]] constexpr auto adapt_as(boost::asio::as_tuple_t<T>&, Token&& token) {
    return boost::asio::as_tuple_t<Token>(std::move(token));
}
template <class T, class Token>
[[nodiscard]] constexpr auto adapt_as(boost::asio::redirect_error_t<T>& a, Token&& token) {
    return adapt_unless_deferred(std::move(token), [&a](Token&& t) {
        return boost::asio::redirect_error_t<Token>(std::move(t), a.ec_);
    });
}
template <template <class...> class Adapter, class T, class... Values, class Token>
    requires requires(Adapter<T, Values...>& a) { a.values_; }
[[nodiscard]] constexpr auto adapt_as(Adapter<T, Values...>& a, Token&& token) {
    const auto adapt = [&token](Values&... values) {
        return Adapter<Token, Values...>(std::move(token), std::move(values)...);
    };
    return std::apply(adapt, a.values_);
}
template <class T, class Executor, class Token>
[[nodiscard]] auto adapt_as(boost::asio::executor_binder<T, Executor>& a, Token&& token) {
    return boost::asio::bind_executor(a.get_executor(), std::move(token));
}
template <class T, class Allocator, class Token>
[[nodiscard]] auto adapt_as(boost::asio::allocator_binder<T, Allocator>& a, Token&& token) {
    return adapt_unless_deferred(std::move(token), [&a](Token&& t) {
        return boost::asio::bind_allocator(a.get_allocator(), std::move(t));
    });
}
template <class T, class Slot, class Token>
[[nodiscard]] auto adapt_as(boost::asio::cancellation_slot_binder<T, Slot>& a, Token&& token) {
    return adapt_unless_deferred(std::move(token), [&a](Token&& t) {
        return boost::asio::bind_cancellation_slot(a.get_cancellation_slot(), std::move(t));
    });
}

/// The limit in a token, with the adapters around it moved inside.
template <class Initiation, class Token, class Limit, class Report>
[[nodiscard]] constexpr auto limit_outside(limited_token<Token, Limit, Report>& t) {
    return std::move(t);
}
template <class Initiation, class Limit, class Report>
[[nodiscard]] constexpr auto limit_outside(partial_limit<Limit, Report>& p) {
    return p(typename default_token<Initiation>::type());
}
template <class Initiation, class Late, class Token>
[[nodiscard]] constexpr auto limit_outside(abandoning<Late, Token>& a) {
    if constexpr (std::is_same_v<Token, no_token>)
        return a.with(typename default_token<Initiation>::type());
    else if constexpr (has_limit<Token>)
        return a.with(limit_outside<Initiation>(a.token));
    else
        return std::move(a);
}
template <class Initiation, class Adapter>
[[nodiscard]] constexpr auto limit_outside(Adapter& a) {
    auto t = limit_outside<Initiation>(token_in(a));
    return t.with(adapt_as(a, std::move(t.token)));
}

template <class Adapter>
using limit_outside_t = decltype(limit_outside<no_operation>(std::declval<Adapter&>()));

/// The async_result of an adapter around a limit.
template <class Adapter, class... Signatures>
struct outer_adapter
    : return_type_of<boost::asio::async_result<limit_outside_t<Adapter>, Signatures...>> {
    template <class Initiation, class... Args>
    static auto initiate(Initiation&& initiation, Adapter adapter, Args&&... args) {
        auto token = limit_outside<std::decay_t<Initiation>>(adapter);
        return boost::asio::async_initiate<decltype(token), Signatures...>(
            std::forward<Initiation>(initiation), token, std::forward<Args>(args)...);
    }
};

} // namespace pawl::detail

template <class T, class... Signatures>
    requires pawl::detail::has_limit<T>
struct boost::asio::async_result<boost::asio::as_tuple_t<T>, Signatures...>
    : pawl::detail::outer_adapter<boost::asio::as_tuple_t<T>, Signatures...> {};
template <class T, class Signature>
    requires pawl::detail::has_limit<T>
struct boost::asio::async_result<boost::asio::redirect_error_t<T>, Signature>
    : pawl::detail::outer_adapter<boost::asio::redirect_error_t<T>, Signature> {};
template <class T, class... Values, class Signature>
    requires pawl::detail::has_limit<T>
struct boost::asio::async_result<boost::asio::append_t<T, Values...>, Signature>
    : pawl::detail::outer_adapter<boost::asio::append_t<T, Values...>, Signature> {};
template <class T, class... Values, class Signature>
    requires pawl::detail::has_limit<T>
struct boost::asio::async_result<boost::asio::prepend_t<T, Values...>, Signature>
    : pawl::detail::outer_adapter<boost::asio::prepend_t<T, Values...>, Signature> {};
template <class T, class... Values, class... Signatures>
    requires pawl::detail::has_limit<T>
struct boost::asio::async_result<boost::asio::consign_t<T, Values...>, Signatures...>
    : pawl::detail::outer_adapter<boost::asio::consign_t<T, Values...>, Signatures...> {};
template <class T, class Executor, class Signature>
    requires pawl::detail::has_limit<T>
struct boost::asio::async_result<boost::asio::executor_binder<T, Executor>, Signature>
    : pawl::detail::outer_adapter<boost::asio::executor_binder<T, Executor>, Signature> {};
template <class T, class Allocator, class Signature>
    requires pawl::detail::has_limit<T>
struct boost::asio::async_result<boost::asio::allocator_binder<T, Allocator>, Signature>
    : pawl::detail::outer_adapter<boost::asio::allocator_binder<T, Allocator>, Signature> {};
template <class T, class Slot, class Signature>
    requires pawl::detail::has_limit<T>
struct boost::asio::async_result<boost::asio::cancellation_slot_binder<T, Slot>, Signature>
    : pawl::detail::outer_adapter<boost::asio::cancellation_slot_binder<T, Slot>, Signature> {};

#endif // PAWL_DETAIL_LIMIT_OUTER_ADAPTER_HPP
