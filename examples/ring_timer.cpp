// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Idle timeouts in a ring: all connections have the same timeout, so a queue is enough. The program
// declares its delays first; any other delay is an error.

#include <pawl/ring_timer.hpp>
#include <pawl/timer_service.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <deque>
#include <iostream>
#include <stdexcept>

int main() {
    using namespace std::chrono_literals;

    boost::asio::io_context context;
    pawl::options o;
    o.rings.delays = {{.delay = 200ms, .capacity = 10'000}}; // idle connections
    o.rings.marks = 4;                                       // at most a quarter plus a tick late
    pawl::make_timer_service<pawl::ring_timer>(context, o);

    const auto start = std::chrono::steady_clock::now();
    std::deque<pawl::ring_timer> connections;
    for (int number = 0; number < 3; ++number)
        connections.emplace_back(context, 200ms)
            .async_wait([number, start](boost::system::error_code ec) {
                const auto waited = std::chrono::steady_clock::now() - start;
                std::cout << "connection " << number << " after " << waited / 1ms
                          << " ms: " << (ec ? ec.message() : "timed out") << '\n';
            });

    context.run_for(120ms);
    connections[0].rearm_after(200ms); // it has sent something
    connections[1].cancel();           // it was closed

    try {
        connections[2].rearm_after(1s);
    } catch (const std::invalid_argument& error) {
        std::cout << error.what() << '\n'; // its timeout is unchanged
    }
    context.run();
}
