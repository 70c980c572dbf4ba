// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   `std::this_thread::sleep_for` without `<thread>`, which would add two percent to the compile
///   time of a timer.
#ifndef PAWL_SERVICE_BLOCK_THREAD_HPP
#define PAWL_SERVICE_BLOCK_THREAD_HPP

#include <pawl/config.hpp>

#include <chrono>

#if PAWL_DETAIL_POSIX
#include <time.h> // <ctime> need not have nanosleep()
#else
#include <thread>
#endif

namespace pawl::detail {

/// Blocks the thread for `d` at most: it wakes up after an hour or when a signal arrives.
template <class Rep, class Period>
void block_thread(const std::chrono::duration<Rep, Period>& d) {
    if (!(d > d.zero())) // also true for NaN
        return;
    // Compared as seconds: converting to nanoseconds could overflow.
    using seconds = std::chrono::duration<double>;
    constexpr std::chrono::nanoseconds longest = std::chrono::hours(1);
    const std::chrono::nanoseconds sleep =
        seconds(d) < seconds(longest) ? std::chrono::ceil<std::chrono::nanoseconds>(d) : longest;
#if PAWL_DETAIL_POSIX
    constexpr long second = 1'000'000'000;
    const timespec t{static_cast<time_t>(sleep.count() / second),
                     static_cast<long>(sleep.count() % second)};
    ::nanosleep(&t, nullptr);
#else
    std::this_thread::sleep_for(sleep);
#endif
}

} // namespace pawl::detail

#endif // PAWL_SERVICE_BLOCK_THREAD_HPP
