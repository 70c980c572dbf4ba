// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   pawl::cancel_after as an adapter: each kind of completion token and of operation, its cost, the
//   durations that it accepts, and the outcome of an operation under a limit when its context, its
//   timer or its handler is destroyed.

#define BOOST_TEST_MODULE cancel_after
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "timeout_support.hpp"

#include "../support/archetypes.hpp"
#include "../support/asio_configuration.hpp"

#include <pawl/coarse_timer.hpp>
#include <pawl/compact_timer.hpp>
#include <pawl/expire_all.hpp>
#include <pawl/group.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/system_timer.hpp>
#include <pawl/timer_service.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/consign.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/experimental/promise.hpp>
#include <boost/asio/experimental/use_promise.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prepend.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <csignal>
#include <future>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using namespace timeouts;
using namespace pawl_test;
using asio::ip::tcp;
namespace data = boost::unit_test::data;
using obedience = operation::obedience;

auto soon() { return manual_clock::now() + 1s; }

// ---- completion tokens ------------------------------------------------------------------------------

/// An operation that its limit cancels, and how the handler is told.
struct tokens {
    asio::io_context context;
    operation op{context.get_executor(), obedience::posts, aborted, 5};
    outcome o;

    void expire() { pass(context, 1s); }
    ~tokens() {
        poll(context);
        BOOST_TEST(context.stopped());
    }
};

BOOST_FIXTURE_TEST_CASE(takes_an_lvalue_token_and_a_const_one, tokens) {
    auto handler = [this](error_code ec, int n) { record(o)(ec, n); };
    auto token = pawl::cancel_at(soon(), handler);
    op.async_run(token);
    expire();
    BOOST_TEST(o.ended_with(aborted, 5), o);
    const auto same = pawl::cancel_at(soon(), handler);
    op.async_run(same);
    expire();
    BOOST_TEST(o.calls == 2);
}

PAWL_NEEDS_THREADS
BOOST_FIXTURE_TEST_CASE(takes_use_future, tokens) {
    std::future<int> f = op.async_run(pawl::timeout_at(soon(), asio::use_future));
    expire();
    BOOST_CHECK_EXCEPTION(f.get(), system_error,
                          [](const system_error& e) { return e.code() == timed_out; });
    std::future<int> h = op.async_run(pawl::timeout_at(soon(), asio::use_future));
    op.complete({}, 8);
    BOOST_TEST(h.get() == 8);
}

BOOST_FIXTURE_TEST_CASE(takes_use_promise, tokens) {
    auto promise = op.async_run(pawl::timeout_at(soon(), asio::experimental::use_promise));
    expire();
    promise(record(o));
    poll(context);
    BOOST_TEST(o.ended_with(timed_out, 5), o);
}

BOOST_FIXTURE_TEST_CASE(takes_deferred_which_may_be_launched_twice, tokens) {
    const auto lazy = op.async_run(pawl::cancel_after(0s, asio::deferred));
    BOOST_TEST(!op.pending());
    for (int i = 1; i <= 2; ++i) {
        lazy([this](error_code ec, int n) { record(o)(ec, n); });
        run_until(context, [&] { return o.calls == i; });
        BOOST_TEST(o.code == aborted);
    }
    auto once = op.async_run(pawl::cancel_at(soon(), asio::deferred));
    std::move(once)(record(o));
    op.complete({}, 6);
    BOOST_TEST(o.calls == 3);
}

