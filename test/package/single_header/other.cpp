// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "pawl_single.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>

std::chrono::nanoseconds wait_for(std::chrono::milliseconds delay);

/// How long a timer of this delay has taken.
std::chrono::nanoseconds wait_for(std::chrono::milliseconds delay) {
    boost::asio::io_context context;
    const auto start = std::chrono::steady_clock::now();
    pawl::steady_timer timer(context, delay);
    timer.async_wait([](boost::system::error_code) {});
    context.run();
    return std::chrono::steady_clock::now() - start;
}
