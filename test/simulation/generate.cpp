// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/random.hpp"
#include "simulation/scenario.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace simulation {

namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr std::int64_t hour = 3600 * second;

class generator {
public:
    generator(const random_source& random, bool with_threads) : random_(random) {
        s_.begin.threads = with_threads;
    }

    scenario make() {
        make_setup();
        const int n = 40 + random_.below(random_.one_in(8) ? 800 : 200);
        for (int i = 0; i < n && !random_.over(); ++i) {
            s_.steps.push_back(any_step(0));
            if (i < 3)
                s_.steps.back().what = op::make;
        }
        return std::move(s_);
    }

private:
    // --- the beginning ------------------------------------------------------------------------

    void make_setup() {
        setup& b = s_.begin;
        const int contexts = random_.one_of({1, 1, 1, 2, 2, 3});
        for (int i = 0; i < contexts; ++i)
            b.contexts.push_back(random_context(random_));
        const int n = random_.one_of({1, 1, 2, 3});
        for (int i = 0; i < n; ++i)
            b.types.push_back(static_cast<kind>(random_.below(kinds)));
        b.steady = random_.one_of<std::int64_t>(
            {0, 1, second, 1000 * second, hour * 24 * 365, -second, (std::int64_t{1} << 61) + 7});
        b.set = reading();
        b.set_milli = random_.one_in(2) ? reading() / 1'000'000 : reading();
        b.mock = reading();
        b.manual = random_.one_of<std::int64_t>({0, 1, hour, latest / 2, latest - hour});
        b.edge = reading();
        b.traits = static_cast<mock_wait>(random_.below(6));
        limits_ = random_.one_in(3);
        intervals_ = random_.one_in(4);
        if (intervals_ && random_.one_in(2))
            b.types.push_back(kind::set); // they tick on it, and it is set
        alarms_ = random_.one_in(3);
        if (alarms_ && random_.one_in(2))
            b.types.push_back(kind::set);
        streams_ = random_.one_in(4);
        patterns_ = random_.one_in(4);
        longest_ = 1;
        for (const context_setup& c : b.contexts)
            longest_ = std::max(longest_, c.precision);
        overloaded_ = random_.one_in(6);
    }

    /// A possible reading of a clock.
    std::int64_t reading() {
        switch (random_.below(8)) {
        case 0:
            return 0;
        case 1:
            return random_.between(-2 * second, 2 * second);
        case 2:
            return earliest + random_.one_of<std::int64_t>({0, 1, second, hour});
        case 3:
            return latest - random_.one_of<std::int64_t>({0, 1, second, hour, 25 * hour});
        case 4:
            return (std::int64_t{1} << 62) + random_.one_of<std::int64_t>({-second, 0, hour});
        case 5:
            return -(std::int64_t{1} << 62) + random_.one_of<std::int64_t>({-hour, 0, second});
        default:
            return random_.between(0, hour * 24 * 365 * 50);
        }
    }

    // --- steps --------------------------------------------------------------------------------

