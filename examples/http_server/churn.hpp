// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Gives the page of timers data to show: moves --churn deadlines per second, like a busy server.

#ifndef PAWL_EXAMPLES_HTTP_SERVER_CHURN_HPP
#define PAWL_EXAMPLES_HTTP_SERVER_CHURN_HPP

#include "http_server/session.hpp"

#include <pawl/steady_timer.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace example {

/// Spawn it on an executor without other timers. Ends with the server.
inline asio::awaitable<void> churn(environment& e) {
    constexpr std::size_t crowd = 1024;
    constexpr std::chrono::hours far{1}; // none of them expires

    const auto ex = co_await asio::this_coro::executor;
    std::deque<pawl::steady_timer> timers;
    while (timers.size() != crowd)
        timers.emplace_back(ex, far).async_wait([](error_code) {});

    asio::steady_timer pause(ex); // Asio's: only the crowd should be visible
    const auto begin = std::chrono::steady_clock::now();
    std::uint64_t moved = 0;
    while (!e.ending()) {
        const auto passed = std::chrono::steady_clock::now() - begin;
        const std::uint64_t wanted =
            e.options.churn * static_cast<std::uint64_t>(passed / std::chrono::milliseconds(1)) /
            1000;
        // Skips what cannot be done in time, so that connections get their turn.
        moved =
            std::max(moved, wanted - std::min<std::uint64_t>(wanted, e.options.churn / 100 + 1));
        for (; moved != wanted; ++moved)
            timers[moved % crowd].rearm_after(far + std::chrono::milliseconds(moved % 60'000));
        pause.expires_after(std::chrono::milliseconds(1));
        co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    for (auto& t : timers)
        t.cancel();
}

} // namespace example

#endif // PAWL_EXAMPLES_HTTP_SERVER_CHURN_HPP
