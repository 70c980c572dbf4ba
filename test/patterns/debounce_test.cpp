// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   pawl::debounce and pawl::throttle: which triggers a call answers, and when it comes. A random test
//   compares both with models that keep all triggers.

#define BOOST_TEST_MODULE debounce
#include <boost/test/unit_test.hpp>

#include <pawl/debounce.hpp>
#include <pawl/expire_all.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/timer_service.hpp>

#include "../support/asio_configuration.hpp"
#include "service/counted_new.hpp"
#include "support/scripted_clock.hpp"
#include "support/seed.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using pawl::manual_clock;
using function = std::function<void()>;
using debounce = pawl::basic_debounce<function, manual_clock>;
using throttle = pawl::basic_throttle<function, manual_clock>;
using options = pawl::debounce_options;

struct fixture {
    asio::io_context context;
    int calls = 0;
    function count = [this] { ++calls; };

    void poll() {
        context.restart();
        context.poll();
    }
    void pass(manual_clock::duration d) {
        manual_clock::advance(context, d);
        poll();
    }
};

// --- debounce -------------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(a_burst_of_triggers_makes_one_call_after_a_pause, fixture) {
    debounce d(context, 10s, count);
    for (int i = 0; i != 5; ++i) {
        BOOST_TEST(d());
        BOOST_TEST(d.pending());
        pass(9s);
    }
    BOOST_TEST(calls == 0);
    pass(1s - 1ns);
    BOOST_TEST(calls == 0);
    pass(1ns);
    BOOST_TEST(calls == 1);
    BOOST_TEST(!d.pending());
    pass(1h);
    BOOST_TEST(calls == 1);
    BOOST_TEST(context.stopped());
}

BOOST_FIXTURE_TEST_CASE(a_leading_call_comes_at_once_but_not_in_the_trigger, fixture) {
    debounce d(context, 10s, count, {.leading = true});
    BOOST_TEST(d());
    BOOST_TEST(calls == 0);
    poll();
    BOOST_TEST(calls == 1);
    pass(1h);
    BOOST_TEST(calls == 1); // nothing was left to answer
}

BOOST_FIXTURE_TEST_CASE(with_both_edges_the_second_call_answers_later_triggers, fixture) {
    debounce d(context, 10s, count, {.leading = true});
    d();
    pass(1s);
    BOOST_TEST(d());
    pass(10s - 1ns);
    BOOST_TEST(calls == 1);
    pass(1ns);
    BOOST_TEST(calls == 2);
}

BOOST_FIXTURE_TEST_CASE(a_leading_debounce_drops_the_other_triggers_of_a_burst, fixture) {
    debounce d(context, 10s, count, {.leading = true, .trailing = false});
    d();
    for (int i = 0; i != 5; ++i) {
        pass(9s);
        BOOST_TEST(!d());
    }
    BOOST_TEST(calls == 1);
    pass(10s); // the pause
    BOOST_TEST(calls == 1);
    BOOST_TEST(d());
    poll();
    BOOST_TEST(calls == 2);
}

BOOST_FIXTURE_TEST_CASE(triggers_that_never_pause_are_answered_within_the_maximum_wait, fixture) {
    debounce d(context, 10s, count, {.max_wait = 25s});
    for (int i = 0; i != 100; ++i) {
        d();
        pass(1s);
    }
    // At 25, and then 25 after the first trigger that was not answered: at 25, 50, 75, 100. The trigger
    // of each such second comes after the call.
    BOOST_TEST(calls == 4);
}

BOOST_FIXTURE_TEST_CASE(a_call_answers_all_triggers_before_it_begins, fixture) {
    debounce leading(context, 10s, count, {.leading = true});
    leading();
    leading(); // the call has not begun
    pass(1h);
    BOOST_TEST(calls == 1);

    debounce trailing(context, 10s, count);
    trailing();
    manual_clock::advance(context, 10s); // due, and has not begun
    trailing();
    poll();
    BOOST_TEST(calls == 1);
    pass(10s);
    BOOST_TEST(calls == 2);
}

