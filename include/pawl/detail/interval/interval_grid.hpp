// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The bookkeeping of an interval timer: when its next tick is due, how many ticks were missed,
///   and which waits belong to which tick. It outlives the timer while a wait holds a ticket.
///
/// Model
///   Ticks are numbered. number_ is the scheduled tick. The first wait to deliver it moves the
///   schedule on, past all ticks of the grid that are over. The other waits of that tick hold
///   tickets with a number that is now in the past, and move nothing.
///
///   The scheduled tick is due at next_ = base_ + period_, where base_ is the last tick, unless
///   reset_at() has set its time; a change of the period leaves such a time alone.
///
///   If the clock was set ahead since the last tick, by more than time has passed, ticks of the
///   time that it left out are skipped under each policy. If it was set back, the scheduled tick
///   stays where it is.
///
/// Invariants
///   - period_ > 0.
///   - delivered_ < number_ once a tick was delivered; numbers only grow.
///   - awaited_ has one entry per tick with tickets, ordered by number. Only the last may be for the
///     scheduled tick; the others are for delivered ticks.
///
/// Threads
///   All members may be called from any thread. The caller reads the clock, outside the lock, and
///   passes the reading.
///
/// Cost
///   O(1) per call, or O(ticks that have waits) if there are several. The constructor allocates;
///   later calls allocate only when waits of more ticks overlap than ever before.
#ifndef PAWL_DETAIL_INTERVAL_INTERVAL_GRID_HPP
#define PAWL_DETAIL_INTERVAL_INTERVAL_GRID_HPP

#include <pawl/config.hpp>
#include <pawl/missed_tick_policy.hpp>

#include <pawl/detail/service/optional_mutex.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/time/durations.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pawl::detail {

template <class Clock>
class interval_grid {
public:
    using time_point = typename Clock::time_point;
    using duration = typename Clock::duration;
    using sight = clock_sight<Clock>;
    using tick_number = std::uint64_t;

    /// The scheduled tick.
    struct schedule {
        tick_number number;
        time_point due;
    };

    /// @throws std::invalid_argument if `period` is not positive, or `policy` is not an enumerator.
    interval_grid(const time_point& start, const duration& period, missed_tick_policy policy,
                  const sight& made)
        : seen_(made), next_(start), period_(valid(period)), policy_(valid(policy)) {
        awaited_.reserve(1);
    }

    [[nodiscard]] schedule scheduled() const {
        const std::lock_guard lock(mutex_);
        return {number_, next_};
    }

    [[nodiscard]] duration period() const {
        const std::lock_guard lock(mutex_);
        return period_;
    }

    [[nodiscard]] missed_tick_policy policy() const {
        const std::lock_guard lock(mutex_);
        return policy_;
    }

    /// @throws std::invalid_argument if `policy` is not an enumerator, with nothing changed.
    void set_policy(missed_tick_policy policy) {
        const missed_tick_policy checked = valid(policy);
        const std::lock_guard lock(mutex_);
        policy_ = checked;
    }

    /// Makes the scheduled tick due one `period` after the last one, or now if that has passed. An
    /// overdue tick stays as overdue as it was.
    /// @throws std::invalid_argument if `period` is not positive, with nothing changed.
    schedule set_period(const duration& period, const time_point& now) {
        const duration& checked = valid(period);
        const std::lock_guard lock(mutex_);
        period_ = checked;
        if (!set_by_hand_)
            next_ = std::max(saturating_sum(base_, period_), std::min(next_, now));
        return {number_, next_};
    }

    /// Makes the scheduled tick due one period from now.
    schedule reset(const time_point& now) {
        const std::lock_guard lock(mutex_);
        follow(now);
        return {number_, next_};
    }

    /// Makes the scheduled tick due at `t`.
    schedule reset_at(const time_point& t) {
        const std::lock_guard lock(mutex_);
        next_ = t;
        set_by_hand_ = true;
        return {number_, next_};
    }

    /// The state that the resets and set_period() change.
    struct setting {
        tick_number number;
        time_point base;
        time_point next;
        duration period;
        bool set_by_hand;
    };
    [[nodiscard]] setting save() const {
        const std::lock_guard lock(mutex_);
        return {number_, base_, next_, period_, set_by_hand_};
    }
    /// Restores that state, unless the tick was delivered since.
    void restore(const setting& s) {
        const std::lock_guard lock(mutex_);
        if (number_ != s.number)
            return;
        base_ = s.base;
        next_ = s.next;
        period_ = s.period;
        set_by_hand_ = s.set_by_hand;
    }

    /// Adds a wait for the scheduled tick.
    /// @throws std::bad_alloc with nothing changed.
    [[nodiscard]] schedule join() {
        const std::lock_guard lock(mutex_);
        if (awaited_.empty() || awaited_.back().number != number_)
            awaited_.push_back({number_, 0});
        ++awaited_.back().waits;
        return {number_, next_};
    }

    /// Whether a wait for this tick is outstanding.
    [[nodiscard]] bool awaited(tick_number number) const {
        const std::lock_guard lock(mutex_);
        return std::any_of(awaited_.begin(), awaited_.end(),
                           [&](const awaited_tick& c) { return c.number == number; });
    }

    /// A wait for this tick ends without a delivery.
    void end_wait(tick_number number) {
        const std::lock_guard lock(mutex_);
        end_wait_locked(number);
    }

