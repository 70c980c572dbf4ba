// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::time::geometry: the arithmetic of a wheel, without the wheel. Cuts a key into digits, and
/// maps it to a slot. A key is a tick, or any other number that is processed in ascending order.
///
/// Model
///   The bits of a key are cut into digits; the lowest digit is level 0. A level of b bits has 2^b
///   slots. Seen from a position p, a key k >= p is filed by the highest digit in which it differs
///   from p: the level of that digit, the slot of its value. k == p is filed at level 0.
///
///       bits {4,4,4}, p = 0x123         level 2        level 1        level 0
///         k = 0x123 -> level 0 slot 3    p.:1           p.:2           p.:3
///         k = 0x12b -> level 0 slot b                                 k: b
///         k = 0x1f0 -> level 1 slot f                   k: f
///         k = 0x900 -> level 2 slot 9    k: 9
///
///   The textbook chooses the lowest level whose reach covers k - p. Its levels overlap: a timer
///   that was started early may wait in level 1 while a later one for the same tick goes to level 0
///   and overtakes it. Here equal keys are always in the same slot.
///
/// Invariants
///   - Ascending-slots invariant: slots are numbered level by level. Seen from p, the used slots
///     are p's own slot of level 0 and slots with a digit above p's; their numbers ascend with
///     their keys. So the lowest occupied number holds the smallest key.
///   - Stable-slot invariant: if p moves up to q, and no used slot begins in (p, q], then every key
///     has the same slot seen from q as from p.
///
/// Cost
///   A look-up is one count of leading zeros and one 8-byte load.
#ifndef PAWL_TIME_GEOMETRY_HPP
#define PAWL_TIME_GEOMETRY_HPP

#include <pawl/config.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>

namespace pawl::time {

namespace detail {

// Not constexpr: in a constant expression the compiler's diagnostic then names it.
[[noreturn]] inline void bad_geometry(const std::string& what) {
    throw std::invalid_argument("pawl: level_bits: " + what);
}

} // namespace detail

/// How a key is cut into levels, and where each key belongs.
class geometry {
public:
    /// The fewest bits a level may have.
    static constexpr int least_bits = 1;
    /// The most bits a level may have.
    static constexpr int most_bits = 12;
    /// The most levels there can be: one for each bit of a key.
    static constexpr std::size_t most_levels = 64;

    /// Eleven levels of 6 bits.
    constexpr geometry() : geometry({6}) {}

    /// Levels of the given bits, lowest first.
    ///
    /// The last number is repeated until `width` bits are covered; the top level is trimmed to the
    /// rest.
    ///
    /// Put the numbers in parentheses if a width follows: `geometry({6}, 44)`.
    ///
    /// @param bits_per_level At least one number, each 1 .. 12; each level must get a bit.
    /// @param width Bits of a key, 1 .. 64.
    /// @throws std::invalid_argument naming the option and its range. In a constant expression: a
    ///         compile error.
    constexpr geometry(std::initializer_list<int> bits_per_level, int width = 64)
        : geometry(bits_per_level.begin(), bits_per_level.size(), width) {}

    /// @copydoc geometry(std::initializer_list<int>, int)
    /// @tparam Bits A contiguous range of `int`.
    template <class Bits>
        requires requires(const Bits& b) {
            { std::data(b) } -> std::convertible_to<const int*>;
            std::size(b);
        }
    explicit constexpr geometry(const Bits& bits_per_level, int width = 64)
        : geometry(std::data(bits_per_level), std::size(bits_per_level), width) {}

    /// Bits of a key.
    [[nodiscard]] constexpr int width() const noexcept { return width_; }
    /// Number of levels.
    [[nodiscard]] constexpr std::size_t levels() const noexcept { return levels_; }
    /// Number of slots of all levels together.
    [[nodiscard]] constexpr std::uint32_t slots() const noexcept { return first_[levels_]; }
    /// Number of slots of one level.
    [[nodiscard]] constexpr std::uint32_t slots(std::size_t level) const noexcept {
        return std::uint32_t{first_[level + 1]} - first_[level];
    }
    /// How many keys share a slot of a level, as a power of two.
    [[nodiscard]] constexpr int shift(std::size_t level) const noexcept { return shift_[level]; }

