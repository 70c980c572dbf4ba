// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl_bench_peers: Pawl beside Asio's timers, libuv, libevent and libev, see README.md.

#include "harness.hpp"
#include "libraries.hpp"
#include "peers/asio_loop.hpp"
#include "peers/echo_client.hpp"
#include "peers/echo_servers.hpp"
#include "peers/libev_loop.hpp"
#include "peers/libevent_loop.hpp"
#include "peers/libuv_loop.hpp"
#include "peers/promises.hpp"
#include "peers/timer_workloads.hpp"
#include "program.hpp"
#include "report.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

namespace {

namespace peers = bench::peers;

using pawl_loop = peers::asio_loop<bench::pawl_default>;
using alarm_loop = peers::alarm_loop<pawl::alarm<peers::expiry_noter>>;
using coarse_alarm_loop = peers::alarm_loop<pawl::coarse_alarm<peers::expiry_noter>>;
using pawl64_loop = peers::asio_loop<bench::pawl_64>;
using coarse_loop = peers::asio_loop<bench::pawl_coarse>;
using asio_loop = peers::asio_loop<bench::asio_steady>;
using libuv = peers::libuv_loop;
using libevent = peers::libevent_loop<false>;
using libevent_locked = peers::libevent_loop<true>;
using libevent_common = peers::libevent_loop<false, true>;
using libev = peers::libev_loop<false>;
using libev_lazy = peers::libev_loop<true>;

struct settings : bench::program {
    double clients = 200;

