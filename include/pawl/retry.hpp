// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::retry: repeats an operation that fails, with pauses between.
#ifndef PAWL_RETRY_HPP
#define PAWL_RETRY_HPP

#include <pawl/config.hpp>

#include <pawl/basic_waitable_timer.hpp>
#include <pawl/retry_policy.hpp>
#include <pawl/timeout.hpp>

#include <pawl/detail/limit/attempts.hpp>
#include <pawl/detail/service/native_executor.hpp>

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace pawl {

namespace detail {

template <class Policy, class Function, class Signature, class Handler, class Executor>
class retry_operation;

/// One retry(): the object that its attempts and pauses point at, one at a time.
///
/// Two parties hold it: what was started, an attempt or a pause, by its handler; and what starts
/// it, until it has returned. If the handler is called while the starter is still there, in this
/// thread or another, the result is stored. The last party goes on: the handler at once, the
/// starter by a post. If the handler was destroyed, there is no result, and the last party destroys
/// the operation.
template <class Policy, class Function, class R, class First, class... Rest, class Handler,
          class Executor>
class retry_operation<Policy, Function, R(First, Rest...), Handler, Executor>
    : public attempts<retry_operation<Policy, Function, R(First, Rest...), Handler, Executor>,
                      Policy, Function, Handler, Executor> {
    using base = attempts<retry_operation, Policy, Function, Handler, Executor>;
    friend base;
    using clock = typename Policy::clock_type;
    using error_code = boost::system::error_code;
    using result = std::tuple<std::decay_t<First>, std::decay_t<Rest>...>;
    using an_attempt = std::in_place_index_t<1>; // of `stored_`
    using a_pause = std::in_place_index_t<2>;

public:
    template <class H>
    retry_operation(H&& handler, const Executor& ex, Policy&& policy, Function&& f)
        : base(std::forward<H>(handler), ex, std::move(policy), std::move(f)),
          cancelled_(boost::asio::get_associated_cancellation_slot(handler_),
                     latched_cancellation(), boost::asio::enable_total_cancellation()) {
        if (policy_.limit != Policy::never)
            policy_.deadline = policy_.deadline.within(policy_.limit);
        if (policy_.budget)
            policy_.budget->deposit();
    }

    void launch() { attempt(); }

    // --- for the handlers of attempts and pauses ---

    template <class Which>
    [[nodiscard]] boost::asio::cancellation_slot slot(Which) const noexcept {
        return cancelled_.slot();
    }

    template <std::size_t Which, class... Args>
    void ended(std::in_place_index_t<Which>, Args&&... args) {
        // acquire: pairs with leave() of the starter
        if (parties_.load(std::memory_order_acquire) != started)
            store<Which>(std::forward<Args>(args)...);
        else if constexpr (Which == 1)
            judge(std::forward<Args>(args)...);
        else
            go_on(std::forward<Args>(args)...);
    }
    template <class Which>
    void dropped(Which) noexcept {
        if (leave(started))
            destroy();
    }

private:
    static constexpr unsigned started = 1, starter = 2;

    using base::deliver, base::destroy;
    using base::executor_, base::function_, base::handler_, base::policy_;

    // --- starting --------------------------------------------------------------------------------

    void attempt() {
        if (policy_.deadline.expired()) {
            if (number_ != 0)
                return give_up(last_error_);
            set_error(std::get<0>(stored_.template emplace<1>()), error::timed_out);
            return resume_later();
        }
        ++number_;
        hint_ = hint_.zero();
        const auto limit = policy_.attempt_limit == Policy::never
                               ? policy_.deadline
                               : policy_.deadline.within(policy_.attempt_limit);
        start([&] {
            attempt_handler mine(*this, an_attempt()); // first: leaves if the function throws
            auto made = function_(basic_attempt<clock>(number_, limit, last_error_, hint_));
            if (cancelled()) // by the function, before there was anything to cancel
                throw boost::system::system_error(boost::asio::error::operation_aborted);
            if (limit.is_never())
                run_attempt(executor_, std::move(made), std::move(mine));
            else
                run_attempt(executor_, std::move(made), timeout_at(limit, std::move(mine)));
        });
    }

    void pause(std::chrono::nanoseconds d) {
        start([&] {
            attempt_handler mine(*this, a_pause());
            try {
                if (!timer_)
                    timer_.emplace(executor_);
                timer_->expires_after(saturating_cast<typename clock::duration>(d));
                timer_->async_wait(std::move(mine));
            } catch (...) {
                give_back();
                throw;
            }
        });
    }

    template <class Start>
    void start(Start f) {
        parties_.store(started | starter, std::memory_order_relaxed); // relaxed: no other party
        try {
            f();
        } catch (...) {
            if (!leave(starter)) // the operation has thrown, but kept its handler
                throw;
            return start_failed();
        }
        if (leave(starter))
            stored_.index() == 0 ? destroy() : resume_later();
    }

    /// In the handler of an exception: the handler was called or destroyed, so this is ours again.
    void start_failed() {
        if (stored_.index() != 0) {
            resume_later();
            throw;
        }
        std::decay_t<First> error{};
        const bool expressible = express(error, std::current_exception());
        if (begun_) { // in a handler
            if (expressible)
                return judge(std::move(error), std::decay_t<Rest>()...);
            deliver_error(last_error_);
            throw;
        }
        if (!expressible) {
            destroy(); // nothing was started: the initiating function throws
            throw;
        }
        stored_.template emplace<1>(std::move(error), std::decay_t<Rest>()...);
        resume_later();
    }

    // --- ending ----------------------------------------------------------------------------------

    /// An attempt has ended.
    template <class F, class... More>
    void judge(F&& first, More&&... more) {
        begun_ = true;
        if (!first)
            return deliver(std::forward<F>(first), std::forward<More>(more)...);
        std::optional<std::chrono::nanoseconds> d;
        try {
            d = next_pause(code_of(first));
        } catch (...) { // the predicate
            deliver(std::forward<F>(first), std::forward<More>(more)...);
            throw;
        }
        if (d && cancelled())
            deliver_error(boost::asio::error::operation_aborted);
        else if (d && (!policy_.budget || policy_.budget->try_withdraw()))
            pause(*d);
        else
            deliver(std::forward<F>(first), std::forward<More>(more)...);
    }

    /// The pause after an error, if it is to be retried, and there is time.
    std::optional<std::chrono::nanoseconds> next_pause(const error_code& ec) {
        if (!ec || number_ == 0 ||
            (number_ >= policy_.max_attempts && policy_.max_attempts != Policy::unlimited))
            return {};
        if (!(policy_.retry_if ? policy_.retry_if(ec) : is_transient(ec)))
            return {};
        last_error_ = ec;
        const auto d = backoff_.next(policy_, hint_);
        if (!policy_.deadline.is_never() && d >= policy_.deadline.remaining())
            return {};
        return d;
    }

    void go_on(error_code ec) {
        if (!ec && cancelled())
            ec = boost::asio::error::operation_aborted;
        ec ? give_up(ec) : attempt();
    }
    /// The retry that a token was withdrawn for is not made.
    void give_up(const error_code& ec) {
        give_back();
        deliver_error(ec);
    }
    void give_back() noexcept {
        if (policy_.budget)
            policy_.budget->give_back();
    }
    [[nodiscard]] bool cancelled() const noexcept {
        return cancelled_.cancelled() != boost::asio::cancellation_type::none;
    }

    template <std::size_t Which, class... Args>
    void store(Args&&... args) {
        try {
            work_.emplace(executor_);
            stored_.template emplace<Which>(std::forward<Args>(args)...);
        } catch (...) {
            stored_.template emplace<0>();
            dropped(an_attempt());
            throw;
        }
        if (leave(started))
            resume();
    }

    [[nodiscard]] bool leave(unsigned party) noexcept {
        // acq_rel: the last one sees the writes of the other
        return parties_.fetch_sub(party, std::memory_order_acq_rel) == party;
    }

    void resume_later() { this->template post<&retry_operation::resume>(); }
    void resume() {
        auto stored = std::exchange(stored_, {});
        work_.reset();
        if (auto* const r = std::get_if<1>(&stored))
            std::apply([this](auto&... args) { this->judge(std::move(args)...); }, *r);
        else
            go_on(std::get<2>(stored));
    }

    void deliver_error(const error_code& ec) {
        std::decay_t<First> error{};
        set_error(error, ec);
        deliver(std::move(error), std::decay_t<Rest>()...);
    }

    std::atomic<unsigned> parties_{0};
    unsigned number_ = 0; ///< of the attempt
    bool begun_ = false;  ///< the initiating function has returned
    boost::asio::cancellation_state cancelled_;
    error_code last_error_;
    std::chrono::nanoseconds hint_{0};
    backoff backoff_;
    std::optional<basic_waitable_timer<clock, boost::asio::wait_traits<clock>, Executor>> timer_;
    std::optional<outstanding_work<Executor>> work_; ///< while the result is stored
    std::variant<std::monostate, result, error_code> stored_;
};

} // namespace detail

/// Repeats an operation until it succeeds, fails for good, or meets a limit of the policy.
///
/// @code
/// pawl::retry_budget budget; // shared by all requests
/// const pawl::retry_policy policy{.attempt_limit = 2s, .limit = 10s, .budget = &budget};
/// reply r = co_await pawl::retry(policy, [&](pawl::attempt a) { return ask(a.deadline()); });
/// co_await pawl::retry(policy, [&](pawl::attempt) {
///     return socket.async_connect(endpoint, deferred); });
/// @endcode
///
/// The function is called once for each attempt, never concurrently, and returns what to do: an
/// awaitable, or a deferred operation whose first result is an `error_code` or an `exception_ptr`,
/// such as `socket.async_connect(endpoint, pawl::timeout(1s))`. It may be a coroutine itself. It is
/// destroyed before the handler is called.
///
/// @param policy see basic_retry_policy. Copied; its budget must outlive the operation.
/// @param function called as `function(basic_attempt<Clock>)`.
/// @param token the signature is that of an attempt; of `awaitable<T>` it is `void(exception_ptr,
///     T)`. By default something that a coroutine can await. Without an associated executor, pass
///     an executor or a context first: `retry(ex, policy, function, token)`.
///
/// @par Completion
/// Once, never within this call, with the results of the last attempt: of the one that succeeded,
/// or the last failure, when the policy allows no other attempt. A pause that would pass the
/// deadline does not begin: the failure is reported at once. If the deadline has passed at the
/// start, no attempt is made: `timed_out`. An exception that has no error code, neither of
/// `boost::system` nor of `std`, is never retried.
/// @par Cancellation
/// Terminal, partial and total, at any point. It is forwarded to the attempt, and ends a pause at
/// once with `operation_aborted`, and there is no other attempt. An attempt that succeeds
/// nevertheless, or fails for good, keeps its result.
/// @par Exceptions
/// What the function throws is the failure of its attempt, if the signature can express it: always
/// for awaitables, otherwise with an error code. Anything else leaves the initiating function, with
/// nothing started; or from the second attempt on `run()` of the context, and the handler gets the
/// last failure. If the predicate throws, the handler gets the last result, and the exception
/// leaves `run()`.
/// @throws std::invalid_argument from this call, if the policy cannot be kept. std::bad_alloc from
///     the initiating function, with nothing started.
/// @par Executor
/// The associated executor of the handler runs all: attempts, pauses, the function, the predicate.
/// With limits, and several threads, it must be a strand, as for pawl::timeout().
/// @par Complexity
/// One allocation by the associated allocator of the handler, freed before it is called. Each pause
/// costs one wait; a limit is that of pawl::timeout_at().
template <
    class Clock = detail::steady_clock, class Function,
    class Token = typename detail::attempts_of<std::decay_t<Function>, basic_attempt<Clock>>::token>
auto retry(basic_retry_policy<Clock> policy, Function&& function, Token&& token = Token()) {
    policy.check();
    return detail::initiate_attempts<detail::retry_operation, basic_attempt<Clock>>(
        detail::no_executor(), std::move(policy), std::forward<Function>(function),
        std::forward<Token>(token));
}

/// As above, on an executor or that of a context, unless the handler has an executor of its own.
template <
    detail::runs_attempts Where, class Clock = detail::steady_clock, class Function,
    class Token = typename detail::attempts_of<std::decay_t<Function>, basic_attempt<Clock>>::token>
auto retry(Where&& where, basic_retry_policy<Clock> policy, Function&& function,
           Token&& token = Token()) {
    policy.check();
    return detail::initiate_attempts<detail::retry_operation, basic_attempt<Clock>>(
        where, std::move(policy), std::forward<Function>(function), std::forward<Token>(token));
}

} // namespace pawl

#endif // PAWL_RETRY_HPP
