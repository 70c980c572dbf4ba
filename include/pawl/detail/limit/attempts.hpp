// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   What retry() and hedge() share: what a function may return as an attempt, how it is started,
///   the handler of an attempt, the block and the end of the operation around it, and the errors of
///   attempts.
///
/// Model
///   An attempt is a coroutine, or a deferred operation whose first result is an error. The
///   operation around it has the same signature.
#ifndef PAWL_DETAIL_LIMIT_ATTEMPTS_HPP
#define PAWL_DETAIL_LIMIT_ATTEMPTS_HPP

#include <pawl/detail/limit/limited_token.hpp>
#include <pawl/detail/limit/post_result.hpp>
#include <pawl/detail/limit/report_timeout.hpp>

#include <pawl/detail/service/native_executor.hpp>

#include <pawl/detail/wait/wait_allocator.hpp>
#include <pawl/detail/wait/wait_handler.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/execution/executor.hpp>
#include <boost/asio/is_executor.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <system_error>
#include <type_traits>
#include <utility>

namespace pawl::detail {

// --- what an attempt is --------------------------------------------------------------------------

/// What a function returns that makes an attempt. `signature` is that of its completion, `token`
/// its default token.
template <class T>
struct attempt_traits {
    static_assert(
        !std::is_same_v<T, T>,
        "pawl: an attempt is an awaitable or a deferred operation: return f(...) of a coroutine, "
        "or socket.async_connect(endpoint, boost::asio::deferred)");
    using signature = void(boost::system::error_code);
    using token = boost::asio::deferred_t;
};
template <class T>
    requires(std::is_object_v<T> && boost::asio::is_async_operation<T>::value)
struct attempt_traits<T> {
    using signature = typename plain_signature<boost::asio::completion_signature_of_t<T>>::type;
    using token = boost::asio::deferred_t;
};
template <class T, class Executor>
struct attempt_traits<boost::asio::awaitable<T, Executor>> {
    static_assert(std::is_void_v<T> || std::is_default_constructible_v<T>,
                  "pawl: a coroutine that is an attempt returns a type with a default constructor");
    using signature = void(std::exception_ptr, T);
    using token =
        boost::asio::use_awaitable_t<Executor>; // deferred cannot be awaited: see run_limited()
};
template <class Executor>
struct attempt_traits<boost::asio::awaitable<void, Executor>> {
    using signature = void(std::exception_ptr);
    using token = boost::asio::use_awaitable_t<Executor>;
};

template <class Function, class Attempt>
struct attempts_of {
    static_assert(std::is_invocable_v<Function&, const Attempt&>,
                  "pawl: the function takes a pawl::attempt of the clock of the policy: "
                  "[&](pawl::attempt a) { return op(a); }");
    using traits = attempt_traits<std::decay_t<std::invoke_result_t<Function&, const Attempt&>>>;
    using signature = typename traits::signature;
    using token = typename traits::token;
    static_assert(begins_with_error<signature>,
                  "pawl: the first result of an attempt is an error_code or an exception_ptr");
};

/// Starts an attempt. @param made what the function has returned
template <class Executor, class T, class Token>
void run_attempt(const Executor& ex, T&& made, Token&& token) {
    if constexpr (is_awaitable<std::decay_t<T>>)
        boost::asio::co_spawn(ex, std::forward<T>(made), std::forward<Token>(token));
    else
        std::forward<T>(made)(std::forward<Token>(token));
}

/// The handler of what `Operation` starts, with the associations that the operation gives it. Calls
/// `ended(Which, results...)`, or `dropped(Which)` if it is destroyed.
template <class Operation, class Which>
class attempt_handler {
public:
    using executor_type = typename Operation::executor_type;
    using allocator_type = typename Operation::allocator_type;
    using cancellation_slot_type = boost::asio::cancellation_slot;

