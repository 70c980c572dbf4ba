// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   One coroutine per connection, which waits on its timer. The connection's traffic wakes it by
///   cancel(), and it waits again. Both figures include the cost of resuming a coroutine: the whole
///   wait is compared, as a server pays for it.
///   compared is the whole wait as a server pays it.
#ifndef PAWL_BENCH_COROUTINE_WORKLOADS_HPP
#define PAWL_BENCH_COROUTINE_WORKLOADS_HPP

#include "fleet.hpp"
#include "harness.hpp"
#include "libraries.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <cstddef>

namespace bench {

namespace detail {

/// Ends when its context destroys it.
template <class Timer>
asio::awaitable<void> parked_connection(Timer& timer, std::size_t id) {
    for (;;) {
        timer.expires_after(std::chrono::seconds(30));
        const auto [error] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
        note_completion(id)(error);
    }
}

} // namespace detail

template <class Library>
sample coroutine_wait(const plan& what) {
    const auto passes = passes_for(what);
    make_orders(what.size);
    fleet<Library> f(what.size);
    for (std::size_t i = 0; i < f.size(); ++i)
        asio::co_spawn(f.io, detail::parked_connection(f.timers[i], i), asio::detached);
    f.io.poll();
    const auto wake = [&](index i) { f.timers[i].cancel(); };
    visit_and_poll(f, 0, 1, what.poll_every, wake); // warm-up

    const stopwatch<thread_cpu> watch;
    visit_and_poll(f, 1, 1 + passes, what.poll_every, wake);
    const auto elapsed = watch.elapsed_ns();

    return {elapsed / static_cast<double>(passes * what.size), seen, {}};
}

} // namespace bench

#endif // PAWL_BENCH_COROUTINE_WORKLOADS_HPP
