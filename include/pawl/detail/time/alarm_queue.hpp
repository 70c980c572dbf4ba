// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The alarms of a timing_wheel in firing order.
///
/// Model
///   An alarm is a node of a hierarchical_wheel, whose ticks are the keys, until its interval
///   begins, or until a query for the first alarm. Then the wheel hands it over to `front_`, a tree
///   in firing order, where it can be removed or moved as before.
///
///   A query may move the wheel ahead of the clock. An alarm that is added before the wheel's
///   position joins `front_`.
///
/// Invariants
///   - Front invariant: an alarm is in `front_` if its key is at most the wheel's position,
///     otherwise in the wheel.
///   - Firing-order invariant: `front_` is ordered by key; within one key, by the time at which the
///     alarm got that key.
///   - Handed-out invariant: between calls the wheel has handed out everything up to its position.
///
/// Cost
///   file, unfile and move O(1), or O(log f) in a front of f alarms.
#ifndef PAWL_DETAIL_TIME_ALARM_QUEUE_HPP
#define PAWL_DETAIL_TIME_ALARM_QUEUE_HPP

#include <pawl/time/geometry.hpp>
#include <pawl/time/hierarchical_wheel.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <boost/intrusive/set.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pawl::time::detail {

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

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_ALARM_QUEUE_HPP
