// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::time::timeout_rings, the time structure of pawl::ring_timer: rings for several fixed
/// delays. The service uses it in place of a backend.
///
/// Model
///   One timeout_ring per delay. A node is filed under a ring and a due tick; for the ring it began
///   one delay before that. When a period of the ring is closed, the latest start so far becomes
///   its stamp. So a node that begins when it is filed is handed out within [due, due + period], if
///   the driver comes in time; a period is the k-th part of the delay, rounded up.
///
///   A re-arm registers the node again and leaves a cancelled slot, except within one period. All
///   nodes of a period are handed out together, so the node keeps its slot, and only its due tick
///   is written. So a timer takes at most one slot per period, however often it is moved, plus one
///   for each detached set that a move takes it out of.
///
/// Invariants
///   - Not-early invariant: no node is handed out before its due tick. A thread that files a node
///     has read the clock before, and a thread that expires may have read it even earlier. So a
///     period is stamped with the latest known start, and the argument of expire() only decides
///     whether the period is over.
///   - Ticket invariant: a filed node has its ring in `slot` and its ticket in `ticket`.
///
/// Threads
///   The owner serialises all calls. (A timeout_ring alone needs that for expiry only.)
#ifndef PAWL_TIME_TIMEOUT_RINGS_HPP
#define PAWL_TIME_TIMEOUT_RINGS_HPP

#include <pawl/time/backend.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timeout_ring.hpp>
#include <pawl/time/timer_node.hpp>

#include <pawl/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace pawl::time {

/// Several rings as one time structure. A node that is filed a whole delay before it is due is
/// handed out within [due, due + period]. The period is the delay of its ring divided by k, the
/// number of marks, rounded up. A node whose delay began before it was filed may be later by that
/// much.
///
/// @par Thread safety
/// The owner serialises all calls.
/// @par Complexity
/// O(1) for each node and each call that concerns one ring; expire(), next_wake(), take_any() and
/// detach_all() also O(number of rings).
class timeout_rings {
public:
    static constexpr const char* label = "timeout_rings"; ///< In statistics.

    using ring_type = timeout_ring<timer_node>; ///< The ring of one delay.
    class detached;

    /// Where to file a node.
    struct deadline {
        /// A value of `ring`: the node is already due.
        static constexpr unsigned overdue = ~0U;

        tick due;                ///< The node is not handed out before.
        unsigned ring = overdue; ///< Index of its shape.
    };

    /// The parameters of a ring.
    struct shape {
        std::uint64_t delay = 0;  ///< in ticks
        std::size_t capacity = 0; ///< initial number of slots
    };

    /// Makes a ring with `marks` marks for each shape; the position is `now`.
    /// @throws std::invalid_argument as timeout_ring.
    timeout_rings(std::span<const shape> shapes, unsigned marks, tick now) : now_(now) {
        for (const shape& s : shapes)
            rings_.push_back(std::make_unique<entry>(s, now, marks));
    }

    timeout_rings& operator=(timeout_rings&&) = delete;

    /// The latest tick given to expire() or the constructor.
    [[nodiscard]] tick now() const noexcept { return now_; }
    /// How many nodes are filed, including detached sets.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// `size() == 0`
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

    /// Files a node, or moves a filed one.
    /// @return false if the ring is full: the node is unchanged.
    /// @pre `where` names a ring, and `where.due` is at most its delay after the present.
    [[nodiscard]] bool place(timer_node& node, const deadline& where) noexcept {
        entry& e = *rings_[where.ring];
        if (!stays(node, where.ring)) {
            const ring_registration r = e.ring.try_register(node);
            if (r.status != ring_status::registered)
                return false;
            if (node.filed())
                erase(node);
            node.ticket = r.ticket.word();
            node.set_slot(where.ring);
            node.link = &somewhere;
            ++size_;
        }
        node.due = where.due;
        const std::uint64_t delay = e.ring.delay();
        if (const std::uint64_t due = where.due.count(); due > delay)
            e.latest_start = std::max(e.latest_start, tick{due - delay});
        return true;
    }

    /// Unfiles a node.
    /// @pre it is filed
    void erase(timer_node& node) noexcept {
        PAWL_ASSERT(node.filed());
        [[maybe_unused]] timer_node* const found = rings_[node.slot()]->ring.cancel(place_of(node));
        PAWL_ASSERT(found == &node);
        let_go(node);
    }

    /// Moves `from` to `to`, including its place; `from` is then as if default constructed.
    /// @pre `!to.filed()`
    void move_node(timer_node& from, timer_node& to) noexcept {
        PAWL_ASSERT(!to.filed());
        to = from;
        if (to.filed())
            rings_[to.slot()]->ring.replace(place_of(to), to);
        from = timer_node{};
    }

    /// One ring, for its oldest node, its next wake-up and its growth.
    [[nodiscard]] ring_type& ring(unsigned which) noexcept { return rings_[which]->ring; }

