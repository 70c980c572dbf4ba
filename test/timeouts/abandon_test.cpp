// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Operations that go on when their limit has passed: pawl::abandon.

#define BOOST_TEST_MODULE abandon
#include <boost/test/unit_test.hpp>

#include "../support/asio_configuration.hpp"
#include "timeout_support.hpp"

#include "../support/graveyard.hpp"
#include "../support/seed.hpp"

#include <pawl/abandon.hpp>
#include <pawl/group.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace {

using namespace timeouts;
using obedience = operation::obedience;

/// An operation that cannot be cancelled, for a caller with a limit of a second.
struct stubborn {
    explicit stubborn(obedience o = obedience::ignores)
        : op(context.get_executor(), o, aborted, 0) {}

    void reach_the_limit() { pass(context, 1s); }
    auto keep() {
        return [this](error_code ec, int n) { late.push_back({1, ec, n}); };
    }

    asio::io_context context;
    manual_timer timer{context};
    operation op;
    outcome result;
    std::vector<outcome> late;
};

/// Starts an operation of an I/O object with that executor. `start` gets its handler.
template <class Executor, class Start>
struct initiation_on {
    using executor_type = Executor;
    [[nodiscard]] executor_type get_executor() const noexcept { return ex; }
    template <class Handler>
    void operator()(Handler&& handler) const {
        start(std::forward<Handler>(handler));
    }

    Executor ex;
    Start start;
};
template <class Executor, class Start, class Token>
void start_on(const Executor& ex, Start start, Token token) {
    asio::async_initiate<Token, void(error_code, int)>(
        initiation_on<Executor, Start>{ex, std::move(start)}, token);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_limit_ends_the_wait_for_an_operation_that_cannot_be_cancelled) {
    stubborn s;
    s.op.async_run(pawl::timeout(s.timer, 1s, pawl::abandon, record(s.result)));
    pass(s.context, 999ms);
    BOOST_TEST(s.result.pending());
    s.reach_the_limit();
    BOOST_TEST(s.result.ended_with(timed_out, 0));
    BOOST_TEST(s.op.pending());
    BOOST_TEST(s.op.signals().size() == one); // it was asked to end

    s.op.complete({}, 7); // dropped
    poll(s.context);
    BOOST_TEST(s.result.calls == 1);
}

BOOST_AUTO_TEST_CASE(a_late_result_is_given_to_the_function_a_late_error_too) {
    for (const error_code ec : {error_code(), error_code(asio::error::host_not_found)}) {
        stubborn s;
        s.op.async_run(pawl::timeout(s.timer, 1s, pawl::abandon(s.keep()), record(s.result)));
        s.reach_the_limit();
        BOOST_TEST(s.result.ended_with(timed_out));
        BOOST_TEST(s.late.empty());
        s.op.complete(ec, 7);
        BOOST_REQUIRE(s.late.size() == one);
        BOOST_TEST(s.late[0].ended_with(ec, 7));
        BOOST_TEST(s.result.calls == 1);
    }
}

BOOST_AUTO_TEST_CASE(an_operation_that_ends_first_keeps_its_result) {
    stubborn s;
    s.op.async_run(pawl::timeout(s.timer, 1s, pawl::abandon(s.keep()), record(s.result)));
    pass(s.context, 999ms);
    s.op.complete({}, 7);
    BOOST_TEST(s.result.ended_with({}, 7));
    s.reach_the_limit();
    BOOST_TEST(s.result.calls == 1);
    BOOST_TEST(s.late.empty());
    BOOST_TEST(s.op.signals().empty());
}

BOOST_AUTO_TEST_CASE(an_operation_that_can_be_cancelled_is_cancelled_and_not_abandoned) {
    for (const obedience o : {obedience::completes_in_the_signal, obedience::posts}) {
        stubborn s(o);
        s.op.async_run(pawl::timeout(s.timer, 1s, pawl::abandon(s.keep()), record(s.result)));
        s.reach_the_limit();
        BOOST_TEST(s.result.ended_with(timed_out));
        BOOST_TEST(!s.op.pending());
        BOOST_TEST(s.late.empty());
    }
}