BOOST_FIXTURE_TEST_CASE(a_trigger_does_not_move_a_call_beyond_its_maximum_wait, fixture) {
    debounce d(context, 10s, count, {.max_wait = 10s});
    d();
    manual_clock::advance(context, 10s);
    d();
    poll();
    BOOST_TEST(calls == 1);
}

BOOST_FIXTURE_TEST_CASE(a_cancelled_call_does_not_come, fixture) {
    debounce d(context, 10s, count);
    d();
    BOOST_TEST(d.cancel());
    BOOST_TEST(!d.cancel());
    BOOST_TEST(!d.pending());
    pass(1h);
    BOOST_TEST(calls == 0);
    BOOST_TEST(context.stopped());
    d();
    pass(10s);
    BOOST_TEST(calls == 1);
}

BOOST_FIXTURE_TEST_CASE(a_flushed_call_comes_at_once_and_later_triggers_do_not_delay_it, fixture) {
    debounce d(context, 10s, count);
    BOOST_TEST(!d.flush());
    d();
    BOOST_TEST(d.flush());
    d();
    BOOST_TEST(calls == 0); // never inside
    poll();
    BOOST_TEST(calls == 1);
    pass(1h);
    BOOST_TEST(calls == 1);
}

BOOST_FIXTURE_TEST_CASE(triggers_in_the_function_count, fixture) {
    std::optional<debounce> d;
    d.emplace(context, 10s, [&] {
        if (++calls < 3)
            (*d)();
    });
    (*d)();
    pass(10s);
    BOOST_TEST(calls == 1);
    pass(10s);
    BOOST_TEST(calls == 2);
    pass(10s);
    BOOST_TEST(calls == 3);
    pass(1h);
    BOOST_TEST(calls == 3);
}

BOOST_FIXTURE_TEST_CASE(a_function_may_throw_and_is_called_again, fixture) {
    debounce d(context, 10s, [&] {
        ++calls;
        throw std::runtime_error("function");
    });
    for (int i = 1; i != 4; ++i) {
        d();
        manual_clock::advance(context, 10s);
        BOOST_CHECK_THROW(poll(), std::runtime_error);
        BOOST_TEST(calls == i);
    }
}

BOOST_FIXTURE_TEST_CASE(a_debounce_may_go_in_its_function, fixture) {
    auto d = std::make_unique<debounce*>(nullptr);
    const auto text = std::make_shared<std::string>("still here");
    *d = new debounce(context, 10s, [&, text] {
        delete *d;
        calls += static_cast<int>(text->size());
    });
    (**d)();
    pass(10s);
    BOOST_TEST(calls == 10);
}

BOOST_FIXTURE_TEST_CASE(an_owed_call_does_not_come_when_the_debounce_is_gone, fixture) {
    {
        debounce d(context, 10s, count);
        d();
        manual_clock::advance(context, 10s);
    }
    poll();
    BOOST_TEST(calls == 0);
    BOOST_TEST(context.stopped());
}

BOOST_AUTO_TEST_CASE(a_debounce_may_outlive_its_context) {
    auto context = std::make_unique<asio::io_context>();
    int calls = 0;
    debounce d(*context, 10s, [&] { ++calls; });
    throttle t(*context, 10s, [&] { ++calls; });
    d();
    t();
    context.reset();
    BOOST_TEST(!d());
    BOOST_TEST(!d.cancel());
    BOOST_TEST(!t.cancel());
    BOOST_TEST(calls == 0);
}

BOOST_FIXTURE_TEST_CASE(a_debounce_that_moves_takes_the_owed_call_along, fixture) {
    debounce d(context, 10s, count);
    d();
    debounce e(std::move(d));
    e();
    pass(10s);
    BOOST_TEST(calls == 1);
    throttle t(context, 10s, count);
    t();
    poll();
    throttle u(std::move(t));
    u();
    poll();
    BOOST_TEST(calls == 2); // the interval moved, too
    pass(10s);
    BOOST_TEST(calls == 3);
}

