// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::rate_limiter: so many per second, first come first served.
#ifndef PAWL_RATE_LIMITER_HPP
#define PAWL_RATE_LIMITER_HPP

#include <pawl/config.hpp>

#include <pawl/alarm.hpp>
#include <pawl/basic_waitable_timer.hpp>

#include <pawl/detail/limit/post_result.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/service/native_executor.hpp>
#include <pawl/detail/service/timer_handle.hpp>

#include <pawl/detail/time/durations.hpp>
#include <pawl/detail/time/token_bucket.hpp>
#include <pawl/detail/wait/wait_allocator.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace pawl {

/// A rate: `tokens` in each `period`, and up to `burst` at once after a rest.
struct rate_limit {
    std::int64_t tokens = 1; ///< In each period; above 0.
    detail::saturated<std::chrono::nanoseconds> period = std::chrono::seconds(1); ///< Above 0.
    std::int64_t burst = 1; ///< The most that the bucket holds; above 0. It is full at first.
};

namespace detail {

/// The handler of a waiter's wait.
template <class State, class Handler>
class limiter_handler {
    using waiter_pointer = std::shared_ptr<typename State::waiter>;

public:
    using pawl_wrapped_handler = Handler;

    template <class H>
    limiter_handler(std::shared_ptr<State> s, waiter_pointer w, H&& handler)
        : handler_(std::forward<H>(handler)), state_(std::move(s)), waiter_(std::move(w)) {}
    limiter_handler(limiter_handler&&) = default;
    limiter_handler& operator=(limiter_handler&&) = delete;
    ~limiter_handler() {
        if (waiter_)
            state_->ended(*waiter_, {}, false);
    }

    void operator()(const boost::system::error_code& ec) {
        const auto result = state_->ended(*waiter_, ec, true);
        waiter_.reset();
        state_.reset();
        std::move(handler_)(result);
    }

    [[nodiscard]] const Handler& handler() const noexcept { return handler_; }
    [[nodiscard]] Handler&& take() noexcept { return std::move(handler_); }

private:
    Handler handler_; // first: its move may throw, and the source still has its waiter
    std::shared_ptr<State> state_;
    waiter_pointer waiter_;
};

/// What a limiter and its waiters share. A waiter is a wait on a timer of its own that never
/// expires, as with a condition variable: so its executor, its slot and the end of its context are
/// those of a timer's wait. One alarm for all says when the first one gets its tokens, and wakes
/// it.
template <class Clock, class Executor>
class limiter_state : public std::enable_shared_from_this<limiter_state<Clock, Executor>> {
    using error_code = boost::system::error_code;

public:
    struct waiter {
        waiter(const Executor& ex, std::int64_t tokens) : timer(ex), n(tokens) {
            timer.expires_at(Clock::time_point::max());
        }
        basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>, Executor> timer;
        const std::int64_t n;
        enum { starts, waits, woken, gone } state = gone;           ///< gone: not in the queue
        error_code outcome = boost::asio::error::operation_aborted; ///< if it is woken
        waiter *before = nullptr, *behind = nullptr;
    };

    limiter_state(const Executor& ex, const rate_limit& r)
        : executor(ex), bucket(r.tokens, saturating_cast<typename Clock::duration>(r.period),
                               r.burst, Clock::now()) {}

    void open() { alarm_.emplace(executor, next_tokens{this->weak_from_this()}); }

    [[nodiscard]] bool try_take(std::int64_t n) {
        const std::lock_guard lock(mutex_);
        return !first_ && bucket.take(n, Clock::now());
    }
    void give_back(std::int64_t n) {
        const std::lock_guard lock(mutex_);
        bucket.give_back(n);
        serve();
    }
    [[nodiscard]] std::int64_t available() {
        const std::lock_guard lock(mutex_);
        return first_ ? 0 : bucket.tokens(Clock::now());
    }
    [[nodiscard]] std::size_t waiting() const {
        const std::lock_guard lock(mutex_);
        return count_;
    }

    /// Takes a place at the end. @return false if the tokens are there after all, and taken.
    /// @throws what the clock throws, with the queue as it was
    [[nodiscard]] bool enqueue(waiter& w) {
        const std::lock_guard lock(mutex_);
        if (!first_) {
            if (bucket.take(w.n, Clock::now()))
                return false;
            // If this is refused, or the alarm ends before the wait has started: see started().
            (void)alarm_->arm_at(bucket.when(w.n));
        }
        w.state = waiter::starts;
        w.before = last_;
        (last_ ? last_->behind : first_) = &w;
        last_ = &w;
        ++count_;
        return true;
    }
    /// Its wait has started.
    void started(waiter& w) {
        const std::lock_guard lock(mutex_);
        if (w.state != waiter::starts)
            return;
        w.state = waiter::waits;
        if (closed_)
            wake(w, boost::asio::error::operation_aborted);
        if (!alarm_->armed())
            serve();
    }
    /// Its handler is called with `ec`, or destroyed. @return what to report
    error_code ended(waiter& w, const error_code& ec, bool called) {
        const std::lock_guard lock(mutex_);
        if (w.state == waiter::gone)
            return ec;
        const bool was_woken = w.state == waiter::woken;
        if (!was_woken)
            unlink(w);
        w.state = waiter::gone;
        const bool expired = called && !ec; // not cancelled since it was woken
        if (was_woken && !w.outcome && !expired)
            bucket.give_back(w.n);
        serve();
        return expired ? w.outcome : ec;
    }