BOOST_AUTO_TEST_CASE(a_result_that_comes_between_the_signal_and_the_abandonment_is_not_lost) {
    stubborn s;
    s.op.at_signal = [&] { s.op.post({}, 7); };
    s.op.async_run(pawl::timeout(s.timer, 1s, pawl::abandon(s.keep()), record(s.result)));
    s.reach_the_limit();
    BOOST_TEST(s.result.ended_with({}, 7));
    BOOST_TEST(s.late.empty());
}

BOOST_AUTO_TEST_CASE(it_stands_in_each_limit_and_in_a_group) {
    const auto ends = [](const error_code& expected, auto token, auto... end) {
        stubborn s;
        s.op.async_run(token(s));
        s.reach_the_limit();
        (end(s), ...);
        poll(s.context);
        BOOST_TEST(s.result.ended_with(expected, 0));
        s.op.complete({}, 7);
        BOOST_TEST(s.late.size() == one);
    };
    using pawl::abandon;
    const auto soon = [] { return manual_clock::now() + 1s; };
    ends(timed_out, [](stubborn& s) {
        return pawl::timeout(s.timer, 1s, abandon(s.keep()), record(s.result));
    });
    ends(timed_out, [&](stubborn& s) {
        return pawl::timeout_at(s.timer, soon(), abandon(s.keep()), record(s.result));
    });
    ends(timed_out, [&](stubborn& s) {
        return pawl::timeout_at(soon(), abandon(s.keep()), record(s.result));
    });
    ends(aborted, [](stubborn& s) {
        return pawl::cancel_after(s.timer, 1s, abandon(s.keep()), record(s.result));
    });
    ends(aborted,
         [&](stubborn& s) { return pawl::cancel_at(soon(), abandon(s.keep()), record(s.result)); });
    ends(timed_out, [](stubborn& s) {
        return pawl::timeout(s.timer, 1s, cancellation_type::total, abandon(s.keep()),
                             record(s.result));
    });
    ends(timed_out, [](stubborn& s) {
        return pawl::timeout(s.timer, 1s, abandon(s.keep(), record(s.result)));
    });
    ends(timed_out, [](stubborn& s) {
        return abandon(s.keep(), pawl::timeout(s.timer, 1s, record(s.result)));
    });

    std::optional<pawl::group> g;
    ends(
        pawl::error::shutting_down,
        [&](stubborn& s) {
            return pawl::in_group(g.emplace(s.context), abandon(s.keep()), record(s.result));
        },
        [&](stubborn&) { g->cancel(pawl::error::shutting_down); });
    ends(
        pawl::error::shutting_down,
        [&](stubborn& s) {
            return pawl::timeout(
                s.timer, 1h,
                pawl::in_group(g.emplace(s.context), abandon(s.keep()), record(s.result)));
        },
        [&](stubborn&) { g->cancel(pawl::error::shutting_down); });
}

BOOST_AUTO_TEST_CASE(a_group_is_drained_although_an_abandoned_operation_goes_on) {
    stubborn s;
    pawl::group g(s.context);
    s.op.async_run(pawl::in_group(g, pawl::abandon, record(s.result)));
    bool drained = false;
    g.cancel();
    g.async_drained([&](error_code ec) { drained = !ec; });
    poll(s.context);
    BOOST_TEST(drained);
    BOOST_TEST(s.result.ended_with(aborted));
    BOOST_TEST(s.op.pending());
}

BOOST_AUTO_TEST_CASE(a_cancellation_by_the_caller_is_no_timeout) {
    for (const bool limited : {true, false}) {
        stubborn s;
        asio::cancellation_signal stop;
        auto handler = asio::bind_cancellation_slot(stop.slot(), record(s.result));
        if (limited)
            s.op.async_run(pawl::timeout(s.timer, 1s, pawl::abandon(s.keep()), std::move(handler)));
        else
            s.op.async_run(pawl::abandon(s.keep(), std::move(handler)));
        stop.emit(cancellation_type::none);
        poll(s.context);
        BOOST_TEST(s.result.pending());
        stop.emit(cancellation_type::terminal);
        stop.emit(cancellation_type::terminal);
        BOOST_TEST(s.result.pending()); // its handler does not run in the signal
        poll(s.context);
        BOOST_TEST(s.result.ended_with(aborted, 0));
        s.op.complete({}, 7);
        BOOST_TEST(s.late.size() == one);
        stop.emit(cancellation_type::terminal); // nobody is there
        BOOST_TEST(s.result.calls == 1);
    }
}

