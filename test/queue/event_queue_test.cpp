// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// pawl::event_queue: the promises to a host that polls.

#define BOOST_TEST_MODULE event_queue
#include <boost/test/unit_test.hpp>

#include <pawl/event_queue.hpp>
#include <pawl/expire_all.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include "../service/service_support.hpp"
#include "../support/asio_configuration.hpp"
#include "../support/scripted_clock.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect_pipe.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/writable_pipe.hpp>

#if !defined(_WIN32)
#include <poll.h>
#endif

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;
using pawl::manual_clock;
using pawl::missed_tick_policy;
using pawl::overflow_policy;
using manual_queue = pawl::basic_event_queue<manual_clock>;
using event = manual_queue::event;

namespace {

/// The queue's own timers expire when the host calls the queue.
void move_on(const manual_queue& queue, manual_clock::duration d) {
    manual_clock::advance(queue.timer_context(), d);
    (void)queue.pending();
}

#if !defined(_WIN32)
[[nodiscard]] bool readable(int fd, int ms = 0) {
    ::pollfd one{fd, POLLIN, 0};
    return ::poll(&one, 1, ms) == 1;
}
#endif

/// A context that another thread runs.
class running_context {
public:
    ~running_context() {
        work_.reset();
        thread_.join();
    }
    asio::io_context context;

private:
    asio::executor_work_guard<asio::io_context::executor_type> work_{context.get_executor()};
    std::thread thread_{[this] { context.run(); }};
};

/// Counts the existing copies of a function.
class token {
public:
    explicit token(int& count) : count_(&count) { ++*count_; }
    token(const token& other) : count_(other.count_) { ++*count_; }
    token& operator=(const token&) = delete;
    ~token() { --*count_; }

private:
    int* count_;
};

template <class F>
[[nodiscard]] std::string text_of(F f) {
    try {
        f();
    } catch (const std::exception& e) {
        return e.what();
    }
    return "nothing was thrown";
}

} // namespace

BOOST_AUTO_TEST_SUITE(processing)

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(nothing_runs_until_the_host_says_so_and_then_in_its_thread) {
    running_context other;
    pawl::event_queue queue(other.context);
    std::vector<std::thread::id> ran;
    const auto here = [&] { ran.push_back(std::this_thread::get_id()); };
    queue.once(1ms, here);
    asio::post(other.context, asio::bind_executor(queue.get_executor(), here));

    while (queue.pending() != 2)
        std::this_thread::yield();

    BOOST_TEST(ran.empty());
    BOOST_TEST(queue.process_events() == 2U);
    BOOST_TEST((ran == std::vector<std::thread::id>(2, std::this_thread::get_id())));
}

BOOST_AUTO_TEST_CASE(what_comes_while_events_are_handled_stays_for_the_next_call) {
    pawl::event_queue queue;
    int ran = 0;
    const std::function<void()> again = [&] {
        if (++ran > 100)
            return;
        asio::post(queue, again);
        queue.once_at({}, again);
    };
    asio::post(queue, again);

    BOOST_TEST(queue.process_events() == 1U);
    BOOST_TEST(queue.process_events() == 2U);
    BOOST_TEST(queue.process_events() == 4U);
    BOOST_TEST(ran == 7);

    pawl::event_queue other;
    for (int i = 0; i != 200; ++i) // more than fit in a block
        asio::post(other, [&other] { asio::post(other, [] {}); });
    BOOST_TEST(other.process_events() == 200U);
    BOOST_TEST(other.process_events() == 200U);
}

BOOST_AUTO_TEST_CASE(as_many_are_handled_as_were_asked_for) {
    pawl::event_queue queue;
    std::vector<int> ran;
    for (int i = 0; i != 200; ++i)
        asio::post(queue, [&ran, i] { ran.push_back(i); });

    BOOST_TEST(queue.process_events(0) == 0U);
    BOOST_TEST(queue.process_one() == 1U);
    BOOST_TEST(queue.process_events(70) == 70U);
    BOOST_TEST(queue.pending() == 129U);
    BOOST_TEST(queue.process_events() == 129U);
    BOOST_TEST(queue.process_one() == 0U);
    for (int i = 0; i != 200; ++i)
        BOOST_TEST(ran[static_cast<std::size_t>(i)] == i);
}

BOOST_AUTO_TEST_CASE(functions_and_timers_are_handled_in_the_order_in_which_they_came) {
    manual_queue queue;
    std::string order;
    asio::post(queue, [&] { order += 'a'; });
    queue.once(2ms, [&] { order += 'c'; });
    queue.once(1ms, [&] { order += 'b'; });
    move_on(queue, 2ms);
    BOOST_TEST(queue.pending() == 3U);
    asio::post(queue, [&] { order += 'd'; });

    queue.process_events();

    BOOST_TEST(order == "abcd");

    // Skipped events bring nothing forward either.
    order.clear();
    auto skipped = queue.once(1ms, [] {});
    move_on(queue, 1ms);
    asio::post(queue, [&] { order += 'a'; });
    queue.once(1ms, [&] { order += 'b'; });
    move_on(queue, 1ms);
    skipped.destroy();
    queue.process_events();
    BOOST_TEST(order == "ab");
}

BOOST_AUTO_TEST_CASE(a_function_that_throws_loses_no_other_event) {
    manual_queue queue;
    int ran = 0;
    for (int i = 0; i != 3; ++i) {
        asio::post(queue, [&ran] {
            ++ran;
            throw std::runtime_error("of the host");
        });
        queue.once(1ms, [&ran] {
            ++ran;
            throw std::runtime_error("of the host");
        });
    }
    const auto every = queue.every(1ms, [&ran] {
        ++ran;
        throw std::runtime_error("of the host");
    });
    move_on(queue, 1ms);

    for (int i = 1; i != 8; ++i) {
        BOOST_TEST(text_of([&] { queue.process_events(); }) == "of the host");
        BOOST_TEST(ran == i);
        BOOST_TEST(queue.inqueue() == static_cast<std::size_t>(7 - i));
    }
    BOOST_TEST(queue.process_events() == 0U);
    move_on(queue, 1ms);
    BOOST_TEST(queue.pending() == 1U); // the interval goes on
    BOOST_TEST(every.armed());
}

BOOST_AUTO_TEST_CASE(processing_within_a_function_is_an_error_that_says_so_and_loses_nothing) {
    pawl::event_queue queue;
    std::string said;
    bool later = false;
    asio::post(queue, [&] { said = text_of([&] { queue.process_events(); }); });
    asio::post(queue, [&] { later = true; });

    BOOST_TEST(queue.process_events() == 2U);

    BOOST_TEST(
        said ==
        "pawl: process_events() called by one of its own functions: return from that function "
        "first");
    BOOST_TEST(later);
}

