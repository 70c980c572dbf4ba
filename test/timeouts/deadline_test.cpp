// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   pawl::deadline as a value; limits around coroutines; and deadlines that are passed on.

#define BOOST_TEST_MODULE deadline
#include <boost/test/unit_test.hpp>

#include "../support/asio_configuration.hpp"
#include "timeout_support.hpp"

#include "../support/sanitized.hpp"

#include <pawl/steady_timer.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

namespace {

using namespace timeouts;
using namespace asio::experimental::awaitable_operators;
using asio::awaitable;
using asio::use_awaitable;
using manual_deadline = pawl::basic_deadline<manual_clock>;

// ---- the value --------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_deadline_is_a_point_in_time_that_may_be_never) {
    asio::io_context context;
    const auto d = manual_deadline::after(10s);
    BOOST_TEST((d.expiry() == manual_clock::now() + 10s));
    BOOST_TEST((d.remaining() == 10s));
    BOOST_TEST(!d.expired());
    BOOST_TEST(!d.is_never());
    manual_clock::advance(context, 4s);
    BOOST_TEST((d.remaining() == 6s));
    manual_clock::advance(context, 6s);
    BOOST_TEST(d.expired());
    BOOST_TEST((d.remaining() == 0s));
    manual_clock::advance(context, 6s);
    BOOST_TEST((d.remaining() == 0s));

    BOOST_TEST(manual_deadline().is_never());
    BOOST_TEST((manual_deadline() == manual_deadline::never()));
    BOOST_TEST(!manual_deadline::never().expired());
    BOOST_TEST((manual_deadline::never().remaining() == manual_clock::duration::max()));
    BOOST_TEST(manual_deadline(manual_clock::time_point::max()).is_never());
}

BOOST_AUTO_TEST_CASE(deadlines_saturate) {
    BOOST_TEST(manual_deadline::after(std::chrono::hours::max()).is_never());
    BOOST_TEST(manual_deadline::after(manual_clock::duration::max()).is_never());
    BOOST_TEST(manual_deadline::after(std::chrono::duration<double>(1e30)).is_never());
    BOOST_TEST(manual_deadline::after(0s).expired());
    BOOST_TEST(manual_deadline::after(std::chrono::hours::min()).expired());
    BOOST_TEST(manual_deadline(manual_clock::time_point::min()).expired());
    BOOST_TEST((manual_deadline(manual_clock::time_point::min()).remaining() == 0s));
    BOOST_TEST((manual_deadline(manual_clock::time_point::max() - 1ns).remaining() > 0s));
    // Never early: a fraction of a tick is rounded up.
    BOOST_TEST(
        (manual_deadline::after(std::chrono::duration<double, std::nano>(1.5)).remaining() == 2ns));
}

BOOST_AUTO_TEST_CASE(the_earlier_one_of_two_and_their_order) {
    const auto early = manual_deadline::after(1s);
    const auto late = manual_deadline::after(2s);
    BOOST_TEST((early < late));
    BOOST_TEST((late < manual_deadline::never()));
    BOOST_TEST((earlier_of(early, late) == early));
    BOOST_TEST((earlier_of(late, early) == early));
    BOOST_TEST((earlier_of(late, manual_deadline::never()) == late));
    BOOST_TEST((late.within(1s) == early));
    BOOST_TEST((early.within(2s) == early));
    BOOST_TEST((manual_deadline::never().within(2s) == late));
    BOOST_TEST(manual_deadline::never().within(std::chrono::hours::max()).is_never());
    static_assert(pawl::deadline::never() == pawl::deadline());
    static_assert(earlier_of(pawl::deadline(pawl::deadline::time_point()), {}) ==
                  pawl::deadline(pawl::deadline::time_point()));
}

/// A handler that contains an executor, and gives access to it without a copy.
template <class Handler>
struct keeps_executor {
    using executor_type = asio::any_io_executor;

    const executor_type& get_executor() const noexcept { return executor; }
    template <class... Args>
    void operator()(Args&&... args) {
        handler(std::forward<Args>(args)...);
    }

    executor_type executor;
    Handler handler;
};

