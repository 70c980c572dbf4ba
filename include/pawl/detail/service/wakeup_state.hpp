// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Why run() returns (P9): this part of each shard keeps run() from returning while timers need
///   it, and lets it return afterwards. wakeup.hpp is the part that all shards share.
///
/// Model
///   A shard is busy while it has armed waits, runners (queued or running), or pins; otherwise it
///   is quiet. While it is busy, the context counts one unit of outstanding work for it. The wait
///   of the driver, which wakes the shards, is uncounted.
///
///     event    from   to     effect                                 caller
///     begin    quiet  busy   work is counted                        a start, a re-arm, a collect that
///                                                                   stops halfway
///     pin      busy   busy   stays busy until the driver is set     the same, and any other collect,
///                                                                   if they must set the driver
///     settle   busy   busy   none: something is armed, claimed      the end of a wait, a runner
///                            or pinned                              or a pin
///     settle   busy   quiet  work is given back                     the same, in a unit
///     settle   busy   busy   a runner is claimed                    the same, elsewhere
///     end      busy   quiet  work is given back                     wakeup::shutdown()
///
///   Work is given back in a unit only. That unit itself is counted, so the context's count cannot
///   become zero there, which would stop the context for good, even if another wait is started
///   before run() is called. In any other thread it could, so a unit is queued to do it.
///
///   Between unlocking and queueing a runner, or setting the driver, the claimed runner or the pin
///   keeps the shard busy.
///
/// Invariants
///   - Busy invariant: whenever the lock is free, the shard is busy if and only if it has armed
///     waits, claimed runners or pins.
///   - Driver-set invariant: the driver is set for wake_ or earlier, or hurries; or a pinned thread
///     is about to set it; or a unit that is queued or running will collect. This holds for a quiet
///     shard, too, if the driver stays set (work_host::driver_stays): a start that is not earlier
///     need not set it. Otherwise the next start sets the driver.
///
/// Threads
///   Guarded by the shard's lock, except leave(), busy() and the fields that they access.
///
/// Cost
///   Plain words. leave() is one locked instruction.
#ifndef PAWL_DETAIL_SERVICE_WAKEUP_STATE_HPP
#define PAWL_DETAIL_SERVICE_WAKEUP_STATE_HPP

#include <pawl/detail/service/runner_token.hpp>

#include <pawl/time/tick.hpp>

#include <pawl/config.hpp>

#include <atomic>

namespace pawl::detail {

/// What the caller of a shard must do once the lock is released.
struct [[nodiscard]] commitment {
    commitment() = default;
    commitment(commitment&&) = default;
    commitment& operator=(commitment&&) = default;

    [[nodiscard]] bool empty() const noexcept { return !runners && !arm && !rest && !last; }

    runner_token* runners = nullptr; ///< queue these, linked by `next`
    time::tick wake = time::tick::never();
    // Bits, so that empty() tests all of them at once.
    bool arm : 1 = false;       ///< set the driver for `wake`
    bool rest : 1 = false;      ///< the shard is quiet: see wakeup::rest()
    bool last : 1 = false;      ///< the last user has left: delete the shard
    bool pinned : 1 = false;    ///< once the driver is set, or cannot be, call shard::unpin()
    bool give_back : 1 = false; ///< with `rest`: the context counts work for the shard
    bool entered : 1 = false;   ///< after `runners` and `rest`, call wakeup_state::leave()
};

/// What the shard asks of its context, under its lock. Must not block or call user code.
class work_host {
public:
    /// Counts one unit of outstanding work.
    /// @return false if the context cannot be told of work.
    virtual bool work_started() noexcept = 0;

    /// Whether this thread may call wakeup::rest() for a quiet shard; if not, a unit is sent.
    /// @param counted work is counted for the shard.
    virtual bool may_rest_here(bool counted) noexcept = 0;

    /// Whether the driver stays set when a shard goes quiet.
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

    /// The driver or a unit will look at the shard at `t`: a start that is not earlier need not set
    /// the driver.
    void will_look_at(time::tick t) noexcept {
        wake_ = t;
        looked_at_ = true;
    }

    /// Nothing will look at the shard: the next start must set the driver.
    void will_not_look() noexcept {
        wake_ = time::tick::never();
        looked_at_ = false; // not even at never()
    }

    /// A wait is about to be armed, or a runner claimed.
    PAWL_DETAIL_ALWAYS_INLINE void begin() noexcept {
        if (!busy()) [[unlikely]] {
            counted_ = host_ && host_->work_started();
            busy_.store(true, std::memory_order_relaxed);
        }
    }

    /// Whether a thread that arms a wait for `t` must set the driver. It does not rely on a pinned
    /// thread, which may fail to set it and then takes back only its own wait.
    [[nodiscard]] bool must_arm(time::tick t) const noexcept {
        return t < wake_ || !looked_at_ || pins_ != 0;
    }

    /// Whether the driver ought to have woken up before `now`: it may sleep by an older time.
    [[nodiscard]] bool passed(time::tick now) const noexcept {
        return wake_ < now && wake_ != time::tick{}; // tick 0: units go on
    }

    /// The caller must set the driver for `t`. It is in a unit, or is the only thread.
    void arm(time::tick t, commitment& out) noexcept {
        will_look_at(t);
        out.arm = true;
        out.wake = t;
    }

    /// The same, for a thread that may be anywhere: it is pinned.
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
    /// @return true if the caller must claim a runner.
    [[nodiscard]] bool settle(bool active, commitment& out) noexcept {
        if (active) [[likely]] {
            begin(); // a claimed runner may be for timers without waits
            return false;
        }
        if (pins_ != 0 || !busy())
            return false;
        if (host_ && !host_->may_rest_here(counted_))
            return true;
        if (host_ && !host_->driver_stays(counted_))
            will_not_look();
        // release: a thread that finds the shard quiet also sees what the driver was told.
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

    /// The shard is closed: nothing begins or ends any more, and runners are destroyed without
    /// being run.
    /// @return true if the context counts work for it, which the caller must give back.
    [[nodiscard]] bool end() noexcept {
        // relaxed: no other thread uses a context that shuts down.
        const bool give_back = busy() && counted_;
        busy_.store(false, std::memory_order_relaxed);
        return give_back;
    }

    /// The caller will use the context, which must not end before the caller has called leave().
    void enter(commitment& out) noexcept {
        entered_ += !out.entered;
        out.entered = true;
    }
    /// release: pairs with the acquire in all_have_left().
    void leave() noexcept { left_.fetch_add(1, std::memory_order_release); }

    /// No thread still uses the context on behalf of this shard.
    [[nodiscard]] bool all_have_left() const noexcept {
        return pins_ == 0 && entered_ == left_.load(std::memory_order_acquire);
    }

    /// May be called without the lock.
    [[nodiscard]] bool busy() const noexcept { return busy_.load(std::memory_order_acquire); }

    [[nodiscard]] bool pinned() const noexcept { return pins_ != 0; }

private:
    work_host* const host_;
    time::tick wake_ = time::tick::never(); ///< see the driver-set invariant
    bool looked_at_ = false;
    unsigned pins_ = 0; ///< threads that are about to set the driver
    std::atomic<bool> busy_{false};
    bool counted_ = false;          ///< the context counts work for it
    unsigned entered_ = 0;          ///< how often enter() was called
    std::atomic<unsigned> left_{0}; ///< and leave()
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_WAKEUP_STATE_HPP
