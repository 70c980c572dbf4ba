// expect: pawl: an operation that uses a buffer or a pointer of its caller cannot be abandoned
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/abandon.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstddef>

void f(boost::asio::ip::tcp::socket& socket, boost::asio::mutable_buffer buffer) {
    socket.async_read_some(buffer, pawl::timeout(std::chrono::seconds(1), pawl::abandon,
                                                 [](boost::system::error_code, std::size_t) {}));
}
