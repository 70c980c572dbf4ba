// expect among others: pawl: define PAWL_VIRTUAL_TIME before the first Pawl header
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/steady_timer.hpp>

#define PAWL_VIRTUAL_TIME
#include <pawl/virtual_time.hpp>
