// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The promises of timing_wheel. The tests under "The defects of the original" fail with
// core_kernel's Timing_wheel. conformance/timing_wheel_vectors_test.cpp has its own suite.

#include <pawl/time/timing_wheel.hpp>

#include "../service/counted_new.hpp"
#include "support/invariants.hpp"

#define BOOST_TEST_MODULE timing_wheel
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

using time_point = std::chrono::steady_clock::time_point;
using wheel = pawl::timing_wheel<std::string>;
using config = wheel::config_type;
using handle = wheel::handle;
using names = std::vector<std::string>;

constexpr time_point start{1000s}; // no test depends on it

/// Checks that the text of an exception contains all of `parts`.
std::function<bool(const std::exception&)> says(std::vector<std::string> parts) {
    return [parts](const std::exception& e) {
        for (const std::string& part : parts) {
            if (std::string(e.what()).find(part) == std::string::npos) {
                BOOST_TEST_MESSAGE("'" << e.what() << "' does not say '" << part << "'");
                return false;
            }
        }
        return true;
    };
}

/// Checks that the text of an exception ends with `end`: with the bounds, and without advice.
std::function<bool(const std::exception&)> ends(const std::string& end) {
    return [end](const std::exception& e) {
        BOOST_TEST_MESSAGE("'" << e.what() << "' ends with '" << end << "'?");
        return std::string(e.what()).ends_with(end);
    };
}

/// A time in the format of the texts.
std::string number(time_point time) { return std::to_string(time.time_since_epoch().count()); }

/// Four levels that reach 65536 intervals of 10 ms.
struct fixture {
    wheel w{config{10ms, {4, 4, 4, 4}}, start};

    ~fixture() { pawl_test::check_invariant(w); }

    handle add(const std::string& name, std::chrono::nanoseconds after) {
        return w.add(start + after, name);
    }

    /// Advances to `after` and returns the names that have fired.
    names advance(std::chrono::nanoseconds after) {
        names fired;
        w.advance_clock(start + after, [&](auto alarm) {
            BOOST_TEST((alarm.at < w.now()));
            fired.push_back(alarm.value);
        });
        pawl_test::check_invariant(w);
        return fired;
    }

    names fire_past() {
        names fired;
        w.fire_past_alarms([&](auto alarm) {
            BOOST_TEST((alarm.at <= w.now()));
            fired.push_back(alarm.value);
        });
        pawl_test::check_invariant(w);
        return fired;
    }

    /// Returns all remaining alarms, in firing order.
    names drain() { return advance(1h); }
};

/// Moves throw when told to.
struct reluctant {
    static inline bool throws = false;

    reluctant() = default;
    reluctant(reluctant&& other) : value(other.value) {
        if (throws)
            throw std::runtime_error("reluctant");
    }

    int value = 7;
};

} // namespace

// --- Firing

BOOST_FIXTURE_TEST_CASE(an_alarm_fires_when_the_clock_leaves_its_interval_and_not_before, fixture) {
    add("first of its interval", 20ms);
    add("last of its interval", 30ms - 1ns);
    add("next interval", 30ms);

    BOOST_TEST(advance(20ms).empty());
    BOOST_TEST(advance(30ms - 1ns).empty());
    BOOST_TEST(advance(30ms) == (names{"first of its interval", "last of its interval"}));
    BOOST_TEST(advance(40ms - 1ns).empty());
    BOOST_TEST(advance(40ms) == names{"next interval"});
    BOOST_TEST(w.empty());
}

BOOST_FIXTURE_TEST_CASE(a_jump_fires_all_in_the_order_of_their_intervals, fixture) {
    for (const int interval : {700, 3, 40, 12000, 2, 3})
        add(std::to_string(interval), interval * 10ms);

    BOOST_TEST(advance(10min) == (names{"2", "3", "3", "40", "700", "12000"}));
}

BOOST_FIXTURE_TEST_CASE(alarms_of_one_interval_fire_in_the_order_of_adding_not_of_time, fixture) {
    add("late, added first", 29ms);
    add("early, added second", 21ms);

    BOOST_TEST(drain() == (names{"late, added first", "early, added second"}));
}

BOOST_FIXTURE_TEST_CASE(to_advance_to_an_earlier_time_does_nothing, fixture) {
    add("a", 50ms);
    advance(30ms);

    BOOST_TEST(advance(20ms).empty());
    BOOST_TEST(advance(-10s).empty());

    BOOST_TEST((w.now() == start + 30ms));
    BOOST_TEST(w.size() == 1U);
    BOOST_TEST(advance(60ms) == names{"a"});
}

