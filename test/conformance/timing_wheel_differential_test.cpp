// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// timing_wheel against a multimap: the same random calls, also from handlers, which throw now and
// then. PAWL_SEED repeats a run, PAWL_STEPS makes it longer.

#include <pawl/time/timing_wheel.hpp>

#include "../support/seed.hpp"

#define BOOST_TEST_MODULE timing_wheel_differential
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

namespace {

using time_point = std::chrono::steady_clock::time_point;
using units = time_point::duration;
using wheel = pawl::timing_wheel<int>;

/// One kind of run.
struct scene {
    std::vector<int> level_bits;
    std::int64_t precision;
    time_point start;

    friend std::ostream& operator<<(std::ostream& out, const scene& s) {
        out << "precision " << s.precision << ", start " << s.start.time_since_epoch().count()
            << ", bits";
        for (const int bits : s.level_bits)
            out << ' ' << bits;
        return out;
    }
};

const std::vector<scene> scenes{
    {{1}, 1, time_point{}},
    {{1, 1}, 1, time_point{units{-5}}},
    {{2, 5, 3}, 7, time_point{units{12345}}},
    {{6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 4}, 1000, time_point{units{1'000'000'007}}},
    {{11, 10, 10, 10, 10, 10}, 1, time_point::min()},
    {{10, 10}, 1 << 20, time_point::max() - units{std::int64_t{1} << 45}},
    {{4, 4}, 1000, time_point::max() - units{54321}},
};

struct oops : std::exception {};

/// The wheel, and what is known of it: for each id its time, and all ids in firing order.
class run {
public:
    run(const scene& s, std::uint64_t seed)
        : random_(seed), precision_(s.precision), start_(s.start), now_(s.start),
          wheel_({units{s.precision}, s.level_bits}, s.start),
          alarm_bits_(static_cast<int>(4 + random_() % 60)),
          advance_bits_(std::max(1, alarm_bits_ - static_cast<int>(random_() % 12))) {}

    void step(std::uint64_t number) {
        switch (random_() % 16) {
        case 0:
        case 1:
            advance();
            break;
        case 2:
            fire_past();
            break;
        default:
            touch();
        }
        compare();
        if (number % 64 == 0)
            wheel_.invariant();
        if (random_() % 2000 == 0)
            clear();
    }

    void finish() {
        while (const auto next = wheel_.next_alarm_fires_at())
            advance_to(*next);
        compare();
        wheel_.invariant();
        BOOST_REQUIRE(due_.empty());
    }

    std::size_t fired() const { return fired_; }
    std::size_t thrown() const { return thrown_; }
    std::size_t most() const { return most_; }

private:
    using key = std::uint64_t;
    struct alarm {
        wheel::handle handle;
        time_point at;
        std::multimap<key, int>::iterator place; // equal keys are in the order of insertion
    };

    key key_of(time_point t) const {
        return (static_cast<key>(t.time_since_epoch().count()) -
                static_cast<key>(start_.time_since_epoch().count())) /
               static_cast<key>(precision_);
    }

    /// `t` and up to 2^bits units, near more often than far, in crowds more often than alone.
    time_point after(time_point t, int bits) {
        const auto e = random_() % static_cast<std::uint64_t>(bits + 1);
        std::uint64_t distance = e == 0 ? 0 : random_() >> (64 - e);
        if (random_() % 2 == 0)
            distance &= ~std::uint64_t{0} << (e / 2);
        const std::uint64_t left =
            static_cast<std::uint64_t>(time_point::max().time_since_epoch().count()) -
            static_cast<std::uint64_t>(t.time_since_epoch().count());
        return time_point{units{static_cast<std::int64_t>(
            static_cast<std::uint64_t>(t.time_since_epoch().count()) + std::min(distance, left))}};
    }

    /// A time for an alarm, now and then out of bounds.
    time_point some_time() {
        if (random_() % 100 == 0)
            return after(wheel_.alarm_upper_bound(), 3);
        if (random_() % 100 == 0 && now_ > time_point::min())
            return now_ - units{1};
        const time_point t = after(now_, alarm_bits_);
        return t < wheel_.alarm_upper_bound() ? t : after(now_, 3);
    }

    bool allowed(time_point at) const { return at >= now_ && at < wheel_.alarm_upper_bound(); }

    int some_id() {
        auto at = alarms_.lower_bound(
            static_cast<int>(random_() % static_cast<std::uint64_t>(next_id_ + 1)));
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
        const auto what = random_() % 12;
        if (what < 7 || alarms_.empty()) {
            if (alarms_.size() < 600)
                add(some_time());
        } else if (what < 8) {
            const int id = some_id();
            wheel_.remove(alarms_.at(id).handle);
            forget(id);
        } else if (what < 10) {
            reschedule(some_id(), some_time());
        } else if (what == 10) {
            const wheel::handle stale = gone_[random_() % gone_.size()];
            BOOST_REQUIRE(!wheel_.mem(stale));
            BOOST_REQUIRE_THROW(wheel_.remove(stale), std::invalid_argument);
        } else {
            add_at_key();
        }
        most_ = std::max(most_, alarms_.size());
    }

    void add(time_point at) {
        if (!allowed(at)) {
            BOOST_REQUIRE_THROW(wheel_.add(at, 0), std::out_of_range);
            return;
        }
        alarms_.emplace(next_id_, alarm{wheel_.add(at, next_id_), at, {}});
        link(next_id_++, at);
    }

    void add_at_key() {
        if (now_ == time_point::max())
            return;
        const key n =
            wheel_.min_allowed_key() +
            random_() % std::min<key>(100, wheel_.max_allowed_key() - wheel_.min_allowed_key() + 1);
        alarms_.emplace(next_id_, alarm{wheel_.add_at_interval_num(n, next_id_), {}, {}});
        link(next_id_++, wheel_.interval_num_start(n));
    }

    void reschedule(int id, time_point at) {
        alarm& a = alarms_.at(id);
        if (!allowed(at)) {
            BOOST_REQUIRE_THROW(wheel_.reschedule(a.handle, at), std::out_of_range);
            return;
        }
        wheel_.reschedule(a.handle, at);
        due_.erase(a.place);
        link(id, at);
    }

    void clear() {
        wheel_.clear();
        alarms_.clear();
        due_.clear();
    }

    void advance() {
        const bool to_next = !due_.empty() && random_() % (2 + ask_every_) == 0;
        advance_to(to_next ? wheel_.next_alarm_fires_at().value() : after(now_, advance_bits_));
    }

    void advance_to(time_point to) {
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

    /// Every alarm that fires is the one that the map says, whatever handlers do in between.
    template <class Next, class Call>
    void fire(Next next_due, Call call) {
        const auto handler = [&](wheel::fired&& f) {
            const auto expected = next_due();
            BOOST_REQUIRE(expected.has_value());
            BOOST_REQUIRE(f.value == *expected);
            const alarm& a = alarms_.at(f.value);
            BOOST_REQUIRE((f.alarm == a.handle && f.at == a.at && f.at <= now_));
            BOOST_REQUIRE((f.interval_num == key_of(a.at) && !wheel_.mem(a.handle)));
            forget(f.value);
            ++fired_;
            for (auto n = random_() % 8; n >= 5; --n)
                touch();
            if (random_() % 3000 == 0)
                clear();
            if (random_() % 30 == 0) {
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
                if (random_() % 10 == 0)
                    wheel_.invariant();
                if (random_() % 2 == 0)
                    return; // what is left fires with a later call
                fresh_.clear();
            }
        }
        BOOST_REQUIRE(!next_due().has_value());
    }

    void compare() {
        BOOST_REQUIRE(wheel_.now() == now_);
        BOOST_REQUIRE(wheel_.size() == alarms_.size());
        if (random_() % ask_every_ != 0)
            return; // asking moves alarms inside the wheel
        const auto least = wheel_.min_key();
        BOOST_REQUIRE(least.has_value() == !due_.empty());
        if (!least)
            return;
        BOOST_REQUIRE(*least == due_.begin()->first);
        BOOST_REQUIRE(wheel_.interval_num(*wheel_.min_elt()) == *least);
        const alarm& a = alarms_.at(some_id());
        BOOST_REQUIRE((wheel_.mem(a.handle) && wheel_.at(a.handle) == a.at));
        BOOST_REQUIRE(wheel_.interval_num(a.handle) == a.place->first);
    }

    std::mt19937_64 random_;
    std::int64_t precision_;
    time_point start_;
    time_point now_;
    wheel wheel_;

    int alarm_bits_;   // alarms are up to 2^this units ahead
    int advance_bits_; // and so far the clock may move at once
    std::uint64_t ask_every_ = random_() % 2 == 0 ? 1 : 1 + random_() % 300;
    std::map<int, alarm> alarms_;
    std::multimap<key, int> due_;
    std::set<int> fresh_; // added or moved during the present call
    std::vector<wheel::handle> gone_ = std::vector<wheel::handle>(50);
    int next_id_ = 0;
    std::size_t fired_ = 0;
    std::size_t thrown_ = 0;
    std::size_t most_ = 0;
};

} // namespace

BOOST_DATA_TEST_CASE(a_wheel_and_a_map_cannot_be_told_apart, boost::unit_test::data::make(scenes),
                     s) {
    std::mt19937_64 seeds(pawl_test::seed());
    std::size_t fired = 0;
    std::size_t thrown = 0;
    std::size_t most = 0;

    for (std::uint64_t left = pawl_test::steps(20'000); left != 0;) {
        run r(s, seeds());
        for (std::uint64_t i = std::min<std::uint64_t>(left, 2000); i != 0; --i, --left)
            r.step(i);
        r.finish();
        fired += r.fired();
        thrown += r.thrown();
        most = std::max(most, r.most());
    }

    BOOST_TEST_MESSAGE(fired << " fired, " << thrown << " threw, at most " << most << " at once");
}