/// Asio's adapters within a limit and around it, two of them with a lent timer.
BOOST_FIXTURE_TEST_CASE(goes_with_the_adapters_of_asio_on_either_side, tokens) {
    manual_timer timer(context);
    error_code redirected;
    const auto run = [&](auto&& token, error_code told, int value) {
        o = {};
        op.async_run(std::forward<decltype(token)>(token));
        expire();
        BOOST_TEST(o.ended_with(told, value), o);
        BOOST_TEST(std::exchange(redirected, {}) == (told ? error_code() : timed_out));
    };
    const auto take = [this](error_code ec, int n, int m = 0) { record(o)(ec, n + m); };
    const auto take_last = [&](int m, error_code ec, int n) { take(ec, n, m); };
    const auto take_number = [this](int n) { record(o)({}, n); };
    const auto take_tuple = [&](std::tuple<error_code, int> t) { std::apply(take, t); };
    const auto take_both = [&](std::tuple<error_code, int> t, int m) {
        take(std::get<0>(t), std::get<1>(t), m);
    };
    using pawl::timeout_at;

    run(timeout_at(soon(), asio::redirect_error(take_number, redirected)), {}, 5);
    run(timeout_at(soon(), asio::as_tuple(take_tuple)), timed_out, 5);
    run(timeout_at(soon(), asio::append(take, 10)), timed_out, 15);
    run(timeout_at(soon(), asio::prepend(take_last, 20)), timed_out, 25);

    run(asio::redirect_error(timeout_at(soon(), record(o)), redirected), {}, 5); // move-only
    const auto lvalue = asio::redirect_error(pawl::timeout(timer, 1s, take_number), redirected);
    run(lvalue, {}, 5);
    asio::cancellation_signal outer; // its slot is not that of the operation
    run(asio::bind_cancellation_slot(
            outer.slot(), asio::redirect_error(timeout_at(soon(), record(o)), redirected)),
        {}, 5);
    run(asio::as_tuple(timeout_at(soon(), take_tuple)), timed_out, 5);
    run(asio::append(timeout_at(soon(), take), 10), timed_out, 15);
    run(asio::append(pawl::timeout(timer, 1s, take), 20), timed_out, 25);
    run(asio::prepend(timeout_at(soon(), take_last), 20), timed_out, 25);
    run(asio::as_tuple(asio::append(timeout_at(soon(), take_both), 30)), timed_out, 35);
    const auto kept = std::make_shared<int>(0);
    run(asio::consign(timeout_at(soon(), take), kept, std::make_unique<int>(1)), timed_out, 5);
    BOOST_TEST(kept.use_count() == 1);

    o = {};
    op.async_run(asio::as_tuple(timeout_at(soon())))(take_tuple); // deferred
    expire();
    BOOST_TEST(o.ended_with(timed_out, 5), o);
}

/// The executor that is bound outside is where the limit is kept and the signal is emitted.
BOOST_FIXTURE_TEST_CASE(executors_slots_and_allocators_may_be_bound_around_a_limit, tokens) {
    const auto strand = asio::make_strand(context);
    int in_strand = 0;
    op.at_signal = [&] { in_strand += strand.running_in_this_thread(); };
    op.async_run(asio::bind_executor(strand, pawl::timeout_at(soon(), [&](error_code ec, int n) {
                                         in_strand += strand.running_in_this_thread();
                                         record(o)(ec, n);
                                     })));
    expire();
    BOOST_TEST(o.ended_with(timed_out, 5), o);
    BOOST_TEST(in_strand == 2);
    op.at_signal = [] {};

    asio::cancellation_signal signal;
    const auto bind = [&] {
        o = {};
        op.async_run(
            asio::bind_cancellation_slot(signal.slot(), pawl::timeout_at(soon(), record(o))));
    };
    bind();
    expire();
    BOOST_TEST(o.ended_with(timed_out, 5), o);
    bind();
    signal.emit(cancellation_type::partial);
    poll(context);
    BOOST_TEST(o.ended_with(aborted, 5), o);
    BOOST_TEST((op.signals().back() == cancellation_type::partial));

    allocation_log blocks;
    o = {};
    op.async_run(
        asio::bind_allocator(counting_allocator<int>(blocks), pawl::timeout_at(soon(), record(o))));
    BOOST_TEST(blocks.allocations == one);
    expire();
    BOOST_TEST(o.ended_with(timed_out, 5), o);
    BOOST_TEST(blocks.live() == none);
}

/// An any_completion_handler without an executor of its own takes that of the lent timer.
BOOST_FIXTURE_TEST_CASE(a_lent_timer_has_the_executor_that_any_completion_handler_asks_for,
                        tokens) {
    manual_timer lent(context);
    const auto start_nowhere = [](auto&& token) {
        asio::async_initiate<decltype(token), void(error_code, int)>(
            [](auto handler) { std::move(handler)(error_code(), 4); }, token);
    };

    asio::any_completion_handler<void(error_code, int)> handler = record(o);
    start_nowhere(pawl::timeout(lent, 1s, std::move(handler)));
    poll(context);
    BOOST_TEST(o.ended_with({}, 4), o);
}

// ---- a timer that is lent ---------------------------------------------------------------------------

using timers = std::tuple<manual_timer, pawl::steady_timer, pawl::coarse_timer, pawl::compact_timer,
                          pawl::system_timer>;
