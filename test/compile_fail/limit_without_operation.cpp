// expect: pawl: a limit or group needs an operation
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/timeout.hpp>

#include <boost/asio/awaitable.hpp>

#include <chrono>

boost::asio::awaitable<void> f() { co_await pawl::timeout(std::chrono::seconds(5)); }
