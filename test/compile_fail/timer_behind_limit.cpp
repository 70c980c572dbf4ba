// expect: pawl: the timer comes before the limit
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <chrono>

auto f(pawl::steady_timer& timer) { return pawl::timeout(std::chrono::seconds(5), timer); }
