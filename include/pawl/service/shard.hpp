// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   One lock, one time structure, one due queue: everything that happens to the timers of one
///   shard, as calls that return what the caller has to do next. No clock, no executor, no Asio:
///   tested without an io_context. What happens to many timers at once is in shard_base.hpp.
///
/// Model
///   start --> time structure --expire--> due queue --take--> handler
///                  |                        ^
///                  +------- cancel ---------+
///   The due queue is drained by runners (runner_pool.hpp). Every call returns a commitment: which
///   more have to be queued, and whether the driver has to be set. What keeps the context at work
///   until that is done stands in wakeup_state.hpp.
///
/// Invariants
///   I1  There are enough runners whenever the lock is free: nothing that is due is forgotten.
///   I2  A timer with an armed wait is filed, with the due tick of its expiry. A timer may stay
///       filed when its waits are gone (cancel does not touch the time structure); then it is
///       dropped, or moved to its new due tick, when the time structure comes across it.
///   I3  I1 and I2 of wakeup_state.hpp.
///   I4  Nothing that the shard calls under its lock is foreign code (P5).
///   I5  The shard is alive while users_ > 0: its service, every timer that ever waited, every
///       carrier, every limit on a timer of the caller's.
///
/// Threads
///   Every call locks, but for leave() and busy(). Timers are shared with the expiry side only through
///   their timer_core.
///
/// Cost
///   start, re-arm, cancel of one wait: O(1) under the lock, but for the one start with which a wheel
///   grows. collect: at most batch_limit timers.
#ifndef PAWL_SERVICE_SHARD_HPP
#define PAWL_SERVICE_SHARD_HPP

#include <pawl/service/filing.hpp>
#include <pawl/service/options.hpp>
#include <pawl/service/runner_pool.hpp>
#include <pawl/service/shard_base.hpp>
#include <pawl/service/wait_ledger.hpp>
#include <pawl/service/wakeup_state.hpp>

#include <pawl/time/tick.hpp>

#include <pawl/config.hpp>

#include <cstddef>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace pawl::detail {

template <any_backend Backend>
class shard : public shard_base<Backend> {
    using base = shard_base<Backend>;

public:
    using typename base::lock_type;
    using typename base::tick;
    using deadline = typename filing<Backend>::deadline;

    /// A number, and what is left to be done.
    template <class T>
    struct result {
        T value{};
        commitment todo{};
    };

    /// @param host runs the runners. @param work the context; both null for a shard without one.
    shard(const options& o, tick now, runner_host* host = nullptr, work_host* work = nullptr)
        : base(o, now, host, work) {}

    // --- timers -------------------------------------------------------------------------------

