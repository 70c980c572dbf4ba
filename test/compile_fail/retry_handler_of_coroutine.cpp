// expect: pawl: the handler of retry or hedge takes the results of an attempt
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/retry.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>

boost::asio::awaitable<void> ask() { co_return; }

void f(boost::asio::io_context& context) {
    pawl::retry(
        context, pawl::retry_policy{}, [](pawl::attempt) { return ask(); },
        [](boost::system::error_code) {});
}
