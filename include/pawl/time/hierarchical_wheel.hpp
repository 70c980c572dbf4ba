// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::time::hierarchical_wheel, the default time structure.
///
/// Purpose
///   The default backend: for a few to millions of timers, most of which are moved or cancelled
///   before they are due, on the full range of 64-bit ticks.
///
/// Model
///   A node is in one of four places:
///
///       time     digit_slots keyed by due tick; its position is now(). The slot of the position on
///                level 0 is the present: all its nodes are due, unless re-armed since.
///       stage    tick_sorter. Used only if more nodes are due at one tick than expire() has
///                room for: unless they come in order, they are sorted here, in bounded steps,
///                instead of in `out` at once. While it is open, every node that becomes due at
///                now() goes here.
///       never    due never.
///       a detached set (detached_sets.hpp)
///
///   expire() repeats four steps; each runs only if the earlier ones have nothing left to do:
///   1. cascade: file the nodes of the entered slot of a higher level again, in lower slots;
///   2. hand out the present, or move it to the stage;
///   3. hand out the lowest part of the stage that fits;
///   4. move the position to the next occupied slot that begins by then.
///   Each step can stop after any node.
///
///   Re-arming is lazy: a node stays in its slot if that begins at or before its new due tick; only
///   the node's own fields are written. When the slot's time comes, the node is filed again.
///
///   A slot has a list of 192 bytes while it is occupied (list_pool.hpp). No call allocates, so no
///   call may lack a list. The number of occupied slots is at most the number of nodes, and at most
///   the number of slots. So before the owner files a node, it checks has_room_for(), and adds the
///   missing lists. The slots of a detached set keep their lists until the set is empty, and a node
///   that returns from it takes another; so each set counts as that many slots more.
///
/// Invariants
///   - Slot-name invariant: every node is in the slot that its `slot` names; counts and occupancy
///     agree with the lists.
///   - Slot-begin invariant: a slot of `time` other than the entered one lies ahead of the
///     position, and begins at or before max(due, now()) of each of its nodes. So no node is
///     missed, however it was re-armed.
///   - Stage invariant: a closed stage is empty. While it is open, no node becomes due elsewhere:
///     the present only shrinks, and the position does not move.
///   - Cascade-order invariant: all nodes on level 0 were pushed there after the last cascade
///     began, because the entered slot was the first, and those of level 0 come before it. So a
///     node there that is older than the cascade has the sequence with which it was pushed, and the
///     ascending invariant of list_pool.hpp holds for it.
///   - Lent-list invariant: the lent lists are those of the occupied slots, each of which has a
///     node; during walk() there is one more.
///
/// Threads
///   None. The owner serialises calls. The constructor of a detached set reads only immutable data.
///
/// Cost
///   See the class. In practice expire moves a node two or three times.
///   Memory: 3.4 KB, of which 2 KB are for the slots (656 of time and 176 of the stage by default),
///   plus one list per node of the largest number of nodes so far, up to one per slot: 172 KB in
///   all, or about twice that once many were detached. Lists are kept.
#ifndef PAWL_TIME_HIERARCHICAL_WHEEL_HPP
#define PAWL_TIME_HIERARCHICAL_WHEEL_HPP

#include <pawl/config.hpp>

#include <pawl/detail/time/detached_sets.hpp>
#include <pawl/detail/time/digit_slots.hpp>
#include <pawl/detail/time/list_pool.hpp>
#include <pawl/detail/time/node_list.hpp>
#include <pawl/time/backend.hpp>
#include <pawl/time/geometry.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace pawl::time {

/// A hierarchical timing wheel. Models pawl::time::rewindable_backend, where each call
/// is described.
///
/// The structure is that of Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP
/// 1987), with three differences: it does not tick; a node is filed by the highest digit in which
/// its due tick differs from the position; and a node that is moved later stays where it is until
/// its slot is entered.
///
/// @par Thread safety
/// The owner serialises all calls. The constructor of a detached set may run concurrently.
/// @par Complexity
/// insert(), refile(), erase(), rearm(), move_node(), next_wake() and any() are O(1); expire() is
/// amortised O(levels) per node; detach_all() is O(1), unless some fifty sets are being drained.
/// Only constructors, reserve() and reserve_to_detach() allocate.
class hierarchical_wheel {
public:
    static constexpr const char* label = "hierarchical_wheel"; ///< In statistics.