// ---- operations under a deadline --------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(an_operation_under_a_deadline_that_has_passed_is_not_started) {
    asio::io_context context;
    operation op(context.get_executor());
    scripted_operation<std::exception_ptr, int> throwing(context.get_executor());
    scripted_operation<int> prefixed(context.get_executor());
    asio::steady_timer other(context, 1h);
    manual_timer timer(context, 1h);
    const auto passed = manual_deadline::after(0s);
    const auto expect = [&](auto start) {
        outcome o;
        start(o);
        BOOST_TEST(o.pending()); // through the executor
        poll(context);
        BOOST_TEST(o.ended_with(timed_out, 0), o);
        BOOST_TEST(throwing.started() + prefixed.started() + op.started() == 0);
    };
    expect([&](outcome& o) { op.async_run(pawl::timeout_at(passed, record(o))); });
    expect([&](outcome& o) { op.async_run(pawl::timeout_at(timer, passed, record(o))); });
    expect([&](outcome& o) { throwing.async_run(pawl::timeout_at(passed, record(o))); });
    expect([&](outcome& o) { prefixed.async_run(pawl::timeout_at(passed, record(o))); });
    expect([&](outcome& o) { // whose executor still exists when the handler has been moved
        op.async_run(
            pawl::timeout_at(passed, keeps_executor<recorder>{context.get_executor(), record(o)}));
    });
    expect([&](outcome& o) { // the operation has no executor
        auto token = pawl::timeout_at(passed, asio::bind_executor(context, record(o)));
        asio::async_initiate<decltype(token), void(error_code, int)>(
            [&op](auto&&) { op.at_start(); }, token);
    });
    expect([&](outcome& o) { // its executor does not allow posting
        other.async_wait(
            pawl::timeout_at(passed, asio::any_completion_handler<void(error_code)>(record(o))));
    });
    expect([&](outcome& o) { // a deferred operation checks the deadline when it is started
        auto lazy = op.async_run(pawl::timeout_at(manual_deadline::after(1s), asio::deferred));
        manual_clock::advance(context, 1s);
        std::move(lazy)(record(o));
    });
}

/// Waits under a deadline that has passed, without an I/O object.
struct late_wait {
    asio::steady_timer& timer;
    std::thread::id& resumed_in;
    bool begun = false;
    template <class Self>
    void operator()(Self& self, error_code ec = {}) {
        if (!std::exchange(begun, true))
            return timer.async_wait(pawl::timeout_at(manual_deadline::after(0s), std::move(self)));
        resumed_in = std::this_thread::get_id();
        self.complete(ec, 0);
    }
};

// Its executor is the system's; posting to it means going to another thread.
BOOST_AUTO_TEST_CASE(a_composed_operation_goes_on_where_its_io_object_runs) {
    asio::io_context context;
    asio::steady_timer timer(context, 1h);
    std::thread::id resumed_in;
    outcome o;
    auto token = record(o);
    asio::async_compose<recorder, void(error_code, int)>(late_wait{timer, resumed_in}, token);
    BOOST_TEST(o.pending());
    poll(context);
    BOOST_TEST(o.ended_with(timed_out, 0), o);
    BOOST_TEST((resumed_in == std::this_thread::get_id()));
}

BOOST_AUTO_TEST_CASE(an_operation_under_a_deadline_has_what_is_left) {
    asio::io_context context;
    operation op(context.get_executor());
    const auto d = manual_deadline::after(3s);
    for (int i = 1; i <= 3; ++i) {
        outcome o;
        op.async_run(pawl::timeout_at(d, record(o)));
        pass(context, 1s);
        op.complete(i == 3 ? aborted : error_code(), i);
        BOOST_TEST(o.ended_with(i == 3 ? timed_out : error_code(), i), o);
    }
    outcome never;
    op.async_run(pawl::timeout_at(manual_deadline::never(), record(never)));
    pass(context, 1000h);
    op.complete({}, 1);
    BOOST_TEST(never.ended_with({}, 1), never);
}

// ---- coroutines under a limit -----------------------------------------------------------------------

