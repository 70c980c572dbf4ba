// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::debounce and pawl::throttle: one call for many triggers.
#ifndef PAWL_DEBOUNCE_HPP
#define PAWL_DEBOUNCE_HPP

#include <pawl/config.hpp>

#include <pawl/alarm.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/service/native_executor.hpp>
#include <pawl/detail/time/durations.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace pawl {

/// When a debounced function is called.
struct debounce_options {
    /// At the first trigger of a burst.
    bool leading = false;
    /// At the end of a burst, if there was a trigger that no call has answered.
    bool trailing = true;
    /// A trailing call comes no later than this after the first trigger that it answers, although
    /// the burst goes on. For triggers that never pause.
    detail::saturated<std::chrono::nanoseconds> max_wait = std::chrono::nanoseconds::max();
};

namespace detail {

/// In place of a function that was refused: the alarm must not refuse it, too.
struct refused_function {
    refused_function(auto&&) noexcept {}
    void operator()() const noexcept;
};

} // namespace detail

/// Calls a function once for a burst of triggers. A burst ends when no trigger came for `delay`.
///
/// @code
/// pawl::debounce save(context, 300ms, [&] { write(document); }, {.max_wait = 5s});
/// ... save();             // for each change
/// @endcode
///
/// A call answers all triggers before it begins. So the function takes no arguments: it reads the
/// state that is current then, which may be newer than that of the last trigger. Until a call has
/// begun, the next trigger moves it. Triggers in the function itself count, too.
///
/// The semantics are those of lodash's `debounce`, with one difference: a call by `max_wait` does
/// not end the burst, so a leading call never follows it without a pause.
///
/// The function runs on its associated executor, or on that of the debounce, never in the trigger.
/// It may throw, as a
/// handler, and destroy the debounce. While a call is owed, it is outstanding work. expire_all()
/// and cancel_all() drop the owed call. A moved-from debounce may be destroyed and assigned to.
///
/// @tparam Function, Clock, Executor as with basic_alarm. The function takes nothing.
/// @par Thread safety
/// As basic_alarm: cancel() and pending() may be called from any thread, all other members need one
/// thread at a time, such as a strand to which the function is bound.
/// @par Complexity
/// The constructor allocates one block. A trigger is O(1): one reading of the clock, and at most
/// one move of an alarm. It does not allocate.
template <class Function, class Clock, class Executor = boost::asio::any_io_executor>
class basic_debounce {
    static_assert(std::is_invocable_v<Function&>,
                  "pawl: the function of a debounce takes nothing: it answers many triggers");

public:
    using executor_type = Executor;                     ///< The type of the executor.
    using clock_type = Clock;                           ///< The clock.
    using duration = typename clock_type::duration;     ///< Duration of the clock.
    using time_point = typename clock_type::time_point; ///< Time point of the clock.

    /// Makes a debounce, with a `delay` for which no trigger comes at the end of a burst.
    /// @throws std::invalid_argument unless `delay > 0`, `max_wait >= delay`, and there is a
    /// leading
    ///     or a trailing call. std::bad_alloc, or what the move of the function throws.
    basic_debounce(const executor_type& ex, detail::saturated<duration> delay, Function f,
                   debounce_options o = {})
        : delay_(checked(delay, o)), max_wait_(detail::saturating_cast<duration>(o.max_wait)),
          leading_(o.leading), trailing_(o.trailing), alarm_(ex, std::move(f)) {}

    /// As above, with the executor of an execution context.
    template <detail::execution_context_type ExecutionContext>
    basic_debounce(ExecutionContext& context, detail::saturated<duration> delay, Function f,
                   debounce_options o = {})
        : basic_debounce(executor_type(context.get_executor()), delay, std::move(f), o) {}

    /// A trigger.
    /// @return whether a call is owed now. false: it is not, without a trailing call; or the alarm
    ///     refused (see basic_alarm::arm_after()), and the trigger has not happened.
    /// @throws what the clock throws; then the trigger has not happened.
    bool operator()() {
        const time_point now = Clock::now();
        const bool begins = now >= burst_ends_;
        const time_point ends = detail::saturating_sum(now, delay_);
        if (begins && leading_) {
            if (!alarm_.arm_at(now))
                return false;
            answers_all_ = true;
        } else if (trailing_ && !(alarm_.armed() && answers_all_)) {
            const time_point first = alarm_.armed() ? owed_since_ : now;
            if (!alarm_.arm_at(std::min(ends, detail::saturating_sum(first, max_wait_))))
                return false;
            owed_since_ = first;
            answers_all_ = false;
        }
        burst_ends_ = ends;
        return alarm_.armed();
    }

    /// Makes the call that is owed now, through the executor. A cancel() in another thread meanwhile
    /// may return true, and withdraw nothing.
    /// @return false if none is.
    bool flush() { return alarm_.armed() && (answers_all_ = alarm_.arm_at(Clock::now())); }

    /// Withdraws the call that is owed. The burst goes on.
    /// @return true if the function will not be called; false if no call is owed, or it has begun.
    /// @par Thread safety
    /// May be called from any thread: see the class.
    bool cancel() noexcept { return alarm_.disarm(); }

