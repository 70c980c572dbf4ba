// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The data of a shard, and what happens to many of its timers at once: they become due, their
///   clock is set back, or all of them end. shard.hpp has the calls for single timers, the model
///   and the invariants.
///
/// Threads
///   Every public call locks. mutex_ guards everything in the shard: time structure, due queue,
///   runners, wake-up state, and the states and lists of all its waits. Exceptions: the two atomics
///   watched_ and turns_count_, wait_ledger::armed(), wakeup_state::busy() and leave().
///
/// Cost
///   At most batch_limit timers per lock acquisition (P6).
#ifndef PAWL_DETAIL_SERVICE_SHARD_BASE_HPP
#define PAWL_DETAIL_SERVICE_SHARD_BASE_HPP

#include <pawl/detail/service/filing.hpp>
#include <pawl/detail/service/observer.hpp>
#include <pawl/detail/service/optional_mutex.hpp>
#include <pawl/detail/service/runner_pool.hpp>
#include <pawl/detail/service/spin_mutex.hpp>
#include <pawl/detail/service/wait_ledger.hpp>
#include <pawl/detail/service/wakeup_state.hpp>

#include <pawl/time/backend.hpp>
#include <pawl/time/tick.hpp>

#include <pawl/config.hpp>
#include <pawl/options.hpp>

#include <boost/system/error_code.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

namespace pawl::detail {

template <time::backend Backend>
class shard_base {
public:
    using tick = time::tick;

    /// Held for a bounded time. No foreign code runs under it.
    using lock_type = optional_mutex<spin_mutex>;

    shard_base& operator=(shard_base&&) = delete;

    // --- expiry -------------------------------------------------------------------------------

    struct collected {
        bool claimed = false; ///< the caller has become a runner
        std::size_t fallen_due = 0;
        commitment todo{};
    };

    /// The kind of caller of collect().
    enum class looker {
        runner,      ///< in a unit; offers to become a runner
        lone_runner, ///< the same, if it has no units to queue
        covered,     ///< in a unit, or pinned in another shard
        outside,     ///< elsewhere; gets pinned if it must set the driver
    };

    /// Moves at most one batch of timers that are due at `now` into the due queue.
    /// @param set_backs what seen() returned before the clock was read.
    /// @param reading the reading, of a clock that may be set back.
    [[nodiscard]] collected collect(tick now, unsigned set_backs, looker who,
                                    clock_reading reading = latest) {
        collected out;
        const std::scoped_lock lock(mutex_);
        if (closed())
            return out;
        const std::size_t armed = waits_.armed();
        if (set_backs != set_backs_ || reading < files_.passed() || set_aside_) {
            // `now` was read before the clock was set back: look again. Or set_back() is filing
            // timers again, in any order: nothing is due, and the driver polls until that is done.
            look_at(tick{}, who, out.todo);
        } else {
            expire(now);
            if (backlog_)
                wakeup_.will_look_at(tick{}); // runners go on; no start needs to set the driver
            else if (waits_.armed() != 0)
                look_at(files_.backend().next_wake(), who, out.todo);
            else
                wakeup_.will_not_look();
        }
        out.fallen_due = armed - waits_.armed();
        if (who == looker::runner) {
            out.claimed = runners_.claim_one(waits_.due(), backlog_ || must_tell_);
        } else if (who == looker::lone_runner) {
            out.claimed = runners_.claim_lone(waits_.due(), backlog_ || must_tell_);
            if (!out.claimed && out.fallen_due != 0)
                runners_.claim_to_find_out(waits_.due(), out.todo.runners);
        }
        who == looker::outside ? settle_due(out.todo) : settle_now(out.todo);
        return out;
    }

