// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A read from a silent peer ends at its limit, and so does a wait in the other translation unit.

#include "pawl_single.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <iostream>

std::chrono::nanoseconds wait_for(std::chrono::milliseconds delay); // other.cpp

int main() {
    using namespace std::chrono_literals;
    boost::asio::io_context context;
    boost::asio::local::stream_protocol::socket socket(context), silent_peer(context);
    boost::asio::local::connect_pair(socket, silent_peer);

    std::array<char, 16> buffer;
    boost::system::error_code result;
    const auto start = std::chrono::steady_clock::now();
    socket.async_read_some(
        boost::asio::buffer(buffer),
        pawl::timeout(20ms, [&](boost::system::error_code ec, std::size_t) { result = ec; }));
    context.run();
    const auto taken = std::chrono::steady_clock::now() - start;

    if (result != pawl::error::timed_out || taken < 20ms || wait_for(10ms) < 10ms) {
        std::cerr << "the read ended with '" << result.message() << "' after " << taken.count()
                  << " ns\n";
        return 1;
    }
    std::cout << "timed out, with Pawl " PAWL_VERSION_STRING "\n";
}
