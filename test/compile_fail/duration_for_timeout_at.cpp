// expect: pawl: timeout_at and cancel_at take a point in time
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/timeout.hpp>

auto f() { return pawl::timeout_at(std::chrono::seconds(5)); }
