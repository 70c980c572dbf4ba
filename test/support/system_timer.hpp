// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Records for how long Asio sets its system timer (a timerfd). So a test sees how late a wait may
//   come, and how often the kernel is asked, without waiting. Include it in one translation unit of
//   a program only.

#ifndef PAWL_TEST_SUPPORT_SYSTEM_TIMER_HPP
#define PAWL_TEST_SUPPORT_SYSTEM_TIMER_HPP

#include <boost/asio/detail/config.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>

#if defined(BOOST_ASIO_HAS_EPOLL) && defined(BOOST_ASIO_HAS_TIMERFD) &&                            \
    !defined(BOOST_ASIO_HAS_IO_URING_AS_DEFAULT)
#define PAWL_TEST_SYSTEM_TIMER 1
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
#else
#define PAWL_TEST_SYSTEM_TIMER 0
#endif

namespace system_timer {

/// Without a timerfd, Asio never sets one. Its reactor then checks the clocks of all timers
/// whenever it runs: they are read more often, and a clock that a test moves wakes the driver once
/// more, by itself.
inline constexpr bool seen = PAWL_TEST_SYSTEM_TIMER;

inline std::atomic<std::size_t> settings{0}; ///< how often it was set
/// The duration, counted from the last setting.
inline std::atomic<std::chrono::nanoseconds> sleep{std::chrono::nanoseconds(0)};

inline bool sleeps_at_most(std::chrono::nanoseconds d) { return !seen || sleep.load() <= d; }
inline bool sleeps_at_least(std::chrono::nanoseconds d) { return !seen || sleep.load() >= d; }

} // namespace system_timer

#if PAWL_TEST_SYSTEM_TIMER
extern "C" int timerfd_settime(int fd, int flags, const itimerspec* to,
                               itimerspec* before) noexcept {
    ++system_timer::settings;
    if ((flags & TFD_TIMER_ABSTIME) != 0) // Asio's way to say "now"
        system_timer::sleep = std::chrono::nanoseconds(0);
    else
        system_timer::sleep = std::chrono::seconds(to->it_value.tv_sec) +
                              std::chrono::nanoseconds(to->it_value.tv_nsec);
    return static_cast<int>(::syscall(SYS_timerfd_settime, fd, flags, to, before));
}
#endif

#endif // PAWL_TEST_SUPPORT_SYSTEM_TIMER_HPP
