// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   timeout_rings as a backend that takes any tick, so that the suite for backends can test rings
//   as well.
//
// Model
//   Rings with the delays 1, r, r^2, ... A node that is due d ticks after the position is filed in
//   the ring with the shortest delay that is not less than d, as in a service that rounds up. The
//   position serves as the clock. A ring starts with a single slot, and grows whenever it is full.
//
//   A node that is filed at the position t joins a period that begins at t + delay at the latest,
//   since no node of that ring is due later. So it is handed out before t + delay + period.
//
//   There is no any(), refile() and rewind(). No node can be due never.

#ifndef PAWL_TEST_SUPPORT_RINGS_BACKEND_HPP
#define PAWL_TEST_SUPPORT_RINGS_BACKEND_HPP

#include "invariants.hpp"

#include <pawl/detail/time/timeout_rings.hpp>
#include <pawl/time/backend.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace pawl_test {

class rings_backend {
    using tick = pawl::time::tick;
    using timer_node = pawl::time::timer_node;
    using rings = pawl::time::timeout_rings;

public:
    struct shape {
        unsigned ratio_bits; ///< each delay is 2^ratio_bits times the one before
        unsigned marks;
    };

    class detached {
    public:
        explicit detached(const rings_backend& from) : nodes_(from.rings_) {}

        [[nodiscard]] timer_node* pop() {
            timer_node* node = nullptr;
            for (int places = 0; nodes_.pop(node) && node == nullptr; ++places) // cancelled ones
                if (places == 100'000)
                    throw std::logic_error("rings_backend: pop() comes to no end");
            return node;
        }

    private:
        friend class rings_backend;
        rings::detached nodes_;
    };

    /// The maximum distance of a due tick from the position: more than a day of milliseconds.
    static constexpr std::uint64_t longest = std::uint64_t{1} << 28;

    rings_backend(const shape& s, tick now)
        : shapes_(shapes_of(s)), marks_(s.marks), rings_(shapes_, marks_, now) {}

    [[nodiscard]] tick now() const noexcept { return rings_.now(); }
    [[nodiscard]] std::size_t size() const noexcept { return rings_.size(); }
    [[nodiscard]] bool empty() const noexcept { return rings_.empty(); }
    [[nodiscard]] tick next_wake() const noexcept { return rings_.next_wake(); }
    void invariant() const { pawl_test::check_invariant(rings_); }

    void insert(timer_node& node, tick due) { rings_.insert(node, with_room(node, due)); }
    void erase(timer_node& node) noexcept { rings_.erase(node); }
    void rearm(timer_node& node, tick due) { rings_.rearm(node, with_room(node, due)); }
    void move_node(timer_node& from, timer_node& to) noexcept { rings_.move_node(from, to); }
    pawl::time::expire_result expire(tick now, std::span<timer_node*> out) noexcept {
        return rings_.expire(now, out);
    }
    void detach_all(detached& set) noexcept { rings_.detach_all(set.nodes_); }

    /// The last tick in which a node that is filed at the position can be handed out.
    [[nodiscard]] tick latest(tick due) const {
        if (due <= now())
            return now();
        const std::uint64_t delay = shapes_[ring_for(due)].delay;
        // Rounded up, minus one.
        return tick{now().count() + delay + (delay - 1) / marks_};
    }

private:
    rings::deadline with_room(const timer_node& node, tick due) {
        const rings::deadline where{due, due <= now() ? rings::deadline::overdue : ring_for(due)};
        if (!rings_.has_room(node, where)) {
            rings::room_part part(rings_.next_room_part(where));
            rings_.add_room(where, part);
            if (!rings_.has_room(node, where))
                throw std::logic_error("rings_backend: grown, but full");
        }
        return where;
    }

    static std::vector<rings::shape> shapes_of(const shape& s) {
        std::vector<rings::shape> all;
        for (std::uint64_t delay = 1; delay <= longest; delay <<= s.ratio_bits)
            all.push_back({delay, 1});
        return all;
    }

    [[nodiscard]] unsigned ring_for(tick due) const {
        const std::uint64_t ahead = due.count() - std::min(due, now()).count();
        const auto found = std::ranges::lower_bound(shapes_, ahead, {}, &rings::shape::delay);
        if (found == shapes_.end())
            throw std::logic_error("rings_backend: no ring is that long");
        return static_cast<unsigned>(found - shapes_.begin());
    }

    std::vector<rings::shape> shapes_;
    unsigned marks_;
    rings rings_;
};

} // namespace pawl_test

#endif
