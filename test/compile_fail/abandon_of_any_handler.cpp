// expect: pawl: an operation that is abandoned ends on the executor of its handler
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/abandon.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>

#include <utility>

using boost::system::error_code;

void f(boost::asio::steady_timer& timer,
       boost::asio::any_completion_handler<void(error_code)> handler) {
    timer.async_wait(pawl::abandon([](error_code) {}, std::move(handler)));
}