BOOST_FIXTURE_TEST_CASE(a_refused_trigger_has_not_happened, fixture) {
    pawl::make_timer_service<manual_clock>(context, {.max_pending = 1});
    debounce first(context, 10s, count);
    debounce second(context, 10s, count, {.leading = true});
    throttle third(context, 10s, count);
    BOOST_TEST(first());
    BOOST_TEST(!second());
    BOOST_TEST(!third());
    BOOST_TEST(first.cancel());
    BOOST_TEST(second()); // still the first of a burst
    poll();
    BOOST_TEST(calls == 1);
    BOOST_TEST(third());
    poll();
    BOOST_TEST(calls == 2);
}

BOOST_FIXTURE_TEST_CASE(the_function_runs_on_its_executor, fixture) {
    asio::io_context other;
    auto bound = asio::bind_executor(other.get_executor(), count);
    pawl::basic_debounce<decltype(bound), manual_clock> d(context, 10s, bound);
    pawl::basic_throttle<decltype(bound), manual_clock> t(context, 10s, bound);
    d();
    t();
    pass(10s);
    BOOST_TEST(calls == 0);
    other.poll();
    BOOST_TEST(calls == 2);
}

BOOST_FIXTURE_TEST_CASE(a_trigger_does_not_allocate, fixture) {
    debounce d(context, 10s, count, {.leading = true, .max_wait = 20s});
    throttle t(context, 10s, count);
    for (int i = 0; i != 2; ++i) { // the second time
        const std::size_t before = counted_new::calls;
        for (int n = 0; n != 100; ++n) {
            d();
            t();
            pass(1s);
        }
        if (i == 1)
            BOOST_TEST(counted_new::calls - before == 0u);
        pass(1h);
    }
    BOOST_TEST(calls > 20);
}

BOOST_FIXTURE_TEST_CASE(bad_arguments_are_refused_with_advice, fixture) {
    const auto refused = [&](auto make) {
        try {
            make();
        } catch (const std::invalid_argument& e) {
            return std::string(e.what()).starts_with("pawl: ");
        }
        return false;
    };
    const auto make = [&](manual_clock::duration d, options o = {}) {
        return [this, d, o] { debounce(context, d, count, o); };
    };
    BOOST_TEST(refused(make(0s)));
    BOOST_TEST(refused(make(-1s)));
    BOOST_TEST(refused(make(1s, {.trailing = false})));
    BOOST_TEST(refused(make(1s, {.max_wait = 1s - 1ns})));
    BOOST_TEST(refused(make(1s, {.max_wait = 0s})));
    BOOST_TEST(refused([&] { throttle(context, 0s, count); }));
    BOOST_TEST(refused([&] { throttle(context, -1s, count); }));
    BOOST_CHECK_NO_THROW(make(1s, {.max_wait = 1s})());
}

BOOST_FIXTURE_TEST_CASE(a_delay_saturates, fixture) {
    debounce d(context, manual_clock::duration::max(), count);
    pass(1s);
    BOOST_TEST(d());
    pass(1h);
    BOOST_TEST(calls == 0);
    d.cancel();
}

// --- throttle -------------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(a_throttle_calls_at_once_and_then_at_the_end_of_the_interval, fixture) {
    throttle t(context, 10s, count);
    BOOST_TEST(t());
    BOOST_TEST(calls == 0);
    poll();
    BOOST_TEST(calls == 1);
    BOOST_TEST(context.stopped()); // it waits for nothing
    pass(1s);
    t();
    t();
    pass(9s - 1ns);
    BOOST_TEST(calls == 1);
    pass(1ns);
    BOOST_TEST(calls == 2);
    pass(1h);
    BOOST_TEST(calls == 2);
    t();
    poll();
    BOOST_TEST(calls == 3);
}

