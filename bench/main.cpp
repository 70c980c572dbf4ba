// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl_bench: pawl::steady_timer against boost::asio::steady_timer, see README.md.

#include "harness.hpp"
#include "program.hpp"
#include "report.hpp"
#include "selection.hpp"
#include "workloads.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstddef>
#include <iostream>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace {

struct settings : bench::program {
    std::size_t poll_every = 128;
    bool core = false;

    using program::program;
};

bench::measures measures_at(const settings& s, std::size_t size) {
    const bench::plan what{size, s.quick ? 50'000u : 500'000u, s.poll_every,
                           std::chrono::milliseconds(s.quick ? 100 : 1000)};
    if (s.quick)
        return {what, 2};
    if (s.core)
        return {what, size <= 1'000'000 ? 5u : 3u};
    return {what, size <= 10'000 ? 11u : size <= 100'000 ? 7u : 3u};
}

std::vector<std::size_t> sizes_for(const settings& s, const bench::workload& work) {
    if (work.fixed_size != 0)
        return {work.fixed_size};
    return {s.sizes.begin(), s.sizes.end()};
}

/// All workloads; for the core table only its workloads, with its libraries and the floors.
std::vector<bench::workload> all_workloads(const settings& s) {
    auto all = bench::all_workloads();
    if (!s.core)
        return all;
    std::vector<std::string> workloads;
    std::vector<std::string> variants{"bare", "post"};
    for (const auto& row : bench::core_rows()) {
        workloads.insert(workloads.end(), {row.outside, row.in_handlers});
        variants.push_back(row.variant);
    }
    std::erase_if(all, [&](const auto& work) { return !bench::wanted(workloads, work.name); });
    for (auto& work : all) {
        bench::keep_wanted(work.variants, variants);
        work.repetitions = 0; // the same number for each workload
    }
    return all;
}

/// The results of each workload by its name.
using results_by_name = std::map<std::string, std::vector<bench::result>>;

/// The median of asio / variant, or nothing if it was not measured.
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

} // namespace

int main(int argc, char** argv) {
    settings s("pawl_bench", "pawl::steady_timer against boost::asio::steady_timer",
               "sizes 1e3 and 1e4, 2 repetitions");
    s.add_sizes({1e3, 1e4, 1e5, 1e6}, 1e8);
    s.add_alone();
    s.line.add_option("--poll-every", s.poll_every, "operations between two calls of poll()")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    s.line.add_flag("--core", s.core,
                    "the workloads of the core table, for 1e3 to 1e7 timers, and that table");
    return s.run(argc, argv, [&] {
        if (s.quick && s.sizes_option->empty())
            s.sizes = {1e3, 1e4};
        else if (s.core && s.sizes_option->empty())
            s.sizes.push_back(1e7);
        const auto workloads = s.selected(all_workloads(s));
        if (s.list)
            return bench::print_list(workloads);

        auto about = s.about("poll every " + std::to_string(s.poll_every) + " operations" +
                             (s.core ? ", core" : ""));
        about.push_back(bench::paired("asio"));
        bench::session run(s, about);
        results_by_name all;
        for (const auto& work : workloads) {
            const auto& results = all[work.name] = run.table(
                work, sizes_for(s, work), [&](std::size_t size) { return measures_at(s, size); });
            bench::print_notes(std::cout, results);
            bench::print_above_floor(std::cout, results);
        }
        if (s.core)
            print_core_table(std::cout, s, all);
        run.write_json();
    });
}
