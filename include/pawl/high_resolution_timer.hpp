// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::high_resolution_timer, a drop-in for boost::asio::high_resolution_timer.
#ifndef PAWL_HIGH_RESOLUTION_TIMER_HPP
#define PAWL_HIGH_RESOLUTION_TIMER_HPP

#include <pawl/basic_waitable_timer.hpp>

#include <chrono>

namespace pawl {

/// A timer on `std::chrono::high_resolution_clock`. See basic_waitable_timer.
using high_resolution_timer = basic_waitable_timer<std::chrono::high_resolution_clock>;

} // namespace pawl

#endif // PAWL_HIGH_RESOLUTION_TIMER_HPP
