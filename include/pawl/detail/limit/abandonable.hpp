// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   An operation that may be abandoned: who completes its handler, where, and what of it is work.
///
/// Used by
///   abandon.hpp.
#ifndef PAWL_DETAIL_LIMIT_ABANDONABLE_HPP
#define PAWL_DETAIL_LIMIT_ABANDONABLE_HPP

#include <pawl/detail/limit/limited_operation.hpp>

#include <pawl/detail/wait/wait_handler.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace pawl::detail {

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
            slot.template emplace<weak_link<abandonable>>(this->weak_from_this());
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
    friend weak_link<abandonable>;

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

} // namespace pawl::detail

#endif // PAWL_DETAIL_LIMIT_ABANDONABLE_HPP
