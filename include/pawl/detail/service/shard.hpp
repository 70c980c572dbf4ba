// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   One lock, one time structure, one due queue: everything that happens to single timers of one
///   shard, as calls that return what the caller must do next. No clock, no executor, no Asio:
///   tested without an io_context. What happens to many timers at once is in shard_base.hpp, which
///   also has the data.
///
/// Model
///     start --> time structure --expire--> due queue --take--> handler
///                    |                        ^
///                    +------- cancel ---------+
///
///   Runners drain the due queue (runner_pool.hpp). Every call returns a commitment: which runners
///   to queue, and whether to set the driver. wakeup_state.hpp keeps the context at work until that
///   is done.
///
/// Invariants
///   - Runner invariant: whenever the lock is free, there are enough runners for all that is due.
///     Nothing due is forgotten.
///   - Filing invariant: a timer with an armed wait is filed under the due tick of its expiry. A
///     timer may stay filed after its waits are gone, since cancel does not touch the time
///     structure; when the time structure comes across it, it is dropped, or filed under its new
///     due tick.
///   - Wake-up invariants: the busy invariant and the driver-set invariant of wakeup_state.hpp.
///   - Foreign-code invariant: nothing that is called under the lock is foreign code (P5).
///   - User invariant: the shard lives while users_ > 0. Users are its service, every timer that
///     ever waited, every carrier, every cancellation slot, and every limit on a timer of the
///     caller. So at most users_ timers are filed, and the time structure has room for as many as
///     there were users at the last start.
///
/// Threads
///   Every call locks, except leave() and busy(). Expiry reaches a timer through its timer_core
///   only.
///
/// Cost
///   start, re-arm, cancel of one wait: O(1) under the lock. collect: at most batch_limit timers.
#ifndef PAWL_DETAIL_SERVICE_SHARD_HPP
#define PAWL_DETAIL_SERVICE_SHARD_HPP

#include <pawl/detail/service/filing.hpp>
#include <pawl/detail/service/runner_pool.hpp>
#include <pawl/detail/service/shard_base.hpp>
#include <pawl/detail/service/wait_ledger.hpp>
#include <pawl/detail/service/wakeup_state.hpp>

#include <pawl/time/backend.hpp>
#include <pawl/time/tick.hpp>

#include <pawl/config.hpp>
#include <pawl/options.hpp>

#include <cstddef>
#include <mutex>
#include <type_traits>
#include <utility>

namespace pawl::detail {

template <time::backend Backend>
class shard : public shard_base<Backend> {
    using base = shard_base<Backend>;

public:
    using typename base::lock_type;
    using typename base::tick;
    using deadline = typename filing<Backend>::deadline;

    /// A value, and what the caller must do next.
    template <class T>
    struct result {
        T value{};
        commitment todo{};
    };

    /// @param host runs the runners.
    /// @param work the context. Both are null for a shard without one.
    shard(const options& o, tick now, runner_host* host = nullptr, work_host* work = nullptr)
        : base(o, now, host, work) {}

    // --- timers -------------------------------------------------------------------------------

    /// Starts a wait of `timer`. With a full ring it may be over at once.
    /// @param due the expiry: a deadline, or a settable_deadline.
    /// @param users how many users come with the wait: the timer if it is not one yet, and a limit
    ///         that will withdraw() it.
    /// @return false if the shard is closed: end_draining() will return the wait, and the caller is
    ///         a user.
    /// @throws std::bad_alloc with nothing changed.
    template <class Deadline = deadline>
    [[nodiscard]] result<bool> start(timer_core& timer, wait_operation& op, Deadline due,
                                     unsigned users) {
        result<bool> out{true};
        const std::scoped_lock lock(mutex_);
        users_ += users; // even if this fails: the handler may own the timer
        do {
            while (!has_room_for_one_more())
                make_wait_room();
        } while (!(timer.filed() && timer.newest()) && make_filing_room(timer, due));
        if (attention_ != 0) [[unlikely]] {
            if (closed()) {
                ++users_; // the caller, until it calls release()
                wait_ledger::unlink_slot(op);
                op.next = std::exchange(late_, &op);
                out.value = false;
                return out;
            }
            start_observed(timer, op, due, out.todo);
            return out;
        }
        start_locked(timer, op, due, out.todo);
        return out;
    }

