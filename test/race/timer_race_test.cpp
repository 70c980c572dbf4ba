// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Four threads run a context, four others use timers of their own on it, as the contract allows:
// distinct objects in distinct threads. Run under ThreadSanitizer by .ci/run. After a lost wake-up
// run() does not return, and ctest ends the test.

#include <pawl/pawl.hpp>

#define BOOST_TEST_MODULE timer_race
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "race/race_support.hpp"
#include "support/sanitized.hpp"
#include "support/seed.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using boost::system::error_code;
using race_support::per_turn;
using race_support::shards;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

namespace timer_race {

constexpr int runners = 4;
constexpr int users = 4;
constexpr int rounds = pawl_test::address_sanitizer ? 500 : 1500;

/// The outcome of one wait. Written by its handler, read after all threads have ended.
struct outcome {
    std::atomic<int> calls{0};
    error_code code;
    clock_type::time_point at;
};

auto record(outcome& o) {
    return [&o](error_code ec) {
        o.code = ec;
        o.at = clock_type::now();
        o.calls.fetch_add(1, std::memory_order_release);
    };
}

bool succeeded(const outcome& o) { return o.calls == 1 && !o.code; }
bool aborted(const outcome& o) { return o.calls == 1 && o.code == asio::error::operation_aborted; }

/// A context that several threads run until all waits on it are over.
struct arena : race_support::arena<> {
    explicit arena(const pawl::options& o) : race_support::arena<>(o, runners) {}
};

/// Calls `use(random, number of the thread)` in `users` threads at a time.
void in_threads(const std::function<void(std::mt19937_64&, int)>& use) {
    const std::uint64_t seed = pawl_test::seed();
    race_support::in_threads(users, [&](int i) {
        std::mt19937_64 random(seed + static_cast<std::uint64_t>(i));
        use(random, i);
    });
}

std::chrono::microseconds upto(std::mt19937_64& random, int microseconds) {
    return std::chrono::microseconds(std::uniform_int_distribution<int>(0, microseconds)(random));
}

void spin(std::chrono::microseconds d) {
    for (const auto end = clock_type::now() + d; clock_type::now() < end;) {
    }
}

pawl::options with(unsigned s, unsigned p) { return race_support::with(s, p, 100us); }

BOOST_DATA_TEST_CASE(P3_P4_cancel_against_expiry, shards* per_turn, s, p) {
    std::deque<outcome> outcomes(users * rounds);
    std::deque<std::size_t> counts(users * rounds);
    {
        arena a(with(s, p));
        in_threads([&](std::mt19937_64& random, int me) {
            pawl::steady_timer timer(a.context);
            for (int i = me * rounds; i < (me + 1) * rounds; ++i) {
                const auto k = static_cast<std::size_t>(i);
                timer.expires_after(upto(random, 400));
                timer.async_wait(record(outcomes[k]));
                spin(upto(random, 300));
                counts[k] = timer.cancel();
            }
        });
    }

    // Allowed: (a) cancel() returned 1 and the handler got operation_aborted,
    //          (b) cancel() returned 0 and the handler got success.
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        BOOST_REQUIRE(counts[i] == 1 ? aborted(outcomes[i]) : succeeded(outcomes[i]));
}

template <class Timer>
void cancel_from_any_thread(const pawl::options& options, int starts) {
    std::deque<outcome> outcomes(static_cast<std::size_t>(starts));
    std::atomic<std::size_t> cancelled{0}; // by any thread
    {
        race_support::arena<Timer> a(options, runners);
        Timer timer(a.context);
        std::atomic<bool> over{false};
        race_support::in_threads(3, [&](int me) {
            std::mt19937_64 random(pawl_test::seed() + static_cast<std::uint64_t>(me));
            std::size_t count = 0;
            if (me != 0) {
                for (clock_type::time_point last; !over.load(std::memory_order_relaxed);) {
                    count += random() % 2 != 0 ? timer.cancel() : timer.cancel_one();
                    last = std::max(last, timer.expiry());
                    spin(upto(random, 20));
                }
            } else {
                for (outcome& o : outcomes) {
                    switch (random() % 7) {
                    case 0:
                        count += timer.expires_after(upto(random, 200));
                        break;
                    case 1:
                        count += timer.expires_at(clock_type::now() + upto(random, 200));
                        break;
                    case 2:
                        count += timer.expires_within(0us, upto(random, 200));
                        break;
                    case 3:
                        timer.rearm_after(upto(random, 200));
                        break;
                    case 4:
                        timer.rearm_at(clock_type::now() + upto(random, 200));
                        break;
                    case 5:
                        timer.rearm_within(0us, upto(random, 200));
                        break;
                    case 6:
                        count += timer.cancel();
                        break;
                    }
                    if (random() % 64 == 0)
                        timer.wait();
                    timer.async_wait(record(o));
                    spin(upto(random, 10));
                }
                over = true;
            }
            cancelled += count;
        });
        cancelled += timer.cancel();
    }

    // Allowed: each wait got success or operation_aborted, once; the number of operation_aborted is
    // the sum of the calls' results.
    std::size_t told = 0;
    for (const outcome& o : outcomes) {
        BOOST_REQUIRE(succeeded(o) || aborted(o));
        told += aborted(o);
    }
    BOOST_TEST(told == cancelled);
    // The scheduler decides each race: on a busy machine all of them may end the same way.
    BOOST_TEST_MESSAGE(told << " of " << outcomes.size() << " waits were cancelled");
}

// boostorg/asio#447. The threads that cancel, and that call functions that move nothing, are not
// those that use the timer.
BOOST_DATA_TEST_CASE(P3_P4_cancel_from_any_thread_against_every_use, shards* per_turn, s, p) {
    cancel_from_any_thread<pawl::steady_timer>(with(s, p), rounds * users);
}

BOOST_DATA_TEST_CASE(P3_P4_cancel_from_any_thread_for_every_type_of_timer, shards, s) {
    pawl::options o = with(s, 1);
    cancel_from_any_thread<pawl::compact_timer>(o, rounds);
    cancel_from_any_thread<pawl::coarse_timer>(o, rounds);
    o.rings.delays = {{.delay = 400us}};
    o.rings.round_up = true;
    cancel_from_any_thread<pawl::ring_timer>(o, rounds);
}

// Another thread finds a wait if it knows of the start.
BOOST_DATA_TEST_CASE(P4_a_cancel_from_another_thread_finds_a_wait_that_was_started, shards, s) {
    arena a(with(s, 1));
    for (int i = 0; i < rounds; ++i) {
        pawl::steady_timer timer(a.context,
                                 1h); // the first wait of a timer makes the timer known
        std::atomic<bool> started{false};
        outcome o;
        std::size_t count = 0;
        race_support::in_threads(2, [&](int me) {
            if (me == 0) {
                timer.async_wait(record(o));
                started.store(true, std::memory_order_release);
            } else {
                while (!started.load(std::memory_order_acquire))
                    std::this_thread::yield();
                count = timer.cancel();
            }
        });
        BOOST_REQUIRE_EQUAL(count, 1U);
        while (o.calls.load(std::memory_order_acquire) == 0)
            std::this_thread::yield();
        BOOST_REQUIRE(o.code == asio::error::operation_aborted);
    }
}

BOOST_DATA_TEST_CASE(P1_P4_rearm_against_expiry, shards* per_turn, s, p) {
    struct moved {
        std::size_t count = 0;
        clock_type::time_point before, after;
    };
    std::deque<outcome> outcomes(users * rounds);
    std::deque<moved> moves(users * rounds);
    {
        arena a(with(s, p));
        in_threads([&](std::mt19937_64& random, int me) {
            std::deque<pawl::steady_timer> timers; // one timer each: nothing aborts the waits
            for (int i = me * rounds; i < (me + 1) * rounds; ++i) {
                const auto k = static_cast<std::size_t>(i);
                pawl::steady_timer& timer = timers.emplace_back(a.context, upto(random, 400));
                moves[k].before = timer.expiry();
                timer.async_wait(record(outcomes[k]));
                spin(upto(random, 300));
                moves[k].count = timer.rearm_after(upto(random, 400)); // later or earlier
                moves[k].after = timer.expiry();
            }
            for (int i = me * rounds; i < (me + 1) * rounds; ++i) {
                while (outcomes[static_cast<std::size_t>(i)].calls == 0)
                    std::this_thread::yield();
            }
        });
    }

    // Allowed: (a) re-arm returned 1: success, not before the new expiry;
    //          (b) re-arm returned 0: success, not before the first expiry.
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        BOOST_REQUIRE(succeeded(outcomes[i]));
        BOOST_REQUIRE_LE(moves[i].count, 1u);
        BOOST_REQUIRE(outcomes[i].at >= (moves[i].count ? moves[i].after : moves[i].before));
    }
}

