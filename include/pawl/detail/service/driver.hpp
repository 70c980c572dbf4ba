// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The one system timer of a service. It wakes the service at the earliest tick that any shard
///   has asked for.
///
/// Model
///   A boost::asio::basic_waitable_timer on an executor that runs the handler inline, where the
///   context completes the wait. This uses public API only, works with every execution context, and
///   leaves fork and platform to Asio. The timer uses the clock and the wait traits of the service
///   (driver_clock.hpp): if the clock is set or moved, or if the traits shorten the sleep, Asio
///   polls, without running a handler.
///
///   Moving a deadline later, or cancelling the earliest wait, costs no system call but one wake-up
///   that finds nothing. For an earlier deadline the Asio timer is cancelled; its handler then
///   collects in all shards and sets the timer again.
///
///   A handler that sets an earlier deadline may then run the context in a loop of its own. If one
///   thread runs an io_context, that loop does not find what the thread has cancelled before: Asio
///   keeps it until the handler returns. So in a thread that runs an io_context, a second Asio
///   timer, which is due now, cancels the first.
///
///     event        from          to       effect                       caller
///     prepare      fresh         set      as hurry                     the first alarm
///     arm          fresh, off    set      the Asio timer is set        a thread with a deadline
///     arm          set           hurries  if the deadline is earlier:  the same
///                                         the Asio timer is, or will
///                                         be, cancelled
///     hurry        fresh, off    set      the Asio timer is set, due   wakeup::hurry()
///                                         now
///     hurry        set           hurries  the Asio timer is cancelled  the same, hurry_if_set()
///     linger       fresh, off    set      the Asio timer is set, due   wakeup::unit_ends()
///                                         in a moment
///     go_idle      set           hurries  as hurry, or nothing         wakeup::go_quiet()
///     end_counted  off           set      as hurry, if a shard is      wakeup::attach()
///                                         busy
///     end_counted  set           hurries  as hurry                     the same
///     wake         set, hurries  off      collects in all shards       the Asio handler
///     shutdown     fresh         off      prepare does nothing more    wakeup::shutdown()
///
///   Other events change no state. Neither does an arm() that comes too late, when no shard is
///   busy any more: the wait would never be ended. An idle driver has no state of its own: it stays
///   armed but uncounted, wakes up once, and finds nothing.
///
/// Invariants
///   - One-handler invariant: at most one handler is on its way, from schedule() to on_wake(). So
///     it does not matter that cancelling an Asio timer does not recall a handler that is already
///     queued.
///   - Covered-deadline invariant: a thread that finds a handler on its way that was cancelled, or
///     that comes early enough, need do nothing. The handler will collect in all shards, and
///     happens after the thread's changes.
///   - Uncounted-wait invariant: while the driver's wait is uncounted, the context counts one unit
///     of work less than Asio has reported, if Asio reports timers at all
///     (native_context::counts_timers). on_wake() restores the count before Asio counts the handler
///     off; shutdown(), before Asio destroys the handler.
///
/// Threads
///   All members may be called from any thread, but never under the lock of a shard.
///
/// Cost
///   No allocation, except that Asio allocates when a context sets its first timer.
#ifndef PAWL_DETAIL_SERVICE_DRIVER_HPP
#define PAWL_DETAIL_SERVICE_DRIVER_HPP

#include <pawl/detail/service/driver_clock.hpp>
#include <pawl/detail/service/native_executor.hpp>
#include <pawl/detail/service/optional_mutex.hpp>
#include <pawl/detail/service/own_block.hpp>

#include <pawl/time/tick.hpp>

#include <pawl/config.hpp>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

namespace pawl::detail {

/// Runs functions inline: in the thread that completes the driver's wait.
class inline_executor {
public:
    explicit inline_executor(boost::asio::execution_context& context) noexcept
        : context_(&context) {}

    boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept {
        return *context_;
    }
    static constexpr auto query(boost::asio::execution::blocking_t) noexcept {
        return boost::asio::execution::blocking.always;
    }
    template <class Function>
    void execute(Function&& f) const {
        std::decay_t<Function> function(std::forward<Function>(f));
        std::move(function)();
    }
    friend bool operator==(const inline_executor&, const inline_executor&) noexcept = default;

private:
    boost::asio::execution_context* context_;
};

/// @tparam Target must have:
/// - `void wake(tick t)`, called when the driver has woken up, was set for `t`, and is off; tick 0
///   if it was hurried;
/// - `bool inside()`, called under the driver's lock: this thread runs an io_context, of which this
///   is a service;
/// - `any_busy()`, then `counted_by()`, both called under the driver's lock: whether the driver is
///   needed, and what counts work in place of the driver (null if the driver's wait is counted).
template <class Clock, class WaitTraits, class Target>
class driver {
    static constexpr bool steady = keeps_time<Clock, WaitTraits>;
    using wait_traits = driver_wait_traits<Clock, WaitTraits>;

public:
    using clock = std::conditional_t<steady, Clock, driver_clock<Clock>>;

