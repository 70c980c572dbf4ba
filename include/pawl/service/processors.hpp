// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Facts about the machine: the number of processors, and the size of a cache line.
#ifndef PAWL_SERVICE_PROCESSORS_HPP
#define PAWL_SERVICE_PROCESSORS_HPP

#include <pawl/config.hpp>

#include <cstddef>

#if PAWL_DETAIL_POSIX
#include <unistd.h>
#else
#include <thread>
#endif

namespace pawl::detail {

/// Distance that avoids false sharing. Not std::hardware_destructive_interference_size, which
/// depends on compiler flags.
#if defined(__APPLE__) && defined(__aarch64__)
inline constexpr std::size_t cache_line = 128;
#else
inline constexpr std::size_t cache_line = 64;
#endif

/// The number of processors; 0 if unknown.
[[nodiscard]] inline unsigned processors_online() noexcept {
#if PAWL_DETAIL_POSIX
    const long n = ::sysconf(_SC_NPROCESSORS_ONLN); // <thread> is slow to compile
    return n > 0 ? static_cast<unsigned>(n) : 0;
#else
    return std::thread::hardware_concurrency();
#endif
}

} // namespace pawl::detail

#endif // PAWL_SERVICE_PROCESSORS_HPP