BOOST_AUTO_TEST_CASE_TEMPLATE(each_end_of_a_lent_timers_wait_cancels_with_every_timer_and_in_groups,
                              Timer, timers) {
    asio::io_context context;
    pawl::group group(context);
    operation op(context.get_executor(), obedience::posts, aborted, 5);
    std::optional<Timer> lent;
    outcome o;
    const std::function<void()> starts[] = {
        [&] { op.async_run(pawl::cancel_after(*lent, 1h, record(o))); },
        [&] { op.async_run(pawl::cancel_at(*lent, Timer::clock_type::now() + 1h, record(o))); },
        [&] { op.async_run(pawl::cancel_after(*lent, 1h, pawl::in_group(group, record(o)))); },
        [&] { op.async_run(pawl::in_group(group, pawl::cancel_after(*lent, 1h, record(o)))); },
        [&] { op.async_run(pawl::timeout(1h, pawl::cancel_after(*lent, 1h, record(o)))); }};
    const std::function<void()> ends[] = {[&] { lent->cancel(); },
                                          [&] { lent->cancel_one(); },
                                          [&] { lent->expires_after(2h); },
                                          [&] { lent->expires_at(lent->expiry()); },
                                          [&] { lent.reset(); },
                                          [&] { pawl::cancel_all(context); }};
    for (const auto& start : starts) {
        for (const auto& end : ends) {
            lent.emplace(context);
            o = {};
            start();
            poll(context);
            end();
            BOOST_TEST(op.pending()); // not within the call
            poll(context);
            BOOST_TEST(o.ended_with(aborted, 5), o);
        }
        lent.emplace(context);
        o = {};
        start();
        BOOST_TEST(lent->rearm_after(2h) == one);
        BOOST_TEST(lent->rearm_at(lent->expiry()) == one);
        poll(context);
        BOOST_TEST(op.pending());
        op.complete({}, 7);
        BOOST_TEST(o.ended_with({}, 7), o);
    }
}

BOOST_FIXTURE_TEST_CASE(cancel_all_lifts_a_limit_whose_timer_is_not_lent, tokens) {
    op.async_run(pawl::cancel_after(1h, record(o)));
    BOOST_TEST(pawl::cancel_all(context) == one);
    poll(context);
    BOOST_TEST(op.pending());
    BOOST_TEST(op.signals().empty());
    op.complete({}, 7);
    BOOST_TEST(o.ended_with({}, 7), o);
}

/// The limit of timeout() is lifted where cancel_after() cancels.
BOOST_AUTO_TEST_CASE(
    of_two_limits_on_lent_timers_only_the_one_of_cancel_after_cancels_when_cancelled) {
    for (const bool inside : {true, false}) {
        asio::io_context context;
        operation op(context.get_executor(), obedience::posts, aborted, 5);
        manual_timer of_timeout(context);
        manual_timer of_cancel(context);
        outcome o;
        if (inside)
            op.async_run(
                pawl::cancel_after(of_cancel, 1h, pawl::timeout(of_timeout, 1h, record(o))));
        else
            op.async_run(
                pawl::timeout(of_timeout, 1h, pawl::cancel_after(of_cancel, 1h, record(o))));
        of_timeout.cancel();
        pass(context, 0s);
        BOOST_TEST(op.pending());
        of_cancel.cancel();
        poll(context);
        BOOST_TEST(o.ended_with(aborted, 5), o);
    }
}

BOOST_FIXTURE_TEST_CASE(limits_nest_and_the_first_one_that_is_due_decides, tokens) {
    const auto run = [&](manual_clock::duration inner, manual_clock::duration middle,
                         manual_clock::duration outer) {
        const auto now = manual_clock::now();
        outcome told;
        op.async_run(pawl::timeout_at(
            now + inner,
            pawl::cancel_at(now + middle, pawl::timeout_at(now + outer, record(told)))));
        expire();
        BOOST_TEST(told.calls == 1);
        return told.code;
    };
    BOOST_TEST(run(1s, 2s, 3s) == timed_out);
    BOOST_TEST(run(2s, 1s, 3s) == aborted);
    BOOST_TEST(run(3s, 2s, 1s) == timed_out);
}

