// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Reads from a silent pipe. Returns 0 if the limit ended the read, with the right error.

#include <pawl/timeout.hpp>
#include <pawl/version.hpp>

#include <boost/asio.hpp>

#include <chrono>
#include <iostream>

namespace asio = boost::asio;

asio::awaitable<void> read(asio::readable_pipe& silent, boost::system::error_code& result) {
    char byte;
    co_await silent.async_read_some(
        asio::buffer(&byte, 1), pawl::timeout(std::chrono::milliseconds(10),
                                              asio::redirect_error(asio::use_awaitable, result)));
}

int main() {
    asio::io_context context;
    asio::readable_pipe silent(context);
    asio::writable_pipe writer(context);
    asio::connect_pipe(silent, writer);

    boost::system::error_code result;
    asio::co_spawn(context, read(silent, result), asio::detached);
    context.run();

    std::cout << "pawl " PAWL_VERSION_STRING ": " << result.message() << '\n';
    return result == pawl::error::timed_out ? 0 : 1;
}