BOOST_DATA_TEST_CASE(P3_destruction_and_moves_against_expiry, shards* per_turn, s, p) {
    std::deque<outcome> outcomes(users * rounds);
    {
        arena a(with(s, p));
        asio::io_context other;
        in_threads([&](std::mt19937_64& random, int me) {
            std::vector<std::unique_ptr<pawl::steady_timer>> timers;
            for (int i = me * rounds; i < (me + 1) * rounds; ++i) {
                auto& o = outcomes[static_cast<std::size_t>(i)];
                timers.push_back(
                    std::make_unique<pawl::steady_timer>(a.context, upto(random, 400)));
                timers.back()->async_wait(record(o));
                const std::size_t k = random() % timers.size();
                switch (random() % 4) {
                case 0: // move construction
                    timers[k] = std::make_unique<pawl::steady_timer>(std::move(*timers[k]));
                    break;
                case 1: // move assignment, which cancels the target
                    *timers[k] = std::move(*timers.back());
                    break;
                case 2: // destruction
                    timers.erase(timers.begin() + static_cast<std::ptrdiff_t>(k));
                    break;
                default:
                    spin(upto(random, 100));
                }
            }
        });
    }

    // Allowed: success or operation_aborted, exactly once.
    for (const outcome& o : outcomes)
        BOOST_REQUIRE(succeeded(o) || aborted(o));
}

