// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::timing_wheel_handle and pawl::fired_alarm: the handles of alarms of a pawl::timing_wheel,
/// the argument of a handler, the pool that stores the alarms, and the queue that has them in firing order.
///
/// Model
///   A slot of the pool has a fixed address and is reused, each time with another generation. A
///   handle is a wheel, an index and a generation. So a handle is always checked against memory
///   that still exists, even if its alarm is gone.
///
///   An alarm is a node of a hierarchical_wheel, whose ticks are the keys, until its interval
///   begins, or until a query for the first alarm. Then the wheel hands it over to `front_`, a tree
///   in firing order, where it can be removed or moved as before.
///
///   A query may move the wheel ahead of the clock. An alarm that is added before the wheel's
///   position joins `front_`.
///
/// Invariants
///   - Generation invariant: a slot is alive if and only if its generation is not 0. No two alarms
///     of a wheel have the same generation, so a handle never refers to another alarm.
///   - Front invariant: an alarm is in `front_` if its key is at most the wheel's position,
///     otherwise in the wheel.
///   - Firing-order invariant: `front_` is ordered by key; within one key, by the time at which the
///     alarm got that key.
///   - Handed-out invariant: between calls the wheel has handed out everything up to its position.
///
/// Cost
///   file, unfile and move of the queue O(1), or O(log f) in a front of f alarms.
#ifndef PAWL_DETAIL_TIME_TIMING_WHEEL_ALARM_HPP
#define PAWL_DETAIL_TIME_TIMING_WHEEL_ALARM_HPP

#include <pawl/time/geometry.hpp>
#include <pawl/time/hierarchical_wheel.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <boost/intrusive/set.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace pawl::time {

namespace detail {

template <class T, class TimePoint>
class alarm_pool;

/// The texts of timing_wheel's exceptions: the function, the value, the allowed range, and the remedy.
struct timing_wheel_error {
    static std::string call(const char* function) {
        return std::string("pawl: timing_wheel: ") + function + "(): ";
    }

    static std::string text(std::uint64_t number) { return std::to_string(number); }

    /// A time is shown as its count since the epoch of its clock.
    template <class TimePoint>
    static std::string text(TimePoint time) {
        return std::to_string(time.time_since_epoch().count());
    }

    /// A bound of the allowed range, and its name.
    template <class Value>
    struct bound {
        Value value;
        const char* name;
    };

    template <class Value>
    static std::string outside(const char* function, const char* argument, Value value,
                               bound<Value> least, bound<Value> most) {
        return call(function) + argument + " is " + text(value) + ", allowed are " +
               text(least.value) + " (" + least.name + ") to " + text(most.value) + " (" +
               most.name + ")";
    }

    template <class Value>
    [[noreturn]] static void out_of_range(const char* function, const char* argument, Value value,
                                          bound<Value> least, bound<Value> most,
                                          const char* advice = "") {
        throw std::out_of_range(outside(function, argument, value, least, most) + advice);
    }

    template <class Value, class TimePoint>
    [[noreturn]] static void time_is_over(const char* function, const char* argument, Value value,
                                          TimePoint now) {
        throw std::out_of_range(call(function) + argument + " is " + text(value) +
                                ", but none is allowed: the clock is at " + text(now) +
                                " (TimePoint::max()), after which there is no time for alarms");
    }
};

} // namespace detail

/// Identifies an alarm of a timing_wheel, even after the alarm is gone. Cheap to copy.
///
/// A default constructed handle refers to no alarm. Do not use a handle of a destroyed wheel with a
/// later wheel at the same address: it may match an alarm of that one.
class timing_wheel_handle {
public:
    /// Refers to no alarm.
    timing_wheel_handle() = default;

    /// Whether both refer to the same alarm, or to none.
    friend bool operator==(const timing_wheel_handle&, const timing_wheel_handle&) = default;

private:
    template <class, class>
    friend class detail::alarm_pool;

    timing_wheel_handle(const void* pool, std::size_t index, std::uint64_t generation) noexcept
        : pool_(pool), index_(index), generation_(generation) {}

