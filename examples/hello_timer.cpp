// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The smallest program: wait, and move the deadline of the pending wait.

#include <pawl/steady_timer.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <iostream>

int main() {
    using namespace std::chrono_literals;

    boost::asio::io_context context;
    pawl::steady_timer timer(context, 50ms);
    const auto start = std::chrono::steady_clock::now();

    timer.async_wait([&](boost::system::error_code ec) {
        const auto waited = std::chrono::steady_clock::now() - start;
        std::cout << "hello after " << waited / 1ms << " ms: " << ec.message() << '\n';
    });

    // Other timers need a cancelled wait and a new one here. This moves the wait.
    const auto moved = timer.rearm_after(150ms);
    std::cout << "moved " << moved << " wait from 50 ms to 150 ms\n";

    context.run();
}
