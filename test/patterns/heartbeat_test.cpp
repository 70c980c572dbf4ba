// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   pawl::heartbeat: when it sends, when it fails, and when it does neither. A random test compares it with
//   a model that knows the time of each byte.

#define BOOST_TEST_MODULE heartbeat
#include <boost/test/unit_test.hpp>

#include <pawl/expire_all.hpp>
#include <pawl/heartbeat.hpp>
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
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using pawl::manual_clock;
using function = std::function<void()>;
using heartbeat = pawl::basic_heartbeat<function, function, manual_clock>;
using options = pawl::heartbeat_options;

struct fixture {
    asio::io_context context;
    int sends = 0;
    int fails = 0;
    std::optional<heartbeat> beat;

    heartbeat& start(unsigned misses = 3) {
        return beat.emplace(
            context, options{.interval = 10s, .misses = misses}, [this] { ++sends; },
            [this] { ++fails; });
    }
    void poll() {
        context.restart();
        context.poll();
    }
    void pass(manual_clock::duration d) {
        manual_clock::advance(context, d);
        poll();
    }
};

BOOST_FIXTURE_TEST_CASE(it_sends_once_in_each_interval_in_which_nothing_was_sent, fixture) {
    start();
    for (int i = 0; i != 10; ++i) {
        pass(10s - 1ns);
        BOOST_TEST(sends == i);
        beat->received();
        pass(1ns);
        BOOST_TEST(sends == i + 1);
    }
    BOOST_TEST(fails == 0);
}

BOOST_FIXTURE_TEST_CASE(it_is_silent_in_an_interval_in_which_something_was_sent, fixture) {
    start();
    for (int i = 0; i != 10; ++i) {
        beat->received();
        beat->sent();
        pass(10s);
    }
    BOOST_TEST(sends == 0);
    beat->received();
    pass(10s);
    BOOST_TEST(sends == 1);
}

BOOST_FIXTURE_TEST_CASE(what_send_marks_itself_is_no_other_traffic, fixture) {
    beat.emplace(
        context, options{.interval = 10s, .misses = 100},
        [this] {
            ++sends;
            beat->sent();
        },
        [] {});
    for (int i = 0; i != 10; ++i)
        pass(10s);
    BOOST_TEST(sends == 10);
}

BOOST_FIXTURE_TEST_CASE(it_fails_after_as_many_misses_as_it_is_told, fixture) {
    for (unsigned misses = 1; misses != 5; ++misses) {
        sends = 0;
        fails = 0;
        start(misses);
        pass(9s);
        beat->received(); // the first interval is no miss
        pass(1s);
        for (unsigned i = 0; i != misses; ++i) {
            BOOST_TEST(fails == 0);
            BOOST_TEST(beat->running());
            pass(10s);
        }
        BOOST_TEST(fails == 1);
        BOOST_TEST(!beat->running());
        BOOST_TEST(sends == static_cast<int>(misses));
        pass(1h);
        BOOST_TEST(fails == 1);
        BOOST_TEST(context.stopped());
    }
}

BOOST_FIXTURE_TEST_CASE(any_byte_counts_as_life, fixture) {
    start(2);
    for (int i = 0; i != 10; ++i) {
        pass(10s);
        BOOST_TEST(fails == 0);
        beat->received(); // in every second interval
        pass(10s);
    }
    BOOST_TEST(fails == 0);
    pass(20s);
    pass(20s);
    BOOST_TEST(fails == 1);
}

BOOST_FIXTURE_TEST_CASE(a_stall_of_many_intervals_is_one_miss, fixture) {
    start(2);
    beat->received();
    pass(10s);
    pass(1h);
    BOOST_TEST(fails == 0);
    beat->received(); // what the socket had
    pass(10s);
    pass(10s);
    BOOST_TEST(fails == 0);
    pass(10s);
    BOOST_TEST(fails == 1);
}

BOOST_FIXTURE_TEST_CASE(it_stops_and_begins_anew_without_a_miss, fixture) {
    start(2);
    pass(10s);
    beat->stop();
    BOOST_TEST(!beat->running());
    poll();
    BOOST_TEST(context.stopped());
    pass(1h);
    BOOST_TEST(sends == 1);
    BOOST_TEST(beat->restart());
    pass(5s);
    BOOST_TEST(beat->restart()); // a new interval
    pass(10s - 1ns);
    BOOST_TEST(sends == 1);
    pass(1ns);
    BOOST_TEST(sends == 2);
    BOOST_TEST(fails == 0);
    pass(10s);
    BOOST_TEST(fails == 1);
    BOOST_TEST(beat->restart());
    pass(10s);
    BOOST_TEST(sends == 3);
    BOOST_TEST(fails == 1);
}

