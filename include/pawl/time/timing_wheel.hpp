// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::timing_wheel, a container of alarms for use without Asio.
///
/// Purpose
///   Alarms with values, for programs without Asio or without any event loop: caches, games,
///   simulations. The interface is that of Jane Street's Timing_wheel (core_kernel), the idea that
///   of Varghese and Lauck (SOSP 1987). Nothing happens by itself: alarms fire inside
///   advance_clock().
///
/// Model
///   Time from `start` on is cut into half-open intervals of one alarm_precision, numbered from 0.
///   The key of an alarm is the number of its interval. It fires when the clock leaves that
///   interval:
///
///       key       0       1       2       3
///             |-------|-------|--a----|-------|      a fires when the clock reaches the start of 3
///           start
///
///   timing_wheel_alarm.hpp holds the alarms in the order of their keys. A due alarm stays there until it
///   fires, so it is accessible as before: to a handler, and after a handler has thrown.
///
/// Differences from the original
///   - Alarms of one interval fire in the order of adding, whatever their levels.
///   - Handlers may do everything but fire alarms. If one throws, no alarm is lost.
///   - In the original the last interval has no end that a clock can reach, so its alarms never
///     fire. Here time ends with TimePoint::max(): no alarm can be that late, and then all
///     remaining alarms fire.
///   - max_allowed_key() is min_allowed_key() + 2^num_bits - 1, or the last key; the original
///     rounds it up to its slots. clear() forgets the minimum.
///
/// Invariants: see timing_wheel_alarm.hpp
///
/// Threads
///   None. The owner serialises all calls, including those of const members, some of which move
///   alarms from the wheel to the front.
///
/// Cost
///   See the class. Firing costs as much as in hierarchical_wheel, plus one move of the value.
///   Queries do work that firing would do later. An alarm takes 88 bytes, its value and a bool. The
///   pool does not shrink.
#ifndef PAWL_TIME_TIMING_WHEEL_HPP
#define PAWL_TIME_TIMING_WHEEL_HPP

#include <pawl/config.hpp>

#include <pawl/detail/time/timing_wheel_alarm.hpp>
#include <pawl/time/geometry.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timing_wheel_config.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace pawl::time::detail {

// Numbers the intervals of one precision from a start, for a timing_wheel: which interval
// contains a time, and when an interval begins. tick.hpp counts from the epoch of a clock and
// rounds an expiry up; here interval 0 begins at a start of the user's, before or after the
// epoch, and everything rounds down.
//
// Invariants
//   - begin(number(t)) <= t, by less than one precision.
//   - Exact on the whole range: between time_point::min() and max() there are fewer than 2^64
//     units, and differences are computed modulo 2^64.

/// The half-open intervals of one precision, from a start to the end of time.
template <class TimePoint>
class intervals {
public:
    using time_point = TimePoint;
    using duration = typename TimePoint::duration;
    using rep = typename duration::rep;

    static_assert(std::is_integral_v<rep> && sizeof(rep) <= sizeof(std::uint64_t),
                  "pawl: a timing_wheel counts time in integers of up to 64 bits");

    /// @pre precision > 0
    intervals(time_point start, duration precision) noexcept
        : start_(start), units_(static_cast<std::uint64_t>(precision.count())),
          last_(number(time_point::max())) {}

    [[nodiscard]] time_point start() const noexcept { return start_; }

    /// The interval that contains `time`.
    /// @pre time >= start()
    [[nodiscard]] std::uint64_t number(time_point time) const noexcept {
        return (count(time) - count(start_)) / units_;
    }

    /// The first time of interval `n`.
    /// @pre n <= last()
    [[nodiscard]] time_point begin(std::uint64_t n) const noexcept {
        return time_point{duration{static_cast<rep>(count(start_) + n * units_)}};
    }

    /// The interval of time_point::max().
    [[nodiscard]] std::uint64_t last() const noexcept { return last_; }

    /// Bits of last(), at least one.
    [[nodiscard]] int width() const noexcept {
        return std::max(1, static_cast<int>(std::bit_width(last_)));
    }

private:
    static std::uint64_t count(time_point time) noexcept {
        return static_cast<std::uint64_t>(time.time_since_epoch().count());
    }

    time_point start_;
    std::uint64_t units_; ///< units per interval
    std::uint64_t last_;
};

} // namespace pawl::time::detail