BOOST_FIXTURE_TEST_CASE(a_handler_is_told_everything_about_its_alarm, fixture) {
    const handle a = add("a", 25ms);

    const std::size_t count = w.advance_clock(start + 30ms, [&](wheel::fired&& alarm) {
        BOOST_TEST((alarm.alarm == a));
        BOOST_TEST((alarm.at == start + 25ms));
        BOOST_TEST(alarm.interval_num == 2U);
        BOOST_TEST(alarm.value == "a");
        BOOST_TEST(!w.mem(a));
        BOOST_TEST(w.empty());
        BOOST_TEST((w.now() == start + 30ms));
    });

    BOOST_TEST(count == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_past_alarm_of_the_present_interval_can_be_fired_at_its_time, fixture) {
    add("25", 25ms);
    add("22", 22ms);
    add("28", 28ms);
    add("32", 32ms);

    BOOST_TEST(fire_past().empty());
    advance(22ms);
    BOOST_TEST(fire_past() == names{"22"});
    BOOST_TEST(fire_past().empty());
    add("25 too", 25ms);
    advance(26ms);
    BOOST_TEST(fire_past() == (names{"25", "25 too"}));
    BOOST_TEST(advance(30ms) == names{"28"});
    BOOST_TEST(advance(40ms) == names{"32"});
}

BOOST_DATA_TEST_CASE_F(fixture, however_many_fire_at_once_they_fire_in_order,
                       data::make({1, 63, 64, 65, 128, 1000}), count) {
    names expected;
    for (int i = 0; i != count; ++i) {
        add(std::to_string(i), 5s);
        expected.push_back(std::to_string(i));
    }

    BOOST_TEST(advance(5s).empty()); // in the present interval now
    BOOST_TEST(advance(5s + 10ms) == expected);
}

// --- The defects of the original

// An alarm was in level 1; a later one for the same interval went to level 0 and fired first.
BOOST_AUTO_TEST_CASE(alarms_of_one_interval_keep_their_order_across_levels) {
    wheel w(config{1ns, {1, 1}}, start);
    w.add(start + 2ns, "A");
    w.advance_clock(start + 1ns, [](auto&&) {});
    w.add(start + 2ns, "B");

    names fired;
    w.advance_clock(start + 3ns, [&](auto alarm) { fired.push_back(alarm.value); });

    BOOST_TEST(fired == (names{"A", "B"}));
}

// The same with default levels and a precision of a millisecond: 3 s, then 1 s two seconds later.
BOOST_AUTO_TEST_CASE(timeouts_of_different_length_keep_their_order) {
    wheel w(start);
    w.add(start + 3s, "3 s");
    w.advance_clock(start + 2s, [](auto&&) {});
    w.add(start + 3s, "1 s");

    names fired;
    w.advance_clock(start + 4s, [&](auto alarm) { fired.push_back(alarm.value); });

    BOOST_TEST(fired == (names{"3 s", "1 s"}));
}

// The cached minimum survived clear() and was returned afterwards.
BOOST_FIXTURE_TEST_CASE(clear_forgets_the_minimum, fixture) {
    add("gone", 20ms);
    BOOST_TEST((w.next_alarm_fires_at() == start + 30ms));

    w.clear();
    BOOST_TEST(!w.next_alarm_fires_at().has_value());
    BOOST_TEST(!w.min_elt().has_value());
    const handle later = add("later", 500ms);

    BOOST_TEST((w.min_elt() == later));
    BOOST_TEST((w.next_alarm_fires_at() == start + 510ms));
    pawl_test::check_invariant(w);
}

// The rest of the slot was lost, and length was wrong forever.
BOOST_FIXTURE_TEST_CASE(a_throwing_handler_loses_nothing, fixture) {
    std::vector<handle> alarms;
    names expected;
    for (int i = 0; i != 200; ++i) {
        alarms.push_back(add(std::to_string(i), i < 150 ? 20ms : 40ms));
        expected.push_back(std::to_string(i));
    }
    names fired;
    const auto handler = [&](auto alarm) {
        fired.push_back(alarm.value);
        if (fired.size() % 3 == 0)
            throw std::runtime_error(alarm.value);
    };

    int thrown = 0;
    for (bool complete = false; !complete;) {
        try {
            w.advance_clock(start + 50ms, handler); // the same time again and again
            complete = true;
        } catch (const std::runtime_error& e) {
            ++thrown;
            BOOST_TEST(e.what() == fired.back());
        }
        BOOST_TEST(w.size() == 200 - fired.size());
        if (!w.empty()) {
            BOOST_TEST(w.mem(alarms[fired.size()]));
            BOOST_TEST((w.min_key() == w.interval_num(alarms[fired.size()])));
        }
        pawl_test::check_invariant(w);
    }

    BOOST_TEST(fired == expected);
    BOOST_TEST(thrown == 66);
    BOOST_TEST(!w.mem(alarms[2]));
}

// Its interval had no end that the clock could reach.
BOOST_AUTO_TEST_CASE(an_alarm_in_the_last_interval_fires_at_the_end_of_time) {
    constexpr time_point end = time_point::max();
    wheel w(config{10ms, {6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 4}}, start);
    w.add(end - 1ns, "last");
    w.add(end - 20ms, "last but one");
    names fired;
    const auto handler = [&](auto alarm) { fired.push_back(alarm.value); };

    w.advance_clock(end - 1ns, handler);
    BOOST_TEST(fired.size() == 1U);
    BOOST_TEST((w.next_alarm_fires_at() == end));
    w.advance_clock(*w.next_alarm_fires_at(), handler);

    BOOST_TEST(fired == (names{"last but one", "last"}));
    pawl_test::check_invariant(w);
    BOOST_TEST(w.empty());
}

// Its advance_clock_stop_at_next_alarm never fired an alarm.
BOOST_FIXTURE_TEST_CASE(advancing_to_next_alarm_fires_at_always_fires_something, fixture) {
    for (int i = 0; i != 500; ++i)
        add(std::to_string(i), i * i * 1ms);

    std::size_t fired = 0;
    while (const auto next = w.next_alarm_fires_at()) {
        const handle first = *w.min_elt();
        BOOST_TEST((*next - w.alarm_precision() <= w.at(first)));
        BOOST_TEST((w.at(first) < *next));
        const std::size_t before = fired;
        w.advance_clock(*next - 1ns, [&](auto&&) { ++fired; });
        BOOST_REQUIRE(fired == before);
        w.advance_clock(*next, [&](auto&&) { ++fired; });
        BOOST_REQUIRE(fired > before);
    }

    BOOST_TEST(fired == 500U);
}

// It walked empty slots. And a caller that asks for the least key after each removal must not get
// an estimate. More alarms than the wheel checks at once, in slots of upper levels.
BOOST_FIXTURE_TEST_CASE(the_minimum_is_exact_wherever_it_waits, fixture) {
    std::vector<handle> alarms;
    for (int i = 0; i != 300; ++i)
        alarms.push_back(add(std::to_string(i), 40s + i * 70ms));

    for (std::size_t i = 0; i != 300; ++i) {
        BOOST_REQUIRE((w.min_elt() == alarms[i]));
        BOOST_REQUIRE((w.min_key() == w.interval_num(alarms[i])));
        if (i % 3 == 0)
            w.reschedule(alarms[i], start + 600s);
        else
            w.remove(alarms[i]);
    }

    BOOST_TEST(w.size() == 100U);
    BOOST_TEST((w.min_key() == 60000U));
}

// For the answer, Pawl's wheel moves ahead of the clock. This must not show.
BOOST_FIXTURE_TEST_CASE(asking_for_the_first_alarm_changes_nothing, fixture) {
    for (int i = 0; i != 20; ++i)
        add("crowd", 100s + i * 1s);
    BOOST_TEST((w.min_key() == 10000U));
    const handle early = add("added before", 20s);
    add("added before, same interval", 20s);
    const handle moved = add("moved before", 150s);
    w.reschedule(moved, start + 30s);
    const handle away = add("moved behind", 10s);
    w.reschedule(away, start + 200s);
    pawl_test::check_invariant(w);

    BOOST_TEST((w.min_elt() == early));
    BOOST_TEST(advance(20s).empty());
    BOOST_TEST(fire_past() == (names{"added before", "added before, same interval"}));
    BOOST_TEST(advance(99s) == names{"moved before"});
    BOOST_TEST(advance(100s).empty());
    BOOST_TEST(advance(130s) == names(20, "crowd"));
    BOOST_TEST(drain() == names{"moved behind"});
}

// The message of one function named another. This calls all functions that throw, also from a
// handler, in which firing is wrong, too.
BOOST_FIXTURE_TEST_CASE(an_error_names_the_function_that_was_called, fixture) {
    struct wrong_call {
        std::function<void()> call;
        std::string text;
    };
    const handle gone = add("gone", 20ms);
    w.remove(gone);
    const handle left = add("left", 90ms);
    const wheel& constant = w;
    const auto ignore = [](auto&&) {};
    const std::uint64_t over = w.max_representable_key() + 1;

    const std::string early = "time is " + number(start - 1ns) + ", allowed are " + number(start) +
                              " (start()) to " + number(time_point::max()) + " (TimePoint::max())";
    const std::string past = "at is " + number(start) + ", allowed are " + number(start + 30ms) +
                             " (now()) to " + number(start + 30ms + 65536 * 10ms) +
                             " (alarm_upper_bound(), not included)";
    const std::string large = " is " + std::to_string(over) +
                              ", allowed are 0 (interval_num(start())) to " +
                              std::to_string(over - 1) + " (max_representable_key())";
    const std::string fired = "alarm 1 has fired or been removed; ask mem() where that is possible";
    const std::string nested =
        "called by a handler of the same wheel; call it after the outer call has returned";
    const std::vector<wrong_call> table{
        {[&] { wheel{time_point::max()}; },
         "timing_wheel(): start is " + number(time_point::max()) + ", allowed are " +
             number(time_point::min()) + " (TimePoint::min()) to " + number(time_point::max()) +
             " (TimePoint::max(), not included)"},
        {[&] { (void)w.interval_num(start - 1ns); }, "interval_num(): " + early},
        {[&] { (void)w.interval_start(start - 1ns); }, "interval_start(): " + early},
        {[&] { (void)w.interval_num_start(over); }, "interval_num_start(): n" + large},
        {[&] { w.add(start, "x"); }, "add(): " + past},
        {[&] { w.add_at_interval_num(2, "x"); },
         "add_at_interval_num(): n is 2, allowed are 3 (min_allowed_key()) to 65538 "
         "(max_allowed_key())"},
        {[&] { w.reschedule(left, start); }, "reschedule(): " + past},
        {[&] { w.reschedule(gone, start); }, "reschedule(): " + fired},
        {[&] { w.remove(gone); }, "remove(): " + fired},
        {[&] { (void)w.at(gone); }, "at(): " + fired},
        {[&] { (void)w.interval_num(gone); }, "interval_num(): " + fired},
        {[&] { (void)w.value(gone); }, "value(): " + fired},
        {[&] { (void)constant.value(gone); }, "value(): " + fired},
        {[&] { w.advance_clock(start + 1h, ignore); }, "advance_clock(): " + nested},
        {[&] { w.fire_past_alarms(ignore); }, "fire_past_alarms(): " + nested},
        {[&] { w.increase_min_allowed_key(over, ignore); },
         "increase_min_allowed_key(): key" + large},
        {[&] { w.increase_min_allowed_key(99, ignore); }, "increase_min_allowed_key(): " + nested},
    };

    add("calls", 10ms);
    w.advance_clock(start + 30ms, [&](auto&&) {
        for (const auto& [call, text] : table)
            BOOST_CHECK_EXCEPTION(call(), std::logic_error, says({"pawl: timing_wheel: " + text}));
    });

    BOOST_TEST((w.now() == start + 30ms));
    BOOST_TEST(drain() == names{"left"});
}

// --- Handlers

BOOST_FIXTURE_TEST_CASE(a_handler_may_remove_alarms_that_are_due_in_the_same_call, fixture) {
    std::vector<handle> alarms;
    for (int i = 0; i != 200; ++i)
        alarms.push_back(add(std::to_string(i), 20ms));

    names fired;
    w.advance_clock(start + 30ms, [&](auto alarm) {
        fired.push_back(alarm.value);
        if (fired.size() == 1) {
            w.remove(alarms[1]);   // next
            w.remove(alarms[100]); // not yet out of the wheel
            w.remove(alarms[199]);
        }
    });

    BOOST_TEST(fired.size() == 197U);
    BOOST_TEST(fired[1] == "2");
    BOOST_TEST(fired.back() == "198");
}

BOOST_FIXTURE_TEST_CASE(what_a_handler_adds_or_moves_fires_in_a_later_call, fixture) {
    const handle moved = add("moved", 20ms);
    add("moves", 10ms);

    names fired;
    w.advance_clock(start + 35ms, [&](auto alarm) {
        fired.push_back(alarm.value);
        w.add(start + 35ms, "added");
        if (w.mem(moved))
            w.reschedule(moved, start + 36ms);
    });

    BOOST_TEST(fired == names{"moves"});
    BOOST_TEST(w.size() == 2U);
    BOOST_TEST(drain() == (names{"added", "moved"}));
}

BOOST_FIXTURE_TEST_CASE(a_handler_that_adds_for_now_does_not_go_round_in_circles, fixture) {
    add("0", 20ms);
    add("0", 20ms); // an alarm that the first one adds comes after this, so it is checked
    advance(25ms);

    for (int call = 1; call != 5; ++call) {
        int calls = 0;
        const std::size_t count = w.fire_past_alarms([&](auto&&) {
            if (++calls < 10)
                w.add(w.now(), std::to_string(call));
        });
        BOOST_TEST(count == 2U);
    }

    BOOST_TEST(fire_past() == (names{"4", "4"}));
}

BOOST_FIXTURE_TEST_CASE(handlers_of_past_alarms_may_remove_move_and_throw, fixture) {
    std::vector<handle> alarms;
    for (int i = 0; i != 6; ++i)
        alarms.push_back(add(std::to_string(i), 20ms));
    advance(21ms);

    names fired;
    const auto handler = [&](auto alarm) {
        fired.push_back(alarm.value);
        if (alarm.value == "0") {
            w.remove(alarms[1]);                     // next
            w.reschedule(alarms[2], start + 21ms);   // due, but later
            w.reschedule(alarms[3], start + 9999ms); // not due
        } else if (alarm.value == "4") {
            throw std::runtime_error("4");
        }
    };
    BOOST_CHECK_THROW(w.fire_past_alarms(handler), std::runtime_error);
    pawl_test::check_invariant(w);
    BOOST_TEST(w.fire_past_alarms(handler) == 2U);

    BOOST_TEST(fired == (names{"0", "4", "5", "2"}));
    BOOST_TEST(drain() == names{"3"});
}

BOOST_FIXTURE_TEST_CASE(a_handler_may_clear_the_wheel, fixture) {
    for (int i = 0; i != 200; ++i)
        add(std::to_string(i), i < 100 ? 20ms : 5s);

    const std::size_t fired = w.advance_clock(start + 30ms, [&](auto&&) {
        w.clear();
        w.add(start + 40ms, "new");
    });

    BOOST_TEST(fired == 1U);
    BOOST_TEST(drain() == names{"new"});
}

BOOST_FIXTURE_TEST_CASE(a_handler_cannot_advance_the_clock, fixture) {
    add("a", 20ms);
    add("b", 20ms);
    const auto ignore = [](auto&&) {};

    std::size_t refused = 0;
    const std::size_t fired = w.advance_clock(start + 30ms, [&](auto&&) {
        const std::string nested = "(): called by a handler of the same wheel; "
                                   "call it after the outer call has returned";
        BOOST_CHECK_EXCEPTION(w.advance_clock(start + 1h, ignore), std::logic_error,
                              says({" advance_clock" + nested}));
        BOOST_CHECK_EXCEPTION(w.fire_past_alarms(ignore), std::logic_error,
                              says({" fire_past_alarms" + nested}));
        BOOST_CHECK_EXCEPTION(w.increase_min_allowed_key(99, ignore), std::logic_error,
                              says({" increase_min_allowed_key" + nested}));
        ++refused;
    });

    BOOST_TEST(fired == 2U);
    BOOST_TEST(refused == 2U);
    BOOST_TEST((w.now() == start + 30ms));
    BOOST_TEST(w.advance_clock(start + 1h, ignore) == 0U); // allowed again
}

BOOST_FIXTURE_TEST_CASE(after_a_throw_what_is_left_can_be_moved_removed_and_overtaken, fixture) {
    std::vector<handle> alarms;
    for (int i = 0; i != 300; ++i)
        alarms.push_back(add(std::to_string(i), 20ms + i / 100 * 10ms));
    BOOST_CHECK_THROW(w.advance_clock(start + 60ms, [](auto&&) { throw std::runtime_error(""); }),
                      std::runtime_error);

    for (std::size_t i = 1; i != 300; ++i) {
        if (i % 10 == 1)
            w.reschedule(alarms[i], start + 70ms);
        else if (i % 10 != 2)
            w.remove(alarms[i]);
    }
    add("new", 60ms);
    pawl_test::check_invariant(w);

    BOOST_TEST((w.min_elt() == alarms[2]));
    BOOST_TEST(advance(60ms).size() == 30U);
    BOOST_TEST(advance(70ms) == names{"new"});
    BOOST_TEST(advance(80ms).size() == 30U);
}

// --- Handles

BOOST_FIXTURE_TEST_CASE(a_handle_is_a_member_from_adding_until_firing_or_removal, fixture) {
    const handle removed = add("removed", 20ms);
    const handle fired = add("fired", 20ms);
    const handle cleared = add("cleared", 90ms);
    BOOST_TEST((w.mem(removed) && w.mem(fired) && w.mem(cleared)));

    w.remove(removed);
    advance(30ms);
    w.clear();
    BOOST_TEST((!w.mem(removed) && !w.mem(fired) && !w.mem(cleared)));

    // Their slots are reused for other alarms.
    std::vector<handle> others;
    for (int i = 0; i != 9; ++i)
        others.push_back(add("other", 90ms));
    int alarm = 0;
    for (const handle& gone : {removed, fired, cleared}) {
        BOOST_TEST(!w.mem(gone));
        BOOST_CHECK_EXCEPTION(w.remove(gone), std::invalid_argument,
                              says({" remove(): alarm " + std::to_string(++alarm) +
                                    " has fired or been removed; ask mem()"}));
    }
    BOOST_TEST(w.size() == 9U);
}

BOOST_FIXTURE_TEST_CASE(a_handle_of_another_wheel_or_of_none_is_recognised, fixture) {
    fixture other;
    const handle own = add("a", 20ms);
    const handle foreign = other.add("b", 20ms); // its slot has the same index and generation
    const wheel& constant = w;

    const auto refused = [&](handle alarm, const std::string& text) {
        const auto by = [&](const char* function) {
            return says({std::string(" ") + function + "(): " + text});
        };
        BOOST_TEST(!w.mem(alarm));
        BOOST_CHECK_EXCEPTION(w.remove(alarm), std::invalid_argument, by("remove"));
        BOOST_CHECK_EXCEPTION(w.reschedule(alarm, start + 90ms), std::invalid_argument,
                              by("reschedule"));
        BOOST_CHECK_EXCEPTION((void)w.at(alarm), std::invalid_argument, by("at"));
        BOOST_CHECK_EXCEPTION((void)w.interval_num(alarm), std::invalid_argument,
                              by("interval_num"));
        BOOST_CHECK_EXCEPTION((void)w.value(alarm), std::invalid_argument, by("value"));
        BOOST_CHECK_EXCEPTION((void)constant.value(alarm), std::invalid_argument, by("value"));
    };
    refused(foreign, "alarm 1 is of another wheel; use the wheel that added it");
    refused(handle{}, "the handle is default constructed; use one that add() has returned");

    BOOST_TEST((w.size() == 1U && other.w.size() == 1U));
    BOOST_TEST((w.mem(own) && other.w.mem(foreign)));
    BOOST_TEST((w.at(own) == start + 20ms && other.w.at(foreign) == start + 20ms));
    BOOST_TEST((w.value(own) == "a" && other.w.value(foreign) == "b"));
    BOOST_TEST(advance(30ms) == names{"a"});
    BOOST_TEST(other.advance(30ms) == names{"b"});
}

BOOST_FIXTURE_TEST_CASE(an_alarm_is_reached_through_its_handle, fixture) {
    const handle a = add("a", 25ms);
    const wheel& constant = w;

    w.value(a) += "bc";

    BOOST_TEST(constant.value(a) == "abc");
    BOOST_TEST((constant.at(a) == start + 25ms));
    BOOST_TEST(constant.interval_num(a) == 2U);
}

BOOST_FIXTURE_TEST_CASE(rescheduling_keeps_handle_and_value_and_goes_to_the_end_of_the_line,
                        fixture) {
    const handle a = add("a", 20ms);
    add("b", 20ms);
    add("c", 700ms);

    w.reschedule(a, start + 700ms);
    BOOST_TEST((w.min_key() == 2U));
    BOOST_TEST((w.at(a) == start + 700ms && w.interval_num(a) == 70U));
    BOOST_TEST(advance(30ms) == names{"b"});
    w.reschedule(a, start + 30ms);
    BOOST_TEST((w.min_elt() == a));
    w.reschedule(a, start + 705ms);

    BOOST_TEST(drain() == (names{"c", "a"}));
}

BOOST_FIXTURE_TEST_CASE(an_alarm_of_the_present_interval_can_be_moved_out_of_it, fixture) {
    const handle a = add("a", 25ms);
    add("b", 26ms);
    advance(21ms);

    w.reschedule(a, start + 45ms);
    pawl_test::check_invariant(w);

    BOOST_TEST(advance(40ms) == names{"b"});
    BOOST_TEST(advance(50ms) == names{"a"});
}

BOOST_FIXTURE_TEST_CASE(iteration_visits_every_alarm_once_and_may_remove, fixture) {
    for (int i = 0; i != 20; ++i)
        add(std::to_string(i), i * 10ms);
    advance(52ms); // five have fired, one is in the present interval

    std::size_t visited = 0;
    w.for_each([&](handle alarm, std::string& value) {
        ++visited;
        BOOST_TEST(w.mem(alarm));
        value += "!";
        if (w.interval_num(alarm) % 2 == 0)
            w.remove(alarm);
    });
    std::size_t left = 0;
    std::as_const(w).for_each([&](handle, const std::string& value) {
        BOOST_TEST(value.back() == '!');
        ++left;
    });

    BOOST_TEST(visited == 15U);
    BOOST_TEST(left == 8U);
    BOOST_TEST(w.size() == 8U);
}

// --- Values

BOOST_AUTO_TEST_CASE(values_that_can_only_be_moved_are_moved_through) {
    pawl::timing_wheel<std::unique_ptr<int>> w(start);
    w.add(start + 1ms, std::make_unique<int>(1));
    const auto taken = w.add(start + 1ms, std::make_unique<int>(2));

    const std::unique_ptr<int> kept = std::move(w.value(taken));
    w.remove(taken);
    int sum = *kept;
    w.advance_clock(start + 2ms, [&](auto alarm) {
        const std::unique_ptr<int> value = std::move(alarm.value);
        sum += 10 * *value;
    });

    BOOST_TEST(sum == 12);
}

BOOST_AUTO_TEST_CASE(a_value_may_use_the_wheel_while_it_is_destroyed) {
    struct sibling {
        pawl::timing_wheel<std::unique_ptr<sibling>>* wheel = nullptr;
        pawl::timing_wheel_handle other{};
        ~sibling() {
            if (wheel != nullptr && wheel->mem(other))
                wheel->remove(other);
        }
    };
    pawl::timing_wheel<std::unique_ptr<sibling>> w(start);
    const auto pair = [&](std::chrono::nanoseconds at) {
        const auto a = w.add(start + at, std::make_unique<sibling>());
        const auto b = w.add(start + at, std::make_unique<sibling>());
        w.value(a)->wheel = w.value(b)->wheel = &w;
        w.value(a)->other = b;
        w.value(b)->other = a;
        return a;
    };

    w.remove(pair(5ms));
    BOOST_TEST(w.empty());
    pair(5ms);
    BOOST_TEST(w.advance_clock(start + 9ms, [](auto) {}) == 1U);
    BOOST_TEST(w.empty());
    pair(20ms);
    w.clear();
    BOOST_TEST(w.empty());
    pawl_test::check_invariant(w);
    pair(20ms); // for the destructor
}

BOOST_AUTO_TEST_CASE(adding_a_value_whose_move_throws_adds_nothing) {
    pawl::timing_wheel<reluctant> w(start);
    w.add(start + 3ms, reluctant{});
    reluctant value;
    value.value = 8;

    reluctant::throws = true;
    BOOST_CHECK_THROW(w.add(start + 2ms, std::move(value)), std::runtime_error);
    BOOST_CHECK_THROW(w.add_at_interval_num(2, reluctant{}), std::runtime_error);
    reluctant::throws = false;

    BOOST_TEST(w.size() == 1U);
    BOOST_TEST((w.min_key() == 3U));
    pawl_test::check_invariant(w);
    w.add(start + 1ms, std::move(value));
    BOOST_TEST(w.advance_clock(start + 1s, [](auto&&) {}) == 2U);
}

BOOST_AUTO_TEST_CASE(an_alarm_whose_value_cannot_be_moved_out_stays) {
    pawl::timing_wheel<reluctant> w(start);
    const auto a = w.add(start + 3ms, reluctant{});

    reluctant::throws = true;
    BOOST_CHECK_THROW(w.advance_clock(start + 4ms, [](auto&&) {}), std::runtime_error);
    reluctant::throws = false;

    BOOST_TEST(w.mem(a));
    BOOST_TEST(w.advance_clock(start + 4ms,
                               [](auto&& alarm) { BOOST_TEST(alarm.value.value == 7); }) == 1U);
}

BOOST_AUTO_TEST_CASE(without_memory_nothing_is_added) {
    pawl::timing_wheel<int> w(start);
    const auto first = w.add(start + 3ms, 1);

    std::size_t refused = 0;
    for (int i = 0; i != 1000; ++i) {
        const std::size_t before = w.size();
        counted_new::fuse.store(0);
        bool added = true;
        try {
            w.add(start + 2ms, i);
        } catch (const std::bad_alloc&) {
            added = false;
        }
        counted_new::fuse.store(counted_new::never);
        BOOST_REQUIRE(w.size() == before + (added ? 1 : 0));
        if (!added) {
            ++refused;
            w.add(start + 2ms, i);
        }
    }

    BOOST_TEST(refused > 0U);
    pawl_test::check_invariant(w);
    BOOST_TEST(w.mem(first));
    BOOST_TEST(w.advance_clock(start + 1s, [](auto&&) {}) == 1001U);
}

BOOST_AUTO_TEST_CASE(only_adding_allocates) {
    wheel w(config{10ms, {2, 2}}, start);
    std::vector<handle> alarms;
    for (int i = 0; i != 100; ++i)
        alarms.push_back(w.add(start + i % 15 * 10ms, ""));

    const std::size_t before = counted_new::calls.load();
    for (std::size_t i = 0; i != 100; ++i) {
        if (i % 3 == 0)
            w.remove(alarms[i]);
        else if (i % 3 == 1)
            w.reschedule(alarms[i], start + 140ms);
        (void)w.next_alarm_fires_at();
    }
    const std::size_t fired = w.advance_clock(start + 1s, [](auto&&) {});
    w.add(start + 1s, ""); // a slot is free
    const std::size_t after = counted_new::calls.load();

    BOOST_TEST(after == before);
    BOOST_TEST(fired == 66U);
}

// --- Time

BOOST_FIXTURE_TEST_CASE(intervals_are_half_open_and_counted_from_start, fixture) {
    BOOST_TEST(w.interval_num(start) == 0U);
    BOOST_TEST(w.interval_num(start + 10ms - 1ns) == 0U);
    BOOST_TEST(w.interval_num(start + 10ms) == 1U);
    BOOST_TEST((w.interval_start(start + 39ms) == start + 30ms));
    BOOST_TEST((w.interval_num_start(3) == start + 30ms));
    advance(39ms);
    BOOST_TEST(w.now_interval_num() == 3U);
    BOOST_TEST((w.start() == start));

    const std::string allowed = ", allowed are " + number(start) + " (start()) to " +
                                number(time_point::max()) + " (TimePoint::max())";
    BOOST_CHECK_EXCEPTION((void)w.interval_num(start - 1ns), std::out_of_range,
                          says({" interval_num(): time is " + number(start - 1ns) + allowed}));
    BOOST_CHECK_EXCEPTION(
        (void)w.interval_start(time_point::min()), std::out_of_range,
        says({" interval_start(): time is " + number(time_point::min()) + allowed}));
    const std::uint64_t most = w.max_representable_key();
    BOOST_TEST(w.interval_num(time_point::max()) == most);
    BOOST_CHECK_EXCEPTION((void)w.interval_num_start(most + 1), std::out_of_range,
                          says({" interval_num_start(): n is " + std::to_string(most + 1) +
                                ", allowed are 0 (interval_num(start())) to " +
                                std::to_string(most) + " (max_representable_key())"}));
}

BOOST_FIXTURE_TEST_CASE(an_alarm_outside_the_bounds_is_refused_with_both_bounds, fixture) {
    const handle a = add("a", 100ms);
    advance(35ms);
    const time_point bound = w.alarm_upper_bound();
    BOOST_TEST((bound == start + 30ms + 65536 * 10ms));
    const std::string allowed = ", allowed are " + number(start + 35ms) + " (now()) to " +
                                number(bound) + " (alarm_upper_bound(), not included)";

    const std::string past = "(): at is " + number(start + 35ms - 1ns) + allowed;
    BOOST_CHECK_EXCEPTION(add("x", 35ms - 1ns), std::out_of_range, says({" add" + past}));
    BOOST_CHECK_EXCEPTION(w.reschedule(a, start + 35ms - 1ns), std::out_of_range,
                          says({" reschedule" + past}));
    const std::string too_late = "(): at is " + number(bound) + allowed +
                                 "; more level_bits or a coarser alarm_precision reach further";
    BOOST_CHECK_EXCEPTION(w.add(bound, "x"), std::out_of_range, says({" add" + too_late}));
    BOOST_CHECK_EXCEPTION(w.reschedule(a, bound), std::out_of_range,
                          says({" reschedule" + too_late}));

    BOOST_TEST(w.size() == 1U);
    BOOST_TEST((w.at(a) == start + 100ms));
    w.add(bound - 1ns, "far");
    w.add(start + 35ms, "now");
    BOOST_TEST(advance(bound - start) == (names{"now", "a", "far"}));
}

BOOST_FIXTURE_TEST_CASE(keys_are_allowed_from_the_present_one_up_to_what_the_levels_reach,
                        fixture) {
    advance(35ms);
    BOOST_TEST(w.min_allowed_key() == 3U);
    BOOST_TEST(w.max_allowed_key() == 3U + 65535);

    w.add_at_interval_num(100, "other");
    const std::string allowed = ", allowed are 3 (min_allowed_key()) to 65538 (max_allowed_key())";
    BOOST_CHECK_EXCEPTION(w.add_at_interval_num(2, "x"), std::out_of_range,
                          says({" add_at_interval_num(): n is 2" + allowed}));
    BOOST_CHECK_EXCEPTION(w.add_at_interval_num(65539, "x"), std::out_of_range,
                          says({" add_at_interval_num(): n is 65539" + allowed +
                                "; more level_bits or a coarser alarm_precision reach further"}));
    w.add_at_interval_num(3, "least");
    const handle most = w.add_at_interval_num(65538, "most");

    BOOST_TEST((w.min_key() == 3U));
    BOOST_TEST((w.at(most) == w.interval_num_start(65538)));
    BOOST_TEST(drain() == (names{"least", "other", "most"}));
}

BOOST_FIXTURE_TEST_CASE(as_a_queue_of_keys_it_removes_all_that_are_smaller, fixture) {
    for (const std::uint64_t key : {5U, 1U, 9U, 5U})
        w.add_at_interval_num(key, std::to_string(key));
    std::vector<std::uint64_t> removed;
    const auto handler = [&](auto alarm) { removed.push_back(alarm.interval_num); };

    BOOST_TEST(w.increase_min_allowed_key(6, handler) == 3U);
    BOOST_TEST(w.increase_min_allowed_key(4, handler) == 0U);

    BOOST_TEST(removed == (std::vector<std::uint64_t>{1, 5, 5}));
    BOOST_TEST(w.min_allowed_key() == 6U);
    BOOST_TEST((w.min_key() == 9U));
    const std::uint64_t most = w.max_representable_key();
    BOOST_CHECK_EXCEPTION(w.increase_min_allowed_key(most + 1, handler), std::out_of_range,
                          says({" increase_min_allowed_key(): key is " + std::to_string(most + 1) +
                                ", allowed are 0 (interval_num(start())) to " +
                                std::to_string(most) + " (max_representable_key())"}));
    BOOST_TEST(w.increase_min_allowed_key(most, handler) == 1U);
}

BOOST_FIXTURE_TEST_CASE(advice_is_given_only_where_it_helps, fixture) {
    advance(35ms);
    BOOST_CHECK_EXCEPTION(add("x", 34ms), std::out_of_range,
                          ends(" add(): at is " + number(start + 34ms) + ", allowed are " +
                               number(start + 35ms) + " (now()) to " +
                               number(w.alarm_upper_bound()) +
                               " (alarm_upper_bound(), not included)"));
    BOOST_CHECK_EXCEPTION(w.add_at_interval_num(2, "x"), std::out_of_range,
                          ends(" add_at_interval_num(): n is 2, allowed are 3 (min_allowed_key()) "
                               "to 65538 (max_allowed_key())"));

    wheel all(start); // reaches the end of time
    const std::string end = number(time_point::max());
    BOOST_CHECK_EXCEPTION(all.add(time_point::max(), "x"), std::out_of_range,
                          ends(" add(): at is " + end + ", allowed are " + number(start) +
                               " (now()) to " + end + " (alarm_upper_bound(), not included)"));
    const std::uint64_t most = all.max_allowed_key();
    BOOST_CHECK_EXCEPTION(all.add_at_interval_num(most + 1, "x"), std::out_of_range,
                          ends(" add_at_interval_num(): n is " + std::to_string(most + 1) +
                               ", allowed are 0 (min_allowed_key()) to " + std::to_string(most) +
                               " (max_allowed_key())"));
}

// The bounds mean nothing then: a refused key may be between them.
BOOST_DATA_TEST_CASE(at_the_end_of_time_an_error_says_that_nothing_is_allowed,
                     data::make({1, 10'000'000}), precision) {
    constexpr time_point end = time_point::max();
    const std::string none = ", but none is allowed: the clock is at " + number(end) +
                             " (TimePoint::max()), after which there is no time for alarms";
    wheel w(config{std::chrono::nanoseconds{precision}}, start);
    w.add(end - 1s, "fires");
    const handle left = w.add(end - 1ns, "left");

    names fired;
    w.advance_clock(end, [&](auto alarm) {
        fired.push_back(alarm.value);
        if (alarm.value == "left")
            return;
        for (const time_point at : {end - 1ns, end}) {
            const std::string text = "(): at is " + number(at) + none;
            BOOST_CHECK_EXCEPTION(w.add(at, "x"), std::out_of_range, says({" add" + text}));
            BOOST_CHECK_EXCEPTION(w.reschedule(left, at), std::out_of_range,
                                  says({" reschedule" + text}));
        }
        for (const std::uint64_t n : {std::uint64_t{0}, w.max_allowed_key(), w.min_allowed_key()})
            BOOST_CHECK_EXCEPTION(
                w.add_at_interval_num(n, "x"), std::out_of_range,
                says({" add_at_interval_num(): n is " + std::to_string(n) + none}));
    });

    BOOST_TEST(fired == (names{"fires", "left"}));
    BOOST_TEST(w.empty());
    pawl_test::check_invariant(w);
}

// 128 values on each side of the epoch: small enough for every start, present and alarm.
BOOST_DATA_TEST_CASE(the_whole_range_of_a_clock_is_served, data::make({1, 2, 3, 7, 100, 127}),
                     precision) {
    using tiny = std::chrono::duration<std::int8_t>;
    using point = std::chrono::time_point<std::chrono::steady_clock, tiny>;
    using tiny_wheel = pawl::timing_wheel<int, point>;
    const auto at = [](int count) { return point{tiny{static_cast<std::int8_t>(count)}}; };

    for (const int begin : {-128, -127, -3, 0, 126}) {
        for (const int present : {-128, -50, 0, 100, 126}) {
            if (present < begin)
                continue;
            tiny_wheel w(tiny_wheel::config_type{tiny{static_cast<std::int8_t>(precision)}},
                         at(begin));
            w.advance_clock(at(present), [](auto&&) {});
            for (int i = present; i != 127; ++i)
                w.add(at(i), i);
            BOOST_REQUIRE_EXCEPTION(w.add(at(127), 127), std::out_of_range,
                                    ends(" add(): at is 127, allowed are " +
                                         std::to_string(present) +
                                         " (now()) to 127 (alarm_upper_bound(), not included)"));
            pawl_test::check_invariant(w);

            int next = present;
            while (const auto to = w.next_alarm_fires_at()) {
                w.advance_clock(*to, [&](auto alarm) {
                    BOOST_REQUIRE(alarm.value == next);
                    BOOST_REQUIRE(alarm.at == at(next));
                    BOOST_REQUIRE(alarm.at < w.now());
                    ++next;
                });
                pawl_test::check_invariant(w);
            }
            BOOST_REQUIRE(next == 127);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_wheel_of_nanoseconds_serves_all_64_bits) {
    wheel w(config{1ns}, time_point::min());
    BOOST_TEST(w.max_representable_key() == std::numeric_limits<std::uint64_t>::max());
    BOOST_TEST((w.alarm_upper_bound() == time_point::max()));
    names expected;
    for (int bit = 0; bit != 64; ++bit) {
        w.add_at_interval_num(std::uint64_t{1} << bit, std::to_string(bit));
        expected.push_back(std::to_string(bit));
    }
    w.add(time_point::max() - 1ns, "last");
    expected.push_back("last");

    names fired;
    while (const auto next = w.next_alarm_fires_at()) {
        w.advance_clock(*next, [&](auto alarm) { fired.push_back(alarm.value); });
        pawl_test::check_invariant(w);
    }

    BOOST_TEST(fired == expected);
}

BOOST_AUTO_TEST_CASE(a_start_after_which_nothing_comes_is_refused) {
    const std::string end = number(time_point::max());
    BOOST_CHECK_EXCEPTION(
        wheel{time_point::max()}, std::invalid_argument,
        says({" timing_wheel(): start is " + end + ", allowed are " + number(time_point::min()) +
              " (TimePoint::min()) to " + end + " (TimePoint::max(), not included)"}));
}

// --- Configuration

BOOST_AUTO_TEST_CASE(a_configuration_without_sense_is_refused_with_what_is_allowed) {
    const auto refused = [](std::chrono::nanoseconds precision, std::vector<int> bits,
                            const std::string& text) {
        BOOST_CHECK_EXCEPTION((config{precision, std::move(bits)}), std::invalid_argument,
                              says({"pawl: timing_wheel_config: ", text}));
    };

    refused(0ns, {6}, "alarm_precision is 0 s, at least 1 ns is needed");
    refused(-5ns, {6}, "alarm_precision is -5 ns, at least 1 ns is needed");
    refused(1ns, {}, "level_bits is empty, at least 1 level");
    refused(1ns, {6, 0, 6}, "a level of 0 bits, allowed are 1 to 64");
    refused(1ns, {-1}, "a level of -1 bits, allowed are 1 to 64");
    refused(1ns, {65}, "a level of 65 bits, allowed are 1 to 64");
    refused(1ns, {12, 12, 12, 12, 12, 5}, "65 bits in all, allowed are 1 to 64");
}

BOOST_AUTO_TEST_CASE(levels_are_trimmed_to_the_time_that_there_is) {
    const wheel w(config{1ms, {11, 10, 10, 10, 10, 10}}, time_point{});
    const std::vector<int> trimmed{11, 10, 10, 10, 3}; // 2^63 ns are 2^43.07 ms

    BOOST_TEST(w.config().level_bits() == trimmed);
    BOOST_TEST(w.config().num_bits() == 44);
    BOOST_TEST((w.alarm_upper_bound() == time_point::max()));
    BOOST_TEST((w.alarm_precision() == 1ms));
}

BOOST_AUTO_TEST_CASE(levels_that_reach_less_are_not_trimmed) {
    const wheel w(config{1ms, {10, 5}}, start);
    const std::vector<wheel::duration> durations{1024ms, 32768ms};

    BOOST_TEST(w.config().level_bits() == (std::vector<int>{10, 5}));
    BOOST_TEST((w.durations() == durations));
    BOOST_TEST((w.alarm_upper_bound() == start + 32768ms));
}

BOOST_AUTO_TEST_CASE(a_level_may_have_more_slots_than_a_wheel_would_keep) {
    for (const std::vector<int>& bits : {std::vector<int>{25}, {13, 12}, {1, 24}, {64}}) {
        wheel w(config{1ms, bits}, start);
        w.add(start + 5h, "5 h");
        w.add(start + 9h, "9 h");
        names fired;
        w.advance_clock(start + 9h, [&](auto alarm) { fired.push_back(alarm.value); });
        BOOST_TEST(fired == names{"5 h"});
        pawl_test::check_invariant(w);
    }
}

BOOST_AUTO_TEST_CASE(the_default_is_a_millisecond_on_the_whole_range) {
    const config c;
    BOOST_TEST((c.alarm_precision() == 1ms));
    BOOST_TEST(c.num_bits() == 64);
    BOOST_TEST((c.durations().back() == std::chrono::nanoseconds::max()));
    BOOST_TEST((pawl::timing_wheel_config<std::chrono::hours>{}.alarm_precision() == 1h));
}
