// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl_bench_tails: what others feel while timers expire, and how late timers are, see README.md.

#include "harness.hpp"
#include "idle_thread.hpp"
#include "libraries.hpp"
#include "report.hpp"
#include "selection.hpp"
#include "tails/burst_workloads.hpp"
#include "tails/load_workloads.hpp"

#include "../examples/command_line.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace tails = bench::tails;
using bench::plan;

struct settings {
    std::vector<std::string> workloads;
    double burst = 1e6;
    double timers = 1e5;
    double seconds = 10;
    double load = 70;               // percent
    double registrations = 100'000; // a second
    double pings = 10'000;          // a second
    std::size_t repetitions = 5;
    std::string json_file;
    bool quick = false;
};

struct entry {
    bench::workload workload;
    std::string value; // what the workload's value is called
};

/// @param run is called as run(library, plan)
template <class Run>
std::vector<bench::variant> variants(Run run) {
    return {{"asio", [run](const plan& p) { return run(bench::asio_steady(), p); }},
            {"pawl", [run](const plan& p) { return run(bench::pawl_default(), p); }}};
}

std::string in_digits(double value) { return std::to_string(std::llround(value)); }

std::vector<entry> selected(const settings& s) {
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
        {{"lateness",
          "timers expire at random times while requests keep the thread busy for " +
              in_digits(s.load) + " % of the time",
          "us from the expiry to the handler",
          variants([load = s.load / 100]<class L>(L, const plan& p) {
              return tails::lateness<L>(p, load);
          }),
          timers},
         "p99.9"},
        {{"heartbeats", "each timer beats once a second, at a phase of its own",
          "CPU time of the thread; its sleeps are its wake-ups",
          variants([]<class L>(L, const plan& p) { return tails::heartbeats<L>(p).run(); }),
          timers},
         "CPU"},
        {{"busy_handlers",
          "two threads run the context; a handler cancels a wait, and then works for 200 us",
          "us from the cancel to the handler of the wait, in the other thread",
          variants([]<class L>(L, const plan& p) { return tails::busy_handlers<L>(p).run(); }),
          s.quick ? std::size_t{1000} : std::size_t{20'000}},
         "p99"}};
    std::erase_if(all,
                  [&](const entry& e) { return !bench::wanted(s.workloads, e.workload.name); });
    return all;
}

bench::facts about(const settings& s) {
    auto all = bench::environment();
    all.push_back(bench::beside(false));
    all.emplace_back("options", bench::detail::brief(s.seconds) + " seconds, " +
                                    std::to_string(s.repetitions) + " repetitions" +
                                    (s.quick ? ", quick" : ""));
    all.emplace_back("cells", "median (min - max) of the repetitions; of paired ones in the last "
                              "column");
    return all;
}

void run(const settings& s, const std::vector<entry>& entries, std::ostream* json) {
    const auto facts = about(s);
    bench::json_report report;
    std::cout << "# pawl_bench_tails\n\n";
    bench::print_facts(std::cout, facts);
    const auto window = std::chrono::milliseconds(std::llround(1000 * s.seconds));
    for (const auto& [work, value] : entries) {
        const std::vector results{
            bench::measure(work, {work.fixed_size, 0, 0, window}, s.repetitions)};
        bench::print_table_of_notes(std::cout, work, results, value);
        report.add(work, results.front());
    }
    if (json != nullptr) {
        report.write(*json, facts);
        if (!json->flush())
            throw std::runtime_error("cannot write " + s.json_file);
    }
}

} // namespace

int main(int argc, char** argv) try {
    settings s;
    CLI::App app{"What others feel while timers expire, and how late timers are",
                 "pawl_bench_tails"};
    app.add_option(
           "-w,--workload", s.workloads,
           "registrations, ping_pong, lateness, heartbeats, busy_handlers; regular expressions, "
           "repeatable")
        ->check(bench::as_regex);
    auto* const burst = app.add_option("--burst", s.burst, "timers that expire at once")
                            ->check(CLI::Range(1e3, 1e7))
                            ->capture_default_str();
    auto* const timers = app.add_option("--timers", s.timers, "timers of lateness and heartbeats")
                             ->check(CLI::Range(1e2, 1e7))
                             ->capture_default_str();
    auto* const seconds = app.add_option("--seconds", s.seconds, "for lateness and heartbeats")
                              ->check(CLI::Range(1.0, 3600.0))
                              ->capture_default_str();
    app.add_option("--load", s.load, "of lateness, in percent of the time")
        ->check(CLI::Range(0.0, 95.0))
        ->capture_default_str();
    app.add_option("--registrations", s.registrations, "a second")
        ->check(CLI::Range(1e3, 1e6))
        ->capture_default_str();
    app.add_option("--pings", s.pings, "a second")
        ->check(CLI::Range(1e3, 1e5))
        ->capture_default_str();
    auto* const repetitions = app.add_option("-r,--reps", s.repetitions, "repetitions")
                                  ->check(CLI::Range(1, 1000))
                                  ->capture_default_str();
    app.add_option("--json", s.json_file, "write all samples to this file");
    app.add_flag("-q,--quick", s.quick,
                 "a smoke test of seconds: 1e5 timers at once, otherwise 1e3 for a second, once");
    if (const auto status = example::parse_command_line(app, argc, argv))
        return *status;
    if (s.quick) {
        s.burst = burst->empty() ? 1e5 : s.burst;
        s.timers = timers->empty() ? 1e3 : s.timers;
        s.seconds = seconds->empty() ? 1 : s.seconds;
        s.repetitions = repetitions->empty() ? 1 : s.repetitions;
    }

    const auto entries = selected(s);
    if (entries.empty()) {
        std::cerr << "pawl_bench_tails: no such workload; --help names them\n";
        return 2;
    }
    std::ofstream json;
    if (!s.json_file.empty()) {
        json.open(s.json_file);
        if (!json) {
            std::cerr << "pawl_bench_tails: cannot write " << s.json_file << '\n';
            return 2;
        }
    }
    const bench::idle_thread second; // for heartbeats: the others have one of their own
    run(s, entries, s.json_file.empty() ? nullptr : &json);
    return 0;
} catch (const bench::checksum_mismatch& error) {
    std::cerr << "pawl_bench_tails: the variants did not do the same work: " << error.what()
              << '\n';
    return 1;
} catch (const std::exception& error) {
    std::cerr << "pawl_bench_tails: " << error.what() << '\n';
    return 1;
}
