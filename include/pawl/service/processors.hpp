// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// What is asked of the machine: how many processors it has, and what two of them should not share.
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

/// What one thread writes and another one reads should be so far apart. Not
/// std::hardware_destructive_interference_size, which changes with the flags of the compiler.
#if defined(__APPLE__) && defined(__aarch64__)
inline constexpr std::size_t cache_line = 128;
#else
inline constexpr std::size_t cache_line = 64;
#endif

/// 0 if that is not known.
[[nodiscard]] inline unsigned processors_online() noexcept {
#if PAWL_DETAIL_POSIX
    const long n = ::sysconf(_SC_NPROCESSORS_ONLN); // <thread> would cost time to compile
    return n > 0 ? static_cast<unsigned>(n) : 0;
#else
    return std::thread::hardware_concurrency();
#endif
}

} // namespace pawl::detail

#endif // PAWL_SERVICE_PROCESSORS_HPP
