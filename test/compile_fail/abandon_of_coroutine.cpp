// expect among others: pawl: a coroutine cannot be abandoned
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/abandon.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <utility>

boost::asio::awaitable<void> f(boost::asio::awaitable<void> coroutine) {
    co_await pawl::timeout(std::chrono::seconds(1), pawl::abandon, std::move(coroutine));
}
