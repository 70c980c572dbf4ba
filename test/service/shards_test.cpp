// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   A service with several shards, each with timers of its own: every function of the service
//   covers all shards, whichever has the timers in question. So each test tries each shard in turn,
//   and none has its answer in the first shard alone.

#define BOOST_TEST_MODULE shards
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "counted_new.hpp"
#include "service_support.hpp"
#include "shard_bench.hpp"

#include "../support/asio_configuration.hpp"
#include "../support/scripted_clock.hpp"
#include "../support/system_timer.hpp"

#include <pawl/event_feed.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// Not an unnamed namespace: the cases of Boost.Test that take data are templates with external linkage.
namespace shards_test {

using namespace service_test;
using pawl::manual_clock;
using pawl::manual_timer;

template <class Clock>
using timer_of = pawl::basic_waitable_timer<Clock>;

const auto shards = boost::unit_test::data::make({2U, 4U});

/// Calls `f(0)` to `f(n - 1)`, each in a thread of its own. The earlier threads still exist, so
/// each gets a shard of its own.
template <class Function>
void in_threads_of_their_own(std::size_t n, Function f, std::size_t i = 0) {
    std::thread([&] {
        f(i);
        if (i + 1 != n)
            in_threads_of_their_own(n, f, i + 1);
    }).join();
}

/// Runs everything that is ready, if that ends. @return the number of units.
std::size_t poll_to_end(asio::io_context& context) {
    context.restart();
    std::size_t units = 0;
    while (context.poll_one() != 0)
        BOOST_REQUIRE_LT(++units, 1000U);
    return units;
}

/// A timer in each shard, and the outcomes of their waits.
template <class Timer>
struct sharded {
    explicit sharded(unsigned n, pawl::options o = {}) : timers(n), outcomes(n) {
        if constexpr (requires { Timer::clock_type::default_precision; })
            o.precision = Timer::clock_type::default_precision;
        o.shards = n;
        pawl::make_timer_service<Timer>(context, o);
        in_threads_of_their_own(n, [&](std::size_t i) { timers[i].emplace(context); });
    }

    std::size_t size() const { return timers.size(); }
    Timer& timer(std::size_t i) { return *timers[i]; }
    outcome& result(std::size_t i) { return outcomes[i]; }

    void start(std::size_t i, typename Timer::duration d) {
        outcomes[i] = {};
        timer(i).expires_after(d);
        timer(i).async_wait(record(outcomes[i]));
    }
    void start_at(std::size_t i, std::chrono::nanoseconds since_epoch) {
        outcomes[i] = {};
        timer(i).expires_at(typename Timer::time_point(since_epoch));
        timer(i).async_wait(record(outcomes[i]));
    }

    asio::io_context context;
    std::deque<std::optional<Timer>> timers;
    std::deque<outcome> outcomes;
};

/// Counts the shards that it learns of.
struct counting_watcher final : pawl::detail::context_watcher {
    void add(pawl::detail::observed_shard&) override { ++added; }
    void remove(pawl::detail::observed_shard&) noexcept override { ++removed; }
    std::size_t added = 0;
    std::size_t removed = 0;
};

/// Shuts down after the services of timers, which are newer.
class last_service final : public asio::execution_context::service {
public:
    static inline asio::execution_context::id id;
    explicit last_service(asio::execution_context& context) : service(context) {}
    std::function<void()> at_shutdown;

private:
    void shutdown() override { at_shutdown(); }
};

void collect_in(asio::io_context& context) {
    asio::use_service<pawl::detail::service_registry>(context).for_each(
        [](pawl::detail::registered_service& s) { s.clock_moved(); });
}

// ---- max_pending ------------------------------------------------------------------------------------

pawl::options bounded(std::size_t most) {
    pawl::options o;
    o.max_pending = most;
    return o;
}
bool refused(const outcome& o) { return o.calls == 1 && o.code == asio::error::no_buffer_space; }

/// As many timers as waits, in the shards in turn.
struct bounded_waits : sharded<manual_timer> {
    static constexpr std::size_t most = 6;

    explicit bounded_waits(unsigned n) : sharded(n, bounded(most)) {
        in_threads_of_their_own(n, [&](std::size_t) {
            for (std::size_t i = 0; i != 2 * most; ++i)
                many.emplace_back(context, 1h);
        });
        all.resize(many.size());
    }
    void wait(std::size_t i) {
        all[i] = {};
        many[i].async_wait(record(all[i]));
    }
    void fill() {
        for (std::size_t i = 0; i != most; ++i)
            wait(i * many.size() / most);
    }
    /// @return the number of waits that have a place, of those that are started now.
    std::size_t places() {
        std::deque<outcome> tried(most + 1);
        for (std::size_t i = 0; i != tried.size(); ++i)
            many[(5 * i) % many.size()].async_wait(record(tried[i]));
        BOOST_TEST(std::none_of(tried.begin(), tried.end(), refused)); // never within the call
        poll_to_end(context);
        const auto n = std::count_if(tried.begin(), tried.end(), refused);
        pawl::cancel_all(context);
        poll_to_end(context);
        return tried.size() - static_cast<std::size_t>(n);
    }

