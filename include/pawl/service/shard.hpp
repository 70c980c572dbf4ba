// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   One lock, one time structure, one due queue: everything that happens to the timers of one
///   shard, as calls that return what the caller has to do next. No clock, no executor, no Asio:
///   tested without an io_context.
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
#include <pawl/service/optional_mutex.hpp>
#include <pawl/service/options.hpp>
#include <pawl/service/runner_pool.hpp>
#include <pawl/service/spin_mutex.hpp>
#include <pawl/service/wait_ledger.hpp>
#include <pawl/service/wakeup_state.hpp>

#include <pawl/time/fixed_array.hpp>
#include <pawl/time/tick.hpp>

#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace pawl::detail {

template <any_backend Backend>
class shard {
public:
    using tick = time::tick;
    using deadline = typename filing<Backend>::deadline;

    /// Held for a bounded time, and over nothing foreign.
    using lock_type = optional_mutex<spin_mutex>;

    /// A number, and what is left to be done.
    template <class T>
    struct result {
        T value{};
        commitment todo{};
    };

    /// @param host runs the runners. @param work the context; both null for a shard without one.
    shard(const options& o, tick now, runner_host* host = nullptr, work_host* work = nullptr)
        : mutex_(o.locking), files_(o, now), runners_(o.completions_per_turn, host), wakeup_(work),
          batch_(o.batch_limit), found_(o.batch_limit) {}
    shard(const shard&) = delete;
    shard& operator=(const shard&) = delete;

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
        if (closed_) {
            ++users_; // the caller, until it calls release()
            wait_ledger::unlink_slot(op);
            op.next = std::exchange(late_, &op);
            out.value = false;
            return out;
        }
        if (slot_link* const link = op.slot()) {
            link->set_started();
            ++users_;
        }
        wakeup_.begin();
        const bool alone = waits_.start(timer, op);
        const filed place = files_.file(waits_, timer, due, alone);
        if (place.done)
            arm_for(place.wake, out.todo);
        if constexpr (ring_backend<Backend>) {
            if (!place.done)
                finish_unfiled(timer, due);
            settle_outside(out.todo); // another timer may have made room
        }
        return out;
    }

    /// Takes back a wait that was just started, if nobody has had it since: its driver could not be
    /// set. The caller is pinned, or the only thread.
    /// @return true if the caller owns the wait again.
    [[nodiscard]] result<bool> withdraw(const timer_core& timer, wait_operation& op) noexcept {
        result<bool> out;
        const std::scoped_lock lock(mutex_);
        out.value = waits_.withdraw(timer, op);
        settle_outside(out.todo); // nothing, for one that is pinned: unpin() does it
        return out;
    }

    /// Ends a held wait.
    /// @param leaves a user leaves, too.
    /// @return true if nothing here points at the wait any more; false if its carrier will come.
    [[nodiscard]] result<bool> withdraw(wait_operation& op, bool leaves = false) noexcept {
        result<bool> out;
        const std::scoped_lock lock(mutex_);
        out.value = waits_.withdraw(op);
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
        out.value = waits_.withdraw(op);
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
        settle_outside(out.todo);
        return out;
    }

    /// Cancels the wait that a cancellation slot belongs to, if it is still there.
    commitment cancel(slot_link& link) noexcept {
        commitment out;
        const std::scoped_lock lock(mutex_);
        wait_operation* op = link.operation();
        if (op && op->state.pending()) {
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
        if (closed_ || (!wait_ledger::sure_of_one(timer) && !timer.newest()))
            return out;
        const filed place = files_.file_anew(waits_, timer, due);
        if (!place.done && files_.refuses(due)) {
            out.refused = true;
            return out;
        }
        wakeup_.begin();
        out.count = waits_.pull_back(timer);
        if (place.done)
            arm_for(place.wake, out.todo);
        if constexpr (ring_backend<Backend>) {
            if (!place.done)
                finish_unfiled(timer, due);
            settle_outside(out.todo); // another timer may have made room
        }
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
        if (closed_)
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
        out.claimed = who == looker::runner && runners_.claim_one(waits_.due(), backlog_);
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
    [[nodiscard, gnu::always_inline]] taken take(runner_token* token, bool last,
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

    [[nodiscard]] bool busy() const noexcept { return wakeup_.busy(); }

    // --- carriers -----------------------------------------------------------------------------

    /// wait_host::arrive()
    [[nodiscard]] result<bool> arrive(wait_operation& op) noexcept {
        result<bool> out;
        const std::scoped_lock lock(mutex_);
        out.value = waits_.arrive(op);
        if (out.value)
            drop_user(out.todo);
        return out;
    }

    /// wait_host::park(); what a carrier does that is destroyed, too.
    /// @return false if the caller owns the wait.
    [[nodiscard]] result<bool> park(wait_operation& op) noexcept {
        result<bool> out;
        const std::scoped_lock lock(mutex_);
        out.value = !waits_.arrive_or_park(op);
        drop_user(out.todo);
        return out;
    }

    /// wait_host::arrive_or_park()
    [[nodiscard]] bool arrive_or_park(wait_operation& op) noexcept {
        commitment out;
        const std::scoped_lock lock(mutex_);
        drop_user(out);
        PAWL_ASSERT(!out.last); // in a unit, the service is one
        return waits_.arrive_or_park(op) != nullptr;
    }

    // --- all at once --------------------------------------------------------------------------

    /// Ends every armed wait with `ec`.
    /// @param carry_out called after each batch, unlocked, with a commitment.
    /// @return how many.
    /// @throws std::bad_alloc with nothing changed.
    template <class Function>
    std::size_t expire_all(const boost::system::error_code& ec, Function carry_out) {
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
                    count += waits_.finish(static_cast<timer_core&>(*node), ec);
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
        closed_ = true;
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
                        (void)waits_.finish(static_cast<timer_core&>(*node),
                                            wait_ledger::aborted());
                } else if (wait_operation* const op = waits_.take_over()) {
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
        if (runners_.wants_more(waits_.due(), backlog_) && !closed_)
            throw std::logic_error("shard: I1: " + std::to_string(runners_.count()) +
                                   " runners for " + std::to_string(waits_.due()) + " entries");
        if (waits_.armed() > waits_.live())
            throw std::logic_error("shard: armed " + std::to_string(waits_.armed()) + " of " +
                                   std::to_string(waits_.live()));
        if (wakeup_.busy() != (active() || wakeup_.pinned()) && !closed_)
            throw std::logic_error("shard: I3: busy is " + std::to_string(wakeup_.busy()) + ", " +
                                   std::to_string(waits_.armed()) + " armed, " +
                                   std::to_string(runners_.count()) + " runners");
    }

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

    /// Releases the lock for a while.
    [[gnu::noinline]] void make_due_room(std::unique_lock<lock_type>& lock) {
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
            return !closed_ && files_.make_room(lock, timer, due);
        else if constexpr (growing_backend<Backend>)
            return !closed_ && files_.make_room(lock);
        else
            return false;
    }

    /// A timer was filed whose waits need the driver at `due`.
    void arm_for(tick due, commitment& out) noexcept {
        if (!wakeup_.must_arm(due))
            return;
        if (mutex_.held())
            wakeup_.arm_pinned(due, out);
        else
            wakeup_.arm(due, out); // and no other thread that might be in the way
    }

    /// A ring had no room for the waits of `timer`, or they are due at once.
    template <class Deadline>
    void finish_unfiled(timer_core& timer, const Deadline& due) noexcept {
        if (files_.refuses(due))
            waits_.finish(timer, files_.refusal());
        else
            waits_.fall_due(timer);
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
        for (std::size_t i = 0; i < emitted; ++i) {
            // The timers were just written; their waits lie anywhere in memory.
            if (constexpr std::size_t ahead = 6; i + ahead < emitted)
                static_cast<timer_core*>(found_[i + ahead])->prefetch_wait();
            waits_.fall_due(static_cast<timer_core&>(*found_[i]));
        }
    }

    void retire_locked(runner_token* token, commitment& out) noexcept {
        runners_.retire(token);
        settle(out);
    }

    [[nodiscard]] bool active() const noexcept {
        return waits_.armed() != 0 || runners_.count() != 0;
    }

    /// Waits, a runner or a pin may have ended.
    void settle(commitment& out) noexcept {
        if (closed_)
            return;
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

    void release_locked(timer_core& timer, commitment& out) noexcept {
        if (timer.filed())
            files_.backend().erase(timer);
        drop_user(out);
    }

    void drop_user(commitment& out) noexcept { out.last = --users_ == 0; }

    lock_type mutex_;
    filing<Backend> files_;
    wait_ledger waits_;
    runner_pool runners_; ///< units that drain the due queue
    wakeup_state wakeup_;
    std::unique_ptr<typename Backend::detached> set_aside_; ///< what set_back() has yet to file
    std::size_t users_ = 1;                                 ///< I5; the service is the first
    const std::size_t batch_;
    time::detail::fixed_array<time::timer_node*> found_; ///< of one batch
    unsigned set_backs_ = 0;
    bool backlog_ = false; ///< expire() stopped at its limit
    bool closed_ = false;
    bool draining_ = false;
    wait_operation* late_ = nullptr; ///< started after close()
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_SHARD_HPP
