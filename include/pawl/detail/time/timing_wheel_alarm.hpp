// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::timing_wheel_handle and pawl::fired_alarm: the handles of alarms of a pawl::timing_wheel,
/// the argument of a handler, and the pool that stores the alarms.
///
/// Model
///   A slot of the pool has a fixed address and is reused, each time with another generation. A
///   handle is a wheel, an index and a generation. So a handle is always checked against memory
///   that still exists, even if its alarm is gone.
///
/// Invariants
///   - Generation invariant: a slot is alive if and only if its generation is not 0. No two alarms
///     of a wheel have the same generation, so a handle never refers to another alarm.
#ifndef PAWL_DETAIL_TIME_TIMING_WHEEL_ALARM_HPP
#define PAWL_DETAIL_TIME_TIMING_WHEEL_ALARM_HPP

#include <pawl/detail/time/timing_wheel_error.hpp>
#include <pawl/time/timer_node.hpp>

#include <boost/intrusive/set_hook.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace pawl::time {

namespace detail {
template <class T, class TimePoint>
class alarm_pool;
}

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

    /// The last generation used.
    [[nodiscard]] std::uint64_t generations() const noexcept { return generations_; }

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
    void release(slot& s) noexcept {
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
        if (alarm.generation_ == 0)
            timing_wheel_error::no_alarm(function);
        if (alarm.pool_ != this)
            timing_wheel_error::other_wheel(function, alarm.generation_);
        timing_wheel_error::gone(function, alarm.generation_);
    }
    [[nodiscard]] slot& find(const char* function, timing_wheel_handle alarm) {
        return const_cast<slot&>(std::as_const(*this).find(function, alarm));
    }

private:
    std::deque<slot> slots_;
    slot* free_ = nullptr;
    std::uint64_t generations_ = 0;
};

} // namespace detail

} // namespace pawl::time

#endif // PAWL_DETAIL_TIME_TIMING_WHEEL_ALARM_HPP