/// Runs a coroutine, and records its result.
template <class T>
struct spawned {
    spawned(asio::io_context& context, awaitable<T> coroutine)
        : spawned(context, context.get_executor(), std::move(coroutine)) {}
    spawned(asio::io_context& context, const asio::any_io_executor& ex, awaitable<T> coroutine) {
        if constexpr (std::is_void_v<T>)
            asio::co_spawn(
                ex, std::move(coroutine),
                asio::bind_cancellation_slot(signal.slot(), [this](std::exception_ptr e) {
                    ++calls;
                    error = std::move(e);
                }));
        else
            asio::co_spawn(
                ex, std::move(coroutine),
                asio::bind_cancellation_slot(signal.slot(), [this](std::exception_ptr e, T v) {
                    ++calls;
                    error = std::move(e);
                    value = std::move(v);
                }));
        poll(context);
    }
    [[nodiscard]] error_code code() const { return code_in(error); }

    asio::cancellation_signal signal;
    int calls = 0;
    std::exception_ptr error;
    std::conditional_t<std::is_void_v<T>, int, T> value{};
};

/// Records its destruction.
struct mark {
    mark(std::string& l, char n) : log(l), name(n) {}
    mark(const mark&) = delete;
    mark& operator=(const mark&) = delete;
    ~mark() { log += name; }
    std::string& log;
    char name;
};

awaitable<int> run(operation& op, std::string* log = nullptr) {
    std::string none_wanted;
    const mark a(log ? *log : none_wanted, 'a');
    const mark b(log ? *log : none_wanted, 'b');
    co_return co_await op.async_run(use_awaitable);
}

auto soon() { return manual_clock::now() + 1s; }

struct coroutines {
    /// Starts a coroutine, and runs everything that is ready.
    template <class T>
    spawned<T> spawn(awaitable<T> coroutine) {
        return spawned<T>(context, std::move(coroutine));
    }

    asio::io_context context;
    asio::any_io_executor ex = context.get_executor();
    operation op{ex, operation::obedience::posts, aborted, 5};

    ~coroutines() {
        poll(context);
        BOOST_TEST(context.stopped()); // P9
    }
};

BOOST_FIXTURE_TEST_CASE(a_coroutine_returns_its_value_or_is_timed_out, coroutines) {
    for (const bool in_time : {true, false}) {
        auto s = spawn(pawl::timeout_at(soon(), run(op)));
        if (in_time)
            op.post({}, 7);
        pass(context, 1s);
        BOOST_TEST(s.calls == 1);
        BOOST_TEST(s.code() == (in_time ? error_code() : timed_out));
        BOOST_TEST(s.value == (in_time ? 7 : 0));
    }
}

BOOST_FIXTURE_TEST_CASE(its_frame_is_destroyed_in_order_before_the_result_is_delivered,
                        coroutines) {
    std::string log;
    const auto outer = [](operation& o, std::string& l) -> awaitable<void> {
        const mark m(l, 'm');
        try {
            co_await pawl::timeout_at(soon(), run(o, &l));
        } catch (const system_error& e) {
            l += e.code() == timed_out ? '!' : '?';
        }
    };
    auto s = spawn(outer(op, log));
    pass(context, 1s);
    BOOST_TEST(s.calls == 1);
    BOOST_TEST(log == "ba!m");
}

BOOST_FIXTURE_TEST_CASE(void_and_move_only_results, coroutines) {
    const auto nothing = [](operation& o) -> awaitable<void> {
        co_await o.async_run(use_awaitable);
    };
    auto a = spawn(pawl::timeout_at(soon(), nothing(op)));
    op.post({}, 1);
    poll(context);
    BOOST_TEST(a.calls == 1);
    BOOST_TEST(!a.error);
    const auto pointer = [](operation& o) -> awaitable<std::unique_ptr<int>> {
        co_return std::make_unique<int>(co_await o.async_run(use_awaitable));
    };
    auto b = spawn(pawl::timeout_at(soon(), pointer(op)));
    op.post({}, 9);
    poll(context);
    BOOST_REQUIRE(b.value);
    BOOST_TEST(*b.value == 9);
}

