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
///   An armed alarm that does not keep the context running is no reason to be busy, if the driver
///   stays set (work_context::driver_stays): it does so for the alarm, uncounted. The shard is busy
///   while the driver is being set, and once the alarm is due.
///
///   Between unlocking and queueing a runner, or setting the driver, the claimed runner or the pin
///   keeps the shard busy.
///
/// Invariants
///   - Busy invariant: whenever the lock is free, the shard is busy if and only if it has armed
///     waits that keep the context running, claimed runners or pins.
///   - Driver-set invariant: the driver is set for wake_ or earlier, or hurries; or a pinned thread
///     is about to set it; or a unit that is queued or running will collect. This holds for a quiet
///     shard, too, if the driver stays set (work_context::driver_stays): a start that is not earlier
///     need not set it. Otherwise the next start sets the driver.
///
/// Threads
///   Guarded by the shard's lock, except end_errand(), busy() and the fields that they access.
///
/// Cost
///   Plain words. end_errand() is one locked instruction.
#ifndef PAWL_DETAIL_SERVICE_WAKEUP_STATE_HPP
#define PAWL_DETAIL_SERVICE_WAKEUP_STATE_HPP

#include <pawl/time/tick.hpp>

#include <pawl/config.hpp>

#include <atomic>

namespace pawl::detail {

struct runner_token;

/// What the caller of a shard must do once the lock is released: queue runners, set the driver, and
/// one thing more.
struct [[nodiscard]] commitment {
    enum class sequel : unsigned char {
        nothing,
        end_errand, ///< call shard::end_errand(): until then the context must not end
        go_quiet,   ///< call wakeup::go_quiet(false), then shard::end_errand()
        give_back,  ///< the context counts work for the shard: call wakeup::go_quiet(true) only
        unpin,      ///< the driver is set, or cannot be: call shard::unpin()
        destroy,    ///< the last user has left: delete the shard
    };

    commitment() = default;
    commitment(commitment&&) = default;
    commitment& operator=(commitment&&) = default;

    [[nodiscard]] bool empty() const noexcept {
        return !runners && !arm && after == sequel::nothing;
    }

    runner_token* runners = nullptr; ///< queue these, linked by `next`
    time::tick wake = time::tick::never();
    // Bits, so that empty() tests both at once.
    bool arm : 1 = false; ///< set the driver for `wake`
    sequel after : 3 = sequel::nothing;
};

/// What the shard asks of its context, under its lock. Must not block or call user code.
class work_context {
public:
    /// Counts one unit of outstanding work.
    /// @return false if the context cannot be told of work.
    virtual bool work_started() noexcept = 0;

    /// Whether this thread may call wakeup::go_quiet() for a quiet shard; if not, a unit is sent.
    /// @param counted work is counted for the shard.
    virtual bool may_go_quiet_here(bool counted) noexcept = 0;

    /// Whether the driver stays set when a shard goes quiet.
    /// @param counted as above.
    virtual bool driver_stays(bool counted) noexcept = 0;

protected:
    ~work_context() = default;
};

/// The part of one shard.
class wakeup_state {
public:
    /// @param context null for a shard without a context.
    explicit wakeup_state(work_context* context) noexcept : context_(context) {}

    /// The driver or a unit will collect in the shard at `t`: a start that is not earlier need not set
    /// the driver.
    void will_collect_at(time::tick t) noexcept {
        wake_ = t;
        will_collect_ = true;
    }

    /// Nothing will collect in the shard: the next start must set the driver.
    void will_not_collect() noexcept {
        wake_ = time::tick::never();
        will_collect_ = false; // not even at never()
    }

    /// A wait is about to be armed, or a runner claimed.
    PAWL_DETAIL_ALWAYS_INLINE void begin() noexcept {
        if (!busy()) [[unlikely]]
            become_busy();
    }

    /// Whether a thread that arms a wait for `t` must set the driver. It does not rely on a pinned
    /// thread, which may fail to set it and then takes back only its own wait.
    [[nodiscard]] bool must_arm(time::tick t) const noexcept {
        return t < wake_ || !will_collect_ || pins_ != 0;
    }

