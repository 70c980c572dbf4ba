// expect: pawl: this limit has no executor to keep time on
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The handler may have an executor, but only at run time.
#include <pawl/timeout.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/async_result.hpp>

#include <chrono>
#include <utility>

using boost::system::error_code;

auto async_nothing(auto&& token) {
    return boost::asio::async_initiate<decltype(token), void(error_code)>(
        [](auto handler) { std::move(handler)(error_code()); }, token);
}

void f(boost::asio::any_completion_handler<void(error_code, int)> handler) {
    async_nothing(
        pawl::timeout(std::chrono::seconds(1), boost::asio::append(std::move(handler), 1)));
}
