// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Results as Markdown tables for people and as JSON for programs. Independent of how they were
///   measured.
#ifndef PAWL_BENCH_REPORT_HPP
#define PAWL_BENCH_REPORT_HPP

#include "harness.hpp"

#include <boost/json.hpp>
#include <boost/version.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iterator>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#ifndef PAWL_BENCH_FLAGS
#define PAWL_BENCH_FLAGS "unknown"
#endif

namespace bench {

/// The circumstances of a figure.
using facts = std::vector<std::pair<std::string, std::string>>;

namespace detail {

inline std::string cpu_model() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (line.starts_with("model name"))
            if (const auto colon = line.find(": "); colon != std::string::npos)
                return line.substr(colon + 2);
    return "unknown";
}

inline std::string load_average() {
    std::string load = "unknown";
    std::ifstream("/proc/loadavg") >> load;
    return load;
}

inline std::string compiler() {
#if defined(__clang__)
    return "clang " __clang_version__;
#elif defined(__GNUC__)
    return "g++ " __VERSION__;
#else
    return "unknown";
#endif
}

inline std::string boost_version() {
    return std::to_string(BOOST_VERSION / 100000) + "." +
           std::to_string(BOOST_VERSION / 100 % 1000) + "." + std::to_string(BOOST_VERSION % 100);
}

inline std::string today() {
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    std::ostringstream out;
    out << std::put_time(&parts, "%Y-%m-%d");
    return out.str();
}

/// Three significant digits or more, without an exponent.
inline std::string brief(double value) {
    std::ostringstream out;
    const double size = std::abs(value);
    out << std::fixed << std::setprecision(size < 10 ? 2 : size < 100 ? 1 : 0) << value;
    return out.str();
}

/// 1e3 for 1000, and plain digits if it is not a power of ten.
inline std::string size_name(std::size_t size) {
    auto mantissa = size;
    int exponent = 0;
    while (mantissa >= 10 && mantissa % 10 == 0) {
        mantissa /= 10;
        ++exponent;
    }
    return mantissa == 1 && exponent >= 3 ? "1e" + std::to_string(exponent) : std::to_string(size);
}

} // namespace detail

/// The machine and the build, without anything that identifies the machine.
inline facts environment() {
    facts all{{"date", detail::today()},
              {"cpu", detail::cpu_model()},
              {"cpus", std::to_string(std::thread::hardware_concurrency())},
              {"load before the run", detail::load_average()},
              {"compiler", detail::compiler()},
              {"flags", PAWL_BENCH_FLAGS},
              {"boost", detail::boost_version()}};
#if !defined(__OPTIMIZE__)
    all.emplace_back("warning", "built without optimisation: the figures mean nothing");
#endif
    return all;
}

inline void print_facts(std::ostream& out, const facts& all) {
    for (const auto& [name, value] : all)
        out << "- " << name << ": " << value << '\n';
}

/// An explanation of the ratios.
inline std::pair<std::string, std::string> paired(const std::string& baseline) {
    return {"ratios", baseline + " / variant, more is better for the variant: median (min - max) "
                                 "of paired repetitions"};
}

inline void print_heading(std::ostream& out, const workload& work) {
    const auto& baseline = work.variants.front().name;
    out << "\n### " << work.name << "\n\n"
        << work.situation << "; " << work.unit << "\n\n| timers | reps |";
    for (const auto& v : work.variants)
        out << ' ' << v.name << " |";
    for (std::size_t v = 1; v < work.variants.size(); ++v)
        out << ' ' << baseline << " / " << work.variants[v].name << " |";
    out << "\n|";
    for (std::size_t column = 0; column < 1 + 2 * work.variants.size(); ++column)
        out << "---:|";
    out << std::endl;
}

inline void print_row(std::ostream& out, const result& r) {
    out << "| " << detail::size_name(r.size) << " | " << r.variants.front().values.size() << " |";
    for (const auto& v : r.variants)
        out << ' ' << detail::brief(spread_of(v.values).median) << " |";
    for (std::size_t v = 1; v < r.variants.size(); ++v) {
        const auto ratio = spread_of(r.variants[v].ratios);
        out << " **" << detail::brief(ratio.median) << "** (" << detail::brief(ratio.min) << " - "
            << detail::brief(ratio.max) << ") |";
    }
    out << std::endl;
}

/// The notes of a workload's results, medians, one line each.
inline void print_notes(std::ostream& out, const std::vector<result>& results) {
    bool first = true;
    for (const auto& r : results)
        for (std::size_t n = 0; n < r.variants.front().notes.size(); ++n) {
            out << (std::exchange(first, false) ? "\n" : "") << "- " << detail::size_name(r.size)
                << ", " << r.variants.front().notes[n].first << ": ";
            for (std::size_t v = 0; v < r.variants.size(); ++v)
                out << (v == 0 ? "" : ", ") << r.variants[v].variant << ' '
                    << detail::brief(spread_of(r.variants[v].notes[n].second).median);
            out << '\n';
        }
    out.flush();
}

