// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   options::locking = false is a promise of the user, and PAWL_ASSERT reports a violation. With
//   locking, a mutex excludes other threads.

#include <atomic>
#include <string>

namespace locking_test {

inline std::atomic<int> broken{0};
inline std::string sentence; ///< of the first one

/// Called by one thread at a time: the others of these tests wait.
inline void note(const char* what) {
    if (broken++ == 0)
        sentence = what;
}

} // namespace locking_test

#define PAWL_ASSERT(...) ((__VA_ARGS__) ? void() : locking_test::note(#__VA_ARGS__))

#include <pawl/detail/service/optional_mutex.hpp>
#include <pawl/detail/service/spin_mutex.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timer_service.hpp>

#define BOOST_TEST_MODULE locking
#include <boost/test/unit_test.hpp>

#include "../support/asio_configuration.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <thread>

namespace locking_test {

using boost::system::error_code;
using namespace std::chrono_literals;

namespace {

pawl::options options(bool locking) {
    pawl::options o;
    o.locking = locking;
    return o;
}

/// Runs `beside` in another thread, while a handler waits for its end.
template <class Function>
int broken_by(bool locking, Function beside) {
    broken = 0;
    boost::asio::io_context context;
    pawl::make_timer_service(context, options(locking));
    pawl::steady_timer other(context, 1h);
    other.async_wait([](error_code) {});
    pawl::steady_timer timer(context, 0s);
    timer.async_wait([&](error_code) { std::thread([&] { beside(other); }).join(); });
    context.run_one();
    other.cancel();
    return broken;
}

} // namespace

// First: where it fails, the others may not end.
BOOST_AUTO_TEST_CASE(a_mutex_is_taken_by_one_thread_and_knows_whether_others_are_excluded) {
    pawl::detail::spin_mutex spin;
    pawl::detail::optional_mutex<pawl::detail::spin_mutex> optional(true);
    std::thread([&] { // a process with one thread takes no lock
        BOOST_TEST(spin.try_lock());
        BOOST_TEST(!spin.try_lock());
        spin.unlock();
        BOOST_TEST(spin.try_lock());

        optional.lock();
        BOOST_TEST(optional.held());
        optional.unlock();
        BOOST_TEST(!optional.held());
    })
        .join();
}

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(a_timer_used_beside_a_handler_without_locks_is_noticed) {
    BOOST_TEST(broken_by(false, [](auto& timer) { timer.cancel(); }) > 0);
    BOOST_TEST(sentence.find("options::locking is false") != std::string::npos);
    BOOST_TEST(broken_by(true, [](auto& timer) { timer.cancel(); }) == 0);
}

BOOST_AUTO_TEST_CASE(a_context_run_by_two_threads_without_locks_is_noticed) {
    broken = 0;
    boost::asio::io_context context;
    pawl::make_timer_service(context, options(false));
    pawl::steady_timer first(context, 0s);
    pawl::steady_timer second(context, 0s);
    first.async_wait([&](error_code) { std::thread([&] { context.run_one(); }).join(); });
    second.async_wait([](error_code) {});

    while (broken == 0 && context.run_one() != 0) { // the first unit is the wake-up
    }

    BOOST_TEST(broken > 0);
}

BOOST_AUTO_TEST_CASE(threads_that_take_turns_and_nested_runs_keep_the_promise) {
    broken = 0;
    boost::asio::io_context context;
    pawl::make_timer_service(context, options(false));
    pawl::steady_timer timer(context, 0s);
    pawl::steady_timer nested(context, 0s);
    int count = 0;
    timer.async_wait([&](error_code) {
        ++count;
        context.run_one();
        nested.expires_after(0s);
    });
    nested.async_wait([&](error_code) { ++count; });
    context.run();
    BOOST_TEST(count == 2);

    std::thread([&] {
        timer.expires_after(0s);
        timer.async_wait([&](error_code) { ++count; });
        context.restart();
        context.run();
    }).join();
    timer.expires_after(0s);
    timer.async_wait([&](error_code) { ++count; });
    context.restart();
    context.run();

    BOOST_TEST(count == 4);
    BOOST_TEST(broken == 0);
}

} // namespace locking_test