BOOST_DATA_TEST_CASE(P3_C31_emission_against_expiry_and_moves, shards* per_turn, s, p) {
    std::deque<outcome> outcomes(users * rounds);
    {
        arena a(with(s, p));
        in_threads([&](std::mt19937_64& random, int me) {
            for (int i = me * rounds; i < (me + 1) * rounds; ++i) {
                auto& o = outcomes[static_cast<std::size_t>(i)];
                asio::cancellation_signal signal; // dies before, with or after its wait
                std::optional<pawl::steady_timer> timer(std::in_place, a.context,
                                                        upto(random, 200));
                timer->async_wait(asio::bind_cancellation_slot(signal.slot(), record(o)));
                spin(upto(random, 150));
                if (random() % 2) {
                    pawl::steady_timer target(std::move(*timer));
                    timer.reset();
                    signal.emit(asio::cancellation_type::partial);
                } else {
                    signal.emit(asio::cancellation_type::terminal);
                }
                signal.emit(asio::cancellation_type::total);
            }
        });
    }

    // Allowed: success or operation_aborted, exactly once.
    for (const outcome& o : outcomes)
        BOOST_REQUIRE(succeeded(o) || aborted(o));
}

BOOST_DATA_TEST_CASE(P3_P4_strand_bound_handlers_against_cancel_and_rearm, shards* per_turn, s, p) {
    std::deque<outcome> outcomes(users * rounds);
    std::deque<std::size_t> moved(users * rounds);
    std::deque<std::size_t> counts(users * rounds);
    {
        arena a(with(s, p));
        in_threads([&](std::mt19937_64& random, int me) {
            auto strand = asio::make_strand(a.context);
            pawl::steady_timer timer(a.context);
            for (int i = me * rounds; i < (me + 1) * rounds; ++i) {
                const auto k = static_cast<std::size_t>(i);
                timer.expires_after(upto(random, 200));
                timer.async_wait(asio::bind_executor(strand, record(outcomes[k])));
                spin(upto(random, 150));
                moved[k] = timer.rearm_after(upto(random, 200));
                spin(upto(random, 150));
                counts[k] = timer.cancel();
            }
        });
    }

    // Allowed: as for cancel against expiry; and if re-arm did not find the wait, it had started.
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        BOOST_REQUIRE(moved[i] == 1 || counts[i] == 0);
        BOOST_REQUIRE(counts[i] == 1 ? aborted(outcomes[i]) : succeeded(outcomes[i]));
    }
}

BOOST_DATA_TEST_CASE(P3_handlers_of_another_context_against_cancel, shards* per_turn, s, p) {
    std::deque<outcome> outcomes(users * rounds);
    std::deque<std::size_t> counts(users * rounds);
    {
        arena handlers(with(1, 1));
        arena a(with(s, p));
        in_threads([&](std::mt19937_64& random, int me) {
            pawl::steady_timer timer(a.context);
            for (int i = me * rounds; i < (me + 1) * rounds; ++i) {
                const auto k = static_cast<std::size_t>(i);
                timer.expires_after(upto(random, 200));
                timer.async_wait(
                    asio::bind_executor(handlers.context.get_executor(), record(outcomes[k])));
                spin(upto(random, 250));
                counts[k] = timer.cancel();
            }
        });
        a.finish();
    }

    // Allowed: as for cancel against expiry.
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        BOOST_REQUIRE(counts[i] == 1 ? aborted(outcomes[i]) : succeeded(outcomes[i]));
}

