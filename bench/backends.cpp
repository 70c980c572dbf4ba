// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl_bench_backends: the time structures side by side, see README.md.

#include "backends/entries.hpp"
#include "harness.hpp"
#include "program.hpp"
#include "report.hpp"
#include "selection.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace {

using bench::backends::entry;

struct settings : bench::program {
    bench::backends::setup setup;

    using program::program;
};

bench::measures measures_at(const settings& s, std::size_t size) {
    return {{size, s.quick ? 50'000u : 500'000u, 0, {}},
            s.quick             ? 2u
            : size <= 100'000   ? 5u
            : size <= 1'000'000 ? 3u
                                : 1u};
}

std::vector<std::size_t> sizes_for(const settings& s, const entry& e) {
    std::vector<std::size_t> sizes(s.sizes.begin(), s.sizes.end());
    if (!e.sizes.empty()) {
        sizes.clear();
        std::copy_if(e.sizes.begin(), e.sizes.end(), std::back_inserter(sizes),
                     [&](std::size_t size) { return !s.quick || size <= 10'000; });
    }
    return sizes;
}

/// The workload with its peers among the variants.
bench::workload with_peers(const entry& e) {
    auto work = e.workload;
    work.variants.insert(work.variants.end(), e.peers.begin(), e.peers.end());
    return work;
}

std::string huge_pages() {
    std::string all = "unknown";
    std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), all);
    return all;
}

bench::facts about(const settings& s) {
    auto all = s.about(std::to_string(s.setup.timer_bytes) + " bytes a timer, room for " +
                       std::to_string(s.setup.room));
    all.emplace_back("transparent huge pages", huge_pages());
    all.push_back(bench::paired("first column"));
    return all;
}

/// Prints for each target of this size whether it was reached.
void print_targets(std::ostream& out, const entry& e, const std::vector<bench::result>& results) {
    bool first = true;
    for (const auto& t : e.targets)
        for (const auto& r : results)
            for (const auto& v : r.variants) {
                if (r.size != t.size || v.variant != t.variant)
                    continue;
                const auto& baseline = r.variants.front().variant;
                const auto figure = t.of_baseline ? 1 / bench::spread_of(v.ratios).median
                                                  : bench::spread_of(v.values).median;
                out << (std::exchange(first, false) ? "\n" : "") << "- target at "
                    << bench::detail::size_name(t.size) << ": " << t.variant << " at most "
                    << bench::detail::brief(t.most) << (t.of_baseline ? " x " + baseline : "")
                    << "; it is " << bench::detail::brief(figure) << ": "
                    << (figure <= t.most ? "reached" : "**missed**") << '\n';
            }
    out.flush();
}

void measure(const settings& s, const entry& e, bench::session& run) {
    const auto at = [&](std::size_t size) { return measures_at(s, size); };
    const auto sizes = sizes_for(s, e);
    const auto split = e.peers.empty() ? sizes.end()
                                       : std::upper_bound(sizes.begin(), sizes.end(),
                                                          bench::backends::most_for_peers);
    auto results = run.table(with_peers(e), {sizes.begin(), split}, at);
    if (split != sizes.end()) { // a table of its own, because it has fewer columns
        const auto large = run.table(e.workload, {split, sizes.end()}, at);
        results.insert(results.end(), large.begin(), large.end());
    }
    bench::print_notes(std::cout, results);
    print_targets(std::cout, e, results);
}

std::string as_timer_bytes(const std::string& text) {
    const auto bytes = std::strtoul(text.c_str(), nullptr, 10);
    return bytes >= 32 && bytes <= 4096 && bytes % 8 == 0
               ? ""
               : "a timer has 32 to 4096 bytes, a multiple of 8";
}

} // namespace

int main(int argc, char** argv) {
    settings s("pawl_bench_backends", "Pawl's time structures side by side, without a service",
               "sizes 1e3 and 1e4, 2 repetitions");
    s.add_sizes({1e3, 1e4, 1e5, 1e6, 1e7}, 1e8);
    s.add_alone();
    s.line
        .add_option("--timer-bytes", s.setup.timer_bytes,
                    "size of a timer, 32 for nothing but a node")
        ->check(as_timer_bytes)
        ->capture_default_str();
    s.line.add_option("--room", s.setup.room, "nodes that one expire() may handle")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    return s.run(argc, argv, [&] {
        if (s.quick && s.sizes_option->empty())
            s.sizes = {1e3, 1e4};
        std::sort(s.sizes.begin(), s.sizes.end());
        auto entries = s.selected(bench::backends::all_entries(s.setup));
        for (auto& e : entries)
            std::erase_if(e.peers, [&](const bench::variant& v) {
                return !bench::wanted(s.variants, v.name);
            });
        if (s.list) {
            for (auto& e : entries)
                e.workload = with_peers(e);
            return bench::print_list(entries);
        }
        bench::session run(s, about(s));
        for (const auto& e : entries)
            measure(s, e, run);
        run.write_json();
    });
}