BOOST_FIXTURE_TEST_CASE(a_timeout_cancels_with_the_type_that_is_asked_for, tokens) {
    manual_timer timer(context);
    const auto seen = [&](auto token) {
        op.async_run(std::move(token));
        expire();
        return op.signals().back();
    };
    const auto ignore = [](error_code, int) {};
    BOOST_TEST((seen(pawl::timeout(timer, 1s, cancellation_type::total, ignore)) ==
                cancellation_type::total));
    BOOST_TEST((seen(pawl::timeout_at(timer, soon(), cancellation_type::all, ignore)) ==
                cancellation_type::all));
}

// ---- durations --------------------------------------------------------------------------------------

/// A limit of a duration, or at a point in time.
template <class When>
void expect(bool passed, When when) {
    tokens t;
    if constexpr (requires { when.time_since_epoch(); })
        t.op.async_run(pawl::timeout_at(when, record(t.o)));
    else
        t.op.async_run(pawl::timeout(when, record(t.o)));
    if (passed) {
        run_until(t.context, [&] { return !t.o.pending(); });
        BOOST_TEST(t.o.ended_with(timed_out, 5), t.o);
    } else {
        poll(t.context);
        BOOST_REQUIRE(t.o.pending());
        t.op.complete({}, 7);
        BOOST_TEST(t.o.ended_with({}, 7), t.o);
    }
}
void passed(auto when) { expect(true, when); }
void not_passed(auto when) { expect(false, when); }

BOOST_AUTO_TEST_CASE(zero_and_less_mean_now_and_too_much_means_never) {
    using std::chrono::duration;
    passed(0s);
    passed(-1h);
    passed(std::chrono::hours::min());
    passed(std::chrono::nanoseconds::min());
    passed(duration<double>(-1.5));
    not_passed(1h);
    not_passed(std::chrono::hours::max());
    not_passed(std::chrono::nanoseconds::max());
    not_passed(duration<double>(1e300));
    not_passed(duration<double>(std::numeric_limits<double>::infinity()));
    not_passed(duration<float>(3600));
}

BOOST_AUTO_TEST_CASE(points_in_time_of_any_clock_and_unit) {
    using std::chrono::steady_clock;
    using std::chrono::system_clock;
    not_passed(steady_clock::time_point::max());
    passed(steady_clock::time_point::min());
    passed(steady_clock::now() - 1s);
    passed(system_clock::now() - 1s);
    not_passed(system_clock::time_point::max());
    not_passed(std::chrono::time_point<system_clock, std::chrono::hours>::max());
    not_passed(std::chrono::time_point_cast<std::chrono::minutes>(steady_clock::now()) + 60min);
    not_passed(manual_clock::time_point::max());
    passed(manual_clock::now());
}

// ---- operations -------------------------------------------------------------------------------------

/// Starts an operation that takes forever, lets its limit expire, and checks its result.
template <class Start>
error_code told_when_it_expires(asio::io_context& context, Start start) {
    std::optional<error_code> told;
    start([&](error_code ec, const auto&...) { told = ec; });
    poll(context);
    BOOST_TEST(!told);
    manual_clock::advance(context, 1s);
    run_until(context, [&] { return told.has_value(); });
    return *told;
}

