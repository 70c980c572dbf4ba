// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The defects of luamockit, whose idea the queue is: Pawl must have none of them. Each test is
// named after the promise; the comment describes the defect of the original.

#include <pawl/event_queue.hpp>
#include <pawl/manual_clock.hpp>

#include "../support/asio_configuration.hpp"
#include "../support/sanitized.hpp"

#define BOOST_TEST_MODULE luamockit_regression
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::test_tools::per_element;
using pawl::manual_clock;

namespace {

using manual_queue = pawl::basic_event_queue<manual_clock>;

struct thrown : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// An io_context, and a thread that runs it.
class running_context {
public:
    asio::io_context& get() { return io_; }

private:
    asio::io_context io_;
    asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
    std::jthread runner_{[this] { io_.run(); }};

public:
    ~running_context() {
        work_.reset();
        io_.stop();
    }
};

/// Moves the clock from deadline to deadline until `d` is over. @pre a timer is due then
template <class Queue>
void pass(Queue& events, manual_clock::duration d) {
    const auto end = manual_clock::now() + d;
    while (manual_clock::now() < end) {
        manual_clock::advance_to_next(events.timer_context());
        (void)events.inqueue();
    }
    BOOST_REQUIRE(manual_clock::now() == end);
}

template <class Queue>
void pass_at_once(Queue& events, manual_clock::duration d) {
    manual_clock::advance(events.timer_context(), d);
    (void)events.inqueue();
}

#if defined(__linux__)
std::size_t threads_of_this_process() {
    using iterator = std::filesystem::directory_iterator;
    return static_cast<std::size_t>(std::distance(iterator("/proc/self/task"), iterator()));
}
#endif

} // namespace

// (1) The thread of a one-off read the timer after process_events() had freed it. The test passes
// if no sanitizer reports an error.
PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(a_one_off_may_be_handled_while_the_thread_that_emitted_it_goes_on) {
    constexpr int rounds = pawl_test::sanitized ? 20 : 100;
    running_context context;
    pawl::event_queue events(context.get());

    for (int round = 0; round != rounds; ++round) {
        int ran = 0;
        for (int i = 0; i != 20; ++i)
            events.once(std::chrono::microseconds(50 * i),
                        [token = std::make_shared<int>(), &ran] { ++ran; });
        std::size_t handled = 0;
        while (handled != 20)
            handled += events.process_events();

        BOOST_TEST(ran == 20);
        BOOST_TEST(events.timers() == 0U);
    }
}

// (2) destroy() of a timer whose last event had been taken locked a mutex twice, and hung forever.
BOOST_AUTO_TEST_CASE(destroy_returns_after_the_last_event_was_taken) {
    manual_queue events;
    manual_queue::timer timer = events.every(10ms, [] {});
    pass(events, 30ms);
    BOOST_TEST(timer.disarm());
    BOOST_TEST(events.process_events() == 3U);
    BOOST_TEST(timer.ended());

    timer.destroy();
    timer.destroy();
    BOOST_TEST(timer.destroy_for(0ns));

    BOOST_TEST(events.inqueue() == 0U);
    BOOST_TEST(!timer.disarm());
}

// (3) The error of a function was ignored, its event counted as handled, and the next event was lost.
BOOST_AUTO_TEST_CASE(what_a_function_throws_is_thrown_once_and_no_other_event_is_lost) {
    manual_queue events;
    std::vector<int> ran;
    for (int i = 0; i != 4; ++i)
        events.once(5ms, [&ran, i] {
            ran.push_back(i);
            if (i == 1)
                throw thrown("the function of 1");
        });
    pass_at_once(events, 5ms);

    BOOST_CHECK_EXCEPTION(events.process_events(), thrown, [](const thrown& e) {
        return e.what() == std::string("the function of 1");
    });
    BOOST_TEST(ran == (std::vector<int>{0, 1}), per_element());
    BOOST_TEST(events.pending() == 2U);
    BOOST_TEST(events.process_events() == 2U);

    BOOST_TEST(ran == (std::vector<int>{0, 1, 2, 3}), per_element());
    BOOST_TEST(events.process_events() == 0U);
}

BOOST_AUTO_TEST_CASE(an_interval_whose_function_throws_each_time_goes_on) {
    manual_queue events;
    int ran = 0;
    const auto timer = events.every(10ms, [&] {
        ++ran;
        throw thrown("again");
    });
    pass(events, 50ms);

    for (int i = 0; i != 5; ++i)
        BOOST_CHECK_THROW(events.process_events(), thrown);

    BOOST_TEST(ran == 5);
    BOOST_TEST(events.inqueue() == 0U);
    BOOST_TEST(timer.armed());
}

