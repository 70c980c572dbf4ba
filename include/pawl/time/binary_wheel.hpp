// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

/// @file
/// pawl::time::binary_wheel, the small time structure.

// Purpose
//   The small backend: 1208 bytes, and not one on the heap, for processes with very many contexts
//   of which each has few timers. With a million it is as correct, but slower than
//   hierarchical_wheel, which moves a node less often and does not wait for memory at each.
//
// Model
//   A wheel whose levels have one bit, so that a level is one bin, and a bin one list:
//   bit_bins.hpp. The idea is HiTime's. Five places for a node:
//
//       present   due at now() or before, in no order
//       stage     64 bins keyed by start sequence, for nodes that are due at now(). Used only if
//                 they are more than expire() has room for: they are sorted here, in bounded steps
//       time      64 bins keyed by due tick; the position is now()
//       parked    due never
//       a detached set
//
//   expire() takes the first bin that is not empty. If all of it fits into the room that is left,
//   it goes out at once, whatever its range, and the position moves to the end of the bin: HiTime's
//   bulk expiry. Otherwise the position enters the bin, and its nodes are filed anew, into bins
//   below, as many in a call as there is room. What goes out is sorted; bins are not.
//
//   Re-arming is lazy: a node whose bin begins at or before its new due tick stays there. When the
//   bin's time comes, the node is filed anew. rearm() is thus what HiTime calls touch.
//
// Invariants (see invariant())
//   X1  Every node is in the bin that its `slot` names; a bin is in the occupancy set exactly if it
//       is not empty.
//   X2  At most one bin of time, and one of the stage, is entered: occupied, its bit set in the
//       position. No bin below it is handed out before it is empty.
//   X3  Every other bin begins after the position, and at or before the key of each of its nodes.
//       So none is missed, however it was re-armed.
//   X4  A stage that is closed is empty. It opens when no bin of time is entered, and now() rests
//       until it closes. While it is open, only what has a sequence up to its position leaves the
//       present for `out`; the rest is filed in the stage.
//   X5  asked_ >= now(). What is due at or before asked_ is waited for no longer.
//
// Threads
//   None. The owner serialises calls. Constructing a detached set reads nothing.
//
// Cost
//   insert, erase, rearm, move_node, next_wake O(1); the last looks at 8 nodes at most. expire: a
//   node is moved at most once for each bit of its delay, on average for half of them, and less
//   often where bins are small; in a crowd at one tick, for the bits of the crowd's size as well.
//   detach_all O(bins). Nothing allocates.

#ifndef PAWL_TIME_BINARY_WHEEL_HPP
#define PAWL_TIME_BINARY_WHEEL_HPP

#include <pawl/config.hpp>

#include <pawl/time/backend.hpp>
#include <pawl/time/bit_bins.hpp>
#include <pawl/time/geometry.hpp>
#include <pawl/time/striped_list.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace pawl::time {

/// A hierarchical timing wheel of one bit a level. Models pawl::time::backend, where each call is
/// described. The idea is that of HiTime.
///
/// @par Thread safety
/// The owner serialises all calls. The constructor of a detached set may run beside them.
/// @par Complexity
/// insert(), refile(), erase(), rearm(), move_node(), next_wake() and any() are O(1). expire() moves a
/// node at most once for each bit of its delay, and in a crowd at one tick for the bits of the crowd's
/// size as well. detach_all() is O(bins). Nothing allocates. 1208 bytes.
class binary_wheel {
public:
    static constexpr const char* label = "binary_wheel"; ///< In statistics.

    class detached;

    /// An empty wheel whose position is `now`.
    explicit binary_wheel(tick now = tick{}) noexcept { rewind(now); }

    /// There is nothing to choose about the shape: every backend is made like this.
    explicit binary_wheel(const geometry&, tick now = tick{}) noexcept : binary_wheel(now) {}

    binary_wheel(const binary_wheel&) = delete;
    binary_wheel& operator=(const binary_wheel&) = delete;

