// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A game loop: fixed frames, one thread. Each frame has a time budget for events. Other events wait for
// the next frame, in order, so a burst delays events, not frames.

#include <pawl/event_queue.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <thread>

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

namespace {

constexpr auto frame_time = 8ms;
constexpr auto event_budget = 2ms;
constexpr auto event_time = 500us; // cost of an event of the burst
constexpr int burst = 40;

/// Handles events until there are none, or the budget is spent. At least one, so that each event
/// gets its turn.
std::size_t handle_events(pawl::event_queue& events) {
    const auto end = clock_type::now() + event_budget;
    std::size_t handled = 0;
    while (events.process_one() != 0) {
        ++handled;
        if (clock_type::now() >= end)
            break;
    }
    return handled;
}

} // namespace

int main() {
    pawl::event_queue events; // keeps its own timers: no second thread needed

    int blinks = 0;
    bool in_order = true;
    int next = 0;
    auto blink = events.every(
        5 * frame_time,
        [&](const pawl::event_queue::event& e) { blinks += 1 + static_cast<int>(e.overruns); },
        pawl::missed_tick_policy::skip);
    events.once(3 * frame_time, [&] { // an explosion
        for (int i = 0; i != burst; ++i)
            events.once(0ms, [&in_order, &next, i] {
                in_order = in_order && i == next++;
                std::this_thread::sleep_for(event_time);
            });
    });

    int frames = 0;
    int busy_frames = 0; // with events of the burst
    auto frame = clock_type::now();
    while (next != burst || blinks < 3) {
        const int before = next;
        const std::size_t handled = handle_events(events);
        ++frames;
        busy_frames += next != before;
        if (handled > 1)
            std::cout << "frame " << frames << ": " << handled << " events, " << events.pending()
                      << " wait\n";
        // Here a game computes and draws. Frames after a late one do not hurry.
        frame = std::max(frame + frame_time, clock_type::now());
        std::this_thread::sleep_until(frame);
    }
    blink.destroy();

    // Each event costs a quarter of the budget, so a frame has room for four.
    const bool spread = busy_frames >= burst * event_time / event_budget;
    std::cout << frames << " frames, " << blinks << " blinks, the burst took " << busy_frames
              << " frames\n";
    if (!in_order || !spread || events.timers() != 0 || events.pending() != 0) {
        std::cout << "FAILED\n";
        return 1;
    }
}