    /// Takes back a wait that was just started, because its driver could not be set. The caller is
    /// pinned, or the only thread.
    /// @return true if the caller owns the wait again; false if it has become due.
    [[nodiscard]] result<bool> withdraw(const timer_core& timer, wait_operation& op) noexcept {
        result<bool> out;
        const locked lock(mutex_);
        out.value = waits_.withdraw(timer, op);
        if (attention_ != 0 && out.value) [[unlikely]]
            note({timer_event_kind::cancelled, &timer, timer.due});
        settle_outside(out.todo); // no effect if pinned: unpin() does it
        return out;
    }

    /// Ends a held wait.
    /// @param leaves drop one user as well.
    /// @return true if nothing here points at the wait any more; false if its carrier will come.
    [[nodiscard]] result<bool> withdraw(wait_operation& op, bool leaves = false) noexcept {
        result<bool> out;
        const locked lock(mutex_);
        out.value = withdraw_noted(op, out.todo);
        if (leaves)
            drop_user(out.todo);
        return out;
    }

    /// Ends a held wait together with its timer, which has no other waits.
    /// @return as withdraw().
    [[nodiscard]] result<bool> leave(timer_core& timer, wait_operation& op) noexcept {
        result<bool> out;
        const locked lock(mutex_);
        out.value = withdraw_noted(op, out.todo);
        release_locked(timer, out.todo);
        return out;
    }

    /// Cancels up to `limit` waits of `timer` that have not begun, oldest first.
    /// @return how many.
    [[nodiscard]] result<std::size_t> cancel(timer_core& timer, std::size_t limit) noexcept {
        result<std::size_t> out;
        const locked lock(mutex_);
        out.value = waits_.cancel(timer, limit);
        if (out.value != 0) {
            if (attention_ != 0) [[unlikely]]
                note({timer_event_kind::cancelled, &timer, timer.due, out.value});
            settle_cancelled(out.todo);
        }
        return out;
    }

    /// Cancels the wait of a cancellation slot, if it still exists.
    commitment cancel(slot_link& link) noexcept {
        commitment out;
        const locked lock(mutex_);
        wait_operation* op = link.operation();
        if (op && op->state.pending()) {
            if (attention_ != 0) [[unlikely]]
                note({timer_event_kind::cancelled, &op->timer(), op->timer().due});
            waits_.cancel(*op, wait_ledger::aborted());
            settle_cancelled(out);
        }
        return out;
    }

    /// The handler in a cancellation slot is being destroyed.
    commitment forget(slot_link& link) noexcept {
        commitment out;
        const locked lock(mutex_);
        if (link.operation())
            link.unlink();
        drop_user(out);
        return out;
    }

    struct rearmed {
        std::size_t count = 0; ///< waits of the timer
        bool refused = false;  ///< its ring is full: nothing was moved
        commitment todo{};
    };

    /// Moves the deadline of every wait of `timer` that has not begun.
    /// @throws std::bad_alloc with nothing changed, if a ring must grow.
    template <class Deadline = deadline>
    [[nodiscard]] rearmed rearm(timer_core& timer, Deadline due) noexcept(!may_be_full) {
        rearmed out;
        const std::scoped_lock lock(mutex_);
        if constexpr (may_be_full) {
            while (timer.newest() && make_filing_room(timer, due)) {
            }
        }
        if (attention_ != 0) [[unlikely]] {
            if (!closed() && pending(timer))
                rearm_observed(timer, due, out);
            return out;
        }
        if (pending(timer))
            rearm_locked<false>(timer, due, out);
        return out;
    }

    /// Whether the driver ought to have woken up before `now`.
    [[nodiscard]] bool passed(tick now) noexcept {
        const locked lock(mutex_);
        return !closed() && wakeup_.passed(now);
    }

    /// The driver could not be set: the next start will try again.
    void arm_failed() noexcept {
        const locked lock(mutex_);
        wakeup_.will_not_look();
    }

    /// The pinned caller has set the driver, or failed to.
    commitment unpin() noexcept {
        commitment out;
        const locked lock(mutex_);
        wakeup_.unpin();
        settle_outside(out);
        return out;
    }

    /// Moves the place and the waits of `from` to `to`, which has none.
    void move(timer_core& from, timer_core& to) noexcept {
        const locked lock(mutex_);
        if (attention_ != 0) [[unlikely]]
            note_move(from, to);
        files_.backend().move_node(from, to);
        to.set_newest(from.newest());
        from.set_newest(nullptr);
        to.for_each_wait([&](wait_operation& op) { op.set_owner(&to); });
    }

