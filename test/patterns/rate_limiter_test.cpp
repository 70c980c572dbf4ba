// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   pawl::rate_limiter: each case is one of its promises.
//
// Model
//   Time is manual_clock, except where threads run. The random test compares each step with a naive
//   model that knows the whole history.

#define BOOST_TEST_MODULE patterns_rate_limiter

#include <pawl/expire_all.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/options.hpp>
#include <pawl/rate_limiter.hpp>
#include <pawl/timeout.hpp>
#include <pawl/timer_service.hpp>

#include "../support/archetypes.hpp"
#include "../support/asio_configuration.hpp"
#include "../support/seed.hpp"

#include <boost/asio.hpp>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using pawl::manual_clock;
using limiter = pawl::basic_rate_limiter<manual_clock>;
using namespace std::chrono_literals;

const error_code aborted = asio::error::operation_aborted;

/// Runs what is due; see examples/cookbook/support.hpp.
void pass(asio::io_context& context, manual_clock::duration d = {}) {
    do {
        manual_clock::advance(context, d);
        d = d.zero();
        context.restart();
    } while (context.poll() != 0);
}

/// Who got tokens, in order, and who did not.
struct log {
    std::string got{};
    std::string ended{};
    error_code last{};

    auto record(char name) {
        return [this, name](error_code ec) {
            (ec ? ended : got) += name;
            last = ec;
        };
    }
};

BOOST_AUTO_TEST_CASE(a_burst_is_there_at_once_and_then_one_token_per_interval) {
    asio::io_context context;
    limiter bucket(context, {.tokens = 10, .period = 1s, .burst = 3});
    log l;
    for (const char name : {'a', 'b', 'c', 'd', 'e'})
        bucket.async_acquire(l.record(name));
    BOOST_TEST(l.got == ""); // never within the call
    pass(context);
    BOOST_TEST(l.got == "abc");
    BOOST_TEST(bucket.waiting() == 2u);
    pass(context, 100ms - 1ns);
    BOOST_TEST(l.got == "abc");
    pass(context, 1ns);
    BOOST_TEST(l.got == "abcd");
    pass(context, 100ms);
    BOOST_TEST(l.got == "abcde");
    BOOST_TEST(context.stopped()); // no timer when nobody waits
}

BOOST_AUTO_TEST_CASE(a_rest_saves_up_one_burst_and_not_more) {
    asio::io_context context;
    limiter bucket(context, {.tokens = 10, .burst = 3});
    pass(context, 24h);
    BOOST_TEST(bucket.available() == 3);
    BOOST_TEST(bucket.try_acquire(3));
    BOOST_TEST(!bucket.try_acquire());
    pass(context, 250ms);
    BOOST_TEST(bucket.available() == 2);
    pass(context, std::chrono::nanoseconds::max() / 4); // no overflow
    BOOST_TEST(bucket.available() == 3);
}

BOOST_AUTO_TEST_CASE(no_rounding_error_adds_up) {
    asio::io_context context;
    limiter bucket(context, {.tokens = 7, .period = 1s, .burst = 7});
    BOOST_TEST(bucket.try_acquire(7));
    const auto begin = manual_clock::now();
    log l;
    for (int i = 0; i < 7000; ++i) {
        bucket.async_acquire(l.record('x'));
        while (bucket.waiting() != 0) {
            manual_clock::advance_to_next(context);
            pass(context);
        }
    }
    BOOST_TEST((manual_clock::now() - begin == 1000s));
}

BOOST_AUTO_TEST_CASE(who_waits_for_many_tokens_is_served_before_later_ones_for_few) {
    asio::io_context context;
    limiter bucket(context, {.tokens = 10, .burst = 5});
    BOOST_TEST(bucket.try_acquire(5));
    log l;
    bucket.async_acquire(5, l.record('m'));
    bucket.async_acquire(1, l.record('f'));
    pass(context, 400ms);
    BOOST_TEST(l.got == "");
    BOOST_TEST(!bucket.try_acquire()); // there are four, but somebody waits
    BOOST_TEST(bucket.available() == 0);
    pass(context, 100ms);
    BOOST_TEST(l.got == "m");
    pass(context, 100ms);
    BOOST_TEST(l.got == "mf");
}