    std::deque<manual_timer> many;
    std::deque<outcome> all;
};

const auto bounded_shards = boost::unit_test::data::make({1U, 2U, 4U});

BOOST_DATA_TEST_CASE(P3_one_wait_beyond_max_pending_is_refused_and_no_earlier_one, bounded_shards,
                     n) {
    bounded_waits w(n);
    for (std::size_t i = 0; i != w.many.size(); ++i)
        w.wait(i);
    poll_to_end(w.context);
    for (std::size_t i = 0; i != w.many.size(); ++i)
        BOOST_TEST(refused(w.all[i]) == (i >= w.most));
    BOOST_TEST(w.context.stopped() == false);
    const auto s = pawl::stats(w.context).total();
    BOOST_TEST(s.refused == w.many.size() - w.most);
    BOOST_TEST(s.pending == w.most);
    BOOST_TEST(s.started == w.many.size());
    BOOST_TEST(s.cancelled == s.refused);
    BOOST_TEST(s.overflowed == 0U);
}

BOOST_DATA_TEST_CASE(a_wait_that_has_ended_leaves_its_place_when_its_handler_begins, bounded_shards,
                     n) {
    bounded_waits w(n);
    BOOST_TEST(w.places() == w.most);
    w.fill();
    BOOST_TEST(w.many[0].cancel() == one);
    BOOST_TEST(w.many[w.many.size() / 3].cancel() == one);
    outcome early;
    w.many[1].async_wait(record(early));
    poll_to_end(w.context);
    BOOST_TEST(refused(early));
    outcome last;
    w.many[1].async_wait(record(last));
    manual_clock::advance(w.context, 1h); // all are due
    bool in_handler = false;
    w.many[0].expires_after(1h);
    asio::post(w.context, [&] { w.many[0].async_wait([&](error_code ec) { in_handler = !ec; }); });
    poll_to_end(w.context);
    BOOST_TEST(last.succeeded());
    manual_clock::advance(w.context, 1h);
    poll_to_end(w.context);
    BOOST_TEST(in_handler);
    BOOST_TEST(w.places() == w.most); // each place is there again, and no more
}

BOOST_DATA_TEST_CASE(P4_at_max_pending_rearms_and_cancels_are_not_refused, bounded_shards, n) {
    bounded_waits w(n);
    w.fill();
    const std::size_t step = w.many.size() / w.most;
    BOOST_TEST(w.many[0].rearm_after(2h) == one);
    BOOST_TEST(w.many[step].rearm_after(1ms) == one);
    manual_clock::advance(w.context, 1ms);
    BOOST_TEST(w.many[step].rearm_after(1h) == one); // pulled back
    poll_to_end(w.context);
    BOOST_TEST(w.all[step].pending());
    const manual_timer moved(std::move(w.many[step]));
    BOOST_TEST(w.many[2 * step].cancel() == one);
    BOOST_TEST(w.many[3 * step].cancel_one() == one);
    poll_to_end(w.context);
    BOOST_TEST(w.all[2 * step].aborted());
    BOOST_TEST(w.all[3 * step].aborted());
    BOOST_TEST(pawl::stats(w.context).total().refused == 0U);
}

BOOST_DATA_TEST_CASE(P10_at_max_pending_expire_all_ends_all_waits_and_those_that_were_refused,
                     bounded_shards, n) {
    bounded_waits w(n);
    w.fill();
    outcome beyond;
    w.many[1].async_wait(record(beyond));
    BOOST_TEST(w.many[1].cancel() == none); // it is over
    BOOST_TEST(pawl::expire_all(w.context, asio::error::shut_down) == w.most);
    poll_to_end(w.context);
    BOOST_TEST(refused(beyond));
    BOOST_TEST(w.context.stopped()); // P9
    BOOST_TEST(w.places() == w.most);
    w.fill();
    BOOST_TEST(pawl::cancel_all(w.context) == w.most);
    poll_to_end(w.context);
    BOOST_TEST(w.places() == w.most);
}

BOOST_AUTO_TEST_CASE(a_refused_wait_leaves_the_other_waits_of_its_timer_alone) {
    sharded<manual_timer> w(1, bounded(2));
    std::array<outcome, 3> o;
    w.timer(0).expires_after(1h);
    asio::cancellation_signal stop;
    w.timer(0).async_wait(record(o[0]));
    w.timer(0).async_wait(record(o[1]));
    w.timer(0).async_wait(asio::bind_cancellation_slot(stop.slot(), record(o[2])));
    stop.emit(asio::cancellation_type::terminal); // too late
    poll_to_end(w.context);
    BOOST_TEST(o[0].pending());
    BOOST_TEST(o[1].pending());
    BOOST_TEST(refused(o[2]));
    BOOST_TEST(w.timer(0).rearm_after(2h) == 2U);
    manual_clock::advance(w.context, 2h);
    poll_to_end(w.context);
    BOOST_TEST(o[0].succeeded());
    BOOST_TEST(o[1].succeeded());
}

BOOST_AUTO_TEST_CASE(refused_waits_that_try_again_at_once_do_not_keep_each_other_from_a_place) {
    sharded<manual_timer> w(1, bounded(1));
    w.start(0, 1h);
    int tries = 0, done = 0;
    manual_timer timer(w.context, 1h);
    std::function<void(error_code)> again = [&](error_code ec) {
        done += ec == asio::error::operation_aborted;
        if (ec == asio::error::no_buffer_space && ++tries < 100)
            timer.async_wait(again);
        if (tries == 20)
            w.timer(0).cancel();
    };
    timer.async_wait(again);
    timer.async_wait(again);
    poll_to_end(w.context);
    timer.cancel();
    poll_to_end(w.context);
    BOOST_TEST(done == 1);
}

BOOST_AUTO_TEST_CASE(a_handler_in_the_middle_of_its_turn_finds_the_place_of_its_wait) {
    pawl::options o = bounded(2);
    o.completions_per_turn = 64;
    sharded<manual_timer> w(1, o);
    manual_timer second(w.context, 1h);
    outcome again;
    w.timer(0).expires_after(1h);
    w.timer(0).async_wait([&](error_code) { w.timer(0).async_wait(record(again)); });
    second.async_wait([](error_code) {});
    pawl::cancel_all(w.context);
    poll_to_end(w.context);
    BOOST_TEST(again.pending());
}

BOOST_AUTO_TEST_CASE(P10_a_refused_wait_may_outlive_its_context) {
    asio::io_context other;
    outcome o;
    {
        sharded<manual_timer> w(2, bounded(1));
        w.start(1, 1h);
        w.timer(0).async_wait(asio::bind_executor(other, record(o)));
        w.context.poll(); // it is handed over
    }
    other.run();
    BOOST_TEST(refused(o));
}

} // namespace shards_test

using namespace shards_test;

