// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The common parts of the benchmark programs: command line, choice of workloads, report, exit
///   status.
#ifndef PAWL_BENCH_PROGRAM_HPP
#define PAWL_BENCH_PROGRAM_HPP

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
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// The command line asks for something impossible.
class misuse : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Calls `body`, and prints exceptions on stderr.
/// @return the exit status: that of body(); 1 if it fails; 2 after a bad command line
template <class Body>
int guarded(const std::string& name, Body body) try {
    return body();
} catch (const misuse& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return 2;
} catch (const checksum_mismatch& error) {
    std::cerr << name << ": the variants did not do the same work: " << error.what() << '\n';
    return 1;
} catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return 1;
}

/// The file of --json, if there is one. It is opened before the run, so that a typing error does
/// not cost a run of minutes.
class json_file {
public:
    explicit json_file(const std::string& name) : name_(name) {
        if (name.empty())
            return;
        out_.open(name);
        require();
    }

    /// @param write is called with a stream, if there is a file
    template <class Write>
    void write(Write write) {
        if (name_.empty())
            return;
        write(out_);
        out_.flush();
        require();
    }

private:
    void require() const {
        if (!out_)
            throw misuse("cannot write " + name_);
    }

    std::string name_;
    std::ofstream out_;
};

/// The command line of a program. A program adds its own options to `line`.
struct program {
    CLI::App line;
    std::vector<std::string> workloads;
    std::vector<std::string> variants;
    std::vector<double> sizes;
    CLI::Option* sizes_option = nullptr;
    std::size_t repetitions = 0; ///< 0: as many as the workload and the size allow
    std::string json;
    bool alone = false;
    bool quick = false;
    bool list = false;

    /// @param quick_means what --quick omits, for --help
    program(const std::string& name, const std::string& description, const std::string& quick_means)
        : line(description, name) {
        line.add_option("-w,--workload", workloads,
                        "run these only: regular expressions, repeatable")
            ->check(as_regex);
        line.add_option("-v,--variant", variants,
                        "besides the first, these only: regular expressions, repeatable")
            ->check(as_regex);
        line.add_option("-r,--reps", repetitions,
                        "repetitions; default: as many as the workload and the size allow")
            ->check(CLI::Range(1, 10'000));
        line.add_option("--json", json, "write all samples to this file");
        line.add_flag("-q,--quick", quick, "a smoke test of seconds: " + quick_means);
        line.add_flag("-l,--list", list, "name the workloads and stop");
    }

    void add_sizes(std::vector<double> by_default, double most) {
        sizes = std::move(by_default);
        sizes_option =
            line.add_option("-n,--size", sizes, "number of timers, such as 1e5, repeatable")
                ->check(CLI::Range(2.0, most))
                ->capture_default_str();
    }

    void add_alone() {
        line.add_flag("--alone", alone, "without an idle thread beside the workloads");
    }

    /// The circumstances of the figures.
    /// @param options those of this program, as text
    [[nodiscard]] facts about(std::string options) const {
        auto all = environment();
        all.push_back(beside(alone));
        const auto add = [&](const std::string& more) {
            options += (options.empty() ? "" : ", ") + more;
        };
        if (quick)
            add("quick");
        if (repetitions != 0)
            add(std::to_string(repetitions) + " repetitions");
        all.emplace_back("options", options);
        return all;
    }

    /// The workloads that the command line selects.
    /// @throw misuse if there are none
    template <class Entry>
    [[nodiscard]] std::vector<Entry> selected(std::vector<Entry> all) const {
        std::erase_if(all, [&](const Entry& e) { return !wanted(workloads, in(e).name); });
        if (all.empty())
            throw misuse("no such workload; --list names them");
        for (auto& e : all)
            keep_wanted(in(e).variants, variants);
        return all;
    }

    /// main().
    /// @param body runs the workloads, after the command line has been read
    /// @return the exit status
    template <class Body>
    int run(int argc, char** argv, Body body) {
        return guarded(line.get_name(), [&] {
            if (const auto status = example::parse_command_line(line, argc, argv))
                return *status;
            body();
            return 0;
        });
    }

    static workload& in(workload& work) { return work; }
    static const workload& in(const workload& work) { return work; }
    template <class Entry>
    static auto& in(Entry& entry) {
        return entry.workload;
    }
};

template <class Entry>
void print_list(const std::vector<Entry>& all) {
    for (const auto& each : all) {
        const workload& work = program::in(each);
        std::cout << work.name << ": " << work.situation << "\n  " << work.unit << "; variants";
        for (const auto& v : work.variants)
            std::cout << ' ' << v.name;
        std::cout << '\n';
    }
}

/// How a workload is run at one size.
struct measures {
    plan what;
    std::size_t repetitions; ///< unless the command line or the workload says otherwise
};

/// A run of a program: the head of the report, the idle thread beside the workloads, and the
/// samples.
class session {
public:
    session(const program& p, facts about) : program_(p), about_(std::move(about)), json_(p.json) {
        if (!p.alone)
            second_.emplace();
        std::cout << "# " << p.line.get_name() << "\n\n";
        print_facts(std::cout, about_);
    }

    /// Measures a workload at each of the sizes.
    /// @param at is called with a size, and returns the measures
    /// @param each is called with each result as soon as it is known
    template <class At, class Each>
    std::vector<result> measure(const workload& work, const std::vector<std::size_t>& sizes, At at,
                                Each each) {
        std::vector<result> results;
        for (const auto size : sizes) {
            auto [what, repetitions] = at(size);
            if (work.repetitions != 0)
                repetitions = std::min(repetitions, work.repetitions);
            if (program_.repetitions != 0)
                repetitions = program_.repetitions;
            results.push_back(bench::measure(work, what, repetitions));
            each(results.back());
            report_.add(work, results.back());
        }
        return results;
    }

    /// The same, and prints the rows of the table as they become known.
    template <class At>
    std::vector<result> table(const workload& work, const std::vector<std::size_t>& sizes, At at) {
        if (sizes.empty())
            return {};
        print_heading(std::cout, work);
        return measure(work, sizes, at, [](const result& r) { print_row(std::cout, r); });
    }

    void write_json() {
        json_.write([this](std::ostream& out) { report_.write(out, about_); });
    }

private:
    const program& program_;
    facts about_;
    json_file json_;
    json_report report_;
    std::optional<idle_thread> second_;
};

/// main() of a program whose workloads each have one size.
/// @param all makes the workloads
/// @param batch sizes stay multiples of this one
inline int run_fixed(int argc, char** argv, const std::string& name, const std::string& description,
                     std::vector<workload> (*all)(), std::size_t batch = 1) {
    program p(name, description, "a hundredth of each size, 2 repetitions");
    return p.run(argc, argv, [&] {
        const auto workloads = p.selected(all());
        if (p.list)
            return print_list(workloads);
        auto about = p.about(p.repetitions == 0 ? "at most 9 repetitions" : "");
        about.push_back(paired("first column"));
        session run(p, about);
        for (const workload& work : workloads) {
            const auto size = p.quick
                                  ? std::max<std::size_t>(work.fixed_size / 100 / batch, 1) * batch
                                  : work.fixed_size;
            print_notes(std::cout, run.table(work, {size}, [&](std::size_t n) {
                return measures{{.size = n}, p.quick ? 2U : 9U};
            }));
        }
        run.write_json();
    });
}

} // namespace bench

#endif // PAWL_BENCH_PROGRAM_HPP
