// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::time::timeout_rings, the backend of pawl::ring_timer: rings for several fixed delays.
///
/// Purpose
///   Timers with a few delays, such as the idle timeouts of connections. The timers of one delay
///   expire in start order, so a circular buffer of slots suffices. A ring is coarse, which saves
///   wake-ups, and it has a capacity; what happens when it is full is its owner's decision.
///
/// Model
///   A slot is running (it points at its node), or ended (null: the node was erased, or has moved
///   on), or empty (outside [first, next)). It becomes empty when the ring comes to it, or at once if
///   it is the oldest. A ring that grows gets a second buffer, of twice the capacity: new slots are
///   made there, and the first one is only emptied. So slots never move.
///
///            first                           next
///      empty  | ended  running  running ... ended | empty
///             ^ period                ^ period
///
///   Consecutive slots form a period: it begins with the due tick of its first node, and takes the
///   nodes that are due less than a `marks`-th part of the delay after that. All expire together,
///   at the latest of their due ticks. A node that is filed again within the last period keeps its
///   slot. So a timer takes at most one slot per period, however often it is moved.
///
/// Invariants
///   - Slot invariant: a filed node has its ring in `slot`, its number in `ticket`, and its slot in
///     `link`, which points back. An overdue node is in a list instead.
///   - Period invariant: periods ascend in number and due tick, the first contains the oldest slot,
///     and no node is due after its period.
///
/// Threads
///   None. The owner serialises all calls.
#ifndef PAWL_DETAIL_TIME_TIMEOUT_RINGS_HPP
#define PAWL_DETAIL_TIME_TIMEOUT_RINGS_HPP

#include <pawl/detail/time/node_list.hpp>
#include <pawl/time/backend.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <pawl/config.hpp>

#include <boost/circular_buffer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace pawl::time {

/// A bounded_backend. A node is handed out within [due, due + period], where the period is the
/// delay of its ring divided by `marks`, rounded up; or later, together with the node that was
/// filed before it, if that one is due later.
///
/// @par Complexity
/// O(1) for each node and each call that concerns one ring; expire(), next_wake() and detach_all()
/// also O(number of rings).
class timeout_rings {
public:
    static constexpr const char* label = "timeout_rings"; ///< In statistics.

    class detached;

    /// What a node is filed under.
    struct deadline {
        /// A value of `ring`: the due tick has come. The next expire() hands the node out, unless
        /// its clock was read before.
        static constexpr unsigned overdue = 0xffff;

        tick due;                ///< The node is not handed out before.
        unsigned ring = overdue; ///< Index of its shape.
    };

    /// The parameters of a ring.
    struct shape {
        std::uint64_t delay = 0;  ///< in ticks, at least 1
        std::size_t capacity = 0; ///< initial number of slots, 1 .. most_capacity
    };

    static constexpr std::size_t most_capacity = std::size_t{1} << 31; ///< of one ring

    /// Memory of a ring.
    using room_part = boost::circular_buffer<timer_node*>;

    /// Makes a ring for each shape; the position is `now`.
    /// @param marks periods in a delay, at least 1
    timeout_rings(std::span<const shape> shapes, unsigned marks, tick now) : now_(now) {
        rings_.reserve(shapes.size());
        for (const shape& s : shapes)
            rings_.emplace_back(s, marks);
    }

    timeout_rings& operator=(timeout_rings&&) = delete;

