// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   pawl::group: membership and its duration, the results after a cancellation, groups in groups,
//   waits for the end, and what follows if one of these is destroyed, or memory runs out.

#define BOOST_TEST_MODULE group
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "timeout_support.hpp"

#include "../service/counted_new.hpp"
#include "../support/archetypes.hpp"
#include "../support/graveyard.hpp"

#include <pawl/alarm.hpp>
#include <pawl/expire_all.hpp>
#include <pawl/group.hpp>
#include <pawl/options.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout_stream.hpp>
#include <pawl/timer_service.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prepend.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <array>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using namespace timeouts;
using obedience = operation::obedience;
using pawl::group;
using pawl::in_group;
using pawl_test::allocation_log;

const auto booleans = boost::unit_test::data::make({true, false});

const error_code shutting_down = pawl::error::shutting_down;

/// A member that reacts to a cancellation as the test chooses.
struct member {
    explicit member(asio::io_context& context, obedience obeys = obedience::posts)
        : op(context.get_executor(), obeys, aborted, 3) {}
    void join(group& g) {
        op.async_run(in_group(g, asio::bind_cancellation_slot(outer.slot(), record(o))));
    }
    operation op;
    asio::cancellation_signal outer;
    outcome o;
};

template <class Group>
outcome& drained(Group& g, outcome& o) {
    g.async_drained(record(o));
    return o;
}

/// A handler of a coroutine.
auto tell(error_code& code) {
    return [&code](const std::exception_ptr& e) { code = code_in(e); };
}

struct with_group {
    /// Cancels a group, and runs what follows.
    void cancel(group& which) {
        which.cancel(shutting_down);
        poll(context);
    }
    void cancel() { cancel(g); }

    asio::io_context context;
    group g{context};
    outcome end; ///< of a group
};

/// Operations that may join it.
struct with_members : with_group {
    member a{context};
    member b{context};
    member stubborn{context, obedience::ignores};
    member prompt{context, obedience::completes_in_the_signal};
};

} // namespace

// ---- members ------------------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(members, with_members)

BOOST_AUTO_TEST_CASE(a_member_is_one_until_its_operation_ends) {
    a.join(g);
    b.join(g);
    BOOST_TEST(g.size() == 2U);
    BOOST_CHECK(g.get_executor() == context.get_executor());

    a.op.complete({}, 7);
    BOOST_TEST(g.size() == one);
    b.op.abandon();
    BOOST_TEST(g.size() == none);

    BOOST_TEST(a.o.ended_with({}, 7), a.o);
    BOOST_TEST(b.o.pending());
    g.cancel();
    BOOST_TEST(a.op.signals().empty());
}

BOOST_DATA_TEST_CASE(all_members_are_told_the_cause, booleans, in_the_signal) {
    const obedience obeys = in_the_signal ? obedience::completes_in_the_signal : obedience::posts;
    member first(context, obeys);
    member second(context, obeys);
    first.join(g);
    second.join(g);

    cancel();

    BOOST_TEST(first.o.ended_with(shutting_down, 3), first.o);
    BOOST_TEST(second.o.ended_with(shutting_down, 3), second.o);
    BOOST_TEST(g.cancelled());
    BOOST_TEST(g.cause() == shutting_down);
    BOOST_TEST(g.size() == none);
}

BOOST_DATA_TEST_CASE(a_cause_is_operation_aborted_unless_one_is_given, booleans, success) {
    a.join(g);
    success ? g.cancel(error_code()) : g.cancel();
    poll(context);
    BOOST_TEST(a.o.ended_with(aborted, 3), a.o);
    BOOST_TEST(g.cause() == aborted);
}

BOOST_AUTO_TEST_CASE(the_first_cause_counts) {
    stubborn.join(g);
    g.cancel(shutting_down);
    g.cancel(timed_out);
    poll(context);
    BOOST_TEST(stubborn.op.signals().size() == one);
    BOOST_TEST(g.size() == one); // it ignores the signal
    stubborn.op.complete(aborted, 0);
    BOOST_TEST(stubborn.o.ended_with(shutting_down), stubborn.o);
}

BOOST_AUTO_TEST_CASE(a_result_that_comes_all_the_same_is_kept) {
    stubborn.join(g);
    cancel();
    stubborn.op.complete({}, 7);
    BOOST_TEST(stubborn.o.ended_with({}, 7), stubborn.o);
}

BOOST_AUTO_TEST_CASE(a_caller_that_was_first_is_told_operation_aborted) {
    stubborn.join(g);
    stubborn.outer.emit(cancellation_type::total);
    cancel();
    stubborn.op.complete(aborted, 0);
    BOOST_TEST(stubborn.o.ended_with(aborted), stubborn.o);
}

BOOST_AUTO_TEST_CASE(the_type_of_the_cancellation_is_that_of_the_member) {
    a.op.async_run(in_group(g, cancellation_type::partial, record(a.o)));
    g.cancel();
    poll(context);
    BOOST_TEST((a.op.signals() == std::vector{cancellation_type::partial}));
    BOOST_TEST(a.o.ended_with(aborted));
}

BOOST_DATA_TEST_CASE(an_operation_that_joins_a_cancelled_group_is_cancelled_at_once, booleans,
                     strand) {
    g.cancel(shutting_down);
    operation op(context.get_executor(), obedience::posts, aborted, 3);
    outcome o;
    if (strand)
        op.async_run(in_group(g, asio::bind_executor(asio::make_strand(context), record(o))));
    else
        op.async_run(in_group(g, record(o)));
    BOOST_TEST(op.started() == 1);
    BOOST_TEST(g.size() == one);
    poll(context);
    BOOST_TEST(op.signals().size() == one);
    BOOST_TEST(o.ended_with(shutting_down, 3), o);
    BOOST_TEST(g.size() == none);
}

