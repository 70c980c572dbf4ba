// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

/// @file
/// pawl::time::timeout_rings, several rings as one time structure: that of pawl::ring_timer.

// Purpose
//   Rings for a few fixed delays as one time structure of timer nodes: what the service asks of a
//   backend, for timers whose delays are known beforehand.
//
// Model
//   One timeout_ring for each delay. A node is filed under a ring and a due tick, and begins, for the
//   ring, a delay before that. It is handed out with the one that begins last of all that the ring
//   has had when its period is closed: within [due, due + period] if it begins when it is filed and
//   the driver comes in time, where the period is the k-th part of the delay, rounded up.
//
//   A re-arm registers anew and leaves a cancelled slot behind, but not within one period: all that
//   is registered in the same period is handed out at the same time, so the node stays where it is,
//   and only its due tick is written. A timer thus takes at most one slot a period, however often
//   it is moved; one more for each detached set that a move takes it out of.
//
// Invariants
//   R1  No node is handed out before its due tick. Whoever files a node has read the clock before,
//       and another thread that expires may have read it earlier still; so a period is stamped with
//       the latest beginning that is known, and the time that expire() is given says only whether
//       it is over.
//   R2  A filed node has its ring in `slot` and its place in the ring in `ticket`.
//
// Threads
//   The owner serialises all calls. (A timeout_ring by itself needs that for expiry only.)
//
// Cost
//   O(1) for each call and node; expire() and next_wake() also O(number of rings).

#ifndef PAWL_TIME_TIMEOUT_RINGS_HPP
#define PAWL_TIME_TIMEOUT_RINGS_HPP

#include <pawl/time/backend.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timeout_ring.hpp>
#include <pawl/time/timer_node.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace pawl::time {

/// Several rings as one time structure. A node that is filed a whole delay before it is due is handed
/// out within [due, due + period], where the period is the k-th part of the delay of its ring, rounded
/// up, and k is the number of marks. One whose delay has begun before may be as much later.
///
/// @par Thread safety
/// The owner serialises all calls.
/// @par Complexity
/// O(1) for each node and each call that is about one ring; expire(), next_wake(), take_any() and
/// detach_all() also O(number of rings).
class timeout_rings {
public:
    static constexpr const char* label = "timeout_rings"; ///< In statistics.

    using ring_type = timeout_ring<timer_node>; ///< What each delay has.
    class detached;

    /// Where a node is to be filed.
    struct deadline {
        /// As `ring`: it is due already.
        static constexpr unsigned overdue = ~0U;

        tick due;                ///< It is not handed out before.
        unsigned ring = overdue; ///< Which of the shapes, from 0 on.
    };

    /// What a ring is made for.
    struct shape {
        std::uint64_t delay = 0;  ///< in ticks
        std::size_t capacity = 0; ///< slots to begin with
    };

    /// A ring for each shape, `marks` marks each; the position is `now`.
    /// @throws std::invalid_argument as timeout_ring.
    timeout_rings(std::span<const shape> shapes, unsigned marks, tick now) : now_(now) {
        for (const shape& s : shapes)
            rings_.push_back(std::make_unique<entry>(s, now, marks));
    }

    timeout_rings(const timeout_rings&) = delete;
    timeout_rings& operator=(const timeout_rings&) = delete;
    ~timeout_rings() = default;

    /// The latest tick that expire() was given, or that of the constructor.
    [[nodiscard]] tick now() const noexcept { return now_; }
    /// How many nodes are filed, those of detached sets included.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// `size() == 0`
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

    /// Files a node, or moves one that is filed.
    /// @return false if the ring has no room: the node is as it was.
    /// Precondition: `where` names a ring, and `where.due` is at most its delay ahead of the clock.
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

    /// Lets go of a node that is filed.
    void erase(timer_node& node) noexcept {
        assert(node.filed());
        [[maybe_unused]] timer_node* const found = rings_[node.slot()]->ring.cancel(place_of(node));
        assert(found == &node);
        let_go(node);
    }

    /// Puts `to` in the place of `from`, which is then as if default constructed.
    /// @pre `!to.filed()`
    void move_node(timer_node& from, timer_node& to) noexcept {
        assert(!to.filed());
        to = from;
        if (to.filed())
            rings_[to.slot()]->ring.replace(place_of(to), to);
        from = timer_node{};
    }

