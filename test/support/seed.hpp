// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The seed and the length of a randomised test. Both come from the environment, so that a failure
//   can be repeated. The seed is always printed.

#ifndef PAWL_TEST_SUPPORT_SEED_HPP
#define PAWL_TEST_SUPPORT_SEED_HPP

#include "sanitized.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

namespace pawl_test {

/// The number in the environment variable `name`, or `otherwise`.
inline std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr && *text != '\0' ? std::stoull(text) : otherwise;
}

/// PAWL_SEED, or a seed that differs from run to run. Prints it.
inline std::uint64_t seed() {
    std::random_device device;
    const std::uint64_t drawn = (std::uint64_t{device()} << 32) | device();
    const std::uint64_t chosen = number_from_environment("PAWL_SEED", drawn);
    std::cout << "PAWL_SEED=" << chosen << std::endl;
    return chosen;
}

/// PAWL_STEPS, or `otherwise`, or a quarter of that in programs that are slow: sanitized or not optimised.
inline std::uint64_t steps(std::uint64_t otherwise) {
#if defined(__OPTIMIZE__)
    constexpr bool slow = sanitized;
#else
    constexpr bool slow = true;
#endif
    return number_from_environment("PAWL_STEPS", slow ? otherwise / 4 : otherwise);
}

/// PAWL_PATIENCE in seconds, or `otherwise`: how long a test waits for an event before it reports a hang.
inline std::chrono::seconds patience_or(std::chrono::seconds otherwise) {
    return std::chrono::seconds(
        number_from_environment("PAWL_PATIENCE", static_cast<std::uint64_t>(otherwise.count())));
}

} // namespace pawl_test

#endif
