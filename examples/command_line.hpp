// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Shared by the command lines of the example programs.

#ifndef PAWL_EXAMPLES_COMMAND_LINE_HPP
#define PAWL_EXAMPLES_COMMAND_LINE_HPP

#include <CLI/CLI.hpp>

#include <cstdint>
#include <iostream>
#include <map>
#include <optional>
#include <string>

namespace example {

/// Parses the command line. Help goes to stdout; errors and a short usage to stderr.
/// @return the status to exit with at once, if any: 0 after help, 2 after a bad command line.
[[nodiscard]] inline std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv) {
    try {
        app.parse(argc, argv);
        return std::nullopt;
    } catch (const CLI::CallForHelp&) {
        std::cout << app.help();
        return 0;
    } catch (const CLI::ParseError& e) {
        std::cerr << app.get_name() << ": " << e.what() << "\nUsage: " << app.get_name()
                  << " [OPTIONS]\nSee " << app.get_name() << " --help." << std::endl;
        return 2;
    }
}

/// Turns `1500`, `1500ms`, `2s` or `5min` into milliseconds.
[[nodiscard]] inline CLI::AsNumberWithUnit as_milliseconds() {
    return CLI::AsNumberWithUnit(
        std::map<std::string, std::int64_t>{
            {"ms", 1}, {"s", 1000}, {"min", 60'000}, {"h", 3'600'000}},
        CLI::AsNumberWithUnit::DEFAULT, "DURATION");
}

} // namespace example

#endif // PAWL_EXAMPLES_COMMAND_LINE_HPP
