// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Carries out what a shard asks for: queues units, sets the driver, and runs due waits on the
///   executors of their handlers, a bounded number per unit.
///
/// Model
///   A unit takes a wait from the shard, queues its successor if more waits are due, and then
///   invokes the handler. So a handler that throws, blocks or stops the context strands no other
///   wait: another thread, or the same one later, runs the successor. With completions_per_turn > 1
///   a unit runs several waits, and a handler that blocks delays the rest of its turn. One that
///   stops the context ends it.
///
/// Invariants
///   - Unlocked-call invariant: no lock of Pawl is held while a handler is invoked, moved or
///     destroyed, or while an executor is used (P5).
///
/// Cost
///   A unit is queued in memory that the shard owns. Nothing here allocates, except what the
///   executor of a handler allocates.
#ifndef PAWL_DETAIL_SERVICE_DISPATCHER_HPP
#define PAWL_DETAIL_SERVICE_DISPATCHER_HPP

#include <pawl/detail/service/native_executor.hpp>
#include <pawl/detail/service/observer.hpp>
#include <pawl/detail/service/shard.hpp>
#include <pawl/detail/service/spin_mutex.hpp>
#include <pawl/detail/service/wait_ledger.hpp>

#include <pawl/detail/time/durations.hpp>
#include <pawl/time/tick.hpp>

#include <pawl/config.hpp>
#include <pawl/on_backend.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace pawl::detail {

template <class Clock, class WaitTraits>
class wakeup;

