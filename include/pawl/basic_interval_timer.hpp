// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::basic_interval_timer: periodic ticks on a grid of time points, without drift.
#ifndef PAWL_BASIC_INTERVAL_TIMER_HPP
#define PAWL_BASIC_INTERVAL_TIMER_HPP

#include <pawl/config.hpp>

#include <pawl/basic_waitable_timer.hpp>

#include <pawl/detail/interval/interval_grid.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/service/native_executor.hpp>
#include <pawl/detail/time/durations.hpp>

#include <pawl/detail/wait/wait_handler.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <memory>
#include <type_traits>
#include <utility>

namespace pawl {

namespace detail {

/// The handler of a wait for a tick. Delivers the tick and advances the schedule, in the handler's
/// own executor, when the handler is about to run.
template <class Clock, class Handler>
class interval_handler {
public:
    using pawl_wrapped_handler = Handler;

    template <class H>
    interval_handler(interval_ticket<Clock> ticket, H&& handler)
        : ticket_(std::move(ticket)), handler_(std::forward<H>(handler)) {}

    void operator()(const boost::system::error_code& ec) {
        std::uint64_t missed = 0;
        if (ec)
            ticket_.give_up();
        else
            missed = ticket_.use(see_clock<Clock>());
        std::move(handler_)(ec, missed);
    }

    /// The handler whose executor, allocator and cancellation slot this one has.
    [[nodiscard]] const Handler& handler() const noexcept { return handler_; }

private:
    interval_ticket<Clock> ticket_;
    Handler handler_;
};

} // namespace detail

/// A timer that ticks at `start`, `start + period`, `start + 2 * period`, and so on.
///
/// Ticks are points of a grid: a late handler does not delay the next tick, and errors do not
/// accumulate. A tick stays undelivered until a wait takes it. If it is delivered more than 5 ms
/// late, pawl::missed_tick_policy selects how to continue. Behaviour and members are those of
/// tokio's `Interval`.
///
/// @code
/// pawl::interval_timer ticks(context, 10s, pawl::missed_tick_policy::skip);
/// for (;;) {
///     const std::uint64_t missed = co_await ticks.async_wait(boost::asio::use_awaitable);
///     report(missed);
/// }
/// @endcode
///
/// Ticks are points of the clock. If it is set ahead, the ticks that it leaves out are missed, and
/// do not follow under any policy. If it is set back, the scheduled tick stays where it is; reset()
/// moves it.
///
/// Arithmetic on time saturates. A tick that is due at `time_point::max()` never comes.
///
/// A moved-from interval may be destroyed and assigned to.
///
/// @tparam Clock, WaitTraits, Executor as with basic_waitable_timer. If the clock throws as a tick
///     is about to be delivered, that leaves `run()`, and the handler is destroyed.
///
/// @par Thread safety
/// @e Distinct @e objects: Safe.@n @e Shared @e objects: Unsafe. Emitting a cancellation signal of
/// a wait counts as a call of a member. Completions by threads that run the context are safe
/// against all members.
///
/// @par Cost
/// The constructor allocates a shared block and a small array for the schedule, which pending waits
/// keep alive. After that, one allocation per wait. More are needed only if a wait starts while
/// waits for an earlier tick have not begun their handlers.
template <class Clock, class WaitTraits = boost::asio::wait_traits<Clock>,
          class Executor = boost::asio::any_io_executor>
class basic_interval_timer {
    class initiate_async_wait;
    using timer_type = basic_waitable_timer<Clock, WaitTraits, Executor>;
    using grid_type = detail::interval_grid<Clock>;

public:
    /// The type of the executor associated with the object.
    using executor_type = Executor;

    /// The same timer on another executor type.
    template <class Executor1>
    struct rebind_executor {
        using other = basic_interval_timer<Clock, WaitTraits, Executor1>; ///< That timer.
    };

    using clock_type = Clock;                           ///< The clock.
    using duration = typename clock_type::duration;     ///< Duration of the clock.
    using time_point = typename clock_type::time_point; ///< Time point of the clock.
    using traits_type = WaitTraits; ///< How waits use the clock, and the time structure.