BOOST_DATA_TEST_CASE(P10_expire_all_against_everything, shards* per_turn, s, p) {
    std::deque<outcome> outcomes(users * rounds);
    {
        arena a(with(s, p));
        in_threads([&](std::mt19937_64& random, int me) {
            std::deque<pawl::steady_timer> timers;
            for (int i = me * rounds; i < (me + 1) * rounds; ++i) {
                pawl::steady_timer& timer = timers.emplace_back(a.context, upto(random, 2000));
                timer.async_wait(record(outcomes[static_cast<std::size_t>(i)]));
                pawl::steady_timer& any = timers[random() % timers.size()];
                switch (random() % 8) {
                case 0:
                    pawl::expire_all(a.context, asio::error::shut_down);
                    break;
                case 1:
                    any.cancel();
                    break;
                case 2:
                    any.rearm_after(upto(random, 2000));
                    break;
                case 3:
                    if (timers.size() > 100)
                        timers.pop_front();
                    break;
                default:
                    break;
                }
            }
        });
    }

    // Allowed: success, operation_aborted, or the code of expire_all; exactly once.
    for (const outcome& o : outcomes)
        BOOST_REQUIRE(succeeded(o) || aborted(o) ||
                      (o.calls == 1 && o.code == asio::error::shut_down));
}

// The first wait of a context arms the driver, and the end of the last one disarms it. Here every
// wait is both, and overlaps with those of the other threads.
BOOST_DATA_TEST_CASE(P9_the_last_cancel_against_the_first_start, shards, s) {
    std::deque<outcome> outcomes(users * rounds);
    {
        arena a(with(s, 1));
        in_threads([&](std::mt19937_64& random, int me) {
            pawl::steady_timer timer(a.context);
            for (int i = me * rounds; i < (me + 1) * rounds; ++i) {
                auto& o = outcomes[static_cast<std::size_t>(i)];
                if (random() % 8 == 0) {
                    timer.expires_after(upto(random, 50));
                    timer.async_wait(record(o));
                    while (o.calls.load(std::memory_order_acquire) == 0) // it always comes
                        std::this_thread::yield();
                } else {
                    timer.expires_after(1h);
                    timer.async_wait(record(o));
                    timer.cancel();
                }
            }
        });
    }

    // Allowed: waits that were awaited succeeded, the others were aborted.
    for (const outcome& o : outcomes)
        BOOST_REQUIRE(succeeded(o) || aborted(o));
}

// A handler that runs in another thread may destroy the timer, or wait again, before async_wait()
// has returned. Regression: async_wait() wrote to the timer after the start.
BOOST_AUTO_TEST_CASE(C9_a_handler_destroys_its_timer_while_the_initiating_function_returns) {
    constexpr int coroutines = 2000;
    std::atomic<int> ended{0};
    asio::thread_pool pool(4);
    for (int i = 0; i < coroutines; ++i) {
        asio::co_spawn(
            pool,
            [&]() -> asio::awaitable<void> {
                pawl::steady_timer timer(co_await asio::this_coro::executor, -1ms);
                co_await timer.async_wait(asio::use_awaitable);
                ended.fetch_add(1, std::memory_order_relaxed); // relaxed: read after join
            },
            asio::detached);
    }

    pool.join();

    BOOST_TEST(ended == coroutines);
}

// Regression: the unit for the last wait was stuck behind the handler that waits for it.
BOOST_AUTO_TEST_CASE(C35_a_handler_may_run_the_context_until_all_that_expired_with_it_are_done) {
    asio::io_context context;
    std::deque<pawl::steady_timer> timers;
    int done = 0;
    for (int i = 0; i < 200; ++i) {
        timers.emplace_back(context, -1ms).async_wait([&](error_code) {
            if (++done == 1) {
                while (done < 200)
                    context.run_one();
            }
        });
    }

    context.run();

    BOOST_TEST(done == 200);
}

// P9: only the one wait keeps the context running, and another thread ends or moves it while it
// expires. run() may return only after its handler has been called.
template <class End>
void run_returns_after(End end) {
    std::mt19937_64 random(pawl_test::seed());
    for (int round = 0; round < 4000; ++round) {
        asio::io_context context;
        pawl::make_timer_service(context, with(1, 1));
        outcome o;
        asio::cancellation_signal signal;
        pawl::steady_timer timer(context, upto(random, 200));
        timer.async_wait(asio::bind_cancellation_slot(signal.slot(), record(o)));
        const auto delay = upto(random, 250);
        std::thread other([&] {
            spin(delay);
            end(timer, signal, context);
        });
        context.run();
        const int calls = o.calls; // before the other thread is joined
        const bool stopped = context.stopped();
        other.join();

        // Allowed: (a) the handler was called before run() returned.
        BOOST_REQUIRE(stopped);
        BOOST_REQUIRE_EQUAL(calls, 1);
    }
}

BOOST_AUTO_TEST_CASE(P9_run_does_not_return_between_a_cancel_and_its_handler) {
    run_returns_after([](auto& timer, auto&, auto&) { timer.cancel(); });
}
BOOST_AUTO_TEST_CASE(P9_run_does_not_return_between_a_signal_and_its_handler) {
    run_returns_after(
        [](auto&, auto& signal, auto&) { signal.emit(asio::cancellation_type::all); });
}
BOOST_AUTO_TEST_CASE(P9_run_does_not_return_between_expire_all_and_its_handlers) {
    run_returns_after([](auto&, auto&, auto& context) { pawl::expire_all(context); });
}
BOOST_AUTO_TEST_CASE(P9_run_does_not_return_before_a_wait_that_was_pulled_back) {
    run_returns_after([](auto& timer, auto&, auto&) { timer.rearm_after(50us); });
}

