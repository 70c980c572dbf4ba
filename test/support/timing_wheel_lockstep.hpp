// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   timing_wheel against a multimap, in lockstep: the same calls, also from handlers, some of which
//   throw.

#ifndef PAWL_TEST_SUPPORT_TIMING_WHEEL_LOCKSTEP_HPP
#define PAWL_TEST_SUPPORT_TIMING_WHEEL_LOCKSTEP_HPP

#include <pawl/time/timing_wheel.hpp>

#include "invariants.hpp"
#include "lockstep.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <stdexcept>
#include <vector>

namespace pawl_test {

/// One kind of run.
struct timing_wheel_scene {
    using time_point = std::chrono::steady_clock::time_point;

    std::vector<int> level_bits;
    std::int64_t precision;
    time_point start;

    friend std::ostream& operator<<(std::ostream& out, const timing_wheel_scene& s) {
        out << "precision " << s.precision << ", start " << s.start.time_since_epoch().count()
            << ", bits";
        for (const int bits : s.level_bits)
            out << ' ' << bits;
        return out;
    }
};

inline const std::vector<timing_wheel_scene>& timing_wheel_scenes() {
    using time_point = timing_wheel_scene::time_point;
    using units = time_point::duration;
    static const std::vector<timing_wheel_scene> scenes{
        {{1}, 1, time_point{}},
        {{1, 1}, 1, time_point{units{-5}}},
        {{2, 5, 3}, 7, time_point{units{12345}}},
        {{6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 4}, 1000, time_point{units{1'000'000'007}}},
        {{11, 10, 10, 10, 10, 10}, 1, time_point::min()},
        {{10, 10}, 1 << 20, time_point::max() - units{std::int64_t{1} << 45}},
        {{4, 4}, 1000, time_point::max() - units{54321}},
    };
    return scenes;
}

/// The wheel, and the model of it: for each id its time, and all ids in firing order.
template <class Choices>
class timing_wheel_lockstep {
public:
    timing_wheel_lockstep(Choices& choices, const timing_wheel_scene& s)
        : choices_(choices), precision_(s.precision), start_(s.start), now_(s.start),
          wheel_({units{s.precision}, s.level_bits}, s.start),
          alarm_bits_(static_cast<int>(4 + below(60))),
          advance_bits_(std::max(1, alarm_bits_ - static_cast<int>(below(12)))) {}

    /// One call. Afterwards the results of const members are compared.
    void step() {
        const std::uint64_t dice = below(256);
        if (dice < 208)
            touch();
        else if (dice < 239)
            advance();
        else if (dice < 255)
            fire_past();
        else if (below(8) == 7)
            clear();
        compare();
    }

    void invariant() const { pawl_test::check_invariant(wheel_); }

    /// Fires all alarms.
    void finish() {
        while (const auto next = wheel_.next_alarm_fires_at())
            advance_to(*next);
        compare();
        pawl_test::check_invariant(wheel_);
        expect(due_.empty(), "an alarm has not fired", due_.size());
    }

    std::size_t fired() const { return fired_; }
    std::size_t thrown() const { return thrown_; }
    std::size_t most() const { return most_; }

private:
    using wheel = pawl::timing_wheel<int>;
    using time_point = timing_wheel_scene::time_point;
    using units = time_point::duration;
    using key = std::uint64_t;

    struct oops : std::exception {};

    struct alarm {
        wheel::handle handle;
        time_point at;
        std::multimap<key, int>::iterator place; // equal keys are in the order of insertion
    };

    std::uint64_t below(std::uint64_t bound) { return choices_.below(bound); }

    static std::int64_t count(time_point t) { return t.time_since_epoch().count(); }

    key key_of(time_point t) const {
        return (static_cast<key>(t.time_since_epoch().count()) -
                static_cast<key>(start_.time_since_epoch().count())) /
               static_cast<key>(precision_);
    }

    /// `t` plus up to 2^bits units, more often near than far, and more often in crowds than alone.
    time_point after(time_point t, int bits) {
        const std::uint64_t e = below(static_cast<std::uint64_t>(bits) + 1);
        std::uint64_t distance = below(std::uint64_t{1} << e);
        if (below(2) == 0)
            distance &= ~std::uint64_t{0} << (e / 2);
        const std::uint64_t left =
            static_cast<std::uint64_t>(time_point::max().time_since_epoch().count()) -
            static_cast<std::uint64_t>(t.time_since_epoch().count());
        return time_point{units{static_cast<std::int64_t>(
            static_cast<std::uint64_t>(t.time_since_epoch().count()) + std::min(distance, left))}};
    }

    /// A time for an alarm, sometimes out of bounds.
    time_point some_time() {
        const std::uint64_t dice = below(200);
        if (dice >= 198)
            return after(wheel_.alarm_upper_bound(), 3);
        if (dice >= 196 && now_ > time_point::min())
            return now_ - units{1};
        const time_point t = after(now_, alarm_bits_);
        return t < wheel_.alarm_upper_bound() ? t : after(now_, 3);
    }

    bool allowed(time_point at) const { return at >= now_ && at < wheel_.alarm_upper_bound(); }

    int some_id() {
        auto at =
            alarms_.lower_bound(static_cast<int>(below(static_cast<std::uint64_t>(next_id_) + 1)));
        return at == alarms_.end() ? alarms_.begin()->first : at->first;
    }

    void link(int id, time_point at) {
        alarm& a = alarms_.at(id);
        a.at = at;
        a.place = due_.emplace(key_of(at), id);
        fresh_.insert(id);
    }

    void forget(int id) {
        gone_[static_cast<std::size_t>(id) % gone_.size()] = alarms_.at(id).handle;
        due_.erase(alarms_.at(id).place);
        alarms_.erase(id);
    }

    /// Any call that fires nothing.
    void touch() {
        const std::uint64_t what = below(12);
        if (what < 7 || alarms_.empty()) {
            if (alarms_.size() < 600)
                add(some_time());
        } else if (what < 8) {
            const int id = some_id();
            trace("remove", id);
            wheel_.remove(alarms_.at(id).handle);
            forget(id);
        } else if (what < 10) {
            reschedule(some_id(), some_time());
        } else if (what == 10) {
            const wheel::handle stale = gone_[below(gone_.size())];
            expect(!wheel_.mem(stale), "mem() of an alarm that is gone");
            expect_throw<std::invalid_argument>([&] { wheel_.remove(stale); }, "remove(): gone");
        } else {
            add_at_key();
        }
        most_ = std::max(most_, alarms_.size());
    }

    void add(time_point at) {
        if (!allowed(at)) {
            expect_throw<std::out_of_range>([&] { wheel_.add(at, 0); }, "add(): out of bounds");
            return;
        }
        trace("add", next_id_, count(at));
        alarms_.emplace(next_id_, alarm{wheel_.add(at, next_id_), at, {}});
        link(next_id_++, at);
    }

    void add_at_key() {
        if (now_ == time_point::max())
            return;
        const key n =
            wheel_.min_allowed_key() +
            below(std::min<key>(99, wheel_.max_allowed_key() - wheel_.min_allowed_key()) + 1);
        trace("add_at_interval_num", next_id_, n);
        alarms_.emplace(next_id_, alarm{wheel_.add_at_interval_num(n, next_id_), {}, {}});
        link(next_id_++, wheel_.interval_num_start(n));
    }

    void reschedule(int id, time_point at) {
        alarm& a = alarms_.at(id);
        if (!allowed(at)) {
            expect_throw<std::out_of_range>([&] { wheel_.reschedule(a.handle, at); },
                                            "reschedule(): out of bounds");
            return;
        }
        trace("reschedule", id, count(at));
        wheel_.reschedule(a.handle, at);
        due_.erase(a.place);
        link(id, at);
    }

    void clear() {
        trace("clear");
        wheel_.clear();
        alarms_.clear();
        due_.clear();
    }

    void advance() {
        const bool to_next = !due_.empty() && below(2 + ask_every_) == 0;
        advance_to(to_next ? wheel_.next_alarm_fires_at().value() : after(now_, advance_bits_));
    }

    void advance_to(time_point to) {
        trace("advance_clock", count(to));
        now_ = std::max(now_, to);
        fresh_.clear();
        const auto next_due = [this]() -> std::optional<int> {
            if (due_.empty() || (due_.begin()->first >= key_of(now_) && now_ != time_point::max()))
                return std::nullopt;
            return due_.begin()->second;
        };
        fire(next_due, [&](auto handler) { wheel_.advance_clock(to, handler); });
    }

    void fire_past() {
        trace("fire_past_alarms");
        fresh_.clear();
        const auto next_due = [this]() -> std::optional<int> {
            for (const auto& [k, id] : due_) {
                if (k > key_of(now_))
                    break;
                if (alarms_.at(id).at <= now_ && !fresh_.contains(id))
                    return id;
            }
            return std::nullopt;
        };
        fire(next_due, [&](auto handler) { wheel_.fire_past_alarms(handler); });
    }

    /// Every alarm that fires must be the first in the map, whatever handlers do in between.
    template <class Next, class Call>
    void fire(Next next_due, Call call) {
        const auto handler = [&](wheel::fired&& f) {
            trace("  fires", f.value);
            const auto expected = next_due();
            expect(expected.has_value(), "fires, but is not due", f.value);
            expect(f.value == *expected, "fires too early", f.value, *expected);
            const alarm& a = alarms_.at(f.value);
            expect(f.alarm == a.handle && f.at == a.at && f.at <= now_, "fires, but is another",
                   f.value);
            expect(f.interval_num == key_of(a.at) && !wheel_.mem(a.handle), "fires, but not so",
                   f.value);
            forget(f.value);
            ++fired_;
            for (std::uint64_t n = below(8); n >= 5; --n)
                touch();
            const std::uint64_t dice = below(256);
            if (dice == 247 && below(12) == 11)
                clear();
            if (dice >= 248) {
                trace("    throws");
                ++thrown_;
                throw oops();
            }
        };
        for (bool complete = false; !complete;) {
            try {
                call(handler);
                complete = true;
            } catch (const oops&) {
                compare();
                if (below(10) == 9)
                    pawl_test::check_invariant(wheel_);
                if (below(2) == 0)
                    return; // the other alarms fire in a later call
                fresh_.clear();
            }
        }
        expect(!next_due().has_value(), "due, but does not fire");
    }

    void compare() {
        expect(wheel_.now() == now_, "now()", count(wheel_.now()), count(now_));
        expect(wheel_.size() == alarms_.size(), "size()", wheel_.size(), alarms_.size());
        if (below(ask_every_) != 0)
            return; // the question moves alarms inside the wheel
        const auto least = wheel_.min_key();
        expect(least.has_value() == !due_.empty(), "min_key()", due_.size());
        if (!least)
            return;
        expect(*least == due_.begin()->first, "min_key()", *least, due_.begin()->first);
        expect(wheel_.interval_num(*wheel_.min_elt()) == *least, "min_elt()", *least);

        auto next = alarms_.upper_bound(asked_);
        if (next == alarms_.end())
            next = alarms_.begin();
        asked_ = next->first;
        const alarm& a = next->second;
        expect(wheel_.mem(a.handle) && wheel_.at(a.handle) == a.at &&
                   wheel_.value(a.handle) == asked_ &&
                   wheel_.interval_num(a.handle) == a.place->first,
               "what is known of an alarm", asked_);
    }

    Choices& choices_;
    std::int64_t precision_;
    time_point start_;
    time_point now_;
    wheel wheel_;

    int alarm_bits_;   // alarms are up to 2^this units in the future
    int advance_bits_; // maximum step of the clock, as a power of two
    std::uint64_t ask_every_ = below(2) == 0 ? 1 : 1 + below(300);
    std::map<int, alarm> alarms_;
    std::multimap<key, int> due_;
    std::set<int> fresh_; // added or moved during the present call
    std::vector<wheel::handle> gone_ = std::vector<wheel::handle>(50);
    int next_id_ = 0;
    int asked_ = -1; // the alarm for which compare() has asked
    std::size_t fired_ = 0;
    std::size_t thrown_ = 0;
    std::size_t most_ = 0;
};

} // namespace pawl_test

#endif
