// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::abandon: limits for operations that cannot be cancelled.
#ifndef PAWL_ABANDON_HPP
#define PAWL_ABANDON_HPP

#include <pawl/config.hpp>

#include <pawl/detail/limit/abandonable.hpp>
#include <pawl/detail/limit/limited_token.hpp>
#include <pawl/detail/limit/outer_adapter.hpp>

#include <pawl/detail/wait/wait_allocator.hpp>
#include <pawl/detail/wait/wait_handler.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace pawl {

namespace detail {

/// Whether an operation with such an argument uses memory of its caller until it ends.
template <class T>
inline constexpr bool is_lent =
    std::is_pointer_v<T> || boost::asio::is_const_buffer_sequence<T>::value ||
    boost::asio::is_mutable_buffer_sequence<T>::value ||
    boost::asio::is_dynamic_buffer_v1<T>::value || boost::asio::is_dynamic_buffer_v2<T>::value;

template <class Signature>
inline constexpr bool may_be_abandoned = false;
template <class R, class First, class... Rest>
inline constexpr bool may_be_abandoned<R(First, Rest...)> =
    is_error<First> && (std::is_default_constructible_v<std::decay_t<Rest>> && ...);

template <class Late, class Signature>
inline constexpr bool takes_results = false;
template <class Late, class R, class... Args>
inline constexpr bool takes_results<Late, R(Args...)> = std::is_invocable_v<Late&, Args...>;

/// Starts an operation that may be abandoned.
template <class Initiation, class Late, class Signature>
class abandonable_initiation : public executor_of_initiation<Initiation> {
public:
    static constexpr bool blocks_its_context = true;

    template <class I>
    abandonable_initiation(I&& initiation, const Late& late)
        : initiation_(std::forward<I>(initiation)), late_(late) {}

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
        static_assert(!(is_lent<std::decay_t<Args>> || ...),
                      "pawl: an operation that uses a buffer or a pointer of its caller cannot be "
                      "abandoned: the caller may be gone before it ends");
        static_assert(may_be_abandoned<Signature>,
                      "pawl: an operation that is abandoned has an error_code or an exception_ptr "
                      "as its first result, and default values for the others");
        constexpr bool has_executor_for_end = !asks_for_executor<std::decay_t<Handler>>;
        static_assert(has_executor_for_end,
                      "pawl: an operation that is abandoned ends on the executor of its handler, "
                      "which an any_completion_handler does not tell: bind_executor(ex, handler)");
        constexpr bool takes_late = takes_results<Late, Signature>;
        static_assert(takes_late || !may_be_abandoned<Signature>,
                      "pawl: the function for late results takes all results of the operation; a "
                      "token goes behind it: abandon(f, token)");
        if constexpr (may_be_abandoned<Signature> && has_executor_for_end && takes_late)
            start(std::forward<I>(initiation), std::forward<Handler>(handler),
                  std::forward<Args>(args)...);
    }

    template <class I, class Handler, class... Args>
    void start(I&& initiation, Handler&& handler, Args&&... args) const {
        const auto operation_ex = [&] {
            if constexpr (has_executor<Initiation>)
                return initiation.get_executor();
            else
                return boost::asio::get_associated_executor(handler);
        }();
        const auto ex = boost::asio::get_associated_executor(handler, operation_ex);
        using state = abandonable<std::decay_t<Handler>, std::decay_t<decltype(ex)>,
                                  std::decay_t<decltype(operation_ex)>, Late, Signature>;
        // Not by the handler's allocator, whose memory may be gone before the operation.
        auto s = std::allocate_shared<state>(wait_allocator<void>(), std::forward<Handler>(handler),
                                             ex, operation_ex, late_);
        s->listen();
        std::forward<I>(initiation)(abandonable_handler<state>(std::move(s)),
                                    std::forward<Args>(args)...);
    }

    [[no_unique_address]] Initiation initiation_;
    [[no_unique_address]] Late late_;
};

template <class Initiation, class Token>
[[nodiscard]] constexpr auto token_or_default(Token&& token) {
    if constexpr (std::is_same_v<std::decay_t<Token>, no_token>)
        return typename default_token<Initiation>::type();
    else
        return std::decay_t<Token>(std::forward<Token>(token));
}

/// The default late function.
struct drop_result {
    void operator()(const auto&...) const noexcept {}
};

} // namespace detail

