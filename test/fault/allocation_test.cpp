// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The n-th allocation fails, for every n until no allocation fails. A function that then throws
// bad_alloc leaves the timer unchanged and loses nothing.

#include <pawl/pawl.hpp>

#define BOOST_TEST_MODULE allocation
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "fault/live_blocks.hpp"
#include "service/counted_new.hpp"
#include "support/asio_configuration.hpp"
#include "support/meeting.hpp"
#include "support/typed_cases.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/wait_traits.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace fault {

namespace asio = boost::asio;
using boost::system::error_code;
using namespace std::chrono_literals;

/// Calls `attempt(context)` in a new context, with the n-th allocation failing, for n = 0, 1, ...
/// until it succeeds. `prepare` and `verify(succeeded)` run with memory. Nothing may leak.
template <class Prepare, class Attempt, class Verify>
void with_failing_allocations(Prepare prepare, Attempt attempt, Verify verify) {
    for (long n = 0;; ++n) {
        const std::size_t before = live_blocks();
        bool succeeded = false;
        {
            asio::io_context context;
            auto state = prepare(context);
            counted_new::fuse = n;
            try {
                attempt(*state);
                succeeded = true;
            } catch (const std::bad_alloc&) {
            }
            counted_new::fuse = counted_new::never;
            verify(*state, context, succeeded);
        }
        if (n > 0) // objects that exist once per process have been made by then
            BOOST_TEST(live_blocks() == before);
        if (succeeded)
            return;
        BOOST_REQUIRE_LT(n, 1000);
    }
}

template <class Timer>
struct one_timer_of {
    explicit one_timer_of(asio::io_context& context) : timer(context, 1h) {}

    Timer timer;
    std::optional<asio::strand<asio::io_context::executor_type>> strand;
    std::vector<error_code> told = [] {
        std::vector<error_code> v;
        v.reserve(1000); // recording does not allocate
        return v;
    }();
    auto record() {
        return [this](error_code ec) { told.push_back(ec); };
    }
};

using one_timer = one_timer_of<pawl::steady_timer>;

template <class Timer>
auto a_timer_of =
    [](asio::io_context& context) { return std::make_unique<one_timer_of<Timer>>(context); };
auto a_timer = a_timer_of<pawl::steady_timer>;

using wheels = pawl_test::types<pawl::steady_timer, pawl::compact_timer>;

PAWL_TYPED_CASE(C26_the_first_wait_starts_or_leaves_the_timer_as_it_was, Timer, wheels) {
    with_failing_allocations(
        a_timer_of<Timer>, [](one_timer_of<Timer>& t) { t.timer.async_wait(t.record()); },
        [](one_timer_of<Timer>& t, asio::io_context& context, bool succeeded) {
            BOOST_TEST(t.timer.cancel() == (succeeded ? 1u : 0u));
            t.timer.expires_after(0s);
            t.timer.async_wait(t.record());
            context.run();
            BOOST_TEST(t.told.size() == (succeeded ? 2u : 1u));
            BOOST_TEST(!t.told.back());
        });
}

// It waited for the call that destroyed it: other threads must find their context until the driver is set.
BOOST_AUTO_TEST_CASE(C26_a_handler_that_owns_its_context_goes_with_it_if_its_wait_does_not_start) {
    pawl_test::latch end(1);
    std::thread beside([&end] { end.wait(); }); // with a single thread nothing is awaited
    int refused = 0;
    for (const long n : {1000L, 0L, 1L, 2L, 3L}) { // the first one leaves a block for the others
        auto context = std::make_shared<asio::io_context>();
        const std::weak_ptr<asio::io_context> there = context;
        pawl::steady_timer timer(*context, 1h);
        counted_new::fuse = n;
        try {
            timer.async_wait([owner = std::move(context)](error_code) {});
        } catch (const std::bad_alloc&) {
            ++refused;
        }
        counted_new::fuse = counted_new::never;
        if (const auto started = there.lock()) {
            BOOST_TEST(timer.cancel() == 1u);
            started->run();
        }
        BOOST_TEST(there.expired());
    }
    BOOST_TEST(refused >= 2); // one for the wheel, one for Asio's timer
    end.count_down();
    beside.join();
}

