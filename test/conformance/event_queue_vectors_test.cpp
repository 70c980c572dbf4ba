// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The stories of luamockit, replayed on event_queue and on a model of it. If Pawl's answer differs,
// both answers are listed below. Steps that are sentences are operations like the others.

#include <pawl/event_queue.hpp>
#include <pawl/manual_clock.hpp>

#include "../support/event_queue_lockstep.hpp"
#include "../support/vectors.hpp"

#define BOOST_TEST_MODULE event_queue_vectors
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

using pawl_test::bad_vector;
using pawl_test::difference;
using pawl_test::fields;
using pawl_test::test_vector;
using pawl_test::json::array;
using pawl_test::json::object;
using pawl_test::json::value;

namespace {

using clock_type = pawl::manual_clock;
using std::chrono::milliseconds;

constexpr const char* no_mfd = "disarm() emits the last event at once, and no event before it";
constexpr const char* at_once = "destroy() does not wait for the end of the period";

constexpr difference differences[]{
    {"disarm_then_two_marked_events", 5, "4", "3", no_mfd},
    {"mark_copied_per_event", 5, "5", "4", no_mfd},
    {"destroy_skips_pending", 3, R"({"blocked_ms":30})", R"({"blocked_ms":0})", at_once},
    {"destroy_latency_is_rest_of_interval", 2, R"({"blocked_ms":1400})", R"({"blocked_ms":0})",
     at_once},
};

/// Functions do nothing of their own, and no call is added.
struct no_choices {
    static std::uint64_t below(std::uint64_t bound) { return bound - 1; }
};

/// The library of the original, on a clock that only steps move.
struct library {
    using lockstep = pawl_test::event_queue_lockstep<no_choices>;
    using one = lockstep::one;

    explicit library(const test_vector& story) {
        fields config(story.config);
        config.states("clock", {"virtual ms"});
        config.end();
    }

    static const pawl_test::operations<library> operations;

    void invariant() { both.check(); }

    // --- time ----------------------------------------------------------------------------------

    std::int64_t virtual_ms() const {
        return std::chrono::floor<milliseconds>(clock_type::now() - begin).count();
    }
    value blocked_since(std::int64_t ms) const { return object{{"blocked_ms", virtual_ms() - ms}}; }
    static milliseconds ms_of(fields& step) { return milliseconds(step.get<std::int64_t>("ms")); }

    /// Moves the clock by `d` at most, from deadline to deadline, until an event is there if `waits`.
    value pass(milliseconds d, bool waits = false) {
        const auto end = clock_type::now() + d;
        for (both.check(); clock_type::now() != end && !(waits && inqueue() != 0); both.check())
            both.pass(std::min(both.until_next(), end - clock_type::now()));
        return nullptr;
    }
    value sleep(fields& step) { return pass(ms_of(step)); }
    /// Returns the time that it took until an event was present or the limit was reached.
    value wait(fields& step) {
        const std::int64_t began = virtual_ms();
        const bool limited = step.has("ms");
        pass(limited ? ms_of(step) : std::chrono::hours(24 * 365), true);
        if (const bool is_there = both.wait_for(milliseconds(0)); !limited && !is_there)
            return "error:nothing would end it";
        if (!limited)
            both.actual().wait();
        return blocked_since(began);
    }

    // --- timers --------------------------------------------------------------------------------

    value keep(one* started, const std::string& id = {}, bool throws = false) {
        if (started == nullptr)
            return "error:invalid";
        names.push_back(id);
        started->throws = throws;
        return nullptr;
    }
    value oneoff(fields& step) {
        return keep(both.once(ms_of(step)), step.text("id"), step.flag("throws"));
    }
    value interval(fields& step) {
        return keep(both.every(ms_of(step)), step.text("id"), step.flag("throws"));
    }
    one& named(fields& step) {
        const auto at = std::find(names.begin(), names.end(), step.text("id"));
        if (at == names.end())
            throw bad_vector("there is no timer '" + step.text("id") + "'");
        return both.timers()[static_cast<std::size_t>(at - names.begin())];
    }
    value live(fields&) {
        array alive;
        for (const one& t : both.timers())
            if (!t.handle.ended())
                alive.emplace_back(names[t.as_model.id]);
        return alive;
    }

    value disarm(fields& step) { return both.disarm(named(step)); }
    /// Returns the time that it took. Pawl's needs none, whatever the limit.
    value destroy_wait(fields& step) {
        const std::int64_t began = virtual_ms();
        if (step.has("ms"))
            both.destroy(named(step), ms_of(step));
        else
            both.destroy(named(step));
        return blocked_since(began);
    }
    /// Without `wait` the original only disarms the timer: events in the queue are handled. With a
    /// limit it waits that long.
    value destroy(fields& step) {
        return step.flag("wait") || step.has("ms") ? destroy_wait(step) : disarm(step);
    }

    // --- events --------------------------------------------------------------------------------

    std::size_t inqueue() { return both.actual().inqueue(); }

