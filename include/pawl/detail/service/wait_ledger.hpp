// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The waits of a shard: their counts, and every transition of wait_state.hpp together with the
///   lists that it changes (the waits of a timer, the due queue, the link to a cancellation slot).
///
/// Invariants
///   - Live-count invariant: armed() <= live(), where live() counts the waits that have not begun.
///     The due queue has room for each of them.
///   - Bound invariant: whenever the lock is free, counted_ is the number of live waits that were
///     not refused, if there is a bound.
///   - Hint invariant: two bits of timer_node::user summarise the waits of a timer, so that these
///     need not be read. A hint is reliable; none carries no information. The wait of a dormant
///     alarm still says `armed`, although the alarm is not: make_idle() corrects that.
///
/// Threads
///   Guarded by the shard's lock, except armed().
///
/// Cost
///   O(1) for one wait; no call allocates.
#ifndef PAWL_DETAIL_SERVICE_WAIT_LEDGER_HPP
#define PAWL_DETAIL_SERVICE_WAIT_LEDGER_HPP

#include <pawl/detail/service/due_queue.hpp>

#include <pawl/detail/wait/timer_core.hpp>
#include <pawl/detail/wait/wait_operation.hpp>

#include <boost/asio/error.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pawl::detail {

/// How many waits the shards of a service may have together. Any thread may call it.
class pending_bound {
public:
    explicit pending_bound(std::size_t most) noexcept : most_(most) {}
    pending_bound& operator=(pending_bound&&) = delete;

    /// @return false if there are as many waits as there may be.
    [[nodiscard]] bool take() noexcept {
        // relaxed: a count only. The same holds below.
        std::size_t n = count_.load(std::memory_order_relaxed);
        do {
            if (n >= most_)
                return false;
        } while (!count_.compare_exchange_weak(n, n + 1, std::memory_order_relaxed));
        return true;
    }
    void give_back(std::size_t n) noexcept { count_.fetch_sub(n, std::memory_order_relaxed); }

private:
    const std::size_t most_;
    std::atomic<std::size_t> count_{0};
};

class wait_ledger {
public:
    static const boost::system::error_code& aborted() noexcept {
        static const boost::system::error_code ec = boost::asio::error::operation_aborted;
        return ec;
    }
    static const boost::system::error_code& refusal() noexcept {
        static const boost::system::error_code ec = boost::asio::error::no_buffer_space;
        return ec;
    }

    /// Waits that have not begun.
    [[nodiscard]] std::size_t live() const noexcept { return live_; }
    /// How many of those are armed. May be called without the lock.
    [[nodiscard]] std::size_t armed() const noexcept {
        return armed_.load(std::memory_order_relaxed); // relaxed: a count only
    }
    /// How many of the armed ones keep the context at work.
    [[nodiscard]] std::size_t keeping() const noexcept { return armed() - background_; }
    /// Waits ever started. Each is live, has expired, or has ended otherwise.
    [[nodiscard]] std::uint64_t started() const noexcept { return started_; }
    /// Waits that have begun with success.
    [[nodiscard]] std::uint64_t expired() const noexcept { return expired_; }

    /// Entries of the due queue.
    [[nodiscard]] std::size_t due() const noexcept { return due_.size(); }

    /// How many of the entries are due or cancelled, not pulled back. O(due())
    [[nodiscard]] std::size_t ready() const noexcept {
        std::size_t count = 0;
        due_.for_each(
            [&](due_entry e) { count += e.cancelled() || !e.operation().state.finds_nothing(); });
        return count;
    }

    [[nodiscard]] bool has_room_for(std::size_t waits) const noexcept {
        return due_.has_room_for(waits);
    }
    /// Takes ownership.
    void add_room(due_queue::segment& room) noexcept { due_.add_room(room); }

    // --- options::max_pending -------------------------------------------------------------------

    /// @param b null: there is none, or no longer.
    void set_bound(pending_bound* b) noexcept { bound_ = b; }

    /// One more wait is to start.
    /// @return false if it is refused.
    [[nodiscard]] bool admit() noexcept {
        if (!bound_)
            return true;
        const bool admitted = bound_->take();
        counted_ += admitted;
        refusals_ += !admitted;
        return admitted;
    }
    /// The same for an alarm that is not armed. If its entry is still on its way, that counts.
    [[nodiscard]] bool admit(const timer_core& timer, const alarm_wait& op) noexcept {
        return (!dormant(timer) && op.state.carried()) || admit();
    }

