// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Time that passes only when a simulation moves it, for all parts of this program: Pawl,
//   Boost.Asio, the standard library.
//
// Model
//   virtual_time.cpp defines std::chrono::steady_clock::now(), its coarse readings, epoll_wait(),
//   timerfd_settime() and sysconf() in place of the libraries' own. The clock reads `steady`.
//   epoll_wait() never sleeps: it moves `steady` to the end of the requested time, or to the expiry
//   of the timerfd. So run_for(1h) takes no time, a poll() acts as it would at that moment, and a
//   run repeats exactly. As in reality, Asio compares its timers with their clocks only when the
//   timerfd has expired.

#ifndef PAWL_TEST_SIMULATION_VIRTUAL_TIME_HPP
#define PAWL_TEST_SIMULATION_VIRTUAL_TIME_HPP

#include <cstdint>
#include <functional>

namespace simulation::virtual_time {

extern std::int64_t steady; ///< reading of steady_clock::now(), in nanoseconds

/// The period of CLOCK_MONOTONIC_COARSE. Here it always misses two of three interrupts, so its
/// reading is up to three periods old.
inline constexpr std::int64_t coarse_resolution = 4'000'000;

/// The number of processors on any machine: a seed is the same scenario everywhere.
inline constexpr long processors = 3;

extern std::uint64_t looks; ///< calls of epoll_wait(), since it was set to 0

/// How often the last timerfd has been set. Valid while its context lives.
[[nodiscard]] const std::uint64_t& settings() noexcept;

/// With more of them the program spins: the simulation fails. It also fails if a thread would wait
/// forever.
inline constexpr std::uint64_t most_looks = 40'000;

/// Whether a clock makes Asio check all the time. Then time passes faster instead.
extern std::function<bool()> restless;

} // namespace simulation::virtual_time

#endif
