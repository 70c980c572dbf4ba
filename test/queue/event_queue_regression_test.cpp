// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Fixed defects of event_queue, each with the smallest program that shows it.

#define BOOST_TEST_MODULE event_queue_regression
#include <boost/test/unit_test.hpp>

#include "../support/asio_configuration.hpp"

#include <pawl/event_queue.hpp>
#include <pawl/expire_all.hpp>
#include <pawl/manual_clock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#if !defined(_WIN32)
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>
#endif

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;
using pawl::manual_clock;
using pawl::missed_tick_policy;
using manual_queue = pawl::basic_event_queue<manual_clock>;

namespace {

#if !defined(_WIN32)
[[nodiscard]] bool readable(int fd, int ms = 0) {
    ::pollfd one{fd, POLLIN, 0};
    return ::poll(&one, 1, ms) == 1;
}
#endif

/// Calls a function when it is destroyed.
class last_words {
public:
    explicit last_words(bool& gone, std::function<void()> say = {})
        : gone_(&gone), say_(std::move(say)) {}
    last_words(const last_words&) = delete;
    last_words& operator=(const last_words&) = delete;
    ~last_words() {
        if (say_)
            say_();
        *gone_ = true;
    }

private:
    bool* gone_;
    std::function<void()> say_;
};

} // namespace

BOOST_AUTO_TEST_CASE(P10_a_function_that_ends_a_timer_while_the_queue_goes_leaves_none_behind) {
    asio::io_context context;
    for (const bool own : {true, false}) {
        std::optional<pawl::event_queue> queue;
        if (own)
            queue.emplace();
        else
            queue.emplace(context);
        bool gone[3] = {};
        pawl::event_queue::timer a, b, c;
        const auto make = [&](bool& g, std::function<void()> say) {
            return queue->once(1h, [s = std::make_shared<last_words>(g, std::move(say))] {});
        };
        a = make(gone[0], [&b] { b.destroy(); });
        b = make(gone[1], [&c] { c.destroy(); });
        c = make(gone[2], {});

        queue.reset();

        BOOST_TEST((gone[0] && gone[1] && gone[2]));
    }
    context.poll();
    BOOST_TEST(context.stopped()); // no wait was left
}

BOOST_AUTO_TEST_CASE(P4_two_threads_that_destroy_a_timer_find_its_function_destroyed) {
    pawl::event_queue queue;
    std::atomic<bool> begun{false};
    std::atomic<bool> destroyed{false};
    bool gone = false;
    auto words = std::make_shared<last_words>(gone, [&] {
        begun = true;
        std::this_thread::sleep_for(20ms);
        destroyed = true;
    });
    auto timer = queue.once(1h, [words = std::move(words)] {});
    std::thread other([&timer] { timer.destroy(); });
    while (!begun)
        std::this_thread::yield();

    timer.destroy();

    BOOST_TEST(destroyed);
    other.join();
}

BOOST_AUTO_TEST_CASE(a_function_may_destroy_its_timer_in_its_destructor) {
    pawl::event_queue queue;
    bool gone = false;
    auto timer = std::make_shared<pawl::event_queue::timer>();
    // The function owns the only handle, which is destroyed while it is used.
    *timer = queue.once(1h, [timer, words = std::make_shared<last_words>(
                                        gone, [t = timer.get()] { t->destroy(); })] {});
    auto* const raw = timer.get();
    timer.reset();
    raw->destroy();
    BOOST_TEST(gone);
}

BOOST_AUTO_TEST_CASE(P2_a_short_wait_has_the_queues_own_timers_expire) {
    for (const auto d : {0ns, 1000ns, 4000ns, 20000ns}) {
        pawl::event_queue queue;
        queue.once(1ms, [] {});
        std::this_thread::sleep_for(5ms);
        BOOST_TEST(queue.wait_for(d));
        BOOST_TEST(queue.process_events() == 1U);
        BOOST_TEST(!queue.wait_for(d));
    }
}

#if !defined(_WIN32)

