// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#ifndef PAWL_TEST_SIMULATION_REPORT_HPP
#define PAWL_TEST_SIMULATION_REPORT_HPP

#include <cstdint>
#include <string>

namespace simulation {

/// What a seed has done.
struct totals {
    std::uint64_t operations = 0; ///< steps or calls, including those of handlers
    std::uint64_t waits = 0;
    std::uint64_t units = 0;

    totals& operator+=(const totals& other) {
        operations += other.operations;
        waits += other.waits;
        units += other.units;
        return *this;
    }
};

/// Ends the process: a promise is broken. Not an exception, because the culprit may be called by a
/// destructor or be `noexcept`.
/// @param text the promise, a colon, the event. A failure is shrunk as long as the text before the
/// first number in it stays the same.
[[noreturn]] void fail(const std::string& text);

/// Fail when a wait completes with success, to try the report: --plant.
inline bool planted = false;

/// Called by fail(). Writes to the standard error stream and exits, unless set otherwise.
extern void (*on_failure)(const std::string& text);

} // namespace simulation

#endif
