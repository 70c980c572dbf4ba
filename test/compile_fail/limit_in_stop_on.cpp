// expect: pawl: stop_on takes no limit
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/stop_on.hpp>

#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <stop_token>

void f(boost::asio::steady_timer& timer, std::stop_token stop) {
    timer.async_wait(
        pawl::stop_on(stop, std::chrono::seconds(5), [](boost::system::error_code) {}));
}
