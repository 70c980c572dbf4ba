// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   One lock, one time structure, one due queue: everything that happens under the lock of one
///   shard, as calls that return what the caller must do next. No clock, no executor, no Asio:
///   tested without an io_context.
///
/// Model
///     start --> time structure --expire--> due queue --take--> handler
///                    |                        ^
///                    +------- cancel ---------+
///
///   The parts: roster.hpp is what the timers and waits are, runner_pool.hpp which units drain the
///   due queue, wakeup_state.hpp what keeps the context at work. The shard is their lock, and what
///   one needs to know of the other. Every call returns a commitment: which runners to queue, when
///   to set the driver, and what comes after.
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
///     ever waited, every alarm, every carrier, every cancellation slot, and every limit on a timer
///     of the caller. So at most users_ timers are filed, and the time structure has room for as many as
///     there were users at the last start.
///
/// Threads
///   Every public call locks, except where noted. mutex_ guards everything in the shard, and the
///   states and lists of all its waits. Expiry reaches a timer through its timer_core only.
///
/// Cost
///   start, re-arm, cancel of one wait: O(1) under the lock. What concerns many timers handles at
///   most batch_limit of them per lock acquisition (P6).
#ifndef PAWL_DETAIL_SERVICE_SHARD_HPP
#define PAWL_DETAIL_SERVICE_SHARD_HPP

#include <pawl/detail/service/filing.hpp>
#include <pawl/detail/service/observer.hpp>
#include <pawl/detail/service/optional_mutex.hpp>
#include <pawl/detail/service/roster.hpp>
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
#include <utility>

namespace pawl::detail {

/// What leaves the shard together with a wait that is withdrawn.
enum class parting {
    limit, ///< a limit on a timer of the caller's
    timer, ///< the timer, which has no other wait
};

/// What has become of a wait that was to start.
enum class admission {
    started,
    refused, ///< by options::max_pending: it completes with no_buffer_space
    closed,  ///< end_emptying() will return the wait, and the caller is a user
};

template <time::backend Backend>
class shard {
public:
    using tick = time::tick;
    using deadline = typename filing<Backend>::deadline;

    /// Held for a bounded time. No foreign code runs under it.
    using lock_type = optional_mutex<spin_mutex>;

    /// A value, and what the caller must do next.
    template <class T>
    struct result {
        T value{};
        commitment todo{};
    };

    /// @param target of the runners.
    /// @param work the context. Both are null for a shard without one.
    shard(const options& o, tick now, runner_target* target = nullptr, work_context* work = nullptr)
        : mutex_(o.locking), roster_(o, now), runners_(o.completions_per_turn, target),
          wakeup_(work) {}
    shard& operator=(shard&&) = delete;

    /// Before the first call: see options::max_pending.
    void set_bound(pending_bound& b) noexcept {
        waits().set_bound(&b);
        observers().bound();
    }

    /// Before the first call, for a scaled_backend: where its pressure is.
    void follow(const std::atomic<double>& pressure) noexcept {
        files().backend().follow(pressure);
    }

    // --- timers -------------------------------------------------------------------------------

    /// Starts a wait of `timer`. With a full ring it may be over at once.
    /// @param due the expiry: a deadline, or a settable_deadline.
    /// @param users how many users come with the wait: the timer if it is not one yet, and a limit
    ///         that will withdraw() it.
    /// @throws std::bad_alloc with nothing changed.
    template <class Deadline = deadline>
    [[nodiscard]] result<admission> start(timer_core& timer, wait_operation& op, Deadline due,
                                          unsigned users) {
        result<admission> out{admission::started};
        const locked lock(mutex_);
        start_in_lock(timer, op, due, users, out);
        return out;
    }

    /// The same while the driver may lack memory.
    /// @param t if it has begun on return, call end_trial() or take_back().
    template <class Deadline = deadline>
    [[nodiscard]] PAWL_DETAIL_COLD result<admission>
    start_on_trial(timer_core& timer, wait_operation& op, Deadline due, unsigned users,
                   wait_ledger::trial& t) {
        result<admission> out{admission::started};
        const locked lock(mutex_);
        start_in_lock(timer, op, due, users, out);
        if (out.todo.arm)
            waits().begin_trial(t, timer, op);
        return out;
    }