    [[nodiscard]] tick now() const noexcept { return now_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

    void insert(timer_node& node, const deadline& where) noexcept {
        PAWL_ASSERT(!node.filed());
        node.due = where.due;
        ++size_;
        if (where.ring == deadline::overdue)
            overdue_.push_back(node);
        else
            rings_[where.ring].push(node, where.ring);
    }

    void rearm(timer_node& node, const deadline& where) noexcept {
        if (stays(node, where)) {
            node.due = where.due;
            rings_[where.ring].extend(where.due);
        } else {
            erase(node);
            insert(node, where);
        }
    }

    void erase(timer_node& node) noexcept {
        PAWL_ASSERT(node.filed());
        if (node.slot() == deadline::overdue) {
            overdue_.remove(node);
        } else {
            *node.link = nullptr;
            if (ring& r = rings_[node.slot()]; node.ticket == r.first)
                (void)r.pop();
        }
        let_go(node);
    }

    void move_node(timer_node& from, timer_node& to) noexcept {
        if (from.filed() && from.slot() == deadline::overdue)
            return overdue_.move(from, to);
        PAWL_ASSERT(!to.filed());
        to = std::exchange(from, timer_node{});
        if (to.filed())
            *to.link = &to;
    }

    /// Hands out the overdue nodes, then ring by ring, each in its order.
    expire_result expire(tick now, std::span<timer_node*> out) noexcept {
        now_ = std::max(now_, now);
        std::size_t emitted = 0;
        for (; overdue_.next_wake(now_) <= now_; ++emitted) {
            if (emitted == out.size())
                return {emitted, true};
            out[emitted] = overdue_.first;
            erase(*overdue_.first);
        }
        std::size_t examined = emitted;
        for (ring& r : rings_) {
            for (; r.next_wake() <= now_; ++examined) {
                if (examined == out.size())
                    return {emitted, true};
                if (timer_node* const node = r.pop()) {
                    let_go(*node);
                    out[emitted++] = node;
                }
            }
        }
        return {emitted, false};
    }

    /// The first tick at which expire() comes to a slot, even to one that has ended.
    [[nodiscard]] tick next_wake() const noexcept {
        tick first = overdue_.next_wake(now_);
        for (const ring& r : rings_)
            first = std::min(first, r.next_wake());
        return first;
    }
    /// The same, as far as nodes with this deadline are concerned.
    [[nodiscard]] tick next_wake(const deadline& where) const noexcept {
        return where.ring == deadline::overdue ? overdue_.next_wake(now_)
                                               : rings_[where.ring].next_wake();
    }

    /// Frees a slot. `node` is the node that was filed there; nullptr if it had ended.
    /// @return false if none is left.
    [[nodiscard]] bool take_any(timer_node*& node) noexcept {
        node = overdue_.first;
        if (node) {
            erase(*node);
            return true;
        }
        return std::ranges::any_of(rings_, [&](ring& r) { return take(r, r.next, node); });
    }

    /// Moves all nodes to a set.
    inline void detach_all(detached& set) noexcept;

    // --- bounded_backend ----------------------------------------------------------------------

    /// Whether a node may be filed, or filed again.
    [[nodiscard]] bool has_room(const timer_node& node, const deadline& where) const noexcept {
        return where.ring == deadline::overdue || !rings_[where.ring].full() || stays(node, where);
    }

    /// The node that expires next in the ring of this deadline; nullptr if there is none. Frees the
    /// ended slots before it.
    [[nodiscard]] timer_node* oldest(const deadline& where) noexcept {
        ring& r = rings_[where.ring];
        while (r.first != r.next) {
            if (timer_node* const node = r.parts[r.front].front())
                return node;
            (void)r.pop();
        }
        return nullptr;
    }

    /// The size of the room_part for which a full ring waits; 0 if it cannot grow.
    [[nodiscard]] std::size_t next_room_part(const deadline& where) const noexcept {
        const std::size_t capacity = rings_[where.ring].capacity();
        return capacity <= most_capacity / 2 ? 2 * capacity : 0;
    }
    /// Takes the part over, unless another one was added since its size was read.
    void add_room(const deadline& where, room_part& part) noexcept {
        ring& r = rings_[where.ring];
        if (part.capacity() <= r.capacity())
            return;
        r.parts.push_back(std::move(part));
        if (r.parts[r.front].empty()) // all slots were freed while the part was allocated
            ++r.front;
    }

private:
    template <class>
    friend struct pawl::detail::invariant_of;

    struct period {
        std::uint64_t first; ///< the number of its first slot
        tick begin;          ///< the due tick of its first node
        tick wake;           ///< the latest due tick: all its nodes expire then
    };

    struct ring {
        // Enough periods: a new one begins only if the last one begins a period earlier. So when
        // there are `marks` + 2, the first two are due (see push()).
        ring(const shape& s, unsigned marks)
            : length((s.delay - 1) / marks + 1), periods(std::size_t{marks} + 2) {
            PAWL_ASSERT(s.delay != 0 && s.capacity != 0 && s.capacity <= most_capacity);
            parts.reserve(most_parts);
            parts.emplace_back(s.capacity);
        }

        [[nodiscard]] std::size_t capacity() const noexcept { return parts.back().capacity(); }
        [[nodiscard]] bool full() const noexcept { return next - first >= capacity(); }
        [[nodiscard]] tick next_wake() const noexcept {
            return periods.empty() ? tick::never() : periods.front().wake;
        }
        /// Whether the last period takes a node with this due tick.
        [[nodiscard]] bool takes(tick due) const noexcept {
            const std::uint64_t begin = periods.back().begin.count();
            return due.count() < begin || due.count() - begin < length;
        }
        void extend(tick due) noexcept { periods.back().wake = std::max(periods.back().wake, due); }

        void push(timer_node& node, unsigned index) noexcept {
            PAWL_ASSERT(!full());
            if (!periods.empty() && takes(node.due)) {
                extend(node.due);
            } else {
                if (periods.full()) { // the driver is late: the first two expire together
                    periods[1].first = periods[0].first;
                    periods.pop_front();
                }
                periods.push_back({next, node.due, node.due});
            }
            parts.back().push_back(&node);
            node.link = &parts.back().back();
            node.ticket = next++;
            node.set_slot(index);
        }

        /// Frees the oldest slot.
        [[nodiscard]] timer_node* pop() noexcept {
            timer_node* const node = parts[front].front();
            parts[front].pop_front();
            while (parts[front].empty() && front + 1 != parts.size())
                ++front;
            if (++first == next)
                periods.clear();
            else if (periods.size() > 1 && periods[1].first <= first)
                periods.pop_front();
            return node;
        }

        /// A capacity doubles at most so often.
        static constexpr std::size_t most_parts = 32;

        std::uint64_t length; ///< of a period
        boost::circular_buffer<period> periods;
        std::vector<room_part> parts; ///< by capacity; slots are made in the last one
        std::size_t front = 0;        ///< the part of the oldest slot
        std::uint64_t first = 0;      ///< the number of the oldest slot
        std::uint64_t next = 0;       ///< the number of the next slot
        std::uint64_t detached = 0;   ///< nodes before it may be in a detached set
    };

    /// Nodes in the order in which they were added.
    struct list {
        /// The driver may have read the clock before the thread that filed the first node.
        [[nodiscard]] tick next_wake(tick now) const noexcept {
            return first ? std::max(first->due, now) : tick::never();
        }
        void push_back(timer_node& node) noexcept {
            node.next = nullptr;
            node.link = last;
            *last = &node;
            last = &node.next;
            node.set_slot(deadline::overdue);
        }
        void remove(timer_node& node) noexcept {
            if (last == &node.next)
                last = node.link;
            detail::unlink(node);
        }
        void move(timer_node& from, timer_node& to) noexcept {
            if (last == &from.next)
                last = &to.next;
            detail::move_node(from, to);
        }
        void take_over(list& other) noexcept {
            first = std::exchange(other.first, nullptr);
            if (first)
                first->link = &first;
            other.last = &other.first;
        }

        timer_node* first = nullptr;
        timer_node** last = &first; ///< the null pointer at the end
    };

    /// Whether the node keeps its slot when it is filed under this deadline.
    [[nodiscard]] bool stays(const timer_node& node, const deadline& where) const noexcept {
        if (!node.filed() || node.slot() != where.ring || where.ring == deadline::overdue)
            return false;
        const ring& r = rings_[where.ring];
        return node.ticket >= r.detached && node.ticket >= r.periods.back().first &&
               r.takes(where.due);
    }

    /// Frees one slot with a number below `until`.
    /// @return false if there is none.
    [[nodiscard]] bool take(ring& r, std::uint64_t until, timer_node*& node) noexcept {
        if (r.first >= until)
            return false;
        node = r.pop();
        if (node)
            let_go(*node);
        return true;
    }

    void let_go(timer_node& node) noexcept {
        node.next = nullptr;
        node.link = nullptr;
        --size_;
    }

    std::vector<ring> rings_;
    list overdue_;
    tick now_;
    std::size_t size_ = 0; ///< filed nodes, including those of detached sets
};

/// The nodes that were filed at some moment. A node that expires, is erased or is moved leaves the
/// set.
class timeout_rings::detached {
public:
    /// @throws std::bad_alloc
    explicit detached(const timeout_rings& from) : until_(from.rings_.size()) {}

    detached& operator=(detached&&) = delete;

    /// Frees a slot, those of one ring in start order. `node` is the node that was filed there;
    /// nullptr if it had ended.
    /// @return false if none is left.
    [[nodiscard]] bool pop(timer_node*& node) noexcept {
        if (!from_)
            return false;
        if (node = overdue_.first; node) {
            from_->erase(*node);
            return true;
        }
        for (; ring_ < until_.size(); ++ring_)
            if (from_->take(from_->rings_[ring_], until_[ring_], node))
                return true;
        return false;
    }

private:
    friend class timeout_rings;

    timeout_rings* from_ = nullptr;
    list overdue_;
    std::vector<std::uint64_t> until_; ///< for each ring: the first number that is not in the set
    std::size_t ring_ = 0;
};

inline void timeout_rings::detach_all(detached& set) noexcept {
    set.from_ = this;
    set.ring_ = 0;
    set.overdue_.take_over(overdue_);
    for (std::size_t i = 0; i < rings_.size(); ++i)
        set.until_[i] = rings_[i].detached = rings_[i].next;
}

} // namespace pawl::time

#endif // PAWL_DETAIL_TIME_TIMEOUT_RINGS_HPP
