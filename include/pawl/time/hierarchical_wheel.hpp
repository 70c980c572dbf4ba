// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

/// @file
/// pawl::time::hierarchical_wheel, the default time structure.

// Purpose
//   The default backend: for thousands to millions of timers, most of which are moved or cancelled
//   before they are due, on the whole range of 64-bit ticks. Where a few timers must cost a few
//   bytes, it is the wrong one: the slots take 160 KB.
//
// Model
//   Four places for a node:
//
//       time     digit_slots keyed by due tick; its position is now(). The slot at the position on
//                level 0 is the present: all in it are due, unless re-armed since.
//       stage    digit_slots keyed by start sequence. Opened only if more nodes are due at one tick
//                than expire() has room for: unless they come in order, they are sorted here, in
//                bounded steps, instead of in `out` at once. While it is open, whatever becomes
//                due at now() goes here.
//       parked   due never.
//       a detached set
//
//   expire() repeats four steps, each in its turn only if those before it have nothing left to do:
//   (1) file anew the nodes of the slot that the position has entered on a higher level, the
//   cascade; (2) hand out the present, or move it to the stage; (3) hand out the lowest part of
//   the stage that fits; (4) move the position to the next occupied slot that begins by then.
//   Each of the steps can be left after any node.
//
//   Re-arming is lazy: a node whose slot begins at or before its new due tick stays there, and only
//   its own fields are written. When the slot's time comes, the node is filed anew.
//
// Invariants (see invariant())
//   W1  Every node is in the slot that its `slot` names; counts and occupancy agree with the lists.
//   W2  A slot of `time` other than the entered one begins at or before max(due, now()) of each of
//       its nodes, and lies ahead of the position. So none is missed, however it was re-armed.
//   W3  If the stage is not open it is empty. While it is open, no node becomes due elsewhere: the
//       present only shrinks, and the position rests.
//   W4  A sequence is the number of a start, without end; a node keeps its low 44 bits, which are
//       unambiguous for the last 2^44 starts. Sequences of filed nodes only grow.
//   W5  All nodes on level 0 were pushed there after the last cascade began: the slot that is
//       entered is the first, and those of level 0 come before it. So what is older there than
//       that has the sequence with which it was pushed, and S4 holds for it.
//
// Threads
//   None. The owner serialises calls. Constructing a detached set reads only what never changes.
//
// Cost
//   insert, erase, rearm, move_node, next_wake O(1). expire: amortised O(levels) for each node, in
//   practice two or three moves. detach_all O(slots / 64). Memory: 192 bytes for each slot, 656 of
//   time and 176 of the stage by default, allocated once.

#ifndef PAWL_TIME_HIERARCHICAL_WHEEL_HPP
#define PAWL_TIME_HIERARCHICAL_WHEEL_HPP

#include <pawl/config.hpp>

#include <pawl/time/backend.hpp>
#include <pawl/time/digit_slots.hpp>
#include <pawl/time/fixed_array.hpp>
#include <pawl/time/geometry.hpp>
#include <pawl/time/striped_list.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <algorithm>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>

namespace pawl::time {

/// A hierarchical timing wheel. Models pawl::time::backend, where each call is described.
///
/// The structure is that of Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987),
/// except that it does not tick, that a node is filed by the highest digit in which its due tick
/// differs from the position, and that a node which is moved later stays where it is until its slot
/// is entered.
///
/// @par Thread safety
/// The owner serialises all calls. The constructor of a detached set may run beside them.
/// @par Complexity
/// insert(), refile(), erase(), rearm(), move_node(), next_wake() and any() are O(1); expire() is
/// amortised O(levels) for each node; detach_all() is O(slots / 64). Only constructors allocate.
class hierarchical_wheel {
public:
    static constexpr const char* label = "hierarchical_wheel"; ///< In statistics.

    class detached;

    /// An empty wheel whose position is `now`.
    explicit hierarchical_wheel(const geometry& shape = geometry{}, tick now = tick{})
        : time_(shape, std::min(now, last_tick).count()), stage_(stage_shape(shape), 0),
          parked_slot_(shape.slots()), slots_(shape.slots() + 1 + stage_.shape().slots()),
          epochs_(std::min(most_epochs, loose_slot / slots_)) {
        // 12 bits on each level, the most there can be, make 20673 slots.
        assert(epochs_ >= 2);
    }

    hierarchical_wheel(const hierarchical_wheel&) = delete;
    hierarchical_wheel& operator=(const hierarchical_wheel&) = delete;