    class detached;

    /// Room for nodes, not yet in a wheel. Its constructor takes a size, allocates, and may run
    /// concurrently with other calls.
    using room_part = detail::list_pool::part;

    /// An empty wheel whose position is `now`.
    explicit hierarchical_wheel(const geometry& shape = geometry{}, tick now = tick{})
        : time_(shape, std::min(now, detail::last_tick).count(), pool_), stage_(pool_),
          sets_(shape.slots(), pool_) {}

    hierarchical_wheel& operator=(hierarchical_wheel&&) = delete;

    /// @pre every node was erased, or will not be used any more.
    ~hierarchical_wheel() = default;

    /// The position. Every node due before it has been handed out, unless it was filed late.
    [[nodiscard]] tick now() const noexcept { return tick{time_.position()}; }
    /// How many nodes are filed, excluding detached sets.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// `size() == 0`
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

    /// Whether `nodes` nodes may be filed, here and in detached sets together.
    [[nodiscard]] bool has_room_for(std::size_t nodes) const noexcept {
        return nodes < sets_.room();
    }
    /// Whether `nodes` nodes may be filed after detach_all().
    [[nodiscard]] bool has_room_to_detach(std::size_t nodes) const noexcept {
        return nodes < sets_.room_with(1);
    }
    /// The size of the next part for add_room().
    [[nodiscard]] std::size_t next_room_part() const noexcept { return pool_.next_part(); }
    /// Takes over a part. Does nothing if another part was added since the size was read.
    void add_room(room_part& part) noexcept {
        pool_.add(part);
        sets_.count_room();
    }

    /// Allocates until has_room_for(nodes).
    /// @throws std::bad_alloc
    void reserve(std::size_t nodes) {
        while (!has_room_for(nodes))
            add_room();
    }
    /// Allocates until has_room_to_detach(nodes).
    /// @throws std::bad_alloc
    void reserve_to_detach(std::size_t nodes) {
        while (!has_room_to_detach(nodes))
            add_room();
    }

    /// Files a node with a new start order.
    /// @pre `!node.filed()`, and there is room for it.
    void insert(timer_node& node, tick due) noexcept {
        PAWL_ASSERT(!node.filed());
        node.due = due;
        file(node, starts_.next++);
        ++size_;
    }

    /// insert() that keeps the node's due tick and its start order.
    /// @pre `!node.filed()`, and there is room for it.
    void refile(timer_node& node) noexcept {
        PAWL_ASSERT(!node.filed());
        file(node, starts_.of(node));
        ++size_;
    }

    /// Unfiles a node.
    /// @pre it is filed here, or in a set that was detached from here.
    void erase(timer_node& node) noexcept {
        PAWL_ASSERT(node.filed());
        unfile(node);
    }

    /// erase() and insert() in one, and cheaper: if `due` is no earlier than before, or the slot of
    /// the node begins by then, only `node` is read and written.
    /// @pre it is filed here, or in a set that was detached from here, which it leaves.
    PAWL_DETAIL_ALWAYS_INLINE void rearm(timer_node& node, tick due) noexcept {
        PAWL_ASSERT(node.filed());
        if (due >= node.due && is_here(node)) [[likely]]
            stay(node, due);
        else
            rearm_earlier(node, due);
    }

    /// Moves `from` to `to`, including its place; `from` is then as if default constructed.
    /// @pre `!to.filed()`
    void move_node(timer_node& from, timer_node& to) noexcept { detail::move_node(from, to); }

