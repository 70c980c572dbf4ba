// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The one system timer of a service: wakes it at the earliest tick that any shard has asked for.
///
/// Model
///   A boost::asio::basic_waitable_timer on an executor of our own that runs its handler where the
///   context completes it. That takes public API only, works on every execution context, and leaves
///   fork and platform to Asio. It is a timer on the clock of the service (driver_clock.hpp): one that
///   is set, or moved by a test, and wait traits that shorten the sleep have Asio look early, and
///   complete nothing. Moving a deadline later, or cancelling the earliest wait, costs no
///   system call, at the price of a wake-up that finds nothing. For an earlier deadline the timer
///   is cancelled: its handler then looks at all shards, and sets the timer anew.
///
///     event   from          to       effect                             who
///     arm     off           set      the Asio timer is set              whoever has a deadline
///     arm     set           hurries  if the deadline is earlier: it is  the same
///                                    cancelled
///     hurry   off           set      for at once                        wakeup::kick()
///     hurry   set           hurries  it is cancelled                    that, and wakeup::rest()
///     wake    set, hurries  off      on_wake(): the shards are looked   its handler
///                                    at
///   What is not in the table changes nothing, and neither does an arm that comes too late: if no shard
///   is busy any more, and nothing but a shard that goes quiet would end the wait. There is no state for a driver that nobody needs: it
///   stays set, wakes up once, and finds nothing.
///
/// Invariants
///   I1  At most one handler is on its way, from schedule() to on_wake(). So it does not matter
///       that cancelling an Asio timer does not recall a handler that is queued already.
///   I2  Whoever finds a handler on its way that was cancelled, or that expires early enough, need
///       do no more: it will look at all shards, and what was done before that happens before it.
///   I3  While its wait is uncounted, the context counts one unit of work less than Asio has told it
///       of, if Asio has told it of the wait at all (native_context::counts_timers). on_wake() makes up
///       for it before Asio, at the end of the handler, counts that handler off; shutdown(), before Asio
///       destroys the handler.
///
/// Threads
///   All members may be called from any thread; never under the lock of a shard.
///
/// Cost
///   Nothing here allocates, except that Asio does when a context sets its first timer.
#ifndef PAWL_SERVICE_DRIVER_HPP
#define PAWL_SERVICE_DRIVER_HPP

#include <pawl/service/driver_clock.hpp>
#include <pawl/service/native_executor.hpp>
#include <pawl/service/optional_mutex.hpp>

#include <pawl/time/tick.hpp>

#include <pawl/config.hpp>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

namespace pawl::detail {

/// Runs functions where it is called: in the thread that completes the driver's wait.
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

/// @tparam Target has `void wake()`, which is called when the driver has woken up, and is off; and,
///                asked under the driver's lock, in this order, `any_busy()`, whether it is needed, and
///                `counted_by()`: what counts work, but not that of the driver; null if the driver's is
///                counted.
template <class Clock, class WaitTraits, class Target>
class driver {
    static constexpr bool steady = keeps_time<Clock, WaitTraits>;
    using wait_traits = driver_wait_traits<Clock, WaitTraits>;

public:
    using clock = std::conditional_t<steady, Clock, driver_clock<Clock>>;

    driver(boost::asio::execution_context& context, Target& target, bool locking)
        : mutex_(locking), context_(context), target_(target), block_(new block),
          timer_(inline_executor(context)) {}
    driver(const driver&) = delete;
    driver& operator=(const driver&) = delete;

    /// The driver of a shard that goes quiet may stay set. Another clock may leap meanwhile, of which
    /// Asio's sleep knows nothing, and traits that shorten the sleep would have Asio look for nobody.
    static constexpr bool stays_set = steady;

    /// Wakes up at `at`, when tick `t` begins, unless it does so at `t` or earlier already.
    /// @throws std::bad_alloc with nothing changed, if it is the first call.
    void arm(time::tick t, const typename Clock::time_point& at) {
        // A clock that was moved may have passed the time for which Asio sleeps, which does not know.
        const bool overdue = !steady && !(Clock::now() < at);
        const std::scoped_lock lock(mutex_);
        if (state_ != state::off) {
            if ((overdue ? time::tick{} : t) < armed_at_)
                cancel();
            return;
        }
        // Asked here: who sets these answers comes to the driver afterwards, and finds it off or set. In
        // this order: a shard that went quiet and relies on a driver that stays set did so when the
        // context counted already (I2 of wakeup_state.hpp).
        const bool needed = target_.any_busy();
        const native_context* const uncounted = target_.counted_by();
        if (!needed && !(uncounted && stays_set))
            return; // the shard that needed it has come to rest() meanwhile
        if constexpr (steady)
            schedule(t, at, uncounted);
        else
            schedule(t, clock::at(at), uncounted);
    }

    /// Wakes up as soon as the context can.
    void hurry() {
        const std::scoped_lock lock(mutex_);
        if (state_ == state::off)
            schedule(time::tick{}, clock::time_point::min(), nullptr);
        else
            cancel();
    }