    /// The timer is being destroyed, and has no waits.
    commitment release(timer_core& timer) noexcept {
        commitment out;
        const locked lock(mutex_);
        PAWL_ASSERT(!timer.newest());
        release_locked(timer, out);
        return out;
    }

    // --- expiry -------------------------------------------------------------------------------

    struct taken {
        wait_operation* op = nullptr; ///< complete this wait, or hand it over
        bool behind = false;          ///< nothing was taken: collect(), then try again
        bool retired = false;         ///< the caller is no longer a runner
        commitment todo{};
    };

    /// Takes the next wait that is due. If it is the `last` of the caller's turn, or there is none,
    /// the caller ceases to be a runner, and other runners take over.
    /// @param up_to_date the caller has just called collect().
    /// @param first the first wait of the turn.
    // Forced inline: called by the one loop that runs everything, but over the compilers' size limit.
    [[nodiscard]] PAWL_DETAIL_ALWAYS_INLINE taken take(runner_token* token, bool last,
                                                       bool up_to_date,
                                                       bool first = true) noexcept {
        taken out;
        const locked lock(mutex_);
        if (first && !up_to_date && token) {
            if (runners_.begin(*token)) [[unlikely]] {
                retire_locked(token, out.todo);
                out.retired = true;
                return out;
            }
        }
        if (waits_.due() != 0) {
            out.op = waits_.take();
            if (out.op && out.op->state.phase() != wait_phase::started)
                ++users_;                     // the carrier that the caller will send
            last = last || waits_.due() == 0; // other runners take what becomes due meanwhile
        } else {
            out.behind = backlog_ && !up_to_date;
            last = !out.behind;
        }
        if (attention_ != 0) [[unlikely]]
            out.op = note_taken(out.op);
        if (last) {
            if (!first)
                runners_.rely_on();
            retire_locked(token, out.todo);
        } else if (!out.behind) {
            if (first)
                runners_.set_aside();
            if (runners_.wants_more(waits_.due(), backlog_))
                settle(out.todo);
        }
        out.retired = last;
        return out;
    }

    /// The caller ceases to be a runner. `token` is the token it was queued with; nullptr if it was
    /// not queued.
    /// @param in_turn after a handler in the middle of its turn.
    commitment retire(runner_token* token, bool in_turn) noexcept {
        commitment out;
        const locked lock(mutex_);
        if (in_turn)
            runners_.rely_on();
        retire_locked(token, out);
        return out;
    }

    /// Gives back a runner that will not be queued: the driver comes instead.
    void unclaim(runner_token& token) noexcept {
        const locked lock(mutex_);
        (void)runners_.begin(token);
        runners_.retire(&token);
    }

    // --- the context --------------------------------------------------------------------------

    /// A guard for a unit, which detects other threads where locking is disabled.
    [[nodiscard]] auto run_unit() noexcept { return typename lock_type::unit(mutex_); }

    /// A commitment with `entered` has been carried out.
    void leave() noexcept { wakeup_.leave(); }

    /// Whether all threads that carry out commitments of this shard have finished.
    [[nodiscard]] bool all_have_left() noexcept {
        const locked lock(mutex_);
        return wakeup_.all_have_left();
    }

    /// The context can be told of work from now on.
    void count_work() noexcept {
        const locked lock(mutex_);
        wakeup_.count();
    }

    /// The shard is closed and empty.
    /// @return wakeup_state::end()
    [[nodiscard]] bool end_work() noexcept {
        const locked lock(mutex_);
        return wakeup_.end();
    }

    [[nodiscard]] bool busy() const noexcept { return wakeup_.busy(); }

    // --- carriers -----------------------------------------------------------------------------

    /// wait_host::arrive()
    [[nodiscard]] result<bool> arrive(wait_operation& op) noexcept {
        result<bool> out;
        const locked lock(mutex_);
        out.value = waits_.arrive(op);
        if (out.value) {
            note_arrival(op, timer_event_kind::started, out.todo);
            drop_user(out.todo);
        }
        return out;
    }

