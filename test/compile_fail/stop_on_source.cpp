// expect: pawl: the first argument of stop_on is a stop token
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/stop_on.hpp>

#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>

#include <stop_token>

void f(boost::asio::steady_timer& timer, std::stop_source& source) {
    timer.async_wait(pawl::stop_on(source, [](boost::system::error_code) {}));
}