BOOST_FIXTURE_TEST_CASE(a_result_that_cannot_be_made_of_nothing, coroutines) {
    struct number {
        explicit number(std::unique_ptr<int> n) : value(std::move(n)) {}
        std::unique_ptr<int> value;
    };
    const auto callee = [](operation& o) -> awaitable<number> {
        co_return number(std::make_unique<int>(co_await o.async_run(use_awaitable)));
    };
    manual_timer timer(context);
    const auto caller = [&](int form) -> awaitable<int> {
        const auto d = manual_deadline::after(1s);
        if (form == 0)
            co_return *(co_await pawl::timeout_at(d, callee(op))).value;
        if (form == 1)
            co_return *(co_await pawl::with_deadline(d, callee(op))).value;
        co_return *(co_await pawl::timeout(timer, 1s, callee(op))).value;
    };
    for (const int form : {0, 1, 2}) {
        auto in_time = spawn(caller(form));
        op.post({}, 7);
        poll(context);
        BOOST_TEST(in_time.calls == 1);
        BOOST_TEST(in_time.value == 7);

        auto late = spawn(caller(form));
        pass(context, 1s);
        BOOST_TEST(late.calls == 1);
        BOOST_TEST(late.code() == timed_out);
    }
}

BOOST_FIXTURE_TEST_CASE(a_coroutine_is_cancelled_as_the_caller_says, coroutines) {
    const auto listens = [](operation& o) -> awaitable<int> {
        co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
        co_return co_await o.async_run(use_awaitable);
    };
    using asio::cancellation_type;
    manual_timer timer(context);
    const auto when = manual_clock::now() + 1s;
    auto a = spawn(pawl::timeout_at(when, cancellation_type::total, listens(op)));
    pass(context, 1s);
    auto b = spawn(pawl::timeout(timer, 1s, cancellation_type::total, listens(op)));
    pass(context, 1s);
    BOOST_TEST((a.code() == timed_out && b.code() == timed_out));
    BOOST_TEST((op.signals() == std::vector{cancellation_type::total, cancellation_type::total}));
}

struct my_exception : std::runtime_error {
    using std::runtime_error::runtime_error;
};

BOOST_FIXTURE_TEST_CASE(exceptions_pass_unchanged, coroutines) {
    const auto throws = [](operation& o, bool late) -> awaitable<void> {
        try {
            co_await o.async_run(use_awaitable);
        } catch (const system_error&) {
            if (!late)
                throw;
        }
        throw my_exception("as it was");
    };
    for (const bool late : {false, true}) {
        auto s = spawn(pawl::timeout_at(soon(), throws(op, late)));
        if (!late)
            op.post({}, 1);
        pass(context, 1s);
        BOOST_REQUIRE(s.error);
        BOOST_CHECK_EXCEPTION(std::rethrow_exception(s.error), my_exception,
                              [](const auto& e) { return std::string(e.what()) == "as it was"; });
    }
    operation fails(ex);
    auto s = spawn(pawl::timeout_at(soon(), run(fails)));
    fails.post(asio::error::eof, 1);
    poll(context);
    BOOST_TEST(s.code() == error_code(asio::error::eof));
}

BOOST_FIXTURE_TEST_CASE(of_nested_limits_the_one_that_is_reached_speaks, coroutines) {
    const auto nested = [](operation& o, manual_clock::duration inner,
                           std::string& l) -> awaitable<int> {
        try {
            co_return co_await pawl::timeout_at(manual_clock::now() + inner, run(o));
        } catch (const system_error& e) {
            l += e.code() == timed_out ? 't' : e.code() == aborted ? 'c' : '?';
            throw;
        }
    };
    const auto told = [&](manual_clock::duration inner, manual_clock::duration outer) {
        std::string log;
        auto s = spawn(pawl::timeout_at(manual_clock::now() + outer, nested(op, inner, log)));
        pass(context, 1s);
        BOOST_TEST(s.code() == timed_out);
        return log;
    };
    BOOST_TEST(told(1s, 2s) == "t");
    BOOST_TEST(told(2s, 1s) == "c"); // for the inner one, the cancellation comes from outside
}

