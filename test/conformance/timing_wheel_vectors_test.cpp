// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The stories of Jane Street's Timing_wheel, replayed on Pawl's. If Pawl's answer differs, both
// answers are listed below.
//
// The original counts nanoseconds up to 2^62 - 1. If Pawl lacks an operation of the original, it is
// composed here from Pawl's operations.

#include <pawl/time/timing_wheel.hpp>

#include "../support/invariants.hpp"
#include "../support/vectors.hpp"

#define BOOST_TEST_MODULE timing_wheel_vectors
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace json = boost::json;
using pawl_test::bad_vector;
using pawl_test::difference;
using pawl_test::fields;
using pawl_test::test_vector;

namespace {

using units = std::chrono::nanoseconds;
using time_point = std::chrono::time_point<std::chrono::steady_clock, units>;
using wheel = pawl::timing_wheel<std::string, time_point>;
using config = wheel::config_type;

constexpr const char* exact_window =
    "the largest key is the smallest plus 2^bits - 1, which is what the text promises at least; "
    "the original rounds it up to its slots";
constexpr const char* open_end =
    "an alarm at the last time could not fire before the end of time; the original accepts it, and "
    "it never fires";
constexpr const char* more_bits = "keys have 64 bits, those of the original 62";

constexpr difference differences[]{
    {"allowed_intervals_1_1", 2, "5", "3", exact_window},
    {"allowed_intervals_1_1_1", 2, "11", "7", exact_window},
    {"allowed_intervals_3_1", 2, "23", "15", exact_window},
    {"level_bits_validation", 4, "\"error:too_many_bits got 63 max 62\"", "63", more_bits},
    {"durations", 2,
     "[1099511627776,1125899906842624,1152921504606846976,2305843009213693952,4611686018427387903]",
     "[1099511627776,1125899906842624,1152921504606846976,2305843009213693952,4611686018427387904]",
     "2^62 nanoseconds can be counted"},
    {"level_bits_trimmed_at_precision_2pow10", 2, "4611686018427387903", "4611686018427387902",
     open_end},
    {"level_bits_trimmed_at_precision_2pow20", 2, "4611686018427387903", "4611686018427387902",
     open_end},
    {"level_bits_trimmed_at_precision_2pow30", 2, "4611686018427387903", "4611686018427387902",
     open_end},
};

constexpr std::int64_t last_of_theirs = (std::int64_t{1} << 62) - 1;

/// The exception of a handler that is told to throw.
struct thrown : std::exception {};

/// Bits of levels. Extended levels are followed by levels of one bit up to the original's range.
std::vector<int> bits_of(fields& step, const char* name, int precision_log2, bool extended) {
    auto bits = step.get<std::vector<int>>(name);
    int sum = 0;
    for (const int b : bits)
        sum += b;
    for (; extended && sum < 62 - precision_log2; ++sum)
        bits.push_back(1);
    return bits;
}

units power_of_two(int log2) {
    if (log2 < 0 || log2 > 62)
        throw bad_vector("2^" + std::to_string(log2) + " ns is no precision");
    return units{std::int64_t{1} << log2};
}

/// The name for a refused configuration.
json::value reason(const std::invalid_argument& e) {
    const std::string what = e.what();
    const auto has = [&](const char* part) { return what.find(part) != std::string::npos; };
    if (has("alarm_precision is "))
        return "error:non_positive";
    if (has("is empty"))
        return "error:empty";
    if (has("a level of 0 bits") || has("a level of -"))
        return "error:nonpositive";
    for (const char* const text :
         {"pawl: timing_wheel_config: level_bits has %d bits in all, allowed are 1 to %d",
          "pawl: timing_wheel_config: level_bits has a level of %d bits, allowed are 1 to %d"}) {
        int got = 0;
        int most = 0;
        if (std::sscanf(what.c_str(), text, &got, &most) == 2)
            return json::value_from("error:too_many_bits got " + std::to_string(got) + " max " +
                                    std::to_string(most));
    }
    return json::value_from("error:" + what);
}

/// One story and its wheel.
class player {
public:
    explicit player(const test_vector& story) {
        // These operations ask for the end of time, so the story starts as far from the end of our
        // time as from the end of the original's.
        for (const json::object& step : story.steps) {
            if (step.contains("op") &&
                (step.at("op") == "levels" || step.at("op") == "interval_num_start"))
                origin_ = last_of_theirs + 1;
        }
        fields from(story.config);
        from.states("time_unit", {"ns", "ns since epoch"});
        from.states("gibi", {std::int64_t{1} << 30});
        from.states("max_num_bits", {62});
        from.states("num_bits", {6});
        if ((from.has("level_bits") || from.has("precision_ns") || from.has("precision_log2_ns")) &&
            pawl_test::is_error(create_from(from, from.has("start") ? time_of(from, "start")
                                                                    : time_point{units{origin_}})))
            throw bad_vector("no wheel is like the configuration");
        from.end();
    }

