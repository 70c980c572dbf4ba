// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Pawl's timers, limits and groups beside what programs build from Asio: type-erased handlers, operations by
//   co_composed, promises, channels.

#define BOOST_TEST_MODULE composed_kinds
#include <boost/test/unit_test.hpp>

#include "timeout_support.hpp"

#include <pawl/group.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/co_composed.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/experimental/promise.hpp>
#include <boost/asio/experimental/use_promise.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <functional>
#include <utility>
#include <vector>

// Asio's co_composed takes the memory of a coroutine from the allocator of its handler.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace {

using namespace timeouts;
using obedience = operation::obedience;

// ---- type-erased handlers --------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_type_erased_handler_is_called_by_each_way_to_wait) {
    asio::io_context context;
    manual_timer timer(context, 1s), endless(context, manual_clock::time_point::max());
    pawl::group group(context);
    const auto erased = [](outcome& o) {
        return asio::any_completion_handler<void(error_code)>(record(o));
    };

    outcome waits, limited, member, drained;
    timer.async_wait(erased(waits));
    endless.async_wait(pawl::timeout_at(manual_clock::now() + 1s, erased(limited)));
    endless.async_wait(pawl::in_group(group, erased(member)));
    group.async_drained(erased(drained));
    pass(context, 1s);
    BOOST_TEST(waits.ended_with({}), waits);
    BOOST_TEST(limited.ended_with(timed_out), limited);
    BOOST_TEST(member.pending(), member);

    group.cancel();
    poll(context);
    BOOST_TEST(member.ended_with(aborted), member);
    BOOST_TEST(drained.ended_with({}), drained);
}

// ---- operations by co_composed -----------------------------------------------------------------------

/// Waits three times; the result is the number of waits that were not over.
template <class Token>
auto async_three_waits(manual_timer& timer, Token&& token) {
    return asio::async_initiate<Token, void(error_code, int)>(
        asio::experimental::co_composed<void(error_code, int)>(
            [](auto state, manual_timer& t) -> void {
                state.reset_cancellation_state(asio::enable_total_cancellation());
                state.throw_if_cancelled(false);
                for (int left = 3; left != 0; --left) {
                    t.expires_after(1s);
                    const auto [ec] = co_await t.async_wait(asio::as_tuple(asio::deferred));
                    if (ec)
                        co_return {ec, left};
                }
                co_return {error_code(), 0};
            },
            timer),
        token, std::ref(timer));
}

BOOST_AUTO_TEST_CASE(a_limit_ends_a_co_composed_operation_in_whatever_step_it_is) {
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

BOOST_AUTO_TEST_CASE(a_co_composed_operation_is_cancelled_through_its_slot_and_by_a_group) {
    asio::io_context context;
    manual_timer timer(context);
    asio::cancellation_signal signal;
    outcome by_slot, by_group;

    async_three_waits(timer, asio::bind_cancellation_slot(signal.slot(), record(by_slot)));
    pass(context, 1s);
    signal.emit(cancellation_type::total);
    poll(context);
    BOOST_TEST(by_slot.ended_with(aborted, 2), by_slot);

    pawl::group group(context);
    async_three_waits(timer, pawl::in_group(group, record(by_group)));
    pass(context, 2s);
    group.cancel();
    poll(context);
    BOOST_TEST(by_group.ended_with(aborted, 2), by_group);
    BOOST_TEST(context.stopped());
}

BOOST_AUTO_TEST_CASE(a_step_of_a_co_composed_operation_has_a_limit_of_its_own) {
    asio::io_context context;
    operation op(context.get_executor(), obedience::posts, aborted, 5);
    outcome o;
    auto initiation = asio::experimental::co_composed<void(error_code, int)>(
        [](auto, operation& first) -> void {
            const auto [ec, n] = co_await first.async_run(
                pawl::timeout_at(manual_clock::now() + 1s, asio::as_tuple(asio::deferred)));
            co_return {ec, n};
        },
        context);
    recorder handler(o);
    asio::async_initiate<recorder, void(error_code, int)>(std::move(initiation), handler,
                                                          std::ref(op));
    pass(context, 1s);
    BOOST_TEST(o.ended_with(timed_out, 5), o);
}

// ---- promises ------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_promise_waits_is_cancelled_and_cancels_when_it_is_dropped) {
    asio::io_context context;
    manual_timer timer(context, 1s);
    outcome kept, ended;

    auto promise = timer.async_wait(asio::experimental::use_promise);
    pass(context, 1s); // it is over before anybody asks
    BOOST_TEST(promise.completed());
    std::move(promise)(record(kept));
    poll(context);
    BOOST_TEST(kept.ended_with({}), kept);

    timer.expires_after(1h);
    auto cancelled = timer.async_wait(asio::experimental::use_promise);
    cancelled.cancel();
    std::move(cancelled)(record(ended));
    poll(context);
    BOOST_TEST(ended.ended_with(aborted), ended);

    (void)timer.async_wait(asio::experimental::use_promise);
    poll(context);
    BOOST_TEST(timer.cancel() == none);
    BOOST_TEST(context.stopped());
}