    /// The node of a ring that is handed out next; nullptr if there is none.
    [[nodiscard]] timer_node* oldest(unsigned which) noexcept {
        return rings_[which]->ring.oldest();
    }

    /// Lets go of a slot. `node` is what was filed there; nullptr if that was cancelled.
    /// @return false if nothing is left.
    [[nodiscard]] bool take_any(timer_node*& node) noexcept {
        return std::ranges::any_of(
            rings_, [&](auto& e) { return take(e->ring, e->ring.position(), node); });
    }

    /// Writes the nodes that are due to the front of `out`, unfiled, one ring after the other, each in
    /// its order. No ring looks at more slots than there is room left.
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
                assert(node->due <= now_);
                let_go(*node);
            }
            all.emitted += swept.emitted;
            all.more = all.more || swept.more;
        }
        return all;
    }

    /// A tick at which expire() has something to do, if only to close a period.
    [[nodiscard]] tick next_wake() const noexcept {
        tick first = tick::never();
        for (const auto& e : rings_)
            first = std::min(first, e->ring.next_wake());
        return first;
    }
    /// The same for one ring.
    [[nodiscard]] tick next_wake(unsigned which) const noexcept {
        return rings_[which]->ring.next_wake();
    }

    /// place() of this node would succeed.
    [[nodiscard]] bool has_room(const timer_node& node, unsigned which) noexcept {
        return stays(node, which) || rings_[which]->ring.has_room();
    }
    /// Whether a ring may have twice its capacity.
    [[nodiscard]] bool can_grow(unsigned which) const noexcept {
        return rings_[which]->ring.can_grow();
    }
    /// Room for a ring that has none. @throws std::bad_alloc
    [[nodiscard]] std::unique_ptr<ring_type::block> prepare_growth(unsigned which) const {
        return rings_[which]->ring.prepare_growth();
    }
    /// Doubles the capacity of a ring that is full, with what prepare_growth() has made.
    void grow(unsigned which, std::unique_ptr<ring_type::block> room) noexcept {
        (void)rings_[which]->ring.grow(std::move(room)); // false: somebody else has made room
    }

    /// Lets go of all nodes, into a set.
    inline void detach_all(detached& set) noexcept;

    /// Checks everything that can be checked.
    /// @throws std::logic_error naming what does not hold.
    void invariant() const {
        std::size_t slots = 0;
        for (const auto& e : rings_) {
            e->ring.invariant();
            slots += e->ring.size();
        }
        if (slots < size_) // cancelled ones are counted in the rings, too
            throw std::logic_error("timeout_rings: fewer slots in use than nodes");
    }

private:
    struct entry {
        entry(const shape& s, tick now, unsigned marks) : ring(s.delay, s.capacity, now, marks) {}

        ring_type ring;
        tick latest_start{};    ///< of any registration so far
        ring_position detached; ///< what is before it may be in a detached set
    };

    /// What `link` points at. Nobody looks at it.
    static inline timer_node* somewhere = nullptr;

    [[nodiscard]] static ring_ticket place_of(const timer_node& node) noexcept {
        return ring_ticket::from_word(node.ticket);
    }

    /// The node need not move to be filed anew under this ring.
    [[nodiscard]] bool stays(const timer_node& node, unsigned which) const noexcept {
        const entry& e = *rings_[which];
        return node.filed() && node.slot() == which && e.ring.in_open_period(place_of(node)) &&
               !ring_type::is_before(place_of(node), e.detached);
    }

    /// One slot of what was registered before `until`. @return false if there is none.
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

    std::vector<std::unique_ptr<entry>> rings_; // a ring does not move
    tick now_;
    std::size_t size_ = 0;
};

/// The nodes that were filed at some moment. Those that expire, or are erased or moved meanwhile,
/// leave it by themselves.
class timeout_rings::detached {
public:
    /// @throws std::bad_alloc
    explicit detached(const timeout_rings& from) : until_(from.rings_.size()) {}

    /// Lets go of a slot, those of one ring in start order. `node` is what was filed there; nullptr
    /// if that was cancelled.
    /// @return false if nothing is left.
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

#endif