BOOST_DATA_TEST_CASE(threads_take_the_shards_in_turn_and_keep_them, shards, n) {
    asio::io_context context;
    pawl::options o;
    o.shards = n;
    pawl::make_timer_service<manual_clock>(context, o);
    auto& service = asio::use_service<pawl::timer_service<manual_clock>>(context);
    std::vector<const void*> seats;

    in_threads_of_their_own(2 * n, [&](std::size_t) {
        seats.push_back(&service.enter());
        BOOST_REQUIRE(seats.back() == &service.enter());
    });

    BOOST_REQUIRE_EQUAL(seats.size(), 2 * n);
    BOOST_CHECK_EQUAL(std::set<const void*>(seats.begin(), seats.end()).size(), n);
    BOOST_CHECK(std::equal(seats.begin(), seats.begin() + n, seats.begin() + n));
}

// Variables that threads of different shards write are in different cache lines.
static_assert(alignof(pawl::timer_service<manual_clock>::dispatcher) >= pawl::detail::cache_line);

// ---- a shard for each thread ------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(as_threads_come)

namespace {
/// A context whose service makes a shard for each thread.
template <class Clock>
struct growing_context : asio::io_context {
    growing_context() {
        pawl::options o;
        o.shards = 0;
        pawl::make_timer_service<Clock>(*this, o);
    }
    auto& service() { return asio::use_service<pawl::timer_service<Clock>>(*this); }
};

/// 1 if the system does not tell.
std::size_t processors() { return std::max(1U, pawl::detail::processors_online()); }
} // namespace

BOOST_AUTO_TEST_CASE(each_thread_has_a_shard_of_its_own_up_to_the_number_of_processors) {
    growing_context<manual_clock> context;
    auto& service = context.service();
    const std::size_t most = std::min<std::size_t>(processors(), pawl::detail::most_shards);
    const void* const here = &service.enter();
    std::vector<const void*> seats{here};
    in_threads_of_their_own(most + 1, [&](std::size_t) { seats.push_back(&service.enter()); });

    BOOST_CHECK(&service.enter() == here);
    const auto first = std::span(seats).first(most);
    BOOST_CHECK_EQUAL(std::set<const void*>(first.begin(), first.end()).size(), most);
    BOOST_CHECK_EQUAL(std::set<const void*>(seats.begin(), seats.end()).size(), most);
}

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(P9_waits_of_threads_that_come_later_keep_run_going_and_complete) {
    growing_context<manual_clock> context;
    std::deque<manual_timer> timers;
    std::vector<int> order;
    timers.emplace_back(context, 1s).async_wait([&](error_code) { order.push_back(0); });
    in_threads_of_their_own(3, [&](std::size_t i) {
        timers.emplace_back(context, std::chrono::seconds(3 - i)).async_wait([&, i](error_code ec) {
            BOOST_CHECK(!ec);
            order.push_back(static_cast<int>(3 - i));
        });
    });

    BOOST_CHECK_EQUAL(context.poll(), 0u);
    BOOST_CHECK(!context.stopped());
    manual_clock::advance(context, 2s);
    const std::size_t units = poll_to_end(context);
    BOOST_CHECK(units == 3 || (!system_timer::seen && units == 4));
    BOOST_CHECK_EQUAL(order.size(), 3u); // 1 s twice, 2 s
    manual_clock::advance(context, 1s);
    poll_to_end(context);
    BOOST_CHECK_EQUAL(order.back(), 3);
    BOOST_CHECK(context.stopped());
}

BOOST_AUTO_TEST_CASE(
    P10_expire_all_and_the_end_of_a_context_reach_the_shards_of_threads_that_came_later) {
    std::deque<manual_timer> timers;
    int told = 0;
    auto alive = std::make_shared<int>();
    {
        growing_context<manual_clock> context;
        in_threads_of_their_own(2, [&](std::size_t) {
            timers.emplace_back(context, 1h).async_wait([&](error_code) { ++told; });
        });
        BOOST_CHECK_EQUAL(pawl::expire_all(context), 2u);
        poll_to_end(context);
        BOOST_CHECK_EQUAL(told, 2);

        context.restart();
        in_threads_of_their_own(2, [&](std::size_t) {
            timers.emplace_back(context, 1h).async_wait([alive](error_code) {});
        });
        BOOST_CHECK_EQUAL(alive.use_count(), 3);
    }
    BOOST_CHECK_EQUAL(alive.use_count(), 1);
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(threads_come_while_others_expire_cancel_and_end_everything) {
    constexpr int rounds = 200;
    constexpr int waits = 20;
    for (int round = 0; round < rounds; ++round) {
        growing_context<std::chrono::steady_clock> context;
        std::atomic<int> told{0};
        auto work = asio::make_work_guard(context);
        std::thread runner([&] { context.run(); });
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; ++t)
            threads.emplace_back([&] {
                std::deque<pawl::steady_timer> timers;
                for (int i = 0; i < waits; ++i)
                    timers.emplace_back(context, std::chrono::microseconds(50 * i))
                        .async_wait([&](error_code) { ++told; });
                for (auto& timer : timers)
                    timer.cancel();
            });
        (void)pawl::expire_all(context);
        for (auto& thread : threads)
            thread.join();
        work.reset();
        runner.join(); // P9
        BOOST_REQUIRE_EQUAL(told.load(), 3 * waits);
    }
}

BOOST_AUTO_TEST_SUITE_END()

// ---- a clock that is moved by hand --------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(by_hand)

BOOST_DATA_TEST_CASE(advance_to_next_stops_at_the_next_deadline_whichever_shard_has_it, shards, n) {
    for (std::size_t first = 0; first != n; ++first) {
        sharded<manual_timer> s(n);
        for (std::size_t i = 0; i != n; ++i)
            s.start((first + i) % n, std::chrono::seconds(1 + i));
        poll_to_end(s.context);

        for (std::size_t i = 0; i != n; ++i) {
            BOOST_CHECK(manual_clock::advance_to_next(s.context) == 1s);
            poll_to_end(s.context);
            for (std::size_t k = 0; k != n; ++k)
                BOOST_CHECK_EQUAL(s.result((first + k) % n).calls, k <= i ? 1 : 0);
        }

        BOOST_CHECK(manual_clock::advance_to_next(s.context) == 0s);
        BOOST_CHECK(s.context.stopped());
    }
}