// (4) A semaphore kept one post for each event that was drained, so that wait() returned at once so
// many times.
PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(wait_after_a_drain_returns_only_for_a_new_event) {
    running_context context;
    pawl::event_queue events(context.get());
    for (int i = 0; i != 3; ++i)
        events.once(1ms, [] {});
    std::size_t handled = 0;
    while (handled != 3)
        handled += events.process_events();

    for (int i = 0; i != 4; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        BOOST_TEST(!events.wait_for(10ms));
        BOOST_TEST((std::chrono::steady_clock::now() - begin >= 10ms));
    }
    const auto begin = std::chrono::steady_clock::now();
    events.once(20ms, [] {});
    events.wait();

    BOOST_TEST((std::chrono::steady_clock::now() - begin >= 20ms));
    BOOST_TEST(events.inqueue() == 1U);
}

// The same for a queue that keeps its timers itself.
BOOST_AUTO_TEST_CASE(wait_after_a_drain_of_the_queues_own_timers_returns_only_for_a_new_event) {
    pawl::event_queue events;
    for (int i = 0; i != 3; ++i)
        events.once(1ms, [] {});
    std::size_t handled = 0;
    while (handled != 3)
        handled += events.process_events();

    for (int i = 0; i != 4; ++i)
        BOOST_TEST(!events.wait_for(5ms));
    const auto begin = std::chrono::steady_clock::now();
    events.once(20ms, [] {});
    events.wait();

    BOOST_TEST((std::chrono::steady_clock::now() - begin >= 20ms));
    BOOST_TEST(events.process_events() == 1U);
}

// (5) The last event was preceded by a marked one, which did not always come; the function was
// called once more after disarm().
BOOST_AUTO_TEST_CASE(the_last_event_comes_at_once_with_disarm_and_nothing_comes_behind_it) {
    manual_queue events;
    int ran = 0;
    manual_queue::timer timer = events.every(10ms, [&] { ++ran; });
    pass(events, 20ms);
    BOOST_TEST(events.inqueue() == 2U);

    BOOST_TEST(timer.disarm());
    BOOST_TEST(events.inqueue() == 3U);
    BOOST_TEST(events.pending() == 2U);
    pass_at_once(events, 1h);

    BOOST_TEST(events.inqueue() == 3U);
    BOOST_TEST(events.process_events() == 2U);
    BOOST_TEST(events.inqueue() == 0U);
    BOOST_TEST(ran == 2);
    BOOST_TEST(timer.ended());
}

BOOST_AUTO_TEST_CASE(what_a_disarmed_timer_has_in_the_queue_stays_what_it_was) {
    manual_queue events;
    std::vector<manual_clock::time_point> scheduled;
    const auto begin = manual_clock::now();
    manual_queue::timer timer =
        events.every(10ms, [&](const manual_queue::event& e) { scheduled.push_back(e.scheduled); });
    pass(events, 30ms);

    timer.disarm();
    events.process_events();

    BOOST_TEST((scheduled == std::vector{begin + 10ms, begin + 20ms, begin + 30ms}));
}

// (6) The mark of a timer was a bit-field that two threads wrote. Allowed: either disarm() or the
// other call is the first to end the timer, never both, and there is one last event.
PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(two_threads_may_disarm_a_timer_that_is_ticking) {
    constexpr int rounds = pawl_test::sanitized ? 100 : 1000;
    running_context context;
    pawl::event_queue events(context.get());

    for (int round = 0; round != rounds; ++round) {
        pawl::event_queue::timer timer = events.every(20us, [] {});
        std::atomic<int> disarmed{0};
        {
            std::vector<std::jthread> threads;
            for (int i = 0; i != 2; ++i)
                threads.emplace_back([&, timer]() mutable { disarmed += timer.disarm() ? 1 : 0; });
        }
        while (events.process_events() != 0) {
        }

        BOOST_TEST_REQUIRE(disarmed == 1);
        BOOST_TEST_REQUIRE(timer.ended());
        BOOST_TEST_REQUIRE(events.inqueue() == 0U);
        BOOST_TEST_REQUIRE(events.timers() == 0U);
    }
}

// (7) A timer that was disarmed and not awaited leaked its thread and its memory.
BOOST_AUTO_TEST_CASE(a_timer_that_is_disarmed_and_not_waited_for_leaves_nothing) {
    manual_queue events;
    std::weak_ptr<int> function;
    {
        auto token = std::make_shared<int>();
        function = token;
        events.every(10ms, [token] {}).disarm(); // the only handle
    }
    BOOST_TEST(!function.expired());

    BOOST_TEST(events.process_events() == 0U); // it takes the last event

    BOOST_TEST(function.expired());
    BOOST_TEST(events.timers() == 0U);
}

