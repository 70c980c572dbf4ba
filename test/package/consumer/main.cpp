// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Returns 0 only if a read from a silent peer has ended by its timeout, and a timer has expired.

#include <pawl/pawl.hpp>

#include <boost/asio.hpp>

#include <chrono>
#include <exception>
#include <iostream>

boost::asio::awaitable<boost::system::error_code> read_with_limit(std::chrono::milliseconds limit);

int main() {
    using namespace std::chrono_literals;
    boost::asio::io_context context;

    bool expired = false;
    pawl::steady_timer timer(context, 10ms);
    timer.async_wait([&](boost::system::error_code ec) { expired = !ec; });

    boost::system::error_code read;
    boost::asio::co_spawn(context, read_with_limit(20ms),
                          [&](std::exception_ptr e, boost::system::error_code ec) {
                              if (e)
                                  std::rethrow_exception(e);
                              read = ec;
                          });
    context.run();

    std::cout << "Pawl " << PAWL_VERSION_STRING << ": the read ends with '" << read.message()
              << "', the timer has " << (expired ? "" : "not ") << "expired\n";
    return expired && read == pawl::error::timed_out ? 0 : 1;
}