BOOST_DATA_TEST_CASE(advance_to_next_does_not_move_while_a_wait_is_due_in_any_shard, shards, n) {
    for (std::size_t due = 0; due != n; ++due) {
        sharded<manual_timer> s(n);
        for (std::size_t i = 0; i != n; ++i)
            s.start(i, i == due ? 1s : 5s);
        poll_to_end(s.context);
        manual_clock::advance(s.context, 1s); // due, but its handler has not run

        BOOST_CHECK(manual_clock::advance_to_next(s.context) == 0s);
        poll_to_end(s.context);

        for (std::size_t i = 0; i != n; ++i)
            BOOST_CHECK_EQUAL(s.result(i).calls, i == due ? 1 : 0);
        BOOST_CHECK(manual_clock::advance_to_next(s.context) == 4s);
        poll_to_end(s.context);
    }
}

BOOST_DATA_TEST_CASE(a_deadline_that_has_moved_is_found_on_the_way_in_any_shard, shards, n) {
    for (std::size_t moved = 0; moved != n; ++moved) {
        sharded<manual_timer> s(n);
        for (std::size_t i = 0; i != n; ++i)
            s.start(i, i == moved ? 1s : 5s);
        s.timer(moved).rearm_after(3s);
        poll_to_end(s.context);

        BOOST_CHECK(manual_clock::advance_to_next(s.context) == 3s);
        poll_to_end(s.context);

        BOOST_CHECK(s.result(moved).succeeded());
    }
}

BOOST_DATA_TEST_CASE(each_shard_is_reported_to_a_watcher_once_and_none_after_its_end, shards, n) {
    const auto watcher = std::make_shared<counting_watcher>();
    const auto late = std::make_shared<counting_watcher>();
    {
        asio::io_context context;
        auto& last = asio::use_service<last_service>(context);
        pawl::options o;
        o.shards = n;
        pawl::make_timer_service<manual_clock>(context, o);
        const manual_timer timer(context);
        auto& service = asio::use_service<pawl::timer_service<manual_clock>>(context);
        service.watch(watcher);
        service.watch(watcher); // who adds a service may be beside who begins to watch all
        BOOST_CHECK_EQUAL(watcher->added, n);
        last.at_shutdown = [&service, late] { service.watch(late); };
    }
    BOOST_CHECK_EQUAL(watcher->added, n);
    BOOST_CHECK_GE(watcher->removed, n);
    BOOST_CHECK_EQUAL(late->added, none);

    asio::io_context context; // nor does one whose service is not watched at its end
    auto& last = asio::use_service<last_service>(context);
    const manual_timer timer(context);
    auto& service = asio::use_service<pawl::timer_service<manual_clock>>(context);
    last.at_shutdown = [&service, late] {
        service.watch(late);
        BOOST_CHECK_EQUAL(late->added, none);
    };
}

BOOST_DATA_TEST_CASE(a_clock_that_moves_makes_the_waits_of_every_shard_due, shards, n) {
    sharded<manual_timer> s(n);
    for (std::size_t i = 0; i != n; ++i)
        s.start(i, 1s);
    poll_to_end(s.context);

    manual_clock::advance(s.context, 1s);

    BOOST_CHECK_EQUAL(poll_to_end(s.context), n);
    for (std::size_t i = 0; i != n; ++i)
        BOOST_CHECK(s.result(i).succeeded());
    BOOST_CHECK(s.context.stopped());
}

BOOST_AUTO_TEST_SUITE_END()

// ---- one driver for all -------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(one_driver)

PAWL_NOT_ON_IO_URING
BOOST_DATA_TEST_CASE(P8_a_context_with_nothing_due_runs_no_unit_whichever_shard_is_next, shards,
                     n) {
    for (std::size_t first = 0; first != n; ++first) {
        sharded<manual_timer> s(n);
        for (std::size_t i = 0; i != n; ++i)
            s.start((first + i) % n, std::chrono::hours(n - i));

        BOOST_CHECK_LE(poll_to_end(s.context), 1U); // a wake-up for ever earlier deadlines
        for (int i = 0; i < 10; ++i)
            BOOST_CHECK_EQUAL(poll_to_end(s.context), none);
    }
}

PAWL_NOT_ON_IO_URING
BOOST_DATA_TEST_CASE(P8_shards_with_the_same_deadline_share_a_wake_up, shards, n) {
    sharded<manual_timer> s(n);
    const auto expiry = (manual_clock::now() + 1h).time_since_epoch();
    for (std::size_t i = 0; i != n; ++i)
        s.start_at(i, expiry);

    BOOST_CHECK_EQUAL(poll_to_end(s.context), none);

    BOOST_CHECK(manual_clock::advance_to_next(s.context) == 1h);
    BOOST_CHECK_EQUAL(poll_to_end(s.context), n);
}

// For any shard with the earliest wait, with and without waits in the others, and for any shard
// that has woken the driver.
BOOST_DATA_TEST_CASE(P2_after_a_wake_up_the_system_timer_is_set_for_the_earliest_of_all_shards,
                     shards* boost::unit_test::data::make({false, true}), n, alone) {
    using clock = pawl_test::scripted_clock<2, true>;
    clock::set(1000h);
    for (std::size_t first = 0; first != n; ++first) {
        for (std::size_t waker = 0; waker != n; ++waker) {
            sharded<timer_of<clock>> s(n);
            std::optional<timer_of<clock>> passed;
            in_threads_of_their_own(n, [&](std::size_t i) {
                if (i == waker)
                    passed.emplace(s.context, -1s);
            });
            for (std::size_t i = 0; i != n; ++i) {
                if (i == first || !alone)
                    s.start(i, i == first ? 5s : 100s);
            }
            outcome o;
            passed->async_wait(record(o));
            system_timer::sleep = 1h; // it must be set again

            poll_to_end(s.context);

            BOOST_CHECK(o.succeeded());
            BOOST_CHECK(s.result(first).pending());
            BOOST_CHECK(system_timer::sleeps_at_most(5s + 1ms));
            BOOST_CHECK(!s.context.stopped());
        }
    }
}

