// expect: pawl: the function for late results takes all results of the operation; a token goes behind it
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/abandon.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>

boost::asio::awaitable<void> f(boost::asio::steady_timer& timer) {
    co_await timer.async_wait(pawl::timeout(
        std::chrono::seconds(1), pawl::abandon(boost::asio::as_tuple(boost::asio::use_awaitable))));
}
