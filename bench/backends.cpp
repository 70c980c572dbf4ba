// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl_bench_backends: the time structures side by side, see README.md.

#include "backends/entries.hpp"
#include "harness.hpp"
#include "idle_thread.hpp"
#include "report.hpp"
#include "selection.hpp"

#include "../examples/command_line.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using bench::backends::entry;

struct settings {
    std::vector<std::string> workloads;
    std::vector<std::string> variants;
    std::vector<double> sizes{1e3, 1e4, 1e5, 1e6, 1e7};
    std::size_t repetitions = 0; // 0: as many as the size allows
    bench::backends::setup setup;
    std::string json_file;
    bool alone = false;
    bool quick = false;
    bool list = false;
};

std::size_t repetitions_for(const settings& s, const bench::workload& work, std::size_t size) {
    if (s.repetitions != 0)
        return s.repetitions;
    const auto by_size = s.quick ? 2u : size <= 100'000 ? 5u : size <= 1'000'000 ? 3u : 1u;
    return work.repetitions != 0 ? std::min<std::size_t>(by_size, work.repetitions) : by_size;
}

bench::plan plan_for(const settings& s, std::size_t size) {
    return {size, s.quick ? 50'000u : 500'000u, 0, {}};
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

std::vector<entry> selected(const settings& s) {
    auto all = bench::backends::all_entries(s.setup);
    std::erase_if(all,
                  [&](const entry& e) { return !bench::wanted(s.workloads, e.workload.name); });
    for (auto& e : all) {
        bench::keep_wanted(e.workload.variants, s.variants);
        std::erase_if(e.peers,
                      [&](const bench::variant& v) { return !bench::wanted(s.variants, v.name); });
    }
    return all;
}

void print_list(const std::vector<entry>& all) {
    for (const auto& e : all) {
        std::cout << e.workload.name << ": " << e.workload.situation << "\n  " << e.workload.unit
                  << "; variants";
        for (const auto* variants : {&e.workload.variants, &e.peers})
            for (const auto& v : *variants)
                std::cout << ' ' << v.name;
        std::cout << '\n';
    }
}

std::string huge_pages() {
    std::string all = "unknown";
    std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), all);
    return all;
}

bench::facts about(const settings& s) {
    auto all = bench::environment();
    std::string options = std::to_string(s.setup.timer_bytes) + " bytes a timer, room for " +
                          std::to_string(s.setup.room);
    if (s.quick)
        options += ", quick";
    if (s.repetitions != 0)
        options += ", " + std::to_string(s.repetitions) + " repetitions";
    all.emplace_back("transparent huge pages", huge_pages());
    all.push_back(bench::beside(s.alone));
    all.emplace_back("options", options);
    all.emplace_back("ratios", "first column / variant, more is better for the variant: median "
                               "(min - max) of paired repetitions");
    return all;
}

/// Says of each target of this size whether it was reached.
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

void measure(const settings& s, const entry& e, bench::json_report& report) {
    auto work = e.workload;
    work.variants.insert(work.variants.end(), e.peers.begin(), e.peers.end());
    bool with_peers = true;
    std::vector<bench::result> results;
    bench::print_heading(std::cout, work);
    for (const auto size : sizes_for(s, e)) {
        if (with_peers && size > bench::backends::most_for_peers && !e.peers.empty()) {
            // A table of its own, as it has fewer columns.
            with_peers = false;
            work.variants = e.workload.variants;
            bench::print_heading(std::cout, work);
        }
        results.push_back(bench::measure(work, plan_for(s, size), repetitions_for(s, work, size)));
        bench::print_row(std::cout, results.back());
        report.add(work, results.back());
    }
    bench::print_notes(std::cout, results);
    print_targets(std::cout, e, results);
}

void run(const settings& s, const std::vector<entry>& entries, std::ostream* json) {
    const auto facts = about(s);
    bench::json_report report;
    std::cout << "# pawl_bench_backends\n\n";
    bench::print_facts(std::cout, facts);
    for (const auto& e : entries)
        measure(s, e, report);
    if (json != nullptr) {
        report.write(*json, facts);
        if (!json->flush())
            throw std::runtime_error("cannot write " + s.json_file);
    }
}

std::string as_timer_bytes(const std::string& text) {
    const auto bytes = std::strtoul(text.c_str(), nullptr, 10);
    return bytes >= 32 && bytes <= 4096 && bytes % 8 == 0
               ? ""
               : "a timer has 32 to 4096 bytes, a multiple of 8";
}

} // namespace

int main(int argc, char** argv) try {
    settings s;
    CLI::App app{"Pawl's time structures side by side, without a service", "pawl_bench_backends"};
    app.add_option("-w,--workload", s.workloads, "run these only: regular expressions, repeatable")
        ->check(bench::as_regex);
    app.add_option("-v,--variant", s.variants,
                   "besides the first, these only: regular expressions, repeatable")
        ->check(bench::as_regex);
    app.add_option("-n,--size", s.sizes,
                   "number of timers, such as 1e5, repeatable; where it matters")
        ->check(CLI::Range(2.0, 1e8))
        ->capture_default_str();
    app.add_option("-r,--reps", s.repetitions,
                   "repetitions; default: 1 to 5, fewer for more timers")
        ->check(CLI::Range(1, 10'000));
    app.add_option("--timer-bytes", s.setup.timer_bytes,
                   "size of a timer, 32 for nothing but a node")
        ->check(as_timer_bytes)
        ->capture_default_str();
    app.add_option("--room", s.setup.room, "nodes that one expire() may handle")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    app.add_option("--json", s.json_file, "write all samples to this file");
    app.add_flag("--alone", s.alone, "without an idle thread beside the workloads");
    auto* const sizes = app.get_option("--size");
    app.add_flag("-q,--quick", s.quick,
                 "a smoke test of seconds: sizes 1e3 and 1e4, 2 repetitions");
    app.add_flag("-l,--list", s.list, "name the workloads and stop");
    if (const auto status = example::parse_command_line(app, argc, argv))
        return *status;
    if (s.quick && sizes->empty())
        s.sizes = {1e3, 1e4};
    std::sort(s.sizes.begin(), s.sizes.end());

    const auto entries = selected(s);
    if (entries.empty()) {
        std::cerr << "pawl_bench_backends: no such workload; --list names them\n";
        return 2;
    }
    if (s.list) {
        print_list(entries);
        return 0;
    }
    std::optional<bench::idle_thread> second;
    if (!s.alone)
        second.emplace();
    std::ofstream json;
    if (!s.json_file.empty()) {
        json.open(
            s.json_file); // before the run: minutes of it should not be lost to a typing error
        if (!json) {
            std::cerr << "pawl_bench_backends: cannot write " << s.json_file << '\n';
            return 2;
        }
    }
    run(s, entries, s.json_file.empty() ? nullptr : &json);
    return 0;
} catch (const bench::checksum_mismatch& error) {
    std::cerr << "pawl_bench_backends: the variants did not do the same work: " << error.what()
              << '\n';
    return 1;
} catch (const std::exception& error) {
    std::cerr << "pawl_bench_backends: " << error.what() << '\n';
    return 1;
}