// The driver itself finds them, not the test: its wake-up runs only the first one that it finds.
BOOST_DATA_TEST_CASE(a_wake_up_completes_what_is_due_in_every_shard, shards, n) {
    for (std::size_t late = 0; late != n; ++late) {
        asio::io_context other;
        sharded<manual_timer> s(n);
        for (std::size_t i = 0; i != n; ++i)
            s.start(i, 1s);
        poll_to_end(s.context);
        manual_clock::advance(other, 1s); // the services of the first context were not told

        outcome o;
        s.timer(late).async_wait(record(o));
        s.timer(late).rearm_at(manual_clock::now() - 500ms); // earlier than all: the driver checks
        BOOST_CHECK_LE(poll_to_end(s.context), n + 2);

        BOOST_CHECK(o.succeeded());
        for (std::size_t i = 0; i != n; ++i)
            BOOST_CHECK(s.result(i).succeeded());
        BOOST_CHECK(s.context.stopped());
    }
}

BOOST_DATA_TEST_CASE(P9_run_goes_on_while_any_shard_has_a_wait, shards, n) {
    for (std::size_t left = 0; left != n; ++left) {
        sharded<pawl::steady_timer> s(n);
        for (std::size_t i = 0; i != n; ++i)
            s.start(i, std::chrono::hours(1 + i));
        for (std::size_t i = 0; i != n; ++i) {
            if (i != left)
                asio::post(s.context, [&s, i] { s.timer(i).cancel(); });
        }
        poll_to_end(s.context);
        BOOST_CHECK(!s.context.stopped());
        for (std::size_t i = 0; i != n; ++i)
            BOOST_CHECK_EQUAL(s.result(i).calls, i == left ? 0 : 1);

        asio::post(s.context, [&] { s.timer(left).cancel(); });
        poll_to_end(s.context);
        BOOST_CHECK(s.context.stopped());
        BOOST_CHECK(s.result(left).aborted());
    }
}

// A handler that throws leaves its shard's other waits, and those of other shards, to be completed.
BOOST_DATA_TEST_CASE(C34_a_handler_that_throws_takes_no_wait_of_another_shard_along, shards, n) {
    for (std::size_t bad = 0; bad != n; ++bad) {
        sharded<manual_timer> s(n);
        std::size_t calls = 0;
        for (std::size_t i = 0; i != n; ++i) {
            s.timer(i).expires_after(1s);
            for (int wait = 0; wait < 2; ++wait) {
                s.timer(i).async_wait([&calls, i, bad](error_code) {
                    ++calls;
                    if (i == bad)
                        throw std::runtime_error("a handler");
                });
            }
        }
        manual_clock::advance(s.context, 1s);

        for (int thrown = 0; thrown < 2; ++thrown)
            BOOST_CHECK_THROW(for (int i = 0; i < 100; ++i) s.context.poll_one(),
                              std::runtime_error);
        poll_to_end(s.context);

        BOOST_CHECK_EQUAL(calls, 2 * n);
        BOOST_CHECK(s.context.stopped());
    }
}

BOOST_AUTO_TEST_SUITE_END()

// ---- a shard that goes quiet --------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(quiet)

namespace {

/// A wait in each shard, like that of a limit: it may be withdrawn, and then no handler runs. Until
/// a timer is made, the service does not know the type of its context, which therefore counts the
/// driver's wait.
struct held_waits {
    using service_type = pawl::timer_service<std::chrono::steady_clock>;

    explicit held_waits(unsigned n) : shards(n), timers(n), waits(n) {
        pawl::options o;
        o.shards = n;
        pawl::make_timer_service(context, o);
        auto& service = asio::use_service<service_type>(context);
        in_threads_of_their_own(n, [&](std::size_t i) { shards[i] = &service.enter(); });
        for (std::size_t i = 0; i != n; ++i) {
            const auto due = std::chrono::steady_clock::now() + 1h;
            const auto deadline = shards[i]->deadline_of(due, false, 1h);
            shards[i]->start(
                timers[i], waits[i], [&] { return deadline; }, 2);
        }
        poll_to_end(context);
    }
    ~held_waits() {
        for (std::size_t i = 0; i != shards.size(); ++i)
            shards[i]->leave(timers[i]);
    }

    bool withdraw(std::size_t i) {
        return shards[i]->withdraw<pawl::detail::parting::limit>(nullptr, waits[i]);
    }
    /// Its limit has ended.
    void leave(std::size_t i) {
        BOOST_CHECK(withdraw(i));
        BOOST_CHECK(errands_done(i));
    }
    bool errands_done(std::size_t i) const { return shards[i]->state().errands_done(); }

    asio::io_context context;
    std::vector<service_type::dispatcher*> shards;
    std::deque<shard_bench::timer_core> timers;
    std::deque<shard_bench::test_wait> waits;
};

} // namespace

BOOST_DATA_TEST_CASE(P8_P9_the_last_shard_lets_a_driver_go_that_its_context_counts, shards, n) {
    for (std::size_t first = 0; first != n; ++first) {
        held_waits w(n);
        for (std::size_t i = 0; i != n; ++i) {
            w.leave((first + i) % n);
            BOOST_CHECK_EQUAL(poll_to_end(w.context), i + 1 == n ? one : none);
            BOOST_CHECK_EQUAL(w.context.stopped(), i + 1 == n);
        }
    }
}

// Outside a unit the context would stop, permanently.
BOOST_DATA_TEST_CASE(P9_a_context_that_counts_shards_is_stopped_by_none_that_goes_quiet_elsewhere,
                     shards, n) {
    for (std::size_t first = 0; first != n; ++first) {
        held_waits w(n);
        const pawl::steady_timer known(w.context);
        poll_to_end(w.context);
        for (std::size_t i = 0; i != n; ++i) {
            BOOST_CHECK(!w.context.stopped());
            w.leave((first + i) % n);
            BOOST_CHECK(!w.context.stopped());
            BOOST_CHECK_EQUAL(poll_to_end(w.context), one);
        }
        BOOST_CHECK(w.context.stopped());
    }
}

