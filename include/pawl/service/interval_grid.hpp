// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The bookkeeping of an interval timer: when its next tick is due, how many were missed, and
///   which waits belong to which tick. It outlives the timer as long as a wait holds a ticket.
///
/// Model
///   Ticks have numbers. number_ is that of the scheduled tick; whoever delivers it first moves the
///   schedule on, by as many numbers as ticks of the grid are gone. The other waits of that tick
///   have tickets with a number that has passed by then, and move nothing.
///
///   The scheduled tick is due at next_ = base_ + period_, where base_ is the last tick, unless
///   somebody has set the time of that tick, which a change of the period leaves alone.
///
/// Invariants
///   I1  period_ > 0.
///   I2  delivered_ < number_ once a tick has been delivered; numbers only grow.
///   I3  crowds_ has one entry for each tick that has tickets, by number. The last may be of the
///       scheduled tick, the others are of ticks that have been delivered.
///
/// Threads
///   All members may be called from any thread. The clock is read outside the lock: `now` is an
///   argument.
///
/// Cost
///   Every member O(1), or O(ticks that have waits) where there are several such. Allocates when
///   waits of more ticks overlap than ever before, and for the first in the constructor.
#ifndef PAWL_SERVICE_INTERVAL_GRID_HPP
#define PAWL_SERVICE_INTERVAL_GRID_HPP

#include <pawl/service/optional_mutex.hpp>
#include <pawl/service/saturating.hpp>

#include <pawl/time/duration_text.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace pawl {

/// What an interval timer does about ticks that were missed: when a tick is delivered more than
/// 5 ms after it was due. They are the three of tokio's `MissedTickBehavior`.
enum class missed_tick_policy {
    /// Ticks follow each other at once until all that were missed have been made up for.
    burst,
    /// The next tick is due one period after the late one was delivered. The grid moves.
    delay,
    /// What was missed is left out: the next tick is due on the next point of the same grid.
    skip,
};

namespace detail {

template <class Clock>
class interval_grid {
public:
    using time_point = typename Clock::time_point;
    using duration = typename Clock::duration;
    using tick_number = std::uint64_t;

    /// The scheduled tick.
    struct schedule {
        tick_number number;
        time_point due;
    };

