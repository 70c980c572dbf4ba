// expect: pawl: \|\| and && of awaitable_operators need coroutines
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/timeout.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>

using namespace boost::asio::experimental::awaitable_operators;

boost::asio::awaitable<void> f(boost::asio::any_io_executor ex) {
    co_await (boost::asio::post(ex, pawl::timeout(std::chrono::seconds(1))) &&
              boost::asio::post(ex, pawl::timeout(std::chrono::seconds(2))));
}
