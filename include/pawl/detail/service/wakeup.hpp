// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   What the shards of a service share: the driver that wakes them, and the outstanding work of
///   the context (wakeup_state.hpp).
///
/// Model
///     dispatcher --arm, hurry, go_quiet--> driver --wake--> collect in all shards, set the driver
///
///   A context that can be told of work counts one unit per busy shard, and none for the driver. If
///   the type of the context is unknown, or has no suitable executor, the context counts the
///   driver's wait, as Asio does. There the driver is set while any shard is busy. If nothing is
///   armed, it is set for a moment from now, until the thread that has claimed a runner calls
///   hurry().
///
/// Threads
///   All members may be called from any thread.
#ifndef PAWL_DETAIL_SERVICE_WAKEUP_HPP
#define PAWL_DETAIL_SERVICE_WAKEUP_HPP

#include <pawl/options.hpp>

#include <pawl/detail/service/dispatcher.hpp>
#include <pawl/detail/service/driver.hpp>
#include <pawl/detail/service/native_executor.hpp>
#include <pawl/detail/service/observer.hpp>
#include <pawl/detail/service/wait_ledger.hpp>

#include <pawl/time/tick.hpp>

#include <pawl/config.hpp>

#include <boost/asio/execution_context.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

#if PAWL_DETAIL_POSIX
#include <unistd.h>
#else
#include <thread>
#endif

namespace pawl::detail {

/// The number of processors; 0 if unknown.
[[nodiscard]] inline unsigned processors_online() noexcept {
#if PAWL_DETAIL_POSIX
    const long n = ::sysconf(_SC_NPROCESSORS_ONLN); // <thread> is slow to compile
    return n > 0 ? static_cast<unsigned>(n) : 0;
#else
    return std::thread::hardware_concurrency();
#endif
}

template <class Clock, class WaitTraits>
class wakeup {
public:
    using dispatcher = detail::dispatcher<Clock, WaitTraits>;

    /// @param o outlives this.
    wakeup(boost::asio::execution_context& context, const options& o)
        : context_(context), options_(o), scale_(o.precision, dispatcher::origin_of_ticks()),
          driver_(context, *this, o.locking), bound_(o.max_pending),
          shards_(o.shards != 0 ? o.shards : std::clamp(processors_online(), 1U, most_shards)) {
        do
            shards_.push_back(new_shard_(*this));
        while (shards_.size() < o.shards);
    }
    wakeup& operator=(wakeup&&) = delete;

    // --- the shards ---------------------------------------------------------------------------

    /// The existing shards. May be called while another thread adds one.
    [[nodiscard]] const auto& shards() const noexcept { return shards_; }

    /// The shard for the `n`-th thread, asked for once: a new one, if the limit allows.
    dispatcher& shard_for(std::size_t n) {
        const std::scoped_lock lock(growth_);
        if (shards_.size() < shards_.most() && !closed_) {
            dispatcher* const added = new_shard_(*this);
            try {
                if (watcher_)
                    watcher_->add(*added);
            } catch (...) {
                added->leave();
                throw;
            }
            shards_.push_back(added);
        }
        return *shards_[n % shards_.size()];
    }

    /// See options::max_pending.
    [[nodiscard]] pending_bound& bound() noexcept { return bound_; }

    /// Of a scaled_backend. Who changes it calls collect() afterwards.
    [[nodiscard]] std::atomic<double>& pressure() noexcept { return pressure_; }

    // --- the context --------------------------------------------------------------------------

    /// A timer with executor `ex` was made. Its native executor, once found, serves the whole
    /// service.
    template <class Executor>
    void attach(const Executor& ex) {
        // relaxed: every thread finds the same constant.
        if (native_.load(std::memory_order_relaxed))
            return;
        const native_context* const native = find_native(ex, context_, natives_);
        if (!native)
            return;
        // A shard that is added later finds it, too.
        const std::scoped_lock lock(growth_);
        if (native_.exchange(native, std::memory_order_relaxed) || !native->work_started)
            return;
        // From here on a shard that becomes busy is counted. Next, count those that were busy; then
        // the driver need not be counted. It wakes up, and in each shard a collect sees that.
        for (dispatcher* s : shards_)
            s->state().count_work();
        counts_work_.store(true, std::memory_order_release);
        driver_.end_counted();
    }

    /// The operations on the context; nullptr if unknown.
    [[nodiscard]] const native_context* native() const noexcept {
        return native_.load(std::memory_order_relaxed);
    }

    /// See driver::stays_set.
    static constexpr bool driver_stays = detail::driver<Clock, WaitTraits, wakeup>::stays_set;

    // --- what shards ask for ------------------------------------------------------------------

    /// See driver::prepare().
    void prepare() { driver_.prepare(); }

    /// Sets the driver to wake all shards at `t` or earlier. The caller is in a unit, or pinned.
    /// @throws std::bad_alloc, unless it was prepared. The next start in any shard tries again.
    void arm(time::tick t) {
        try {
            driver_.arm(t, scale_.time_of(t));
        } catch (...) {
            for (dispatcher* s : shards_)
                s->state().arm_failed();
            throw;
        }
    }