// --- alarms -------------------------------------------------------------------------------------

// The function runs in any thread. Two other threads disarm, too.
BOOST_DATA_TEST_CASE(P3_P4_each_arming_ends_by_a_call_or_by_one_disarm, shards* per_turn, s, p) {
    arena a(with(s, p));
    std::atomic<int> calls{0};
    std::atomic<int> disarmed{0};
    pawl::alarm alarm(a.context, [&] { calls.fetch_add(1, std::memory_order_relaxed); });
    std::atomic<bool> over{false};
    race_support::in_threads(3, [&](int me) {
        std::mt19937_64 random(pawl_test::seed() + static_cast<std::uint64_t>(me));
        if (me != 0) {
            for (clock_type::time_point last; !over.load(std::memory_order_relaxed);) {
                disarmed += alarm.disarm();
                last = std::max(last, alarm.expiry());
                spin(upto(random, 100));
            }
            return;
        }
        for (int i = 1; i <= rounds; ++i) {
            alarm.arm_after(upto(random, 200));
            spin(upto(random, 100));
            // Allowed: the call and the disarms add up to the armings, sooner or later, and never
            // to more.
            for (;;) {
                const int ended = calls + disarmed;
                if (ended == i)
                    break;
                BOOST_REQUIRE_EQUAL(ended, i - 1);
                if (random() % 8 == 0)
                    disarmed += alarm.disarm();
            }
        }
        over = true;
    });
    a.finish();
    BOOST_TEST(calls + disarmed == rounds);
    BOOST_TEST_MESSAGE(disarmed << " of " << rounds << " armings were disarmed");
}

// The function may run before the arming has returned.
BOOST_DATA_TEST_CASE(an_alarm_is_armed_and_its_function_destroys_it_or_arms_it_in_another_thread,
                     shards, s) {
    arena a(with(s, 1));
    for (int i = 0; i < rounds; ++i) {
        std::atomic<int> calls{0};
        std::unique_ptr<pawl::alarm<std::function<void()>>> alarm;
        auto* const raw = new pawl::alarm<std::function<void()>>(a.context, [&] {
            if (++calls == 1 && i % 2 == 0) {
                alarm->arm_after(0s);
                return;
            }
            alarm.reset();
            calls = 3;
        });
        alarm.reset(raw);
        raw->arm_after(0s);
        while (calls != 3)
            std::this_thread::yield();
    }
}

/// A session on a strand, with an alarm that is bound to it. All that it does follows a model.
class session {
public:
    session(asio::io_context& context, std::uint64_t seed)
        : strand_(asio::make_strand(context)), random_(seed) {
        make();
    }

    /// Each step posts the next one. They go on until the function has been called: on a machine that
    /// runs them faster than the alarm, most armings are withdrawn or moved.
    void go_on(int steps) {
        asio::post(strand_, [this, steps] {
            step();
            if (steps > 0 || called == 0)
                return go_on(steps - 1);
            alarm_.reset();
            generation_ = 0;
        });
    }

    int called = 0;
    bool right = true;

private:
    void make() {
        alarm_.emplace(strand_, function(++generation_));
        armed_ = false;
    }
    std::function<void()> function(int of) {
        // Allowed: it is armed, by the model, and is the alarm that exists.
        return [this, of] {
            right = right && armed_ && of == generation_ && !alarm_->armed() &&
                    clock_type::now() >= alarm_->expiry();
            armed_ = false;
            ++called;
            if (random_() % 4 == 0)
                arm();
        };
    }
    void arm() {
        alarm_->arm_after(upto(random_, 200));
        armed_ = true;
    }
    void step() {
        switch (random_() % 8) {
        case 0:
            right = right && alarm_->armed() == armed_;
            break;
        case 1:
        case 2:
            right = right && alarm_->disarm() == armed_;
            armed_ = false;
            break;
        case 3: {
            auto moved = std::move(*alarm_);
            alarm_.emplace(std::move(moved));
            break;
        }
        case 4:
            make();
            break;
        default:
            arm();
        }
        spin(upto(random_, 40));
    }

    asio::strand<asio::io_context::executor_type> strand_;
    std::mt19937_64 random_;
    std::optional<pawl::alarm<std::function<void()>, decltype(strand_)>> alarm_;
    int generation_ = 0;
    bool armed_ = false;
};