    /// Whether the driver was set for a start: from then on it has its memory. Does not lock.
    [[nodiscard]] bool driver_was_set() const noexcept {
        return driver_was_set_.load(std::memory_order_relaxed); // relaxed: a hint
    }

    /// The driver was set for the wait.
    void end_trial(wait_ledger::trial& t) noexcept {
        const locked lock(mutex_);
        (void)waits().end_trial(t);
        driver_was_set_.store(true, std::memory_order_relaxed);
    }

    /// The driver could not be set for the wait, which must not stay.
    /// @return false if it will complete, or has: another thread has ended it.
    [[nodiscard]] result<bool> take_back(wait_ledger::trial& t) noexcept {
        result<bool> out;
        const locked lock(mutex_);
        wait_operation* const op = waits().end_trial(t);
        out.value = op && roster_.withdraw(*op, false);
        settle<cause::outside>(out.todo);
        return out;
    }

    /// Ends a wait without a carrier, and cancels one that has a carrier.
    /// @param timer of the wait; not read for a limit.
    /// @param op embedded.
    /// @return true if nothing here points at the wait any more; false if its carrier will come, or
    ///         has come.
    template <parting With>
    [[nodiscard]] result<bool> withdraw(timer_core* timer, wait_operation& op) noexcept {
        result<bool> out;
        const locked lock(mutex_);
        out.value = roster_.withdraw(op, true);
        settle<cause::outside>(out.todo);
        if constexpr (With == parting::limit)
            user_leaves(out.todo);
        else
            timer_leaves(*timer, out.todo);
        return out;
    }

    /// Cancels up to `limit` waits of `timer` that have not begun, oldest first.
    /// @return how many.
    [[nodiscard]] PAWL_DETAIL_ALWAYS_INLINE result<std::size_t> cancel(timer_core& timer,
                                                                       std::size_t limit) noexcept {
        result<std::size_t> out;
        const locked lock(mutex_);
        out.value = roster_.cancel(timer, limit);
        if (out.value != 0)
            settle<cause::queued>(out.todo);
        return out;
    }

    /// Cancels the wait of a cancellation slot, if it still exists.
    commitment cancel(slot_link& link) noexcept {
        commitment out;
        const locked lock(mutex_);
        if (roster_.cancel(link))
            settle<cause::queued>(out);
        return out;
    }

    /// The handler in a cancellation slot is being destroyed.
    commitment forget(slot_link& link) noexcept {
        commitment out;
        const locked lock(mutex_);
        if (link.operation())
            link.unlink();
        user_leaves(out);
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
        const locked lock(mutex_);
        if constexpr (may_be_full) {
            while (timer.newest() && !closed() && !files().has_room_for(users_, timer, due))
                files().add_room(mutex_, due);
        }
        if (observers().needed()) [[unlikely]]
            rearm_observed(timer, due, out);
        else if (roster_.pending(timer))
            rearm_locked<false>(timer, due, out);
        return out;
    }

    /// Moves the place and the waits of `from` to `to`, which has none.
    /// @param alarm see roster::move()
    void move(timer_core& from, timer_core& to, wait_operation* alarm = nullptr) noexcept {
        const locked lock(mutex_);
        roster_.move(from, to, alarm);
    }

    // --- alarms -------------------------------------------------------------------------------

    /// Counts an alarm as a user, and makes room for it: to arm it needs no memory.
    /// @throws std::bad_alloc with nothing changed.
    void enlist(timer_core& timer) {
        const locked lock(mutex_);
        ++users_;
        ++alarms_;
        try {
            while (!has_room(timer, deadline{}))
                add_room(deadline{});
        } catch (...) {
            --users_; // not the last one: the service is there
            --alarms_;
            throw;
        }
    }

    /// Starts the wait of an alarm, or moves its deadline.
    /// @return false if the shard is closed, the alarm barred, or refused.
    template <class Deadline = deadline>
    [[nodiscard]] result<bool> arm(timer_core& timer, alarm_wait& op, Deadline due) noexcept {
        result<bool> out;
        const locked lock(mutex_);
        if (observers().needed_to_count()) [[unlikely]]
            out.value = arm_observed(timer, op, due, out.todo);
        else
            out.value = arm_locked<false>(timer, op, due, out.todo);
        return out;
    }

