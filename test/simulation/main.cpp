// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Runs the scenarios of many seeds, each in the order of its seed, in several processes; shrinks
//   the first that fails, and prints it as a program.
//
// Model
//   Half of the processes have threads, so that Pawl takes its locks, and several shards fill; the
//   others never have a second one. The scenario depends only on the seed.

#include "simulation/campaign.hpp"
#include "simulation/makers.hpp"
#include "simulation/shrink.hpp"
#include "simulation/world.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

namespace {

using namespace simulation;

/// Whether the scenario of a seed has threads.
bool has_threads(std::uint64_t seed) { return seed % 2 == 1; }

/// The text up to the first number: the same failure of another wait has the same kind.
std::string kind_of(const std::string& verdict) {
    return verdict.substr(0, verdict.find_first_of("0123456789", 3));
}

/// Runs one scenario in a process of its own. @return its failure.
std::string attempt(const scenario& s, bool quiet) {
    return process([&](slate&) {
               if (quiet)
                   (void)std::freopen("/dev/null", "w", stderr);
               run(s);
           })
        .failure(5);
}

int report(std::uint64_t seed, const std::string& file, int patience) {
    const scenario all = generate(random_source(seed), has_threads(seed));
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
    std::uint64_t operations = 0;
    unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
    std::string file = "failure.cpp";
    int patience = 30;
    bool print = false;

    campaign all("simulation",
                 "Random programs on Pawl, against a naive model. With --seed, a line "
                 "for each step.");
    all.app.add_option("--operations", operations, "as many seeds as so many operations need");
    all.app.add_option("--jobs", jobs, "processes")->capture_default_str();
    all.app.add_option("--output", file, "where the program of a failure goes")
        ->capture_default_str();
    all.app.add_option("--shrink", patience, "seconds to look for a smaller failure")
        ->capture_default_str();
    all.app.add_flag("--print", print, "with --seed: print its program, and run nothing");
    CLI11_PARSE(all.app, argc, argv);

    if (all.alone()) {
        const scenario s = generate(random_source(all.first), has_threads(all.first));
        const auto seed = static_cast<unsigned long long>(all.first);
        if (print) {
            std::cout << program(s, "Seed " + std::to_string(seed));
            return 0;
        }
        world::trace = true;
        const std::string failure = attempt(s, false);
        world::trace = false;
        std::printf("simulation: seed %llu: %s\n", seed,
                    failure.empty() ? "no promise is broken" : failure.c_str());
        return failure.empty() ? 0 : report(all.first, file, patience);
    }

    // Each process takes every jobs-th pair of seeds, either those with threads or those without.
    jobs = std::max(2u, jobs + jobs % 2);
    const auto failed = all.run(
        jobs,
        [](std::uint64_t seed, const slate& told) {
            if (told.seeds == 0) {
                // A scenario allocates contexts of hundreds of KB and frees them: keep the pages.
                mallopt(M_MMAP_THRESHOLD, 1 << 30);
                mallopt(M_TRIM_THRESHOLD, 1 << 30);
                if (has_threads(seed))
                    makers::instance(); // starts the threads before the first scenario
            }
            return run(generate(random_source(seed), has_threads(seed)));
        },
        [&](std::uint64_t seed, const slate& told) {
            return operations != 0 ? told.sum.operations < operations / jobs + 1
                                   : seed < all.first + all.seeds;
        });
    return failed ? report(*failed, file, patience) : 0;
}
