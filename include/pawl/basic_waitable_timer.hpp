// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::basic_waitable_timer, a drop-in for boost::asio::basic_waitable_timer on a timing wheel.
#ifndef PAWL_BASIC_WAITABLE_TIMER_HPP
#define PAWL_BASIC_WAITABLE_TIMER_HPP

#include <pawl/config.hpp>

#include <pawl/service/block_thread.hpp>
#include <pawl/service/steady_clock.hpp>
#include <pawl/service/timer_handle.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/system/error_code.hpp>
#include <boost/version.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace pawl {

class manual_clock;

/// A timer with blocking and asynchronous waits.
///
/// It has the members of `boost::asio::basic_waitable_timer`, and their meaning, so that replacing
/// the type in a program compiles and behaves as before. What is better:
///
/// @li rearm_after() and rearm_at() move the deadline of pending waits without completing them.
/// @li A cancel wins until the handler starts: a wait that has expired, and whose handler is queued
///     but has not begun, is still counted by cancel() and told `operation_aborted`.
/// @li Waits with equal deadlines complete in the order in which they were started or last moved.
/// @li Starting, moving and cancelling a wait is O(1), whatever the number of timers.
/// @li A timer that is moved keeps its cancellation slots, and a timer may outlive its context.
///
/// A wait never completes with success before expiry(). It completes at most one precision (1 ms by
/// default, see pawl::options) after it, plus the time that the executor takes.
///
/// @tparam Clock      any type with the requirements of a standard clock.
/// @tparam WaitTraits as in Asio: `to_wait_duration(d)` may shorten the time that is slept at once.
/// @tparam Executor   the type of I/O executor.
///
/// @par Thread safety
/// @e Distinct @e objects: Safe.@n
/// @e Shared @e objects: cancel(), cancel_one() and expiry() may be called from any thread, also while
/// another one uses the timer, but not while it is destroyed, moved or assigned to; all other members by
/// one thread at a time. Emitting a cancellation signal of a wait counts as a call of one of those. The
/// completion of waits by threads that run the context is safe against all members. With
/// options::locking = false nothing is safe.
template <class Clock, class WaitTraits = boost::asio::wait_traits<Clock>,
          class Executor = boost::asio::any_io_executor>
class basic_waitable_timer {
    class initiate_async_wait;

public:
    /// The type of the executor associated with the object.
    using executor_type = Executor;

    /// The same timer on another executor type.
    template <class Executor1>
    struct rebind_executor {
        using other = basic_waitable_timer<Clock, WaitTraits, Executor1>; ///< That timer.
    };

    using clock_type = Clock;                           ///< The clock.
    using duration = typename clock_type::duration;     ///< That of the clock.
    using time_point = typename clock_type::time_point; ///< That of the clock.
    using traits_type = WaitTraits; ///< How the clock is waited for, and in which time structure.

    /// A timer with no expiry set: expiry() is `time_point()`.
    /// @par Complexity
    /// O(1), but for Asio's search for the service, which the first timer makes. With one shard no
    /// lock of Pawl's is taken until the first wait.
    explicit basic_waitable_timer(const executor_type& ex) : handle_(ex), executor_(ex) {}

    /// A timer on the executor of an execution context, with no expiry set.
    template <class ExecutionContext>
        requires std::is_convertible_v<ExecutionContext&, boost::asio::execution_context&>
    explicit basic_waitable_timer(ExecutionContext& context)
        : basic_waitable_timer(executor_type(context.get_executor())) {}

    /// A timer that expires at `expiry_time`.
    basic_waitable_timer(const executor_type& ex, const time_point& expiry_time)
        : basic_waitable_timer(ex) {
        handle_.expires_at(expiry_time);
    }

    /// A timer on an execution context that expires at `expiry_time`.
    template <class ExecutionContext>
        requires std::is_convertible_v<ExecutionContext&, boost::asio::execution_context&>
    explicit basic_waitable_timer(ExecutionContext& context, const time_point& expiry_time)
        : basic_waitable_timer(context) {
        handle_.expires_at(expiry_time);
    }

    /// A timer that expires `expiry_time` from now.
    basic_waitable_timer(const executor_type& ex, const duration& expiry_time)
        : basic_waitable_timer(ex) {
        handle_.expires_after(expiry_time);
    }

    /// A timer on an execution context that expires `expiry_time` from now.
    template <class ExecutionContext>
        requires std::is_convertible_v<ExecutionContext&, boost::asio::execution_context&>
    explicit basic_waitable_timer(ExecutionContext& context, const duration& expiry_time)
        : basic_waitable_timer(context) {
        handle_.expires_after(expiry_time);
    }

    basic_waitable_timer(const basic_waitable_timer&) = delete;
    basic_waitable_timer& operator=(const basic_waitable_timer&) = delete;