    /// The nodes must have been erased, or must not be used any more.
    ~hierarchical_wheel() = default;

    /// The position: what was due before has been handed out, unless it was filed too late for that.
    [[nodiscard]] tick now() const noexcept { return tick{time_.position()}; }
    /// How many nodes are filed, without those of detached sets.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// `size() == 0`
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

    /// Files a node with a new start order.
    /// @pre `!node.filed()`
    void insert(timer_node& node, tick due) noexcept {
        assert(!node.filed());
        node.due = due;
        file(node, next_sequence_++);
        ++size_;
    }

    /// insert() that keeps the node's due tick and its start order.
    /// @pre `!node.filed()`
    void refile(timer_node& node) noexcept {
        assert(!node.filed());
        file(node, sequence(node));
        ++size_;
    }

    /// Lets go of a node.
    /// @pre It is filed here, or in a set that was detached from here.
    void erase(timer_node& node) noexcept {
        assert(node.filed());
        unfile(node);
    }

    /// erase() and insert() in one, and cheaper: it writes nothing but `node`, and reads no other
    /// node, if `due` is no earlier than before or the slot of the node begins by then.
    /// @pre It is filed here, or in a set that was detached from here, which it leaves.
    void rearm(timer_node& node, tick due) noexcept {
        assert(node.filed());
        if (may_stay(node, due)) {
            node.due = due;
            node.set_order(next_sequence_++);
            return;
        }
        unfile(node);
        insert(node, due);
    }

    /// Puts `to` in the place of `from`, which is then as if default constructed.
    /// @pre `!to.filed()`
    void move_node(timer_node& from, timer_node& to) noexcept {
        assert(!to.filed());
        to = from;
        if (to.filed()) {
            *to.link = &to;
            if (to.next != nullptr)
                to.next->link = &to.next;
        }
        from = timer_node{};
    }

    /// Moves the position towards `now`, and writes the nodes that are due, unfiled, to the front of
    /// `out`, a contiguous range. Handles at most as many nodes as that has room for, those that it
    /// only moves included.
    // A template, as are those that sort: who makes no timer need not compile them.
    template <class Nodes>
        requires requires(Nodes& out) {
            { std::data(out) } -> std::convertible_to<timer_node**>;
            std::size(out);
        }
    expire_result expire(tick now, Nodes&& out) noexcept {
        const tick target = std::clamp(now, this->now(), last_tick);
        batch work{std::data(out), std::size(out), std::size(out), 0};
        for (;;) {
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
                staging_ = false;
                if (!advance(target))
                    return {work.emitted, false};
            }
        }
        return {work.emitted, true};
    }

    /// A tick before which expire() has nothing to emit.
    ///
    /// now() if some of what is due then has not been handed out. If the first occupied slot holds few
    /// nodes, their earliest due tick, but no later than the next slot begins: a timer that is alone,
    /// or the first of a few, is waited for without a stop at each level, re-armed or not.
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

    /// How often a node was moved to a lower level so far.
    [[nodiscard]] std::uint64_t level_moves() const noexcept { return level_moves_; }
    /// Number of levels.
    [[nodiscard]] std::size_t levels() const noexcept { return time_.shape().levels(); }
    /// Adds the number of nodes on each level to `counts[0]` to `counts[levels() - 1]`; those that are due
    /// or parked are on none. O(slots)
    void count_levels(std::size_t* counts) const noexcept {
        slot_type slot = 0;
        for (std::size_t level = 0; level != levels(); ++level)
            for (const slot_type end = slot + time_.shape().slots(level); slot != end; ++slot)
                counts[level] += time_[slot].count();
    }

    /// Some filed node; nullptr if there is none.
    [[nodiscard]] timer_node* any() const noexcept {
        if (const slot_type slot = stage_.first(); slot != none)
            return stage_[slot].any();
        if (const slot_type slot = time_.first(); slot != none)
            return time_[slot].any();
        return parked_.any();
    }

    /// Moves all nodes to a set, where they are still filed.
    /// @pre The set was made for this wheel, and is empty.
    void detach_all(detached& set) noexcept;

    /// Sets the position, backward as well.
    /// @pre `empty()`
    void rewind(tick now) noexcept {
        assert(empty());
        staging_ = false;
        stage_.restart(0);
        time_.restart(std::min(now, last_tick).count());
    }