    /// The clock was set back: the time structure has seen a later time than `now`, or an expiry
    /// that had passed lies ahead at `reading`. Files everything again, in batches.
    void set_back(tick now, clock_reading reading = latest) {
        auto all = std::make_unique<typename Backend::detached>(files_.backend());
        {
            const std::scoped_lock lock(mutex_);
            do {
                if (set_aside_ || (!(now < files_.backend().now()) && !(reading < files_.passed())))
                    return; // another thread has handled it
            } while (files_.make_room_to_detach(mutex_, users_));
            files_.set_back(now, reading, *all);
            ++set_backs_;
            set_aside_ = std::move(all);
        }
        in_batches(
            [&] {
                const bool more = refile_one();
                if (!more)
                    all = std::move(set_aside_);
                return more;
            },
            [&] { wakeup_.will_look_at(tick{}); }, // the caller collects next
            [] {});
    }

    struct sight {
        tick now;             ///< the position of the time structure
        clock_reading passed; ///< the latest expiry filed as passed
        unsigned set_backs;
    };

    [[nodiscard]] sight seen() noexcept {
        const std::scoped_lock lock(mutex_);
        return {files_.backend().now(), files_.passed(), set_backs_};
    }

    // --- all at once --------------------------------------------------------------------------

    /// Ends every armed wait with `ec`.
    /// @param carry_out called after each batch, unlocked, with a commitment.
    /// @param how whether limits count as reached, or as cancelled.
    /// @return how many.
    /// @throws std::bad_alloc with nothing changed.
    template <class Function>
    std::size_t expire_all(const boost::system::error_code& ec, Function carry_out,
                           wait_ending how = wait_ending::early) {
        typename Backend::detached all(files_.backend());
        {
            const std::scoped_lock lock(mutex_);
            do {
                // Otherwise set_back() would file them behind our back.
                for (std::size_t n = 1; refile_one(); ++n) {
                    if (n % batch_ == 0) {
                        const unlocked meanwhile(mutex_);
                        mutex_.give_way();
                    }
                }
            } while (files_.make_room_to_detach(mutex_, users_));
            files_.backend().detach_all(all);
        }
        std::size_t count = 0;
        commitment todo;
        in_batches(
            [&] {
                time::timer_node* node = nullptr;
                if (!files_.pop(all, node))
                    return false;
                if (node)
                    count += finish(timer_event_kind::cancelled, *node, ec, how);
                return true;
            },
            [&] { settle_due(todo); }, [&] { carry_out(std::exchange(todo, {})); });
        return count;
    }

    // --- the end ------------------------------------------------------------------------------

    /// From now on no wait starts or becomes due.
    void close() noexcept {
        const std::scoped_lock lock(mutex_);
        attention_ |= is_closed;
    }

    /// After close(): passes the remaining waits to `end`, unlocked, in chains linked by `next`.
    /// Excludes waits whose carriers are on their way to another context.
    /// @return true if there were any: `end` may have started more.
    template <class End>
    [[nodiscard]] bool drain(End end) {
        bool any = false;
        wait_operation* chain = nullptr;
        wait_operation** last = &chain;
        in_batches(
            [&] {
                if (waits_.due() == 0) {
                    time::timer_node* node = nullptr;
                    if (!files_.take_any(node))
                        return false;
                    if (node)
                        (void)finish(timer_event_kind::shut_down, *node, wait_ledger::aborted(),
                                     wait_ending::cancelled);
                } else if (wait_operation* const op = waits_.take_over()) {
                    if (const timer_core* const owner = op->owner())
                        note({timer_event_kind::shut_down, owner, owner->due});
                    *last = op;
                    last = &op->next;
                    op->next = nullptr;
                    any = true;
                }
                return true;
            },
            [] {},
            [&] {
                last = &chain;
                end(std::exchange(chain, nullptr));
            });
        return any;
    }

    /// Returns true to one thread, which must drain the shard.
    [[nodiscard]] bool begin_draining() noexcept {
        const std::scoped_lock lock(mutex_);
        return !std::exchange(draining_, true);
    }