    static const pawl_test::operations<player> operations;

    void invariant() const {
        if (wheel_)
            pawl_test::check_invariant(*wheel_);
    }

private:
    // --- configurations ----------------------------------------------------------------------

    template <class Call>
    static json::value configured(Call call) {
        try {
            return call();
        } catch (const std::invalid_argument& e) {
            return reason(e);
        }
    }

    /// Any duration can be a precision; <bit> has the special functions for powers of two.
    static json::value precision(std::int64_t ns) {
        return configured([&] { return config{units{ns}}.alarm_precision().count(); });
    }

    json::value precision_ns(fields& step) {
        static const std::map<std::string, int> log2{{"about_one_day", 46},
                                                     {"about_one_second", 30},
                                                     {"about_one_millisecond", 20},
                                                     {"about_one_microsecond", 10},
                                                     {"one_nanosecond", 0}};
        const auto at = log2.find(step.text("name"));
        if (at == log2.end())
            throw bad_vector("there is no such precision");
        return precision(power_of_two(at->second).count());
    }

    json::value div_pow2(fields& step) {
        const auto of = step.get<std::int64_t>("of");
        const auto pow2 = step.get<int>("pow2");
        return precision(pow2 < 0 ? of << -pow2 : of >> pow2);
    }

    json::value floor_pow2_ns(fields& step) {
        const auto span = step.get<std::int64_t>("span");
        return precision(span <= 0 ? span
                                   : static_cast<std::int64_t>(
                                         std::bit_floor(static_cast<std::uint64_t>(span))));
    }

    json::value level_bits(fields& step) {
        const std::vector<int> bits = bits_of(step, "bits", 0, false);
        return configured([&] { return config{units{1}, bits}.num_bits(); });
    }

    json::value durations_ns(fields& step) {
        const auto log2 = step.get<int>("precision_log2");
        const std::vector<int> bits = bits_of(step, "level_bits", log2, step.flag("extend"));
        return configured([&]() -> json::value {
            json::array durations;
            for (const units d : config{power_of_two(log2), bits}.durations())
                durations.push_back(d.count());
            return durations;
        });
    }