    /// Wakes all shards as soon as the context can.
    void hurry() { driver_.hurry(); }

    /// The clock has passed the time for which the driver is set: wakes all shards if it still is.
    void hurry_if_set() { driver_.hurry(false); }

    /// A shard has gone quiet.
    /// @param give_back the context counts work for it; then the caller is in a unit.
    void go_quiet(bool give_back) {
        if (!give_back || !driver_stays)
            driver_.go_idle();
        if (give_back)
            native()->work_finished(context_);
    }

    /// Reads the clock and collects what is due in all shards. The caller is not in a unit.
    /// @return how many waits have become due.
    std::size_t collect() {
        round found;
        collect(collector::outside, found);
        return found.count;
    }

    /// A unit is about to end, or to run its last handler. Other threads may be on their way with a
    /// wait that the unit found pulled back. If the context counts only the driver, the driver must
    /// be set meanwhile.
    void unit_ends() {
        if (!counts_work_.load(std::memory_order_relaxed) && anybody_comes())
            driver_.linger();
    }

    /// A driver that came late has run a crowd until `t`.
    void crowd_runs(time::tick t) noexcept { crowd_ran_.store(t, std::memory_order_relaxed); }

    // --- observers ----------------------------------------------------------------------------

    /// Reports every shard to `watcher` from now on. Idempotent.
    void watch(const std::shared_ptr<context_watcher>& watcher) {
        const std::scoped_lock lock(growth_);
        if (watcher_ || closed_)
            return;
        for (dispatcher* s : shards_)
            watcher->add(*s);
        watcher_ = watcher;
    }

    /// How often the driver has woken the shards.
    [[nodiscard]] std::uint64_t wake_ups() const noexcept {
        return wake_ups_.load(std::memory_order_relaxed);
    }

    // --- the driver ---------------------------------------------------------------------------

    /// @param asked the tick for which it was set, or 0. A driver that comes later, to more waits than
    ///        are queued at once, finds a context that is behind. What it queues would come behind the
    ///        backlog, so it runs them itself for as long as it was late: work of others has had that
    ///        time. It is set again for now, which brings it back after the others, or into another
    ///        thread, or into a loop that a handler runs.
    void wake(time::tick asked) {
        // relaxed, no read-modify-write: at most one driver handler runs.
        wake_ups_.store(wake_ups() + 1, std::memory_order_relaxed);
        round found;
        const collector who = may_nest() ? collector::lone_candidate : collector::candidate;
        if constexpr (driver_stays) { // other clocks may have leapt
            // relaxed: a measure only.
            found.asked =
                asked != time::tick{} ? asked : crowd_ran_.load(std::memory_order_relaxed);
            crowd_runs(time::tick{});
        }
        try {
            collect(who, found);
        } catch (...) {
            if (found.claimed)
                found.claimed->give_up_turn();
            if (any_busy()) // try again: the clock may have thrown before all was collected
                driver_.hurry();
            throw;
        }
        unit_ends();
        // The driver is set again, and a unit is queued for every other wait. So this wake-up can
        // be a unit itself: a lone expiry costs one unit, as with Asio.
        if (!found.claimed)
            return;
        if constexpr (driver_stays) {
            if (found.crowd)
                return found.claimed->turn_late(
                    saturating_difference(scale_.time_of(found.now), scale_.time_of(found.asked)));
        }
        if (who == collector::lone_candidate && found.queued)
            found.claimed->give_up_turn(); // its handler may wait for what would come after it
        else
            found.claimed->turn();
    }

    /// The context that counts work for the shards, so that the driver's wait is uncounted; null if
    /// the context counts none.
    [[nodiscard]] const native_context* counted_by() const noexcept {
        // acquire: pairs with the release in attach(): the work of the shards is counted.
        return counts_work_.load(std::memory_order_acquire) ? native() : nullptr;
    }

    /// Whether a handler may run the context, in a loop of its own.
    [[nodiscard]] bool may_nest() const noexcept { return native() && native()->may_nest; }
    /// The same, and this thread runs it.
    [[nodiscard]] bool inside() const { return may_nest() && native()->runs_here(context_); }

    /// Whether any shard is busy.
    [[nodiscard]] bool any_busy() const noexcept {
        return std::any_of(shards_.begin(), shards_.end(),
                           [](dispatcher* s) { return s->state().busy(); });
    }

    /// The context shuts down.
    void shutdown() {
        {
            const std::scoped_lock lock(growth_);
            closed_ = true;
        }
        for (dispatcher* s : shards_)
            s->shutdown(options_.on_shutdown);
        if (watcher_) {
            for (dispatcher* s : shards_)
                watcher_->remove(*s);
        }
        driver_.shutdown();
        // Last: the count must not become zero before the driver's wait is counted.
        for (dispatcher* s : shards_) {
            if (s->state().end_work())
                native()->work_finished(context_);
        }
    }

private:
    using driver = detail::driver<Clock, WaitTraits, wakeup>;
    using collector = typename dispatcher::collector;

