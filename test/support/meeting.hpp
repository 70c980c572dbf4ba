// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Meeting points for threads of a test: std::latch and std::barrier, and replacements if those of
//   the standard library lose wake-ups.

#ifndef PAWL_TEST_SUPPORT_MEETING_HPP
#define PAWL_TEST_SUPPORT_MEETING_HPP

#include <pawl/config.hpp>

#if PAWL_DETAIL_ATOMIC_WAIT_LOSES_WAKEUPS
#include <atomic>
#include <thread>
#else
#include <barrier>
#include <latch>
#endif

namespace pawl_test {

#if PAWL_DETAIL_ATOMIC_WAIT_LOSES_WAKEUPS

class latch {
public:
    explicit latch(int count) : left_(count) {}
    latch(const latch&) = delete;
    latch& operator=(const latch&) = delete;

    void count_down() { --left_; }
    [[nodiscard]] bool try_wait() const { return left_ == 0; }
    void wait() const {
        while (!try_wait())
            std::this_thread::yield();
    }
    void arrive_and_wait() {
        count_down();
        wait();
    }

private:
    std::atomic<int> left_;
};

class barrier {
public:
    explicit barrier(int count) : count_(count), left_(count) {}
    barrier(const barrier&) = delete;
    barrier& operator=(const barrier&) = delete;

    /// @return the phase that it ends or takes part in.
    unsigned arrive() {
        const unsigned phase = phase_;
        if (--left_ == 0) {
            left_ = count_;
            ++phase_;
        }
        return phase;
    }
    void arrive_and_wait() {
        const unsigned phase = arrive();
        while (phase_ == phase)
            std::this_thread::yield();
    }

private:
    const int count_;
    std::atomic<int> left_;
    std::atomic<unsigned> phase_{0};
};

#else

using std::latch;
using barrier = std::barrier<>;

#endif

} // namespace pawl_test

#endif // PAWL_TEST_SUPPORT_MEETING_HPP
