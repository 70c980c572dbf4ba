// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Writes down for how long Asio sets its system timer (a timerfd): how late a wait may come, and how
//   often the kernel is asked, can be seen without waiting. For one translation unit of a program only.

#ifndef PAWL_TEST_SUPPORT_SYSTEM_TIMER_HPP
#define PAWL_TEST_SUPPORT_SYSTEM_TIMER_HPP

#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>

namespace system_timer {

inline std::atomic<std::size_t> settings{0}; ///< how often it was set
/// For how long, from the last setting on.
inline std::atomic<std::chrono::nanoseconds> sleep{std::chrono::nanoseconds(0)};

} // namespace system_timer

extern "C" int timerfd_settime(int fd, int flags, const itimerspec* to,
                               itimerspec* before) noexcept {
    ++system_timer::settings;
    if ((flags & TFD_TIMER_ABSTIME) != 0) // how Asio says "now"
        system_timer::sleep = std::chrono::nanoseconds(0);
    else
        system_timer::sleep = std::chrono::seconds(to->it_value.tv_sec) +
                              std::chrono::nanoseconds(to->it_value.tv_nsec);
    return static_cast<int>(::syscall(SYS_timerfd_settime, fd, flags, to, before));
}

#endif // PAWL_TEST_SUPPORT_SYSTEM_TIMER_HPP
