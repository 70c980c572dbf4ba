// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/scenario.hpp"
#include "simulation/values.hpp"

#include <sstream>
#include <string>

namespace simulation {

std::string text_of(const step& s) {
    std::ostringstream out;
    print(out, s, 4);
    return std::move(out).str();
}

std::string program(const scenario& s, const std::string& text) {
    std::ostringstream out;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        out << "// " << line << '\n';
    out << R"(
#include "simulation/world.hpp"

int main() {
    using namespace simulation;
    scenario s;
    s.begin = )";
    print(out, s.begin, 8);
    out << ";\n";
    for (const step& each : s.steps) {
        out << "    s.steps.push_back(";
        print(out, each, 8);
        out << ");\n";
    }
    out << "    world::trace = true;\n    run(s);\n}\n";
    return std::move(out).str();
}

} // namespace simulation