BOOST_FIXTURE_TEST_CASE(a_coroutine_under_a_limit_is_cancelled_from_outside, coroutines) {
    auto s = spawn(pawl::timeout_at(soon(), run(op)));
    s.signal.emit(cancellation_type::terminal);
    poll(context);
    BOOST_TEST(s.code() == aborted);
    auto late = spawn(pawl::timeout_at(soon(), run(op)));
    late.signal.emit(cancellation_type::terminal);
    manual_clock::advance(context, 1s);
    poll(context);
    BOOST_TEST(late.code() == aborted);
}

BOOST_FIXTURE_TEST_CASE(operators_on_both_sides, coroutines) {
    operation other(ex, operation::obedience::posts, aborted, 6);
    {
        auto s = spawn(pawl::timeout_at(soon(), run(op) && run(other)));
        pass(context, 1s);
        BOOST_TEST(s.code() == timed_out);
        BOOST_TEST(!op.pending());
        BOOST_TEST(!other.pending());
    }
    {
        const auto either = [](operation& a, operation& b) -> awaitable<std::size_t> {
            const auto result = co_await (pawl::timeout_at(soon(), run(a)) || run(b));
            co_return result.index();
        };
        auto s = spawn(either(op, other));
        other.post({}, 3);
        poll(context);
        BOOST_TEST(s.code() == error_code());
        BOOST_TEST(s.value == 1u);
        BOOST_TEST(!op.pending());
    }
}

BOOST_FIXTURE_TEST_CASE(partial_forms_are_awaited_and_as_tuple_does_not_throw, coroutines) {
    const auto body = [](operation& o, asio::io_context& c) -> awaitable<void> {
        asio::post(c, [&] { pass(c, 1s); });
        const auto [ec, n] =
            co_await o.async_run(pawl::timeout_at(soon(), asio::as_tuple(asio::deferred)));
        BOOST_TEST(ec == timed_out);
        BOOST_TEST(n == 5);
        asio::post(c, [&] { o.post({}, 8); });
        BOOST_TEST(co_await o.async_run(pawl::timeout_at(soon())) == 8);
        asio::post(c, [&] { o.post({}, 9); });
        BOOST_TEST(co_await o.async_run(pawl::cancel_at(soon(), use_awaitable)) == 9);
        manual_timer timer(c);
        asio::post(c, [&] { pass(c, 1s); });
        const auto [late, m] =
            co_await o.async_run(pawl::timeout(timer, 1s, asio::as_tuple(use_awaitable)));
        BOOST_TEST(late == timed_out);
        BOOST_TEST(m == 5);
        asio::post(c, [&] { pass(c, 1s); });
        try {
            co_await pawl::timeout(timer, 1s, run(o));
            BOOST_ERROR("it has no limit");
        } catch (const system_error& e) {
            BOOST_TEST(e.code() == timed_out);
        }
    };
    auto s = spawn(body(op, context));
    run_until(context, [&] { return s.calls != 0; });
    BOOST_TEST(!s.error);
}

// ThreadSanitizer does not understand the fence in the reference count of an any_io_executor that
// holds a strand, and reports a race; Asio's coroutines have no other executor here.
#if !PAWL_TEST_THREAD_SANITIZER
PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(a_coroutine_on_a_strand_and_on_a_thread_pool) {
    asio::thread_pool pool(2);
    const auto body = [](int n) -> awaitable<int> { co_return n; };
    const auto strand = asio::make_strand(pool);
    BOOST_TEST(asio::co_spawn(strand, pawl::timeout(1h, body(3)), asio::use_future).get() == 3);
    BOOST_TEST(asio::co_spawn(pool, pawl::with_deadline(pawl::deadline::after(1h), body(4)),
                              asio::use_future)
                   .get() == 4);
    const auto forever = []() -> awaitable<int> {
        pawl::steady_timer timer(co_await asio::this_coro::executor, 1h);
        co_await timer.async_wait(use_awaitable);
        co_return 0;
    };
    for (const bool deadline : {false, true}) {
        auto f =
            asio::co_spawn(strand,
                           deadline ? pawl::with_deadline(pawl::deadline::after(1ms), forever())
                                    : pawl::timeout(1ms, forever()),
                           asio::use_future);
        BOOST_CHECK_EXCEPTION(f.get(), system_error,
                              [](const system_error& e) { return e.code() == timed_out; });
    }
}
#endif

