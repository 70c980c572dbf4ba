// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Time that passes only when a simulation says so, for all that this program is made of: Pawl,
//   Boost.Asio, the standard library.
//
// Model
//   virtual_time.cpp defines std::chrono::steady_clock::now(), the coarse readings of it, epoll_wait(),
//   timerfd_settime() and sysconf() in place of the libraries' own. The clock says what `steady` says. epoll_wait() never sleeps: it moves
//   `steady` to the end of the time that it was asked to wait for, or to when the timerfd expires. So
//   run_for(1h) takes no time, a poll() does what it would do at that moment, and a run repeats exactly.
//   As in truth, Asio compares its timers with their clocks only when the timerfd has expired.

#ifndef PAWL_TEST_SIMULATION_VIRTUAL_TIME_HPP
#define PAWL_TEST_SIMULATION_VIRTUAL_TIME_HPP

#include <cstdint>
#include <functional>

namespace simulation::virtual_time {

extern std::int64_t steady; ///< what steady_clock::now() counts, in nanoseconds

/// CLOCK_MONOTONIC_COARSE advances so often; but here it always misses two of three interrupts, so that
/// its reading is up to three of them old.
inline constexpr std::int64_t coarse_resolution = 4'000'000;

/// The machine has so many processors, whichever it is: a seed is the same scenario everywhere.
inline constexpr long processors = 3;

extern std::uint64_t looks; ///< calls of epoll_wait(), since it was set to 0

/// How often the timerfd has been set that was made last. Valid while its context lives.
[[nodiscard]] const std::uint64_t& settings() noexcept;

/// With more of them something spins: the simulation fails. So it does if a thread would wait for
/// ever.
inline constexpr std::uint64_t most_looks = 40'000;

/// Whether some clock gives Asio a reason to look all the time. Then time passes faster instead.
extern std::function<bool()> restless;

} // namespace simulation::virtual_time

#endif
