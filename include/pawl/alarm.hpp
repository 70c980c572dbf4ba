// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::alarm: a function that is set once, then armed and disarmed any number of times.
#ifndef PAWL_ALARM_HPP
#define PAWL_ALARM_HPP

#include <pawl/coarse_clock.hpp>
#include <pawl/config.hpp>
#include <pawl/manual_clock.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/service/native_executor.hpp>
#include <pawl/detail/service/timer_handle.hpp>

#include <pawl/detail/time/durations.hpp>
#include <pawl/detail/wait/wait_allocator.hpp>
#include <pawl/detail/wait/wait_handler.hpp>
#include <pawl/detail/wait/wait_operation.hpp>

#include <pawl/time/backend.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <type_traits>
#include <utility>

namespace pawl {

namespace detail {

/// What the function of an alarm is made of. See group.hpp for one in a group.
template <class T>
struct alarm_function {
    using type = T;
    struct membership {};
    [[nodiscard]] static T&& function_of(T& f) noexcept { return std::move(f); }
    [[nodiscard]] static membership membership_of(const T&) noexcept { return {}; }
};

/// The block of an alarm: the function, and a wait that is used again. See alarm_wait. A user of the
/// shard. To arm and to disarm does not read it, as a rule.
template <class Function, class Clock, class WaitTraits, class Executor, class Membership>
class alarm_block final : public alarm_wait {
    using handle = timer_handle<Clock, WaitTraits>;
    using dispatcher = typename timer_service<Clock, WaitTraits>::dispatcher;
    using memory = allocated_block<alarm_block, handler_allocator<Function>>;
    friend memory;
    friend class allocated_object<alarm_block, handler_allocator<Function>>;
    static constexpr bool takes_code = std::is_invocable_v<Function&, boost::system::error_code>;
    static constexpr bool always_calls = requires { typename Function::pawl_always_called; };
    static constexpr bool in_group = !std::is_empty_v<Membership>;

public:
    template <class Limit>
    [[nodiscard]] static alarm_block& make(handle& timer, const Executor& ex, Function&& f,
                                           const Limit& limit) {
        alarm_block& made = *memory(get_handler_allocator(f)).make(timer, ex, std::move(f), limit);
        try {
            timer.enlist();
        } catch (...) {
            made.free();
            throw;
        }
        if constexpr (in_group) {
            made.hold();
            made.membership_.join(made, &alarm_block::bar);
        }
        return made;
    }

    /// The alarm goes.
    void leave(handle& timer) noexcept {
        unsigned holds = 0;
        if constexpr (in_group)
            holds += membership_.end();
        holds += timer.condemn(*this);
        if (holds != 0)
            leave(holds);
    }

    const Executor& executor() const noexcept { return executor_; }

private:
    template <class Limit>
    alarm_block(handle& timer, const Executor& ex, Function&& f, const Limit& limit)
        : alarm_wait(
              &alarm_block::perform,
              runs_natively(boost::asio::get_associated_executor(f, ex), timer.home().context()),
              takes_code, always_calls, timer.core()),
          home_(timer.home()), executor_(ex), function_(std::move(f)), membership_(limit) {}
    ~alarm_block() = default;

    static void perform(wait_operation& op, action what, wait_arbiter* arbiter) {
        auto& self = static_cast<alarm_block&>(op);
        switch (what) {
        case action::hand_over: {
            // Fetched first: the block may be gone before dispatch() returns.
            const auto ex = boost::asio::get_associated_executor(self.function_, self.executor_);
            boost::asio::dispatch(
                ex, wait_carrier(*arbiter, op, get_handler_allocator(self.function_)));
            break;
        }
        case action::regain_work: // the shard counts the work
            break;
        case action::complete:
        case action::destroy:
            self.carrier_ends(what == action::complete);
            break;
        }
    }

    /// The group is cancelled, in any thread.
    static void bar(alarm_wait& op) noexcept {
        auto& self = static_cast<alarm_block&>(op);
        self.home_.bar(self);
        self.membership_.part();
        self.leave(1);
    }

