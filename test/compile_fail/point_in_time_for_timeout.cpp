// expect: pawl: timeout and cancel_after take a duration
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/timeout.hpp>

auto f() { return pawl::timeout(std::chrono::steady_clock::now()); }