// It made a strand, which Asio destroys before it is initialised if there is no memory for its mutex.
BOOST_AUTO_TEST_CASE(C26_a_service_with_any_policy_is_made_or_not) {
    for (const auto policy : {pawl::shutdown_policy::destroy, pawl::shutdown_policy::deliver})
        with_failing_allocations(
            [](asio::io_context& context) { return std::make_unique<asio::io_context*>(&context); },
            [=](asio::io_context* context) {
                pawl::options o;
                o.on_shutdown = policy;
                pawl::make_timer_service(*context, o);
            },
            [](asio::io_context*, asio::io_context& context, bool) {
                one_timer t(context);
                t.timer.async_wait(t.record());
                BOOST_TEST(t.timer.cancel() == 1u);
                context.run();
                BOOST_TEST(t.told.size() == 1u);
            });
}

BOOST_AUTO_TEST_CASE(C26_a_wait_on_a_strand_starts_or_leaves_the_timer_as_it_was) {
    with_failing_allocations(
        [](asio::io_context& context) {
            auto t = a_timer(context);
            t->strand.emplace(asio::make_strand(context));
            return t;
        },
        [](one_timer& t) { t.timer.async_wait(asio::bind_executor(*t.strand, t.record())); },
        [](one_timer& t, asio::io_context& context, bool succeeded) {
            BOOST_TEST(t.timer.rearm_after(0s) == (succeeded ? 1u : 0u));
            context.run();
            BOOST_TEST(t.told.size() == (succeeded ? 1u : 0u));
        });
}

PAWL_TYPED_CASE(C26_among_many_waits_each_starts_or_not_and_none_is_lost, Timer, wheels) {
    with_failing_allocations(
        a_timer_of<Timer>,
        [](one_timer_of<Timer>& t) {
            for (int i = 0; i < 200; ++i) // more than a segment of the due queue, and all tokens
                t.timer.async_wait(t.record());
        },
        [](one_timer_of<Timer>& t, asio::io_context& context, bool) {
            const std::size_t started = t.timer.cancel();
            context.run();
            BOOST_TEST(t.told.size() == started);
        });
}

PAWL_TYPED_CASE(P8_cancel_and_rearm_succeed_without_memory, Timer, wheels) {
    asio::io_context context;
    one_timer_of<Timer> t(context);
    t.timer.async_wait(t.record());
    t.timer.async_wait(t.record());
    Timer other(context, 2h);
    other.async_wait(t.record());

    counted_new::fuse = 0;
    const std::size_t later = t.timer.rearm_after(3h);
    const std::size_t earlier = t.timer.rearm_after(1ms);
    const std::size_t cancelled = other.cancel();
    const std::size_t one = t.timer.cancel_one();
    counted_new::fuse = counted_new::never;

    BOOST_TEST(later == 2u);
    BOOST_TEST(earlier == 2u);
    BOOST_TEST(cancelled == 1u);
    BOOST_TEST(one == 1u);
    context.run();
    BOOST_TEST(t.told.size() == 3u);
}

// Of each two timers one falls due, and one is cancelled. Each gets a unit, up to 64.
PAWL_TYPED_CASE(P8_any_number_of_waits_ends_without_memory, Timer, wheels) {
    for (const std::size_t n : {1U, 2U, 15U, 16U, 17U, 33U, 64U, 65U, 600U}) {
        asio::io_context context;
        std::vector<error_code> told;
        told.reserve(n);
        std::deque<Timer> timers;
        for (std::size_t i = 0; i < n; ++i)
            timers.emplace_back(context, i % 2 == 0 ? 1ms : 1h).async_wait([&](error_code ec) {
                told.push_back(ec);
            });
        std::this_thread::sleep_for(5ms);

        counted_new::fuse = 0;
        for (std::size_t i = 1; i < n; i += 2)
            timers[i].cancel();
        context.run();
        const long left = counted_new::fuse.exchange(counted_new::never);

        BOOST_TEST(left == 0); // no memory was requested
        BOOST_TEST(told.size() == n);
        BOOST_TEST(std::count(told.begin(), told.end(), error_code()) ==
                   static_cast<std::ptrdiff_t>((n + 1) / 2));
    }
}

