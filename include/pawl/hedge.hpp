// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::hedge: a second attempt if the first one is slow.
#ifndef PAWL_HEDGE_HPP
#define PAWL_HEDGE_HPP

#include <pawl/config.hpp>

#include <pawl/alarm.hpp>
#include <pawl/retry_policy.hpp>

#include <pawl/detail/limit/attempts.hpp>
#include <pawl/detail/limit/limited_operation.hpp>

#include <pawl/detail/service/native_executor.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <array>
#include <chrono>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace pawl {

/// How pawl::hedge() makes its second attempt.
template <class Clock>
struct basic_hedge_policy {
    using clock_type = Clock; ///< The clock of the delay.
    /// From the first attempt to the second. Zero or less: both at once. A good value is what 95 %
    /// of the attempts take: then 5 % more are made.
    detail::saturated<std::chrono::nanoseconds> delay = std::chrono::nanoseconds(0);
    /// Pays for the second attempt; none by default.
    retry_budget* budget = nullptr;
};

/// On the steady clock.
using hedge_policy = basic_hedge_policy<detail::steady_clock>;

namespace detail {

template <class Policy, class Function, class Signature, class Handler, class Executor>
class hedge_operation;

/// One hedge(). All that happens after the initiating function happens on the executor, one at a
/// time. Users are counted: the attempts, and functions of
/// this class that are on their way or run. The last one ends it.
template <class Policy, class Function, class R, class First, class... Rest, class Handler,
          class Executor>
class hedge_operation<Policy, Function, R(First, Rest...), Handler, Executor>
    : public attempts<hedge_operation<Policy, Function, R(First, Rest...), Handler, Executor>,
                      Policy, Function, Handler, Executor> {
    using base = attempts<hedge_operation, Policy, Function, Handler, Executor>;
    friend base;
    using clock = typename Policy::clock_type;
    using cancellation_type_t = boost::asio::cancellation_type_t;
    using result = std::tuple<std::decay_t<First>, std::decay_t<Rest>...>;

    struct make_second {
        hedge_operation* op;
        void operator()() const { op->delay_passed(); }
    };

    friend outer_link<hedge_operation>;

public:
    template <class H>
    hedge_operation(H&& handler, const Executor& ex, Policy&& policy, Function&& f)
        : base(std::forward<H>(handler), ex, std::move(policy), std::move(f)) {
        auto slot = boost::asio::get_associated_cancellation_slot(handler_);
        if (slot.is_connected())
            slot.template emplace<outer_link<hedge_operation>>(*this);
    }
    ~hedge_operation() {
        if (outer_)
            outer_->op = nullptr;
    }

    /// The rest is on the executor, alone there, also if this thread is elsewhere.
    void launch() { this->template post<&hedge_operation::begin>(); }

    // --- for the handlers of attempts ---

    [[nodiscard]] boost::asio::cancellation_slot slot(unsigned which) noexcept {
        return signals_[which].slot();
    }

    template <class... Args>
    void ended(unsigned which, Args&&... args) {
        as_user([&] { note(which, std::forward<Args>(args)...); });
    }
    /// The handler was destroyed: its context ends, or the function has thrown.
    void dropped(unsigned) noexcept {
        if (--users_ != 0)
            return;
        if (!result_)
            return destroy();
        try {
            this->template post<&hedge_operation::finish>();
        } catch (...) { // no memory: destroyed
        }
    }

private:
    using base::destroy;
    using base::executor_, base::function_, base::handler_, base::policy_;

    /// Calls f() as a user that has been counted, and leaves.
    template <class F>
    void as_user(F f) {
        try {
            f();
        } catch (...) {
            leave();
            throw;
        }
        leave();
    }
    void leave() {
        if (--users_ == 0)
            finish();
    }

    void begin() {
        as_user([this] {
            if (cancelled_)
                return fail();
            if (policy_.budget)
                policy_.budget->deposit();
            start(0);
            if (over_ || users_ == 1)
                return;
            alarm_.emplace(executor_, make_second{this});
            if (policy_.delay > policy_.delay.zero())
                (void)alarm_->arm_after(policy_.delay); // refused: there is no second attempt
            else
                delay_passed();
        });
    }

    void delay_passed() {
        if (over_ || cancelled_ || (policy_.budget && !policy_.budget->try_withdraw()))
            return;
        ++users_;
        as_user([this] { start(1); });
    }

    void start(unsigned which) {
        ++users_;
        try {
            attempt_handler mine(*this, which); // first: leaves if the function throws
            auto made = function_(basic_attempt<clock>(which + 1, {}, last_error_, no_hint_));
            if (cancelled_) // by the function, before there was anything to cancel
                throw boost::system::system_error(boost::asio::error::operation_aborted);
            run_attempt(executor_, std::move(made), std::move(mine));
        } catch (...) {
            std::decay_t<First> error{};
            const bool expressible = express(error, std::current_exception());
            if (!expressible)
                set_error(error, boost::asio::error::operation_aborted);
            note(which, std::move(error), std::decay_t<Rest>()...);
            if (!expressible)
                throw;
        }
    }

    /// An attempt has ended.
    template <class F, class... More>
    void note(unsigned which, F&& first, More&&... more) {
        if (over_)
            return; // it comes second
        const bool succeeds = !first;
        last_error_ = code_of(first);
        over_ = succeeds;
        result_.emplace(std::forward<F>(first), std::forward<More>(more)...);
        if (over_ && alarm_)
            alarm_->disarm();
        if (succeeds)
            signals_[1 - which].emit(cancellation_type_t::terminal);
    }

    void cancel(cancellation_type_t type) {
        cancelled_ = true;
        if (alarm_)
            alarm_->disarm();
        ++users_;
        as_user([this, type] {
            for (auto& signal : signals_)
                signal.emit(type);
        });
    }

    void fail() {
        over_ = true;
        set_error(std::get<0>(result_.emplace()), boost::asio::error::operation_aborted);
    }

    /// All attempts have ended.
    void finish() {
        if (!result_) // it could not be moved
            fail();
        result ended(std::move(*result_));
        std::apply([this](auto&... args) { this->deliver(std::move(args)...); }, ended);
    }

    unsigned users_ = 1;     ///< begin()
    bool over_ = false;      ///< it is known what to report
    bool cancelled_ = false; ///< by the caller
    boost::system::error_code last_error_;
    std::chrono::nanoseconds no_hint_{}; ///< an attempt may write to it as long as it runs
    std::array<boost::asio::cancellation_signal, 2> signals_;
    outer_link<hedge_operation>* outer_ = nullptr;
    std::optional<result> result_;
    std::optional<basic_alarm<make_second, clock, Executor>> alarm_;
};

} // namespace detail