    /// Whether a call is owed, and has not begun.
    /// @par Thread safety
    /// May be called from any thread: see the class.
    [[nodiscard]] bool pending() const noexcept { return alarm_.armed(); }

private:
    static duration checked(duration delay, const debounce_options& o) {
        if (!(delay > duration::zero()))
            throw std::invalid_argument("pawl: the delay of a debounce must be greater than zero");
        if (!o.leading && !o.trailing)
            throw std::invalid_argument("pawl: a debounce needs a leading or a trailing call");
        if (detail::saturating_cast<duration>(o.max_wait) < delay)
            throw std::invalid_argument("pawl: max_wait of a debounce must be at least its delay");
        return delay;
    }

    duration delay_;
    duration max_wait_;
    bool leading_;
    bool trailing_;
    bool answers_all_ = false; ///< the owed call is due already: a trigger does not move it
    time_point burst_ends_ = time_point::min();
    time_point owed_since_{};
    using called =
        std::conditional_t<std::is_invocable_v<Function&>, Function, detail::refused_function>;
    basic_alarm<called, Clock, Executor> alarm_;
};

namespace detail {

/// Notes when a call begins. What it writes belongs to it, so the throttle may be gone.
template <class Function, class Clock>
struct throttled_function {
    using pawl_wrapped_handler = Function;
    const Function& handler() const noexcept { return function; }

    void operator()() {
        try {
            *next = saturating_sum(Clock::now(), interval);
        } catch (...) { // the clock
            *next = Clock::time_point::max();
        }
        function();
    }

    /// No call before this time. max(): an interval after the next trigger, as the time of the last
    /// call is not known.
    std::shared_ptr<typename Clock::time_point> next;
    typename Clock::duration interval;
    Function function;
};

} // namespace detail

/// Calls a function at most once in each interval: at the first trigger, and at the end of the
/// interval for the triggers in it. Two calls begin at least an interval apart, however late they
/// are.
///
/// @code
/// pawl::throttle show(context, 100ms, [&] { draw(progress); });
/// ... show();             // for each byte
/// @endcode
///
/// The rest is as with basic_debounce, which also says what the function may do. If the clock throws
/// as a call begins, the next one comes an interval after its trigger.
/// @par Complexity
/// The constructor allocates two blocks. A trigger reads the clock unless a call is owed already,
/// is O(1), and does not allocate.
template <class Function, class Clock, class Executor = boost::asio::any_io_executor>
class basic_throttle {
    static_assert(std::is_invocable_v<Function&>,
                  "pawl: the function of a throttle takes nothing: it answers many triggers");
    using called = detail::throttled_function<Function, Clock>;

public:
    using executor_type = Executor;                     ///< The type of the executor.
    using clock_type = Clock;                           ///< The clock.
    using duration = typename clock_type::duration;     ///< Duration of the clock.
    using time_point = typename clock_type::time_point; ///< Time point of the clock.

    /// @throws std::invalid_argument unless `interval > 0`. std::bad_alloc, or what the move of the
    ///     function throws.
    basic_throttle(const executor_type& ex, detail::saturated<duration> interval, Function f)
        : interval_(checked(interval)), next_(std::make_shared<time_point>(time_point::min())),
          alarm_(ex, called{next_, interval_, std::move(f)}) {}

    /// As above, with the executor of an execution context.
    template <detail::execution_context_type ExecutionContext>
    basic_throttle(ExecutionContext& context, detail::saturated<duration> interval, Function f)
        : basic_throttle(executor_type(context.get_executor()), interval, std::move(f)) {}

    /// A trigger.
    /// @return whether a call is owed now; false if the alarm refused (see
    ///     basic_alarm::arm_after()).
    /// @throws what the clock throws; then the trigger has not happened.
    bool operator()() {
        if (alarm_.armed())
            return true;
        const time_point now = Clock::now();
        if (*next_ == time_point::max())
            *next_ = detail::saturating_sum(now, interval_);
        return alarm_.arm_at(std::max(now, *next_));
    }

    /// Withdraws the call that is owed. See basic_debounce::cancel().
    bool cancel() noexcept { return alarm_.disarm(); }

    /// Whether a call is owed, and has not begun. See basic_debounce::pending().
    [[nodiscard]] bool pending() const noexcept { return alarm_.armed(); }

private:
    static duration checked(duration interval) {
        if (!(interval > duration::zero()))
            throw std::invalid_argument(
                "pawl: the interval of a throttle must be greater than zero");
        return interval;
    }

    duration interval_;
    std::shared_ptr<time_point> next_;
    basic_alarm<called, Clock, Executor> alarm_;
};

/// A debounce on `std::chrono::steady_clock`. See basic_debounce.
template <class Function, class Executor = boost::asio::any_io_executor>
class debounce : public basic_debounce<Function, detail::steady_clock, Executor> {
public:
    using basic_debounce<Function, detail::steady_clock, Executor>::basic_debounce;
};

/// A throttle on `std::chrono::steady_clock`. See basic_throttle.
template <class Function, class Executor = boost::asio::any_io_executor>
class throttle : public basic_throttle<Function, detail::steady_clock, Executor> {
public:
    using basic_throttle<Function, detail::steady_clock, Executor>::basic_throttle;
};

/// @cond
template <class Where, class Function>
debounce(Where&&, detail::saturated<detail::steady_clock::duration>, Function,
         debounce_options = {}) -> debounce<Function, detail::deduced_executor<Where>>;
template <class Where, class Function>
throttle(Where&&, detail::saturated<detail::steady_clock::duration>, Function)
    -> throttle<Function, detail::deduced_executor<Where>>;
/// @endcond

} // namespace pawl

#endif // PAWL_DEBOUNCE_HPP
