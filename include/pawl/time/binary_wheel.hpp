// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::time::binary_wheel, the small time structure.
///
/// Purpose
///   The small backend: 1208 bytes and no heap memory, for processes with very many contexts that
///   have few timers each. With a million timers it is as correct as hierarchical_wheel, but
///   slower: it moves nodes more often, and waits for memory at each.
///
/// Model
///   A wheel with one bit per level, so that a level is one bin, and a bin is one list
///   (detail::bit_bins). The idea is HiTime's. A node is in one of five places:
///
///       present   due at now() or before, in no order
///       stage     64 bins keyed by start sequence, for nodes that are due at now(). Used only if
///                 there are more of them than expire() has room for: they are sorted here, in
///                 bounded steps
///       time      64 bins keyed by due tick; the position is now()
///       never     due never
///       a detached set
///
///   expire() takes the first occupied bin. If all of it fits into the rest of the room, it goes
///   out at once, whatever its range, and the position moves to the end of the bin: HiTime's bulk
///   expiry. Otherwise the position enters the bin, and its nodes are filed again in lower bins, as
///   many per call as there is room. The output is sorted; bins are not.
///
///   Re-arming is lazy: a node stays in its bin if that begins at or before its new due tick. When
///   the bin's time comes, the node is filed again. So rearm() is HiTime's touch.
///
/// Invariants
///   - Bin-name invariant: every node is in the bin that its `slot` names; a bin is in the
///     occupancy set if and only if it is not empty.
///   - One-entered invariant: at most one bin of time and one of the stage is entered, that is,
///     occupied with its bit set in the position. No lower bin is handed out before it is empty.
///   - Bin-begin invariant: every other bin begins after the position, and at or before the key of
///     each of its nodes. So no node is missed, however it was re-armed.
///   - Stage invariant: a closed stage is empty. It opens when no bin of time is entered, and now()
///     does not move until it closes. While it is open, a node leaves the present for `out` only if
///     its sequence is at most the stage's position; the others are filed in the stage.
///   - Target invariant: asked_ >= now(). Nodes due at or before asked_ are handed out without
///     further waiting.
///
/// Threads
///   None. The owner serialises calls. The constructor of a detached set reads nothing.
///
/// Cost
///   See the class. next_wake reads at most 8 nodes. On average a node is moved for half of the
///   bits of its delay, and less often where bins are small.
#ifndef PAWL_TIME_BINARY_WHEEL_HPP
#define PAWL_TIME_BINARY_WHEEL_HPP

#include <pawl/config.hpp>

#include <pawl/detail/time/node_list.hpp>
#include <pawl/time/backend.hpp>
#include <pawl/time/geometry.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace pawl::time::detail {

// Maps keys to 64 bins, and knows which bins are occupied: the arithmetic of a binary wheel,
// without its nodes. The counterpart of digit_slots for hierarchical_wheel, in 32 bytes.
//
// Model
//   Seen from a position p, a key k > p is filed by the highest bit in which it differs from p.
//   That bit is 0 in p and 1 in k, so one bin per bit is enough.
//
//       p = 0b0101'0011                      p moves to 0b0101'1000, into bin 3:
//         k = 0b0101'1010 -> bin 3             k -> bin 1
//         k = 0b0110'0001 -> bin 5             k -> bin 5
//
// Invariants
//   - Ascending-bins invariant: a bin holds smaller keys than the bins above it.
//   - Stable-bin invariant: if p moves up to q, and no occupied bin begins in (p, q], then every
//     key has the same bin seen from q as from p.
//   - Descending-key invariant: if p moves into a bin, the keys of that bin are filed below it,
//     since they agree with p in its bit and above. So a key is filed at most once per bit, and a
//     bin whose bit is set in p receives no more keys.
//   - Least-key invariant: the bins below `below`, which were empty when `below` was entered, hold
//     no key smaller than `least`. So many nodes at one key do not descend bit by bit.

struct bit_bins {
    static constexpr unsigned none = 64;
    static constexpr std::uint64_t most = ~std::uint64_t{0};

    std::uint64_t position = 0;
    std::uint64_t occupied = 0; ///< one bit per bin
    std::uint64_t least = most;
    unsigned below = none;

