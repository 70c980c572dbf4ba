// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The default clock of timers: std::chrono::steady_clock, or pawl::virtual_clock in a build with
///   PAWL_VIRTUAL_TIME.
///
/// Cost
///   None: these are aliases.
#ifndef PAWL_DETAIL_SERVICE_STEADY_CLOCK_HPP
#define PAWL_DETAIL_SERVICE_STEADY_CLOCK_HPP

#include <pawl/config.hpp>
#include <pawl/virtual_clock.hpp>

#include <chrono>
#include <type_traits>

namespace pawl::detail {

#ifdef PAWL_VIRTUAL_TIME
using steady_clock = virtual_clock;

/// The clock that a timer uses for time points of `Clock`.
template <class Clock>
using clock_behind =
    std::conditional_t<std::is_same_v<Clock, std::chrono::steady_clock>, virtual_clock, Clock>;

/// Whether the clock may pass at another rate than real time.
template <class Clock>
inline constexpr bool can_stand = std::is_base_of_v<virtual_clock, Clock>;
#else
using steady_clock = std::chrono::steady_clock;

/// The clock that a timer uses for time points of `Clock`.
template <class Clock>
using clock_behind = Clock;

/// Whether the clock may pass at another rate than real time.
template <class Clock>
inline constexpr bool can_stand = false;
#endif

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_STEADY_CLOCK_HPP
