// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   A context becomes known while calls and wake-ups are between two locks. An interposed
//   pthread_mutex_lock lets the test act there like another thread; model/wakeup.pml explores the
//   moments at the lock of a shard, too.

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <functional>
#include <utility>

/// This thread calls it before it takes the next lock while it holds at most so many.
static thread_local std::function<void()>* at_lock = nullptr;
static thread_local int locks_held = 0, most_held = 0;

using mutex_function = int (*)(pthread_mutex_t*);
// No static locals: libc++'s guards lock a mutex.
static constinit std::atomic<mutex_function> real_lock{nullptr}, real_unlock{nullptr};
static mutex_function find(std::atomic<mutex_function>& real, const char* name) noexcept {
    if (!real.load())
        real = reinterpret_cast<mutex_function>(dlsym(RTLD_NEXT, name));
    return real.load();
}
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    const mutex_function lock = find(real_lock, "pthread_mutex_lock");
    if (locks_held <= most_held) {
        if (auto* const f = std::exchange(at_lock, nullptr))
            (*f)();
    }
    ++locks_held;
    return lock(mutex);
}
extern "C" int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
    --locks_held;
    return find(real_unlock, "pthread_mutex_unlock")(mutex);
}

#define BOOST_TEST_MODULE attach
#include <boost/test/unit_test.hpp>

#include "../support/archetypes.hpp"

#include <pawl/alarm.hpp>
#include <pawl/basic_waitable_timer.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timer_service.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/wait_traits.hpp>

#include <chrono>
#include <future>
#include <optional>
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
    std::optional<second_thread> other;
    for (const bool armed_first : {false, true, false, true}) {
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
        if (armed_first)
            other.emplace();
    }
}

// At each moment between two locks: of the call that makes the context known, and of a wake-up of
// the driver for another shard.
BOOST_AUTO_TEST_CASE(P9_an_alarm_need_not_keep_running_a_context_that_becomes_known_meanwhile) {
    const second_thread other;
    pawl::options two;
    two.shards = 2;
    for (const bool in_poll : {false, true}) {
        for (int moment = 0;; ++moment) {
            boost::asio::io_context context;
            pawl::make_timer_service<pawl::steady_timer>(context, two);
            pawl_test::executor_log log;
            const pawl_test::property_executor ex(context.get_executor(), log);
            const auto nothing = [] {};
            pawl::alarm due(ex, nothing);
            std::optional<decltype(due)> alarm;
            std::thread([&] { alarm.emplace(ex, nothing); }).join();
            const auto attach = [&] { const pawl::steady_timer known(context); };
            const auto arm = [&] {
                alarm->arm_after(1h);
                alarm->keep_running(false);
            };
            int left = moment;
            std::function<void()> act = [&] {
                if (left-- != 0)
                    at_lock = &act;
                else
                    in_poll ? attach() : arm();
            };

            if (in_poll) {
                arm();
                due.arm_after(0s);
            }
            most_held = in_poll ? 0 : 1; // the lock of the list of shards
            at_lock = &act;
            in_poll ? void(context.poll()) : attach();
            most_held = 0;
            if (std::exchange(at_lock, nullptr)) {
                BOOST_CHECK_GT(moment, in_poll ? 4 : 1);
                break; // there are no more moments
            }
            context.poll();

            BOOST_TEST_CONTEXT("in poll: " << in_poll << ", moment " << moment) {
                BOOST_CHECK(alarm->armed());
                BOOST_CHECK(context.stopped());
            }
        }
    }
}