namespace pawl::time {

/// A set of alarms, each with a value, and a clock that makes them fire.
///
/// @code
/// using namespace std::chrono_literals;
/// const auto start = std::chrono::steady_clock::now();
/// pawl::timing_wheel<std::string> wheel({10ms}, start);
///
/// const auto tea = wheel.add(start + 3min, "tea");
/// wheel.add(start + 8min, "eggs");
/// wheel.reschedule(tea, start + 4min);
/// wheel.advance_clock(start + 5min, [](auto alarm) { std::cout << alarm.value << '\n'; });
/// @endcode
///
/// advance_clock() fires no alarm early: `at < now()`. It leaves none that is late: for all that
/// remain, `interval_start(at) >= interval_start(now())`, so `at > now() - alarm_precision()`.
///
/// A handler is any function that can be called with a `fired_alarm<T, TimePoint>&&`. It may add,
/// remove, reschedule and clear alarms, including those due in the same call; alarms that it adds
/// or moves fire in a later call. It may throw: its own alarm has fired, all others stay, and the
/// next call of advance_clock() or fire_past_alarms(), even with the same time, continues with
/// them. It must not fire alarms, nor destroy the wheel.
///
/// Wrong arguments cause exceptions whose text has the offending value and the bounds; a time in it
/// is its count since the epoch of its clock. All members except those that fire alarms have the
/// strong exception guarantee.
///
/// A wheel can be neither copied nor moved: nodes point at its slots.
///
/// The interface is that of `Timing_wheel` in Jane Street's core_kernel, with some differences that
/// are listed at the head of this file; the structure is a pawl::time::hierarchical_wheel.
///
/// @par Complexity
/// add(), remove() and reschedule() are O(1), or O(log f) for f alarms that are in the present
/// interval, or were set for a time before the first alarm when min_elt(), min_key() or
/// next_alarm_fires_at() was called; those three are amortised O(1). clear() and for_each() are
/// O(largest number of alarms so far). add() allocates if there have never been so many.
///
/// @par Thread safety
/// Distinct objects: safe. Shared objects: unsafe, including const members.
///
/// @tparam T The value of an alarm. Movable, with a destructor that does not throw.
/// @tparam TimePoint A `std::chrono::time_point` that counts in integers of up to 64 bits.
template <class T, class TimePoint = std::chrono::steady_clock::time_point>
class timing_wheel {
    static_assert(std::is_move_constructible_v<T> && std::is_nothrow_destructible_v<T>);

public:
    using value_type = T;                          ///< The value of an alarm.
    using size_type = std::size_t;                 ///< A number of alarms.
    using time_point = TimePoint;                  ///< The time of an alarm.
    using duration = typename TimePoint::duration; ///< The unit of its time.
    /// The number of an interval, and a key of the priority queue.
    using key_type = std::uint64_t;
    using handle = timing_wheel_handle;                ///< Identifies an alarm.
    using fired = fired_alarm<T, TimePoint>;           ///< The argument of a handler.
    using config_type = timing_wheel_config<duration>; ///< Precision and levels.

    /// Makes a wheel without alarms whose clock is at `start`.
    /// @throws std::invalid_argument if `start` is `TimePoint::max()`.
    /// @throws std::bad_alloc
    timing_wheel(const config_type& config, time_point start)
        : intervals_(checked(start), config.alarm_precision()),
          config_(config.trimmed_to(intervals_.width())), queue_(shape()) {
        set_clock(start);
    }

    /// The same with the default precision and levels.
    explicit timing_wheel(time_point start) : timing_wheel(config_type{}, start) {}

    timing_wheel& operator=(timing_wheel&&) = delete;

    /// Destroys all values.
    ~timing_wheel() { clear(); }

    /// @name Time and intervals
    /// @{

    /// The configuration, with its levels trimmed to the time between `start` and
    /// `TimePoint::max()`.
    [[nodiscard]] const config_type& config() const noexcept { return config_; }
    /// The length of an interval.
    [[nodiscard]] duration alarm_precision() const noexcept { return config_.alarm_precision(); }
    /// For each level, how far it and those below it reach.
    [[nodiscard]] std::vector<duration> durations() const { return config_.durations(); }
    /// The beginning of interval 0.
    [[nodiscard]] time_point start() const noexcept { return intervals_.start(); }
    /// The time of the wheel.
    [[nodiscard]] time_point now() const noexcept { return now_; }

    /// The number of the interval that `time` is in.
    /// @throws std::out_of_range if `time < start()`.
    [[nodiscard]] key_type interval_num(time_point time) const {
        check_started("interval_num", time);
        return intervals_.number(time);
    }

