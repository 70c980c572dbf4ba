// expect: pawl: before Boost 1.82, redirect_error, bind_allocator and bind_cancellation_slot need another token
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>

#include <chrono>

boost::asio::awaitable<void> f(pawl::steady_timer& timer, boost::asio::cancellation_slot slot) {
    co_await timer.async_wait(
        boost::asio::bind_cancellation_slot(slot, pawl::timeout(std::chrono::seconds(1))));
}
