// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The lists of a wheel. A wheel has many slots, few of which are usually occupied: an empty slot
///   has no list and costs two bytes.
///
/// Model
///   The pool lends lists to slots. A list is returned when its slot is empty. The pool grows by
///   parts, each a quarter of the largest power of two that is at most the current end of the
///   numbers, and never shrinks. A part never moves, since nodes point at the heads of lists. The
///   owner of the wheel allocates it, wherever it may. Taking a list cannot fail if there are as
///   many lists as slots that may be occupied.
///
/// Invariants
///   - Returned-list invariant: a list that is not lent is empty.
///   - One-slot invariant: each lent list belongs to one slot and has a node, except that of the
///     slot that is being walked.
///
/// Cost
///   192 bytes per list. take, put and add are O(1), without a search.
#ifndef PAWL_DETAIL_TIME_LIST_POOL_HPP
#define PAWL_DETAIL_TIME_LIST_POOL_HPP

#include <pawl/detail/time/node_list.hpp>
#include <pawl/time/timer_node.hpp>

#include <pawl/config.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pawl::time::detail {

// One slot of a wheel: an unordered collection of nodes. Nodes can be added, erased anywhere,
// and removed step by step, without a cache miss per removed node.
//
// Model
//   A million timers do not fit into the cache. Walking one list costs one miss per node, because
//   each address is known only once its predecessor has arrived. So a slot is several lists, the
//   stripes. Nodes are pushed round robin and popped in the reverse rotation; a pop prefetches the
//   next node of its stripe, one rotation before it is needed. Without erasures, nodes come out
//   exactly in the reverse order of pushing; with erasures, nearly: ascends() tells.
//
// Invariants
//   - Count invariant: count() is the number of nodes in all stripes.
//   - Head-link invariant: heads_[i] != nullptr implies heads_[i]->link == &heads_[i]. walk()
//     suspends this for its own slot, so that popping does not write to a node before it has
//     arrived.
//   - Least-sequence invariant: no node's sequence is less than least() (sequences of filed nodes
//     only grow).
//   - Ascending invariant: while ascends(), each node was pushed with a smaller sequence than the
//     nodes before it, and none was erased since the list was last empty.
//
// Cost
//   192 bytes, three cache lines, hence 22 stripes and not 24. That many cache misses overlap;
//   doc/design.md has the cost of more and fewer. Aligned to 64 also where pawl::detail::cache_line
//   is 128, which keeps threads apart: one lock guards all lists, and 128 would make them 256 bytes.

class alignas(64) striped_list {
public:
    static constexpr std::uint32_t stripes = 22;

    [[nodiscard]] std::uint32_t count() const noexcept { return count_and_order_ / 2; }
    [[nodiscard]] bool empty() const noexcept { return count() == 0; }

    /// A lower bound of the sequences of the nodes.
    /// @pre !empty()
    [[nodiscard]] std::uint64_t least() const noexcept { return least_; }

    /// A number that the pool keeps in an empty list.
    [[nodiscard]] std::uint64_t next_free() const noexcept { return least_; }
    void set_next_free(std::uint64_t number) noexcept {
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

    /// Calls `visit(const timer_node& node, timer_node* const& pointer_to_it)` for every node.
    template <class Visitor>
    void for_each(Visitor&& visit) const {
        for (timer_node* const& head : heads_) {
            for (timer_node* const* at = &head; *at; at = &(*at)->next)
                visit(**at, *at);
        }
    }

private:
    template <class>
    friend struct pawl::detail::invariant_of;

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

/// Lends the lists. See above.
class list_pool {
    // The first number; smaller ones have no part. There are four parts of 4 lists, four of 8, and
    // so on: the three highest bits of a number select its part.
    static constexpr std::uint32_t begin = 16;
    static constexpr std::uint32_t beyond = std::uint32_t{1} << 16;

public:
    /// The number of a list.
    using index = std::uint16_t;
    static constexpr index none = 0;

    /// The maximum number of lists.
    static constexpr std::uint32_t most = beyond - begin;

    /// Lists that are not in a pool yet.
    class part {
    public:
        /// @throws std::bad_alloc
        explicit part(std::size_t size) : lists_(new striped_list[size]), size_(size) {}
        part& operator=(part&&) = delete;
        ~part() { delete[] lists_; }

    private:
        friend class list_pool;
        striped_list* lists_;
        std::size_t size_;
    };

    list_pool& operator=(list_pool&&) = delete;
    ~list_pool() {
        for (striped_list* const p : parts_)
            delete[] p;
    }

    /// How many lists there are, lent or not.
    [[nodiscard]] std::uint32_t size() const noexcept { return end_ - begin; }

    /// The size that the next part must have.
    [[nodiscard]] std::size_t next_part() const noexcept {
        return std::size_t{1} << low_bits(end_);
    }

    /// Takes over a part, if it has that size.
    void add(part& p) noexcept {
        if (!p.lists_ || p.size_ != next_part() || end_ == beyond)
            return;
        parts_[part_of(end_)] = std::exchange(p.lists_, nullptr);
        end_ += static_cast<std::uint32_t>(p.size_);
    }

    /// Lends an empty list.
    /// @pre fewer than size() are lent
    [[nodiscard]] index take() noexcept {
        if (const index last = free_; last != none) {
            free_ = static_cast<index>((*this)[last].next_free());
            return last;
        }
        PAWL_ASSERT(unused_ != end_);
        return static_cast<index>(unused_++);
    }

    /// Takes back a list.
    /// @pre it is empty
    void put(index which) noexcept {
        PAWL_ASSERT((*this)[which].empty());
        (*this)[which].set_next_free(free_);
        free_ = which;
    }

    [[nodiscard]] striped_list& operator[](index which) const noexcept {
        const std::uint32_t number = which;
        return parts_[part_of(number)][number & ((std::uint32_t{1} << low_bits(number)) - 1)];
    }

private:
    template <class>
    friend struct pawl::detail::invariant_of;

    /// How many low bits of a number are the index within its part.
    static unsigned low_bits(std::uint32_t number) noexcept {
        return static_cast<unsigned>(std::bit_width(number)) - 3;
    }
    static std::size_t part_of(std::uint32_t number) noexcept {
        const unsigned low = low_bits(number);
        return (number >> low) + 4 * low - 12; // 0 for `begin`
    }

    striped_list* parts_[48]{};
    std::uint32_t end_ = begin;    ///< end of the numbers of lists
    std::uint32_t unused_ = begin; ///< from here on lists were never lent
    index free_ = none;            ///< the list returned last; it has the number of the one before
};

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_LIST_POOL_HPP