    /// Ends the wait of an alarm.
    /// @return whether it had not begun.
    [[nodiscard]] result<bool> disarm(timer_core& timer, alarm_wait& op) noexcept {
        result<bool> out;
        const locked lock(mutex_);
        out.value = roster_.disarm(timer, op);
        if (observers().needed_to_count() || !active()) [[unlikely]] // nothing was queued
            settle_now<cause::outside>(out.todo);
        return out;
    }

    /// Disarms an alarm for ever.
    commitment bar(alarm_wait& op) noexcept {
        commitment out;
        const locked lock(mutex_);
        roster_.bar(op);
        settle<cause::outside>(out);
        return out;
    }

    /// Whether the alarm keeps the context at work while it is armed. As long as the context cannot
    /// be told of work, or if its driver goes idle with it, it always does.
    commitment keep_running(timer_core& timer, bool on) noexcept {
        commitment out;
        const locked lock(mutex_);
        if (closed()) // and its context may be gone
            return out;
        if (waits().set_background(timer, !on) && on)
            wakeup_.begin();
        else
            settle_now<cause::outside>(out);
        return out;
    }

    /// The alarm goes, but stays a user until leave().
    /// @return whether it keeps its hold of `op`; false if that passes to a carrier.
    [[nodiscard]] result<bool> condemn(timer_core& timer, alarm_wait& op) noexcept {
        result<bool> out;
        const locked lock(mutex_);
        --alarms_;
        roster_.condemn(timer, op);
        out.value = !op.condemned;
        settle<cause::outside>(out.todo);
        return out;
    }

    /// The function of an alarm is about to be called.
    /// @param ec set to what it is called with.
    /// @param condemned set to whether the alarm is destroyed meanwhile.
    /// @return false if it must not be called.
    [[nodiscard]] bool begin(alarm_wait& op, boost::system::error_code& ec,
                             bool& condemned) noexcept {
        const locked lock(mutex_);
        if (!op.state.begin())
            return false;
        ec = op.result();
        condemned = op.condemned;
        return !op.barred;
    }

    // --- users --------------------------------------------------------------------------------

    /// Counts timers that have not waited, and limits, as users until they leave.
    void enroll(unsigned users = 1) noexcept {
        const locked lock(mutex_);
        users_ += users;
    }

    /// The timer is being destroyed, and has no waits.
    commitment leave(timer_core& timer) noexcept {
        commitment out;
        const locked lock(mutex_);
        PAWL_ASSERT(!timer.newest());
        timer_leaves(timer, out);
        return out;
    }

    /// Another user is being destroyed, such as the service.
    commitment leave() noexcept {
        commitment out;
        const locked lock(mutex_);
        user_leaves(out);
        return out;
    }

    // --- expiry -------------------------------------------------------------------------------

    struct findings {
        bool claimed = false; ///< the caller has become a runner
        bool crowd = false;   ///< of a late_candidate: it runs a crowd, and hurries the driver
        std::size_t fallen_due = 0;
        commitment todo{};
    };

    /// The kind of caller of collect().
    enum class collector {
        candidate,      ///< in a unit; offers to become a runner
        lone_candidate, ///< the same, if it has no units to queue
        late_candidate, ///< the same, or if it finds a crowd, for which it queues no units
        in_crowd,       ///< the same later in its turn
        covered,        ///< in a unit, or pinned in another shard
        outside,        ///< elsewhere; gets pinned if it must set the driver
    };