BOOST_AUTO_TEST_CASE(the_signal_is_emitted_on_the_executor_of_the_member) {
    asio::io_context home;
    operation op(context.get_executor(), obedience::completes_in_the_signal, aborted, 3);
    outcome o;
    op.async_run(in_group(g, asio::bind_executor(home.get_executor(), record(o))));
    cancel();
    BOOST_TEST(op.signals().empty());
    poll(home);
    BOOST_TEST(o.ended_with(shutting_down, 3), o);
}

BOOST_AUTO_TEST_CASE(an_operation_that_ends_before_the_signal_comes_keeps_its_result) {
    a.join(g);
    g.cancel(shutting_down);
    a.op.complete({}, 7);
    BOOST_TEST(g.size() == one);           // its signal is in flight
    BOOST_TEST(context.poll_one() == one); // and brings the result
    BOOST_TEST(a.op.signals().empty());
    BOOST_TEST(a.o.ended_with({}, 7), a.o);
    BOOST_TEST(g.size() == none);
}

BOOST_DATA_TEST_CASE(a_member_goes_together_with_a_limit, booleans* booleans, inside, limit_first) {
    manual_timer timer(context);
    if (inside)
        a.op.async_run(in_group(g, pawl::timeout(timer, 10s, record(a.o))));
    else
        a.op.async_run(pawl::timeout(timer, 10s, in_group(g, record(a.o))));
    limit_first ? pass(context, 10s) : cancel();
    BOOST_TEST(a.o.ended_with(limit_first ? timed_out : shutting_down, 3), a.o);
    BOOST_TEST(g.size() == none);
}

BOOST_AUTO_TEST_CASE(a_coroutine_is_a_member_and_its_exception_says_the_cause) {
    pawl::steady_timer never(context, std::chrono::steady_clock::time_point::max());
    error_code told;
    const auto session = [&]() -> asio::awaitable<void> {
        co_await never.async_wait(asio::use_awaitable);
    };
    asio::co_spawn(context, session(), in_group(g, tell(told)));
    poll(context);
    BOOST_TEST(g.size() == one);
    cancel();
    BOOST_TEST(told == shutting_down);
    BOOST_TEST(g.size() == none);
}

BOOST_AUTO_TEST_CASE(a_coroutine_that_is_awaited_is_a_member_while_it_runs) {
    pawl::steady_timer never(context, std::chrono::steady_clock::time_point::max());
    error_code told;
    bool after = false;
    const auto part = [&]() -> asio::awaitable<void> {
        co_await never.async_wait(asio::use_awaitable);
    };
    const auto session = [&]() -> asio::awaitable<void> {
        try {
            co_await in_group(g, asio::cancellation_type_t::terminal, part());
        } catch (const boost::system::system_error& e) {
            told = e.code();
        }
        co_await asio::post(asio::use_awaitable); // the session itself is not a member
        after = true;
    };
    asio::co_spawn(context, session(), asio::detached);
    poll(context);
    BOOST_TEST(g.size() == one);
    cancel();
    BOOST_TEST(told == shutting_down);
    BOOST_TEST(after);
    BOOST_TEST(g.size() == none);
}

BOOST_AUTO_TEST_CASE(a_coroutine_that_is_awaited_returns_its_result) {
    struct no_default {
        explicit no_default(int n) : value(n) {}
        int value;
    };
    int sum = 0;
    const auto number = []() -> asio::awaitable<std::unique_ptr<int>> {
        co_return std::make_unique<int>(40);
    };
    const auto another = []() -> asio::awaitable<no_default> { co_return no_default(2); };
    const auto session = [&]() -> asio::awaitable<void> {
        const auto n = co_await in_group(g, number());
        const auto m = co_await in_group(g, another());
        sum = *n + m.value;
    };
    asio::co_spawn(context, session(), asio::detached);
    poll(context);
    BOOST_TEST(sum == 42);
    BOOST_TEST(g.size() == none);
}

BOOST_DATA_TEST_CASE(a_coroutine_is_a_member_and_under_a_limit, booleans, limit_first) {
    error_code told;
    const auto part = [&]() -> asio::awaitable<void> {
        co_await a.op.async_run(asio::use_awaitable);
    };
    asio::co_spawn(context, pawl::timeout(1h, in_group(g, part())), tell(told));
    poll(context);
    BOOST_TEST(g.size() == one);
    limit_first ? void(pawl::expire_all(context)) : g.cancel(shutting_down);
    poll(context);
    BOOST_TEST(told == (limit_first ? error_code(pawl::error::timed_out) : shutting_down));
}

BOOST_AUTO_TEST_CASE(an_operation_of_a_coroutine_is_a_member) {
    error_code told;
    const auto session = [&]() -> asio::awaitable<void> {
        co_await a.op.async_run(in_group(g, asio::use_awaitable));
    };
    asio::co_spawn(context, session(), tell(told));
    poll(context);
    cancel();
    BOOST_TEST(told == shutting_down);
}

BOOST_AUTO_TEST_CASE(adapters_around_a_membership_are_told_the_cause) {
    operation op(context.get_executor(), obedience::posts, aborted, 3);
    outcome o;
    error_code redirected;
    const auto check = [&](auto start, error_code told) {
        group in(context);
        o = {};
        start(in);
        poll(context);
        cancel(in);
        BOOST_TEST(o.ended_with(told, 3), o);
        BOOST_TEST(std::exchange(redirected, {}) == (told ? error_code() : shutting_down));
    };
    const auto take = [&](std::tuple<error_code, int> t) { std::apply(record(o), t); };
    const auto take_last = [&](char, error_code ec, int n) { record(o)(ec, n); };
    const auto redirecting = [&](group& in) -> asio::awaitable<int> {
        co_return co_await op.async_run(
            asio::redirect_error(in_group(in, asio::use_awaitable), redirected));
    };
    const auto with_tuple = [&](group& in) -> asio::awaitable<int> {
        const auto [ec, n] = co_await op.async_run(asio::as_tuple(in_group(in)));
        redirected = ec;
        co_return n;
    };

    check([&](group& in) { op.async_run(asio::as_tuple(in_group(in, take))); }, shutting_down);
    check([&](group& in) { op.async_run(asio::prepend(in_group(in, take_last), 'x')); },
          shutting_down);
    check(
        [&](group& in) { op.async_run(asio::redirect_error(in_group(in, record(o)), redirected)); },
        {});
    check([&](group& in) { asio::co_spawn(context, redirecting(in), record(o)); }, {});
    check([&](group& in) { asio::co_spawn(context, with_tuple(in), record(o)); }, {});
}