BOOST_DATA_TEST_CASE(P9_a_context_that_becomes_known_counts_the_shard_that_is_busy, shards, n) {
    for (std::size_t left = 0; left != n; ++left) {
        held_waits w(n);
        for (std::size_t i = 0; i != n; ++i) {
            if (i != left)
                w.leave(i);
        }
        BOOST_CHECK(busy(w.context));

        const pawl::steady_timer known(w.context);

        BOOST_CHECK(busy(w.context));
        w.leave(left);
        BOOST_CHECK(!busy(w.context));
    }
}

// A thread has cancelled the last wait but one, and still has to notify a context that counts only
// the driver.
BOOST_DATA_TEST_CASE(P9_a_context_waits_for_a_thread_that_has_yet_to_queue_a_runner, shards, n) {
    for (std::size_t slow = 0; slow != n; ++slow) {
        held_waits w(n);
        auto& state = w.shards[slow]->state();
        auto [count, held_up] = state.cancel(w.timers[slow], 1);
        BOOST_REQUIRE(count == 1 && held_up.runners &&
                      held_up.after == pawl::detail::commitment::sequel::end_errand);
        for (std::size_t i = 0; i != n; ++i) {
            if (i != slow)
                w.shards[i]->cancel(w.timers[i], 1);
        }

        w.context.restart();
        for (int i = 0; i < 10; ++i)
            w.context.poll_one();

        for (std::size_t i = 0; i != n; ++i)
            BOOST_CHECK_EQUAL(w.waits[i].completed, i != slow);
        BOOST_CHECK(!w.context.stopped());

        state.unclaim(*held_up.runners); // like that thread, and tells the driver
        collect_in(w.context);
        state.end_errand();
        run_to_end(w.context);
        BOOST_CHECK_EQUAL(w.waits[slow].completed, 1);
        BOOST_CHECK(w.context.stopped());
        for (std::size_t i = 0; i != n; ++i) // the limits
            BOOST_CHECK(!w.withdraw(i));
    }
}

BOOST_AUTO_TEST_SUITE_END()

// --- all at once --------------------------------------------------------------------------------

BOOST_DATA_TEST_CASE(P10_expire_all_ends_the_waits_of_every_shard, shards, n) {
    sharded<manual_timer> s(n);
    for (std::size_t i = 0; i != n; ++i)
        s.start(i, std::chrono::hours(1 + i));

    BOOST_CHECK_EQUAL(pawl::expire_all(s.context, asio::error::shut_down), n);
    poll_to_end(s.context);

    for (std::size_t i = 0; i != n; ++i)
        BOOST_CHECK_EQUAL(s.result(i).code, asio::error::shut_down);
    BOOST_CHECK(s.context.stopped());
}

BOOST_DATA_TEST_CASE(P10_the_end_of_a_context_reaches_the_waits_of_every_shard,
                     shards* boost::unit_test::data::make({false, true}), n, deliver) {
    pawl::options o;
    o.on_shutdown = deliver ? pawl::shutdown_policy::deliver : pawl::shutdown_policy::destroy;
    auto s = std::make_unique<sharded<manual_timer>>(n, o);
    const auto alive = std::make_shared<int>();
    std::size_t told = 0;
    for (std::size_t i = 0; i != n; ++i) {
        s->timer(i).expires_after(std::chrono::hours(1 + i));
        s->timer(i).async_wait([&told, alive](error_code ec) {
            BOOST_CHECK_EQUAL(ec, asio::error::operation_aborted);
            ++told;
        });
    }
    const auto timers = std::move(s->timers); // outlives it

    s.reset();

    BOOST_CHECK_EQUAL(told, deliver ? n : none);
    BOOST_CHECK_EQUAL(alive.use_count(), 1);
}

// ---- faults -------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(faults)

namespace {

using wall = pawl_test::scripted_clock<1>;
constexpr auto noon = std::chrono::nanoseconds(1000h);

/// The clock is set back in the `n`th reading from now on; after that, so many allocations succeed.
void set_back_in_reading(int n, long allocations) {
    wall::at_reading(n, [allocations] {
        wall::set(noon - 1h);
        counted_new::fuse = allocations;
    });
}

} // namespace

// The driver wakes up and checks one shard after the other. In the meantime the clock is set back;
// a shard must follow it, and lacks memory. With a lone wait the wake-up was about to run that of a
// shard before.
BOOST_DATA_TEST_CASE(C26_a_clock_that_is_set_back_without_memory_costs_no_wait_of_any_shard,
                     shards* boost::unit_test::data::make({false, true}), n, lone) {
    int failures = 0;
    for (int reading = 1; reading <= 2 + 3 * static_cast<int>(n); ++reading) {
        for (long allocations = 0; allocations < 2; ++allocations) {
            wall::set(noon);
            sharded<timer_of<wall>> s(n);
            std::deque<outcome> due(n);
            for (std::size_t i = 0; i != n; ++i) {
                s.start(i, 1h);
                collect_in(s.context);
                poll_to_end(s.context);
                if (lone)
                    s.timer(i).cancel();
                s.timer(i).async_wait(record(due[i]));
            }
            if (lone)
                poll_to_end(s.context);
            s.timer(n - 1).rearm_at(wall::time_point(noon)); // is due; the driver must check
            s.timer(0).rearm_at(wall::time_point(noon));

            set_back_in_reading(reading, allocations);
            bool failed = false;
            try {
                poll_to_end(s.context);
            } catch (const std::bad_alloc&) {
                failed = true;
            }
            counted_new::fuse = counted_new::never;
            (void)wall::forget();
            failures += failed;

            const bool some_pending =
                std::any_of(due.begin(), due.end(), [](const outcome& o) { return o.pending(); });
            if (failed) {
                BOOST_CHECK(!s.context.stopped());
                poll_to_end(s.context); // tries again
            }
            BOOST_CHECK_EQUAL(busy(s.context), some_pending);
            wall::set(noon + 1h);
            collect_in(s.context);
            poll_to_end(s.context);

            for (std::size_t i = 0; i != n; ++i) {
                BOOST_CHECK(due[i].succeeded());
                BOOST_CHECK(lone ? s.result(i).aborted() : s.result(i).succeeded());
            }
            BOOST_CHECK(s.context.stopped());
        }
    }
    BOOST_CHECK_GT(failures, 0);
}

