// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// Purpose
//   Says which of 64 bins a key belongs to, and which bins are not empty: the arithmetic of a
//   binary wheel, without its nodes. What digit_slots is to hierarchical_wheel, in 32 bytes.
//
// Model
//   Seen from a position p, a key k > p is filed by the highest bit in which it differs from p.
//   That bit is 0 in p and 1 in k, hence one bin for each bit is enough.
//
//       p = 0b0101'0011                      p moves to 0b0101'1000, into bin 3:
//         k = 0b0101'1010 -> bin 3             k -> bin 1
//         k = 0b0110'0001 -> bin 5             k -> bin 5
//
// Invariants
//   G1  A bin holds smaller keys than the bins above it.
//   G2  If p moves up to q, and no occupied bin begins in (p, q], then every key's bin is the same
//       seen from q as seen from p.
//   G3  If p moves into a bin, the keys of that bin are filed below it, since they agree with p in
//       its bit and above. So no key is filed more often than it has bits; and a bin whose bit is
//       set in p gets no more keys.
//   G4  In the bins below `below`, which were empty when `below` was entered, no key is less than
//       `least`. So a crowd at one key does not go down bit by bit.

#ifndef PAWL_TIME_BIT_BINS_HPP
#define PAWL_TIME_BIT_BINS_HPP

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>

namespace pawl::time::detail {

struct bit_bins {
    static constexpr unsigned none = 64;
    static constexpr std::uint64_t most = ~std::uint64_t{0};

    std::uint64_t position = 0;
    std::uint64_t occupied = 0; ///< one bit for each bin
    std::uint64_t least = most;
    unsigned below = none;

    /// The bin of a key. Precondition: key > position.
    [[nodiscard]] unsigned bin_of(std::uint64_t key) const noexcept {
        assert(key > position);
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
    /// A key of the bin than which none that is in it is smaller.
    [[nodiscard]] std::uint64_t least_in(unsigned bin) const noexcept {
        return bin < below ? std::clamp(least, begin(bin), last(bin)) : begin(bin);
    }
    /// The occupied bin that the position is in; none.
    [[nodiscard]] unsigned entered() const noexcept {
        return static_cast<unsigned>(std::countr_zero(occupied & position));
    }

    /// Keeps G4: a key has come, or has become smaller.
    void note(std::uint64_t key) noexcept { least = std::min(least, key); }

    /// Moves the position into a bin. Precondition: all bins below are empty.
    void enter(unsigned bin, std::uint64_t key) noexcept {
        assert(begin(bin) <= key && key <= last(bin));
        assert((occupied & ((std::uint64_t{1} << bin) - 1)) == 0);
        position = key;
        least = most;
        below = bin;
    }

    /// Starts anew at any position. Precondition: all bins are empty.
    void restart(std::uint64_t key) noexcept {
        assert(occupied == 0);
        position = key;
        least = most;
        below = none;
    }
};

} // namespace pawl::time::detail

#endif
