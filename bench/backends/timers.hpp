// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The base of the workloads of bare time structures: N timers in memory, visited in random
///   order; random ticks; a stopwatch for many short laps; the count of expiries.
///
/// Model
///   One tick is a millisecond. A timer is a block of `timer_bytes` that starts with its hook, the
///   part that belongs to the structure. In a pawl::steady_timer the node starts at byte 16, so it
///   crosses a cache line equally often. Blocks are contiguous. With the default of 112 bytes, the
///   size of a pawl::steady_timer, each hook has a cache line of its own, or crosses two.
#ifndef PAWL_BENCH_BACKENDS_TIMERS_HPP
#define PAWL_BENCH_BACKENDS_TIMERS_HPP

#include "../fleet.hpp"
#include "../harness.hpp"

#include <pawl/time/tick.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <type_traits>
#include <vector>

namespace bench::backends {

using pawl::time::tick;

/// The options of the command line that all workloads use.
struct setup {
    std::size_t timer_bytes = 112; ///< of one timer, a multiple of 8, at least 32
    std::size_t room = 256;        ///< nodes that one expire() may handle, the service's default
};

/// The start of time. A round number would favour wheels.
inline constexpr tick origin{1'763'741'816'477};

inline tick after(tick start, std::uint64_t ticks) { return tick{start.count() + ticks}; }

/// Uniform in [low, low + width); width below 2^32. Cheap, so that the timers are measured and not
/// the random numbers.
class random_ticks {
public:
    random_ticks(std::uint64_t low, std::uint64_t width, std::uint64_t seed = 88172645463325252u)
        : low_(low), width_(width), state_(seed) {}

    std::uint64_t operator()() noexcept {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return low_ + (((state_ >> 32) * width_) >> 32);
    }

private:
    std::uint64_t low_;
    std::uint64_t width_;
    std::uint64_t state_;
};

/// Memory that the next run reuses, so its pages are present. One user at a time.
inline std::byte* timer_memory(std::size_t bytes) {
    struct release {
        void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
    };
    static std::unique_ptr<std::byte[], release> memory;
    static std::size_t size = 0;
    if (size < bytes) {
        memory.reset(); // before the new one is allocated
        size = 0;
        memory.reset(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{64})));
        size = bytes;
    }
    return memory.get();
}

/// The order of a pass over n timers: a permutation of 0..n-1, a different one for each pass % 3,
/// the same for every variant. Kept for each n, because shuffling ten million takes seconds.
inline const std::vector<index>& visit_order(std::size_t n, std::size_t pass) {
    static std::map<std::size_t, std::array<std::vector<index>, 3>> orders;
    auto& three = orders[n];
    if (three[0].size() != n)
        for (std::size_t which = 0; which < three.size(); ++which) {
            three[which].resize(n);
            std::iota(three[which].begin(), three[which].end(), index{0});
            std::shuffle(three[which].begin(), three[which].end(),
                         std::mt19937{static_cast<unsigned>(2024 + which)});
        }
    return three[pass % three.size()];
}

template <class Hook>
class timers {
public:
    static_assert(sizeof(Hook) <= 32 && alignof(Hook) <= 8 &&
                  std::is_trivially_destructible_v<Hook>);

    timers(const setup& s, std::size_t n)
        : memory_(timer_memory(n * s.timer_bytes)), bytes_(s.timer_bytes), size_(n) {
        for (std::size_t i = 0; i < n; ++i)
            new (memory_ + i * bytes_) Hook{};
        visit_order(n, 0); // makes all orders before the stopwatch runs
    }

    std::size_t size() const noexcept { return size_; }

    Hook& operator[](index i) const noexcept {
        return *std::launder(reinterpret_cast<Hook*>(memory_ + i * bytes_));
    }

    index number(const Hook& hook) const noexcept {
        return static_cast<index>(offset(hook) / bytes_);
    }

    std::uint64_t offset(const Hook& hook) const noexcept {
        return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&hook) - memory_);
    }

    std::size_t bytes() const noexcept { return bytes_; }

private:
    std::byte* memory_;
    std::size_t bytes_;
    std::size_t size_;
};

/// Counts the timers that a structure hands out. Their addresses give their numbers, so no more
/// memory is read; the division comes at the end.
template <class Hook>
class tally {
public:
    explicit tally(const timers<Hook>& all) : all_(&all) {}

    void operator()(const Hook& hook) noexcept {
        ++count_;
        offsets_ += all_->offset(hook);
    }

    /// `cut_short`: the timers that the workload itself has cancelled or moved.
    checksum sum(std::uint64_t cut_short = 0) const {
        return {count_, cut_short, offsets_ / all_->bytes() + count_};
    }

private:
    const timers<Hook>* all_;
    std::uint64_t count_ = 0;
    std::uint64_t offsets_ = 0;
};

/// CPU time of many laps. A lap of a thousand operations is so short that the cost of reading the
/// clock must be subtracted.
class lap_watch {
public:
    void begin() { begin_ = thread_cpu::now_ns(); }
    void end() { total_ += thread_cpu::now_ns() - begin_ - cost_of_reading(); }
    double elapsed_ns() const { return total_; }

private:
    static double cost_of_reading() {
        static const double cost = [] {
            std::array<double, 101> samples{};
            for (auto& each : samples) {
                const auto before = thread_cpu::now_ns();
                each = thread_cpu::now_ns() - before;
            }
            std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
            return samples[samples.size() / 2];
        }();
        return cost;
    }

    double total_ = 0;
    double begin_ = 0;
};

} // namespace bench::backends

#endif // PAWL_BENCH_BACKENDS_TIMERS_HPP
