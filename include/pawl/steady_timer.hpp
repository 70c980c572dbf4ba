// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::steady_timer, a drop-in for boost::asio::steady_timer.
#ifndef PAWL_STEADY_TIMER_HPP
#define PAWL_STEADY_TIMER_HPP

#include <pawl/basic_waitable_timer.hpp>

#include <pawl/detail/service/clocks.hpp>

namespace pawl {

/// A timer on `std::chrono::steady_clock`. See basic_waitable_timer.
using steady_timer = basic_waitable_timer<detail::steady_clock>;

} // namespace pawl

#endif // PAWL_STEADY_TIMER_HPP