    /// @return waits started after close(), linked by `next`, for the caller to destroy; nullptr if
    ///         there are none, and draining has ended.
    [[nodiscard]] wait_operation* end_draining() noexcept {
        const std::scoped_lock lock(mutex_);
        draining_ = late_ != nullptr;
        return std::exchange(late_, nullptr);
    }

    // --- observers ----------------------------------------------------------------------------

    [[nodiscard]] lock_type& mutex() noexcept { return mutex_; }

    /// observed_shard::observe(), under the lock.
    void observe(shard_observer* observer, bool watched, bool named) noexcept {
        observer_ = observer;
        attention_ = static_cast<unsigned char>(
            (attention_ & is_closed) | (watched ? is_watched : 0) | (named ? has_names : 0));
        watched_.store(watched, std::memory_order_relaxed); // a late reader is harmless
        must_tell_ = must_tell_ && watched;
        turns_count_.store(watched && waits_.due() != 0, std::memory_order_relaxed);
    }

    /// Whether events are noted. relaxed, without the lock: may be out of date.
    [[nodiscard]] bool watched() const noexcept { return watched_.load(std::memory_order_relaxed); }

    /// Whether a turn must call begin_turn(): a reader sleeps, or an expired wait may start.
    /// relaxed, without the lock: may be out of date.
    [[nodiscard]] bool turns_count() const noexcept {
        return turns_count_.load(std::memory_order_relaxed);
    }

    /// A turn begins at `now`. If readers sleep, publishes what was noted.
    /// @return the observer on which the caller, in a unit, must call tell(); null if no reader
    ///         sleeps.
    [[nodiscard]] shard_observer* begin_turn(const moment& now) noexcept {
        const std::scoped_lock lock(mutex_);
        if ((attention_ & is_watched) == 0 || closed())
            return nullptr;
        if (waits_.due() <= 1 && !backlog_) // the last one starts at `now`
            turns_count_.store(false, std::memory_order_relaxed);
        observer_->now_is(now);
        if (!std::exchange(must_tell_, false))
            return nullptr;
        observer_->publish();
        return observer_;
    }

    /// A carrier has arrived at `now`.
    void now_is(const moment& now) noexcept {
        const std::scoped_lock lock(mutex_);
        if ((attention_ & is_watched) != 0)
            observer_->now_is(now);
    }

    /// observed_shard::counts(), under the lock.
    [[nodiscard]] shard_counts counts() const noexcept {
        shard_counts c;
        c.pending = waits_.live();
        c.armed = waits_.armed();
        c.filed = files_.backend().size();
        c.started = waits_.started();
        c.moved = moved_;
        c.expired = waits_.expired();
        c.cancelled = c.started - c.pending - c.expired;
        c.overflowed = overflowed_;
        if constexpr (requires { files_.backend().level_moves(); })
            c.level_moves = files_.backend().level_moves();
        return c;
    }

    [[nodiscard]] std::size_t levels() const noexcept {
        if constexpr (requires { files_.backend().levels(); })
            return files_.backend().levels();
        else
            return 0;
    }
    /// observed_shard::count_levels(), under the lock.
    void count_levels([[maybe_unused]] std::size_t* levels) const noexcept {
        if constexpr (requires { files_.backend().levels(); })
            files_.backend().count_levels(levels);
    }

protected:
    shard_base(const options& o, tick now, runner_host* host, work_host* work)
        : mutex_(o.locking), files_(o, now), runners_(o.completions_per_turn, host), wakeup_(work),
          batch_(o.batch_limit) {
        if (batch_ > most_on_stack)
            found_ = std::make_unique<time::timer_node*[]>(batch_);
    }
    ~shard_base() = default;

    /// A timer was filed whose waits need the driver at `due`.
    void arm_for(tick due, commitment& out) noexcept {
        if (!wakeup_.must_arm(due))
            return;
        if (mutex_.held())
            wakeup_.arm_pinned(due, out);
        else
            wakeup_.arm(due, out); // there is no other thread
    }

