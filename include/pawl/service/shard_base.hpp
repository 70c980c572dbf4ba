// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   What happens to many timers of a shard at once, a batch for each time that the lock is held: they
///   fall due, their clock is set back, all of them end. And the parts of a shard, which shard.hpp
///   has for single timers.
///
/// Model
///   See shard.hpp.
///
/// Threads
///   Every public call locks.
///
/// Cost
///   At most batch_limit timers for each time that the lock is held (P6).
#ifndef PAWL_SERVICE_SHARD_BASE_HPP
#define PAWL_SERVICE_SHARD_BASE_HPP

#include <pawl/service/filing.hpp>
#include <pawl/service/observer.hpp>
#include <pawl/service/optional_mutex.hpp>
#include <pawl/service/options.hpp>
#include <pawl/service/runner_pool.hpp>
#include <pawl/service/spin_mutex.hpp>
#include <pawl/service/wait_ledger.hpp>
#include <pawl/service/wakeup_state.hpp>

#include <pawl/time/fixed_array.hpp>
#include <pawl/time/tick.hpp>

#include <pawl/config.hpp>

#include <boost/system/error_code.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace pawl::detail {

template <any_backend Backend>
class shard_base {
public:
    using tick = time::tick;

    /// Held for a bounded time, and over nothing foreign.
    using lock_type = optional_mutex<spin_mutex>;

    shard_base(const shard_base&) = delete;
    shard_base& operator=(const shard_base&) = delete;

    // --- expiry -------------------------------------------------------------------------------

    struct collected {
        bool claimed = false; ///< the caller is a runner
        std::size_t fallen_due = 0;
        commitment todo{};
    };

    /// Who looks at the clock.
    enum class looker {
        runner,  ///< a unit that offers to take() what it finds
        covered, ///< a unit, or a thread that is pinned in another shard
        outside, ///< is pinned, if it has to set the driver
    };

    /// Moves at most one batch of timers that are due at `now` into the due queue.
    /// @param set_backs what seen() said before the clock was read.
    /// @param reading what was read, of a clock that may be set back.
    [[nodiscard]] collected collect(tick now, unsigned set_backs, looker who,
                                    clock_reading reading = latest) {
        collected out;
        const std::scoped_lock lock(mutex_);
        if (closed())
            return out;
        const std::size_t armed = waits_.armed();
        if (set_backs != set_backs_ || reading < files_.passed() || set_aside_) {
            // `now` was read before the clock was set back: look again. Or set_back() files timers
            // anew, in any order: nothing is due, and the driver comes again and again meanwhile.
            look_at(tick{}, who, out.todo);
        } else {
            expire(now);
            if (backlog_)
                wakeup_.will_look_at(tick{}); // runners see to it; no start needs to set the driver
            else if (waits_.armed() != 0)
                look_at(files_.backend().next_wake(), who, out.todo);
            else
                wakeup_.will_not_look();
        }
        out.claimed =
            who == looker::runner && runners_.claim_one(waits_.due(), backlog_ || must_tell_);
        who == looker::outside ? settle_outside(out.todo) : settle(out.todo);
        out.fallen_due = armed - waits_.armed();
        return out;
    }

    /// The time structure has seen a later time than `now`, or what had passed has not passed at
    /// `reading`: the clock was set back. Files everything anew, in steps.
    void set_back(tick now, clock_reading reading = latest) {
        auto all = std::make_unique<typename Backend::detached>(files_.backend());
        {
            const std::scoped_lock lock(mutex_);
            if (set_aside_ || (!(now < files_.backend().now()) && !(reading < files_.passed())))
                return; // another thread has noticed
            files_.set_back(now, reading, *all);
            ++set_backs_;
            set_aside_ = std::move(all);
        }
        in_batches(
            [&] {
                time::timer_node* const node = set_aside_->pop();
                if (node)
                    files_.refile(*node);
                else
                    all = std::move(set_aside_);
                return node != nullptr;
            },
            [&] { wakeup_.will_look_at(tick{}); }, // the caller collects next, which sets it right
            [] {});
    }

    struct sight {
        tick now;             ///< the latest time that the time structure has seen
        clock_reading passed; ///< the latest expiry of which it was told that it has passed
        unsigned set_backs = 0;
    };

