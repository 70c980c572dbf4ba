// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Runs the scenarios of many seeds, each in the order of its seed, in several processes; shrinks
//   the first that fails, and prints it as a program.
//
// Model
//   A scenario runs in a process: a failure ends the process (report.hpp), a crash does, too, and a
//   hanging one can be killed. Half of the processes have threads, so that Pawl takes its locks,
//   and several shards fill; the others never have a second one. The scenario depends only on the
//   seed.

#include "simulation/makers.hpp"
#include "simulation/report.hpp"
#include "simulation/shrink.hpp"
#include "simulation/virtual_time.hpp"
#include "simulation/world.hpp"

#include <CLI/CLI.hpp>

#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace simulation;

/// The report of a process to its parent.
struct slate {
    std::atomic<std::uint64_t> seed{0}; ///< the seed in progress
    std::atomic<std::uint64_t> operations{0};
    std::atomic<std::uint64_t> waits{0};
    std::atomic<std::uint64_t> units{0};
    std::atomic<std::uint64_t> scenarios{0};
    char text[1000] = {}; ///< the failure
};

slate* mine = nullptr; ///< the slate of this process

slate* new_slates(std::size_t n) {
    void* const memory =
        mmap(nullptr, n * sizeof(slate), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        throw std::bad_alloc();
    return new (memory) slate[n];
}

void note(const std::string& text) {
    std::strncpy(mine->text, text.c_str(), sizeof(mine->text) - 1);
}

/// Whether the scenario of a seed has threads.
bool has_threads(std::uint64_t seed) { return seed % 2 == 1; }

/// The result of a process: empty after success.
std::string verdict(int status, const slate& s) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return {};
    if (s.text[0] != 0)
        return s.text;
    if (WIFSIGNALED(status))
        return std::string("crash: ") + strsignal(WTERMSIG(status));
    return "crash: exit status " + std::to_string(WEXITSTATUS(status));
}

/// The text up to the first number: the same failure of another wait has the same kind.
std::string kind_of(const std::string& verdict) {
    return verdict.substr(0, verdict.find_first_of("0123456789", 3));
}

/// Waits for a process, and kills it if `progress` stays the same for too long.
int wait_for(pid_t process, const std::function<std::uint64_t()>& progress, int seconds) {
    std::uint64_t before = progress();
    for (int quiet = 0;;) {
        int status = 0;
        if (waitpid(process, &status, WNOHANG) == process)
            return status;
        usleep(1000);
        quiet = progress() == before ? quiet + 1 : 0;
        before = progress();
        if (quiet > seconds * 1000)
            kill(process, SIGKILL);
    }
}

/// Runs one scenario in a process of its own. @return its failure.
std::string attempt(const scenario& s, bool quiet) {
    static slate* const board = new_slates(1);
    new (board) slate();
    std::fflush(nullptr);
    const pid_t process = fork();
    if (process == 0) {
        mine = board;
        on_failure = note;
        if (quiet)
            (void)std::freopen("/dev/null", "w", stderr);
        run(s);
        _exit(0);
    }
    std::string v = verdict(wait_for(
                                process, [] { return 0; }, 5),
                            *board);
    return v == std::string("crash: ") + strsignal(SIGKILL) ? "hang: it was killed" : v;
}

int report(std::uint64_t seed, const std::string& what, const std::string& file, int patience) {
    const scenario all = generate(random_source(seed), has_threads(seed));
    std::printf("simulation: seed %llu: %s\n", static_cast<unsigned long long>(seed), what.c_str());
    const std::string again = attempt(all, true);
    if (again.empty()) {
        std::printf("simulation: it does not fail alone\n");
        return 1;
    }
    const std::time_t end = std::time(nullptr) + patience;
    const scenario small = shrink(
        all, [&](const scenario& s) { return kind_of(attempt(s, true)) == kind_of(again); },
        [&] { return std::time(nullptr) < end; });
    const std::string text =
        "Seed " + std::to_string(seed) + ", shrunk to " + std::to_string(small.steps.size()) +
        " steps: " + attempt(small, true) + "\n\n    g++ -std=c++20 -Iinclude -Itest " + file +
        " \\\n        "
        "test/simulation/"
        "{world,alarms,limits,intervals,patterns,streams,timers_?,print,report,virtual_time}.cpp "
        "-o failure";
    std::ofstream(file) << program(small, text);
    std::printf("simulation: %s is the program:\n\n%s\n", file.c_str(),
                program(small, text).c_str());
    return 1;
}

} // namespace