    /// @param calls the carrier has come to call the function.
    void carrier_ends(bool calls) {
        struct holder {
            ~holder() { block.leave(holds); }
            alarm_block& block;
            unsigned holds = 1;
        } hold{*this};
        boost::system::error_code ec;
        bool last = false;
        const bool begun = home_.begin(*this, ec, last);
        hold.holds += last;
        if (!begun || last || !calls)
            return;
        if constexpr (takes_code)
            function_(ec);
        else
            function_();
    }

    void leave(unsigned holds) noexcept {
        if (!alarm_wait::leave(holds))
            return;
        dispatcher& home = home_;
        free();
        home.leave();
    }
    void free() noexcept {
        if constexpr (std::is_same_v<handler_allocator<Function>, wait_allocator<void>>) {
            const allocated_object freed(get_handler_allocator(function_), *this);
        } else { // the function may own the memory resource of its allocator: it goes last
            (void)take_handler(function_, *this);
        }
    }

    dispatcher& home_;
    Executor executor_;
    Function function_;
    [[no_unique_address]] Membership membership_;
};

} // namespace detail

/// A function that is set once, and called when a deadline passes that was not moved or withdrawn
/// before. For timeouts that are nearly always beaten.
///
/// @code
/// pawl::alarm idle(socket.get_executor(), [&] { socket.close(); });
/// idle.arm_after(30s);      // and again for each request: the deadline moves
/// if (idle.disarm()) ...    // the function will not be called
/// @endcode
///
/// Use pawl::alarm, pawl::coarse_alarm or pawl::manual_alarm, which deduce their arguments.
///
/// To arm, move, disarm and expire allocates nothing, and a disarmed alarm posts nothing. A timer
/// allocates for each wait, and completes each cancelled one; use it to wait in a coroutine.
/// pawl::timeout limits one operation.
///
/// The function is called once for each arming, on its associated executor, never before expiry().
/// It takes nothing, or a `boost::system::error_code`, and returns nothing. In it, the alarm may be armed, disarmed and
/// destroyed, and it may throw, as a handler. It stays where it is: an alarm that is moved, or
/// destroyed in its own function, leaves the function alone until it has returned.
///
/// An armed alarm is outstanding work of the context of its executor, as a pending wait, unless
/// keep_running() says otherwise. It is
/// no work of another context to which the function is bound.
///
/// The function that takes an `error_code` receives success when the deadline has passed;
/// the code of pawl::expire_all(); and `operation_aborted` with shutdown_policy::deliver. These
/// disarm any other alarm, and so does pawl::cancel_all().
///
/// An alarm may outlive its context. To arm it then has no effect. Its function is not destroyed
/// with the context: it should not own, by a `shared_ptr`, what owns the alarm.
///
/// A moved-from alarm may be destroyed and assigned to, and is not armed.
///
/// An alarm made from `in_group(g, function)` is a member of that pawl::group until it is destroyed,
/// also while it is not armed, or until the group is cancelled. That disarms it for ever: the function
/// is not called, whatever it takes, and to arm it has no effect. Such an alarm has the type
/// `alarm<grouped<Function>>`.
///
/// @tparam Function a function object, movable, or pawl::grouped of one. Its associated allocator
/// provides the one block; if it has one, its move must not throw.
/// @tparam Clock, WaitTraits as with basic_waitable_timer, but not for rings.
/// @tparam Executor the type of I/O executor.
///
/// @par Thread safety
/// @e Distinct @e objects: Safe.@n @e Shared @e objects: disarm(), armed() and expiry() may be
/// called from any thread, also while another thread uses the alarm, but not during its
/// destruction, move or assignment. All other members need one thread at a time. If several threads
/// run the context, the function may be running while disarm() returns false, or the alarm is
/// destroyed. With a function that is bound to a strand, that does not happen to those who call on
/// that strand.
///
/// @par Cost
/// The constructor allocates one block for the alarm and its function. After that, a function on
/// another executor than the context's own, such as a strand, allocates when it is queued there.
template <class Function, class Clock, class Executor = boost::asio::any_io_executor,
          class WaitTraits = boost::asio::wait_traits<Clock>>
class basic_alarm {
    using parts = detail::alarm_function<Function>;
    using called = typename parts::type;

