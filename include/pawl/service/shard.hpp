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
///   The due queue is drained by runners (runner_pool.hpp). Every call says which more have to be
///   queued, and whether the driver has to be armed: its effects. Until a thread that need not run
///   the context has carried them out, the shard knows of it as untold, or as arming: nothing else
///   keeps the context at work for the waits concerned (P9).
///
/// Invariants
///   I1  There are enough runners whenever the lock is free: nothing that is due is forgotten. Each
///       of them is queued or running, or its thread is untold.
///   I2  A timer with an armed wait is filed, with the due tick of its expiry. A timer may stay
///       filed when its waits are gone (cancel does not touch the time structure); then it is
///       dropped, or moved to its new due tick, when the time structure comes across it.
///   I3  The driver is armed at or before wake_, or a thread is about to arm it, or a unit is queued
///       or runs that will collect. When nothing is armed, wake_ means nothing, and the next start
///       arms the driver.
///   I4  Nothing that the shard calls under its lock is foreign code (P5).
///   I5  The shard is alive while users_ > 0: its service, every timer that ever waited, every
///       carrier, every limit on a timer of the caller's.
///
/// Threads
///   Every call locks, but for what is asked of atomics. Timers are shared with the expiry side only
///   through their timer_core.
///
/// Cost
///   start, re-arm, cancel of one wait: O(1) under the lock, but for the one start with which a wheel
///   grows. collect: at most batch_limit timers.
#ifndef PAWL_SERVICE_SHARD_HPP
#define PAWL_SERVICE_SHARD_HPP

#include <pawl/service/driver_need.hpp>
#include <pawl/service/filing.hpp>
#include <pawl/service/optional_mutex.hpp>
#include <pawl/service/options.hpp>
#include <pawl/service/runner_pool.hpp>
#include <pawl/service/spin_mutex.hpp>
#include <pawl/service/wait_ledger.hpp>

#include <pawl/time/fixed_array.hpp>
#include <pawl/time/tick.hpp>

#include <boost/system/error_code.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace pawl::detail {

/// What the caller of a shard has to do, after the lock was released.
struct effects {
    runner_token* runners = nullptr; ///< queue these, linked by `next`
    time::tick wake = time::tick::never();
    bool arm = false;     ///< have the driver wake the shard at `wake` or earlier
    bool idle = false;    ///< nothing is armed, and no runner is queued: the driver may rest
    bool refused = false; ///< a ring was full
    bool untold = false;  ///< until this is done, shard::told() is owed for it
    bool arming = false;  ///< likewise
    unsigned armings = 0; ///< with idle: for shard::still_idle()
};

template <any_backend Backend>
class shard {
public:
    using tick = time::tick;
    using deadline = typename filing<Backend>::deadline;

