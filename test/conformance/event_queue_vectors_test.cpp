// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The stories of luamockit, replayed on event_queue. If Pawl's answer differs, both answers are
// listed below. Steps that are sentences are operations like the others.

#include <pawl/event_queue.hpp>
#include <pawl/manual_clock.hpp>

#include "../support/vectors.hpp"

#define BOOST_TEST_MODULE event_queue_vectors
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using boost::test_tools::per_element;
using pawl_test::bad_vector;
using pawl_test::difference;
using pawl_test::fields;
using pawl_test::test_vector;
using pawl_test::json::array;
using pawl_test::json::object;
using pawl_test::json::value;

namespace {

using clock_type = pawl::manual_clock;
using queue = pawl::basic_event_queue<clock_type>;
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

/// The exception of a function that is told to throw.
struct thrown : std::exception {};

/// The library of the original, on a clock that only steps move.
class library {
public:
    explicit library(const test_vector& story) {
        fields config(story.config);
        config.states("clock", {"virtual ms"});
        config.end();
    }

    static const pawl_test::operations<library> operations;

    void invariant() {
        BOOST_TEST(events_.pending() <= events_.inqueue());
        BOOST_TEST(events_.timers() == alive().size());
    }

private:
    struct named_timer {
        std::string id;
        queue::timer handle;
    };

    // --- time ----------------------------------------------------------------------------------

    std::int64_t virtual_ms() const {
        return std::chrono::floor<milliseconds>(clock_type::now() - begin_).count();
    }

    /// Moves the clock to `t` at most, from deadline to deadline, until `enough` holds.
    template <class Enough>
    void pass(clock_type::time_point t, Enough enough) {
        // A timer of its own stops the clock at `t`.
        pawl::basic_waitable_timer<clock_type, queue::traits_type, boost::asio::any_io_executor>
            end(timers_executor(), t);
        bool at_end = false;
        end.async_wait([&](boost::system::error_code ec) { at_end = !ec; });
        (void)events_.inqueue();
        while (!enough() && !at_end) {
            clock_type::advance_to_next(events_.timer_context());
            (void)events_.inqueue(); // lets the queue check its timers
        }
        end.cancel();
        (void)events_.inqueue();
    }
    boost::asio::any_io_executor timers_executor() {
        return static_cast<boost::asio::io_context&>(events_.timer_context()).get_executor();
    }
    clock_type::time_point from_now(std::int64_t ms) const {
        return clock_type::now() + milliseconds(ms);
    }

    static std::int64_t duration_of(fields& step, const char* name) {
        return step.get<std::int64_t>(name);
    }

    // --- operations ----------------------------------------------------------------------------

    queue::timer& named(fields& step) {
        const std::string id = step.text("id");
        for (named_timer& t : timers_)
            if (t.id == id)
                return t.handle;
        throw bad_vector("there is no timer '" + id + "'");
    }
    std::vector<std::string> alive() const {
        std::vector<std::string> ids;
        for (const named_timer& t : timers_)
            if (!t.handle.ended())
                ids.push_back(t.id);
        return ids;
    }

    template <class Make>
    value make(fields& step, Make make) {
        const std::string id = step.text("id");
        const bool fails = step.flag("throws");
        const milliseconds ms(duration_of(step, "ms"));
        try {
            timers_.push_back({id, make(ms, [this, id, fails] {
                                   handled_.emplace_back(id);
                                   if (fails)
                                       throw thrown();
                               })});
        } catch (const std::invalid_argument&) {
            return "error:invalid";
        }
        return nullptr;
    }

    value oneoff(fields& step) {
        return make(step, [this](auto d, auto f) { return events_.once(d, f); });
    }
    value interval(fields& step) {
        return make(step, [this](auto d, auto f) { return events_.every(d, f); });
    }

    value sleep(fields& step) {
        pass(from_now(duration_of(step, "ms")), [] { return false; });
        return nullptr;
    }

    /// Returns the time that it took until an event was present or the limit was reached.
    value wait(fields& step) {
        const std::int64_t began = virtual_ms();
        const auto there = [this] { return events_.inqueue() != 0; };
        if (step.has("ms")) {
            pass(from_now(duration_of(step, "ms")), there);
        } else {
            while (!there()) {
                if (clock_type::advance_to_next(events_.timer_context()) ==
                        clock_type::duration::zero() &&
                    !there())
                    return "error:nothing would end it";
            }
            events_.wait();
        }
        if (events_.wait_for(milliseconds(0)) != there())
            return "error:wait_for() and inqueue() differ";
        return object{{"blocked_ms", virtual_ms() - began}};
    }

    value pending(fields&) { return events_.pending(); }
    value inqueue(fields&) { return events_.inqueue(); }
    value live(fields&) { return pawl_test::json::value_from(alive()); }
    value time(fields&) { return virtual_ms(); }

    /// The names of the timers whose functions ran; "error" behind one that threw.
    value process_events(fields& step) {
        handled_.clear();
        std::size_t count = 0;
        std::size_t said = 0;
        try {
            said = step.has("most") ? events_.process_events(step.get<std::size_t>("most"))
                                    : events_.process_events();
            count = handled_.size();
        } catch (const thrown&) {
            handled_.emplace_back("error");
        }
        if (said != count)
            return "error:it counts others";
        return handled_;
    }

    value disarm(fields& step) { return named(step).disarm(); }

