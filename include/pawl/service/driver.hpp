// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The one system timer of a service: wakes it at the earliest tick that any shard has asked for,
///   and is outstanding work of the context while waits are armed.
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
///   When nobody needs it any more, and that is found out in a unit of the context, the driver rests:
///   the timer stays set, and what the context counts as work for it is taken back. So run() returns
///   (P9), and nothing is queued for that. Elsewhere the timer is cancelled.
///
/// Invariants
///   I1  At most one handler is on its way, from schedule() to on_wake(). So it does not matter
///       that cancelling an Asio timer does not recall a handler that is queued already.
///   I2  Whoever finds a handler on its way that was cancelled, or that expires early enough, need
///       do no more: it will look at all shards, and what was done before that happens before it.
///   I3  While the driver rests, the context counts one unit of work less than Asio has told it of.
///       on_wake() makes up for it before Asio, at the end of the handler, counts that handler off.
///
/// Threads
///   All members may be called from any thread; never under the lock of a shard.
///
/// Cost
///   Nothing here allocates, except that Asio does when a context sets its first timer.
#ifndef PAWL_SERVICE_DRIVER_HPP
#define PAWL_SERVICE_DRIVER_HPP

#include <pawl/service/driver_clock.hpp>
#include <pawl/service/driver_need.hpp>
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

/// Called by the driver.
class driver_target {
public:
    /// The driver has woken up and is disarmed.
    virtual void wake() = 0;

protected:
    ~driver_target() = default;
};

template <class Clock, class WaitTraits>
class driver {
    static constexpr bool steady = keeps_time<Clock, WaitTraits>;
    using wait_traits = driver_wait_traits<Clock, WaitTraits>;

public:
    using clock = std::conditional_t<steady, Clock, driver_clock<Clock>>;

    driver(boost::asio::execution_context& context, driver_target& target, bool locking)
        : mutex_(locking), context_(context), target_(target), block_(new block),
          timer_(inline_executor(context)) {}
    driver(const driver&) = delete;
    driver& operator=(const driver&) = delete;

    /// Wakes up at `at`, when tick `t` begins, unless it does so at `t` or earlier already, or `need()`
    /// says that the waits it is for have ended meanwhile.
    /// @throws std::bad_alloc with nothing changed, if it is the first call.
    template <class Need>
    void arm(time::tick t, const typename Clock::time_point& at, Need need) {
        // A clock that was moved may have passed the time for which Asio sleeps, which does not know.
        const bool overdue = !steady && !(Clock::now() < at);
        const std::scoped_lock lock(mutex_);
        if (outstanding_)
            return hasten(overdue ? time::tick{} : t, need);
        switch (need()) {
        case driver_need::nobody:
            break;
        case driver_need::soon:
            schedule(time::tick{}, a_moment_from_now());
            break;
        case driver_need::in_time:
            if constexpr (steady)
                schedule(t, at);
            else
                schedule(t, clock::at(at));
            break;
        }
    }

    /// Wakes up as soon as the context can.
    void kick() {
        const std::scoped_lock lock(mutex_);
        if (!outstanding_)
            return schedule(time::tick{}, clock::time_point::min());
        get_up();
        cancel();
    }

    /// Rests, unless `need()` says, under the driver's lock, that somebody needs it.
    /// @param native what can be done with the context; nullptr if that is not known.
    template <class Need>
    void rest(const native_context* native, Need need) {
        const bool seldom = wait_traits::look_seldom(); // calls a user's traits: unlocked
        const std::scoped_lock lock(mutex_);
        if (!outstanding_ || resting_ || armed_at_ == time::tick{})
            return; // it rests, or wakes up at once and looks for itself
        const driver_need now = need();
        if (now == driver_need::in_time)
            return;
        // Elsewhere than in a unit the context might be left without work, and stop: for good, even
        // if the next wait is started before run() is called. And Asio would go on looking at a clock
        // as often as its traits say.
        if (now == driver_need::soon || !seldom || !native || !native->runs_here ||
            !native->runs_here(context_))
            return cancel();
        resting_ = native;
        if (!steady)
            armed_at_ = time::tick::never(); // the clock may leap before the next wait comes
        native->work_finished(context_);
    }

    /// The context shuts down, and nobody needs the driver any more. Contexts of a user's own have a
    /// thread of Asio's, which is still there when Asio's reactor, without a lock, takes back the waits
    /// of all timers (Boost 1.81, 1.90): it must not find ours.
    void shutdown() {
        const std::scoped_lock lock(mutex_);
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

    /// arm(), while a handler is on its way.
    template <class Need>
    void hasten(time::tick t, Need& need) {
        const driver_need now = resting_ ? need() : driver_need::in_time;
        if (now == driver_need::nobody)
            return;
        get_up();
        if (t < armed_at_ || now == driver_need::soon)
            cancel();
    }

    void get_up() {
        if (resting_)
            std::exchange(resting_, nullptr)->work_started(context_);
    }

    void schedule(time::tick t, const typename clock::time_point& at) {
        timer_.expires_at(at);
        timer_.async_wait(handler{this, block_.get()});
        armed_at_ = t;
        outstanding_ = true;
    }

    void cancel() {
        if (armed_at_ == time::tick{})
            return; // it was before, or is due at once
        armed_at_ = time::tick{};
        timer_.cancel();
    }

    void on_wake() {
        {
            const std::scoped_lock lock(mutex_);
            get_up();
            outstanding_ = false;
        }
        target_.wake();
    }

    optional_mutex<> mutex_;
    boost::asio::execution_context& context_;
    driver_target& target_;
    bool outstanding_ = false;                ///< a handler is on its way
    const native_context* resting_ = nullptr; ///< and the context does not count it as work
    time::tick armed_at_;                     ///< when; tick 0: as soon as the context can
    std::unique_ptr<block, leave_block> block_;
    boost::asio::basic_waitable_timer<clock, wait_traits, inline_executor> timer_;
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_DRIVER_HPP