    /// @throws std::invalid_argument unless `period` is greater than zero, and there is such a policy.
    interval_grid(const time_point& start, const duration& period, missed_tick_policy policy)
        : next_(start), period_(valid(period)), policy_(valid(policy)) {
        crowds_.reserve(1);
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

    /// @throws std::invalid_argument if there is no such policy, with nothing changed.
    void set_policy(missed_tick_policy policy) {
        const missed_tick_policy checked = valid(policy);
        const std::lock_guard lock(mutex_);
        policy_ = checked;
    }

    /// The scheduled tick is due one period of length `period` after the last one, or now if that
    /// has passed. A tick that is overdue is not made less so.
    /// @throws std::invalid_argument unless `period` is greater than zero, with nothing changed.
    schedule set_period(const duration& period, const time_point& now) {
        const duration& checked = valid(period);
        const std::lock_guard lock(mutex_);
        period_ = checked;
        if (!set_by_hand_)
            next_ = std::max(saturating_sum(base_, period_), std::min(next_, now));
        return {number_, next_};
    }

    /// The scheduled tick is due one period from now.
    schedule reset(const time_point& now) {
        const std::lock_guard lock(mutex_);
        follow(now);
        return {number_, next_};
    }

    /// The scheduled tick is due at `t`.
    schedule reset_at(const time_point& t) {
        const std::lock_guard lock(mutex_);
        next_ = t;
        set_by_hand_ = true;
        return {number_, next_};
    }

    /// What the resets and set_period() change.
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
    /// Takes back what has been changed since, unless the tick has been delivered.
    void restore(const setting& s) {
        const std::lock_guard lock(mutex_);
        if (number_ != s.number)
            return;
        base_ = s.base;
        next_ = s.next;
        period_ = s.period;
        set_by_hand_ = s.set_by_hand;
    }

    /// One more wait for the scheduled tick.
    /// @throws std::bad_alloc, with nothing changed.
    [[nodiscard]] schedule join() {
        const std::lock_guard lock(mutex_);
        if (crowds_.empty() || crowds_.back().number != number_)
            crowds_.push_back({number_, 0});
        ++crowds_.back().waits;
        return {number_, next_};
    }

    /// Whether a wait for this tick has not come to its end.
    [[nodiscard]] bool awaited(tick_number number) const {
        const std::lock_guard lock(mutex_);
        return std::any_of(crowds_.begin(), crowds_.end(),
                           [&](const crowd& c) { return c.number == number; });
    }

    /// A wait for this tick ends without it.
    void leave(tick_number number) {
        const std::lock_guard lock(mutex_);
        leave_locked(number);
    }

    /// A wait for this tick ends with it.
    /// @return how many further ticks had become due by then.
    [[nodiscard]] std::uint64_t deliver(tick_number number, const time_point& now) {
        const std::lock_guard lock(mutex_);
        leave_locked(number);
        if (number == number_)
            advance(now);
        return delivered_ - number + missed(lateness(now));
    }

private:
    struct crowd {
        tick_number number;
        std::size_t waits;
    };

    /// Up to here a tick is on time, whatever the period.
    static constexpr duration tolerance =
        std::chrono::floor<duration>(std::chrono::milliseconds(5));

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

    /// By how much the tick that was delivered last is late.
    [[nodiscard]] duration lateness(const time_point& now) const noexcept {
        return saturating_difference(now, delivered_due_);
    }

    [[nodiscard]] std::uint64_t missed(const duration& late) const noexcept {
        return late > tolerance ? static_cast<std::uint64_t>(late / period_) : 0;
    }

    /// The scheduled tick is delivered now.
    void advance(const time_point& now) noexcept {
        delivered_ = number_++;
        if (now < next_) {
            // The tick was moved when its handler was on its way already, so that it is the next
            // one that was moved. Or it was let go early by expire_all(), or the clock set back.
            delivered_due_ = now;
            return;
        }
        delivered_due_ = next_;
        const duration late = lateness(now);
        if (late <= tolerance || policy_ == missed_tick_policy::burst)
            return follow(next_);
        number_ += missed(late);
        follow(policy_ == missed_tick_policy::delay ? now : now - late % period_);
    }

    /// The scheduled tick is one period after `t`.
    void follow(const time_point& t) noexcept {
        base_ = t;
        next_ = saturating_sum(t, period_);
        set_by_hand_ = false;
    }

    void leave_locked(tick_number number) noexcept {
        const auto c = std::find_if(crowds_.begin(), crowds_.end(),
                                    [&](const crowd& x) { return x.number == number; });
        if (--c->waits == 0)
            crowds_.erase(c);
    }

    mutable optional_mutex<> mutex_{true};
    tick_number number_ = 0;    ///< of the scheduled tick
    tick_number delivered_ = 0; ///< the number of the tick that was delivered last
    time_point delivered_due_;  ///< when that one was due
    time_point base_;           ///< what the scheduled tick follows, unless it was set by hand
    time_point next_;           ///< when the scheduled tick is due
    duration period_;
    missed_tick_policy policy_;
    bool set_by_hand_ = true;
    std::vector<crowd> crowds_;
};

/// What a wait has of its interval: a tick to wait for.
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

    /// The tick is delivered now. @return how many further ones had become due.
    [[nodiscard]] std::uint64_t use(const typename grid::time_point& now) {
        return std::exchange(grid_, nullptr)->deliver(tick_.number, now);
    }

    /// The wait ends without the tick.
    void give_up() {
        if (const auto g = std::exchange(grid_, nullptr))
            g->leave(tick_.number);
    }

private:
    typename grid::schedule tick_;
    std::shared_ptr<grid> grid_;
};

} // namespace detail

} // namespace pawl

#endif // PAWL_SERVICE_INTERVAL_GRID_HPP