int main(int argc, char** argv) {
    std::uint64_t seeds = 1000;
    std::uint64_t one = 0;
    std::uint64_t first = 0;
    std::uint64_t operations = 0;
    unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
    std::string file = "failure.cpp";
    int patience = 30;
    bool print = false;

    CLI::App app{"Random programs on Pawl, against a naive model."};
    app.add_option("--seeds", seeds, "how many seeds")->capture_default_str();
    auto* const alone = app.add_option("--seed", one, "that one only, with a line for each step");
    auto* const from = app.add_option("--from", first, "the first seed; default: one of the day");
    app.add_option("--operations", operations, "as many seeds as so many operations need");
    app.add_option("--jobs", jobs, "processes")->capture_default_str();
    app.add_option("--output", file, "where the program of a failure goes")->capture_default_str();
    app.add_option("--shrink", patience, "seconds to look for a smaller failure")
        ->capture_default_str();
    app.add_flag("--plant", world::planted,
                 "fail when a wait completes with success, to try the report");
    app.add_flag("--print", print, "with --seed: print its program, and run nothing");
    CLI11_PARSE(app, argc, argv);

    if (*alone) {
        const scenario s = generate(random_source(one), has_threads(one));
        if (print) {
            std::cout << program(s, "Seed " + std::to_string(one));
            return 0;
        }
        world::trace = true;
        const std::string failure = attempt(s, false);
        world::trace = false;
        if (!failure.empty())
            return report(one, failure, file, patience);
        std::printf("simulation: seed %llu: no promise is broken\n",
                    static_cast<unsigned long long>(one));
        return 0;
    }
    if (!*from) {
        const std::time_t now = std::time(nullptr);
        std::tm day{};
        gmtime_r(&now, &day);
        first = static_cast<std::uint64_t>((day.tm_year + 1900) * 10000 + (day.tm_mon + 1) * 100 +
                                           day.tm_mday) *
                1'000'000;
    }

    // Each process takes every jobs-th pair of seeds, either those with threads or those without.
    jobs = std::max(2u, jobs + jobs % 2);
    slate* const slates = new_slates(jobs);
    std::vector<pid_t> processes;
    for (unsigned j = 0; j < jobs; ++j) {
        const pid_t process = fork();
        if (process == 0) {
            mine = &slates[j];
            on_failure = note;
            // A scenario allocates contexts of hundreds of KB and frees them: keep the pages.
            mallopt(M_MMAP_THRESHOLD, 1 << 30);
            mallopt(M_TRIM_THRESHOLD, 1 << 30);
            if (has_threads(first + j))
                makers::instance(); // starts the threads before the first scenario
            const std::uint64_t quota = operations / jobs + 1;
            for (std::uint64_t seed = first + j;
                 operations != 0 ? mine->operations < quota : seed < first + seeds; seed += jobs) {
                mine->seed = seed;
                const totals t = run(generate(random_source(seed), has_threads(seed)));
                mine->operations += t.operations;
                mine->waits += t.waits;
                mine->units += t.units;
                ++mine->scenarios;
            }
            _exit(0);
        }
        processes.push_back(process);
    }
    std::uint64_t failed = 0;
    std::string what;
    for (unsigned j = 0; j < jobs; ++j) {
        const slate& s = slates[j];
        const int status = wait_for(
            processes[j], [&] { return s.seed.load(); }, 30);
        if (const std::string v = verdict(status, s); !v.empty() && what.empty()) {
            what = v;
            failed = s.seed;
            for (unsigned k = j + 1; k < jobs; ++k)
                kill(processes[k], SIGTERM);
        }
    }
    if (!what.empty())
        return report(failed, what, file, patience);
    std::uint64_t scenarios = 0, steps = 0, waits = 0, units = 0;
    for (unsigned j = 0; j < jobs; ++j) {
        scenarios += slates[j].scenarios;
        steps += slates[j].operations;
        waits += slates[j].waits;
        units += slates[j].units;
    }
    std::printf("simulation: %llu seeds from %llu on: %llu operations, %llu waits, %llu units; no "
                "promise is broken\n",
                static_cast<unsigned long long>(scenarios), static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(steps), static_cast<unsigned long long>(waits),
                static_cast<unsigned long long>(units));
}