BOOST_AUTO_TEST_CASE(a_cancelled_wait_gives_its_place_to_the_next) {
    asio::io_context context;
    limiter bucket(context, {.tokens = 10, .burst = 5});
    BOOST_TEST(bucket.try_acquire(5));
    log l;
    asio::cancellation_signal stop;
    bucket.async_acquire(5, asio::bind_cancellation_slot(stop.slot(), l.record('m')));
    bucket.async_acquire(l.record('f'));
    pass(context, 300ms);
    stop.emit(asio::cancellation_type::total);
    pass(context);
    BOOST_TEST(l.ended == "m");
    BOOST_TEST(l.last == error_code()); // f came after
    BOOST_TEST(l.got == "f");           // at once: its token was there
    BOOST_TEST(bucket.try_acquire(2));  // and nothing is lost
    BOOST_TEST(!bucket.try_acquire());
}

BOOST_AUTO_TEST_CASE(a_wait_that_is_cancelled_before_its_handler_begins_gives_its_tokens_back) {
    asio::io_context context;
    asio::io_context other; // runs the handler, later
    limiter bucket(context, {.tokens = 10, .burst = 2});
    BOOST_TEST(bucket.try_acquire(2));
    log l;
    asio::cancellation_signal stop;
    bucket.async_acquire(
        2, asio::bind_cancellation_slot(stop.slot(),
                                        asio::bind_executor(other.get_executor(), l.record('a'))));
    bucket.async_acquire(2, l.record('b'));
    pass(context, 200ms); // a has its tokens, and has not run
    BOOST_TEST(bucket.waiting() == 1u);
    stop.emit(asio::cancellation_type::terminal);
    other.poll();
    BOOST_TEST(l.ended == "a");
    BOOST_TEST(l.last == aborted);
    pass(context);
    BOOST_TEST(l.got == "b");
}

BOOST_AUTO_TEST_CASE(a_slow_executor_of_one_waiter_does_not_hold_up_the_next) {
    asio::io_context context;
    asio::io_context other;
    limiter bucket(context, {.tokens = 10, .burst = 1});
    BOOST_TEST(bucket.try_acquire());
    log l;
    bucket.async_acquire(asio::bind_executor(other.get_executor(), l.record('a')));
    bucket.async_acquire(l.record('b'));
    pass(context, 100ms);
    pass(context, 100ms);
    BOOST_TEST(l.got == "b");
    other.run();
    BOOST_TEST(l.got == "ba");
}

BOOST_AUTO_TEST_CASE(waiting_can_have_a_limit) {
    asio::io_context context;
    limiter bucket(context, {.tokens = 10, .burst = 1});
    BOOST_TEST(bucket.try_acquire());
    log l;
    pawl::manual_timer timer(context);
    bucket.async_acquire(pawl::timeout(timer, 50ms, l.record('a')));
    pass(context, 50ms);
    BOOST_TEST(l.ended == "a");
    BOOST_TEST(l.last == pawl::error::timed_out);
    BOOST_TEST(context.stopped()); // no timer is left
    pass(context, 50ms);
    BOOST_TEST(bucket.try_acquire());
}

BOOST_AUTO_TEST_CASE(a_coroutine_can_await_tokens) {
    asio::io_context context;
    limiter bucket(context, {.tokens = 10, .burst = 2});
    int got = 0;
    const auto take = [&]() -> asio::awaitable<void> {
        co_await bucket.async_acquire(2);
        ++got;
        co_await bucket.async_acquire();
        ++got;
    };
    asio::co_spawn(context, take(), [](std::exception_ptr e) { BOOST_TEST(!e); });
    pass(context);
    BOOST_TEST(got == 1);
    pass(context, 100ms);
    BOOST_TEST(got == 2);
}