// Among the first waits of all shards, that of one shard finds no memory for the driver.
BOOST_DATA_TEST_CASE(C26_a_first_wait_without_memory_leaves_those_of_other_shards_alone, shards,
                     n) {
    for (std::size_t unlucky = 0; unlucky != n; ++unlucky) {
        int failures = 0;
        for (long allocations = 0; allocations < 4; ++allocations) {
            sharded<manual_timer> s(n);
            counted_new::fuse = allocations;
            try {
                s.start(unlucky, 1s);
            } catch (const std::bad_alloc&) {
                ++failures;
            }
            counted_new::fuse = counted_new::never;
            for (std::size_t i = 0; i != n; ++i) {
                if (i != unlucky)
                    s.start(i, 2s);
            }
            const bool started = s.timer(unlucky).cancel() == 1;
            poll_to_end(s.context);
            BOOST_CHECK_EQUAL(s.result(unlucky).calls, started ? 1 : 0);
            BOOST_CHECK(!s.context.stopped());
            s.start(unlucky, 1s);

            BOOST_CHECK(manual_clock::advance_to_next(s.context) == 1s);
            poll_to_end(s.context);
            BOOST_CHECK(s.result(unlucky).succeeded());
            BOOST_CHECK(manual_clock::advance_to_next(s.context) == 1s);
            poll_to_end(s.context);

            for (std::size_t i = 0; i != n; ++i)
                BOOST_CHECK(s.result(i).succeeded());
            BOOST_CHECK(s.context.stopped());
        }
        BOOST_CHECK_GT(failures, 0);
    }
}

// The driver was not set. The next wait of that shard must set it, although it is not earlier.
BOOST_DATA_TEST_CASE(C26_P2_the_wait_after_one_without_memory_sets_the_driver, shards, n) {
    using clock = pawl_test::scripted_clock<3, true>;
    clock::set(1000h);
    for (std::size_t unlucky = 0; unlucky != n; ++unlucky) {
        long allocations = 0;
        for (bool failed = true; failed; ++allocations) {
            BOOST_REQUIRE_LT(allocations, 20);
            sharded<timer_of<clock>> s(n);
            counted_new::fuse = allocations;
            try {
                s.start(unlucky, 1s);
                failed = false;
            } catch (const std::bad_alloc&) {
                system_timer::sleep = 1h;
            }
            counted_new::fuse = counted_new::never;
            if (!failed)
                continue;

            s.start(unlucky, 2s);
            poll_to_end(s.context);

            BOOST_CHECK(s.result(unlucky).pending());
            BOOST_CHECK(system_timer::sleeps_at_most(2s));
        }
        BOOST_CHECK_GT(allocations, 1);
    }
}

BOOST_AUTO_TEST_SUITE_END()

// ---- handlers that run their context -------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(loops_in_handlers)

/// Runs a context until `done`, for some time at most.
bool runs_until(boost::asio::io_context& context, const bool& done) {
    while (!done && context.run_one_for(2s) != 0) {
    }
    return done;
}

/// The same for what needs no time. Not for io_context(1): there Asio's poll_one() in a handler may
/// stop the context.
bool polls_until(boost::asio::io_context& context, const bool& done) {
    while (!done && context.poll_one() != 0) {
    }
    return done;
}

void ignore(error_code) {}

// The wake-up for both may run the handler of one itself. The other must not come after it.
BOOST_DATA_TEST_CASE(P2_a_loop_in_a_handler_runs_what_expired_with_it_in_another_shard, shards, n) {
    boost::asio::io_context context(1);
    pawl::make_timer_service(context, {.shards = n});
    std::deque<pawl::steady_timer> timers;
    in_threads_of_their_own(n, [&](std::size_t) { timers.emplace_back(context, 1ms); });
    std::size_t completed = 0, nested = 0;
    for (auto& t : timers) {
        t.async_wait([&](error_code) {
            ++completed;
            while (completed != n && context.run_one_for(2s) != 0) {
            }
            nested = std::max(nested, completed);
            context.stop();
        });
    }
    std::this_thread::sleep_for(20ms); // all are due at the first wake-up
    context.run();
    BOOST_TEST(nested == n);
}

// The unit that collects the next batch queues others, which are held until it ends.
BOOST_DATA_TEST_CASE(P2_a_loop_in_a_handler_runs_the_batches_that_come,
                     boost::unit_test::data::make({1, BOOST_ASIO_CONCURRENCY_HINT_DEFAULT}) *
                         boost::unit_test::data::make({1U, 2U, 4U}) *
                         boost::unit_test::data::make({1U, 2U, 3U, 256U}) *
                         boost::unit_test::data::make({0U, 1U, 2U, 3U, 4U, 255U, 256U, 257U}),
                     hint, n, batch, at) {
    boost::asio::io_context context(hint);
    pawl::make_timer_service<pawl::manual_timer>(context, {.shards = n, .batch_limit = batch});
    std::deque<pawl::manual_timer> timers; // a driver on this clock is never late
    in_threads_of_their_own(n, [&](std::size_t) {
        for (int i = 0; i != 300; ++i)
            timers.emplace_back(context, 1ms);
    });
    std::size_t completed = 0, nested = 0;
    for (auto& t : timers) {
        t.async_wait([&](error_code) {
            if (completed++ != at)
                return;
            while (completed != timers.size() && context.run_one_for(2s) != 0) {
            }
            nested = completed;
            context.stop();
        });
    }
    pawl::manual_clock::advance(context, 1ms);
    context.run();
    BOOST_TEST(nested == timers.size());
}

