// expect: pawl: sleep_until takes a point in time
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/sleep.hpp>

#include <boost/asio/awaitable.hpp>

#include <chrono>

boost::asio::awaitable<void> f() { co_await pawl::sleep_until(std::chrono::seconds(10)); }
