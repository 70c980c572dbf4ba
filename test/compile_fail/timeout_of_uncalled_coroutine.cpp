// expect: pawl: call the coroutine
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/timeout.hpp>

#include <boost/asio/awaitable.hpp>

boost::asio::awaitable<void> step();

auto f() { return pawl::timeout(std::chrono::seconds(1), step); }