    /// Called before the lock is released if waits may have begun, or ended.
    void count_ends() noexcept {
        if (!bound_)
            return;
        PAWL_ASSERT(counted_ >= live_ - refused_);
        if (const std::size_t ended = counted_ - (live_ - refused_); ended != 0)
            bound_->give_back(ended);
        counted_ = live_ - refused_;
    }

    /// Starts a wait that is over at once. Its timer never has it.
    /// @pre there is room.
    void refuse(wait_operation& op) noexcept {
        op.state.arm();
        (void)op.state.cancel(); // true: it had no carrier
        due_.push(due_entry(op));
        op.set_refused();
        op.set_result(refusal(), wait_ending::early);
        ++live_;
        ++started_;
        ++refused_;
    }

    /// Waits and armings ever refused.
    [[nodiscard]] std::uint64_t refusals() const noexcept { return refusals_; }

    /// idle -> armed.
    /// @pre there is room.
    /// @return true if `op` is the only wait of `timer`.
    bool start(timer_core& timer, wait_operation& op) noexcept {
        op.state.arm();
        const bool alone = !timer.newest();
        timer.append(op);
        timer.set_user(!alone ? 0 : op.shared() ? one_armed : one_armed | unshared, known);
        ++live_;
        ++started_;
        add_armed(1);
        return alone;
    }

    /// A wait whose start may yet fail, as the driver may find no memory. The object is in the frame of
    /// the thread that starts it: if the wait has begun in another thread, it may be gone by then,
    /// and its timer, too.
    struct trial {
        bool begun = false; ///< for that thread; the lock guards the rest
        wait_operation* op; ///< null once it has begun, was handed over, or was withdrawn
        trial* next;
    };
    void begin_trial(trial& t, timer_core& timer, wait_operation& op) noexcept {
        t = {true, &op, std::exchange(trials_, &t)};
        op.set_on_trial(true);
        timer.set_user(0, known); // a noted cancel would leave it armed, without a timer
    }
    /// @return the wait; null if it has begun, was handed over, or was withdrawn.
    wait_operation* end_trial(trial& t) noexcept {
        trial** place = &trials_;
        while (*place != &t)
            place = &(*place)->next;
        *place = t.next;
        if (t.op)
            t.op->set_on_trial(false);
        return t.op;
    }

    /// The same for an alarm, idle, started or cancelled -> armed.
    void start(timer_core& timer, alarm_wait& op) noexcept {
        bool new_entry = true;
        if (!dormant(timer)) [[unlikely]] {
            new_entry = !op.state.carried(); // otherwise its entry is still on its way
            op.state.arm();
            op.clear_result(timer);
        }
        live_ += new_entry;
        timer.set_newest(&op); // the list of one wait is ready
        timer.set_user(new_entry ? one_armed : 0, known);
        ++started_;
        add_armed(1);
        if (in_background(timer)) [[unlikely]]
            ++background_;
    }

    /// Whether the timer is that of an alarm that is not armed, whose wait has no carrier, and is
    /// not barred. May return false negatives.
    [[nodiscard]] static bool dormant(const timer_core& timer) noexcept {
        return (timer.user() & known) == unshared;
    }
    /// The wait of an alarm that is not armed says so, too.
    static void make_idle(timer_core& timer, alarm_wait& op) noexcept {
        if (!dormant(timer))
            return;
        op.state.disarm();
        timer.set_user(0, known);
    }

    /// Whether the timer is that of an alarm that, while it is armed, does not keep the context at
    /// work.
    [[nodiscard]] static bool in_background(const timer_core& timer) noexcept {
        return (timer.user() & background) != 0;
    }
    /// @return whether the alarm is armed.
    bool set_background(timer_core& timer, bool on) noexcept {
        const bool armed = timer.newest() && timer.newest()->state.phase() == wait_phase::armed;
        if (armed)
            background_ += std::size_t{on} - std::size_t{in_background(timer)};
        timer.set_user(on ? background : 0, background);
        return armed;
    }

    /// Ends an armed wait without a carrier.
    /// @return true if nothing here points at it any more.
    [[nodiscard]] bool withdraw(wait_operation& op) noexcept {
        if (!op.state.withdraw())
            return false;
        if (op.on_trial()) [[unlikely]]
            forget_trial(op);
        unlink_slot(op);
        detach(op);
        --live_;
        take_armed(1);
        return true;
    }

