// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// Purpose
//   One slot of a wheel: an unordered collection of nodes that can be filled, thinned out anywhere
//   and emptied step by step, and whose emptying does not wait for memory at every node.
//
// Model
//   A million timers are not in the cache. A slot that is one list is walked at one miss per node,
//   each address being known only when its predecessor has arrived. So a slot is several lists, the
//   stripes. Nodes are pushed round robin and popped in the reverse rotation, which prefetches the
//   next node of each stripe one rotation before it is needed. Without erasures in between, nodes
//   come out exactly in the reverse order of going in; with erasures, nearly: ascends() tells.
//
// Invariants
//   S1  count() is the number of nodes in all stripes.
//   S2  heads_[i] != nullptr implies heads_[i]->link == &heads_[i]; walk() alone suspends this
//       for its own slot, so that popping does not write to a node before it has arrived.
//   S3  No node's sequence is less than least() (sequences of filed nodes only grow).
//   S4  While ascends(), each node was pushed with a smaller sequence than those that were here
//       before it, and none was erased since the list was last empty.
//
// Cost
//   192 bytes, three cache lines, which is why there are 22 stripes and not 24. As many misses are on
//   their way at a time: doc/design.md has what more and fewer cost.

#ifndef PAWL_TIME_STRIPED_LIST_HPP
#define PAWL_TIME_STRIPED_LIST_HPP

#include <pawl/time/timer_node.hpp>

#include <pawl/config.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>

namespace pawl::time::detail {

/// Asks for the cache line of `node`, or for both if it lies across two.
inline void prefetch(const timer_node* node) noexcept {
    if (node == nullptr)
        return;
    const char* const begin = reinterpret_cast<const char*>(node);
    pawl::detail::prefetch_to_write(begin);
    pawl::detail::prefetch_to_write(begin + sizeof(timer_node) - 1);
}

/// Makes `head` the pointer that points at `node`.
inline void link_front(timer_node*& head, timer_node& node) noexcept {
    node.next = head;
    node.link = &head;
    if (head != nullptr)
        head->link = &node.next;
    head = &node;
}

/// Takes `node` out of whatever list it is in.
inline void unlink(timer_node& node) noexcept {
    *node.link = node.next;
    if (node.next != nullptr)
        node.next->link = node.link;
    node.next = nullptr;
    node.link = nullptr;
}

/// The nodes of one slot.
class alignas(64) striped_list {
public:
    static constexpr std::uint32_t stripes = 22;

    [[nodiscard]] std::uint32_t count() const noexcept { return count_and_order_ / 2; }
    [[nodiscard]] bool empty() const noexcept { return count() == 0; }

    /// A lower bound of the sequences of the nodes. Precondition: !empty().
    [[nodiscard]] std::uint64_t least() const noexcept { return least_; }

    /// walk() comes to the nodes in the order of the sequences that they were pushed with, the
    /// smallest first. No is no answer: it may be so.
    [[nodiscard]] bool ascends() const noexcept { return count_and_order_ % 2 != 0; }

    /// Links an unfiled node. Precondition: count() < 2^31 - 1.
    void push(timer_node& node, std::uint64_t sequence) noexcept {
        assert(count() < ~std::uint32_t{0} / 2);
        if (empty()) {
            least_ = sequence;
            count_and_order_ = 3;
        } else if (sequence < least_) {
            least_ = sequence;
            count_and_order_ += 2;
        } else {
            count_and_order_ = (count_and_order_ | 1) + 1;
        }
        link_front(heads_[next_], node);
        next_ = next_ + 1 == stripes ? 0 : next_ + 1;
    }

    /// Unlinks a node that is here.
    void erase(timer_node& node) noexcept {
        unlink(node);
        count_and_order_ = (count_and_order_ | 1) - 3;
    }

    /// Pops up to `limit` nodes, newest first, and passes each to `sink(timer_node&)`. Its `link`
    /// is stale; the sink files it elsewhere or clears it, and does not touch this slot.
    template <class Sink>
    void walk(std::size_t limit, Sink&& sink) noexcept {
        const std::uint32_t taken = limit < count() ? static_cast<std::uint32_t>(limit) : count();
        if (taken > 1) {
            for (timer_node* head : heads_)
                prefetch(head);
        }
        std::uint32_t at = next_;
        for (std::uint32_t left = taken; left != 0;) {
            at = at == 0 ? stripes - 1 : at - 1;
            timer_node* const node = heads_[at];
            if (node == nullptr)
                continue;
            heads_[at] = node->next;
            prefetch(node->next);
            --left;
            sink(*node);
        }
        next_ = at;
        count_and_order_ -= 2 * taken;
        if (!empty())
            adopt();
    }

    /// Unlinks any node that is left, whatever count() says; nullptr if there is none.
    ///
    /// For a detached slot: the wheel does not see which slot a node that it erases there was in.
    [[nodiscard]] timer_node* pop() noexcept {
        for (std::uint32_t tried = 0; !empty() && tried != stripes; ++tried) {
            next_ = next_ == 0 ? stripes - 1 : next_ - 1;
            if (timer_node* const node = heads_[next_]) {
                prefetch(node->next);
                unlink(*node);
                return node;
            }
        }
        count_and_order_ = 0;
        return nullptr;
    }

    /// Takes over all nodes of `other`. Precondition: empty().
    void take(striped_list& other) noexcept {
        *this = other;
        other = striped_list{};
        adopt();
    }

    /// Some node; nullptr if there is none.
    [[nodiscard]] timer_node* any() const noexcept {
        for (timer_node* const head : heads_) {
            if (head != nullptr)
                return head;
        }
        return nullptr;
    }

    /// Calls `visit(const timer_node& node)` for every node, in the order in which walk() would
    /// come to them.
    template <class Visitor>
    void for_each_in_order(Visitor&& visit) const {
        striped_list rest = *this; // its heads alone are used
        for (std::uint32_t left = count(); left != 0;) {
            rest.next_ = rest.next_ == 0 ? stripes - 1 : rest.next_ - 1;
            if (timer_node* const node = rest.heads_[rest.next_]) {
                rest.heads_[rest.next_] = node->next;
                --left;
                visit(*node);
            }
        }
    }

    /// Calls `visit(const timer_node& node, timer_node* const& pointer_to_it)` for every node.
    template <class Visitor>
    void for_each(Visitor&& visit) const {
        for (timer_node* const& head : heads_) {
            for (timer_node* const* at = &head; *at != nullptr; at = &(*at)->next)
                visit(**at, *at);
        }
    }

private:
    void adopt() noexcept {
        for (timer_node*& head : heads_) {
            if (head != nullptr)
                head->link = &head;
        }
    }

    std::uint64_t least_ = 0;
    // Twice the count, and 1 while ascends(). In one word, since a store costs: timer_node.hpp.
    std::uint32_t count_and_order_ = 0;
    std::uint32_t next_ = 0; // the stripe that the next push goes to
    timer_node* heads_[stripes]{};
};

} // namespace pawl::time::detail

#endif