BOOST_AUTO_TEST_CASE(a_descriptor_is_readable_while_the_queues_own_context_has_more_to_do) {
    pawl::event_queue queue;
    const int fd = queue.native_handle();
    int ran = 0;
    for (int i = 0; i != 500; ++i) // as handlers of async_wait() may do
        asio::post(static_cast<asio::io_context&>(queue.timer_context()), [&ran] { ++ran; });
    queue.process_events();

    while (ran != 500) {
        BOOST_REQUIRE(readable(fd, 10'000));
        queue.process_events();
    }
    BOOST_TEST(!readable(fd));
}

// Of timers that end, none starts a wait that would set the deadline.
BOOST_AUTO_TEST_CASE(a_descriptor_follows_one_deadline_after_the_other) {
    pawl::event_queue queue;
    const int fd = queue.native_handle();
    int expired = 0;
    for (int i = 1; i != 4; ++i)
        queue.once(i * 10ms, [&expired] { ++expired; });

    while (expired != 3) {
        BOOST_REQUIRE(readable(fd, 10'000));
        queue.process_events();
    }
    BOOST_TEST(!readable(fd));
}

// It has three parts.
BOOST_AUTO_TEST_CASE(a_descriptor_that_the_system_refuses_leaves_nothing_open) {
    pawl::event_queue queue;
    queue.once(1h, [] {}); // the context has what it needs
    ::rlimit usual{};
    BOOST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &usual) == 0);
    const auto lowest_free = [] {
        const int fd = ::dup(STDERR_FILENO);
        ::close(fd);
        return fd;
    };
    const int free = lowest_free();

    for (const int parts : {0, 1, 2}) {
        ::rlimit few = usual;
        few.rlim_cur = static_cast<::rlim_t>(free + parts);
        BOOST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
        error_code ec;
        try {
            (void)queue.native_handle();
        } catch (const boost::system::system_error& e) {
            ec = e.code();
        }
        BOOST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &usual) == 0);
        BOOST_TEST(ec.value() == EMFILE);
        BOOST_TEST(lowest_free() == free);
    }

    const int fd = queue.native_handle();
    BOOST_TEST(!readable(fd));
    asio::post(queue, [] {});
    BOOST_TEST(readable(fd));
}

