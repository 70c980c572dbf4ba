// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The interface between a shard and its observers (event readers and statistics): counts, which
///   a shard always keeps; and, while it is watched, each event of a timer. Interfaces only: unused
///   features cost no compile time.
///
/// Model
///     timer_service --visit--> observed_shard --note--> shard_observer, one for each shard
///          ^                                                 ^
///     service_registry <--watch-- context_watcher --makes----+
///
/// Threads
///   Functions that are called under the shard's lock are marked. They must not block, throw, or
///   call user code.
///
/// Cost
///   An unwatched shard pays one instruction per count.
#ifndef PAWL_DETAIL_SERVICE_OBSERVER_HPP
#define PAWL_DETAIL_SERVICE_OBSERVER_HPP

#include <pawl/timer_event_kind.hpp>

#include <pawl/detail/service/optional_mutex.hpp>
#include <pawl/detail/service/spin_mutex.hpp>

#include <pawl/detail/wait/timer_core.hpp>
#include <pawl/detail/wait/wait_operation.hpp>

#include <pawl/time/tick.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace pawl::detail {

/// A reading of the clock: a tick, and the time since it began.
struct moment {
    time::tick tick;
    std::chrono::nanoseconds past;
};

/// Counts of a shard since it was made. Only the first three can decrease.
struct shard_counts {
    std::uint64_t pending = 0;     ///< waits whose handlers have not begun
    std::uint64_t armed = 0;       ///< of those, waits for their deadline
    std::uint64_t filed = 0;       ///< timers in the time structure, those without waits included
    std::uint64_t started = 0;     ///< waits that were ever armed
    std::uint64_t moved = 0;       ///< waits that a re-arm has moved
    std::uint64_t expired = 0;     ///< waits whose handlers have begun with success
    std::uint64_t cancelled = 0;   ///< waits that have ended in any other way
    std::uint64_t overflowed = 0;  ///< waits for which a full ring had no room
    std::uint64_t level_moves = 0; ///< timers that were moved to a lower level of a wheel
};

/// An event of a timer.
struct happening {
    timer_event_kind what;
    const timer_core* timer;
    time::tick due;        ///< of the timer
    std::size_t waits = 1; ///< how many waits of the timer it is about
    time::tick now{};      ///< set if `what` is `due`
};

/// Receives the events of one shard. Called under its lock, except where noted.
class shard_observer {
public:
    /// @return whether a sleeping reader must be woken: see tell().
    virtual bool note(const happening& h) noexcept = 0;

    /// A turn of the context begins while a reader sleeps: publishes the noted events.
    virtual void publish() noexcept = 0;

    /// A named timer may have moved to another address.
    virtual void moved(const timer_core& from, const timer_core& to) noexcept = 0;
    /// A named timer may be about to be destroyed.
    virtual void gone(const timer_core& timer) noexcept = 0;

    /// The time of the events that follow.
    virtual void now_is(const moment& now) noexcept = 0;
    /// Wakes sleeping readers. Not called under a lock.
    virtual void tell() = 0;

    /// Whether to measure handlers.
    [[nodiscard]] virtual bool times_handlers() const noexcept = 0;
    /// The duration of a handler. Not called under a lock.
    virtual void handler_took(std::chrono::nanoseconds time) noexcept = 0;
    /// Shared ownership, which may outlive the context.
    [[nodiscard]] virtual std::shared_ptr<shard_observer> share() noexcept = 0;

protected:
    ~shard_observer() = default;
};

/// Proxy for a wait that has begun: completes it, and reports how long its handler has taken. One
/// per thread suffices: a thread completes a wait before it takes the next.
class timed_wait final : public wait_operation {
public:
    /// @param op has begun and is direct.
    [[nodiscard]] static wait_operation& instead_of(wait_operation& op, shard_observer& observer) {
        static thread_local timed_wait instance;
        instance.op_ = &op;
        instance.observer_ = &observer;
        return instance;
    }

private:
    timed_wait() noexcept : wait_operation(&perform, true) {}

    /// Reports even if the handler throws.
    struct stopwatch {
        const std::shared_ptr<shard_observer> observer; // the handler may outlive its context
        const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

        ~stopwatch() { observer->handler_took(std::chrono::steady_clock::now() - begin); }
    };

    static void perform(wait_operation& base, action what, wait_host*) {
        auto& self = static_cast<timed_wait&>(base);
        wait_operation& op =
            *self.op_; // a copy: the handler may run the context, which reuses this
        if (what == action::destroy)
            return op.destroy();
        const stopwatch time{self.observer_->share()};
        op.complete();
    }

    wait_operation* op_ = nullptr;
    shard_observer* observer_ = nullptr;
};

/// A shard as seen by observers.
class observed_shard {
public:
    using lock_type = optional_mutex<spin_mutex>;

    /// The shard's lock.
    [[nodiscard]] virtual lock_type& mutex() noexcept = 0;

    // --- under its lock -----------------------------------------------------------------------

    /// Sets the observer; null: none.
    /// @param watched report every event.
    /// @param named report named timers that move or go.
    virtual void observe(shard_observer* observer, bool watched, bool named) noexcept = 0;
    [[nodiscard]] virtual shard_counts counts() const noexcept = 0;
    /// Adds the number of timers on each level to `levels`, which has levels() elements. Does
    /// nothing for a structure without levels.
    virtual void count_levels(std::size_t* levels) const noexcept = 0;

    // --- from any thread ----------------------------------------------------------------------

    [[nodiscard]] virtual std::size_t levels() const noexcept = 0;
    [[nodiscard]] virtual std::chrono::nanoseconds precision() const noexcept = 0;
    /// Reads the clock.
    [[nodiscard]] virtual moment read_clock() const = 0;

protected:
    ~observed_shard() = default;
};

/// Learns which shards a context has. Made for the first reader, name or measurement.
class context_watcher {
public:
    /// A shard exists, until remove(). Not called under its lock.
    /// @throws std::bad_alloc with nothing changed.
    virtual void add(observed_shard& shard) = 0;
    /// A shard is closed. Not called under its lock.
    virtual void remove(observed_shard& shard) noexcept = 0;

protected:
    ~context_watcher() = default;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_OBSERVER_HPP
