// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The driver alone, on an io_context: each row of the table in driver.hpp, and the context's
//   count of work. Only a due wait is awaited: the others are set an hour ahead.

#define BOOST_TEST_MODULE driver
#include <boost/test/unit_test.hpp>

#include "../support/scripted_clock.hpp"
#include "counted_new.hpp"

#include <pawl/detail/service/driver.hpp>
#include <pawl/detail/service/native_executor.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/wait_traits.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using pawl::detail::native_context;
using pawl::time::tick;

/// The driver asks it, and wakes it.
struct fake_target {
    void wake(pawl::time::tick) {
        ++wakes;
        if (at_wake)
            at_wake();
    }
    bool any_busy() const {
        if (at_busy)
            at_busy();
        return busy;
    }
    const native_context* counted_by() const noexcept { return counts; }
    bool inside() const noexcept { return is_inside; }

    int wakes = 0;
    bool busy = true;
    bool is_inside = false;
    const native_context* counts = nullptr; ///< the context counts the shards instead of the driver
    std::function<void()> at_wake;
    std::function<void()> at_busy; ///< stands for another thread while the driver asks
};

/// Like a pinned thread, the test keeps the context running until it calls quiet().
template <class Clock, class WaitTraits = asio::wait_traits<Clock>>
struct bench {
    bench() { context.get_executor().on_work_started(); }
    ~bench() { quiet(); }
    bench(const bench&) = delete;
    bench& operator=(const bench&) = delete;

    void counts_shards() { target.counts = &pawl::detail::native_context_for<asio::io_context>; }

    void arm(unsigned t) { driver.arm(tick{t}, Clock::now() + 1h); }

    void quiet() {
        if (std::exchange(works, false))
            context.get_executor().on_work_finished();
    }

    /// How often the target is woken by handlers that are ready.
    int wakes() {
        const int before = target.wakes;
        context.restart();
#if defined(BOOST_ASIO_HAS_IOCP)
        // With io_uring, poll() does not check the time: another thread notifies it.
        for (int i = 0; i != 30; ++i) {
            context.poll();
            std::this_thread::sleep_for(1ms);
        }
#else
        context.poll();
#endif
        return target.wakes - before;
    }

    /// Whether run() would wait, because work is counted.
    bool at_work() {
        quiet();
        wakes();
        return !context.stopped();
    }

    asio::io_context context;
    fake_target target;
    pawl::detail::driver<Clock, WaitTraits, fake_target> driver{context, target, true};
    bool works = true;
};

using steady = bench<std::chrono::steady_clock>;

/// It only goes forward, at the pace of the test.
using test_clock = pawl_test::scripted_clock<1, true>;
using scripted = bench<test_clock>;

static_assert(
    pawl::detail::driver<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>,
                         fake_target>::stays_set);
static_assert(
    !pawl::detail::driver<test_clock, asio::wait_traits<test_clock>, fake_target>::stays_set);

/// Makes Asio check the clock again and again.
struct short_sleep {
    static test_clock::duration to_wait_duration(const test_clock::duration& left) {
        return std::min<test_clock::duration>(left, 1ms);
    }
    static test_clock::duration to_wait_duration(const test_clock::time_point& t) {
        return to_wait_duration(t - test_clock::now());
    }
};

/// Says what the test tells it to.
struct noting_sleep {
    static std::chrono::nanoseconds to_wait_duration(std::chrono::nanoseconds left) {
        asked = left;
        return say;
    }
    static inline std::optional<std::chrono::nanoseconds> asked;
    static inline std::chrono::nanoseconds say{0};
};

} // namespace

// ---- arm ------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(arm_sets_a_driver_that_is_off) {
    steady b;
    b.arm(5);
    BOOST_CHECK_EQUAL(b.wakes(), 0);
    BOOST_CHECK(b.at_work());
}

BOOST_AUTO_TEST_CASE(the_driver_wakes_once_and_is_off) {
    steady b;
    b.driver.arm(tick{5}, std::chrono::steady_clock::now());
    BOOST_CHECK_EQUAL(b.wakes(), 1);
    BOOST_CHECK(!b.at_work());
    BOOST_CHECK_EQUAL(b.target.wakes, 1);
}