BOOST_AUTO_TEST_CASE(a_promise_under_a_limit_and_in_a_group_reports_the_cause) {
    asio::io_context context;
    operation a(context.get_executor(), obedience::posts, aborted, 1);
    operation b(context.get_executor(), obedience::posts, aborted, 2);
    pawl::group group(context);
    outcome of_a, of_b;

    auto limited =
        a.async_run(pawl::timeout_at(manual_clock::now() + 1s, asio::experimental::use_promise));
    auto member = b.async_run(pawl::in_group(group, asio::experimental::use_promise));
    pass(context, 1s);
    std::move(limited)(record(of_a));
    group.cancel(pawl::error::shutting_down);
    poll(context);
    std::move(member)(record(of_b));
    poll(context);

    BOOST_TEST(of_a.ended_with(timed_out, 1), of_a);
    BOOST_TEST(of_b.ended_with(pawl::error::shutting_down, 2), of_b);
}

// ---- channels ------------------------------------------------------------------------------------------

template <class Channel>
void a_channel_keeps_what_a_limit_does_not_take() {
    asio::io_context context;
    Channel channel(context, 1);
    manual_timer timer(context);
    std::vector<int> got;
    int idle = 0;
    asio::co_spawn(
        context,
        [&]() -> asio::awaitable<void> {
            for (;;) {
                const auto [ec, value] = co_await channel.async_receive(pawl::timeout_at(
                    manual_clock::now() + 1s, asio::as_tuple(asio::use_awaitable)));
                if (ec == timed_out)
                    ++idle;
                else if (ec)
                    co_return;
                else
                    got.push_back(value);
            }
        },
        asio::detached);
    asio::co_spawn(
        context,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i != 4; ++i) {
                timer.expires_after(1500ms);
                co_await timer.async_wait(asio::use_awaitable);
                co_await channel.async_send(error_code(), i, asio::use_awaitable);
            }
            channel.close();
        },
        asio::detached);
    poll(context);
    for (int i = 0; i != 20; ++i)
        pass(context, 500ms);

    BOOST_TEST(got == std::vector({0, 1, 2, 3}), boost::test_tools::per_element());
    BOOST_TEST(idle == 4);
    BOOST_TEST(context.stopped());
}

BOOST_AUTO_TEST_CASE(a_receive_that_times_out_takes_no_message_from_the_channel) {
    a_channel_keeps_what_a_limit_does_not_take<
        asio::experimental::channel<void(error_code, int)>>();
    a_channel_keeps_what_a_limit_does_not_take<
        asio::experimental::concurrent_channel<void(error_code, int)>>();
}

BOOST_AUTO_TEST_CASE(a_message_and_a_limit_in_one_turn_end_the_receive_once) {
    for (const bool message_first : {true, false}) {
        asio::io_context context;
        asio::experimental::channel<void(error_code, int)> channel(context, 1);
        outcome o;
        channel.async_receive(pawl::timeout_at(manual_clock::now() + 1s, record(o)));
        if (message_first)
            BOOST_TEST(channel.try_send(error_code(), 7));
        manual_clock::advance(context, 1s);
        if (!message_first) { // the limit is due, but has not run
            BOOST_TEST(channel.try_send(error_code(), 7));
        }
        poll(context);
        BOOST_TEST(o.ended_with({}, 7), o);
    }
}

} // namespace