    /// Whether the driver ought to have woken up before `now`: it may sleep by an older time.
    [[nodiscard]] bool passed(time::tick now) const noexcept {
        return wake_ < now && wake_ != time::tick{}; // tick 0: units go on
    }

    /// The caller must set the driver for `t`. It is in a unit, or is the only thread.
    void arm(time::tick t, commitment& out) noexcept {
        will_collect_at(t);
        out.arm = true;
        out.wake = t;
    }

    /// The same, for a thread that may be anywhere: it is pinned. That is work, so that setting the
    /// driver, which is none, does not give back the last work of the context.
    void arm_pinned(time::tick t, commitment& out) noexcept {
        begin();
        arm(t < wake_ ? t : wake_, out);
        if (out.after == commitment::sequel::unpin)
            return;
        PAWL_ASSERT(out.after == commitment::sequel::nothing);
        ++pins_;
        out.after = commitment::sequel::unpin;
    }

    /// Whether the driver stays set while the shard is quiet, and the context can be told of work.
    [[nodiscard]] bool driver_stays() const noexcept {
        return context_ && context_->driver_stays(true);
    }

    void unpin() noexcept {
        PAWL_ASSERT(pins_ != 0);
        --pins_;
    }

    /// Something may have ended.
    /// @param active waits are armed that keep the context at work, or runners claimed.
    /// @return true if the caller must claim a runner.
    [[nodiscard]] PAWL_DETAIL_ALWAYS_INLINE bool settle(bool active, commitment& out) noexcept {
        if (!active) [[unlikely]]
            return go_quiet(out);
        begin(); // a claimed runner may be for timers without waits
        return false;
    }

    /// The context can be told of work from now on.
    void count_work() noexcept {
        if (busy() && !counted_)
            counted_ = context_->work_started();
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

    /// The caller will use the context, which must not end before end_errand(). A pinned one is
    /// waited for in any case.
    void begin_errand(commitment& out) noexcept {
        if (out.after != commitment::sequel::nothing)
            return;
        ++errands_;
        out.after = commitment::sequel::end_errand;
    }
    /// release: pairs with the acquire in errands_done().
    void end_errand() noexcept { ended_.fetch_add(1, std::memory_order_release); }

    /// No thread still uses the context on behalf of this shard.
    [[nodiscard]] bool errands_done() const noexcept {
        return pins_ == 0 && errands_ == ended_.load(std::memory_order_acquire);
    }

    /// May be called without the lock.
    [[nodiscard]] bool busy() const noexcept { return busy_.load(std::memory_order_acquire); }

private:
    template <class>
    friend struct invariant_of; // of the tests

    PAWL_DETAIL_NOINLINE void become_busy() noexcept {
        counted_ = context_ && context_->work_started();
        busy_.store(true, std::memory_order_relaxed);
    }

    /// settle() of a shard that is not active.
    [[nodiscard]] PAWL_DETAIL_NOINLINE bool go_quiet(commitment& out) noexcept {
        if (pins_ != 0 || !busy())
            return false;
        if (context_ && !context_->may_go_quiet_here(counted_))
            return true;
        if (context_ && !context_->driver_stays(counted_))
            will_not_collect();
        // release: a thread that finds the shard quiet also sees what the driver was told.
        busy_.store(false, std::memory_order_release);
        PAWL_ASSERT(out.after == commitment::sequel::nothing);
        out.after = counted_ ? commitment::sequel::give_back : commitment::sequel::go_quiet;
        errands_ += !counted_;
        return false;
    }

    work_context* const context_;
    time::tick wake_ = time::tick::never(); ///< see the driver-set invariant
    bool will_collect_ = false;
    unsigned pins_ = 0; ///< threads that are about to set the driver
    std::atomic<bool> busy_{false};
    bool counted_ = false;           ///< the context counts work for it
    unsigned errands_ = 0;           ///< begun
    std::atomic<unsigned> ended_{0}; ///< of these
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_WAKEUP_STATE_HPP
