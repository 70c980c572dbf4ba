// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Alarms that several threads use, while others call their functions.
//
// Model
//   The armings of an alarm follow each other. Each is moved by the next one, or ends: by a call, or
//   by a disarm() that returns true. So each of these ends belongs to an arming of its own, which
//   had begun before and was not yet followed by the next one. A call is not early for its arming.
//   It began after its thread had left the handler before it, and before its first line.
//
// Threads
//   disarm(), armed() and expiry() need nothing but that the alarm stays where it is. One thread at
//   a time arms. The log is written without a lock, for the reason that ledger.hpp gives.

#ifndef PAWL_TEST_SIMULATION_THREADS_ALARMS_HPP
#define PAWL_TEST_SIMULATION_THREADS_ALARMS_HPP

#include "simulation/threads/company.hpp"
#include "simulation/threads/ledger.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace simulation::threads {

class alarms final : public feature {
public:
    /// @param types those whose services have been made; at least one is not a ring.
    alarms(company c, std::vector<sort> types);
    ~alarms() override;

    void operate(random_source& random, arena& a) override;
    void close(ending how) override;
    void leave() override;
    void finish() override;
    tally check(const settings& clock) override;

    struct book;

private:
    struct place;
    enum class act : std::uint8_t { arm, disarm, armed, expiry, call, drop };
    struct event {
        book* of = nullptr;
        act what{};
        std::uint64_t before = 0, after = 0;
        bool yes = false;         ///< the result of disarm() or armed()
        std::int64_t expiry = 0;  ///< that was set, or read
        std::int64_t reading = 0; ///< of the clock of the alarm, not when it is armed
        std::int64_t steady = 0;  ///< the same, of the steady clock
        error_code code{};        ///< of a call
    };

    void operate(random_source& random, place& p, arena& a);
    void make(random_source& random, place& p, arena& a);
    void drop(place& p);
    void arm(random_source& random, place& p, std::int64_t d);
    void called(book& b, const error_code& ec);
    void note(const event& e);
    void check(const book& b, const std::vector<event>& log, const settings& clock, tally& t) const;

    friend struct alarm_function;

    const std::vector<sort> types_;
    std::array<std::unique_ptr<place>, 3> places_;
    std::mutex mutex_; ///< of the books
    std::vector<std::unique_ptr<book>> books_;
    std::vector<event> log_;
    std::atomic<std::size_t> noted_{0};
};

} // namespace simulation::threads

#endif
