// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Maps a delay to its ring. A delay without a ring is an error with a clear text.
///
/// Threads
///   Immutable.
///
/// Cost
///   O(log n) for n rings.
#ifndef PAWL_SERVICE_RING_TABLE_HPP
#define PAWL_SERVICE_RING_TABLE_HPP

#include <pawl/options.hpp>

#include <pawl/time/duration_text.hpp>
#include <pawl/time/timeout_rings.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace pawl::detail {

class ring_table {
public:
    using nanoseconds = std::chrono::nanoseconds;

    explicit ring_table(const options& o)
        : rings_(o.rings.delays), tick_(o.precision), round_up_(o.rings.round_up) {
        std::ranges::sort(rings_, {}, &ring_options::ring::delay);
    }

    /// The shapes of the rings, shortest delay first.
    [[nodiscard]] std::vector<time::timeout_rings::shape> shapes() const {
        std::vector<time::timeout_rings::shape> all;
        for (const auto& r : rings_) {
            // Rounded up: no ring has a delay of 0 ticks.
            const auto ticks = r.delay / tick_ + (r.delay % tick_ != nanoseconds::zero());
            all.push_back({static_cast<std::uint64_t>(ticks), r.capacity});
        }
        return all;
    }

    /// The ring with the shortest delay that is not less than `d`.
    /// @pre there is one.
    [[nodiscard]] unsigned ring_for(nanoseconds d) const {
        const auto r = std::ranges::lower_bound(rings_, d, {}, &ring_options::ring::delay);
        PAWL_ASSERT(r != rings_.end());
        return static_cast<unsigned>(r - rings_.begin());
    }

    /// @throws std::invalid_argument that lists the configured delays, if no ring serves `d`. A
    ///         delay that has passed needs no ring.
    void require(nanoseconds d) const {
        if (d <= nanoseconds::zero())
            return;
        const auto r = std::ranges::lower_bound(rings_, d, {}, &ring_options::ring::delay);
        if (r == rings_.end() || (r->delay != d && !round_up_))
            refuse(time::detail::text_of(d));
    }

    /// @throws std::invalid_argument as require(), if no ring is long enough.
    void require_longest(nanoseconds d) const {
        if (d > nanoseconds::zero() && (rings_.empty() || rings_.back().delay < d))
            refuse(time::detail::text_of(d));
    }

    /// @throws std::invalid_argument as require(), if no ring serves a delay within `min` .. `max`.
    /// @return the longest delay that a ring serves; `max` if that has passed.
    [[nodiscard]] nanoseconds within(nanoseconds min, nanoseconds max) const {
        if (max <= nanoseconds::zero())
            return max;
        const auto after = std::ranges::upper_bound(rings_, max, {}, &ring_options::ring::delay);
        if (after != rings_.begin() && std::prev(after)->delay >= min)
            return std::prev(after)->delay;
        if (min <= nanoseconds::zero())
            return nanoseconds::zero();
        if (after != rings_.end() && round_up_)
            return max;
        refuse(time::detail::text_of(min) + " .. " + time::detail::text_of(max));
    }

private:
    [[noreturn]] void refuse(const std::string& delay) const {
        std::string text = "pawl: no ring for a delay of " + delay + "; ";
        if (rings_.empty()) {
            text += "none is configured: call make_timer_service<ring_timer>() with "
                    "options::rings.delays first";
        } else {
            text += "options::rings.delays has ";
            for (const auto& r : rings_)
                text += (&r == &rings_.front() ? "" : ", ") + time::detail::text_of(r.delay);
            if (!round_up_)
                text += ", and options::rings.round_up is false";
        }
        throw std::invalid_argument(text);
    }

    std::vector<ring_options::ring> rings_;
    nanoseconds tick_;
    bool round_up_;
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_RING_TABLE_HPP
