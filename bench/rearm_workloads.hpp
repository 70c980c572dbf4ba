// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Timeouts that do not expire: the common case of a server. Each is set, cancelled in time, and
///   set again, from outside: by a thread that polls the context in between. handler_workloads.hpp
///   does the same in handlers.
///
/// Cost
///   A run: N starts and one pass untimed, then passes until `operations` are done. The CPU time of
///   the passes and of the aborted handlers is counted, but not making and destroying the timers.
#ifndef PAWL_BENCH_REARM_WORKLOADS_HPP
#define PAWL_BENCH_REARM_WORKLOADS_HPP

#include "fleet.hpp"
#include "harness.hpp"
#include "libraries.hpp"

#include <boost/asio/post.hpp>

#include <cstddef>
#include <functional>

namespace bench {

namespace detail {

/// Starts a wait on each timer, then times `rearm(fleet, i, timeout)` in random order.
template <class Library, class Timeouts, class Rearm>
sample rearm_all(const plan& what, Timeouts timeouts, Rearm rearm) {
    const auto passes = passes_for(what);
    make_orders(what.size);
    fleet<Library> f(what.size);
    for (std::size_t i = 0; i < f.size(); ++i)
        f.wait_after(static_cast<index>(i), timeouts());
    const auto visit = [&](index i) { rearm(f, i, timeouts()); };
    visit_and_poll(f, 0, 1, what.poll_every, visit); // warm-up

    const stopwatch<thread_cpu> watch;
    visit_and_poll(f, 1, 1 + passes, what.poll_every, visit);
    const auto elapsed = watch.elapsed_ns();

    auto sum = seen; // before draining, so that the stopwatch misses no deferred work
    f.cancel_all();
    sum += seen;
    return {elapsed / static_cast<double>(passes * what.size), sum, {}};
}

inline constexpr auto wait_again = [](auto& f, index i, clock::duration timeout) {
    f.wait_after(i, timeout);
};

template <class Library>
inline constexpr auto push_back =
    [](auto& f, index i, clock::duration timeout) { Library::push_back(f.timers[i], timeout, i); };

} // namespace detail

template <class Library>
sample churn(const plan& what) {
    return detail::rearm_all<Library>(what, around_timeout_for(what.size), detail::wait_again);
}

template <class Library>
sample churn_const(const plan& what) {
    return detail::rearm_all<Library>(what, constant_timeout_for(what.size), detail::wait_again);
}

template <class Library>
sample idle_rearm(const plan& what) {
    return detail::rearm_all<Library>(what, constant_timeout_for(what.size),
                                      detail::push_back<Library>);
}

template <class Library>
sample idle_rearm_random(const plan& what) {
    return detail::rearm_all<Library>(what, around_timeout_for(what.size),
                                      detail::push_back<Library>);
}

/// How a lone connection moves its deadline.
struct by_waiting_again {
    template <class Library>
    static void move(fleet<Library>& f, clock::duration timeout) {
        f.wait_after(0, timeout);
    }
};

struct by_push_back {
    template <class Library>
    static void move(fleet<Library>& f, clock::duration timeout) {
        Library::push_back(f.timers[0], timeout, 0);
    }
};

/// A handler that posts itself represents the reads, so that the context runs as under load; both
/// figures include its cost. The cost of a library that arms a system timer for each new earliest
/// deadline shows here.
template <class Library, class How>
sample lone_connection(const plan& what) {
    fleet<Library> f(1);
    const auto timeout = std::chrono::seconds(30);
    std::size_t reads_left = 0;
    std::function<void()> read = [&] {
        How::move(f, timeout);
        if (--reads_left == 0)
            f.io.stop();
        else
            asio::post(f.io, std::ref(read));
    };
    const auto run_reads = [&](std::size_t reads) {
        reads_left = reads;
        f.io.restart();
        asio::post(f.io, std::ref(read));
        f.io.run();
    };
    f.wait_after(0, timeout);
    run_reads(what.operations / 10 + 1); // warm-up

    const stopwatch<thread_cpu> watch;
    run_reads(what.operations);
    const auto elapsed = watch.elapsed_ns();

    f.cancel_all();
    return {elapsed / static_cast<double>(what.operations), seen, {}};
}

} // namespace bench

#endif // PAWL_BENCH_REARM_WORKLOADS_HPP