// ---- deadlines that are passed on --------------------------------------------------------------

awaitable<manual_deadline> callee() { co_return co_await pawl::this_deadline<manual_clock>(); }

BOOST_FIXTURE_TEST_CASE(this_deadline_is_the_earliest_one_around, coroutines) {
    const auto body = []() -> awaitable<void> {
        BOOST_TEST((co_await callee()).is_never());
        const auto late = manual_deadline::after(10s);
        const auto early = manual_deadline::after(5s);
        BOOST_TEST((co_await pawl::with_deadline(late, callee()) == late));
        const auto nest = [](manual_deadline d) -> awaitable<manual_deadline> {
            const auto within = co_await pawl::with_deadline(d, callee());
            const auto after = co_await callee();
            BOOST_TEST((within <= after));
            co_return within;
        };
        BOOST_TEST((co_await pawl::with_deadline(late, nest(early)) == early));
        BOOST_TEST((co_await pawl::with_deadline(early, nest(late)) == early));
        BOOST_TEST((co_await callee()).is_never());
    };
    for (const auto& where : {ex, asio::any_io_executor(asio::make_strand(context))}) {
        spawned<void> s(context, where, body());
        BOOST_TEST(s.calls == 1);
        BOOST_TEST(!s.error);
    }
}

BOOST_FIXTURE_TEST_CASE(an_inner_deadline_that_has_been_left_does_not_hide_the_outer_one,
                        coroutines) {
    const auto outer = manual_deadline::after(10s);
    const auto body = [](manual_deadline expected) -> awaitable<bool> {
        (void)co_await pawl::with_deadline(manual_deadline::after(5s), callee());
        co_return co_await callee() == expected;
    };
    auto s = spawn(pawl::with_deadline(outer, body(outer)));
    BOOST_TEST(s.value);
}

BOOST_FIXTURE_TEST_CASE(a_deadline_ends_all_that_is_within, coroutines) {
    const auto nest = [](operation& o) -> awaitable<int> {
        co_return co_await pawl::with_deadline(manual_deadline::after(10s), run(o));
    };
    auto s = spawn(pawl::with_deadline(manual_deadline::after(1s), nest(op)));
    pass(context, 1s);
    BOOST_TEST(s.calls == 1);
    BOOST_TEST(s.code() == timed_out);
}

BOOST_FIXTURE_TEST_CASE(a_coroutine_whose_deadline_has_passed_is_not_started, coroutines) {
    for (const bool carried : {false, true}) {
        const auto passed = manual_deadline::after(0s);
        auto s = spawn(carried ? pawl::with_deadline(passed, run(op))
                               : pawl::timeout_at(passed, run(op)));
        BOOST_TEST(s.calls == 1);
        BOOST_TEST(s.code() == timed_out);
        BOOST_TEST(op.started() == 0);
    }
}

BOOST_FIXTURE_TEST_CASE(executors_under_two_deadlines_are_not_equal, coroutines) {
    const pawl::detail::deadline_guard<manual_clock> one(soon());
    const pawl::detail::deadline_guard<manual_clock> other(manual_clock::now() + 2s);

    BOOST_TEST((one.executor(ex) == one.executor(ex)));
    BOOST_TEST((one.executor(ex) != other.executor(ex)));
}