    /// A wait for this tick delivers it.
    /// @return how many further ticks have become due by now.
    [[nodiscard]] std::uint64_t deliver(tick_number number, const sight& s) {
        const std::lock_guard lock(mutex_);
        end_wait_locked(number);
        if (number == number_)
            advance(s);
        return delivered_ - number + missed(lateness(s.now));
    }

private:
    struct awaited_tick {
        tick_number number;
        std::size_t waits;
    };

    struct unseen {
        explicit unseen(const sight&) noexcept {}
    };

    /// A tick is on time up to this lateness, whatever the period.
    static constexpr duration tolerance =
        std::chrono::floor<duration>(std::chrono::milliseconds(5));

    /// A clock that gained more than this was set. It may gain less by being adjusted, or because
    /// its two readings are not simultaneous.
    static constexpr duration most_gained = std::chrono::ceil<duration>(std::chrono::seconds(1));

    static missed_tick_policy valid(missed_tick_policy policy) {
        if (policy != missed_tick_policy::burst && policy != missed_tick_policy::delay &&
            policy != missed_tick_policy::skip)
            throw std::invalid_argument("pawl: a missed_tick_policy of " +
                                        std::to_string(static_cast<int>(policy)) +
                                        ": there is no such policy");
        return policy;
    }
    static const duration& valid(const duration& period) {
        if (!(period > duration::zero()))
            throw std::invalid_argument("pawl: a period of " + time::detail::text_of(period) +
                                        " for an interval: must be greater than zero");
        return period;
    }

    /// How late the last delivered tick is.
    [[nodiscard]] duration lateness(const time_point& now) const noexcept {
        return saturating_difference(now, delivered_due_);
    }

    [[nodiscard]] std::uint64_t missed(const duration& late) const noexcept {
        return late > tolerance ? static_cast<std::uint64_t>(late / period_) : 0;
    }

    /// Whether the clock was set ahead since the last tick, or since the interval was made.
    [[nodiscard]] bool leapt(const sight& s) noexcept {
        if constexpr (Clock::is_steady) {
            return false;
        } else {
            const auto passed = std::chrono::ceil<duration>(s.steady - seen_.steady);
            const time_point latest = saturating_sum(seen_.now, passed + most_gained);
            seen_ = s;
            return s.now > latest;
        }
    }

    /// Delivers the scheduled tick.
    void advance(const sight& s) noexcept {
        const time_point& now = s.now;
        const bool skips = leapt(s) || policy_ != missed_tick_policy::burst;
        delivered_ = number_++;
        if (now < next_) {
            // The tick is early: a reset moved it while its handler was already on its way, or
            // expire_all() completed it, or the clock was set back.
            delivered_due_ = now;
            return;
        }
        delivered_due_ = next_;
        const duration late = lateness(now);
        if (late <= tolerance || !skips)
            return follow(next_);
        const std::uint64_t periods = missed(late);
        number_ += periods;
        const time_point grid =
            now - (late - period_ * static_cast<typename duration::rep>(periods));
        follow(policy_ == missed_tick_policy::delay ? now : grid);
    }

    /// Schedules the tick for one period after `t`.
    void follow(const time_point& t) noexcept {
        base_ = t;
        next_ = saturating_sum(t, period_);
        set_by_hand_ = false;
    }

    void end_wait_locked(tick_number number) noexcept {
        const auto c = std::find_if(awaited_.begin(), awaited_.end(),
                                    [&](const awaited_tick& x) { return x.number == number; });
        PAWL_ASSERT(c != awaited_.end()); // each ticket is counted
        if (--c->waits == 0)
            awaited_.erase(c);
    }

    mutable optional_mutex<> mutex_{true};
    [[no_unique_address]] std::conditional_t<Clock::is_steady, unseen, sight>
        seen_;                  ///< at the last delivery
    tick_number number_ = 0;    ///< the scheduled tick
    tick_number delivered_ = 0; ///< the last delivered tick
    time_point delivered_due_;  ///< when it was due
    time_point base_;           ///< the scheduled tick follows it, unless set_by_hand_
    time_point next_;           ///< when the scheduled tick is due
    duration period_;
    missed_tick_policy policy_;
    bool set_by_hand_ = true;
    std::vector<awaited_tick> awaited_;
};

/// The claim of a wait on a tick of its interval.
template <class Clock>
class interval_ticket {
    using grid = interval_grid<Clock>;

public:
    /// @throws std::bad_alloc
    explicit interval_ticket(const std::shared_ptr<grid>& g) : tick_(g->join()), grid_(g) {}

    interval_ticket(interval_ticket&&) noexcept = default;
    interval_ticket& operator=(interval_ticket&&) = delete;

    ~interval_ticket() { give_up(); }

    [[nodiscard]] const typename grid::schedule& tick() const noexcept { return tick_; }

    /// Delivers the tick.
    /// @return how many further ticks have become due.
    [[nodiscard]] std::uint64_t use(const typename grid::sight& s) {
        return std::exchange(grid_, nullptr)->deliver(tick_.number, s);
    }

    /// The wait ends without a delivery.
    void give_up() {
        if (const auto g = std::exchange(grid_, nullptr))
            g->end_wait(tick_.number);
    }

private:
    typename grid::schedule tick_;
    std::shared_ptr<grid> grid_;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_INTERVAL_INTERVAL_GRID_HPP
