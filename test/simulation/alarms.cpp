// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/alarms.hpp"

#include "simulation/report.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace simulation {

namespace {

/// A function makes its steps so many times: it may arm its alarm each time.
constexpr int most_repeats = 4;

} // namespace

void alarms::perform(const step& s) {
    place& p = places_[static_cast<std::size_t>(s.object)];
    if (s.what == op::make_alarm) {
        if (!p.of && world_.there(s.context))
            make(s);
        return;
    }
    if (s.what == op::move_alarm) {
        place& from = places_[static_cast<std::size_t>(s.other)];
        if (&p == &from || !from.of)
            return;
        // An alarm of the same type is assigned, another one constructed.
        if (p.of)
            p.of->gone = true;
        if (p.of && p.of->type == from.of->type && p.of->takes_code == from.of->takes_code)
            p.alarm->assign(*from.alarm);
        else
            p.alarm = from.alarm->move();
        p.of = std::exchange(from.of, nullptr);
        from.alarm.reset();
    }
    if (!p.of)
        return;
    record& r = *p.of;
    switch (s.what) {
    case op::destroy_alarm:
        return destroy(p);
    case op::disarm_alarm: {
        const bool disarmed = p.alarm->disarm();
        // The functions that a shutdown is about to call are no longer armed.
        if (disarmed != r.armed && !(r.ending && r.armed))
            fail(std::string("P4: disarm() returns ") + (disarmed ? "true" : "false"));
        if (disarmed)
            r.armed = false;
        break;
    }
    case op::move_alarm:
        break;
    default:
        arm(p, s);
        break;
    }
    if (const bool is = p.alarm->armed(); is != r.armed && !r.ending)
        fail(std::string("P4: an alarm is ") + (is ? "armed" : "not armed"));
}

void alarms::make(const step& s) {
    place& p = places_[static_cast<std::size_t>(s.object)];
    p.of = all_.emplace_back(std::make_shared<record>());
    record& r = *p.of;
    r.type = s.type;
    r.context = s.context;
    r.strand = s.executor == flavour::strand;
    r.takes_code = s.bound;
    r.what = &s;
    world_.serve(s.context, r.type);
    const auto ex = world_.executor(s.context, s.executor);
    const auto make = [&]<kind K>() {
        p.alarm = r.takes_code ? make_alarm<timer_of<K>>(ex, loud{this, p.of})
                               : make_alarm<timer_of<K>>(ex, silent{this, p.of});
    };
    switch (r.type) {
    case kind::compact:
        return make.operator()<kind::compact>();
    case kind::set:
        return make.operator()<kind::set>();
    case kind::set_binary:
        return make.operator()<kind::set_binary>();
    default:
        return make.operator()<kind::steady>();
    }
}

void alarms::destroy(place& p) {
    std::exchange(p.of, nullptr)->gone = true;
    const auto last = std::move(p.alarm);
}

void alarms::arm(place& p, const step& s) {
    record& r = *p.of;
    const std::int64_t now = now_of(r.type);
    in_call_ = true;
    try {
        simulation::arm(*p.alarm, s.what, now, s.time, s.more);
    } catch (const std::invalid_argument&) {
        in_call_ = false;
        if (s.what != op::arm_alarm_within || s.more >= s.time)
            throw;
        return;
    }
    in_call_ = false;
    if (r.dead)
        return; // it has no effect
    if (r.ending) {
        r.armed = r.armed || p.alarm->armed();
        return;
    }
    r.armed = true;
    r.ended_early = false;
    r.reached = false;
    r.expiry = p.alarm->expiry();
    const std::int64_t most = s.what == op::arm_alarm_within ? s.more : s.time;
    if (r.expiry < saturating_add(now, s.time) || r.expiry > saturating_add(now, most))
        fail("expiry of an alarm: " + std::to_string(r.expiry) + " is not in the range");
}

void alarms::called(const entry r, const error_code& ec) {
    if (r->gone)
        fail("P3: the function of an alarm is called that has been destroyed");
    if (in_call_ || (!world_.running(r->context) && !r->ending))
        fail("P3: the function of an alarm is called while its context does not run");
    if (r->ending) {
        if (!r->armed && !r->ended_early)
            fail("P3: the shutdown calls the function of an alarm that is not armed");
    } else if (r->ended_early) {
        if (ec != r->code)
            fail("P10: an alarm is told " + ec.message());
    } else if (!r->armed) {
        fail("P3: the function of an alarm is called that is not armed");
    } else if (ec) {
        fail("P3: an alarm is told " + ec.message());
    } else if (!reached(*r)) {
        fail("P1: an alarm is early: it is due at " + std::to_string(r->expiry));
    }
    r->armed = false;
    r->ended_early = false;
    static const std::vector<step> none;
    world_.go_on(++r->calls <= most_repeats ? r->what->then : none);
}

int alarms::settled(int context) {
    int pending = 0;
    for (const place& p : places_) {
        if (!p.of || p.of->context != context || p.of->dead)
            continue;
        const record& r = *p.of;
        if (r.ended_early)
            fail("P10: an alarm is not told that it has been expired");
        if (!r.armed)
            continue;
        ++pending;
        const std::int64_t precision = world_.precision(context);
        const bool looks =
            !is_set(r.type) || saturating_subtract(virtual_time::steady, set_at_) > 1'001'000'000;
        if (looks && r.expiry <= latest - 2 * precision &&
            saturating_subtract(now_of(r.type), r.expiry) >= precision)
            fail("P2: an alarm is late: it was due at " + std::to_string(r.expiry));
    }
    return pending;
}

void alarms::leave(int context) {
    for (place& p : places_) {
        if (!p.of || p.of->context != context || p.of->dead)
            continue;
        if (p.of->strand)
            destroy(p); // Asio's strands must not outlive their context
        else
            p.of->ending = true;
    }
}

void alarms::left(int context) {
    for (place& p : places_) {
        if (!p.of || p.of->context != context || p.of->dead)
            continue;
        p.of->dead = true;
        p.of->ending = p.of->armed = p.of->ended_early = false;
        if (p.alarm->armed())
            fail("P10: an alarm is armed after the end of its context");
    }
}

void alarms::ended_early(int context, const kind* type, const error_code& ec) {
    for (const place& p : places_) {
        if (!p.of || p.of->context != context || !p.of->armed)
            continue;
        record& r = *p.of;
        const bool meant = !type || *type == r.type;
        if (p.alarm->armed()) {
            if (meant && !reached(r))
                fail("P10: expire_all() leaves an alarm armed");
            continue;
        }
        if (!meant)
            fail("P10: expire_all() ends an alarm of another service");
        r.armed = false;
        r.ended_early = r.takes_code && ec != asio::error::operation_aborted;
        r.code = ec;
    }
}

void alarms::clock_is_set() {
    set_at_ = virtual_time::steady;
    for (const place& p : places_) {
        if (p.of && is_set(p.of->type))
            p.of->reached = reached(*p.of);
    }
}

std::size_t alarms::count() const {
    return static_cast<std::size_t>(
        std::count_if(places_.begin(), places_.end(),
                      [](const place& p) { return p.of && (p.of->armed || p.of->ended_early); }));
}

void alarms::finished() {
    for (place& p : places_) {
        if (p.of)
            destroy(p);
    }
    for (const entry& r : all_) {
        if (r.use_count() != 1)
            fail("P3: the function of an alarm is not destroyed with it");
    }
}

} // namespace simulation
