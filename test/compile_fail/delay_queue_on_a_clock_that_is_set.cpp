// expect: an expiring_map needs a steady clock
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/delay_queue.hpp>

pawl::basic_delay_queue<int, std::chrono::system_clock>* queue;
auto size = queue->size();