// (8) Durations were cut to 32 bits of milliseconds: -1 was 49.7 days, and 2^32 + 5 were 5.
BOOST_AUTO_TEST_CASE(a_negative_duration_is_refused) {
    manual_queue events;

    BOOST_CHECK_THROW(events.once(-1ms, [] {}), std::invalid_argument);
    BOOST_CHECK_THROW(events.every(-1ms, [] {}), std::invalid_argument);
    BOOST_CHECK_THROW(events.every(0ms, [] {}), std::invalid_argument);

    BOOST_TEST(events.timers() == 0U);
    BOOST_TEST(events.inqueue() == 0U);
}

BOOST_AUTO_TEST_CASE(a_duration_beyond_32_bits_is_kept) {
    constexpr std::chrono::milliseconds d((std::int64_t{1} << 32) + 5);
    manual_queue events;
    const auto begin = manual_clock::now();
    manual_clock::time_point scheduled;
    events.once(d, [&](const manual_queue::event& e) { scheduled = e.scheduled; });

    pass_at_once(events, 5ms);
    BOOST_TEST(events.inqueue() == 0U);
    pass_at_once(events, d - 5ms - 1ns);
    BOOST_TEST(events.inqueue() == 0U);
    pass_at_once(events, 1ns);

    BOOST_TEST(events.process_events() == 1U);
    BOOST_TEST((scheduled == begin + d));
}

BOOST_AUTO_TEST_CASE(a_period_beyond_32_bits_is_kept_and_an_endless_one_never_ticks) {
    constexpr std::chrono::milliseconds d((std::int64_t{1} << 32) + 5);
    manual_queue events;
    events.every(d, [] {});
    auto endless = events.every(manual_clock::duration::max(), [] {});

    pass_at_once(events, d - 1ns);
    BOOST_TEST(events.inqueue() == 0U);
    pass_at_once(events, d + 1ns);

    BOOST_TEST(events.process_events() == 2U);
    BOOST_TEST(endless.armed());
}

#if defined(__linux__) // where the threads of a process can be counted so

// (9) Each timer was a thread: 500 one-offs were 501 threads.
PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(five_hundred_timers_start_no_thread) {
    running_context context;
    pawl::event_queue events(context.get());
    pawl::event_queue alone;
    const std::size_t before = threads_of_this_process();

    for (int i = 0; i != 500; ++i) {
        events.once(1h, [] {});
        alone.once(1h, [] {});
        events.every(1h, [] {});
    }
    (void)alone.wait_for(1ms);

    BOOST_TEST(threads_of_this_process() == before);
}

#endif

// They came in the order in which their threads woke up.
BOOST_AUTO_TEST_CASE(equal_deadlines_come_in_the_order_in_which_the_timers_were_started) {
    manual_queue events;
    std::vector<int> ran;
    std::vector<int> expected;
    const auto due = manual_clock::now() + 10s;
    for (int i = 0; i != 500; ++i) {
        manual_clock::advance(events.timer_context(), 3ms); // durations that are not equal
        events.once_at(due, [&ran, i] { ran.push_back(i); });
        expected.push_back(i);
    }

    pass(events, due - manual_clock::now());
    BOOST_TEST(events.process_events() == 500U);

    BOOST_TEST(ran == expected, per_element());
}

// (10) Each period started when the last one had been handled: 99 events instead of 100.
PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(an_interval_does_not_drift_over_ten_minutes) {
    manual_queue events;
    const auto begin = manual_clock::now();
    std::int64_t ticks = 0;
    std::int64_t off = 0;
    events.every(10ms, [&](const manual_queue::event& e) {
        ++ticks;
        off += e.scheduled != begin + ticks * 10ms || e.overruns != 0;
    });

    std::size_t handled = 0;
    for (std::int64_t n = 1; manual_clock::now() < begin + 10min; ++n) {
        manual_clock::advance(events.timer_context(), // sometimes late, by up to 2.9 ms
                              begin + n * 10ms + n % 30 * 100us - manual_clock::now());
        handled += events.process_events();
    }

    BOOST_TEST(ticks == 60000);
    BOOST_TEST(handled == 60000U);
    BOOST_TEST(off == 0);
}

