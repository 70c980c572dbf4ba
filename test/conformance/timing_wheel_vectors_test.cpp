// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// The test vectors of Jane Street's Timing_wheel on ours. Where ours answers otherwise, it is in the
// list of differences, with the reason, and what it answers is asserted.
//
// The original counts nanoseconds up to 2^62 - 1. An operation that the original has and ours has
// not is composed here of what ours has.

#include <pawl/time/timing_wheel.hpp>

#include "../support/vectors.hpp"

#define BOOST_TEST_MODULE timing_wheel_vectors
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace json = boost::json;
using pawl_test::test_vector;

namespace {

using units = std::chrono::nanoseconds;
using time_point = std::chrono::time_point<std::chrono::steady_clock, units>;
using wheel = pawl::timing_wheel<std::string, time_point>;
using config = wheel::config_type;

struct difference {
    const char* ours; // as JSON
    const char* reason;
};

constexpr const char* exact_window =
    "the largest key is the smallest plus 2^bits - 1, which is what the text promises at least; "
    "the original rounds it up to its slots";
constexpr const char* open_end =
    "an alarm at the last time could not fire before the end of time; the original accepts it, and "
    "it never fires";

/// By name and step.
const std::map<std::pair<std::string, std::size_t>, difference> differences{
    {{"allowed_intervals_1_1", 2}, {"3", exact_window}},
    {{"allowed_intervals_1_1_1", 2}, {"7", exact_window}},
    {{"allowed_intervals_3_1", 2}, {"15", exact_window}},
    {{"level_bits_validation", 4}, {"63", "keys have 64 bits, those of the original 62"}},
    {{"durations", 2},
     {"[1099511627776,1125899906842624,1152921504606846976,2305843009213693952,"
      "4611686018427387904]",
      "2^62 nanoseconds can be counted"}},
    {{"level_bits_trimmed_at_precision_2pow10", 2}, {"4611686018427387902", open_end}},
    {{"level_bits_trimmed_at_precision_2pow20", 2}, {"4611686018427387902", open_end}},
    {{"level_bits_trimmed_at_precision_2pow30", 2}, {"4611686018427387902", open_end}},
};

std::string text(const json::object& step, const char* key) {
    return json::value_to<std::string>(step.at(key));
}
std::int64_t number(const json::object& step, const char* key) {
    return step.at(key).to_number<std::int64_t>();
}

/// Bits of levels; with "extend" they are followed by levels of one bit up to the original's range.
std::vector<int> bits_of(const json::object& step, const char* key, int precision_log2,
                         bool extend) {
    auto bits = json::value_to<std::vector<int>>(step.at(key));
    int sum = 0;
    for (const int b : bits)
        sum += b;
    for (; extend && sum < 62 - precision_log2; ++sum)
        bits.push_back(1);
    return bits;
}

/// What a configuration that is not accepted is called.
std::string reason(const std::invalid_argument& e) {
    const std::string what = e.what();
    const auto has = [&](const char* part) { return what.find(part) != std::string::npos; };
    if (has("alarm_precision is "))
        return "error:non_positive";
    if (has("is empty"))
        return "error:empty";
    return has("a level of 0 bits") || has("a level of -") ? "error:nonpositive"
                                                           : "error:too_many_bits";
}

/// One story and its wheel.
class player {
public:
    explicit player(const test_vector& story)
        // As far from the end of our time as the original's start is from its own.
        : origin_(story.name.starts_with("level_bits_trimmed") ? std::int64_t{1} << 62 : 0) {}

    json::value run(const json::object& step) {
        const std::string op = text(step, "op");
        try {
            return perform(op, step);
        } catch (const std::out_of_range&) {
            return op == "add_at_interval" ? "error:invalid_interval" : "error:far";
        } catch (const std::invalid_argument& e) {
            if (!wheel_)
                return json::value_from(reason(e));
            return op == "reschedule" ? "error:not_in_wheel" : "error:invalid_alarm";
        }
    }

    void invariant() const {
        if (wheel_)
            wheel_->invariant();
    }

private:
    json::value perform(const std::string& op, const json::object& step) {
        if (op == "precision_ns" || op == "div_pow2" || op == "floor_pow2_ns" ||
            op == "level_bits" || op == "durations_ns")
            return configure(op, step);
        if (op == "for_all")
            return for_all_level_bits();
        if (op == "create") {
            const auto log2 = static_cast<int>(number(step, "precision_log2_ns"));
            wheel_.emplace(
                config{units{std::int64_t{1} << log2},
                       bits_of(step, "level_bits", log2, step.contains("extend_to_max_num_bits"))},
                time_of(step, "start"));
            return nullptr;
        }
        if (const auto answer = ask(op, step))
            return *answer;
        return act(op, step);
    }

