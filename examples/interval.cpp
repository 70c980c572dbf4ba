// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Three intervals of 50 ms, one for each policy. Their users behave the same: after the second tick
// they are busy for 120 ms. The following ticks show how the policies differ.

#include <pawl/interval_timer.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <thread>

using namespace std::chrono_literals;
using pawl::missed_tick_policy;

namespace {

boost::asio::awaitable<void> six_ticks(pawl::interval_timer& ticks) {
    const auto start = ticks.next_tick();
    for (int i = 1; i <= 6; ++i) {
        const std::uint64_t missed = co_await ticks.async_wait(boost::asio::use_awaitable);
        std::cout << "  " << (std::chrono::steady_clock::now() - start) / 1ms << " ms";
        if (missed != 0)
            std::cout << " (missed " << missed << ')';
        if (i == 2)
            std::this_thread::sleep_for(120ms); // a handler that takes too long
    }
    std::cout << '\n';
}

void show(const char* name, missed_tick_policy policy) {
    std::cout << name << ':';
    boost::asio::io_context context;
    pawl::interval_timer ticks(context, 50ms, policy);
    boost::asio::co_spawn(context, six_ticks(ticks), boost::asio::detached);
    context.run();
}

} // namespace

int main() {
    show("burst", missed_tick_policy::burst);
    show("delay", missed_tick_policy::delay);
    show("skip ", missed_tick_policy::skip);

    try {
        boost::asio::io_context context;
        const pawl::interval_timer refused(context, 0s);
    } catch (const std::invalid_argument& e) {
        std::cout << "refused: " << e.what() << '\n';
    }
}