    /// The bin of a key.
    /// @pre key > position
    [[nodiscard]] unsigned bin_of(std::uint64_t key) const noexcept {
        PAWL_ASSERT(key > position);
        return static_cast<unsigned>(63 - std::countl_zero(key ^ position));
    }
    /// The smallest key that belongs to a bin.
    [[nodiscard]] std::uint64_t begin(unsigned bin) const noexcept {
        const std::uint64_t bit = std::uint64_t{1} << bin;
        return (position | bit) & ~(bit - 1);
    }
    /// The largest key that belongs to a bin.
    [[nodiscard]] std::uint64_t last(unsigned bin) const noexcept {
        const std::uint64_t bit = std::uint64_t{1} << bin;
        return position | bit | (bit - 1);
    }
    /// A lower bound of the keys in a bin.
    [[nodiscard]] std::uint64_t least_in(unsigned bin) const noexcept {
        return bin < below ? std::clamp(least, begin(bin), last(bin)) : begin(bin);
    }
    /// The occupied bin that contains the position; none.
    [[nodiscard]] unsigned entered() const noexcept {
        return static_cast<unsigned>(std::countr_zero(occupied & position));
    }

    /// Keeps the least-key invariant: a key was added, or made smaller.
    void note(std::uint64_t key) noexcept { least = std::min(least, key); }

    /// Moves the position into a bin.
    /// @pre all bins below are empty.
    void enter(unsigned bin, std::uint64_t key) noexcept {
        PAWL_ASSERT(begin(bin) <= key && key <= last(bin));
        PAWL_ASSERT((occupied & ((std::uint64_t{1} << bin) - 1)) == 0);
        position = key;
        least = most;
        below = bin;
    }

    /// Restarts at any position.
    /// @pre all bins are empty.
    void restart(std::uint64_t key) noexcept {
        PAWL_ASSERT(occupied == 0);
        position = key;
        least = most;
        below = none;
    }
};

} // namespace pawl::time::detail

namespace pawl::time {

/// A hierarchical timing wheel with one bit per level. Models pawl::time::rewindable_backend, where
/// each call is described. The idea is that of HiTime.
///
/// @par Thread safety
/// The owner serialises all calls. The constructor of a detached set may run concurrently.
/// @par Complexity
/// insert(), refile(), erase(), rearm(), move_node(), next_wake() and any() are O(1). expire() moves a
/// node at most once for each bit of its delay, and among many at one tick for the bits of their
/// size as well. detach_all() is O(bins). Nothing allocates. 1208 bytes.
class binary_wheel {
public:
    static constexpr const char* label = "binary_wheel"; ///< In statistics.

    class detached;

    /// An empty wheel whose position is `now`.
    explicit binary_wheel(tick now = tick{}) noexcept { rewind(now); }

    /// The same: the shape is fixed, but every backend has this constructor.
    explicit binary_wheel(const geometry&, tick now = tick{}) noexcept : binary_wheel(now) {}

    binary_wheel& operator=(binary_wheel&&) = delete;

    /// @pre every node was erased, or will not be used any more.
    ~binary_wheel() = default;

    /// The position. Every node due before it has been handed out, unless it was filed late.
    [[nodiscard]] tick now() const noexcept { return tick{time().position}; }
    /// How many nodes are filed, excluding detached sets.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// `size() == 0`
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

    /// Files a node with a new start order.
    /// @pre `!node.filed()`
    void insert(timer_node& node, tick due) noexcept {
        PAWL_ASSERT(!node.filed());
        start(node, due);
        refile(node);
    }

    /// insert() that keeps the node's due tick and its start order.
    /// @pre `!node.filed()`
    void refile(timer_node& node) noexcept {
        PAWL_ASSERT(!node.filed());
        file(node);
        ++size_;
    }

    /// Unfiles a node.
    /// @pre it is filed here, or in a set that was detached from here.
    void erase(timer_node& node) noexcept {
        PAWL_ASSERT(node.filed());
        detail::unlink(node);
        if (!is_here(node))
            return;
        note_occupied(bin_of(node));
        --size_;
    }

    /// erase() and insert() in one, and cheaper: if the bin of the node begins by `due`, as it does
    /// if `due` is later than before, no other node is read or written.
    /// @pre it is filed here, or in a set that was detached from here, which it leaves.
    void rearm(timer_node& node, tick due) noexcept {
        PAWL_ASSERT(node.filed());
        if (may_stay(node, due)) {
            if (bin_of(node) >= first_of_time)
                time().note(due.count());
            start(node, due);
            return;
        }
        erase(node);
        insert(node, due);
    }

    /// Moves `from` to `to`, including its place; `from` is then as if default constructed.
    /// @pre `!to.filed()`
    void move_node(timer_node& from, timer_node& to) noexcept { detail::move_node(from, to); }

