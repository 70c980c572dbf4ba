// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The costs of an event queue, counted: allocations, units of the context. And its state when the
// n-th allocation fails, for every n.

#define BOOST_TEST_MODULE event_queue_cost
#include <boost/test/unit_test.hpp>

#include "../service/counted_new.hpp"
#include "../support/asio_configuration.hpp"

#include <pawl/event_queue.hpp>
#include <pawl/manual_clock.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using pawl::manual_clock;
using pawl::overflow_policy;
using manual_queue = pawl::basic_event_queue<manual_clock>;

namespace {

template <class F>
[[nodiscard]] std::size_t allocations(F f) {
    const std::size_t before = counted_new::calls;
    f();
    return counted_new::calls - before;
}

void move_on(asio::io_context& context, manual_clock::duration d) {
    manual_clock::advance(context, d);
    context.poll();
}

} // namespace

BOOST_AUTO_TEST_CASE(P8_an_event_of_an_armed_timer_costs_no_allocation_nor_does_its_end) {
    for (const auto overflow :
         {overflow_policy::block, overflow_policy::drop_oldest, overflow_policy::coalesce}) {
        asio::io_context context;
        manual_queue queue(context, {.capacity = 20, .overflow = overflow});
        std::uint64_t ran = 0;
        std::vector<manual_queue::timer> timers;
        for (int i = 0; i != 10; ++i)
            timers.push_back(queue.every(10ms, [&ran] { ++ran; }));
        const auto tick = [&] {
            move_on(context, 10ms);
            queue.process_events();
        };
        tick();

        BOOST_TEST(allocations([&] {
                       for (int i = 0; i != 100; ++i)
                           tick();
                       move_on(context, 100ms); // more than the capacity
                       queue.process_events();
                       for (std::size_t i = 0; i != timers.size(); ++i) {
                           if (i % 2 == 0)
                               timers[i].disarm();
                           else
                               timers[i].destroy();
                       }
                       queue.process_events();
                   }) == 0U);
        BOOST_TEST(ran > 1000U);
        BOOST_TEST(queue.timers() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(P8_a_one_off_takes_one_allocation_and_an_interval_two) {
    asio::io_context context;
    manual_queue queue(context);
    std::vector<manual_queue::timer> timers;
    timers.reserve(20);
    for (int i = 0; i != 20; ++i) // so that the service, the buffer and room in the wheel exist
        timers.push_back(queue.once(1h, [] {}));
    while (timers.size() != 1) {
        timers.back().destroy();
        timers.pop_back();
    }
    context.poll();
    queue.process_events();

    BOOST_TEST(allocations([&] {
                   for (int i = 0; i != 10; ++i)
                       timers.push_back(queue.once(1h, [] {}));
               }) == 10U);
    timers.push_back(queue.every(1h, [] {}));
    BOOST_TEST(allocations([&] { timers.push_back(queue.every(1h, [] {})); }) == 2U);
}

BOOST_AUTO_TEST_CASE(P8_a_small_function_costs_no_allocation_and_a_large_one_one_block_at_most) {
    asio::io_context context;
    pawl::event_queue queue(context);
    const auto ex = queue.get_executor();
    std::uint64_t sum = 0;
    const auto round = [&](auto load) {
        for (int i = 0; i != 64; ++i)
            ex.execute([&sum, load] { sum += load.front(); });
        queue.process_events();
    };
    round(std::array<std::uint64_t, 4>{1});
    round(std::array<std::uint64_t, 4>{1}); // the queue keeps two blocks

    BOOST_TEST(allocations([&] { round(std::array<std::uint64_t, 4>{1}); }) == 0U);
    BOOST_TEST(allocations([&] { round(std::array<std::uint64_t, 100>{1}); }) <= 64U);
    BOOST_TEST(sum == 4 * 64U);
}

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(P8_a_queue_costs_its_context_nothing_until_a_timer_is_due) {
    asio::io_context context;
    manual_queue queue(context);
    BOOST_TEST(context.poll() == 0U);
    BOOST_TEST(context.stopped()); // no work
    context.restart();

    auto timer = queue.once(1h, [] {});
    asio::post(queue, [] {});
    BOOST_TEST(queue.process_events() == 1U);
    BOOST_TEST(context.poll() == 0U);
    BOOST_TEST(!context.stopped()); // the timer is work
    timer.destroy();
    context.poll();
    BOOST_TEST(context.stopped());
}

BOOST_AUTO_TEST_CASE(P8_waits_that_have_ended_leave_no_memory_in_a_queue_that_is_never_empty) {
    asio::io_context context;
    manual_queue queue(context);
    asio::post(queue, [] {});
    int told = 0;
    const auto wait = [&](int waits) {
        for (int i = 0; i != waits; ++i)
            queue.async_wait([&told](boost::system::error_code ec) { told += !ec; });
        context.restart();
        context.poll();
    };
    for (int i = 0; i != 100; ++i) // the context and the service take memory once
        wait(5);
    wait(1);
    const std::size_t live = counted_new::live;

    for (int i = 0; i != 1000; ++i)
        wait(1);
    BOOST_TEST(counted_new::live <= live);
    for (int i = 0; i != 100; ++i) // several at a time, which end in the next call
        wait(5);
    wait(1);
    BOOST_TEST(counted_new::live <= live);

    BOOST_TEST(told == 501 + 1000 + 500 + 1);
    BOOST_TEST(queue.inqueue() == 1U);
}

BOOST_AUTO_TEST_CASE(P8_destroyed_timers_whose_events_were_queued_leave_no_memory) {
    asio::io_context context;
    manual_queue queue(context);
    const auto pass = [&](int timers) {
        for (int i = 0; i != timers; ++i) {
            auto timer = queue.every(1ms, [] {});
            move_on(context, 3ms);
            timer.destroy();
        }
        queue.process_events();
    };
    pass(300);
    const std::size_t live = counted_new::live;

    pass(300);
    pass(300);

    BOOST_TEST(counted_new::live <= live);
    BOOST_TEST(queue.inqueue() == 0U);
}

BOOST_AUTO_TEST_CASE(P8_a_queue_that_goes_takes_its_own_timers_with_it) {
    const auto pass = [] {
        manual_queue own;
        own.once(1h, [] {});
        own.every(1h, [] {});
        own.every(1h, [] {}).disarm();
    };
    pass();
    const std::size_t live = counted_new::live;

    pass();

    BOOST_TEST(counted_new::live <= live);
}

// The queue keeps its answer: a refused event is not queued, and an accepted one is handled.
BOOST_AUTO_TEST_CASE(P3_whichever_allocation_fails_nothing_is_lost) {
    long fails_at = 0;
    for (bool failed = true; failed; ++fails_at) {
        failed = false;
        asio::io_context context;
        manual_queue queue(context);
        manual_queue own;
        queue.once(0s, [] {}); // makes the service
        own.once(0s, [] {});
        std::size_t ran = 0;
        std::size_t accepted = 0;
        std::size_t timers = 2;
        counted_new::fuse = fails_at;
        const auto attempt = [&](auto f) {
            try {
                f();
                return true;
            } catch (const std::bad_alloc&) {
                failed = true;
                return false;
            }
        };
        for (int i = 0; i != 100; ++i) {
            for (manual_queue* q : {&queue, &own}) {
                accepted += attempt([&] { asio::post(*q, [&ran] { ++ran; }); });
                accepted += attempt(
                    [&] { asio::post(*q, [&ran, big = std::string(100, 'x')] { ++ran; }); });
                timers += attempt([&] { q->once(1ms, [&ran] { ++ran; }); });
            }
        }
        counted_new::fuse = counted_new::never;

        manual_clock::advance(context, 1ms);
        manual_clock::advance(own.timer_context(), 1ms);
        context.poll();
        queue.process_events();
        own.process_events();

        BOOST_TEST(ran == accepted + timers - 2);
        BOOST_TEST(queue.timers() + own.timers() == 0U);
    }
    BOOST_TEST(fails_at > 100);
}

BOOST_AUTO_TEST_CASE(P3_ticks_for_which_there_is_no_memory_come_later) {
    for (long fails_at = 0; fails_at != 8; ++fails_at) {
        asio::io_context context;
        manual_queue queue(context);
        std::size_t ran = 0;
        for (int i = 0; i != 30; ++i)
            queue.every(10ms, [&ran] { ++ran; });
        counted_new::fuse = fails_at;
        try {
            manual_clock::advance(context, 100ms);
            context.poll();
        } catch (const std::bad_alloc&) { // by the service; the context goes on
        }
        counted_new::fuse = counted_new::never;

        for (int i = 0; i != 20; ++i) {
            context.poll();
            manual_clock::advance(context, 0ms);
            queue.process_events();
        }

        BOOST_TEST(ran == 30U * 10);
    }
}

namespace {

/// Tells when a handler of the queue runs.
struct marked_executor {
    asio::execution_context& query(asio::execution::context_t) const noexcept { return *context; }
    static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
        return asio::execution::blocking.never;
    }
    marked_executor require(asio::execution::blocking_t::never_t) const { return *this; }
    template <class F>
    void execute(F&& f) const {
        asio::post(*context, [f = std::forward<F>(f)]() mutable {
            inside = true;
            std::move(f)();
            inside = false;
        });
    }
    friend bool operator==(const marked_executor&, const marked_executor&) noexcept = default;

    static inline bool inside = false;
    asio::io_context* context;
};

/// Calls `meanwhile` once, as another thread would do it, when such a handler reads it; and `outside` when the host does.
struct busy_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<busy_clock>;
    static constexpr bool is_steady = false;

    static time_point now() {
        if (marked_executor::inside && meanwhile)
            std::exchange(meanwhile, nullptr)();
        else if (!marked_executor::inside && outside)
            outside();
        return time_point(reading);
    }
    static void pass(asio::io_context& context) {
        reading += 10ms;
        asio::use_service<pawl::detail::service_registry>(context).for_each(
            [](pawl::detail::registered_service& each) { each.clock_moved(); });
        context.poll();
    }

    static inline duration reading{0};
    static inline std::function<void()> meanwhile;
    static inline std::function<void()> outside;
};

} // namespace

// Between the end of a wait and the start of the next one, another wait takes the place, and there
// is no memory for one more. The timer goes on when the host comes. If that has no memory either and
// sleeps, it looks again: nothing else would wake it.
BOOST_AUTO_TEST_CASE(P3_an_interval_without_memory_for_its_next_wait_goes_on_with_the_host) {
    using timer = pawl::basic_waitable_timer<busy_clock>;
    const auto check = [](bool sleeps, bool full) {
        int failures = 0;
        int slept = 0;
        for (std::size_t others = 0; others != 40; ++others) {
            asio::io_context context;
            pawl::basic_event_queue<busy_clock> queue(
                asio::any_io_executor(marked_executor{&context}),
                {.capacity = full ? std::size_t{1} : pawl::event_queue_options().capacity});
            std::deque<timer> timers;
            const auto start_one = [&] {
                timers.emplace_back(context, 1h).async_wait([](boost::system::error_code) {});
            };
            std::size_t ran = 0;
            queue.every(10ms, [&ran] { ++ran; });
            for (std::size_t i = 0; i != others; ++i)
                start_one();
            const auto has_failed = [] {
                return counted_new::fuse.exchange(counted_new::never) == counted_new::never;
            };
            const auto next_wake = [&] {
                using service = pawl::timer_service<busy_clock, asio::wait_traits<busy_clock>>;
                return asio::use_service<service>(context).next_wake().time_since_epoch();
            };

            if (full)
                busy_clock::pass(context);
            busy_clock::meanwhile = [&] {
                start_one();
                counted_new::fuse = 0;
            };
            busy_clock::pass(context); // if the queue is full, the tick waits for room, too
            BOOST_REQUIRE(!busy_clock::meanwhile);
            const bool failed = has_failed();
            failures += failed;
            if (failed && sleeps) // and there is none
                counted_new::fuse = counted_new::spare = 0;
            queue.process_events();
            const bool adrift = failed && sleeps && next_wake() > busy_clock::reading + 10ms;
            if (adrift) {
                int reads = 0; // the first one finds no tick
                const auto move = [&] { busy_clock::reading += ++reads == 2 ? 10ms : 0ms; };
                busy_clock::outside = std::ref(move);
                queue.wait();
                busy_clock::outside = nullptr;
            }
            counted_new::fuse = counted_new::spare = counted_new::never;
            BOOST_TEST(ran == 1U);
            slept += adrift;
            if (!adrift)
                busy_clock::pass(context);
            queue.process_events();
            BOOST_TEST(ran == 2U);
        }
        BOOST_TEST(failures > 0);
        BOOST_TEST((slept > 0) == sleeps);
    };
    check(false, false);
    check(true, false);
    check(false, true);
}

BOOST_AUTO_TEST_CASE(P3_an_interval_whose_clock_throws_as_its_wait_ends_goes_on) {
    struct no_time {};
    asio::io_context context;
    pawl::basic_event_queue<busy_clock> queue(asio::any_io_executor(marked_executor{&context}));
    std::size_t ran = 0;
    queue.every(10ms, [&ran] { ++ran; });
    busy_clock::meanwhile = [] { throw no_time(); };
    BOOST_CHECK_THROW(busy_clock::pass(context), no_time);
    marked_executor::inside = false;
    BOOST_TEST(!context.stopped());
    for (std::size_t n = 1; n != 3; ++n) {
        busy_clock::pass(context);
        queue.process_events();
        BOOST_TEST(ran == n + 1); // none is lost
    }
}
