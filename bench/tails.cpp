// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl_bench_tails: the delays of other work while timers expire, and the lateness of timers, see
// README.md.

#include "harness.hpp"
#include "libraries.hpp"
#include "program.hpp"
#include "report.hpp"
#include "tails/burst_workloads.hpp"
#include "tails/load_workloads.hpp"
#include "tails/overload_workloads.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace tails = bench::tails;
using bench::plan;

struct settings : bench::program {
    double burst = 1e6;
    double timers = 1e5;
    double seconds = 4;
    double registrations = 100'000; // a second
    double pings = 10'000;          // a second

    using program::program;
};

struct entry {
    bench::workload workload;
    std::string value; // the name of the workload's value
};

/// @param run is called as run(library, plan)
template <class Run>
std::vector<bench::variant> variants(Run run) {
    return {{"asio", [run](const plan& p) { return run(bench::asio_steady(), p); }},
            {"pawl", [run](const plan& p) { return run(bench::pawl_default(), p); }}};
}

std::string in_digits(double value) { return std::to_string(std::llround(value)); }

/// The loads of `lateness`, and the names of its workloads. That of the picture has no suffix.
std::vector<std::pair<std::string, tails::load>> loads(bool quick) {
    using namespace std::chrono_literals;
    std::vector<std::pair<std::string, tails::load>> all;
    for (const int percent : quick ? std::vector{70} : std::vector{30, 70, 90, 110}) {
        const auto add = [&](const char* kind, tails::load l) {
            l.share = percent / 100.0;
            const auto suffix =
                "_" + std::to_string(percent) + "_" + std::to_string(l.burst) + kind;
            all.emplace_back(suffix == "_70_50" ? "lateness" : "lateness" + suffix, l);
        };
        for (const std::size_t burst : {1U, 50U, 500U})
            add("", {.burst = burst});
        add("_heavy", {.handler = 20us});
        add("_2threads", {.threads = 2});
    }
    return all;
}

std::string text_of(const tails::load& l) {
    return "bursts of " + std::to_string(l.burst) + " requests of 20 us keep " +
           (l.threads == 1 ? "the thread" : "two threads") + " busy for " +
           in_digits(100 * l.share) + " % of the time" +
           (l.handler != l.handler.zero() ? ", together with the timers' handlers of 20 us" : "");
}

template <class Run>
std::vector<bench::variant> precise_variants(Run run) {
    auto all = variants(run);
    all.push_back({"pawl_100us", [run](const plan& p) { return run(bench::pawl_to<100>(), p); }});
    return all;
}

std::vector<bench::variant> beating() {
    const auto run = []<class L>(L, const plan& p) { return tails::heartbeats<L>(p).run(); };
    auto all = precise_variants(run);
    all.push_back({"pawl_1us", [run](const plan& p) { return run(bench::pawl_to<1>(), p); }});
    return all;
}

std::vector<entry> all_workloads(const settings& s) {
    const auto burst = static_cast<std::size_t>(s.burst);
    const auto timers = static_cast<std::size_t>(s.timers);
    std::vector<entry> all{
        {{"registrations",
          "all timers expire at once, and another thread starts " + in_digits(s.registrations) +
              " waits a second in the same context",
          "us from the time at which a wait was to be started until async_wait() returned",
          variants([rate = s.registrations]<class L>(L, const plan& p) {
              return tails::registrations<L>(p, rate);
          }),
          burst},
         "p99.9"},
        {{"ping_pong",
          "all timers expire at once, and a client sends " + in_digits(s.pings) +
              " pings a second over TCP to the same context",
          "us from the time at which a ping was to be sent until it was back",
          variants(
              [rate = s.pings]<class L>(L, const plan& p) { return tails::ping_pong<L>(p, rate); }),
          burst},
         "p99.9"},
        {{"overload", "for a while, requests of 20 us keep the thread busy for 110 % of the time",
          "us from the expiry to the handler; afterwards: a second later",
          variants([]<class L>(L, const plan& p) { return tails::overload<L>(p).run(); }), timers},
         "p99.9"},
        {{"heartbeats", "each timer beats once a second, at a phase of its own",
          "CPU time of the thread; its sleeps are its wake-ups", beating(), timers},
         "CPU"},
        {{"busy_handlers",
          "two threads run the context; a handler cancels a wait, and then works for 200 us",
          "us from the cancel to the handler of the wait, in the other thread",
          variants([]<class L>(L, const plan& p) { return tails::busy_handlers<L>(p).run(); }),
          s.quick ? std::size_t{1000} : std::size_t{20'000}},
         "p99"}};
    for (const auto& [name, under] : loads(s.quick)) {
        all.push_back({{name, "timers expire at random times while " + text_of(under),
                        "us from the expiry to the handler",
                        precise_variants([l = under]<class L>(L, const plan& p) {
                            return tails::lateness<L>(p, l);
                        }),
                        under.handler != under.handler.zero() ? timers / 2 : timers},
                       "p99.9"});
    }
    return all;
}

} // namespace

int main(int argc, char** argv) {
    settings s("pawl_bench_tails", "What others feel while timers expire, and how late timers are",
               "1e4 timers at once and 1e4 registrations a second, otherwise 1e3 timers for a "
               "second, once");
    const auto add = [&s](const char* name, double& value, const char* what, double least,
                          double most) {
        return s.line.add_option(name, value, what)
            ->check(CLI::Range(least, most))
            ->capture_default_str();
    };
    auto* const burst = add("--burst", s.burst, "timers that expire at once", 1e3, 1e7);
    auto* const timers = add("--timers", s.timers, "timers of lateness and heartbeats", 1e2, 1e7);
    auto* const seconds = add("--seconds", s.seconds, "for lateness and heartbeats", 1, 3600);
    auto* const registrations = add("--registrations", s.registrations, "a second", 1e3, 1e6);
    add("--pings", s.pings, "a second", 1e3, 1e5);
    return s.run(argc, argv, [&] {
        if (s.quick) {
            // Few enough for a busy machine without optimisation: what the second thread falls
            // behind while the timers expire, it does afterwards.
            s.burst = burst->empty() ? 1e4 : s.burst;
            s.registrations = registrations->empty() ? 1e4 : s.registrations;
            s.timers = timers->empty() ? 1e3 : s.timers;
            s.seconds = seconds->empty() ? 1 : s.seconds;
        }
        const auto entries = s.selected(all_workloads(s));
        if (s.list)
            return bench::print_list(entries);

        if (s.repetitions == 0)
            s.repetitions = s.quick ? 1 : 5;
        auto about = s.about(bench::detail::brief(s.seconds) + " seconds");
        about.emplace_back("cells", "median (min - max) of the repetitions; of paired ones in the "
                                    "last column");
        bench::session run(s,
                           about); // its thread is for heartbeats: the others have one of their own
        const auto window = std::chrono::milliseconds(std::llround(1000 * s.seconds));
        for (const auto& [work, value] : entries) {
            const auto results = run.measure(
                work, {work.fixed_size},
                [&](std::size_t size) {
                    return bench::measures{{size, 0, 0, window}, 5};
                },
                [](const bench::result&) {});
            bench::print_table_of_notes(std::cout, work, results, value);
        }
        run.write_json();
    });
}
