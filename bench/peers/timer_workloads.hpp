// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The work of a server with timers, on any loop. Orders, delays and checksums are those of
///   pawl_bench.
#ifndef PAWL_BENCH_PEERS_TIMER_WORKLOADS_HPP
#define PAWL_BENCH_PEERS_TIMER_WORKLOADS_HPP

#include "../expiry_workloads.hpp"
#include "../fleet.hpp"
#include "../harness.hpp"
#include "../memory_workload.hpp"
#include "../tails/load_workloads.hpp"
#include "../tails/percentiles.hpp"
#include "echo_client.hpp"
#include "loop.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace bench::peers {

namespace detail {

/// Calls visit(i) for each timer in handlers, `per_turn` in each.
template <loop L, class Order, class Visit>
void visit_in_turns(L& l, std::size_t n, std::size_t per_turn, Order order, Visit visit) {
    for (std::size_t begin = 0; begin < n; begin += per_turn)
        l.turn([&] {
            for (auto k = begin; k < std::min(n, begin + per_turn); ++k)
                visit(order(k));
        });
}

inline constexpr auto in_sequence = [](std::size_t k) { return static_cast<index>(k); };

template <loop L>
void cancel_all(L& l, const plan& what) {
    visit_in_turns(l, what.size, what.poll_every, in_sequence, [&](index i) { l.cancel(i); });
    l.turn([] {}); // aborted handlers
}

/// Starts all timers, then times `operation(i, delay)` in random order.
template <loop L, class Delays, class Operation>
sample beaten(const plan& what, Delays delays, Operation operation) {
    const auto passes = passes_for(what);
    make_orders(what.size);
    seen = {};
    L l(what.size);
    visit_in_turns(l, what.size, what.poll_every, in_sequence,
                   [&](index i) { l.start(i, delays()); });
    const auto pass = [&](std::size_t number) {
        const auto& order = random_order(what.size, number);
        visit_in_turns(
            l, what.size, what.poll_every, [&](std::size_t k) { return order[k]; },
            [&](index i) { operation(l, i, delays()); });
    };
    pass(0); // warm-up

    const stopwatch<thread_cpu> watch;
    for (std::size_t number = 1; number <= passes; ++number)
        pass(number);
    l.turn([] {});
    const auto elapsed = watch.elapsed_ns();

    cancel_all(l, what);
    return {elapsed / static_cast<double>(passes * what.size), seen, {}};
}

inline constexpr auto answer_and_ask = [](auto& l, index i, clock::duration delay) {
    l.cancel(i);
    l.start(i, delay);
};
inline constexpr auto push_back = [](auto& l, index i, clock::duration delay) { l.move(i, delay); };

/// Starts timers that are due at random times in [first, first + window), where first is after the
/// last start. Returns first.
/// @param due if not null: receives when each timer is due, by the clock when it was started
template <loop L>
clock::time_point start_spread(L& l, const plan& what, clock::duration window,
                               std::vector<clock::time_point>* due = nullptr) {
    // Loops with a coarse clock start some milliseconds early.
    constexpr auto margin = std::chrono::milliseconds(10);
    for (auto lead = margin + bench::detail::time_to_start(what.size);; lead *= 2) {
        const auto before = seen;
        random_durations after_first({}, window);
        const auto first = clock::now() + lead;
        visit_in_turns(l, what.size, what.poll_every, in_sequence, [&](index i) {
            const auto at = first + after_first();
            if (due != nullptr)
                (*due)[i] = at;
            l.start(i, at - clock::now());
        });
        if (clock::now() + margin < first)
            return first;
        cancel_all(l, what);
        seen = before;
    }
}

/// The times of the first and the last of n expiries.
class first_and_last final : public witness {
public:
    explicit first_and_last(std::size_t n) : n_(n) {}

    void expired(index) override {
        if (++expired_ == 1)
            first = clock::now();
        if (expired_ == n_)
            last = clock::now();
    }

    clock::time_point first, last;

private:
    std::size_t n_;
    std::size_t expired_ = 0;
};

class lateness_of final : public witness {
public:
    explicit lateness_of(std::size_t n) : due(n) { late_us_.reserve(n); }

    void expired(index i) override { late_us_.push_back(tails::in_us(clock::now() - due[i])); }

    [[nodiscard]] sample report(const checksum& sum) && {
        const auto early =
            std::count_if(late_us_.begin(), late_us_.end(), [](double late) { return late < 0; });
        const auto earliest = -*std::min_element(late_us_.begin(), late_us_.end());
        const tails::percentiles p(std::move(late_us_));
        return {p.at(0.99),
                sum,
                {{"p50", p.at(0.5)},
                 {"p99", p.at(0.99)},
                 {"p99.9", p.at(0.999)},
                 {"max", p.max()},
                 {"early", static_cast<double>(early)},
                 {"earliest", std::max(0., earliest)},
                 {"off by at most", std::max(p.max(), earliest)}}};
    }

    std::vector<clock::time_point> due;

private:
    std::vector<double> late_us_;
};

} // namespace detail

/// The answer arrives, and the next request starts.
template <loop L>
sample requests(const plan& what) {
    return detail::beaten<L>(what, around_timeout_for(what.size), detail::answer_and_ask);
}

template <loop L>
sample requests_const(const plan& what) {
    return detail::beaten<L>(what, constant_timeout_for(what.size), detail::answer_and_ask);
}

