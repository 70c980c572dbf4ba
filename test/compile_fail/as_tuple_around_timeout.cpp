// expect among others: pawl: put as_tuple inside
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>

boost::asio::awaitable<void> f(pawl::steady_timer& timer) {
    auto [ec] =
        co_await timer.async_wait(boost::asio::as_tuple(pawl::timeout(std::chrono::seconds(1))));
    (void)ec;
}