    /// Starts a wait of `timer`, whose expiry is `due`: a deadline, or a settable_deadline. So many
    /// `users` come with it: the timer if it is not yet one, and a limit that is going to
    /// withdraw() it. The wait may be over at once if a ring has no room.
    /// @return false if the shard is closed: the wait is left to end_draining(), and the caller is
    ///         a user.
    /// @throws std::bad_alloc with nothing changed.
    template <class Deadline = deadline>
    [[nodiscard]] result<bool> start(timer_core& timer, wait_operation& op, Deadline due,
                                     unsigned users) {
        result<bool> out{true};
        std::unique_lock lock(mutex_);
        users_ += users; // also if this fails: the handler may own the timer, and die with it
        do {
            while (!waits_.has_room_for_one_more())
                make_due_room(lock);
        } while (!(timer.filed() && timer.newest()) && make_filing_room(lock, timer, due));
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

    /// Takes back a wait that was just started, if nobody has had it since: its driver could not be
    /// set. The caller is pinned, or the only thread.
    /// @return true if the caller owns the wait again.
    [[nodiscard]] result<bool> withdraw(const timer_core& timer, wait_operation& op) noexcept {
        result<bool> out;
        const std::scoped_lock lock(mutex_);
        out.value = waits_.withdraw(timer, op);
        if (attention_ != 0 && out.value) [[unlikely]]
            note({timer_event_kind::cancelled, &timer, timer.due});
        settle_outside(out.todo); // nothing, for one that is pinned: unpin() does it
        return out;
    }

    /// Ends a held wait.
    /// @param leaves a user leaves, too.
    /// @return true if nothing here points at the wait any more; false if its carrier will come.
    [[nodiscard]] result<bool> withdraw(wait_operation& op, bool leaves = false) noexcept {
        result<bool> out;
        const std::scoped_lock lock(mutex_);
        out.value = withdraw_noted(op);
        settle_outside(out.todo);
        if (leaves)
            drop_user(out.todo);
        return out;
    }

    /// Ends a held wait together with its timer, which has no other.
    /// @return as withdraw().
    [[nodiscard]] result<bool> leave(timer_core& timer, wait_operation& op) noexcept {
        result<bool> out;
        const std::scoped_lock lock(mutex_);
        out.value = withdraw_noted(op);
        settle_outside(out.todo);
        release_locked(timer, out.todo);
        return out;
    }

    /// Cancels up to `limit` waits of `timer` that have not started, the oldest first.
    /// @return how many.
    [[nodiscard]] result<std::size_t> cancel(timer_core& timer, std::size_t limit) noexcept {
        result<std::size_t> out;
        const std::scoped_lock lock(mutex_);
        out.value = waits_.cancel(timer, limit);
        if (attention_ != 0) [[unlikely]]
            note({timer_event_kind::cancelled, &timer, timer.due, out.value});
        settle_outside(out.todo);
        return out;
    }

    /// Cancels the wait that a cancellation slot belongs to, if it is still there.
    commitment cancel(slot_link& link) noexcept {
        commitment out;
        const std::scoped_lock lock(mutex_);
        wait_operation* op = link.operation();
        if (op && op->state.pending()) {
            if (attention_ != 0) [[unlikely]]
                note({timer_event_kind::cancelled, &op->timer(), op->timer().due});
            waits_.cancel(*op, wait_ledger::aborted());
            settle_outside(out);
        }
        return out;
    }

    /// The handler in a cancellation slot is going away.
    commitment forget(slot_link& link) noexcept {
        commitment out;
        const std::scoped_lock lock(mutex_);
        if (link.operation())
            link.unlink();
        drop_user(out);
        return out;
    }

    struct rearmed {
        std::size_t count = 0; ///< waits of the timer
        bool refused = false;  ///< its ring has no room: nothing was moved
        commitment todo{};
    };

    /// Moves the deadline of every wait of `timer` that has not started.
    /// @throws std::bad_alloc with nothing changed, if a ring has to grow.
    template <class Deadline = deadline>
    [[nodiscard]] rearmed rearm(timer_core& timer, Deadline due) noexcept(!ring_backend<Backend>) {
        rearmed out;
        std::unique_lock lock(mutex_);
        if constexpr (ring_backend<Backend>) {
            while (timer.newest() && make_filing_room(lock, timer, due)) {
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

    /// The driver could not be set: let the next start try again.
    void arm_failed() noexcept {
        const std::scoped_lock lock(mutex_);
        wakeup_.will_not_look();
    }

    /// The caller, which was pinned, has set the driver, or has failed to.
    commitment unpin() noexcept {
        commitment out;
        const std::scoped_lock lock(mutex_);
        wakeup_.unpin();
        settle_outside(out);
        return out;
    }

    /// Moves the place and the waits of `from` to `to`, which has none.
    void move(timer_core& from, timer_core& to) noexcept {
        const std::scoped_lock lock(mutex_);
        if (attention_ != 0) [[unlikely]]
            note_move(from, to);
        files_.backend().move_node(from, to);
        to.set_newest(from.newest());
        from.set_newest(nullptr);
        to.for_each_wait([&](wait_operation& op) { op.set_owner(&to); });
    }

    /// The timer is going away, and has no waits.
    commitment release(timer_core& timer) noexcept {
        commitment out;
        const std::scoped_lock lock(mutex_);
        PAWL_ASSERT(!timer.newest());
        release_locked(timer, out);
        return out;
    }

    // --- expiry -------------------------------------------------------------------------------

    struct taken {
        wait_operation* op = nullptr; ///< complete this wait, or hand it over
        bool behind = false;          ///< nothing was done: collect() first, then try again
        bool retired = false;         ///< the caller is no runner any more
        commitment todo{};
    };

    /// Takes the next wait that is due. If it is the `last` one of the caller's turn, or if there
    /// is none, the caller ceases to be a runner, and others go on instead.
    /// @param up_to_date the caller has just called collect().
    // Inlined into the one loop that runs everything; compilers think it too large for that.
    [[nodiscard]] PAWL_DETAIL_ALWAYS_INLINE taken take(runner_token* token, bool last,
                                                       bool up_to_date) noexcept {
        taken out;
        const std::scoped_lock lock(mutex_);
        if (waits_.due() != 0) {
            out.op = waits_.take();
            if (out.op && out.op->state.phase() != wait_phase::started)
                ++users_;                     // the carrier that the caller is about to send
            last = last || waits_.due() == 0; // what falls due during the handler is for others
        } else {
            out.behind = backlog_ && !up_to_date;
            last = !out.behind;
        }
        if (attention_ != 0) [[unlikely]]
            out.op = note_taken(out.op);
        if (last)
            retire_locked(token, out.todo);
        out.retired = last;
        return out;
    }

    /// The caller, which was queued with `token` if that is not null, ceases to be a runner.
    commitment retire(runner_token* token) noexcept {
        commitment out;
        const std::scoped_lock lock(mutex_);
        retire_locked(token, out);
        return out;
    }

    /// Gives back a runner that is not going to be queued: the driver comes in its place.
    void unclaim(runner_token& token) noexcept {
        const std::scoped_lock lock(mutex_);
        runners_.retire(&token);
    }

    // --- the context --------------------------------------------------------------------------

    /// A guard for a unit, which notices other threads where locks are switched off.
    [[nodiscard]] auto run_unit() noexcept { return typename lock_type::unit(mutex_); }

    /// The commitment has been carried out, if it says `entered`.
    void leave() noexcept { wakeup_.leave(); }

    /// Whether threads have left that were to carry out what this shard has asked for.
    [[nodiscard]] bool all_have_left() noexcept {
        const std::scoped_lock lock(mutex_);
        return wakeup_.all_have_left();
    }

    /// The context can be told of work from now on.
    void count_work() noexcept {
        const std::scoped_lock lock(mutex_);
        wakeup_.count();
    }

    /// It is closed, and empty. @return wakeup_state::end()
    [[nodiscard]] bool end_work() noexcept {
        const std::scoped_lock lock(mutex_);
        return wakeup_.end();
    }

    [[nodiscard]] bool busy() const noexcept { return wakeup_.busy(); }

    // --- carriers -----------------------------------------------------------------------------

    /// wait_host::arrive()
    [[nodiscard]] result<bool> arrive(wait_operation& op) noexcept {
        result<bool> out;
        const std::scoped_lock lock(mutex_);
        out.value = waits_.arrive(op);
        if (out.value) {
            note_arrival(op, timer_event_kind::started, out.todo);
            drop_user(out.todo);
        }
        return out;
    }

    /// wait_host::park(); what a carrier does that is destroyed, too.
    /// @param what becomes of a wait that is not parked.
    /// @return false if the caller owns the wait.
    [[nodiscard]] result<bool> park(wait_operation& op, timer_event_kind what) noexcept {
        result<bool> out;
        const std::scoped_lock lock(mutex_);
        out.value = !waits_.arrive_or_park(op);
        if (!out.value)
            note_arrival(op, what, out.todo);
        drop_user(out.todo);
        return out;
    }

    /// wait_host::arrive_or_park()
    [[nodiscard]] result<bool> arrive_or_park(wait_operation& op) noexcept {
        result<bool> out;
        const std::scoped_lock lock(mutex_);
        out.value = waits_.arrive_or_park(op) != nullptr;
        if (out.value)
            note_arrival(op, timer_event_kind::started, out.todo);
        drop_user(out.todo);
        PAWL_ASSERT(!out.todo.last); // in a unit, the service is one
        return out;
    }

    /// A timer that has not waited is known from here on, until release().
    void enroll() noexcept {
        const std::scoped_lock lock(mutex_);
        ++users_;
    }

    /// The service is going away.
    commitment release() noexcept {
        commitment out;
        const std::scoped_lock lock(mutex_);
        drop_user(out);
        return out;
    }

    // --- for tests and for clocks under control -----------------------------------------------

    /// Waits that are due or cancelled and whose handlers have not begun, the handed over ones not
    /// counted. O(1) for each.
    [[nodiscard]] std::size_t due_count() noexcept {
        const std::scoped_lock lock(mutex_);
        return waits_.ready();
    }

    [[nodiscard]] std::size_t armed_count() noexcept {
        const std::scoped_lock lock(mutex_);
        return waits_.armed();
    }

    /// Lower bound of the next tick at which anything is due.
    [[nodiscard]] tick next_wake() noexcept {
        const std::scoped_lock lock(mutex_);
        return waits_.armed() != 0 ? files_.backend().next_wake() : tick::never();
    }

    /// @throws std::logic_error if an invariant does not hold.
    void invariant() {
        const std::scoped_lock lock(mutex_);
        files_.backend().invariant();
        if (runners_.wants_more(waits_.due(), backlog_) && !closed())
            throw std::logic_error("shard: I1: " + std::to_string(runners_.count()) +
                                   " runners for " + std::to_string(waits_.due()) + " entries");
        if (waits_.armed() > waits_.live())
            throw std::logic_error("shard: armed " + std::to_string(waits_.armed()) + " of " +
                                   std::to_string(waits_.live()));
        if (wakeup_.busy() != (active() || wakeup_.pinned()) && !closed())
            throw std::logic_error("shard: I3: busy is " + std::to_string(wakeup_.busy()) + ", " +
                                   std::to_string(waits_.armed()) + " armed, " +
                                   std::to_string(runners_.count()) + " runners");
    }

private:
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
    using base::settle_outside;
    using base::users_;
    using base::waits_;
    using base::wakeup_;

    /// Files a timer whose wait begins.
    template <class Deadline>
    PAWL_DETAIL_ALWAYS_INLINE void start_locked(timer_core& timer, wait_operation& op,
                                                const Deadline& due, commitment& out) noexcept {
        if (slot_link* const link = op.slot()) {
            link->set_started();
            ++users_;
        }
        wakeup_.begin();
        const bool alone = waits_.start(timer, op);
        const filed place = file(timer, due, alone);
        if (place.done)
            arm_for(place.wake, out);
        if constexpr (ring_backend<Backend>) {
            if (!place.done)
                finish_unfiled(timer, due);
            settle_outside(out); // another timer may have made room
        }
    }

    [[nodiscard]] static bool pending(const timer_core& timer) noexcept {
        return wait_ledger::sure_of_one(timer) || timer.newest() != nullptr;
    }

    // Out of line, so that the path of a shard that is not watched stays short.
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
        const filed place = file_anew(timer, due);
        if (!place.done && files_.refuses(due)) {
            out.refused = true;
            return;
        }
        wakeup_.begin();
        out.count = waits_.pull_back(timer);
        moved_ += out.count;
        if constexpr (Observed)
            note({timer_event_kind::moved, &timer, due_of(due), out.count});
        if (place.done)
            arm_for(place.wake, out.todo);
        if constexpr (ring_backend<Backend>) {
            if (!place.done)
                finish_unfiled(timer, due);
            settle_outside(out.todo); // another timer may have made room
        }
    }

    /// Releases the lock for a while.
    PAWL_DETAIL_NOINLINE void make_due_room(std::unique_lock<lock_type>& lock) {
        lock.unlock();
        auto* const room = new due_queue::segment;
        lock.lock(); // does not throw: it is no lock that a thread could hold twice
        waits_.add_room(*room);
    }

    /// @return true if the lock was released.
    template <class Deadline>
    [[nodiscard]] bool make_filing_room(std::unique_lock<lock_type>& lock,
                                        [[maybe_unused]] const timer_core& timer,
                                        [[maybe_unused]] const Deadline& due) {
        if constexpr (ring_backend<Backend>)
            return !closed() && files_.make_room(lock, timer, due);
        else if constexpr (growing_backend<Backend>)
            return !closed() && files_.make_room(lock);
        else
            return false;
    }

    /// Files a timer whose wait begins. To that end a ring may have others fall due.
    template <class Deadline>
    PAWL_DETAIL_ALWAYS_INLINE filed file(timer_core& timer, const Deadline& due,
                                         bool alone) noexcept {
        if constexpr (ring_backend<Backend>)
            return files_.file(timer, due, alone, [this](timer_core& other) { flush(other); });
        else
            return files_.file(timer, due, alone);
    }
    /// The same for one with all its waits.
    template <class Deadline>
    PAWL_DETAIL_ALWAYS_INLINE filed file_anew(timer_core& timer, const Deadline& due) noexcept {
        if constexpr (ring_backend<Backend>)
            return file(timer, due, true);
        else
            return files_.file_anew(timer, due);
    }
    void flush(timer_core& timer) noexcept {
        overflow(timer, timer.due);
        waits_.fall_due(timer);
    }

    /// A ring had no room for the waits of `timer`, or they are due at once.
    template <class Deadline>
    void finish_unfiled(timer_core& timer, const Deadline& due) noexcept {
        if (due.ring != due.overdue)
            overflow(timer, due.due);
        else if (attention_ != 0) [[unlikely]]
            note({timer_event_kind::due, &timer, due.due, wait_ledger::armed_of(timer), due.due});
        if (files_.refuses(due)) {
            (void)finish(timer_event_kind::cancelled, timer, files_.refusal(), wait_ending::early);
        } else {
            timer.due = due.due; // it is not filed; those who look ask
            waits_.fall_due(timer);
        }
    }
    /// A ring has no room for the armed waits of `timer`, which is due at `due`.
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
    [[nodiscard]] bool withdraw_noted(wait_operation& op) noexcept {
        if (attention_ != 0 && op.state.pending()) [[unlikely]]
            note({timer_event_kind::cancelled, &op.timer(), op.timer().due});
        return waits_.withdraw(op);
    }

    /// A turn has taken a wait, or none.
    /// @return what is to be completed in its place.
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

#endif // PAWL_SERVICE_SHARD_HPP