    /// Makes an interval whose first tick is due now, and the others every `period` from now.
    /// @throws std::invalid_argument unless `period` is greater than zero.
    basic_interval_timer(const executor_type& ex, const detail::saturated<duration>& period,
                         pawl::missed_tick_policy policy = pawl::missed_tick_policy::burst)
        : basic_interval_timer(ex, Clock::now(), period, policy) {}

    /// As above, with the executor of an execution context.
    template <detail::execution_context_type ExecutionContext>
    basic_interval_timer(ExecutionContext& context, const detail::saturated<duration>& period,
                         pawl::missed_tick_policy policy = pawl::missed_tick_policy::burst)
        : basic_interval_timer(executor_type(context.get_executor()), period, policy) {}

    /// Makes an interval whose first tick is due at `start`. If that has passed, further ticks may
    /// have been missed.
    /// @throws std::invalid_argument unless `period` is greater than zero.
    basic_interval_timer(const executor_type& ex, const time_point& start,
                         const detail::saturated<duration>& period,
                         pawl::missed_tick_policy policy = pawl::missed_tick_policy::burst)
        : grid_(std::make_shared<grid_type>(start, period, policy, detail::see_clock<Clock>())),
          timer_(ex, start) {}

    /// As above, with the executor of an execution context.
    template <detail::execution_context_type ExecutionContext>
    basic_interval_timer(ExecutionContext& context, const time_point& start,
                         const detail::saturated<duration>& period,
                         pawl::missed_tick_policy policy = pawl::missed_tick_policy::burst)
        : basic_interval_timer(executor_type(context.get_executor()), start, period, policy) {}

    /// @cond
    template <class Context, class... Args>
        requires(std::is_arithmetic_v<Args> || ...)
    basic_interval_timer(Context&&, const Args&...) : basic_interval_timer(refused()) {
        static_assert(!(std::is_arithmetic_v<Args> || ...),
                      "pawl: a period is a duration with a unit, such as 10s");
    }
    /// @endcond

    basic_interval_timer(const basic_interval_timer&) = delete;
    basic_interval_timer& operator=(const basic_interval_timer&) = delete;

    /// Takes over the schedule and the pending waits of `other`.
    /// @par Complexity
    /// O(number of waits on `other`).
    basic_interval_timer(basic_interval_timer&& other) = default;

    /// Cancels the waits of this interval, then takes over the schedule and the waits of `other`,
    /// also from another context.
    basic_interval_timer& operator=(basic_interval_timer&& other) {
        if (this != &other) {
            grid_ = std::move(other.grid_);
            timer_ = std::move(other.timer_);
            tick_ = other.tick_;
            earlier_ = std::move(other.earlier_);
        }
        return *this;
    }

    /// Takes over an interval on another executor type. It stays in its context.
    /// @throws std::bad_alloc if waits for earlier ticks are pending; then all waits are cancelled.
    template <class Executor1>
        requires std::is_convertible_v<Executor1, Executor>
    basic_interval_timer(basic_interval_timer<Clock, WaitTraits, Executor1>&& other)
        : grid_(std::move(other.grid_)), timer_(std::move(other.timer_)), tick_(other.tick_) {
        for (auto& e : other.earlier_)
            earlier_.emplace_front(e.tick, std::move(e.timer));
    }

    /// Takes over an interval on another executor type. It stays in its context.
    template <class Executor1>
        requires std::is_convertible_v<Executor1, Executor>
    basic_interval_timer& operator=(basic_interval_timer<Clock, WaitTraits, Executor1>&& other) {
        return *this = basic_interval_timer(std::move(other));
    }

    /// Cancels the pending waits, as cancel() does. An interval may be destroyed in any handler,
    /// including its own, and after its context.
    ~basic_interval_timer() = default;

    /// The executor of the interval.
    const executor_type& get_executor() noexcept { return timer_.get_executor(); }

