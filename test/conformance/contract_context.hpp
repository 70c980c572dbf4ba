// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Rows C34-C39: throwing handlers, threads, stop, shutdown, fork.

#ifndef PAWL_TEST_CONFORMANCE_CONTRACT_CONTEXT_HPP
#define PAWL_TEST_CONFORMANCE_CONTRACT_CONTEXT_HPP

#include "contract_support.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#if defined(BOOST_ASIO_HAS_UNISTD_H)
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace contract {

BOOST_AUTO_TEST_SUITE(contexts)

// ---- C34 ----------------------------------------------------------------------------------------

struct handler_error : std::runtime_error {
    handler_error() : std::runtime_error("thrown by a handler") {}
};

/// run() until a handler throws. False if no handler throws.
inline bool run_until_it_throws(asio::io_context& io) {
    try {
        io.run_for(patience);
    } catch (const handler_error&) {
        return true;
    }
    return false;
}

BOOST_AUTO_TEST_CASE(C34_an_exception_leaves_run_and_the_other_completions_stay) {
    asio::io_context io;
    tut::steady_timer t(io, past() - 1s), u(io, past()), later(io, 2ms);
    fate f{}, g{};
    t.async_wait([](error_code) { throw handler_error(); });
    u.async_wait(record(f));
    later.async_wait(record(g));

    const bool thrown = run_until_it_throws(io);
    const bool stopped = io.stopped();
    const fate then = f;
    io.run_for(patience); // without restart()

    BOOST_TEST(thrown);
    BOOST_TEST(!stopped);
    BOOST_TEST(then == fate::pending);
    BOOST_TEST(f == fate::success);
    BOOST_TEST(g == fate::success);
    BOOST_TEST(io.stopped());
}

BOOST_AUTO_TEST_CASE(C34_aborted_completions_survive_the_exception_of_their_neighbour) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    std::string order;
    for (int i = 0; i < 3; ++i) {
        t.async_wait([](error_code) { throw handler_error(); });
        t.async_wait(record(order, static_cast<char>('a' + i)));
    }
    t.cancel();

    int thrown = 0;
    while (run_until_it_throws(io))
        ++thrown;

    BOOST_TEST(thrown == 3);
    BOOST_TEST(order == "abc");
    BOOST_TEST(io.stopped());
}

BOOST_AUTO_TEST_CASE(C34_a_lone_handler_that_throws_leaves_no_work_behind) {
    asio::io_context io;
    tut::steady_timer t(io, 1ms);
    fate f{};
    t.async_wait([](error_code) { throw handler_error(); });

    const bool thrown = run_until_it_throws(io);
    const bool busy = busy_after_poll(io);
    t.expires_after(1ms);
    t.async_wait(record(f));
    run_to_end(io);

    BOOST_TEST(thrown);
    BOOST_TEST(!busy);
    BOOST_TEST(f == fate::success);
}