template <class Clock, class WaitTraits>
class alignas(cache_line) dispatcher final : public wait_arbiter,
                                             public runner_target,
                                             public work_context,
                                             public observed_shard {
    using backend = typename backend_choice<WaitTraits>::backend;
    using shard = detail::shard<backend>;
    using wakeup = detail::wakeup<Clock, WaitTraits>;
    using time_point = typename Clock::time_point;
    using duration = typename Clock::duration;

public:
    using deadline =
        std::conditional_t<Clock::is_steady, typename shard::deadline, settable_deadline>;
    using collector = typename shard::collector;
    using sequel = commitment::sequel;

    dispatcher(boost::asio::execution_context& context, wakeup& w, const options& o,
               const time::tick_scale<Clock>& scale)
        : context_(context), wakeup_(w), scale_(scale), shard_(o, current_tick(), this, this),
          per_turn_(o.completions_per_turn), rings_(o) {
        if (o.max_pending != options::no_bound)
            shard_.set_bound(w.bound());
        if constexpr (time::scaled_backend<backend>)
            shard_.follow(w.pressure());
    }
    dispatcher& operator=(dispatcher&&) = delete;

    /// A clock that reads, or may be set to, a time before its epoch needs ticks there.
    static time::tick_origin origin_of_ticks() {
        return !Clock::is_steady || Clock::now() < time_point() ? time::tick_origin::least
                                                                : time::tick_origin::epoch;
    }

    [[nodiscard]] boost::asio::execution_context& context() const noexcept override {
        return context_;
    }
    [[nodiscard]] const time::tick_scale<Clock>& scale() const noexcept { return scale_; }
    [[nodiscard]] shard& state() noexcept { return shard_; }

    [[nodiscard]] const delay_table<backend>& rings() const noexcept { return rings_; }

    /// A timer with executor `ex` was made.
    template <class Executor>
    void attach(const Executor& ex) {
        wakeup_.attach(ex);
    }

    /// The current tick.
    [[nodiscard]] time::tick current_tick() const { return scale_.floor(Clock::now()); }

    /// The deadline under which to file a timer.
    /// @param t the expiry.
    /// @param overdue `t` had passed when it was set, and still has.
    /// @param left the time until `t`, for rings. The spread, for a scaled_backend.
    [[nodiscard]] deadline deadline_of(const time_point& t, bool overdue,
                                       [[maybe_unused]] duration left) const {
        const time::tick due = overdue ? scale_.floor(t) : scale_.ceil(t);
        if constexpr (time::bounded_backend<backend>)
            return {due, left > duration::zero() ? rings_.ring_for(left) : deadline::overdue};
        else if constexpr (time::scaled_backend<backend>)
            return {due, std::max(due, scale_.ceil(saturating_sum(t, left))).count() - due.count()};
        else if constexpr (Clock::is_steady)
            return due;
        else
            return {due, overdue && due < scale_.ceil(t) ? reading_of(t) : clock_reading{}};
    }

    /// Before a deadline is filed: if the clock has leapt ahead of the driver, which still sleeps
    /// by the time before, the driver hurries. As the clock, it may throw.
    void follow_clock() {
        if constexpr (!wakeup::driver_stays) {
            if (shard_.passed(current_tick()))
                wakeup_.hurry_if_set();
        }
    }

    /// The same without reading the clock: as if it had leapt.
    void assume_leap() {
        if constexpr (!wakeup::driver_stays) {
            if (shard_.passed(time::tick::never()))
                wakeup_.hurry_if_set();
        }
    }

    // --- timers -------------------------------------------------------------------------------

    /// Starts a wait and takes ownership of it. On return the timer and this dispatcher may be
    /// gone.
    /// @param due returns the deadline; as the user's clock, which it may read, it may throw.
    /// @param users how many users of the shard come with the wait: the timer if it is not one yet,
    ///         and a limit. They stay if this throws.
    /// @return false if the wait was refused: it completes with no_buffer_space.
    template <class Due>
    bool start(timer_core& timer, wait_operation& op, Due due, unsigned users) {
        typename shard::template result<admission> started;
        wait_ledger::trial trial;
        bool counted = false;
        try {
            follow_clock();
            const deadline when = due();
            counted = true;
            started = shard_.driver_was_set()
                          ? shard_.start(timer, op, when, users)
                          : shard_.start_on_trial(timer, op, when, users, trial);
        } catch (...) {
            if (!counted)
                shard_.enroll(users);
            wait_ledger::unlink_slot(op);
            op.destroy();
            throw;
        }
        if (started.value != admission::started) [[unlikely]] {
            if (started.value == admission::refused) {
                carry_out(started.todo);
                return false;
            }
            end_waits(shutdown_policy::destroy);
            leave();
            return true;
        }
        if (started.todo.empty()) [[likely]]
            return true;
        if (!trial.begun) [[likely]] {
            arm_driver(started.todo);
            return true;
        }
        // Without a wake-up the wait must not stay. If another thread has ended it in the meantime,
        // all is well; then wait and timer may be gone.
        const auto withdraw = [&] { return carry_out(shard_.take_back(trial)); };
        try {
            arm_driver(started.todo, withdraw, &trial);
        } catch (...) {
            op.destroy(); // not while pinned: the handler may own the context, which waits for pins
            throw;
        }
        return true;
    }

    /// Ends an embedded wait, and what leaves the shard with it.
    /// @return true if the caller owns the wait; false if its carrier will come.
    template <parting With>
    [[nodiscard]] bool withdraw(timer_core* timer, wait_operation& op) {
        return carry_out(shard_.template withdraw<With>(timer, op));
    }

    /// Cancels waits.
    std::size_t cancel(timer_core& timer, std::size_t limit) {
        return carry_out(shard_.cancel(timer, limit));
    }

    /// Moves the deadline of pending waits to `due`. If the driver cannot be set, restores `old()`.
    template <class Old>
    std::size_t rearm(timer_core& timer, deadline due, Old old) {
        auto [count, refused, todo] = shard_.rearm(timer, due);
        if constexpr (time::bounded_backend<backend>) {
            if (refused)
                throw boost::system::system_error(boost::asio::error::no_buffer_space,
                                                  "pawl: the ring of the new delay is full");
        }
        if (todo.empty()) [[likely]]
            return count;
        arm_driver(todo, [&] {
            // The driver is still set for the old deadline. Waits that were due become due again.
            carry_out(shard_.rearm(timer, old()).todo);
            (void)collect(current_tick(), collector::covered);
            return true;
        });
        return count;
    }

    // --- alarms -------------------------------------------------------------------------------

    /// Counts an alarm as a user, and makes all that arm() needs.
    /// @throws std::bad_alloc with nothing changed.
    void enlist(timer_core& timer) {
        wakeup_.prepare();
        shard_.enlist(timer);
    }

    /// Starts the wait of an alarm, or moves its deadline. On return the alarm may be gone.
    /// @return false if the context has shut down, or the alarm is barred, or refused.
    bool arm(timer_core& timer, alarm_wait& op, deadline due) noexcept {
        const auto [armed, todo] = shard_.arm(timer, op, due);
        if (!todo.empty()) [[unlikely]]
            arm_driver(todo);
        return armed;
    }

    /// Ends the wait of an alarm.
    bool disarm(timer_core& timer, alarm_wait& op) { return carry_out(shard_.disarm(timer, op)); }

    /// Disarms an alarm for ever.
    void bar(alarm_wait& op) { carry_out(shard_.bar(op)); }

    void keep_running(timer_core& timer, bool on) { carry_out(shard_.keep_running(timer, on)); }

    /// The alarm goes. It stays a user until leave().
    bool condemn(timer_core& timer, alarm_wait& op) { return carry_out(shard_.condemn(timer, op)); }

    [[nodiscard]] bool begin(alarm_wait& op, boost::system::error_code& ec,
                             bool& condemned) noexcept {
        return shard_.begin(op, ec, condemned);
    }

    /// @param alarm the wait of an alarm
    void move(timer_core& from, timer_core& to, wait_operation* alarm = nullptr) noexcept {
        shard_.move(from, to, alarm);
    }

    /// The timer is going away.
    void leave(timer_core& timer) { carry_out(shard_.leave(timer)); }

    /// The service, the block of an alarm, or a limit that did not start, is being destroyed.
    void leave() { carry_out(shard_.leave()); }

    // --- expiry -------------------------------------------------------------------------------

    /// Collects what is due at `now` and queues the runners. The caller sets the driver, and calls
    /// turn() if it has become a runner.
    /// @throws std::bad_alloc with nothing taken; if the driver has called, it tries again.
    [[nodiscard]] auto collect(time::tick now, collector who) {
        auto found = collect_due(now, who);
        enqueue(found.todo.runners);
        if (found.todo.after != sequel::unpin)
            follow_up(found.todo);
        return found;
    }

    /// The caller has set the driver, or failed to.
    void unpin() { carry_out(shard_.unpin()); }

    /// Instead of turn(): leaves the waits to a queued unit.
    void give_up_turn() { turn_end(*this, nullptr); }

    std::size_t expire_all(const boost::system::error_code& ec, wait_ending how) {
        return shard_.expire_all(
            ec, [this](commitment todo) { carry_out(todo); }, how);
    }

    /// Runs one turn: at most completions_per_turn waits.
    void turn() { turn(nullptr); }

    void run(runner_token& token) override { turn(&token); }

    /// Runs the turn of a driver that came late, and found a crowd.
    /// @param late by so much.
    void turn_late(duration late) {
        const auto unit = shard_.run_unit();
        turn_end end(*this, nullptr);
        time_point now = Clock::now();
        const time_point until = saturating_sum(now, time_for(late));
        while (!run_wait<true>(nullptr, now >= until, !end.in_turn, end) && !stopped()) {
            now = Clock::now();
            wakeup_.crowd_runs(scale_.floor(now));
        }
    }

    // --- the end ------------------------------------------------------------------------------

    /// Destroys or delivers every wait.
    void shutdown(shutdown_policy policy) {
        // relaxed: the shard's lock orders it for a carrier that parks after close()
        delivers_.store(policy == shutdown_policy::deliver, std::memory_order_relaxed);
        shard_.close();
        // The thread that started a wait may still be on its way here while another thread has run
        // that wait and ended the context. None of these threads waits for a handler.
        while (!shard_.errands_done())
            block_thread(std::chrono::microseconds(10));
        end_waits(policy);
    }

    // --- wait_arbiter ----------------------------------------------------------------------------

    bool arrive(wait_operation& op) noexcept override {
        note_time_if_watched();
        return carry_out(shard_.arrive(op));
    }

    bool arrive_or_park(wait_operation& op) noexcept override {
        note_time_if_watched();
        return carry_out(shard_.arrive_or_park(op, timer_event_kind::started));
    }

    void abandon(wait_operation& op) noexcept override {
        auto [owned, todo] = shard_.arrive_or_park(op, timer_event_kind::shut_down);
        const bool deliver = delivers_.load(std::memory_order_relaxed); // see shutdown()
        carry_out(todo); // first: the handler may own the context, which waits for errands to end
        if (!owned)
            return;
        if (deliver)
            op.complete();
        else
            op.destroy();
    }

    void cancel(slot_link& link) override { carry_out(shard_.cancel(link)); }

    void forget(slot_link& link) noexcept override { carry_out(shard_.forget(link)); }

    // --- observed_shard -----------------------------------------------------------------------

    [[nodiscard]] typename observed_shard::lock_type& mutex() noexcept override {
        return shard_.mutex();
    }
    void observe(shard_observer* observer, bool watched, bool named,
                 const moment& now) noexcept override {
        shard_.observe(observer, watched, named, now);
    }
    [[nodiscard]] shard_counts counts() const noexcept override { return shard_.timers().counts(); }
    std::size_t count_levels(std::size_t* levels) const noexcept override {
        return shard_.timers().count_levels(levels);
    }
    [[nodiscard]] std::chrono::nanoseconds precision() const noexcept override {
        return scale_.precision();
    }
    [[nodiscard]] moment read_clock() const noexcept override {
        try {
            const time_point t = Clock::now();
            const time::tick begun = scale_.floor(t);
            return {begun, std::chrono::duration_cast<std::chrono::nanoseconds>(
                               saturating_difference(t, scale_.time_of(begun)))};
        } catch (...) { // the clock: its next reading for the timers themselves will throw, too
            return {};
        }
    }

    // --- work_context ----------------------------------------------------------------------------

    bool work_started() noexcept override {
        const native_context* const native = wakeup_.native();
        if (!native || !native->work_started)
            return false;
        native->work_started(context_);
        return true;
    }

    bool may_go_quiet_here(bool counted) noexcept override {
        return !counted || wakeup_.native()->runs_here(context_);
    }

    bool driver_stays(bool counted) noexcept override {
        // counted_by() may lag behind `counted`. Until it catches up, the driver is not left set
        // for quiet shards.
        return counted && wakeup::driver_stays && wakeup_.counted_by();
    }

private:
    ~dispatcher() = default;

    static clock_reading reading_of(const time_point& t) noexcept {
        using source = typename duration::rep;
        constexpr std::uint64_t half = std::uint64_t{1} << 63;
        if constexpr (std::is_integral_v<source> && sizeof(source) <= sizeof half) {
            const auto count = static_cast<std::uint64_t>(t.time_since_epoch().count());
            return clock_reading{std::is_signed_v<source> ? count ^ half : count};
        } else {
            const auto count = std::bit_cast<std::uint64_t>(
                std::chrono::duration<double>(t.time_since_epoch()).count() + 0.0);
            return clock_reading{(count & half) != 0 ? ~count : count | half};
        }
    }

    /// Ends every wait of a closed shard. Handlers destroyed here may destroy timers and start
    /// waits; those end in the same loop, not by recursion.
    void end_waits(shutdown_policy policy) {
        if (!shard_.begin_emptying())
            return;
        wait_operation* late = nullptr;
        do {
            end_all(late, shutdown_policy::destroy);
            while (
                shard_.empty_batch([policy](wait_operation* chain) { end_all(chain, policy); })) {
            }
            late = shard_.end_emptying();
        } while (late);
    }

    static void end_all(wait_operation* op, shutdown_policy policy) {
        while (op) {
            wait_operation* const next = op->next;
            if (policy == shutdown_policy::deliver)
                op->complete();
            else
                op->destroy();
            op = next;
        }
    }

    [[nodiscard]] auto collect_due(time::tick now, collector who) {
        if constexpr (Clock::is_steady)
            return shard_.collect(now, 0, who);
        else
            return collect_after_set_backs(who);
    }

    /// For clocks that can be set back: the shard follows.
    /// @throws std::bad_alloc
    [[nodiscard]] auto collect_after_set_backs(collector who) {
        for (;;) {
            // Read in this order: a reading older than that of another thread is not a set-back.
            const auto seen = shard_.seen();
            const time_point t = Clock::now();
            const time::tick now = scale_.floor(t);
            const clock_reading reading = reading_of(t);
            if (!seen.lies_ahead(now, reading))
                return shard_.collect(now, seen.set_backs, who, reading);
            shard_.set_back(now, reading);
        }
    }

    /// Ends a turn in which a handler has thrown.
    class turn_end {
    public:
        turn_end(dispatcher& d, runner_token* token) noexcept : d_(&d), token_(token) {}
        turn_end& operator=(turn_end&&) = delete;
        PAWL_DETAIL_ALWAYS_INLINE ~turn_end() {
            if (d_) [[unlikely]]
                end();
        }
        void dismiss() noexcept { d_ = nullptr; }

        bool in_turn = false; ///< its handler has run, and was not the last
        turn_watch watched;

    private:
        PAWL_DETAIL_NOINLINE void end() noexcept {
            d_->carry_out(d_->shard_.retire(token_, in_turn));
            d_->wakeup_.unit_ends();
        }

        dispatcher* d_;
        runner_token* token_;
    };

    void turn(runner_token* token) {
        const auto unit = shard_.run_unit();
        turn_end end(*this, token);
        if (!run_wait(token, per_turn_ == 1, true, end))
            rest_of_turn(token, end);
    }

    // Out of line, which keeps the usual turn of one wait short.
    PAWL_DETAIL_NOINLINE void rest_of_turn(runner_token* token, turn_end& end) {
        for (unsigned n = 2; !stopped() && !run_wait(token, n == per_turn_, false, end); ++n) {
        }
    }

    /// Runs a wait of a turn.
    /// @return true if it was the last one.
    template <bool Late = false>
    PAWL_DETAIL_ALWAYS_INLINE bool run_wait(runner_token* token, bool last, bool first,
                                            turn_end& end) {
        if (shard_.turn_is_news()) [[unlikely]]
            begin_watched_turn(end.watched);
        auto taken = shard_.take(token, last, Late && last, first, Late);
        if (taken.behind) [[unlikely]] {
            if constexpr (Late) {
                collect_on(collector::in_crowd);
                return false;
            }
            collect_on(collector::covered);
            // With io_context(1) the units that this has queued are held until this one ends, and a
            // handler may wait for them in a loop of its own.
            if (wakeup_.may_nest())
                return true;
            taken = shard_.take(token, last, true, first);
        }
        if (taken.retired) {
            end.dismiss();
            carry_out(taken.todo);
            wakeup_.unit_ends();
        } else {
            end.in_turn = true;
            carry_out(taken.todo);
        }
        if (taken.op) {
            if (!taken.op->direct())
                taken.op->hand_over(*this);
            else if (taken.observer) [[unlikely]]
                taken.observer->complete(*taken.op, shard_.mutex(), end.watched);
            else
                taken.op->complete();
        }
        return taken.retired;
    }

    PAWL_DETAIL_NOINLINE void collect_on(collector who) {
        if (const auto found = collect(current_tick(), who); found.todo.arm)
            wakeup_.arm(found.todo.wake);
    }

    /// Whether the handler has stopped the context.
    [[nodiscard]] bool stopped() const {
        const native_context* const native = wakeup_.native();
        return native && native->stopped && native->stopped(context_);
    }

    /// Reads the time for the events of this turn, and wakes sleeping readers.
    PAWL_DETAIL_COLD void begin_watched_turn(turn_watch& turn) {
        using std::chrono::steady_clock;
        if (turn.began == steady_clock::time_point{})
            turn.began = steady_clock::now();
        if (shard_observer* const observer = shard_.begin_turn(read_clock()))
            observer->tell();
    }
    /// A carrier has arrived.
    void note_time_if_watched() {
        if (shard_.watched()) [[unlikely]]
            shard_.now_is(read_clock());
    }

    // --- commitments --------------------------------------------------------------------------

    /// Carries out a commitment that does not set the driver. Unless it is empty, this dispatcher
    /// may be gone afterwards.
    PAWL_DETAIL_ALWAYS_INLINE void carry_out(const commitment& todo) {
        if (!todo.empty()) {
            if (todo.runners)
                enqueue(todo.runners);
            follow_up(todo);
        }
    }
    /// The same for a value that comes with it.
    template <class Result>
    PAWL_DETAIL_ALWAYS_INLINE auto carry_out(const Result& done) -> decltype(done.value) {
        carry_out(done.todo);
        return done.value;
    }

    /// Carries out a commitment that may set the driver.
    /// @param no_memory called if the driver cannot be set; returns whether to rethrow.
    /// @param trial ends once the driver is set.
    template <class NoMemory = bool (*)()>
    PAWL_DETAIL_NOINLINE void arm_driver(
        const commitment& todo, const NoMemory& no_memory = [] { return true; },
        wait_ledger::trial* trial = nullptr) {
        enqueue(todo.runners);
        try {
            if (todo.arm)
                wakeup_.arm(todo.wake);
            if (trial)
                shard_.end_trial(*trial);
        } catch (...) {
            const bool failed = no_memory();
            follow_up(todo);
            if (failed)
                throw;
            return;
        }
        follow_up(todo);
    }

    /// What comes after runners were queued and the driver was set.
    PAWL_DETAIL_NOINLINE void follow_up(const commitment& todo) {
        switch (todo.after) {
        case sequel::nothing:
            break;
        case sequel::go_quiet:
            wakeup_.go_quiet(false);
            [[fallthrough]];
        case sequel::end_errand:
            shard_.end_errand();
            break;
        case sequel::give_back:
            wakeup_.go_quiet(true);
            break;
        case sequel::unpin:
            unpin();
            break;
        case sequel::destroy:
            delete this;
        }
    }

    PAWL_DETAIL_NOINLINE void enqueue(runner_token* list) {
        while (list) {
            // The unit may run before enqueue() returns.
            runner_token& token = *std::exchange(list, list->next);
            // Not before the loop: a closed shard has no runners, and its wakeup may be gone.
            if (const native_context* const native = wakeup_.native()) {
                native->enqueue(context_, token);
            } else {
                shard_.unclaim(token);
                wakeup_.hurry();
            }
        }
    }

    /// For how long a late driver runs a crowd. If it is very late, the queue of the context is so
    /// long that 10 ms in each round would be too little. But others may have had to wait for
    /// something else than each other, such as a machine that slept.
    static constexpr duration time_for(duration late) noexcept {
        using std::chrono::milliseconds;
        return std::min(late, std::clamp<duration>(late / 4, milliseconds(10), milliseconds(100)));
    }

    boost::asio::execution_context& context_; ///< not used once the shard is closed
    wakeup& wakeup_;                          ///< not used once the shard is closed
    const time::tick_scale<Clock> scale_;
    shard shard_;
    const unsigned per_turn_;
    std::atomic<bool> delivers_{false}; ///< handlers are invoked although the context is gone
    [[no_unique_address]] const delay_table<backend> rings_;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_DISPATCHER_HPP