// Each service has a queue of its own in Asio, so no other service takes the place that its driver
// leaves for a moment when it wakes up.
BOOST_AUTO_TEST_CASE(P8_a_driver_is_set_again_without_memory_whatever_other_clocks_do) {
    asio::io_context context;
    std::vector<error_code> told;
    told.reserve(4);
    const auto record = [&](error_code ec) { told.push_back(ec); };
    pawl::steady_timer soon(context, 1ms);
    pawl::steady_timer later(context, 20ms);
    pawl::manual_timer by_hand(context, 1h);
    pawl::system_timer wall(context, 1h);
    by_hand.async_wait(record);
    soon.async_wait(record);
    later.async_wait(record);
    std::this_thread::sleep_for(10ms);
    asio::post(context, [] {});
    context.run_one(); // the due wait has left Asio's queue, and has not been run
    wall.async_wait(record);

    counted_new::fuse = 0;
    BOOST_CHECK_NO_THROW(context.poll());
    counted_new::fuse = counted_new::never;

    by_hand.cancel();
    wall.cancel();
    context.run();
    BOOST_TEST(told.size() == 4u);
    BOOST_TEST(later.cancel() == 0u);
}

BOOST_AUTO_TEST_CASE(a_timer_is_made_or_its_context_is_as_it_was) {
    with_failing_allocations(
        [](asio::io_context& context) { return std::make_unique<asio::io_context*>(&context); },
        [](asio::io_context*& context) { pawl::steady_timer timer(*context, 1ms); },
        [](asio::io_context*&, asio::io_context& context, bool) {
            pawl::steady_timer timer(context, 0ms);
            bool called = false;
            timer.async_wait([&](error_code ec) { called = !ec; });
            context.run();
            BOOST_TEST(called);
        });
}

template <class Alarm>
struct alarms {
    explicit alarms(asio::io_context& c) : context(c) {}

    asio::io_context& context;
    std::size_t calls = 0;
    std::deque<Alarm> all;
};

using alarm_types =
    pawl_test::types<pawl::alarm<std::function<void()>>, pawl::coarse_alarm<std::function<void()>>,
                     pawl::manual_alarm<std::function<void()>>>;

PAWL_TYPED_CASE(P8_an_alarm_is_made_or_not_and_then_armed_and_called_without_memory, Alarm,
                alarm_types) {
    {
        asio::io_context context; // makes what exists once per process
        Alarm(context, [] {}).arm_after(1ms);
    }
    for (const auto& [runs_before, shards] :
         {std::pair{false, 0U}, {true, 0U}, {false, 1U}, {true, 2U}, {false, 4U}}) {
        with_failing_allocations(
            [&](asio::io_context& context) {
                pawl::options o;
                o.shards = shards;
                if (shards != 0) // 0: the first alarm makes the service
                    pawl::make_timer_service<typename Alarm::clock_type>(context, o);
                return std::make_unique<alarms<Alarm>>(context);
            },
            [](alarms<Alarm>& a) {
                for (int i = 0; i < 70; ++i)
                    a.all.emplace_back(a.context, [&a] { ++a.calls; });
            },
            [&](alarms<Alarm>& a, asio::io_context& context, bool) {
                if (runs_before) {
                    context.run();
                    context.restart();
                }
                pawl::manual_clock::advance(context, 0s); // makes the list of services
                asio::steady_timer other(context,
                                         1ms); // it does not take the driver's place in Asio
                other.async_wait([](error_code) {});

                counted_new::fuse = 0;
                for (Alarm& each : a.all)
                    each.arm_after(1h);
                for (Alarm& each : a.all)
                    each.arm_after(1ms);
                if constexpr (std::is_same_v<typename Alarm::clock_type, pawl::manual_clock>)
                    pawl::manual_clock::advance(context, 1ms);
                context.run();
                const long left = counted_new::fuse.exchange(counted_new::never);

                BOOST_TEST(left == 0); // no memory was requested
                BOOST_TEST(a.calls == a.all.size());
            });
    }
}

