// expect: pawl: the only coroutine that timeout takes is boost::asio::awaitable
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/timeout.hpp>

#include <coroutine>

/// Like those of Boost.Cobalt.
struct task {
    std::suspend_never operator co_await();
};
task step();

auto f() { return pawl::timeout(std::chrono::seconds(5), step()); }