    /// All 32 ways to cut 6 bits into levels, at both ends of time, in steps of 1 to 64 intervals.
    json::value for_all(fields& step) {
        step.states("level_bits", {"all 32 compositions of 6"});
        step.states("initial_min_interval", {json::array{"0", "max_interval-64"}});
        step.states("step", {"1..64"});
        step.states("do",
                    {"add one alarm per interval in [min,max) ; advance by step until empty"});
        int cases = 0;
        for (unsigned cuts = 0; cuts != 32; ++cuts) {
            std::vector<int> bits{1};
            for (unsigned i = 0; i != 5; ++i) {
                if ((cuts >> i & 1) != 0)
                    bits.push_back(1);
                else
                    ++bits.back();
            }
            for (std::uint64_t advance = 1; advance <= 64; ++advance) {
                for (const bool late : {false, true}) {
                    wheel w(config{units{1}, bits}, time_point{});
                    const std::uint64_t last = w.max_representable_key();
                    w.increase_min_allowed_key(late ? last - 64 : 0, [](auto&&) {});
                    const std::uint64_t begin = w.min_allowed_key();
                    const std::uint64_t end = w.max_allowed_key();
                    if (end - begin < 63)
                        return "the window is too small";
                    for (std::uint64_t key = begin; key != end; ++key)
                        w.add_at_interval_num(key, "");
                    std::set<std::uint64_t> fired;
                    while (!w.empty()) {
                        const std::uint64_t to = std::min(w.min_allowed_key() + advance, last);
                        bool early = false;
                        w.increase_min_allowed_key(to, [&](const wheel::fired& alarm) {
                            early = early || alarm.interval_num >= w.min_allowed_key() ||
                                    !fired.insert(alarm.interval_num).second;
                        });
                        if (early)
                            return "early or twice";
                    }
                    if (fired.size() != end - begin)
                        return "not all";
                    ++cases;
                }
            }
        }
        return json::value_from(
            "every alarm fires exactly once, always with interval < min_allowed afterwards; "
            "window is at least 2^6-1 wide; " +
            std::to_string(cases) + " cases");
    }

    // --- the wheel ---------------------------------------------------------------------------

    /// The precision is a number of nanoseconds, or a power of two. Without level_bits, Pawl's
    /// default.
    json::value create_from(fields& step, time_point start) {
        const units precision = step.has("precision_ns")
                                    ? units{step.get<std::int64_t>("precision_ns")}
                                    : power_of_two(step.get<int>("precision_log2_ns"));
        const bool extended = step.flag("extend_to_max_num_bits");
        const int log2 =
            static_cast<int>(std::bit_width(static_cast<std::uint64_t>(precision.count()))) - 1;
        const std::vector<int> bits = step.has("level_bits")
                                          ? bits_of(step, "level_bits", log2, extended)
                                          : config::default_level_bits();
        return configured([&]() -> json::value {
            wheel_.emplace(config{precision, bits}, start);
            return nullptr;
        });
    }
    json::value create(fields& step) { return create_from(step, time_of(step, "start")); }

    json::value is_empty(fields&) { return open().empty(); }
    json::value length(fields&) { return open().size(); }
    json::value now(fields&) { return count(open().now()); }
    json::value levels(fields&) { return json::value_from(open().config().level_bits()); }
    json::value min_allowed_interval(fields&) { return open().min_allowed_key(); }
    json::value max_allowed_interval(fields&) { return open().max_allowed_key(); }
    json::value max_allowed_alarm_time(fields&) {
        return count(open().alarm_upper_bound() - units{1});
    }
    json::value min_alarm_interval(fields&) {
        return open().min_key() ? json::value(*open().min_key()) : json::value();
    }
    json::value next_alarm_fires_at(fields&) { return count(open().next_alarm_fires_at()); }
    json::value min_time_in_min_interval(fields&) {
        return count(best_in_min_interval([](time_point a, time_point b) { return a < b; }));
    }
    json::value max_time_in_min_interval(fields&) {
        return count(best_in_min_interval([](time_point a, time_point b) { return a > b; }));
    }

    json::value interval_num(fields& step) {
        return unless_past([&] { return open().interval_num(time_of(step, "time")); });
    }
    json::value interval_start(fields& step) {
        return unless_past([&] { return count(open().interval_start(time_of(step, "time"))); });
    }

    json::value interval_num_start(fields& step) {
        const auto n = step.get<std::int64_t>("n");
        if (n < 0) // no key_type
            return "error:too_small";
        try {
            return count(open().interval_num_start(static_cast<wheel::key_type>(n)));
        } catch (const std::out_of_range&) {
            return "error:too_large";
        }
    }

    // --- alarms ------------------------------------------------------------------------------

    json::value add(fields& step) {
        const std::string id = step.text("id");
        const time_point at = time_of(step, "at");
        try {
            alarms_[id] = open().add(at, id);
        } catch (const std::out_of_range&) {
            return past_or_far(at);
        }
        return nullptr;
    }