BOOST_AUTO_TEST_CASE(destroying_it_ends_all_waits_also_in_one_of_their_handlers) {
    asio::io_context context;
    auto bucket = std::make_unique<limiter>(context, pawl::rate_limit{.tokens = 10, .burst = 1});
    log l;
    BOOST_TEST(bucket->try_acquire());
    bucket->async_acquire([&, f = l.record('a')](error_code ec) {
        f(ec);
        bucket.reset();
    });
    bucket->async_acquire(l.record('b'));
    bucket->async_acquire(l.record('c'));
    pass(context, 100ms);
    BOOST_TEST(l.got == "a");
    BOOST_TEST(l.ended == "bc");
    BOOST_TEST(l.last == aborted);
    BOOST_TEST(context.stopped());
}

BOOST_AUTO_TEST_CASE(the_context_may_be_destroyed_with_waits_and_before_the_limiter) {
    const auto alive = std::make_shared<int>();
    std::optional<limiter> bucket;
    {
        asio::io_context context;
        bucket.emplace(context.get_executor(), pawl::rate_limit{.tokens = 10, .burst = 1});
        for (int i = 0; i < 4; ++i) // one posted, three wait
            bucket->async_acquire([alive](error_code) {});
        BOOST_TEST(alive.use_count() == 5);
    }
    BOOST_TEST(alive.use_count() == 1);
    BOOST_TEST(bucket->waiting() == 0u);
}

BOOST_AUTO_TEST_CASE(a_wait_that_begins_while_its_context_ends_is_destroyed) {
    const auto alive = std::make_shared<int>();
    std::optional<limiter> bucket;
    {
        asio::io_context context;
        bucket.emplace(context.get_executor(), pawl::rate_limit{.tokens = 10, .burst = 1});
        BOOST_TEST(bucket->try_acquire());
        std::shared_ptr<void> last(nullptr,
                                   [&](void*) { bucket->async_acquire([alive](error_code) {}); });
        asio::post(context, [last = std::move(last)] {});
    }
    BOOST_TEST(alive.use_count() == 1);
    BOOST_TEST(bucket->waiting() == 0u);
}

BOOST_AUTO_TEST_CASE(waits_that_are_destroyed_with_their_own_context_give_their_places_back) {
    asio::io_context context;
    limiter bucket(context, {.tokens = 10, .burst = 1});
    BOOST_TEST(bucket.try_acquire());
    log l;
    {
        asio::io_context other;
        bucket.async_acquire(asio::bind_executor(other.get_executor(), l.record('a')));
        bucket.async_acquire(l.record('b'));
        pass(context, 100ms); // the handler of a is on its way, and has its token
    }
    pass(context);
    BOOST_TEST(l.got == "b");
    BOOST_TEST(l.ended == "");
}

BOOST_AUTO_TEST_CASE(bad_input_is_refused_with_nothing_changed) {
    asio::io_context context;
    const auto most = std::numeric_limits<std::int64_t>::max();
    for (const pawl::rate_limit& bad :
         {pawl::rate_limit{.tokens = 0}, pawl::rate_limit{.tokens = -1},
          pawl::rate_limit{.period = 0s}, pawl::rate_limit{.period = -1s},
          pawl::rate_limit{.burst = 0}, pawl::rate_limit{.burst = -1},
          pawl::rate_limit{.tokens = 1, .period = 1h, .burst = most}})
        BOOST_CHECK_THROW(limiter(context, bad), std::invalid_argument);

    limiter bucket(context, {.tokens = 1, .burst = 2});
    log l;
    for (const std::int64_t n : {std::int64_t(0), std::int64_t(-1), std::int64_t(3), most}) {
        BOOST_CHECK_THROW((void)bucket.try_acquire(n), std::invalid_argument);
        BOOST_CHECK_THROW(bucket.async_acquire(n, l.record('a')), std::invalid_argument);
    }
    BOOST_TEST(bucket.available() == 2);
    pass(context);
    BOOST_TEST(l.got + l.ended == "");
}

