// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The interface between a shard and its observers (event readers and statistics): counts, which
///   a shard always keeps; and, while it is watched, each event of a timer. Interfaces, and what a
///   shard keeps for them: unused features cost no compile time.
///
/// Model
///     timer_service --observed_shards()--> observed_shard --note--> shard_observer, one per shard
///          ^                                                             ^
///     service_registry <--watch-- context_watcher --makes----------------+
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

#include <pawl/config.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

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
    std::uint64_t refused = 0;     ///< waits and armings beyond options::max_pending
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

/// What is measured of a turn while the shard is watched. Of the thread that runs it.
struct turn_watch {
    std::chrono::steady_clock::time_point began{}; ///< zero: not known
    std::uint64_t handlers = 0;                    ///< that have returned
};

/// Receives the events of one shard. Called under its lock, except where noted.
class shard_observer {
public:
    /// @param now start of the turn, or arrival of the carrier.
    /// @return whether a sleeping reader must be woken: see tell().
    virtual bool note(const happening& h, const moment& now) noexcept = 0;

    /// A turn of the context begins while a reader sleeps: publishes the noted events.
    virtual void publish() noexcept = 0;

    /// A named timer may have moved to another address; if `to` is null, it is about to be
    /// destroyed.
    virtual void moved(const timer_core& from, const timer_core* to) noexcept = 0;

    /// Wakes sleeping readers. Not called under a lock.
    virtual void tell() = 0;

    /// Completes a wait that has begun and is direct. May measure its handler. Not called under a
    /// lock.
    /// @param mutex of the shard.
    virtual void complete(wait_operation& op, optional_mutex<spin_mutex>& mutex,
                          turn_watch& turn) = 0;

protected:
    ~shard_observer() = default;
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
    /// @param now for a turn that began before.
    virtual void observe(shard_observer* observer, bool watched, bool named,
                         const moment& now) noexcept = 0;
    [[nodiscard]] virtual shard_counts counts() const noexcept = 0;
    /// Adds the number of timers on each level to `levels`, unless that is null.
    /// @return how many levels there are: always the same. 0 for a structure without levels.
    virtual std::size_t count_levels(std::size_t* levels) const noexcept = 0;

    // --- from any thread ----------------------------------------------------------------------

    [[nodiscard]] virtual std::chrono::nanoseconds precision() const noexcept = 0;
    /// Reads the clock. Zero if that throws.
    [[nodiscard]] virtual moment read_clock() const noexcept = 0;

protected:
    ~observed_shard() = default;
};

/// Why a call of a shard leaves the fast path: the shard is closed, or its observer wants to know;
/// and, for a call that changes the number of waits, that it is bounded. One test per call covers
/// all reasons. Guarded by the shard's lock, except where noted.
class attention {
public:
    /// Whether there is any reason. If not, no function below need be called.
    [[nodiscard]] bool needed() const noexcept { return reasons_ != 0; }
    /// The same, if the call changes the number of waits.
    [[nodiscard]] bool needed_to_count() const noexcept { return to_count_ != 0; }

    [[nodiscard]] bool closed() const noexcept { return (reasons_ & is_closed) != 0; }
    void close() noexcept {
        reasons_ |= is_closed;
        to_count_ |= is_closed;
    }

    /// See options::max_pending.
    void bound() noexcept { to_count_ |= is_bounded; }

    /// observed_shard::observe()
    /// @param due there are entries in the due queue.
    void observe(shard_observer* observer, bool watched, bool named, const moment& now,
                 bool due) noexcept {
        observer_ = observer;
        now_ = now;
        reasons_ = static_cast<unsigned char>((reasons_ & is_closed) | (watched ? is_watched : 0) |
                                              (named ? has_names : 0));
        to_count_ = static_cast<unsigned char>((to_count_ & is_bounded) | reasons_);
        watched_.store(watched, std::memory_order_relaxed); // a late reader is harmless
        must_tell_ = must_tell_ && watched;
        turn_is_news_.store(must_tell_ || (watched && due), std::memory_order_relaxed);
    }

    /// Whether events are noted. relaxed, without the lock: may be out of date.
    [[nodiscard]] bool watched() const noexcept { return watched_.load(std::memory_order_relaxed); }

    /// Whether a turn must call begin_turn(): a reader sleeps, or an expired wait may start.
    /// relaxed, without the lock: may be out of date.
    [[nodiscard]] bool turn_is_news() const noexcept {
        return turn_is_news_.load(std::memory_order_relaxed);
    }

    /// A reader sleeps, and an event is waiting for it: a unit must come.
    [[nodiscard]] bool must_tell() const noexcept { return must_tell_; }

    // Cold: most programs have no observers.

    PAWL_DETAIL_COLD void note(const happening& h) noexcept {
        if ((reasons_ & is_watched) == 0 || h.waits == 0)
            return;
        must_tell_ |= observer_->note(h, now_);
        if (must_tell_ || h.what == timer_event_kind::due || h.what == timer_event_kind::overflowed)
            turn_is_news_.store(true, std::memory_order_relaxed);
    }
    /// @param to null: it is being destroyed.
    PAWL_DETAIL_COLD void note_move(const timer_core& from, const timer_core* to) noexcept {
        if ((reasons_ & has_names) != 0)
            observer_->moved(from, to);
    }

    /// The time of what is noted next.
    void now_is(const moment& now) noexcept { now_ = now; }

    /// A turn begins at `now`. If readers sleep, publishes what was noted.
    /// @param last it takes the last entry: later turns are no news.
    /// @return as shard::begin_turn()
    [[nodiscard]] shard_observer* begin_turn(const moment& now, bool last) noexcept {
        if ((reasons_ & is_watched) == 0 || closed())
            return nullptr;
        if (last)
            turn_is_news_.store(false, std::memory_order_relaxed);
        now_ = now;
        if (!std::exchange(must_tell_, false))
            return nullptr;
        observer_->publish();
        return observer_;
    }

    /// A turn has taken `op`, or nothing.
    /// @return the observer, if it must complete the wait.
    [[nodiscard]] PAWL_DETAIL_COLD shard_observer* note_start(const wait_operation* op) noexcept {
        if (!op || (reasons_ & is_watched) == 0 || op->state.phase() != wait_phase::started)
            return nullptr;
        if (op->owner())
            note({timer_event_kind::started, op->owner(), op->owner()->due});
        return observer_;
    }

private:
    static constexpr unsigned char is_closed = 1;
    static constexpr unsigned char is_watched = 2;
    static constexpr unsigned char has_names = 4;
    static constexpr unsigned char is_bounded = 8;

    unsigned char reasons_ = 0;
    unsigned char to_count_ = 0; ///< the same, and is_bounded
    bool must_tell_ = false;
    std::atomic<bool> watched_{false}; ///< is_watched, readable without the lock
    std::atomic<bool> turn_is_news_{false};
    shard_observer* observer_ = nullptr;
    moment now_{};
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
