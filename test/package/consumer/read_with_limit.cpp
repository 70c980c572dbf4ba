// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The second translation unit that includes all of Pawl: functions that are not inline would be
// defined twice.

#include <pawl/pawl.hpp>

#include <boost/asio.hpp>

#include <array>
#include <chrono>

using boost::asio::ip::tcp;

boost::asio::awaitable<boost::system::error_code> read_with_limit(std::chrono::milliseconds limit) {
    const auto ex = co_await boost::asio::this_coro::executor;
    const tcp::acceptor silent(ex, {boost::asio::ip::address_v4::loopback(), 0});
    tcp::socket socket(ex);
    co_await socket.async_connect(silent.local_endpoint(), boost::asio::use_awaitable);

    const auto start = std::chrono::steady_clock::now();
    std::array<char, 64> data;
    try {
        co_await socket.async_read_some(boost::asio::buffer(data), pawl::timeout(limit));
    } catch (const boost::system::system_error& e) {
        // An early error does not come from the limit.
        if (std::chrono::steady_clock::now() - start >= limit)
            co_return e.code();
    }
    co_return boost::system::error_code();
}
