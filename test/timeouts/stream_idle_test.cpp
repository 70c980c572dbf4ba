// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The limits of a pawl::timeout_stream after something: above all the idle limit after a connect,
//   a limit that was reached, expire_all(), a clock that is set; and streams that are used again. A
//   limit that continues keeps run() from returning, so most tests end with a check of the
//   context's remaining work.

#define BOOST_TEST_MODULE stream_idle
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "timeout_stream_support.hpp"

#include "../support/scripted_clock.hpp"

#include <pawl/expire_all.hpp>
#include <pawl/pressure.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace stream_test;
namespace data = boost::unit_test::data;

const auto actions = data::make({on_limit::close, on_limit::cancel});

/// An endpoint that refuses connections.
tcp::endpoint refusing(asio::io_context& context) {
    tcp::acceptor closed(context, loopback);
    return closed.local_endpoint();
}

} // namespace

// ---- connects -----------------------------------------------------------------------------------------

/// A socket whose async_connect() completes when the test says so. It ignores cancellation, and calls
/// the handler as a constant.
class slow_socket : public tcp::socket {
public:
    using tcp::socket::socket;

    template <class Handler>
    void async_connect(const tcp::endpoint&, Handler&& handler) {
        if (!is_open())
            open(tcp::v4());
        handler_ = [h = std::forward<Handler>(handler)](const error_code& ec) { h(ec); };
    }
    void end_connect(const error_code& ec) { std::exchange(handler_, nullptr)(ec); }
    void abandon_connect() { handler_ = nullptr; }

private:
    std::function<void(error_code)> handler_;
};
using slow_stream = pawl::timeout_stream<slow_socket, manual_clock>;

BOOST_FIXTURE_TEST_SUITE(slow_connects, fixture)

// Of the limits, only that of the handshake holds. It was not looked at if it was the only one.
BOOST_AUTO_TEST_CASE(a_handshake_limit_that_is_set_during_a_connect_holds_for_it) {
    pawl::timeout_stream<stalled_socket, manual_clock> stream(context);
    auto connect = start_connect(stream, loopback);
    pass(1h);
    stream.set_limits({.read = 1s, .write = 1s});
    pass(1h);
    BOOST_TEST(connect.pending());
    stream.set_limits({.handshake = 10s});
    pass(9s);
    stream.set_limits({});
    pass(1h);
    BOOST_TEST(connect.pending());
    stream.set_limits({.handshake = 20s});

    ends_after(20s, connect);
    BOOST_TEST(!stream.socket().is_open());
}

BOOST_DATA_TEST_CASE(a_connect_that_succeeds_in_spite_of_its_limit_has_succeeded, actions, action) {
    slow_stream stream(context);
    stream.set_limits({.handshake = 10s, .action = action});
    auto connect = start_connect(stream, loopback);
    pass(10s);
    BOOST_TEST(stream.socket().is_open() == (action == on_limit::cancel));

    stream.socket().end_connect({});

    BOOST_TEST(connect.succeeded());
}

BOOST_AUTO_TEST_CASE(after_a_connect_that_was_abandoned_comes_another) {
    slow_stream stream(context);
    stream.set_limits({.idle = 10s, .handshake = 10s});
    stream.async_connect(loopback, [](const error_code&) { BOOST_ERROR("called"); });
    stream.socket().abandon_connect();
    auto connect = start_connect(stream, loopback);
    stream.socket().end_connect(asio::error::connection_refused);
    BOOST_TEST(connect.ended_with(asio::error::connection_refused));

    stream.socket().close();
    pass(1h);
    BOOST_TEST(!at_work());
}

BOOST_DATA_TEST_CASE(a_connect_that_comes_too_late_ends_as_the_limits_say, actions, action) {
    manual_stream stream(context, tcp::v4());
    stream.set_limits({.action = action});
    stream.expires_at(manual_clock::now());
    asio::cancellation_signal stop;
    outcome connect;
    stream.async_connect(loopback, asio::bind_cancellation_slot(stop.slot(), connect.record()));
    BOOST_TEST(!stop.slot().has_handler()); // it was not started
    BOOST_TEST(over(connect).timed_out());
    BOOST_TEST(stream.socket().is_open() == (action == on_limit::cancel));
}

