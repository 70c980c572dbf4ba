// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The contents of a timer object except its executor: its part in the shard, the way to that
///   shard, and the expiry.
///
/// Threads
///   Used by one thread at a time, like the timer, except cancel(), cancel_one() and expiry().
///   Besides the timer_core, these read atomics only. The timer_core is shared with the expiry
///   side, under the shard's lock.
///
/// Cost
///   56 bytes. A timer that never waited takes no lock, nor does a cancel of nothing.
#ifndef PAWL_DETAIL_SERVICE_TIMER_HANDLE_HPP
#define PAWL_DETAIL_SERVICE_TIMER_HANDLE_HPP

#include <pawl/detail/service/service_cache.hpp>
#include <pawl/detail/service/timer_service.hpp>

#include <pawl/detail/wait/wait_handler.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/time/durations.hpp>
#include <pawl/time/tick.hpp>

#include <pawl/config.hpp>

#include <boost/asio/associated_executor.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace pawl::detail {

/// What a shard knows of a timer.
template <class Backend>
struct core_of {
    using type = timer_core;
};
template <time::scaled_backend Backend>
struct core_of<Backend> {
    using type = typename Backend::node_type;
};

template <class Clock, class WaitTraits>
class timer_handle {
    using service = timer_service<Clock, WaitTraits>;
    using dispatcher = typename service::dispatcher;
    using time_point = typename Clock::time_point;
    using duration = typename Clock::duration;
    using deadline = typename dispatcher::deadline;
    using core_type = typename core_of<typename service::backend>::type;

    static constexpr bool on_rings = time::bounded_backend<typename service::backend>;
    static_assert(!on_rings ||
                      (Clock::is_steady && std::is_same_v<duration, std::chrono::nanoseconds>),
                  "rings need a steady clock that counts in nanoseconds");

public:
    /// Whether the pressure chooses the time of expires_within().
    static constexpr bool on_scale = time::scaled_backend<typename service::backend>;

    /// Without what only async_wait() needs.
    struct without_handlers {};
    template <class Executor>
    timer_handle(const Executor& ex, without_handlers)
        : home_(service_cache<service>::find(context_of(ex))) {
        home_.get().attach(ex);
    }
    template <class Executor>
    explicit timer_handle(const Executor& ex) : timer_handle(ex, without_handlers()) {
        rebind(ex);
    }

    /// @param alarm the wait of an alarm
    timer_handle(timer_handle&& other, wait_operation* alarm = nullptr) : home_(other.home_.get()) {
        adopt(other, alarm);
    }

    timer_handle& operator=(timer_handle&& other) { return take(other, nullptr); }

    timer_handle& take(timer_handle& other, wait_operation* alarm) {
        leave();
        home_.set(other.home_.get());
        adopt(other, alarm);
        return *this;
    }

    ~timer_handle() { leave(); }

    /// The timer gets another executor of the same context.
    template <class Executor>
    void rebind(const Executor& ex) noexcept {
        home_.set_native(runs_natively(ex, home_.get().context()));
    }

    [[nodiscard]] time_point expiry() const noexcept { return shared_word(expiry_).load(); }

    std::size_t cancel() { return cancel(all); }
    std::size_t cancel_one() { return cancel(1); }

    /// Cancels all waits, then sets the expiry.
    /// @return how many were cancelled.
    std::size_t expires_at(const time_point& t) {
        prefetch_waits();
        return restart(at(t));
    }
    std::size_t expires_after(const duration& d) {
        prefetch_waits();
        return restart(after(d));
    }
    std::size_t expires_within(const duration& min, const duration& max) {
        prefetch_waits();
        return restart(within(min, max));
    }

    std::size_t rearm_at(const time_point& t) { return rearm(at(t)); }
    std::size_t rearm_after(const duration& d) { return rearm(after(d)); }
    std::size_t rearm_within(const duration& min, const duration& max) {
        return rearm(within(min, max));
    }

    /// As rearm_at() with a time that has passed. Reads no clock, so it does not throw.
    /// @pre the timer has waited, so the driver was set once
    void rearm_now() noexcept {
        dispatcher& d = home_.get();
        const deadline when = due_now();
        d.assume_leap();
        set(long_ago()); // first: see rearm()
        (void)d.rearm(core_, when, [when] { return when; });
    }

    /// @throws std::invalid_argument as expires_after() and expires_at(), with nothing changed.
    void check_after(const duration& d) const { require(d); }
    void check_at(const time_point& t) const {
        if constexpr (on_rings)
            require(saturating_difference(t, Clock::now()));
    }

    /// The expiry that expires_within() would set.
    [[nodiscard]] time_point expiry_within(const duration& min, const duration& max) const {
        return within(min, max).expiry;
    }

