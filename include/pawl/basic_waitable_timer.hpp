// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::basic_waitable_timer: a drop-in replacement for boost::asio::basic_waitable_timer, on a
/// timing wheel.
#ifndef PAWL_BASIC_WAITABLE_TIMER_HPP
#define PAWL_BASIC_WAITABLE_TIMER_HPP

#include <pawl/config.hpp>
#include <pawl/timer_service.hpp> // its users set options

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/service/native_executor.hpp>
#include <pawl/detail/service/spin_mutex.hpp>
#include <pawl/detail/service/timer_handle.hpp>

#include <boost/asio/any_io_executor.hpp>
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
/// It has the members of `boost::asio::basic_waitable_timer`, with the same meaning: a program that
/// replaces the type compiles and behaves as before. Improvements:
///
/// @li rearm_after() and rearm_at() move the deadline of pending waits without completing them.
/// @li A cancel wins until the handler starts: a wait that has expired and whose handler has not
///     begun is still counted by cancel() and reports `operation_aborted`.
/// @li Waits with equal deadlines complete in the order in which they were started or last moved.
/// @li Starting, moving and cancelling a wait is O(1) in the number of timers.
/// @li A moved timer keeps its cancellation slots, and a timer may outlive its context.
///
/// A wait never completes with success before expiry(). It completes at most one precision (1 ms by
/// default, see pawl::options) after it, plus the time that the executor takes.
///
/// @tparam Clock      any type with the requirements of a standard clock.
/// @tparam WaitTraits as in Asio: `to_wait_duration(d)` may shorten a single sleep. Must not throw.
/// @tparam Executor   the type of I/O executor.
///
/// @par Thread safety
/// @e Distinct @e objects: Safe.@n @e Shared @e objects: cancel(), cancel_one() and expiry() may be
/// called from any thread, also while another thread uses the timer, but not during its
/// destruction, move or assignment. All other members need one thread at a time; emitting a
/// cancellation signal of a wait counts as one of them. Completions by threads that run the context
/// are safe against all members. With options::locking = false nothing is safe.
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
    using duration = typename clock_type::duration;     ///< Duration of the clock.
    using time_point = typename clock_type::time_point; ///< Time point of the clock.
    using traits_type = WaitTraits; ///< How waits use the clock, and the time structure.

    /// Makes a timer without an expiry: expiry() is `time_point()`.
    /// @par Complexity
    /// O(1), except for Asio's search for the service; the first timer of a context makes the
    /// service. With one shard, takes no lock of Pawl until the first wait.
    explicit basic_waitable_timer(const executor_type& ex) : handle_(ex), executor_(ex) {}

    /// As above, with the executor of an execution context.
    template <detail::execution_context_type ExecutionContext>
    explicit basic_waitable_timer(ExecutionContext& context)
        : basic_waitable_timer(executor_type(context.get_executor())) {}

    /// Makes a timer that expires at `expiry_time`.
    basic_waitable_timer(const executor_type& ex, const time_point& expiry_time)
        : basic_waitable_timer(ex) {
        handle_.expires_at(expiry_time);
    }

    /// As above, with the executor of an execution context.
    template <detail::execution_context_type ExecutionContext>
    explicit basic_waitable_timer(ExecutionContext& context, const time_point& expiry_time)
        : basic_waitable_timer(context) {
        handle_.expires_at(expiry_time);
    }

    /// Makes a timer that expires `expiry_time` from now.
    basic_waitable_timer(const executor_type& ex, const detail::saturated<duration>& expiry_time)
        : basic_waitable_timer(ex) {
        handle_.expires_after(expiry_time);
    }

    /// As above, with the executor of an execution context.
    template <detail::execution_context_type ExecutionContext>
    explicit basic_waitable_timer(ExecutionContext& context,
                                  const detail::saturated<duration>& expiry_time)
        : basic_waitable_timer(context) {
        handle_.expires_after(expiry_time);
    }

    /// @cond
    template <class Context, class T>
        requires(std::is_arithmetic_v<T> && !std::is_convertible_v<T, duration>)
    basic_waitable_timer(Context&& context, T) : basic_waitable_timer(context) {
        static_assert(!std::is_arithmetic_v<T>,
                      "pawl: an expiry is a duration with a unit, such as 10s, or a point in time");
    }
    /// @endcond

    basic_waitable_timer(const basic_waitable_timer&) = delete;
    basic_waitable_timer& operator=(const basic_waitable_timer&) = delete;

    /// Takes over the expiry and the pending waits of `other`, which is then as if newly
    /// constructed.
    /// @par Complexity
    /// O(number of waits on `other`).
    basic_waitable_timer(basic_waitable_timer&& other)
        : handle_(std::move(other.handle_)), executor_(other.executor_) {}

    /// Cancels the waits of this timer, then takes over those of `other`, also from another
    /// context.
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

    /// Cancels the pending waits. Their handlers receive `operation_aborted` later, through their
    /// executors. Never blocks on a handler. A timer may be destroyed in any handler, including its
    /// own, and after its context.
    ~basic_waitable_timer() = default;

    /// The executor of the timer.
    const executor_type& get_executor() noexcept { return executor_; }

    /// Cancels all waits whose handlers have not begun.
    ///
    /// Their handlers are queued with `boost::asio::error::operation_aborted`; none is invoked
    /// here. This includes waits that have expired and whose handlers are still queued. expiry()
    /// does not change.
    /// @return the number of waits that were cancelled. Exactly that many handlers receive
    ///     `operation_aborted` because of this call.
    /// @par Thread safety
    /// May be called from any thread: see the class.
    /// @par Complexity
    /// O(number of waits on this timer). Does not allocate.
    std::size_t cancel() { return handle_.cancel(); }

    /// As cancel(), for the oldest wait whose handler has not begun.
    /// @return 1, or 0 if there was none.
    std::size_t cancel_one() { return handle_.cancel_one(); }

    /// The expiry that was set last, whether or not it has passed.
    /// @par Thread safety
    /// May be called from any thread, if a time point of the clock is no larger than a pointer: see
    /// the class.
    time_point expiry() const { return handle_.expiry(); }

    /// Cancels all waits, as cancel() does, then sets the expiry.
    /// @return the number of waits that were cancelled.
    /// @par Complexity
    /// As cancel().
    std::size_t expires_at(const time_point& expiry_time) {
        return handle_.expires_at(expiry_time);
    }

    /// Cancels all waits, as cancel() does, then sets the expiry to `expiry_time` from now.
    /// Saturates at `time_point::max()`, which means never.
    /// @param expiry_time any duration. What the clock's own cannot hold saturates; fractions are
    ///     rounded up. The same holds for the constructors and for the other members.
    /// @return the number of waits that were cancelled.
    /// @throws std::invalid_argument if it is not a number, with nothing cancelled.
    /// @par Complexity
    /// As cancel().
    std::size_t expires_after(const detail::saturated<duration>& expiry_time) {
        return handle_.expires_after(expiry_time);
    }

    /// Sets the expiry, and moves the deadline of the pending waits to it, earlier or later,
    /// without completing them.
    ///
    /// A due wait whose handler has not begun waits again. To postpone a timeout, use this instead
    /// of `expires_at()` and a new `async_wait()`.
    /// @return the number of waits that were moved. 0 means that nothing was pending: only the
    ///     expiry was set.
    /// @throws only what the clock throws; see pawl::ring_timer for a timer in a ring.
    /// @par Complexity
    /// O(1) for one wait, O(waits of this timer) for several. Does not allocate, unless a ring has
    /// to grow. Moving a deadline later only writes to the timer.
    std::size_t rearm_at(const time_point& expiry_time) { return handle_.rearm_at(expiry_time); }

    /// As rearm_at(), with an expiry `expiry_time` from now, saturating.
    std::size_t rearm_after(const detail::saturated<duration>& expiry_time) {
        return handle_.rearm_after(expiry_time);
    }

    /// Cancels all waits, as cancel() does, then sets the expiry to a time between `min` and `max`
    /// from now, both included. expiry() returns the choice.
    ///
    /// It chooses the tick in that range that other timers are most likely to choose as well, so
    /// that expiries share wake-ups. This tick also needs the fewest moves in the time structure.
    /// If the range contains no whole tick, the expiry is `max`.
    /// @return the number of waits that were cancelled.
    /// @throws std::invalid_argument if `max < min`, with nothing cancelled.
    /// @pre The context exists, or the timer has waited before. The same holds for rearm_within().
    /// @par Complexity
    /// As expires_after().
    std::size_t expires_within(const detail::saturated<duration>& min,
                               const detail::saturated<duration>& max) {
        return handle_.expires_within(min, max);
    }

    /// As rearm_at(), with an expiry between `min` and `max` from now, chosen as by
    /// expires_within().
    /// @return the number of waits that were moved.
    /// @throws std::invalid_argument if `max < min`, with nothing moved.
    std::size_t rearm_within(const detail::saturated<duration>& min,
                             const detail::saturated<duration>& max) {
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
    std::size_t expires_from_now(const detail::saturated<duration>& expiry_time) {
        return expires_after(expiry_time);
    }

    /// (Deprecated, as in Asio before Boost 1.87.) Use expires_after().
    std::size_t expires_from_now(const detail::saturated<duration>& expiry_time,
                                 boost::system::error_code& ec) {
        ec = {};
        return expires_after(expiry_time);
    }
#endif

    /// Blocks the thread until the expiry has passed. Runs no handlers and does not affect other
    /// waits. Cannot be cancelled.
    void wait() {
        if constexpr (std::is_same_v<typename detail::told_clock<Clock>::type, manual_clock> ||
                      detail::can_stand<Clock>)
            return Clock::wait_until(expiry()); // sleeping does not move this clock
        for (;;) {
            const time_point now = Clock::now();
            if (!(now < expiry()))
                return;
            detail::block_thread(
                WaitTraits::to_wait_duration(detail::saturating_difference(expiry(), now)));
        }
    }

    /// As wait(). `ec` is always cleared.
    void wait(boost::system::error_code& ec) {
        ec = {};
        wait();
    }

    /// Starts an asynchronous wait.
    ///
    /// The handler is invoked exactly once, never from within this function:
    /// @li with no error, once the expiry has passed;
    /// @li with `boost::asio::error::operation_aborted` if the wait was cancelled by cancel(),
    ///     cancel_one(), a new expiry from expires_at(), expires_after() or expires_within(), the
    ///     destruction of the timer, or its cancellation slot;
    /// @li with the error given to pawl::expire_all(), if that came before the expiry;
    /// @li with `boost::asio::error::no_buffer_space` if there are options::max_pending waits.
    ///
    /// If the context is destroyed first, the handler is destroyed without being invoked (see
    /// shutdown_policy). Any number of waits may be pending on one timer.
    ///
    /// @param token any completion token for `void(boost::system::error_code)`.
    /// @throws std::bad_alloc, with the timer unchanged.
    /// @par Cancellation
    /// Supports `terminal`, `partial` and `total` through the associated cancellation slot; each
    /// cancels this wait only. The signal may be emitted at any time, also after the end of the
    /// wait, the timer or the context.
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

    /// Starts the wait when the token asks for it. A deferred wait uses the expiry at that moment.
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