    const void* pool_ = nullptr;
    std::size_t index_ = 0;
    std::uint64_t generation_ = 0;
};

/// The argument of a handler: an alarm that has left the wheel.
template <class T, class TimePoint>
struct fired_alarm {
    timing_wheel_handle alarm;  ///< The handle from add(); mem() is now false.
    TimePoint at;               ///< Its time.
    std::uint64_t interval_num; ///< The interval of `at`.
    T value;                    ///< The handler may move from it.
};

namespace detail {

/// Stores alarms. Knows nothing of time.
template <class T, class TimePoint>
class alarm_pool {
    using hook =
        boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>,
                                        boost::intrusive::optimize_size<true>>;

public:
    struct slot : timer_node, hook {
        explicit slot(std::size_t i) noexcept : index(i) {}

        [[nodiscard]] bool alive() const noexcept { return generation != 0; }
        [[nodiscard]] std::uint64_t key() const noexcept { return due.count(); }

        std::size_t index;
        std::uint64_t generation = 0; // 0: free, and `next` is the next free slot
        std::uint64_t entry =
            0; // number of its last direct entry into the front, not from the wheel
        TimePoint at{};
        std::optional<T> value;
    };

    alarm_pool& operator=(alarm_pool&&) = delete;

    /// Number of slots, including free ones.
    [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
    [[nodiscard]] slot& operator[](std::size_t index) noexcept { return slots_[index]; }
    [[nodiscard]] const slot& operator[](std::size_t index) const noexcept { return slots_[index]; }

    /// Makes a slot alive with this value. Strong exception guarantee: throws what allocating a
    /// slot or moving a T throws.
    slot& acquire(T&& value, TimePoint at) {
        if (!free_)
            free_ = &slots_.emplace_back(slots_.size());
        slot& s = *free_;
        s.value.emplace(std::move(value)); // last operation that may throw
        free_ = static_cast<slot*>(s.next);
        s.next = nullptr;
        s.generation = ++generations_;
        s.at = at;
        return s;
    }

    /// Frees a slot.
    /// @pre it is not filed
    void free(slot& s) noexcept {
        s.generation = 0;
        s.value.reset(); // foreign code: it may use the wheel, where this alarm is gone
        s.next = free_;
        free_ = &s;
    }

    [[nodiscard]] timing_wheel_handle handle_of(const slot& s) const noexcept {
        return {this, s.index, s.generation};
    }

    [[nodiscard]] bool mem(timing_wheel_handle alarm) const noexcept {
        return alarm.pool_ == this && alarm.index_ < slots_.size() && alarm.generation_ != 0 &&
               slots_[alarm.index_].generation == alarm.generation_;
    }

    /// The slot of an alarm. Throws std::invalid_argument unless mem(alarm).
    [[nodiscard]] const slot& find(const char* function, timing_wheel_handle alarm) const {
        if (mem(alarm))
            return slots_[alarm.index_];
        const std::string number = "alarm " + std::to_string(alarm.generation_);
        throw std::invalid_argument(
            timing_wheel_error::call(function) +
            (alarm.generation_ == 0
                 ? "the handle is default constructed; use one that add() has returned"
             : alarm.pool_ != this
                 ? number + " is of another wheel; use the wheel that added it"
                 : number + " has fired or been removed; ask mem() where that is possible"));
    }
    [[nodiscard]] slot& find(const char* function, timing_wheel_handle alarm) {
        return const_cast<slot&>(std::as_const(*this).find(function, alarm));
    }

private:
    template <class>
    friend struct pawl::detail::invariant_of;

    std::deque<slot> slots_;
    slot* free_ = nullptr;
    std::uint64_t generations_ = 0; ///< the last one used
};

/// The alarms of a timing_wheel in firing order.
/// @tparam Slot an alarm of alarm_pool
template <class Slot>
class alarm_queue {
public:
    explicit alarm_queue(const geometry& shape) : wheel_(shape) {}