    /// Moves at most one batch of timers that are due at `now` into the due queue.
    /// @param set_backs what seen() returned before the clock was read.
    /// @param reading the reading, of a clock that may be set back.
    [[nodiscard]] findings collect(tick now, unsigned set_backs, collector who,
                                   clock_reading reading = latest) {
        findings out;
        const locked lock(mutex_);
        if (closed())
            return out;
        const std::size_t armed = waits().armed();
        if (files().outdated(set_backs, reading)) {
            collect_next_at(tick{}, who, out.todo); // the driver polls until all is filed again
        } else {
            backlog_ = roster_.expire(now);
            if (backlog_)
                wakeup_.will_collect_at(tick{}); // runners go on; no start needs to set the driver
            else if (waits().armed() != 0)
                collect_next_at(files().backend().next_wake(), who, out.todo);
            else
                wakeup_.will_not_collect();
        }
        out.fallen_due = armed - waits().armed();
        if (who == collector::in_crowd)
            return out;
        if (who == collector::late_candidate && (waits().due() > runner_pool::most || backlog_)) {
            runners_.join();
            wakeup_.begin();
            out.claimed = out.crowd = true;
            return out;
        }
        const bool must_come = backlog_ || observers().must_tell();
        if (who == collector::candidate) {
            out.claimed = runners_.claim_one(waits().due(), must_come);
        } else if (who == collector::lone_candidate || who == collector::late_candidate) {
            out.claimed = runners_.claim_lone(waits().due(), must_come);
            if (!out.claimed && out.fallen_due != 0)
                runners_.claim_to_find_out(waits().due(), out.todo.runners);
        }
        if (who == collector::outside)
            settle<cause::queued>(out.todo);
        else
            settle_now<cause::in_unit>(out.todo);
        return out;
    }

    [[nodiscard]] filing_sight seen() noexcept {
        const locked lock(mutex_);
        return files().seen();
    }

    /// The clock was set back: the time structure has seen a later time than `now`, or an expiry
    /// that had passed lies ahead at `reading`. Files everything again, in batches.
    void set_back(tick now, clock_reading reading = latest) {
        auto all = std::make_unique<typename Backend::detached>(files().backend());
        {
            const locked lock(mutex_);
            while (!files().has_room_to_detach(users_))
                files().add_room(mutex_);
            if (!files().set_back(now, reading, all))
                return;
        }
        in_batches(
            [&] {
                const bool more = files().refile_one();
                if (!more)
                    all = files().end_set_back();
                return more;
            },
            [&] { wakeup_.will_collect_at(tick{}); }, // the caller collects next
            [] {});
    }

    /// Whether the driver ought to have woken up before `now`.
    [[nodiscard]] bool passed(tick now) noexcept {
        const locked lock(mutex_);
        return !closed() && wakeup_.passed(now);
    }

    struct taken {
        wait_operation* op = nullptr;       ///< complete this wait, or hand it over
        shard_observer* observer = nullptr; ///< must complete it, if it is direct
        bool behind = false;                ///< nothing was taken: collect(), then try again
        bool retired = false;               ///< the caller is no longer a runner
        commitment todo{};
    };

