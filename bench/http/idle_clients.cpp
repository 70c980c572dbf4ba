// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl_bench_idle_clients HOST PORT COUNT: opens COUNT connections, requests / on each, reads the
// answer, keeps the connections open, prints "ready", and ends when its standard input ends. If the
// server closes a connection, that is an error.

#include "../../examples/command_line.hpp"

#include <CLI/CLI.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>

#include <array>
#include <cstddef>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

asio::awaitable<void> run(tcp::endpoint server, std::size_t count) {
    const auto ex = co_await asio::this_coro::executor;
    std::vector<tcp::socket> connections;
    const std::string request = "GET / HTTP/1.1\r\nHost: bench\r\n\r\n";
    for (std::size_t i = 0; i < count; ++i) {
        auto& socket = connections.emplace_back(ex);
        co_await socket.async_connect(server, asio::use_awaitable);
        co_await asio::async_write(socket, asio::buffer(request), asio::use_awaitable);
        boost::beast::flat_buffer buffer;
        http::response<http::string_body> answer;
        co_await http::async_read(socket, buffer, answer, asio::use_awaitable);
        if (answer.result() != http::status::ok || !answer.keep_alive())
            throw std::runtime_error("connection " + std::to_string(i) + " is not kept alive");
    }
    std::cout << "ready" << std::endl;

    asio::posix::stream_descriptor input(ex, ::dup(STDIN_FILENO));
    std::array<char, 64> ignored{};
    try {
        for (;;)
            co_await input.async_read_some(asio::buffer(ignored), asio::use_awaitable);
    } catch (const boost::system::system_error& end) {
        if (end.code() != asio::error::eof)
            throw;
    }
    for (auto& socket : connections) {
        socket.non_blocking(true);
        boost::system::error_code ec;
        socket.read_some(asio::buffer(ignored), ec);
        if (ec != asio::error::would_block)
            throw std::runtime_error("the server has closed a connection");
    }
}

} // namespace

int main(int argc, char** argv) try {
    asio::ip::address host;
    unsigned short port = 0;
    std::size_t count = 0;
    CLI::App app("Idle clients of an HTTP server", "pawl_bench_idle_clients");
    app.add_option_function<std::string>(
           "HOST", [&](const std::string& text) { host = asio::ip::make_address(text); },
           "IP address of the server")
        ->required()
        ->check([](const std::string& text) {
            boost::system::error_code ec;
            asio::ip::make_address(text, ec);
            return ec ? "not an IP address: " + text : std::string();
        });
    app.add_option("PORT", port, "its TCP port")->required()->check(CLI::Range(1, 65535));
    app.add_option("COUNT", count, "number of connections")
        ->required()
        ->check(CLI::Range(1, 1'000'000));
    if (const auto status = example::parse_command_line(app, argc, argv))
        return *status;

    asio::io_context context(1);
    asio::co_spawn(context, run({host, port}, count), [](std::exception_ptr failure) {
        if (failure)
            std::rethrow_exception(failure);
    });
    context.run();
    return 0;
} catch (const std::exception& failure) {
    std::cerr << "pawl_bench_idle_clients: " << failure.what() << '\n';
    return 1;
}
