// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Boost.Cobalt on Pawl's timers: only compiled, because its library contains Asio's timers.

#include <pawl/interval_timer.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <boost/cobalt.hpp>
#include <boost/cobalt/io.hpp>

#include <chrono>

namespace cobalt = boost::cobalt;
using namespace std::chrono_literals;

cobalt::task<int> three_waits() {
    cobalt::io::steady_timer of_cobalt(1ms);
    co_await of_cobalt.wait();
    pawl::steady_timer of_pawl(co_await cobalt::this_coro::executor, 1ms);
    co_await of_pawl.async_wait(cobalt::use_op);
    co_await of_pawl.async_wait(pawl::timeout(5s, cobalt::use_op));
    co_await cobalt::io::sleep(1ms);
    co_return 3;
}

cobalt::promise<void> first_of_two() {
    const auto executor = co_await cobalt::this_coro::executor;
    pawl::steady_timer soon(executor, 1ms);
    pawl::steady_timer late(executor, 1h);
    co_await cobalt::race(soon.async_wait(cobalt::use_op), late.async_wait(cobalt::use_op));
}

cobalt::main co_main(int, char**) {
    co_await first_of_two();
    co_return co_await three_waits();
}
