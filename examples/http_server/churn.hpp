// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Something for the page of timers to show: deadlines that are moved as often as --churn says, as those of a busy server are.

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

/// To be spawned where nothing else uses its timers. Ends when the server does.
inline asio::awaitable<void> churn(environment& e) {
    constexpr std::size_t crowd = 1024;
    constexpr std::chrono::hours far{1}; // none of them expires

    const auto ex = co_await asio::this_coro::executor;
    std::deque<pawl::steady_timer> timers;
    while (timers.size() != crowd)
        timers.emplace_back(ex, far).async_wait([](error_code) {});

    asio::steady_timer pause(ex); // Asio's: only the crowd is to be seen
    const auto begin = std::chrono::steady_clock::now();
    std::uint64_t moved = 0;
    while (!e.ending()) {
        const auto passed = std::chrono::steady_clock::now() - begin;
        const std::uint64_t wanted =
            e.options.churn * static_cast<std::uint64_t>(passed / std::chrono::milliseconds(1)) /
            1000;
        // What cannot be done in time is left out, so that the connections have their turn.
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