BOOST_AUTO_TEST_CASE(P8_an_alarm_in_any_shard_is_armed_without_memory) {
    for (const unsigned shards : {1U, 2U, 4U}) {
        asio::io_context context;
        pawl::options o;
        o.shards = shards;
        pawl::make_timer_service(context, o);
        std::atomic<std::size_t> calls{0};
        const auto count = [&calls] { ++calls; };
        std::vector<std::optional<pawl::alarm<decltype(count)>>> alarms(4);
        for (auto& each : alarms)
            std::thread([&] { each.emplace(context, count); }).join();
        context.run();
        context.restart();

        counted_new::fuse = 0;
        for (auto& each : alarms)
            each->arm_after(1ms);
        context.run();
        const long left = counted_new::fuse.exchange(counted_new::never);

        BOOST_TEST(left == 0);
        BOOST_TEST(calls == alarms.size());
    }
}

// More than a segment of the due queue, and all tokens; waits of timers take no room from them.
BOOST_AUTO_TEST_CASE(P8_any_number_of_alarms_is_called_without_memory) {
    for (const std::size_t n : {1U, 17U, 65U, 600U}) {
        asio::io_context context;
        std::size_t calls = 0;
        const auto count = [&] { ++calls; };
        std::deque<pawl::alarm<decltype(count)>> alarms;
        std::deque<pawl::steady_timer> timers;
        for (std::size_t i = 0; i < n; ++i) {
            alarms.emplace_back(context, count);
            timers.emplace_back(context, 1ms).async_wait([&](error_code) { ++calls; });
        }
        counted_new::fuse = 0;
        for (auto& a : alarms)
            a.arm_after(1ms);
        counted_new::fuse = counted_new::never;
        std::this_thread::sleep_for(5ms);
        counted_new::fuse = 0;
        context.run();
        const long left = counted_new::fuse.exchange(counted_new::never);
        BOOST_TEST(left == 0); // no memory was requested
        BOOST_TEST(calls == 2 * n);
    }
}

PAWL_TYPED_CASE(P10_expire_all_happens_or_not_and_can_be_repeated, Timer, wheels) {
    with_failing_allocations(
        [](asio::io_context& context) {
            auto t = std::make_unique<one_timer_of<Timer>>(context);
            t->timer.async_wait(t->record());
            return t;
        },
        [](one_timer_of<Timer>& t) {
            pawl::expire_all(asio::query(t.timer.get_executor(), asio::execution::context));
        },
        [](one_timer_of<Timer>& t, asio::io_context& context, bool succeeded) {
            BOOST_TEST(pawl::expire_all(context) == (succeeded ? 0u : 1u));
            context.run();
            BOOST_TEST(t.told.size() == 1u);
            BOOST_TEST(!t.told.back());
        });
}

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(a_service_with_options_is_made_or_not) {
    with_failing_allocations(
        [](asio::io_context& context) { return std::make_unique<asio::io_context*>(&context); },
        [](asio::io_context*& context) {
            pawl::options o;
            o.shards = 3;
            pawl::make_timer_service(*context, o);
        },
        [](asio::io_context*&, asio::io_context& context, bool) {
            pawl::steady_timer timer(context, 0ms);
            timer.async_wait([](error_code) {});
            BOOST_TEST(context.run() == 1u);
        });
}

// --- rings that have to grow ------------------------------------------------------------------

/// Timers in a ring of 8 s that has room for two, and in one of 80 s.
struct ring_timers {
    using clock = pawl::manual_clock;
    using timer = pawl::basic_waitable_timer<
        clock, pawl::on_backend<pawl::time::timeout_rings, asio::wait_traits<clock>>>;

    struct one {
        one(asio::io_context& context, clock::duration delay) : t(context, delay) {}

        timer t;
        int calls = 0;
        error_code code;
        clock::time_point at;

        void wait() {
            t.async_wait([this](error_code ec) {
                ++calls;
                code = ec;
                at = clock::now();
            });
        }
        [[nodiscard]] bool succeeded_at(clock::time_point expiry, clock::duration delay) const {
            return calls == 1 && !code && at >= expiry && at <= expiry + delay / 8 + 2ms;
        }
    };

    explicit ring_timers(asio::io_context& c) : context(c) {
        pawl::options o;
        o.precision = 1ms;
        o.rings.delays = {{.delay = 8s, .capacity = 2}, {.delay = 80s, .capacity = 2}};
        pawl::make_timer_service<timer>(context, o);
    }

    one& make(clock::duration delay) { return all.emplace_back(context, delay); }
    one& start(clock::duration delay) {
        one& o = make(delay);
        o.wait();
        return o;
    }

