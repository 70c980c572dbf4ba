// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::duration_histogram: durations, counted in buckets.
#ifndef PAWL_WATCH_HISTOGRAM_HPP
#define PAWL_WATCH_HISTOGRAM_HPP

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

/// How many durations lay in which range. The buckets are log-linear, as in HdrHistogram: each power of two
/// of nanoseconds from 1024 ns to 137 s is divided into four, so that a value is known to a fifth. What is
/// shorter is in the first bucket, and what is longer in the last one.
class duration_histogram {
public:
    /// Number of buckets.
    static constexpr std::size_t size = 1 + 27 * 4;

    /// The bucket of a duration. A negative one counts as zero. O(1)
    [[nodiscard]] static constexpr std::size_t bucket_of(std::chrono::nanoseconds d) noexcept {
        const auto ns = static_cast<std::uint64_t>(std::max(d.count(), std::int64_t{0}));
        if (ns < std::uint64_t{1} << least_power)
            return 0;
        const auto power = static_cast<unsigned>(std::bit_width(ns)) - 1;
        const auto quarter = static_cast<std::size_t>(ns >> (power - 2)) & 3;
        return std::min(1 + (power - least_power) * std::size_t{4} + quarter, size - 1);
    }
    /// The first duration that is too long for bucket `i`; max() for the last one.
    [[nodiscard]] static constexpr std::chrono::nanoseconds end_of(std::size_t i) noexcept {
        if (i == 0)
            return std::chrono::nanoseconds(std::int64_t{1} << least_power);
        if (i >= size - 1)
            return std::chrono::nanoseconds::max();
        const auto power = least_power + (i - 1) / 4;
        return std::chrono::nanoseconds(static_cast<std::int64_t>(4 + (i - 1) % 4 + 1)
                                        << (power - 2));
    }

    /// Adds one.
    void add(std::chrono::nanoseconds d) noexcept {
        ++counts[bucket_of(d)];
        sum += std::max(d, std::chrono::nanoseconds::zero());
    }
    /// Adds all of another one.
    duration_histogram& operator+=(const duration_histogram& other) noexcept {
        for (std::size_t i = 0; i != size; ++i)
            counts[i] += other.counts[i];
        sum += other.sum;
        return *this;
    }

    /// How many durations there are. O(size)
    [[nodiscard]] std::uint64_t count() const noexcept {
        std::uint64_t all = 0;
        for (const std::uint64_t c : counts)
            all += c;
        return all;
    }
    /// A duration than which at least a share `q` of all are not longer: the end of the bucket in which
    /// that quantile lies, and so at most a quarter too long. Zero if there are none. O(size)
    /// @param q 0 to 1; what is beyond is taken as that.
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

namespace detail {

/// A histogram that several threads add to while others read it.
class live_histogram {
public:
    // relaxed: each count stands for itself.
    void add(std::chrono::nanoseconds d) noexcept {
        counts_[duration_histogram::bucket_of(d)].fetch_add(1, std::memory_order_relaxed);
        sum_.fetch_add(std::max(d.count(), std::int64_t{0}), std::memory_order_relaxed);
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

} // namespace detail
} // namespace pawl

#endif // PAWL_WATCH_HISTOGRAM_HPP