BOOST_AUTO_TEST_CASE(without_memory_no_token_and_no_place_is_lost) {
    asio::io_context context;
    // any_io_executor would not use the allocator.
    pawl::basic_rate_limiter<manual_clock, asio::io_context::executor_type> bucket(
        context, {.tokens = 10, .burst = 1});
    pawl_test::allocation_log memory;
    memory.fail = true;
    log l;
    const auto token = [&] {
        return asio::bind_allocator(pawl_test::counting_allocator<void>(memory), l.record('a'));
    };
    BOOST_CHECK_THROW(bucket.async_acquire(token()), std::bad_alloc);
    BOOST_TEST(bucket.available() == 1);
    BOOST_TEST(bucket.try_acquire());
    BOOST_CHECK_THROW(bucket.async_acquire(token()), std::bad_alloc);
    BOOST_TEST(bucket.waiting() == 0u);
    pass(context, 100ms);
    BOOST_TEST(bucket.try_acquire());
    BOOST_TEST(l.got + l.ended == "");
    BOOST_TEST(memory.live() == 0u);
}

BOOST_AUTO_TEST_CASE(a_handler_that_cannot_be_copied_leaves_no_place_behind) {
    struct heavy {
        heavy() = default;
        heavy(const heavy&) { throw std::bad_alloc(); }
        heavy(heavy&&) = default;
        void operator()(error_code) const {}
    };
    asio::io_context context;
    limiter bucket(context, {.tokens = 10, .burst = 1});
    BOOST_TEST(bucket.try_acquire());
    heavy handler;
    BOOST_CHECK_THROW(bucket.async_acquire(handler), std::bad_alloc);
    BOOST_TEST(bucket.waiting() == 0u);
    log l;
    bucket.async_acquire(l.record('a'));
    pass(context, 100ms);
    BOOST_TEST(l.got == "a");
}

BOOST_AUTO_TEST_CASE(expire_all_and_cancel_all_end_waits_and_later_ones_are_served) {
    asio::io_context context;
    limiter bucket(context, {.tokens = 10, .burst = 1});
    BOOST_TEST(bucket.try_acquire());
    log l;
    bucket.async_acquire(l.record('a'));
    pawl::expire_all<pawl::manual_timer>(context, pawl::error::shutting_down);
    pass(context);
    BOOST_TEST(l.ended == "a");
    BOOST_TEST(l.last == pawl::error::shutting_down);
    bucket.async_acquire(l.record('b'));
    pass(context, 100ms);
    BOOST_TEST(l.got == "b");
}

// Regression: a waiter whose shard expire_all() or cancel_all() had left, as it went on to the shard of
// the alarm, waited for ever.
BOOST_DATA_TEST_CASE(a_wait_that_starts_while_all_timers_are_ended_is_served,
                     boost::unit_test::data::make({false, true}), cancels) {
    asio::io_context context;
    pawl::make_timer_service<pawl::manual_timer>(context, pawl::options{.shards = 2});
    auto& service = asio::use_service<pawl::timer_service<pawl::manual_clock>>(context);
    limiter bucket(context, {.tokens = 10, .burst = 1});
    BOOST_TEST(bucket.try_acquire());
    log l;
    std::thread([&] { bucket.async_acquire(l.record('a')); }).join(); // in the other shard

    service.enter().expire_all(asio::error::operation_aborted,
                               cancels ? pawl::detail::wait_ending::cancelled
                                       : pawl::detail::wait_ending::early);

    pass(context, 99ms);
    BOOST_TEST(l.got == "");
    pass(context, 2ms);
    BOOST_TEST(l.got == "a");
    BOOST_TEST(context.stopped());
}

BOOST_AUTO_TEST_CASE(beyond_max_pending_a_wait_is_refused_and_takes_no_token) {
    asio::io_context context;
    pawl::make_timer_service<pawl::manual_timer>(context, pawl::options{.max_pending = 2});
    limiter bucket(context, {.tokens = 10, .burst = 1});
    BOOST_TEST(bucket.try_acquire());
    log l;
    bucket.async_acquire(l.record('a')); // this wait and the alarm
    bucket.async_acquire(l.record('b'));
    pass(context);
    BOOST_TEST(l.ended == "b");
    BOOST_TEST(l.last == asio::error::no_buffer_space);
    pass(context, 110ms); // options have a precision
    BOOST_TEST(l.got == "a");
}

// --- between the place of a waiter and the start of its wait -------------------------------------

