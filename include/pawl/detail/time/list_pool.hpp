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

#include <pawl/detail/time/striped_list.hpp>

#include <pawl/config.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pawl::time::detail {

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
            free_ = static_cast<index>((*this)[last].mark());
            return last;
        }
        PAWL_ASSERT(unused_ != end_);
        return static_cast<index>(unused_++);
    }

    /// Takes back a list.
    /// @pre it is empty
    void put(index which) noexcept {
        PAWL_ASSERT((*this)[which].empty());
        (*this)[which].set_mark(free_);
        free_ = which;
    }

    [[nodiscard]] striped_list& operator[](index which) const noexcept {
        const std::uint32_t number = which;
        return parts_[part_of(number)][number & ((std::uint32_t{1} << low_bits(number)) - 1)];
    }

    /// How many are lent. O(size())
    [[nodiscard]] std::uint32_t lent() const noexcept {
        std::uint32_t count = unused_ - begin;
        for (index i = free_; i != none; i = static_cast<index>((*this)[i].mark()))
            --count;
        return count;
    }

private:
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
    index free_ = none;            ///< the list returned last; its mark is the one before
};

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_LIST_POOL_HPP