    /// wait_host::park(). Also called by a carrier that is destroyed.
    /// @param what the event to note if the wait is not parked.
    /// @return false if the caller owns the wait.
    [[nodiscard]] result<bool> park(wait_operation& op, timer_event_kind what) noexcept {
        result<bool> out;
        const locked lock(mutex_);
        out.value = !waits_.arrive_or_park(op);
        if (!out.value)
            note_arrival(op, what, out.todo);
        drop_user(out.todo);
        return out;
    }

    /// wait_host::arrive_or_park()
    [[nodiscard]] result<bool> arrive_or_park(wait_operation& op) noexcept {
        result<bool> out;
        const locked lock(mutex_);
        out.value = waits_.arrive_or_park(op) != nullptr;
        if (out.value)
            note_arrival(op, timer_event_kind::started, out.todo);
        drop_user(out.todo);
        PAWL_ASSERT(!out.todo.last); // in a unit, so the service is a user
        return out;
    }

    /// Counts timers that have not waited, and limits, as users until release() or leave().
    void enroll(unsigned users = 1) noexcept {
        const locked lock(mutex_);
        users_ += users;
    }

    /// The service is being destroyed.
    commitment release() noexcept {
        commitment out;
        const locked lock(mutex_);
        drop_user(out);
        return out;
    }

    // --- for tests and for clocks under control -----------------------------------------------

    /// Waits that are due or cancelled and whose handlers have not begun, excluding those handed
    /// over. O(1) for each.
    [[nodiscard]] std::size_t due_count() noexcept {
        const locked lock(mutex_);
        return waits_.ready();
    }

    [[nodiscard]] std::size_t armed_count() noexcept {
        const locked lock(mutex_);
        return waits_.armed();
    }

    /// A lower bound of the next tick at which anything is due.
    [[nodiscard]] tick next_wake() noexcept {
        const locked lock(mutex_);
        return waits_.armed() != 0 ? files_.backend().next_wake() : tick::never();
    }

private:
    template <class>
    friend struct invariant_of; // of the tests

    static constexpr bool may_be_full = time::bounded_backend<Backend>;

    using base::active;
    using base::arm_for;
    using base::attention_;
    using base::backlog_;
    using base::closed;
    using base::drop_user;
    using base::files_;
    using base::finish;
    using base::late_;
    using base::moved_;
    using base::must_tell_;
    using base::mutex_;
    using base::note;
    using base::note_end;
    using base::note_move;
    using base::observer_;
    using base::overflowed_;
    using base::runners_;
    using base::settle;
    using base::settle_cancelled;
    using base::settle_due;
    using base::settle_outside;
    using base::settle_outside_now;
    using base::users_;
    using base::waits_;
    using base::wakeup_;

    /// start() without the checks.
    template <class Deadline>
    PAWL_DETAIL_ALWAYS_INLINE void start_locked(timer_core& timer, wait_operation& op,
                                                const Deadline& due, commitment& out) noexcept {
        if (slot_link* const link = op.slot()) {
            link->set_started();
            ++users_;
        }
        wakeup_.begin();
        const bool alone = waits_.start(timer, op);
        const filed place = files_.file(timer, due, alone);
        if constexpr (may_be_full) {
            if (refused(place)) {
                overflow(timer, due.due);
                (void)finish(timer_event_kind::cancelled, timer, files_.refusal(),
                             wait_ending::early);
                return settle_due(out);
            }
            expire_overflowed(place, out);
        }
        if (place.done)
            arm_for(place.wake, out);
    }

    [[nodiscard]] static bool pending(const timer_core& timer) noexcept {
        return wait_ledger::sure_of_one(timer) || timer.newest() != nullptr;
    }

    // Out of line, which keeps the path of an unwatched shard short.
    template <class Deadline>
    PAWL_DETAIL_COLD void start_observed(timer_core& timer, wait_operation& op, const Deadline& due,
                                         commitment& out) noexcept {
        note({timer_event_kind::armed, &timer, due_of(due)});
        start_locked(timer, op, due, out);
        if (must_tell_)
            settle_outside(out);
    }
    template <class Deadline>
    PAWL_DETAIL_COLD void rearm_observed(timer_core& timer, const Deadline& due,
                                         rearmed& out) noexcept {
        rearm_locked<true>(timer, due, out);
        if (must_tell_)
            settle_outside(out.todo);
    }

