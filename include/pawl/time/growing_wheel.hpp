// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

/// @file
/// pawl::time::growing_wheel, small for few timers and fast for many: that of pawl::compact_timer.

// Purpose
//   A binary_wheel waits for memory at every node of a crowd; a hierarchical_wheel takes memory
//   for a crowd that never comes. This is the one until it has a crowd, and the other from then on.
//
// Model
//   small --grow()--> large. The owner asks wants_to_grow() before it files a node, allocates the
//   room wherever it may, without its lock, and hands it over. All nodes move in that call, which is
//   why there must not be too many. They keep their due ticks and starts.
//
// Invariants (see invariant())
//   G1  All filed nodes are in the one wheel that is in use.
//   G2  While a detached set has nodes, there is no growing: they belong to the wheel that they
//       were detached from, which rearm() returns them to.
//
// Threads
//   None. The owner serialises calls. make_room() and the constructor of a detached set read
//   nothing of the wheel.
//
// Cost
//   That of the wheel in use, and one branch. 1224 bytes; 57 KB more once it has grown.

#ifndef PAWL_TIME_GROWING_WHEEL_HPP
#define PAWL_TIME_GROWING_WHEEL_HPP

#include <pawl/config.hpp>

#include <pawl/time/backend.hpp>
#include <pawl/time/binary_wheel.hpp>
#include <pawl/time/geometry.hpp>
#include <pawl/time/hierarchical_wheel.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace pawl::time {

/// A binary_wheel that becomes a hierarchical_wheel of 3 bits a level when it has a crowd. Models
/// pawl::time::backend, where each call is described, and has two calls more, by which the owner lets
/// it grow. Who calls neither has a binary_wheel.
///
/// @par Thread safety
/// The owner serialises all calls. make_room() and the constructor of a detached set may run beside
/// them.
/// @par Complexity
/// That of the wheel in use. grow() is O(size()), of at most #most_moved nodes if it is called when
/// wants_to_grow() says so. Nothing but make_room() and the constructor of a detached set allocates.
class growing_wheel {
public:
    static constexpr const char* label = "growing_wheel"; ///< In statistics.

    class detached;

    /// What it grows into.
    using room = std::unique_ptr<hierarchical_wheel>;

    /// It wants to grow from so many nodes on. In the service they take nearly as much memory, with their
    /// waits, as the room does.
    static constexpr std::size_t crowd = 256;
    /// It does not want to with more, which only they can have who filed many without asking, or while
    /// it could not grow.
    static constexpr std::size_t most_moved = 1024;

    /// An empty wheel whose position is `now`.
    explicit growing_wheel(tick now = tick{}) noexcept : small_(now) {}

    /// There is nothing to choose about the shape: every backend is made like this.
    explicit growing_wheel(const geometry&, tick now = tick{}) noexcept : growing_wheel(now) {}

    growing_wheel(const growing_wheel&) = delete;
    growing_wheel& operator=(const growing_wheel&) = delete;

    /// The nodes must have been erased, or must not be used any more.
    ~growing_wheel() = default;

    /// Whether grow() should be called before the next node is filed.
    [[nodiscard]] bool wants_to_grow() const noexcept {
        return may_grow() && small_.size() >= wanted_from_ && small_.size() <= most_moved;
    }

    /// Whether grow() may be called: it has not grown, and no detached set has nodes.
    [[nodiscard]] bool may_grow() const noexcept { return !large_ && sets_ == 0; }

    /// Allocates; nullptr if there is no memory.
    [[nodiscard]] static room make_room() noexcept {
        try {
            return std::make_unique<hierarchical_wheel>(large_shape());
        } catch (const std::bad_alloc&) {
            return nullptr; // it is as correct without
        }
    }

    /// Moves all nodes to where a crowd costs less. The caller sees no difference. Without room it does
    /// not want to grow until it has one node more.
    /// @pre `may_grow()`
    void grow(room to) noexcept {
        assert(may_grow());
        if (!to) {
            wanted_from_ = static_cast<std::uint32_t>(std::max(small_.size() + 1, crowd));
            return;
        }
        to->resume(small_.now(), small_.starts());
        binary_wheel::detached all(small_);
        small_.detach_all(all);
        while (timer_node* const node = all.pop())
            to->refile(*node);
        large_ = std::move(to);
    }

