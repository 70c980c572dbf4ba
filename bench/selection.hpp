// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Selects workloads and variants by the regular expressions of the command line.
#ifndef PAWL_BENCH_SELECTION_HPP
#define PAWL_BENCH_SELECTION_HPP

#include "harness.hpp"

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

namespace bench {

/// A validator of CLI11: the error in `text`, or nothing.
inline std::string as_regex(const std::string& text) {
    try {
        const std::regex ignored(text);
        return {};
    } catch (const std::regex_error& error) {
        return text + " is no regular expression: " + error.what();
    }
}

/// Whether a pattern matches the whole name. Without patterns every name is wanted.
inline bool wanted(const std::vector<std::string>& patterns, const std::string& name) {
    return patterns.empty() ||
           std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
               return std::regex_match(name, std::regex(pattern));
           });
}

/// Erases the unwanted variants. The baseline stays.
inline void keep_wanted(std::vector<variant>& variants, const std::vector<std::string>& patterns) {
    const auto unwanted = [&](const variant& v) { return !wanted(patterns, v.name); };
    // variants[0] is the baseline
    variants.erase(std::remove_if(variants.begin() + 1, variants.end(), unwanted), variants.end());
}

} // namespace bench

#endif // PAWL_BENCH_SELECTION_HPP