BOOST_AUTO_TEST_CASE(a_signature_without_an_error_stays_as_it_is) {
    scripted_operation<int> op(context.get_executor(), decltype(op)::obedience::posts, 3);
    outcome o;
    op.async_run(in_group(g, record(o)));
    cancel();
    BOOST_TEST(o.ended_with({}, 3), o);
}

BOOST_AUTO_TEST_CASE(what_is_done_on_a_stream_is_a_member) {
    asio::ip::tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
    pawl::tcp_stream stream(context);
    stream.socket().connect(acceptor.local_endpoint());
    stream.set_limits({.idle = 1h});
    outcome o;
    std::array<char, 1> room;
    stream.async_read_some(asio::buffer(room), in_group(g, record(o)));
    poll(context);
    BOOST_TEST(g.size() == one);
    cancel();
    BOOST_TEST(o.ended_with(shutting_down), o);
    BOOST_TEST(g.size() == none);
    BOOST_TEST(stream.socket().is_open());
}

BOOST_AUTO_TEST_SUITE_END()

// ---- one within the other -------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(within, with_members)

BOOST_AUTO_TEST_CASE(a_handler_of_a_member_may_cancel_the_group) {
    a.join(g);
    b.op.async_run(in_group(g, [&](error_code, int) { g.cancel(shutting_down); }));
    b.op.complete({}, 0);
    poll(context);
    BOOST_TEST(a.o.ended_with(shutting_down, 3), a.o);
}

BOOST_AUTO_TEST_CASE(a_handler_of_a_member_may_destroy_the_group_that_is_being_cancelled) {
    auto owned = std::make_unique<group>(context);
    member other(context, obedience::completes_in_the_signal);
    prompt.op.async_run(in_group(*owned, [&](error_code, int) { owned.reset(); }));
    other.join(*owned);
    asio::post(context, [&] { owned->cancel(shutting_down); });
    poll(context);
    BOOST_TEST(!owned);
    BOOST_TEST(other.o.ended_with(shutting_down, 3), other.o);
}

BOOST_AUTO_TEST_CASE(
    a_handler_of_a_member_may_destroy_all_groups_in_the_one_that_is_being_cancelled) {
    group outer(context);
    auto first = std::make_unique<group>(outer);
    auto second = std::make_unique<group>(outer);
    prompt.op.async_run(in_group(*first, [&](error_code, int) {
        first.reset();
        second.reset();
    }));
    asio::post(context, [&] { outer.cancel(shutting_down); });
    poll(context);
    BOOST_TEST(!first);
    BOOST_TEST(outer.cause() == shutting_down);
}

BOOST_AUTO_TEST_CASE(
    an_operation_that_starts_another_one_in_a_cancelled_group_does_not_hold_up_the_cancel) {
    prompt.op.async_run(in_group(g, [&](error_code, int) { b.join(g); }));
    asio::post(context, [&] { g.cancel(shutting_down); });
    poll(context);
    BOOST_TEST(b.o.ended_with(shutting_down, 3), b.o);
    BOOST_TEST(g.size() == none);
}

BOOST_AUTO_TEST_CASE(
    an_operation_that_throws_when_it_is_cancelled_does_not_keep_others_from_being_cancelled) {
    a.join(g);
    b.join(g);
    struct bad {};
    a.op.at_signal = [] { throw bad(); };
    asio::post(context, [&] { g.cancel(shutting_down); });
    BOOST_CHECK_THROW(poll(context), bad); // an io_context lets exceptions out of run()
    poll(context);
    BOOST_TEST(b.o.ended_with(shutting_down, 3), b.o);
    BOOST_TEST(a.o.pending());
    a.op.complete({}, 7);
    BOOST_TEST(a.o.ended_with({}, 7), a.o);
}

BOOST_AUTO_TEST_CASE(an_initiating_function_that_throws_leaves_no_member) {
    struct bad {};
    a.op.at_start = [&] {
        a.op.abandon();
        throw bad();
    };
    BOOST_CHECK_THROW(a.join(g), bad);
    BOOST_TEST(g.size() == none);
    g.cancel();
}

BOOST_AUTO_TEST_CASE(an_operation_that_completes_in_the_signal_ends_within_it) {
    prompt.join(g);
    prompt.outer.emit(cancellation_type::terminal);
    BOOST_TEST(prompt.o.ended_with(aborted, 3), prompt.o);

    member other(context, obedience::completes_in_the_signal);
    other.join(g);
    g.cancel(shutting_down);
    context.restart();
    BOOST_TEST(context.poll_one() == one);
    BOOST_TEST(other.o.ended_with(shutting_down, 3), other.o);
}