BOOST_FIXTURE_TEST_CASE(throttled_calls_are_an_interval_apart_also_after_a_late_one, fixture) {
    std::vector<manual_clock::time_point> at;
    throttle t(context, 10s, [&] { at.push_back(manual_clock::now()); });
    t();
    manual_clock::advance(context, 7s); // the loop is held up
    poll();
    t();
    pass(10s - 1ns);
    BOOST_TEST(at.size() == 1u);
    pass(1ns);
    BOOST_TEST(at.size() == 2u);
}

BOOST_FIXTURE_TEST_CASE(a_throttled_function_may_throw_trigger_and_destroy, fixture) {
    std::optional<throttle> t;
    t.emplace(context, 10s, [&] {
        if (++calls == 1) {
            (*t)();
            throw std::runtime_error("function");
        }
        t.reset();
    });
    (*t)();
    BOOST_CHECK_THROW(poll(), std::runtime_error);
    pass(10s - 1ns);
    BOOST_TEST(calls == 1);
    pass(1ns);
    BOOST_TEST(calls == 2);
    BOOST_TEST(!t.has_value());
}

BOOST_FIXTURE_TEST_CASE(a_cancelled_throttle_keeps_its_interval, fixture) {
    throttle t(context, 10s, count);
    t();
    poll();
    t();
    BOOST_TEST(t.pending());
    BOOST_TEST(t.cancel());
    pass(5s);
    t();
    poll();
    BOOST_TEST(calls == 1);
    pass(5s);
    BOOST_TEST(calls == 2);
}

// As waits on such a clock are: later, never earlier.
BOOST_FIXTURE_TEST_CASE(on_a_clock_that_is_set_back_an_owed_call_comes_by_its_new_time, fixture) {
    using wall = pawl_test::scripted_clock<1>;
    const auto set = [&](wall::duration t) {
        wall::set(t);
        pass(0s); // every clock is read
    };
    int throttled = 0;
    const function count_throttled = [&] { ++throttled; };
    set(10h);
    pawl::basic_debounce<function, wall> d(context, 10s, count);
    pawl::basic_throttle<function, wall> t(context, 10s, count_throttled);
    BOOST_TEST((d() && t()));
    set(10h);
    BOOST_TEST((calls == 0 && throttled == 1));
    BOOST_TEST(t());

    set(9h);
    BOOST_TEST((d() && t()));
    set(9h + 9s);
    BOOST_TEST((calls == 0 && throttled == 1));
    set(9h + 10s);
    BOOST_TEST((calls == 1 && throttled == 1)); // a new trigger moves the call of a debounce only
    set(10h + 9s);
    BOOST_TEST((calls == 1 && throttled == 1));
    set(10h + 10s);
    BOOST_TEST((calls == 1 && throttled == 2));
    BOOST_TEST(context.stopped());
}

// --- models ---------------------------------------------------------------------------------------

/// Keeps the triggers that no call has answered.
struct model {
    manual_clock::duration delay;
    options o;
    struct trigger {
        manual_clock::time_point at;
        bool begins_a_burst;
    };
    std::vector<trigger> unanswered;
    std::optional<manual_clock::time_point> last;
    manual_clock::time_point flushed; ///< max() if it is not

    void triggered() {
        const auto now = manual_clock::now();
        const bool begins = !last || now - *last >= delay;
        last = now;
        if ((begins && o.leading) || o.trailing || !unanswered.empty())
            unanswered.push_back({now, begins});
    }
    [[nodiscard]] bool owed() const { return !unanswered.empty(); }
    [[nodiscard]] manual_clock::time_point due() const {
        manual_clock::time_point at = std::min(
            *last + delay, o.max_wait == o.max_wait.max() ? manual_clock::time_point::max()
                                                          : unanswered.front().at + o.max_wait);
        for (const trigger& t : unanswered)
            if (t.begins_a_burst && o.leading)
                at = std::min(at, t.at);
        return std::min(at, flushed);
    }
    /// @return whether a call comes now
    bool polled() {
        if (!owed() || due() > manual_clock::now())
            return false;
        answered();
        return true;
    }
    void answered() {
        unanswered.clear();
        flushed = manual_clock::time_point::max();
    }
};

