// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::system_timer, a drop-in for boost::asio::system_timer.
#ifndef PAWL_SYSTEM_TIMER_HPP
#define PAWL_SYSTEM_TIMER_HPP

#include <pawl/basic_waitable_timer.hpp>

#include <chrono>

namespace pawl {

/// A timer on `std::chrono::system_clock`. See basic_waitable_timer.
using system_timer = basic_waitable_timer<std::chrono::system_clock>;

} // namespace pawl

#endif // PAWL_SYSTEM_TIMER_HPP
