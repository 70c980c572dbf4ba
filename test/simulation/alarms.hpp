// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Alarms on the steady clock, and on one that is set, in both wheels.
//
// Model
//   One thread: it is known for each alarm whether it is armed, until its function is called. While
//   its context ends, an armed one may be called, or not; one that was destroyed is never called.
//   A function counts its call, and makes its steps the first few times.

#ifndef PAWL_TEST_SIMULATION_ALARMS_HPP
#define PAWL_TEST_SIMULATION_ALARMS_HPP

#include "simulation/any_alarm.hpp"
#include "simulation/surroundings.hpp"
#include "simulation/timers.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace simulation {

class alarms {
public:
    explicit alarms(surroundings& world) : world_(world) {}

    void perform(const step& s);

    /// That context has no more ready work. @return how many of its alarms are armed.
    int settled(int context);
    void leave(int context); ///< it is about to be destroyed
    void left(int context);  ///< it has been destroyed
    /// expire_all() was called there with `ec`, for all services or for that of `type`; or
    /// cancel_all(), with operation_aborted.
    void ended_early(int context, const kind* type, const error_code& ec);
    void clock_is_set(); ///< set_clock is about to be set
    /// The maximum number of functions that are about to be called.
    [[nodiscard]] std::size_t count() const;
    void finished();

private:
    struct record {
        int context = 0;
        kind type{};
        bool strand = false;
        bool takes_code = false;
        bool gone = false;   ///< destroyed
        bool ending = false; ///< its context is being destroyed
        bool dead = false;   ///< its context has gone
        bool armed = false;
        std::int64_t expiry = 0;
        bool reached = false;     ///< its clock was there, and was set since
        bool ended_early = false; ///< it is to be called with `code`
        error_code code;
        int calls = 0;
        const step* what = nullptr;
    };
    using entry = std::shared_ptr<record>;
    struct silent {
        void operator()() const { self->called(of, {}); }
        alarms* self;
        entry of;
    };
    struct loud {
        void operator()(const error_code& ec) const { self->called(of, ec); }
        alarms* self;
        entry of;
    };
    struct place {
        std::unique_ptr<any_alarm> alarm;
        entry of;
    };

    void make(const step& s);
    static void destroy(place& p);
    void arm(place& p, const step& s);
    void called(entry r, const error_code& ec);
    [[nodiscard]] static bool reached(const record& r) {
        return r.reached || now_of(r.type) >= r.expiry;
    }

    surroundings& world_;
    std::array<place, alarm_slots> places_;
    std::vector<entry> all_;
    bool in_call_ = false; ///< no function may run
    std::int64_t set_at_ = earliest;
};

} // namespace simulation

#endif