    static consteval bool returns_nothing() {
        if constexpr (std::is_invocable_v<called&, boost::system::error_code>)
            return std::is_void_v<std::invoke_result_t<called&, boost::system::error_code>>;
        else if constexpr (std::is_invocable_v<called&>)
            return std::is_void_v<std::invoke_result_t<called&>>;
        return true; // what cannot be called has another error
    }
    static_assert(std::is_invocable_v<called&, boost::system::error_code> ||
                      std::is_invocable_v<called&>,
                  "pawl: the function of an alarm takes nothing, or an error_code");
    static_assert(returns_nothing(),
                  "pawl: the function of an alarm returns nothing; it may start a "
                  "coroutine with co_spawn");
    static_assert(!time::bounded_backend<typename detail::backend_choice<WaitTraits>::backend>,
                  "pawl: an alarm cannot be in a ring; use pawl::alarm or pawl::coarse_alarm");
    using block =
        detail::alarm_block<called, Clock, WaitTraits, Executor, typename parts::membership>;

public:
    using executor_type = Executor;                     ///< The type of the executor.
    using function_type = Function;                     ///< The type of the function.
    using clock_type = Clock;                           ///< The clock.
    using duration = typename clock_type::duration;     ///< Duration of the clock.
    using time_point = typename clock_type::time_point; ///< Time point of the clock.
    using traits_type = WaitTraits;                     ///< How waits use the clock.

    /// Makes an alarm that is not armed.
    /// @throws std::bad_alloc, or what the move of the function throws.
    basic_alarm(const executor_type& ex, Function function)
        : handle_(ex), block_(&block::make(handle_, ex, parts::function_of(function),
                                           parts::membership_of(function))) {}

    /// As above, with the executor of an execution context.
    template <detail::execution_context_type ExecutionContext>
    basic_alarm(ExecutionContext& context, Function function)
        : basic_alarm(executor_type(context.get_executor()), std::move(function)) {}

    /// Takes over the alarm, armed or not.
    basic_alarm(basic_alarm&& other) noexcept
        : handle_(std::move(other.handle_), other.block_),
          block_(std::exchange(other.block_, nullptr)) {}

    /// Disarms this alarm, then takes over the other.
    basic_alarm& operator=(basic_alarm&& other) noexcept {
        if (this != &other) {
            leave();
            handle_.take(other.handle_, other.block_);
            block_ = std::exchange(other.block_, nullptr);
        }
        return *this;
    }

    /// Disarms the alarm. May be called in its function.
    ~basic_alarm() { leave(); }

    /// The executor of the alarm.
    /// @pre not moved from
    const executor_type& get_executor() const noexcept { return used().executor(); }

    /// Sets the deadline to `d` from now, saturating. If the alarm is armed already, the deadline
    /// moves; so it does if the deadline has passed and the function has not begun.
    /// @return true; false if nothing has changed: there are options::max_pending waits, the context
    ///     has gone, or the group of the alarm is cancelled. A deadline that moves is not refused.
    /// @throws what the clock throws, with the alarm as it was. Nothing, with pawl::alarm,
    ///     pawl::coarse_alarm and pawl::manual_alarm. std::invalid_argument if `d` is not a number.
    /// @pre not moved from
    /// @par Complexity
    /// O(1). Does not allocate.
    template <class Rep, class Period>
    bool arm_after(const std::chrono::duration<Rep, Period>& d) noexcept(
        reads_clock_safely && !std::chrono::treat_as_floating_point_v<Rep>) {
        return handle_.arm_after(used(), detail::saturating_cast<duration>(d));
    }

    /// As arm_after(), with a deadline at `t`.
    bool arm_at(const time_point& t) noexcept(reads_clock_safely) {
        return handle_.arm_at(used(), t);
    }

    /// As arm_after(), with a deadline between `min` and `max` from now, both included, that it
    /// shares with others, as basic_waitable_timer::expires_within() chooses it.
    /// @throws std::invalid_argument if `max < min`, with nothing changed.
    bool arm_within(const detail::saturated<duration>& min,
                    const detail::saturated<duration>& max) {
        return handle_.arm_within(used(), min, max);
    }