    /// Ends the wait of an alarm. Its carrier, if it has one, stays on its way.
    /// @return false if it is not armed.
    bool disarm(timer_core& timer, alarm_wait& op) noexcept {
        if (!timer.newest())
            return false;
        const bool sure = sure_of_one(timer);
        if (sure || op.state.phase() == wait_phase::armed) [[likely]] {
            take_armed(1);
            if (in_background(timer)) [[unlikely]]
                --background_;
        }
        timer.set_newest(nullptr);
        timer.set_user(sure ? unshared : 0, known); // dormant, if the wait is not read
        live_ -= sure || !op.state.carried();
        if (!sure) [[unlikely]]
            op.state.disarm();
        return true;
    }

    /// The alarm goes.
    void condemn(timer_core& timer, alarm_wait& op) noexcept {
        (void)disarm(timer, op);
        make_idle(timer, op);
        op.condemned = op.state.condemn();
        if (op.condemned)
            op.set_result(aborted());
        else
            op.lose_owner();
    }

    /// The alarm is disarmed for ever.
    void bar(alarm_wait& op) noexcept {
        if (timer_core* const timer = op.owner()) {
            (void)disarm(*timer, op);
            make_idle(*timer, op);
        }
        op.barred = true;
    }

    /// Cancels up to `limit` waits of `timer` that have not begun, the oldest first.
    /// @return how many.
    std::size_t cancel(timer_core& timer, std::size_t limit) noexcept {
        std::size_t count = 0;
        if ((timer.user() & known) == (one_armed | unshared) && limit != 0) {
            due_.push(due_entry(*timer.newest(), true)); // the wait itself is not read
            timer.set_newest(nullptr);
            timer.set_user(0, known);
            take_armed(1);
            count = 1;
        }
        for (; timer.newest() && count < limit; ++count)
            cancel(*timer.newest()->next, aborted());
        return count;
    }

    /// armed, due -> cancelled, with `ec`.
    void cancel(wait_operation& op, const boost::system::error_code& ec,
                wait_ending how = wait_ending::cancelled) noexcept {
        take_armed(op.state.phase() == wait_phase::armed);
        if (op.state.cancel())
            due_.push(due_entry(op));
        detach(op);
        op.set_result(ec, how);
    }

    /// Ends the armed waits of a timer with `ec`.
    /// @param disarms whether that disarms an alarm, whatever its function takes; but see
    ///         alarm_wait::always_calls().
    /// @return how many.
    std::size_t finish(timer_core& timer, const boost::system::error_code& ec, wait_ending how,
                       bool disarms) noexcept {
        std::size_t count = 0;
        timer.for_each_wait([&](wait_operation& op) {
            if (op.state.phase() == wait_phase::armed) {
                ++count;
                if (op.is_alarm()) {
                    auto& alarm = static_cast<alarm_wait&>(op);
                    const bool calls = alarm.always_calls();
                    if (!calls && (disarms || !alarm.takes_code())) {
                        disarm(timer, alarm);
                        return;
                    }
                    background_ -= in_background(timer);
                    if (calls)
                        return cancel(op, aborted(), how);
                }
                cancel(op, ec, how);
            }
        });
        return count;
    }

    /// Whether `timer` has exactly one wait, which is armed and has no carrier. May return false
    /// negatives.
    [[nodiscard]] static bool sure_of_one(const timer_core& timer) noexcept {
        return (timer.user() & one_armed) != 0;
    }

    /// due -> armed for the due waits of `timer`.
    /// @return how many waits of `timer` are now armed.
    std::size_t pull_back(timer_core& timer) noexcept {
        if (sure_of_one(timer))
            return 1;
        std::size_t count = 0;
        bool carried = false;
        timer.for_each_wait([&](wait_operation& op) {
            ++count;
            carried |= op.state.carried();
            if (op.state.phase() == wait_phase::due) {
                op.state.pull_back();
                add_armed(1);
                background_ += in_background(timer);
            }
        });
        timer.set_user(count == 1 && !carried ? one_armed : 0, known);
        return count;
    }

    /// armed -> due for the armed waits of `timer`.
    void fall_due(timer_core& timer) noexcept {
        if (!timer.newest()) // and if it is dormant, it stays so
            return;
        timer.set_user(0, known);
        timer.for_each_wait([&](wait_operation& op) {
            if (op.state.phase() != wait_phase::armed)
                return;
            if (op.state.fall_due())
                due_.push(due_entry(op));
            take_armed(1);
            background_ -= in_background(timer);
        });
    }