    /// @param host runs the runners.
    shard(const options& o, tick now, runner_host* host = nullptr)
        : mutex_(o.locking), files_(o, now), runners_(o.completions_per_turn, host),
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
    [[nodiscard]] bool start(timer_core& timer, wait_operation& op, Deadline due, unsigned users,
                             effects& out) {
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
            return false;
        }
        if (slot_link* const link = op.slot()) {
            link->set_started();
            ++users_;
        }
        const bool idle = waits_.armed() == 0;
        const bool alone = waits_.start(timer, op);
        const filed place = files_.file(waits_, timer, due, alone);
        if constexpr (ring_backend<Backend>) {
            if (!place.done && files_.refuses(due))
                waits_.finish(timer, files_.refusal());
            else if (!place.done)
                waits_.fall_due(timer);
            settle(out);
            // A runner that another thread has yet to queue will do for this wait, which no driver has
            // been armed for: nothing else may keep the context at work until it is queued.
            if (!place.done && !out.runners && untold_.load(std::memory_order_acquire) != 0)
                arm_from_outside(tick{}, out);
        }
        const tick wake = idle ? tick::never() : wake_;
        // Another thread that is arming the driver may fail, and take back only its own wait.
        if (place.done &&
            (idle || place.wake < wake || arming_.load(std::memory_order_relaxed) != 0))
            arm_from_outside(std::min(place.wake, wake), out);
        return true;
    }

    /// Takes back a wait that was just started, if nobody has had it since: its driver could not be
    /// armed.
    /// @return true if the caller owns the wait again.
    [[nodiscard]] bool withdraw(const timer_core& timer, wait_operation& op,
                                effects& out) noexcept {
        const std::scoped_lock lock(mutex_);
        wake_ = tick::never(); // let the next start try again
        const bool withdrawn = waits_.withdraw(timer, op);
        settle(out);
        return withdrawn;
    }

    /// Ends a held wait.
    /// @param last_user if not null, a user leaves; set if the caller must delete the shard.
    /// @return true if nothing here points at the wait any more; false if its carrier will come.
    [[nodiscard]] bool withdraw(wait_operation& op, effects& out,
                                bool* last_user = nullptr) noexcept {
        const std::scoped_lock lock(mutex_);
        const bool withdrawn = withdraw_locked(op, out);
        if (last_user)
            *last_user = drop_user();
        return withdrawn;
    }

    /// Ends a held wait together with its timer, which has no other.
    /// @param last_user set if the caller must delete the shard.
    /// @return as withdraw().
    [[nodiscard]] bool leave(timer_core& timer, wait_operation& op, effects& out,
                             bool& last_user) noexcept {
        const std::scoped_lock lock(mutex_);
        const bool withdrawn = withdraw_locked(op, out);
        if (timer.filed())
            files_.backend().erase(timer);
        last_user = drop_user();
        return withdrawn;
    }

    /// Cancels up to `limit` waits of `timer` that have not started, the oldest first.
    /// @return how many.
    [[nodiscard]] std::size_t cancel(timer_core& timer, std::size_t limit, effects& out) noexcept {
        const std::scoped_lock lock(mutex_);
        const std::size_t count = waits_.cancel(timer, limit);
        settle(out);
        return count;
    }

    /// Cancels the wait that a cancellation slot belongs to, if it is still there.
    void cancel(slot_link& link, effects& out) noexcept {
        const std::scoped_lock lock(mutex_);
        wait_operation* op = link.operation();
        if (!op || !op->state.pending())
            return;
        waits_.cancel(*op, wait_ledger::aborted());
        settle(out);
    }

    /// The handler in a cancellation slot is going away.
    /// @return true if the caller must delete the shard.
    [[nodiscard]] bool forget(slot_link& link) noexcept {
        const std::scoped_lock lock(mutex_);
        if (link.operation())
            link.unlink();
        return drop_user();
    }

    /// Moves the deadline of every wait of `timer` that has not started, unless its ring refuses
    /// it: then `out.refused` is set.
    /// @return how many there are.
    /// @throws std::bad_alloc with nothing changed, if a ring has to grow.
    template <class Deadline = deadline>
    [[nodiscard]] std::size_t rearm(timer_core& timer, Deadline due,
                                    effects& out) noexcept(!ring_backend<Backend>) {
        if constexpr (ring_backend<Backend>) {
            std::unique_lock lock(mutex_);
            while (timer.newest() && make_filing_room(lock, timer, due)) {
            }
            return rearm_locked(timer, due, out);
        } else {
            const std::scoped_lock lock(mutex_);
            return rearm_locked(timer, due, out);
        }
    }

    /// The driver could not be armed for an earlier deadline.
    void arm_failed() noexcept {
        const std::scoped_lock lock(mutex_);
        wake_ = tick::never();
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
    /// @return true if the caller must delete the shard.
    [[nodiscard]] bool release(timer_core& timer) noexcept {
        const std::scoped_lock lock(mutex_);
        PAWL_ASSERT(!timer.newest());
        if (timer.filed())
            files_.backend().erase(timer);
        return drop_user();
    }

    // --- expiry -------------------------------------------------------------------------------

    struct collect_result {
        bool claimed = false; ///< the caller is a runner
        std::size_t fallen_due = 0;
    };

    /// Moves at most one batch of timers that are due at `now` into the due queue. If `claim`, and
    /// if a runner is needed, the caller counts as one: it must take().
    /// @param set_backs what seen() said before the clock was read.
    /// @param reading what was read, of a clock that may be set back.
    [[nodiscard]] collect_result collect(tick now, unsigned set_backs, bool claim, effects& out,
                                         clock_reading reading = latest) {
        const std::scoped_lock lock(mutex_);
        const std::size_t armed = waits_.armed();
        if (set_backs == set_backs_ && !(reading < files_.passed()))
            collect_locked(now, out);
        else
            arm(tick{}, out); // `now` was read before the clock was set back: look again
        claim = claim && !closed_ && runners_.claim_one(waits_.due(), backlog_);
        claim_runners(out);
        check_idle(out);
        announce(out);
        return {claim, armed - waits_.armed()};
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
        for (bool more = true; more;) {
            const std::scoped_lock lock(mutex_);
            for (std::size_t step = 0; more && step < batch_; ++step) {
                time::timer_node* node = set_aside_->pop();
                more = node != nullptr;
                if (node)
                    files_.refile(*node);
            }
            if (!more)
                all = std::move(set_aside_);
            wake_ = tick{}; // the caller collects next, which sets it right
        }
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
    };

    /// Takes the next wait that is due. If it is the `last` one of the caller's turn, or if there
    /// is none, the caller ceases to be a runner; `out.runners` are those that have to go on
    /// instead.
    /// @param collected the caller has just called collect().
    // Inlined into the one loop that runs everything; compilers think it too large for that.
    [[nodiscard, gnu::always_inline]] taken take(runner_token* token, bool last, bool collected,
                                                 effects& out) noexcept {
        const std::scoped_lock lock(mutex_);
        if (waits_.due() != 0) {
            wait_operation* const op = waits_.take();
            if (op && op->state.phase() != wait_phase::started)
                ++users_; // the carrier that the caller is about to send
            if (!op)
                arm(wake_, out); // pulled back: whoever did it may not have come to that yet (P9)
            last = last || waits_.due() == 0; // what falls due during the handler is for others
            if (last)
                retire_locked(token, out);
            return {op, false, last};
        }
        if (backlog_ && !collected)
            return {nullptr, true, false};
        retire_locked(token, out);
        return {nullptr, false, true};
    }

    /// The caller, which was queued with `token` if that is not null, ceases to be a runner.
    void retire(runner_token* token, effects& out) noexcept {
        const std::scoped_lock lock(mutex_);
        retire_locked(token, out);
    }

    /// Gives back a runner that is not going to be queued.
    void unclaim(runner_token& token) noexcept {
        const std::scoped_lock lock(mutex_);
        runners_.retire(&token);
    }

    /// The effects have been carried out, or have failed.
    void told(const effects& done) noexcept {
        // release: who reads these counts, and finds the context idle, sees what was queued.
        if (done.untold)
            untold_.fetch_sub(1, std::memory_order_release);
        if (done.arming)
            arming_.fetch_sub(1, std::memory_order_release);
    }

    /// No thread is between the lock and the end of what it has to do. told() is the last thing
    /// that such a thread does here.
    [[nodiscard]] bool all_told() const noexcept {
        return untold_.load(std::memory_order_acquire) == 0 &&
               arming_.load(std::memory_order_acquire) == 0;
    }

    /// Nothing has been armed since that many armings, when the shard was idle: it had no runner then,
    /// and no due wait, so that whoever is counted as untold has queued what there was.
    /// To be asked under the driver's lock, to which whoever arms comes afterwards.
    [[nodiscard]] bool still_idle(unsigned armings) const noexcept {
        return armings_.load(std::memory_order_relaxed) == armings;
    }

    /// To be asked under the driver's lock: whoever has armed something comes to that afterwards, and so
    /// does the last unit of what has ended, to let the driver rest.
    [[nodiscard]] driver_need need() noexcept {
        // But a ring may arm a wait and end it again while it holds the lock, and tells nobody.
        if constexpr (!ring_backend<Backend>) {
            if (waits_.armed() != 0)
                return driver_need::in_time;
        }
        const std::scoped_lock lock(mutex_);
        if (waits_.armed() != 0)
            return driver_need::in_time;
        return untold_.load(std::memory_order_acquire) != 0 ? driver_need::soon // see told()
                                                            : driver_need::nobody;
    }

    // --- carriers -----------------------------------------------------------------------------

    /// wait_host::arrive(); `last_user` says that the caller must delete the shard afterwards.
    [[nodiscard]] bool arrive(wait_operation& op, bool& last_user) noexcept {
        const std::scoped_lock lock(mutex_);
        if (!waits_.arrive(op))
            return false;
        last_user = drop_user();
        return true;
    }

    /// wait_host::park(); what a carrier does that is destroyed, too.
    /// @return false if the caller owns the wait.
    [[nodiscard]] bool park(wait_operation& op, bool& last_user) noexcept {
        const std::scoped_lock lock(mutex_);
        last_user = drop_user();
        if (waits_.arrive(op))
            return false;
        op.state.park();
        return true;
    }

    /// wait_host::arrive_or_park()
    [[nodiscard]] bool arrive_or_park(wait_operation& op, effects& out) noexcept {
        const std::scoped_lock lock(mutex_);
        [[maybe_unused]] const bool last_user = drop_user();
        PAWL_ASSERT(!last_user); // in a unit, the service is one
        if (waits_.arrive(op))
            return true;
        op.state.park();
        arm(wake_, out); // as in take()
        return false;
    }

    // --- all at once --------------------------------------------------------------------------

    /// Ends every armed wait with `ec`.
    /// @param do_it called after each batch, unlocked: carries `out` out.
    /// @return how many.
    /// @throws std::bad_alloc with nothing changed.
    template <class Function>
    std::size_t expire_all(const boost::system::error_code& ec, effects& out, Function do_it) {
        typename Backend::detached all(files_.backend());
        std::size_t count = 0;
        for (bool more = false, again = true; more || again; do_it()) {
            const std::scoped_lock lock(mutex_);
            if (!more) {
                files_.backend().detach_all(all);
                more = true;
                again = false;
            }
            again = again || set_aside_ != nullptr; // set_back() files timers behind our back
            for (std::size_t step = 0; more && step < batch_; ++step) {
                time::timer_node* node = nullptr;
                more = files_.pop(all, node) || (set_aside_ && files_.pop(*set_aside_, node));
                if (node)
                    count += waits_.finish(static_cast<timer_core&>(*node), ec);
            }
            claim_runners(out);
            check_idle(out);
            announce(out);
        }
        return count;
    }

    // --- the end ------------------------------------------------------------------------------

    /// From now on nothing starts and nothing falls due.
    void close() noexcept {
        const std::scoped_lock lock(mutex_);
        closed_ = true;
    }

    /// After close(): the next waits that nobody will run, linked by `next`. Waits whose carriers
    /// are on their way to another context are not among them.
    /// @return false if there is nothing left to drain.
    [[nodiscard]] bool drain(wait_operation*& chain) noexcept {
        const std::scoped_lock lock(mutex_);
        chain = nullptr;
        wait_operation** end = &chain;
        for (std::size_t step = 0; step < batch_; ++step) {
            if (waits_.due() == 0) {
                time::timer_node* node = nullptr;
                if (!files_.take_any(node))
                    return chain != nullptr;
                if (node)
                    (void)waits_.finish(static_cast<timer_core&>(*node), wait_ledger::aborted());
            } else if (wait_operation* const op = waits_.take_over()) {
                *end = op;
                end = &op->next;
                op->next = nullptr;
            }
        }
        return true;
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
    /// @return true if the caller must delete the shard.
    [[nodiscard]] bool release() noexcept {
        const std::scoped_lock lock(mutex_);
        return drop_user();
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
    }

private:
    using lock_type =
        optional_mutex<spin_mutex>; // held for a bounded time, and over nothing foreign

    static constexpr clock_reading latest{~std::uint64_t{0}}; ///< of a clock that is never set back

    template <class Deadline>
    std::size_t rearm_locked(timer_core& timer, Deadline due, effects& out) noexcept {
        if (closed_ || (!wait_ledger::sure_of_one(timer) && !timer.newest()))
            return 0;
        const bool idle = waits_.armed() == 0;
        const filed place = files_.file_anew(waits_, timer, due);
        if (!place.done && files_.refuses(due)) {
            out.refused = true;
            return 0;
        }
        const std::size_t count = waits_.pull_back(timer);
        if constexpr (ring_backend<Backend>) {
            if (!place.done)
                waits_.fall_due(timer);
            settle(out);
        }
        if (place.done && (idle || place.wake < wake_))
            arm_from_outside(place.wake, out);
        return count;
    }

    [[nodiscard]] bool withdraw_locked(wait_operation& op, effects& out) noexcept {
        const bool withdrawn = waits_.withdraw(op);
        if (!withdrawn || waits_.armed() == 0) // else nothing has fallen due, and others wait
            settle(out);
        return withdrawn;
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

    // --- expiry -------------------------------------------------------------------------------

    void collect_locked(tick now, effects& out) noexcept {
        if (closed_)
            return;
        if (set_aside_) {
            // While set_back() files timers anew, in any order, nothing is due. It collects
            // afterwards; until then the driver comes again and again, which keeps run() going.
            arm(tick{}, out);
            return;
        }
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
        if (!backlog_ && waits_.armed() != 0) {
            arm(files_.backend().next_wake(), out);
            return;
        }
        if (backlog_)
            wake_ = tick{}; // runners see to it; no start needs to arm the driver meanwhile
        wait_for_untold(out);
    }

    /// The driver, which is not needed for its time, comes again, at once, until no thread has
    /// runners yet to queue: they may be the only ones.
    void wait_for_untold(effects& out) noexcept {
        if (untold_.load(std::memory_order_acquire) != 0) { // see told()
            out.arm = true;
            out.wake = tick{};
        }
    }

    void arm(tick due, effects& out) noexcept {
        wake_ = due;
        driver_told_ = true;
        armings_.store(armings_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        out.arm = true;
        out.wake = due;
    }

    /// As arm(), for a thread that need not run the context.
    void arm_from_outside(tick due, effects& out) noexcept {
        arm(due, out);
        if (mutex_.held() && !std::exchange(out.arming, true))
            arming_.fetch_add(1, std::memory_order_relaxed);
    }

    // --- runners ------------------------------------------------------------------------------

    void claim_runners(effects& out) noexcept {
        if (!closed_)
            runners_.claim(waits_.due(), backlog_, out.runners);
    }

    /// The caller is going to queue runners, or to send the driver to rest.
    void announce(effects& out) noexcept {
        // Without a lock there is no other thread that could take the context for idle.
        if (!mutex_.held())
            return;
        if (out.runners && !std::exchange(out.untold, true))
            untold_.fetch_add(1, std::memory_order_relaxed);
        // Then run() may return, and the context end.
        if (out.idle && !std::exchange(out.arming, true))
            arming_.fetch_add(1, std::memory_order_relaxed);
    }

    void retire_locked(runner_token* token, effects& out) noexcept {
        runners_.retire(token);
        claim_runners(out);
        check_idle(out);
        if (backlog_) // else the driver is armed, or nothing was untold when that was given up
            wait_for_untold(out);
    }

    /// Waits may have ended.
    void settle(effects& out) noexcept {
        claim_runners(out);
        check_idle(out);
        announce(out);
    }

    /// When nothing is armed, and no runner is left that would notice, the driver may rest.
    void check_idle(effects& out) noexcept {
        if (waits_.armed() == 0 && driver_told_ && runners_.count() == 0 && !closed_) {
            driver_told_ = false;
            out.idle = true;
            out.armings = armings_.load(std::memory_order_relaxed);
        }
    }

    [[nodiscard]] bool drop_user() noexcept { return --users_ == 0; }

    lock_type mutex_;
    filing<Backend> files_;
    wait_ledger waits_;
    runner_pool runners_;                                   ///< units that drain due_
    std::unique_ptr<typename Backend::detached> set_aside_; ///< what set_back() has yet to file
    std::size_t users_ = 1;                                 ///< I5; the service is the first
    tick wake_ = tick::never();
    std::atomic<unsigned> untold_{0};  ///< threads that are about to queue runners
    std::atomic<unsigned> arming_{0};  ///< threads that will arm the driver, or let it rest
    std::atomic<unsigned> armings_{0}; ///< calls of arm()
    const std::size_t batch_;
    time::detail::fixed_array<time::timer_node*> found_; ///< of one batch
    unsigned set_backs_ = 0;
    bool backlog_ = false;     ///< expire() stopped at its limit
    bool driver_told_ = false; ///< the driver was armed since it was last told that all is idle
    bool closed_ = false;
    bool draining_ = false;
    wait_operation* late_ = nullptr; ///< started after close()
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_SHARD_HPP
