// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// Purpose
//   Loads the test vectors of test/vectors/, each of which is a short story about one of the systems
//   that Pawl takes ideas from: steps, and what some of them return. An adapter, one for each system,
//   says what a step means.
//
// Model
//   PAWL_TEST_VECTORS is the directory; CMake defines it. Included by one source file of a program,
//   since it brings Boost.JSON without its library.

#ifndef PAWL_TEST_SUPPORT_VECTORS_HPP
#define PAWL_TEST_SUPPORT_VECTORS_HPP

#include <boost/json/src.hpp>

#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#ifndef PAWL_TEST_VECTORS
#error "define PAWL_TEST_VECTORS as the directory that holds the *.json files"
#endif

namespace pawl_test {

namespace json = boost::json;

/// One story.
struct test_vector {
    std::string name;
    std::string kind; ///< port, derived or regression
    json::object config;
    std::vector<json::object> steps;
    std::map<std::size_t, json::value> expected; ///< by the index of the step

    friend std::ostream& operator<<(std::ostream& out, const test_vector& v) {
        return out << v.name;
    }
};

/// The stories of one file, such as "timing_wheel.json".
inline std::vector<test_vector> load_vectors(const std::string& file) {
    std::ifstream in(PAWL_TEST_VECTORS "/" + file, std::ios::binary);
    if (!in)
        throw std::runtime_error("cannot read " PAWL_TEST_VECTORS "/" + file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const json::value document = json::parse(text);

    std::vector<test_vector> vectors;
    for (const json::value& each : document.at("vectors").as_array()) {
        test_vector v;
        v.name = json::value_to<std::string>(each.at("name"));
        v.kind = json::value_to<std::string>(each.at("kind"));
        v.config = each.at("config").as_object();
        for (const json::value& step : each.at("steps").as_array())
            v.steps.push_back(step.as_object());
        for (const json::value& expectation : each.at("expect").as_array())
            v.expected.emplace(expectation.at("step").to_number<std::size_t>(),
                               expectation.at("returns"));
        vectors.push_back(std::move(v));
    }
    return vectors;
}

/// Runs all steps. `run(step)` answers what the step returns, as JSON; `report(index, returned,
/// expected)` is called, with both as text, for each step that should have returned something else.
template <class Run, class Report>
void replay(const test_vector& story, Run&& run, Report&& report) {
    for (std::size_t i = 0; i != story.steps.size(); ++i) {
        const std::string returned = json::serialize(json::value(run(story.steps[i])));
        const auto at = story.expected.find(i);
        if (at == story.expected.end())
            continue;
        // As text, for which 1 is 1 whether it is signed or not.
        if (const std::string expected = json::serialize(at->second); returned != expected)
            report(i, returned, expected);
    }
}

} // namespace pawl_test

#endif
