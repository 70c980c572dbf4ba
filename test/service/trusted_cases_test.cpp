// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Cases from other timer libraries that no other test here covers; doc/testing.md lists all cases
// by number. Time is manual, so a blocked loop is a clock that has jumped.

#define BOOST_TEST_MODULE trusted_cases
#include "service/service_support.hpp"
#include "support/seed.hpp"

#include <pawl/pawl.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <iterator>
#include <ostream>
#include <random>
#include <utility>
#include <vector>

namespace {

using namespace service_test;
using pawl::manual_clock;
using pawl::manual_timer;

static_assert(sizeof(pawl::steady_timer) <= 112);

struct fixture {
    void pass(manual_clock::duration d) {
        manual_clock::advance(context, d);
        poll(context);
    }

    asio::io_context context;
};

BOOST_FIXTURE_TEST_SUITE(trusted_cases, fixture)

// case 40
BOOST_AUTO_TEST_CASE(a_timer_may_be_destroyed_after_a_move_to_the_same_time) {
    outcome first;
    outcome second;
    {
        manual_timer t(context, 5s);
        t.async_wait(record(first));
        BOOST_TEST(t.expires_after(5s) == one);
        t.async_wait(record(second));
        BOOST_TEST(t.rearm_after(5s) == one);
        BOOST_TEST(t.rearm_at(t.expiry()) == one);
    }
    poll(context);
    BOOST_TEST(first.aborted());
    BOOST_TEST(second.aborted());
    pass(10s);
    BOOST_TEST(second.aborted());
}

// case 56
BOOST_AUTO_TEST_CASE(P1_of_100000_timers_none_is_early_however_the_loop_is_called) {
    std::mt19937_64 random(pawl_test::seed());
    std::deque<manual_timer> timers;
    std::size_t early = 0;
    std::size_t done = 0;
    for (int i = 0; i < 100'000; ++i) {
        manual_timer& t =
            timers.emplace_back(context, std::chrono::microseconds(random() % 10'000'000));
        t.async_wait([&](error_code ec) {
            ++done;
            early += !ec && manual_clock::now() < t.expiry() ? 1 : 0;
        });
    }
    while (done < timers.size())
        pass(std::chrono::microseconds(random() % 100'000));
    BOOST_TEST(early == none);
    BOOST_TEST(done == timers.size());
}

// case 57
BOOST_AUTO_TEST_CASE(after_a_blocked_loop_a_timer_is_late_once) {
    manual_timer t(context, 1s);
    std::vector<manual_clock::duration> late;
    const std::function<void(error_code)> again = [&](error_code ec) {
        BOOST_TEST(!ec);
        late.push_back(manual_clock::now() - t.expiry());
        t.expires_after(1s);
        t.async_wait(std::ref(again));
    };
    t.async_wait(std::ref(again));

    pass(3500ms); // blocked for 2.5 s: one call, not three
    BOOST_TEST((late == std::vector<manual_clock::duration>{2500ms}));
    pass(999ms);
    BOOST_TEST(late.size() == one);
    pass(1ms);
    BOOST_TEST((late == std::vector<manual_clock::duration>{2500ms, 0ms}));
}

// case 59
BOOST_AUTO_TEST_CASE(P6_a_timer_of_no_delay_that_starts_itself_anew_starves_nobody) {
    manual_timer t(context);
    int rounds = 0;
    const std::function<void(error_code)> again = [&](error_code) {
        ++rounds;
        t.expires_after(0s);
        t.async_wait(std::ref(again));
    };
    t.expires_after(0s);
    t.async_wait(std::ref(again));

    int posted = 0;
    for (int i = 1; i <= 100; ++i) {
        asio::post(context, [&] { ++posted; });
        context.poll_one();
        context.poll_one();
        context.poll_one();
        BOOST_TEST(posted == i);
    }
    BOOST_TEST(rounds >= 50);
    BOOST_TEST(t.cancel() == one);
}

// case 63
BOOST_AUTO_TEST_CASE(contexts_that_began_at_different_times_keep_the_same_time) {
    outcome old_one;
    outcome new_one;
    manual_timer first(context, 36h);
    first.async_wait(record(old_one));
    pass(24h);

    asio::io_context later;
    manual_timer second(later, 12h);
    second.async_wait(record(new_one));
    manual_timer third(context, 1h);
    third = manual_timer(later, 12h); // across contexts, and their start times
    outcome moved;
    third.async_wait(record(moved));

    const auto all_pass = [&](manual_clock::duration d) {
        pass(d);
        manual_clock::advance(later, 0s);
        poll(later);
    };
    all_pass(12h - 1ms);
    BOOST_TEST((old_one.pending() && new_one.pending() && moved.pending()));
    all_pass(1ms);
    BOOST_TEST(old_one.succeeded());
    BOOST_TEST(new_one.succeeded());
    BOOST_TEST(moved.succeeded());
}

// Its wait was handed over to an executor that does not run yet, and then moved into the future.
BOOST_AUTO_TEST_CASE(P9_what_is_cancelled_on_its_way_elsewhere_is_no_work_of_its_context) {
    asio::io_context io;
    asio::io_context elsewhere;
    pawl::steady_timer t(io, 1ms);
    outcome o;
    t.async_wait(asio::bind_executor(elsewhere, record(o)));
    io.run();
    BOOST_TEST(t.rearm_after(1h) == 1U);
    BOOST_TEST(t.cancel() == 1U);

    io.restart();
    io.run_for(10s); // returns at once
    BOOST_TEST(io.stopped());
    elsewhere.run();
    BOOST_TEST(o.aborted());
}

// case 75
BOOST_AUTO_TEST_CASE(P3_of_10000_timers_two_thirds_are_cancelled_and_the_rest_moved_once) {
    std::mt19937_64 random(pawl_test::seed());
    constexpr std::size_t count = 10'000;
    std::deque<manual_timer> timers;
    std::deque<outcome> outcomes(count);
    for (std::size_t i = 0; i < count; ++i)
        timers.emplace_back(context, std::chrono::milliseconds(1 + random() % 10'000))
            .async_wait(record(outcomes[i]));

    std::size_t cancelled = 0;
    std::size_t moved = 0;
    std::size_t gone = 0; // before they could be cancelled or moved
    for (std::size_t i = 0; i < count; ++i) {
        const bool cancel = i % 3 != 0;
        const std::size_t hit =
            cancel ? timers[i].cancel()
                   : timers[i].rearm_after(std::chrono::milliseconds(random() % 10'000));
        (hit == 0 ? gone : cancel ? cancelled : moved) += 1;
        if (i % 10 == 0)
            pass(5ms);
    }
    pass(20s);

    std::size_t succeeded = 0;
    std::size_t aborted = 0;
    for (const outcome& o : outcomes) {
        succeeded += o.succeeded() ? 1 : 0;
        aborted += o.aborted() ? 1 : 0;
    }
    BOOST_TEST(cancelled + moved + gone == count);
    BOOST_TEST(cancelled >= one);
    BOOST_TEST(moved >= one);
    BOOST_TEST(aborted == cancelled);
    BOOST_TEST(succeeded == moved + gone);
    BOOST_TEST(!busy(context));
}

BOOST_AUTO_TEST_SUITE_END()

// ---- handlers that run or stop their context ----------------------------------------------------------

struct way_to_run {
    int hint;
    unsigned per_turn;
};
std::ostream& operator<<(std::ostream& out, const way_to_run& w) {
    return out << "io_context(" << w.hint << "), " << w.per_turn << " per turn";
}
const std::vector<way_to_run> ways{{1, 1}, {1, 64}, {2, 1}, {2, 64}};

/// Timers of an hour, and what a function does to them before it runs a loop.
struct nest {
    explicit nest(const way_to_run& way) : context(way.hint) {
        pawl::make_timer_service(context, {.completions_per_turn = way.per_turn});
        for (int i = 0; i != 200; ++i)
            timers.emplace_back(context);
        for (auto& t : timers) {
            t.expires_after(1h);
            t.async_wait([](error_code) {});
        }
    }

    /// Whether a timer completes in a loop within a handler.
    bool completes(std::chrono::milliseconds delay) {
        pawl::steady_timer awaited(context, delay);
        bool done = false;
        awaited.async_wait([&](error_code ec) { done = !ec; });
        return runs_until(done);
    }
    bool runs_until(const bool& done) {
        while (!done && context.run_one_for(10s) != 0) {
        }
        return done;
    }

    asio::io_context context;
    std::vector<pawl::steady_timer> timers;
};

using preparation = void (*)(nest&);
const std::vector<std::pair<const char*, preparation>> preparations{
    {"nothing", [](nest&) {}},
    {"cancel one", [](nest& n) { n.timers[0].cancel(); }},
    {"cancel more than there may be units",
     [](nest& n) {
         for (auto& t : n.timers)
             t.cancel();
     }},
    {"destroy", [](nest& n) { n.timers.pop_back(); }},
    {"start",
     [](nest& n) {
         for (int i = 0; i != 3; ++i) {
             n.timers[0].expires_after(1s * (3 - i));
             n.timers[0].async_wait([](error_code) {});
         }
     }},
    {"move", [](nest& n) { n.timers[0].rearm_after(3s); }},
};

BOOST_DATA_TEST_CASE(P2_a_loop_in_a_handler_depends_on_nothing_that_the_handler_has_begun,
                     boost::unit_test::data::make(ways), way) {
    for (const auto& [name, prepare] : preparations) {
        BOOST_TEST_CONTEXT(name) {
            nest n(way);
            bool outer = false, inner = false;
            asio::post(n.context, [&] {
                prepare(n);
                outer = n.completes(3ms);
                n.context.stop();
            });
            asio::post(n.context, [&] { // in the loop of the first
                prepare(n);
                inner = n.completes(2ms);
            });
            n.context.run();
            BOOST_TEST(inner);
            BOOST_TEST(outer);
        }
    }
}

BOOST_DATA_TEST_CASE(P2_a_loop_in_the_handler_of_a_timer_runs_those_that_expired_with_it,
                     boost::unit_test::data::make(ways), way) {
    nest n(way);
    bool last = false, nested = false;
    for (std::size_t i = 0; i != 3; ++i)
        n.timers[i].expires_after(1ms);
    n.timers[0].async_wait([&](error_code) {
        nested = n.runs_until(last);
        n.context.stop();
    });
    n.timers[1].async_wait([](error_code) {});
    n.timers[2].async_wait([&](error_code) { last = true; });
    n.context.run();
    BOOST_TEST(nested);
}

BOOST_DATA_TEST_CASE(P6_a_handler_that_stops_its_context_is_the_last_of_its_turn,
                     boost::unit_test::data::make(ways), way) {
    nest n(way);
    std::size_t completed = 0;
    for (auto& t : n.timers) {
        t.expires_after(0s);
        t.async_wait([&](error_code) {
            if (++completed % 3 == 0)
                n.context.stop();
        });
    }
    for (std::size_t all = 0; all != n.timers.size(); all = completed) {
        n.context.restart();
        n.context.run();
        BOOST_REQUIRE(completed > all);
        BOOST_REQUIRE(completed <= all + 3);
    }
}

#ifdef __linux__
BOOST_AUTO_TEST_CASE(P8_timers_start_no_thread) {
    const auto threads = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                             std::filesystem::directory_iterator());
    };
    const auto before = threads();
    asio::io_context context;
    pawl::steady_timer t(context, 1ms);
    outcome o;
    t.async_wait(record(o));
    BOOST_TEST(threads() == before);
    run_to_end(context);
    BOOST_TEST(o.succeeded());
    BOOST_TEST(threads() == before);
}

#endif

} // namespace
