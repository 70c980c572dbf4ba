// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl_bench_capacity measures two things. Independent of the machine's speed: how often a service
// does each step, counted on a manual clock. Independent of a service: latencies of this machine.
// bench/capacity.py predicts with both.

#include "harness.hpp"
#include "memory_workload.hpp"
#include "program.hpp"
#include "report.hpp"

#include "../examples/command_line.hpp"

#include <pawl/manual_clock.hpp>
#include <pawl/stats.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

double ns_since(clock_type::time_point begin) {
    return std::chrono::duration<double, std::nano>(clock_type::now() - begin).count();
}

// ---- the machine --------------------------------------------------------------------------------

/// ns for one access to a line of `bytes`, in which each address depends on the one before: the
/// lines form one cycle, in random order.
double latency(std::size_t bytes) {
    struct alignas(64) line {
        std::uint32_t next = 0;
    };
    std::vector<line> lines(bytes / sizeof(line));
    std::vector<std::uint32_t> order(lines.size());
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (std::size_t i = 0; i != order.size(); ++i)
        lines[order[i]].next = order[(i + 1) % order.size()];
    order = {};

    std::uint32_t at = 0;
    const auto walk = [&](std::size_t steps) {
        for (std::size_t i = 0; i != steps; ++i)
            at = lines[at].next;
    };
    walk(std::min<std::size_t>(lines.size(), 1'000'000));
    constexpr std::size_t steps = 4'000'000;
    const auto begin = clock_type::now();
    walk(steps);
    const double ns = ns_since(begin) / steps;
    volatile std::uint32_t kept = at;
    (void)kept;
    return ns;
}

/// ns for a cache line to move from one core to another; 0 if there is one core only.
double handover() {
    if (std::thread::hardware_concurrency() < 2)
        return 0;
    constexpr unsigned rounds = 200'000;
    std::atomic<unsigned> turn{0};
    const auto take_turns = [&](unsigned mine) {
        for (unsigned i = 0; i != rounds; ++i) {
            while (turn.load(std::memory_order_acquire) % 2 != mine) {
            }
            turn.fetch_add(1, std::memory_order_acq_rel);
        }
    };
    std::thread other([&] { take_turns(1); });
    take_turns(0); // until both threads run
    other.join();
    turn = 0;
    std::thread again([&] { take_turns(1); });
    const auto begin = clock_type::now();
    take_turns(0);
    const double ns = ns_since(begin) / (2.0 * rounds);
    again.join();
    return ns;
}

// ---- the service --------------------------------------------------------------------------------

struct counts {
    std::size_t connections = 0;
    double bytes = 0; ///< of each: timer, wait, share of the service
    std::uint64_t moves = 0, expiries = 0, level_moves = 0, wake_ups = 0;
    std::size_t most_at_once = 0; ///< completions in one tenth of a second
};

/// A minute of a server: each connection has a timeout of 30 s, which each read moves. Nine
/// connections in ten read every five seconds on average. The others are silent, and expire.
counts minute_of_a_server(std::size_t connections) {
    constexpr std::chrono::milliseconds timeout = 30s, step = 100ms;
    constexpr int steps = 600;
    counts all;
    all.connections = connections;
    const double before = bench::detail::heap_in_use();
    boost::asio::io_context context;
    std::vector<std::unique_ptr<pawl::manual_timer>> timers;
    timers.reserve(connections);
    std::mt19937 random(1);
    std::size_t completed = 0;
    const auto wait = [&](pawl::manual_timer& t) {
        t.async_wait([&](boost::system::error_code) { ++completed; });
    };
    // They connected one after another, over the time of a timeout.
    std::uniform_int_distribution<std::int64_t> since(0, timeout.count());
    for (std::size_t i = 0; i != connections; ++i) {
        timers.push_back(std::make_unique<pawl::manual_timer>(
            context, std::chrono::milliseconds(since(random)) + 1ms));
        wait(*timers.back());
    }
    all.bytes = (bench::detail::heap_in_use() - before) / static_cast<double>(connections) -
                static_cast<double>(sizeof(void*)); // the vector's pointer

    const std::size_t busy = connections - connections / 10;
    std::uniform_int_distribution<std::size_t> who(0, busy - 1);
    const auto reads = static_cast<std::size_t>(static_cast<double>(busy) * 0.1 / 5);
    for (int i = 0; i != steps; ++i) {
        for (std::size_t n = 0; n != reads; ++n) {
            pawl::manual_timer& t = *timers[who(random)];
            if (t.rearm_after(timeout) == 0) { // it has expired
                t.expires_after(timeout);
                wait(t);
            }
        }
        completed = 0;
        pawl::manual_clock::advance(context, step);
        context.restart();
        context.poll();
        all.most_at_once = std::max(all.most_at_once, completed);
    }
    const auto total = pawl::stats(context).total();
    all.moves = total.moved;
    all.expiries = total.expired;
    all.level_moves = total.level_moves;
    all.wake_ups = total.wake_ups;
    return all;
}

boost::json::object to_json(const counts& c) {
    return {{"connections", c.connections},
            {"bytes", c.bytes},
            {"moves", c.moves},
            {"expiries", c.expiries},
            {"level_moves", c.level_moves},
            {"wake_ups", c.wake_ups},
            {"most_at_once", c.most_at_once}};
}

} // namespace

int main(int argc, char** argv) {
    std::string file;
    bool quick = false;
    CLI::App app{"What the model of bench/capacity.py starts from", "pawl_bench_capacity"};
    app.add_option("--json", file, "write to this file; standard output");
    app.add_flag("-q,--quick", quick, "a smoke test of seconds");
    if (const auto status = example::parse_command_line(app, argc, argv))
        return *status;
    return bench::guarded(app.get_name(), [&] {
        bench::json_file out(file);
        boost::json::array latencies, servers;
        for (std::size_t kb = 16; kb <= (quick ? 1U << 10 : 1U << 22); kb *= 2)
            latencies.push_back({{"bytes", kb << 10}, {"ns", latency(kb << 10)}});
        for (std::size_t n = 1'000; n <= (quick ? 10'000U : 10'000'000U); n *= 10)
            servers.push_back(to_json(minute_of_a_server(n)));
        const boost::json::object all{{"about", bench::detail::to_json(bench::environment())},
                                      {"handover_ns", handover()},
                                      {"latency", latencies},
                                      {"servers", servers}};
        if (file.empty())
            std::cout << all << '\n';
        out.write([&](std::ostream& to) { to << all << '\n'; });
        return 0;
    });
}