    /// So long that a re-arm needs a slot in another period.
    void pass_a_period() { clock::advance(context, 1s); }
    void poll() {
        context.restart();
        context.poll();
    }
    void run_all() {
        do
            poll();
        while (clock::advance_to_next(context) != 0s);
    }

    asio::io_context& context;
    std::deque<one> all;
    std::size_t answer = 0; ///< of the re-arm
    const clock::time_point begin = clock::now();
};

BOOST_AUTO_TEST_CASE(C26_a_wait_whose_ring_has_to_grow_starts_or_leaves_all_as_it_was) {
    int failures = 0;
    with_failing_allocations(
        [](asio::io_context& context) {
            auto s = std::make_unique<ring_timers>(context);
            s->start(8s);
            s->start(8s);
            s->make(8s);
            return s;
        },
        [](ring_timers& s) { s.all.back().wait(); },
        [&](ring_timers& s, asio::io_context&, bool succeeded) {
            BOOST_TEST((s.all.back().t.expiry() == s.begin + 8s));
            if (!succeeded) {
                ++failures;
                BOOST_TEST(s.all.back().t.cancel() == 0u);
                s.all.back().wait(); // memory is available again
            }
            s.poll();
            for (const auto& each : s.all)
                BOOST_TEST(each.calls == 0);
            s.run_all();
            for (const auto& each : s.all)
                BOOST_TEST(each.succeeded_at(s.begin + 8s, 8s));
        });
    BOOST_TEST(failures > 1); // failures besides that of the wait itself
}

// From another ring, and from an earlier period of the same ring.
BOOST_DATA_TEST_CASE(a_re_arm_whose_ring_has_to_grow_moves_its_wait_or_leaves_all_as_it_was,
                     boost::unit_test::data::make({80, 8}) *
                         boost::unit_test::data::make({false, true}),
                     seconds, once_more) {
    const std::chrono::seconds delay(seconds);
    int failures = 0;
    with_failing_allocations(
        [&](asio::io_context& context) {
            auto s = std::make_unique<ring_timers>(context);
            s->start(8s);
            if (delay != 8s)
                s->start(8s);
            s->start(delay);
            s->pass_a_period();
            return s;
        },
        [](ring_timers& s) { s.answer = s.all.back().t.rearm_after(8s); },
        [&](ring_timers& s, asio::io_context&, bool succeeded) {
            auto& moved = s.all.back();
            BOOST_TEST(s.answer == (succeeded ? 1u : 0u));
            if (!succeeded) {
                ++failures;
                BOOST_TEST((moved.t.expiry() == s.begin + delay));
                if (once_more) // memory is available again
                    BOOST_TEST(moved.t.rearm_after(8s) == 1u);
            }
            const auto now = ring_timers::clock::now();
            s.run_all();
            if (succeeded || once_more)
                BOOST_TEST(moved.succeeded_at(now + 8s, 8s));
            else
                BOOST_TEST(moved.succeeded_at(s.begin + delay, delay));
            s.all.pop_back();
            for (const auto& each : s.all)
                BOOST_TEST(each.succeeded_at(s.begin + 8s, 8s));
        });
    BOOST_TEST(failures > 0);
}

BOOST_AUTO_TEST_CASE(P4_a_wait_that_is_due_is_pulled_back_into_a_ring_that_grows_or_stays_due) {
    int failures = 0;
    with_failing_allocations(
        [](asio::io_context& context) {
            auto s = std::make_unique<ring_timers>(context);
            s->start(8s);
            ring_timers::clock::advance_to_next(context); // without running the handler
            s->start(8s);
            s->start(8s);
            return s;
        },
        [](ring_timers& s) { s.answer = s.all.front().t.rearm_after(8s); },
        [&](ring_timers& s, asio::io_context&, bool succeeded) {
            const auto& due = s.all.front();
            const auto now = ring_timers::clock::now();
            failures += !succeeded;
            BOOST_TEST(s.answer == (succeeded ? 1u : 0u));
            s.poll();
            BOOST_TEST(due.calls == (succeeded ? 0 : 1));
            s.run_all();
            BOOST_TEST((succeeded ? due.succeeded_at(now + 8s, 8s) : due.at == now && !due.code));
            s.all.pop_front();
            for (const auto& each : s.all)
                BOOST_TEST(each.succeeded_at(now + 8s, 8s));
        });
    BOOST_TEST(failures > 0);
}