BOOST_AUTO_TEST_CASE(coroutines_go_on_at_the_limit) {
    namespace ops = asio::experimental::awaitable_operators;
    stubborn s;
    stubborn other;
    std::vector<error_code> seen;
    const auto session = [&]() -> asio::awaitable<void> {
        try {
            (void)co_await s.op.async_run(pawl::timeout(s.timer, 1s, pawl::abandon));
        } catch (const system_error& e) {
            seen.push_back(e.code());
        }
        s.op.complete({}, 1);

        auto [ec, n] =
            co_await s.op.async_run(asio::as_tuple(pawl::timeout(s.timer, 1s, pawl::abandon)));
        seen.push_back(ec);
        s.op.complete({}, 2);
        std::tie(ec, n) = co_await s.op.async_run(pawl::timeout(
            s.timer, 1s, pawl::abandon(s.keep()), asio::as_tuple(asio::use_awaitable)));
        seen.push_back(ec);
        s.op.complete({}, 3);
        (void)co_await s.op.async_run(asio::redirect_error(
            pawl::abandon(s.keep(), pawl::timeout(s.timer, 1s, asio::use_awaitable)), ec));
        seen.push_back(ec);
        s.op.complete({}, 4);

        using namespace ops;
        s.timer.expires_after(1s);
        const auto first = co_await (s.op.async_run(pawl::abandon(s.keep(), asio::use_awaitable)) ||
                                     s.timer.async_wait(asio::use_awaitable));
        BOOST_TEST(first.index() == 1U);
        s.op.complete({}, 5);
    };
    bool over = false;
    asio::co_spawn(s.context, session, [&](const std::exception_ptr& e) { over = !e; });
    for (int i = 0; i != 5; ++i) {
        poll(s.context);
        s.reach_the_limit();
    }
    BOOST_TEST(over);
    BOOST_TEST(seen == std::vector<error_code>(4, timed_out));
    BOOST_TEST(s.late.size() == 3U);
}

BOOST_AUTO_TEST_CASE(an_operation_that_is_destroyed_takes_its_handler_along_and_calls_nothing) {
    stubborn s;
    const auto token = std::make_shared<int>();
    s.op.async_run(pawl::timeout(s.timer, 1s, pawl::abandon(s.keep()),
                                 [token](error_code, int) { BOOST_ERROR("called"); }));
    BOOST_TEST(token.use_count() == 2);
    s.op.abandon();
    BOOST_TEST(token.use_count() == 1);
    s.reach_the_limit();
    BOOST_TEST(s.late.empty());

    s.op.async_run(pawl::timeout(s.timer, 1s, pawl::abandon(s.keep()), record(s.result)));
    s.reach_the_limit();
    s.op.abandon(); // after the caller has gone on
    BOOST_TEST(s.result.ended_with(timed_out));
    BOOST_TEST(s.late.empty());
}

