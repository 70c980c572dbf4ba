// expect: pawl: adapters go behind abandon, or around the limit
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
    co_await timer.async_wait(boost::asio::use_awaitable);
    (void)pawl::timeout(std::chrono::seconds(1), boost::asio::as_tuple(pawl::abandon));
}
