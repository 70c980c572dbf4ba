// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Support for the self-checks of the recipes. Your own program does not need it.
#ifndef PAWL_EXAMPLES_COOKBOOK_SUPPORT_HPP
#define PAWL_EXAMPLES_COOKBOOK_SUPPORT_HPP

#include <pawl/manual_clock.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <iostream>
#include <string_view>

namespace cookbook {

inline int failures = 0;

/// Prints a claim, and whether it holds. main() returns exit_status().
inline void check(bool condition, std::string_view claim) {
    std::cout << (condition ? "  ok      " : "  FAILED  ") << claim << std::endl;
    failures += condition ? 0 : 1;
}

[[nodiscard]] inline int exit_status() { return failures == 0 ? 0 : 1; }

/// For co_spawn(): an unexpected exception ends the program.
inline void rethrow(std::exception_ptr e) {
    if (e)
        std::rethrow_exception(e);
}

/// For co_spawn(): the error code of a coroutine; success if it has returned.
[[nodiscard]] inline boost::system::error_code code_of(const std::exception_ptr& e) {
    try {
        rethrow(e);
    } catch (const boost::system::system_error& error) {
        return error.code();
    }
    return {};
}

/// Moves the clock and runs everything that is due then, including timers that handlers set to a
/// time in the past. A single poll() may miss those: the next reading of the clock finds them.
inline void pass(boost::asio::io_context& context, pawl::manual_clock::duration d) {
    do {
        pawl::manual_clock::advance(context, d);
        d = d.zero();
        context.restart();
    } while (context.poll() != 0);
}

/// Moves the clock from deadline to deadline until all work is done.
inline void pass_all(boost::asio::io_context& context) {
    for (pass(context, {}); !context.stopped(); pass(context, {}))
        pawl::manual_clock::advance_to_next(context);
}

} // namespace cookbook

#endif // PAWL_EXAMPLES_COOKBOOK_SUPPORT_HPP