BOOST_AUTO_TEST_CASE(whoever_is_woken_can_set_the_driver_anew) {
    steady b;
    b.driver.arm(tick{5}, std::chrono::steady_clock::now());
    b.target.at_wake = [&] { b.arm(9); };
    BOOST_CHECK_EQUAL(b.wakes(), 1);
    BOOST_CHECK(b.at_work());
    BOOST_CHECK_EQUAL(b.target.wakes, 1);
}

BOOST_AUTO_TEST_CASE(an_earlier_deadline_hurries_the_driver_and_no_other_does) {
    steady b;
    b.arm(5);
    b.arm(5);
    b.arm(9);
    BOOST_CHECK_EQUAL(b.wakes(), 0);
    b.arm(4);
    BOOST_CHECK_EQUAL(b.wakes(), 1);
}

BOOST_AUTO_TEST_CASE(one_handler_is_on_its_way_at_most) {
    steady b;
    b.arm(5);
    b.arm(4);
    b.arm(3);
    b.driver.hurry();
    b.driver.linger();
    b.driver.go_idle();
    b.driver.end_counted();
    BOOST_CHECK_EQUAL(b.wakes(), 1);
    BOOST_CHECK(!b.at_work());
    BOOST_CHECK_EQUAL(b.target.wakes, 1);
}

BOOST_AUTO_TEST_CASE(P9_a_driver_that_the_context_counts_is_not_set_if_no_shard_is_busy) {
    steady b;
    b.target.busy = false;
    b.arm(5);
    BOOST_CHECK(!b.at_work());
    BOOST_CHECK_EQUAL(b.target.wakes, 0);
}

BOOST_AUTO_TEST_CASE(one_that_stays_set_is_set_though_no_shard_is_busy) {
    steady b;
    b.counts_shards();
    b.target.busy = false;
    b.arm(5);
    BOOST_CHECK_EQUAL(b.wakes(), 0);
    b.arm(4); // it is already set
    BOOST_CHECK_EQUAL(b.wakes(), 1);
    b.target.counts = nullptr;
    b.arm(3); // not set, because it would be counted
    b.driver.hurry(false);
    BOOST_CHECK_EQUAL(b.wakes(), 0);
}

// A shard may become quiet, and rely on a driver that stays set, as soon as the context counts all
// shards.
BOOST_AUTO_TEST_CASE(
    the_driver_is_set_if_the_context_counts_the_shards_by_the_time_they_are_quiet) {
    steady b;
    b.target.busy = false;
    b.target.at_busy = [&] { b.counts_shards(); };
    b.arm(5);
    BOOST_CHECK_EQUAL(b.wakes(), 0);
    b.arm(4); // it is already set
    BOOST_CHECK_EQUAL(b.wakes(), 1);
}

BOOST_AUTO_TEST_CASE(one_on_a_clock_that_may_leap_does_not_stay_set_and_is_not_set_then) {
    test_clock::set(1000h);
    scripted b;
    b.counts_shards();
    b.target.busy = false;
    b.arm(5);
    b.driver.linger(); // it was off; now it is set
    BOOST_CHECK_EQUAL(b.wakes(), 1);
}

BOOST_AUTO_TEST_CASE(C41_a_deadline_that_the_clock_has_passed_hurries_the_driver) {
    test_clock::set(1000h);
    scripted b;
    b.driver.arm(tick{5}, test_clock::now() + 1h);
    const auto later = test_clock::now() + 2h;
    test_clock::set(1003h);

    b.driver.arm(tick{9}, later);

    BOOST_CHECK_EQUAL(b.wakes(), 1);
}

// ---- hurry, linger --------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(hurry_wakes_a_driver_that_is_off_or_set) {
    for (const bool set : {false, true}) {
        steady b;
        if (set)
            b.arm(5);
        b.driver.hurry();
        BOOST_CHECK_EQUAL(b.wakes(), 1);
    }
}