    /// Goes on where another wheel has come to, whose nodes are to be refiled here.
    /// @param now The position of the other.
    /// @param starts The number of its next start, of which a node keeps the low bits.
    /// @pre `empty()`, and nothing was ever filed here.
    void resume(tick now, std::uint64_t starts) noexcept {
        rewind(now);
        next_sequence_ = starts;
    }

    /// Checks everything that can be checked. O(size() + slots).
    /// @throws std::logic_error naming the invariant that does not hold.
    template <class = void>
    void invariant() const;

private:
    using slot_type = detail::digit_slots::slot_type;
    friend struct hierarchical_wheel_probe; // test/time/hierarchical_wheel_test.cpp

    /// What is left of the room that the caller of expire() gave.
    struct batch {
        timer_node** out;
        std::size_t room;
        std::size_t left;
        std::size_t emitted;
    };

    static constexpr slot_type none = detail::digit_slots::none;

    /// The position stops here, so that what is due never is never reached.
    static constexpr tick last_tick{tick::never().count() - 1};

    /// So many nodes of one slot are looked at to find the earliest: O(1), and misses overlap.
    static constexpr std::uint32_t few = 8;

    static constexpr std::uint64_t order_mask = (std::uint64_t{1} << timer_node::order_bits) - 1;

    // `slot` of a node counts from base(): the slots of time, parked, the slots of the stage. 16
    // bits hold that count several times over. Detaching all goes on to an unused range, the epoch,
    // so that a detached node is known by its slot without having been visited.
    static constexpr std::uint32_t loose_slot = 0xffff; // in a detached set, beyond all epochs
    static constexpr std::uint32_t most_epochs = 64;    // bits of epochs_in_use_

    /// Few slots, as it is seldom used; fewer still if there are few of time.
    static geometry stage_shape(const geometry& time) {
        return geometry({std::min(4, time.shift(1))}, timer_node::order_bits);
    }

    [[nodiscard]] slot_type cascade() const noexcept { return time_.entered(); }
    [[nodiscard]] std::uint32_t base() const noexcept { return base_; }

    void name(timer_node& node, std::uint32_t slot, std::uint64_t number) noexcept {
        node.set_order_and_slot(number, base() + slot);
    }

    /// The whole number of a node's start.
    [[nodiscard]] std::uint64_t sequence(const timer_node& node) const noexcept {
        return next_sequence_ - ((next_sequence_ - node.order()) & order_mask);
    }

    /// Compares nodes by their starts.
    [[nodiscard]] auto in_start_order() const noexcept {
        return
            [this](const timer_node& a, const timer_node& b) { return sequence(a) < sequence(b); };
    }

    /// The key of a node in the stage. One that is older than what has been handed out is next.
    [[nodiscard]] std::uint64_t stage_key(std::uint64_t sequence) const noexcept {
        const std::uint64_t key = sequence > stage_base_ ? sequence - stage_base_ : 0;
        return std::clamp(key, stage_.position(), order_mask);
    }