template <loop L>
sample idle(const plan& what) {
    return detail::beaten<L>(what, constant_timeout_for(what.size), detail::push_back);
}

/// A loop that reads its clock for each deadline that is set, so that none is early by the age of
/// the loop's time.
template <loop L>
struct with_fresh_clock : L {
    using L::L;
    void start(index i, clock::duration delay) {
        this->update_now();
        L::start(i, delay);
    }
    void move(index i, clock::duration delay) {
        this->update_now();
        L::move(i, delay);
    }
};

template <loop L>
sample expiry(const plan& what) {
    seen = {};
    L l(what.size);
    const auto first_due = detail::start_spread(l, what, what.window);

    const auto sleeps = bench::detail::sleeps();
    const stopwatch<thread_cpu> watch;
    l.run();
    const auto elapsed = watch.elapsed_ns();

    const auto seconds = std::chrono::duration<double>(clock::now() - first_due).count();
    return {elapsed / static_cast<double>(what.size),
            seen,
            {{"wake-ups/s", (bench::detail::sleeps() - sleeps) / seconds}}};
}

/// The stall spins, as in pawl_bench.
template <loop L>
sample jump(const plan& what) {
    const auto window = what.window / 5;
    const auto rounds = std::clamp<std::size_t>(what.operations / 5 / what.size, 1, 4);
    seen = {};
    L l(what.size);
    double elapsed = 0;
    double to_last = 0;
    double first_to_last = 0;
    for (std::size_t round = 0; round <= rounds; ++round) {
        const auto all_due = detail::start_spread(l, what, window) + window;
        tails::spin_until(all_due + std::chrono::milliseconds(5)); // some clocks are coarse
        detail::first_and_last times(what.size);
        const watched_by watched(times);
        const auto begin = clock::now();
        const stopwatch<thread_cpu> watch;
        l.run();
        if (round == 0) // the warm-up
            continue;
        elapsed += watch.elapsed_ns();
        to_last += tails::in_us(times.last - begin);
        first_to_last += tails::in_us(times.last - times.first);
    }
    const auto times = static_cast<double>(rounds);
    return {elapsed / (times * static_cast<double>(what.size)),
            seen,
            {{"us until the last handler", to_last / times},
             {"us from the first to the last", first_to_last / times}}};
}

/// In real time. The clock is read at each expiry, so CPU time is not measured.
template <loop L>
sample lateness(const plan& what) {
    seen = {};
    L l(what.size);
    detail::lateness_of late(what.size);
    detail::start_spread(l, what, what.window, &late.due);
    const watched_by watched(late);
    l.run();
    return std::move(late).report(seen);
}

/// The same in a server: a client sends requests in bursts, one in each connection, which keep it
/// busy for 70 % of the time. When all timers are due, it closes the connections.
template <loop L>
sample lateness_70_50(const plan& what) {
    constexpr std::size_t burst = 50;
    seen = {};
    L l(what.size);
    detail::lateness_of late(what.size);
    const watched_by watched(late);
    auto all = connect_over_loopback(burst);
    std::deque<descriptor> server;
    for (const int fd : all.server) {
        server.emplace_back(fd);
        l.watch(fd, [fd] {
            char request = 0;
            if (::read(fd, &request, 1) == 0)
                return false;
            tails::requests::serve();
            return true;
        });
    }
    const auto first = detail::start_spread(l, what, what.window, &late.due);
    std::jthread client([&, last = first + what.window] {
        {
            const tails::requests busy(burst, 0.7, last, [&all](std::size_t i) {
                if (::write(all.client[i].get(), "r", 1) != 1)
                    throw std::system_error(errno, std::generic_category());
            });
        }
        all.client.clear();
    });
    l.run();
    return std::move(late).report(seen);
}

/// Each handler works for 5 ms before it starts timers of 50 to 150 ms. The library's idea of the
/// time may then be 5 ms old. With at most 288 timers all work is done before the first is due.
/// @tparam Update whether the handler updates the library's time, as the manual requires
template <loop L, bool Update>
sample after_work(const plan& what) {
    using namespace std::chrono_literals;
    seen = {};
    L l(what.size);
    detail::lateness_of late(what.size);
    const watched_by watched(late);
    random_durations delays(50ms, 100ms);
    for (std::size_t begin = 0; begin < what.size; begin += 32)
        l.turn([&] {
            tails::spin_until(clock::now() + 5ms);
            if constexpr (Update)
                l.update_now();
            for (auto i = begin; i < std::min(what.size, begin + 32); ++i) {
                const auto delay = delays();
                late.due[i] = clock::now() + delay;
                l.start(static_cast<index>(i), delay);
            }
        });
    l.run();
    auto all = std::move(late).report(seen);
    all.value = all.notes.back().second; // even p99 is early
    return all;
}

template <loop L>
sample memory(const plan& what) {
    auto delays = around_timeout_for(what.size);
    seen = {};
    const auto before = bench::detail::heap_in_use();
    std::optional<L> l(std::in_place, what.size);
    detail::visit_in_turns(*l, what.size, what.poll_every, detail::in_sequence,
                           [&](index i) { l->start(i, delays()); });
    const auto bytes = (bench::detail::heap_in_use() - before) / static_cast<double>(what.size);
    detail::cancel_all(*l, what);
    return {bytes, seen, {{"of its type", static_cast<double>(L::timer_bytes)}}};
}

} // namespace bench::peers

#endif // PAWL_BENCH_PEERS_TIMER_WORKLOADS_HPP
