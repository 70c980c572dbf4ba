// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Runs the variants of a workload so that they can be compared on a noisy machine. It has no
///   workloads and no output format. A general benchmark library interleaves repetitions at random
///   but does not pair them, so a slow minute of the machine affects one variant only.
///
/// Model
///   One repetition runs every variant of one (workload, size) back to back. The variant that goes
///   first rotates. A repetition yields one ratio per variant, baseline / variant, of two runs that
///   are close in time. The report takes medians of these ratios, never ratios of medians.
///
/// Invariants
///   - variants[0] is the baseline.
///   - All variants of a repetition yield the same checksum, or the run fails.
#ifndef PAWL_BENCH_HARNESS_HPP
#define PAWL_BENCH_HARNESS_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <malloc.h>
#include <stdexcept>
#include <string>
#include <time.h>
#include <utility>
#include <vector>

namespace bench {

/// The counts of the handlers of one run. Equal between variants, whatever their speed.
struct checksum {
    std::uint64_t expired = 0;   ///< waits that completed with success
    std::uint64_t cut_short = 0; ///< waits that were aborted, or moved without completing
    std::uint64_t ids = 0;       ///< sum over those waits of (their timer's number + 1)

    bool operator==(const checksum&) const = default;

    checksum& operator+=(const checksum& other) noexcept {
        expired += other.expired;
        cut_short += other.cut_short;
        ids += other.ids;
        return *this;
    }
};

/// A figure beside the main one, such as wake-ups per second.
using note = std::pair<std::string, double>;

/// One run of one variant.
struct sample {
    double value = 0; ///< in the workload's unit; less is better
    checksum sum;
    std::vector<note> notes;
};

/// The parameters of a run.
struct plan {
    std::size_t size = 0; ///< number of timers
    std::size_t operations =
        0; ///< at least this many timed operations, where the workload lets one choose
    std::size_t poll_every = 0;         ///< operations between two calls of io_context::poll()
    std::chrono::milliseconds window{}; ///< real time over which expiries are spread
};

struct variant {
    std::string name;
    std::function<sample(const plan&)> run;
};

struct workload {
    std::string name;
    std::string situation; ///< the server that does this, in one line
    std::string unit;
    std::vector<variant> variants;
    std::size_t fixed_size = 0;  ///< 0: run at every size
    std::size_t repetitions = 0; ///< upper bound on the default, 0: none
};

struct spread {
    double median = 0;
    double min = 0;
    double max = 0;
};

inline spread spread_of(std::vector<double> values) {
    if (values.empty())
        return {};
    std::sort(values.begin(), values.end());
    const auto middle = values.size() / 2;
    const auto median =
        values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
    return {median, values.front(), values.back()};
}

/// All repetitions of one variant at one size.
struct series {
    std::string variant;
    std::vector<double> values; ///< one per repetition
    std::vector<double> ratios; ///< baseline / this, one per repetition
    std::vector<std::pair<std::string, std::vector<double>>> notes;
    checksum sum; ///< of the last repetition
};

struct result {
    std::size_t size = 0;
    std::vector<series> variants;
};

/// Two variants did different work, so their times must not be compared.
class checksum_mismatch : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

namespace detail {

inline std::string to_string(const checksum& sum) {
    return "{expired " + std::to_string(sum.expired) + ", cut short " +
           std::to_string(sum.cut_short) + ", ids " + std::to_string(sum.ids) + "}";
}

inline void require_same_work(const workload& work, std::size_t size,
                              const std::vector<sample>& samples) {
    for (std::size_t v = 1; v < samples.size(); ++v)
        if (samples[v].sum != samples[0].sum)
            throw checksum_mismatch(work.name + ", " + std::to_string(size) +
                                    " timers: " + work.variants[0].name + " did " +
                                    to_string(samples[0].sum) + " but " + work.variants[v].name +
                                    " did " + to_string(samples[v].sum));
}

inline void append(series& to, const sample& from, double baseline) {
    to.values.push_back(from.value);
    to.ratios.push_back(baseline / from.value);
    to.sum = from.sum;
    to.notes.resize(from.notes.size());
    for (std::size_t n = 0; n < from.notes.size(); ++n) {
        to.notes[n].first = from.notes[n].first;
        to.notes[n].second.push_back(from.notes[n].second);
    }
}

} // namespace detail

inline result measure(const workload& work, const plan& what, std::size_t repetitions) {
    const auto count = work.variants.size();
    result all{what.size, std::vector<series>(count)};
    for (std::size_t v = 0; v < count; ++v)
        all.variants[v].variant = work.variants[v].name;

    std::vector<sample> samples(count);
    for (std::size_t repetition = 0; repetition < repetitions; ++repetition) {
        for (std::size_t turn = 0; turn < count; ++turn) {
            const auto v = (repetition + turn) % count;
            ::malloc_trim(0); // every variant starts from the same heap: an empty one
            samples[v] = work.variants[v].run(what);
        }
        detail::require_same_work(work, what.size, samples);
        for (std::size_t v = 0; v < count; ++v)
            detail::append(all.variants[v], samples[v], samples[0].value);
    }
    return all;
}

/// CPU time of the calling thread. Preferred to real time if one thread does all the work without
/// waiting, because time taken by other processes does not count.
struct thread_cpu {
    static double now_ns() {
        timespec t{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
    }
};

/// Real time, for throughput of several threads.
struct real_time {
    static double now_ns() {
        return std::chrono::duration<double, std::nano>(
                   std::chrono::steady_clock::now().time_since_epoch())
            .count();
    }
};

template <class Clock>
class stopwatch {
public:
    [[nodiscard]] double elapsed_ns() const { return Clock::now_ns() - start_; }

private:
    double start_ = Clock::now_ns();
};

} // namespace bench

#endif // PAWL_BENCH_HARNESS_HPP