// As waits on such a clock are: later, never earlier.
BOOST_FIXTURE_TEST_CASE(on_a_clock_that_is_set_back_an_interval_is_longer_until_a_restart,
                        fixture) {
    using wall = pawl_test::scripted_clock<1>;
    const auto set = [&](wall::duration t) {
        wall::set(t);
        pass(0s); // every clock is read
    };
    set(10h);
    pawl::basic_heartbeat<function, function, wall> hb(
        context, options{.interval = 10s, .misses = 2}, [&] { ++sends; }, [&] { ++fails; });
    set(9h);
    set(9h + 10s);
    BOOST_TEST(sends == 0);
    set(10h + 10s);
    BOOST_TEST(sends == 1);

    set(9h);
    hb.restart();
    set(9h + 10s);
    BOOST_TEST((sends == 2 && fails == 0));
    set(9h + 20s);
    BOOST_TEST((sends == 2 && fails == 1 && context.stopped()));
}

BOOST_FIXTURE_TEST_CASE(marks_from_before_a_restart_do_not_count, fixture) {
    start(1);
    beat->sent();
    beat->received();
    beat->restart();
    pass(10s);
    BOOST_TEST(fails == 1);
    beat->restart();
    beat->received();
    pass(10s);
    BOOST_TEST(sends == 1);
}

BOOST_FIXTURE_TEST_CASE(it_may_be_restarted_in_both_functions, fixture) {
    beat.emplace(
        context, options{.interval = 10s, .misses = 2},
        [this] {
            ++sends;
            beat->restart();
        },
        [this] {
            ++fails;
            beat->restart();
        });
    for (int i = 0; i != 5; ++i)
        pass(10s);
    BOOST_TEST(sends == 5); // no second miss
    BOOST_TEST(fails == 0);
    for (int i = 0; i != 6; ++i) {
        beat->sent();
        pass(10s);
    }
    BOOST_TEST(fails == 3);
}

BOOST_FIXTURE_TEST_CASE(it_may_be_destroyed_in_both_functions, fixture) {
    for (const bool in_send : {true, false}) {
        beat.emplace(
            context, options{.interval = 10s, .misses = in_send ? 2u : 1u},
            [this, text = std::string(100, 's')] {
                beat.reset();
                sends += static_cast<int>(text.size());
            },
            [this, text = std::string(100, 'f')] {
                beat.reset();
                fails += static_cast<int>(text.size());
            });
        pass(10s);
        BOOST_TEST(!beat.has_value());
    }
    BOOST_TEST(sends == 100);
    BOOST_TEST(fails == 100);
    pass(1h);
    BOOST_TEST(context.stopped());
}

// At the same address: what the old one does after send() must not reach it.
BOOST_FIXTURE_TEST_CASE(a_heartbeat_that_replaces_another_in_send_keeps_its_marks, fixture) {
    beat.emplace(
        context, options{.interval = 10s, .misses = 3},
        [this] {
            ++sends;
            start();
            beat->sent();
        },
        [] {});
    pass(10s);
    BOOST_TEST(sends == 1);
    pass(10s);
    BOOST_TEST(sends == 1);
    pass(10s);
    BOOST_TEST(sends == 2);
}

BOOST_FIXTURE_TEST_CASE(it_goes_on_after_send_has_thrown, fixture) {
    beat.emplace(
        context, options{.interval = 10s, .misses = 3},
        [this] {
            ++sends;
            throw std::runtime_error("send");
        },
        [this] { ++fails; });
    for (int i = 0; i != 2; ++i) {
        manual_clock::advance(context, 10s);
        BOOST_CHECK_THROW(poll(), std::runtime_error);
        BOOST_TEST(beat->running());
    }
    pass(10s);
    BOOST_TEST(sends == 2);
    BOOST_TEST(fails == 1);
}

BOOST_FIXTURE_TEST_CASE(what_send_marks_before_it_throws_is_no_other_traffic, fixture) {
    beat.emplace(
        context, options{.interval = 10s, .misses = 9},
        [this] {
            ++sends;
            beat->sent();
            throw std::runtime_error("send");
        },
        [this] { ++fails; });
    for (int i = 1; i != 4; ++i) {
        manual_clock::advance(context, 10s);
        BOOST_CHECK_THROW(poll(), std::runtime_error);
        BOOST_TEST(sends == i);
    }
}

BOOST_FIXTURE_TEST_CASE(a_look_that_is_due_does_not_come_after_the_end, fixture) {
    start(1);
    manual_clock::advance(context, 10s);
    beat.reset();
    poll();
    BOOST_TEST(sends + fails == 0);
}

BOOST_AUTO_TEST_CASE(a_heartbeat_may_outlive_its_context) {
    auto context = std::make_unique<asio::io_context>();
    heartbeat beat(
        *context, {.interval = 10s}, [] {}, [] {});
    context.reset();
    beat.sent();
    beat.received();
    BOOST_TEST(!beat.restart());
    beat.stop();
}