    /// `interval_num(now())`.
    [[nodiscard]] key_type now_interval_num() const noexcept { return now_key_; }

    /// `start() + n * alarm_precision()`.
    /// @throws std::out_of_range if `n > max_representable_key()`.
    [[nodiscard]] time_point interval_num_start(key_type n) const {
        check_representable("interval_num_start", "n", n);
        return intervals_.begin(n);
    }

    /// The beginning of the interval that `time` is in.
    /// @throws std::out_of_range if `time < start()`.
    [[nodiscard]] time_point interval_start(time_point time) const {
        check_started("interval_start", time);
        return intervals_.begin(intervals_.number(time));
    }

    /// The first time that is too late for add(). Grows with now(), up to `TimePoint::max()`.
    [[nodiscard]] time_point alarm_upper_bound() const noexcept { return upper_bound_; }

    /// The earliest time at which advance_clock() fires an alarm; none without alarms. For the
    /// earliest alarm, `next - alarm_precision() <= at < next`.
    [[nodiscard]] std::optional<time_point> next_alarm_fires_at() const noexcept {
        const auto key = min_key();
        if (!key)
            return std::nullopt;
        return *key == intervals_.last() ? time_point::max() : intervals_.begin(*key + 1);
    }

    /// @}
    /// @name Alarms
    /// @{

    /// How many alarms there are.
    [[nodiscard]] size_type size() const noexcept { return size_; }
    /// `size() == 0`
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

    /// Sets an alarm for `at` and moves `value` into it.
    /// @throws std::out_of_range unless `now() <= at < alarm_upper_bound()`.
    /// @throws std::bad_alloc, and what moving a T throws.
    handle add(time_point at, T value) {
        check_alarm_time("add", at);
        queue_.reserve(size_ + 1);
        return link(pool_.acquire(std::move(value), at));
    }

    /// `add(interval_num_start(n), value)`, except that `n` may be the present interval, which has
    /// already begun.
    /// @throws std::out_of_range unless `min_allowed_key() <= n <= max_allowed_key()`, and if the
    ///         clock is at `TimePoint::max()`.
    /// @throws std::bad_alloc, and what moving a T throws.
    handle add_at_interval_num(key_type n, T value) {
        if (n < min_allowed_key() || n > max_allowed_key() || now_ == time_point::max())
            refuse<key_type>("add_at_interval_num", "n", n,
                             {min_allowed_key(), "min_allowed_key()"},
                             {max_allowed_key(), "max_allowed_key()"});
        queue_.reserve(size_ + 1);
        return link(pool_.acquire(std::move(value), intervals_.begin(n)));
    }

    /// Removes an alarm and destroys its value. To keep the value, move it out of value() first.
    /// @throws std::invalid_argument unless `mem(alarm)`.
    void remove(handle alarm) { erase(pool_.find("remove", alarm)); }

    /// Moves an alarm to another time, as if it were removed and added with the same handle.
    /// @throws std::invalid_argument unless `mem(alarm)`.
    /// @throws std::out_of_range unless `now() <= at < alarm_upper_bound()`.
    void reschedule(handle alarm, time_point at) {
        slot& s = pool_.find("reschedule", alarm);
        check_alarm_time("reschedule", at);
        s.at = at;
        queue_.move(s, tick{intervals_.number(at)});
    }

    /// Whether the alarm is in this wheel: added, and neither fired nor removed.
    [[nodiscard]] bool mem(handle alarm) const noexcept { return pool_.mem(alarm); }

    /// The time of an alarm.
    /// @throws std::invalid_argument unless `mem(alarm)`.
    [[nodiscard]] time_point at(handle alarm) const { return pool_.find("at", alarm).at; }

    /// The interval of an alarm: its key.
    /// @throws std::invalid_argument unless `mem(alarm)`.
    [[nodiscard]] key_type interval_num(handle alarm) const {
        return pool_.find("interval_num", alarm).key();
    }

    /// The value of an alarm. The reference is valid until the alarm fires or is removed.
    /// @throws std::invalid_argument unless `mem(alarm)`.
    [[nodiscard]] T& value(handle alarm) { return *pool_.find("value", alarm).value; }
    /// @copydoc value(handle)
    [[nodiscard]] const T& value(handle alarm) const { return *pool_.find("value", alarm).value; }

    /// Removes all alarms. The clock and the memory stay.
    void clear() noexcept {
        for (size_type i = 0; i != pool_.size(); ++i) {
            if (pool_[i].alive())
                erase(pool_[i]);
        }
    }

