// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::scaled_clock: timeouts that shrink under pressure. pawl::lateness_pressure: a gauge for it.
#ifndef PAWL_PRESSURE_HPP
#define PAWL_PRESSURE_HPP

#include <pawl/alarm.hpp>
#include <pawl/basic_waitable_timer.hpp>
#include <pawl/on_backend.hpp>

#include <pawl/detail/service/spin_mutex.hpp>

#include <pawl/time/hierarchical_wheel.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <ratio>
#include <stdexcept>

namespace pawl {

/// A clock whose time passes faster under pressure: a timeout of 60 s takes 60 s at pressure 0,
/// `Least` of that at pressure 1, and a time between, in proportion, otherwise. If the pressure
/// changes while it waits, so does the rest of its time. So a server whose descriptors or memory
/// run short closes idle connections sooner, and keeps those that are in use.
///
/// @code
/// pawl::scaled_timer idle(context, 60s);                    // 6 s at pressure 1
/// idle.async_wait(close_connection);
/// ... idle.rearm_after(60s);                                // for each read
/// ... pawl::scaled_clock<>::set_pressure(std::clamp(double(open) / room, 0., 1.));
/// @endcode
///
/// All that takes a clock takes this one: timers, alarms, `timeout_at(scaled_clock<>::now() + d)`,
/// `timeout_stream<Socket, scaled_clock<>>`. A change of pressure touches no timer, so it is O(1).
/// It takes effect within a second. Nothing completes early by this clock.
///
/// After Envoy's scaled timers, which keep a list for each spread, and compute each timeout anew.
///
/// @tparam Least what is left of a timeout at pressure 1: from 1/100 to 1
/// @tparam Tag distinguishes clocks: each has a pressure of its own, the same for all contexts
/// @par Thread safety
/// All members may be called from any thread.
/// @par Cost
/// A reading is one of the steady clock, under a lock. While a timer waits, Asio's reactor looks
/// each second, without running a handler.
template <class Least = std::ratio<1, 10>, class Tag = void>
class scaled_clock {
    // So that a reading does not overflow in years of pressure 1.
    static_assert(std::ratio_greater_equal_v<Least, std::ratio<1, 100>> &&
                      std::ratio_less_equal_v<Least, std::ratio<1>>,
                  "pawl: what is left of a timeout under pressure is at least 1/100, at most 1");

    using steady = std::chrono::steady_clock;

public:
    static constexpr const char* label = "scaled_clock"; ///< In statistics.

    using duration = std::chrono::nanoseconds;                ///< At pressure 0.
    using rep = duration::rep;                                ///< Type of a count.
    using period = duration::period;                          ///< Length of a count.
    using time_point = std::chrono::time_point<scaled_clock>; ///< Not one of another clock.
    static constexpr bool is_steady = true;                   ///< It never goes back, or leaps.

    /// The time.
    static time_point now() noexcept {
        const std::scoped_lock lock(mutex_);
        return read(steady::now());
    }

    /// @throws std::invalid_argument unless `p` is from 0 to 1, with nothing changed.
    static void set_pressure(double p) {
        if (!(p >= 0 && p <= 1)) // also if it is no number
            throw std::invalid_argument("pawl: a pressure is a number from 0 to 1");
        const std::scoped_lock lock(mutex_);
        const auto t = steady::now();
        begun_ = read(t);
        since_ = t;
        pressure_ = p;
    }

    /// The pressure, 0 at first.
    static double pressure() noexcept {
        const std::scoped_lock lock(mutex_);
        return pressure_;
    }

    /// How long `d` takes at the present pressure, rounded up.
    static duration takes(duration d) noexcept {
        const std::scoped_lock lock(mutex_);
        return pressure_ == 0 ? d : scale(d, share()) + duration(1);
    }

private:
    static time_point read(steady::time_point t) noexcept {
        const auto passed = std::chrono::duration_cast<duration>(t - since_);
        return begun_ + (pressure_ == 0 ? passed : scale(passed, 1 / share()));
    }

    /// What is left of a timeout.
    static double share() noexcept {
        return 1 - pressure_ * (1 - static_cast<double>(Least::num) / Least::den);
    }

    static duration scale(duration d, double by) noexcept {
        constexpr double most = 9e18; // below the range of a count
        return duration(
            static_cast<rep>(std::clamp(static_cast<double>(d.count()) * by, -most, most)));
    }

    static inline constinit detail::spin_mutex mutex_{};
    static inline steady::time_point since_{};
    static inline time_point begun_{}; ///< the reading at since_
    static inline double pressure_ = 0;
};

/// A timer on it.
using scaled_timer = basic_waitable_timer<scaled_clock<>>;

/// Sets the pressure of a clock from how late the handlers of a context are: its own alarm, each
/// period. The pressure rises at once, and falls by a fifth in each period at most. It stays when
/// the gauge is destroyed. One gauge for each clock: several would undo what the others set.
///
/// The alarm does not keep the context running, except as `keep_running(false)` of an alarm says.
/// It wakes the context each period. It is of a service of its own, so that options::max_pending
/// does not end it. cancel_all() does.
/// @par Thread safety
/// As an alarm: if other threads run the context, give it a strand, and destroy it there.
template <class Clock = scaled_clock<>>
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
        : none_(none), full_(full), period_(period), alarm_(ex, take_sample{this}) {
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
        Clock::set_pressure(std::max(p, Clock::pressure() - 0.2));
        alarm_.arm_after(period_);
    }

    using real = std::chrono::duration<double>;
    using own_service =
        on_backend<time::hierarchical_wheel, boost::asio::wait_traits<detail::steady_clock>>;

    const real none_, full_;
    const std::chrono::nanoseconds period_;
    basic_alarm<take_sample, detail::steady_clock, boost::asio::any_io_executor, own_service>
        alarm_;
};

} // namespace pawl

#ifndef PAWL_DETAIL_DOXYGEN
/// How long Asio sleeps: the pressure may change meanwhile.
template <class Least, class Tag>
struct boost::asio::wait_traits<pawl::scaled_clock<Least, Tag>> {
    using clock = pawl::scaled_clock<Least, Tag>; ///< Whose time is waited for.

    /// @param d by that clock.
    static typename clock::duration to_wait_duration(const typename clock::duration& d) {
        return std::min<typename clock::duration>(clock::takes(d), std::chrono::seconds(1));
    }
    /// @param t by that clock.
    static typename clock::duration to_wait_duration(const typename clock::time_point& t) {
        const auto now = clock::now();
        return t > now ? to_wait_duration(t - now) : clock::duration::zero();
    }
};
#endif

#endif // PAWL_PRESSURE_HPP