    /// Moves the position towards `now`, and writes the due nodes, unfiled, to the front of
    /// `out`. Handles at most as many nodes as `out` has room for, including those that it only moves.
    // A template, as are the functions that sort: unused, they cost no compile time.
    template <class = void>
    expire_result expire(tick now, std::span<timer_node*> out) noexcept {
        const tick target = std::clamp(now, this->now(), detail::last_tick);
        detail::due_batch work(out);
        for (;; work.count_pass()) {
            if (const slot_type entered = cascade(); entered != none) {
                if (work.left == 0)
                    break;
                level_moves_ += spread(time_, entered, work);
            } else if (const slot_type present = time_.slot_of(time_.position());
                       time_.occupied(present)) {
                if (!hand_out_present(present, work))
                    break;
            } else if (const slot_type first = stage_.first(); first != none) {
                if (!hand_out_staged(first, work))
                    break;
            } else {
                stage_.close();
                if (!advance(target))
                    return {work.emitted, false};
            }
        }
        return {work.emitted, true};
    }

    /// A tick before which expire() has nothing to emit.
    ///
    /// now() if some nodes due at now() have not been handed out. If the first occupied slot holds
    /// few nodes, their earliest due tick, but no later than the start of the next slot. So a
    /// single timer, or the first of a few, is waited for without a stop at each level, re-armed or
    /// not.
    [[nodiscard]] tick next_wake() const noexcept {
        if (stage_.first() != none || cascade() != none)
            return now();
        const slot_type first = time_.first();
        if (first == none)
            return tick::never();
        const tick begin = std::max(now(), tick{time_.begin(first)});
        if (time_[first].count() > few)
            return begin;
        const tick earliest = std::max(begin, earliest_in(first));
        const slot_type second = time_.after(first);
        return second == none ? earliest : std::min(earliest, tick{time_.begin(second)});
    }

    /// How often nodes were moved to a lower level.
    [[nodiscard]] std::uint64_t level_moves() const noexcept { return level_moves_; }
    /// Number of levels.
    [[nodiscard]] std::size_t levels() const noexcept { return time_.shape().levels(); }
    /// Adds the number of nodes on each level to `counts[0]` .. `counts[levels() - 1]`. Nodes due
    /// now or never are on no level. O(slots)
    void count_levels(std::size_t* counts) const noexcept {
        slot_type slot = 0;
        for (std::size_t level = 0; level != levels(); ++level)
            for (const slot_type end = slot + time_.shape().slots(level); slot != end; ++slot)
                counts[level] += time_.occupied(slot) ? time_[slot].count() : 0;
    }

    /// Some filed node; nullptr if there is none.
    [[nodiscard]] timer_node* any() const noexcept {
        if (const slot_type slot = stage_.first(); slot != none)
            return stage_[slot].any();
        if (const slot_type slot = time_.first(); slot != none)
            return time_[slot].any();
        return never_.any();
    }

    /// Moves all nodes to a set, where they are still filed.
    /// @pre the set was made for this wheel and is empty, and there is room to detach.
    void detach_all(detached& set) noexcept;

    /// Sets the position, which may go backwards.
    /// @pre `empty()`
    void rewind(tick now) noexcept {
        PAWL_ASSERT(empty());
        stage_.close();
        stage_.restart(0);
        time_.restart(std::min(now, detail::last_tick).count());
    }

private:
    using slot_type = detail::slot_lists::slot_type;
    friend struct hierarchical_wheel_probe; // test/time/hierarchical_wheel_test.cpp
    template <class>
    friend struct pawl::detail::invariant_of;

    static constexpr slot_type none = detail::slot_lists::none;

    /// How many nodes of a slot are searched for the earliest: O(1), with overlapping cache misses.
    static constexpr std::uint32_t few = 8;

    void add_room() {
        [[maybe_unused]] const std::uint32_t before = pool_.size();
        room_part part(next_room_part());
        add_room(part);
        PAWL_ASSERT(pool_.size() > before);
    }

    [[nodiscard]] slot_type cascade() const noexcept { return time_.entered(); }
    void name(timer_node& node, std::uint32_t slot, std::uint64_t number) noexcept {
        node.set_order_and_slot(number, sets_.base() + slot);
    }

    /// Compares nodes by start.
    [[nodiscard]] auto in_start_order() const noexcept {
        return [this](const timer_node& a, const timer_node& b) { return starts_.before(a, b); };
    }

    /// Files an unlinked node where it belongs now.
    /// @param number becomes its sequence
    void file(timer_node& node, std::uint64_t number) noexcept {
        if (node.due > now() && node.due != tick::never()) [[likely]]
            file_in_time(node, node.due.count(), number);
        else
            file_elsewhere(node, number);
    }