BOOST_DATA_TEST_CASE(P4_on_its_strand_an_alarm_does_as_its_model, shards* per_turn, s, p) {
    arena a(with(s, p));
    std::deque<session> sessions;
    for (unsigned i = 0; i < 16; ++i)
        sessions.emplace_back(a.context, pawl_test::seed() + i).go_on(rounds);
    a.finish();
    for (const session& each : sessions)
        BOOST_TEST(each.right);
}

BOOST_DATA_TEST_CASE(P3_max_pending_loses_no_place_and_gives_none_twice, shards* per_turn, s, p) {
    pawl::options o = with(s, p);
    o.max_pending = 5;
    std::deque<outcome> outcomes(users * rounds);
    std::atomic<std::size_t> refusals{0};
    arena a(o);
    in_threads([&](std::mt19937_64& random, int me) {
        pawl::steady_timer timer(a.context);
        pawl::alarm silent(a.context, [] {});
        for (int i = me * rounds; i < (me + 1) * rounds; ++i) {
            auto& each = outcomes[static_cast<std::size_t>(i)];
            timer.expires_after(upto(random, 200));
            if (random() % 3 == 0)
                timer.async_wait(pawl::timeout(upto(random, 200), record(each)));
            else
                timer.async_wait(record(each));
            refusals += !silent.arm_after(upto(random, 200));
            spin(upto(random, 100));
            if (random() % 2 == 0)
                timer.cancel();
            if (random() % 4 == 0)
                silent.disarm();
        }
    });
    a.finish();
    a.context.restart();

    // Allowed: success, operation_aborted, no_buffer_space, or timed_out.
    for (const outcome& each : outcomes) {
        BOOST_REQUIRE(each.calls == 1);
        const bool refused = each.code == asio::error::no_buffer_space;
        BOOST_REQUIRE(refused || succeeded(each) || aborted(each) ||
                      each.code == pawl::error::timed_out);
        refusals += refused;
    }
    const auto all = pawl::stats(a.context).total();
    BOOST_TEST(all.refused == refusals);
    BOOST_TEST(all.pending == 0U);
    std::deque<pawl::steady_timer> timers;
    std::size_t refused = 0;
    for (int i = 0; i < 6; ++i)
        timers.emplace_back(a.context, 1h).async_wait([&](error_code ec) {
            refused += ec == asio::error::no_buffer_space;
        });
    a.context.poll();
    BOOST_TEST(refused == 1U);
}

// P10: the last thread of a context destroys it while others still hold its timers.
BOOST_AUTO_TEST_CASE(C9_timers_outlive_their_context_in_other_threads) {
    for (int round = 0; round < 50; ++round) {
        std::deque<outcome> outcomes(users * 20);
        std::vector<std::vector<pawl::steady_timer>> timers(users);
        {
            arena a(with(4, 1));
            in_threads([&](std::mt19937_64& random, int me) {
                for (int i = 0; i < 20; ++i) {
                    auto& timer = timers[static_cast<std::size_t>(me)].emplace_back(
                        a.context, upto(random, 500));
                    timer.async_wait(record(outcomes[static_cast<std::size_t>(me * 20 + i)]));
                }
            });
            a.context.stop();
        }
        in_threads([&](std::mt19937_64&, int me) {
            auto& mine = timers[static_cast<std::size_t>(me)];
            mine.front().cancel();
            mine.clear();
        });

        // Allowed: success, or destroyed uncalled.
        for (const outcome& o : outcomes)
            BOOST_REQUIRE(o.calls == 0 || succeeded(o));
    }
}

// --- contexts that are stopped and run again -----------------------------------------------------

/// One operation after the other on a strand, each started by the handler of the one before.
template <class Object>
class chain {
public:
    using strand_type = asio::strand<asio::io_context::executor_type>;
    using start_type = void (*)(chain&);

    chain(asio::io_context& context, std::atomic<int>& left, start_type start)
        : strand(asio::make_strand(context)), object(strand, context), left_(left), start_(start) {
        asio::post(strand, [this] { start_(*this); });
    }
    /// The handler of an operation.
    auto handler() {
        return asio::bind_executor(strand, [this](auto&&...) { again(); });
    }
    void again() {
        --left_;
        if (--mine_ != 0)
            start_(*this);
    }
    std::chrono::microseconds soon() { return upto(random_, 40); }

    static constexpr int length = 40;
    strand_type strand;
    Object object;

private:
    std::mt19937_64 random_{pawl_test::seed()};
    int mine_ = length;
    std::atomic<int>& left_;
    start_type start_;
};

