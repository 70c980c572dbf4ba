// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   What keeps a context at work for its timers, and lets it go (P9): the part of it that each shard
///   has, and every change of that. wakeup.hpp is the part that they share.
///
/// Model
///   A shard is busy while it has armed waits, or runners that are queued or run, or pins; else it
///   is quiet. While it is busy, the context counts one unit of outstanding work for it. The wait of
///   the driver, which wakes the shards, counts for nothing.
///
///     event    from   to     effect                                who
///     begin    quiet  busy   work is counted                       a start, a re-arm, a look at the
///                                                                  clock that stops halfway
///     pin      busy   busy   keeps it busy until the driver is set  those two, and a look at the
///                                                                  clock, if they have to set it
///     settle   busy   busy   none: something is armed, claimed,    whatever ends a wait, a runner
///                            or pinned                             or a pin
///     settle   busy   quiet  work is given back                    the same, in a unit
///     settle   busy   busy   a runner is claimed                   the same, elsewhere
///     end      busy   quiet  work is given back                    wakeup::shutdown()
///
///   The unit in which work is given back is counted itself. So the count of the context cannot
///   become zero there, which would stop the context: for good, even if the next wait is started
///   before run() is called. Elsewhere it might; therefore a unit is sent to do it.
///
///   Between the lock and the queueing of a runner, or the setting of the driver, nothing has to be
///   looked after: the claimed runner, or the pin, keeps the shard busy.
///
/// Invariants
///   I1  Whenever the lock is free, the shard is busy if and only if waits are armed, runners claimed
///       or pins there are.
///   I2  The driver is set for wake or earlier, or hurries; or a thread that is pinned is going to set
///       it; or a unit that is queued or runs is going to collect. That holds for a quiet shard, too, if
///       the driver stays set (work_host::driver_stays): a start that is not earlier need not ask for
///       it. Otherwise its next start sets the driver.
///
/// Threads
///   Guarded by the lock of the shard, but for leave(), busy() and what they change.
///
/// Cost
///   Plain words. leave() is one locked instruction.
#ifndef PAWL_SERVICE_WAKEUP_STATE_HPP
#define PAWL_SERVICE_WAKEUP_STATE_HPP

#include <pawl/service/runner_token.hpp>

#include <pawl/time/tick.hpp>

#include <pawl/config.hpp>

#include <atomic>
#include <cstddef>

namespace pawl::detail {

/// What a call of a shard leaves to be done when its lock has been released.
struct [[nodiscard]] commitment {
    commitment() = default;
    commitment(commitment&&) = default;
    commitment& operator=(commitment&&) = default;

    [[nodiscard]] bool empty() const noexcept { return !runners && !arm && !rest && !last; }

    runner_token* runners = nullptr; ///< queue these, linked by `next`
    time::tick wake = time::tick::never();
    bool arm = false;       ///< have the driver wake the shards at `wake` or earlier
    bool pinned = false;    ///< after that call shard::unpin(), also if it has failed
    bool rest = false;      ///< the shard is quiet: see wakeup::rest()
    bool give_back = false; ///< and the context counts work for it
    bool entered = false;   ///< after all of that, call wakeup_state::leave()
    bool last = false;      ///< nobody uses the shard any more: delete it
};

/// What the shard asks under its lock. None of it blocks, or calls anything of a user's.
class work_host {
public:
    /// Counts one unit of outstanding work.
    /// @return false if the context cannot be told of work.
    virtual bool work_started() noexcept = 0;

    /// Whether a shard that is quiet may be left to wakeup::rest() in this thread, here and now; if
    /// not, a unit has to be sent.
    /// @param counted work is counted for it.
    virtual bool may_rest_here(bool counted) noexcept = 0;

    /// The driver stays set when a shard goes quiet.
    /// @param counted as above.
    virtual bool driver_stays(bool counted) noexcept = 0;

protected:
    ~work_host() = default;
};

/// The part of one shard.
class wakeup_state {
public:
    /// @param host null for a shard without a context.
    explicit wakeup_state(work_host* host) noexcept : host_(host) {}