/// Makes an attempt, and if it has not ended after a delay, a second one beside it. The first
/// success wins: the other attempt is cancelled, and awaited. For requests that may be sent twice,
/// whose slowest per cent matter. After J. Dean and L. A. Barroso, The Tail at Scale (CACM 56,
/// 2013).
///
/// @code
/// reply r = co_await pawl::hedge(50ms, [&](pawl::attempt a) { return ask(a.number()); });
/// r = co_await pawl::hedge({.delay = 50ms, .budget = &budget}, f);
/// @endcode
///
/// An attempt that fails before the second one begins is no reason for a second one: its failure is
/// the result. Put pawl::retry() around it. If both fail, the later failure is the result. The
/// function returns what that of pawl::retry() may return. Its attempts have no deadline: use
/// `hedge(50ms, f, pawl::timeout(1s, use_awaitable))`, or limits in the function.
///
/// @param policy see basic_hedge_policy. Its budget must outlive the operation. Without a token
///     for the second attempt in it, none is made.
/// @param function called as `function(basic_attempt<Clock>)`, once or twice, and destroyed before
///     the handler is called. The attempt number 1 may be running when it is called for number 2.
/// @param token, where as for pawl::retry(): `hedge(where, policy, function, token)`. An executor or
///     a context.
///
/// @par Completion
/// Once, when no attempt is running any more. So an attempt that ignores its cancellation delays
/// the result. Beyond options::max_pending there is only the first attempt.
/// @par Cancellation
/// Terminal, partial and total. It is forwarded to the attempts that run, and no second one begins.
/// @par Exceptions
/// What the function throws is the failure of its attempt, if the signature can express it.
/// Anything else leaves `run()` of the context, and that attempt fails with `operation_aborted`.
/// @throws std::bad_alloc from the initiating function, with nothing started.
/// @par Executor
/// The associated executor of the handler runs all, beginning with a post. If several threads run
/// it, it must be a strand.
/// @par Complexity
/// One allocation by the associated allocator of the handler, freed before it is called, and one
/// for an alarm.
template <
    detail::runs_attempts Where, class Clock = detail::steady_clock, class Function,
    class Token = typename detail::attempts_of<std::decay_t<Function>, basic_attempt<Clock>>::token>
auto hedge(Where&& where, basic_hedge_policy<Clock> policy, Function&& function,
           Token&& token = Token()) {
    return detail::initiate_attempts<detail::hedge_operation, basic_attempt<Clock>>(
        where, std::move(policy), std::forward<Function>(function), std::forward<Token>(token));
}

/// As above, on the associated executor of the handler, such as that of the coroutine.
template <
    class Clock = detail::steady_clock, class Function,
    class Token = typename detail::attempts_of<std::decay_t<Function>, basic_attempt<Clock>>::token>
auto hedge(basic_hedge_policy<Clock> policy, Function&& function, Token&& token = Token()) {
    return detail::initiate_attempts<detail::hedge_operation, basic_attempt<Clock>>(
        detail::no_executor(), std::move(policy), std::forward<Function>(function),
        std::forward<Token>(token));
}

/// As above, with a delay on the steady clock, and without a budget.
template <class Rep, class Period, class Function,
          class Token = typename detail::attempts_of<std::decay_t<Function>, attempt>::token>
auto hedge(std::chrono::duration<Rep, Period> delay, Function&& function, Token&& token = Token()) {
    return hedge(hedge_policy{delay}, std::forward<Function>(function), std::forward<Token>(token));
}

} // namespace pawl

#endif // PAWL_HEDGE_HPP
