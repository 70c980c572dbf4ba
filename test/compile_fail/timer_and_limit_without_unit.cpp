// expect: pawl: a limit is a duration with a unit
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

auto f(pawl::steady_timer& timer) { return pawl::timeout(timer, 5); }
