// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// What an event queue is told, and what it tells.
#ifndef PAWL_QUEUE_QUEUE_OPTIONS_HPP
#define PAWL_QUEUE_QUEUE_OPTIONS_HPP

#include <cstddef>
#include <cstdint>

namespace pawl {

/// What becomes of a tick of an interval when the queue is full.
enum class overflow_policy {
    /// The interval waits for room, and goes on as its missed_tick_policy says. Nothing is lost.
    block,
    /// The oldest tick in the queue is dropped. The next event of its timer counts it as an overrun.
    drop_oldest,
    /// No timer has more than one tick in the queue: further ones are counted as its overruns. So the
    /// number of timers is what bounds the queue, and the capacity has no meaning.
    coalesce,
};

/// Options of an event queue.
struct event_queue_options {
    /// How many ticks of intervals there is room for: 1 at least. One-offs, the last events of timers
    /// and functions of executors always have room.
    std::size_t capacity = 65536;
    /// What becomes of a tick for which there is none.
    overflow_policy overflow = overflow_policy::block;
};

/// What the function of a timer of an event queue is told of the event that it handles.
///
/// It has no copy of a mark that says whether the timer was disarmed. The function is called for events that were emitted
/// before that, so the copy would always say no: the only event with a mark is the last one, and that one is taken
/// out of the queue without a call. Whether the timer is disarmed by now is what `armed()` of its handle says.
template <class Clock>
struct basic_timer_event {
    /// When it was due, a point of the interval's grid.
    typename Clock::time_point scheduled;
    /// When the timer put it into the queue.
    typename Clock::time_point emitted;
    /// How many further ticks of the interval it stands for: those that were missed and left out,
    /// merged into it, or dropped before it.
    std::uint64_t overruns = 0;
};

} // namespace pawl

#endif // PAWL_QUEUE_QUEUE_OPTIONS_HPP