    json::value add_at_interval(fields& step) {
        const std::string id = step.text("id");
        const auto n = step.get<std::int64_t>("n");
        if (n < 0) // no key_type
            return "error:too_small";
        const auto key = static_cast<wheel::key_type>(n);
        try {
            alarms_[id] = open().add_at_interval_num(key, id);
        } catch (const std::out_of_range&) {
            const auto last = open().interval_num(time_point{units{origin_ + last_of_theirs}});
            return key > last ? "error:too_large" : "error:invalid_interval";
        }
        return nullptr;
    }

    json::value reschedule(fields& step) {
        const wheel::handle alarm = handle(step);
        const time_point at = time_of(step, "at");
        try {
            open().reschedule(alarm, at);
        } catch (const std::out_of_range&) {
            return past_or_far(at);
        } catch (const std::invalid_argument&) {
            return "error:not_in_wheel";
        }
        return nullptr;
    }

    json::value remove(fields& step) {
        return unless_invalid([&, alarm = handle(step)]() -> json::value {
            open().remove(alarm);
            return nullptr;
        });
    }
    json::value alarm_interval(fields& step) {
        return unless_invalid([&, alarm = handle(step)] { return open().interval_num(alarm); });
    }
    json::value alarm_at(fields& step) {
        return unless_invalid([&, alarm = handle(step)] { return count(open().at(alarm)); });
    }
    json::value mem(fields& step) { return open().mem(handle(step)); }

    json::value clear(fields&) {
        open().clear();
        return nullptr;
    }

    // --- firing ------------------------------------------------------------------------------

    /// With fields "on" and "do", the handler of alarm "on" executes "do".
    json::value advance(fields& step) {
        const time_point to = time_of(step, "to");
        return fire(step, [&](auto handler) { open().advance_clock(to, handler); });
    }
    /// The handler of alarm "on", or "id", throws.
    json::value advance_handler_throws_on(fields& step) {
        const std::string on = step.text(step.has("on") ? "on" : "id");
        const json::object same{
            {"to", step.at("to")}, {"on", on}, {"do", json::array{json::object{{"op", "throw"}}}}};
        fields as_do(same);
        return advance(as_do);
    }
    json::value fire_past(fields& step) {
        return fire(step, [&](auto handler) { open().fire_past_alarms(handler); });
    }

    template <class Call>
    json::value fire(fields& step, Call call) {
        const std::string on = step.has("on") ? step.text("on") : "";
        const auto steps = step.has("on") ? step.get<std::vector<json::object>>("do")
                                          : std::vector<json::object>{};
        json::array fired;
        try {
            call([&](const wheel::fired& alarm) {
                fired.push_back(json::value_from(alarm.value));
                if (alarm.value == on) {
                    for (const json::object& inner : steps)
                        run_inside(inner);
                }
            });
        } catch (const thrown&) {
            return "error:thrown";
        } catch (const std::logic_error&) {
            return "error:called_by_handler";
        }
        if (step.has("on") &&
            std::find(fired.begin(), fired.end(), json::value_from(on)) == fired.end())
            throw bad_vector("'" + on + "' has not fired");
        return fired;
    }

    /// A step of a handler. A field "returns" is its expected result.
    void run_inside(const json::object& step) {
        json::object rest = step;
        rest.erase("returns");
        fields f(rest);
        const json::value returned = pawl_test::perform(*this, f);
        const std::string wrong = pawl_test::judge(returned, step.if_contains("returns"), nullptr);
        if (!wrong.empty())
            throw bad_vector("in a handler, " + json::serialize(step) + ": " + wrong);
    }

    /// Only in a handler.
    json::value throw_(fields&) { throw thrown{}; }

    // -----------------------------------------------------------------------------------------

    wheel& open() {
        if (!wheel_)
            throw bad_vector("no wheel was created");
        return *wheel_;
    }

    template <class Call>
    static json::value unless_past(Call call) {
        try {
            return call();
        } catch (const std::out_of_range&) {
            return "error:past";
        }
    }
    template <class Call>
    static json::value unless_invalid(Call call) {
        try {
            return call();
        } catch (const std::invalid_argument&) {
            return "error:invalid_alarm";
        }
    }

