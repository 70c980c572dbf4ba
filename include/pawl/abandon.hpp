// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::abandon: limits for operations that cannot be cancelled.
#ifndef PAWL_ABANDON_HPP
#define PAWL_ABANDON_HPP

#include <pawl/config.hpp>

#include <pawl/detail/limit/limited_token.hpp>
#include <pawl/detail/limit/outer_adapter.hpp>

#include <pawl/detail/wait/wait_allocator.hpp>
#include <pawl/detail/wait/wait_handler.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <atomic>
#include <concepts>
#include <memory>
#include <optional>
#include <tuple>
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

/// An operation that may be abandoned, and its handler.
///
/// Invariants
/// - The handler is invoked by the end of the operation or by the abandonment, whichever changes
///   outcome_ first, on the handler's executor.
/// - The signal is emitted on the operation's executor only.
///
/// Threads
/// The operation and the handler may have different contexts. outcome_ decides between them.
template <class Handler, class Executor, class OperationExecutor, class Late, class Signature>
class abandonable;
template <class Handler, class Executor, class OperationExecutor, class Late, class R, class Error,
          class... Results>
class abandonable<Handler, Executor, OperationExecutor, Late, R(Error, Results...)>
    : public std::enable_shared_from_this<
          abandonable<Handler, Executor, OperationExecutor, Late, R(Error, Results...)>> {
    enum class outcome : unsigned char { open, ended, abandoned };

public:
    template <class H>
    abandonable(H&& handler, const Executor& ex, const OperationExecutor& operation_ex,
                const Late& late)
        : work_(std::in_place, ex), handler_(std::in_place, std::forward<H>(handler)),
          executor_(ex), operation_executor_(operation_ex), late_(late) {}

    /// Listens to the caller's slot.
    void listen() {
        auto slot = boost::asio::get_associated_cancellation_slot(*handler_);
        if (slot.is_connected())
            slot.template emplace<link>(this->weak_from_this());
    }

    [[nodiscard]] const OperationExecutor& operation_executor() const noexcept {
        return operation_executor_;
    }
    [[nodiscard]] boost::asio::cancellation_slot slot() noexcept { return signal_.slot(); }

    template <class... Args>
    void ended(Args&&... args) {
        // acq_rel: the other thread has left the handler, or late_
        const outcome before = outcome_.exchange(outcome::ended, std::memory_order_acq_rel);
        if (before == outcome::abandoned)
            return late_(std::forward<Args>(args)...);
        if (before == outcome::ended) // a copy
            return;
        if constexpr (std::is_same_v<Executor, OperationExecutor>) {
            if (*executor_ == operation_executor_)
                return handler()(std::forward<Args>(args)...);
        }
        // In this order: without work the handler's context may end, which its strands do not outlive.
        const auto work = std::move(work_);
        const Executor ex = *executor_;
        boost::asio::dispatch(ex, completion<std::decay_t<Args>...>{this->shared_from_this(),
                                                                    handler(),
                                                                    {std::forward<Args>(args)...}});
    }

private:
    /// In the caller's slot, which may outlive the operation.
    class link {
    public:
        explicit link(std::weak_ptr<abandonable> op) noexcept : op_(std::move(op)) {}
        void operator()(boost::asio::cancellation_type_t type) const {
            if (type == boost::asio::cancellation_type::none)
                return;
            if (const auto op = op_.lock())
                op->cancel(type);
        }

    private:
        std::weak_ptr<abandonable> op_;
    };

    /// What the operation has brought, on its way to the executor of the handler.
    template <class... Args>
    struct completion {
        using pawl_wrapped_handler = Handler;
        std::shared_ptr<abandonable> op;
        Handler to;
        std::tuple<Args...> results;
        [[nodiscard]] const Handler& handler() const noexcept { return to; }
        void operator()() {
            op->executor_.reset(); // here: cancel() may use it
            op.reset();
            std::apply(std::move(to), std::move(results));
        }
    };

    /// Runs on the handler's executor. An operation that can be cancelled ends first, as a rule.
    void cancel(boost::asio::cancellation_type_t type) {
        if (!is_open())
            return;
        const auto weak = this->weak_from_this(); // if the operation is destroyed, so is this
        try {
            boost::asio::dispatch(operation_executor_, [weak, type] {
                const auto self = weak.lock();
                // relaxed: the operation ends on this executor
                if (self && self->outcome_.load(std::memory_order_relaxed) != outcome::ended)
                    self->signal_.emit(type);
            });
            if (!is_open()) // it has ended in the signal
                return;
            boost::asio::post(*executor_, [weak] {
                if (auto self = weak.lock())
                    abandon(std::move(self));
            });
        } catch (...) { // no memory: a limit does not come again
            abandon(this->shared_from_this());
            throw;
        }
    }

    static void abandon(std::shared_ptr<abandonable> self) {
        auto open = outcome::open;
        // acq_rel: pairs with ended()
        if (!self->outcome_.compare_exchange_strong(open, outcome::abandoned,
                                                    std::memory_order_acq_rel))
            return;
        self->executor_.reset(); // a strand does not outlive its context
        Handler h = self->handler();
        self.reset(); // the handler may destroy the operation, and its context
        std::decay_t<Error> error{};
        set_error(error, boost::asio::error::operation_aborted);
        std::move(h)(std::move(error), std::decay_t<Results>()...);
    }

    /// On the handler's executor.
    [[nodiscard]] bool is_open() const noexcept {
        // relaxed: a hint, or an outcome of this executor
        return outcome_.load(std::memory_order_relaxed) == outcome::open;
    }

    /// Takes it. Nothing here keeps its context running any more.
    [[nodiscard]] Handler handler() {
        Handler h(std::move(*handler_));
        handler_.reset();
        work_.reset();
        return h;
    }

    std::atomic<outcome> outcome_{outcome::open};
    std::optional<outstanding_work<Executor>> work_; ///< of the handler's context
    std::optional<Handler> handler_;
    std::optional<Executor> executor_; ///< until the handler is about to run; reset on it
    const OperationExecutor operation_executor_;
    [[no_unique_address]] Late late_;
    boost::asio::cancellation_signal signal_;
};

/// The handler that the operation gets. It has none of the associations of the caller's handler,
/// which may be gone before the operation.
template <class State>
class abandonable_handler {
public:
    using executor_type = std::decay_t<decltype(std::declval<State&>().operation_executor())>;
    using cancellation_slot_type = boost::asio::cancellation_slot;

    explicit abandonable_handler(std::shared_ptr<State> s) noexcept : state_(std::move(s)) {}

    [[nodiscard]] executor_type get_executor() const noexcept {
        return state_->operation_executor();
    }
    [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept {
        return state_->slot();
    }

    template <class... Args>
    void operator()(Args&&... args) const {
        const auto keep = state_;
        keep->ended(std::forward<Args>(args)...);
    }

private:
    std::shared_ptr<State> state_;
};

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
/// auto hosts = co_await resolver.async_resolve(name, "https", pawl::timeout(2s, pawl::abandon));
/// resolver.async_resolve(name, "https", pawl::timeout(2s, pawl::abandon, [](error_code ec, auto hosts) { ... }));
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