// --- the lists of a wheel ----------------------------------------------------------------------

namespace {

/// Timers in many slots of a wheel, each with one wait.
struct spread_timers {
    using clock = pawl::manual_clock;

    explicit spread_timers(asio::io_context& context) : context_(context) { told.reserve(1000); }
    void start(std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            all.emplace_back(context_, clock::now() + std::chrono::milliseconds(1LL << all.size()));
            wait();
        }
    }
    void wait() {
        all.back().async_wait([this](error_code ec) { told.push_back(ec); });
    }

    asio::io_context& context_;
    std::deque<pawl::manual_timer> all;
    std::vector<error_code> told;
    std::size_t answer = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(
    C26_a_wait_for_which_the_wheel_needs_room_starts_or_leaves_the_others_as_they_were) {
    int failures = 0;
    for (std::size_t others = 0; others != 30; ++others)
        with_failing_allocations(
            [&](asio::io_context& context) {
                auto s = std::make_unique<spread_timers>(context);
                s->start(others);
                s->all.emplace_back(context, spread_timers::clock::now() + 1h);
                return s;
            },
            [](spread_timers& s) { s.wait(); },
            [&](spread_timers& s, asio::io_context& context, bool succeeded) {
                failures += !succeeded;
                if (!succeeded) {
                    BOOST_TEST(s.all.back().cancel() == 0u);
                    s.wait(); // memory is available again
                }
                for (auto& each : s.all)
                    BOOST_TEST(each.rearm_after(1s) == 1u);
                spread_timers::clock::advance(context, 1s);
                context.run();
                BOOST_TEST(s.told == std::vector<error_code>(others + 1),
                           boost::test_tools::per_element());
            });
    BOOST_TEST(failures > 30); // failures besides that of the wait itself
}

// They are no longer filed, and are filed again, each in a slot of its own.
BOOST_AUTO_TEST_CASE(P4_waits_that_are_due_are_moved_without_memory) {
    for (const std::size_t count : {1U, 3U, 4U, 12U, 40U}) {
        asio::io_context context;
        spread_timers s(context);
        s.start(count);
        spread_timers::clock::advance(context, std::chrono::milliseconds(1LL << count));

        counted_new::fuse = 0;
        for (std::size_t i = 0; i < count; ++i)
            s.answer += s.all[i].rearm_after(std::chrono::milliseconds(1LL << i));
        const bool allocated = counted_new::fuse != 0;
        counted_new::fuse = counted_new::never;

        BOOST_TEST(!allocated);
        BOOST_TEST(s.answer == count);
        context.poll();
        BOOST_TEST(s.told.empty());
        spread_timers::clock::advance(context, std::chrono::milliseconds(1LL << count));
        context.run();
        BOOST_TEST(s.told == std::vector<error_code>(count), boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(P10_expire_all_ends_all_waits_or_none) {
    int failures = 0;
    with_failing_allocations(
        [](asio::io_context& context) {
            auto s = std::make_unique<spread_timers>(context);
            // A crowd: timers that take its place while it is drained need the same number of lists
            // again.
            for (int i = 0; i < 900; ++i) {
                s->all.emplace_back(context,
                                    spread_timers::clock::now() + std::chrono::hours(i + 1));
                s->wait();
            }
            return s;
        },
        [](spread_timers& s) { s.answer = pawl::expire_all(s.context_); },
        [&](spread_timers& s, asio::io_context& context, bool succeeded) {
            failures += !succeeded;
            BOOST_TEST(s.answer == (succeeded ? 900u : 0u));
            context.poll();
            BOOST_TEST(s.told.size() == (succeeded ? 900u : 0u));
            for (auto& each : s.all)
                BOOST_REQUIRE(each.rearm_after(1s) == (succeeded ? 0u : 1u));
            spread_timers::clock::advance(context, 1s);
            context.run();
            BOOST_TEST(s.told.size() == 900u);
        });
    BOOST_TEST(failures > 6); // for lack of the set, and of lists
}

} // namespace fault
