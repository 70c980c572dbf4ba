// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Tells the nodes of a wheel from those of sets that were detached from it. detach_all() leaves
///   the present epoch to the set and moves on to an unused one. A node names the epoch in which it
///   was filed, so no node is visited.
///
/// Invariants
///   - Unused-epoch invariant: an epoch is used by the wheel, or by one set until that is empty. So
///     a node is in the wheel if and only if it names the present epoch.
///
/// Cost
///   16 bytes. All calls are O(1).
#ifndef PAWL_DETAIL_TIME_EPOCHS_HPP
#define PAWL_DETAIL_TIME_EPOCHS_HPP

#include <bit>
#include <cstdint>

namespace pawl::time::detail {

class epochs {
public:
    /// The maximum number of epochs: bits of used_.
    static constexpr std::uint32_t most = 64;

    /// The epoch of the wheel.
    [[nodiscard]] std::uint32_t present() const noexcept { return present_; }
    /// How many epochs the wheel and its sets use.
    [[nodiscard]] std::uint32_t used() const noexcept {
        return static_cast<std::uint32_t>(std::popcount(used_));
    }

    /// Leaves the present epoch to a set, and moves on to an unused one of the first `count`.
    /// @return the argument for give_back(); 0 if no epoch is unused, and nothing has changed.
    [[nodiscard]] std::uint64_t move_on(std::uint32_t count) noexcept {
        const auto unused = static_cast<std::uint32_t>(std::countr_one(used_));
        if (unused >= count)
            return 0;
        const std::uint64_t left = std::uint64_t{1} << present_;
        used_ |= std::uint64_t{1} << unused;
        present_ = unused;
        return left;
    }

    /// The set that has this epoch is empty.
    void give_back(std::uint64_t epoch) noexcept { used_ &= ~epoch; }

private:
    std::uint64_t used_ = 1; ///< one bit each
    std::uint32_t present_ = 0;
};

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_EPOCHS_HPP