    /// @cond
    template <class T, class Other>
        requires(!std::is_same_v<Other, Function> &&
                 !std::is_empty_v<typename detail::alarm_function<Other>::membership>)
    basic_alarm(T&&, Other) : basic_alarm(std::move(*this)) {
        static_assert(!std::is_same_v<T, T>,
                      "pawl: an alarm in a group has the type alarm<grouped<Function>>");
    }
    template <class T>
        requires(std::is_arithmetic_v<T> || detail::is_time_point<T>)
    bool arm_after(T) {
        static_assert(!std::is_same_v<T, T>,
                      "pawl: arm_after() takes a duration with a unit, such as "
                      "10s; arm_at() takes a point in time");
        return false;
    }
    template <class T>
        requires(std::is_arithmetic_v<T> || detail::is_duration<T>)
    bool arm_at(T) {
        static_assert(!std::is_same_v<T, T>, "pawl: arm_at() takes a point in time of the alarm's "
                                             "clock; arm_after() takes a duration");
        return false;
    }
    /// @endcond

    /// Whether the alarm, while it is armed, keeps `run()` of its context from returning. It does at
    /// first. With false it is called only if something else keeps the context running until then.
    /// For housekeeping, as `uv_unref` and Node's `unref()`.
    ///
    /// Works on the steady clock with the wait traits of Asio, and in a context that can be told of work:
    /// `io_context`, `thread_pool`, from when a timer or alarm with the same clock and wait traits was
    /// made there with an executor of Asio's. Elsewhere, and in builds with virtual time, an armed
    /// alarm always keeps the context running.
    /// @pre not moved from
    void keep_running(bool on) noexcept {
        (void)used();
        handle_.keep_running(on);
    }

    /// Withdraws the deadline.
    /// @return true if the alarm was armed: the function will not be called for that arming. false
    ///     if it was not, or the call has begun, or is about to.
    /// @par Thread safety
    /// May be called from any thread: see the class.
    /// @par Complexity
    /// O(1). Does not allocate. Takes no lock if the alarm is not armed.
    bool disarm() noexcept { return block_ && handle_.disarm(*block_); }

    /// Whether the function is to be called, and has not begun, nor is about to.
    /// @par Thread safety
    /// May be called from any thread: see the class.
    [[nodiscard]] bool armed() const noexcept { return handle_.armed(); }

    /// The deadline that was set last, whether or not it has passed; `time_point()` at first.
    /// @pre not moved from
    /// @par Thread safety
    /// May be called from any thread: see the class.
    [[nodiscard]] time_point expiry() const noexcept { return handle_.expiry(); }

private:
    friend struct detail::timer_access;

    static constexpr bool reads_clock_safely = noexcept(clock_type::now());

    [[nodiscard]] block& used() const noexcept {
        PAWL_ASSERT(block_ && "the alarm was moved from, or is being destroyed by another thread");
        return *block_;
    }

    void leave() noexcept {
        if (block* const b = std::exchange(block_, nullptr))
            b->leave(handle_);
    }

    detail::timer_handle<Clock, WaitTraits> handle_;
    block* block_;
};

/// An alarm on `std::chrono::steady_clock`. See basic_alarm.
template <class Function, class Executor = boost::asio::any_io_executor>
class alarm : public basic_alarm<Function, detail::steady_clock, Executor> {
public:
    using basic_alarm<Function, detail::steady_clock, Executor>::basic_alarm;
};

/// An alarm on coarse_clock: the cheapest, and up to some milliseconds late. See basic_alarm and
/// coarse_timer.
template <class Function, class Executor = boost::asio::any_io_executor>
class coarse_alarm : public basic_alarm<Function, coarse_clock, Executor> {
public:
    using basic_alarm<Function, coarse_clock, Executor>::basic_alarm;
};

/// An alarm on manual_clock. See basic_alarm.
template <class Function, class Executor = boost::asio::any_io_executor>
class manual_alarm : public basic_alarm<Function, manual_clock, Executor> {
public:
    using basic_alarm<Function, manual_clock, Executor>::basic_alarm;
};

/// @cond
template <class Where, class Function>
alarm(Where&&, Function) -> alarm<Function, detail::deduced_executor<Where>>;

template <class Where, class Function>
coarse_alarm(Where&&, Function) -> coarse_alarm<Function, detail::deduced_executor<Where>>;

template <class Where, class Function>
manual_alarm(Where&&, Function) -> manual_alarm<Function, detail::deduced_executor<Where>>;
/// @endcond

} // namespace pawl

#endif // PAWL_ALARM_HPP