    /// The slot of `key` seen from `position`.
    /// @pre position <= key < 2^width()
    [[nodiscard]] constexpr std::uint32_t slot(std::uint64_t key,
                                               std::uint64_t position) const noexcept {
        const digit d = digit_at(key ^ position);
        return d.first + (static_cast<std::uint32_t>(key >> d.shift) & d.mask);
    }

    /// The level of a slot.
    [[nodiscard]] constexpr std::size_t level_of(std::uint32_t slot) const noexcept {
        std::size_t level = 0;
        while (slot >= first_[level + 1])
            ++level;
        return level;
    }

    /// The smallest key of `slot` seen from `position`.
    [[nodiscard]] constexpr std::uint64_t begin(std::uint32_t slot,
                                                std::uint64_t position) const noexcept {
        const std::size_t level = level_of(slot);
        const std::uint64_t reach = low_bits(shift_[level + 1]);
        return (position & ~reach) | (std::uint64_t{slot - first_[level]} << shift_[level]);
    }

    /// The largest key of `slot` seen from `position`.
    [[nodiscard]] constexpr std::uint64_t last(std::uint32_t slot,
                                               std::uint64_t position) const noexcept {
        return begin(slot, position) | low_bits(shift_[level_of(slot)]);
    }

private:
    constexpr geometry(const int* bits_per_level, std::size_t count, int width) : width_(width) {
        if (width < 1 || width > 64)
            detail::bad_geometry("a key has " + std::to_string(width) +
                                 " bits, allowed are 1 to 64");
        if (count == 0)
            detail::bad_geometry("no level, at least 1 is needed");
        for (std::size_t i = 0; i < count; ++i) {
            const int bits = bits_per_level[i];
            if (bits < least_bits || bits > most_bits) {
                detail::bad_geometry("a level has " + std::to_string(bits) + " bits, allowed are " +
                                     std::to_string(least_bits) + " to " +
                                     std::to_string(most_bits));
            }
        }
        int shift = 0;
        for (std::size_t i = 0; shift < width; ++i) {
            const int wanted = i < count ? bits_per_level[i] : bits_per_level[count - 1];
            const int bits = wanted < width - shift ? wanted : width - shift;
            PAWL_ASSERT(bits > 0);
            add_level(shift, bits);
            shift += bits;
        }
        if (levels_ < count) {
            detail::bad_geometry(std::to_string(count) + " levels, but the first " +
                                 std::to_string(levels_) + " cover the allowed " +
                                 std::to_string(width) + " bits");
        }
    }

    struct digit {
        std::uint32_t first; // number of the first slot of its level
        std::uint16_t mask;  // its largest value
        std::uint8_t shift;  // its lowest bit
    };

    static constexpr std::uint64_t low_bits(int count) noexcept {
        return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    }

    /// The digit with the highest bit of `difference`; the lowest digit if that is 0.
    constexpr digit digit_at(std::uint64_t difference) const noexcept {
        return digit_of_bit_[static_cast<std::size_t>(63 - std::countl_zero(difference | 1))];
    }

    constexpr void add_level(int shift, int bits) {
        const digit d{first_[levels_], static_cast<std::uint16_t>((1U << bits) - 1),
                      static_cast<std::uint8_t>(shift)};
        for (int bit = shift; bit != shift + bits; ++bit)
            digit_of_bit_[static_cast<std::size_t>(bit)] = d;
        first_[levels_ + 1] =
            static_cast<std::uint16_t>(first_[levels_] + (1U << bits)); // 20496 at most
        shift_[levels_] = static_cast<std::uint8_t>(shift);
        shift_[levels_ + 1] = static_cast<std::uint8_t>(shift + bits);
        ++levels_;
    }

    // Plain arrays: std::array would be one more class to compile in every program.
    digit digit_of_bit_[64]{};
    std::uint16_t first_[most_levels + 1]{};
    std::uint8_t shift_[most_levels + 1]{};
    std::size_t levels_ = 0;
    int width_ = 64;
};

} // namespace pawl::time

#endif // PAWL_TIME_GEOMETRY_HPP
