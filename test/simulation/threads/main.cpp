// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Random programs of several threads on Pawl, with random options. The checks hold for any order
//   of their steps: each handler is invoked or destroyed once (P3); none succeeds before its clock
//   has reached the expiry that its wait had (P1); results of calls and of handlers agree (P4,
//   P10); run() returns (P9), and no wait is pending then; an idle context runs nothing. The other
//   half, one thread against a model of each step, is in the folder above.
//
// Model
//   A seed chooses one or two contexts, the threads that run them, their options, the types of
//   timers, and the end (session.cpp). Two to four threads make calls on timers: on those of their
//   own, and on shared ones, each behind a mutex. Handlers make calls on the shared ones, too. One
//   more thread sets the settable clock to and fro, advances manual_clock, and stops contexts,
//   which their threads then restart. All of them call expire_all(). Each timer has a ledger of
//   calls and results (ledger.hpp), which is checked when all threads have ended.
//   Timers and handlers have executors of several kinds (arena.hpp): each handler checks whether it
//   runs there, and alone if that is a strand. Besides the timers there may be alarms
//   (alarms.hpp), operations under limits (limits.hpp), groups (groups.hpp), intervals
//   (intervals.hpp), streams (streams.hpp), event queues (queues.hpp) and readers of event feeds
//   (feeds.hpp).
//   Time is real, and delays are short. No check depends on durations, except that a thread of this
//   program ends it if a seed takes half a minute, because it hangs.
//   A seed chooses the calls, not their order: a failing seed may have to be run many times. --seed
//   runs one seed as often as --seeds gives.
//
// How to extend it
//   A new call on a timer: make it in session::operate(), and report it to the ledger: an act, and
//   its meaning in ledger::replay(). A new outcome of a wait: a value of `told`, and in
//   ledger::check() when it is allowed. A new type of timer: a sort, in timers.cpp. An option: the
//   constructor of arena. Something other than a timer: a class like limits, with operate(),
//   close(), leave() and check().

#include "simulation/report.hpp"
#include "simulation/threads/session.hpp"

#include <CLI/CLI.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>

namespace {

using number = unsigned long long; // of printf

/// The seed in progress, and the number of earlier ones.
std::atomic<std::uint64_t> current{0}, runs{0};

void print(const std::string& what) {
    std::printf("simulation_threads: seed %llu: %s\n%s\n", static_cast<number>(current.load()),
                what.c_str(), simulation::threads::about.c_str());
    std::fflush(nullptr);
}

void report(const std::string& what) {
    print(what);
    std::_Exit(1);
}

/// Ends the program when a seed takes too long.
void watch(const std::stop_token& stop) {
    constexpr int patience = 30; // seconds
    std::uint64_t seen = 0;
    for (int tenths = 0; !stop.stop_requested(); ++tenths) {
        if (const std::uint64_t now = runs.load(); now != seen) {
            seen = now;
            tenths = 0;
        }
        if (tenths > patience * 10) {
            print("P9: it hangs");
            std::abort(); // a debugger or a core file shows where
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
}

} // namespace

int main(int argc, char** argv) {
    std::uint64_t seeds = 1000, one = 0, first = 0;
    std::int64_t seconds = 0;

    CLI::App app{"Random programs of several threads on Pawl."};
    app.add_option("--seeds", seeds, "how many runs")->capture_default_str();
    app.add_option("--seconds", seconds, "instead: for how long");
    auto* const alone = app.add_option("--seed", one, "all of them with that seed");
    auto* const from = app.add_option("--from", first, "the first seed; default: one of the day");
    CLI11_PARSE(app, argc, argv);

    if (!*from) {
        const std::time_t now = std::time(nullptr);
        std::tm day{};
        gmtime_r(&now, &day);
        first = static_cast<std::uint64_t>((day.tm_year + 1900) * 10000 + (day.tm_mon + 1) * 100 +
                                           day.tm_mday) *
                1'000'000;
    }
    if (*alone)
        first = one;
    simulation::on_failure = report;
    if (seconds > 0)
        seeds = UINT64_MAX;
    std::printf("simulation_threads: from seed %llu on\n", static_cast<number>(first));
    std::fflush(stdout);

    const std::jthread watchdog(watch);
    simulation::threads::totals all;
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < seeds; ++i) {
        if (seconds > 0 &&
            std::chrono::steady_clock::now() - begin >= std::chrono::seconds(seconds))
            break;
        current = *alone ? one : first + i;
        ++runs;
        const auto t = simulation::threads::run(simulation::random_source(current));
        all.waits += t.waits;
        all.calls += t.calls;
        all.units += t.units;
    }
    std::printf("simulation_threads: %llu seeds, %llu calls, %llu waits, %llu units; no promise is "
                "broken\n",
                static_cast<number>(runs.load()), static_cast<number>(all.calls),
                static_cast<number>(all.waits), static_cast<number>(all.units));
}