struct connected_pair {
    explicit connected_pair(asio::io_context& context) : here(context), there(context) {
        tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
        here.connect(acceptor.local_endpoint());
        acceptor.accept(there);
    }
    tcp::socket here;
    tcp::socket there;
};

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(sockets_and_timers_and_signals_and_channels) {
    asio::io_context context;
    const auto check = [&](auto start) {
        BOOST_TEST(told_when_it_expires(context, start) == timed_out);
        poll(context);
    };
    connected_pair pair(context);
    std::array<char, 100> bytes{};
    check([&](auto h) {
        pair.here.async_read_some(asio::buffer(bytes), pawl::timeout_at(soon(), h));
    });
    check([&](auto h) {
        asio::async_read(pair.here, asio::buffer(bytes), pawl::timeout_at(soon(), h));
    });
    check(
        [&](auto h) { pair.here.async_wait(tcp::socket::wait_read, pawl::timeout_at(soon(), h)); });
    std::vector<char> many(64'000'000);
    check([&](auto h) {
        asio::async_write(pair.here, asio::buffer(many), pawl::timeout_at(soon(), h));
    });
    tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
    check([&](auto h) { acceptor.async_accept(pawl::timeout_at(soon(), h)); });
    asio::steady_timer of_asio(context, 1h);
    check([&](auto h) { of_asio.async_wait(pawl::timeout_at(soon(), h)); });
    pawl::steady_timer of_pawl(context, 1h);
    check([&](auto h) { of_pawl.async_wait(pawl::timeout_at(soon(), h)); });
    manual_timer limit(context);
    check([&](auto h) { of_pawl.async_wait(pawl::timeout(limit, 1s, h)); });
    asio::signal_set signals(context, SIGTERM);
    check([&](auto h) { signals.async_wait(pawl::timeout_at(soon(), h)); });
    asio::experimental::channel<void(error_code, int)> channel(context);
    check([&](auto h) { channel.async_receive(pawl::timeout_at(soon(), h)); });
    check([&](auto h) { channel.async_send({}, 1, pawl::timeout_at(soon(), h)); });

    // And without a limit, as usual.
    asio::write(pair.there, asio::buffer("yes", 3));
    std::optional<std::size_t> got;
    pair.here.async_read_some(asio::buffer(bytes),
                              pawl::timeout(1h, [&](error_code ec, std::size_t n) {
                                  BOOST_TEST(!ec);
                                  got = n;
                              }));
    run_until(context, [&] { return got.has_value(); });
    BOOST_TEST(*got == 3u);
    std::optional<error_code> connected;
    tcp::socket third(context);
    third.async_connect(acceptor.local_endpoint(),
                        pawl::timeout(1h, [&](error_code ec) { connected = ec; }));
    run_until(context, [&] { return connected.has_value(); });
    BOOST_TEST(!*connected);
    tcp::resolver resolver(context);
    std::optional<std::size_t> found;
    resolver.async_resolve("127.0.0.1", "80", tcp::resolver::numeric_host,
                           pawl::timeout(1h, [&](error_code, const auto& r) { found = r.size(); }));
    run_until(context, [&] { return found.has_value(); });
    BOOST_TEST(*found == 1u);
}

/// Waits three times; each of its steps is cancelled, not only the first.
struct three_waits {
    pawl::basic_waitable_timer<manual_clock>& timer;
    int left = 3;
    template <class Self>
    void operator()(Self& self, error_code ec = {}) {
        if (ec || left-- == 0)
            return self.complete(ec, left + 1);
        timer.expires_after(1s);
        timer.async_wait(std::move(self));
    }
};
template <class Token>
auto async_three_waits(manual_timer& timer, Token&& token) {
    return asio::async_compose<Token, void(error_code, int)>(three_waits{timer}, token, timer);
}

BOOST_AUTO_TEST_CASE(composed_operations_are_cancelled_in_whatever_step_they_are) {
    for (int steps = 0; steps <= 3; ++steps) {
        asio::io_context context;
        manual_timer timer(context);
        outcome o;
        async_three_waits(timer,
                          pawl::timeout_at(manual_clock::now() + steps * 1s + 500ms, record(o)));
        for (int i = 0; i < 8; ++i)
            pass(context, 500ms);
        BOOST_TEST(o.ended_with(steps == 3 ? error_code() : timed_out, 3 - steps), o);
    }
}

BOOST_AUTO_TEST_CASE(a_parallel_group_under_a_limit_and_limits_within_one) {
    asio::io_context context;
    operation a(context.get_executor(), obedience::posts, aborted, 1);
    operation b(context.get_executor(), obedience::posts, aborted, 2);
    // A group has no error of its own: the signature starts with the order of completion.
    std::optional<error_code> told;
    std::array<error_code, 2> each;
    asio::experimental::make_parallel_group(a.async_run(asio::deferred),
                                            b.async_run(asio::deferred))
        .async_wait(asio::experimental::wait_for_all(),
                    pawl::timeout_at(
                        soon(), asio::bind_executor(context, [&](error_code ec, auto, error_code ea,
                                                                 int, error_code eb, int) {
                            told = ec;
                            each = {ea, eb};
                        })));
    pass(context, 1s);
    BOOST_REQUIRE(told);
    BOOST_TEST(*told == timed_out);
    BOOST_TEST(each[0] == aborted);
    BOOST_TEST(each[1] == aborted);

    told.reset();
    asio::experimental::make_parallel_group(a.async_run(pawl::timeout_at(soon(), asio::deferred)),
                                            b.async_run(pawl::timeout_at(soon() + 1s)))
        .async_wait(asio::experimental::wait_for_one(),
                    [&](auto, error_code ea, int, error_code eb, int) {
                        told = ea;
                        each = {ea, eb};
                    });
    pass(context, 1s);
    BOOST_REQUIRE(told);
    BOOST_TEST(each[0] == timed_out);
    BOOST_TEST(each[1] == aborted); // by the group
    poll(context);
    BOOST_TEST(context.stopped());
}

