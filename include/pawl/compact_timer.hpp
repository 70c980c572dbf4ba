// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::compact_timer, for processes with very many execution contexts.
#ifndef PAWL_COMPACT_TIMER_HPP
#define PAWL_COMPACT_TIMER_HPP

#include <pawl/basic_waitable_timer.hpp>

#include <pawl/service/on_backend.hpp>

#include <pawl/time/binary_wheel.hpp>

#include <boost/asio/wait_traits.hpp>

#include <chrono>

namespace pawl {

/// A steady timer on pawl::time::binary_wheel: its time structure takes 1.2 KB of a context instead
/// of 144 KB, and no heap. Expiry costs more than with pawl::steady_timer, the more so the more
/// timers there are. Members, errors, thread safety and complexity are those of
/// basic_waitable_timer.
using compact_timer = basic_waitable_timer<
    std::chrono::steady_clock,
    on_backend<time::binary_wheel, boost::asio::wait_traits<std::chrono::steady_clock>>>;

} // namespace pawl

#endif // PAWL_COMPACT_TIMER_HPP
