// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::options and pawl::make_timer_service().
#ifndef PAWL_TIMER_SERVICE_HPP
#define PAWL_TIMER_SERVICE_HPP

#include <pawl/config.hpp>

#include <pawl/service/timer_service.hpp>

#endif // PAWL_TIMER_SERVICE_HPP