    /// Returns the time that it took. Pawl's needs none, whatever the limit.
    value destroy_wait(fields& step) {
        queue::timer& t = named(step);
        const std::int64_t began = virtual_ms();
        t.destroy();
        if (!t.ended())
            return "error:it lives";
        return object{{"blocked_ms", virtual_ms() - began}};
    }
    /// Without `wait` the original only disarms the timer: events in the queue are handled. With a
    /// limit it waits that long.
    value destroy(fields& step) {
        if (step.flag("wait"))
            return destroy_wait(step);
        queue::timer& t = named(step);
        if (!step.has("ms"))
            return t.disarm();
        const std::int64_t began = virtual_ms();
        const bool done = t.destroy_for(milliseconds(duration_of(step, "ms")));
        if (!done || !t.ended())
            return "error:it lives";
        return object{{"blocked_ms", virtual_ms() - began}};
    }

    // --- sentences -----------------------------------------------------------------------------

    void keep(const queue::timer& unnamed) { timers_.push_back({"", unnamed}); }

    value four_one_throws(fields&) {
        for (int i = 0; i != 4; ++i)
            keep(events_.once(milliseconds(1), [this, i] {
                handled_.emplace_back(i);
                if (i == 0)
                    throw thrown();
            }));
        pass(from_now(1), [] { return false; });
        return nullptr;
    }
    value process_until_empty(fields&) {
        int errors = 0;
        while (events_.inqueue() != 0) {
            try {
                events_.process_events();
            } catch (const thrown&) {
                ++errors;
            }
        }
        if (errors != 1 || handled_ != array{0, 1, 2, 3})
            return object{{"errors", errors}, {"handled", handled_}};
        return "the other 3 run; the error is reported";
    }

    value three_drained(fields&) {
        for (int i = 0; i != 3; ++i)
            keep(events_.once(milliseconds(1), [] {}));
        pass(from_now(1), [] { return false; });
        return events_.process_events();
    }
    /// In real time; the original uses no CPU time while it waits.
    value wait_60(fields&) {
        const auto begin = std::chrono::steady_clock::now();
        if (events_.wait_for(milliseconds(60)))
            return "an event is there";
        if (std::chrono::steady_clock::now() - begin < milliseconds(60))
            return "returns too early";
        return "returns after 60 ms, not at once";
    }

    value disarmed_and_drained(fields&) {
        keep(events_.every(milliseconds(10), [] {}));
        pass(from_now(35), [] { return false; });
        if (!timers_.back().handle.disarm())
            return "error:it was not armed";
        if (events_.process_events() != 3 || !timers_.back().handle.ended())
            return "error:it is not drained";
        return nullptr;
    }
    value destroy_sentence(fields&) {
        timers_.back().handle.destroy();
        return events_.inqueue() == 0 ? "ok at once" : "something is left";
    }

    /// In real time, with a thread that runs the timers.
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

    value oneoff_of_minus_one(fields&) {
        try {
            events_.once(milliseconds(-1), [] {});
        } catch (const std::invalid_argument&) {
            return "error";
        }
        return "accepted";
    }
    value oneoff_beyond_32_bits(fields&) {
        const std::int64_t ms = (std::int64_t{1} << 32) + 5;
        keep(events_.once(milliseconds(ms), [] {}));
        pass(from_now(ms - 1), [this] { return events_.inqueue() != 0; });
        if (events_.inqueue() != 0)
            return object{{"too early, after ms", virtual_ms()}};
        pass(from_now(1), [] { return false; });
        if (events_.process_events() != 1)
            return "never";
        return "error or honoured, never 5 ms";
    }

    const clock_type::time_point begin_ = clock_type::now();
    queue events_;
    std::vector<named_timer> timers_;
    array handled_;
};

const pawl_test::operations<library> library::operations{
    {"oneoff", &library::oneoff},
    {"interval", &library::interval},
    {"sleep", &library::sleep},
    {"wait", &library::wait},
    {"pending", &library::pending},
    {"inqueue", &library::inqueue},
    {"process_events", &library::process_events},
    {"live", &library::live},
    {"time", &library::time},
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
    {"three one-offs, drain them", &library::three_drained},
    {"wait(60)", &library::wait_60},
    {"interval, disarm without wait, drain (reaped)", &library::disarmed_and_drained},
    {"destroy(wait)", &library::destroy_sentence},
    {"20 one-offs of 3 ms, poll process_events in a tight loop", &library::twenty_polled},
    {"oneoff(-1)", &library::oneoff_of_minus_one},
    {"oneoff(2^32+5)", &library::oneoff_beyond_32_bits},
};

const std::vector<test_vector> stories = pawl_test::load_vectors("luamockit");

} // namespace

BOOST_DATA_TEST_CASE(every_story_goes_as_the_original_tells_it_but_for_the_listed_differences,
                     boost::unit_test::data::make(stories), story) {
    for (const std::string& complaint : pawl_test::replay<library>(story, differences))
        BOOST_ERROR(complaint);
}

BOOST_AUTO_TEST_CASE(every_difference_and_every_operation_belongs_to_a_story) {
    const std::vector<std::string> none;
    if (pawl_test::vectors_are_ours()) {
        BOOST_TEST(pawl_test::untold(stories, differences) == none, per_element());
        BOOST_TEST(pawl_test::unused<library>(stories) == none, per_element());
    }
}