BOOST_AUTO_TEST_CASE(
    a_descriptor_does_not_stay_readable_when_a_thread_that_waits_has_had_timers_expire) {
    pawl::event_queue queue;
    const int fd = queue.native_handle();
    std::atomic<bool> over{false};
    std::thread waits([&] {
        while (!over)
            queue.wait_for(10s);
    });
    for (int round = 0; round != 20; ++round) {
        bool expired = false;
        queue.once(1ms, [&expired] { expired = true; });
        while (!expired) {
            BOOST_REQUIRE(readable(fd, 10'000));
            queue.process_events();
        }
        int calls = 0; // the other thread may not have noticed yet
        for (; readable(fd) && calls != 1000; ++calls) {
            queue.process_events();
            std::this_thread::sleep_for(1ms);
        }
        BOOST_REQUIRE(calls != 1000);
    }
    over = true;
    asio::post(queue, [] {});
    waits.join();
}

#endif

BOOST_AUTO_TEST_CASE(a_handler_of_async_wait_may_process_events_wherever_it_runs) {
    pawl::event_queue queue;
    std::size_t handled = 0;
    queue.async_wait([&](error_code ec) { handled += ec ? 0 : queue.process_events(); });
    asio::post(queue, [] {});
    BOOST_CHECK_NO_THROW(handled += queue.process_events());
    BOOST_TEST(handled == 1U);
}

BOOST_AUTO_TEST_CASE(a_handler_that_the_queue_runs_itself_may_not_wait_for_its_events) {
    pawl::event_queue queue;
    bool refused = false;
    queue.async_wait([&](error_code) {
        queue.process_events();
        BOOST_CHECK_THROW(queue.wait_for(1ms), std::logic_error);
        refused = true;
    });
    asio::post(queue, [] {});
    (void)queue.pending();
    BOOST_TEST(refused);
    BOOST_TEST(!queue.wait_for(0ns)); // later it may
}

BOOST_AUTO_TEST_CASE(P10_a_handler_of_async_wait_may_destroy_the_queue_wherever_it_runs) {
    for (const bool by_count : {true, false}) {
        auto queue = std::make_unique<pawl::event_queue>();
        auto timer = queue->once(1h, [] {});
        queue->async_wait([&](error_code ec) {
            if (!ec)
                queue.reset();
        });
        asio::post(*queue, [] {});
        if (by_count)
            (void)queue->inqueue();
        else
            queue->process_events();
        BOOST_TEST(queue == nullptr);
        BOOST_TEST(timer.ended());
    }
    for (const auto patience : {0ms, 10'000ms}) { // in a thread that waits for events
        auto queue = std::make_unique<pawl::event_queue>();
        asio::cancellation_signal signal;
        queue->async_wait(
            asio::bind_cancellation_slot(signal.slot(), [&](error_code) { queue.reset(); }));
        signal.emit(asio::cancellation_type::total);
        BOOST_CHECK_THROW(queue->wait_for(patience), boost::system::system_error);
        BOOST_TEST(queue == nullptr);
    }
}

BOOST_AUTO_TEST_CASE(P9_an_interval_that_waits_for_room_is_work_of_its_context) {
    asio::io_context context;
    for (const auto policy :
         {missed_tick_policy::burst, missed_tick_policy::delay, missed_tick_policy::skip}) {
        manual_queue queue(context, {.capacity = 2});
        int ticks = 0;
        auto timer = queue.every(
            10ms, [&ticks] { ++ticks; }, policy);
        const auto other = queue.every(
            10ms, [] {}, policy); // two intervals compete for the same room
        manual_clock::advance(context, 50ms);
        context.restart();
        context.poll();
        BOOST_TEST(!context.stopped());
        for (int i = 0; i != 20; ++i) {
            queue.process_events();
            manual_clock::advance(context, 10ms);
            context.poll();
            BOOST_TEST(!context.stopped());
        }
        BOOST_TEST(ticks >= 10);
        for (const auto& t : {timer, other}) {
            auto handle = t;
            handle.disarm(); // maybe while it waits for room
        }
        context.poll();
        BOOST_TEST(context.stopped());
    }
    {
        manual_queue queue(context, {.capacity = 1});
        auto timer = queue.every(10ms, [] {});
        manual_clock::advance(context, 50ms);
        context.restart();
        context.poll();
        BOOST_TEST(!context.stopped());
        timer.destroy();
        context.poll();
        BOOST_TEST(context.stopped());

        timer = queue.every(10ms, [] {});
        manual_clock::advance(context, 50ms);
        context.restart();
        context.poll();
        BOOST_TEST(!context.stopped());
    }
    context.poll();
    BOOST_TEST(context.stopped()); // the queue has been destroyed
}

BOOST_AUTO_TEST_CASE(P10_the_end_of_a_context_ends_an_interval_that_waits_for_room) {
    std::optional<asio::io_context> context;
    context.emplace();
    manual_queue queue(*context, {.capacity = 2});
    int ticks = 0;
    auto timer = queue.every(10ms, [&ticks] { ++ticks; });
    manual_clock::advance(*context, 50ms);
    context->poll();
    BOOST_TEST(queue.pending() == 2U);

    context.reset();

    BOOST_TEST(!timer.armed());
    BOOST_TEST(queue.process_events() == 2U);
    BOOST_TEST(timer.ended());
    BOOST_TEST(queue.process_events() == 0U);
    BOOST_TEST(ticks == 2);
}

BOOST_AUTO_TEST_CASE(P10_a_timer_that_is_made_while_its_context_ends_is_not_armed) {
    std::optional<asio::io_context> context(std::in_place);
    manual_queue queue(*context);
    const auto before = queue.once(1h, [] {}); // its service is shut down first
    manual_queue::timer timer;
    bool gone = false;
    asio::post(*context, [words = std::make_shared<last_words>(
                              gone, [&] { timer = queue.once(1h, [] {}); })] {});

    context.reset();

    BOOST_TEST(gone);
    BOOST_TEST(!timer.armed());
    BOOST_TEST(queue.process_events() == 0U);
    BOOST_TEST(timer.ended());
}

BOOST_AUTO_TEST_CASE(P10_expire_all_lets_go_of_an_interval_that_waits_for_room) {
    asio::io_context context;
    manual_queue queue(context, {.capacity = 2});
    int ticks = 0;
    auto timer = queue.every(10ms, [&ticks] { ++ticks; });
    manual_clock::advance(context, 50ms);
    context.poll();
    pawl::expire_all(context); // with success: it checks for room, and waits again
    context.poll();
    BOOST_TEST(timer.armed());
    BOOST_TEST(queue.process_events() == 2U);
    BOOST_TEST(queue.process_events() == 2U);
    BOOST_TEST(queue.process_events() == 1U);
    BOOST_TEST(ticks == 5);
    manual_clock::advance(context, 10ms); // and continues
    context.poll();
    BOOST_TEST(queue.process_events() == 1U);

    manual_clock::advance(context, 50ms);
    context.poll();
    pawl::expire_all(context, asio::error::operation_aborted);
    context.poll();
    BOOST_TEST(!timer.armed());
    BOOST_TEST(queue.process_events() == 2U);
    BOOST_TEST(timer.ended());
    BOOST_TEST(ticks == 8);
}

BOOST_AUTO_TEST_CASE(a_function_that_is_submitted_while_the_queue_goes_is_destroyed) {
    bool gone = false;
    bool ran = false;
    const auto kept = std::make_shared<int>();
    {
        pawl::event_queue queue;
        asio::post(queue, [words = std::make_shared<last_words>(
                               gone, [&ran, kept, ex = queue.get_executor()] {
                                   asio::post(ex, [&ran, kept] { ran = true; });
                               })] {});
    }
    BOOST_TEST(gone);
    BOOST_TEST(!ran);
    BOOST_TEST(kept.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(
    a_handler_that_throws_in_a_thread_that_waits_for_events_leaves_the_queue_whole) {
    pawl::event_queue queue;
    asio::cancellation_signal signal;
    queue.async_wait(asio::bind_cancellation_slot(
        signal.slot(), [](error_code) { throw std::runtime_error("from a handler"); }));
    signal.emit(asio::cancellation_type::total);
    BOOST_CHECK_THROW(queue.wait_for(0ms), std::runtime_error);
    BOOST_TEST(!queue.wait_for(0ms));
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(expire_all_may_end_a_wait_of_async_wait_as_it_is_started) {
    asio::io_context context;
    auto work = asio::make_work_guard(context);
    std::thread runs([&context] { context.run(); });
    {
        pawl::event_queue queue(context);
        std::atomic<bool> over{false};
        std::atomic<int> ended{0};
        std::thread expires([&] {
            while (!over)
                pawl::expire_all(context, asio::error::operation_aborted);
        });
        constexpr int rounds = 2000;
        for (int i = 0; i != rounds; ++i) {
            queue.async_wait([&ended](error_code) { ++ended; });
            asio::post(queue, [] {});
            queue.process_events();
        }
        over = true;
        expires.join();
        pawl::expire_all(context, asio::error::operation_aborted);
        while (ended != rounds)
            std::this_thread::yield();
    }
    work.reset();
    runs.join();
}

BOOST_AUTO_TEST_CASE(P4_an_unknown_policy_for_missed_ticks_is_refused) {
    pawl::event_queue queue;
    BOOST_CHECK_THROW((void)queue.every(
                          1s, [] {}, static_cast<missed_tick_policy>(77)),
                      std::invalid_argument);
    BOOST_TEST(queue.timers() == 0U);
}