// Each way to connect tells where. No operation starts afterwards.
BOOST_AUTO_TEST_CASE(each_way_to_connect_connects_and_idleness_counts_from_there) {
    tcp::acceptor acceptor(context, loopback);
    const tcp::endpoint there = acceptor.local_endpoint();
    const std::vector<tcp::endpoint> range{there};
    const auto begin = range.begin();
    const auto end = range.end();
    const auto any = [](error_code, const tcp::endpoint&) { return true; };
    error_code ec;
    int connected = 0;
    const auto to = [&](error_code e, const tcp::endpoint& ep) { connected += !e && ep == there; };
    const auto at = [&](error_code e, decltype(begin) i) { connected += !e && i == begin; };
    using way = std::function<void(manual_stream&)>;
    const way ways[] = {
        [&](auto& s) { s.async_connect(there, [&](error_code e) { connected += !e; }); },
        [&](auto& s) { s.async_connect(range, to); },
        [&](auto& s) { s.async_connect(range, any, to); },
        [&](auto& s) { s.async_connect(begin, end, at); },
        [&](auto& s) { s.async_connect(begin, end, any, at); },
        [&](auto& s) { s.connect(there), ++connected; },
        [&](auto& s) { s.connect(there, ec), connected += !ec; },
        [&](auto& s) { connected += s.connect(range) == there; },
        [&](auto& s) { connected += s.connect(range, ec) == there && !ec; },
        [&](auto& s) { connected += s.connect(range, any) == there; },
        [&](auto& s) { connected += s.connect(range, any, ec) == there && !ec; },
        [&](auto& s) { connected += s.connect(begin, end) == begin; },
        [&](auto& s) { connected += s.connect(begin, end, ec) == begin && !ec; },
        [&](auto& s) { connected += s.connect(begin, end, any) == begin; },
        [&](auto& s) { connected += s.connect(begin, end, any, ec) == begin && !ec; },
    };
    for (const way& connect : ways) {
        for (const bool before : {true, false}) { // a limit that is set later counts from then
            manual_stream stream(context);
            if (before)
                stream.set_limits({.idle = 10s});
            connected = 0;
            ec = asio::error::fault; // a result must be delivered
            connect(stream);
            run_until(context, [&] { return connected != 0; });
            BOOST_TEST((stream.socket().remote_endpoint() == there));
            if (!before) {
                pass(5s);
                stream.set_limits({.idle = 10s});
            }
            closes_after(10s, stream);
            BOOST_TEST(!at_work());
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

// ---- streams that are used again ------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(second_life, fixture)

// It reported the limit that had closed it long before.
BOOST_AUTO_TEST_CASE(
    a_stream_that_was_opened_again_is_closed_by_its_owner_and_not_by_the_old_limit) {
    tcp::acceptor acceptor(context, loopback);
    const std::vector<std::function<void(manual_stream&)>> ways{
        [&](manual_stream& s) { s.close(); },
        [&](manual_stream& s) { // an operation may meet the open socket
            s.socket().open(tcp::v4());
            outcome write;
            s.async_write_some(asio::buffer("data"), write.record());
            BOOST_TEST(!over(write).succeeded());
            BOOST_TEST(!write.timed_out());
            s.socket().close();
        },
        [&](manual_stream& s) {
            s.socket().open(tcp::v4());
            BOOST_TEST(over(read_nothing(s)).succeeded());
            s.socket().close();
        },
        [&](manual_stream& s) {
            BOOST_TEST(over(start_connect(s, acceptor.local_endpoint())).succeeded());
            s.socket().close();
        },
        [&](manual_stream& s) {
            s.connect(acceptor.local_endpoint());
            s.socket().close();
        },
    };
    for (const auto& reopen_and_close : ways) {
        connection c(context, {.idle = 10s});
        pass(10s);
        BOOST_TEST(!c.is_open());
        BOOST_TEST(over(c.read()).timed_out());

        reopen_and_close(c.stream);

        BOOST_TEST(over(c.read()).ended_with(asio::error::bad_descriptor));
        pass(1h);
        BOOST_TEST(!at_work());
    }
}

BOOST_AUTO_TEST_CASE(an_idle_limit_of_the_connection_before_is_not_reported) {
    tcp::acceptor acceptor(context, loopback);
    connection c(context, {.idle = 10s, .action = on_limit::cancel});
    pass(10s); // nothing is pending: to be reported
    c.stream.socket().close();

    c.stream.connect(acceptor.local_endpoint());

    BOOST_TEST(over(c.read_nothing()).succeeded());
    ends_after(10s, c.read());
}

BOOST_AUTO_TEST_CASE(an_idle_limit_is_reported_once) {
    connection c(context, {.idle = 10s, .action = on_limit::cancel});
    pass(10s);
    auto read = c.read();
    auto nothing = c.read_nothing();
    poll();

    BOOST_TEST(read.timed_out());
    BOOST_TEST(nothing.succeeded());
}

BOOST_AUTO_TEST_CASE(a_released_stream_has_no_limits_until_it_has_another_socket) {
    connection c(context, {.idle = 10s, .read = 20s});
    auto [here, peer] = socket_pair(context);
    auto read = c.read();
    tcp::socket released = c.stream.release_socket();
    BOOST_TEST(over(read).aborted());
    BOOST_TEST(!at_work());
    pass(1h);
    BOOST_TEST(released.is_open());

    c.stream.socket() = std::move(here);
    ends_after(10s, c.read());
}

BOOST_DATA_TEST_CASE(a_second_handshake_has_a_limit_of_its_own, data::make({false, true}),
                     expires) {
    connection c(context, {.handshake = 10s, .action = on_limit::cancel});
    {
        const auto scope = c.stream.limit_handshake();
        pass(expires ? 10s : 9s);
    }
    const auto scope = c.stream.limit_handshake();
    c.feed(1);
    BOOST_TEST(over(c.read()).succeeded());
    ends_after(10s, c.read());
}

BOOST_AUTO_TEST_CASE(a_handshake_that_has_expired_leaves_the_socket_alone_from_then_on) {
    connection c(context, {.idle = 12s, .handshake = 10s, .action = on_limit::cancel});
    const auto scope = c.stream.limit_handshake();
    pass(10s);
    c.feed(1);
    BOOST_TEST(c.stream.read_some(asio::buffer(c.data)) == 1U); // postpones idleness
    auto wait = c.wait();

    pass(2s); // idleness is looked at
    BOOST_TEST(wait.pending());
    c.feed(1);
    BOOST_TEST(over(wait).succeeded());
}

BOOST_AUTO_TEST_CASE(what_starts_when_the_handshake_limit_has_just_been_reached_is_too_late) {
    connection c(context, {.handshake = 10s, .action = on_limit::cancel});
    const auto scope = c.stream.limit_handshake();
    c.feed(1);
    manual_clock::advance(context, 10s); // nothing has run yet

    BOOST_TEST(over(c.read()).timed_out());
}

BOOST_AUTO_TEST_CASE(a_handshake_keeps_its_limit_when_the_others_are_taken_back) {
    connection c(context, {.handshake = 10s});
    const auto scope = c.stream.limit_handshake();
    auto read = c.read();
    c.stream.set_limits({});
    ends_after(10s, read);
}

BOOST_AUTO_TEST_CASE(P2_a_handshake_that_goes_on_in_another_socket_keeps_its_limit) {
    connection c(context, {.handshake = 10s});
    auto [here, peer] = socket_pair(context);
    const auto scope = c.stream.limit_handshake();
    c.stream.set_limits({});
    pass(4s);
    c.stream.close();
    c.stream.socket() = std::move(here);

    ends_after(6s, c.read());
}

BOOST_AUTO_TEST_CASE(limits_are_reached_one_after_the_other) {
    connection<local_stream> c(
        context,
        {.idle = 20s, .read = 5s, .write = 1s, .handshake = 10s, .action = on_limit::cancel});
    c.clog();
    const auto scope = c.stream.limit_handshake();
    auto read = c.read();
    auto write = c.write();
    ends_after(1s, write);
    BOOST_TEST(read.pending());
    ends_after(4s, read);
    c.stream.set_limits({.idle = 20s, .action = on_limit::cancel});
    ends_after(5s, c.read()); // of the handshake
    BOOST_TEST(c.is_open());
}

// The wait of a read that is over ends with nothing pending.
BOOST_AUTO_TEST_CASE(a_point_in_time_that_passes_with_nothing_pending_closes_nothing) {
    connection c(context, {.read = 10s});
    c.feed(1);
    BOOST_TEST(over(c.read()).succeeded());
    c.stream.expires_after(5s);
    pass(10s);
    BOOST_TEST(!at_work());
    BOOST_TEST(c.is_open());
}

PAWL_NOT_ON_IO_URING
BOOST_AUTO_TEST_CASE(an_earlier_limit_moves_the_wait_and_does_not_replace_it) {
    connection c(context, {.read = 10s});
    auto read = c.read();
    poll();
    c.stream.expires_after(5s);

    context.restart();
    BOOST_TEST(context.poll() <= 1U); // the system timer is set; no wait is aborted
    ends_after(5s, read);
}

BOOST_AUTO_TEST_CASE(a_stream_keeps_all_its_limits_when_it_is_moved) {
    connection c(context, {.idle = 20s, .read = 30s, .handshake = 10s, .action = on_limit::cancel});
    std::optional scope(c.stream.limit_handshake());
    c.stream.expires_after(15s);
    manual_stream moved(std::move(c.stream));
    c.stream = std::move(moved);
    manual_stream& same = c.stream;
    c.stream = std::move(same); // has no effect
    BOOST_TEST(c.is_open());

    for (const auto next : {10s, 5s, 5s}) {
        ends_after(next, c.read());
        scope.reset();
        if (next == 5s)
            c.stream.expires_never();
    }
}

BOOST_AUTO_TEST_SUITE_END()

// ---- connects that fail -------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(connects, fixture)

BOOST_DATA_TEST_CASE(P9_a_refused_connect_leaves_no_idle_limit, actions, action) {
    const std::vector<tcp::endpoint> range{refusing(context), refusing(context)};
    const error_code refused = asio::error::connection_refused;
    manual_stream stream(context);
    stream.set_limits({.idle = 2s, .action = action});
    BOOST_TEST(over(start_connect(stream, range[0])).ended_with(refused));
    BOOST_TEST(!at_work());
    BOOST_TEST(over(start_connect(stream, range)).ended_with(refused));
    BOOST_TEST(!at_work());

    manual_stream blocking(context);
    blocking.set_limits({.idle = 2s, .action = action});
    error_code ec;
    blocking.connect(range[0], ec);
    BOOST_TEST(ec == refused);
    BOOST_TEST(!at_work());
    blocking.connect(range, ec);
    BOOST_TEST(ec == refused);
    BOOST_TEST(!at_work());
}

BOOST_DATA_TEST_CASE(P9_a_connect_that_its_limit_has_ended_leaves_no_idle_limit, actions, action) {
    full_acceptor full(context);
    manual_stream stream(context);
    stream.set_limits({.idle = 2s, .handshake = 10s, .action = action});
    auto connect = start_connect(stream, full.endpoint());

    pass(10s);
    BOOST_TEST(over(connect).timed_out());
    pass(10s);
    BOOST_TEST(pawl::expire_all(context) == 0U); // full_acceptor's own connects are still pending
}

// An open socket idles; a socket that is being connected does not, and does not restart when it
// fails.
BOOST_DATA_TEST_CASE(a_connect_ends_an_idle_limit_that_was_running_also_if_it_is_refused, actions,
                     action) {
    manual_stream stream(context);
    stream.socket().open(tcp::v4());
    stream.set_limits({.idle = 2s, .action = action});
    BOOST_TEST(at_work());
    const error_code refused = asio::error::connection_refused;
    BOOST_TEST(over(start_connect(stream, refusing(context))).ended_with(refused));
    pass(2s);

    BOOST_TEST(stream.socket().is_open());
    BOOST_TEST(!at_work());
}

BOOST_DATA_TEST_CASE(the_connect_after_a_refused_one_begins_an_idle_limit_of_its_own, actions,
                     action) {
    tcp::acceptor acceptor(context, loopback);
    manual_stream stream(context);
    stream.set_limits({.idle = 2s, .action = action});
    over(start_connect(stream, refusing(context)));
    stream.socket().close(); // as usual before another attempt
    pass(1500ms);

    BOOST_TEST(over(start_connect(stream, acceptor.local_endpoint())).succeeded());
    ends_after(2s, start_read(stream));
}

BOOST_AUTO_TEST_SUITE_END()

// ---- limits that were reached -----------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(reached, fixture)

BOOST_AUTO_TEST_CASE(P9_a_limit_that_closes_the_layer_ends_idleness_too) {
    connection c(context, {.idle = 1h, .read = 2s});
    ends_after(2s, c.read());
    BOOST_TEST(!at_work());
}

BOOST_DATA_TEST_CASE(P9_a_limit_that_was_reached_with_nothing_pending_is_over,
                     actions* data::make({true, false}), action, idle) {
    connection c(context, {.action = action});
    std::optional<decltype(c.stream.limit_handshake())> scope;
    if (idle) {
        c.stream.set_limits({.idle = 2s, .action = action});
    } else {
        c.stream.set_limits({.handshake = 2s, .action = action});
        scope.emplace(c.stream.limit_handshake());
    }

    pass(2s);

    BOOST_TEST(c.is_open() == (action == on_limit::cancel));
    BOOST_TEST(!at_work());
}

BOOST_DATA_TEST_CASE(an_idle_limit_that_cancels_an_operation_begins_anew, data::make({true, false}),
                     in_time) {
    connection c(context, {.idle = 2s, .action = on_limit::cancel});
    auto first = c.read();
    if (in_time)
        pass(2s);
    else
        pawl::expire_all(context);
    BOOST_TEST(over(first).timed_out());

    ends_after(2s, c.read());
}

// A read that fails moves no byte.
BOOST_AUTO_TEST_CASE(operations_that_fail_do_not_postpone_idleness) {
    connection c(context, {.idle = 2s});
    asio::cancellation_signal signal;
    outcome cancelled;
    c.read(asio::bind_cancellation_slot(signal.slot(), cancelled.record()));
    pass(1s);
    signal.emit(asio::cancellation_type::terminal);
    BOOST_TEST(over(cancelled).aborted());
    c.peer.close();
    BOOST_TEST(over(c.read()).ended_with(asio::error::eof));

    closes_after(1s, c.stream);
    BOOST_TEST(!at_work());
}

BOOST_AUTO_TEST_SUITE_END()

// ---- pressure ---------------------------------------------------------------------------------------

using scaled_stream = pawl::timeout_stream<tcp::socket, pawl::scaled_clock<manual_clock>>;

BOOST_FIXTURE_TEST_SUITE(under_pressure, fixture)

BOOST_DATA_TEST_CASE(a_scaled_idle_limit_shrinks_while_it_runs_and_bytes_begin_it_anew, actions,
                     action) {
    connection<scaled_stream> c(context, {.idle = pawl::scaled(10s, 60s), .action = action});
    pawl::basic_pressure<manual_clock> pressure(context);
    auto read = c.read();
    pass(59s);
    c.feed(1);
    BOOST_TEST(over(read).succeeded());

    auto second = c.read();
    pass(20s);
    pressure.set(0.5);
    ends_after(20s, second);

    if (action == on_limit::cancel) {
        auto third = c.read();
        pressure.set(1);
        ends_after(10s, third);
        c.stream.set_limits({.idle = pawl::scaled(4s, 8s), .action = action});
        auto fourth = c.read();
        pressure.set(0);
        pass(3s);
        c.stream.set_limits({.idle = pawl::scaled(5s, 9s), .action = action});
        pressure.set(1);
        ends_after(2s, fourth);
        c.stream.set_limits({.action = action});
    }
    BOOST_TEST(!at_work());
}

// Regression: it was no limit at all.
BOOST_DATA_TEST_CASE(a_scaled_idle_limit_may_apply_under_pressure_only, actions, action) {
    const auto none = stream_limits::none;
    connection<scaled_stream> c(context, {.idle = pawl::scaled(10s, none), .action = action});
    pawl::basic_pressure<manual_clock> pressure(context);
    auto read = c.read();
    pass(24h);
    BOOST_TEST(read.pending());
    pressure.set(1);
    BOOST_TEST(over(read).timed_out());

    if (action == on_limit::cancel) {
        pass(4s);
        ends_after(6s, c.read()); // silence counts also between operations
        c.stream.set_limits({.idle = pawl::scaled(none, none), .action = action});
    }
    BOOST_TEST(!at_work());
}

// Regression: the alarm that stands for it was disarmed, and the limit was lost.
BOOST_DATA_TEST_CASE(expire_all_and_cancel_all_end_a_scaled_idle_limit_without_a_longest_time,
                     actions* data::make({false, true}) * data::make({1U, 2U, 4U}), action, cancels,
                     shards) {
    pawl::make_timer_service<scaled_stream::clock_type>(context, {.shards = shards});
    const stream_limits limits{.idle = pawl::scaled(10s, stream_limits::none), .action = action};
    connection<scaled_stream> one(context, limits);
    std::optional<connection<scaled_stream>> other;
    std::thread([&] { other.emplace(context, limits); }).join(); // of another shard
    auto read = one.read();
    auto other_read = other->read();
    pass(20s); // longer than the least time, without pressure

    auto ended = std::async(std::launch::async, [&] { // while the streams run in this thread
        return cancels ? pawl::cancel_all(context) : pawl::expire_all(context);
    });

    BOOST_TEST(over(read).timed_out());
    BOOST_TEST(over(other_read).timed_out());
    BOOST_TEST(ended.get() == 2U);
    BOOST_TEST(!at_work());
}

// Regression: without a longest time, a limit that was refused said nothing.
BOOST_AUTO_TEST_CASE(a_scaled_idle_limit_beyond_max_pending_is_refused) {
    pawl::make_timer_service<pawl::basic_waitable_timer<pawl::scaled_clock<manual_clock>>>(
        context, {.max_pending = 1});
    pawl::basic_waitable_timer<pawl::scaled_clock<manual_clock>> taken(context, 1h);
    taken.async_wait([](error_code) {});
    for (const std::chrono::nanoseconds most :
         {std::chrono::nanoseconds(10s), stream_limits::none}) {
        connection<scaled_stream> c(context, {.idle = pawl::scaled(1s, most)});
        c.feed(1); // what is started would succeed
        BOOST_TEST(over(c.read()).ended_with(asio::error::no_buffer_space));
    }
    taken.cancel();
    poll();
    BOOST_TEST(!at_work());
}

BOOST_AUTO_TEST_CASE(P9_a_scaled_idle_limit_ends_with_the_connection) {
    const stream_limits limits{.idle = pawl::scaled(10s, 60s), .read = 5s};
    connection<scaled_stream> closed(context, limits);
    closed.stream.close();
    connection<scaled_stream> ended(context, limits);
    ends_after(5s, ended.read());
    { const connection<scaled_stream> destroyed(context, limits); }
    connection<scaled_stream> silent(context, limits);
    pawl::basic_pressure<manual_clock>(context).set(1);
    closes_after(10s, silent.stream);
    BOOST_TEST(!at_work());
}

// Regression: set_limits() threw, as if the longest time were below the least.
BOOST_AUTO_TEST_CASE(a_scaled_idle_limit_below_zero_has_passed_at_once) {
    for (const std::chrono::nanoseconds most : {std::chrono::nanoseconds(-1s), 0ns}) {
        connection<scaled_stream> c(context,
                                    {.idle = pawl::scaled(std::chrono::nanoseconds::min(), most)});
        BOOST_TEST(over(c.read()).timed_out());
        BOOST_TEST(!at_work());
    }
}

BOOST_AUTO_TEST_CASE(a_stream_on_another_clock_refuses_a_scaled_limit) {
    connection c(context, {.idle = 7s});
    BOOST_CHECK_THROW(c.stream.set_limits({.idle = pawl::scaled(1s, 2s)}), std::invalid_argument);
    BOOST_TEST((c.stream.limits().idle == 7s));
}

BOOST_AUTO_TEST_SUITE_END()

// ---- expire_all -------------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(all_at_once, fixture)

BOOST_DATA_TEST_CASE(P9_expire_all_ends_an_idle_limit_for_good, actions* data::make({false, true}),
                     action, busy) {
    connection c(context, {.idle = 2s, .action = action});
    outcome read;
    if (busy)
        c.read(read.record());

    BOOST_TEST(pawl::expire_all(context) == 1U);
    if (busy)
        BOOST_TEST(over(read).timed_out());
    BOOST_TEST(!at_work());
}

BOOST_AUTO_TEST_CASE(expire_all_leaves_an_operation_without_a_limit_alone) {
    connection<local_stream> c(context, {.read = 10s, .action = on_limit::cancel});
    c.clog();
    auto read = c.read();
    auto write = c.write();

    pawl::expire_all(context);
    over(read);
    poll();

    BOOST_TEST(read.timed_out());
    BOOST_TEST(write.pending());
}

BOOST_DATA_TEST_CASE(P9_expire_all_ends_what_all_limits_were_for, actions, action) {
    connection<local_stream> c(
        context, {.idle = 2s, .read = 3s, .write = 4s, .handshake = 5s, .action = action});
    c.clog();
    c.stream.expires_after(6s);
    const auto guard = c.stream.limit_handshake();
    auto read = c.read();
    auto write = c.write();

    pawl::expire_all(context);
    BOOST_TEST(over(read).timed_out());
    BOOST_TEST(over(write).timed_out());
    BOOST_TEST(!at_work());
}

// It had no limit at all: the handshake's had expired early, and was not checked again.
BOOST_DATA_TEST_CASE(after_expire_all_an_operation_of_that_handshake_fails_at_once, actions,
                     action) {
    connection c(context, {.handshake = 2s, .action = action});
    const auto guard = c.stream.limit_handshake();
    pawl::expire_all(context);
    poll();

    BOOST_TEST(over(c.read()).timed_out());
    BOOST_TEST(!at_work());
}

BOOST_AUTO_TEST_SUITE_END()

// ---- clocks that are set ----------------------------------------------------------------------------

namespace {

template <int Tag>
using wall = pawl_test::scripted_clock<Tag>;
template <int Tag>
using wall_stream = pawl::timeout_stream<tcp::socket, wall<Tag>>;

constexpr auto noon = std::chrono::nanoseconds(1000h);

struct on_a_wall_clock : fixture {
    /// Makes the services check the clock, as their drivers do once a second.
    void collect() {
        asio::use_service<pawl::detail::service_registry>(context).for_each(
            [](pawl::detail::registered_service& s) { s.clock_moved(); });
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(set_clocks, on_a_wall_clock)

BOOST_AUTO_TEST_CASE(P9_no_limit_is_none_also_before_the_epoch_of_the_clock) {
    wall<7>::set(-1h);
    connection<wall_stream<7>> c(context);
    const auto scope = c.stream.limit_handshake();

    BOOST_TEST(!at_work()); // nothing is watched
}

// With success, it could not be distinguished from a clock that was set back.
BOOST_AUTO_TEST_CASE(expire_all_with_an_error_ends_what_has_a_limit_on_a_clock_that_can_be_set) {
    wall<1>::set(noon);
    connection<wall_stream<1>> c(context, {.idle = 1h, .read = 10s, .action = on_limit::cancel});
    auto read = c.read();

    BOOST_TEST(pawl::expire_all(context, asio::error::shut_down) == 1U);
    BOOST_TEST(over(read).timed_out());
    BOOST_TEST(!at_work());
}

BOOST_AUTO_TEST_CASE(a_limit_whose_clock_is_set_back_before_it_is_looked_at_is_not_reached) {
    wall<2>::set(noon);
    connection<wall_stream<2>> c(context, {.read = 10s, .action = on_limit::cancel});
    auto read = c.read();
    wall<2>::set(noon + 10s);
    collect(); // the wait is due
    wall<2>::set(noon + 5s);
    poll();
    BOOST_TEST(read.pending());

    wall<2>::set(noon + 10s);
    collect();
    BOOST_TEST(over(read).timed_out());
}

BOOST_AUTO_TEST_CASE(a_limit_is_reached_when_its_clock_is_set_forward) {
    wall<3>::set(noon);
    connection<wall_stream<3>> c(context, {.idle = 1h});
    wall<3>::set(noon + 1h);
    collect();
    poll();

    BOOST_TEST(!c.is_open());
    BOOST_TEST(!at_work());
}

BOOST_AUTO_TEST_SUITE_END()