BOOST_AUTO_TEST_CASE(an_operation_that_completes_in_a_signal_that_throws_ends_within_it) {
    struct bad {};
    a.op.at_signal = [&] {
        a.op.complete({}, 7);
        throw bad();
    };
    a.join(g);
    BOOST_CHECK_THROW(a.outer.emit(cancellation_type::terminal), bad);
    BOOST_TEST(a.o.ended_with({}, 7), a.o);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- destruction ----------------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(destruction, with_members)

BOOST_AUTO_TEST_CASE(a_group_that_is_destroyed_cancels_its_members) {
    {
        group doomed(context);
        a.join(doomed);
        drained(doomed, end);
    }
    BOOST_TEST(end.pending());
    poll(context);
    BOOST_TEST(a.o.ended_with(aborted, 3), a.o);
    BOOST_TEST(end.ended_with({}), end);
}

BOOST_AUTO_TEST_CASE(a_signal_that_goes_with_its_context_keeps_no_group) {
    const auto run = [] {
        asio::io_context doomed;
        group its_group(doomed);
        pawl::steady_timer timer(doomed, 1h);
        timer.async_wait(in_group(its_group, [](error_code) { BOOST_ERROR("invoked"); }));
        its_group.cancel();
    };
    run(); // the thread keeps some blocks for the next run
    const std::size_t before = counted_new::live;
    run();
    BOOST_TEST(counted_new::live == before);
}

BOOST_AUTO_TEST_CASE(P10_members_and_waits_go_with_their_context) {
    std::optional<group> kept;
    auto alive = std::make_shared<int>();
    {
        asio::io_context doomed;
        kept.emplace(doomed);
        pawl::steady_timer timer(doomed, 1h);
        timer.async_wait(in_group(*kept, [alive](error_code) { BOOST_ERROR("invoked"); }));
        kept->async_drained([alive](error_code) { BOOST_ERROR("invoked"); });
        BOOST_TEST(alive.use_count() == 3);
        // Its signal is in flight to an executor that no longer runs.
        kept->cancel();
    }
    BOOST_TEST(alive.use_count() == 1);
    BOOST_TEST(kept->size() == none);
}

BOOST_AUTO_TEST_SUITE_END()

/// An allocator that shows how often it is kept, as in copies of an executor.
template <class T>
struct shared_allocator {
    using value_type = T;
    explicit shared_allocator(std::shared_ptr<int> o) noexcept : owner(std::move(o)) {}
    template <class U>
    shared_allocator(const shared_allocator<U>& other) noexcept : owner(other.owner) {}
    T* allocate(std::size_t n) { return std::allocator<T>().allocate(n); }
    void deallocate(T* p, std::size_t n) noexcept { std::allocator<T>().deallocate(p, n); }
    template <class U>
    bool operator==(const shared_allocator<U>&) const noexcept {
        return true;
    }
    std::shared_ptr<int> owner;
};

BOOST_AUTO_TEST_CASE(P10_a_wait_goes_with_its_context_though_a_member_has_another_one) {
    const auto token = std::make_shared<int>();
    asio::io_context of_the_member;
    member m(of_the_member);
    long before = 0;
    {
        asio::io_context context;
        const shared_allocator<std::byte> allocator(token);
        group g(asio::require(context.get_executor(), asio::execution::allocator(allocator)));
        m.join(g);
        before = token.use_count();
        g.async_drained([](error_code) { BOOST_ERROR("invoked"); });
        BOOST_TEST(token.use_count() > before);
    }
    BOOST_TEST(token.use_count() < before); // the group's state lives on with its member
    BOOST_TEST(m.o.pending());
    poll(of_the_member);
    BOOST_TEST(m.o.ended_with(aborted, 3), m.o);
    BOOST_TEST(token.use_count() == 1);
}

// Regression: it waited again, in a context that had ended, and went without a word.
BOOST_AUTO_TEST_CASE(P10_under_the_deliver_policy_a_wait_is_told_of_the_end_of_its_context) {
    asio::io_context of_the_member;
    member m(of_the_member);
    outcome told;
    {
        asio::io_context context;
        pawl::options o;
        o.on_shutdown = pawl::shutdown_policy::deliver;
        pawl::make_timer_service(context, o);
        group g(context);
        m.join(g);
        BOOST_TEST(drained(g, told).pending());
    }
    BOOST_TEST(told.ended_with(aborted), told);
    poll(of_the_member);
    BOOST_TEST(m.o.ended_with(aborted, 3), m.o);
}

// ---- groups in groups -----------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(nested, with_members)

BOOST_AUTO_TEST_CASE(a_cancellation_goes_inwards_and_not_outwards) {
    group outer(context);
    group inner(outer);
    group innermost(inner);
    member c(context);
    a.join(outer);
    b.join(inner);
    c.join(innermost);
    BOOST_TEST(outer.size() == 2U);

    inner.cancel(timed_out);
    poll(context);
    BOOST_TEST(a.o.pending());
    BOOST_TEST(b.o.ended_with(timed_out, 3), b.o);
    BOOST_TEST(c.o.ended_with(timed_out, 3), c.o);
    BOOST_TEST(outer.size() == one);

    cancel(outer);
    BOOST_TEST(a.o.ended_with(shutting_down, 3), a.o);
    BOOST_TEST(innermost.cause() == timed_out);
}

BOOST_AUTO_TEST_CASE(P3_an_inner_group_gets_the_first_cause_though_a_member_cancels_again) {
    group outer(context);
    group inner(outer);
    member m(context);
    m.join(inner);
    const auto token = in_group(outer, [](error_code) {});
    asio::async_initiate<decltype(token), void(error_code)>(
        [&](auto handler) {
            auto kept = std::make_shared<decltype(handler)>(std::move(handler));
            kept->get_cancellation_slot().assign([&, kept](asio::cancellation_type) {
                outer.cancel(timed_out);
                asio::post(context, [kept] { std::move (*kept)(error_code(aborted)); });
            });
        },
        token);
    asio::post(context, [&] { outer.cancel(shutting_down); }); // the signal comes within the call
    context.run();
    BOOST_TEST(inner.cause() == error_code(shutting_down));
    BOOST_TEST(m.o.ended_with(shutting_down, 3), m.o);
}

BOOST_AUTO_TEST_CASE(a_group_in_a_cancelled_one_is_cancelled) {
    group outer(context);
    outer.cancel(shutting_down);
    group inner(outer);
    BOOST_TEST(inner.cancelled());
    BOOST_TEST(inner.cause() == shutting_down);
    a.join(inner);
    poll(context);
    BOOST_TEST(a.o.ended_with(shutting_down, 3), a.o);
}

BOOST_AUTO_TEST_CASE(groups_go_in_any_order_and_leave_no_memory_behind) {
    const auto run = [](bool outer_first) {
        asio::io_context doomed;
        auto outer = std::make_unique<group>(doomed);
        auto inner = std::make_unique<group>(*outer);
        member joined(doomed);
        outcome told;
        joined.join(*inner);
        drained(*outer, told);
        (outer_first ? outer : inner).reset();
        poll(doomed);
        BOOST_TEST(joined.o.ended_with(aborted, 3), joined.o);
        BOOST_TEST(told.ended_with({}), told);
        BOOST_TEST((outer_first ? inner->cancelled() : !outer->cancelled()));
    };
    for (const bool outer_first : {true, false}) {
        run(outer_first); // the thread keeps some blocks for the next run
        const std::size_t before = counted_new::live;
        run(outer_first);
        BOOST_TEST(counted_new::live == before);
    }
}

/// outer > middles[0..2] > inner, with members in inner, and in one of the middle ones.
struct three_levels : with_members {
    three_levels() {
        for (auto& m : middles)
            m = std::make_unique<group>(*outer);
        inner = std::make_unique<group>(*middles[1]);
    }

    std::unique_ptr<group> outer = std::make_unique<group>(context);
    std::array<std::unique_ptr<group>, 3> middles;
    std::unique_ptr<group> inner;
};

BOOST_FIXTURE_TEST_CASE(an_inner_group_is_one_member_from_its_first_to_its_last_one, three_levels) {
    const auto sizes_are = [this](std::size_t o, std::size_t m, std::size_t i) {
        BOOST_TEST(outer->size() == o);
        BOOST_TEST(middles[1]->size() == m);
        BOOST_TEST(inner->size() == i);
    };
    sizes_are(0, 0, 0);
    for (int round = 0; round < 2; ++round) { // the second time after it was empty
        a.join(*inner);
        sizes_are(1, 1, 1);
        b.join(*inner);
        sizes_are(1, 1, 2);
        drained(*outer, end = {});
        a.op.complete({}, 0);
        sizes_are(1, 1, 1);
        poll(context);
        BOOST_TEST(end.pending());
        b.op.complete({}, 0);
        sizes_are(0, 0, 0);
        poll(context);
        BOOST_TEST(end.ended_with({}), end);
    }
    b.join(*middles[2]);
    a.join(*inner);
    sizes_are(2, 1, 1);
    a.op.complete({}, 0);
    sizes_are(1, 0, 0);
    b.op.complete({}, 0);
    sizes_are(0, 0, 0);
}

BOOST_FIXTURE_TEST_CASE(a_cancellation_reaches_each_group_on_each_level, three_levels) {
    a.join(*inner);
    b.join(*middles[2]);

    cancel(*outer);

    for (const auto& m : middles) {
        BOOST_TEST(m->cancelled());
        BOOST_TEST(m->cause() == shutting_down);
    }
    BOOST_TEST(inner->cause() == shutting_down);
    BOOST_TEST(a.o.ended_with(shutting_down, 3), a.o);
    BOOST_TEST(b.o.ended_with(shutting_down, 3), b.o);
}

/// While the outer group is being cancelled, a handler leaves and makes groups in it.
BOOST_FIXTURE_TEST_CASE(a_group_that_is_made_or_destroyed_during_a_cancellation, three_levels) {
    std::unique_ptr<group> made;
    member last(context);
    a.op.at_signal = [&] {
        middles[0].reset(); // in front of those to come, and behind
        middles[2].reset();
        made = std::make_unique<group>(*outer);
        last.join(*made);
    };
    a.join(*outer);
    b.join(*middles[2]);

    asio::post(context, [&] { outer->cancel(shutting_down); });
    poll(context);

    BOOST_TEST(a.o.ended_with(shutting_down, 3), a.o);
    BOOST_TEST(b.o.ended_with(aborted, 3), b.o); // its own group was first
    BOOST_TEST(last.o.ended_with(shutting_down, 3), last.o);
    BOOST_TEST(made->cause() == shutting_down);
    BOOST_TEST(inner->cause() == shutting_down);
    BOOST_TEST(outer->size() == none);
}

BOOST_FIXTURE_TEST_CASE(a_middle_group_that_is_destroyed_keeps_its_place_until_its_members_end,
                        three_levels) {
    stubborn.join(*inner);
    drained(*outer, end);

    middles[1].reset();
    poll(context);
    BOOST_TEST(inner->cancelled());
    BOOST_TEST(!outer->cancelled());
    BOOST_TEST(outer->size() == one);
    inner.reset();
    cancel(*outer);
    BOOST_TEST(stubborn.op.signals().size() == one);
    BOOST_TEST(end.pending());

    stubborn.op.complete({}, 7);
    poll(context);
    BOOST_TEST(stubborn.o.ended_with({}, 7), stubborn.o);
    BOOST_TEST(end.ended_with({}), end);
    BOOST_TEST(outer->size() == none);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- waits for the end ----------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(waits, with_members)

BOOST_AUTO_TEST_CASE(a_wait_ends_with_the_last_member) {
    group outer(context);
    group inner(outer);
    outcome all;
    outcome some;
    a.join(outer);
    b.join(inner);
    drained(outer, all);
    drained(inner, some);

    a.op.complete({}, 0);
    poll(context);
    BOOST_TEST(all.pending());
    b.op.complete({}, 0);
    BOOST_TEST(all.pending()); // not within the call
    poll(context);
    BOOST_TEST(all.ended_with({}), all);
    BOOST_TEST(some.ended_with({}), some);
    BOOST_TEST(context.stopped());
}

BOOST_AUTO_TEST_CASE(a_wait_for_the_end_of_an_empty_group_ends_but_not_within_the_call) {
    drained(g, end);
    BOOST_TEST(end.pending());
    poll(context);
    BOOST_TEST(end.ended_with({}), end);
}

BOOST_AUTO_TEST_CASE(P9_a_wait_keeps_its_context_at_work) {
    asio::io_context elsewhere;
    member far(elsewhere);
    far.join(g);
    drained(g, end);
    poll(context);
    BOOST_TEST(!context.stopped());
    far.op.complete({}, 0);
    run_to_end(context);
    BOOST_TEST(end.ended_with({}), end);
}

BOOST_AUTO_TEST_CASE(a_wait_can_be_cancelled) {
    a.join(g);
    asio::cancellation_signal stop;
    g.async_drained(asio::bind_cancellation_slot(stop.slot(), record(end)));
    stop.emit(cancellation_type::none);
    poll(context);
    BOOST_TEST(end.pending());
    stop.emit(cancellation_type::total);
    poll(context);
    BOOST_TEST(end.ended_with(aborted), end);
    a.op.complete({}, 0);
    stop.emit(cancellation_type::total); // too late
    poll(context);
    BOOST_TEST(end.calls == 1);
}

/// Calls a function, once, when memory is requested, which happens in the middle of async_wait().
template <class T>
struct hooked_allocator {
    using value_type = T;

    explicit hooked_allocator(std::function<void()>& f) noexcept : hook(&f) {}
    template <class U>
    hooked_allocator(const hooked_allocator<U>& other) noexcept : hook(other.hook) {}

    T* allocate(std::size_t n) {
        if (const auto f = std::exchange(*hook, nullptr))
            f();
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* p, std::size_t n) noexcept { std::allocator<T>().deallocate(p, n); }
    friend bool operator==(const hooked_allocator&, const hooked_allocator&) = default;

    std::function<void()>* hook;
};

BOOST_DATA_TEST_CASE(what_ends_a_wait_may_come_while_the_wait_is_being_started, booleans, emits) {
    a.join(g);
    asio::cancellation_signal stop;
    std::function<void()> at_allocation;
    const auto wait = [&] {
        g.async_drained(
            asio::bind_allocator(hooked_allocator<char>(at_allocation),
                                 asio::bind_cancellation_slot(stop.slot(), record(end))));
    };
    if (emits) { // the slot is filled, and the timer does not wait yet
        at_allocation = [&] { stop.emit(cancellation_type::total); };
        wait();
    } else { // it waits again
        wait();
        pawl::expire_all(context);
        at_allocation = [&] { a.op.complete({}, 0); };
    }
    poll(context);
    BOOST_TEST(end.ended_with(emits ? aborted : error_code()), end);
    if (emits)
        a.op.complete({}, 0);
}

/// Starts a wait while its context is being destroyed: the wait is destroyed within the call.
struct waits_at_the_end {
    waits_at_the_end(asio::io_context& context, outcome& o) : end(&o), g(context), a(context) {
        a.join(g);
    }
    waits_at_the_end& operator=(waits_at_the_end&&) = delete;
    ~waits_at_the_end() {
        allocation_log blocks;
        g.async_drained(
            asio::bind_allocator(pawl_test::counting_allocator<char>(blocks), record(*end)));
        BOOST_TEST(blocks.allocations != none);
        BOOST_TEST(blocks.live() == none);
        a.op.abandon();
    }

    outcome* end;
    group g;
    member a;
};

BOOST_AUTO_TEST_CASE(P10_a_wait_that_is_destroyed_within_its_start_is_forgotten) {
    outcome told;
    {
        asio::io_context doomed;
        pawl::steady_timer of_a_wait(doomed); // whose service is shut down first
        asio::post(doomed, [w = std::make_unique<waits_at_the_end>(doomed, told)] {});
    }
    BOOST_TEST(told.pending());
}

BOOST_AUTO_TEST_CASE(expire_all_and_cancel_all_do_not_end_a_wait) {
    a.join(g);
    drained(g, end);
    pawl::expire_all(context, shutting_down);
    poll(context);
    pawl::expire_all(context);
    poll(context);
    pawl::cancel_all(context);
    poll(context);
    BOOST_TEST(end.pending());
    BOOST_TEST(a.op.signals().empty()); // membership is not a limit

    pawl::cancel_all(context); // also while its handler is queued
    a.op.complete({}, 0);
    poll(context);
    BOOST_TEST(end.ended_with({}), end);
}

BOOST_AUTO_TEST_CASE(a_wait_goes_together_with_a_limit) {
    a.join(g);
    manual_timer timer(context);
    g.async_drained(pawl::timeout(timer, 10s, record(end)));
    pass(context, 10s);
    BOOST_TEST(end.ended_with(timed_out), end);
    a.op.complete({}, 0);
}

BOOST_AUTO_TEST_CASE(a_coroutine_waits_for_the_end) {
    a.join(g);
    bool ended = false;
    const auto main = [&]() -> asio::awaitable<void> {
        g.cancel(shutting_down);
        co_await g.async_drained(asio::use_awaitable);
        BOOST_TEST(a.o.ended_with(shutting_down, 3), a.o);
        ended = true;
    };
    asio::co_spawn(context, main(), asio::detached);
    poll(context);
    BOOST_TEST(ended);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- memory ---------------------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(memory, with_group)

namespace group_test {

/// An executor that has no memory when the test chooses, and otherwise passes functions on.
class poor_executor {
public:
    poor_executor(asio::io_context& context, bool& poor) : context_(&context), poor_(&poor) {}

    asio::execution_context& query(asio::execution::context_t) const noexcept { return *context_; }
    static constexpr asio::execution::blocking_t::never_t
    query(asio::execution::blocking_t) noexcept {
        return asio::execution::blocking.never;
    }
    template <class Function>
    void execute(Function f) const {
        if (*poor_)
            throw std::bad_alloc();
        context_->get_executor().execute(std::move(f));
    }
    friend bool operator==(const poor_executor&, const poor_executor&) noexcept = default;

private:
    asio::io_context* context_;
    bool* poor_;
};

} // namespace group_test

using group_test::poor_executor;

BOOST_AUTO_TEST_CASE(P8_a_member_takes_one_block_which_is_freed_before_its_handler_is_invoked) {
    pawl_test::graveyard memory;
    operation op(context.get_executor(), obedience::completes_in_the_signal, aborted, 3);
    std::size_t buried = 0;
    op.async_run(
        in_group(g, asio::bind_allocator(pawl_test::graveyard_allocator<void>(memory),
                                         [&](error_code, int) { buried = memory.buried(); })));
    BOOST_TEST(memory.allocations() == one);
    op.complete({}, 7);
    BOOST_TEST(buried == one);
    BOOST_TEST(memory.undisturbed());
}

BOOST_AUTO_TEST_CASE(P8_a_wait_for_the_end_frees_its_block_before_its_handler_is_invoked) {
    pawl_test::graveyard memory;
    asio::cancellation_signal stop; // its slot stays filled
    std::size_t buried = 0;
    g.async_drained(asio::bind_allocator(
        pawl_test::graveyard_allocator<void>(memory),
        asio::bind_cancellation_slot(stop.slot(), [&](error_code) { buried = memory.buried(); })));
    BOOST_TEST(memory.allocations() == one);
    context.run();
    BOOST_TEST(buried == one);
    BOOST_TEST(memory.undisturbed());
}

BOOST_AUTO_TEST_CASE(P8_a_member_for_which_there_was_no_memory_is_cancelled_by_the_next_call) {
    bool poor = true;
    member rich(context);
    member last(context);
    operation op(context.get_executor(), obedience::posts, aborted, 3);
    outcome o;
    rich.join(g);
    op.async_run(in_group(g, asio::bind_executor(poor_executor(context, poor), record(o))));
    last.join(g);

    BOOST_CHECK_THROW(g.cancel(shutting_down), std::bad_alloc);
    poll(context);
    BOOST_TEST(rich.o.ended_with(shutting_down, 3), rich.o);
    BOOST_TEST(last.o.ended_with(shutting_down, 3), last.o);
    BOOST_TEST(op.signals().empty());
    BOOST_TEST(g.size() == one);

    poor = false;
    g.cancel(timed_out);
    poll(context);
    BOOST_TEST(o.ended_with(shutting_down, 3), o);
    BOOST_TEST(g.size() == none);
}

/// A handler whose cancellation slot has no memory.
struct poorly_slotted {
    struct cancellation_slot_type {
        [[nodiscard]] bool is_connected() const noexcept { return true; }
        [[nodiscard]] bool has_handler() const noexcept { return false; }
        template <class Handler, class... Args>
        Handler& emplace(Args&&...) {
            throw std::bad_alloc();
        }
        void clear() noexcept {}
        bool operator==(const cancellation_slot_type&) const = default;
    };
    [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept { return {}; }
    void operator()(error_code, int) const {}
};

BOOST_AUTO_TEST_CASE(P8_an_operation_whose_slot_has_no_memory_does_not_join) {
    member other(context);
    other.join(g);
    operation op(context.get_executor(), obedience::posts, aborted, 3);
    BOOST_CHECK_THROW(op.async_run(in_group(g, poorly_slotted())), std::bad_alloc);
    BOOST_TEST(g.size() == one);
    cancel();
    BOOST_TEST(other.o.ended_with(shutting_down, 3), other.o);
    BOOST_TEST(g.size() == none);
}

BOOST_AUTO_TEST_CASE(
    P8_an_operation_that_cannot_join_a_cancelled_group_for_want_of_memory_is_not_started) {
    bool poor = true;
    g.cancel(shutting_down);
    operation op(context.get_executor(), obedience::posts, aborted, 3);
    outcome o;
    BOOST_CHECK_THROW(
        op.async_run(in_group(g, asio::bind_executor(poor_executor(context, poor), record(o)))),
        std::bad_alloc);
    BOOST_TEST(op.started() == 0);
    BOOST_TEST(o.pending());
    BOOST_TEST(g.size() == none);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- alarms -------------------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(alarms, with_group)

namespace {

using function = std::function<void()>;
using alarm_in_group = pawl::manual_alarm<pawl::grouped<function>>;

void check_barred(auto& alarm, asio::io_context& context, const int& calls) {
    const int before = calls;
    const auto expiry = alarm.expiry();
    BOOST_TEST(!alarm.armed());
    alarm.arm_after(0s);
    BOOST_TEST(!alarm.armed());
    BOOST_CHECK(alarm.expiry() == expiry);
    pass(context, 2h);
    BOOST_TEST(calls == before);
    BOOST_TEST(context.stopped()); // P9
}

} // namespace

BOOST_AUTO_TEST_CASE(an_alarm_is_a_member_until_it_is_destroyed) {
    int calls = 0;
    {
        std::optional<alarm_in_group> a(std::in_place, context,
                                        in_group(g, function([&] { ++calls; })));
        pawl::manual_alarm b(context, in_group(g, [&](error_code ec) { calls += !ec; }));
        BOOST_TEST(g.size() == 2U);
        a->arm_after(1s);
        b.arm_after(1s);
        pass(context, 1s);
        BOOST_TEST(calls == 2);
        BOOST_TEST(g.size() == 2U);

        alarm_in_group moved(std::move(*a));
        a.reset();
        BOOST_TEST(g.size() == 2U);
        moved = alarm_in_group(context, in_group(g, function([] {})));
        BOOST_TEST(g.size() == 2U);
    }
    BOOST_TEST(g.size() == none);
}

BOOST_AUTO_TEST_CASE(an_alarm_goes_in_its_own_function_and_leaves_its_group) {
    std::size_t members = 7;
    std::optional<alarm_in_group> a;
    a.emplace(context, in_group(g, function([&] {
                                    a.reset();
                                    members = g.size();
                                })));
    a->arm_after(0s);
    pass(context, 0s);
    BOOST_TEST(members == none);
}

BOOST_DATA_TEST_CASE(a_cancelled_group_disarms_its_alarms_for_ever, booleans, with_cause) {
    outcome o;
    int calls = 0;
    pawl::manual_alarm idle(context, in_group(g, [&] { ++calls; }));
    pawl::manual_alarm armed(context, in_group(g, [&] { ++calls; }));
    pawl::manual_alarm disarmed(context, in_group(g, [&] { ++calls; }));
    pawl::manual_alarm told(context, in_group(g, [&](error_code) { ++calls; }));
    pawl::manual_alarm due(context, in_group(g, [&] { ++calls; }));
    pawl::manual_alarm sent(asio::make_strand(context), in_group(g, [&] { ++calls; }));
    pawl::manual_alarm other(context, [&] { ++calls; });
    armed.arm_after(1h);
    disarmed.arm_after(1h);
    BOOST_TEST(disarmed.disarm());
    auto moved = std::move(disarmed);
    told.arm_after(1h);
    other.arm_after(1h);
    due.arm_after(0s);
    sent.arm_after(0s);
    manual_clock::advance(context, 0s); // these two are due, and have not begun

    with_cause ? g.cancel(shutting_down) : g.cancel();
    BOOST_TEST(g.size() == none);
    poll(context);
    BOOST_TEST(drained(g, o).pending());
    poll(context);
    BOOST_TEST(o.ended_with({}), o);
    BOOST_TEST(calls == 0);
    BOOST_TEST(other.armed());
    BOOST_TEST(other.disarm());

    check_barred(idle, context, calls);
    check_barred(armed, context, calls);
    check_barred(moved, context, calls);
    check_barred(told, context, calls);
    check_barred(due, context, calls);
    check_barred(sent, context, calls);
    g.cancel();
}

BOOST_AUTO_TEST_CASE(an_alarm_that_was_sent_to_its_executor_finds_its_group_cancelled) {
    asio::io_context other;
    int calls = 0;
    pawl::manual_alarm a(context,
                         in_group(g, asio::bind_executor(other.get_executor(), [&] { ++calls; })));
    a.arm_after(0s);
    pass(context, 0s);
    g.cancel();
    poll(other);
    BOOST_TEST(calls == 0);
    check_barred(a, context, calls);
}

BOOST_AUTO_TEST_CASE(an_alarm_of_a_group_that_is_cancelled_or_gone_is_not_armed) {
    int calls = 0;
    auto owned = std::make_unique<group>(context);
    auto inner = std::make_unique<group>(*owned);
    pawl::manual_alarm a(context, in_group(*inner, [&] { ++calls; }));
    pawl::manual_alarm b(context, in_group(*owned, [&] { ++calls; }));
    a.arm_after(1h);
    BOOST_TEST(owned->size() == 2U);
    inner.reset();
    BOOST_TEST(owned->size() == one);
    check_barred(a, context, calls);
    context.restart();
    b.arm_after(1h);
    BOOST_TEST(b.armed());
    owned->cancel();
    check_barred(b, context, calls);
    pawl::manual_alarm late(context, in_group(*owned, [&] { ++calls; }));
    check_barred(late, context, calls);
    BOOST_TEST(owned->size() == none);
}

BOOST_AUTO_TEST_CASE(the_function_of_an_alarm_may_cancel_and_destroy_its_group) {
    auto owned = std::make_unique<group>(context);
    int calls = 0;
    pawl::manual_alarm a(context, in_group(*owned, [&] {
                             ++calls;
                             owned->cancel();
                             BOOST_TEST(owned->size() == none);
                             owned.reset();
                         }));
    a.arm_after(0s);
    pass(context, 0s);
    BOOST_TEST(calls == 1);
    check_barred(a, context, calls);
}

BOOST_AUTO_TEST_CASE(P10_an_alarm_outlives_its_context_and_leaves_its_group) {
    std::optional<asio::io_context> doomed(std::in_place);
    pawl::manual_alarm kept(*doomed, in_group(g, [] {}));
    {
        pawl::manual_alarm gone(*doomed, in_group(g, [] {}));
        kept.arm_after(1h);
        gone.arm_after(1h);
        doomed.reset();
        BOOST_TEST(g.size() == 2U);
    }
    BOOST_TEST(g.size() == one);
    g.cancel();
    BOOST_TEST(g.size() == none);
}

BOOST_AUTO_TEST_CASE(P8_an_alarm_joins_its_group_or_not_and_leaves_it_without_memory) {
    bool made = false;
    for (long n = 0; !made; ++n) {
        BOOST_REQUIRE_LT(n, 100);
        asio::io_context doomed;
        group its_group(doomed);
        int calls = 0;
        std::optional<pawl::manual_alarm<pawl::grouped<function>>> a;
        function f = [&] { ++calls; };
        counted_new::fuse = n;
        try {
            a.emplace(doomed, in_group(its_group, std::move(f)));
            counted_new::fuse = 0;
            a->arm_after(1h);
            its_group.cancel();
            made = counted_new::fuse.exchange(counted_new::never) == 0;
            BOOST_TEST(made); // none was asked for
            BOOST_TEST(!a->armed());
        } catch (const std::bad_alloc&) {
            counted_new::fuse = counted_new::never;
        }
        BOOST_TEST(its_group.size() == none);
    }
}

BOOST_AUTO_TEST_CASE(a_wait_for_the_end_of_a_group_is_refused_beyond_max_pending) {
    pawl::options most;
    most.max_pending = 1;
    pawl::make_timer_service(context, most);
    member m(context);
    m.join(g); // membership is no wait
    outcome first;
    outcome second;
    drained(g, first);
    drained(g, second);
    poll(context);
    BOOST_TEST(first.pending());
    BOOST_TEST(second.ended_with(asio::error::no_buffer_space), second);
    m.op.complete({}, 7);
    poll(context);
    BOOST_TEST(first.ended_with({}), first);
    outcome third;
    drained(g, third);
    poll(context);
    BOOST_TEST(third.ended_with({}), third);
}

BOOST_AUTO_TEST_SUITE_END()