    /// @return false if the wait was refused: it completes with no_buffer_space.
    /// @throws std::invalid_argument if no ring serves it.
    template <class Handler, class Executor>
    bool async_wait(Handler&& handler, const Executor& timer_executor) {
        if constexpr (on_rings) {
            // A timer whose expiry was never set is overdue, unless its clock reads a time before
            // the epoch: then there may be no ring that is long enough.
            if (expiry_ == time_point())
                home_.get().rings().require_longest(saturating_difference(expiry_, Clock::now()));
        }
        using decayed = std::decay_t<Handler>;
        using associated = boost::asio::associated_executor_t<decayed, Executor>;
        dispatcher& d = home_.get();
        if constexpr (has_no_executor<decayed>) {
            if (home_.native())
                return start(d, make<native_executor>(std::forward<Handler>(handler), {}));
            else
                return start(d, make<Executor>(std::forward<Handler>(handler), timer_executor));
        } else {
            const associated ex =
                boost::asio::get_associated_executor(std::as_const(handler), timer_executor);
            if (runs_natively(ex, d.context()))
                return start(d, make<native_executor>(std::forward<Handler>(handler), {}));
            else if (home_.native())
                return start(d, make<associated>(std::forward<Handler>(handler), ex));
            else
                return start(d, make<foreign_executors<associated, Executor>>(
                                    std::forward<Handler>(handler), {ex, timer_executor}));
        }
    }

    // --- for a wait that is part of a larger object ---------------------------------------------

    [[nodiscard]] dispatcher& home() const noexcept { return home_.get(); }
    [[nodiscard]] const timer_core& core() const noexcept { return core_; }
    [[nodiscard]] timer_core& core() noexcept { return core_; }

    /// Registers the timer with the shard before its first wait.
    void enroll() noexcept {
        if (!home_.used())
            home_.get().state().enroll();
        home_.set_used(true);
    }

    /// Starts a wait whose memory the caller owns.
    /// @param users how many users of the shard come with it, besides the timer. They stay if this
    ///         throws.
    /// @return as async_wait()
    /// @throws std::bad_alloc after wait_destroyed() was called.
    bool wait(wait_operation& op, unsigned users = 0) { return start(home_.get(), op, users); }

    /// Ends such a wait, which must be the only one, and leaves the shard.
    /// @return true if the caller owns the wait again; false if its carrier will come.
    [[nodiscard]] bool withdraw(wait_operation& op) {
        home_.set_used(false);
        return home_.get().template withdraw<parting::timer>(&core_, op);
    }

    // --- for an alarm ---------------------------------------------------------------------------

    [[nodiscard]] bool armed() const noexcept { return core_.waited_on(); }

    /// Registers the alarm. The other calls need that.
    /// @throws std::bad_alloc
    void enlist() {
        home_.get().enlist(core_);
        home_.set_used(true);
    }

    /// @return whether the alarm is armed; if not, nothing has changed.
    bool arm_at(alarm_wait& op, const time_point& t) { return arm(op, at(t)); }
    bool arm_after(alarm_wait& op, const duration& d) {
        prefetch_waits();
        return arm(op, after(d));
    }
    bool arm_within(alarm_wait& op, const duration& min, const duration& max) {
        return arm(op, within(min, max));
    }

    /// As arm_at() with a time that has passed. Reads no clock, so it does not throw.
    bool arm_now(alarm_wait& op) noexcept {
        dispatcher& d = home_.get();
        const deadline when = due_now();
        d.assume_leap();
        const setting before = current();
        set(long_ago(), before.word); // first: see arm()
        const bool armed = d.arm(core_, op, when);
        if (!armed)
            restore(before);
        return armed;
    }

    void keep_running(bool on) { home_.get().keep_running(core_, on); }

    /// May be called from any thread.
    bool disarm(alarm_wait& op) { return armed() && home_.get_if_used()->disarm(core_, op); }

    /// The last call, before the handle gets another alarm or is destroyed.
    bool condemn(alarm_wait& op) {
        home_.set_used(false); // the block is the user
        return home_.get().condemn(core_, op);
    }

private:
    static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

    /// The dispatcher of the timer, plus three flags. Written by the timer's own thread only.
    class tagged_dispatcher {
    public:
        explicit tagged_dispatcher(dispatcher& d) noexcept
            : word_(reinterpret_cast<std::uintptr_t>(&d)) {
            static_assert(alignof(dispatcher) > bits);
        }

        [[nodiscard]] std::uintptr_t word() const noexcept { return word_; }
        void store(std::uintptr_t word) noexcept { shared_word(word_).store(word); }

        [[nodiscard]] dispatcher& get() const noexcept {
            return *reinterpret_cast<dispatcher*>(word() & ~bits);
        }
        /// May be called by any thread. The dispatcher; nullptr while the shard does not know the
        /// timer.
        [[nodiscard]] dispatcher* get_if_used() const noexcept {
            const std::uintptr_t word = shared_word(word_).load();
            return (word & used_bit) != 0 ? reinterpret_cast<dispatcher*>(word & ~bits) : nullptr;
        }
        void set(dispatcher& d) noexcept { store(reinterpret_cast<std::uintptr_t>(&d)); }