BOOST_AUTO_TEST_CASE(P9_the_context_counts_a_driver_that_hurries_or_lingers) {
    for (const bool lingers : {false, true}) {
        steady b;
        b.counts_shards();
        b.target.busy = false;
        lingers ? b.driver.linger() : b.driver.hurry();
        b.quiet();
        b.context.run();
        BOOST_CHECK_EQUAL(b.target.wakes, 1);
    }
}

BOOST_AUTO_TEST_CASE(linger_leaves_a_driver_that_is_set) {
    steady b;
    b.arm(5);
    b.driver.linger();
    b.arm(5);
    BOOST_CHECK_EQUAL(b.wakes(), 0);
    b.arm(4);
    BOOST_CHECK_EQUAL(b.wakes(), 1);
}

// ---- go_idle --------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(P9_rest_ends_a_wait_that_the_context_counts_unless_a_shard_is_busy) {
    steady b;
    b.arm(5);
    b.driver.go_idle();
    BOOST_CHECK_EQUAL(b.wakes(), 0);
    b.target.busy = false;
    b.driver.go_idle();
    BOOST_CHECK_EQUAL(b.wakes(), 1);
    BOOST_CHECK(!b.at_work());
}

BOOST_AUTO_TEST_CASE(rest_leaves_a_driver_that_is_off) {
    steady b;
    b.target.busy = false;
    b.driver.go_idle();
    BOOST_CHECK_EQUAL(b.wakes(), 0);
}

BOOST_AUTO_TEST_CASE(rest_leaves_a_driver_that_has_woken) {
    steady b;
    b.driver.arm(tick{5}, std::chrono::steady_clock::now());
    BOOST_CHECK_EQUAL(b.wakes(), 1);
    b.target.busy = false;
    b.driver.go_idle();
    b.target.busy = true;
    b.driver.arm(tick{6}, std::chrono::steady_clock::now());
    BOOST_CHECK_EQUAL(b.wakes(), 1);
}

BOOST_AUTO_TEST_CASE(rest_leaves_a_wait_that_is_not_counted_and_has_it_relied_on_no_more) {
    test_clock::set(1000h);
    scripted b;
    b.counts_shards();
    b.arm(5);
    b.target.busy = false;
    b.driver.go_idle();
    BOOST_CHECK_EQUAL(b.wakes(), 0);
    b.target.busy = true;
    b.arm(9); // later, but it hurries nevertheless: the clock may have jumped
    BOOST_CHECK_EQUAL(b.wakes(), 1);
}

BOOST_AUTO_TEST_CASE(rest_ends_a_wait_that_looks_at_the_clock_often_unless_a_shard_is_busy) {
    test_clock::set(1000h);
    bench<test_clock, short_sleep> b;
    b.counts_shards();
    b.arm(5);
    b.driver.go_idle();
    BOOST_CHECK_EQUAL(b.wakes(), 0);
    b.target.busy = false;
    b.driver.go_idle();
    BOOST_CHECK_EQUAL(b.wakes(), 1);
}

// ---- how long it sleeps -------------------------------------------------------------------------

// Wait traits are asked for a time that is left, and only for that.
BOOST_AUTO_TEST_CASE(the_driver_sleeps_as_long_as_the_traits_say_but_not_longer_than_it_may) {
    const auto check = [](auto clock, auto longest) {
        using tested = typename decltype(clock)::type;
        using traits = pawl::detail::driver_wait_traits<tested, noting_sleep>;
        using duration = typename traits::duration;
        const auto sleep = [](duration left, std::chrono::nanoseconds say) {
            noting_sleep::asked.reset();
            noting_sleep::say = say;
            return traits::to_wait_duration(left);
        };
        BOOST_CHECK(sleep(5ms, 3ms) == 3ms);
        BOOST_CHECK(noting_sleep::asked == 5ms);
        BOOST_CHECK(sleep(5ms, 0ms) == 0ms);
        BOOST_CHECK(sleep(5ms, -3ms) == 0ms);
        for (const auto more : {longest, longest + 1ns, std::chrono::nanoseconds::max()})
            BOOST_CHECK(sleep(duration::max(), more) == longest);
        BOOST_CHECK(noting_sleep::asked == tested::duration::max());
        BOOST_CHECK(traits::polls_seldom());
        BOOST_CHECK(sleep(duration::max(), longest - 1ns) == longest - 1ns);
        BOOST_CHECK(!traits::polls_seldom());
        for (const duration over : {duration(0), duration(-1), duration::min()}) {
            BOOST_CHECK(sleep(over, 3ms) == 0ms);
            BOOST_CHECK(!noting_sleep::asked);
        }
    };
    check(std::type_identity<test_clock>(), std::chrono::nanoseconds(1h));
    check(std::type_identity<pawl_test::scripted_clock<2>>(), std::chrono::nanoseconds(1s));
}

