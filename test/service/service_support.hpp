// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Shared by the tests of the service: outcomes of waits, user-defined clocks, a count of the
//   allocations of the whole program.

#ifndef PAWL_TEST_SERVICE_SERVICE_SUPPORT_HPP
#define PAWL_TEST_SERVICE_SERVICE_SUPPORT_HPP

#include <pawl/pawl.hpp>

#include "../support/archetypes.hpp"
#include "../support/seed.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <ostream>
#include <thread>

namespace service_test {

namespace asio = boost::asio;
using boost::system::error_code;
using namespace std::chrono_literals;
using namespace pawl_test;

inline constexpr std::size_t none = 0;
inline constexpr std::size_t one = 1;

/// How long a test waits for an event before it reports a hang.
inline const auto patience = pawl_test::patience_or(20s);

/// The outcome of one wait.
struct outcome {
    int calls = 0;
    error_code code;

    bool pending() const noexcept { return calls == 0; }
    bool succeeded() const noexcept { return calls == 1 && !code; }
    bool aborted() const noexcept { return calls == 1 && code == asio::error::operation_aborted; }
    friend std::ostream& operator<<(std::ostream& out, const outcome& o) {
        return out << o.calls << " calls, " << o.code.message();
    }
};

inline auto record(outcome& o) {
    return [&o](error_code code) {
        ++o.calls;
        o.code = code;
    };
}

/// Runs everything that is ready; returns the number of units.
inline std::size_t poll(asio::io_context& context) {
    context.restart();
    std::size_t units = context.poll();
#if defined(BOOST_ASIO_HAS_IOCP)
    // With io_uring another thread checks the time, and poll() does not wait for it.
    for (int i = 0; units == 0 && i != 20; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        units = context.poll();
    }
#endif
    return units;
}

/// run() until it returns by itself (P9).
inline std::size_t run_to_end(asio::io_context& context) {
    context.restart();
    const std::size_t units = context.run_for(patience);
    BOOST_REQUIRE_MESSAGE(context.stopped(), "P9: run() does not return");
    return units;
}

/// Whether poll() leaves outstanding work behind.
inline bool busy(asio::io_context& context) {
    poll(context);
    return !context.stopped();
}

} // namespace service_test

#endif // PAWL_TEST_SERVICE_SERVICE_SUPPORT_HPP