    using program::program;
};

struct entry {
    bench::workload workload;
    std::string value; ///< the name of the value, if the notes have the table
    double most = 1e7; ///< timers
};

std::vector<entry> all_workloads(const settings& s) {
    using namespace peers;
    std::vector<entry> all;

    all.push_back({{"requests",
                    "request timeouts: each request has a timeout of its own and beats it",
                    "ns CPU per cancel and start",
                    {{"pawl", requests<pawl_loop>},
                     {"pawl64", requests<pawl64_loop>},
                     {"asio", requests<asio_loop>},
                     {"libuv", requests<libuv>},
                     {"libevent", requests<libevent>},
                     {"libevent+lock", requests<libevent_locked>},
                     {"libev", requests<libev>}}},
                   {}});

    for (const bool coarse : {false, true})
        all.push_back({{coarse ? "beaten_coarse" : "beaten",
                        std::string(coarse ? "coarse alarms" : "alarms") +
                            ": the workload requests_const; +update: reads the clock each time",
                        "ns CPU per disarm and arm",
                        {coarse ? bench::variant{"coarse_alarm", requests_const<coarse_alarm_loop>}
                                : bench::variant{"alarm", requests_const<alarm_loop>},
                         {"pawl", requests_const<pawl_loop>},
                         {"asio", requests_const<asio_loop>},
                         {"libuv", requests_const<libuv>},
                         {"libevent", requests_const<libevent>},
                         {"libevent_common", requests_const<libevent_common>},
                         {"libev", requests_const<libev>},
                         {"libev+update", requests_const<with_fresh_clock<libev>>}}},
                       {}});

    all.push_back({{"requests_const",
                    "request timeouts, the same 30 s for every request",
                    "ns CPU per cancel and start",
                    {{"pawl", requests_const<pawl_loop>},
                     {"pawl64", requests_const<pawl64_loop>},
                     {"asio", requests_const<asio_loop>},
                     {"libuv", requests_const<libuv>},
                     {"libevent", requests_const<libevent>},
                     {"libevent_common", requests_const<libevent_common>},
                     {"libev", requests_const<libev>}}},
                   {}});

    all.push_back({{"idle",
                    "idle timeouts: every read moves its connection's deadline to now + 30 s",
                    "ns CPU per moved deadline",
                    {{"pawl", idle<pawl_loop>},
                     {"alarm", idle<alarm_loop>},
                     {"pawl64", idle<pawl64_loop>},
                     {"coarse", idle<coarse_loop>},
                     {"asio", idle<asio_loop>},
                     {"libuv", idle<libuv>},
                     {"libevent", idle<libevent>},
                     {"libevent+lock", idle<libevent_locked>},
                     {"libevent_common", idle<libevent_common>},
                     {"libev", idle<libev>},
                     {"libev+update", idle<with_fresh_clock<libev>>},
                     {"libev+lazy", idle<libev_lazy>}}},
                   {}});

    all.push_back({{"expiry",
                    "pacing: every timer expires, at random times within one second",
                    "ns CPU per expiry, wake-ups included",
                    {{"pawl", expiry<pawl_loop>},
                     {"alarm", expiry<alarm_loop>},
                     {"pawl64", expiry<pawl64_loop>},
                     {"asio", expiry<asio_loop>},
                     {"libuv", expiry<libuv>},
                     {"libevent", expiry<libevent>},
                     {"libev", expiry<libev>}},
                    0,
                    3},
                   {}});

    all.push_back({{"jump",
                    "after a stall: all timers are due at once and their handlers must run",
                    "ns CPU per expiry",
                    {{"pawl", jump<pawl_loop>},
                     {"alarm", jump<alarm_loop>},
                     {"pawl64", jump<pawl64_loop>},
                     {"asio", jump<asio_loop>},
                     {"libuv", jump<libuv>},
                     {"libevent", jump<libevent>},
                     {"libev", jump<libev>}},
                    0,
                    3},
                   {}});

    all.push_back({{"memory",
                    "bytes for each timer that is pending: itself and its share of the loop's",
                    "bytes per timer",
                    {{"pawl", memory<pawl_loop>},
                     {"alarm", memory<alarm_loop>},
                     {"compact", memory<peers::asio_loop<bench::pawl_compact>>},
                     {"asio", memory<asio_loop>},
                     {"libuv", memory<libuv>},
                     {"libevent", memory<libevent>},
                     {"libev", memory<libev>}},
                    0,
                    1},
                   {}});

    all.push_back({{"lateness",
                    "timers expire at random times within one second, and nothing else happens",
                    "us from the expiry to the handler; early: how many, and by how much",
                    {{"pawl", lateness<pawl_loop>},
                     {"asio", lateness<asio_loop>},
                     {"libuv", lateness<libuv>},
                     {"libevent", lateness<libevent>},
                     {"libev", lateness<libev>}},
                    0,
                    3},
                   "p99",
                   1e5});

    all.push_back(
        {{"lateness_70_50",
          "the same in a server of 50 connections: bursts of 50 requests of 20 us keep it "
          "busy for 70 % of the time",
          "us from the expiry to the handler; early: how many, and by how much",
          {{"pawl", lateness_70_50<pawl_loop>},
           {"pawl_100us", lateness_70_50<peers::asio_loop<bench::pawl_to<100>>>},
           {"asio", lateness_70_50<asio_loop>},
           {"libuv", lateness_70_50<libuv>},
           {"libevent", lateness_70_50<libevent>},
           {"libev", lateness_70_50<libev>}},
          s.quick ? 1000u : 25'000u,
          3},
         "p99.9"});

    all.push_back({{"after_work",
                    "timers of 50 to 150 ms that handlers start after 5 ms of work; +update: after "
                    "they told the loop to read its clock",
                    "us from the expiry to the handler; early: how many, and by how much",
                    {{"pawl", after_work<pawl_loop, false>},
                     {"asio", after_work<asio_loop, false>},
                     {"libuv", after_work<libuv, false>},
                     {"libuv+update", after_work<libuv, true>},
                     {"libevent", after_work<libevent, false>},
                     {"libevent+update", after_work<libevent, true>},
                     {"libev", after_work<libev, false>},
                     {"libev+update", after_work<libev, true>}},
                    s.quick ? 64u : 256u,
                    3},
                   "off by at most"});

    all.push_back({{"echo",
                    "echo servers whose connections have an idle timeout, which each read moves; a "
                    "ping of 64 bytes is on the way in each connection",
                    "the server's ns CPU per request",
                    {{"pawl", echo<asio_echo<bench::pawl_default>>},
                     {"asio", echo<asio_echo<bench::asio_steady>>},
                     {"libuv", echo<libuv_echo>},
                     {"libevent", echo<libevent_echo<false>>},
                     {"libevent+lock", echo<libevent_echo<true>>},
                     {"libev", echo<libev_echo<false>>},
                     {"libev+lazy", echo<libev_echo<true>>}},
                    static_cast<std::size_t>(s.clients)},
                   "CPU"});

    return all;
}

bench::facts about(const settings& s) {
    auto all = s.about("128 operations in a handler");
    all.emplace_back("libuv", uv_version_string());
    all.emplace_back("libevent", event_get_version());
    all.emplace_back("libev",
                     std::to_string(ev_version_major()) + '.' + std::to_string(ev_version_minor()));
    all.push_back(bench::paired("first column"));
    return all;
}

bench::measures measures_at(const settings& s, std::size_t size) {
    return {
        {size, s.quick ? 20'000u : 500'000u, 128, std::chrono::milliseconds(s.quick ? 100 : 1000)},
        s.quick            ? 1u
        : size < 1'000'000 ? 5u
                           : 3u};
}

std::vector<std::size_t> sizes_for(const settings& s, const entry& e) {
    if (e.workload.fixed_size != 0)
        return {e.workload.fixed_size};
    std::vector<std::size_t> sizes;
    for (const auto size : s.sizes)
        if (size <= e.most)
            sizes.push_back(static_cast<std::size_t>(size));
    return sizes;
}

} // namespace

int main(int argc, char** argv) {
    settings s("pawl_bench_peers", "Pawl beside Asio's timers, libuv, libevent and libev",
               "sizes 1e2 and 1e3, once");
    s.add_sizes({1e2, 1e3, 1e4, 1e5, 1e6}, 1e7);
    s.line.add_option("--clients", s.clients, "of the echo servers")
        ->check(CLI::Range(1.0, 10'000.0))
        ->capture_default_str();
    return s.run(argc, argv, [&] {
        if (s.quick && s.sizes_option->empty())
            s.sizes = {1e2, 1e3};
        const auto entries = s.selected(all_workloads(s));
        if (s.list)
            return bench::print_list(entries);

        std::signal(SIGPIPE, SIG_IGN); // required by libuv and libevent
        bench::session run(s, about(s));
        peers::print_promises(std::cout);
        const auto at = [&](std::size_t size) { return measures_at(s, size); };
        for (const auto& each : entries) {
            const auto& work = each.workload;
            const auto sizes = sizes_for(s, each);
            if (sizes.empty())
                continue;
            if (each.value.empty()) {
                bench::print_notes(std::cout, run.table(work, sizes, at));
                continue;
            }
            const auto results = run.measure(work, sizes, at, [](const bench::result&) {});
            bench::print_table_of_notes(std::cout, work, results, each.value);
        }
        run.write_json();
    });
}