    /// Initiates async_acquire().
    template <class Handler>
    void acquire(std::int64_t n, Handler&& handler) {
        if (try_take(n))
            return post(n, std::forward<Handler>(handler));
        // Not by the allocator of the handler: the slot of the caller may keep it longer.
        const auto w = std::allocate_shared<waiter>(wait_allocator<void>(), executor, n);
        // Before it takes its place: a copy of the handler may throw.
        limiter_handler<limiter_state, std::decay_t<Handler>> wrapped(
            this->shared_from_this(), w, std::forward<Handler>(handler));
        if (!enqueue(*w))
            return post(n, wrapped.take());
        const auto self = this->shared_from_this(); // the handler may destroy the limiter
        w->timer.async_wait(std::move(wrapped));
        started(*w);
    }

    void close() noexcept {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        alarm_->disarm();
        for (waiter* w = first_; w;) {
            waiter& each = *std::exchange(w, w->behind);
            if (each.state == waiter::waits)
                wake(each, boost::asio::error::operation_aborted);
        }
    }

    const Executor executor;
    token_bucket<Clock> bucket;

private:
    template <class Handler>
    void post(std::int64_t n, Handler&& handler) {
        try {
            post_result(executor, std::forward<Handler>(handler), error_code());
        } catch (...) {
            give_back(n);
            throw;
        }
    }

    struct next_tokens {
        /// expire_all() and cancel_all() may have left the shard of a waiter when it starts, and find
        /// the alarm in another one.
        using pawl_always_called = void;
        std::weak_ptr<limiter_state> state;
        void operator()(const error_code&) const {
            if (const auto self = state.lock()) {
                const std::lock_guard lock(self->mutex_);
                self->serve();
            }
        }
    };

    // Under the lock. What is called there is of Pawl, but for the clock.

    /// Wakes those at the head for whom there are tokens, and arms the alarm for the next.
    void serve() noexcept {
        while (first_ && first_->state == waiter::waits && !closed_) {
            waiter& w = *first_;
            if (takes(w))
                wake(w, {});
            else if (arms_for(w))
                return;
            else // beyond options::max_pending
                wake(w, boost::asio::error::no_buffer_space);
        }
        alarm_->disarm(); // a wait that starts is served by started()
    }
    bool takes(const waiter& w) noexcept {
        try {
            return bucket.take(w.n, Clock::now());
        } catch (...) { // the clock; the alarm asks it again
            return false;
        }
    }
    bool arms_for(const waiter& w) noexcept {
        try {
            return alarm_->arm_at(bucket.when(w.n));
        } catch (...) { // the clock. If it goes on, that leaves run(), which reads it, too.
            return timer_access::arm_now(*alarm_);
        }
    }
    void wake(waiter& w, const error_code& outcome) noexcept {
        unlink(w);
        w.state = waiter::woken;
        w.outcome = outcome;
        timer_access::handle(w.timer).rearm_now();
    }
    void unlink(waiter& w) noexcept {
        (w.before ? w.before->behind : first_) = w.behind;
        (w.behind ? w.behind->before : last_) = w.before;
        --count_;
    }

    mutable std::mutex mutex_; // not a spin_mutex: the clock and Asio's reactor may take long
    waiter* first_ = nullptr;
    waiter* last_ = nullptr;
    std::size_t count_ = 0;
    bool closed_ = false;
    std::optional<basic_alarm<next_tokens, Clock, Executor>> alarm_;
};

} // namespace detail