    [[nodiscard]] bool active() const noexcept {
        return waits_.armed() != 0 || runners_.count() != 0;
    }

    /// Waits, a runner or a pin may have ended: claims runners, or lets the shard go quiet.
    /// @pre the shard is busy.
    PAWL_DETAIL_ALWAYS_INLINE void settle(commitment& out) noexcept {
        if (!settled()) [[unlikely]]
            settle_now(out);
    }

    /// Whether the shard may stay as it is.
    [[nodiscard]] PAWL_DETAIL_ALWAYS_INLINE bool settled() const noexcept {
        return attention_ == 0 && active() && !runners_.wants_more(waits_.due(), backlog_);
    }

    /// settle(), also for a shard that may be quiet.
    PAWL_DETAIL_NOINLINE void settle_now(commitment& out) noexcept {
        if (attention_ != 0) [[unlikely]] {
            if (closed())
                return;
            if (must_tell_) // units that are set aside come too late
                runners_.claim(0, true, out.runners);
        }
        runners_.claim(waits_.due(), backlog_, out.runners);
        if (wakeup_.settle(active(), out))
            runners_.claim_one_more(out.runners);
    }

    /// settle() for a thread that may be outside a unit.
    PAWL_DETAIL_ALWAYS_INLINE void settle_outside(commitment& out) noexcept {
        if (!settled()) [[unlikely]]
            settle_outside_now(out);
    }
    PAWL_DETAIL_NOINLINE void settle_outside_now(commitment& out) noexcept {
        settle_now(out);
        // Without a lock no other thread can end the context meanwhile. Work is given back in units
        // only.
        if ((out.runners || (out.rest && !out.give_back)) && mutex_.held())
            wakeup_.enter(out);
    }

    /// settle_outside() after waits have become due.
    void settle_due(commitment& out) noexcept {
        runners_.claim_if_held(waits_.due(), out.runners);
        settle_outside_now(out);
    }

    /// settle_outside() after waits were cancelled: nearly always there is a runner to claim.
    void settle_cancelled(commitment& out) noexcept {
        runners_.claim_if_held(waits_.due(), out.runners);
        if (attention_ == 0) [[likely]] {
            runners_.claim(waits_.due(), backlog_, out.runners);
            if (active()) [[likely]] { // if not, their carriers are on other executors
                if (out.runners && mutex_.held())
                    wakeup_.enter(out);
                return;
            }
        }
        settle_outside_now(out);
    }

    void drop_user(commitment& out) noexcept {
        PAWL_ASSERT(users_ != 0);
        if (--users_ == 0) [[unlikely]]
            out.last = true;
    }

    [[nodiscard]] bool closed() const noexcept { return (attention_ & is_closed) != 0; }

    /// Notes an event. If a reader must be woken, settle() sends a unit to do it.
    // Cold: most programs have no observers.
    PAWL_DETAIL_COLD void note(const happening& h) noexcept {
        if ((attention_ & is_watched) == 0 || h.waits == 0)
            return;
        must_tell_ |= observer_->note(h);
        if (must_tell_ || h.what == timer_event_kind::due || h.what == timer_event_kind::overflowed)
            turns_count_.store(true, std::memory_order_relaxed);
    }
    PAWL_DETAIL_COLD void note_move(const timer_core& from, const timer_core& to) noexcept {
        if ((attention_ & has_names) != 0)
            observer_->moved(from, to);
    }
    PAWL_DETAIL_COLD void note_end(const timer_core& timer) noexcept {
        if ((attention_ & has_names) != 0)
            observer_->gone(timer);
    }

    /// Ends the armed waits of a timer.
    /// @return how many.
    std::size_t finish(timer_event_kind what, time::timer_node& node,
                       const boost::system::error_code& ec, wait_ending how) noexcept {
        auto& timer = static_cast<timer_core&>(node);
        const std::size_t count = waits_.finish(timer, ec, how);
        if (attention_ != 0) [[unlikely]]
            note({what, &timer, timer.due, count});
        return count;
    }