/// A table of the notes, for workloads with more than one figure: medians, and ranges if there are
/// several repetitions. The ratios are those of the workload's value, which is also one of the
/// notes.
/// @param value the name of the value
inline void print_table_of_notes(std::ostream& out, const workload& work,
                                 const std::vector<result>& results, const std::string& value) {
    const auto& columns = results.front().variants.front().notes;
    out << "\n### " << work.name << "\n\n"
        << work.situation << "; " << work.unit << "\n\n| timers | reps | |";
    for (const auto& [name, values] : columns)
        out << ' ' << name << " |";
    out << ' ' << value << ": " << work.variants.front().name << " / this |\n|---:|---:|---|";
    for (std::size_t column = 0; column < columns.size() + 1; ++column)
        out << "---:|";
    out << '\n';
    const auto cell = [&out](const std::vector<double>& values) {
        const auto s = spread_of(values);
        out << ' ' << detail::brief(s.median);
        if (values.size() > 1)
            out << " (" << detail::brief(s.min) << " - " << detail::brief(s.max) << ')';
        out << " |";
    };
    for (const auto& r : results)
        for (const auto& v : r.variants) {
            out << "| " << detail::size_name(r.size) << " | " << v.values.size() << " | "
                << v.variant << " |";
            for (const auto& [name, values] : v.notes)
                cell(values);
            cell(v.ratios);
            out << '\n';
        }
    out.flush();
}

/// If a variant is a floor, that is, only does what the others must do as well: the cost of the
/// others above it.
inline void print_above_floor(std::ostream& out, const std::vector<result>& results) {
    bool first = true;
    for (const auto& r : results) {
        const auto floor = std::find_if(r.variants.begin(), r.variants.end(), [](const series& v) {
            return v.variant == "bare" || v.variant == "post";
        });
        if (floor == r.variants.end())
            return;
        out << (std::exchange(first, false) ? "\n" : "") << "- " << detail::size_name(r.size)
            << ", above " << floor->variant << ", median (min - max) of pairs:";
        const char* separator = " ";
        for (const auto& v : r.variants) {
            if (&v == &*floor)
                continue;
            std::vector<double> above;
            std::transform(v.values.begin(), v.values.end(), floor->values.begin(),
                           std::back_inserter(above), std::minus<>());
            const auto s = spread_of(above);
            out << std::exchange(separator, ", ") << v.variant << ' ' << detail::brief(s.median)
                << " (" << detail::brief(s.min) << " - " << detail::brief(s.max) << ')';
        }
        out << '\n';
    }
    out.flush();
}

namespace detail {

inline boost::json::object to_json(const facts& about) {
    boost::json::object all;
    for (const auto& [name, value] : about)
        all[name] = value;
    return all;
}

inline boost::json::object to_json(const spread& s) {
    return {{"median", s.median}, {"min", s.min}, {"max", s.max}};
}

inline boost::json::array to_json(const std::vector<double>& values) {
    return boost::json::array(values.begin(), values.end());
}

inline boost::json::object to_json(const series& s) {
    boost::json::object notes;
    for (const auto& [name, values] : s.notes)
        notes[name] = to_json(values);
    boost::json::object out{
        {"variant", s.variant},
        {"value", to_json(spread_of(s.values))},
        {"ratio", to_json(spread_of(s.ratios))},
        {"values", to_json(s.values)},
        {"ratios", to_json(s.ratios)},
        {"checksum",
         {{"expired", s.sum.expired}, {"cut_short", s.sum.cut_short}, {"ids", s.sum.ids}}}};
    if (!notes.empty())
        out["notes"] = std::move(notes);
    return out;
}

} // namespace detail

/// Collects results and writes one per line, so that diff can compare two result files.
class json_report {
public:
    void add(const workload& work, const result& r) {
        boost::json::array variants;
        for (const auto& v : r.variants)
            variants.push_back(detail::to_json(v));
        results_.push_back(boost::json::object{{"workload", work.name},
                                               {"unit", work.unit},
                                               {"size", r.size},
                                               {"variants", std::move(variants)}});
    }

    void write(std::ostream& out, const facts& about) const {
        out << "{\"about\": " << detail::to_json(about) << ",\n\"results\": [";
        for (std::size_t r = 0; r < results_.size(); ++r)
            out << (r == 0 ? "\n" : ",\n") << results_[r];
        out << "\n]}\n";
    }

private:
    std::vector<boost::json::object> results_;
};

} // namespace bench

#endif // PAWL_BENCH_REPORT_HPP