BOOST_AUTO_TEST_CASE(a_second_thread_that_processes_gets_an_error_that_says_so) {
    pawl::event_queue queue;
    std::string said;
    asio::post(queue,
               [&] { std::thread([&] { said = text_of([&] { queue.process_one(); }); }).join(); });

    queue.process_events();

    BOOST_TEST(said == "pawl: process_events() called while another thread processes events of the "
                       "queue: only one may at a time");
    BOOST_TEST(queue.process_events() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(schedule)

BOOST_AUTO_TEST_CASE(a_one_off_emits_one_event_and_has_ended_with_it) {
    manual_queue queue;
    int functions = 0;
    int ran = 0;
    const auto timer = queue.once(30ms, [&ran, t = token(functions)] { ++ran; });
    move_on(queue, 30ms - 1ns);
    BOOST_TEST(queue.pending() == 0U);
    BOOST_TEST(timer.armed());

    move_on(queue, 1ns);
    BOOST_TEST(queue.pending() == 1U);
    BOOST_TEST(queue.inqueue() == 1U);
    BOOST_TEST(!timer.armed());
    BOOST_TEST(!timer.ended());
    BOOST_TEST(queue.timers() == 1U);
    queue.process_events();
    move_on(queue, 1h);

    BOOST_TEST(queue.process_events() == 0U);
    BOOST_TEST(ran == 1);
    BOOST_TEST(functions == 0);
    BOOST_TEST(timer.ended());
    BOOST_TEST(queue.timers() == 0U);
}

BOOST_AUTO_TEST_CASE(an_interval_keeps_to_its_grid_and_does_not_drift) {
    manual_queue queue;
    const auto start = manual_clock::now();
    std::vector<event> events;
    queue.every(10ms, [&](const event& e) { events.push_back(e); });

    for (int i = 0; i != 6000; ++i) { // a minute, in steps that are not multiples of the period
        move_on(queue, 9ms + (i % 7) * 300us);
        queue.process_events();
    }

    const auto elapsed = manual_clock::now() - start;
    BOOST_TEST(events.size() == static_cast<std::size_t>(elapsed / 10ms));
    for (std::size_t i = 0; i != events.size(); ++i) {
        BOOST_TEST((events[i].scheduled == start + (i + 1) * 10ms));
        BOOST_TEST((events[i].emitted >= events[i].scheduled));
        BOOST_TEST(events[i].overruns == 0U);
    }
}

BOOST_AUTO_TEST_CASE(ticks_that_were_missed_come_at_once_or_are_left_out_as_the_policy_says) {
    const auto after_35ms = [](missed_tick_policy policy) {
        manual_queue queue;
        const auto start = manual_clock::now();
        std::vector<std::pair<manual_clock::duration, std::uint64_t>> told;
        queue.every(
            10ms, [&](const event& e) { told.emplace_back(e.scheduled - start, e.overruns); },
            policy);
        move_on(queue, 37ms);
        queue.process_events();
        move_on(queue, 5ms);
        queue.process_events();
        move_on(queue, 5ms);
        queue.process_events();
        return told;
    };
    using told = std::vector<std::pair<manual_clock::duration, std::uint64_t>>;

    BOOST_TEST((after_35ms(missed_tick_policy::burst) ==
                told{{10ms, 0}, {20ms, 0}, {30ms, 0}, {40ms, 0}}));
    BOOST_TEST((after_35ms(missed_tick_policy::skip) == told{{10ms, 2}, {40ms, 0}}));
    BOOST_TEST((after_35ms(missed_tick_policy::delay) == told{{10ms, 2}, {47ms, 0}}));
}

BOOST_AUTO_TEST_CASE(an_interval_may_begin_at_any_time) {
    manual_queue queue;
    const auto start = manual_clock::now();
    std::vector<manual_clock::duration> ticks;
    queue.every_from(start, 10ms, [&](const event& e) { ticks.push_back(e.scheduled - start); });
    queue.process_events();
    move_on(queue, 10ms);
    queue.process_events();

    BOOST_TEST((ticks == std::vector<manual_clock::duration>{0ms, 10ms}));
}

BOOST_AUTO_TEST_CASE(a_burst_of_many_ticks_lets_other_timers_between) {
    manual_queue queue;
    std::string order;
    queue.every(1us, [&] { order += 'i'; });
    queue.every(1ms, [&] { order += 'o'; });
    move_on(queue, 2ms);

    while (queue.process_events() != 0)
        ;

    BOOST_TEST(order.size() == 2002U);
    BOOST_TEST(order.find('o') <= 64U); // P6
}

BOOST_AUTO_TEST_CASE(the_longest_durations_never_come) {
    manual_queue queue;
    queue.once(manual_clock::duration::max(), [] {});
    queue.every(manual_clock::duration::max(), [] {});
    queue.once_at(manual_clock::time_point::max(), [] {});
    move_on(queue, 24h);

    BOOST_TEST(queue.pending() == 0U);
    BOOST_TEST(queue.timers() == 3U);
}

BOOST_AUTO_TEST_CASE(a_clock_that_is_set_back_makes_nothing_early_and_loses_nothing) {
    using clock = pawl_test::scripted_clock<901>;
    clock::set(1000s);
    asio::io_context context;
    pawl::basic_event_queue<clock> queue(context);
    std::vector<clock::time_point> ticks;
    queue.every(10s, [&](const auto& e) {
        BOOST_TEST((e.emitted >= e.scheduled));
        ticks.push_back(e.scheduled);
    });
    const auto at = [&](std::chrono::seconds t) {
        clock::set(t);
        asio::use_service<pawl::detail::service_registry>(context).for_each(
            [](pawl::detail::registered_service& s) { s.clock_moved(); });
        context.restart();
        while (context.poll_one() != 0)
            ;
        queue.process_events();
    };

    at(1010s);
    at(500s);
    at(1019s);
    BOOST_TEST(ticks.size() == 1U);
    at(1020s);
    at(1030s);

    const auto second = [](int n) { return clock::time_point(std::chrono::seconds(n)); };
    BOOST_TEST((ticks == std::vector{second(1010), second(1020), second(1030)}));
}

// It burst into an event for each of them.
BOOST_AUTO_TEST_CASE(ticks_that_a_clock_leaves_out_when_it_is_set_ahead_are_overruns) {
    using clock = pawl_test::scripted_clock<902>;
    clock::set(1000s);
    asio::io_context context;
    pawl::basic_event_queue<clock> queue(context);
    std::vector<std::pair<std::chrono::nanoseconds, std::uint64_t>> ticks;
    queue.every(10s, [&](const auto& e) {
        ticks.emplace_back(e.scheduled.time_since_epoch(), e.overruns);
    });
    for (const auto t : {1010s, 4615s, 4620s}) {
        clock::set(t);
        asio::use_service<pawl::detail::service_registry>(context).for_each(
            [](pawl::detail::registered_service& s) { s.clock_moved(); });
        context.restart();
        context.poll();
        queue.process_events();
    }

    BOOST_TEST((ticks == std::vector<std::pair<std::chrono::nanoseconds, std::uint64_t>>{
                             {1010s, 0}, {1020s, 359}, {4620s, 0}}));
}

BOOST_AUTO_TEST_CASE(with_several_shards_and_coarse_ticks_nothing_is_early_and_all_comes) {
    for (const unsigned shards : {1U, 2U, 4U}) {
        asio::io_context context;
        pawl::options o;
        o.shards = shards;
        o.precision = 5ms;
        pawl::make_timer_service<manual_clock>(context, o);
        manual_queue queue(context);
        int ran = 0;
        const auto count = [&](const event& e) {
            BOOST_TEST((e.emitted >= e.scheduled));
            ++ran;
        };
        for (unsigned t = 0; t != 4; ++t)
            std::thread([&] {
                for (int i = 0; i != 10; ++i)
                    queue.once(i * 3ms, count);
                queue.every(10ms, count);
            }).join();

        for (int i = 0; i != 21; ++i) { // one more for the tick to which the last one is rounded up
            manual_clock::advance(context, 5ms);
            context.poll();
            queue.process_events();
        }

        BOOST_TEST(ran == 4 * (10 + 10));
        BOOST_TEST(queue.timers() == 4U);
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(termination)

BOOST_AUTO_TEST_CASE(after_disarm_what_is_there_is_handled_and_one_last_event_is_skipped) {
    manual_queue queue;
    int functions = 0;
    int ran = 0;
    auto timer = queue.every(10ms, [&ran, t = token(functions)] { ++ran; });
    move_on(queue, 25ms);

    BOOST_TEST(timer.disarm());
    BOOST_TEST(queue.pending() == 2U);
    BOOST_TEST(queue.inqueue() == 3U); // at once, not at the end of the interval
    BOOST_TEST(!timer.disarm());
    move_on(queue, 1h);
    BOOST_TEST(queue.inqueue() == 3U);
    BOOST_TEST(queue.timers() == 1U);

    BOOST_TEST(queue.process_events() == 2U);
    BOOST_TEST(ran == 2);
    BOOST_TEST(functions == 0);
    BOOST_TEST(queue.inqueue() == 0U);
    BOOST_TEST(timer.ended());
    BOOST_TEST(queue.timers() == 0U);
    BOOST_TEST(!timer.disarm());
}

BOOST_AUTO_TEST_CASE(
    a_function_that_disarms_its_timer_is_called_for_what_is_queued_unless_it_destroys) {
    for (const bool destroys : {false, true}) {
        manual_queue queue;
        int ran = 0;
        manual_queue::timer timer = queue.every(10ms, [&] {
            ++ran;
            if (destroys)
                timer.destroy();
            else
                BOOST_TEST(timer.disarm() == (ran == 1));
        });
        move_on(queue, 110ms); // the host was late: eleven ticks are queued
        queue.process_one();
        BOOST_TEST(queue.pending() == (destroys ? 0U : 10U));
        move_on(queue, 1h);

        queue.process_events();

        BOOST_TEST(ran == (destroys ? 1 : 11));
        BOOST_TEST(timer.ended());
        BOOST_TEST(queue.timers() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(a_one_off_is_disarmed_like_an_interval) {
    manual_queue queue;
    int ran = 0;
    auto before = queue.once(10ms, [&] { ++ran; });
    auto after = queue.once(5ms, [&] { ++ran; });
    move_on(queue, 5ms);

    BOOST_TEST(before.disarm());
    BOOST_TEST(!after.disarm()); // its only event is already queued, and is handled
    move_on(queue, 1h);

    BOOST_TEST(queue.inqueue() == 2U);
    BOOST_TEST(queue.process_events() == 1U);
    BOOST_TEST(ran == 1);
    BOOST_TEST(queue.timers() == 0U);
}

BOOST_AUTO_TEST_CASE(destroy_skips_what_is_there_and_leaves_nothing) {
    manual_queue queue;
    int functions = 0;
    int ran = 0;
    auto interval = queue.every(10ms, [&ran, t = token(functions)] { ++ran; });
    auto disarmed = queue.every(10ms, [&ran, t = token(functions)] { ++ran; });
    auto one_off = queue.once(10ms, [&ran, t = token(functions)] { ++ran; });
    auto early = queue.once(1h, [&ran, t = token(functions)] { ++ran; });
    move_on(queue, 45ms);
    disarmed.disarm();
    asio::post(queue, [&] { ran += 100; });
    BOOST_TEST(queue.inqueue() == 4U + 5U + 1U + 1U);
    BOOST_TEST(queue.pending() == 4U + 4U + 1U + 1U);

    interval.destroy();
    BOOST_TEST(queue.inqueue() == 5U + 1U + 1U);
    disarmed.destroy();
    BOOST_TEST(queue.inqueue() == 1U + 1U);
    one_off.destroy();
    BOOST_TEST(early.destroy_for(0s));
    BOOST_TEST(functions == 0);
    BOOST_TEST(queue.inqueue() == 1U);
    BOOST_TEST(queue.pending() == 1U);
    BOOST_TEST(queue.timers() == 0U);
    for (auto* t : {&interval, &disarmed, &one_off, &early}) {
        t->destroy();
        BOOST_TEST(t->ended());
        BOOST_TEST(!t->disarm());
    }

    move_on(queue, 2h);
    BOOST_TEST(queue.process_events() == 1U);
    BOOST_TEST(ran == 100);
}

BOOST_AUTO_TEST_CASE(a_timer_may_end_itself_and_others_within_functions) {
    manual_queue queue;
    int functions = 0;
    int ran = 0;
    manual_queue::timer itself;
    manual_queue::timer other;
    manual_queue::timer last;
    itself = queue.every(10ms, [&, t = token(functions)] {
        ++ran;
        other.destroy();
        BOOST_TEST(functions == 2);
        itself.destroy();
        BOOST_TEST(functions == 2); // its own is destroyed when it has returned
        last.disarm();
    });
    other = queue.every(10ms, [&, t = token(functions)] { ran += 100; });
    last = queue.every(10ms, [&, t = token(functions)] { ran += 10; });
    move_on(queue, 30ms);

    BOOST_TEST(queue.process_events() == 4U);
    BOOST_TEST(functions == 1);
    BOOST_TEST(queue.process_events() == 0U); // emitted in the meantime: the last one of `last`

    BOOST_TEST(ran == 1 + 3 * 10);
    BOOST_TEST(functions == 0);
    BOOST_TEST(queue.timers() == 0U);
}

BOOST_AUTO_TEST_CASE(destroy_waits_until_the_function_has_returned_or_its_limit_is_over) {
    pawl::event_queue queue;
    std::mutex mutex;
    std::condition_variable changed;
    bool inside = false;
    bool may_go = false;
    bool gone = false;
    auto timer = queue.once_at({}, [&] {
        std::unique_lock lock(mutex);
        inside = true;
        changed.notify_all();
        changed.wait(lock, [&] { return may_go; });
        gone = true;
    });
    std::thread other([&] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return inside; });
        lock.unlock();
        BOOST_TEST(!timer.destroy_for(1ms));
        BOOST_TEST(timer.ended());
        lock.lock();
        may_go = true;
        changed.notify_all();
        lock.unlock();
        timer.destroy();
        lock.lock();
        BOOST_TEST(gone);
    });

    while (queue.process_events() == 0)
        ;
    other.join();
}

BOOST_AUTO_TEST_CASE(a_handle_of_no_timer_and_one_that_outlives_its_queue_do_nothing) {
    pawl::event_queue::timer timer;
    BOOST_TEST(timer.ended());
    BOOST_TEST(!timer.armed());
    BOOST_TEST(!timer.disarm());
    timer.destroy();
    {
        pawl::event_queue queue;
        timer = queue.every(1s, [] {});
        BOOST_TEST(timer.armed());
    }
    BOOST_TEST(timer.ended());
    BOOST_TEST(!timer.disarm());
    BOOST_TEST(timer.destroy_for(0s));
}

BOOST_AUTO_TEST_CASE(a_timer_goes_on_without_its_handle) {
    manual_queue queue;
    int ran = 0;
    (void)queue.every(1ms, [&] { ++ran; });
    move_on(queue, 5ms);

    queue.process_events();

    BOOST_TEST(ran == 5);
}

BOOST_AUTO_TEST_CASE(expire_all_ends_the_timers_of_a_context_with_their_last_event) {
    asio::io_context context;
    manual_queue queue(context);
    int ran = 0;
    auto interval = queue.every(1h, [&] { ++ran; });
    auto one_off = queue.once(1h, [&] { ++ran; });

    pawl::expire_all(context, asio::error::operation_aborted);
    context.poll();

    BOOST_TEST(queue.inqueue() == 2U);
    BOOST_TEST(queue.pending() == 0U);
    queue.process_events();
    BOOST_TEST(ran == 0);
    BOOST_TEST(interval.ended());
    BOOST_TEST(one_off.ended());
}

BOOST_AUTO_TEST_CASE(a_context_that_goes_before_its_queue_ends_the_timers) {
    std::optional<asio::io_context> context(std::in_place);
    manual_queue queue(*context);
    int functions = 0;
    auto timer = queue.every(1h, [t = token(functions)] {});
    context.reset();

    BOOST_TEST(!timer.armed());
    BOOST_TEST(queue.inqueue() == 1U);
    queue.process_events();
    BOOST_TEST(timer.ended());
    BOOST_TEST(functions == 0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(overflow)

BOOST_AUTO_TEST_CASE(block_makes_intervals_wait_for_room_and_loses_nothing) {
    manual_queue queue({.capacity = 3, .overflow = overflow_policy::block});
    const auto start = manual_clock::now();
    std::vector<manual_clock::duration> ticks;
    auto timer = queue.every(10ms, [&](const event& e) { ticks.push_back(e.scheduled - start); });
    move_on(queue, 65ms);
    BOOST_TEST(queue.pending() == 3U);

    while (queue.process_events() != 0)
        ;
    move_on(queue, 10ms);
    queue.process_events();

    BOOST_TEST(
        (ticks == std::vector<manual_clock::duration>{10ms, 20ms, 30ms, 40ms, 50ms, 60ms, 70ms}));
    BOOST_TEST(timer.armed());
    BOOST_TEST(queue.dropped() == 0U);
}

BOOST_AUTO_TEST_CASE(room_that_a_function_leaves_that_throws_is_given_to_an_interval_that_waits) {
    manual_queue queue({.capacity = 1, .overflow = overflow_policy::block});
    queue.every(10ms, [] { throw 1; });
    move_on(queue, 25ms);

    BOOST_CHECK_THROW(queue.process_events(), int);

    BOOST_TEST(queue.pending() == 1U);
}

BOOST_AUTO_TEST_CASE(a_blocked_interval_goes_on_as_its_policy_says) {
    manual_queue queue({.capacity = 1, .overflow = overflow_policy::block});
    std::vector<std::uint64_t> overruns;
    queue.every(
        10ms, [&](const event& e) { overruns.push_back(e.overruns); }, missed_tick_policy::skip);
    move_on(queue, 10ms);
    move_on(queue, 55ms); // four ticks more than the capacity
    queue.process_events();
    queue.process_events();
    move_on(queue, 5ms);
    queue.process_events();

    BOOST_TEST((overruns == std::vector<std::uint64_t>{0, 4, 0}));
}

BOOST_AUTO_TEST_CASE(a_blocked_interval_can_be_disarmed_and_destroyed) {
    manual_queue queue({.capacity = 1, .overflow = overflow_policy::block});
    int ran = 0;
    auto first = queue.every(10ms, [&] { ++ran; });
    auto second = queue.every(10ms, [&] { ++ran; });
    auto third = queue.every(10ms, [&] { ++ran; });
    move_on(queue, 25ms);
    BOOST_TEST(queue.inqueue() == 1U);

    second.disarm();
    third.destroy();
    BOOST_TEST(queue.inqueue() == 2U); // the last event has room
    first.destroy();

    BOOST_TEST(queue.process_events() == 0U);
    BOOST_TEST(ran == 0);
    BOOST_TEST(queue.timers() == 0U);
}

BOOST_AUTO_TEST_CASE(an_interval_that_waits_for_room_goes_on_after_expire_all_within_a_function) {
    asio::io_context context;
    manual_queue queue(context, {.capacity = 2, .overflow = overflow_policy::block});
    std::size_t then = 0;
    int ran = 0;
    const auto pass = [&](manual_clock::duration d) {
        manual_clock::advance(context, d);
        context.poll();
    };
    queue.every(10ms, [&] {
        if (++ran != 1)
            return;
        pawl::expire_all(context); // with success, while there is room: it looks again
        context.poll();
        pass(10ms);
        then = queue.pending();
    });
    pass(30ms); // two ticks, and one without room

    queue.process_one();

    BOOST_TEST(then == 2U); // full again
    for (int i = 0; i != 3; ++i)
        queue.process_events();
    BOOST_TEST(ran == 4);
    pass(10ms);
    BOOST_TEST(queue.process_events() == 1U);
}

BOOST_AUTO_TEST_CASE(an_interval_that_waits_for_room_is_ended_while_it_waits) {
    for (const int how : {0, 1, 2, 3}) {
        asio::io_context context;
        std::optional<manual_queue> queue;
        queue.emplace(context, pawl::event_queue_options{.capacity = 1});
        int functions = 0;
        manual_queue::timer full = queue->every(10ms, [] {});
        manual_queue::timer waits = queue->every(10ms, [t = token(functions)] {});
        manual_clock::advance(context, 35ms);
        context.poll();
        BOOST_TEST(queue->inqueue() == 1U);
        switch (how) {
        case 0:
            BOOST_TEST(waits.disarm());
            BOOST_TEST(!waits.disarm());
            BOOST_TEST(queue->process_events() == 1U);
            break;
        case 1:
            waits.destroy();
            break;
        case 2:
            pawl::expire_all(context, asio::error::operation_aborted);
            context.poll();
            BOOST_TEST(!full.armed());
            BOOST_TEST(queue->process_events() == 1U);
            break;
        case 3:
            queue.reset();
            break;
        }
        BOOST_TEST(waits.ended());
        BOOST_TEST(functions == 0);
        if (queue) {
            full.destroy();
            BOOST_TEST(queue->inqueue() == 0U);
            BOOST_TEST(queue->timers() == 0U);
        }
        context.poll();
        BOOST_TEST(context.stopped()); // no wait was left
    }
}

BOOST_AUTO_TEST_CASE(room_that_a_destroyed_timer_leaves_is_given_to_one_that_waits) {
    manual_queue queue({.capacity = 2, .overflow = overflow_policy::block});
    int ran = 0;
    auto first = queue.every(10ms, [&] { ran += 100; });
    move_on(queue, 20ms);
    queue.every(5ms, [&] { ++ran; });
    move_on(queue, 9ms);
    BOOST_TEST(queue.pending() == 2U);

    first.destroy();

    BOOST_TEST(queue.pending() == 1U);
    queue.process_events();
    BOOST_TEST(ran == 1);
}

BOOST_AUTO_TEST_CASE(drop_oldest_keeps_the_newest_and_tells_how_many_went) {
    manual_queue queue({.capacity = 3, .overflow = overflow_policy::drop_oldest});
    const auto start = manual_clock::now();
    std::vector<std::pair<manual_clock::duration, std::uint64_t>> told;
    bool posted = false;
    bool fired = false;
    asio::post(queue, [&] { posted = true; });
    queue.once(5ms, [&] { fired = true; });
    queue.every(10ms, [&](const event& e) { told.emplace_back(e.scheduled - start, e.overruns); });
    move_on(queue, 1000ms);

    BOOST_TEST(queue.pending() == 5U);
    BOOST_TEST(queue.dropped() == 97U);
    queue.process_events();

    BOOST_TEST(posted);
    BOOST_TEST(fired);
    BOOST_TEST((told == std::vector<std::pair<manual_clock::duration, std::uint64_t>>{
                            {980ms, 97}, {990ms, 0}, {1000ms, 0}}));
}

BOOST_AUTO_TEST_CASE(drop_oldest_drops_the_oldest_of_what_has_not_been_processed) {
    manual_queue queue({.capacity = 3, .overflow = overflow_policy::drop_oldest});
    const auto start = manual_clock::now();
    std::vector<manual_clock::duration> told;
    queue.every(10ms, [&](const event& e) { told.push_back(e.scheduled - start); });
    move_on(queue, 50ms); // the first two are dropped
    BOOST_TEST(queue.process_events(1) == 1U);
    move_on(queue, 20ms); // the fourth is dropped
    queue.process_events();

    BOOST_TEST((told == std::vector<manual_clock::duration>{30ms, 50ms, 60ms, 70ms}));
    BOOST_TEST(queue.dropped() == 3U);
}

BOOST_AUTO_TEST_CASE(drop_oldest_passes_on_what_the_dropped_tick_stood_for) {
    manual_queue queue({.capacity = 1, .overflow = overflow_policy::drop_oldest});
    std::vector<std::uint64_t> overruns;
    queue.every(
        10ms, [&](const event& e) { overruns.push_back(e.overruns); }, missed_tick_policy::skip);
    move_on(queue, 55ms); // one event, for five ticks
    move_on(queue, 5ms);  // it is dropped
    queue.process_events();
    move_on(queue, 10ms);
    queue.process_events();

    BOOST_TEST((overruns == std::vector<std::uint64_t>{5, 0}));
    BOOST_TEST(queue.dropped() == 1U);
}

BOOST_AUTO_TEST_CASE(coalesce_keeps_one_event_of_each_timer_and_counts) {
    manual_queue queue({.overflow = overflow_policy::coalesce});
    const auto start = manual_clock::now();
    std::vector<std::pair<manual_clock::duration, std::uint64_t>> told;
    const auto tell = [&](const event& e) { told.emplace_back(e.scheduled - start, e.overruns); };
    queue.every(10ms, tell);
    queue.every(100ms, tell);
    move_on(queue, 55ms);
    BOOST_TEST(queue.pending() == 1U);
    move_on(queue, 50ms);
    BOOST_TEST(queue.pending() == 2U);
    queue.process_events();
    move_on(queue, 5ms);
    queue.process_events();

    BOOST_TEST((told == std::vector<std::pair<manual_clock::duration, std::uint64_t>>{
                            {10ms, 9}, {100ms, 0}, {110ms, 0}}));
}

BOOST_AUTO_TEST_CASE(coalesce_has_room_for_a_tick_and_the_last_event_of_each_timer) {
    manual_queue queue({.overflow = overflow_policy::coalesce});
    std::vector<manual_queue::timer> timers;
    for (int i = 0; i != 60; ++i) // nearly as many as the queue has room for at first
        timers.push_back(queue.every(10ms, [] {}));
    move_on(queue, 10ms);
    for (auto& t : timers)
        t.disarm();

    BOOST_TEST(queue.inqueue() == 120U);
    BOOST_TEST(queue.process_events() == 60U);
    BOOST_TEST(queue.timers() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(waiting)

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(a_wait_returns_when_something_is_there_and_no_leftover_counts) {
    running_context other;
    pawl::event_queue own;
    pawl::event_queue given(other.context);
    for (auto* queue : {&own, &given}) {
        for (int i = 0; i != 3; ++i)
            queue->once(1ms, [] {});
        while (queue->timers() != 0) {
            BOOST_TEST(queue->wait_for(1h));
            queue->process_events();
        }

        const auto start = std::chrono::steady_clock::now();
        BOOST_TEST(!queue->wait_for(20ms));
        BOOST_TEST((std::chrono::steady_clock::now() - start >= 20ms));
        BOOST_TEST(!queue->wait_for(-1h));
        BOOST_TEST(!queue->wait_until({}));
        asio::post(*queue, [] {});
        BOOST_TEST(queue->wait_for(0s));
        queue->wait();
        queue->process_events();
        auto timer = queue->every(1h, [] {});
        timer.disarm();
        queue->wait(); // for the last event
        BOOST_TEST(queue->process_events() == 0U);
    }
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(threads_that_wait_are_all_woken) {
    running_context other;
    pawl::event_queue own;
    pawl::event_queue given(other.context);
    for (auto* queue : {&own, &given}) {
        std::atomic<int> woken{0};
        std::vector<std::thread> threads;
        for (int i = 0; i != 4; ++i)
            threads.emplace_back([&] {
                queue->wait();
                woken += queue->wait_for(1h);
            });
        queue->once(5ms, [] {});
        for (auto& t : threads)
            t.join();
        BOOST_TEST(woken == 4);
        BOOST_TEST(queue->process_events() == 1U);
    }
}

// One of the threads that wait runs the queue's own timers. When it leaves, another one does.
PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(threads_that_wait_with_different_ends_leave_each_at_its_own) {
    running_context other;
    for (const bool own : {true, false}) {
        for (const bool short_one_first : {true, false}) {
            auto queue = own ? std::make_unique<pawl::event_queue>()
                             : std::make_unique<pawl::event_queue>(other.context);
            std::atomic<bool> over{false};
            bool long_one_told = false;
            const auto wait_shortly = [&] {
                const auto start = std::chrono::steady_clock::now();
                BOOST_TEST(!queue->wait_for(30ms));
                BOOST_TEST((std::chrono::steady_clock::now() - start >= 30ms));
                BOOST_TEST(!over); // it has not waited for the other one
                const auto timer = queue->once(30ms, [] {});
                const auto patience = std::chrono::steady_clock::now() + 10s;
                while (timer.armed() && std::chrono::steady_clock::now() < patience)
                    std::this_thread::yield();
                BOOST_TEST(!timer.armed()); // the other one runs the timers now
            };
            const auto wait_long = [&] {
                long_one_told = queue->wait_for(20s);
                over = true;
            };
            std::thread first;
            if (short_one_first)
                first = std::thread(wait_shortly);
            else
                first = std::thread(wait_long);
            std::this_thread::sleep_for(10ms); // it leads
            if (short_one_first)
                wait_long();
            else
                wait_shortly();
            first.join();

            BOOST_TEST(long_one_told);
            BOOST_TEST(queue->process_events() == 1U);
        }
        // Nothing makes the rest of them move: each end counts.
        pawl::event_queue queue;
        queue.once(100ms, [] {});
        std::atomic<int> told{0};
        std::vector<std::thread> threads;
        for (const auto end : {5ms, 10ms, 15ms, 20000ms, 20000ms})
            threads.emplace_back([&queue, &told, end] { told += queue.wait_for(end); });
        for (auto& t : threads)
            t.join();
        BOOST_TEST(told >= 2);
        BOOST_TEST(queue.process_events() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(a_timer_that_is_always_due_does_not_hold_up_its_host) {
    pawl::event_queue queue({.capacity = 4, .overflow = pawl::overflow_policy::drop_oldest});
    int ran = 0;
    const auto timer = queue.every(1ns, [&ran] { ++ran; });
    BOOST_TEST(queue.wait_for(1h));
    BOOST_TEST(queue.pending() == 4U);
    BOOST_TEST(queue.inqueue() == 4U);
    const std::size_t handled = queue.process_events();
    BOOST_TEST(handled >= 4U);
    BOOST_TEST(static_cast<std::size_t>(ran) == handled);
}

BOOST_AUTO_TEST_CASE(a_timer_that_another_thread_makes_wakes_a_wait_that_sleeps_for_a_later_one) {
    pawl::event_queue queue;
    queue.once(1h, [] {});
    std::thread other([&] {
        std::this_thread::sleep_for(5ms);
        queue.once(1ms, [] {});
    });
    queue.wait();
    other.join();
    BOOST_TEST(queue.process_events() == 1U);
}

BOOST_AUTO_TEST_CASE(waits_of_async_wait_complete_while_something_is_there) {
    asio::io_context context;
    manual_queue queue(context);
    std::vector<error_code> told;
    const auto tell = [&](error_code ec) { told.push_back(ec); };
    const auto poll = [&] {
        context.restart();
        context.poll();
    };
    queue.async_wait(tell);
    poll();
    BOOST_TEST(told.empty());

    asio::post(queue, [] {});
    BOOST_TEST(told.empty());
    poll();
    BOOST_TEST((told == std::vector<error_code>{{}}));

    queue.async_wait(tell); // it is still present
    poll();
    BOOST_TEST(told.size() == 2U);

    queue.async_wait(tell);
    queue.process_events(); // gone before the handler starts
    poll();
    BOOST_TEST(told.size() == 2U);
    queue.once(1s, [] {});
    manual_clock::advance(context, 1s);
    poll();
    BOOST_TEST(told.size() == 3U);
    BOOST_TEST(!told.back());
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(what_a_queue_did_before_does_not_keep_a_wait_from_being_woken) {
    asio::io_context context;
    running_context other;
    const auto poll = [&context](int& told) {
        context.restart();
        context.poll();
        return std::exchange(told, 0);
    };
    for (int before = 0; before != 5; ++before) {
        BOOST_TEST_CONTEXT("before: " << before) {
            pawl::event_queue queue(context);
            int told = 0;
            const auto listen = [&] { queue.async_wait([&](error_code ec) { told += !ec; }); };
            asio::post(queue, [] {});
            switch (before) {
            case 0: // functions were handled
                break;
            case 1: // a thread waited
                BOOST_TEST(queue.wait_for(0s));
                break;
            case 2: // a wait was woken, and another one in vain
                listen();
                BOOST_TEST(poll(told) == 1);
                listen();
                break;
            case 3: // a timer left its last event
                queue.once(1h, [] {}).disarm();
                break;
            case 4: // events were destroyed
                queue.process_events();
                auto timer = queue.once_at({}, [] {});
                (void)poll(told);
                timer.destroy();
                break;
            }
            queue.process_events();
            BOOST_TEST(queue.inqueue() == 0U);
            if (before == 2)
                BOOST_TEST(poll(told) == 0); // the one in vain
            else
                listen();
            BOOST_TEST(poll(told) == 0);

            for (int round = 0; round != 2; ++round) {
                asio::post(queue, [] {});
                BOOST_TEST(poll(told) == 1);
                queue.process_events();
                listen();
                BOOST_TEST(poll(told) == 0);
            }
#if !defined(_WIN32)
            const int fd = queue.native_handle(); // also made late
            BOOST_TEST(!readable(fd));
            asio::post(queue, [] {});
            BOOST_TEST(readable(fd));
            BOOST_TEST(poll(told) == 1);
            queue.process_events();
            BOOST_TEST(!readable(fd));
#endif
            std::thread later([&] {
                std::this_thread::sleep_for(5ms);
                asio::post(queue, [] {});
            });
            BOOST_TEST(queue.wait_for(20s));
            later.join();
        }
    }
}

BOOST_AUTO_TEST_CASE(a_wait_of_async_wait_is_cancelled_by_its_slot_and_by_the_end_of_the_queue) {
    asio::io_context context;
    std::vector<error_code> told;
    asio::cancellation_signal signal;
    pawl::event_queue::timer outlives;
    {
        pawl::event_queue queue(context);
        queue.async_wait(asio::bind_cancellation_slot(signal.slot(),
                                                      [&](error_code ec) { told.push_back(ec); }));
        queue.async_wait([&](error_code ec) { told.push_back(ec); });
        signal.emit(asio::cancellation_type::total);
        context.poll();
        BOOST_TEST(told.size() == 1U);
        outlives = queue.once(1h, [] {});
    }
    context.restart();
    context.poll();

    BOOST_TEST((told == std::vector<error_code>(2, asio::error::operation_aborted)));
}

/// Uses the queue in each allocation.
template <class T>
struct busy_allocator {
    using value_type = T;

    explicit busy_allocator(pawl::event_queue& q) : queue(&q) {}
    template <class U>
    busy_allocator(const busy_allocator<U>& other) : queue(other.queue) {}
    T* allocate(std::size_t n) {
        asio::post(*queue, [] {});
        queue->process_events();
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* p, std::size_t n) { std::allocator<T>().deallocate(p, n); }
    friend bool operator==(const busy_allocator&, const busy_allocator&) = default;

    pawl::event_queue* queue;
};

BOOST_AUTO_TEST_CASE(P5_no_lock_is_held_while_the_memory_of_a_wait_is_asked_for) {
    asio::io_context context;
    pawl::event_queue queue(context);
    int told = 0;
    for (int i = 0; i != 3; ++i)
        queue.async_wait(asio::bind_allocator(busy_allocator<void>(queue), [&](error_code ec) {
            BOOST_TEST(!ec);
            ++told;
        }));
    context.poll();
    BOOST_TEST(told == 0);

    asio::post(queue, [] {});
    context.poll();

    BOOST_TEST(told == 3);
}

BOOST_AUTO_TEST_CASE(a_coroutine_may_be_the_host) {
    asio::io_context context;
    pawl::event_queue queue(context);
    int ran = 0;
    queue.every(1ms, [&] { ++ran; });
    asio::co_spawn(
        context,
        [&]() -> asio::awaitable<void> {
            while (ran < 3) {
                co_await queue.async_wait(asio::use_awaitable);
                queue.process_events();
            }
        },
        asio::detached);

    while (ran < 3)
        context.run_one();

    BOOST_TEST(ran >= 3);
}

#if !defined(_WIN32)

BOOST_AUTO_TEST_CASE(the_descriptor_is_readable_exactly_while_something_is_there) {
    asio::io_context context;
    manual_queue queue(context);
    asio::post(queue, [] {});
    const int fd = queue.native_handle();
    BOOST_TEST(queue.native_handle() == fd);
    BOOST_TEST(readable(fd));
    asio::post(queue, [] {});
    queue.process_one();
    BOOST_TEST(readable(fd));
    queue.process_one();
    BOOST_TEST(!readable(fd));

    auto timer = queue.every(1s, [] {});
    BOOST_TEST(!readable(fd));
    manual_clock::advance(context, 1s);
    context.poll();
    BOOST_TEST(readable(fd));
    timer.destroy();
    BOOST_TEST(!readable(fd));

    timer = queue.every(1s, [] {});
    timer.disarm();
    BOOST_TEST(readable(fd));
    queue.process_events();
    BOOST_TEST(!readable(fd));

    manual_queue used(context, {.capacity = 1});
    asio::post(used, [] {});
    used.process_events();
    const int late = used.native_handle(); // made after events were handled
    BOOST_TEST(!readable(late));
    asio::post(used, [] {});
    BOOST_TEST(readable(late));
    used.process_events();
    auto waits = used.every(1s, [] {});
    manual_clock::advance(context, 2s);
    context.poll();
    BOOST_TEST(used.process_events() == 1U);
    BOOST_TEST(readable(late)); // the tick that has waited for room
    waits.destroy();
    BOOST_TEST(!readable(late));

    bool within = true;
    asio::post(queue, [&] { within = readable(fd); });
    queue.process_events();
    BOOST_TEST(!within); // the event that is being handled is no longer counted

    asio::post(queue, [] { throw 1; });
    asio::post(queue, [] {});
    BOOST_CHECK_THROW(queue.process_events(), int);
    BOOST_TEST(readable(fd));
    queue.process_events();
    BOOST_TEST(!readable(fd));
}

BOOST_AUTO_TEST_CASE(the_descriptor_goes_with_its_queue_and_handles_may_outlive_both) {
    std::vector<int> fds;
    for (int i = 0; i != 4; ++i) {
        pawl::event_queue::timer timer;
        {
            pawl::event_queue queue;
            fds.push_back(queue.native_handle());
            timer = queue.every(1h, [] {});
        }
        timer.destroy();
        BOOST_TEST(timer.ended());
    }
    BOOST_TEST((fds == std::vector<int>(4, fds[0]))); // none was left open
}

BOOST_AUTO_TEST_CASE(the_descriptor_of_a_queue_with_its_own_timers_becomes_readable_by_time) {
    pawl::event_queue queue;
    const int fd = queue.native_handle();
    BOOST_TEST(!readable(fd));
    int ran = 0;
    queue.once(1h, [&] { ran += 100; });
    BOOST_TEST(!readable(fd));
    const auto start = std::chrono::steady_clock::now();
    auto timer = queue.every(5ms, [&] { ++ran; });
    while (ran < 3) {
        BOOST_REQUIRE(readable(fd, 20'000));
        queue.process_events();
    }
    BOOST_TEST((std::chrono::steady_clock::now() - start >= 15ms));
    timer.destroy();
    if (readable(fd)) // the tick of the timer that has gone
        BOOST_TEST(queue.process_events() == 0U);
    BOOST_TEST(!readable(fd));
    asio::post(queue, [] {});
    BOOST_TEST(readable(fd));
    queue.process_events();
    BOOST_TEST(!readable(fd));
}

#else

BOOST_AUTO_TEST_CASE(windows_has_no_descriptor_to_give) {
    pawl::event_queue queue;
    BOOST_CHECK_EXCEPTION((void)queue.native_handle(), boost::system::system_error,
                          [](const boost::system::system_error& e) {
                              return e.code() == asio::error::operation_not_supported;
                          });
}

#endif

/// The context looks at the clock without a pause.
struct sleepless {
    using clock = std::chrono::steady_clock;
    static clock::duration to_wait_duration(const clock::duration&) { return {}; }
    static clock::duration to_wait_duration(const clock::time_point&) { return {}; }
};

BOOST_AUTO_TEST_CASE(no_descriptor_follows_a_clock_that_does_not_follow_real_time) {
    manual_queue queue;
    BOOST_TEST(text_of([&] { (void)queue.native_handle(); }).find("give the queue a context") !=
               std::string::npos);
    pawl::basic_event_queue<std::chrono::steady_clock, sleepless> busy;
    BOOST_TEST(text_of([&] { (void)busy.native_handle(); }).find("give the queue a context") !=
               std::string::npos);
    try {
        (void)queue.native_handle();
    } catch (const boost::system::system_error& e) {
        BOOST_TEST((e.code() == asio::error::operation_not_supported));
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(executor)

static_assert(asio::execution::is_executor_v<pawl::event_queue::executor_type>);
static_assert(std::is_convertible_v<pawl::event_queue::executor_type, asio::any_io_executor>);

template <class Token>
concept waits_with = requires(pawl::event_queue& q, Token t) { q.async_wait(t); };
static_assert(waits_with<asio::detached_t> && !waits_with<int>);

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(any_operation_completes_in_the_queue_of_its_handlers_executor) {
    running_context other;
    pawl::event_queue queue(other.context);
    const auto host = std::this_thread::get_id();
    int done = 0;
    const auto here = [&](auto&&...) {
        BOOST_TEST((std::this_thread::get_id() == host));
        ++done;
    };
    asio::steady_timer asios(other.context, 1ms);
    asios.async_wait(asio::bind_executor(queue.get_executor(), here));
    pawl::steady_timer pawls(other.context, 1ms);
    pawls.async_wait(asio::bind_executor(queue.get_executor(), here));
    asio::readable_pipe in(other.context);
    asio::writable_pipe out(other.context);
    asio::connect_pipe(in, out);
    std::array<char, 1> byte{};
    in.async_read_some(asio::buffer(byte), asio::bind_executor(queue.get_executor(), here));
    out.write_some(asio::buffer("x", 1));
    asio::readable_pipe silent(other.context);
    asio::writable_pipe unused(other.context);
    asio::connect_pipe(silent, unused);
    std::array<char, 1> nothing{};
    silent.async_read_some(
        asio::buffer(nothing),
        pawl::timeout(1ms, asio::bind_executor(queue.get_executor(), [&](error_code ec, auto) {
                          BOOST_TEST((ec == pawl::error::timed_out));
                          here();
                      })));

    while (done != 4) {
        queue.wait();
        queue.process_events();
    }
}

BOOST_AUTO_TEST_CASE(executors_of_any_type_strands_and_coroutines_run_in_the_queue) {
    pawl::event_queue queue;
    const asio::any_io_executor any = queue.get_executor();
    BOOST_TEST((&asio::query(any, asio::execution::context) == &queue));
    BOOST_TEST((queue.get_executor() == queue.get_executor()));
    int ran = 0;
    asio::post(any, [&] { ++ran; });
    asio::post(asio::make_strand(queue.get_executor()), [&] { ++ran; });
    asio::post(asio::make_strand(any), [&] { ++ran; });
    asio::co_spawn(
        queue.get_executor(),
        [&]() -> asio::awaitable<void> {
            ++ran;
            co_await asio::post(asio::use_awaitable);
            ++ran;
        },
        asio::detached);
    asio::dispatch(any, [&] { ++ran; });
    BOOST_TEST(ran == 0);

    while (queue.process_events() != 0)
        ;

    BOOST_TEST(ran == 6);
}

BOOST_AUTO_TEST_CASE(functions_of_any_size_and_those_that_only_move_are_run_and_destroyed_once) {
    pawl::event_queue queue;
    int there = 0;
    int ran = 0;
    for (int i = 0; i != 2; ++i) {
        asio::post(queue, [&ran, t = token(there)] { ++ran; });
        asio::post(queue,
                   [&ran, t = token(there), big = std::array<char, 4000>()] { ran += 1 + big[0]; });
        asio::post(queue, [&ran, t = token(there), p = std::make_unique<int>(1)] { ran += *p; });
        if (i == 0)
            queue.process_events();
    }

    BOOST_TEST(ran == 3);
    BOOST_TEST(there == 3);
    queue.process_events(1);
    BOOST_TEST(there == 2);
    {
        pawl::event_queue dies;
        asio::post(dies, [t = token(there)] {});
        BOOST_TEST(there == 3);
    }
    BOOST_TEST(there == 2);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(destruction)

BOOST_AUTO_TEST_CASE(a_queue_that_goes_destroys_all_functions_and_ends_all_timers) {
    asio::io_context context;
    int functions = 0;
    std::optional<manual_queue> own(std::in_place);
    std::optional<manual_queue> given(std::in_place, context);
    for (auto* queue : {&own, &given}) {
        auto a = (*queue)->every(1ms, [t = token(functions)] {});
        auto b = (*queue)->once(1ms, [t = token(functions)] {});
        auto c = (*queue)->once(1h, [t = token(functions)] {});
        auto d = (*queue)->every(1ms, [t = token(functions)] {});
        asio::post(**queue, [t = token(functions)] {});
        move_on(**queue, 5ms);
        context.poll();
        d.disarm();
        BOOST_TEST(functions == 5);
        queue->reset();
        BOOST_TEST(functions == 0);
        for (const auto& t : {a, b, c, d})
            BOOST_TEST(t.ended());
    }
    context.restart();
    context.poll();
}

BOOST_AUTO_TEST_CASE(a_queue_may_be_destroyed_by_its_own_functions) {
    for (const bool by_timer : {false, true}) {
        auto queue = std::make_unique<manual_queue>();
        int functions = 0;
        int ran = 0;
        const auto destroy = [&ran, &queue, &functions, t = token(functions)] {
            ++ran;
            queue.reset();
            BOOST_TEST(functions >= 1); // this one still exists
        };
        functions = 0; // `destroy` itself does not count
        if (by_timer)
            queue->every(1ms, [destroy] { destroy(); });
        else
            asio::post(*queue, [destroy] { destroy(); });
        for (int i = 0; i != 3; ++i)
            asio::post(*queue, [&ran, t = token(functions)] { ++ran; });
        queue->once(1h, [t = token(functions)] {});
        move_on(*queue, 3ms);
        auto& raw = *queue;

        BOOST_TEST(raw.process_events() == (by_timer ? 4U : 1U));

        BOOST_TEST(ran == (by_timer ? 4 : 1));
        BOOST_TEST(functions == 0);
        functions = 1; // for the destructor of `destroy`
    }
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(a_thread_that_waits_is_told_that_the_queue_was_destroyed) {
    running_context other;
    const std::function<void(pawl::event_queue&)> waits[] = {
        [](auto& q) { q.wait(); }, [](auto& q) { q.wait_for(1h); },
        [](auto& q) { q.wait_until(std::chrono::steady_clock::now() + 1h); }};
    for (std::size_t round = 0; round != 2 * std::size(waits); ++round) {
        const bool own = round % 2 == 0;
        const auto& wait = waits[round / 2];
        auto queue = own ? std::make_unique<pawl::event_queue>()
                         : std::make_unique<pawl::event_queue>(other.context);
        std::atomic<int> inside{0};
        std::atomic<int> told{0};
        std::vector<std::thread> threads;
        for (int i = 0; i != 2; ++i)
            threads.emplace_back([&, &q = *queue] {
                ++inside;
                try {
                    wait(q);
                } catch (const boost::system::system_error& e) {
                    told += e.code() == asio::error::operation_aborted;
                }
            });
        while (inside != 2)
            std::this_thread::yield();
        std::this_thread::sleep_for(100ms); // now in wait()
        queue.reset();
        for (auto& t : threads)
            t.join();
        BOOST_TEST(told == 2);
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(bad_input)

BOOST_AUTO_TEST_CASE(what_is_out_of_range_is_refused_with_its_value_and_the_range) {
    BOOST_TEST(text_of([] { pawl::event_queue({.capacity = 0}); }) ==
               "pawl: event_queue_options::capacity is 0; it must be at least 1");
    BOOST_TEST(text_of([] { pawl::event_queue({.overflow = static_cast<overflow_policy>(7)}); }) ==
               "pawl: event_queue_options::overflow is 7; there is no such policy");

    pawl::event_queue queue;
    BOOST_TEST(text_of([&] { queue.once(-5ms, [] {}); }) ==
               "pawl: a one-off timer after -5 ms: must be zero or more");
    BOOST_TEST(text_of([&] { queue.every(0s, [] {}); }) ==
               "pawl: a period of 0 s for an interval: must be greater than zero");
    BOOST_TEST(text_of([&] { queue.every(-2s, [] {}); }) ==
               "pawl: a period of -2 s for an interval: must be greater than zero");
    BOOST_TEST(text_of([&] { queue.once(1s, std::function<void()>()); }) ==
               "pawl: the function of a timer is empty");
    BOOST_TEST(text_of([&] { queue.every(1s, static_cast<void (*)()>(nullptr)); }) ==
               "pawl: the function of a timer is empty");
    BOOST_TEST(queue.timers() == 0U);
    BOOST_TEST(queue.inqueue() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
