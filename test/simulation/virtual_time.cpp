// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/virtual_time.hpp"

#include "simulation/report.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <chrono>
#include <cstdint>

namespace simulation::virtual_time {

std::int64_t steady = 0;
std::uint64_t looks = 0;
std::function<bool()> restless = [] { return false; };

} // namespace simulation::virtual_time

namespace time_now = simulation::virtual_time;

std::chrono::steady_clock::time_point std::chrono::steady_clock::now() noexcept {
    return time_point(duration(time_now::steady));
}

// Without one, Asio compares its timers with their clocks each time that it looks for work.
extern "C" int timerfd_create(int, int) noexcept { return -1; }

// Asio watches its own wake-up descriptor only, which one thread does not need.
extern "C" int epoll_ctl(int, int, int, epoll_event*) noexcept { return 0; }

extern "C" int epoll_wait(int, epoll_event*, int, int milliseconds) {
    if (++time_now::looks > time_now::most_looks) {
        if (!time_now::restless())
            simulation::fail("cost: a context never stops looking for work");
        time_now::steady += 1'000'000'000;
    }
    // run_for() asks for whole microseconds, and asks again while less than one is left.
    static std::uint64_t patience = 0;
    patience = time_now::looks < patience ? 0 : patience;
    if (time_now::looks > patience + 1000)
        time_now::steady += 1000;
    if (milliseconds > 0)
        patience = time_now::looks;
    if (milliseconds < 0)
        simulation::fail("P9: a context sleeps for ever");
    time_now::steady += std::int64_t{milliseconds} * 1'000'000;
    return 0;
}