// ---- C35 ----------------------------------------------------------------------------------------

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(C35_expiry_in_one_thread_and_cancel_in_another_agree_on_the_outcome) {
    constexpr std::size_t n = 300;
    asio::io_context io;
    auto work = std::make_unique<asio::executor_work_guard<asio::io_context::executor_type>>(
        io.get_executor());
    std::thread runner([&io] { io.run(); });
    std::deque<tut::steady_timer> timers;
    std::deque<std::atomic<int>> aborted(n), succeeded(n);
    std::vector<std::size_t> counted(n);

    for (std::size_t i = 0; i < n; ++i) {
        timers.emplace_back(io, std::chrono::microseconds(10 * i));
        timers.back().async_wait([&, i](error_code code) {
            (code ? aborted : succeeded)[i].fetch_add(1, std::memory_order_relaxed);
        });
    }
    std::this_thread::sleep_for(1ms);
    for (std::size_t i = 0; i < n; ++i)
        counted[i] = timers[i].cancel();
    work.reset();
    runner.join();

    // Allowed: (a) counted and aborted, (b) not counted and completed with success.
    int contradictions = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const int a = aborted[i].load(), s = succeeded[i].load();
        contradictions += a + s != 1 || static_cast<std::size_t>(a) != counted[i];
    }
    BOOST_TEST(contradictions == 0);
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(C35_distinct_timers_may_be_used_in_distinct_threads) {
    asio::thread_pool pool(3);
    std::atomic<int> completions{0};
    constexpr int threads = 3, rounds = 200;
    std::vector<std::thread> users;

    for (int i = 0; i < threads; ++i)
        users.emplace_back([&] {
            tut::steady_timer t(pool);
            for (int round = 0; round < rounds; ++round) {
                t.expires_after(std::chrono::microseconds(round % 7));
                t.async_wait(
                    [&](error_code) { completions.fetch_add(1, std::memory_order_relaxed); });
                if (round % 3 == 0)
                    t.cancel();
            }
        });
    for (std::thread& user : users)
        user.join();
    pool.join();

    BOOST_TEST(completions.load() == threads * rounds);
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(C35_a_timer_set_while_another_thread_sleeps_in_run_is_noticed) {
    asio::io_context io;
    tut::steady_timer late(io, 1h), soon(io);
    std::atomic<bool> done{false};
    late.async_wait(ignore);
    std::thread runner([&io] { io.run(); });
    std::this_thread::sleep_for(5ms); // the thread sleeps until the late timer

    soon.expires_after(1ms);
    soon.async_wait([&](error_code) { done.store(true, std::memory_order_release); });
    const auto limit = clock::now() + patience;
    while (!done.load(std::memory_order_acquire) && clock::now() < limit)
        std::this_thread::sleep_for(1ms);
    const bool noticed = done.load(std::memory_order_acquire);
    asio::post(io, [&] { late.cancel(); });
    runner.join();

    BOOST_TEST(noticed);
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(C35_cancel_wakes_the_thread_that_sleeps_in_run) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    fate f{};
    t.async_wait(record(f));
    std::thread runner([&io] { io.run_for(patience); });
    std::this_thread::sleep_for(5ms);

    const auto n = t.cancel();
    runner.join();

    BOOST_TEST(n == one);
    BOOST_TEST(f == fate::aborted);
    BOOST_TEST(io.stopped());
}

/// A handler that blocks its thread until another handler has been called.
class rendezvous {
public:
    auto wait() {
        return [this](error_code) {
            const auto limit = clock::now() + patience;
            while (!met_.load(std::memory_order_acquire) && clock::now() < limit)
                std::this_thread::yield();
            in_time_ = met_.load(std::memory_order_acquire);
        };
    }
    auto meet() {
        return [this](error_code) { met_.store(true, std::memory_order_release); };
    }
    bool in_time() const { return in_time_; } // after all threads have ended

private:
    std::atomic<bool> met_{false};
    bool in_time_ = false;
};

inline void run_in_two_threads(asio::io_context& io) {
    std::thread second([&io] { io.run_for(2 * patience); });
    io.run_for(2 * patience);
    second.join();
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(C35_a_handler_that_blocks_does_not_hold_up_those_that_expired_with_it) {
    asio::io_context io;
    tut::steady_timer t(io, past() - 1s), u(io, past());
    rendezvous meeting;
    t.async_wait(meeting.wait());
    u.async_wait(meeting.meet());

    run_in_two_threads(io);

    BOOST_TEST(meeting.in_time());
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(C35_a_handler_that_blocks_does_not_hold_up_those_that_expire_meanwhile) {
    asio::io_context io;
    tut::steady_timer t(io, 1ms), u(io, 10ms);
    rendezvous meeting;
    t.async_wait(meeting.wait());
    u.async_wait(meeting.meet());

    run_in_two_threads(io);

    BOOST_TEST(meeting.in_time());
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(C35_a_handler_that_blocks_does_not_hold_up_those_that_were_aborted_with_it) {
    asio::io_context io;
    tut::steady_timer t(io, 1h);
    rendezvous meeting;
    t.async_wait(meeting.wait());
    t.async_wait(meeting.meet());
    t.cancel();

    run_in_two_threads(io);

    BOOST_TEST(meeting.in_time());
}

BOOST_AUTO_TEST_CASE(C35_a_handler_may_poll_the_context_for_the_completions_behind_it) {
    asio::io_context io;
    tut::steady_timer t(io, past()), aborted(io, 1h), soon(io, 200ms);
    std::string order;
    aborted.async_wait(record(order, 'a'));
    aborted.async_wait(record(order, 'b'));
    soon.async_wait(record(order, 's'));
    t.async_wait([&](error_code) {
        order += '(';
        aborted.cancel();
        run_until(io, [&] { return order.size() == 5; });
        order += ')';
    });
    t.async_wait(record(order, 't'));

    run_to_end(io);

    std::sort(order.begin() + 1, order.end() - 1);
    BOOST_TEST(order == "(abst)");
}

// ---- C36 ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C36_pending_waits_survive_stop_and_complete_after_restart) {
    asio::io_context io;
    tut::steady_timer stopper(io, 1ms), during(io, 300ms), after(io, 310ms);
    fate f{}, g{};
    stopper.async_wait([&](error_code) { io.stop(); });
    during.async_wait(record(f));
    after.async_wait(record(g));

    io.run_for(patience);
    const bool stopped = io.stopped();
    [[maybe_unused]] const fate f_then = f, g_then = g;
    std::this_thread::sleep_until(during.expiry());
    run_to_end(io); // restarts

    BOOST_TEST(stopped);
#if !defined(BOOST_ASIO_HAS_IOCP) // waits due with it are in the port before stop(): see below
    BOOST_TEST(f_then == fate::pending);
    BOOST_TEST(g_then == fate::pending);
#endif
    BOOST_TEST(f == fate::success);
    BOOST_TEST(g == fate::success);
    BOOST_TEST((clock::now() >= after.expiry()));
}

BOOST_AUTO_TEST_CASE(C36_a_stopped_context_accepts_waits_and_cancellations) {
    asio::io_context io;
    tut::steady_timer before(io, 1h), t(io, 1h), u(io, 1ms);
    fate e{}, f{}, g{};
    before.async_wait(record(e));
    io.stop();

    t.async_wait(record(f));
    u.async_wait(record(g));
    BOOST_TEST(before.cancel() == one);
    BOOST_TEST(t.cancel() == one);
    BOOST_TEST(io.run_for(1ms) == none);
    BOOST_TEST(e == fate::pending);
    run_to_end(io);

    BOOST_TEST(e == fate::aborted);
    BOOST_TEST(f == fate::aborted);
    BOOST_TEST(g == fate::success);
}

BOOST_AUTO_TEST_CASE(C36_completions_that_were_queued_survive_stop) {
    asio::io_context io;
    tut::steady_timer t(io, past());
    std::string order;
    t.async_wait([&](error_code) {
        order += 'a';
        io.stop();
    });
    t.async_wait(record(order, 'b'));
    t.async_wait(record(order, 'c'));

    io.run_for(patience);
    const std::string then = order;
    run_to_end(io);

#if defined(BOOST_ASIO_HAS_IOCP) // run() first handles what is in the port, also with Asio's timers
    BOOST_TEST(then.front() == 'a');
#else
    BOOST_TEST(then == "a");
#endif
    BOOST_TEST(order == "abc");
}

// ---- C37, C38 -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(C37_the_end_of_the_context_destroys_handlers_uncalled) {
    handler_log log;
    {
        asio::io_context io;
        tut::steady_timer pending(io, 1h), expired(io, past()), aborted(io, 1h), never(io);
        never.expires_at(latest());
        for (tut::steady_timer* t : {&pending, &expired, &aborted, &never}) {
            t->async_wait(counting_handler(log));
            t->async_wait(counting_handler(log));
        }
        aborted.cancel();
        BOOST_TEST(log.live == 8);
    }

    BOOST_TEST(log.calls == 0);
    BOOST_TEST(log.live == 0);
}

BOOST_AUTO_TEST_CASE(C37_queued_completions_are_destroyed_uncalled_in_the_middle_of_a_batch) {
    handler_log log;
    {
        asio::io_context io;
        std::deque<tut::steady_timer> timers;
        for (int i = 0; i < 10; ++i) {
            timers.emplace_back(io, past());
            timers.back().async_wait(counting_handler(log));
        }
        run_until(io, [&] { return log.calls >= 3; });
    }

    BOOST_TEST(log.calls == 3);
    BOOST_TEST(log.live == 0);
}

BOOST_AUTO_TEST_CASE(C37_handlers_may_own_the_timers_they_wait_on) {
    handler_log log;
    std::vector<std::weak_ptr<tut::steady_timer>> timers;
    {
        asio::io_context io;
        for (const auto when : {past(), future()})
            for (const bool cancel : {false, true}) {
                auto t = std::make_shared<tut::steady_timer>(io, when);
                timers.push_back(t);
                t->async_wait([t, h = counting_handler(log)](error_code) {});
                t->async_wait([t, h = counting_handler(log)](error_code) {});
                if (cancel)
                    t->cancel();
            }
    }

    BOOST_TEST(log.live == 0);
    for (const auto& t : timers)
        BOOST_TEST(t.expired());
}

BOOST_AUTO_TEST_CASE(C37_a_handler_may_own_the_timer_of_another_wait) {
    handler_log log;
    {
        asio::io_context io;
        std::shared_ptr<tut::steady_timer> next;
        for (int i = 0; i < 50; ++i) {
            auto t = std::make_shared<tut::steady_timer>(io, 1h);
            t->async_wait([next, h = counting_handler(log)](error_code) {});
            next = t;
        }
        auto last = std::make_shared<tut::steady_timer>(io, 1h);
        last->async_wait([next, last](error_code) {});
        next.reset();
    }

    BOOST_TEST(log.live == 0);
    BOOST_TEST(log.calls == 0);
}

/// Calls a function when the last copy is destroyed.
class at_destruction {
public:
    explicit at_destruction(std::function<void()> f) : function_(std::move(f)) {}
    at_destruction(at_destruction&& other) noexcept : function_(std::move(other.function_)) {
        other.function_ = nullptr;
    }
    at_destruction(const at_destruction&) = delete;
    at_destruction& operator=(const at_destruction&) = delete;
    ~at_destruction() {
        if (function_)
            function_();
    }

private:
    std::function<void()> function_;
};

BOOST_AUTO_TEST_CASE(C37_cancel_in_the_destructor_of_a_handler_finds_nothing) {
    std::vector<std::size_t> counts;
    handler_log log;
    {
        asio::io_context io;
        auto t = std::make_shared<tut::steady_timer>(io, 1h);
        tut::steady_timer other(io, 1h);
        t->async_wait([t, h = at_destruction([&counts, timer = t.get()] {
                              counts.push_back(timer->cancel());
                              counts.push_back(timer->expires_after(1h));
                          })](error_code) {});
        t->async_wait(counting_handler(log));
        other.async_wait([h = at_destruction([&counts, t] { counts.push_back(t->cancel_one()); })](
                             error_code) {});
    }

    BOOST_TEST(counts.size() == 3u);
    for (const auto n : counts)
        BOOST_TEST(n == none);
    BOOST_TEST(log.calls == 0);
    BOOST_TEST(log.live == 0);
}

BOOST_AUTO_TEST_CASE(C37_coroutine_frames_that_own_their_timers_are_destroyed) {
    handler_log frames;
    {
        asio::io_context io;
        const auto wait = [&frames](clock::duration delay) -> asio::awaitable<void> {
            const counting_handler witness(frames);
            tut::steady_timer t(co_await asio::this_coro::executor, delay);
            co_await t.async_wait(asio::use_awaitable);
            ++frames.calls;
            t.expires_after(1h);
            co_await t.async_wait(asio::use_awaitable);
            ++frames.calls;
        };
        for (int i = 0; i < 5; ++i)
            asio::co_spawn(io, wait(i == 0 ? clock::duration(0) : clock::duration(1h)),
                           asio::detached);
        run_until(io, [&] { return frames.calls == 1; });
        BOOST_TEST(frames.live == 5);
    }

    BOOST_TEST(frames.live == 0);
    BOOST_TEST(frames.calls == 1);
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(C37_a_thread_pool_that_is_stopped_destroys_handlers_uncalled) {
    handler_log log;
    {
        asio::thread_pool pool(2);
        auto t = std::make_shared<tut::steady_timer>(pool, 1h);
        t->async_wait([t, h = counting_handler(log)](error_code) {});
        t->async_wait(counting_handler(log));
        t.reset();
        pool.stop();
        pool.join();
    }

    BOOST_TEST(log.calls == 0);
    BOOST_TEST(log.live == 0);
}

BOOST_AUTO_TEST_CASE(C37_a_handler_on_its_way_to_another_context_dies_with_that_one) {
    handler_log log;
    {
        asio::io_context io;
        tut::steady_timer t(io, past()), u(io, 1h);
        {
            asio::io_context other;
            t.async_wait(asio::bind_executor(other.get_executor(), counting_handler(log)));
            u.async_wait(asio::bind_executor(other.get_executor(), counting_handler(log)));
            u.cancel();
            run_to_end(io);
            BOOST_TEST(log.live == 2);
        }
        BOOST_TEST(log.live == 0);
        BOOST_TEST(t.cancel() == none);
        BOOST_TEST(u.cancel() == none);
    }

    BOOST_TEST(log.calls == 0);
}

BOOST_AUTO_TEST_CASE(C38_a_wait_started_during_shutdown_is_destroyed_uncalled) {
    handler_log log;
    bool started = false;
    std::weak_ptr<tut::steady_timer> watch;
    {
        asio::io_context io;
        auto t = std::make_shared<tut::steady_timer>(io, 1h);
        watch = t;
        t->async_wait([h = at_destruction([t, &log, &started] {
                           started = true;
                           t->expires_after(-1h);
                           t->async_wait([t, c = counting_handler(log)](error_code) {});
                           t->expires_after(1h);
                           t->async_wait([t, c = counting_handler(log)](error_code) {});
                       })](error_code) {});
    }

    BOOST_TEST(started);
    BOOST_TEST(log.calls == 0);
    BOOST_TEST(log.live == 0);
    BOOST_TEST(watch.expired());
}

BOOST_AUTO_TEST_CASE(C38_the_same_when_the_handler_was_queued_already) {
    handler_log log;
    bool started = false;
    {
        asio::io_context io;
        auto t = std::make_shared<tut::steady_timer>(io, 1h);
        t->async_wait([h = at_destruction([t, &log, &started] {
                           started = true;
                           t->async_wait([t, c = counting_handler(log)](error_code) {});
                       })](error_code) {});
        t->cancel();
    }

    BOOST_TEST(started);
    BOOST_TEST(log.calls == 0);
    BOOST_TEST(log.live == 0);
}

// ---- C39 ----------------------------------------------------------------------------------------

#if defined(BOOST_ASIO_HAS_UNISTD_H)

/// Boost.Test reports the end of a child as an error of the test.
class children_may_end {
public:
    children_may_end() {
        struct sigaction ignore_it {};
        ignore_it.sa_handler = SIG_DFL;
        ::sigaction(SIGCHLD, &ignore_it, &previous_);
    }
    children_may_end(const children_may_end&) = delete;
    children_may_end& operator=(const children_may_end&) = delete;
    ~children_may_end() { ::sigaction(SIGCHLD, &previous_, nullptr); }

private:
    struct sigaction previous_ {};
};

BOOST_AUTO_TEST_CASE(C39_timers_that_are_pending_at_a_fork_fire_in_both_processes) {
    const children_may_end guard;
    asio::io_context io;
    tut::steady_timer t(io, 10ms), cancelled(io, 1h), late(io);
    fate f{}, g{}, h{};
    bool early = false;
    t.async_wait([&](error_code code) {
        settle(f, code);
        early = early || clock::now() < t.expiry();
        late.expires_after(1ms);
        late.async_wait(record(h));
    });
    cancelled.async_wait(record(g));
    io.poll();

    io.notify_fork(asio::execution_context::fork_prepare);
    const ::pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        ::signal(SIGALRM, SIG_DFL);
        ::alarm(20);
        io.notify_fork(asio::execution_context::fork_child);
        const bool counted = cancelled.cancel() == 1;
        io.restart();
        io.run_for(patience);
        const bool good = counted && io.stopped() && !early && f == fate::success &&
                          g == fate::aborted && h == fate::success;
        ::_exit(good ? 0 : 1);
    }
    io.notify_fork(asio::execution_context::fork_parent);
    const auto counted = cancelled.cancel();
    run_to_end(io);
    int status = -1;
    ::waitpid(child, &status, 0);

    BOOST_TEST(counted == one);
    BOOST_TEST(f == fate::success);
    BOOST_TEST(g == fate::aborted);
    BOOST_TEST(h == fate::success);
    BOOST_TEST(!early);
    BOOST_TEST(WIFEXITED(status));
    BOOST_TEST(WEXITSTATUS(status) == 0);
}

#endif

BOOST_AUTO_TEST_SUITE_END()

} // namespace contract

#endif // PAWL_TEST_CONFORMANCE_CONTRACT_CONTEXT_HPP
