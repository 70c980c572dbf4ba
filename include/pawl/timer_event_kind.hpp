// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::timer_event_kind: what can happen to a timer.
#ifndef PAWL_TIMER_EVENT_KIND_HPP
#define PAWL_TIMER_EVENT_KIND_HPP

#include <pawl/config.hpp>

#include <cstddef>
#include <cstdint>

namespace pawl {

/// What can happen to a timer. See pawl::timer_event.
enum class timer_event_kind : std::uint8_t {
    armed,      ///< a wait was started
    moved,      ///< a re-arm moved the deadline of the waits
    due,        ///< waits have fallen due; their handlers are queued
    started,    ///< the handler of a due wait is about to be invoked
    cancelled,  ///< waits ended early: cancel, expiry, destructor, slot, expire_all(), full ring
    overflowed, ///< a full ring had no room: the waits are refused, or fall due early
    shut_down,  ///< waits ended because their context, or that of their handler, was destroyed
};

/// Number of kinds.
inline constexpr std::size_t timer_event_kinds = 7;

} // namespace pawl

#endif // PAWL_TIMER_EVENT_KIND_HPP