    /// Calls `visit(handle, T&)` for every alarm, in no particular order. It may remove any of
    /// them; an alarm that it adds may or may not be visited.
    template <class Visitor>
    void for_each(Visitor&& visit) {
        for (size_type i = 0; i != pool_.size(); ++i) {
            if (slot& s = pool_[i]; s.alive())
                std::invoke(visit, pool_.handle_of(s), *s.value);
        }
    }

    /// Calls `visit(handle, const T&)` for every alarm, in no particular order.
    template <class Visitor>
    void for_each(Visitor&& visit) const {
        for (size_type i = 0; i != pool_.size(); ++i) {
            if (const slot& s = pool_[i]; s.alive())
                std::invoke(visit, pool_.handle_of(s), *s.value);
        }
    }

    /// @}
    /// @name Firing
    /// @{

    /// Moves the clock to `to` and fires the alarms whose interval is over, in the order of their
    /// intervals; within one interval, in the order of adding.
    ///
    /// If `to <= now()`, the clock stays, and only alarms fire that a throwing handler has left. A
    /// handler sees the new time in now().
    ///
    /// @return how many alarms have fired.
    /// @throws std::logic_error if called by a handler of this wheel.
    template <class Handler>
    size_type advance_clock(time_point to, Handler&& handle_fired) {
        return advance("advance_clock", to, handle_fired);
    }

    /// Fires the alarms with `at <= now()`, even if their interval is not over.
    ///
    /// In the order of adding. Examines every alarm of the present interval.
    ///
    /// @return how many alarms have fired.
    /// @throws std::logic_error if called by a handler of this wheel.
    template <class Handler>
    size_type fire_past_alarms(Handler&& handle_fired) {
        const firing lock(*this, "fire_past_alarms");
        queue_.hand_over(now_key_);
        const std::uint64_t before = queue_.entries(); // filed by handlers: wait for the next call
        size_type count = 0;
        queue_.visit_front();
        while (slot* const s = queue_.next_up_to(now_key_)) {
            if (s->at <= now_ && s->entry <= before) {
                fired alarm = take(*s);
                std::invoke(handle_fired, std::move(alarm));
                ++count;
            }
        }
        return count;
    }

    /// @}
    /// @name A priority queue of keys
    /// The wheel as a queue whose least key only grows.
    /// @{

    /// The least key that can be added: now_interval_num().
    [[nodiscard]] key_type min_allowed_key() const noexcept { return now_key_; }

    /// The largest key that can be added at present. Meaningless once the clock is at
    /// `TimePoint::max()`: then no alarm can be added.
    [[nodiscard]] key_type max_allowed_key() const noexcept {
        return intervals_.number(upper_bound_ - duration{1});
    }

    /// The largest key ever possible: the interval of `TimePoint::max()`.
    [[nodiscard]] key_type max_representable_key() const noexcept { return intervals_.last(); }

    /// Some alarm with the least key; none without alarms.
    [[nodiscard]] std::optional<handle> min_elt() const noexcept {
        const slot* const least = queue_.minimum(intervals_.last());
        return least ? std::optional(pool_.handle_of(*least)) : std::nullopt;
    }

    /// The least key; none without alarms.
    [[nodiscard]] std::optional<key_type> min_key() const noexcept {
        const slot* const least = queue_.minimum(intervals_.last());
        return least ? std::optional(least->key()) : std::nullopt;
    }

    /// `advance_clock(interval_num_start(key), handle_removed)`: all smaller keys fire.
    /// @throws std::out_of_range if `key > max_representable_key()`.
    /// @throws std::logic_error if called by a handler of this wheel.
    template <class Handler>
    size_type increase_min_allowed_key(key_type key, Handler&& handle_removed) {
        check_representable("increase_min_allowed_key", "key", key);
        return advance("increase_min_allowed_key", intervals_.begin(key), handle_removed);
    }

    /// @}

private:
    template <class>
    friend struct pawl::detail::invariant_of;

    using pool = detail::alarm_pool<T, TimePoint>;
    using slot = typename pool::slot;
    using error = detail::timing_wheel_error;

    static constexpr const char* advice = "; more level_bits or a coarser alarm_precision reach "
                                          "further";

    /// Prevents handlers from firing alarms.
    class firing {
    public:
        firing(timing_wheel& wheel, const char* function) : wheel_(wheel) {
            if (wheel.firing_)
                throw std::logic_error(error::call(function) +
                                       "called by a handler of the same wheel; call it after the "
                                       "outer call has returned");
            wheel.firing_ = true;
        }
        firing& operator=(firing&&) = delete;
        ~firing() {
            wheel_.firing_ = false;
            wheel_.queue_.end_visit();
        }

