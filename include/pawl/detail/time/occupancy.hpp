// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The set of occupied slots; finds the first one.
///
/// Model
///   A bitmap, and a second bitmap of its non-zero words.
///
/// Cost
///   Up to 4096 slots: two counts of trailing zeros to find the first. Beyond that, one more test
///   per 4096 slots.
#ifndef PAWL_DETAIL_TIME_OCCUPANCY_HPP
#define PAWL_DETAIL_TIME_OCCUPANCY_HPP

#include <pawl/detail/time/fixed_array.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace pawl::time::detail {

class occupancy {
public:
    /// Returned if there is no such slot.
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    explicit occupancy(std::uint32_t slots)
        : words_(slots / 64 + 1), summary_(words_.size() / 64 + 1) {}

    void set(std::uint32_t slot) noexcept {
        const std::size_t word = slot / 64;
        words_[word] |= bit(slot);
        summary_[word / 64] |= bit(word);
    }

    void reset(std::uint32_t slot) noexcept {
        const std::size_t word = slot / 64;
        words_[word] &= ~bit(slot);
        if (words_[word] == 0)
            summary_[word / 64] &= ~bit(word);
    }

    /// @pre same number of slots
    void swap(occupancy& other) noexcept {
        words_.swap(other.words_);
        summary_.swap(other.summary_);
    }

    /// The first slot of the set; none if it is empty.
    [[nodiscard]] std::uint32_t first() const noexcept {
        for (std::size_t i = 0; i != summary_.size(); ++i) {
            if (summary_[i] != 0)
                return first_in(i * 64 + trailing_zeros(summary_[i]));
        }
        return none;
    }

    /// The first slot of the set greater than `slot`; none if there is none.
    [[nodiscard]] std::uint32_t after(std::uint32_t slot) const noexcept {
        const std::size_t word = slot / 64;
        if (const std::uint64_t rest = words_[word] & above(slot))
            return static_cast<std::uint32_t>(word * 64 + trailing_zeros(rest));
        std::uint64_t rest = summary_[word / 64] & above(word);
        for (std::size_t i = word / 64;; rest = summary_[i]) {
            if (rest != 0)
                return first_in(i * 64 + trailing_zeros(rest));
            if (++i == summary_.size())
                return none;
        }
    }

private:
    static constexpr std::uint64_t bit(std::size_t index) noexcept {
        return std::uint64_t{1} << (index % 64);
    }
    static constexpr std::uint64_t above(std::size_t index) noexcept {
        return ~std::uint64_t{1} << (index % 64);
    }
    static std::size_t trailing_zeros(std::uint64_t word) noexcept {
        return static_cast<std::size_t>(std::countr_zero(word));
    }
    std::uint32_t first_in(std::size_t word) const noexcept {
        return static_cast<std::uint32_t>(word * 64 + trailing_zeros(words_[word]));
    }

    fixed_array<std::uint64_t> words_;
    fixed_array<std::uint64_t> summary_;
};

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_OCCUPANCY_HPP
