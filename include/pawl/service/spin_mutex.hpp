// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A mutex for a shard, which is held for a bounded number of steps in which nothing foreign runs.
///
/// Model
///   One word, taken by an exchange and released by a plain store: one locked instruction for both,
///   where std::mutex takes two. The store tells nobody, so that whoever waits looks: first spinning,
///   then yielding, which lets a holder of the same processor get on, then sleeping, which lets one of
///   lower priority get on.
///
///   Nobody is next in line. A thread that takes the lock again and again leaves a moment between,
///   by give_way(), if somebody waits.
///
/// Threads
///   Any. Not recursive.
///
/// Cost
///   8 bytes. The longest wait is a few holds, unless the holder does not run; then up to a millisecond
///   or two longer than that.
#ifndef PAWL_SERVICE_SPIN_MUTEX_HPP
#define PAWL_SERVICE_SPIN_MUTEX_HPP

#include <pawl/service/block_thread.hpp>

#include <pawl/config.hpp>

#include <atomic>
#include <chrono>

#if PAWL_DETAIL_POSIX
#include <sched.h>
#endif

/// For tests that count holds.
#ifndef PAWL_DETAIL_LOCK_TAKEN
#define PAWL_DETAIL_LOCK_TAKEN() static_cast<void>(0)
#endif

namespace pawl::detail {

class spin_mutex {
public:
    spin_mutex() noexcept = default;
    spin_mutex(const spin_mutex&) = delete;
    spin_mutex& operator=(const spin_mutex&) = delete;

    void lock() noexcept {
        if (!try_lock())
            wait();
    }

    [[nodiscard]] bool try_lock() noexcept {
        const bool taken = !held_.exchange(true, std::memory_order_acquire);
        if (taken)
            PAWL_DETAIL_LOCK_TAKEN();
        return taken;
    }

    void unlock() noexcept { held_.store(false, std::memory_order_release); }

    /// For a thread that has just unlocked it and is about to lock it again: lets another one in, if
    /// there is one that looks. Bounded.
    void give_way() const noexcept {
        // relaxed: nothing is read because of it.
        for (unsigned n = 0; n < looks && waiting_.load(std::memory_order_relaxed) != 0 &&
                             !held_.load(std::memory_order_relaxed);
             ++n)
            pause_processor();
    }

private:
    // Some microseconds, which is longer than most holds; then a millisecond or so, which is longer than
    // a batch takes whose timers are in no cache. Not shorter: to sleep for 50 microseconds took a
    // virtual machine up to a millisecond, in which the lock was free many times.
    static constexpr unsigned looks = 128;
    static constexpr unsigned yields = 2048;

    PAWL_DETAIL_COLD void wait() noexcept {
        waiting_.fetch_add(1, std::memory_order_relaxed); // see give_way()
        for (unsigned n = 0;; ++n) {
            if (n < looks)
                pause_processor();
            else if (n < looks + yields)
                yield();
            else
                block_thread(std::chrono::microseconds(50));
            // Looked at before it is taken: the exchange would take its cache line from the holder.
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

#endif // PAWL_SERVICE_SPIN_MUTEX_HPP
