// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::basic_interval_timer: periodic waits on a grid of points in time, without drift.
#ifndef PAWL_BASIC_INTERVAL_TIMER_HPP
#define PAWL_BASIC_INTERVAL_TIMER_HPP

#include <pawl/config.hpp>

#include <pawl/basic_waitable_timer.hpp>

#include <pawl/service/interval_grid.hpp>
#include <pawl/service/latest_now.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associator.hpp>
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

/// The handler of a wait for a tick. The tick is delivered, and the schedule moved on, in the
/// handler's own executor, at the moment when the handler is about to run.
template <class Clock, class Handler>
class interval_handler {
public:
    template <class H>
    interval_handler(interval_ticket<Clock> ticket, H&& handler)
        : ticket_(std::move(ticket)), handler_(std::forward<H>(handler)) {}

    void operator()(const boost::system::error_code& ec) {
        std::uint64_t missed = 0;
        if (ec)
            ticket_.give_up();
        else
            missed = ticket_.use(Clock::now());
        std::move(handler_)(ec, missed);
    }

    /// Its executor, allocator and cancellation slot are those of this one.
    [[nodiscard]] const Handler& inner() const noexcept { return handler_; }

private:
    interval_ticket<Clock> ticket_;
    Handler handler_;
};

} // namespace detail