// ---- costs -------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(archetypes_of_handler_executor_allocator_and_slot) {
    asio::io_context context;
    executor_log executed;
    const property_executor ex(context.get_executor(), executed);
    for (const int kind : {0, 1, 2}) { // completes, times out, is cancelled
        handler_log handlers;
        allocation_log memory;
        asio::cancellation_signal signal;
        scripted_operation<error_code> op(context.get_executor());
        op.async_run(
            pawl::timeout_at(soon(), handler_archetype(handlers, ex, memory, signal.slot())));
        BOOST_TEST(memory.allocations == 1u); // the operation of the test needs none
        if (kind == 1)
            pass(context, 1s);
        if (kind == 2)
            signal.emit(cancellation_type::terminal);
        BOOST_TEST(memory.live() == 1u);
        const auto before = memory.allocations;
        op.complete(kind == 0 ? error_code() : aborted);
        BOOST_TEST(memory.allocations == before);
        BOOST_TEST(memory.live() == 0u);
        BOOST_TEST(handlers.calls == 1);
        BOOST_TEST(handlers.copies == 0);
        BOOST_TEST(handlers.live == 0);
        BOOST_TEST(handlers.last == (kind == 0 ? error_code() : kind == 1 ? timed_out : aborted));
    }
}

#if !defined(BOOST_ASIO_NO_TS_EXECUTORS)
BOOST_AUTO_TEST_CASE(the_handler_runs_on_an_executor_of_the_networking_ts) {
    asio::io_context context;
    executor_log log;
    const ts_executor ex(context, log);
    for (const int kind : {0, 1, 2, 3}) { // completes, times out, is cancelled, is not started
        asio::cancellation_signal signal;
        operation op(context.get_executor(), obedience::posts, aborted, 1);
        outcome o;
        auto handler =
            asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(ex, record(o)));
        if (kind == 3)
            op.async_run(pawl::timeout_at(pawl::deadline::after(0s), std::move(handler)));
        else
            op.async_run(pawl::timeout_at(soon(), std::move(handler)));
        BOOST_TEST(o.pending());
        const int before = log.executed;
        if (kind == 0)
            op.post({}, 7);
        if (kind == 1)
            manual_clock::advance(context, 1s);
        if (kind == 2)
            signal.emit(cancellation_type::terminal);
        poll(context);
        BOOST_TEST(o.ended_with(kind == 0 ? error_code() : kind == 2 ? aborted : timed_out), o);
        BOOST_TEST(log.executed > before);
        BOOST_TEST(log.work == 0);
        BOOST_TEST(context.stopped()); // P9
    }
}
#endif

BOOST_AUTO_TEST_CASE(what_is_deferred_under_a_limit_is_an_asynchronous_operation) {
    asio::io_context context;
    pawl::steady_timer timer(context);
    const auto limited = [&](auto token) { return timer.async_wait(token); };
    using of_a_token = decltype(limited(pawl::timeout(1s, asio::deferred)));
    using of_a_partial_one = decltype(limited(pawl::cancel_after(1s)));
    static_assert(asio::is_async_operation<of_a_token>::value);
    static_assert(asio::is_async_operation<of_a_partial_one>::value);
    static_assert(std::is_same_v<asio::completion_signature_of_t<of_a_token>, void(error_code)>);

    for (const bool partial : {false, true}) {
        outcome o;
        if (partial)
            limited(pawl::cancel_after(1s))(record(o));
        else
            limited(pawl::timeout(1s, asio::deferred))(record(o));
        run_to_end(context);
        BOOST_TEST(o.ended_with(error_code()), o);
    }
}

