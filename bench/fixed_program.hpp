// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A program around workloads that each have one size: command line, report, smoke test.
#ifndef PAWL_BENCH_FIXED_PROGRAM_HPP
#define PAWL_BENCH_FIXED_PROGRAM_HPP

#include "harness.hpp"
#include "idle_thread.hpp"
#include "report.hpp"
#include "selection.hpp"

#include "../examples/command_line.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace bench {

/// Runs the workloads that the command line asks for.
/// @param name of the program.
/// @param description of it, a line.
/// @param all makes the workloads.
/// @param batch sizes stay multiples of this one.
/// @return the exit status: 0; 1 if a workload has failed; 2 after a bad command line.
inline int run_fixed(int argc, char** argv, const std::string& name, const std::string& description,
                     std::vector<workload> (*all)(), std::size_t batch = 1) try {
    const std::vector<workload> workloads = all();
    std::vector<std::string> patterns;
    std::size_t repetitions = 9;
    std::string json_file;
    bool quick = false;
    CLI::App app{description, name};
    app.add_option("-w,--workload", patterns, "run these only: regular expressions, repeatable")
        ->check(as_regex);
    app.add_option("-r,--reps", repetitions, "repetitions")
        ->check(CLI::Range(1, 10'000))
        ->capture_default_str();
    app.add_option("--json", json_file, "write all samples to this file");
    app.add_flag("-q,--quick", quick, "a smoke test of seconds");
    if (const auto status = example::parse_command_line(app, argc, argv))
        return *status;
    if (std::none_of(workloads.begin(), workloads.end(),
                     [&](const workload& work) { return wanted(patterns, work.name); })) {
        std::cerr << name << ": no such workload\n";
        return 2;
    }

    auto about = environment();
    about.push_back(beside(false));
    about.emplace_back("options",
                       std::to_string(repetitions) + " repetitions" + (quick ? ", quick" : ""));
    about.emplace_back("ratios", "first column / variant, more is better for the variant: median "
                                 "(min - max) of paired repetitions");
    std::cout << "# " << name << "\n\n";
    print_facts(std::cout, about);
    json_report report;
    std::ofstream json;
    if (!json_file.empty()) {
        json.open(json_file);
        if (!json) {
            std::cerr << name << ": cannot write " << json_file << '\n';
            return 2;
        }
    }
    const idle_thread second; // every program of this kind has one
    for (const workload& work : workloads) {
        if (!wanted(patterns, work.name))
            continue;
        plan p;
        p.size = work.fixed_size;
        if (quick)
            p.size = std::max<std::size_t>(p.size / 100 / batch, 1) * batch;
        const std::size_t most = work.repetitions != 0 ? work.repetitions : repetitions;
        print_heading(std::cout, work);
        const std::vector results{measure(work, p, std::min(quick ? 2 : repetitions, most))};
        print_row(std::cout, results.front());
        print_notes(std::cout, results);
        report.add(work, results.front());
    }
    if (json.is_open())
        report.write(json, about);
    return 0;
} catch (const checksum_mismatch& error) {
    std::cerr << name << ": the variants did not do the same work: " << error.what() << '\n';
    return 1;
} catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return 1;
}

} // namespace bench

#endif // PAWL_BENCH_FIXED_PROGRAM_HPP
