// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A client that reads from a silent server.

#include <pawl/timeout.hpp>

#include <boost/asio.hpp>

#include <array>
#include <chrono>
#include <exception>
#include <iostream>

using boost::asio::ip::tcp;

boost::asio::awaitable<void> client(tcp::endpoint server) {
    using namespace std::chrono_literals;
    tcp::socket socket(co_await boost::asio::this_coro::executor);
    std::array<char, 1024> data;
    try {
        co_await socket.async_connect(server, pawl::timeout(5s));
        const auto n =
            co_await socket.async_read_some(boost::asio::buffer(data), pawl::timeout(100ms));
        std::cout << n << " bytes\n";
    } catch (const boost::system::system_error& error) {
        if (error.code() != pawl::error::timed_out)
            throw;
        std::cout << "timed out\n";
    }
}

int main() {
    boost::asio::io_context context;
    const tcp::acceptor silent(context, {boost::asio::ip::address_v4::loopback(), 0});
    boost::asio::co_spawn(context, client(silent.local_endpoint()), [](std::exception_ptr error) {
        if (error)
            std::rethrow_exception(error);
    });
    context.run();
}