// The runners of the last shard are held, and the wake-up is a runner of the first one.
BOOST_DATA_TEST_CASE(P2_a_wake_up_finds_out_in_each_shard_whether_runners_are_held, shards, n) {
    boost::asio::io_context context(1);
    pawl::make_timer_service(context, {.shards = n});
    std::optional<pawl::steady_timer> first;
    std::deque<pawl::steady_timer> last;
    in_threads_of_their_own(n, [&](std::size_t i) {
        if (i == 0)
            first.emplace(context);
        for (int k = 0; i == n - 1 && k != 200; ++k) {
            last.emplace_back(context, 1h);
            last.back().async_wait(ignore);
        }
        if (i == n - 1)
            last.emplace_back(context);
    });
    bool nested = false;
    boost::asio::post(context, [&] {
        const auto soon = std::chrono::steady_clock::now();
        bool done = false;
        first->expires_at(soon + 20ms);
        first->async_wait(ignore);
        last.back().expires_at(soon + 20ms);
        last.back().async_wait([&](error_code) { done = true; });
        for (std::size_t k = 0; k + 1 != last.size(); ++k)
            last[k].cancel();
        std::this_thread::sleep_for(30ms); // both are due at the first wake-up
        nested = runs_until(context, done);
        context.stop();
    });
    context.run();
    BOOST_TEST(nested);
}

// Another thread queues a runner, which overtakes one that a handler has queued before. That one
// begins in the next thread that runs the context.
BOOST_AUTO_TEST_CASE(P2_a_loop_in_a_handler_runs_timers_after_the_context_has_changed_threads) {
    boost::asio::io_context context(1);
    std::deque<pawl::steady_timer> timers;
    for (int i = 0; i != 200; ++i) {
        timers.emplace_back(context, 1h);
        timers.back().async_wait(ignore);
    }
    boost::asio::post(context, [&] {
        timers[0].cancel();
        std::thread([&] { timers[1].cancel(); }).join();
    });
    std::thread([&] {
        context.run_one(); // the handler
        context.run_one(); // the runner that overtakes
    }).join();

    bool nested = false;
    boost::asio::post(context, [&] {
        for (auto& t : timers)
            t.cancel();
        pawl::steady_timer awaited(context, 2ms);
        bool done = false;
        awaited.async_wait([&](error_code) { done = true; });
        nested = runs_until(context, done);
        context.stop();
    });
    context.run();
    BOOST_TEST(nested);
}

// With several completions per turn the units that a handler has queued would do for one wait more.
// They are held until it returns, so what its loop cancels needs a unit of its own.
BOOST_DATA_TEST_CASE(P2_a_loop_in_a_handler_runs_what_is_cancelled_in_the_loop,
                     boost::unit_test::data::make({1U, 2U, 64U}) *
                         boost::unit_test::data::make({1, 2, 10}) *
                         boost::unit_test::data::make({false, true}),
                     per_turn, before, by_slot) {
    boost::asio::io_context context(1);
    pawl::make_timer_service(context, {.completions_per_turn = per_turn});
    std::deque<pawl::steady_timer> timers;
    for (int i = 0; i != before + 2; ++i)
        timers.emplace_back(context, 1h);
    boost::asio::cancellation_signal signal;
    bool done[2] = {}, nested = false;
    for (int i = 0; i != before; ++i)
        timers[static_cast<std::size_t>(i)].async_wait(ignore);
    pawl::steady_timer& first = timers[timers.size() - 2];
    first.async_wait([&](error_code) { done[0] = true; });
    timers.back().async_wait(
        boost::asio::bind_cancellation_slot(signal.slot(), [&](error_code) { done[1] = true; }));
    const auto cancel_last = [&] {
        if (by_slot)
            signal.emit(boost::asio::cancellation_type::terminal);
        else
            timers.back().cancel();
    };
    const auto from_outside = [&](auto f) { // otherwise Asio holds it, too
        std::thread([&] { boost::asio::post(context, f); }).join();
    };
    boost::asio::post(context, [&] {
        for (int i = 0; i != before; ++i)
            timers[static_cast<std::size_t>(i)].cancel();
        from_outside([&] { first.cancel(); });
        nested = runs_until(context, done[0]);
        from_outside(cancel_last);
        nested = runs_until(context, done[1]) && nested;
        context.stop();
    });
    context.run();
    BOOST_TEST(nested);
}

// A unit that is in the middle of its turn wakes no reader until its handler returns.
BOOST_AUTO_TEST_CASE(a_loop_in_a_handler_in_the_middle_of_its_turn_reads_events) {
    boost::asio::io_context context;
    pawl::make_timer_service(context, {.completions_per_turn = 2});
    pawl::event_feed feed(context);
    auto reader = feed.join();
    std::array<pawl::timer_event, 8> events;
    pawl::steady_timer first(context, 1ms);
    pawl::steady_timer second(context, 1ms);
    pawl::steady_timer other(context, 1h);
    bool second_done = false, read = false, nested = false;
    first.async_wait([&](error_code) {
        (void)polls_until(context, second_done);
        do { // reads what there is, then sleeps
            read = false;
            reader.async_read(events, [&](auto&&...) { read = true; });
            while (context.poll_one() != 0) {
            }
        } while (read);
        other.async_wait(ignore);
        nested = polls_until(context, read);
        context.stop();
    });
    second.async_wait([&](error_code) { second_done = true; });
    std::this_thread::sleep_for(20ms); // both are due at the first wake-up
    context.run();
    BOOST_TEST(nested);
}

// The first thing that each thread begins is a runner that the loop of the other one has overtaken.
BOOST_AUTO_TEST_CASE(P2_a_loop_in_a_handler_runs_timers_after_each_change_of_threads) {
    boost::asio::io_context context(1);
    std::deque<pawl::steady_timer> timers;
    for (int i = 0; i != 20; ++i) {
        timers.emplace_back(context, 1h);
        timers.back().async_wait(ignore);
    }
    std::size_t nested = 0;
    const auto turn = [&] {
        boost::asio::post(context, [&] {
            timers.front().cancel();
            timers.pop_front();
            std::thread([&] { timers.back().cancel(); }).join();
            timers.pop_back();
            pawl::steady_timer awaited(context, 2ms);
            bool done = false;
            awaited.async_wait([&](error_code) { done = true; });
            nested += runs_until(context, done);
            context.stop();
        });
        context.run();
        context.restart();
    };
    for (std::size_t n = 0; n != 8; n += 2) {
        turn();
        std::thread(turn).join();
        BOOST_TEST_REQUIRE(nested == n + 2);
    }
}

BOOST_AUTO_TEST_SUITE_END()