    [[nodiscard]] sight seen() noexcept {
        const std::scoped_lock lock(mutex_);
        return {files_.backend().now(), files_.passed(), set_backs_};
    }

    // --- all at once --------------------------------------------------------------------------

    /// Ends every armed wait with `ec`.
    /// @param carry_out called after each batch, unlocked, with a commitment. @param how limits are
    ///                  reached, or called off.
    /// @return how many.
    /// @throws std::bad_alloc with nothing changed.
    template <class Function>
    std::size_t expire_all(const boost::system::error_code& ec, Function carry_out,
                           wait_ending how = wait_ending::early) {
        typename Backend::detached all(files_.backend());
        std::size_t count = 0;
        commitment todo;
        bool detach = true;
        bool again = false; // set_back() files timers behind our back
        bool through = false;
        in_batches(
            [&] {
                if (std::exchange(detach, false)) {
                    files_.backend().detach_all(all);
                    again = through = false;
                }
                again = again || set_aside_ != nullptr;
                time::timer_node* node = nullptr;
                if (through ||
                    !(files_.pop(all, node) || (set_aside_ && files_.pop(*set_aside_, node))))
                    through = true;
                else if (node)
                    count += finish(timer_event_kind::cancelled, *node, ec, how);
                return again || !through;
            },
            [&] {
                detach = through;
                settle_outside(todo);
            },
            [&] { carry_out(std::exchange(todo, {})); });
        return count;
    }

    // --- the end ------------------------------------------------------------------------------

    /// From now on nothing starts and nothing falls due.
    void close() noexcept {
        const std::scoped_lock lock(mutex_);
        attention_ |= is_closed;
    }

    /// After close(): hands the waits that nobody will run to `end`, unlocked, in chains linked by
    /// `next`. Waits whose carriers are on their way to another context are not among them.
    /// @return true if there were any: `end` may have made more.
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

    /// Whoever gets true drains the shard; the others leave it to that one.
    [[nodiscard]] bool begin_draining() noexcept {
        const std::scoped_lock lock(mutex_);
        return !std::exchange(draining_, true);
    }

    /// @return waits that were started after close(), linked by `next`, for the caller to destroy;
    ///         nullptr if there are none, and draining has ended.
    [[nodiscard]] wait_operation* end_draining() noexcept {
        const std::scoped_lock lock(mutex_);
        draining_ = late_ != nullptr;
        return std::exchange(late_, nullptr);
    }

    // --- those who look -----------------------------------------------------------------------

    [[nodiscard]] lock_type& mutex() noexcept { return mutex_; }

    /// observed_shard::observe(), under the lock.
    void observe(shard_observer* observer, bool watched, bool named) noexcept {
        observer_ = observer;
        attention_ = static_cast<unsigned char>(
            (attention_ & is_closed) | (watched ? is_watched : 0) | (named ? has_names : 0));
        watched_.store(watched, std::memory_order_relaxed); // whoever sees it late looks late
        must_tell_ = must_tell_ && watched;
        turns_count_.store(watched && waits_.due() != 0, std::memory_order_relaxed);
    }

    /// Whether each event is noted. relaxed, and without the lock: it may be out of date.
    [[nodiscard]] bool watched() const noexcept { return watched_.load(std::memory_order_relaxed); }

    /// Whether a turn has to call begin_turn(): a reader sleeps, or a wait that has expired may start.
    /// relaxed, and without the lock: as watched().
    [[nodiscard]] bool turns_count() const noexcept {
        return turns_count_.load(std::memory_order_relaxed);
    }

    /// A turn begins at `now`: if readers sleep, shows them what was noted.
    /// @return null, unless some sleep: then the caller, which is in a unit, has it tell() them.
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

    /// A carrier has come at `now`.
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
          batch_(o.batch_limit), found_(o.batch_limit) {}
    ~shard_base() = default;

    /// A timer was filed whose waits need the driver at `due`.
    void arm_for(tick due, commitment& out) noexcept {
        if (!wakeup_.must_arm(due))
            return;
        if (mutex_.held())
            wakeup_.arm_pinned(due, out);
        else
            wakeup_.arm(due, out); // and no other thread that might be in the way
    }

    [[nodiscard]] bool active() const noexcept {
        return waits_.armed() != 0 || runners_.count() != 0;
    }

