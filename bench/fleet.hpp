// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The base of all workloads: N timers of a library in a context of their own, the random order
///   in which a server's clients use them, and the timeouts.
#ifndef PAWL_BENCH_FLEET_HPP
#define PAWL_BENCH_FLEET_HPP

#include "libraries.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace bench {

using index = std::uint32_t;

/// The order of a pass over n timers: a fixed permutation of 0..n-1 for each pass % 3, the same for
/// every variant. Successive passes differ. Otherwise each pass would meet the waits in the order
/// in which the last pass had allocated them, as neighbours in memory. The clients of a server
/// never do that.
inline const std::vector<index>& random_order(std::size_t n, std::size_t pass) {
    static std::array<std::vector<index>, 3> orders;
    const auto which = pass % orders.size();
    auto& order = orders[which];
    if (order.size() != n) {
        order.resize(n);
        std::iota(order.begin(), order.end(), index{0});
        std::shuffle(order.begin(), order.end(), std::mt19937{static_cast<unsigned>(2024 + which)});
    }
    return order;
}

/// Uniform durations in [low, low + width) in steps of about 1 us; width below one hour. Each costs
/// about a nanosecond, so that the timers are measured and not the random numbers.
class random_durations {
public:
    /// Different streams give different durations.
    random_durations(clock::duration low, clock::duration width, std::uint64_t stream = 0)
        : low_(low.count()), width_in_1024_ns_(static_cast<std::uint64_t>(width.count()) >> 10),
          state_(88172645463325252u + stream * 0x9e3779b97f4a7c15u) {}

    clock::duration operator()() noexcept {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        const auto part = ((state_ >> 32) * width_in_1024_ns_) >> 22; // of 2^32, times 2^10
        return clock::duration(low_ + static_cast<clock::rep>(part));
    }

private:
    clock::rep low_;
    std::uint64_t width_in_1024_ns_;
    std::uint64_t state_;
};

/// Every wait has the same timeout: the idle timeout of one server.
class constant_duration {
public:
    explicit constant_duration(clock::duration value) : value_(value) {}
    clock::duration operator()() const noexcept { return value_; }

private:
    clock::duration value_;
};

/// 30 s, far from expiring during any run; ten times that beyond 1e6 timers, where one pass of asio
/// takes longer than 30 s.
inline std::chrono::seconds timeout_for(std::size_t timers) {
    return std::chrono::seconds(timers > 1'000'000 ? 300 : 30);
}

/// Half of that to one and a half.
inline auto around_timeout_for(std::size_t timers, std::uint64_t stream = 0) {
    return random_durations(timeout_for(timers) / 2, timeout_for(timers), stream);
}

inline auto constant_timeout_for(std::size_t timers) {
    return constant_duration(timeout_for(timers));
}

template <class Library>
struct fleet {
    using timer = typename Library::timer;

    asio::io_context io;
    std::vector<timer> timers; // contiguous; destroyed before its context

    explicit fleet(std::size_t n) {
        seen = {};
        Library::set_up(io);
        timers.reserve(n);
        add(n);
    }

    /// At most as many as were reserved.
    void add(std::size_t n) {
        for (std::size_t i = 0; i < n; ++i)
            timers.emplace_back(io);
    }

    std::size_t size() const noexcept { return timers.size(); }

    void wait_after(index i, clock::duration timeout) {
        timers[i].expires_after(timeout);
        timers[i].async_wait(note_completion(i));
    }

    template <class Handler>
    void wait_until(index i, clock::time_point due, Handler handler) {
        timers[i].expires_at(due);
        timers[i].async_wait(handler);
    }

    /// Runs everything that is ready, even after a stop().
    void drain() {
        io.restart();
        io.poll();
    }

    void cancel_all() {
        for (auto& t : timers)
            t.cancel();
        drain();
    }
};

/// Calls visit(i) for every timer i in the random order of each of the passes [first_pass,
/// last_pass). Polls the context after every poll_every calls, like a server whose loop runs the
/// completions after the handlers that caused them.
template <class Library, class Visit>
void visit_and_poll(fleet<Library>& f, std::size_t first_pass, std::size_t last_pass,
                    std::size_t poll_every, Visit visit) {
    auto until_poll = poll_every;
    for (auto pass = first_pass; pass != last_pass; ++pass)
        for (const auto i : random_order(f.size(), pass)) {
            visit(i);
            if (--until_poll == 0) {
                f.io.poll();
                until_poll = poll_every;
            }
        }
    f.io.poll();
}

/// Makes the random orders before the stopwatch runs; otherwise the first use makes them.
inline void make_orders(std::size_t n) {
    for (std::size_t pass = 0; pass < 3; ++pass)
        random_order(n, pass);
}

inline std::size_t passes_for(const plan& what) {
    return std::max<std::size_t>(1, what.operations / what.size);
}

} // namespace bench

#endif // PAWL_BENCH_FLEET_HPP
