// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/virtual_time.hpp"

#include "simulation/report.hpp"

#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ratio>
#include <utility>

namespace simulation::virtual_time {

std::int64_t steady = 0;
std::uint64_t looks = 0;
std::function<bool()> restless = [] { return false; };

} // namespace simulation::virtual_time

namespace time_now = simulation::virtual_time;

std::chrono::steady_clock::time_point std::chrono::steady_clock::now() noexcept {
    return time_point(duration(time_now::steady));
}

extern "C" int clock_gettime(clockid_t clock, timespec* t) noexcept {
    if (clock != CLOCK_MONOTONIC_COARSE)
        return static_cast<int>(::syscall(SYS_clock_gettime, clock, t));
    using readings =
        std::chrono::duration<std::int64_t,
                              std::ratio<3 * time_now::coarse_resolution, 1'000'000'000>>;
    const std::chrono::nanoseconds reading =
        std::chrono::floor<readings>(std::chrono::nanoseconds(time_now::steady));
    const auto whole = std::chrono::floor<std::chrono::seconds>(reading);
    t->tv_sec = whole.count();
    t->tv_nsec = (reading - whole).count();
    return 0;
}

extern "C" int clock_getres(clockid_t clock, timespec* t) noexcept {
    if (clock != CLOCK_MONOTONIC_COARSE)
        return static_cast<int>(::syscall(SYS_clock_getres, clock, t));
    *t = {0, time_now::coarse_resolution};
    return 0;
}

extern "C" long sysconf(int name) noexcept {
    if (name == _SC_NPROCESSORS_ONLN)
        return time_now::processors;
    static const auto original = reinterpret_cast<long (*)(int)>(::dlsym(RTLD_NEXT, "sysconf"));
    return original(name);
}

namespace {

/// A timerfd, and the epoll that watches it. Asio makes both in turn, and a thread has few contexts
/// at a time.
struct fake_timerfd {
    static constexpr std::int64_t off = std::numeric_limits<std::int64_t>::max();
    std::int64_t expiry = off;
    int watched_by = -1;
    std::uint64_t settings = 0;
    bool early = false; ///< reported as expired: setting it for the remaining time does not count
    epoll_data_t data{};
};
constexpr int first_alarm = 1 << 20; // no real descriptor
std::array<fake_timerfd, 1024> alarms;
std::size_t made = 0;
std::array<int, 1 << 16> alarm_of{}; // by the epoll descriptor that watches it

fake_timerfd* watched_by(int epoll) {
    fake_timerfd& a = alarms[static_cast<std::size_t>(alarm_of[static_cast<std::size_t>(epoll)])];
    return a.watched_by == epoll ? &a : nullptr;
}

} // namespace

const std::uint64_t& simulation::virtual_time::settings() noexcept {
    return alarms[(made - 1) % alarms.size()].settings;
}

extern "C" int timerfd_create(int, int) noexcept {
    const std::size_t i = made++ % alarms.size();
    alarms[i] = {};
    return first_alarm + static_cast<int>(i);
}

extern "C" int timerfd_settime(int fd, int flags, const itimerspec* to,
                               itimerspec* before) noexcept {
    fake_timerfd& a = alarms[static_cast<std::size_t>(fd - first_alarm)];
    if (!std::exchange(a.early, false))
        ++a.settings;
    const std::int64_t at = to->it_value.tv_sec * 1'000'000'000 + to->it_value.tv_nsec;
    if (at == 0)
        a.expiry = fake_timerfd::off;
    else
        a.expiry = time_now::steady + ((flags & TFD_TIMER_ABSTIME) != 0 ? 0 : at); // 0: at once
    if (before)
        *before = {};
    return 0;
}

// Asio watches its own wake-up descriptor, too, which one thread does not need.
extern "C" int epoll_ctl(int epoll, int, int fd, epoll_event* event) noexcept {
    if (fd >= first_alarm) {
        fake_timerfd& a = alarms[static_cast<std::size_t>(fd - first_alarm)];
        a.watched_by = epoll;
        a.data = event->data;
        alarm_of[static_cast<std::size_t>(epoll)] = fd - first_alarm;
    }
    return 0;
}

extern "C" int epoll_wait(int epoll, epoll_event* events, int, int milliseconds) {
    if (++time_now::looks > time_now::most_looks) {
        if (!time_now::restless())
            simulation::fail("cost: a context never stops looking for work");
        time_now::steady += 1'000'000'000;
    }
    // run_for() asks for whole microseconds, and asks again while less than one is left. And time
    // does not pass by itself if traits never wait.
    static std::uint64_t patience = 0;
    patience = time_now::looks < patience ? 0 : patience;
    if (time_now::looks > patience + 1000)
        time_now::steady += 1000;
    fake_timerfd* const a = watched_by(epoll);
    const std::int64_t expiry = a ? a->expiry : fake_timerfd::off;
    if (expiry > time_now::steady && milliseconds != 0) {
        if (milliseconds < 0 && expiry == fake_timerfd::off)
            simulation::fail("P9: a context sleeps for ever");
        patience = time_now::looks;
        time_now::steady =
            milliseconds < 0
                ? expiry
                : std::min(expiry, time_now::steady + std::int64_t{milliseconds} * 1'000'000);
    }
    // Asio asks for a microsecond instead of zero if the traits of another clock return less than
    // one. So this much time passes anyway.
    if (!a || expiry > time_now::steady + (milliseconds == 0 ? 1000 : 0))
        return 0;
    a->early = expiry > time_now::steady;
    events[0].events = EPOLLIN;
    events[0].data = a->data;
    return 1;
}