    /// Takes the next wait that is due. If it is the `last` of the caller's turn, or there is none,
    /// the caller ceases to be a runner, and other runners take over.
    /// @param up_to_date the caller has just called collect().
    /// @param first the first wait of the turn.
    /// @param alone the driver comes in place of others, unless the caller ceases.
    // Forced inline: called by the one loop that runs everything, but over the compilers' size limit.
    [[nodiscard]] PAWL_DETAIL_ALWAYS_INLINE taken take(runner_token* token, bool last,
                                                       bool up_to_date, bool first = true,
                                                       bool alone = false) noexcept {
        taken out;
        const locked lock(mutex_);
        if (first && !up_to_date && token) {
            if (runners_.begin(*token)) [[unlikely]] {
                retire_locked(token, out.todo);
                out.retired = true;
                return out;
            }
        }
        if (waits().due() != 0) {
            out.op = waits().take();
            if (out.op && out.op->state.phase() != wait_phase::started)
                ++users_; // the carrier that the caller will send
            // Other runners take what becomes due meanwhile.
            last = last || (waits().due() == 0 && !(alone && backlog_));
        } else {
            out.behind = backlog_ && !up_to_date;
            last = !out.behind;
        }
        if (observers().needed_to_count()) [[unlikely]] {
            waits().count_ends();
            out.observer = observers().note_start(out.op);
        }
        if (last) {
            if (!first)
                runners_.rely_on();
            retire_locked(token, out.todo);
        } else if (!out.behind) {
            if (first)
                runners_.set_aside();
            if (!alone && runners_.wants_more(waits().due(), backlog_))
                settle<cause::in_unit>(out.todo);
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

    // --- carriers -----------------------------------------------------------------------------

    /// wait_arbiter::arrive()
    [[nodiscard]] result<bool> arrive(wait_operation& op) noexcept {
        result<bool> out;
        const locked lock(mutex_);
        out.value = waits().arrive(op);
        if (out.value)
            carrier_ends(&op, timer_event_kind::started, out.todo);
        return out;
    }

    /// wait_arbiter::arrive_or_park(). Also called by a carrier that is destroyed.
    /// @param what the event to note if the wait is not parked.
    /// @return true if the caller owns the wait.
    [[nodiscard]] result<bool> arrive_or_park(wait_operation& op, timer_event_kind what) noexcept {
        result<bool> out;
        const locked lock(mutex_);
        out.value = waits().arrive_or_park(op);
        carrier_ends(out.value ? &op : nullptr, what, out.todo);
        return out;
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
        typename Backend::detached all(files().backend());
        {
            const locked lock(mutex_);
            for (;;) {
                // Otherwise set_back() would file them behind our back.
                for (std::size_t n = 1; files().refile_one(); ++n) {
                    if (n % roster_.batch() == 0) {
                        const unlocked meanwhile(mutex_);
                        mutex_.give_way();
                    }
                }
                if (files().has_room_to_detach(users_))
                    break;
                files().add_room(mutex_);
            }
            files().backend().detach_all(all);
        }
        std::size_t count = 0;
        commitment todo;
        in_batches(
            [&] {
                time::timer_node* node = nullptr;
                if (!files().pop(all, node))
                    return false;
                if (node)
                    count += roster_.finish(timer_event_kind::cancelled, *node, ec, how);
                return true;
            },
            [&] { settle<cause::queued>(todo); }, [&] { carry_out(std::exchange(todo, {})); });
        return count;
    }

    // --- the end ------------------------------------------------------------------------------

    /// From now on no wait starts or becomes due.
    void close() noexcept {
        const locked lock(mutex_);
        observers().close();
        waits().set_bound(nullptr); // it goes with the service
    }

    /// Whether close() was called.
    [[nodiscard]] bool has_closed() noexcept {
        const locked lock(mutex_);
        return closed();
    }

    /// After close(): passes the remaining waits to `end`, unlocked, in chains linked by `next`.
    /// Excludes waits whose carriers are on their way to another context.
    /// @return true if there were any: `end` may have started more.
    template <class End>
    [[nodiscard]] bool empty_batch(End end) {
        bool any = false;
        wait_operation* chain = nullptr;
        wait_operation** last = &chain;
        in_batches(
            [&] {
                wait_operation* op = nullptr;
                if (!roster_.remove_any(op))
                    return false;
                if (op) {
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

    /// Returns true to one thread, which must empty the shard.
    [[nodiscard]] bool begin_emptying() noexcept {
        const locked lock(mutex_);
        return !std::exchange(emptying_, true);
    }

    /// @return waits started after close(), linked by `next`, for the caller to destroy; nullptr if
    ///         there are none, and the shard is empty.
    [[nodiscard]] wait_operation* end_emptying() noexcept {
        const locked lock(mutex_);
        emptying_ = late_ != nullptr;
        return std::exchange(late_, nullptr);
    }

    // --- the context --------------------------------------------------------------------------

    /// A guard for a unit, which detects other threads where locking is disabled.
    [[nodiscard]] auto run_unit() noexcept { return typename lock_type::unit(mutex_); }

    /// The pinned caller has set the driver, or failed to.
    commitment unpin() noexcept {
        commitment out;
        const locked lock(mutex_);
        wakeup_.unpin();
        settle<cause::outside>(out);
        return out;
    }

    /// The driver could not be set: the next start will try again.
    void arm_failed() noexcept {
        const locked lock(mutex_);
        wakeup_.will_not_collect();
    }

    /// A thread that was sent on an errand has finished it. Does not lock.
    void end_errand() noexcept { wakeup_.end_errand(); }

    /// Whether no thread still carries out a commitment of this shard.
    [[nodiscard]] bool errands_done() noexcept {
        const locked lock(mutex_);
        return wakeup_.errands_done();
    }

    /// The context can be told of work from now on.
    void count_work() noexcept {
        const locked lock(mutex_);
        wakeup_.count_work();
    }

    /// The shard is closed and empty.
    /// @return wakeup_state::end()
    [[nodiscard]] bool end_work() noexcept {
        const locked lock(mutex_);
        return wakeup_.end();
    }

    /// Does not lock.
    [[nodiscard]] bool busy() const noexcept { return wakeup_.busy(); }

    // --- observers ----------------------------------------------------------------------------

    [[nodiscard]] lock_type& mutex() noexcept { return mutex_; }

    /// observed_shard::observe(), under the lock.
    void observe(shard_observer* observer, bool watched, bool named, const moment& now) noexcept {
        observers().observe(observer, watched, named, now, waits().due() != 0);
    }

    /// See attention. These need no lock.
    [[nodiscard]] bool watched() const noexcept { return roster_.observers().watched(); }
    [[nodiscard]] bool turn_is_news() const noexcept { return roster_.observers().turn_is_news(); }

    /// A turn begins at `now`.
    /// @return the observer on which the caller, in a unit, must call tell(); null if no reader
    ///         sleeps.
    [[nodiscard]] shard_observer* begin_turn(const moment& now) noexcept {
        const locked lock(mutex_);
        return observers().begin_turn(now, waits().due() <= 1 && !backlog_);
    }

    /// A carrier has arrived at `now`.
    void now_is(const moment& now) noexcept {
        const locked lock(mutex_);
        observers().now_is(now);
    }

    /// Its counts are read under the lock.
    [[nodiscard]] const roster<Backend>& timers() const noexcept { return roster_; }

    // --- for tests and for clocks under control -----------------------------------------------

    /// Waits that are due or cancelled and whose handlers have not begun, excluding those handed
    /// over. O(1) for each.
    [[nodiscard]] std::size_t due_count() noexcept {
        const locked lock(mutex_);
        return waits().ready();
    }

    /// A lower bound of the next tick at which anything is due.
    [[nodiscard]] tick next_wake() noexcept {
        const locked lock(mutex_);
        return waits().armed() != 0 ? files().backend().next_wake() : tick::never();
    }

private:
    template <class>
    friend struct invariant_of; // of the tests

    static constexpr bool may_be_full = roster<Backend>::may_be_full;
    static constexpr clock_reading latest{
        ~std::uint64_t{0}}; ///< for clocks that are never set back

    [[nodiscard]] filing<Backend>& files() noexcept { return roster_.files(); }
    [[nodiscard]] wait_ledger& waits() noexcept { return roster_.ledger(); }
    [[nodiscard]] const wait_ledger& waits() const noexcept { return roster_.ledger(); }
    [[nodiscard]] attention& observers() noexcept { return roster_.observers(); }
    [[nodiscard]] bool closed() const noexcept { return roster_.observers().closed(); }

    // --- settling -----------------------------------------------------------------------------

    [[nodiscard]] bool active() const noexcept {
        return waits().keeping() != 0 || runners_.count() != 0 ||
               (waits().armed() != 0 && !wakeup_.driver_stays());
    }

    /// Why a call settles.
    enum class cause {
        in_unit, ///< the caller is in a unit
        outside, ///< the caller may be elsewhere
        queued,  ///< the same, and it has queued entries
    };

    /// Waits, a runner or a pin may have begun or ended: claims the runners that are needed, or
    /// lets the shard go quiet.
    template <cause Why>
    PAWL_DETAIL_ALWAYS_INLINE void settle(commitment& out) noexcept {
        // Nearly always all is settled, but not once entries are queued.
        const bool settled = Why != cause::queued && !observers().needed_to_count() && active() &&
                             !runners_.wants_more(waits().due(), backlog_);
        if (!settled) [[unlikely]]
            settle_now<Why>(out);
    }
    template <cause Why>
    PAWL_DETAIL_NOINLINE void settle_now(commitment& out) noexcept {
        if (observers().needed_to_count()) [[unlikely]] {
            if (closed())
                return;
            waits().count_ends();
        }
        if (Why == cause::queued)
            runners_.claim_if_held(waits().due(), out.runners);
        if (observers().must_tell()) [[unlikely]] // units that are set aside come too late
            runners_.claim(0, true, out.runners);
        runners_.claim(waits().due(), backlog_, out.runners);
        if (wakeup_.settle(active(), out)) [[unlikely]]
            runners_.claim_one_more(out.runners);
        // Without a lock no other thread can end the context meanwhile.
        if (Why != cause::in_unit && out.runners && mutex_.held())
            wakeup_.begin_errand(out);
    }

    void retire_locked(runner_token* token, commitment& out) noexcept {
        runners_.retire(token);
        settle<cause::in_unit>(out);
    }

    // --- users --------------------------------------------------------------------------------

    void user_leaves(commitment& out) noexcept {
        PAWL_ASSERT(users_ != 0);
        if (--users_ == 0) [[unlikely]]
            out.after = commitment::sequel::destroy;
    }

    void timer_leaves(timer_core& timer, commitment& out) noexcept {
        roster_.erase(timer);
        user_leaves(out);
    }

    /// @param owned the wait of the carrier, which completes or destroys it; nullptr if it was
    ///        parked.
    void carrier_ends(const wait_operation* owned, timer_event_kind what,
                      commitment& out) noexcept {
        if (observers().needed_to_count()) [[unlikely]] {
            waits().count_ends();
            if (owned) {
                roster_.note_arrival(*owned, what);
                settle<cause::outside>(out);
            }
        }
        user_leaves(out);
    }

    // --- starting -----------------------------------------------------------------------------

    /// The due queue may have so many entries once another wait has started.
    [[nodiscard]] std::size_t entries() const noexcept { return waits().live() + alarms_ + 1; }

    /// Whether another wait fits, of `timer`. A closed shard needs no room.
    template <class Deadline>
    [[nodiscard]] bool has_room(timer_core& timer, const Deadline& due) {
        const std::size_t n = entries();
        return (waits().has_room_for(n) && runners_.has_room_for(n) &&
                ((timer.filed() && timer.newest()) || files().has_room_for(users_, timer, due))) ||
               closed();
    }

    /// Adds to the first part that lacks room, with the lock released. If two threads do so at the
    /// same time, there is more than needed.
    template <class Deadline>
    PAWL_DETAIL_NOINLINE void add_room(const Deadline& due) {
        const std::size_t n = entries();
        if (!waits().has_room_for(n))
            waits().add_room(*unlocked_new<due_queue::segment>());
        else if (!runners_.has_room_for(n))
            runners_.add_room(*unlocked_new<runner_pool::part>());
        else
            files().add_room(mutex_, due);
    }
    template <class Part>
    [[nodiscard]] Part* unlocked_new() {
        const unlocked meanwhile(mutex_);
        return new Part;
    }

    void will_start(wait_operation& op) noexcept {
        if (slot_link* const link = op.slot()) {
            link->set_started();
            ++users_;
        }
        wakeup_.begin();
    }

    template <class Deadline>
    PAWL_DETAIL_ALWAYS_INLINE void start_in_lock(timer_core& timer, wait_operation& op,
                                                 const Deadline& due, unsigned users,
                                                 result<admission>& out) {
        users_ += users; // even if this fails: the handler may own the timer
        while (!has_room(timer, due))
            add_room(due);
        if (observers().needed_to_count()) [[unlikely]]
            out.value = start_observed(timer, op, due, out.todo);
        else
            start_locked(timer, op, due, out.todo);
    }

    /// start() without the checks.
    template <class Deadline>
    PAWL_DETAIL_ALWAYS_INLINE void start_locked(timer_core& timer, wait_operation& op,
                                                const Deadline& due, commitment& out) noexcept {
        will_start(op);
        was_filed(roster_.start(timer, op, due), out);
    }

    /// start() of a shard that is closed, bounded or observed. Out of line, which keeps the other
    /// path short.
    template <class Deadline>
    PAWL_DETAIL_COLD admission start_observed(timer_core& timer, wait_operation& op,
                                              const Deadline& due, commitment& out) noexcept {
        if (closed()) {
            ++users_; // the caller, until it calls leave()
            wait_ledger::unlink_slot(op);
            op.next = std::exchange(late_, &op);
            return admission::closed;
        }
        if (!waits().admit()) {
            will_start(op);
            roster_.refuse(timer, op, due);
            settle<cause::queued>(out);
            return admission::refused;
        }
        start_locked(timer, op, due, out);
        if (observers().must_tell())
            settle<cause::outside>(out);
        return admission::started;
    }

    template <bool Observed, class Deadline>
    PAWL_DETAIL_ALWAYS_INLINE bool arm_locked(timer_core& timer, alarm_wait& op,
                                              const Deadline& due, commitment& out) noexcept {
        const bool moves = roster_.pending(timer);
        // Nearly always the wait itself is not read.
        if (!moves && !wait_ledger::dormant(timer) && op.barred) [[unlikely]]
            return false;
        if (Observed && !moves && !waits().admit(timer, op))
            return false;
        if (!wakeup_.busy() && !wait_ledger::in_background(timer)) [[unlikely]]
            wakeup_.begin();
        was_filed(roster_.template arm<Observed>(timer, op, moves, due), out);
        return true;
    }

    template <class Deadline>
    PAWL_DETAIL_COLD bool arm_observed(timer_core& timer, alarm_wait& op, const Deadline& due,
                                       commitment& out) noexcept {
        if (closed())
            return false;
        const bool armed = arm_locked<true>(timer, op, due, out);
        if (observers().must_tell())
            settle<cause::outside>(out);
        return armed;
    }

    /// @pre roster::pending(timer)
    template <bool Observed, class Deadline>
    PAWL_DETAIL_ALWAYS_INLINE void rearm_locked(timer_core& timer, const Deadline& due,
                                                rearmed& out) noexcept {
        const auto [count, place] = roster_.template rearm<Observed>(timer, due);
        if constexpr (may_be_full) {
            out.refused = place.refused();
            if (out.refused)
                return;
        }
        out.count = count;
        wakeup_.begin();
        was_filed(place, out.todo);
    }

    template <class Deadline>
    PAWL_DETAIL_COLD void rearm_observed(timer_core& timer, const Deadline& due,
                                         rearmed& out) noexcept {
        if (closed() || !roster_.pending(timer))
            return;
        rearm_locked<true>(timer, due, out);
        if (observers().must_tell())
            settle<cause::outside>(out.todo);
    }

    /// A timer was filed: sets the driver if that is the earliest. Or a full ring has refused it,
    /// or made another one fall due.
    PAWL_DETAIL_ALWAYS_INLINE void was_filed(const filed& place, commitment& out) noexcept {
        if (place.done && wakeup_.must_arm(place.wake)) {
            if (mutex_.held() || !wakeup_.busy())
                wakeup_.arm_pinned(place.wake, out);
            else
                wakeup_.arm(place.wake, out); // there is no other thread
        }
        if constexpr (may_be_full) {
            if (!place.done || place.overflowed)
                settle<cause::queued>(out);
        }
    }

    void collect_next_at(tick t, collector who, commitment& out) noexcept {
        wakeup_.will_collect_at(t);
        if (who == collector::outside && mutex_.held())
            wakeup_.arm_pinned(t, out);
        else
            wakeup_.arm(t, out);
    }

    /// Calls `step` until it returns false, at most batch_limit times per lock acquisition; after
    /// each batch `end`, still locked, then `after`, unlocked.
    template <class Step, class End, class After>
    void in_batches(Step step, End end, After after) {
        for (bool more = true; more;) {
            {
                const locked lock(mutex_);
                std::size_t n = 0;
                for (; more && n < roster_.batch(); ++n)
                    more = step();
                PAWL_ASSERT(n != 0);
                end();
            }
            after();
            mutex_.give_way();
        }
    }

    lock_type mutex_;
    roster<Backend> roster_;
    runner_pool runners_; ///< units that drain the due queue
    wakeup_state wakeup_;
    std::size_t users_ = 1;  ///< see the user invariant; the service is the first
    std::size_t alarms_ = 0; ///< room for so many entries is never given to waits of timers
    bool backlog_ = false;   ///< expire() stopped at its limit
    bool emptying_ = false;
    std::atomic<bool> driver_was_set_{false};
    wait_operation* late_ = nullptr; ///< started after close()
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_SHARD_HPP