// ---- the context's count -----------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(P9_run_returns_while_a_wait_is_set_that_is_not_counted) {
    steady b;
    b.counts_shards();
    b.arm(5);
    BOOST_CHECK(!b.at_work());
    BOOST_CHECK_EQUAL(b.target.wakes, 0);
}

// A wake-up that looked at the shards before may set the driver afterwards, counted or not.
BOOST_AUTO_TEST_CASE(P9_end_counted_wakes_the_shards_again_unless_none_is_busy) {
    for (const bool counted : {true, false}) {
        steady b;
        if (!counted)
            b.counts_shards();
        b.driver.end_counted(); // nothing was ever armed
        BOOST_CHECK_EQUAL(b.wakes(), 0);
        b.arm(5);
        b.counts_shards();
        b.driver.end_counted();
        BOOST_CHECK_EQUAL(b.wakes(), 1);
        b.driver.end_counted();
        BOOST_CHECK_EQUAL(b.wakes(), 1);
        b.target.busy = false;
        b.driver.end_counted();
        BOOST_CHECK_EQUAL(b.wakes(), 0);
    }
}

// Otherwise the context would count one unit less, and stop while other work is outstanding.
BOOST_AUTO_TEST_CASE(what_a_wait_has_not_counted_is_made_up_for_when_it_wakes) {
    steady b;
    b.counts_shards();
    for (int n = 1; n <= 3; ++n) {
        b.driver.arm(tick{5}, std::chrono::steady_clock::now());
        BOOST_CHECK_EQUAL(b.wakes(), 1);
        BOOST_CHECK(!b.context.stopped()); // the bench counts as work
    }
    BOOST_CHECK(!b.at_work());
}

// Asio's heap has one place. The wait that cancels another one soon has taken it when the driver
// is set anew.
BOOST_AUTO_TEST_CASE(what_does_not_fit_into_a_block_comes_from_the_heap) {
    using block_type = pawl::detail::own_block<64>;
    block_type block;
    pawl::detail::own_block_allocator<char, block_type> alloc(block);
    const std::size_t before = counted_new::calls;
    char* volatile large = alloc.allocate(65); // volatile: a compiler may elide new with its delete
    const std::size_t after_large = counted_new::calls;
    char* const small = alloc.allocate(1);
    const std::size_t after_small = counted_new::calls;
    BOOST_TEST(after_large - before == 1U);
    BOOST_TEST(after_small - after_large == 0U);
    alloc.deallocate(large, 65);
    BOOST_TEST(block.used);
    alloc.deallocate(small, 1);
    BOOST_TEST(!block.used);
}

BOOST_AUTO_TEST_CASE(P8_a_driver_that_is_prepared_is_set_without_memory) {
    steady b;
    b.driver.prepare();
    b.wakes();
    b.target.wakes = 0;
    b.target.at_wake = [&] { b.arm(9); };
    counted_new::fuse = 0;
    b.driver.arm(tick{5}, std::chrono::steady_clock::now());
    counted_new::fuse = counted_new::never;
    asio::post(b.context, [] {});
    b.context.run_one(); // the due wait has left Asio's heap, and has not been run
    b.target.is_inside = true;

    counted_new::fuse = 0;
    BOOST_CHECK_NO_THROW(b.arm(4));
    BOOST_CHECK_NO_THROW(b.context.poll());
    counted_new::fuse = counted_new::never;

    BOOST_CHECK_EQUAL(b.target.wakes, 1);
    BOOST_CHECK(b.at_work()); // it is set
}