BOOST_FIXTURE_TEST_CASE(an_executor_with_a_deadline_takes_properties_and_keeps_it, coroutines) {
    namespace execution = asio::execution;
    const auto d = manual_clock::now() + 1s;
    const asio::any_io_executor inner_ones[] = {ex, asio::make_strand(context),
                                                asio::make_strand(ex)};
    for (const asio::any_io_executor& inner : inner_ones) {
        const pawl::detail::deadline_guard<manual_clock> guard(d);
        const asio::any_io_executor under = guard.executor(inner);
        const auto keeps = [&](const asio::any_io_executor& e) {
            BOOST_TEST((pawl::detail::deadline_of<manual_clock>(e) == d));
            BOOST_TEST((&asio::query(e, execution::context) == &context));
            return e;
        };
        keeps(under);

        const auto never = keeps(asio::require(under, execution::blocking.never));
        BOOST_TEST((asio::query(never, execution::blocking) == execution::blocking.never));
        const auto next = keeps(asio::prefer(under, execution::relationship.continuation));
        BOOST_TEST((asio::query(next, execution::relationship) ==
                    asio::query(asio::prefer(inner, execution::relationship.continuation),
                                execution::relationship)));
        const auto apart = keeps(asio::prefer(next, execution::relationship.fork));
        BOOST_TEST((asio::query(apart, execution::relationship) == execution::relationship.fork));
        {
            const auto working = keeps(asio::prefer(under, execution::outstanding_work.tracked));
            poll(context);
            BOOST_TEST(!context.stopped());
            keeps(asio::prefer(working, execution::outstanding_work.untracked));
        }
        poll(context);
        BOOST_TEST(context.stopped());

        spawned<manual_deadline> s(context, never, callee());
        BOOST_TEST((s.value == manual_deadline(d)));
    }
}

BOOST_FIXTURE_TEST_CASE(what_is_left_behind_carries_no_deadline, coroutines) {
    std::optional<asio::any_io_executor> left;
    std::optional<manual_deadline> seen_within;
    std::optional<manual_deadline> seen_after;
    operation gate(ex);
    const auto lingering = [](operation& g, auto& first, auto& second) -> awaitable<void> {
        first = co_await pawl::this_deadline<manual_clock>();
        co_await g.async_run(use_awaitable);
        second = co_await pawl::this_deadline<manual_clock>();
    };
    const auto body = [&]() -> awaitable<void> {
        left = co_await asio::this_coro::executor;
        asio::co_spawn(*left, lingering(gate, seen_within, seen_after), asio::detached);
        co_await asio::post(use_awaitable);
    };
    const auto d = manual_deadline::after(10s);
    auto s = spawn(pawl::with_deadline(d, body()));
    BOOST_TEST(s.calls == 1);
    BOOST_REQUIRE(seen_within);
    BOOST_TEST((*seen_within == d));
    gate.post({}, 0);
    poll(context);
    BOOST_REQUIRE(seen_after);
    BOOST_TEST(seen_after->is_never());
    spawned<manual_deadline> later(context, *left, callee());
    BOOST_TEST(later.value.is_never());
    left.reset();
}

BOOST_FIXTURE_TEST_CASE(operators_within_a_deadline_are_told_of_it, coroutines) {
    const auto body = []() -> awaitable<bool> {
        const auto d = co_await callee();
        const auto [a, b] = co_await (callee() && callee());
        co_return a == d&& b == d && !d.is_never();
    };
    auto s = spawn(pawl::with_deadline(manual_deadline::after(1s), body()));
    BOOST_TEST(s.value);
}

BOOST_FIXTURE_TEST_CASE(deadlines_on_two_clocks, coroutines) {
    const auto body = []() -> awaitable<bool> {
        const auto mine = co_await callee();
        const auto steady = co_await pawl::this_deadline();
        co_return !steady.is_never() && mine.is_never();
    };
    auto s = spawn(pawl::with_deadline(pawl::deadline::after(1h), body()));
    BOOST_TEST(s.value);
}

// The last case of this program: the clock never goes back.
BOOST_AUTO_TEST_CASE(the_clock_stops_at_the_end_of_its_range) {
    asio::io_context context;
    manual_clock::advance(context, 1s);
    manual_clock::advance(context, manual_clock::duration::max());
    BOOST_TEST((manual_clock::now() == manual_clock::time_point::max()));
    manual_clock::advance(context, 1ns);
    BOOST_TEST((manual_clock::now() == manual_clock::time_point::max()));
}

} // namespace