    /// The driver, or a unit, sees to the shard at `t`: nobody need set it for what is not earlier.
    void will_look_at(time::tick t) noexcept {
        wake_ = t;
        looked_at_ = true;
    }

    /// Nobody looks: the next start has to set the driver.
    void will_not_look() noexcept {
        wake_ = time::tick::never();
        looked_at_ = false; // not even then
    }

    /// A wait is armed, or a runner claimed.
    PAWL_DETAIL_ALWAYS_INLINE void begin() noexcept {
        if (!busy()) [[unlikely]] {
            counted_ = host_ && host_->work_started();
            busy_.store(true, std::memory_order_relaxed);
        }
    }

    /// Whether somebody who arms a wait that is due at `t` has to set the driver. A thread that is
    /// about to set it may fail, and takes back only its own wait: it is not relied on.
    [[nodiscard]] bool must_arm(time::tick t) const noexcept {
        return t < wake_ || !looked_at_ || pins_ != 0;
    }

    /// The driver has to be set for `t`, by a thread in a unit, or by the only thread.
    void arm(time::tick t, commitment& out) noexcept {
        will_look_at(t);
        out.arm = true;
        out.wake = t;
    }

    /// The same, for a thread that may be anywhere.
    void arm_pinned(time::tick t, commitment& out) noexcept {
        arm(t < wake_ ? t : wake_, out);
        if (!out.pinned)
            ++pins_;
        out.pinned = true;
    }

    void unpin() noexcept {
        PAWL_ASSERT(pins_ != 0);
        --pins_;
    }

    /// Something may have ended.
    /// @param active waits are armed, or runners claimed.
    /// @return true if a runner has to be claimed.
    [[nodiscard]] bool settle(bool active, commitment& out) noexcept {
        if (active) [[likely]] {
            begin(); // a runner may have been claimed for timers whose waits are gone
            return false;
        }
        if (pins_ != 0 || !busy())
            return false;
        if (host_ && !host_->may_rest_here(counted_))
            return true;
        if (host_ && !host_->driver_stays(counted_))
            will_not_look();
        // release: who finds it quiet finds what it was told of the driver, too.
        busy_.store(false, std::memory_order_release);
        out.rest = true;
        out.give_back = counted_;
        return false;
    }

    /// The context can be told of work from now on.
    void count() noexcept {
        if (busy() && !counted_)
            counted_ = host_->work_started();
    }

    /// The shard is closed: nothing begins or ends here any more, and the runners are destroyed unrun.
    /// @return true if the context counts work for it, which has to be given back.
    [[nodiscard]] bool end() noexcept {
        // relaxed: no other thread uses a context that shuts down.
        const bool give_back = busy() && counted_;
        busy_.store(false, std::memory_order_relaxed);
        return give_back;
    }

    /// The caller is going to use the context, which must not end before it has called leave().
    void enter(commitment& out) noexcept {
        entered_ += !out.entered;
        out.entered = true;
    }
    /// release: whoever finds everybody gone sees what they did.
    void leave() noexcept { left_.fetch_add(1, std::memory_order_release); }

    /// Nobody uses the context because of what this shard has asked for.
    [[nodiscard]] bool all_have_left() const noexcept {
        return pins_ == 0 && entered_ == left_.load(std::memory_order_acquire);
    }

    /// May be asked without the lock.
    [[nodiscard]] bool busy() const noexcept { return busy_.load(std::memory_order_acquire); }

    [[nodiscard]] bool pinned() const noexcept { return pins_ != 0; }

private:
    work_host* const host_;
    time::tick wake_ = time::tick::never(); ///< I2
    bool looked_at_ = false;
    unsigned pins_ = 0; ///< threads that are about to set the driver
    std::atomic<bool> busy_{false};
    bool counted_ = false;          ///< the context counts work for it
    unsigned entered_ = 0;          ///< how often enter() was called
    std::atomic<unsigned> left_{0}; ///< and leave()
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_WAKEUP_STATE_HPP
