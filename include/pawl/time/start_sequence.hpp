// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Numbers the starts of nodes, so that nodes of one tick are handed out in start order.
///
/// Invariants
///   - Sequence invariant: a sequence is the number of a start, and does not wrap around. A node
///     keeps its low 44 bits, which are unambiguous for the last 2^44 starts. The sequences of
///     filed nodes only grow.
///
/// Cost
///   8 bytes. All calls are O(1), and read no other node.
#ifndef PAWL_TIME_START_SEQUENCE_HPP
#define PAWL_TIME_START_SEQUENCE_HPP

#include <pawl/time/timer_node.hpp>

#include <cstdint>

namespace pawl::time::detail {

struct start_sequence {
    static constexpr std::uint64_t order_mask = (std::uint64_t{1} << timer_node::order_bits) - 1;

    std::uint64_t next = order_mask + 1; ///< never less: sequence invariant

    /// The full sequence of a node.
    [[nodiscard]] std::uint64_t of(const timer_node& node) const noexcept {
        return next - ((next - node.order()) & order_mask);
    }
    /// Whether `a` was started before `b`.
    [[nodiscard]] bool before(const timer_node& a, const timer_node& b) const noexcept {
        return of(a) < of(b);
    }
};

} // namespace pawl::time::detail

#endif // PAWL_TIME_START_SEQUENCE_HPP