        /// Whether the shard knows the timer: it has waited.
        [[nodiscard]] bool used() const noexcept { return word() & used_bit; }
        void set_used(bool on) noexcept { set(used_bit, on); }

        /// Whether the expiry had passed when it was set. Its tick is then rounded down: the wait
        /// is due at the next wake-up, not at the end of the tick.
        [[nodiscard]] bool overdue() const noexcept { return word() & overdue_bit; }
        [[nodiscard]] static std::uintptr_t with_overdue(std::uintptr_t word, bool on) noexcept {
            return on ? word | overdue_bit : word & ~overdue_bit;
        }

        /// Whether the executor of the timer is the native one of its context.
        [[nodiscard]] bool native() const noexcept { return word() & native_bit; }
        void set_native(bool on) noexcept { set(native_bit, on); }

    private:
        static constexpr std::uintptr_t used_bit = 1;
        static constexpr std::uintptr_t overdue_bit = 2;
        static constexpr std::uintptr_t native_bit = 4;
        static constexpr std::uintptr_t bits = used_bit | overdue_bit | native_bit;

        void set(std::uintptr_t bit, bool on) noexcept { store(on ? word() | bit : word() & ~bit); }

        std::uintptr_t word_;
    };

    template <class Work, class Handler>
    [[nodiscard]] wait_operation& make(Handler&& handler, const Work& ex) {
        return wait_handler<std::decay_t<Handler>, Work>::make(std::forward<Handler>(handler), ex,
                                                               home_.get());
    }

    [[nodiscard]] deadline due() const {
        // The remaining time decides, not the original delay: the expiry may have been set a while
        // ago.
        auto left = duration::zero();
        if constexpr (on_rings)
            left = home_.overdue() ? left : saturating_difference(expiry_, Clock::now());
        if constexpr (on_scale)
            left = core_.wider;
        return due(expiry_, home_.overdue(), left);
    }

    /// @param left see dispatcher::deadline_of()
    [[nodiscard]] deadline due(const time_point& t, bool overdue, const duration& left) const {
        if constexpr (!Clock::is_steady) // the clock may have been set back
            overdue = overdue && !(Clock::now() < t);
        return home_.get().deadline_of(t, overdue, left);
    }

    bool start(dispatcher& d, wait_operation& op, unsigned users = 0) {
        users += home_.used() ? 0U : 1U;
        home_.set_used(true);
        // Once the wait is filed it may complete in another thread, and its handler may destroy the
        // timer.
        return d.start(
            core_, op, [this] { return due(); }, users);
    }

    std::size_t cancel(std::size_t limit) {
        dispatcher* const d = home_.get_if_used();
        return d && core_.waited_on() ? d->cancel(core_, limit) : 0;
    }

    /// Prefetches what a cancel needs in addition to prefetch_timer().
    void prefetch_waits() const noexcept {
        prefetch_to_write(reinterpret_cast<const char*>(&core_ + 1) - 1);
    }
    /// Prefetches what a re-arm needs, while the clock is being read.
    void prefetch_timer() const noexcept {
        prefetch_to_write(&home_);
        prefetch_to_write(&core_.due + 1); // the order; usually the same cache line
    }
    [[nodiscard]] time_point read_clock() const {
        prefetch_timer();
        return Clock::now();
    }
    /// The start of a delay. Uses the clock itself for a delay that has passed, and for rings,
    /// which are chosen by the remaining time.
    [[nodiscard]] time_point begin_of(const duration& d) const {
        if (on_rings || d <= duration::zero())
            return read_clock();
        prefetch_timer();
        return latest_now<Clock>();
    }
    /// The time until `t`, or a little less. Exact if it is not positive.
    [[nodiscard]] duration left_until(const time_point& t) const {
        if constexpr (has_latest_now<Clock> && !on_rings) {
            prefetch_timer();
            if (const time_point now = latest_now<Clock>(); now < t)
                return saturating_difference(t, now);
        }
        return saturating_difference(t, read_clock());
    }

    struct no_spread {};
    using spread = std::conditional_t<on_scale, duration, no_spread>;

    /// An expiry to be set.
    struct choice {
        time_point expiry;
        duration left; ///< the time until then
        [[no_unique_address]] spread wider{};
        [[nodiscard]] bool overdue() const noexcept { return left <= duration::zero(); }
    };

    /// Passed long ago.
    static choice long_ago() noexcept { return {time_point::min(), duration::zero()}; }
    [[nodiscard]] deadline due_now() const noexcept {
        static_assert(!on_rings);
        return home_.get().deadline_of(time_point::min(), true, duration::zero());
    }