    driver(boost::asio::execution_context& context, Target& target, bool locking)
        : mutex_(locking), context_(context), target_(target), block_(new block),
          canceller_block_(new block), timer_(inline_executor(context)),
          canceller_(inline_executor(context)) {}
    driver& operator=(driver&&) = delete;

    /// Whether the driver may stay set when a shard goes quiet. Not for other clocks: they may leap
    /// while Asio sleeps; and if traits shorten the sleep, Asio would poll for nothing.
    static constexpr bool stays_set = steady;

    /// From now on no call runs out of memory. Asio's queue allocates only when it holds more timers
    /// than ever before, and other timers are in other queues (driver_wait_traits). So if there was
    /// no wait yet, one is made now, which ends as soon as the context can.
    /// @throws std::bad_alloc with nothing changed.
    void prepare() {
        const std::scoped_lock lock(mutex_);
        if (state_ == state::fresh)
            schedule(time::tick{}, clock::time_point::min(), nullptr);
    }

    /// Wakes up at `at`, the start of tick `t`, or earlier.
    /// @throws std::bad_alloc with nothing changed, until a call has succeeded, or prepare().
    void arm(time::tick t, const typename Clock::time_point& at) {
        // The clock may have been moved past the time for which Asio sleeps, and Asio does not
        // know.
        bool overdue = false;
        if constexpr (!steady)
            overdue = !(clock::now() < clock::at(at)); // not even max() reaches max()
        const std::scoped_lock lock(mutex_);
        if (waits()) {
            if ((overdue ? time::tick{} : t) < armed_at_)
                cancel();
            return;
        }
        // Asked under the lock: a thread that changes these answers calls the driver afterwards,
        // and finds it off or set. Asked in this order: a shard that went quiet and relies on a
        // driver that stays set did so when the context already counted work (driver-set invariant
        // of wakeup_state.hpp).
        const bool needed = target_.any_busy();
        const native_context* const uncounted = target_.counted_by();
        if (!needed && !(uncounted && stays_set))
            return; // meanwhile the shard that needed it has gone quiet
        if constexpr (steady)
            schedule(t, at, uncounted);
        else
            schedule(t, clock::at(at), uncounted);
    }

    /// Wakes up as soon as the context can.
    /// @param if_off whether also if no handler is on its way.
    void hurry(bool if_off = true) {
        const std::scoped_lock lock(mutex_);
        if (waits())
            cancel();
        else if (if_off)
            schedule(time::tick{}, clock::time_point::min(), nullptr);
    }

    /// Wakes up in a moment at the latest: another thread is about to hurry the driver. The context
    /// counts this wait.
    void linger() {
        const std::scoped_lock lock(mutex_);
        if (!waits())
            schedule(time::tick{}, a_moment_from_now(), nullptr);
    }

    /// A shard has gone quiet. If no other shard is busy, ends a wait that the context counts or
    /// for which Asio polls. Any other wait stays set but is no longer relied on (see stays_set).
    void go_idle() {
        const bool seldom =
            wait_traits::polls_seldom(); // calls the user's traits: not under the lock
        const std::scoped_lock lock(mutex_);
        if (state_ != state::set)
            return;
        if (uncounted_ && seldom)
            armed_at_ = time::tick::never();
        else if (!target_.any_busy())
            cancel();
    }

    /// From now on the context counts work for the shards: ends a wait that it counts. A wake-up may
    /// have looked at some shards before that, and be about to set the driver: so one comes again.
    void end_counted() {
        const std::scoped_lock lock(mutex_);
        if (waits())
            cancel();
        else if (state_ == state::off && target_.any_busy())
            schedule(time::tick{}, clock::time_point::min(), nullptr);
    }

    /// The context shuts down. A user-defined context has a thread of Asio's that still runs while
    /// Asio's reactor takes back the waits of all timers, without a lock (Boost 1.81, 1.90): it
    /// must not find the driver's.
    ///
    /// Counts the wait again (uncounted-wait invariant). On Windows the destructor of io_context
    /// destroys queued operations until no work is counted: with one unit too few it leaves one
    /// behind, with one too many it waits for ever.
    void shutdown() {
        const std::scoped_lock lock(mutex_);
        if (waits() && uncounted_ && uncounted_->counts_timers)
            uncounted_->work_started(context_);
        uncounted_ = nullptr;
        if (state_ == state::fresh)
            state_ = state::off; // an alarm that is made now is never armed
        timer_.cancel();         // not waking: the destructor of the context's class has run
        canceller_.cancel();
    }

private:
    [[nodiscard]] bool waits() const noexcept { return state_ > state::off; }

