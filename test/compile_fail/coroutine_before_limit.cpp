// expect: pawl: the limit comes first
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/timeout.hpp>

#include <boost/asio/awaitable.hpp>

#include <chrono>

boost::asio::awaitable<void> step();

boost::asio::awaitable<void> f() { co_await pawl::timeout(step(), std::chrono::seconds(1)); }
