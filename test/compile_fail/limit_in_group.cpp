// expect: pawl: in_group takes no limit
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/group.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>

boost::asio::awaitable<void> f(pawl::group& g) {
    co_await boost::asio::post(
        pawl::in_group(g, std::chrono::seconds(5), boost::asio::use_awaitable));
}