    /// Puts an unlinked node where it belongs now.
    /// @param number becomes sequence(node)
    void file(timer_node& node, std::uint64_t number) noexcept {
        if (node.due > now()) {
            if (node.due == tick::never()) {
                name(node, parked_slot_, number);
                parked_.push(node, number);
            } else {
                file_in_time(node, node.due.count(), number);
            }
        } else if (staging_) {
            const slot_type slot = stage_.slot_of(stage_key(number));
            name(node, parked_slot_ + 1 + slot, number);
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
        const std::uint32_t slot = node.slot() - base(); // wraps for earlier epochs
        if (slot < parked_slot_)
            time_.erase(slot, node);
        else if (slot == parked_slot_)
            parked_.erase(node);
        else if (slot < slots_)
            stage_.erase(slot - parked_slot_ - 1, node);
        else {
            detail::unlink(node);
            return; // was detached: not counted here
        }
        --size_;
    }

    /// Whether a filed node may stay in its slot if it becomes due at `due`: W2.
    [[nodiscard]] bool may_stay(const timer_node& node, tick due) const noexcept {
        const std::uint32_t slot = node.slot() - base();
        if (slot >= slots_)
            return false;
        if (due >= node.due)
            return true;
        if (slot >= parked_slot_)
            return slot != parked_slot_; // what is staged is looked at before the position moves
        return time_.begin(slot) <= std::max(due, now()).count();
    }

    /// The earliest due tick in a slot of few nodes.
    [[nodiscard]] tick earliest_in(slot_type slot) const noexcept {
        tick earliest = tick::never();
        time_[slot].for_each([&](const timer_node& node, timer_node* const&) {
            earliest = std::min(earliest, node.due);
        });
        return earliest;
    }

    /// Step 4. Moves the position to the first occupied slot, or if none has begun, to `target`.
    bool advance(tick target) noexcept {
        const slot_type first = time_.first();
        if (first == none || time_.begin(first) > target.count()) {
            time_.advance(target.count());
            return false;
        }
        // A few nodes are looked at first, in order to enter the slot no earlier than they need,
        // which spares them the levels in between.
        std::uint64_t position = time_.begin(first);
        if (time_[first].count() <= few && first >= time_.shape().slots(0)) {
            const tick earliest = std::min(earliest_in(first), target);
            position = std::clamp(earliest.count(), position, time_.last(first));
        }
        time_.enter(first, position);
        if (cascade() != none)
            cascaded_at_ = next_sequence_;
        return true;
    }

    /// Files nodes of a slot anew, as many as there is room for. @return how many.
    std::size_t spread(detail::digit_slots& from, slot_type slot, batch& work) noexcept {
        const std::size_t taken = std::min<std::size_t>(work.left, from[slot].count());
        from.walk(slot, taken, [this](timer_node& node) { file(node, sequence(node)); });
        work.left -= taken;
        return taken;
    }

    /// Step 2. Whether expire() may go on.
    template <class = void>
    bool hand_out_present(slot_type present, batch& work) noexcept {
        const std::uint32_t count = time_[present].count();
        if (!staging_ && count <= work.room) {
            if (count > work.left)
                return false; // fits into the next call as a whole
            gather(
                time_, present, count, work,
                [this](const timer_node& node) { return node.due <= now(); },
                [this](const timer_node& a, const timer_node& b) {
                    return a.due != b.due ? a.due < b.due : sequence(a) < sequence(b);
                });
            return true;
        }
        if (work.left == 0)
            return false;
        if (!staging_) {
            staging_ = true;
            stage_base_ = time_[present].least();
            stage_.restart(0);
        }
        // An odd number of cascades leaves a slot in order. What was started since the last one
        // began comes behind all others: W5.
        if (time_[present].ascends() && stage_.first() == none) {
            gather(
                time_, present, std::min<std::size_t>(count, work.left), work,
                [this](const timer_node& node) {
                    return node.due <= now() && sequence(node) < cascaded_at_;
                },
                in_start_order());
            return true;
        }
        spread(time_, present, work);
        return true;
    }

    /// Step 3. Whether expire() may go on.
    template <class = void>
    bool hand_out_staged(slot_type first, batch& work) noexcept {
        slot_type slot = stage_.entered();
        if (slot == none) {
            // Entering at the oldest node, not at the first key, spreads the rest widely.
            slot = first;
            stage_.enter(slot, std::clamp(stage_key(stage_[slot].least()), stage_.begin(slot),
                                          stage_.last(slot)));
        }
        const std::uint32_t count = stage_[slot].count();
        const bool equal = slot < stage_.shape().slots(0); // sequences: any part may go
        if (equal || (slot == first && count <= work.room)) {
            if (work.left == 0 || (count > work.left && !equal))
                return false;
            const std::uint64_t last = stage_.last(slot);
            gather(
                stage_, slot, std::min<std::size_t>(count, work.left), work,
                [this, last](const timer_node& node) {
                    return node.due <= now() && stage_key(sequence(node)) <= last;
                },
                in_start_order());
            return true;
        }
        if (work.left == 0)
            return false;
        spread(stage_, slot, work);
        return true;
    }

    /// Takes `count` nodes out of a slot, files anew those that `ready` refuses, since they have
    /// been re-armed, and emits the others in order.
    template <class Ready, class Before>
    void gather(detail::digit_slots& from, slot_type slot, std::size_t count, batch& work,
                Ready ready, Before before) noexcept {
        // Walked newest first, therefore filled from the back.
        timer_node** const begin = work.out + work.emitted;
        timer_node** const end = begin + count;
        timer_node** filled = end;
        from.walk(slot, count, [&](timer_node& node) {
            if (!ready(node)) {
                file(node, sequence(node));
                return;
            }
            node.next = nullptr;
            node.link = nullptr;
            *--filled = &node;
        });
        const auto emitted = static_cast<std::size_t>(end - filled);
        if (filled != begin)
            std::memmove(begin, filled, emitted * sizeof *begin);
        sort(begin, begin + emitted, before);
        work.left -= count;
        work.emitted += emitted;
        size_ -= emitted;
    }

    /// Sorts what is sorted already, in one direction or the other, unless there were re-arms,
    /// erasures between pushes, or cascades among direct pushes.
    template <class Iterator, class Before>
    static void sort(Iterator begin, Iterator end, Before before) noexcept {
        const auto by_address = [&](const timer_node* a, const timer_node* b) {
            return before(*a, *b);
        };
        if (std::is_sorted(begin, end, by_address))
            return;
        std::reverse(begin, end);
        if (!std::is_sorted(begin, end, by_address))
            std::sort(begin, end, by_address);
    }

    detail::digit_slots time_;
    detail::digit_slots stage_;
    detail::striped_list parked_;

    std::size_t size_ = 0;
    std::uint64_t level_moves_ = 0;
    std::uint64_t next_sequence_ = std::uint64_t{1} << timer_node::order_bits; // never below: W4
    std::uint64_t stage_base_ = 0;  // the sequence whose key in the stage is 0
    std::uint64_t cascaded_at_ = 0; // next_sequence_ when the last cascade began: W5
    bool staging_ = false;          // the stage is open: W3

    std::uint32_t parked_slot_; // also the number of slots of time
    std::uint32_t slots_;       // of an epoch
    std::uint32_t epochs_;
    std::uint32_t epoch_ = 0;
    std::uint32_t base_ = 0;          // epoch_ * slots_
    std::uint64_t epochs_in_use_ = 1; // by this wheel or a detached set
};

/// All nodes that a wheel had, on their way out.
///
/// Destroying it lets go of what is left in it.
class hierarchical_wheel::detached {
public:
    /// Makes room for all that `wheel` will ever hold.
    /// @throws std::bad_alloc
    explicit detached(const hierarchical_wheel& wheel) : detached(wheel.time_.shape()) {}

