// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::pressure: timeouts of a context that shrink under it. pawl::scaled_timer,
/// pawl::scaled_alarm: what waits that way. pawl::lateness_pressure: a gauge.
#ifndef PAWL_PRESSURE_HPP
#define PAWL_PRESSURE_HPP

#include <pawl/alarm.hpp>
#include <pawl/basic_waitable_timer.hpp>
#include <pawl/on_backend.hpp>
#include <pawl/scaled.hpp>

#include <pawl/detail/limit/limit_timer.hpp>
#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/service/native_executor.hpp>
#include <pawl/detail/service/service_cache.hpp>
#include <pawl/detail/service/timer_service.hpp>
#include <pawl/detail/time/scaled_wheel.hpp>
#include <pawl/detail/wait/timer_core.hpp>

#include <pawl/time/hierarchical_wheel.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace pawl {

/// The clock of scaled timers, alarms, limits and streams. It tells the time of `Clock`. What
/// waits on it waits by the pressure of its context.
///
/// On this clock, `expires_within(min, max)`, `rearm_within()` and `arm_within()` set a wait that
/// takes `max` at pressure 0, `min` at pressure 1, and between them in proportion. expiry() is the
/// earliest time, `min` from the call, and nothing completes before it. All other expiries are as
/// on `Clock`.
///
/// It has its own service, so plain timers do not pay for it. A scaled one has 24 bytes more.
/// Statistics and events show the earliest time as the due time of a wait; after it, a time that may
/// be later than the latest one. Blocking `wait()` ends at expiry().
/// @tparam Clock the steady clock, or pawl::manual_clock in tests
template <class Clock = detail::steady_clock>
struct scaled_clock : Clock {
    static_assert(Clock::is_steady && (std::is_same_v<Clock, detail::steady_clock> ||
                                       std::is_same_v<Clock, typename Clock::time_point::clock>),
                  "pawl: a scaled duration needs the steady clock, or manual_clock in tests; "
                  "not coarse_timeout");
    static constexpr const char* label = "scaled_clock"; ///< In statistics.
};

} // namespace pawl

#ifndef PAWL_DETAIL_DOXYGEN
/// A change of the pressure wakes who sleeps.
template <class Clock>
struct boost::asio::wait_traits<pawl::scaled_clock<Clock>> : boost::asio::wait_traits<Clock> {};
#endif

namespace pawl {

/// A timer whose waits shrink under pressure. See pawl::pressure.
using scaled_timer = basic_waitable_timer<scaled_clock<>>;

/// An alarm whose deadline shrinks under pressure. See pawl::pressure, and basic_alarm.
template <class Function, class Executor = boost::asio::any_io_executor>
class scaled_alarm : public basic_alarm<Function, scaled_clock<>, Executor> {
public:
    using basic_alarm<Function, scaled_clock<>, Executor>::basic_alarm;
};

/// @cond
template <class Where, class Function>
scaled_alarm(Where&&, Function) -> scaled_alarm<Function, detail::deduced_executor<Where>>;
/// @endcond

namespace detail {

template <class Clock>
inline constexpr bool tells_steady_time<scaled_clock<Clock>> = tells_steady_time<Clock>;
template <class Clock>
struct told_clock<scaled_clock<Clock>> {
    using type = Clock;
};

struct scaled_core : timer_core, time::detail::scaled_fields {
    /// What the timer's thread has set. The shard knows only what is filed.
    std::chrono::nanoseconds wider{};
};

template <class Clock>
struct backend_choice<boost::asio::wait_traits<scaled_clock<Clock>>> {
    using backend = time::detail::scaled_wheel<scaled_core>;
    using traits = boost::asio::wait_traits<scaled_clock<Clock>>;
};

/// A limit that the pressure chooses.
/// @tparam Clock may be a scaled one.
template <class Clock>
struct limit_within {
    using clock = scaled_clock<typename told_clock<Clock>::type>;

    typename Clock::duration min, max;