// What the operations need. Each is made with the strand, and the context.
struct two_timers {
    explicit two_timers(const auto& strand, asio::io_context&) : timer(strand), limit(strand) {}
    pawl::steady_timer timer, limit;
};
struct an_alarm {
    explicit an_alarm(const auto& strand, asio::io_context&) : alarm(strand, [this] { act(); }) {}
    std::function<void()> act;
    pawl::alarm<std::function<void()>> alarm;
};
/// Has a function that calls `act`, which the first operation sets.
template <template <class...> class Shaped>
struct a_shaped_function {
    explicit a_shaped_function(const auto& strand, asio::io_context&)
        : trigger(strand, 20us, [this] { act(); }) {}
    std::function<void()> act;
    Shaped<std::function<void()>> trigger;
};
struct a_heartbeat {
    using function = std::function<void()>;
    explicit a_heartbeat(const auto& strand, asio::io_context&)
        : beat(
              strand, {.interval = 20us},
              [this] {
                  beat.stop();
                  act();
              },
              [] {}) {
        beat.stop();
    }
    std::function<void()> act;
    pawl::heartbeat<function, function> beat;
};
struct a_silent_heartbeat {
    using function = std::function<void()>;
    explicit a_silent_heartbeat(const auto& strand, asio::io_context&)
        : beat(
              strand, {.interval = 20us}, [] {}, [this] { act(); }) {
        beat.stop();
    }
    std::function<void()> act;
    pawl::heartbeat<function, function> beat;
};
struct an_interval {
    explicit an_interval(const auto& strand, asio::io_context&) : timer(strand, 20us) {}
    pawl::interval_timer timer;
};
struct two_groups : two_timers {
    explicit two_groups(const auto& strand, asio::io_context& c)
        : two_timers(strand, c), outer(strand), inner(outer) {}
    pawl::group outer, inner;
};
struct a_queue {
    explicit a_queue(const auto&, asio::io_context& c) : queue(c) {}
    pawl::event_queue queue;
};
struct a_reader : two_timers {
    explicit a_reader(const auto& strand, asio::io_context& c)
        : two_timers(strand, c), reader(pawl::event_feed(c, {64, 8}).join(strand)) {}
    pawl::event_feed::reader reader;
    std::array<pawl::timer_event, 8> events;
};
struct a_stream {
    using tcp = asio::ip::tcp;
    explicit a_stream(const auto& strand, asio::io_context&) : peer(strand), stream(strand) {
        tcp::acceptor acceptor(strand, {asio::ip::address_v4::loopback(), 0});
        peer.connect(acceptor.local_endpoint());
        acceptor.accept(stream.socket());
    }
    tcp::socket peer;
    pawl::tcp_stream stream;
    std::array<char, 8> bytes{};
};
struct a_limiter {
    explicit a_limiter(const auto&, asio::io_context& c)
        : limiter(c, {.tokens = 1, .period = 20us, .burst = 1}) {}
    pawl::rate_limiter limiter;
};
struct a_delay_queue {
    explicit a_delay_queue(const auto& strand, asio::io_context&) : queue(strand) {}
    pawl::delay_queue<int> queue;
};
struct a_map {
    explicit a_map(const auto& strand, asio::io_context&)
        : map(strand, {.ttl = 40us, .keep_expired = true}) {}
    pawl::expiring_map<int, int> map;
};

using load = std::shared_ptr<void>;
struct operation {
    const char* name;
    std::function<load(asio::io_context&, std::atomic<int>&)> start;
    friend std::ostream& operator<<(std::ostream& out, const operation& o) { return out << o.name; }
};
template <class Object>
auto chain_of(void (*start)(chain<Object>&)) {
    return [=](asio::io_context& context, std::atomic<int>& left) -> load {
        return std::make_shared<chain<Object>>(context, left, start);
    };
}

void sets_function(auto& c) {
    if (!c.object.act)
        c.object.act = [&c] { c.again(); };
}