    // Bits of attention_: reasons to leave the fast path. One test per call covers all.
    static constexpr unsigned char is_closed = 1;
    static constexpr unsigned char is_watched = 2;
    static constexpr unsigned char has_names = 4;

    lock_type mutex_;
    filing<Backend> files_;
    wait_ledger waits_;
    runner_pool runners_; ///< units that drain the due queue
    wakeup_state wakeup_;
    std::size_t users_ = 1;  ///< see the user invariant of shard.hpp; the service is the first
    bool backlog_ = false;   ///< expire() stopped at its limit
    bool must_tell_ = false; ///< a reader sleeps, and an event is waiting for it
    unsigned char attention_ = 0;
    std::atomic<bool> watched_{false}; ///< is_watched, readable without the lock
    std::atomic<bool> turns_count_{false};
    shard_observer* observer_ = nullptr;
    std::uint64_t moved_ = 0;        ///< waits moved by re-arms
    std::uint64_t overflowed_ = 0;   ///< waits that met a full ring
    wait_operation* late_ = nullptr; ///< started after close()

private:
    static constexpr clock_reading latest{
        ~std::uint64_t{0}}; ///< for clocks that are never set back

    /// Calls `step` until it returns false, at most batch_limit times per lock acquisition; after
    /// each batch `end`, still locked, then `after`, unlocked.
    template <class Step, class End, class After>
    void in_batches(Step step, End end, After after) {
        for (bool more = true; more;) {
            {
                const std::scoped_lock lock(mutex_);
                std::size_t n = 0;
                for (; more && n < batch_; ++n)
                    more = step();
                PAWL_ASSERT(n != 0);
                end();
            }
            after();
            mutex_.give_way();
        }
    }

    /// Files one timer that set_back() has detached.
    /// @return false if there is none.
    [[nodiscard]] bool refile_one() noexcept {
        if constexpr (time::rewindable_backend<Backend>) {
            time::timer_node* const node = set_aside_ ? set_aside_->pop() : nullptr;
            if (node)
                files_.refile(*node);
            return node != nullptr;
        } else {
            return false; // clocks of rings are never set back
        }
    }

    void look_at(tick t, looker who, commitment& out) noexcept {
        wakeup_.will_look_at(t);
        if (who == looker::outside && mutex_.held())
            wakeup_.arm_pinned(t, out);
        else
            wakeup_.arm(t, out);
    }

    void expire(tick now) noexcept {
        time::timer_node* few[most_on_stack];
        const std::span<time::timer_node*> found(found_ ? found_.get() : few, batch_);
        const auto [emitted, more] = files_.backend().expire(now, found);
        backlog_ = more;
        if (!more)
            files_.forget_passed();
        if (attention_ != 0) [[unlikely]]
            note_due(now, found.first(emitted));
        for (std::size_t i = 0; i < emitted; ++i) {
            // The timers are in the cache; their waits are scattered in memory.
            if (constexpr std::size_t ahead = 6; i + ahead < emitted)
                static_cast<timer_core*>(found[i + ahead])->prefetch_wait();
            waits_.fall_due(static_cast<timer_core&>(*found[i]));
        }
    }

    PAWL_DETAIL_COLD void note_due(tick now, std::span<time::timer_node*> found) noexcept {
        for (const time::timer_node* const node : found) {
            const auto& timer = static_cast<const timer_core&>(*node);
            note({timer_event_kind::due, &timer, timer.due, wait_ledger::armed_of(timer), now});
        }
    }

    /// 2 KB of pointers: the default of batch_limit.
    static constexpr std::size_t most_on_stack = 256;

    const std::size_t batch_;
    std::unique_ptr<time::timer_node*[]> found_; ///< the timers of one batch that is larger
    std::unique_ptr<typename Backend::detached> set_aside_; ///< what set_back() must still file
    unsigned set_backs_ = 0;
    bool draining_ = false;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_SHARD_BASE_HPP