    /// Long enough for another thread to finish its call, without spinning. Other clocks may stand
    /// still, so for them: now.
    static typename clock::time_point a_moment_from_now() {
        if constexpr (steady)
            return clock::now() + std::chrono::microseconds(50);
        else
            return clock::time_point::min();
    }

    /// Memory for the one wait on timer_ (one-handler invariant). Asio frees it before it invokes
    /// the handler, which sets the state to off under the lock; only then does schedule() use the
    /// block again. Debug builds assert it. A service made while its context shuts down dies before
    /// the scheduler, which still holds the wait: the last of driver and wait deletes the block.
    struct block : own_block<193> {
        bool owned = true;
    };

    struct leave_block {
        void operator()(block* b) const noexcept {
            b->owned = false;
            if (!b->used)
                delete b;
        }
    };

    template <bool Cancels>
    struct basic_handler {
        using allocator_type = own_block_allocator<void, block>;

        allocator_type get_allocator() const noexcept { return allocator_type(*memory); }
        void operator()(const boost::system::error_code&) const {
            Cancels ? self->on_cancel() : self->on_wake();
        }

        driver* self;
        block* memory;
    };
    using handler = basic_handler<false>;
    using canceller = basic_handler<true>;

    static void start(driver& d, bool cancels) {
        if (cancels)
            d.canceller_.async_wait(canceller{&d, d.canceller_block_.get()});
        else
            d.timer_.async_wait(handler{&d, d.block_.get()});
    }

    void schedule(time::tick t, const typename clock::time_point& at,
                  const native_context* native) {
        timer_.expires_at(at);
        try {
            start_(*this, false);
        } catch (const std::bad_alloc&) {
            if (!cancels_soon_)
                throw;
            canceller_.cancel(); // leaves its place in Asio's heap to this wait
            start_(*this, false);
        }
        armed_at_ = t;
        state_ = state::set;
        uncounted_ = native;
        // The caller is in a unit, or pinned: this is not the last work of the context.
        if (native && native->counts_timers)
            native->work_finished(context_);
    }

    void cancel() {
        if (armed_at_ == time::tick{})
            return; // already cancelled, or due now
        state_ = state::hurries;
        armed_at_ = time::tick{};
        if (!target_.inside() || !cancel_soon())
            timer_.cancel();
    }

    /// @return false if there is no memory.
    bool cancel_soon() {
        if (cancels_soon_)
            return true;
        try {
            canceller_.expires_at(clock::time_point::min());
            start_(*this, true);
        } catch (const std::bad_alloc&) {
            return false;
        }
        return cancels_soon_ = true;
    }

    void on_cancel() {
        const std::scoped_lock lock(mutex_);
        cancels_soon_ = false;
        if (state_ == state::hurries)
            timer_.cancel();
    }

    void on_wake() {
        time::tick asked;
        {
            const std::scoped_lock lock(mutex_);
            state_ = state::off;
            asked = armed_at_;
            if (uncounted_ && uncounted_->counts_timers)
                uncounted_->work_started(context_);
        }
        target_.wake(asked);
    }

    enum class state {
        fresh,   ///< no handler was ever on its way
        off,     ///< no handler is on its way
        set,     ///< one is on its way, for armed_at_
        hurries, ///< one is on its way, as soon as the context can
    };

    optional_mutex<> mutex_;
    boost::asio::execution_context& context_;
    Target& target_;
    state state_ = state::fresh;
    const native_context* uncounted_ = nullptr; ///< non-null: the context does not count the wait
    time::tick armed_at_;                       ///< tick 0: now, or in a moment
    bool cancels_soon_ = false;                 ///< on_cancel() is on its way
    /// A pointer, so that the handler in the context is code of the module that made the service,
    /// which the context needs anyway. Other modules that use the service may be unloaded.
    void (*const start_)(driver&, bool) = &start;
    std::unique_ptr<block, leave_block> block_;
    std::unique_ptr<block, leave_block> canceller_block_;
    boost::asio::basic_waitable_timer<clock, wait_traits, inline_executor> timer_;
    boost::asio::basic_waitable_timer<clock, wait_traits, inline_executor> canceller_;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_DRIVER_HPP
