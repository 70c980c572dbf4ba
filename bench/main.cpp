// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl_bench: pawl::steady_timer against boost::asio::steady_timer, see README.md.

#include "harness.hpp"
#include "report.hpp"
#include "workloads.hpp"

#include "../examples/command_line.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <fstream>
#include <iostream>
#include <regex>
#include <string>
#include <vector>

namespace {

struct settings {
    std::vector<std::string> workloads;
    std::vector<double> sizes{1e3, 1e4, 1e5, 1e6};
    std::size_t repetitions = 0; // 0: as many as the size allows
    std::size_t poll_every = 128;
    std::string json_file;
    bool quick = false;
    bool list = false;
};

std::size_t repetitions_for(const settings& s, const bench::workload& work, std::size_t size) {
    if (s.repetitions != 0)
        return s.repetitions;
    const auto by_size = s.quick ? 2u : size <= 10'000 ? 11u : size <= 100'000 ? 7u : 3u;
    return work.repetitions != 0 ? std::min<std::size_t>(by_size, work.repetitions) : by_size;
}

bench::plan plan_for(const settings& s, std::size_t size) {
    return {size, s.quick ? 50'000u : 500'000u, s.poll_every,
            std::chrono::milliseconds(s.quick ? 100 : 1000)};
}

std::vector<std::size_t> sizes_for(const settings& s, const bench::workload& work) {
    if (work.fixed_size != 0)
        return {work.fixed_size};
    return {s.sizes.begin(), s.sizes.end()};
}

std::vector<bench::workload> selected(const settings& s) {
    auto all = bench::all_workloads();
    if (s.workloads.empty())
        return all;
    std::erase_if(all, [&](const bench::workload& work) {
        return std::none_of(s.workloads.begin(), s.workloads.end(), [&](const std::string& wanted) {
            return std::regex_match(work.name, std::regex(wanted));
        });
    });
    return all;
}

void print_list(const std::vector<bench::workload>& all) {
    for (const auto& work : all) {
        std::cout << work.name << ": " << work.situation << "\n  " << work.unit << "; variants";
        for (const auto& v : work.variants)
            std::cout << ' ' << v.name;
        std::cout << '\n';
    }
}

bench::facts about(const settings& s) {
    auto all = bench::environment();
    std::string options = "poll every " + std::to_string(s.poll_every) + " operations";
    if (s.quick)
        options += ", quick";
    if (s.repetitions != 0)
        options += ", " + std::to_string(s.repetitions) + " repetitions";
    all.emplace_back("options", options);
    all.emplace_back("ratios", "asio / variant, more is better for the variant: median (min - max) "
                               "of paired repetitions");
    return all;
}

void run(const settings& s, const std::vector<bench::workload>& workloads, std::ostream* json) {
    const auto facts = about(s);
    bench::json_report report;
    std::cout << "# pawl_bench\n\n";
    bench::print_facts(std::cout, facts);
    for (const auto& work : workloads) {
        std::vector<bench::result> results;
        bench::print_heading(std::cout, work);
        for (const auto size : sizes_for(s, work)) {
            results.push_back(
                bench::measure(work, plan_for(s, size), repetitions_for(s, work, size)));
            bench::print_row(std::cout, results.back());
            report.add(work, results.back());
        }
        bench::print_notes(std::cout, results);
        bench::print_above_bare(std::cout, results);
    }
    if (json != nullptr) {
        report.write(*json, facts);
        if (!json->flush())
            throw std::runtime_error("cannot write " + s.json_file);
    }
}

std::string as_regex(const std::string& text) {
    try {
        const std::regex ignored(text);
        return {};
    } catch (const std::regex_error& error) {
        return text + " is no regular expression: " + error.what();
    }
}

} // namespace

int main(int argc, char** argv) try {
    settings s;
    CLI::App app{"pawl::steady_timer against boost::asio::steady_timer", "pawl_bench"};
    app.add_option("-w,--workload", s.workloads, "run these only: regular expressions, repeatable")
        ->check(as_regex);
    app.add_option("-n,--size", s.sizes, "number of timers, such as 1e5, repeatable")
        ->check(CLI::Range(2.0, 1e8))
        ->capture_default_str();
    app.add_option("-r,--reps", s.repetitions,
                   "repetitions; default: 3 to 11, fewer for more timers")
        ->check(CLI::Range(1, 10'000));
    app.add_option("--poll-every", s.poll_every, "operations between two calls of poll()")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    app.add_option("--json", s.json_file, "write all samples to this file");
    auto* const sizes = app.get_option("--size");
    app.add_flag("-q,--quick", s.quick,
                 "a smoke test of seconds: sizes 1e3 and 1e4, 2 repetitions");
    app.add_flag("-l,--list", s.list, "name the workloads and stop");
    if (const auto status = example::parse_command_line(app, argc, argv))
        return *status;
    if (s.quick && sizes->empty())
        s.sizes = {1e3, 1e4};

    const auto workloads = selected(s);
    if (workloads.empty()) {
        std::cerr << "pawl_bench: no such workload; --list names them\n";
        return 2;
    }
    if (s.list) {
        print_list(workloads);
        return 0;
    }
    std::ofstream json;
    if (!s.json_file.empty()) {
        json.open(
            s.json_file); // before the run: minutes of it should not be lost to a typing error
        if (!json) {
            std::cerr << "pawl_bench: cannot write " << s.json_file << '\n';
            return 2;
        }
    }
    run(s, workloads, s.json_file.empty() ? nullptr : &json);
    return 0;
} catch (const bench::checksum_mismatch& error) {
    std::cerr << "pawl_bench: the variants did not do the same work: " << error.what() << '\n';
    return 1;
} catch (const std::exception& error) {
    std::cerr << "pawl_bench: " << error.what() << '\n';
    return 1;
}