/// Lets a limit or a group end an operation that cannot be cancelled. The caller goes on as if it
/// had been cancelled; the operation goes on in the background, and its late result is dropped, or
/// given to a function.
///
/// @code
/// auto found = co_await resolver.async_resolve(name, "https", pawl::timeout(2s, pawl::abandon));
/// resolver.async_resolve(name, "https", pawl::timeout(2s, pawl::abandon, [](error_code ec, auto found) { ... }));
/// auto c = co_await pool.async_get(pawl::timeout(2s, pawl::abandon([&pool](error_code, connection c) { pool.put(c); })));
/// @endcode
///
/// It stands where the token would, in front of it, or around it:
/// @li `timeout(2s, abandon)`, `timeout(2s, abandon, token)`; the same with pawl::timeout_at,
///     pawl::cancel_after, pawl::cancel_at and pawl::in_group.
/// @li `abandon(late)` in the same places: `late` gets the results of an abandoned operation.
/// @li `abandon(late, token)` without a limit. A cancellation through the slot of the handler
///     abandons the operation.
///
/// Use it only for operations that own all that they use: the operation and its I/O object go on
/// after the caller. An operation that is given a buffer or a pointer does not compile.
///
/// @par Completion
/// As without it, if the operation ends first. The signature must begin with an `error_code` or an
/// `exception_ptr`. When it is cancelled, the operation gets the signal as well; then a completion
/// with `operation_aborted` and default values is posted, which the limit turns into
/// pawl::error::timed_out. An operation that ends before that reports its own result, as those of
/// Asio do that can be cancelled. A coroutine by `co_spawn` takes longer, as does an operation with
/// an executor of its own, and is abandoned. `late` is called with any result that comes after the
/// abandonment, an error too; not if the operation is destroyed.
///
/// @par Executor
/// The handler runs on its own executor. The operation, its intermediate handlers and `late` run on
/// the executor of the I/O object. So they do not keep another context of the handler from
/// finishing; they keep the context of the I/O object busy, as the operation does. If the operation
/// hides that executor, that of the handler takes its place. The limit is kept by the context of
/// the handler, so the operation may block its own.
///
/// @par Complexity
/// O(1). One more allocation, not by the handler's allocator, which lives until the operation ends.
template <class Late, class Token>
struct abandoning {
    static_assert(
        !detail::an_awaitable_object<Token>,
        "pawl: a coroutine cannot be abandoned, only cancelled: abandon the operations in "
        "it");

    [[no_unique_address]] Late late;   ///< Gets late results.
    [[no_unique_address]] Token token; ///< The token inside, if any.

    /// With a function for late results. @param f is called with them, by reference.
    template <class F>
    [[nodiscard]] constexpr abandoning<std::decay_t<F>, Token> operator()(F&& f) const
        requires std::same_as<Late, detail::drop_result>
    {
        return {std::forward<F>(f), token};
    }
    /// With a function for late results, around a token.
    template <class F, class T>
    [[nodiscard]] constexpr abandoning<std::decay_t<F>, std::decay_t<T>> operator()(F&& f,
                                                                                    T&& t) const {
        return {std::forward<F>(f), std::forward<T>(t)};
    }

    /// The same around another token.
    template <class T>
    [[nodiscard]] constexpr abandoning<Late, std::decay_t<T>> with(T&& other) const {
        return {late, std::forward<T>(other)};
    }
};

/// See abandoning.
inline constexpr abandoning<detail::drop_result, detail::no_token> abandon{};

} // namespace pawl

#ifndef PAWL_DETAIL_DOXYGEN
template <class Late, class Token, class Signature>
class boost::asio::async_result<pawl::abandoning<Late, Token>, Signature>
    : public pawl::detail::return_type_of<boost::asio::async_result<
          std::conditional_t<std::is_same_v<Token, pawl::detail::no_token>, boost::asio::deferred_t,
                             Token>,
          Signature>> {
    using results = typename pawl::detail::plain_signature<Signature>::type;
    template <class Initiation>
    using wrapped = pawl::detail::abandonable_initiation<std::decay_t<Initiation>, Late, results>;
    template <class Initiation>
    using token =
        decltype(pawl::detail::token_or_default<std::decay_t<Initiation>>(std::declval<Token>()));

public:
    template <class Initiation, class RawToken, class... Args>
    static auto initiate(Initiation&& initiation, RawToken&& raw, Args&&... args)
        -> decltype(boost::asio::async_initiate<token<Initiation>, Signature>(
            std::declval<wrapped<Initiation>>(), std::declval<token<Initiation>&>(),
            std::forward<Args>(args)...)) {
        auto inner = pawl::detail::token_or_default<std::decay_t<Initiation>>(
            std::forward<RawToken>(raw).token);
        return boost::asio::async_initiate<token<Initiation>, Signature>(
            wrapped<Initiation>(std::forward<Initiation>(initiation), raw.late), inner,
            std::forward<Args>(args)...);
    }
};
#endif

#endif // PAWL_ABANDON_HPP
