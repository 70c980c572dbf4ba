// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The histogram that shards add to while statistics read it.

#ifndef PAWL_DETAIL_WATCH_HISTOGRAM_HPP
#define PAWL_DETAIL_WATCH_HISTOGRAM_HPP

#include <pawl/duration_histogram.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace pawl::detail {

/// A histogram that several threads write while others read it.
class live_histogram {
public:
    // relaxed: the counts are independent of each other.
    void add(std::chrono::nanoseconds d) noexcept {
        counts_[duration_histogram::bucket_of(d)].fetch_add(1, std::memory_order_relaxed);
        sum_.fetch_add(std::max<std::int64_t>(d.count(), 0), std::memory_order_relaxed);
    }
    void add_to(duration_histogram& h) const noexcept {
        for (std::size_t i = 0; i != h.size; ++i)
            h.counts[i] += counts_[i].load(std::memory_order_relaxed);
        h.sum += std::chrono::nanoseconds(sum_.load(std::memory_order_relaxed));
    }

private:
    std::array<std::atomic<std::uint64_t>, duration_histogram::size> counts_{};
    std::atomic<std::int64_t> sum_{0};
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_WATCH_HISTOGRAM_HPP