    /// @pre pending(timer)
    template <bool Observed, class Deadline>
    PAWL_DETAIL_ALWAYS_INLINE void rearm_locked(timer_core& timer, const Deadline& due,
                                                rearmed& out) noexcept {
        const filed place = files_.file_anew(timer, due);
        if constexpr (may_be_full) {
            if (refused(place)) {
                out.refused = true;
                return;
            }
        }
        wakeup_.begin();
        out.count = waits_.pull_back(timer);
        moved_ += out.count;
        if constexpr (Observed)
            note({timer_event_kind::moved, &timer, due_of(due), out.count});
        if constexpr (may_be_full)
            expire_overflowed(place, out.todo);
        if (place.done)
            arm_for(place.wake, out.todo);
    }

    [[nodiscard]] bool has_room_for_one_more() const noexcept {
        const std::size_t waits = waits_.live() + 1;
        return waits_.has_room_for(waits) && runners_.has_room_for(waits);
    }

    /// Releases the lock for a while.
    PAWL_DETAIL_NOINLINE void make_wait_room() {
        if (!waits_.has_room_for(waits_.live() + 1))
            add_room<due_queue::segment>(waits_);
        else
            add_room<runner_pool::part>(runners_);
    }
    /// If two threads add room at the same time, there is more than needed.
    template <class Room, class To>
    void add_room(To& to) {
        Room* room = nullptr;
        {
            const unlocked meanwhile(mutex_);
            room = new Room;
        }
        to.add_room(*room);
    }

    /// @return true if the lock was released.
    template <class Deadline>
    [[nodiscard]] bool make_filing_room(timer_core& timer, const Deadline& due) {
        return !closed() && files_.make_room(mutex_, users_, timer, due);
    }

    [[nodiscard]] static bool refused(const filed& place) noexcept {
        return !place.done && !place.overflowed;
    }
    void expire_overflowed(const filed& place, commitment& out) noexcept {
        if (!place.overflowed)
            return;
        overflow(*place.overflowed, place.overflowed->due);
        waits_.fall_due(*place.overflowed);
        settle_due(out);
    }
    /// Counts and notes that a full ring refused the armed waits of `timer`, or made them due.
    void overflow(const timer_core& timer, tick due) noexcept {
        const std::size_t count = wait_ledger::armed_of(timer);
        overflowed_ += count;
        if (attention_ != 0) [[unlikely]]
            note({timer_event_kind::overflowed, &timer, due, count});
    }

    template <class Deadline>
    [[nodiscard]] static tick due_of(const Deadline& due) noexcept {
        if constexpr (std::is_same_v<Deadline, tick>)
            return due;
        else
            return due.due;
    }

    /// withdraw() of a held wait.
    [[nodiscard]] bool withdraw_noted(wait_operation& op, commitment& todo) noexcept {
        if (attention_ != 0 && op.state.pending()) [[unlikely]]
            note({timer_event_kind::cancelled, &op.timer(), op.timer().due});
        const bool silent = waits_.withdraw(op);
        // Nothing becomes due by a silent end.
        if (!silent || waits_.armed() == 0 || attention_ != 0) [[unlikely]]
            settle_outside_now(todo);
        return silent;
    }

    /// A turn has taken a wait, or none.
    /// @return what to complete in its place.
    [[nodiscard]] PAWL_DETAIL_COLD wait_operation* note_taken(wait_operation* op) noexcept {
        if (!op || (attention_ & base::is_watched) == 0 || op->state.phase() != wait_phase::started)
            return op;
        if (op->owner())
            note({timer_event_kind::started, op->owner(), op->owner()->due});
        return observer_->times_handlers() ? &timed_wait::instead_of(*op, *observer_) : op;
    }

    /// A carrier is about to invoke the handler, or to destroy it.
    void note_arrival(const wait_operation& op, timer_event_kind what, commitment& out) noexcept {
        if (attention_ == 0 || !op.owner()) [[likely]]
            return;
        note({what, op.owner(), op.owner()->due});
        settle_outside(out);
    }

    void retire_locked(runner_token* token, commitment& out) noexcept {
        runners_.retire(token);
        settle(out);
    }

    void release_locked(timer_core& timer, commitment& out) noexcept {
        if (attention_ != 0) [[unlikely]]
            note_end(timer);
        if (timer.filed())
            files_.backend().erase(timer);
        drop_user(out);
    }
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_SHARD_HPP