BOOST_AUTO_TEST_CASE(debounce_and_throttle_do_what_their_models_do) {
    std::mt19937_64 random(pawl_test::seed());
    const auto below = [&](std::uint64_t n) { return random() % n; };
    const std::uint64_t rounds = pawl_test::steps(400);
    for (std::uint64_t round = 0; round != rounds; ++round) {
        asio::io_context context;
        model m{manual_clock::duration(1 + below(5)), {}, {}, {}, manual_clock::time_point::max()};
        m.o.leading = below(2) == 0;
        m.o.trailing = !m.o.leading || below(3) != 0;
        if (below(2) == 0)
            m.o.max_wait = m.delay + manual_clock::duration(below(8));
        int calls = 0;
        int throttled = 0;
        debounce d(
            context, m.delay, [&] { ++calls; }, m.o);
        throttle t(context, m.delay, [&] { ++throttled; });
        std::optional<manual_clock::time_point> last_throttled;
        bool throttle_owed = false;
        int expected = 0;
        int expected_throttled = 0;
        for (int step = 0; step != 200; ++step) {
            switch (below(8)) {
            case 0:
            case 1:
            case 2:
                m.triggered();
                BOOST_REQUIRE(d() == m.owed());
                BOOST_REQUIRE(t());
                throttle_owed = true;
                break;
            case 3:
                BOOST_REQUIRE(d.cancel() == m.owed());
                m.answered();
                BOOST_REQUIRE(t.cancel() == throttle_owed);
                throttle_owed = false;
                break;
            case 4:
                BOOST_REQUIRE(d.flush() == m.owed());
                if (m.owed())
                    m.flushed = std::min(m.due(), manual_clock::now());
                break;
            default:
                manual_clock::advance(context, manual_clock::duration(below(4)));
                if (below(4) == 0) // due, and not begun
                    break;
                context.restart();
                context.poll();
                expected += m.polled();
                if (throttle_owed &&
                    (!last_throttled || manual_clock::now() - *last_throttled >= m.delay)) {
                    throttle_owed = false;
                    last_throttled = manual_clock::now();
                    ++expected_throttled;
                }
            }
            BOOST_REQUIRE(calls == expected);
            BOOST_REQUIRE(throttled == expected_throttled);
            BOOST_REQUIRE(d.pending() == m.owed());
            BOOST_REQUIRE(t.pending() == throttle_owed);
        }
    }
}

// --- threads --------------------------------------------------------------------------------------

// Allowed: any number of calls from 1 on. On a strand no call overlaps another, or a trigger.
PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(triggers_on_a_strand_and_cancels_anywhere_do_not_race) {
    asio::thread_pool pool(3);
    const auto strand = asio::make_strand(pool);
    int calls = 0; // on the strand
    auto called = asio::bind_executor(strand, [&] { ++calls; });
    pawl::debounce d(asio::any_io_executor(strand), 50us, called, {.max_wait = 200us});
    pawl::throttle t(asio::any_io_executor(strand), 50us, called);
    std::atomic<bool> over{false};
    std::thread other([&] {
        while (!over.load()) {
            d.cancel();
            t.cancel();
            static_cast<void>(d.pending());
            std::this_thread::yield();
        }
    });
    const auto steps = pawl_test::steps(4000);
    for (std::uint64_t i = 0; i != steps; ++i)
        asio::post(strand, [&] {
            d();
            t();
        });
    asio::post(strand, [&] { over = true; });
    other.join();
    asio::post(strand, [&] {
        d();
        t();
    });
    pool.join();
    BOOST_TEST(calls >= 1);
}

} // namespace
