// expect: pawl: an expiry is a duration with a unit
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/steady_timer.hpp>

#include <boost/asio/io_context.hpp>

void f(boost::asio::io_context& context) { pawl::steady_timer timer(context, 10); }
