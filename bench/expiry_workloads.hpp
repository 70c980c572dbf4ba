// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Timers that expire. All are started before the first is due. If the machine was too slow, the
///   waits are cancelled and started again, with more time for the starts.
#ifndef PAWL_BENCH_EXPIRY_WORKLOADS_HPP
#define PAWL_BENCH_EXPIRY_WORKLOADS_HPP

#include "fleet.hpp"
#include "harness.hpp"
#include "libraries.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace bench {

namespace detail {

/// Time for n starts, on a slow machine.
inline std::chrono::milliseconds time_to_start(std::size_t n) {
    return std::chrono::milliseconds(10 + n / 1000);
}

/// Starts waits that are due at random times in [first, first + window), where first is after the
/// last start. Returns first.
/// @param handler_of makes the handler of timer i that is due at a time point; it counts in `seen`
template <class Library, class HandlerOf>
clock::time_point start_all(fleet<Library>& f, clock::duration window, HandlerOf handler_of) {
    for (auto lead = time_to_start(f.size());; lead *= 2) {
        const auto before = seen;
        random_durations after_first({}, window);
        const auto first = clock::now() + lead;
        for (std::size_t i = 0; i < f.size(); ++i) {
            const auto due = first + after_first();
            f.wait_until(static_cast<index>(i), due, handler_of(static_cast<index>(i), due));
        }
        if (clock::now() < first)
            return first;
        f.cancel_all();
        f.io.restart(); // having run out of work it is stopped
        seen = before;
    }
}

template <class Library>
clock::time_point start_all(fleet<Library>& f, clock::duration window) {
    return start_all(f, window, [](index i, clock::time_point) { return note_completion(i); });
}

/// How often this thread has gone to sleep: each is a wake-up of the loop.
inline double sleeps() {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return static_cast<double>(usage.ru_nvcsw);
}

} // namespace detail

template <class Library>
sample expiry_spread(const plan& what) {
    fleet<Library> f(what.size);
    const auto first_due = detail::start_all(f, what.window);

    const auto sleeps = detail::sleeps();
    const stopwatch<thread_cpu> watch;
    f.io.run();
    const auto elapsed = watch.elapsed_ns();

    const auto seconds = std::chrono::duration<double>(clock::now() - first_due).count();
    return {elapsed / static_cast<double>(what.size),
            seen,
            {{"wake-ups/s", (detail::sleeps() - sleeps) / seconds},
             {"seconds from first due to last handler", seconds}}};
}

/// Timers of one delay start evenly within a second, while the loop is polled each millisecond, and
/// all expire. The time of the starts is not counted.
template <class Library>
sample expiry_fixed(const plan& what) {
    using namespace std::chrono_literals;
    fleet<Library> f(what.size);
    const auto& order = random_order(what.size, 0);
    const auto begin = clock::now();
    double elapsed = 0;
    const auto counting = [&](auto use) {
        const stopwatch<thread_cpu> watch;
        use();
        elapsed += watch.elapsed_ns();
    };
    std::size_t started = 0;
    for (std::size_t ms = 1; ms <= 1000; ++ms) {
        std::this_thread::sleep_until(begin + ms * 1ms);
        for (; started < what.size * ms / 1000; ++started)
            f.wait_after(order[started], 2s);
        counting([&] { f.io.poll(); });
    }
    counting([&] { f.io.run(); });
    return {elapsed / static_cast<double>(what.size), seen, {}};
}

namespace detail {

struct unit {
    asio::io_context& io;
    const std::vector<index>& order;
    std::size_t at;

    void operator()() const {
        note_completion(order[at])({});
        if (at + 1 != order.size())
            asio::post(io, unit{io, order, at + 1});
    }
};

} // namespace detail

/// The same handlers without a timer, each queued by the one before: the floor of any timer that
/// runs one completion in a unit of its own.
inline sample expiry_posted(const plan& what) {
    asio::io_context io;
    seen = {};
    const stopwatch<thread_cpu> watch;
    asio::post(io, detail::unit{io, random_order(what.size, 0), 0});
    io.run();
    return {watch.elapsed_ns() / static_cast<double>(what.size), seen, {}};
}

/// The stall spins: a loop that stalls has usually been busy, and waking a sleeping core would be
/// measured as well.
template <class Library>
sample jump(const plan& what) {
    const auto window = what.window / 5;
    const auto rounds = std::clamp<std::size_t>(what.operations / 5 / what.size, 1, 4);
    fleet<Library> f(what.size);
    double elapsed = 0;
    for (std::size_t round = 0; round <= rounds; ++round) {
        const auto all_due = detail::start_all(f, window) + window;
        while (clock::now() < all_due) {
        }
        f.io.restart();
        const stopwatch<thread_cpu> watch;
        f.io.run();
        if (round != 0) // the first round is the warm-up
            elapsed += watch.elapsed_ns();
    }
    return {elapsed / static_cast<double>(rounds * what.size), seen, {}};
}

} // namespace bench

#endif // PAWL_BENCH_EXPIRY_WORKLOADS_HPP
