// expect: pawl: a limit needs a Pawl timer
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/timeout.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

auto f(boost::asio::steady_timer& timer) { return pawl::timeout(timer, std::chrono::seconds(5)); }