    step any_step(int depth) {
        step s;
        s.object = random_.below(timer_slots);
        s.other = random_.below(timer_slots);
        s.context = random_.below(static_cast<int>(s_.begin.contexts.size()));
        s.type = random_.one_of(s_.begin.types);
        s.executor =
            random_.one_in(2) ? flavour::native : static_cast<flavour>(random_.below(flavours));
        s.bound = random_.one_in(3);
        s.thread = random_.below(maker_threads);
        s.what = what(depth);
        s.time = duration();
        switch (s.what) {
        case op::make:
            s.object = random_.below(4);
            break;
        case op::expires_within:
        case op::rearm_within:
            s.more = random_.one_in(20) ? s.time - 1 : saturating_add(s.time, duration());
            break;
        case op::emit:
            s.signal = random_.below(signal_slots);
            s.more = random_.one_of({1, 1, 2, 4, 0});
            break;
        case op::wait:
            add_handler(s, depth);
            if (depth < 2 && random_.one_in(4)) {
                step dying = any_step(2);
                if (family_of(dying.what) == family::timers)
                    s.dying.push_back(dying);
            }
            break;
        case op::operation:
            s.object = random_.below(operation_slots);
            s.under = random_.one_of({limit::timeout, limit::timeout, limit::cancel_after});
            s.obeys = static_cast<obedience>(random_.below(4));
            if (random_.one_in(2))
                s.in = static_cast<shape>(random_.below(shapes));
            s.more = duration();
            s.other = random_.one_in(3) ? random_.below(static_cast<int>(s_.begin.contexts.size()))
                                        : s.context;
            add_handler(s, depth);
            if (depth < 2 && random_.one_in(4)) {
                step dying = any_step(2); // these run while the initiating function runs
                if (dying.what < op::poll)
                    s.dying.push_back(dying);
            }
            break;
        case op::complete:
            s.object = random_.below(operation_slots);
            break;
        case op::set:
            if ((intervals_ || alarms_) && random_.one_in(2))
                s.type = kind::set;
            break;
        case op::make_alarm:
            s.type = random_.one_of({kind::steady, kind::steady, kind::compact, kind::set,
                                     kind::set, kind::set_binary});
            s.bound = random_.one_in(2);
            s.object = random_.below(alarm_slots);
            add_handler(s, depth);
            break;
        case op::arm_alarm_within:
            s.more = random_.one_in(20) ? s.time - 1 : saturating_add(s.time, duration());
            [[fallthrough]];
        case op::destroy_alarm:
        case op::move_alarm:
        case op::arm_alarm_after:
        case op::arm_alarm_at:
        case op::disarm_alarm:
            s.object = random_.below(alarm_slots);
            s.other = random_.below(alarm_slots);
            break;
        case op::make_interval:
            if (random_.one_in(2))
                s.type = kind::set;
            s.more = random_.below(3);
            [[fallthrough]];
        case op::destroy_interval:
        case op::cancel_interval:
        case op::reset_interval:
        case op::reset_interval_after:
        case op::set_period:
            s.object = random_.below(interval_slots);
            break;
        case op::wait_interval:
            s.object = random_.below(interval_slots);
            add_handler(s, depth);
            break;
        case op::limit_stream:
            s.more = random_.one_in(3) ? 0 : duration();
            [[fallthrough]];
        case op::make_stream:
        case op::destroy_stream:
        case op::expire_stream:
        case op::feed:
        case op::drain:
        case op::accept:
        case op::begin_handshake:
        case op::end_handshake:
        case op::close_stream:
            s.object = random_.below(stream_slots);
            break;
        case op::read:
        case op::write:
        case op::connect:
            s.object = random_.below(stream_slots);
            add_handler(s, depth);
            break;
        case op::make_limiter:
            s.more = random_.below(4);
            [[fallthrough]];
        case op::destroy_limiter:
        case op::try_acquire:
        case op::make_map:
        case op::destroy_map:
        case op::insert:
        case op::use:
        case op::erase:
            s.object = random_.below(pattern_slots);
            break;
        case op::retry:
            s.more = duration();
            add_handler(s, depth);
            break;
        case op::acquire:
        case op::pop:
            s.object = random_.below(pattern_slots);
            add_handler(s, depth);
            break;
        case op::expire_all:
        case op::expire_all_of:
            s.time = random_.below(2);
            break;
        case op::set_to:
            s.time = reading();
            break;
        case op::approach:
            s.time = random_.one_in(2) ? random_.between(-2 * longest_, 2 * longest_)
                                       : random_.between(-1, 1);
            break;
        case op::run_one:
        case op::run_for:
            s.time = std::min(s.time, random_.one_in(10) ? hour : 30 * second);
            break;
        default:
            break;
        }
        return s;
    }

    void add_handler(step& s, int depth) {
        if (random_.one_in(3))
            s.signal = random_.below(signal_slots);
        if (overloaded_)
            s.then.push_back({.what = op::pass, .time = random_.between(0, 2 * longest_)});
        const int n = depth < 2 ? random_.one_of({0, 0, 0, 1, 1, 2, 3}) : 0;
        for (int i = 0; i < n; ++i)
            s.then.push_back(any_step(depth + 1));
    }