    /// Waits, a runner or a pin may have ended.
    void settle(commitment& out) noexcept {
        if (attention_ != 0) [[unlikely]] {
            if (closed())
                return;
            if (must_tell_ && runners_.count() == 0)
                runners_.claim_one_more(out.runners);
        }
        runners_.claim(waits_.due(), backlog_, out.runners);
        if (wakeup_.settle(active(), out))
            runners_.claim_one_more(out.runners);
    }

    /// The same, for a thread that may be anywhere.
    void settle_outside(commitment& out) noexcept {
        settle(out);
        // Without a lock there is no other thread that could end the context meanwhile; and work is
        // given back in a unit.
        if ((out.runners || (out.rest && !out.give_back)) && mutex_.held())
            wakeup_.enter(out);
    }

    void drop_user(commitment& out) noexcept { out.last = --users_ == 0; }

    [[nodiscard]] bool closed() const noexcept { return (attention_ & is_closed) != 0; }

    /// If a reader has to be told, that is left to a unit, which settle() sends.
    // Not inlined: in most programs nobody looks.
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

    /// Ends the armed waits of a timer. @return how many.
    std::size_t finish(timer_event_kind what, time::timer_node& node,
                       const boost::system::error_code& ec, wait_ending how) noexcept {
        auto& timer = static_cast<timer_core&>(node);
        const std::size_t count = waits_.finish(timer, ec, how);
        if (attention_ != 0) [[unlikely]]
            note({what, &timer, timer.due, count});
        return count;
    }

    // The bits of attention_: why a call may have to do more than it does in most cases. A call looks
    // once, whatever it is.
    static constexpr unsigned char is_closed = 1;
    static constexpr unsigned char is_watched = 2;
    static constexpr unsigned char has_names = 4;

    lock_type mutex_;
    filing<Backend> files_;
    wait_ledger waits_;
    runner_pool runners_; ///< units that drain the due queue
    wakeup_state wakeup_;
    std::size_t users_ = 1;  ///< I5; the service is the first
    bool backlog_ = false;   ///< expire() stopped at its limit
    bool must_tell_ = false; ///< a reader sleeps, and there is something for it
    unsigned char attention_ = 0;
    std::atomic<bool> watched_{false}; ///< as attention_ says, for those who ask without the lock
    std::atomic<bool> turns_count_{false};
    shard_observer* observer_ = nullptr;
    std::uint64_t moved_ = 0;        ///< waits, by re-arms
    std::uint64_t overflowed_ = 0;   ///< waits, of a full ring
    wait_operation* late_ = nullptr; ///< started after close()

private:
    static constexpr clock_reading latest{~std::uint64_t{0}}; ///< of a clock that is never set back

    /// Calls `step` until it returns false, at most batch_limit times for each time that the lock is
    /// held; then `end`, still locked, and `after`, unlocked.
    template <class Step, class End, class After>
    void in_batches(Step step, End end, After after) {
        for (bool more = true; more;) {
            {
                const std::scoped_lock lock(mutex_);
                for (std::size_t n = 0; more && n < batch_; ++n)
                    more = step();
                end();
            }
            after();
            mutex_.give_way();
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
        const auto [emitted, more] = files_.backend().expire(now, found_);
        backlog_ = more;
        if (!more)
            files_.forget_passed();
        if (attention_ != 0) [[unlikely]]
            note_due(now, emitted);
        for (std::size_t i = 0; i < emitted; ++i) {
            // The timers were just written; their waits lie anywhere in memory.
            if (constexpr std::size_t ahead = 6; i + ahead < emitted)
                static_cast<timer_core*>(found_[i + ahead])->prefetch_wait();
            waits_.fall_due(static_cast<timer_core&>(*found_[i]));
        }
    }

    PAWL_DETAIL_COLD void note_due(tick now, std::size_t emitted) noexcept {
        for (std::size_t i = 0; i < emitted; ++i) {
            const auto& timer = static_cast<const timer_core&>(*found_[i]);
            note({timer_event_kind::due, &timer, timer.due, wait_ledger::armed_of(timer), now});
        }
    }

    const std::size_t batch_;
    time::detail::fixed_array<time::timer_node*> found_;    ///< of one batch
    std::unique_ptr<typename Backend::detached> set_aside_; ///< what set_back() has yet to file
    unsigned set_backs_ = 0;
    bool draining_ = false;
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_SHARD_BASE_HPP
