// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Each change of an atomic object wakes a thread that waits for it. std::atomic::wait() of some
// standard libraries sometimes hangs here.

#include <pawl/config.hpp>

#include "../support/seed.hpp"

#define BOOST_TEST_MODULE atomic_wait
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cstdint>
#include <thread>

BOOST_AUTO_TEST_CASE(no_change_is_slept_through_and_none_is_made_up) {
    const std::uint64_t rounds = pawl_test::steps(20'000);
    std::atomic<std::uint64_t> asked{0};
    std::atomic<std::uint64_t> answered{0};
    std::atomic<std::uint64_t> too_early{0};
    std::thread other([&] {
        for (std::uint64_t i = 0; i != rounds; ++i) {
            pawl::detail::atomic_wait(asked, i, std::memory_order_acquire);
            too_early += asked == i;
            answered = i + 1;
            answered.notify_all();
        }
    });
    for (std::uint64_t i = 0; i != rounds; ++i) {
        asked = i + 1;
        asked.notify_all();
        pawl::detail::atomic_wait(answered, i, std::memory_order_acquire);
        too_early += answered == i;
    }
    other.join();
    BOOST_TEST(answered == rounds);
    BOOST_TEST(too_early == 0U);
}