    /// Any duration can be a precision; what is special about powers of two is in <bit>.
    static json::value configure(const std::string& op, const json::object& step) {
        if (op == "level_bits")
            return config{units{1}, bits_of(step, "bits", 0, false)}.num_bits();
        if (op == "durations_ns") {
            const auto log2 = static_cast<int>(number(step, "precision_log2"));
            json::array durations;
            for (const units d :
                 config{units{std::int64_t{1} << log2},
                        bits_of(step, "level_bits", log2, step.at("extend").as_bool())}
                     .durations())
                durations.push_back(d.count());
            return durations;
        }
        std::int64_t precision = 0;
        if (op == "precision_ns") {
            static const std::map<std::string, int> log2{{"about_one_day", 46},
                                                         {"about_one_second", 30},
                                                         {"about_one_millisecond", 20},
                                                         {"about_one_microsecond", 10},
                                                         {"one_nanosecond", 0}};
            precision = std::int64_t{1} << log2.at(text(step, "name"));
        } else if (op == "div_pow2") {
            const auto pow2 = static_cast<int>(number(step, "pow2"));
            precision = pow2 < 0 ? number(step, "of") << -pow2 : number(step, "of") >> pow2;
        } else if (const std::int64_t span = number(step, "span"); span > 0) {
            precision = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(span)));
        }
        return config{units{precision}}.alarm_precision().count();
    }

    /// What changes nothing; none if `op` is not such a step.
    std::optional<json::value> ask(const std::string& op, const json::object& step) {
        const wheel& w = *wheel_;
        if (op == "is_empty")
            return w.empty();
        if (op == "length")
            return w.size();
        if (op == "now")
            return count(w.now());
        if (op == "mem")
            return w.mem(handle(step));
        if (op == "alarm_interval")
            return w.interval_num(handle(step));
        if (op == "interval_num")
            return w.interval_num(time_of(step, "time"));
        if (op == "interval_start")
            return count(w.interval_start(time_of(step, "time")));
        if (op == "min_allowed_interval")
            return w.min_allowed_key();
        if (op == "max_allowed_interval")
            return w.max_allowed_key();
        if (op == "max_allowed_alarm_time")
            return count(w.alarm_upper_bound() - units{1});
        if (op == "min_alarm_interval")
            return w.min_key() ? json::value(*w.min_key()) : json::value();
        if (op == "next_alarm_fires_at")
            return w.next_alarm_fires_at() ? json::value(count(*w.next_alarm_fires_at()))
                                           : json::value();
        if (op == "max_time_in_min_interval") {
            std::optional<time_point> latest;
            w.for_each([&](wheel::handle alarm, const std::string&) {
                if (w.interval_num(alarm) == *w.min_key())
                    latest = std::max(latest, std::optional(w.at(alarm)));
            });
            return latest ? json::value(count(*latest)) : json::value();
        }
        if (op == "levels")
            return json::value_from(w.config().level_bits());
        return std::nullopt;
    }

    json::value act(const std::string& op, const json::object& step) {
        wheel& w = *wheel_;
        json::array fired;
        const auto note = [&](const wheel::fired& alarm) {
            fired.push_back(json::value_from(alarm.value));
        };
        if (op == "add") {
            alarms_[text(step, "id")] = w.add(time_of(step, "at"), text(step, "id"));
        } else if (op == "add_at_interval") {
            const auto n = step.at("n").to_number<std::uint64_t>();
            alarms_[text(step, "id")] = w.add_at_interval_num(n, text(step, "id"));
        } else if (op == "remove") {
            w.remove(handle(step));
        } else if (op == "reschedule") {
            w.reschedule(handle(step), time_of(step, "at"));
        } else if (op == "clear") {
            w.clear();
        } else if (op == "advance") {
            w.advance_clock(time_of(step, "to"), note);
            return fired;
        } else if (op == "fire_past") {
            w.fire_past_alarms(note);
            return fired;
        } else if (op == "advance_handler") {
            w.advance_clock(time_of(step, "to"), [&](wheel::fired&& alarm) {
                note(alarm);
                if (alarm.value == text(step, "on")) {
                    for (const json::value& inner : step.at("do").as_array())
                        run(inner.as_object());
                }
            });
            return fired;
        } else {
            throw std::logic_error("no such step: " + op);
        }
        return nullptr;
    }

    /// All 32 ways to cut 6 bits into levels, at both ends of time, in steps of 1 to 64 intervals.
    static json::value for_all_level_bits() {
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

    std::int64_t count(time_point t) const { return t.time_since_epoch().count() - origin_; }
    time_point time_of(const json::object& step, const char* key) const {
        return time_point{units{number(step, key) + origin_}};
    }
    wheel::handle handle(const json::object& step) const { return alarms_.at(text(step, "id")); }

    std::int64_t origin_; // of the story's time in the wheel's
    std::optional<wheel> wheel_;
    std::map<std::string, wheel::handle> alarms_;
};

const std::vector<test_vector> stories = pawl_test::load_vectors("timing_wheel.json");

void check(const test_vector& story) {
    player p(story);
    std::size_t different = 0;

    pawl_test::replay(
        story, [&](const json::object& step) { return p.run(step); },
        [&](std::size_t step, const std::string& returned, const std::string& expected) {
            BOOST_TEST_CONTEXT("step " << step << ", the original: " << expected) {
                const auto listed = differences.find({story.name, step});
                BOOST_REQUIRE_MESSAGE(listed != differences.end(), "ours: " << returned);
                BOOST_TEST(returned == listed->second.ours);
                BOOST_TEST_MESSAGE(story.name << ": " << returned << " and not " << expected << ": "
                                              << listed->second.reason);
                ++different;
            }
        });

    const auto listed = std::count_if(differences.begin(), differences.end(),
                                      [&](const auto& d) { return d.first.first == story.name; });
    BOOST_TEST(different == static_cast<std::size_t>(listed));
    p.invariant();
}

} // namespace

BOOST_DATA_TEST_CASE(every_story_goes_as_the_original_tells_it_but_for_the_listed_differences,
                     boost::unit_test::data::make(stories), story) {
    check(story);
}

BOOST_AUTO_TEST_CASE(every_listed_difference_is_one_of_a_story) {
    for (const auto& [where, ours] : differences) {
        BOOST_TEST(std::any_of(stories.begin(), stories.end(),
                               [&](const test_vector& s) { return s.name == where.first; }));
    }
}
