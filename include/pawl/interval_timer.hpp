// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::interval_timer, for periodic work.
#ifndef PAWL_INTERVAL_TIMER_HPP
#define PAWL_INTERVAL_TIMER_HPP

#include <pawl/basic_interval_timer.hpp>

#include <pawl/detail/service/clocks.hpp>

namespace pawl {

/// An interval on `std::chrono::steady_clock`. See basic_interval_timer.
using interval_timer = basic_interval_timer<detail::steady_clock>;

} // namespace pawl

#endif // PAWL_INTERVAL_TIMER_HPP