    private:
        timing_wheel& wheel_;
    };

    static time_point checked(time_point start) {
        if (start == time_point::max())
            throw std::invalid_argument(
                error::outside<time_point>("timing_wheel", "start", start,
                                           {time_point::min(), "TimePoint::min()"},
                                           {time_point::max(), "TimePoint::max(), not included"}) +
                "; after it there is no time for alarms");
        return start;
    }

    /// Keys outgrow the configured levels as time passes: further levels take the carry. A level
    /// with more slots than a wheel allows is split.
    [[nodiscard]] geometry shape() const {
        std::vector<int> levels;
        for (int bits : config_.level_bits()) {
            for (; bits > geometry::most_bits; bits -= geometry::most_bits)
                levels.push_back(geometry::most_bits);
            levels.push_back(bits);
        }
        if (config_.num_bits() < intervals_.width())
            levels.push_back(6); // repeated
        return geometry(std::span<const int>(levels), intervals_.width());
    }

    void set_clock(time_point now) noexcept {
        now_ = now;
        now_key_ = intervals_.number(now);
        const int bits = config_.num_bits();
        const bool reaches_the_end = bits == 64 || (intervals_.last() - now_key_) >> bits == 0;
        upper_bound_ = reaches_the_end ? time_point::max()
                                       : intervals_.begin(now_key_ + (std::uint64_t{1} << bits));
    }

    void check_started(const char* function, time_point time) const {
        if (time < start())
            error::out_of_range<time_point>(function, "time", time, {start(), "start()"},
                                            {time_point::max(), "TimePoint::max()"});
    }

    void check_representable(const char* function, const char* argument, key_type key) const {
        if (key > intervals_.last())
            error::out_of_range<key_type>(function, argument, key, {0, "interval_num(start())"},
                                          {intervals_.last(), "max_representable_key()"});
    }

    void check_alarm_time(const char* function, time_point at) const {
        if (at < now_ || at >= upper_bound_)
            refuse<time_point>(function, "at", at, {now_, "now()"},
                               {upper_bound_, "alarm_upper_bound(), not included"});
    }

    /// Throws that `value` is out of bounds. Adds advice unless the end of time is the reason, or
    /// the bounds are empty.
    template <class Value>
    [[noreturn]] void refuse(const char* function, const char* argument, Value value,
                             error::bound<Value> least, error::bound<Value> most) const {
        if (now_ == time_point::max())
            error::time_is_over(function, argument, value, now_);
        const bool helps = value > least.value && upper_bound_ != time_point::max();
        error::out_of_range(function, argument, value, least, most, helps ? advice : "");
    }

    /// Files a new alarm.
    handle link(slot& s) noexcept {
        queue_.file(s, tick{intervals_.number(s.at)});
        ++size_;
        return pool_.handle_of(s);
    }

    void erase(slot& s) noexcept {
        queue_.unfile(s);
        --size_;
        pool_.free(s);
    }

    /// advance_clock(), also for other functions that do the same.
    template <class Handler>
    size_type advance(const char* function, time_point to, Handler& handle_fired) {
        const firing lock(*this, function);
        if (to > now_)
            set_clock(to);
        size_type count = 0;
        while (queue_.pull(now_key_) && is_over(queue_.front())) {
            fired alarm = take(queue_.front());
            std::invoke(handle_fired, std::move(alarm));
            ++count;
        }
        return count;
    }

    [[nodiscard]] fired take(slot& s) {
        fired alarm{pool_.handle_of(s), s.at, s.key(), std::move(*s.value)};
        erase(s);
        return alarm;
    }

    [[nodiscard]] bool is_over(const slot& s) const noexcept {
        return s.key() < now_key_ || now_ == time_point::max();
    }

    detail::intervals<TimePoint> intervals_;
    config_type config_;
    time_point now_{};
    key_type now_key_ = 0; ///< the key of now_
    time_point upper_bound_{};

    pool pool_;
    size_type size_ = 0; ///< number of alive slots

    mutable detail::alarm_queue<slot> queue_;
    bool firing_ = false;
};

} // namespace pawl::time

namespace pawl {

using time::fired_alarm;
using time::timing_wheel;
using time::timing_wheel_config;
using time::timing_wheel_handle;

} // namespace pawl

#endif // PAWL_TIME_TIMING_WHEEL_HPP
