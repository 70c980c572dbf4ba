// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#ifndef PAWL_TEST_SIMULATION_RANDOM_HPP
#define PAWL_TEST_SIMULATION_RANDOM_HPP

#include "support/lockstep.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace simulation {

/// The same numbers for the same seed with any standard library: splitmix64 (Steele, Lea and Flood,
/// "Fast splittable pseudorandom number generators", 2014). Of a fuzzer's input, the choices are its
/// bytes; after the last one, the numbers of the seed 0.
class random_source {
public:
    explicit random_source(std::uint64_t seed) noexcept : state_(seed) {}
    explicit random_source(pawl_test::byte_choices bytes) noexcept
        : state_(0), from_bytes_(true), bytes_(bytes) {}

    /// A source for another thread, the first of `parts` that are to come: from the next number, or
    /// with its share of the bytes.
    random_source branch(std::size_t parts) noexcept {
        return from_bytes_ ? random_source(bytes_.part(parts)) : random_source(next());
    }

    /// Whether the bytes have been used.
    [[nodiscard]] bool over() const noexcept { return from_bytes_ && bytes_.empty(); }

    std::uint64_t next() noexcept {
        if (!bytes_.empty())
            return bytes_.below(std::uint64_t{1} << 63);
        std::uint64_t x = state_ += 0x9e3779b97f4a7c15;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
        x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
        return x ^ (x >> 31);
    }

    /// 0 .. n - 1
    int below(int n) noexcept { return static_cast<int>(draw(static_cast<std::uint64_t>(n))); }
    std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
        return low + static_cast<std::int64_t>(draw(static_cast<std::uint64_t>(high - low) + 1));
    }
    bool one_in(int n) noexcept { return below(n) == 0; }

    template <class T>
    T one_of(std::initializer_list<T> values) noexcept {
        return values.begin()[below(static_cast<int>(values.size()))];
    }
    template <class Container>
    auto& one_of(Container& all) noexcept {
        return all[static_cast<std::size_t>(below(static_cast<int>(all.size())))];
    }

private:
    std::uint64_t draw(std::uint64_t bound) noexcept {
        return bytes_.empty() ? next() % bound : bytes_.below(bound);
    }

    std::uint64_t state_;
    bool from_bytes_ = false;
    pawl_test::byte_choices bytes_{{}};
};

} // namespace simulation

#endif