BOOST_AUTO_TEST_CASE(the_memory_is_freed_before_the_handler_is_invoked_also_in_nested_limits) {
    asio::io_context context;
    allocation_log memory;
    operation op(context.get_executor());
    for (const bool late : {false, true}) {
        std::optional<std::size_t> live;
        op.async_run(pawl::timeout_at(
            soon(),
            pawl::cancel_at(soon() + 1s,
                            asio::bind_allocator(counting_allocator<void>(memory),
                                                 [&](error_code, int) { live = memory.live(); }))));
        BOOST_TEST(memory.live() == 2u);
        if (late)
            pass(context, 1s);
        op.complete({}, 1);
        BOOST_REQUIRE(live);
        BOOST_TEST(*live == 0u);
    }
}

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(nothing_is_posted_for_an_operation_that_completes_first) {
    constexpr std::size_t operations = 100;
    const auto units = [](auto start) {
        asio::io_context context;
        // Later than the limit, which starts first. So the system timer need not be set again,
        // which would be a unit, even on a slow machine.
        pawl::steady_timer timer(context, 2h);
        std::size_t n = 0;
        for (std::size_t i = 0; i < operations; ++i) {
            start(timer);
            timer.cancel();
            n += poll(context);
        }
        return n;
    };
    const std::size_t bare = units([](auto& t) { t.async_wait([](error_code) {}); });
    const std::size_t limited =
        units([](auto& t) { t.async_wait(pawl::cancel_after(1h, [](error_code) {})); });
    BOOST_TEST(bare == operations);
    BOOST_TEST(limited == operations);

    asio::io_context context;
    operation op(context.get_executor());
    outcome o;
    asio::post(context, [&] {
        for (std::size_t i = 0; i < operations; ++i) {
            op.async_run(pawl::cancel_after(1h, record(o)));
            op.complete({}, 1);
        }
    });
    BOOST_TEST(poll(context) == one);
    BOOST_TEST(context.stopped());
    BOOST_TEST(poll(context) == none);
}

BOOST_FIXTURE_TEST_CASE(P9_a_limit_that_ends_outside_of_run_does_not_stop_the_context, tokens) {
    outcome limited;
    op.async_run(pawl::timeout(1h, record(limited)));
    op.complete({}, 1);
    BOOST_TEST(!context.stopped());

    asio::steady_timer timer(context, 1ms);
    timer.async_wait(pawl::timeout(1h, record(o)));
    BOOST_TEST(context.run() >= one); // without restart()
    BOOST_TEST(o.ended_with({}), o);
}

BOOST_FIXTURE_TEST_CASE(a_handler_may_take_the_executor_of_its_operation, tokens) {
    asio::steady_timer timer(context, 1ms);
    asio::any_completion_handler<void(error_code)> erased(record(o));
    timer.async_wait(pawl::timeout(1h, std::move(erased)));
    run_to_end(context);
    BOOST_TEST(o.ended_with({}), o);

    timer.expires_after(1ms);
    outcome nested;
    asio::any_completion_handler<void(error_code)> inner(record(nested));
    timer.async_wait(pawl::cancel_after(1h, pawl::timeout(1h, std::move(inner))));
    run_to_end(context);
    BOOST_TEST(nested.ended_with({}), nested);
}

// ---- the end ----------------------------------------------------------------------------------------

BOOST_DATA_TEST_CASE(a_context_is_destroyed_with_operations_under_limits,
                     data::make({true, false}) * data::make({true, false}) * data::make({0, 1, 2}),
                     deliver, own, when) {
    handler_log handlers;
    std::array<char, 1> byte{};
    {
        std::optional<manual_timer> limit; // outlives the context
        asio::io_context context;
        pawl::options o;
        o.on_shutdown = deliver ? pawl::shutdown_policy::deliver : pawl::shutdown_policy::destroy;
        pawl::make_timer_service<manual_clock>(context, o);
        pawl::make_timer_service(context, o);
        limit.emplace(context);
        const auto strand = asio::make_strand(context);
        auto pair = std::make_shared<connected_pair>(context); // owned by its handler
        auto timer = std::make_shared<pawl::steady_timer>(context, 1h);
        const auto handler = [&](auto keep) {
            return asio::bind_executor(
                strand, [keep, h = counting_handler(handlers)](error_code ec, auto...) { h(ec); });
        };
        auto& socket = pair->here;
        auto& wait = *timer;
        if (own) {
            socket.async_read_some(asio::buffer(byte), pawl::timeout_at(soon(), handler(pair)));
            wait.async_wait(pawl::timeout_at(soon(), handler(timer)));
        } else {
            socket.async_read_some(asio::buffer(byte), pawl::timeout(*limit, 1s, handler(pair)));
            wait.async_wait(pawl::timeout_at(*limit, soon(), handler(timer)));
        }
        pair.reset();
        timer.reset();
        if (when > 0)
            manual_clock::advance(context, 1s); // due
        if (when > 1) {
            context.restart();
            context.poll_one(); // maybe one of them has been signalled
        }
    }
    BOOST_TEST(handlers.live == 0);
    BOOST_TEST(handlers.calls <= 2);
    if (!deliver && when == 0)
        BOOST_TEST(handlers.calls == 0);
}