    /// Cancels all waits whose handlers have not begun.
    ///
    /// Their handlers are queued with `boost::asio::error::operation_aborted`; none is invoked
    /// here. This includes waits whose tick is due and whose handlers are still queued. No tick is
    /// lost: the scheduled tick stays scheduled.
    /// @return the number of waits that were cancelled.
    /// @par Complexity
    /// O(number of waits). Does not allocate.
    std::size_t cancel() {
        std::size_t count = timer_.cancel();
        for (timer_of_tick& e : earlier_)
            count += e.timer.cancel();
        return count;
    }

    /// The due time of the scheduled tick, which is the first undelivered one. It may be in the
    /// past.
    [[nodiscard]] time_point next_tick() const { return grid_->scheduled().due; }

    /// The distance between ticks.
    [[nodiscard]] duration period() const { return grid_->period(); }

    /// Changes the distance between ticks, beginning with the scheduled tick.
    ///
    /// The scheduled tick moves, with its waits, to one new period after the last tick, or to now
    /// if that has passed. An overdue tick stays overdue. The last tick is: the last point of the
    /// grid with `skip`; the late delivery with missed_tick_policy::delay; the call of reset()
    /// after a reset. If the time of the scheduled tick was set explicitly, by the constructor,
    /// reset_at(), reset_after() or reset_immediately(), it stays.
    /// @return the number of waits that were moved.
    /// @throws std::invalid_argument unless `period` is greater than zero, with nothing changed.
    std::size_t set_period(const detail::saturated<duration>& period) {
        const auto now = Clock::now();
        return move_waits([&] { return grid_->set_period(period, now); });
    }

    /// What happens after missed ticks.
    [[nodiscard]] pawl::missed_tick_policy missed_tick_policy() const { return grid_->policy(); }

    /// Sets what happens after ticks that are missed from now on.
    void set_missed_tick_policy(pawl::missed_tick_policy policy) { grid_->set_policy(policy); }

    /// Moves the scheduled tick to one period from now, earlier or later, and the pending waits
    /// with it, without completing them. Later ticks follow at the distance of the period.
    ///
    /// As with basic_waitable_timer::rearm_at(), a due wait whose handler has not begun waits
    /// again. Missed ticks are forgotten. The same holds for the other resets. A reset on a
    /// ring (pawl::ring_timer) may throw; it then changes nothing.
    /// @return the number of waits that were moved.
    /// @par Complexity
    /// O(1). Does not allocate.
    std::size_t reset() {
        const auto now = detail::latest_now<Clock>();
        return move_waits([&] { return grid_->reset(now); });
    }

    /// reset(), with the tick due now.
    std::size_t reset_immediately() { return reset_at(Clock::now()); }

    /// reset(), with the tick due `d` from now, saturating.
    std::size_t reset_after(const detail::saturated<duration>& d) {
        return reset_at(detail::sum_from_now<Clock>(d));
    }

    /// reset(), with the tick due between `min` and `max` from now, both included, chosen as by
    /// basic_waitable_timer::expires_within(). Intervals with overlapping ranges tend to tick
    /// together, and continue to do so while their periods agree and missed_tick_policy::delay
    /// delays no tick. next_tick() returns the choice.
    /// @throws std::invalid_argument if `max < min`, with nothing changed.
    /// @pre The context exists, or a wait was started before.
    std::size_t reset_within(const detail::saturated<duration>& min,
                             const detail::saturated<duration>& max) {
        return reset_at(detail::timer_access::handle(timer_).expiry_within(min, max));
    }

    /// reset(), with the tick due at `t`.
    std::size_t reset_at(const time_point& t) {
        return move_waits([&] { return grid_->reset_at(t); });
    }