    op what(int depth) {
        if (limits_ && random_.one_in(6))
            return random_.one_of({op::operation, op::operation, op::complete});
        if (intervals_ && random_.one_in(6))
            return random_.one_of({op::make_interval, op::wait_interval, op::wait_interval,
                                   op::wait_interval, op::destroy_interval, op::cancel_interval,
                                   op::reset_interval, op::reset_interval_after, op::set_period,
                                   op::set});
        if (alarms_ && random_.one_in(4))
            return random_.one_of({op::make_alarm, op::make_alarm, op::destroy_alarm,
                                   op::move_alarm, op::arm_alarm_after, op::arm_alarm_after,
                                   op::arm_alarm_after, op::arm_alarm_at, op::arm_alarm_within,
                                   op::disarm_alarm, op::set});
        if (streams_ && random_.one_in(5))
            return random_.one_of({op::make_stream, op::read, op::read, op::write, op::feed,
                                   op::drain, op::limit_stream, op::expire_stream, op::close_stream,
                                   op::destroy_stream, op::connect, op::connect, op::accept,
                                   op::begin_handshake, op::end_handshake});
        if (patterns_ && random_.one_in(3))
            return random_.one_of({op::make_limiter, op::destroy_limiter,
                                   op::acquire,      op::acquire,
                                   op::acquire,      op::acquire,
                                   op::acquire,      op::try_acquire,
                                   op::make_map,     op::destroy_map,
                                   op::insert,       op::insert,
                                   op::insert,       op::use,
                                   op::erase,        op::pop,
                                   op::pop,          op::pop,
                                   op::retry,        op::retry,
                                   op::emit,         op::emit,
                                   op::pass,         op::poll_one});
        const int n = random_.below(100);
        if (n < 22)
            return op::wait;
        if (n < 34)
            return random_.one_of(
                {op::expires_after, op::expires_after, op::expires_at, op::expires_within});
        if (n < 44)
            return random_.one_of(
                {op::rearm_after, op::rearm_after, op::rearm_at, op::rearm_within});
        if (n < 50)
            return random_.one_of({op::cancel, op::cancel_one});
        if (n < 54)
            return op::emit;
        if (n < 60)
            return op::make;
        if (n < 64)
            return random_.one_of({op::destroy, op::move, op::assign});
        if (n < 67 && !limits_ && !intervals_ && !streams_ && !patterns_ && random_.one_in(4))
            return op::cancel_all;
        if (n < 67)
            return random_.one_in(3) ? op::expire_all_of : op::expire_all;
        if (n < 78)
            return random_.one_of({op::pass, op::pass, op::pass, op::advance, op::advance_to_next,
                                   op::set, op::set_to, op::approach, op::approach});
        if (n < 98)
            return random_.one_of(
                {op::poll, op::poll, op::poll, op::poll_one, op::run_one, op::run_for});
        switch (random_.below(6)) {
        case 0:
            return op::stop;
        case 1:
            return op::restart;
        case 2:
            return op::shut_down;
        default:
            return depth != 0 ? op::raise : random_.one_of({op::open, op::restart});
        }
    }

    std::int64_t duration() {
        const bool ring = std::any_of(s_.begin.types.begin(), s_.begin.types.end(), is_ring);
        if (ring && !random_.one_in(4)) {
            const auto& c = random_.one_of(s_.begin.contexts);
            const std::int64_t d = random_.one_of(c.rings).delay;
            return random_.one_in(3) ? random_.between(0, d) : d;
        }
        switch (random_.below(16)) {
        case 0:
            return 0;
        case 1:
            return -random_.between(0, 2 * longest_);
        case 2:
            return random_.between(0, 10);
        case 3:
            return random_.between(0, hour * 24);
        case 4:
            return random_.between(0, hour * 24 * 365 * 40);
        case 5:
            return random_.one_of<std::int64_t>({latest, earliest, latest / 2, latest - 1});
        case 6:
        case 7:
            return longest_ * random_.below(70) + random_.between(-1, 1);
        case 8:
        case 9:
            return random_.between(0, 2 * longest_);
        case 10:
        case 11:
            return random_.between(0, 2 * second);
        default:
            return random_.between(0, 100'000'000);
        }
    }

    random_source random_;
    scenario s_;
    std::int64_t longest_ = 1;
    bool overloaded_ = false; ///< handlers take longer than the waits have
    bool limits_ = false;     ///< whether there are any operations under limits
    bool intervals_ = false;
    bool alarms_ = false;
    bool streams_ = false;
    bool patterns_ = false; ///< rate limiters, expiring maps and retries
};

} // namespace

scenario generate(const random_source& random, bool with_threads) {
    return generator(random, with_threads).make();
}

} // namespace simulation