    /// The position: what was due before has been handed out, unless it was filed too late for that.
    [[nodiscard]] tick now() const noexcept { return large_ ? large_->now() : small_.now(); }
    /// How many nodes are filed, without those of detached sets.
    [[nodiscard]] std::size_t size() const noexcept {
        return large_ ? large_->size() : small_.size();
    }
    /// `size() == 0`
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }

    /// Files a node with a new start order.
    /// @pre `!node.filed()`
    void insert(timer_node& node, tick due) noexcept {
        large_ ? large_->insert(node, due) : small_.insert(node, due);
    }

    /// insert() that keeps the node's due tick and its start order.
    /// @pre `!node.filed()`
    void refile(timer_node& node) noexcept { large_ ? large_->refile(node) : small_.refile(node); }

    /// Lets go of a node.
    /// @pre It is filed here, or in a set that was detached from here.
    void erase(timer_node& node) noexcept { large_ ? large_->erase(node) : small_.erase(node); }

    /// erase() and insert() in one, and cheaper: a node that becomes due later stays where it is.
    /// @pre It is filed here, or in a set that was detached from here, which it leaves.
    void rearm(timer_node& node, tick due) noexcept {
        large_ ? large_->rearm(node, due) : small_.rearm(node, due);
    }

    /// Puts `to` in the place of `from`, which is then as if default constructed.
    /// @pre `!to.filed()`
    void move_node(timer_node& from, timer_node& to) noexcept {
        large_ ? large_->move_node(from, to) : small_.move_node(from, to);
    }

    /// Moves the position towards `now`, and writes the nodes that are due, unfiled, to the front of
    /// `out`. Handles at most as many nodes as `out` has room for, those that it only moves included.
    expire_result expire(tick now, std::span<timer_node*> out) noexcept {
        return large_ ? large_->expire(now, out) : small_.expire(now, out);
    }

    /// A tick before which expire() has nothing to emit.
    [[nodiscard]] tick next_wake() const noexcept {
        return large_ ? large_->next_wake() : small_.next_wake();
    }

    /// How often a node was moved to a lower level since it has grown.
    [[nodiscard]] std::uint64_t level_moves() const noexcept {
        return large_ ? large_->level_moves() : 0;
    }
    /// Number of levels once it has grown.
    [[nodiscard]] static std::size_t levels() { return large_shape().levels(); }
    /// hierarchical_wheel::count_levels(); nothing before it has grown.
    void count_levels(std::size_t* counts) const noexcept {
        if (large_)
            large_->count_levels(counts);
    }

    /// Some filed node; nullptr if there is none.
    [[nodiscard]] timer_node* any() const noexcept { return large_ ? large_->any() : small_.any(); }

    /// Moves all nodes to a set, where they are still filed.
    /// @pre The set was made for this wheel, and is empty.
    void detach_all(detached& set) noexcept;

    /// Sets the position, backward as well.
    /// @pre `empty()`
    void rewind(tick now) noexcept { large_ ? large_->rewind(now) : small_.rewind(now); }

    /// Checks everything that can be checked. O(size()).
    /// @throws std::logic_error naming the invariant that does not hold.
    void invariant() const {
        if (large_) {
            large_->invariant();
            if (!small_.empty())
                throw std::logic_error("pawl: growing_wheel: G1: " + std::to_string(small_.size()) +
                                       " nodes in the wheel that was left");
        }
        small_.invariant();
    }

private:
    friend struct growing_wheel_probe; // test/time/growing_wheel_test.cpp

    // With 3 bits a level a million timers expire nearly as fast as with 6, which take three times the
    // memory: doc/design.md.
    static geometry large_shape() { return geometry{3}; }

    binary_wheel small_;
    room large_; // null until it has grown
    std::uint32_t wanted_from_ = crowd;
    std::uint32_t sets_ = 0; // detached ones that may have nodes: G2
};

static_assert(sizeof(void*) != 8 || sizeof(growing_wheel) <= 1224);

/// All nodes that a wheel had, on their way out.
///
/// Destroying it lets go of what is left in it.
class growing_wheel::detached {
public:
    /// Makes room for all that the wheel will ever hold, grown or not.
    /// @throws std::bad_alloc
    explicit detached(const growing_wheel& wheel)
        : small_(wheel.small_), large_(growing_wheel::large_shape()) {}

    detached(const detached&) = delete;
    detached& operator=(const detached&) = delete;

    ~detached() {
        while (pop() != nullptr) {
        }
    }

    /// Lets go of one node and returns it; nullptr if none is left.
    [[nodiscard]] timer_node* pop() noexcept {
        timer_node* node = small_.pop(); // one of the two is empty
        if (node == nullptr)
            node = large_.pop();
        if (node == nullptr && wheel_ != nullptr)
            --std::exchange(wheel_, nullptr)->sets_;
        return node;
    }

private:
    friend class growing_wheel;

    binary_wheel::detached small_;
    hierarchical_wheel::detached large_;
    growing_wheel* wheel_ = nullptr; // set while there may be nodes
};

inline void growing_wheel::detach_all(detached& set) noexcept {
    assert(set.wheel_ == nullptr);
    large_ ? large_->detach_all(set.large_) : small_.detach_all(set.small_);
    set.wheel_ = this;
    ++sets_;
}

} // namespace pawl::time

#endif