BOOST_AUTO_TEST_CASE(an_interval_that_nobody_drains_does_not_drift) {
    manual_queue events;
    const auto begin = manual_clock::now();
    std::int64_t ticks = 0;
    std::int64_t off = 0;
    events.every(10ms, [&](const manual_queue::event& e) {
        ++ticks;
        off += e.scheduled != begin + ticks * 10ms || e.overruns != 0;
    });

    manual_clock::advance(events.timer_context(), 10min);
    std::size_t handled = 0;
    while (const std::size_t n = events.process_events())
        handled += n;

    BOOST_TEST(handled == 60000U);
    BOOST_TEST(off == 0);
}

// (11) With NDEBUG, functions inside assert() were not called: locks, sleeps, and the wait.
BOOST_AUTO_TEST_CASE(wait_for_sleeps_whatever_the_program_is_compiled_with) {
    pawl::event_queue events;
    const auto begin = std::chrono::steady_clock::now();

    BOOST_TEST(!events.wait_for(20ms));

    BOOST_TEST((std::chrono::steady_clock::now() - begin >= 20ms));
}

// (12) The queue had no bound, and lack of memory ended the program.
BOOST_AUTO_TEST_CASE(an_interval_that_nobody_drains_keeps_the_queue_at_its_capacity) {
    for (const auto overflow : {pawl::overflow_policy::block, pawl::overflow_policy::drop_oldest}) {
        pawl::event_queue_options o;
        o.capacity = 100;
        o.overflow = overflow;
        manual_queue events(o);
        std::uint64_t overruns = 0;
        events.every(1ms, [&](const manual_queue::event& e) { overruns += e.overruns; });

        for (int i = 0; i != 1000; ++i) {
            pass_at_once(events, 1ms);
            BOOST_TEST_REQUIRE(events.inqueue() <= 100U);
        }
        BOOST_TEST(events.process_events() == 100U);

        const bool drops = overflow == pawl::overflow_policy::drop_oldest;
        BOOST_TEST(events.dropped() == (drops ? 900U : 0U));
        BOOST_TEST(overruns == (drops ? 900U : 0U));
    }
}

// If the copy of a function throws, the call that passed it throws, and nothing is left of the
// function.
BOOST_AUTO_TEST_CASE(the_want_of_memory_is_an_exception) {
    struct too_large {
        too_large() = default;
        too_large(const too_large&) { throw std::bad_alloc(); }
        void operator()() const {}
    };
    manual_queue events;
    const too_large f;

    BOOST_CHECK_THROW(events.once(1ms, f), std::bad_alloc);
    BOOST_CHECK_THROW(events.every(1ms, f), std::bad_alloc);
    BOOST_CHECK_THROW(events.get_executor().execute(f), std::bad_alloc);

    BOOST_TEST(events.timers() == 0U);
    BOOST_TEST(events.inqueue() == 0U);
}

// Counters were read without a lock.
PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(counters_may_be_read_while_timers_tick_and_events_are_handled) {
    running_context context;
    pawl::event_queue events(context.get());
    events.every(20us, [] {});
    std::atomic<bool> ends{false};
    std::atomic<std::size_t> wrong{0};
    {
        std::jthread reader([&] {
            while (!ends) {
                wrong += events.timers() != 1;
                (void)events.pending();
                (void)events.inqueue();
                (void)events.dropped();
            }
        });
        for (std::size_t handled = 0; handled < 300;)
            handled += events.process_events();
        ends = true;
    }

    BOOST_TEST(wrong == 0U);
}

// destroy() slept for the rest of the period: 1400 ms of 1500.
BOOST_AUTO_TEST_CASE(destroy_needs_no_time_to_pass) {
    manual_queue events; // its clock stands still
    std::weak_ptr<int> function;
    manual_queue::timer timer;
    {
        auto token = std::make_shared<int>();
        function = token;
        timer = events.every(1500ms, [token] {});
    }
    pass_at_once(events, 100ms);

    timer.destroy();

    BOOST_TEST(timer.ended());
    BOOST_TEST(function.expired());
    BOOST_TEST(events.timers() == 0U);
}

// A skipped event left a value on the stack of Lua, and with that value the event of a destroyed
// timer was handled.
BOOST_AUTO_TEST_CASE(events_that_destroy_skips_leave_those_of_other_timers_alone) {
    manual_queue events;
    std::vector<char> ran;
    manual_queue::timer a = events.every(10ms, [&] { ran.push_back('a'); });
    manual_queue::timer b = events.every(10ms, [&] { ran.push_back('b'); });
    pass(events, 30ms);
    BOOST_TEST(events.inqueue() == 6U);

    a.destroy();

    BOOST_TEST(events.inqueue() == 3U);
    BOOST_TEST(events.process_events() == 3U);
    BOOST_TEST(ran == (std::vector<char>{'b', 'b', 'b'}), per_element());
    BOOST_TEST(b.armed());
}
