// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Pawl's timers, limits and groups in stackful coroutines: boost::asio::spawn, on Boost.Context.

#define BOOST_TEST_MODULE stackful
#include <boost/test/unit_test.hpp>

#include "timeout_support.hpp"

#include <pawl/group.hpp>

#include <boost/asio/detached.hpp>
#include <boost/asio/spawn.hpp>

#include <memory>
#include <vector>

namespace {

using namespace timeouts;
using asio::yield_context;
using obedience = operation::obedience;

BOOST_AUTO_TEST_CASE(a_stackful_coroutine_waits_for_expiry_and_sees_the_abortion) {
    asio::io_context context;
    manual_timer timer(context);
    std::vector<error_code> seen;
    asio::spawn(
        context,
        [&](yield_context yield) {
            timer.expires_after(1s);
            timer.async_wait(yield);
            seen.emplace_back();
            error_code ec;
            timer.expires_after(1h);
            timer.async_wait(yield[ec]);
            seen.push_back(ec);
            try {
                timer.async_wait(yield);
            } catch (const system_error& error) {
                seen.push_back(error.code());
            }
        },
        asio::detached);
    poll(context);
    pass(context, 1s);
    for (int i = 0; i != 2; ++i) {
        timer.cancel();
        poll(context);
    }

    BOOST_TEST(seen == std::vector({error_code(), aborted, aborted}),
               boost::test_tools::per_element());
    BOOST_TEST(context.stopped());
}

BOOST_AUTO_TEST_CASE(limits_and_groups_take_a_yield_context) {
    asio::io_context context;
    operation op(context.get_executor(), obedience::posts, aborted, 5);
    pawl::group group(context);
    error_code limited, member;
    int value = 0;
    asio::spawn(
        context,
        [&](yield_context yield) {
            value = op.async_run(pawl::timeout_at(manual_clock::now() + 1s, yield[limited]));
            value += op.async_run(pawl::in_group(group, yield[member]));
        },
        asio::detached);
    poll(context);
    pass(context, 1s);
    group.cancel();
    poll(context);

    BOOST_TEST(limited == timed_out);
    BOOST_TEST(member == aborted);
    BOOST_TEST(value == 10);
}

BOOST_AUTO_TEST_CASE(a_stackful_coroutine_is_an_operation_under_a_limit_and_in_a_group) {
    asio::io_context context;
    manual_timer timer(context, 1h);
    pawl::group group(context);
    outcome limited, member;
    const auto wait = [&](yield_context yield) {
        timer.async_wait(yield);
        return 1;
    };
    asio::spawn(context, wait, pawl::timeout_at(manual_clock::now() + 1s, record(limited)));
    poll(context);
    pass(context, 1s);
    BOOST_TEST(limited.ended_with(timed_out), limited);

    asio::spawn(context, wait, pawl::in_group(group, record(member)));
    poll(context);
    group.cancel();
    poll(context);
    BOOST_TEST(member.ended_with(aborted), member);
}

BOOST_AUTO_TEST_CASE(a_context_that_ends_unwinds_the_stacks_that_wait_for_its_timers) {
    const auto alive = std::make_shared<int>();
    {
        asio::io_context context;
        asio::spawn(
            context,
            [kept = alive](yield_context yield) {
                const auto on_the_stack = kept;
                manual_timer timer(yield.get_executor(), 1h);
                timer.async_wait(pawl::timeout_at(manual_clock::now() + 1h, yield));
            },
            asio::detached);
        poll(context);
        BOOST_TEST(alive.use_count() > 2);
    }
    BOOST_TEST(alive.use_count() == 1);
}

} // namespace
