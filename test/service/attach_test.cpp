// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   A context becomes known between the moment when a start decides to set the driver and the
//   moment when it gets the driver's lock. An interposed pthread_mutex_lock lets the test act there
//   like another thread; model/wakeup.pml explores every other moment.

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <functional>
#include <utility>

/// This thread calls it before it takes the next lock.
static thread_local std::function<void()>* at_lock = nullptr;
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    using function = int (*)(pthread_mutex_t*);
    static constinit std::atomic<function> real{nullptr}; // no guard: libc++'s locks a mutex
    if (!real.load())
        real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    if (auto* const f = std::exchange(at_lock, nullptr))
        (*f)();
    return real.load()(mutex);
}

#define BOOST_TEST_MODULE attach
#include <boost/test/unit_test.hpp>

#include "../support/archetypes.hpp"

#include <pawl/alarm.hpp>
#include <pawl/basic_waitable_timer.hpp>
#include <pawl/steady_timer.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/wait_traits.hpp>

#include <chrono>
#include <future>
#include <thread>

namespace {

using namespace std::chrono_literals;
using boost::system::error_code;

/// On an executor that does not reveal its context.
using unknown_timer =
    pawl::basic_waitable_timer<std::chrono::steady_clock,
                               boost::asio::wait_traits<std::chrono::steady_clock>,
                               pawl_test::property_executor>;

/// A process of one thread takes no locks.
struct second_thread {
    std::promise<void> end;
    std::thread thread{[wait = end.get_future()] { wait.wait(); }};

    ~second_thread() {
        end.set_value();
        thread.join();
    }
};

} // namespace

BOOST_AUTO_TEST_CASE(P9_a_context_becomes_known_while_the_first_wait_sets_the_driver) {
    const second_thread other;
    for (const bool meanwhile : {false, true}) {
        boost::asio::io_context context;
        pawl_test::executor_log log;
        unknown_timer timer(pawl_test::property_executor(context.get_executor(), log), 1h);
        std::function<void()> attach = [&] { const pawl::steady_timer known(context); };
        int aborted = 0;

        if (meanwhile)
            at_lock = &attach;
        timer.async_wait(
            [&](error_code e) { aborted += e == boost::asio::error::operation_aborted; });
        BOOST_CHECK(!std::exchange(at_lock, nullptr)); // it was called
        if (!meanwhile)
            attach();
        context.poll();
        BOOST_CHECK(!context.stopped());
        timer.cancel();
        context.poll();

        BOOST_CHECK_EQUAL(aborted, 1);
        BOOST_CHECK(context.stopped()); // run() would return
    }
}

BOOST_AUTO_TEST_CASE(P9_an_alarm_need_not_keep_running_a_context_that_becomes_known_later) {
    const second_thread other;
    for (const bool armed_first : {false, true}) {
        boost::asio::io_context context;
        pawl_test::executor_log log;
        pawl::alarm alarm(pawl_test::property_executor(context.get_executor(), log), [] {});
        alarm.keep_running(false);
        if (armed_first)
            alarm.arm_after(1h);
        context.poll();
        BOOST_CHECK_EQUAL(context.stopped(), !armed_first); // it cannot be told of work

        const pawl::steady_timer known(context);
        context.restart();
        if (!armed_first)
            alarm.arm_after(1h);
        context.poll();

        BOOST_CHECK(alarm.armed());
        BOOST_CHECK(context.stopped());
    }
}

BOOST_AUTO_TEST_CASE(P9_an_alarm_need_not_keep_running_a_context_that_becomes_known_meanwhile) {
    const second_thread other;
    boost::asio::io_context context;
    pawl_test::executor_log log;
    pawl::alarm alarm(pawl_test::property_executor(context.get_executor(), log), [] {});
    std::function<void()> act = [&] {
        alarm.arm_after(1h);
        alarm.keep_running(false);
    };
    std::function<void()> next = [&] { at_lock = &act; }; // first it locks the list of shards
    at_lock = &next;
    const pawl::steady_timer known(context);
    BOOST_CHECK(!std::exchange(at_lock, nullptr)); // it was called
    context.poll();
    BOOST_CHECK(alarm.armed());
    BOOST_CHECK(context.stopped());
}