    // Out of line, which keeps file() short.
    PAWL_DETAIL_NOINLINE void file_elsewhere(timer_node& node, std::uint64_t number) noexcept {
        if (node.due > now()) {
            name(node, sets_.never_slot, number);
            never_.push(node, number);
        } else if (stage_.is_open()) {
            const slot_type slot = stage_.slot_of(stage_.key(number));
            name(node, sets_.never_slot + 1 + slot, number);
            stage_.push(slot, node, number);
        } else {
            file_in_time(node, time_.position(), number);
        }
    }

    void file_in_time(timer_node& node, std::uint64_t key, std::uint64_t number) noexcept {
        const slot_type slot = time_.slot_of(key);
        name(node, slot, number);
        time_.push(slot, node, number);
    }

    void unfile(timer_node& node) noexcept {
        const std::uint32_t slot = node.slot() - sets_.base(); // wraps around for earlier epochs
        if (slot < sets_.never_slot)
            time_.erase(slot, node);
        else if (slot == sets_.never_slot)
            never_.erase(node);
        else if (slot < sets_.slots)
            stage_.erase(slot - sets_.never_slot - 1, node);
        else {
            sets_.erase(node);
            return; // not counted here
        }
        --size_;
    }

    /// Whether a filed node is in the wheel, not in a detached set.
    [[nodiscard]] bool is_here(const timer_node& node) const noexcept {
        return node.slot() - sets_.base() < sets_.slots;
    }

    /// A node stays in its slot with a new due tick.
    void stay(timer_node& node, tick due) noexcept {
        node.due = due;
        node.set_order(starts_.next++);
    }

    /// rearm() of a node that is due earlier, or in a detached set. Out of line, which keeps
    /// rearm() short.
    PAWL_DETAIL_NOINLINE void rearm_earlier(timer_node& node, tick due) noexcept {
        if (is_here(node) && begins_by(node, due))
            return stay(node, due);
        unfile(node);
        insert(node, due);
    }

    /// Whether the slot of a node begins by then (slot-begin invariant).
    [[nodiscard]] bool begins_by(const timer_node& node, tick due) const noexcept {
        const std::uint32_t slot = node.slot() - sets_.base();
        // Staged nodes are examined before the position moves.
        if (slot >= sets_.never_slot)
            return slot != sets_.never_slot;
        return time_.begin(slot) <= std::max(due, now()).count();
    }

    /// The earliest due tick in a slot with few nodes.
    [[nodiscard]] tick earliest_in(slot_type slot) const noexcept {
        tick earliest = tick::never();
        time_[slot].for_each([&](const timer_node& node, timer_node* const&) {
            earliest = std::min(earliest, node.due);
        });
        return earliest;
    }

    /// Step 4. Moves the position to the first occupied slot; to `target` if none has begun.
    /// @return false if none has begun.
    bool advance(tick target) noexcept {
        const slot_type first = time_.first();
        if (first == none || time_.begin(first) > target.count()) {
            time_.advance(target.count());
            return false;
        }
        // With few nodes, enters the slot no earlier than they need, which skips the levels in
        // between.
        std::uint64_t position = time_.begin(first);
        if (time_[first].count() <= few && first >= time_.shape().slots(0)) {
            const tick earliest = std::min(earliest_in(first), target);
            position = std::clamp(earliest.count(), position, time_.last(first));
        }
        time_.enter(first, position);
        if (cascade() != none)
            cascaded_at_ = starts_.next;
        return true;
    }

    /// Files nodes of a slot again, as many as there is room for.
    /// @return how many.
    template <class Slots>
    std::size_t spread(Slots& from, slot_type slot, detail::due_batch& work) noexcept {
        const std::size_t taken = std::min<std::size_t>(work.left, from[slot].count());
        from.walk(slot, taken, [this](timer_node& node) { file(node, starts_.of(node)); });
        work.left -= taken;
        return taken;
    }

