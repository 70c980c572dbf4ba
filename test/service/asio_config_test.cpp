// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Pawl keeps its promises whatever Asio's configuration of a context is: concurrency hints, and from Boost 1.88 on
//   `config_from_string` and `config_from_env`.

#define BOOST_TEST_MODULE asio_config
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "../support/archetypes.hpp"
#include "../support/asio_configuration.hpp"
#include "../timeouts/timeout_support.hpp"

#include <pawl/alarm.hpp>
#include <pawl/group.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timer_service.hpp>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/thread_pool.hpp>
#if __has_include(<boost/asio/config.hpp>) // Boost 1.88
#include <boost/asio/config.hpp>
#endif

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <list>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>

namespace {

using namespace timeouts;
namespace data = boost::unit_test::data;
using asio::ip::tcp;
using clock = std::chrono::steady_clock;

/// Timers, an alarm, a group and a read under a limit, in a context that one thread runs to its end.
void one_thread_keeps_the_promises(asio::io_context& context) {
    int expired = 0, cancelled = 0, early = 0, alarms = 0;
    std::list<pawl::steady_timer> timers;
    for (int i = 0; i != 60; ++i) {
        pawl::steady_timer& t = timers.emplace_back(
            context, std::chrono::milliseconds(i % 3 == 0 ? i / 10 : 3'600'000));
        t.async_wait([&](error_code ec) {
            early += !ec && clock::now() < t.expiry();
            ++(ec ? cancelled : expired);
        });
        if (i % 3 == 1)
            t.rearm_after(std::chrono::milliseconds(i / 10));
        if (i % 3 == 2)
            BOOST_TEST(t.cancel() == one);
    }
    pawl::alarm alarm(context, [&] { ++alarms; });
    alarm.arm_after(1ms);

    tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
    tcp::socket here(context);
    here.connect(acceptor.local_endpoint());
    tcp::socket there = acceptor.accept();
    std::array<char, 1> byte{};
    outcome limited, member;
    here.async_read_some(asio::buffer(byte), pawl::timeout(2ms, record(limited)));
    pawl::group group(context);
    pawl::steady_timer endless(context, 1h);
    endless.async_wait(pawl::in_group(group, record(member)));
    pawl::steady_timer last(context, 8ms);
    last.async_wait([&](error_code) { group.cancel(); });
    run_to_end(context);

    BOOST_TEST(expired == 40);
    BOOST_TEST(cancelled == 20);
    BOOST_TEST(early == 0);
    BOOST_TEST(alarms == 1);
    BOOST_TEST(limited.ended_with(timed_out), limited);
    BOOST_TEST(member.ended_with(aborted), member);
}

/// Two threads run the context; this one cancels and moves timers.
void several_threads_keep_the_promises(asio::io_context& context) {
    if (!pawl_test::threads)
        return;
    context.restart();
    std::atomic<int> over{0}, early{0};
    std::list<pawl::steady_timer> timers;
    for (int i = 0; i != 200; ++i) {
        pawl::steady_timer& t = timers.emplace_back(context, 1h);
        t.async_wait([&](error_code ec) {
            early += !ec && clock::now() < t.expiry();
            ++over;
        });
    }
    std::thread a([&] { context.run_for(patience); }), b([&] { context.run_for(patience); });
    int i = 0;
    for (pawl::steady_timer& t : timers) {
        if (++i % 2)
            t.cancel();
        else
            t.rearm_after(1ms);
    }
    a.join();
    b.join();
    BOOST_TEST(context.stopped());
    BOOST_TEST(over == 200);
    BOOST_TEST(early == 0);
}

BOOST_DATA_TEST_CASE(timers_keep_their_promises_with_each_concurrency_hint,
                     data::make({1, 2, BOOST_ASIO_CONCURRENCY_HINT_UNSAFE,
                                 BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO,
                                 BOOST_ASIO_CONCURRENCY_HINT_SAFE}),
                     hint) {
    asio::io_context context(hint);
    one_thread_keeps_the_promises(context);
    if (hint == 2 || hint == BOOST_ASIO_CONCURRENCY_HINT_SAFE)
        several_threads_keep_the_promises(context);
}

#if __has_include(<boost/asio/config.hpp>)

constexpr std::array locking_configurations{
    "scheduler.concurrency_hint=1",
    "scheduler.concurrency_hint=2\nscheduler.locking=1",
    "scheduler.locking_spin_count=100",
    "scheduler.task_usec=0",
    "scheduler.task_usec=200",
    "scheduler.wait_usec=0",
    "scheduler.wait_usec=200",
    "reactor.use_timerfd=0",
    "reactor.use_eventfd=0",
    "reactor.use_timerfd=0\nreactor.use_eventfd=0",
    "reactor.registration_locking_spin_count=100",
    "reactor.io_locking_spin_count=-1",
    "reactor.preallocated_io_objects=100",
    "reactor.reset_edge_on_partial_read=1",
    "timer.heap_reserve=1000",
};

BOOST_DATA_TEST_CASE(timers_keep_their_promises_with_each_configuration_of_asio,
                     data::make(locking_configurations), configuration) {
    asio::io_context context(asio::config_from_string{configuration});
    one_thread_keeps_the_promises(context);
    several_threads_keep_the_promises(context);
}

BOOST_DATA_TEST_CASE(timers_of_one_thread_need_no_locks_of_asio,
                     data::make({"scheduler.locking=0", "reactor.io_locking=0",
                                 "reactor.registration_locking=0",
                                 "scheduler.locking=0\nreactor.io_locking=0\n"
                                 "reactor.registration_locking=0"}) *
                         data::make({true, false}),
                     configuration, locking) {
    asio::io_context context(asio::config_from_string{configuration});
    pawl::options o;
    o.locking = locking;
    pawl::make_timer_service(context, o);
    one_thread_keeps_the_promises(context);
}

#if !defined(_WIN32)
BOOST_AUTO_TEST_CASE(the_environment_configures_a_context_with_timers) {
    ::setenv("PAWL_TEST_SCHEDULER_CONCURRENCY_HINT", "1", 1);
    ::setenv("PAWL_TEST_REACTOR_USE_TIMERFD", "0", 1);
    asio::io_context context(asio::config_from_env{"pawl_test"});
    one_thread_keeps_the_promises(context);
}
#endif

BOOST_AUTO_TEST_CASE(a_value_that_asio_refuses_is_its_exception_and_not_a_hang) {
    asio::io_context context(
        asio::config_from_string{"timer.heap_reserve=99999999999999999999999999"});
    BOOST_CHECK_THROW(pawl::steady_timer(context, 1ms), std::out_of_range);
    BOOST_CHECK_THROW(pawl::steady_timer(context, 1ms), std::out_of_range);
}

PAWL_NEEDS_THREADS
BOOST_DATA_TEST_CASE(timers_of_a_thread_pool_and_its_configuration,
                     data::make({"timer.heap_reserve=100", "scheduler.concurrency_hint=1"}),
                     configuration) {
    asio::thread_pool pool(1, asio::config_from_string{configuration});
    pawl::steady_timer timer(pool, 1ms);
    std::promise<error_code> ended;
    timer.async_wait([&](error_code ec) { ended.set_value(ec); });
    BOOST_TEST(ended.get_future().get() == error_code());
    pool.join();
}

#endif

// ---- the allocator of a context ----------------------------------------------------------------------

template <class Context>
void the_services_are_in_the_memory_of_their_context() {
    if constexpr (std::is_constructible_v<Context, std::allocator_arg_t, std::allocator<int>>) {
        pawl_test::allocation_log log;
        std::optional<pawl::steady_timer> outlives;
        {
            Context context(std::allocator_arg, pawl_test::counting_allocator<int>(log));
            const std::size_t before = log.live();
            outlives.emplace(context, 1h);
            BOOST_TEST(log.live() > before);

            one_thread_keeps_the_promises(context);
            outlives->async_wait([](error_code) {});
        }
        BOOST_TEST(log.live() == none);
        BOOST_TEST(outlives->cancel() == none); // so its shard is in no memory of the context's
    }
}

BOOST_AUTO_TEST_CASE(the_allocator_of_a_context_holds_the_services_and_gets_all_back) {
    the_services_are_in_the_memory_of_their_context<asio::io_context>();
}

} // namespace