    /// Starts a wait for the scheduled tick.
    ///
    /// The handler is invoked exactly once, never from within this function:
    /// @li with no error, once the tick is due, and with the number of further whole ticks missed
    ///     up to its delivery. 0 means that the tick was at most 5 ms late, or late but before the
    ///     next tick was due. With missed_tick_policy::burst those ticks follow at once; otherwise,
    ///     and if the clock was set ahead, they are skipped.
    /// @li with `boost::asio::error::operation_aborted` and 0 if the wait was cancelled by
    ///     cancel(), the destruction of the interval, or its cancellation slot. No tick is
    ///     consumed.
    ///
    /// A tick is delivered in the executor of the handler, immediately before the handler is
    /// invoked. Only then is the next tick scheduled. Several pending waits wait for the same tick,
    /// which counts once. Each handler receives the number of ticks missed until its own turn.
    ///
    /// expire_all() completes a wait as for any timer. If it does so early and with success, the
    /// tick of that wait is still to come.
    ///
    /// @param token any completion token for `void(boost::system::error_code, std::uint64_t)`.
    /// @throws std::bad_alloc, with the interval unchanged.
    /// @par Cancellation
    /// Supports `terminal`, `partial` and `total` through the associated cancellation slot; each
    /// cancels this wait only. The signal may be emitted at any time, also after the end of the
    /// wait, the interval or the context.
    /// @par Complexity
    /// O(1). One allocation by the associated allocator of the handler. If n waits for an earlier
    /// tick have not begun their handlers: O(n), and up to two more allocations.
    template <class TickToken = typename boost::asio::default_completion_token<executor_type>::type>
    auto async_wait(
        TickToken&& token = typename boost::asio::default_completion_token<executor_type>::type())
        -> decltype(boost::asio::async_initiate<TickToken,
                                                void(boost::system::error_code, std::uint64_t)>(
            std::declval<initiate_async_wait>(), token)) {
        return boost::asio::async_initiate<TickToken,
                                           void(boost::system::error_code, std::uint64_t)>(
            initiate_async_wait(*this), token);
    }

private:
    template <class, class, class>
    friend class basic_interval_timer;

    /// Starts the wait when the token asks for it. A deferred wait is for the tick that is
    /// scheduled then.
    class initiate_async_wait {
    public:
        using executor_type = Executor;

        explicit initiate_async_wait(basic_interval_timer& self) noexcept : self_(&self) {}

        const executor_type& get_executor() const noexcept { return self_->get_executor(); }

        template <class TickHandler>
        void operator()(TickHandler&& handler) const {
            self_->start(std::forward<TickHandler>(handler));
        }

    private:
        basic_interval_timer* self_;
    };

    /// The waits of one tick share a timer.
    struct timer_of_tick {
        timer_of_tick(std::uint64_t n, timer_type&& t) : tick(n), timer(std::move(t)) {}

        std::uint64_t tick;
        timer_type timer;
    };

    static basic_interval_timer refused();

    template <class Handler>
    void start(Handler&& handler) {
        detail::interval_ticket<Clock> ticket(grid_);
        const auto [number, due] = ticket.tick();
        if (tick_ != number) {
            if (grid_->awaited(tick_))
                keep_earlier();
            timer_.expires_at(due);
            tick_ = number;
        }
        timer_.async_wait(detail::interval_handler<Clock, std::decay_t<Handler>>(
            std::move(ticket), std::forward<Handler>(handler)));
    }

    /// Waits for a tick that was already delivered to others must not be moved to the next tick,
    /// nor be cancelled. They keep the old timer; this interval gets a new one.
    void keep_earlier() {
        earlier_.remove_if([this](const timer_of_tick& e) { return !grid_->awaited(e.tick); });
        earlier_.emplace_front(tick_, std::move(timer_));
    }

    /// Changes the schedule, then moves the waits to it.
    template <class Change>
    std::size_t move_waits(Change change) {
        const auto before = grid_->save();
        const typename grid_type::schedule to = change();
        if (tick_ != to.number)
            return 0; // the next wait sets the timer
        try {
            return timer_.rearm_at(to.due);
        } catch (...) { // no ring for that delay, or a full ring
            grid_->restore(before);
            throw;
        }
    }

    std::shared_ptr<grid_type> grid_;
    timer_type timer_;
    std::uint64_t tick_ = 0; ///< the tick that timer_ is set to
    std::forward_list<timer_of_tick> earlier_;
};

} // namespace pawl

#endif // PAWL_BASIC_INTERVAL_TIMER_HPP