const operation operations[] = {
    {"wait", chain_of<two_timers>([](auto& c) {
         c.object.timer.expires_after(c.soon());
         c.object.timer.async_wait(c.handler());
     })},
    {"alarm", chain_of<an_alarm>([](auto& c) {
         sets_function(c);
         c.object.alarm.arm_after(c.soon());
     })},
    {"interval", chain_of<an_interval>([](auto& c) { c.object.timer.async_wait(c.handler()); })},
    {"limit", chain_of<two_timers>([](auto& c) {
         c.object.timer.expires_after(c.soon());
         c.object.timer.async_wait(pawl::timeout(c.soon(), c.handler()));
     })},
    {"limit on a timer", chain_of<two_timers>([](auto& c) {
         c.object.timer.expires_after(c.soon());
         c.object.timer.async_wait(pawl::timeout(c.object.limit, c.soon())(c.handler()));
     })},
    {"scaled limit", chain_of<two_timers>([](auto& c) {
         c.object.timer.expires_after(c.soon());
         c.object.timer.async_wait(pawl::timeout(pawl::scaled(0us, c.soon()), c.handler()));
     })},
    {"group", chain_of<two_groups>([](auto& c) {
         c.object.timer.expires_after(c.soon());
         c.object.timer.async_wait(
             pawl::in_group(c.object.inner, asio::bind_executor(c.strand, [](error_code) {})));
         c.object.outer.async_drained(c.handler());
     })},
    {"event queue", chain_of<a_queue>([](auto& c) {
         (void)c.object.queue.once(c.soon(), [&c] { c.again(); });
         c.object.queue.async_wait(
             asio::bind_executor(c.strand, [&c](error_code) { c.object.queue.process_events(); }));
     })},
    {"feed", chain_of<a_reader>([](auto& c) {
         c.object.reader.async_read(c.object.events, c.handler());
         c.object.timer.expires_after(c.soon());
         c.object.timer.async_wait(asio::bind_executor(c.strand, [](error_code) {}));
     })},
    {"stream", chain_of<a_stream>([](auto& c) {
         c.object.stream.set_limits({.read = c.soon() + 1us, .action = pawl::on_limit::cancel});
         if (c.soon() < 20us)
             c.object.peer.write_some(asio::buffer("x", 1));
         c.object.stream.async_read_some(asio::buffer(c.object.bytes), c.handler());
     })},
    {"rate limiter",
     chain_of<a_limiter>([](auto& c) { c.object.limiter.async_acquire(c.handler()); })},
    {"delay queue", chain_of<a_delay_queue>([](auto& c) {
         c.object.queue.push(1, c.soon());
         c.object.queue.async_pop(c.handler());
     })},
    {"expiring map", chain_of<a_map>([](auto& c) {
         c.object.map.insert(1, 1);
         c.object.map.touch(1, c.soon() + 1us);
         c.object.map.async_pop_expired(c.handler());
     })},
    {"retry", chain_of<two_timers>([](auto& c) {
         const auto attempt = [&c](auto) {
             c.object.timer.expires_after(c.soon());
             return c.object.timer.async_wait(asio::deferred);
         };
         pawl::retry(c.strand, {.first = 10us, .attempt_limit = c.soon() + 1us, .limit = 100us},
                     attempt, c.handler());
     })},
    {"hedge", chain_of<two_timers>([](auto& c) {
         const auto attempt = [&c](auto a) {
             pawl::steady_timer& timer = a.number() == 1 ? c.object.timer : c.object.limit;
             timer.expires_after(c.soon());
             return timer.async_wait(asio::deferred);
         };
         pawl::hedge(c.strand, pawl::hedge_policy{.delay = c.soon()}, attempt, c.handler());
     })},
    {"debounce", chain_of<a_shaped_function<pawl::debounce>>([](auto& c) {
         sets_function(c);
         c.object.trigger();
     })},
    {"throttle", chain_of<a_shaped_function<pawl::throttle>>([](auto& c) {
         sets_function(c);
         c.object.trigger();
     })},
    {"heartbeat", chain_of<a_heartbeat>([](auto& c) {
         sets_function(c);
         c.object.beat.restart();
     })},
    {"heartbeat that fails", chain_of<a_silent_heartbeat>([](auto& c) {
         sets_function(c);
         c.object.beat.restart();
     })},
};

// Four threads run the context in all ways while another one stops it, again and again: each
// operation goes on when it runs again. In the end it is not stopped, and run() returns when all
// operations are over (P9).
BOOST_DATA_TEST_CASE(P9_a_context_that_is_stopped_and_runs_again_loses_no_operation,
                     race_support::data::make(operations) * shards * per_turn, each, s, p) {
    std::mt19937_64 random(pawl_test::seed());
    auto seed = static_cast<unsigned>(random());
    const int repeats = pawl_test::sanitized ? 3 : 10;
    for (int repeat = 0; repeat < repeats; ++repeat) {
        constexpr int chains = 3;
        std::atomic<int> left{chains * chain<two_timers>::length};
        asio::io_context context;
        pawl::make_timer_service(context, with(s, p));
        std::vector<load> loads;
        for (int i = 0; i < chains; ++i)
            loads.push_back(each.start(context, left));
        for (int stops = 10; stops >= 0; --stops) {
            context.restart(); // no thread runs it
            std::vector<std::thread> threads;
            for (int i = 0; i < runners; ++i)
                threads.emplace_back([&, how = std::minstd_rand(seed++)]() mutable {
                    while (!context.stopped()) {
                        switch (how() % 4) {
                        case 0:
                            context.run_one();
                            break;
                        case 1:
                            context.poll_one();
                            break;
                        case 2:
                            context.run_one_for(20us);
                            break;
                        default:
                            context.poll();
                        }
                    }
                });
            if (stops != 0) {
                spin(upto(random, 100));
                context.stop();
            }
            for (std::thread& t : threads)
                t.join();
        }

        // Allowed: each operation has ended once.
        BOOST_REQUIRE(left == 0);
    }
}

} // namespace timer_race