BOOST_AUTO_TEST_CASE(an_operation_that_is_abandoned_ends_its_limit) {
    for (const bool due : {false, true}) {
        asio::io_context context;
        operation op(context.get_executor());
        handler_log handlers;
        op.async_run(pawl::timeout_at(
            soon(), [h = counting_handler(handlers)](error_code ec, int) { h(ec); }));
        if (due)
            manual_clock::advance(context, 1s);
        op.abandon();
        run_to_end(context);
        BOOST_TEST(handlers.live == 0);
        BOOST_TEST(handlers.calls == 0);
    }
}

// Uses poll(), because run() would wait for a limit that is left behind.
BOOST_FIXTURE_TEST_CASE(P9_an_operation_that_has_ended_leaves_no_limit_behind, tokens) {
    outcome completed;
    outcome abandoned;

    op.async_run(pawl::timeout_at(soon(), record(completed)));
    poll(context);
    BOOST_TEST(!context.stopped());
    op.complete({}, 7);
    poll(context);

    BOOST_TEST(completed.ended_with({}, 7), completed);
    BOOST_TEST(context.stopped());

    op.async_run(pawl::timeout_at(soon(), record(abandoned)));
    poll(context);
    BOOST_TEST(!context.stopped());
    op.abandon();
    poll(context);

    BOOST_TEST(abandoned.pending());
    BOOST_TEST(context.stopped());
}

BOOST_AUTO_TEST_CASE(P9_run_returns_when_the_last_operation_has_completed) {
    for (const bool locking : {true, false}) {
        asio::io_context context(locking ? BOOST_ASIO_CONCURRENCY_HINT_SAFE : 1);
        pawl::options o;
        o.locking = locking;
        pawl::make_timer_service(context, o);
        pawl::steady_timer limit(context);
        outcome a;
        outcome b;
        pawl::steady_timer first(context, 1ms);
        pawl::steady_timer second(context, 2ms);
        first.async_wait(pawl::timeout(24h, record(a)));
        second.async_wait(pawl::timeout(limit, 24h, record(b)));
        run_to_end(context);
        BOOST_TEST(a.ended_with({}), a);
        BOOST_TEST(b.ended_with({}), b);
    }
}

BOOST_AUTO_TEST_CASE(a_handler_that_throws_leaves_nothing_behind) {
    for (const bool late : {false, true}) {
        asio::io_context context;
        operation op(context.get_executor(), obedience::completes_in_the_signal, aborted, 1);
        op.async_run(
            pawl::timeout_at(soon(), [](error_code, int) { throw std::runtime_error("mine"); }));
        if (late) {
            manual_clock::advance(context, 1s);
            BOOST_CHECK_THROW(context.poll(), std::runtime_error);
        } else {
            BOOST_CHECK_THROW(op.complete({}, 1), std::runtime_error);
        }
        poll(context);
        BOOST_TEST(context.stopped());
    }
}

BOOST_AUTO_TEST_CASE(a_handler_may_start_the_next_operation_and_the_stack_does_not_grow) {
    asio::io_context context;
    pawl::steady_timer timer(context);
    int left = 1'000;
    const char* first = nullptr;
    std::ptrdiff_t depth = 0;
    std::function<void()> next = [&] {
        timer.expires_after(0s);
        timer.async_wait(pawl::timeout(left % 3 == 0 ? 0s : 3600s, [&](error_code) {
            // Not the address of a variable: AddressSanitizer moves variables elsewhere.
            const auto* const at = static_cast<const char*>(__builtin_frame_address(0));
            if (!first)
                first = at;
            depth = std::max(depth, std::abs(first - at));
            if (--left > 0)
                next();
        }));
    };
    next();
    run_to_end(context);
    BOOST_TEST(left == 0);
    BOOST_TEST(depth < 64 * 1024);
}

} // namespace
