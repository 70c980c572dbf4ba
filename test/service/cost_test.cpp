// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The costs of timers, counted and never timed: units of the context, wake-ups, settings of the
//   system timer, requests to the driver, timers that are handled while a lock is held. And the
//   lateness of the system timer at coarse precision, which is the reverse question.

#include "../support/counted_locks.hpp" // before Pawl

#define BOOST_TEST_MODULE cost
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "service_support.hpp"
#include "shard_bench.hpp"

#include "../support/asio_configuration.hpp"
#include "../support/scripted_clock.hpp"
#include "../support/system_timer.hpp"
#include "../support/typed_cases.hpp"

#include <pawl/time/binary_wheel.hpp>
#include <pawl/time/hierarchical_wheel.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <thread>
#include <utility>

namespace {

using namespace service_test;
using pawl::manual_clock;
using pawl::manual_timer;
using shard_bench::commitment;
using shard_bench::goes_quiet;
using shard_bench::sequel;
using shard_bench::test_wait;
using shard_bench::timer_core;
using wheel = pawl::time::hierarchical_wheel;
using tick = pawl::time::tick;

template <class Clock>
using timer_of = pawl::basic_waitable_timer<Clock>;

template <class ClockOrTimer = std::chrono::steady_clock>
void with_precision(asio::io_context& context, std::chrono::nanoseconds precision) {
    pawl::options o;
    o.precision = precision;
    pawl::make_timer_service<ClockOrTimer>(context, o);
}

} // namespace

// ---- lateness -----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(lateness, *boost::unit_test::enable_if<system_timer::seen>())

namespace {

// One precision is longer than any machine needs between two readings of the clock here.
const auto coarse = boost::unit_test::data::make(
    {std::chrono::nanoseconds(1s), std::chrono::nanoseconds(10s), std::chrono::nanoseconds(1min)});

/// The start of the third tick from now.
std::chrono::steady_clock::time_point a_tick(std::chrono::nanoseconds precision) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::steady_clock::time_point((now / precision + 3) * precision);
}

} // namespace

BOOST_DATA_TEST_CASE(P2_the_system_timer_is_set_for_the_tick_in_which_a_wait_is_due, coarse,
                     precision) {
    for (const auto in_tick : {0ns, 1ns}) { // the best and the worst
        asio::io_context context;
        with_precision(context, precision);
        pawl::steady_timer timer(context);
        outcome o;
        const auto tick = a_tick(precision);
        timer.expires_at(tick + in_tick);
        const auto due = tick + (in_tick == 0ns ? 0ns : precision);

        const auto before = std::chrono::steady_clock::now();
        timer.async_wait(record(o));
        const auto after = std::chrono::steady_clock::now();

        BOOST_CHECK(system_timer::sleeps_at_most(due - before));       // P2
        BOOST_CHECK(system_timer::sleeps_at_least(due - after - 1us)); // no wake-up for nothing
    }
}

// The system timer is not moved for a later deadline, but for any deadline that is earlier by a
// tick.
BOOST_DATA_TEST_CASE(P2_the_system_timer_is_set_anew_for_a_wait_that_is_due_one_tick_earlier,
                     coarse* boost::unit_test::data::make({false, true}), precision, moved) {
    asio::io_context context;
    with_precision(context, precision);
    const auto due = a_tick(precision);
    std::deque<outcome> o(3);
    std::deque<pawl::steady_timer> timers;
    for (const auto d : {1, 2, moved ? 2 : 0})
        timers.emplace_back(context, due + d * precision);
    timers[0].async_wait(record(o[0]));
    timers[1].async_wait(record(o[1]));
    if (moved)
        timers[2].async_wait(record(o[2]));
    poll(context);

    const auto before = std::chrono::steady_clock::now();
    if (moved)
        timers[2].rearm_at(due);
    else
        timers[2].async_wait(record(o[2]));
    poll(context);

    BOOST_CHECK(system_timer::sleeps_at_most(due - before));
}

// On a user-defined clock that only goes forward. It stands still here, so this is exact.
BOOST_DATA_TEST_CASE(P2_the_system_timer_is_set_for_the_tick_of_any_clock, coarse, precision) {
    using clock = pawl_test::scripted_clock<1, true>;
    clock::set(1000h);
    asio::io_context context;
    with_precision<clock>(context, precision);
    timer_of<clock> timer(context, 2 * precision + 1ns);
    outcome o;

    timer.async_wait(record(o));
    poll(context);

    BOOST_CHECK(system_timer::sleeps_at_most(3 * precision));
}

