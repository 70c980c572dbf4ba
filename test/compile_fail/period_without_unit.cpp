// expect: pawl: a period is a duration with a unit
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/interval_timer.hpp>

#include <boost/asio/io_context.hpp>

void f(boost::asio::io_context& context) { pawl::interval_timer ticks(context, 10); }
