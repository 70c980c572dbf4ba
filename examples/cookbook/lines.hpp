// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The protocol of some recipes: lines.
#ifndef PAWL_EXAMPLES_COOKBOOK_LINES_HPP
#define PAWL_EXAMPLES_COOKBOOK_LINES_HPP

#include <boost/asio.hpp>

#include <string>

namespace cookbook {

/// @param buffer bytes of later lines; the same for all calls.
inline boost::asio::awaitable<std::string> read_line(boost::asio::ip::tcp::socket& from,
                                                     std::string& buffer) {
    const auto size = co_await boost::asio::async_read_until(
        from, boost::asio::dynamic_buffer(buffer, 1024), '\n', boost::asio::use_awaitable);
    std::string line = buffer.substr(0, size - 1);
    buffer.erase(0, size);
    co_return line;
}

} // namespace cookbook

#endif // PAWL_EXAMPLES_COOKBOOK_LINES_HPP