    /// Makes room for all that a wheel of this shape will ever hold.
    /// @throws std::bad_alloc
    explicit detached(const geometry& shape)
        : time_(shape.slots()), stage_(stage_shape(shape).slots()) {}

    detached(const detached&) = delete;
    detached& operator=(const detached&) = delete;

    ~detached() {
        while (pop() != nullptr) {
        }
    }

    /// Lets go of one node and returns it; nullptr if none is left.
    [[nodiscard]] timer_node* pop() noexcept {
        // The stage is due at now(), parked never.
        for (; wheel_ != nullptr && cursor_ != stage_.size() + time_.size() + 1; ++cursor_) {
            if (timer_node* const node = list(cursor_).pop())
                return node;
        }
        if (wheel_ != nullptr) {
            wheel_->epochs_in_use_ &= ~epoch_;
            wheel_ = nullptr;
        }
        return nullptr;
    }

private:
    friend class hierarchical_wheel;

    detail::striped_list& list(std::size_t index) noexcept {
        if (index < stage_.size())
            return stage_[index];
        index -= stage_.size();
        return index < time_.size() ? time_[index] : parked_;
    }

    detail::fixed_array<detail::striped_list> time_;
    detail::fixed_array<detail::striped_list> stage_;
    detail::striped_list parked_;
    hierarchical_wheel* wheel_ = nullptr; // set while there may be nodes
    std::uint64_t epoch_ = 0;             // the bit to give back, if any
    std::size_t cursor_ = 0;
};

inline void hierarchical_wheel::detach_all(detached& set) noexcept {
    assert(set.wheel_ == nullptr);
    time_.swap_lists(set.time_);
    stage_.swap_lists(set.stage_);
    set.parked_.take(parked_);
    set.wheel_ = this;
    set.cursor_ = 0;
    size_ = 0;
    staging_ = false;
    stage_.restart(0);

    std::uint32_t unused = 0;
    while (unused != epochs_ && (epochs_in_use_ >> unused & 1) != 0)
        ++unused;
    if (unused != epochs_) {
        set.epoch_ = std::uint64_t{1} << epoch_;
        epoch_ = unused;
        base_ = epoch_ * slots_;
        epochs_in_use_ |= std::uint64_t{1} << epoch_;
        return;
    }
    // More sets are being drained at once than there are epochs: keep ours, and mark every node.
    set.epoch_ = 0;
    for (std::size_t i = 0; i != set.stage_.size() + set.time_.size() + 1; ++i) {
        set.list(i).for_each(
            [](const timer_node&, timer_node* const& node) { node->set_slot(loose_slot); });
    }
}

} // namespace pawl::time

#include <pawl/time/hierarchical_wheel_invariant.hpp>

#endif
