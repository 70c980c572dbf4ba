// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The seeds of a command line: run in processes, with a report of the first failure. For the
//   simulation of one thread and for that of several.
//
// Model
//   A seed runs in a process, of which the program is only the parent: a failure ends the process
//   (report.hpp), so does a crash, and one that hangs is killed. It has told its parent its seed.

#ifndef PAWL_TEST_SIMULATION_CAMPAIGN_HPP
#define PAWL_TEST_SIMULATION_CAMPAIGN_HPP

#include "simulation/report.hpp"

#include <CLI/CLI.hpp>

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace simulation {

/// What a process tells its parent.
struct slate {
    std::atomic<std::uint64_t> seed{0};  ///< in progress
    std::atomic<std::uint64_t> seeds{0}; ///< that have ended
    totals sum;
    char choices[1 << 13] = {}; ///< of the seed, unless the report of a failure has its program
    char failure[1 << 16] = {};
};

/// A process that calls `work` and ends.
class process {
public:
    explicit process(const std::function<void(slate&)>& work);
    process(const process&) = delete;
    process& operator=(const process&) = delete;
    ~process();

    /// Waits for its end, and aborts it if no seed ends in so many seconds: a core file shows where.
    /// @return its failure, or nothing.
    std::string failure(int patience);
    void terminate();
    [[nodiscard]] const slate& told() const noexcept { return *told_; }

private:
    slate* told_;
    pid_t id_; ///< 0: it has ended
};

class campaign {
public:
    campaign(std::string name, std::string about);

    /// Whether one seed was asked for, which is `first`.
    [[nodiscard]] bool alone() const { return alone_->count() != 0; }

    /// In each of `jobs` processes, calls `run` for every jobs-th seed while `goes_on`. Prints the
    /// sums, or the first failure.
    /// @return the seed that has failed.
    std::optional<std::uint64_t>
    run(unsigned jobs, const std::function<totals(std::uint64_t seed, slate&)>& run_one,
        const std::function<bool(std::uint64_t seed, const slate&)>& goes_on) const;

    CLI::App app;
    std::uint64_t seeds = 1000;
    std::uint64_t first = 0;

private:
    std::string name_;
    CLI::Option* alone_;
};

} // namespace simulation

#endif
