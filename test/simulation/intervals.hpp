// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Interval timers on the steady clock, and on one that is set.
//
// Model
//   The grid is that of pawl::missed_tick_policy: after a tick that is at most 5 ms late, or with
//   `burst`, the next one follows a period after it; with `delay`, a period after its delivery;
//   with `skip`, on the first future point of the grid. The first handler of a tick moves the grid
//   on. If the clock was set ahead since the last delivery, by more than a second, `burst` does as
//   `skip`. A tick that is due when the clock is set back may still be delivered.

#ifndef PAWL_TEST_SIMULATION_INTERVALS_HPP
#define PAWL_TEST_SIMULATION_INTERVALS_HPP

#include "simulation/surroundings.hpp"
#include "simulation/timers.hpp"

#include <pawl/interval_timer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

namespace simulation {

class intervals final : public listener {
public:
    explicit intervals(surroundings& world) : world_(world) {}

    void perform(const step& s);

    /// That context has no more ready work. @return the number of its waits.
    int settled(int context);
    void leave(int context);     ///< it is about to be destroyed
    void end_early(int context); ///< expire_all() was called there
    void clock_is_set();         ///< set_clock is about to be set
    /// The maximum number of its own waits.
    [[nodiscard]] std::size_t count() const noexcept { return waits_.size(); }
    void finished() const;

private:
    struct interval {
        std::variant<std::monostate, pawl::interval_timer, pawl::basic_interval_timer<set_clock>>
            timer;
        kind type{};
        int context = 0;
        std::uint64_t number = 0; ///< of the scheduled tick
        std::int64_t next = 0;    ///< its due time
        std::int64_t base = 0;    ///< the tick before it, unless it was set
        bool set = true;
        std::int64_t period = 1;
        pawl::missed_tick_policy policy{};
        std::int64_t seen = 0, seen_steady = 0; ///< the clocks at the last delivery
    };
    struct wait {
        int id = 0;
        int owner = 0; ///< -1: destroyed
        int context = 0;
        std::uint64_t number = 0;
        kind type{};
        std::int64_t due = 0;
        bool reached = false; ///< its clock was there, and was set since
        bool cancelled = false;
        bool ended_early = false; ///< by expire_all(): it may have ended
        const step* what = nullptr;
    };

    void completed(int id, const error_code& ec, std::uint64_t missed) override;
    void destroyed(int id) override;

    void make(const step& s);
    void cancel_all(int owner, std::size_t count, const char* what);
    void moved(int owner, std::size_t count, const char* what);
    static void deliver(interval& i, std::int64_t now, std::int64_t late, std::uint64_t gone);
    static void follow(interval& i, std::int64_t from);
    void check(const interval& i) const;
    std::vector<wait>::iterator find(int id);

    surroundings& world_;
    std::array<interval, interval_slots> intervals_;
    std::vector<wait> waits_;
    int last_id_ = 0;
    std::int64_t set_at_ = earliest; ///< when set_clock was set, on the steady clock
};

} // namespace simulation

#endif
