// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#ifndef PAWL_TEST_SIMULATION_RANDOM_HPP
#define PAWL_TEST_SIMULATION_RANDOM_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace simulation {

/// The same numbers for the same seed with any standard library: splitmix64 (Steele, Lea and Flood,
/// "Fast splittable pseudorandom number generators", 2014).
class random_source {
public:
    explicit random_source(std::uint64_t seed) noexcept : state_(seed) {}

    std::uint64_t next() noexcept {
        std::uint64_t x = state_ += 0x9e3779b97f4a7c15;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
        x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
        return x ^ (x >> 31);
    }

    /// 0 .. n - 1
    int below(int n) noexcept { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
    std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
        return low +
               static_cast<std::int64_t>(next() % (static_cast<std::uint64_t>(high - low) + 1));
    }
    bool one_in(int n) noexcept { return below(n) == 0; }

    template <class T>
    T one_of(std::initializer_list<T> values) noexcept {
        return values.begin()[below(static_cast<int>(values.size()))];
    }

private:
    std::uint64_t state_;
};

} // namespace simulation

#endif
