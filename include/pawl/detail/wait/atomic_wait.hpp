// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   std::atomic::wait(), with a replacement for standard libraries that lose wake-ups.
///
///   libstdc++ without futexes (MinGW-w64, version 12) loses wake-ups: the waiter reads the value
///   before it takes the lock on which it sleeps, and the notifier does not take that lock. On such
///   a library the replacement polls once a millisecond.
#ifndef PAWL_DETAIL_WAIT_ATOMIC_WAIT_HPP
#define PAWL_DETAIL_WAIT_ATOMIC_WAIT_HPP

#include <pawl/config.hpp>

#include <atomic>

#if defined(__GLIBCXX__) && !defined(_GLIBCXX_HAVE_LINUX_FUTEX) &&                                 \
    !defined(_GLIBCXX_HAVE_PLATFORM_WAIT)
#define PAWL_DETAIL_ATOMIC_WAIT_LOSES_WAKEUPS 1
#include <chrono>
#include <thread>
#else
#define PAWL_DETAIL_ATOMIC_WAIT_LOSES_WAKEUPS 0
#endif

namespace pawl::detail {

/// `a.wait(seen, order)`. Ended by `a.notify_all()`.
template <class Atomic, class T, class Order>
void atomic_wait(const Atomic& a, T seen, Order order) noexcept {
#if PAWL_DETAIL_ATOMIC_WAIT_LOSES_WAKEUPS
    for (int looks = 0; a.load(order) == seen; ++looks) {
        if (looks < 16)
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
#else
    a.wait(seen, order);
#endif
}

} // namespace pawl::detail

#endif // PAWL_DETAIL_WAIT_ATOMIC_WAIT_HPP
