// expect: pawl: an operation that is abandoned has an error_code or an exception_ptr
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/abandon.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <chrono>

void f(boost::asio::io_context& context) {
    boost::asio::post(context, pawl::timeout(std::chrono::seconds(1), pawl::abandon,
                                             [](boost::system::error_code) {}));
}
