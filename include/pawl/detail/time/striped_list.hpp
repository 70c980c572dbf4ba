// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   One slot of a wheel: an unordered collection of nodes. Nodes can be added, erased anywhere,
///   and removed step by step, without a cache miss per removed node.
///
/// Model
///   A million timers do not fit into the cache. Walking one list costs one miss per node, because
///   each address is known only once its predecessor has arrived. So a slot is several lists, the
///   stripes. Nodes are pushed round robin and popped in the reverse rotation; a pop prefetches the
///   next node of its stripe, one rotation before it is needed. Without erasures, nodes come out
///   exactly in the reverse order of pushing; with erasures, nearly: ascends() tells.
///
/// Invariants
///   - Count invariant: count() is the number of nodes in all stripes.
///   - Head-link invariant: heads_[i] != nullptr implies heads_[i]->link == &heads_[i]. walk()
///     suspends this for its own slot, so that popping does not write to a node before it has
///     arrived.
///   - Least-sequence invariant: no node's sequence is less than least() (sequences of filed nodes
///     only grow).
///   - Ascending invariant: while ascends(), each node was pushed with a smaller sequence than the
///     nodes before it, and none was erased since the list was last empty.
///
/// Cost
///   192 bytes, three cache lines, hence 22 stripes and not 24. That many cache misses overlap;
///   doc/design.md has the cost of more and fewer.
#ifndef PAWL_DETAIL_TIME_STRIPED_LIST_HPP
#define PAWL_DETAIL_TIME_STRIPED_LIST_HPP

#include <pawl/detail/time/node_list.hpp>
#include <pawl/time/timer_node.hpp>

#include <pawl/config.hpp>

#include <cstddef>
#include <cstdint>

namespace pawl::time::detail {

/// The nodes of one slot.
class alignas(64) striped_list {
public:
    static constexpr std::uint32_t stripes = 22;

    [[nodiscard]] std::uint32_t count() const noexcept { return count_and_order_ / 2; }
    [[nodiscard]] bool empty() const noexcept { return count() == 0; }

    /// A lower bound of the sequences of the nodes.
    /// @pre !empty()
    [[nodiscard]] std::uint64_t least() const noexcept { return least_; }

    /// A number that the owner keeps in an empty list.
    [[nodiscard]] std::uint64_t mark() const noexcept { return least_; }
    void set_mark(std::uint64_t number) noexcept {
        PAWL_ASSERT(empty());
        least_ = number;
    }

    /// Whether walk() visits the nodes in ascending order of the sequences with which they were
    /// pushed. May return false negatives.
    [[nodiscard]] bool ascends() const noexcept { return count_and_order_ % 2 != 0; }

    /// Links an unfiled node.
    /// @pre count() < 2^31 - 1
    void push(timer_node& node, std::uint64_t sequence) noexcept {
        PAWL_ASSERT(count() < ~std::uint32_t{0} / 2);
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
    /// is stale: the sink must file the node elsewhere or clear `link`, and must not access this
    /// slot.
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
            if (!node)
                continue;
            heads_[at] = node->next;
            prefetch(node->next);
            --left;
            sink(*node);
        }
        next_ = at;
        count_and_order_ -= 2 * taken;
        PAWL_ASSERT(empty() == !any());
        if (!empty())
            adopt();
    }

    /// Unlinks a node, newest first; nullptr if there is none.
    ///
    /// If nodes were removed without erase(), as from detached lists, count() is too high until
    /// this returns nullptr.
    [[nodiscard]] timer_node* pop() noexcept {
        for (std::uint32_t tried = 0; !empty() && tried != stripes; ++tried) {
            next_ = next_ == 0 ? stripes - 1 : next_ - 1;
            if (timer_node* const node = heads_[next_]) {
                prefetch(node->next);
                unlink(*node);
                count_and_order_ -= 2;
                return node;
            }
        }
        count_and_order_ = 0;
        return nullptr;
    }

    /// Takes over all nodes of `other`.
    /// @pre empty()
    void take(striped_list& other) noexcept {
        *this = other;
        other = striped_list{};
        adopt();
    }

    /// Some node; nullptr if there is none.
    [[nodiscard]] timer_node* any() const noexcept {
        for (timer_node* const head : heads_) {
            if (head)
                return head;
        }
        return nullptr;
    }

    /// Calls `visit(const timer_node& node)` for every node, in the order of walk().
    template <class Visitor>
    void for_each_in_order(Visitor&& visit) const {
        striped_list rest = *this; // only its heads are used
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
            for (timer_node* const* at = &head; *at; at = &(*at)->next)
                visit(**at, *at);
        }
    }

private:
    void adopt() noexcept {
        for (timer_node*& head : heads_) {
            if (head)
                head->link = &head;
        }
    }

    std::uint64_t least_ = 0;
    // Twice the count, plus 1 while ascends(). One word, because a store is expensive: see
    // timer_node.hpp.
    std::uint32_t count_and_order_ = 0;
    std::uint32_t next_ = 0; ///< the stripe that the next push goes to
    timer_node* heads_[stripes]{};
};

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_STRIPED_LIST_HPP