    void check(const auto&) const noexcept {}
    void set(auto& timer) const {
        static_assert(std::decay_t<decltype(timer)>::on_scale,
                      "pawl: a scaled limit on a timer of yours needs a pawl::scaled_timer");
        timer.expires_within(min, max);
    }
};

} // namespace detail

/// The pressure of a context: how short it is of something, from 0 to 1. Timeouts that are scaled
/// take their longest time at 0, their least at 1, and between them in proportion. So a server
/// whose descriptors or memory run short closes idle connections sooner, and keeps those in use.
///
/// @code
/// pawl::pressure pressure(context);
/// pawl::scaled_alarm idle(context, close_connection);
/// idle.arm_within(6s, 60s);                                    // again for each read
/// co_await async_read(..., pawl::timeout(pawl::scaled(1s, 10s)));
/// ... pressure.set(std::clamp(double(open) / room, 0., 1.));
/// @endcode
///
/// A change also applies to what waits already: from then on the rest of the time above the least
/// passes at `1/(1-p)` of its pace. At 1 all that has waited for its least time is due at once, and
/// runs in batches (P6). A change touches no timer.
///
/// Several objects for one context set the same pressure. Other contexts have their own. A context
/// keeps its pressure when they are destroyed.
///
/// After Envoy's scaled timers, which keep a list for each spread, and compute each timeout anew.
///
/// @tparam Clock as of scaled_clock. Use pawl::pressure, or `basic_pressure<manual_clock>`.
/// @par Thread safety
/// All members may be called from any thread, unless options::locking is false, but not while
/// another thread destroys the context.
/// @par Cost
/// set() takes the lock of each shard once, and may wake the context. Options of the timers, if
/// any, come first: `make_timer_service<scaled_timer>(context, options)`.
template <class Clock = detail::steady_clock>
class basic_pressure {
    using service = timer_service<scaled_clock<Clock>>;

public:
    /// The pressure of that context, 0 at first.
    explicit basic_pressure(boost::asio::execution_context& context)
        : service_(boost::asio::use_service<service>(context)), life_(service_.life()) {
        life_.share();
    }
    basic_pressure& operator=(basic_pressure&&) = delete;
    /// May come after the end of the context.
    ~basic_pressure() { life_.leave(); }

    /// @throws std::invalid_argument unless `p` is from 0 to 1, std::logic_error if the context is
    ///         gone; with nothing changed.
    void set(double p) {
        if (!(p >= 0 && p <= 1)) // also if it is no number
            throw std::invalid_argument("pawl: a pressure is a number from 0 to 1");
        // relaxed: guards no data, and the locks of the shards order it.
        used().pressure().store(p, std::memory_order_relaxed);
        service_.clock_moved();
    }

    /// What was set last, by any object.
    /// @throws std::logic_error if the context is gone.
    [[nodiscard]] double value() const {
        return used().pressure().load(std::memory_order_relaxed); // relaxed: guards no data
    }

private:
    service& used() const {
        if (life_.over())
            throw std::logic_error("pawl: the context of this pressure is gone");
        return service_;
    }

    service& service_;
    detail::service_life& life_;
};

/// See basic_pressure.
using pressure = basic_pressure<>;

/// Sets the pressure of a context from how late its handlers are: its own alarm, each period. The
/// pressure rises at once, and falls by a fifth in each period at most. It stays when the gauge is
/// destroyed. One gauge for each context: several would undo what the others set.
///
/// The alarm does not keep the context running, except as `keep_running(false)` of an alarm says.
/// It wakes the context each period. It is of a service of its own, so that options::max_pending
/// does not end it. cancel_all() does.
/// @par Thread safety
/// As an alarm: if other threads run the context, give it a strand, and destroy it there.
class lateness_pressure {
public:
    /// @param ex runs the alarm.
    /// @param none the lateness up to which there is no pressure.
    /// @param full the lateness of pressure 1.
    /// @param period from one sample to the next.
    /// @throws std::invalid_argument unless `none < full` and `period > 0`. std::bad_alloc.
    explicit lateness_pressure(const boost::asio::any_io_executor& ex,
                               std::chrono::nanoseconds none = std::chrono::milliseconds(10),
                               std::chrono::nanoseconds full = std::chrono::milliseconds(200),
                               std::chrono::nanoseconds period = std::chrono::milliseconds(100))
        : pressure_(detail::context_of(ex)), none_(none), full_(full), period_(period),
          alarm_(ex, take_sample{this}) {
        if (!(none < full) || !(period > period.zero()))
            throw std::invalid_argument("pawl: a gauge of lateness needs none < full, and a period "
                                        "above 0");
        alarm_.keep_running(false);
        alarm_.arm_after(period);
    }
    /// As the other one, on the executor of the context.
    template <detail::execution_context_type ExecutionContext>
    explicit lateness_pressure(ExecutionContext& context,
                               std::chrono::nanoseconds none = std::chrono::milliseconds(10),
                               std::chrono::nanoseconds full = std::chrono::milliseconds(200),
                               std::chrono::nanoseconds period = std::chrono::milliseconds(100))
        : lateness_pressure(boost::asio::any_io_executor(context.get_executor()), none, full,
                            period) {}
    lateness_pressure& operator=(lateness_pressure&&) = delete;

private:
    struct take_sample {
        lateness_pressure* gauge;
        void operator()(const boost::system::error_code&) const { gauge->sample(); }
    };

    void sample() {
        const real late = detail::steady_clock::now() - alarm_.expiry();
        const double p = std::clamp((late - none_) / (full_ - none_), 0., 1.);
        pressure_.set(std::max(p, pressure_.value() - 0.2));
        alarm_.arm_after(period_);
    }

    using real = std::chrono::duration<double>;
    using own_service =
        on_backend<time::hierarchical_wheel, boost::asio::wait_traits<detail::steady_clock>>;

    pressure pressure_;
    const real none_, full_;
    const std::chrono::nanoseconds period_;
    basic_alarm<take_sample, detail::steady_clock, boost::asio::any_io_executor, own_service>
        alarm_;
};

} // namespace pawl

#endif // PAWL_PRESSURE_HPP
