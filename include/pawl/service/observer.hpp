// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   What a shard shows to readers of events and to statistics: its counts, which it always keeps, and,
///   while it is watched, each thing that happens to a timer. Interfaces only, so that unused features
///   cost no compile time.
///
/// Model
///   timer_service --visit--> observed_shard --note--> shard_observer, one for each shard
///        ^                                                 ^
///   service_registry <--watch-- context_watcher --makes----+
///
/// Threads
///   What is called under the lock of a shard says so. It must neither block nor throw nor call
///   anything of a user's.
///
/// Cost
///   A shard that is not watched pays one instruction for each count, and nothing else.
#ifndef PAWL_SERVICE_OBSERVER_HPP
#define PAWL_SERVICE_OBSERVER_HPP

#include <pawl/service/optional_mutex.hpp>
#include <pawl/service/spin_mutex.hpp>

#include <pawl/wait/wait_operation.hpp>

#include <pawl/time/tick.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace pawl {

/// What can happen to a timer. See pawl::timer_event.
enum class timer_event_kind : std::uint8_t {
    armed,   ///< a wait was started
    moved,   ///< the deadline of its waits was moved by a re-arm
    due,     ///< waits have fallen due; their handlers are queued
    started, ///< the handler of a wait that had fallen due is about to be invoked
    cancelled, ///< waits were ended by a cancel, a new expiry, a destruction, a slot or expire_all(), or
               ///< refused by a full ring
    overflowed, ///< a full ring had no room for its waits: they are refused, or have fallen due early
    shut_down, ///< waits were ended because a context was destroyed: theirs, or that of their handler
};

/// How many values timer_event_kind has.
inline constexpr std::size_t timer_event_kinds = 7;

namespace detail {

/// A reading of the clock: a tick, and how far that has come.
struct moment {
    time::tick tick;
    std::chrono::nanoseconds past;
};

/// What has happened in a shard since it was made. Only the first three ever fall.
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

/// What has happened to a timer.
struct happening {
    timer_event_kind what;
    const timer_core* timer;
    time::tick due;        ///< of the timer
    std::size_t waits = 1; ///< of the timer that it is about
    time::tick now{};      ///< if it is `due`
};

/// Notes what happens in one shard. But for what says otherwise, called under its lock.
class shard_observer {
public:
    /// @return whether a reader sleeps that has to be told: see tell().
    virtual bool note(const happening& h) noexcept = 0;

    /// A turn of the context begins, and a reader sleeps: shows what was noted to the readers.
    virtual void publish() noexcept = 0;

    /// A timer with a name may have moved to another address.
    virtual void moved(const timer_core& from, const timer_core& to) noexcept = 0;
    /// A timer with a name may be destroyed.
    virtual void gone(const timer_core& timer) noexcept = 0;

    /// Before what follows: the clock was read.
    virtual void now_is(const moment& now) noexcept = 0;
    /// Wakes the readers that sleep until something happens. Not under a lock.
    virtual void tell() = 0;

    /// Whether handlers are to be timed.
    [[nodiscard]] virtual bool times_handlers() const noexcept = 0;
    /// A handler took so long. Not under a lock.
    virtual void handler_took(std::chrono::nanoseconds time) noexcept = 0;
    /// Keeps it alive beyond its context.
    [[nodiscard]] virtual std::shared_ptr<shard_observer> share() noexcept = 0;

protected:
    ~shard_observer() = default;
};

/// Stands for a wait that has begun: completes it, and tells how long its handler has taken. There is one
/// in each thread, since a thread completes a wait before it takes another.
class timed_wait final : public wait_operation {
public:
    /// @param op has begun, and is direct.
    [[nodiscard]] static wait_operation& instead_of(wait_operation& op, shard_observer& observer) {
        static thread_local timed_wait instance;
        instance.op_ = &op;
        instance.observer_ = &observer;
        return instance;
    }

private:
    timed_wait() noexcept : wait_operation(&perform, true, kind::slotless) {}

    /// Tells, also if the handler throws.
    struct stopwatch {
        const std::shared_ptr<shard_observer> observer; // the handler may outlive its context
        const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

        ~stopwatch() { observer->handler_took(std::chrono::steady_clock::now() - begin); }
    };

    static void perform(wait_operation& base, action what, wait_host*) {
        auto& self = static_cast<timed_wait&>(base);
        wait_operation& op = *self.op_; // the handler may run the context, and this be used again
        if (what == action::destroy)
            return op.destroy();
        const stopwatch time{self.observer_->share()};
        op.complete();
    }

    wait_operation* op_ = nullptr;
    shard_observer* observer_ = nullptr;
};

/// A shard, seen by those who look.
class observed_shard {
public:
    using lock_type = optional_mutex<spin_mutex>;

    /// Its lock.
    [[nodiscard]] virtual lock_type& mutex() noexcept = 0;

    // --- under its lock -----------------------------------------------------------------------

    /// From now on `observer` is told what happens, if it is not null.
    /// @param watched of each event. @param named of timers that move or go.
    virtual void observe(shard_observer* observer, bool watched, bool named) noexcept = 0;
    [[nodiscard]] virtual shard_counts counts() const noexcept = 0;
    /// Adds the number of timers on each level to `levels`, which is long enough; nothing for a
    /// structure without levels.
    virtual void count_levels(std::size_t* levels) const noexcept = 0;

    // --- from any thread ----------------------------------------------------------------------

    [[nodiscard]] virtual std::size_t levels() const noexcept = 0;
    [[nodiscard]] virtual std::chrono::nanoseconds precision() const noexcept = 0;
    /// Reads the clock.
    [[nodiscard]] virtual moment read_clock() const = 0;

protected:
    ~observed_shard() = default;
};

/// Is told which shards a context has. Made for the first reader, name or measurement.
class context_watcher {
public:
    /// A shard is there, until it is given to remove(). Not under its lock.
    /// @throws std::bad_alloc with nothing changed.
    virtual void add(observed_shard& shard) = 0;
    /// A shard is closed. Not under its lock.
    virtual void remove(observed_shard& shard) noexcept = 0;

protected:
    ~context_watcher() = default;
};

} // namespace detail
} // namespace pawl

#endif // PAWL_SERVICE_OBSERVER_HPP
