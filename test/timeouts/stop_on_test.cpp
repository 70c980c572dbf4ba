// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Stop tokens that cancel operations, and groups that are stop sources.

#define BOOST_TEST_MODULE stop_on
#include <boost/test/unit_test.hpp>

#include "timeout_support.hpp"

#include <pawl/abandon.hpp>
#include <pawl/group.hpp>
#include <pawl/stop_on.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <optional>
#include <thread>
#include <vector>

#if defined(__cpp_lib_jthread)

namespace {

using namespace timeouts;
using obedience = operation::obedience;

/// A stoppable token as those of senders: it brings its own callback.
struct sender_token {
    template <class F>
    using callback_type = std::stop_callback<F>;
    std::stop_token token;
    [[nodiscard]] bool stop_requested() const noexcept { return token.stop_requested(); }
    [[nodiscard]] bool stop_possible() const noexcept { return token.stop_possible(); }
    operator std::stop_token() const noexcept { return token; }
};

struct stoppable {
    explicit stoppable(obedience o = obedience::posts)
        : op(context.get_executor(), o, aborted, 0) {}

    asio::io_context context;
    manual_timer timer{context};
    std::stop_source source;
    operation op;
    outcome result;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_stop_cancels_the_operation) {
    for (const auto type : {cancellation_type::terminal, cancellation_type::total}) {
        stoppable s;
        s.op.async_run(pawl::stop_on(s.source.get_token(), type, record(s.result)));
        poll(s.context);
        BOOST_TEST(s.result.pending());
        s.source.request_stop();
        BOOST_TEST(s.result.pending()); // its executor is not this thread
        poll(s.context);
        BOOST_TEST(s.result.ended_with(aborted, 0));
        BOOST_REQUIRE(s.op.signals().size() == one);
        BOOST_TEST((s.op.signals()[0] == type));
    }
    stoppable s;
    s.op.async_run(pawl::stop_on(sender_token{s.source.get_token()}, record(s.result)));
    s.source.request_stop();
    poll(s.context);
    BOOST_TEST(s.result.ended_with(aborted, 0));
}

BOOST_AUTO_TEST_CASE(a_stop_that_came_before_cancels_an_operation_that_was_started) {
    stoppable s;
    s.source.request_stop();
    s.op.async_run(pawl::stop_on(s.source.get_token(), record(s.result)));
    BOOST_TEST(s.op.started() == 1);
    poll(s.context);
    BOOST_TEST(s.result.ended_with(aborted, 0));
}

BOOST_AUTO_TEST_CASE(a_stop_that_comes_late_or_never_changes_nothing) {
    stoppable s;
    s.op.async_run(pawl::stop_on(s.source.get_token(), record(s.result)));
    s.op.complete({}, 7);
    BOOST_TEST(s.result.ended_with({}, 7));
    s.source.request_stop();
    poll(s.context);
    BOOST_TEST(s.result.calls == 1);
    BOOST_TEST(s.op.signals().empty());

    outcome o;
    s.op.async_run(pawl::stop_on(std::stop_token(), record(o))); // no stop is possible
    s.op.complete({}, 8);
    BOOST_TEST(o.ended_with({}, 8));
    const auto token = std::make_shared<int>();
    std::stop_source fresh;
    s.op.async_run(pawl::stop_on(fresh.get_token(), [token](error_code, int) {}));
    s.op.abandon();
    BOOST_TEST(token.use_count() == 1);
    run_to_end(s.context);
}

BOOST_AUTO_TEST_CASE(it_combines_with_limits_groups_and_abandon) {
    stoppable s(obedience::ignores);
    s.op.async_run(pawl::timeout(
        s.timer, 1s, pawl::stop_on(s.source.get_token(), pawl::abandon, record(s.result))));
    s.source.request_stop();
    poll(s.context);
    BOOST_TEST(s.result.ended_with(aborted, 0));
    s.op.abandon();

    stoppable t;
    t.op.async_run(
        pawl::timeout(t.timer, 1s, pawl::stop_on(t.source.get_token(), record(t.result))));
    pass(t.context, 1s);
    BOOST_TEST(t.result.ended_with(timed_out, 0));

    stoppable u;
    std::vector<error_code> seen;
    asio::co_spawn(
        u.context,
        [&]() -> asio::awaitable<void> {
            error_code ec;
            (void)co_await u.op.async_run(
                asio::redirect_error(pawl::stop_on(u.source.get_token(), asio::use_awaitable), ec));
            seen.push_back(ec);
            const auto inner = [&]() -> asio::awaitable<int> {
                co_return co_await u.op.async_run(asio::use_awaitable);
            };
            try {
                (void)co_await pawl::stop_on(u.source.get_token(), inner());
            } catch (const system_error& e) {
                seen.push_back(e.code());
            }
        },
        asio::detached);
    poll(u.context);
    u.source.request_stop();
    run_to_end(u.context);
    BOOST_TEST(seen == std::vector<error_code>(2, aborted));
}

BOOST_AUTO_TEST_CASE(a_group_is_a_stop_source_in_both_directions) {
    stoppable s;
    std::optional<pawl::group> g(s.context);
    const std::stop_source source = g->stop_source();
    BOOST_TEST((g->stop_source() == source));
    s.op.async_run(pawl::in_group(*g, record(s.result)));
    g->stop_source().request_stop();
    poll(s.context);
    BOOST_TEST(g->cancelled());
    BOOST_TEST(s.result.ended_with(aborted, 0));

    pawl::group outer(s.context);
    pawl::group inner(outer);
    const std::stop_token stop = inner.stop_source().get_token();
    int called = 0;
    const std::stop_callback callback(stop, [&] { ++called; });
    outer.cancel(pawl::error::shutting_down);
    BOOST_TEST(called == 1);
    BOOST_TEST((inner.cause() == pawl::error::shutting_down));
    BOOST_TEST(inner.stop_source().stop_requested());

    pawl::group cancelled(outer);
    BOOST_TEST(cancelled.stop_source().stop_requested());

    g.emplace(s.context);
    std::stop_source survives = g->stop_source();
    g.reset();
    BOOST_TEST(survives.stop_requested());
}

BOOST_AUTO_TEST_CASE(a_callback_of_the_stop_may_destroy_the_group) {
    asio::io_context context;
    auto g = std::make_unique<pawl::group>(context);
    std::stop_source source = g->stop_source();
    const std::stop_callback callback(source.get_token(), [&] { g.reset(); });
    source.request_stop();
    BOOST_TEST(!g);
}

BOOST_AUTO_TEST_CASE(stops_from_other_threads_race_the_end_of_operations_and_groups) {
    // Allowed: each operation ends once, with success or as aborted; each group, once cancelled, stays so.
    constexpr int rounds = 500;
    asio::io_context context;
    const auto strand = asio::make_strand(context);
    for (int i = 0; i != rounds; ++i) {
        std::optional<pawl::group> g(context);
        std::stop_source source = g->stop_source();
        std::stop_source other;
        int ended = 0;
        const auto end = [&](error_code ec) {
            BOOST_TEST((!ec || ec == aborted));
            ++ended;
        };
        pawl::steady_timer timer(strand, std::chrono::microseconds(i % 7 * 10));
        pawl::steady_timer second(strand, std::chrono::microseconds(i % 5 * 10));
        timer.async_wait(pawl::stop_on(other.get_token(), asio::bind_executor(strand, end)));
        second.async_wait(pawl::in_group(*g, asio::bind_executor(strand, end)));
        std::thread a([&] { other.request_stop(); });
        std::thread b([source]() mutable { source.request_stop(); });
        run_to_end(context);
        g.reset();
        a.join();
        b.join();
        run_to_end(context);
        BOOST_REQUIRE(ended == 2);
    }
}

#else

BOOST_AUTO_TEST_CASE(this_library_has_no_stop_tokens) { BOOST_TEST(true); }

#endif