    /// The reason why no alarm can be at a time.
    json::value past_or_far(time_point at) {
        return at < open().now() ? "error:past" : "error:far";
    }

    /// The first of the times in the interval of the first alarm, in a given order.
    template <class Before>
    std::optional<time_point> best_in_min_interval(Before before) {
        std::optional<time_point> best;
        const wheel& w = open();
        w.for_each([&](wheel::handle alarm, const std::string&) {
            if (w.interval_num(alarm) == *w.min_key() && (!best || before(w.at(alarm), *best)))
                best = w.at(alarm);
        });
        return best;
    }

    json::value count(time_point t) const { return t.time_since_epoch().count() - origin_; }
    json::value count(std::optional<time_point> t) const { return t ? count(*t) : json::value(); }

    time_point time_of(fields& step, const char* name) const {
        const auto ns = step.get<std::int64_t>(name);
        if (ns > last_of_theirs)
            throw bad_vector("the original has no time " + std::to_string(ns));
        return time_point{units{ns + origin_}};
    }

    wheel::handle handle(fields& step) const {
        const auto at = alarms_.find(step.text("id"));
        if (at == alarms_.end())
            throw bad_vector("no such alarm was added");
        return at->second;
    }

    std::int64_t origin_ = 0; // difference between the wheel's time and the story's
    std::optional<wheel> wheel_;
    std::map<std::string, wheel::handle> alarms_;
};

const pawl_test::operations<player> player::operations{
    {"precision_ns", &player::precision_ns},
    {"div_pow2", &player::div_pow2},
    {"floor_pow2_ns", &player::floor_pow2_ns},
    {"level_bits", &player::level_bits},
    {"durations_ns", &player::durations_ns},
    {"for_all", &player::for_all},
    {"create", &player::create},
    {"is_empty", &player::is_empty},
    {"length", &player::length},
    {"now", &player::now},
    {"levels", &player::levels},
    {"min_allowed_interval", &player::min_allowed_interval},
    {"max_allowed_interval", &player::max_allowed_interval},
    {"max_allowed_alarm_time", &player::max_allowed_alarm_time},
    {"min_alarm_interval", &player::min_alarm_interval},
    {"next_alarm_fires_at", &player::next_alarm_fires_at},
    {"min_time_in_min_interval", &player::min_time_in_min_interval},
    {"max_time_in_min_interval", &player::max_time_in_min_interval},
    {"interval_num", &player::interval_num},
    {"interval_start", &player::interval_start},
    {"interval_num_start", &player::interval_num_start},
    {"add", &player::add},
    {"add_at_interval", &player::add_at_interval},
    {"reschedule", &player::reschedule},
    {"remove", &player::remove},
    {"alarm_interval", &player::alarm_interval},
    {"alarm_at", &player::alarm_at},
    {"mem", &player::mem},
    {"clear", &player::clear},
    {"advance", &player::advance},
    {"advance_handler", &player::advance},
    {"advance_handler_throws_on", &player::advance_handler_throws_on},
    {"advance to {to}", &player::advance},
    {"add {id} at {at}", &player::add},
    {"reschedule {id} at {at}", &player::reschedule},
    {"remove {id}", &player::remove},
    {"mem {id}", &player::mem},
    {"fire_past", &player::fire_past},
    {"throw", &player::throw_},
};

const std::vector<test_vector> stories = pawl_test::stories_about("timing_wheel");

} // namespace

BOOST_DATA_TEST_CASE(every_story_goes_as_the_original_tells_it_but_for_the_listed_differences,
                     boost::unit_test::data::make(stories), story) {
    for (const std::string& complaint : pawl_test::replay<player>(story, differences))
        BOOST_ERROR(complaint);
}

BOOST_AUTO_TEST_CASE(every_difference_and_every_operation_belongs_to_a_story) {
    if (pawl_test::vectors_are_ours())
        BOOST_TEST(pawl_test::not_in_stories<player>(stories, differences) == "");
}