    /// The nodes must have been erased, or must not be used any more.
    ~binary_wheel() = default;

    /// The position: what was due before has been handed out, unless it was filed too late for that.
    [[nodiscard]] tick now() const noexcept { return tick{time().position}; }
    /// How many nodes are filed, without those of detached sets.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// `size() == 0`
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

    /// Files a node with a new start order.
    /// @pre `!node.filed()`
    void insert(timer_node& node, tick due) noexcept {
        assert(!node.filed());
        start(node, due);
        refile(node);
    }

    /// insert() that keeps the node's due tick and its start order.
    /// @pre `!node.filed()`
    void refile(timer_node& node) noexcept {
        assert(!node.filed());
        file(node);
        ++size_;
    }

    /// Lets go of a node.
    /// @pre It is filed here, or in a set that was detached from here.
    void erase(timer_node& node) noexcept {
        assert(node.filed());
        detail::unlink(node);
        if (!is_here(node))
            return;
        mark(bin_of(node));
        --size_;
    }

    /// erase() and insert() in one, and cheaper: it writes to no other node, and reads none, if the
    /// bin of the node begins by `due`, as it does if `due` is later than before.
    /// @pre It is filed here, or in a set that was detached from here, which it leaves.
    void rearm(timer_node& node, tick due) noexcept {
        assert(node.filed());
        if (may_stay(node, due)) {
            if (bin_of(node) >= first_of_time)
                time().note(due.count());
            start(node, due);
            return;
        }
        erase(node);
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
    /// `out`. Handles at most as many nodes as `out` has room for, those that it only moves included.
    expire_result expire(tick now, std::span<timer_node*> out) noexcept {
        asked_ = std::clamp(now, this->now(), last_tick);
        batch work{out.data(), out.size(), out.size(), 0};
        for (;;) {
            const bin_type bin = next_bin();
            if (bin >= first_of_time) {
                stage().restart(closed);
                if (begin(bin) > asked_) {
                    time().position = asked_.count();
                    return {work.emitted, false};
                }
            }
            if (!handle(bin, work))
                return {work.emitted, true};
        }
    }

    /// A tick before which expire() has nothing to emit.
    ///
    /// now() if the last expire() was left in the middle of a tick. If the first bin holds few nodes, their
    /// earliest due tick, but no later than the next bin's: a timer that is alone, or the first of
    /// a few, is waited for without a stop at each bit, re-armed or not.
    [[nodiscard]] tick next_wake() const noexcept {
        const bin_type first = first_from(present);
        if (first == parked)
            return tick::never();
        if (time().entered() != detail::bit_bins::none)
            return now(); // it is not ordered with the bins below it
        const tick soonest = least_in(first);
        tick earliest = least_in(first_from(first + 1));
        int looked_at = 0;
        for (const timer_node* node = head(first); node != nullptr; node = node->next) {
            earliest = ++looked_at > few ? soonest : std::min(earliest, node->due);
            if (earliest <= soonest)
                break;
        }
        earliest = std::max(earliest, soonest);
        return earliest <= asked_ ? now() : earliest;
    }

    /// Some filed node; nullptr if there is none.
    [[nodiscard]] timer_node* any() const noexcept { return head(first_from(present)); }

    /// Moves all nodes to a set, where they are still filed.
    /// @pre The set was made for this wheel, and is empty.
    void detach_all(detached& set) noexcept;

    /// Sets the position, backward as well.
    /// @pre `empty()`
    void rewind(tick now) noexcept {
        assert(empty());
        stage().restart(closed);
        time().restart(std::min(now, last_tick).count());
        asked_ = this->now();
    }

    /// The number of the next start, of which a node keeps the low bits.
    [[nodiscard]] std::uint64_t starts() const noexcept { return next_sequence_; }

    /// Checks everything that can be checked. O(size()).
    /// @throws std::logic_error naming the invariant that does not hold.
    void invariant() const;

private:
    friend struct binary_wheel_probe; // test/time/binary_wheel_test.cpp

    // All places are bins, numbered in the order in which they are handed out. Number / 64 is the
    // word of the occupancy set: that of the present, of the stage, of time, of what is parked.
    using bin_type = unsigned;
    static constexpr bin_type present = 63;
    static constexpr bin_type first_of_stage = 64;
    static constexpr bin_type first_of_time = 128;
    static constexpr bin_type parked = 192;

    using heads = std::array<timer_node*, parked + 1 - present>;

    /// What is left of the room that the caller of expire() gave.
    struct batch {
        timer_node** out;
        std::size_t room;
        std::size_t left;
        std::size_t emitted;
    };

    /// The position stops here, so that what is due never is never reached.
    static constexpr tick last_tick{tick::never().count() - 1};

    /// So many nodes of one bin are looked at to find the earliest.
    static constexpr int few = 8;

    static constexpr std::uint64_t order_mask = (std::uint64_t{1} << timer_node::order_bits) - 1;

    /// The position of the stage while all that is due at now() goes to the present.
    static constexpr std::uint64_t closed = detail::bit_bins::most;

    // `slot` of a node is its bin and, above it, the epoch. Detaching all goes on to an unused
    // epoch, so that a detached node is known by it without having been visited.
    static constexpr unsigned slot_bits = 8;
    static constexpr unsigned epochs = 64;              // bits of epochs_in_use_
    static constexpr std::uint32_t loose_slot = 0xff00; // in a detached set, beyond all epochs

    [[nodiscard]] detail::bit_bins& stage() noexcept { return words_[first_of_stage / 64]; }
    [[nodiscard]] const detail::bit_bins& stage() const noexcept {
        return words_[first_of_stage / 64];
    }
    [[nodiscard]] detail::bit_bins& time() noexcept { return words_[first_of_time / 64]; }
    [[nodiscard]] const detail::bit_bins& time() const noexcept {
        return words_[first_of_time / 64];
    }
    [[nodiscard]] timer_node*& head(bin_type bin) noexcept { return heads_[bin - present]; }
    [[nodiscard]] timer_node* head(bin_type bin) const noexcept { return heads_[bin - present]; }

    [[nodiscard]] static bin_type bin_of(const timer_node& node) noexcept {
        return node.slot() & ((1U << slot_bits) - 1);
    }
    /// Whether a filed node is in no detached set.
    [[nodiscard]] bool is_here(const timer_node& node) const noexcept {
        return node.slot() >> slot_bits == epoch_;
    }

    /// The first occupied bin that is no lower than `bin`; parked if there is none.
    [[nodiscard]] bin_type first_from(bin_type bin) const noexcept {
        for (; bin < parked; bin = (bin / 64 + 1) * 64) {
            if (const std::uint64_t rest = words_[bin / 64].occupied >> (bin % 64))
                return bin + static_cast<bin_type>(std::countr_zero(rest));
        }
        return parked;
    }

    /// No node of a bin need be handled before this tick.
    [[nodiscard]] tick begin(bin_type bin) const noexcept {
        if (bin < first_of_time)
            return now();
        return bin == parked ? tick::never() : std::max(now(), tick{time().begin(bin % 64)});
    }

    /// No node of a bin is due before this tick.
    [[nodiscard]] tick least_in(bin_type bin) const noexcept {
        if (bin < first_of_time || bin == parked)
            return begin(bin);
        return std::max(now(), tick{time().least_in(bin % 64)});
    }

    void start(timer_node& node, tick due) noexcept {
        node.due = due;
        node.set_order(next_sequence_++);
    }

    /// The whole number of a node's start.
    [[nodiscard]] std::uint64_t sequence(const timer_node& node) const noexcept {
        return next_sequence_ - ((next_sequence_ - node.order()) & order_mask);
    }

    /// Whether a node belongs to the present: it may be handed out before all the others.
    [[nodiscard]] bool is_ready(const timer_node& node) const noexcept {
        return node.due <= now() && sequence(node) <= stage().position;
    }

    /// Keeps X1 after a bin has changed.
    void mark(bin_type bin) noexcept {
        const std::uint64_t bit = std::uint64_t{1} << (bin % 64);
        std::uint64_t& occupied = words_[bin / 64].occupied;
        occupied = head(bin) != nullptr ? occupied | bit : occupied & ~bit;
    }

    /// Puts an unlinked node where it belongs now.
    void file(timer_node& node) noexcept {
        bin_type bin = present;
        if (node.due == tick::never()) {
            bin = parked;
        } else if (node.due > now()) {
            bin = first_of_time + time().bin_of(node.due.count());
            time().note(node.due.count());
        } else if (const std::uint64_t key = sequence(node); key > stage().position) {
            bin = first_of_stage + stage().bin_of(key);
            stage().note(key);
        }
        detail::link_front(head(bin), node);
        node.set_slot(epoch_ << slot_bits | bin);
        mark(bin);
    }

    /// Whether a filed node may stay in its bin if it becomes due at `due`: X3.
    [[nodiscard]] bool may_stay(const timer_node& node, tick due) const noexcept {
        return is_here(node) && begin(bin_of(node)) <= std::max(due, now());
    }

    /// The bin whose nodes come before all others, or have to be filed anew before others can come.
    [[nodiscard]] bin_type next_bin() const noexcept {
        if (const unsigned entered = time().entered(); entered != detail::bit_bins::none)
            return first_of_time + entered;
        const bin_type first = first_from(present);
        const unsigned entered = stage().entered();
        return first / 64 == first_of_stage / 64 && entered != detail::bit_bins::none
                   ? first_of_stage + entered
                   : first;
    }

    /// Hands out the next bin, or files some of it anew. Whether expire() may go on.
    bool handle(bin_type bin, batch& work) noexcept {
        if (work.left == 0)
            return false;
        if (bin % 64 == words_[bin / 64].entered()) {
            walk(bin, work, [this](timer_node& node) { file(node); });
            return true;
        }
        const std::size_t count = count_up_to(work.room + 1, bin);
        if (count > work.left && count <= work.room)
            return false; // fits into the next call as a whole
        const bool fits = count <= work.left;
        if (bin != present)
            enter(bin, fits);
        else if (!fits && stage().position == closed)
            stage().restart(0);
        if (fits || bin == present)
            gather(bin, work);
        return true;
    }

    /// Moves the position so that the nodes of a bin that fits are ready; others get bins to go to.
    void enter(bin_type bin, bool fits) noexcept {
        detail::bit_bins& bins = words_[bin / 64];
        const std::uint64_t key = fits ? bins.last(bin % 64) : bins.least_in(bin % 64);
        bins.enter(bin % 64, bin < first_of_time ? key : std::min(key, asked_.count()));
    }

    /// Takes nodes out of a bin, as many as there is room for, files anew those that are not ready,
    /// and emits the others in order.
    void gather(bin_type bin, batch& work) noexcept {
        timer_node** const first = work.out + work.emitted;
        timer_node** end = first;
        walk(bin, work, [&](timer_node& node) {
            if (!is_ready(node)) {
                file(node);
                return;
            }
            node.next = nullptr;
            node.link = nullptr;
            *end++ = &node;
        });
        sort(first, end);
        const auto emitted = static_cast<std::size_t>(end - first);
        work.emitted += emitted;
        size_ -= emitted;
    }

    /// By start sequence; unless they come out of the stage, late-comers by due tick before that.
    void sort(timer_node** first, timer_node** end) const noexcept {
        const auto before = [&](const timer_node* a, const timer_node* b) {
            if (stage().position == closed && a->due != b->due)
                return a->due < b->due;
            return sequence(*a) < sequence(*b);
        };
        // Most bins are sorted, in one direction or the other: each filing anew reverses them.
        if (std::is_sorted(first, end, before))
            return;
        std::reverse(first, end);
        if (!std::is_sorted(first, end, before))
            std::sort(first, end, before);
    }

    /// Pops nodes, as many as there is room for. The sink files them elsewhere or lets go of them.
    template <class Sink>
    void walk(bin_type bin, batch& work, Sink sink) noexcept {
        timer_node* node = head(bin);
        for (; node != nullptr && work.left != 0; --work.left) {
            timer_node* const next = node->next;
            detail::prefetch(next);
            sink(*node);
            node = next;
        }
        head(bin) = node;
        if (node != nullptr)
            node->link = &head(bin);
        mark(bin);
    }

    /// The number of nodes in a bin, but no more than `most`.
    [[nodiscard]] std::size_t count_up_to(std::size_t most, bin_type bin) const noexcept {
        std::size_t count = 0;
        for (const timer_node* node = head(bin); node != nullptr && count != most; ++count)
            node = node->next;
        return count;
    }

    std::array<detail::bit_bins, 4> words_{};
    heads heads_{};
    std::size_t size_ = 0;
    std::uint64_t next_sequence_ = std::uint64_t{1} << timer_node::order_bits; // never below
    tick asked_;                      // what the last expire() was asked for
    std::uint64_t epochs_in_use_ = 1; // by this wheel or a detached set
    std::uint32_t epoch_ = 0;
};

static_assert(sizeof(void*) != 8 || sizeof(binary_wheel) <= 1208);

/// All nodes that a wheel had, on their way out.
///
/// Destroying it lets go of what is left in it.
class binary_wheel::detached {
public:
    /// Allocates nothing: a set has room for all that a wheel can hold.
    explicit detached(const binary_wheel&) noexcept {}