/// Calls a function once, as it is asked for the memory of a wait: the waiter has its place by then,
/// and the wait has not started. In a program, another thread does these things then.
template <class T>
class intervening_allocator {
public:
    using value_type = T;

    explicit intervening_allocator(std::function<void()>& f) noexcept : function(&f) {}
    template <class U>
    explicit(false) intervening_allocator(const intervening_allocator<U>& other) noexcept
        : function(other.function) {}

    T* allocate(std::size_t n) {
        if (const auto f = std::exchange(*function, nullptr))
            f();
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* p, std::size_t n) noexcept { std::allocator<T>().deallocate(p, n); }
    template <class U>
    bool operator==(const intervening_allocator<U>& other) const noexcept {
        return function == other.function;
    }

    std::function<void()>* function;
};

/// A limiter without tokens, which gives one each 100 ms.
struct interrupted {
    explicit interrupted(const pawl::options& o = {}) {
        pawl::make_timer_service<pawl::manual_timer>(context, o);
        bucket.emplace(context, pawl::rate_limit{.tokens = 10, .burst = 2});
        BOOST_TEST(bucket->try_acquire(2));
    }
    void acquire_while(std::function<void()> f) {
        bucket->async_acquire(asio::bind_allocator(intervening_allocator<void>(f), l.record('a')));
        BOOST_TEST(!f);
    }

    asio::io_context context;
    std::optional<limiter> bucket;
    log l;
};

BOOST_AUTO_TEST_CASE(an_alarm_that_goes_off_before_a_wait_has_started_is_made_up_for) {
    interrupted i;
    i.acquire_while([&] {
        BOOST_TEST(i.bucket->waiting() == 1u);
        pass(i.context, 101ms); // options have a precision
        BOOST_TEST(i.bucket->waiting() == 1u);
    });
    pass(i.context);
    BOOST_TEST(i.l.got == "a");
    BOOST_TEST(i.context.stopped());
}

BOOST_AUTO_TEST_CASE(an_alarm_that_is_disarmed_before_a_wait_has_started_is_armed_again) {
    interrupted i;
    i.acquire_while([&] { pawl::cancel_all(i.context); });
    pass(i.context, 99ms);
    BOOST_TEST(i.l.got == "");
    pass(i.context, 2ms);
    BOOST_TEST(i.l.got == "a");
}

BOOST_AUTO_TEST_CASE(an_alarm_that_was_refused_is_armed_if_there_is_room_once_a_wait_has_started) {
    interrupted i({.max_pending = 2});
    pawl::manual_timer some(i.context, 1h);
    for (int n = 0; n < 2; ++n)
        some.async_wait([](error_code) {});
    i.acquire_while([&] {
        some.cancel();
        pass(i.context);
    });
    pass(i.context, 99ms);
    BOOST_TEST(i.l.got + i.l.ended == "");
    pass(i.context, 2ms);
    BOOST_TEST(i.l.got == "a");
}

