// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl_bench: pawl::steady_timer against boost::asio::steady_timer, see README.md.

#include "harness.hpp"
#include "idle_thread.hpp"
#include "report.hpp"
#include "selection.hpp"
#include "workloads.hpp"

#include "../examples/command_line.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct settings {
    std::vector<std::string> workloads;
    std::vector<std::string> variants;
    std::vector<double> sizes{1e3, 1e4, 1e5, 1e6};
    std::size_t repetitions = 0; // 0: as many as the size allows
    std::size_t poll_every = 128;
    std::string json_file;
    bool core = false;
    bool alone = false;
    bool quick = false;
    bool list = false;
};

std::size_t repetitions_for(const settings& s, const bench::workload& work, std::size_t size) {
    if (s.repetitions != 0)
        return s.repetitions;
    if (s.core && !s.quick)
        return size <= 1'000'000 ? 5 : 3;
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

/// Of the core table, if that is wanted: its workloads, the libraries in its rows, and the floors.
void keep_core(std::vector<bench::workload>& all) {
    std::vector<std::string> workloads;
    std::vector<std::string> variants{"bare", "post"};
    for (const auto& row : bench::core_rows()) {
        workloads.insert(workloads.end(), {row.outside, row.in_handlers});
        variants.push_back(row.variant);
    }
    std::erase_if(all, [&](const auto& work) { return !bench::wanted(workloads, work.name); });
    for (auto& work : all)
        bench::keep_wanted(work.variants, variants);
}

std::vector<bench::workload> selected(const settings& s) {
    auto all = bench::all_workloads();
    if (s.core)
        keep_core(all);
    std::erase_if(all, [&](const auto& work) { return !bench::wanted(s.workloads, work.name); });
    for (auto& work : all)
        bench::keep_wanted(work.variants, s.variants);
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
    if (s.core)
        options += ", core";
    if (s.quick)
        options += ", quick";
    if (s.repetitions != 0)
        options += ", " + std::to_string(s.repetitions) + " repetitions";
    all.push_back(bench::beside(s.alone));
    all.emplace_back("options", options);
    all.emplace_back("ratios", "asio / variant, more is better for the variant: median (min - max) "
                               "of paired repetitions");
    return all;
}

/// The results of each workload by its name.
using results_by_name = std::map<std::string, std::vector<bench::result>>;

/// Of asio / variant the median, or nothing where that was not measured.
std::string median_ratio(const results_by_name& all, const std::string& workload,
                         const std::string& variant, std::size_t size) {
    const auto found = all.find(workload);
    if (found != all.end())
        for (const auto& r : found->second)
            for (const auto& v : r.variants)
                if (r.size == size && v.variant == variant)
                    return bench::detail::brief(bench::spread_of(v.ratios).median);
    return {};
}

void print_core_table(std::ostream& out, const settings& s, const results_by_name& all) {
    out << "\n### core\n\nasio / pawl, medians of pairs; where there are two: from outside, in "
           "handlers\n\n| |";
    for (const auto size : s.sizes)
        out << ' ' << bench::detail::size_name(static_cast<std::size_t>(size)) << " |";
    out << "\n|---|";
    for (std::size_t column = 0; column < s.sizes.size(); ++column)
        out << "---|";
    out << '\n';
    for (const auto& row : bench::core_rows()) {
        std::string cells;
        bool any = false;
        for (const auto size : s.sizes) {
            const auto timers = static_cast<std::size_t>(size);
            const auto outside = median_ratio(all, row.outside, row.variant, timers);
            const auto inside = median_ratio(all, row.in_handlers, row.variant, timers);
            cells +=
                ' ' + outside + (outside.empty() || inside.empty() ? "" : ", ") + inside + " |";
            any = any || !outside.empty() || !inside.empty();
        }
        if (any)
            out << "| " << row.title << " |" << cells << '\n';
    }
    out.flush();
}

void run(const settings& s, const std::vector<bench::workload>& workloads, std::ostream* json) {
    const auto facts = about(s);
    bench::json_report report;
    results_by_name all;
    std::cout << "# pawl_bench\n\n";
    bench::print_facts(std::cout, facts);
    for (const auto& work : workloads) {
        auto& results = all[work.name];
        bench::print_heading(std::cout, work);
        for (const auto size : sizes_for(s, work)) {
            results.push_back(
                bench::measure(work, plan_for(s, size), repetitions_for(s, work, size)));
            bench::print_row(std::cout, results.back());
            report.add(work, results.back());
        }
        bench::print_notes(std::cout, results);
        bench::print_above_floor(std::cout, results);
    }
    if (s.core)
        print_core_table(std::cout, s, all);
    if (json != nullptr) {
        report.write(*json, facts);
        if (!json->flush())
            throw std::runtime_error("cannot write " + s.json_file);
    }
}

} // namespace

int main(int argc, char** argv) try {
    settings s;
    CLI::App app{"pawl::steady_timer against boost::asio::steady_timer", "pawl_bench"};
    app.add_option("-w,--workload", s.workloads, "run these only: regular expressions, repeatable")
        ->check(bench::as_regex);
    app.add_option("-v,--variant", s.variants,
                   "besides the first, these only: regular expressions, repeatable")
        ->check(bench::as_regex);
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
    app.add_flag("--core", s.core,
                 "the workloads of the core table, for 1e3 to 1e7 timers, and that table");
    app.add_flag("--alone", s.alone, "without an idle thread beside the workloads");
    app.add_flag("-q,--quick", s.quick,
                 "a smoke test of seconds: sizes 1e3 and 1e4, 2 repetitions");
    app.add_flag("-l,--list", s.list, "name the workloads and stop");
    if (const auto status = example::parse_command_line(app, argc, argv))
        return *status;
    if (s.quick && sizes->empty())
        s.sizes = {1e3, 1e4};
    else if (s.core && sizes->empty())
        s.sizes.push_back(1e7);

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
    std::optional<bench::idle_thread> second;
    if (!s.alone)
        second.emplace();
    run(s, workloads, s.json_file.empty() ? nullptr : &json);
    return 0;
} catch (const bench::checksum_mismatch& error) {
    std::cerr << "pawl_bench: the variants did not do the same work: " << error.what() << '\n';
    return 1;
} catch (const std::exception& error) {
    std::cerr << "pawl_bench: " << error.what() << '\n';
    return 1;
}