/// A token bucket: a burst at once, then so many tokens per period, first come first served. It
/// limits how often something is done, for all that share it.
///
/// @code
/// pawl::rate_limiter requests(context, {.tokens = 100, .period = 1s, .burst = 10});
/// co_await requests.async_acquire();
/// if (!requests.try_acquire()) ... // answer "too many requests"
/// @endcode
///
/// In any time `t`, it gives at most `burst + t * tokens / period` tokens; exactly: no rounding
/// error adds up. Tokens are not returned: they limit the rate, not how many run at once.
///
/// A waiter for many tokens is served before later waiters for few. So nobody starves, and while
/// somebody waits, try_acquire() fails.
///
/// Destroying a limiter ends its waiters with `operation_aborted`. It may be destroyed in one of
/// their handlers.
///
/// Use pawl::rate_limiter, on the steady clock.
/// @tparam Clock any steady clock, such as pawl::manual_clock for tests. If it throws while waiters
///     are served, they stay, and it is read again at once.
/// @tparam Executor the type of I/O executor.
/// @par Thread safety
/// @e Distinct @e objects: Safe.@n @e Shared @e objects: Safe, except for the destructor: no other
/// call may overlap it. Connections on different strands can share a limiter.
/// @par Cost
/// Each call reads the clock once, under a lock. While somebody waits there is one alarm, otherwise
/// no timer.
template <class Clock, class Executor = boost::asio::any_io_executor>
class basic_rate_limiter {
    static_assert(Clock::is_steady, "pawl: a rate_limiter needs a steady clock");

    using state = detail::limiter_state<Clock, Executor>;

public:
    using clock_type = Clock;       ///< The clock.
    using executor_type = Executor; ///< The type of the executor.

    /// @param ex keeps the time, and completes what has no executor of its own.
    /// @param limit the rate and the burst. The bucket is full at first.
    /// @throws std::invalid_argument unless all three are above 0, and `burst * period` is below
    ///     2^63 ns. std::bad_alloc.
    basic_rate_limiter(const executor_type& ex, const rate_limit& limit)
        : state_(std::make_shared<state>(ex, limit)) {
        state_->open();
    }

    /// As above, with the executor of a context.
    template <detail::execution_context_type ExecutionContext>
    basic_rate_limiter(ExecutionContext& context, const rate_limit& limit)
        : basic_rate_limiter(executor_type(context.get_executor()), limit) {}

    basic_rate_limiter& operator=(basic_rate_limiter&&) = delete;

    /// Ends all waits with `operation_aborted`, through their executors.
    ~basic_rate_limiter() { state_->close(); }

    /// The executor given to the constructor.
    [[nodiscard]] const executor_type& get_executor() const noexcept { return state_->executor; }

    /// Takes `n` tokens if they are there, and nobody waits.
    /// @return whether they were taken.
    /// @throws std::invalid_argument unless `n` is from 1 to the burst.
    [[nodiscard]] bool try_acquire(std::int64_t n = 1) {
        state_->bucket.check(n);
        return state_->try_take(n);
    }

    /// Takes `n` tokens as soon as they are there, after all who waited before.
    ///
    /// @param n from 1 to the burst.
    /// @param token signature `void(error_code)`: success; `operation_aborted` if the wait was
    ///     cancelled, or the limiter was destroyed; `no_buffer_space` beyond options::max_pending;
    ///     or the code of expire_all(). Without success, no tokens were taken. By default a
    ///     deferred operation, which a coroutine can await; the limiter must exist until it is
    ///     started.
    /// @throws std::invalid_argument from this call unless `n` is in range. std::bad_alloc, or
    ///     what the clock throws, from the initiating function, with no token taken.
    /// @par Cancellation
    /// By the associated cancellation slot of the handler, with any type. A wait that is cancelled
    /// before its handler begins gives its tokens and its place back. If the tokens were there at
    /// the start, they are taken at once, and there is nothing to cancel.
    /// @par Executor
    /// The associated executor of the handler, by default that of the limiter. Never within this
    /// call.
    /// @par Complexity
    /// O(1). With tokens, a post. A wait takes one allocation by the associated allocator of the
    /// handler, and one of Pawl's for its place.
    template <class Token = boost::asio::deferred_t>
        requires(!std::is_integral_v<std::decay_t<Token>>)
    auto async_acquire(std::int64_t n, Token&& token = Token()) {
        state_->bucket.check(n);
        return boost::asio::async_initiate<Token, void(boost::system::error_code)>(
            detail::initiation(state_->executor,
                               [s = state_.get(), n]<class Handler>(Handler&& handler) {
                                   s->acquire(n, std::forward<Handler>(handler));
                               }),
            token);
    }

    /// As above, for one token.
    template <class Token = boost::asio::deferred_t>
        requires(!std::is_integral_v<std::decay_t<Token>>)
    auto async_acquire(Token&& token = Token()) {
        return async_acquire(1, std::forward<Token>(token));
    }

    /// The tokens that try_acquire() could take now: none while somebody waits.
    [[nodiscard]] std::int64_t available() const { return state_->available(); }

    /// How many wait.
    [[nodiscard]] std::size_t waiting() const { return state_->waiting(); }

private:
    const std::shared_ptr<state> state_;
};

/// On the steady clock. See basic_rate_limiter.
using rate_limiter = basic_rate_limiter<detail::steady_clock>;

} // namespace pawl

#endif // PAWL_RATE_LIMITER_HPP