BOOST_AUTO_TEST_CASE(
    a_waiter_for_fewer_tokens_whose_predecessor_leaves_before_its_wait_has_started_is_served_earlier) {
    interrupted i;
    asio::cancellation_signal stop;
    i.bucket->async_acquire(2, asio::bind_cancellation_slot(stop.slot(), i.l.record('b')));
    i.acquire_while([&] {
        stop.emit(asio::cancellation_type::terminal);
        pass(i.context);
        BOOST_TEST(i.l.ended == "b");
    });
    pass(i.context, 101ms);
    BOOST_TEST(i.l.got == "a");
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(threads_that_share_it_get_each_token_once) {
    constexpr int each = 300;
    std::atomic<int> got{0};
    std::atomic<int> ended{0};
    const auto note = [&](error_code ec) { (ec ? ended : got).fetch_add(1); };
    std::vector<std::deque<asio::cancellation_signal>> stops(3);
    asio::thread_pool pool(3);
    {
        pawl::rate_limiter bucket(pool, {.tokens = 1'000'000, .period = 1s, .burst = 10});
        std::vector<std::thread> threads;
        for (auto& own : stops)
            threads.emplace_back([&] {
                const auto strand = asio::make_strand(pool);
                for (int i = 0; i < each; ++i) {
                    auto& stop = own.emplace_back();
                    if (i == each / 2)
                        (void)bucket.try_acquire();
                    bucket.async_acquire(asio::bind_executor(strand, note));
                    asio::post(strand, [&note, &bucket, &stop, strand] {
                        bucket.async_acquire(
                            2, asio::bind_cancellation_slot(stop.slot(),
                                                            asio::bind_executor(strand, note)));
                    });
                    asio::post(strand, [&stop] { stop.emit(asio::cancellation_type::terminal); });
                }
            });
        for (auto& t : threads)
            t.join();
        while (got.load() + ended.load() < 2 * 3 * each)
            std::this_thread::yield();
        BOOST_TEST(bucket.waiting() == 0u);
    }
    pool.join();
    BOOST_TEST(got + ended == 2 * 3 * each);
    BOOST_TEST(got >= 3 * each);
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(it_may_be_destroyed_while_threads_are_about_to_serve_its_waiters) {
    for (int round = 0; round < 50; ++round) {
        asio::thread_pool pool(2);
        std::atomic<int> ended{0};
        {
            pawl::rate_limiter bucket(pool, {.tokens = 100'000, .burst = 1});
            for (int i = 0; i < 20; ++i)
                bucket.async_acquire([&](error_code) { ended.fetch_add(1); });
        }
        pool.join();
        BOOST_TEST(ended == 20);
    }
}

// --- at random -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(at_random_it_does_what_a_naive_bucket_does) {
    std::mt19937_64 random(pawl_test::seed());
    const auto upto = [&](int n) {
        return static_cast<int>(random() % static_cast<unsigned>(n + 1));
    };
    for (auto rounds = pawl_test::steps(200); rounds != 0; --rounds) {
        asio::io_context context;
        const std::int64_t burst = 1 + upto(5);
        const std::int64_t rate = 1 + upto(9);
        limiter bucket(context,
                       {.tokens = rate, .period = 1us, .burst = burst}); // rate / 1000 in each ns
        std::int64_t level = burst * 1000;                               // in thousandths
        struct waiter {
            int id;
            std::int64_t n;
        };
        std::deque<waiter> queue;
        std::vector<int> expected;
        std::vector<int> got;
        std::deque<asio::cancellation_signal> stops;
        const auto serve = [&] {
            while (!queue.empty() && level >= queue.front().n * 1000) {
                level -= queue.front().n * 1000;
                expected.push_back(queue.front().id);
                queue.pop_front();
            }
        };
        for (int step = 0; step < 60; ++step) {
            const std::int64_t n = 1 + upto(static_cast<int>(burst) - 1);
            switch (upto(4)) {
            case 0: {
                const bool there = queue.empty() && level >= n * 1000;
                level -= there ? n * 1000 : 0;
                BOOST_TEST_REQUIRE(bucket.try_acquire(n) == there);
                break;
            }
            case 1:
            case 2: {
                const int id = static_cast<int>(stops.size());
                bucket.async_acquire(n, asio::bind_cancellation_slot(stops.emplace_back().slot(),
                                                                     [&got, id](error_code ec) {
                                                                         if (!ec)
                                                                             got.push_back(id);
                                                                     }));
                queue.push_back({id, n});
                break;
            }
            case 3:
                if (!queue.empty()) {
                    const auto which = queue.begin() + upto(static_cast<int>(queue.size()) - 1);
                    stops[static_cast<std::size_t>(which->id)].emit(
                        asio::cancellation_type::terminal);
                    queue.erase(which);
                }
                break;
            default:
                for (int ns = upto(300); ns != 0;
                     --ns) { // each alone, as the model serves at the first chance
                    pass(context, 1ns);
                    level = std::min(level + rate, burst * 1000);
                    serve();
                }
            }
            serve();
            pass(context);
            BOOST_TEST_REQUIRE(got == expected);
            BOOST_TEST_REQUIRE(bucket.waiting() == queue.size());
        }
    }
}

} // namespace