    /// Takes over the expiry and the pending waits of `other`, which is left as if newly
    /// constructed.
    /// @par Complexity
    /// O(number of waits on `other`).
    basic_waitable_timer(basic_waitable_timer&& other)
        : handle_(std::move(other.handle_)), executor_(other.executor_) {}

    /// Cancels the waits of this timer, then takes over those of `other`, also across contexts.
    basic_waitable_timer& operator=(basic_waitable_timer&& other) {
        if (this != &other) {
            handle_ = std::move(other.handle_);
            executor_ = other.executor_;
        }
        return *this;
    }

    /// Takes over a timer on another executor type. It stays in its context.
    template <class Executor1>
        requires std::is_convertible_v<Executor1, Executor>
    basic_waitable_timer(basic_waitable_timer<Clock, WaitTraits, Executor1>&& other)
        : handle_(std::move(other.handle_)), executor_(other.executor_) {
        handle_.rebind(executor_);
    }

    /// Takes over a timer on another executor type. It stays in its context.
    template <class Executor1>
        requires std::is_convertible_v<Executor1, Executor>
    basic_waitable_timer& operator=(basic_waitable_timer<Clock, WaitTraits, Executor1>&& other) {
        return *this = basic_waitable_timer(std::move(other));
    }

    /// Cancels the pending waits. Their handlers are told `operation_aborted`, later, through their
    /// executors. Never blocks on a handler. A timer may be destroyed in its own handler, in any
    /// other handler, and after its context.
    ~basic_waitable_timer() = default;

    /// The executor of the timer.
    const executor_type& get_executor() noexcept { return executor_; }

    /// Cancels all waits whose handlers have not begun.
    ///
    /// Each of their handlers is queued and told `boost::asio::error::operation_aborted`; none is
    /// invoked here. This includes waits that have expired already and whose handlers are still
    /// queued. expiry() does not change.
    /// @return the number of waits that were cancelled: so many handlers are told `operation_aborted`
    ///         because of this call, whichever thread made it.
    /// @par Thread safety
    /// May be called from any thread: see the class.
    /// @par Complexity
    /// O(number of waits on this timer). Does not allocate.
    std::size_t cancel() { return handle_.cancel(); }

    /// Cancels the oldest wait whose handler has not begun, as cancel() does.
    /// @return 1, or 0 if there was none.
    std::size_t cancel_one() { return handle_.cancel_one(); }

    /// The expiry that was set last, whether or not it has passed.
    /// @par Thread safety
    /// May be called from any thread if a time point of the clock is no larger than a pointer: see the
    /// class.
    time_point expiry() const { return handle_.expiry(); }

    /// Cancels all waits as cancel() does, then sets the expiry.
    /// @return the number of waits that were cancelled.
    /// @par Complexity
    /// As cancel().
    std::size_t expires_at(const time_point& expiry_time) {
        return handle_.expires_at(expiry_time);
    }

    /// Cancels all waits as cancel() does, then sets the expiry to `expiry_time` from now,
    /// saturating at `time_point::max()`, which means never.
    /// @return the number of waits that were cancelled.
    /// @par Complexity
    /// As cancel().
    std::size_t expires_after(const duration& expiry_time) {
        return handle_.expires_after(expiry_time);
    }

    /// Sets the expiry, and moves the deadline of the pending waits to it, earlier or later,
    /// without completing them.
    ///
    /// A wait that is due, and whose handler has not begun, is pulled back and waits again.
    /// Wherever a timeout is to be postponed, this replaces `expires_at()` and a new
    /// `async_wait()`.
    /// @return how many waits were moved. 0 means that nothing was pending and that only the expiry
    ///         was set.
    /// @throws Nothing but what the clock does, save on a timer in a ring: pawl::ring_timer.
    /// @par Complexity
    /// O(1) for one wait, O(waits of this timer) for several. Does not allocate, save where a ring has
    /// to grow. Moving a deadline later writes the timer and nothing else.
    std::size_t rearm_at(const time_point& expiry_time) { return handle_.rearm_at(expiry_time); }

    /// rearm_at() with an expiry `expiry_time` from now, saturating.
    std::size_t rearm_after(const duration& expiry_time) {
        return handle_.rearm_after(expiry_time);
    }

    /// Cancels all waits as cancel() does, then sets the expiry to a time between `min` and `max`
    /// from now, both included; expiry() says which.
    ///
    /// Of all ticks in that range the one is taken that others are most likely to take as well, so
    /// that several expiries share a wake-up, and that costs the time structure fewest moves. If
    /// there is no whole tick in the range, the expiry is `max`.
    /// @return the number of waits that were cancelled.
    /// @throws std::invalid_argument if `max < min`, with nothing cancelled.
    /// @pre The context is still there, or the timer has waited. The same holds for rearm_within().
    /// @par Complexity
    /// As expires_after().
    std::size_t expires_within(const duration& min, const duration& max) {
        return handle_.expires_within(min, max);
    }