BOOST_AUTO_TEST_CASE(a_context_may_end_between_the_signal_and_the_abandonment) {
    const auto token = std::make_shared<int>();
    {
        stubborn s;
        asio::cancellation_signal stop;
        s.op.async_run(pawl::abandon(
            s.keep(), asio::bind_cancellation_slot(stop.slot(), [token](error_code, int) {})));
        stop.emit(cancellation_type::terminal);
    }
    BOOST_TEST(token.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(
    the_memory_of_the_handler_is_free_before_it_runs_and_is_not_needed_afterwards) {
    stubborn s;
    {
        pawl_test::graveyard memory;
        s.op.async_run(pawl::timeout(
            s.timer, 1s, pawl::abandon(s.keep()),
            asio::bind_allocator(pawl_test::graveyard_allocator<void>(memory), record(s.result))));
        s.reach_the_limit();
        BOOST_TEST(s.result.ended_with(timed_out));
        BOOST_TEST(memory.allocations() != none);
        BOOST_TEST(memory.buried() == memory.allocations());
        BOOST_TEST(memory.undisturbed());
    }
    s.op.complete({}, 7);
    BOOST_TEST(s.late.size() == one);
}

BOOST_AUTO_TEST_CASE(
    the_handler_runs_on_its_own_executor_and_late_results_on_that_of_the_operation) {
    for (const bool in_time : {true, false}) {
        asio::io_context operations;
        stubborn s;
        operation op(operations.get_executor());
        const auto strand = asio::make_strand(s.context);
        bool called = false;
        bool was_late = false;
        op.async_run(pawl::timeout(
            s.timer, 1s, pawl::abandon([&](error_code, int) {
                was_late = operations.get_executor().running_in_this_thread();
            }),
            asio::bind_executor(asio::any_io_executor(strand), [&](error_code ec, int n) {
                called = true;
                BOOST_TEST(strand.running_in_this_thread());
                BOOST_TEST(ec == (in_time ? error_code() : timed_out));
                BOOST_TEST(n == (in_time ? 7 : 0));
            })));
        const auto finish = [&] {
            asio::post(operations, [&] { op.complete({}, 7); });
            poll(operations);
        };
        if (in_time)
            finish();
        poll(s.context);
        s.reach_the_limit();
        BOOST_TEST(called);
        poll(operations); // the signal
        if (!in_time)
            finish();
        BOOST_TEST(was_late == !in_time);
        // The operation, if it is not over, is no work of the caller's context.
        run_to_end(s.context);
    }
}

BOOST_AUTO_TEST_CASE(a_limit_within_another_is_kept_by_the_context_of_the_handler_too) {
    // Only the outermost limit saw that the operation may block its context.
    asio::io_context operations; // blocked
    asio::io_context context;
    pawl::group g(context);
    const auto ends = [&](auto token) {
        operation op(operations.get_executor());
        outcome result;
        const auto soon = manual_clock::now() + 1s;
        op.async_run(token(soon, asio::bind_executor(context, record(result))));
        pass(context, 1s);
        BOOST_TEST(result.ended_with(timed_out, 0));
    };
    ends([](auto soon, auto h) { return pawl::timeout_at(soon, pawl::abandon, std::move(h)); });
    ends([&](auto soon, auto h) {
        return pawl::in_group(g, pawl::timeout_at(soon, pawl::abandon, std::move(h)));
    });
    ends([](auto soon, auto h) {
        return pawl::timeout_at(soon + 1h, pawl::timeout_at(soon, pawl::abandon, std::move(h)));
    });
}

BOOST_AUTO_TEST_CASE(a_result_from_another_context_finds_that_of_the_handler_running) {
    // The work of the handler's context ended before the result was queued there: run() returned.
    for (const bool destroyed : {false, true}) {
        asio::io_context operations;
        asio::io_context context;
        operation op(operations.get_executor());
        int calls = 0;
        bool had_work = false;
        std::shared_ptr<void> last(nullptr, [&](void*) { had_work = !context.stopped(); });
        op.async_run(
            pawl::abandon([](error_code, int) {},
                          asio::bind_executor(
                              context, [&, last = std::move(last)](error_code, int) { ++calls; })));
        if (destroyed)
            op.abandon();
        else
            op.complete({}, 7);
        BOOST_TEST(context.poll() == (destroyed ? none : one)); // without restart()
        BOOST_TEST(calls == (destroyed ? 0 : 1));
        BOOST_TEST(had_work);
    }
}

BOOST_AUTO_TEST_CASE(an_operation_that_has_ended_does_not_hold_the_executor_of_the_handler) {
    // A strand whose context was gone.
    asio::io_context operations;
    std::function<void(error_code, int)> kept;
    outcome result;
    {
        asio::io_context context;
        start_on(
            operations.get_executor(), [&](auto handler) { kept = std::move(handler); },
            pawl::abandon([](error_code, int) {},
                          asio::bind_executor(asio::make_strand(context), record(result))));
        const auto copy = kept;
        kept({}, 7);
        copy({}, 8); // too late
        run_to_end(context);
    }
    BOOST_TEST(result.ended_with({}, 7));
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(a_context_ends_when_the_result_has_come_from_another_thread) {
    // Allowed: one call in each round. The context goes while the other thread may still be in the
    // operation.
    asio::thread_pool pool(1);
    for (int i = 0; i != 300; ++i) {
        int calls = 0;
        {
            asio::io_context context;
            start_on(
                pool.get_executor(),
                [&pool](auto handler) {
                    asio::post(pool, [h = std::move(handler)] { h(error_code(), 7); });
                },
                pawl::abandon([](error_code, int) {},
                              asio::bind_executor(asio::make_strand(context),
                                                  [&](error_code, int) { ++calls; })));
            context.run();
        }
        BOOST_REQUIRE(calls == 1);
    }
    pool.join();
}

BOOST_AUTO_TEST_CASE(a_handler_may_destroy_the_operation_and_its_context) {
    // The executor of the operation, a strand, was destroyed after the handler.
    asio::io_context context;
    auto operations = std::make_unique<asio::io_context>();
    auto op = std::make_unique<operation>(asio::make_strand(*operations));
    manual_timer timer(context);
    bool called = false;
    op->async_run(
        pawl::timeout(timer, 1s, pawl::abandon, asio::bind_executor(context, [&](error_code, int) {
                          called = true;
                          op.reset();
                          operations.reset();
                      })));
    pass(context, 1s);
    BOOST_TEST(called);
}

namespace {

/// An executor without memory.
struct exhausted {
    asio::io_context* context_;

    [[nodiscard]] asio::io_context& query(asio::execution::context_t) const noexcept {
        return *context_;
    }
    void execute(auto&&) const { throw std::bad_alloc(); }
    bool operator==(const exhausted&) const noexcept = default;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_limit_that_finds_no_memory_ends_the_wait_nevertheless) {
    // The limit was spent on an attempt, and the caller waited for the operation.
    asio::io_context context;
    manual_timer timer(context);
    std::function<void(error_code, int)> operation;
    outcome result;
    start_on(
        exhausted{&context}, [&](auto handler) { operation = std::move(handler); },
        pawl::timeout(timer, 1s, pawl::abandon, asio::bind_executor(context, record(result))));
    manual_clock::advance(context, 1s);
    BOOST_CHECK_THROW(poll(context), std::bad_alloc);
    BOOST_TEST(result.ended_with(timed_out, 0));
}

namespace {

/// As a resolver: a thread of another context is blocked until it is told.
struct blocked_names {
    ~blocked_names() { release(); }

    template <class Token>
    auto async_resolve(Token&& token) {
        return asio::async_initiate<Token, void(error_code, std::vector<int>)>(start{this}, token);
    }
    void release() {
        {
            const std::scoped_lock lock(mutex);
            released = true;
        }
        told.notify_all();
    }

    struct start {
        using executor_type = asio::thread_pool::executor_type;
        executor_type get_executor() const noexcept { return self->pool.get_executor(); }

        template <class Handler>
        void operator()(Handler&& handler) const {
            auto work = asio::make_work_guard(handler, get_executor());
            asio::post(self->pool, [names = self, work = std::move(work),
                                    h = std::forward<Handler>(handler)]() mutable {
                {
                    std::unique_lock lock(names->mutex);
                    names->told.wait(lock, [names] { return names->released; });
                }
                const auto ex = work.get_executor();
                asio::dispatch(ex, [h = std::move(h)]() mutable {
                    std::move(h)(error_code(), std::vector<int>(3));
                });
            });
        }
        blocked_names* self;
    };

    std::mutex mutex;
    std::condition_variable told;
    bool released = false;
    asio::thread_pool pool{1};
};

} // namespace

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(a_server_drains_within_its_limit_although_a_lookup_hangs) {
    blocked_names names;
    {
        asio::io_context server;
        pawl::group sessions(server);
        error_code session_ended;
        error_code listed = asio::error::would_block;
        std::atomic<bool> late = false;
        const auto session = [&]() -> asio::awaitable<void> {
            auto [ec, hosts] = co_await names.async_resolve(pawl::timeout(
                1ms,
                pawl::abandon([&](error_code, const std::vector<int>& v) { late = v.size() == 3; }),
                asio::as_tuple(asio::use_awaitable)));
            listed = ec;
            auto [ec2, more] = co_await names.async_resolve(
                pawl::timeout(1h, pawl::abandon, asio::as_tuple(asio::use_awaitable)));
            session_ended = ec2;
            BOOST_TEST(more.empty());
        };
        asio::co_spawn(server, session, pawl::in_group(sessions, asio::detached));
        run_until(server, [&] { return listed == timed_out; });
        sessions.cancel(pawl::error::shutting_down);
        run_to_end(server); // although two lookups go on
        BOOST_TEST(session_ended == aborted);
        BOOST_TEST(sessions.size() == none);
        BOOST_TEST(!late.load());
        names.release();
        names.pool.join();
        BOOST_TEST(late.load());
    }
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(a_race_of_end_and_limit_has_one_winner_and_loses_no_result) {
    // Allowed: the caller gets the result and no late one, or timed_out and the late result.
    constexpr int rounds = 300;
    asio::io_context server;
    asio::thread_pool pool(2);
    int in_time = 0;
    int timed = 0;
    std::atomic<int> late = 0;
    const auto op = [&](auto token) {
        return asio::async_initiate<decltype(token), void(error_code, int)>(
            [&pool](auto handler) {
                asio::post(pool, [h = std::move(handler)]() mutable {
                    const auto until = std::chrono::steady_clock::now() + 50us;
                    while (std::chrono::steady_clock::now() < until) {
                    }
                    std::move(h)(error_code(), 7);
                });
            },
            token);
    };
    const auto session = [&]() -> asio::awaitable<void> {
        for (int i = 0; i != rounds; ++i) {
            auto [ec, n] = co_await op(asio::bind_executor(
                server, pawl::timeout(std::chrono::microseconds(i % 20 * 10),
                                      pawl::abandon([&](error_code, int v) { late += v == 7; }),
                                      asio::as_tuple(asio::use_awaitable))));
            if (ec == timed_out && n == 0)
                ++timed;
            else if (!ec && n == 7)
                ++in_time;
        }
    };
    asio::co_spawn(server, session, asio::detached);
    run_to_end(server);
    pool.join();
    BOOST_TEST(in_time + timed == rounds);
    BOOST_TEST(late == timed);
}

// A result, a limit, the caller's signal and the end of the operation, in any order, on one context or two.
BOOST_AUTO_TEST_CASE(at_random_the_caller_is_told_once_and_no_late_result_is_lost) {
    std::mt19937_64 random(pawl_test::seed());
    const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    for (auto steps = pawl_test::steps(5000); steps != 0; --steps) {
        asio::io_context other;
        stubborn s(static_cast<obedience>(below(3)));
        asio::io_context& home = below(2) == 0 ? s.context : other;
        const auto settle = [&](manual_clock::duration d) {
            do { // what one context posts to the other
                pass(s.context, d);
                pass(home, 0s);
                d = d.zero();
                s.context.restart();
                home.restart();
            } while (s.context.poll() + home.poll() != 0);
        };
        asio::cancellation_signal caller;
        manual_timer limit(home);
        auto told = asio::bind_executor(
            home.get_executor(), asio::bind_cancellation_slot(caller.slot(), record(s.result)));
        s.op.async_run(pawl::timeout(limit, std::chrono::seconds(1 + below(5)),
                                     pawl::abandon(s.keep()), std::move(told)));
        bool completed = false;
        bool before = false; // the caller was told before
        for (int i = 0; i != 8; ++i) {
            switch (below(6)) {
            case 0:
                if (s.op.pending()) {
                    before = s.result.calls != 0;
                    completed = true;
                    s.op.complete({}, 7);
                }
                break;
            case 1:
                caller.emit(static_cast<asio::cancellation_type>(1U << below(3)));
                break;
            case 2:
                settle(1s);
                break;
            case 3:
                s.context.restart();
                s.context.poll_one();
                break;
            case 4:
                home.restart();
                home.poll_one();
                break;
            default:
                settle(0s);
            }
            BOOST_TEST_REQUIRE(s.result.calls <= 1);
        }
        settle(10s);
        BOOST_TEST_REQUIRE(s.result.calls == 1);
        if (completed) // to the caller, or to the function
            BOOST_TEST_REQUIRE((s.result.value == 7) + (s.late.size() == one) == 1);
        if (completed && before)
            BOOST_TEST_REQUIRE(s.late.size() == one);
    }
}