    /// Step 2.
    /// @return whether expire() may go on.
    template <class = void>
    bool hand_out_present(slot_type present, detail::due_batch& work) noexcept {
        const std::uint32_t count = time_[present].count();
        if (!stage_.is_open() && count <= work.room) {
            if (count > work.left)
                return false; // it fits into the next call as a whole
            gather(
                time_, present, count, work,
                [this](const timer_node& node) { return node.due <= now(); },
                [this](const timer_node& a, const timer_node& b) {
                    return a.due != b.due ? a.due < b.due : starts_.before(a, b);
                });
            return true;
        }
        if (work.left == 0)
            return false;
        if (!stage_.is_open())
            stage_.open(time_[present].least());
        // After an odd number of cascades a slot is in order. Nodes started since the last one
        // began come after all others (cascade-order invariant).
        if (time_[present].ascends() && stage_.first() == none) {
            gather(
                time_, present, std::min<std::size_t>(count, work.left), work,
                [this](const timer_node& node) {
                    return node.due <= now() && starts_.of(node) < cascaded_at_;
                },
                in_start_order());
            return true;
        }
        spread(time_, present, work);
        return true;
    }

    /// Step 3.
    /// @return whether expire() may go on.
    template <class = void>
    bool hand_out_staged(slot_type first, detail::due_batch& work) noexcept {
        const slot_type slot = stage_.enter_lowest();
        const std::uint32_t count = stage_[slot].count();
        const bool equal = slot < stage_.shape().slots(0); // equal keys: any part may go
        if (equal || (slot == first && count <= work.room)) {
            if (work.left == 0 || (count > work.left && !equal))
                return false;
            const std::uint64_t last = stage_.last(slot);
            gather(
                stage_, slot, std::min<std::size_t>(count, work.left), work,
                [this, last](const timer_node& node) {
                    return node.due <= now() && stage_.key(starts_.of(node)) <= last;
                },
                in_start_order());
            return true;
        }
        if (work.left == 0)
            return false;
        spread(stage_, slot, work);
        return true;
    }

    /// Takes `count` nodes out of a slot. Those that `ready` rejects were re-armed and are filed
    /// again; the others are emitted in order.
    template <class Slots, class Ready, class Before>
    void gather(Slots& from, slot_type slot, std::size_t count, detail::due_batch& work,
                Ready ready, Before before) noexcept {
        // Walked newest first, so filled from the back.
        timer_node** const begin = work.end();
        timer_node** const end = begin + count;
        timer_node** filled = end;
        from.walk(slot, count, [&](timer_node& node) {
            if (!ready(node)) {
                [[maybe_unused]] const std::uint32_t old = node.slot();
                file(node, starts_.of(node));
                PAWL_ASSERT(node.slot() != old);
                return;
            }
            node.next = nullptr;
            node.link = nullptr;
            *--filled = &node;
        });
        const auto emitted = static_cast<std::size_t>(end - filled);
        if (filled != begin)
            std::memmove(begin, filled, emitted * sizeof *begin);
        work.left -= count;
        work.emit(emitted, before);
        size_ -= emitted;
    }

    detail::list_pool pool_; ///< for time_, stage_, and all sets
    detail::digit_slots<> time_;
    detail::tick_sorter stage_;
    detail::detached_sets sets_; ///< and the numbers of all slots
    detail::striped_list never_;

    std::size_t size_ = 0;
    std::uint64_t level_moves_ = 0;
    detail::start_sequence starts_;
    std::uint64_t cascaded_at_ = 0; ///< starts_.next when the last cascade began
};

/// All nodes that a wheel had. Its destructor unfiles those that are left.
class hierarchical_wheel::detached : detail::detached_sets::set {
public:
    /// Allocates room for all nodes that `wheel` will ever hold: 2 KB by default.
    /// @throws std::bad_alloc
    explicit detached(const hierarchical_wheel& wheel) : set(wheel.time_.shape()) {}

    using set::pop;

private:
    friend class hierarchical_wheel;
};

inline void hierarchical_wheel::detach_all(detached& set) noexcept {
    sets_.take(set, time_, stage_, never_);
    size_ = 0;
    rewind(now());
}

} // namespace pawl::time

#endif // PAWL_TIME_HIERARCHICAL_WHEEL_HPP
