// expect: pawl: before Boost 1.82, redirect_error, bind_allocator and bind_cancellation_slot need another token
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>

#include <chrono>

boost::asio::awaitable<void> f(pawl::steady_timer& timer) {
    boost::system::error_code ec;
    co_await timer.async_wait(
        boost::asio::redirect_error(pawl::timeout(std::chrono::seconds(1)), ec));
}
