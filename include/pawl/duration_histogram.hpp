// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::duration_histogram: a histogram of durations.
#ifndef PAWL_DURATION_HISTOGRAM_HPP
#define PAWL_DURATION_HISTOGRAM_HPP

#include <pawl/config.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace pawl {

/// A histogram of durations with log-linear buckets, as in HdrHistogram. Each power of two from
/// 1024 ns to 137 s is divided into four buckets, so the relative error is at most one fifth.
/// Shorter durations are in the first bucket, longer ones in the last.
///
/// @par Thread safety
/// A value type: use from one thread at a time.
class duration_histogram {
public:
    /// Number of buckets.
    static constexpr std::size_t size = 1 + 27 * 4;

    /// The bucket of a duration. A negative duration counts as zero. O(1)
    [[nodiscard]] static constexpr std::size_t bucket_of(std::chrono::nanoseconds d) noexcept {
        const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(d.count(), 0));
        if (ns < std::uint64_t{1} << least_power)
            return 0;
        const auto power = static_cast<unsigned>(std::bit_width(ns)) - 1;
        const auto quarter = static_cast<std::size_t>(ns >> (power - 2)) & 3;
        return std::min(1 + (power - least_power) * std::size_t{4} + quarter, size - 1);
    }
    /// The exclusive upper bound of bucket `i`; max() for the last bucket.
    [[nodiscard]] static constexpr std::chrono::nanoseconds end_of(std::size_t i) noexcept {
        if (i >= size - 1)
            return std::chrono::nanoseconds::max();
        // As if bucket 0 were the last quarter before 2^least_power.
        return std::chrono::nanoseconds(static_cast<std::int64_t>(5 + (i + 3) % 4)
                                        << (least_power - 3 + (i + 3) / 4));
    }

    /// Adds one duration.
    void add(std::chrono::nanoseconds d) noexcept {
        ++counts[bucket_of(d)];
        sum += std::max(d, std::chrono::nanoseconds::zero());
    }
    /// Adds the counts of another histogram.
    duration_histogram& operator+=(const duration_histogram& other) noexcept {
        for (std::size_t i = 0; i != size; ++i)
            counts[i] += other.counts[i];
        sum += other.sum;
        return *this;
    }

    /// The number of durations. O(size)
    [[nodiscard]] std::uint64_t count() const noexcept {
        std::uint64_t all = 0;
        for (const std::uint64_t c : counts)
            all += c;
        return all;
    }
    /// The upper bound of the bucket that contains the quantile `q`, at most a quarter too large.
    /// Zero if the histogram is empty. O(size)
    /// @param q 0 to 1; clamped to that range.
    [[nodiscard]] std::chrono::nanoseconds quantile(double q) const noexcept {
        const std::uint64_t all = count();
        if (all == 0)
            return {};
        const auto wanted = static_cast<std::uint64_t>(
            std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(all)));
        std::uint64_t seen = 0;
        std::size_t i = 0;
        while (i != size - 1 && (seen += counts[i]) < std::max(wanted, std::uint64_t{1}))
            ++i;
        return end_of(i);
    }

    std::array<std::uint64_t, size> counts{}; ///< by bucket
    std::chrono::nanoseconds sum{};           ///< of all durations

private:
    static constexpr unsigned least_power = 10;
};

} // namespace pawl

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

#endif // PAWL_DURATION_HISTOGRAM_HPP