    detached(const detached&) = delete;
    detached& operator=(const detached&) = delete;

    ~detached() {
        while (pop() != nullptr) {
        }
    }

    /// Lets go of one node and returns it; nullptr if none is left.
    [[nodiscard]] timer_node* pop() noexcept {
        for (; wheel_ != nullptr && cursor_ != heads_.size(); ++cursor_) {
            if (timer_node* const node = heads_[cursor_]) {
                detail::prefetch(node->next);
                detail::unlink(*node);
                return node;
            }
        }
        if (wheel_ != nullptr) {
            wheel_->epochs_in_use_ &= ~epoch_;
            wheel_ = nullptr;
        }
        return nullptr;
    }

private:
    friend class binary_wheel;

    heads heads_{};
    binary_wheel* wheel_ = nullptr; // set while there may be nodes
    std::uint64_t epoch_ = 0;       // the bit to give back, if any
    std::size_t cursor_ = 0;
};

inline void binary_wheel::detach_all(detached& set) noexcept {
    assert(set.wheel_ == nullptr);
    set.heads_ = std::exchange(heads_, heads{});
    for (timer_node*& head : set.heads_) {
        if (head != nullptr)
            head->link = &head;
    }
    set.wheel_ = this;
    set.cursor_ = 0;
    for (detail::bit_bins& bins : words_)
        bins.occupied = 0;
    size_ = 0;
    rewind(now());

    const auto unused = static_cast<unsigned>(std::countr_one(epochs_in_use_));
    if (unused != epochs) {
        set.epoch_ = std::uint64_t{1} << epoch_;
        epoch_ = unused;
        epochs_in_use_ |= std::uint64_t{1} << epoch_;
        return;
    }
    // More sets are being drained at once than there are epochs: keep ours, and mark every node.
    set.epoch_ = 0;
    for (timer_node* node : set.heads_) {
        for (; node != nullptr; node = node->next)
            node->set_slot(loose_slot);
    }
}

} // namespace pawl::time

#include <pawl/time/binary_wheel_invariant.hpp>

#endif