    /// The names of the timers whose functions ran; "error" behind one that threw.
    value process_events(fields& step) {
        const auto count =
            step.has("most") ? both.process(step.get<std::size_t>("most")) : both.process();
        array ran;
        for (const std::size_t id : both.handled())
            ran.emplace_back(names[id]);
        if (!count)
            ran.emplace_back("error");
        return ran;
    }

    // --- sentences -----------------------------------------------------------------------------

    value four_one_throws(fields&) {
        for (int i = 0; i != 4; ++i)
            keep(both.once(milliseconds(1)), "", i == 0);
        return pass(milliseconds(1));
    }
    value process_until_empty(fields&) {
        const bool is_reported = !both.process();
        return is_reported && both.process() == 3 ? "the other 3 run; the error is reported"
                                                  : "they do not";
    }

    /// In real time; the original uses no CPU time while it waits.
    value wait_60(fields&) {
        const auto start = std::chrono::steady_clock::now();
        if (both.wait_for(milliseconds(60)))
            return "an event is there";
        if (std::chrono::steady_clock::now() - start < milliseconds(60))
            return "returns too early";
        return "returns after 60 ms, not at once";
    }

    value destroy_sentence(fields&) {
        both.destroy(both.timers().back());
        return inqueue() == 0 ? "ok at once" : "something is left";
    }

    /// In real time, with a thread that runs the timers; no model can follow.
    value twenty_polled(fields&) {
        boost::asio::io_context io;
        auto work = boost::asio::make_work_guard(io);
        std::jthread runner([&] { io.run(); });
        pawl::event_queue events(io);
        int ran = 0;
        for (int i = 0; i != 20; ++i)
            events.once(milliseconds(3), [&ran] { ++ran; });
        std::size_t handled = 0;
        while (handled != 20)
            handled += events.process_events();
        work.reset();
        if (ran != 20 || events.timers() != 0)
            return object{{"ran", ran}};
        return "no race report";
    }

    value oneoff_beyond_32_bits(fields&) {
        const std::chrono::milliseconds d((std::int64_t{1} << 32) + 5);
        keep(both.once(d));
        pass(d - milliseconds(1), true);
        if (inqueue() != 0)
            return object{{"too early, after ms", virtual_ms()}};
        pass(milliseconds(1));
        return *both.process() == 1 ? "error or honoured, never 5 ms" : "never";
    }

    const clock_type::time_point begin = clock_type::now();
    no_choices none;
    lockstep both{none, {}, true};
    std::vector<std::string> names; // of both.timers()
};

/// The operations of another sentence.
auto as(const char* sentence) {
    return [sentence](library& l, fields&) {
        const object step{{"op", sentence}};
        fields inside(step);
        return pawl_test::perform(l, inside);
    };
}

const pawl_test::operations<library> library::operations{
    {"oneoff", &library::oneoff},
    {"interval", &library::interval},
    {"sleep", &library::sleep},
    {"wait", &library::wait},
    {"pending", [](library& l, fields&) { return l.both.actual().pending(); }},
    {"inqueue", [](library& l, fields&) { return l.inqueue(); }},
    {"process_events", &library::process_events},
    {"live", &library::live},
    {"time", [](library& l, fields&) { return l.virtual_ms(); }},
    {"disarm", &library::disarm},
    {"destroy", &library::destroy},
    {"destroy_wait", &library::destroy_wait},
    {"oneoff {id} {ms}", &library::oneoff},
    {"interval {id} {ms}", &library::interval},
    {"sleep {ms}", &library::sleep},
    {"wait {ms}", &library::wait},
    {"disarm {id}", &library::disarm},
    {"destroy {id}", &library::destroy},
    {"destroy_wait {id}", &library::destroy_wait},
    {"4 one-offs, the first handler throws", &library::four_one_throws},
    {"process_events until empty", &library::process_until_empty},
    {"three one-offs, drain them",
     as("oneoff a 1, oneoff b 1, oneoff c 1, sleep 1, process_events")},
    {"wait(60)", &library::wait_60},
    {"interval, disarm without wait, drain (reaped)",
     as("interval a 10, sleep 35, disarm a, process_events")},
    {"destroy(wait)", &library::destroy_sentence},
    {"20 one-offs of 3 ms, poll process_events in a tight loop", &library::twenty_polled},
    {"oneoff(-1)",
     [](library& l, fields&) { return l.both.once(milliseconds(-1)) ? "accepted" : "error"; }},
    {"oneoff(2^32+5)", &library::oneoff_beyond_32_bits},
};

const std::vector<test_vector> stories = pawl_test::stories_about("luamockit");

} // namespace

BOOST_DATA_TEST_CASE(every_story_goes_as_the_original_tells_it_but_for_the_listed_differences,
                     boost::unit_test::data::make(stories), story) {
    for (const std::string& complaint : pawl_test::replay<library>(story, differences))
        BOOST_ERROR(complaint);
}

BOOST_AUTO_TEST_CASE(every_difference_and_every_operation_belongs_to_a_story) {
    if (pawl_test::vectors_are_ours())
        BOOST_TEST(pawl_test::not_in_stories<library>(stories, differences) == "");
}