/// A timer that ticks at `start`, `start + period`, `start + 2 * period`, and so on.
///
/// The ticks are points of a grid: a handler that runs late does not make the next tick late, and
/// nothing adds up. A tick waits for somebody to wait for it; when a tick is delivered more than
/// 5 ms after it was due, pawl::missed_tick_policy says how to go on. All this is as with tokio's
/// `Interval`, whose members these are.
///
/// @code
/// pawl::interval_timer ticks(context, 10s, pawl::missed_tick_policy::skip);
/// for (;;) {
///     const std::uint64_t missed = co_await ticks.async_wait(boost::asio::use_awaitable);
///     report(missed);
/// }
/// @endcode
///
/// Arithmetic on time saturates; a tick that is due at `time_point::max()` never comes.
///
/// A moved-from interval may be destroyed and assigned to.
///
/// @tparam Clock, WaitTraits, Executor as with basic_waitable_timer.
///
/// @par Thread safety
/// @e Distinct @e objects: Safe.@n
/// @e Shared @e objects: Unsafe. Emitting a cancellation signal of a wait counts as a call of a
/// member. The completion of waits by threads that run the context is safe against all members.
///
/// @par Cost
/// A shared block and a small array, allocated when it is made: the schedule, which waits keep alive
/// after the timer. No other allocation than one per wait, unless a tick is waited for while waits
/// for an earlier one have not begun their handlers.
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
    using duration = typename clock_type::duration;     ///< That of the clock.
    using time_point = typename clock_type::time_point; ///< That of the clock.
    using traits_type = WaitTraits; ///< How the clock is waited for, and in which time structure.

    /// An interval whose first tick is due at once, and the others every `period` from now.
    /// @throws std::invalid_argument unless `period` is greater than zero.
    basic_interval_timer(const executor_type& ex, const duration& period,
                         pawl::missed_tick_policy policy = pawl::missed_tick_policy::burst)
        : basic_interval_timer(ex, Clock::now(), period, policy) {}

    /// The same on the executor of an execution context.
    template <class ExecutionContext>
        requires std::is_convertible_v<ExecutionContext&, boost::asio::execution_context&>
    basic_interval_timer(ExecutionContext& context, const duration& period,
                         pawl::missed_tick_policy policy = pawl::missed_tick_policy::burst)
        : basic_interval_timer(executor_type(context.get_executor()), period, policy) {}

    /// An interval whose first tick is due at `start`. If that has passed, so have other ticks.
    /// @throws std::invalid_argument unless `period` is greater than zero.
    basic_interval_timer(const executor_type& ex, const time_point& start, const duration& period,
                         pawl::missed_tick_policy policy = pawl::missed_tick_policy::burst)
        : grid_(std::make_shared<grid_type>(start, period, policy)), timer_(ex, start) {}

    /// The same on the executor of an execution context.
    template <class ExecutionContext>
        requires std::is_convertible_v<ExecutionContext&, boost::asio::execution_context&>
    basic_interval_timer(ExecutionContext& context, const time_point& start, const duration& period,
                         pawl::missed_tick_policy policy = pawl::missed_tick_policy::burst)
        : basic_interval_timer(executor_type(context.get_executor()), start, period, policy) {}

    basic_interval_timer(const basic_interval_timer&) = delete;
    basic_interval_timer& operator=(const basic_interval_timer&) = delete;

    /// Takes over the schedule and the pending waits of `other`.
    /// @par Complexity
    /// O(number of waits on `other`).
    basic_interval_timer(basic_interval_timer&& other) = default;

    /// Cancels the waits of this interval, then takes over the schedule and the waits of `other`,
    /// also across contexts.
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

    /// Cancels the pending waits, as cancel() does. An interval may be destroyed in its own handler,
    /// in any other handler, and after its context.
    ~basic_interval_timer() = default;

    /// The executor of the interval.
    const executor_type& get_executor() noexcept { return timer_.get_executor(); }

    /// Cancels all waits whose handlers have not begun.
    ///
    /// Each of their handlers is queued and told `boost::asio::error::operation_aborted`; none is
    /// invoked here. This includes waits whose tick is due and whose handlers are still queued. No
    /// tick is lost: what was scheduled is still scheduled.
    /// @return the number of waits that were cancelled.
    /// @par Complexity
    /// O(number of waits). Does not allocate.
    std::size_t cancel() {
        std::size_t count = timer_.cancel();
        for (timer_of_tick& e : earlier_)
            count += e.timer.cancel();
        return count;
    }

    /// When the scheduled tick, the first that has not been delivered, is due or has been due.
    [[nodiscard]] time_point next_tick() const { return grid_->scheduled().due; }

    /// The distance of two ticks.
    [[nodiscard]] duration period() const { return grid_->period(); }

    /// Changes the distance of ticks, from the scheduled tick on.
    ///
    /// The scheduled tick, and with it the waits, moves to one new period after the last tick, or to
    /// now if that has passed. A tick that is overdue already is not put off by a shorter period.
    /// The last tick is, with missed_tick_policy::delay, when a late tick was delivered; with `skip`,
    /// the last point of the grid; after reset(), the call of reset(). Where the time of the scheduled
    /// tick was given, as the start or by reset_at(), reset_after() or reset_immediately(), it stays.
    /// @return how many waits were moved.
    /// @throws std::invalid_argument unless `period` is greater than zero, with nothing changed.
    std::size_t set_period(const duration& period) {
        const auto now = Clock::now();
        return move_waits([&] { return grid_->set_period(period, now); });
    }

    /// What is done about ticks that were missed.
    [[nodiscard]] pawl::missed_tick_policy missed_tick_policy() const { return grid_->policy(); }

    /// Changes what is done about ticks that are missed from now on.
    void set_missed_tick_policy(pawl::missed_tick_policy policy) { grid_->set_policy(policy); }

    /// Makes the scheduled tick due one period from now, and moves the pending waits to it, earlier
    /// or later, without completing them. Those after it follow at the distance of the period.
    ///
    /// As with basic_waitable_timer::rearm_at(), a wait that is due, and whose handler has not begun,
    /// is pulled back and waits again. Missed ticks are forgotten. The same holds for the other
    /// resets. All of them change nothing if they throw, as they do on rings (pawl::ring_timer).
    /// @return how many waits were moved.
    /// @par Complexity
    /// O(1). Does not allocate.
    std::size_t reset() {
        const auto now = detail::latest_now<Clock>();
        return move_waits([&] { return grid_->reset(now); });
    }

    /// reset() to a tick that is due now.
    std::size_t reset_immediately() { return reset_at(Clock::now()); }

    /// reset() to a tick that is due `d` from now, saturating.
    std::size_t reset_after(const duration& d) { return reset_at(detail::sum_from_now<Clock>(d)); }

    /// reset() to a tick that is due between `min` and `max` from now, both included, chosen as by
    /// basic_waitable_timer::expires_within(): intervals that are reset to overlapping ranges tend to
    /// tick together, and go on so while their periods agree and no tick is delayed
    /// (missed_tick_policy::delay). next_tick() says when it is due.
    /// @throws std::invalid_argument if `max < min`, with nothing changed.
    /// @pre The context is still there, or somebody has waited.
    std::size_t reset_within(const duration& min, const duration& max) {
        return reset_at(detail::timer_access::handle(timer_).expiry_within(min, max));
    }

    /// reset() to a tick that is due at `t`.
    std::size_t reset_at(const time_point& t) {
        return move_waits([&] { return grid_->reset_at(t); });
    }

    /// Starts a wait for the scheduled tick.
    ///
    /// The handler is invoked exactly once, never from within this function:
    /// @li with no error, once the tick is due; and with the number of whole further ticks that had
    ///     been missed when it was delivered, which is now. 0 means that it was at most 5 ms late, or
    ///     that it was late but the next tick was not due yet. With missed_tick_policy::burst these
    ///     are the ticks that will follow at once, otherwise those that are left out.
    /// @li with `boost::asio::error::operation_aborted` and 0 if the wait was cancelled by cancel(),
    ///     the destruction of the interval, or its cancellation slot. It has consumed no tick.
    ///
    /// A tick is delivered in the executor of the handler, immediately before the handler is invoked;
    /// only then the next one is scheduled. Several waits may be pending: they wait for the same
    /// tick, which counts once, and each is told what had been missed when it came to it.
    ///
    /// expire_all() completes a wait as it completes any other. If that is early, and with success,
    /// the tick that the wait was for is still to come.
    ///
    /// @param token any completion token for `void(boost::system::error_code, std::uint64_t)`.
    /// @throws std::bad_alloc, with the interval as it was.
    /// @par Cancellation
    /// Supports `terminal`, `partial` and `total` through the associated cancellation slot; each
    /// cancels this wait only. The slot may be emitted at any time, also after the wait, the interval
    /// or the context is gone.
    /// @par Complexity
    /// O(1). One allocation by the associated allocator of the handler. Where waits for an earlier tick
    /// have not begun their handlers, O(number of those), and up to two more allocations.
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

    /// Starts the wait when the token asks for it; for a deferred one, for the tick that is
    /// scheduled at that moment.
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

    /// Waits of a tick that has been delivered to others must not be moved to the next one, nor be
    /// cancelled: they keep the timer, and this one begins anew.
    void keep_earlier() {
        earlier_.remove_if([this](const timer_of_tick& e) { return !grid_->awaited(e.tick); });
        earlier_.emplace_front(tick_, std::move(timer_));
    }

    /// Changes the schedule, and moves the waits after it.
    template <class Change>
    std::size_t move_waits(Change change) {
        const auto before = grid_->save();
        const typename grid_type::schedule to = change();
        if (tick_ != to.number)
            return 0; // it is set by the next wait
        try {
            return timer_.rearm_at(to.due);
        } catch (...) { // no ring for that, or a full one
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

/// @cond
template <template <class, class> class Associator, class Clock, class Handler, class Default>
struct boost::asio::associator<Associator, pawl::detail::interval_handler<Clock, Handler>, Default>
    : Associator<Handler, Default> {
    static typename Associator<Handler, Default>::type
    get(const pawl::detail::interval_handler<Clock, Handler>& h) noexcept {
        return Associator<Handler, Default>::get(h.inner());
    }

    static auto get(const pawl::detail::interval_handler<Clock, Handler>& h,
                    const Default& d) noexcept
        -> decltype(Associator<Handler, Default>::get(h.inner(), d)) {
        return Associator<Handler, Default>::get(h.inner(), d);
    }
};
/// @endcond

#endif // PAWL_BASIC_INTERVAL_TIMER_HPP
