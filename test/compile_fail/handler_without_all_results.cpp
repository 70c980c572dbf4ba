// expect: pawl: the handler in a limit or group takes all results of the operation
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/timeout.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>

void f(boost::asio::ip::tcp::socket& socket, boost::asio::mutable_buffer buffer) {
    socket.async_read_some(
        buffer, pawl::timeout(std::chrono::seconds(1), [](boost::system::error_code) {}));
}
