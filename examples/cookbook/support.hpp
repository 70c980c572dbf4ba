// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// What the recipes share to check themselves. No recipe needs it in a program of yours.
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

/// Prints what is claimed, and whether it is so. main() returns exit_status().
inline void check(bool condition, std::string_view claim) {
    std::cout << (condition ? "  ok      " : "  FAILED  ") << claim << std::endl;
    failures += condition ? 0 : 1;
}

[[nodiscard]] inline int exit_status() { return failures == 0 ? 0 : 1; }

/// For co_spawn(): what nobody expects ends the program.
inline void rethrow(std::exception_ptr e) {
    if (e)
        std::rethrow_exception(e);
}

/// For co_spawn(): the error code with which a coroutine has ended; success if it has returned.
[[nodiscard]] inline boost::system::error_code code_of(const std::exception_ptr& e) {
    try {
        rethrow(e);
    } catch (const boost::system::system_error& error) {
        return error.code();
    }
    return {};
}

/// Moves the clock, and runs all that is due then, what handlers set for a time that has passed
/// included. One poll() may miss that: it is found when somebody looks at the clock again.
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
