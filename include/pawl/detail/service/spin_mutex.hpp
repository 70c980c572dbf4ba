// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The mutex of a shard, a group, and of what an observer notes. It is held for a bounded number
///   of steps, and no foreign code runs under it.
///
/// Model
///   One word, taken by an exchange and released by a plain store: one locked instruction per lock
///   and unlock, where std::mutex takes two. The store wakes no thread, so a waiter polls. It first
///   spins; then yields, which lets a holder on the same processor run; then sleeps, which lets a
///   holder of lower priority run.
///
///   The lock is not fair. A thread that takes it again and again calls give_way() in between.
///
/// Threads
///   Any. Not recursive.
///
/// Cost
///   8 bytes. The longest wait is a few holds, plus one or two milliseconds if the holder is
///   descheduled.
#ifndef PAWL_DETAIL_SERVICE_SPIN_MUTEX_HPP
#define PAWL_DETAIL_SERVICE_SPIN_MUTEX_HPP

#include <pawl/config.hpp>

#include <atomic>
#include <chrono>

#if PAWL_DETAIL_POSIX
#include <sched.h>
#endif

/// Hooks for tests that count acquisitions, and that come between two of them.
#ifndef PAWL_DETAIL_LOCK_TAKEN
#define PAWL_DETAIL_LOCK_TAKEN() static_cast<void>(0)
#define PAWL_DETAIL_LOCK_GIVES_WAY() static_cast<void>(0)
#endif

#if PAWL_DETAIL_POSIX
#include <time.h> // <ctime> need not have nanosleep()
#else
#include <thread>
#endif

namespace pawl::detail {

// `std::this_thread::sleep_for` without `<thread>`, which would add two percent to the compile
// time of a timer.

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

class spin_mutex {
public:
    spin_mutex& operator=(spin_mutex&&) = delete;

    PAWL_DETAIL_ALWAYS_INLINE void lock() noexcept {
        if (!try_lock()) [[unlikely]]
            wait();
    }

    [[nodiscard]] PAWL_DETAIL_ALWAYS_INLINE bool try_lock() noexcept {
        const bool taken = !held_.exchange(true, std::memory_order_acquire);
        if (taken)
            PAWL_DETAIL_LOCK_TAKEN();
        return taken;
    }

    void unlock() noexcept { held_.store(false, std::memory_order_release); }

    /// For a thread that has just unlocked the mutex and will lock it again: lets a polling thread
    /// in. Bounded.
    void give_way() const noexcept {
        PAWL_DETAIL_LOCK_GIVES_WAY();
        // relaxed: guards no data.
        for (unsigned n = 0; n < spins && waiting_.load(std::memory_order_relaxed) != 0 &&
                             !held_.load(std::memory_order_relaxed);
             ++n)
            pause_processor();
    }

private:
    // Spins for some microseconds, longer than most holds; then yields for about a millisecond,
    // longer than a batch of uncached timers takes. Not less: on a virtual machine a sleep of 50 us
    // took up to a millisecond, during which the lock was free many times.
    static constexpr unsigned spins = 128;
    static constexpr unsigned yields = 2048;

    PAWL_DETAIL_COLD void wait() noexcept {
        waiting_.fetch_add(1, std::memory_order_relaxed); // see give_way()
        for (unsigned n = 0;; ++n) {
            if (n < spins)
                pause_processor();
            else if (n < spins + yields)
                yield();
            else
                block_thread(std::chrono::microseconds(50));
            // Read before the exchange, which would take the cache line from the holder.
            if (!held_.load(std::memory_order_relaxed) && try_lock())
                break;
        }
        waiting_.fetch_sub(1, std::memory_order_relaxed);
    }

    static void yield() noexcept {
#if PAWL_DETAIL_POSIX
        ::sched_yield();
#else
        std::this_thread::yield();
#endif
    }

    std::atomic<bool> held_{false};
    std::atomic<unsigned> waiting_{0};
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_SPIN_MUTEX_HPP
