// expect: a rate_limiter needs a steady clock
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/rate_limiter.hpp>

pawl::basic_rate_limiter<std::chrono::system_clock>* bucket;
auto waiting = bucket->waiting();
