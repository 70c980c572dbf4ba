// expect among others: pawl: bind the cancellation slot inside the limit
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/cancel_after.hpp>
#include <pawl/steady_timer.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <chrono>

boost::asio::awaitable<void> f(pawl::steady_timer& timer, boost::asio::cancellation_slot slot) {
    co_await timer.async_wait(
        boost::asio::bind_cancellation_slot(slot, pawl::cancel_after(std::chrono::seconds(1))));
}