    /// Moves the position towards `now`, and writes the nodes that are due, unfiled, to the front of
    /// `out`. Handles at most as many nodes as `out` has room for, including those that it only moves.
    expire_result expire(tick now, std::span<timer_node*> out) noexcept {
        asked_ = std::clamp(now, this->now(), detail::last_tick);
        detail::due_batch work(out);
        for (;; work.count_pass()) {
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
    /// now() if some nodes due at now() have not been handed out. If the first bin holds few nodes,
    /// their earliest due tick, but no later than the start of the next bin. So a single timer, or
    /// the first of a few, is waited for without a stop at each bit, re-armed or not.
    [[nodiscard]] tick next_wake() const noexcept {
        const bin_type first = first_from(present);
        if (first == never)
            return tick::never();
        if (time().entered() != detail::bit_bins::none)
            return now(); // it is not ordered with the bins below it
        const tick soonest = least_in(first);
        tick earliest = least_in(first_from(first + 1));
        int visited = 0;
        for (const timer_node* node = head(first); node; node = node->next) {
            earliest = ++visited > few ? soonest : std::min(earliest, node->due);
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

    /// Sets the position, which may go backwards.
    /// @pre `empty()`
    void rewind(tick now) noexcept {
        PAWL_ASSERT(empty());
        stage().restart(closed);
        time().restart(std::min(now, detail::last_tick).count());
        asked_ = this->now();
    }

private:
    friend struct binary_wheel_probe; // test/time/binary_wheel_test.cpp
    template <class>
    friend struct pawl::detail::invariant_of;

    // All places are bins, numbered in the order in which they are handed out. Number / 64 is the
    // word of the occupancy set: for the present, the stage, time, and nodes due never.
    using bin_type = unsigned;
    static constexpr bin_type present = 63;
    static constexpr bin_type first_of_stage = 64;
    static constexpr bin_type first_of_time = 128;
    static constexpr bin_type never = 192;

    using heads = std::array<timer_node*, never + 1 - present>;

    /// How many nodes of a bin are searched for the earliest.
    static constexpr int few = 8;

    /// The position of the stage while all nodes due at now() go to the present.
    static constexpr std::uint64_t closed = detail::bit_bins::most;

    // `slot` of a node is its bin and, above it, the epoch.
    static constexpr unsigned slot_bits = 8;
    static constexpr std::uint32_t loose_slot = 0xff00; ///< in a detached set, beyond all epochs

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
        return node.slot() >> slot_bits == epochs_.present();
    }

    /// The first occupied bin that is no lower than `bin`; never if there is none.
    [[nodiscard]] bin_type first_from(bin_type bin) const noexcept {
        while (bin < never) {
            if (const std::uint64_t rest = words_[bin / 64].occupied >> (bin % 64))
                return bin + static_cast<bin_type>(std::countr_zero(rest));
            [[maybe_unused]] const bin_type before = std::exchange(bin, (bin / 64 + 1) * 64);
            PAWL_ASSERT(before < bin);
        }
        return never;
    }

    /// No node of a bin need be handled before this tick.
    [[nodiscard]] tick begin(bin_type bin) const noexcept {
        if (bin < first_of_time)
            return now();
        return bin == never ? tick::never() : std::max(now(), tick{time().begin(bin % 64)});
    }

    /// No node of a bin is due before this tick.
    [[nodiscard]] tick least_in(bin_type bin) const noexcept {
        if (bin < first_of_time || bin == never)
            return begin(bin);
        return std::max(now(), tick{time().least_in(bin % 64)});
    }

    void start(timer_node& node, tick due) noexcept {
        node.due = due;
        node.set_order(starts_.next++);
    }

    /// Whether a node belongs to the present: it may be handed out before all the others.
    [[nodiscard]] bool is_ready(const timer_node& node) const noexcept {
        return node.due <= now() && starts_.of(node) <= stage().position;
    }

    /// Keeps the bin-name invariant after a bin has changed.
    void note_occupied(bin_type bin) noexcept {
        const std::uint64_t bit = std::uint64_t{1} << (bin % 64);
        std::uint64_t& occupied = words_[bin / 64].occupied;
        occupied = head(bin) ? occupied | bit : occupied & ~bit;
    }

    /// Puts an unlinked node where it belongs now.
    void file(timer_node& node) noexcept {
        bin_type bin = present;
        if (node.due == tick::never()) {
            bin = never;
        } else if (node.due > now()) {
            bin = first_of_time + time().bin_of(node.due.count());
            time().note(node.due.count());
        } else if (const std::uint64_t key = starts_.of(node); key > stage().position) {
            bin = first_of_stage + stage().bin_of(key);
            stage().note(key);
        }
        detail::link_front(head(bin), node);
        node.set_slot(epochs_.present() << slot_bits | bin);
        note_occupied(bin);
    }

    /// Whether a filed node may stay in its bin with a new due tick (bin-begin invariant).
    [[nodiscard]] bool may_stay(const timer_node& node, tick due) const noexcept {
        return is_here(node) && begin(bin_of(node)) <= std::max(due, now());
    }

    /// The bin whose nodes come before all others, or must be filed again before others can come.
    [[nodiscard]] bin_type next_bin() const noexcept {
        if (const unsigned entered = time().entered(); entered != detail::bit_bins::none)
            return first_of_time + entered;
        const bin_type first = first_from(present);
        const unsigned entered = stage().entered();
        return first / 64 == first_of_stage / 64 && entered != detail::bit_bins::none
                   ? first_of_stage + entered
                   : first;
    }

    /// Hands out the next bin, or files some of its nodes again.
    /// @return whether expire() may go on.
    bool handle(bin_type bin, detail::due_batch& work) noexcept {
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

    /// Moves the position so that the nodes of the bin are ready if it fits, and otherwise belong
    /// to lower bins.
    void enter(bin_type bin, bool fits) noexcept {
        detail::bit_bins& bins = words_[bin / 64];
        const std::uint64_t key = fits ? bins.last(bin % 64) : bins.least_in(bin % 64);
        bins.enter(bin % 64, bin < first_of_time ? key : std::min(key, asked_.count()));
    }

    /// Takes nodes out of a bin, as many as there is room for. Files those that are not ready
    /// again, and emits the others in order.
    void gather(bin_type bin, detail::due_batch& work) noexcept {
        timer_node** end = work.end();
        walk(bin, work, [&](timer_node& node) {
            if (!is_ready(node)) {
                file(node);
                return;
            }
            node.next = nullptr;
            node.link = nullptr;
            *end++ = &node;
        });
        const auto emitted = static_cast<std::size_t>(end - work.end());
        size_ -= emitted;
        // Unless they come from the stage, late nodes are sorted by due tick.
        work.emit(emitted, [this](const timer_node& a, const timer_node& b) {
            if (stage().position == closed && a.due != b.due)
                return a.due < b.due;
            return starts_.before(a, b);
        });
    }

    /// Pops nodes, as many as there is room for. The sink files them elsewhere or unfiles them.
    template <class Sink>
    void walk(bin_type bin, detail::due_batch& work, Sink sink) noexcept {
        timer_node* node = head(bin);
        for (; node && work.left != 0; --work.left) {
            timer_node* const next = node->next;
            detail::prefetch(next);
            sink(*node);
            node = next;
        }
        head(bin) = node;
        if (node)
            node->link = &head(bin);
        note_occupied(bin);
    }

    /// The number of nodes in a bin, but no more than `most`.
    [[nodiscard]] std::size_t count_up_to(std::size_t most, bin_type bin) const noexcept {
        std::size_t count = 0;
        for (const timer_node* node = head(bin); node && count != most; ++count)
            node = node->next;
        return count;
    }

    std::array<detail::bit_bins, 4> words_{};
    heads heads_{};
    std::size_t size_ = 0;
    detail::start_sequence starts_;
    tick asked_; ///< the argument of the last expire()
    detail::epochs epochs_;
};

static_assert(sizeof(void*) != 8 || sizeof(binary_wheel) <= 1208);

/// All nodes that a wheel had. Its destructor unfiles those that are left.
class binary_wheel::detached {
public:
    /// Allocates nothing: a set has room for all nodes of a wheel.
    explicit detached(const binary_wheel&) noexcept {}

    detached& operator=(detached&&) = delete;

    ~detached() {
        while (pop()) {
        }
    }

    /// Unfiles a node and returns it; nullptr if none is left.
    [[nodiscard]] timer_node* pop() noexcept {
        for (; wheel_ && cursor_ != heads_.size(); ++cursor_) {
            if (timer_node* const node = heads_[cursor_]) {
                detail::prefetch(node->next);
                detail::unlink(*node);
                return node;
            }
        }
        if (wheel_) {
            wheel_->epochs_.give_back(epoch_);
            wheel_ = nullptr;
        }
        return nullptr;
    }

private:
    friend class binary_wheel;

    heads heads_{};
    binary_wheel* wheel_ = nullptr; ///< non-null while there may be nodes
    std::uint64_t epoch_ = 0;       ///< the bit to give back, if any
    std::size_t cursor_ = 0;
};

inline void binary_wheel::detach_all(detached& set) noexcept {
    PAWL_ASSERT(!set.wheel_);
    set.heads_ = std::exchange(heads_, heads{});
    for (timer_node*& head : set.heads_) {
        if (head)
            head->link = &head;
    }
    set.wheel_ = this;
    set.cursor_ = 0;
    for (detail::bit_bins& bins : words_)
        bins.occupied = 0;
    size_ = 0;
    rewind(now());

    set.epoch_ = epochs_.move_on(detail::epochs::most);
    if (set.epoch_ != 0)
        return;
    // More sets are being drained than there are epochs: keep ours, and relabel every node.
    for (timer_node* node : set.heads_) {
        for (; node; node = node->next)
            node->set_slot(loose_slot);
    }
}

} // namespace pawl::time

#endif // PAWL_TIME_BINARY_WHEEL_HPP