    /// Allocates until that many alarms may be filed.
    void reserve(std::size_t alarms) { wheel_.reserve(alarms); }

    void file(Slot& s, tick due) noexcept {
        if (due > wheel_.now()) {
            s.set_user(in_wheel);
            wheel_.insert(s, due);
        } else {
            s.due = due;
            s.set_user(in_front);
            s.entry = ++entries_;
            front_.insert(s); // after those of the same key
        }
    }

    void unfile(Slot& s) noexcept {
        if (s.user() == in_wheel) {
            wheel_.erase(s);
            return;
        }
        const auto at = front_.iterator_to(s);
        if (at == cursor_)
            ++cursor_;
        front_.erase(at);
    }

    /// unfile() and file() in one.
    void move(Slot& s, tick due) noexcept {
        if (s.user() == in_wheel && due > wheel_.now()) {
            wheel_.rearm(s, due);
        } else {
            unfile(s);
            file(s, due);
        }
    }

    /// Moves the wheel to `key`, and appends what it hands out to the front.
    void hand_over(std::uint64_t key) noexcept {
        std::array<timer_node*, 64> out;
        for (bool more = true; more;) {
            const expire_result result = wheel_.expire(tick{key}, out);
            more = result.more;
            for (timer_node* const node : std::span(out).first(result.emitted)) {
                node->set_user(in_front);
                front_.insert(front_.end(), static_cast<Slot&>(*node));
            }
        }
    }

    /// If the front is empty, the wheel hands over its least key, unless that is beyond `limit`.
    /// One key at a time keeps the front small.
    /// @return whether the front has an alarm now.
    bool pull(std::uint64_t limit) noexcept {
        while (front_.empty()) {
            const std::uint64_t next = wheel_.next_wake().count();
            if (wheel_.empty() || next > limit) {
                if (limit > wheel_.now().count())
                    hand_over(limit); // hands over nothing, but later alarms are filed nearer
                return false;
            }
            hand_over(next);
        }
        return true;
    }

    /// The first alarm of the front.
    /// @pre pull() was true
    [[nodiscard]] Slot& front() noexcept { return *front_.begin(); }

    /// Some alarm with the least key; nullptr without alarms.
    /// @param last the greatest key of all
    [[nodiscard]] const Slot* minimum(std::uint64_t last) noexcept {
        if (front_.empty()) {
            const timer_node* const some = wheel_.any();
            if (!some)
                return nullptr;
            // Often the wheel can tell without moving ahead of the clock.
            if (some->due == wheel_.next_wake())
                return static_cast<const Slot*>(some);
            pull(last);
        }
        return &front();
    }

    /// Begins to visit the front in order. Any alarm may be unfiled or filed meanwhile.
    void visit_front() noexcept { cursor_ = front_.begin(); }
    /// The next alarm to visit; nullptr if its key is greater than `limit`, or there is none.
    [[nodiscard]] Slot* next_up_to(std::uint64_t limit) noexcept {
        return cursor_ != front_.end() && cursor_->key() <= limit ? &*cursor_++ : nullptr;
    }
    void end_visit() noexcept { cursor_ = front_.end(); }

    /// The number of entries into the front, except from the wheel.
    [[nodiscard]] std::uint64_t entries() const noexcept { return entries_; }

private:
    template <class>
    friend struct pawl::detail::invariant_of;

    struct by_key {
        bool operator()(const Slot& a, const Slot& b) const noexcept { return a.key() < b.key(); }
    };
    using tree = boost::intrusive::multiset<Slot, boost::intrusive::compare<by_key>,
                                            boost::intrusive::constant_time_size<false>>;

    // The place of an alarm: `user` of its node.
    static constexpr unsigned in_wheel = 0;
    static constexpr unsigned in_front = 1;

    hierarchical_wheel wheel_;
    tree front_;
    typename tree::iterator cursor_ = front_.end(); ///< where a visit goes on
    std::uint64_t entries_ = 0;
};

} // namespace detail

} // namespace pawl::time

#endif // PAWL_DETAIL_TIME_TIMING_WHEEL_ALARM_HPP
