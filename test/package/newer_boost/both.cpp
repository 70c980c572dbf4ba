// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Boost's cancel_after, which exists since 1.86, and Pawl's in one program: each is found by its
// name, also on an operation of Pawl's.

#include <pawl/cancel_after.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio.hpp>
#include <boost/asio/cancel_after.hpp>

#include <chrono>
#include <cstdio>

int main() {
    namespace asio = boost::asio;
    using namespace std::chrono_literals;

    asio::io_context context;
    pawl::steady_timer a(context, 1h);
    pawl::steady_timer b(context, 1h);
    pawl::steady_timer c(context, 1h);
    pawl::steady_timer limit(context);
    int as_promised = 0;
    const auto expect = [&](auto expected) {
        return [&as_promised, expected](boost::system::error_code ec) {
            as_promised += ec == expected;
        };
    };
    a.async_wait(asio::cancel_after(1ms, expect(asio::error::operation_aborted)));
    b.async_wait(pawl::cancel_after(1ms, expect(asio::error::operation_aborted)));
    c.async_wait(pawl::timeout(limit, 1ms, expect(pawl::error::timed_out)));
    context.run();

    std::printf("%d.%d: %d of 3\n", BOOST_VERSION / 100'000, BOOST_VERSION / 100 % 1000,
                as_promised);
    return as_promised == 3 ? 0 : 1;
}