    /// Takes the first entry of the due queue.
    /// @return its wait: the caller owns it if it has begun, otherwise must hand it over. nullptr
    ///         if it was pulled back.
    [[nodiscard]] wait_operation* take() noexcept {
        wait_operation& op = next();
        if (op.direct() || op.state.finds_nothing())
            return arrive_or_park(op);
        // The caller reads the bits beside that of the trial without the lock.
        if (op.on_trial()) [[unlikely]]
            forget_trial(op);
        return &op;
    }

    /// take() without a hand-over: the caller owns the wait.
    [[nodiscard]] wait_operation* take_over() noexcept { return arrive_or_park(next()); }

    /// due, cancelled -> started, for a carrier: wait_state::arrive() decides.
    /// @return true if the caller now owns the wait; false if it was pulled back.
    [[nodiscard]] bool arrive(wait_operation& op) noexcept {
        if (!op.state.arrive())
            return false;
        // Unreachable from slot and timer from here on.
        unlink_slot(op);
        if (op.owner()) {
            detach(op);
            ++expired_;
        }
        PAWL_ASSERT(live_ > armed());
        --live_;
        if (op.special()) [[unlikely]] {
            if (op.on_trial())
                forget_trial(op);
            else if (op.refused())
                --refused_;
            else
                static_cast<alarm_wait&>(op).hold();
        }
        return true;
    }

    /// arrive(); if the wait was pulled back, ends its carrier.
    /// @return the wait, which the caller owns, or nullptr.
    [[nodiscard]] wait_operation* arrive_or_park(wait_operation& op) noexcept {
        if (arrive(op))
            return &op;
        live_ -= op.state.phase() == wait_phase::idle; // an alarm that was disarmed
        op.state.park();                               // any other is filed
        return nullptr;
    }

    /// How many waits of `timer` are armed. O(waits)
    [[nodiscard]] static std::size_t armed_of(const timer_core& timer) noexcept {
        std::size_t count = 0;
        timer.for_each_wait(
            [&](const wait_operation& op) { count += op.state.phase() == wait_phase::armed; });
        return count;
    }

    static void unlink_slot(wait_operation& op) noexcept {
        if (slot_link* const link = op.slot())
            link->unlink();
    }

private:
    static constexpr unsigned one_armed = 1;  ///< exactly one wait, armed and without a carrier
    static constexpr unsigned unshared = 2;   ///< only the timer points at it; alone: dormant()
    static constexpr unsigned known = 3;      ///< both bits; the filing uses the next one
    static constexpr unsigned background = 8; ///< see in_background()

    static void detach(wait_operation& op) noexcept {
        timer_core& timer = op.timer();
        timer.remove(op);
        timer.set_user(0, known);
    }

    /// The wait goes.
    void forget_trial(wait_operation& op) noexcept {
        trial* t = trials_;
        while (t->op != &op)
            t = t->next;
        t->op = nullptr;
        op.set_on_trial(false);
    }

    [[nodiscard]] wait_operation& next() noexcept {
        const due_entry entry = due_.pop();
        wait_operation& op = entry.operation();
        if (entry.cancelled()) {
            const bool carrier = op.state.cancel();
            PAWL_ASSERT(carrier); // the carrier is this entry
            (void)carrier;
            op.set_result(aborted());
        }
        return op;
    }

    // Written under the lock only, so no read-modify-write is needed.
    void add_armed(std::size_t n) noexcept {
        PAWL_ASSERT(armed() + n <= live_);
        armed_.store(armed() + n, std::memory_order_relaxed);
    }
    void take_armed(std::size_t n) noexcept {
        PAWL_ASSERT(n <= armed());
        armed_.store(armed() - n, std::memory_order_relaxed);
    }

    due_queue due_;
    std::size_t live_ = 0;
    std::atomic<std::size_t> armed_{0};
    std::size_t background_ = 0; ///< of these
    std::uint64_t started_ = 0;
    std::uint64_t expired_ = 0;
    pending_bound* bound_ = nullptr;
    std::size_t counted_ = 0; ///< waits that bound_ counts
    std::size_t refused_ = 0; ///< live waits that it does not
    std::uint64_t refusals_ = 0;
    trial* trials_ = nullptr; ///< the newest
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_WAIT_LEDGER_HPP