    attempt_handler(Operation& op, Which which) noexcept : op_(&op), which_(which) {}
    attempt_handler(attempt_handler&& other) noexcept
        : op_(std::exchange(other.op_, nullptr)), which_(other.which_) {}
    attempt_handler& operator=(attempt_handler&&) = delete;
    ~attempt_handler() {
        if (op_)
            op_->dropped(which_);
    }

    [[nodiscard]] executor_type get_executor() const noexcept { return op_->get_executor(); }
    [[nodiscard]] allocator_type get_allocator() const noexcept { return op_->get_allocator(); }
    [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept {
        return op_->slot(which_);
    }

    template <class... Args>
    void operator()(Args&&... args) {
        std::exchange(op_, nullptr)->ended(which_, std::forward<Args>(args)...);
    }

private:
    Operation* op_;
    [[no_unique_address]] Which which_;
};

/// Filter of a cancellation_state: what has been requested stays requested.
struct latched_cancellation {
    boost::asio::cancellation_type_t requested = boost::asio::cancellation_type::none;
    boost::asio::cancellation_type_t operator()(boost::asio::cancellation_type_t type) noexcept {
        return requested |= boost::asio::enable_total_cancellation()(type);
    }
};

// --- the operation -------------------------------------------------------------------------------

/// The base of an operation that makes attempts. One block, by the allocator of the handler.
template <class Operation, class Policy, class Function, class Handler, class Executor>
class attempts {
public:
    using executor_type = Executor;
    using allocator_type = handler_allocator<Handler>;

    template <class H>
    static Operation& make(H&& handler, const Executor& ex, Policy&& policy, Function&& f) {
        return *allocated_block<Operation, allocator_type>(get_handler_allocator(handler))
                    .make(std::forward<H>(handler), ex, std::move(policy), std::move(f));
    }
    attempts& operator=(attempts&&) = delete;

    [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
    [[nodiscard]] allocator_type get_allocator() const noexcept {
        return get_handler_allocator(handler_);
    }

protected:
    template <class H>
    attempts(H&& handler, const Executor& ex, Policy&& policy, Function&& f)
        : handler_(std::forward<H>(handler)), executor_(ex), policy_(std::move(policy)),
          function_(std::move(f)) {}
    ~attempts() = default;

    /// Calls `F` on the executor.
    template <void (Operation::*F)()>
    void post() {
        const auto call = [](void* object, bool called) {
            auto& self = *static_cast<Operation*>(object);
            called ? (self.*F)() : self.destroy();
        };
        boost::asio::post(executor_,
                          deferred_call(static_cast<Operation*>(this), call, get_allocator()));
    }
    template <class... Args>
    void deliver(Args&&... args) {
        // before the upcall, so that an operation started there reuses the block
        Handler last = take_handler(handler_, static_cast<Operation&>(*this));
        std::move(last)(std::forward<Args>(args)...);
    }
    void destroy() noexcept { (void)take_handler(handler_, static_cast<Operation&>(*this)); }

    Handler handler_;
    Executor executor_;
    Policy policy_;
    Function function_;
};

// --- where it runs -------------------------------------------------------------------------------

/// Where attempts run: an executor, or a context.
template <class T>
concept runs_attempts =
    execution_context_type<T> || boost::asio::is_executor<std::remove_cvref_t<T>>::value ||
    boost::asio::execution::is_executor<std::remove_cvref_t<T>>::value;

/// The executor of an initiating function; that of the handler counts first.
template <class Executor>
struct initiation_executor {
    using executor_type = Executor;
    Executor executor;
    [[nodiscard]] executor_type get_executor() const noexcept { return executor; }
};
template <>
struct initiation_executor<no_executor> {
    no_executor executor;
};

/// Starts an `Operation<Policy, Function, Signature, Handler, Executor>`, when the handler is
/// known.
template <template <class...> class Operation, class Policy, class Function, class Signature,
          class Executor>
struct start_attempts : initiation_executor<Executor> {
    start_attempts(const Executor& ex, Policy&& p, Function&& f)
        : initiation_executor<Executor>{ex}, policy(std::move(p)), function(std::move(f)) {}