    /// Frees a slot. `node` is the node that was filed there; nullptr if it was cancelled.
    /// @return false if none is left.
    [[nodiscard]] bool take_any(timer_node*& node) noexcept {
        return std::ranges::any_of(
            rings_, [&](auto& e) { return take(e->ring, e->ring.position(), node); });
    }

    /// Writes the due nodes, unfiled, to the front of `out`: ring by ring, each in its order. No
    /// ring examines more slots than there is room left.
    expire_result expire(tick now, std::span<timer_node*> out) noexcept {
        now_ = std::max(now_, now);
        expire_result all;
        for (const auto& e : rings_) {
            e->ring.mark(std::max(now_, e->latest_start), e->latest_start, e->ring.position());
            if (all.emitted == out.size()) {
                all.more = all.more || e->ring.next_wake() <= now_;
                continue;
            }
            const auto room = out.subspan(all.emitted);
            const ring_sweep swept = e->ring.expire(now_, room);
            for (timer_node* const node : room.first(swept.emitted)) {
                PAWL_ASSERT(node->due <= now_);
                let_go(*node);
            }
            all.emitted += swept.emitted;
            all.more = all.more || swept.more;
        }
        return all;
    }

    /// The next tick at which expire() has work, if only to close a period.
    [[nodiscard]] tick next_wake() const noexcept {
        tick first = tick::never();
        for (const auto& e : rings_)
            first = std::min(first, e->ring.next_wake());
        return first;
    }

    /// Whether place() of this node would succeed.
    [[nodiscard]] bool has_room(const timer_node& node, unsigned which) noexcept {
        return stays(node, which) || rings_[which]->ring.has_room();
    }

    /// Moves all nodes to a set.
    inline void detach_all(detached& set) noexcept;

    /// Checks everything that can be checked.
    /// @throws std::logic_error naming what does not hold.
    void invariant() const {
        std::size_t slots = 0;
        for (const auto& e : rings_) {
            e->ring.invariant();
            slots += e->ring.size();
        }
        if (slots < size_) // the rings count cancelled slots as well
            throw std::logic_error("timeout_rings: fewer slots in use than nodes");
    }

private:
    struct entry {
        entry(const shape& s, tick now, unsigned marks) : ring(s.delay, s.capacity, now, marks) {}

        ring_type ring;
        tick latest_start{};    ///< the latest start of any node so far
        ring_position detached; ///< nodes before it may be in a detached set
    };

    /// The target of `link`, only to mark a node as filed.
    static inline timer_node* somewhere = nullptr;

    [[nodiscard]] static ring_ticket place_of(const timer_node& node) noexcept {
        return ring_ticket::from_word(node.ticket);
    }

    /// Whether the node can keep its slot when it is filed again under this ring.
    [[nodiscard]] bool stays(const timer_node& node, unsigned which) const noexcept {
        const entry& e = *rings_[which];
        return node.filed() && node.slot() == which && e.ring.in_open_period(place_of(node)) &&
               !ring_type::is_before(place_of(node), e.detached);
    }

    /// Frees one slot of those registered before `until`.
    /// @return false if there is none.
    [[nodiscard]] bool take(ring_type& ring, ring_position until, timer_node*& node) noexcept {
        const ring_sweep swept = ring.drain(until, std::span(&node, 1));
        if (swept.emitted != 0)
            let_go(*node);
        else
            node = nullptr;
        return swept.emitted != 0 || swept.more;
    }

    void let_go(timer_node& node) noexcept {
        node.link = nullptr;
        --size_;
    }

    std::vector<std::unique_ptr<entry>> rings_; ///< a ring does not move
    tick now_;
    std::size_t size_ = 0;
};

/// The nodes that were filed at some moment. A node that expires, is erased or is moved leaves the
/// set.
class timeout_rings::detached {
public:
    /// @throws std::bad_alloc
    explicit detached(const timeout_rings& from) : until_(from.rings_.size()) {}

    /// Frees a slot, those of one ring in start order. `node` is the node that was filed there;
    /// nullptr if it was cancelled.
    /// @return false if none is left.
    [[nodiscard]] bool pop(timer_node*& node) noexcept {
        for (; from_ && ring_ < until_.size(); ++ring_)
            if (from_->take(from_->rings_[ring_]->ring, until_[ring_], node))
                return true;
        return false;
    }

private:
    friend class timeout_rings;

    timeout_rings* from_ = nullptr;
    std::vector<ring_position> until_;
    std::size_t ring_ = 0;
};

inline void timeout_rings::detach_all(detached& set) noexcept {
    set.from_ = this;
    set.ring_ = 0;
    for (std::size_t i = 0; i < rings_.size(); ++i)
        set.until_[i] = rings_[i]->detached = rings_[i]->ring.position();
}

} // namespace pawl::time

#endif // PAWL_TIME_TIMEOUT_RINGS_HPP