    /// A collect in all shards.
    struct round {
        std::size_t count = 0;
        dispatcher* claimed = nullptr; ///< the caller must run a turn of it
        bool queued = false;           ///< units run what is due in other shards
        bool crowd = false;            ///< shard::findings::crowd
        time::tick now{};
        time::tick asked{}; ///< of the driver; 0 if unknown
    };

    /// Collects what is due in all shards, then sets the driver once, for the earliest. Setting it
    /// shard by shard would cancel it repeatedly and cause empty wake-ups.
    /// @throws std::bad_alloc if a shard lacks memory to follow its clock; the others have been
    ///         served.
    void collect(collector who, round& out) {
        const time::tick now = out.now = scale_.floor(Clock::now());
        const std::size_t count = shards_.size();
        std::size_t next = 0;
        if (out.asked != time::tick{} && out.asked < now) {
            who = collector::late_candidate;
            next = count == 1 ? 0 : wake_ups() % count; // each shard is the first one in its turn
        }
        dispatcher* pinned = nullptr;
        bool needed = false;
        time::tick earliest = time::tick::never();
        std::exception_ptr failure;
        for (std::size_t n = 0; n != count && !out.crowd; ++n) {
            dispatcher* const s = shards_[next];
            next = next + 1 == count ? 0 : next + 1;
            try {
                auto found = s->collect(now, who);
                if (found.claimed && !out.claimed) {
                    out.claimed = s;
                    out.crowd = found.crowd;
                } else {
                    if (found.claimed)
                        s->give_up_turn();
                    out.queued = out.queued || found.fallen_due != 0;
                }
                if (found.todo.after == commitment::sequel::unpin)
                    pinned = s;
                // A lone runner finds out in each shard whether its runners are held.
                if (who == collector::late_candidate)
                    who = collector::lone_candidate; // units may have been queued for this shard
                else if ((out.claimed && who != collector::lone_candidate) || pinned)
                    who = collector::covered;
                out.count += found.fallen_due;
                needed = needed || found.todo.arm;
                earliest = std::min(earliest, found.todo.wake);
            } catch (...) {
                failure = std::current_exception();
            }
        }
        try {
            if (needed || out.crowd)
                arm(out.crowd ? time::tick{} : earliest);
        } catch (...) {
            failure = std::current_exception();
        }
        if (pinned)
            pinned->unpin();
        if (failure)
            std::rethrow_exception(failure);
    }

    /// Whether threads are on their way to the driver, or to the queue of the context.
    [[nodiscard]] bool anybody_comes() const {
        return !std::all_of(shards_.begin(), shards_.end(),
                            [](dispatcher* s) { return s->state().errands_done(); });
    }

    /// A list that other threads may walk while it grows.
    class shard_list {
    public:
        explicit shard_list(std::size_t most) : shards_(new dispatcher*[most]), most_(most) {}
        ~shard_list() {
            for (dispatcher* s : *this)
                s->leave();
        }

        void push_back(dispatcher* s) noexcept {
            const std::size_t n = size();
            shards_[n] = s;
            size_.store(n + 1, std::memory_order_release);
        }

        [[nodiscard]] std::size_t most() const noexcept { return most_; }
        /// acquire: pairs with push_back().
        [[nodiscard]] std::size_t size() const noexcept {
            return size_.load(std::memory_order_acquire);
        }
        [[nodiscard]] dispatcher* operator[](std::size_t i) const noexcept { return shards_[i]; }
        [[nodiscard]] dispatcher* const* begin() const noexcept { return shards_.get(); }
        [[nodiscard]] dispatcher* const* end() const noexcept { return begin() + size(); }

    private:
        const std::unique_ptr<dispatcher*[]> shards_;
        const std::size_t most_;
        std::atomic<std::size_t> size_{0};
    };

    // Code of the module that made the service: see driver::start_.
    dispatcher* (*const new_shard_)(wakeup&) = [](wakeup& w) {
        return new dispatcher(w.context_, w, w.options_, w.scale_);
    };
    const native_contexts natives_;

    boost::asio::execution_context& context_;
    const options& options_;
    const time::tick_scale<Clock> scale_; ///< the same for each shard
    std::atomic<const native_context*> native_{nullptr};
    std::atomic<bool> counts_work_{false}; ///< per busy shard, not for the driver
    driver driver_;
    pending_bound bound_;
    std::atomic<double> pressure_{0}; ///< of a scaled_backend
    shard_list shards_;
    std::mutex growth_; ///< held while a shard is added, or native_ is set
    bool closed_ = false;
    std::shared_ptr<context_watcher> watcher_; ///< null while nothing is watched
    std::atomic<std::uint64_t> wake_ups_{0};
    std::atomic<time::tick> crowd_ran_{}; ///< see crowd_runs()
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_WAKEUP_HPP
