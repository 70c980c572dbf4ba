// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

/// @file
/// pawl::timing_wheel_handle and pawl::fired_alarm, the alarms of a pawl::timing_wheel.

// Purpose
//   The alarms of a timing_wheel: the handle that names one, what a handler is given of one, and
//   the pool that they live in.
//
// Model
//   A slot of the pool has a fixed address and is used again and again, each time with another
//   generation. A handle is a wheel, an index and a generation, so whatever has become of an alarm,
//   its handle is recognised by looking at memory that is still there.
//
// Invariants
//   A1  A slot is alive exactly while its generation is not 0. No two alarms of one wheel ever have
//       the same generation, so no handle ever names another alarm than its own.

#ifndef PAWL_TIME_TIMING_WHEEL_ALARM_HPP
#define PAWL_TIME_TIMING_WHEEL_ALARM_HPP

#include <pawl/time/timer_node.hpp>
#include <pawl/time/timing_wheel_error.hpp>

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

/// Names one alarm of one timing_wheel, also when that alarm is no more. Cheap to copy.
///
/// A default constructed one names no alarm. One that has outlived its wheel must not be used with
/// a later wheel at the same address: it may then name an alarm of that.
class timing_wheel_handle {
public:
    /// Names no alarm.
    timing_wheel_handle() = default;

    /// Whether both name the same alarm, or none.
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

/// What a handler is given: an alarm that has left the wheel.
template <class T, class TimePoint>
struct fired_alarm {
    timing_wheel_handle alarm;  ///< What add() returned; mem() answers false by now.
    TimePoint at;               ///< The time it was set for.
    std::uint64_t interval_num; ///< The interval that `at` is in.
    T value;                    ///< The handler's to move from.
};

namespace detail {

/// Where alarms live. Knows nothing of time.
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
        std::uint64_t entry = 0;      // number of its last entry into the front, not from the wheel
        TimePoint at{};
        std::optional<T> value;
    };

    alarm_pool() = default;
    alarm_pool(const alarm_pool&) = delete;
    alarm_pool& operator=(const alarm_pool&) = delete;

    /// Number of slots, the free ones included.
    [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
    [[nodiscard]] slot& operator[](std::size_t index) noexcept { return slots_[index]; }
    [[nodiscard]] const slot& operator[](std::size_t index) const noexcept { return slots_[index]; }

    /// The last generation that was given.
    [[nodiscard]] std::uint64_t generations() const noexcept { return generations_; }

    /// Makes a slot with this value alive. Throws what allocating a slot or moving a T throws, and
    /// has then not changed anything.
    slot& acquire(T&& value, TimePoint at) {
        if (free_ == nullptr)
            free_ = &slots_.emplace_back(slots_.size());
        slot& s = *free_;
        s.value.emplace(std::move(value)); // the last that may throw
        free_ = static_cast<slot*>(s.next);
        s.next = nullptr;
        s.generation = ++generations_;
        s.at = at;
        return s;
    }

    /// Makes a slot that is filed nowhere a free one.
    void release(slot& s) noexcept {
        s.generation = 0;
        s.value.reset(); // foreign code: it may use the wheel, and does not find this alarm there
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

#endif