    /// rearm_at() with an expiry between `min` and `max` from now, chosen as by expires_within().
    /// @return how many waits were moved.
    /// @throws std::invalid_argument if `max < min`, with nothing moved.
    std::size_t rearm_within(const duration& min, const duration& max) {
        return handle_.rearm_within(min, max);
    }

#if !defined(BOOST_ASIO_NO_DEPRECATED) && BOOST_VERSION < 108700
    /// (Deprecated, as in Asio before Boost 1.87.) Use the overload without `error_code`.
    std::size_t cancel(boost::system::error_code& ec) {
        ec = {};
        return cancel();
    }

    /// (Deprecated, as in Asio before Boost 1.87.) Use the overload without `error_code`.
    std::size_t cancel_one(boost::system::error_code& ec) {
        ec = {};
        return cancel_one();
    }

    /// (Deprecated, as in Asio before Boost 1.87.) Use expiry().
    time_point expires_at() const { return expiry(); }

    /// (Deprecated, as in Asio before Boost 1.87.) Use the overload without `error_code`.
    std::size_t expires_at(const time_point& expiry_time, boost::system::error_code& ec) {
        ec = {};
        return expires_at(expiry_time);
    }

    /// (Deprecated, as in Asio before Boost 1.87.) Use expiry().
    duration expires_from_now() const {
        return detail::saturating_difference(expiry(), Clock::now());
    }

    /// (Deprecated, as in Asio before Boost 1.87.) Use expires_after().
    std::size_t expires_from_now(const duration& expiry_time) { return expires_after(expiry_time); }

    /// (Deprecated, as in Asio before Boost 1.87.) Use expires_after().
    std::size_t expires_from_now(const duration& expiry_time, boost::system::error_code& ec) {
        ec = {};
        return expires_after(expiry_time);
    }
#endif

    /// Blocks the thread until the expiry has passed. Runs no handlers, and leaves other waits alone.
    /// There is no way to cancel it.
    void wait() {
        if constexpr (std::is_same_v<Clock, manual_clock> || detail::can_stand<Clock>)
            return Clock::wait_until(expiry()); // sleeping does not make it move
        for (;;) {
            const time_point now = Clock::now();
            if (!(now < expiry()))
                return;
            detail::block_thread(
                WaitTraits::to_wait_duration(detail::saturating_difference(expiry(), now)));
        }
    }

    /// Blocks until the expiry has passed. `ec` is always cleared.
    void wait(boost::system::error_code& ec) {
        ec = {};
        wait();
    }

    /// Starts an asynchronous wait.
    ///
    /// The handler is invoked exactly once, never from within this function:
    /// @li with no error, once the expiry has passed;
    /// @li with `boost::asio::error::operation_aborted` if the wait was cancelled by cancel(),
    ///     cancel_one(), a change of the expiry by expires_at(), expires_after() or
    ///     expires_within(), the destruction of the timer, or its cancellation slot;
    /// @li with what was given to pawl::expire_all(), if that came before the expiry.
    ///
    /// When the context is destroyed first, the handler is destroyed uncalled (see
    /// shutdown_policy). Any number of waits may be pending on one timer.
    ///
    /// @param token any completion token for `void(boost::system::error_code)`.
    /// @throws std::bad_alloc, with the timer as it was.
    /// @par Cancellation
    /// Supports `terminal`, `partial` and `total` through the associated cancellation slot; each
    /// cancels this wait only. The slot may be emitted at any time, also after the wait, the timer
    /// or the context is gone.
    /// @par Complexity
    /// O(1). One allocation by the associated allocator of the handler.
    template <class WaitToken = typename boost::asio::default_completion_token<executor_type>::type>
    auto async_wait(
        WaitToken&& token = typename boost::asio::default_completion_token<executor_type>::type())
        -> decltype(boost::asio::async_initiate<WaitToken, void(boost::system::error_code)>(
            std::declval<initiate_async_wait>(), token)) {
        return boost::asio::async_initiate<WaitToken, void(boost::system::error_code)>(
            initiate_async_wait(*this), token);
    }

private:
    template <class, class, class>
    friend class basic_waitable_timer;
    friend struct detail::timer_access;

    /// Starts the wait when the token asks for it; for a deferred one, with the expiry of that
    /// moment.
    class initiate_async_wait {
    public:
        using executor_type = Executor;

        explicit initiate_async_wait(basic_waitable_timer& self) noexcept : self_(&self) {}

        const executor_type& get_executor() const noexcept { return self_->executor_; }

        template <class WaitHandler>
        void operator()(WaitHandler&& handler) const {
            self_->handle_.async_wait(std::forward<WaitHandler>(handler), self_->executor_);
        }

    private:
        basic_waitable_timer* self_;
    };

    detail::timer_handle<Clock, WaitTraits> handle_;
    executor_type executor_;
};

} // namespace pawl

#endif // PAWL_BASIC_WAITABLE_TIMER_HPP