BOOST_AUTO_TEST_CASE(C41_a_clock_that_can_be_set_is_looked_at_every_second) {
    using clock = pawl_test::scripted_clock<2>;
    clock::set(1000h);
    asio::io_context context;
    with_precision<clock>(context, 1min);
    timer_of<clock> timer(context, 1h);
    outcome o;

    timer.async_wait(record(o));
    poll(context);

    BOOST_CHECK(system_timer::sleeps_at_most(1s));
}

BOOST_AUTO_TEST_SUITE_END()

// ---- wake-ups and units -------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(wake_ups)

namespace {

template <class Backend>
using manual_timer_on =
    pawl::basic_waitable_timer<manual_clock,
                               pawl::on_backend<Backend, asio::wait_traits<manual_clock>>>;
using few_timers = pawl_test::types<manual_timer, manual_timer_on<pawl::time::binary_wheel>>;

using eight_delays = std::array<std::chrono::milliseconds, 8>;

/// From less than a slot of the lowest level to more than one of the third; and all in one slot,
/// far in the future.
constexpr std::array<eight_delays, 2> cases{
    eight_delays{999'983ms, 7ms, 61'000ms, 4'095ms, 64ms, 4'097ms, 3ms, 600'011ms},
    eight_delays{3'600'000ms, 3'600'009ms, 3'600'003ms, 3'600'040ms, 3'600'080ms, 3'600'160ms,
                 3'600'320ms, 3'601'000ms}};

} // namespace

// A wake-up that completes nothing wakes the processor for nothing.
PAWL_TYPED_CASE(P8_up_to_eight_timers_cost_one_wake_up_each, Timer, few_timers) {
    if (pawl_test::io_uring)
        return; // a typed case takes no decorator
    using service_type =
        pawl::timer_service<typename Timer::clock_type, typename Timer::traits_type>;
    for (const eight_delays& delays : cases) {
        for (std::size_t n = 1; n <= delays.size(); ++n) {
            asio::io_context context;
            with_precision<Timer>(context, 1ms);
            auto& service = asio::use_service<service_type>(context);
            std::deque<Timer> timers;
            std::size_t completed = 0;
            for (std::size_t i = 0; i < n; ++i) {
                timers.emplace_back(context, delays[i]).async_wait([&](error_code) {
                    ++completed;
                });
            }
            BOOST_CHECK_LE(poll(context), one); // it was set for a later one first

            std::size_t wake_ups = 0;
            std::size_t units = 0;
            for (; completed != n && wake_ups < 100; ++wake_ups) {
                manual_clock::advance(context, service.next_wake() - manual_clock::now());
                units += poll(context);
            }

            BOOST_CHECK_EQUAL(wake_ups, n);
            BOOST_CHECK_LE(units, system_timer::seen ? n : 2 * n);
            BOOST_CHECK_EQUAL(completed, n);
            BOOST_CHECK(context.stopped());
        }
    }
}

// For a crowd, some wake-ups may be for the wheel itself; the limit is that of the documentation.
PAWL_TYPED_CASE(P8_a_hundred_timers_cost_few_wake_ups_of_the_wheel_itself, Timer, few_timers) {
    using service_type =
        pawl::timer_service<typename Timer::clock_type, typename Timer::traits_type>;
    asio::io_context context;
    with_precision<Timer>(context, 1ms);
    auto& service = asio::use_service<service_type>(context);
    std::deque<Timer> timers;
    std::size_t completed = 0;
    for (int i = 0; i < 100; ++i)
        timers.emplace_back(context, std::chrono::milliseconds(1'000 + 587 * i))
            .async_wait([&](error_code) { ++completed; });

    std::size_t wake_ups = 0;
    for (; completed != 100 && wake_ups < 1000; ++wake_ups) {
        manual_clock::advance(context, service.next_wake() - manual_clock::now());
        poll(context);
    }

    BOOST_CHECK_LE(wake_ups, 110U);
}

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(P8_waits_of_one_tick_share_a_wake_up) {
    asio::io_context context;
    std::deque<manual_timer> timers;
    std::size_t completed = 0;
    for (int i = 0; i < 8; ++i)
        timers.emplace_back(context, 10ms).async_wait([&](error_code) { ++completed; });

    BOOST_CHECK(manual_clock::advance_to_next(context) == 10ms);
    BOOST_CHECK_EQUAL(poll(context), 8U);

    BOOST_CHECK_EQUAL(completed, 8U);
    BOOST_CHECK(context.stopped());
}

BOOST_AUTO_TEST_CASE(P8_a_context_with_nothing_due_runs_no_unit_and_sets_nothing) {
    asio::io_context context;
    std::deque<pawl::steady_timer> timers;
    std::deque<outcome> o(8);
    for (std::size_t i = 0; i < 8; ++i)
        timers.emplace_back(context, std::chrono::hours(1 + i)).async_wait(record(o[i]));
    poll(context);
    const std::size_t before = system_timer::settings.load();

    for (int i = 0; i < 10; ++i)
        BOOST_CHECK_EQUAL(poll(context), none);

    BOOST_CHECK_EQUAL(system_timer::settings.load() - before, none);
}

// A deadline that moves later or is cancelled costs no system call; neither does one that is added
// after an earlier one.
BOOST_AUTO_TEST_CASE(P8_waits_that_are_moved_and_cancelled_do_not_set_the_system_timer) {
    asio::io_context context;
    pawl::steady_timer first(context, 1h);
    std::deque<outcome> o(3);
    first.async_wait(record(o[0]));
    poll(context);
    const std::size_t before = system_timer::settings.load();

    std::size_t aborted = 0;
    pawl::steady_timer timer(context);
    for (int i = 0; i < 1000; ++i) {
        timer.expires_after(2h);
        timer.async_wait([&](error_code) { ++aborted; });
        first.rearm_after(1h + std::chrono::seconds(i));
    }
    timer.cancel();
    poll(context);

    BOOST_CHECK_EQUAL(aborted, 1000U);
    BOOST_CHECK_EQUAL(system_timer::settings.load() - before, none);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- the driver ---------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(driver)

namespace {

constexpr std::size_t all = ~std::size_t{0};

commitment cancel(pawl::detail::shard<wheel>& s, timer_core& timer, std::size_t expected) {
    auto [count, todo] = s.cancel(timer, all);
    BOOST_CHECK_EQUAL(count, expected);
    if (todo.after == sequel::end_errand)
        s.end_errand();
    return std::move(todo);
}

void start(pawl::detail::shard<wheel>& s, timer_core& timer, test_wait& wait) {
    auto [begun, todo] = s.start(timer, wait, tick{10}, true);
    BOOST_REQUIRE(begun == pawl::detail::admission::started);
    if (todo.after == sequel::unpin)
        BOOST_CHECK(s.unpin().empty());
}

} // namespace

// Telling it takes a count that all threads share, and on some clocks the driver's lock.
BOOST_AUTO_TEST_CASE(P8_the_context_is_told_of_rest_once_and_not_for_each_cancel_of_nothing) {
    pawl::detail::shard<wheel> s(pawl::options{}, tick{});
    timer_core timer;
    test_wait wait;
    start(s, timer, wait);
    const commitment ended = cancel(s, timer, 1);
    BOOST_REQUIRE(ended.runners); // the thread that takes the wait tells it
    auto taken = s.take(ended.runners, true, false);
    taken.op->complete();
    BOOST_CHECK(goes_quiet(taken.todo));

    for (int i = 0; i < 10; ++i)
        BOOST_CHECK(cancel(s, timer, 0).empty());

    BOOST_CHECK(s.leave(timer).after != sequel::destroy);
    BOOST_CHECK(s.leave().after == sequel::destroy);
}

BOOST_AUTO_TEST_CASE(P8_a_cancel_of_nothing_asks_for_nothing_while_others_wait) {
    pawl::detail::shard<wheel> s(pawl::options{}, tick{});
    timer_core timer;
    timer_core other;
    test_wait wait;
    start(s, timer, wait);
    test_wait last;
    auto again = s.start(other, last, tick{10}, true);
    BOOST_CHECK(again.todo.empty()); // the driver is set for that tick
    const commitment ended = cancel(s, other, 1);
    auto taken = s.take(ended.runners, true, false);
    taken.op->complete();
    BOOST_CHECK(taken.todo.empty());

    BOOST_CHECK(cancel(s, other, 0).empty());
    auto rest = s.take(cancel(s, timer, 1).runners, true, false);
    rest.op->complete();
    BOOST_CHECK(goes_quiet(rest.todo));
    BOOST_CHECK(s.leave(timer).after != sequel::destroy);
    BOOST_CHECK(s.leave(other).after != sequel::destroy);
    BOOST_CHECK(s.leave().after == sequel::destroy);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- locks ----------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(locks)

namespace {

/// Counts how many timers were refiled under one lock.
template <class Wheel>
class noting_backend : public Wheel {
public:
    using Wheel::Wheel;

    class detached : public Wheel::detached {
    public:
        explicit detached(const noting_backend& b) : Wheel::detached(b) {}
    };

    void invariant() const { pawl_test::check_invariant(static_cast<const Wheel&>(*this)); }

    void refile(pawl::time::timer_node& node) noexcept {
        if (std::exchange(hold_, counted_locks::taken) != counted_locks::taken)
            in_hold_ = 0;
        most = std::max(most, ++in_hold_);
        Wheel::refile(node);
    }

    static inline std::size_t most = 0;

private:
    std::size_t hold_ = 0;
    std::size_t in_hold_ = 0;
};
using noting_backends = pawl_test::types<noting_backend<pawl::time::hierarchical_wheel>,
                                         noting_backend<pawl::time::binary_wheel>>;

/// 300 timers whose clock can be set back, and a second thread, so that locks are taken.
template <class Backend>
struct settable_timers {
    explicit settable_timers(const pawl::options& o) : b(o) {
        std::thread([] {}).join();
        for (std::size_t i = 0; i < 300; ++i)
            b.start(timers[i], waits[i], 2000 + i);
        b.collect(1000);
        Backend::most = 0;
    }
    ~settable_timers() {
        for (timer_core& t : timers)
            b.release(t);
        b.run_all();
    }

    shard_bench::bench<Backend> b;
    std::deque<timer_core> timers{300};
    std::deque<test_wait> waits{300};
};

} // namespace

PAWL_TYPED_CASE(P6_a_set_back_files_at_most_one_batch_of_timers_under_one_lock, Backend,
                noting_backends) {
    for (const unsigned batch : {1U, 7U, 256U}) {
        pawl::options o;
        o.batch_limit = batch;
        settable_timers<Backend> s(o);

        s.b.state().set_back(tick{10});

        BOOST_CHECK_EQUAL(Backend::most, batch);
        BOOST_CHECK_EQUAL(s.b.state().timers().counts().armed, 300U);
    }
}

// expire_all() comes after the first batch of the set-back, and files the rest itself.
PAWL_TYPED_CASE(P6_P10_expire_all_files_what_a_set_back_left_one_batch_under_one_lock, Backend,
                noting_backends) {
    for (const unsigned batch : {1U, 7U, 100U}) {
        pawl::options o;
        o.batch_limit = batch;
        settable_timers<Backend> s(o);
        std::size_t ended = 0;
        counted_locks::between_holds = [&] {
            Backend::most = 0;
            ended = s.b.expire_all();
        };

        s.b.state().set_back(tick{10});

        BOOST_CHECK_EQUAL(ended, 300U);
        BOOST_CHECK_EQUAL(Backend::most, batch);
        BOOST_CHECK_EQUAL(s.b.state().timers().counts().armed, 0U);
    }
}

// Each expires_after() in the handler of a timer is one.
BOOST_AUTO_TEST_CASE(P8_a_cancel_of_nothing_takes_no_lock) {
    std::thread([] {}).join(); // locks are taken from here on
    asio::io_context context;
    manual_timer timer(context, 10ms);
    std::size_t ended = 0;
    timer.async_wait([&](error_code) { ++ended; });
    BOOST_REQUIRE_EQUAL(timer.cancel(), one);
    poll(context);
    BOOST_REQUIRE_EQUAL(ended, one);
    const std::size_t before = counted_locks::taken;

    BOOST_CHECK_EQUAL(timer.cancel(), none);
    BOOST_CHECK_EQUAL(timer.cancel_one(), none);
    BOOST_CHECK_EQUAL(timer.expires_after(20ms), none);

    BOOST_CHECK_EQUAL(counted_locks::taken, before);
}

BOOST_AUTO_TEST_SUITE_END()