    [[nodiscard]] deadline due(const choice& c) const {
        if constexpr (on_scale)
            return due(c.expiry, c.overdue(), c.wider);
        else
            return due(c.expiry, c.overdue(), c.left);
    }

    [[nodiscard]] choice at(const time_point& t) const {
        const duration left = left_until(t);
        require(left);
        return {t, left};
    }

    [[nodiscard]] choice after(const duration& d) const {
        require(d);
        return {saturating_sum(begin_of(d), d), d};
    }

    /// The best expiry between `min` and `max` from now. On a scale, the earliest one.
    [[nodiscard]] choice within(const duration& min, const duration& max) const {
        time::detail::require_range(min, max);
        const time_point now = begin_of(max);
        if constexpr (on_scale) { // the pressure chooses, while it waits
            const duration least = std::max(min, duration::zero());
            return {saturating_sum(now, least), least, std::max(max, least) - least};
        }
        const choice last{saturating_sum(now, max), max};
        if constexpr (on_rings) {
            const duration d = home_.get().rings().within(min, max);
            return {saturating_sum(now, d), d};
        } else {
            const auto& scale = home_.get().scale();
            const time::tick begin = scale.ceil(saturating_sum(now, min));
            const time::tick end = scale.floor(last.expiry);
            if (end < begin || end <= scale.floor(now))
                return last;
            const time_point best =
                scale.time_of(time::best_in_range(scale.floor(now), begin, end));
            return {best, best - now};
        }
    }

    /// @throws std::invalid_argument if the backend is rings, and none serves this delay.
    void require([[maybe_unused]] const duration& d) const {
        if constexpr (on_rings)
            home_.get().rings().require(d);
    }

    std::size_t restart(const choice& c) {
        const std::size_t count = cancel(all);
        set(c);
        return count;
    }

    std::size_t rearm(const choice& c) {
        if (!home_.used()) {
            set(c);
            return 0;
        }
        dispatcher& d = home_.get();
        const deadline when = due(c);
        d.follow_clock();
        const setting before = current();
        // First: once the deadline is moved, the handler may destroy the timer in another thread.
        set(c, before.word);
        const auto put_back = [this, before] {
            restore(before);
            return due();
        };
        if constexpr (!on_rings) {
            return d.rearm(core_, when, put_back);
        } else {
            try {
                return d.rearm(core_, when, put_back);
            } catch (...) { // a ring is full, or cannot grow: nothing was moved
                restore(before);
                throw;
            }
        }
    }

    bool arm(alarm_wait& op, const choice& c) {
        dispatcher& d = home_.get();
        const deadline when = due(c);
        d.follow_clock();
        const setting before = current();
        // First: once the alarm is filed, its function may destroy it in another thread.
        set(c, before.word);
        const bool armed = d.arm(core_, op, when);
        if (!armed) // nothing can run it
            restore(before);
        return armed;
    }

    /// The expiry, and what home_ knows about it.
    struct setting {
        time_point expiry;
        std::uintptr_t word;
        [[no_unique_address]] spread wider{};
    };

    [[nodiscard]] setting current() const noexcept {
        setting s{expiry_, home_.word()};
        if constexpr (on_scale)
            s.wider = core_.wider;
        return s;
    }
    void restore(const setting& s) noexcept {
        if constexpr (on_scale)
            core_.wider = s.wider;
        home_.store(s.word);
        shared_word(expiry_).store(s.expiry);
    }

    void set(const choice& c) noexcept { set(c, home_.word()); }
    /// @param word what home_ holds
    void set(const choice& c, std::uintptr_t word) noexcept {
        restore({c.expiry, tagged_dispatcher::with_overdue(word, c.overdue()), c.wider});
    }

    /// @pre both timers have the same dispatcher, and this one has no waits.
    void adopt(timer_handle& other, wait_operation* alarm) {
        if (other.home_.used())
            home_.get().move(other.core_, core_, alarm);
        restore(other.current());
        other.home_.set_used(false);
        other.set({time_point(), duration(1)});
    }

    void leave() {
        if (!home_.used())
            return;
        cancel();
        home_.get().leave(core_);
        home_.set_used(false);
    }

    // In this order: a re-arm needs the first 32 bytes only.
    tagged_dispatcher home_;
    time_point expiry_{};
    core_type core_;
};

/// Access to the handle of a timer, for other public objects.
struct timer_access {
    template <class Timer>
    [[nodiscard]] static auto& handle(Timer& timer) noexcept {
        return timer.handle_;
    }
    /// Arms an alarm, for now, although its clock has thrown.
    template <class Alarm>
    static bool arm_now(Alarm& alarm) noexcept {
        return alarm.handle_.arm_now(alarm.used());
    }
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_TIMER_HANDLE_HPP
