// expect among others: pawl: the function of a timer is called as f.event.
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/event_queue.hpp>

void ticks(pawl::event_queue& queue) {
    queue.every(std::chrono::seconds(1), [](int) {});
}