BOOST_FIXTURE_TEST_CASE(a_refused_heartbeat_is_stopped_and_says_so, fixture) {
    pawl::make_timer_service<manual_clock>(context, {.max_pending = 1});
    start();
    heartbeat second(
        context, {.interval = 10s}, [] {}, [] {});
    BOOST_TEST(beat->running());
    BOOST_TEST(!second.running());
    beat->stop();
    BOOST_TEST(second.restart());
    BOOST_TEST(second.running());
}

BOOST_FIXTURE_TEST_CASE(the_functions_run_on_the_executor_of_send, fixture) {
    asio::io_context other;
    auto send = asio::bind_executor(other.get_executor(), [this] { ++sends; });
    auto fail = [this] { ++fails; };
    pawl::basic_heartbeat<decltype(send), decltype(fail), manual_clock> b(
        context, {.interval = 10s, .misses = 2}, send, fail);
    pass(10s);
    BOOST_TEST(sends == 0);
    other.poll();
    BOOST_TEST(sends == 1);
    pass(10s);
    BOOST_TEST(fails == 0);
    other.restart();
    other.poll();
    BOOST_TEST(fails == 1);
}

BOOST_FIXTURE_TEST_CASE(a_running_heartbeat_does_not_allocate, fixture) {
    start();
    std::size_t before = 0;
    for (int i = 0; i != 200; ++i) {
        if (i == 100) // the context has its own memory by then
            before = counted_new::calls;
        beat->received();
        pass(10s);
    }
    BOOST_TEST(counted_new::calls - before == 0u);
    BOOST_TEST(sends == 200);
}

BOOST_FIXTURE_TEST_CASE(bad_options_are_refused_with_advice, fixture) {
    for (const options& o : {options{.interval = 0s}, options{.interval = -1s},
                             options{.interval = 1s, .misses = 0}}) {
        try {
            heartbeat(
                context, o, [] {}, [] {});
            BOOST_ERROR("not refused");
        } catch (const std::invalid_argument& e) {
            BOOST_TEST(std::string(e.what()).starts_with("pawl: "));
        }
    }
    poll();
    BOOST_TEST(context.stopped());
}

// The promises in times: see the class.
BOOST_AUTO_TEST_CASE(sends_and_failures_come_when_promised) {
    std::mt19937_64 random(pawl_test::seed());
    const auto below = [&](std::uint64_t n) { return random() % n; };
    constexpr auto interval = manual_clock::duration(10);
    const std::uint64_t rounds = pawl_test::steps(400);
    for (std::uint64_t round = 0; round != rounds; ++round) {
        asio::io_context context;
        const unsigned misses = 1 + static_cast<unsigned>(below(4));
        const auto begin = manual_clock::now();
        auto last_sent = begin;     // by us or by the heartbeat
        auto last_received = begin; // or the begin
        bool others_sent = false;
        std::optional<manual_clock::time_point> failed;
        heartbeat beat(
            context, {.interval = interval, .misses = misses},
            [&] {
                const auto silence = manual_clock::now() - last_sent;
                BOOST_REQUIRE((silence >= (others_sent ? manual_clock::duration(0) : interval)));
                BOOST_REQUIRE((silence <= 2 * interval));
                last_sent = manual_clock::now();
                others_sent = false;
            },
            [&] { failed = manual_clock::now(); });
        const std::uint64_t rate = 1 + below(30);
        while (!failed && manual_clock::now() - begin < 100 * interval) {
            manual_clock::advance(context, manual_clock::duration(1));
            context.restart();
            context.poll();
            if (failed)
                break;
            BOOST_REQUIRE((manual_clock::now() - last_sent < 2 * interval));
            BOOST_REQUIRE((manual_clock::now() - last_received < (misses + 1) * interval));
            if (below(rate) == 0) {
                beat.sent();
                last_sent = manual_clock::now();
                others_sent = true;
            }
            if (below(rate) == 0) {
                beat.received();
                last_received = manual_clock::now();
            }
        }
        if (failed) {
            BOOST_REQUIRE((*failed - last_received >= misses * interval));
            BOOST_REQUIRE((*failed - last_received <= (misses + 1) * interval));
        }
    }
}

// Allowed: it sends or not, depending on whose thread was faster. It does not fail while the others mark life.
PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(any_thread_may_mark_life) {
    asio::thread_pool pool(2);
    const auto strand = asio::make_strand(pool);
    std::atomic<int> fails{0};
    int sends = 0; // on the strand
    std::optional<pawl::heartbeat<function, function>> beat;
    beat.emplace(
        asio::any_io_executor(strand), options{.interval = 100us, .misses = 1'000'000},
        [&] { ++sends; }, [&] { ++fails; });
    std::vector<std::thread> threads;
    for (int t = 0; t != 2; ++t)
        threads.emplace_back([&] {
            const auto steps = pawl_test::steps(40'000);
            for (std::uint64_t i = 0; i != steps; ++i) {
                beat->sent();
                beat->received();
            }
        });
    for (auto& t : threads)
        t.join();
    asio::post(strand, [&] { beat.reset(); });
    pool.join();
    BOOST_TEST(fails.load() == 0);
}

} // namespace