    template <class Handler>
    void operator()(Handler&& handler) && {
        launch(std::forward<Handler>(handler), std::move(policy), std::move(function));
    }
    template <class Handler>
    void operator()(Handler&& handler) const& {
        launch(std::forward<Handler>(handler), Policy(policy), Function(function));
    }

    Policy policy;
    Function function;

private:
    template <class Handler>
    void launch(Handler&& handler, Policy&& p, Function&& f) const {
        using handler_type = std::decay_t<Handler>;
        using associated = boost::asio::associated_executor<handler_type, Executor>;
        constexpr bool has_one = !std::is_same_v<Executor, no_executor> ||
                                 !(std::is_same_v<typename associated::type, no_executor> ||
                                   asks_for_executor<handler_type>);
        static_assert(has_one,
                      "pawl: retry and hedge have no executor to run on: co_await them, pass one "
                      "first, as in retry(ex, policy, f, token), or bind one to the handler");
        if constexpr (has_one) {
            using chosen = std::decay_t<typename associated::type>;
            const chosen ex(
                associated::get(handler, this->executor)); // a copy: the handler is moved
            Operation<Policy, Function, Signature, handler_type, chosen>::make(
                std::forward<Handler>(handler), ex, std::move(p), std::move(f))
                .launch();
        }
    }
};

/// False for a function object that cannot be called with these results.
template <class Token, class Signature>
constexpr bool takes_attempt = true;
template <class Token, class... Results>
    requires requires { &Token::operator(); }
constexpr bool takes_attempt<Token, void(Results...)> = std::is_invocable_v<Token&, Results...>;

/// Initiates an `Operation`. @param where see runs_attempts, or no_executor
template <template <class...> class Operation, class Attempt, class Where, class Policy,
          class Function, class Token>
auto initiate_attempts(Where&& where, Policy&& policy, Function&& function, Token&& token) {
    using function_type = std::decay_t<Function>;
    using signature = typename attempts_of<function_type, Attempt>::signature;
    const auto ex = [&] {
        if constexpr (execution_context_type<Where>)
            return where.get_executor();
        else
            return where;
    }();
    constexpr bool matches = takes_attempt<std::decay_t<Token>, signature>;
    static_assert(
        matches,
        "pawl: the handler of retry or hedge takes the results of an attempt; if that is a "
        "coroutine: (std::exception_ptr, T), without T for void");
    if constexpr (matches)
        return boost::asio::async_initiate<Token, signature>(
            start_attempts<Operation, Policy, function_type, signature, std::decay_t<decltype(ex)>>(
                ex, std::move(policy), function_type(std::forward<Function>(function))),
            token);
}

// --- errors --------------------------------------------------------------------------------------

/// The code of an error; success if there is none, or the exception has no code.
[[nodiscard]] inline boost::system::error_code
code_of(const boost::system::error_code& ec) noexcept {
    return ec;
}
[[nodiscard]] inline boost::system::error_code code_of(const std::exception_ptr& e) {
    if (!e)
        return {};
    try {
        std::rethrow_exception(e);
    } catch (const boost::system::system_error& error) {
        return error.code();
        // only with Boost {
    } catch (const std::system_error& error) {
        return error.code();
        // } only with Boost
    } catch (const boost::asio::multiple_exceptions& error) { // thrown by awaitable_operators
        return code_of(error.first_exception());
    } catch (...) {
        return {};
    }
}

/// Makes an exception the error of an attempt.
/// @return false if the error is a code, and the exception has none.
[[nodiscard]] inline bool express(std::exception_ptr& error, const std::exception_ptr& e) noexcept {
    error = e;
    return true;
}
[[nodiscard]] inline bool express(boost::system::error_code& error, const std::exception_ptr& e) {
    error = code_of(e);
    return static_cast<bool>(error);
}

} // namespace pawl::detail

#endif // PAWL_DETAIL_LIMIT_ATTEMPTS_HPP
