// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// The options of a pawl::event_queue, and the events of its timers.
#ifndef PAWL_EVENT_QUEUE_OPTIONS_HPP
#define PAWL_EVENT_QUEUE_OPTIONS_HPP

#include <pawl/config.hpp>

#include <cstddef>
#include <cstdint>

namespace pawl {

/// What happens to a tick of an interval if the queue is full.
enum class overflow_policy {
    /// The interval waits for room, then goes on as its missed_tick_policy says. Nothing is lost.
    block,
    /// The oldest tick in the queue is dropped. The next event of its timer counts it as an
    /// overrun.
    drop_oldest,
    /// A timer has at most one tick in the queue; further ticks count as its overruns. The number
    /// of timers bounds the queue, and the capacity is ignored.
    coalesce,
};

/// Options of an event queue.
struct event_queue_options {
    /// Number of interval ticks that fit into the queue, at least 1. One-offs, the last events of
    /// timers, and functions of executors always fit.
    std::size_t capacity = 65536;
    /// What happens to a tick that does not fit.
    overflow_policy overflow = overflow_policy::block;
};

/// The event that the function of a timer receives.
///
/// The event does not say whether the timer has been disarmed: the function is never called for
/// events emitted after that. Call `armed()` of the handle to know the present state.
template <class Clock>
struct basic_queue_event {
    /// When the event was due: a point of the interval's grid.
    typename Clock::time_point scheduled;
    /// When the timer put the event into the queue.
    typename Clock::time_point emitted;
    /// Number of further ticks that this event stands for: ticks that were missed and skipped,
    /// merged into this event, or dropped before it.
    std::uint64_t overruns = 0;
};

} // namespace pawl

#endif // PAWL_EVENT_QUEUE_OPTIONS_HPP
