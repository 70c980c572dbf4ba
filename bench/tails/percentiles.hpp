// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Percentiles of latencies. Every sample is kept, and they are sorted at the end: a tail is not
///   rounded by buckets.
///
/// Model
///   Events come at a fixed rate, even if the one before is not finished, and a latency counts from
///   the scheduled time of its event. If the measuring thread waited for each event before it
///   started the next, a stall would delay the events that it should have hit, and appear as one
///   bad sample (coordinated omission).
#ifndef PAWL_BENCH_TAILS_PERCENTILES_HPP
#define PAWL_BENCH_TAILS_PERCENTILES_HPP

#include "../harness.hpp"
#include "../libraries.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench::tails {

/// Times at equal distances.
class schedule {
public:
    schedule(clock::time_point begin, double per_second)
        : begin_(begin), period_(1e9 / per_second) {}

    [[nodiscard]] clock::time_point at(std::size_t n) const {
        return begin_ + std::chrono::nanoseconds(std::llround(period_ * static_cast<double>(n)));
    }

private:
    clock::time_point begin_;
    double period_; // in nanoseconds
};

/// Spins, because waking from sleep would be measured as well.
inline void spin_until(clock::time_point t) {
    while (clock::now() < t) {
    }
}

/// The scheduled time of an event, and how much later it was done.
struct latency {
    clock::time_point intended;
    clock::duration value;
};

/// In microseconds.
inline double in_us(clock::duration d) {
    return std::chrono::duration<double, std::micro>(d).count();
}

class percentiles {
public:
    explicit percentiles(std::vector<double> samples) : sorted_(std::move(samples)) {
        if (sorted_.empty())
            throw std::runtime_error("no sample: the time was too short");
        std::sort(sorted_.begin(), sorted_.end());
    }

    /// Of the events scheduled in [first, last).
    static percentiles between(const std::vector<latency>& all, clock::time_point first,
                               clock::time_point last) {
        std::vector<double> samples;
        for (const auto& each : all)
            if (each.intended >= first && each.intended < last)
                samples.push_back(in_us(each.value));
        return percentiles(std::move(samples));
    }

    /// The smallest sample such that at most a share of 1 - p is above it.
    [[nodiscard]] double at(double p) const {
        const auto rank = std::ceil(p * static_cast<double>(sorted_.size()) - 1e-6);
        return sorted_[rank < 1 ? 0 : static_cast<std::size_t>(rank) - 1];
    }

    [[nodiscard]] double max() const { return sorted_.back(); }
    [[nodiscard]] std::size_t count() const { return sorted_.size(); }

    /// The values for tables and pictures. With too few samples a high percentile is the maximum.
    [[nodiscard]] std::vector<note> notes() const {
        return {{"p50", at(0.5)},     {"p90", at(0.9)},       {"p99", at(0.99)},
                {"p99.9", at(0.999)}, {"p99.99", at(0.9999)}, {"max", max()}};
    }

private:
    std::vector<double> sorted_;
};

} // namespace bench::tails

#endif // PAWL_BENCH_TAILS_PERCENTILES_HPP
