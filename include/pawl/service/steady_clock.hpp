// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The clock of all that is on the steady clock unless the user says otherwise. It is
///   std::chrono::steady_clock itself, or pawl::virtual_clock in a build with PAWL_VIRTUAL_TIME.
///
/// Cost
///   None: these are other names of the same types.
#ifndef PAWL_SERVICE_STEADY_CLOCK_HPP
#define PAWL_SERVICE_STEADY_CLOCK_HPP

#include <pawl/service/virtual_clock.hpp>

#include <pawl/config.hpp>

#include <chrono>
#include <type_traits>

namespace pawl::detail {

#ifdef PAWL_VIRTUAL_TIME
using steady_clock = virtual_clock;

/// What keeps the time that is given as a point in time of `Clock`.
template <class Clock>
using clock_behind =
    std::conditional_t<std::is_same_v<Clock, std::chrono::steady_clock>, virtual_clock, Clock>;

/// Whether a sleep of real time may end before or after that of the clock.
template <class Clock>
inline constexpr bool can_stand = std::is_base_of_v<virtual_clock, Clock>;
#else
using steady_clock = std::chrono::steady_clock;

/// What keeps the time that is given as a point in time of `Clock`.
template <class Clock>
using clock_behind = Clock;

/// Whether a sleep of real time may end before or after that of the clock.
template <class Clock>
inline constexpr bool can_stand = false;
#endif

} // namespace pawl::detail

#endif // PAWL_SERVICE_STEADY_CLOCK_HPP