    /// Wakes up in a moment, or earlier: a thread is about to hurry it. The context counts that.
    void linger() {
        const std::scoped_lock lock(mutex_);
        if (state_ == state::off)
            schedule(time::tick{}, a_moment_from_now(), nullptr);
    }

    /// A shard has gone quiet. Ends a wait that the context counts, or that has Asio look at a clock
    /// again and again, if no other one is busy; has another wait not relied on (see stays_set).
    void rest() {
        const bool seldom = wait_traits::look_seldom(); // calls a user's traits: unlocked
        const std::scoped_lock lock(mutex_);
        if (state_ != state::set)
            return;
        if (uncounted_ && seldom)
            armed_at_ = time::tick::never();
        else if (!target_.any_busy())
            cancel();
    }

    /// The context counts work for the shards from now on: a wait that it counts has to end.
    void end_counted() {
        const std::scoped_lock lock(mutex_);
        if (state_ == state::set && !uncounted_)
            cancel();
    }

    /// The context shuts down, and nobody needs the driver any more. Contexts of a user's own have a
    /// thread of Asio's, which is still there when Asio's reactor, without a lock, takes back the waits
    /// of all timers (Boost 1.81, 1.90): it must not find ours.
    ///
    /// The context counts the wait again (I3). On Windows the destructor of an io_context takes operations from
    /// its queue and destroys them until it counts no work: with one unit too few it leaves one behind, and with
    /// one too many it waits for ever.
    void shutdown() {
        const std::scoped_lock lock(mutex_);
        if (state_ != state::off && uncounted_ && uncounted_->counts_timers)
            uncounted_->work_started(context_);
        uncounted_ = nullptr;
        timer_.cancel(); // and does not get up: the destructor of the context's class is over
    }

private:
    /// Long enough for another thread to come to the end of what it does, without spinning. Any
    /// other clock may stand still.
    static typename clock::time_point a_moment_from_now() {
        if constexpr (steady)
            return clock::now() + std::chrono::microseconds(50);
        else
            return clock::time_point::min();
    }

    /// Memory for the one wait on timer_ (I1). Asio frees it before it invokes the handler. A
    /// service that is made while its context is shut down dies before the scheduler that then
    /// still holds the wait: whoever of driver and wait goes last deletes the block.
    struct block {
        bool owned = true; ///< the driver is there
        bool used = false; ///< the wait is there
        alignas(std::max_align_t) std::byte memory[192];
    };

    struct leave_block {
        void operator()(block* b) const noexcept {
            b->owned = false;
            if (!b->used)
                delete b;
        }
    };

    template <class T>
    class block_allocator {
    public:
        using value_type = T;

        explicit block_allocator(block& b) noexcept : block_(&b) {}
        template <class U>
        block_allocator(const block_allocator<U>& other) noexcept : block_(other.block_) {}

        [[nodiscard]] T* allocate(std::size_t n) {
            static_assert(sizeof(T) <= sizeof(block::memory) &&
                          alignof(T) <= alignof(std::max_align_t));
            PAWL_ASSERT(n == 1 && !block_->used);
            (void)n;
            block_->used = true;
            return reinterpret_cast<T*>(block_->memory);
        }
        void deallocate(T*, std::size_t) noexcept {
            block_->used = false;
            if (!block_->owned)
                delete block_;
        }

        template <class U>
        bool operator==(const block_allocator<U>& other) const noexcept {
            return block_ == other.block_;
        }

    private:
        template <class>
        friend class block_allocator;

        block* block_;
    };

    struct handler {
        using allocator_type = block_allocator<void>;

        allocator_type get_allocator() const noexcept { return allocator_type(*memory); }
        void operator()(const boost::system::error_code&) const { self->on_wake(); }

        driver* self;
        block* memory;
    };

    void schedule(time::tick t, const typename clock::time_point& at,
                  const native_context* native) {
        timer_.expires_at(at);
        timer_.async_wait(handler{this, block_.get()});
        armed_at_ = t;
        state_ = state::set;
        uncounted_ = native;
        // The caller is in a unit, or pinned: it is not the last work of the context.
        if (native && native->counts_timers)
            native->work_finished(context_);
    }

    void cancel() {
        if (armed_at_ == time::tick{})
            return; // it was before, or is due at once
        state_ = state::hurries;
        armed_at_ = time::tick{};
        timer_.cancel();
    }

    void on_wake() {
        {
            const std::scoped_lock lock(mutex_);
            state_ = state::off;
            if (uncounted_ && uncounted_->counts_timers)
                uncounted_->work_started(context_);
        }
        target_.wake();
    }

    enum class state {
        off,     ///< no handler is on its way
        set,     ///< one is, for armed_at_
        hurries, ///< one is, and comes as soon as the context can
    };

    optional_mutex<> mutex_;
    boost::asio::execution_context& context_;
    Target& target_;
    state state_ = state::off;
    const native_context* uncounted_ = nullptr; ///< the wait is no work of the context (I3)
    time::tick armed_at_; ///< tick 0: as soon as the context can, or in a moment
    std::unique_ptr<block, leave_block> block_;
    boost::asio::basic_waitable_timer<clock, wait_traits, inline_executor> timer_;
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_DRIVER_HPP
