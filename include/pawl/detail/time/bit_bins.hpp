// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Maps keys to 64 bins, and knows which bins are occupied: the arithmetic of a binary wheel,
///   without its nodes. The counterpart of digit_slots for hierarchical_wheel, in 32 bytes.
///
/// Model
///   Seen from a position p, a key k > p is filed by the highest bit in which it differs from p.
///   That bit is 0 in p and 1 in k, so one bin per bit is enough.
///
///       p = 0b0101'0011                      p moves to 0b0101'1000, into bin 3:
///         k = 0b0101'1010 -> bin 3             k -> bin 1
///         k = 0b0110'0001 -> bin 5             k -> bin 5
///
/// Invariants
///   - Ascending-bins invariant: a bin holds smaller keys than the bins above it.
///   - Stable-bin invariant: if p moves up to q, and no occupied bin begins in (p, q], then every
///     key has the same bin seen from q as from p.
///   - Descending-key invariant: if p moves into a bin, the keys of that bin are filed below it,
///     since they agree with p in its bit and above. So a key is filed at most once per bit, and a
///     bin whose bit is set in p receives no more keys.
///   - Least-key invariant: the bins below `below`, which were empty when `below` was entered, hold
///     no key smaller than `least`. So a crowd at one key does not descend bit by bit.
#ifndef PAWL_DETAIL_TIME_BIT_BINS_HPP
#define PAWL_DETAIL_TIME_BIT_BINS_HPP

#include <pawl/config.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace pawl::time::detail {

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

#endif // PAWL_DETAIL_TIME_BIT_BINS_HPP
