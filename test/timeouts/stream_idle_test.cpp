// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   The idle limit of a pawl::timeout_stream after a failure: a connect that failed, a limit that
//   was reached, expire_all(), a clock that is set. A limit that continues keeps run() from
//   returning, so every test ends with a check of the context's remaining work.

#define BOOST_TEST_MODULE stream_idle
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "timeout_stream_support.hpp"

#include "../support/scripted_clock.hpp"

#include <pawl/expire_all.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <array>
#include <cstddef>
#include <vector>

namespace {

using namespace stream_test;
namespace data = boost::unit_test::data;

const auto actions = data::make({on_limit::close, on_limit::cancel});

struct fixture {
    /// Runs everything that is ready, if that ends.
    void poll() {
        context.restart();
        for (int units = 0; context.poll_one() != 0; ++units)
            BOOST_REQUIRE_LT(units, 100);
    }
    void pass(manual_clock::duration d) {
        manual_clock::advance(context, d);
        poll();
    }
    /// Whether run() would wait for something.
    bool at_work() {
        poll();
        return !context.stopped();
    }

    asio::io_context context;
};

/// An endpoint that refuses connections.
tcp::endpoint refusing(asio::io_context& context) {
    tcp::acceptor closed(context, loopback);
    return closed.local_endpoint();
}

} // namespace

// ---- connects that fail -------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(connects, fixture)

BOOST_DATA_TEST_CASE(P9_a_refused_connect_leaves_no_idle_limit, actions, action) {
    manual_stream stream(context);
    stream.set_limits({.idle = 2s, .action = action});
    outcome connect;

    stream.async_connect(refusing(context), connect.record());
    run_until_over(context, connect);

    BOOST_TEST(connect.ended_with(asio::error::connection_refused));
    BOOST_TEST(!at_work());
}

BOOST_DATA_TEST_CASE(P9_a_refused_connect_to_a_range_leaves_no_idle_limit, actions, action) {
    manual_stream stream(context);
    stream.set_limits({.idle = 2s, .action = action});
    const std::vector<tcp::endpoint> range{refusing(context), refusing(context)};
    outcome connect;

    stream.async_connect(range, [&](error_code ec, const tcp::endpoint&) { connect.record()(ec); });
    run_until_over(context, connect);

    BOOST_TEST(connect.ended_with(asio::error::connection_refused));
    BOOST_TEST(!at_work());
}

BOOST_DATA_TEST_CASE(P9_a_connect_that_its_limit_has_ended_leaves_no_idle_limit, actions, action) {
    full_acceptor full(context);
    manual_stream stream(context);
    stream.set_limits({.idle = 2s, .handshake = 10s, .action = action});
    outcome connect;
    stream.async_connect(full.endpoint(), connect.record());

    pass(10s);
    run_until_over(context, connect);

    BOOST_TEST(connect.timed_out());
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
    outcome connect;

    stream.async_connect(refusing(context), connect.record());
    run_until_over(context, connect);
    pass(2s);

    BOOST_TEST(connect.ended_with(asio::error::connection_refused));
    BOOST_TEST(stream.socket().is_open());
    BOOST_TEST(!at_work());
}

BOOST_DATA_TEST_CASE(the_connect_after_a_refused_one_begins_an_idle_limit_of_its_own, actions,
                     action) {
    tcp::acceptor acceptor(context, loopback);
    manual_stream stream(context);
    stream.set_limits({.idle = 2s, .action = action});
    outcome refused;
    stream.async_connect(refusing(context), refused.record());
    run_until_over(context, refused);
    stream.socket().close(); // as usual before another attempt
    pass(1500ms);

    outcome connect;
    stream.async_connect(acceptor.local_endpoint(), connect.record());
    run_until_over(context, connect);
    BOOST_TEST(connect.succeeded());
    outcome read;
    std::array<char, 8> bytes{};
    stream.async_read_some(asio::buffer(bytes), read.record());
    ends_after(context, 2s, read);
}

BOOST_AUTO_TEST_SUITE_END()

// ---- limits that were reached -----------------------------------------------------------------------

BOOST_FIXTURE_TEST_SUITE(reached, fixture)

BOOST_AUTO_TEST_CASE(P9_a_limit_that_closes_the_layer_ends_idleness_too) {
    connection c(context, {.idle = 1h, .read = 2s});
    outcome read;
    c.read(read.record());

    pass(2s);
    run_until_over(context, read);

    BOOST_TEST(read.timed_out());
    BOOST_TEST(!at_work());
}

BOOST_DATA_TEST_CASE(P9_an_idle_limit_that_was_reached_with_nothing_pending_is_over, actions,
                     action) {
    connection c(context, {.idle = 2s, .action = action});

    pass(2s);

    BOOST_TEST(!at_work());
}

BOOST_AUTO_TEST_CASE(an_idle_limit_that_cancels_an_operation_begins_anew) {
    connection c(context, {.idle = 2s, .action = on_limit::cancel});
    outcome first;
    c.read(first.record());
    pass(2s);
    run_until_over(context, first);
    BOOST_TEST(first.timed_out());

    outcome second;
    c.read(second.record());
    ends_after(context, 2s, second);
}

BOOST_DATA_TEST_CASE(P9_a_handshake_limit_that_was_reached_with_nothing_pending_is_over, actions,
                     action) {
    connection c(context, {.handshake = 2s, .action = action});
    const auto guard = c.stream.limit_handshake();

    pass(2s);

    BOOST_TEST(!at_work());
}

// A read that fails moves no byte.
BOOST_AUTO_TEST_CASE(operations_that_fail_do_not_postpone_idleness) {
    connection c(context, {.idle = 2s});
    asio::cancellation_signal signal;
    outcome cancelled;
    c.read(asio::bind_cancellation_slot(signal.slot(), cancelled.record()));
    pass(1s);
    signal.emit(asio::cancellation_type::terminal);
    run_until_over(context, cancelled);
    BOOST_TEST(cancelled.aborted());
    c.peer.close();
    outcome at_end;
    c.read(at_end.record());
    run_until_over(context, at_end);
    BOOST_TEST(at_end.ended_with(asio::error::eof));

    pass(1s - 1ns);
    BOOST_TEST(c.stream.socket().is_open());
    pass(1ns);

    BOOST_TEST(!c.stream.socket().is_open());
    BOOST_TEST(!at_work());
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
        run_until_over(context, read);

    BOOST_TEST(read.timed_out() == busy);
    BOOST_TEST(!at_work());
}

BOOST_AUTO_TEST_CASE(the_operation_after_expire_all_is_limited_by_idleness_again) {
    connection c(context, {.idle = 2s, .action = on_limit::cancel});
    outcome first;
    c.read(first.record());
    pawl::expire_all(context);
    run_until_over(context, first);
    BOOST_TEST(first.timed_out());

    outcome second;
    c.read(second.record());
    ends_after(context, 2s, second);
}

BOOST_DATA_TEST_CASE(P9_expire_all_ends_what_all_limits_were_for, actions, action) {
    connection<local_stream> c(
        context, {.idle = 2s, .read = 3s, .write = 4s, .handshake = 5s, .action = action});
    c.clog();
    c.stream.expires_after(6s);
    const auto guard = c.stream.limit_handshake();
    outcome read;
    outcome write;
    c.read(read.record());
    c.write(write.record());

    pawl::expire_all(context);
    run_until_over(context, read);
    run_until_over(context, write);

    BOOST_TEST(read.timed_out());
    BOOST_TEST(write.timed_out());
    BOOST_TEST(!at_work());
}

// It had no limit at all: the handshake's had expired early, and was not checked again.
BOOST_DATA_TEST_CASE(after_expire_all_an_operation_of_that_handshake_fails_at_once, actions,
                     action) {
    connection c(context, {.handshake = 2s, .action = action});
    const auto guard = c.stream.limit_handshake();
    pawl::expire_all(context);
    poll();

    outcome read;
    c.read(read.record());
    poll();

    BOOST_TEST(read.timed_out());
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
    void look() {
        asio::use_service<pawl::detail::service_registry>(context).for_each(
            [](pawl::detail::registered_service& s) { s.clock_moved(); });
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(set_clocks, on_a_wall_clock)

// With success, it could not be distinguished from a clock that was set back.
BOOST_AUTO_TEST_CASE(expire_all_with_an_error_ends_what_has_a_limit_on_a_clock_that_can_be_set) {
    wall<1>::set(noon);
    connection<wall_stream<1>> c(context, {.idle = 1h, .read = 10s, .action = on_limit::cancel});
    outcome read;
    c.read(read.record());

    BOOST_TEST(pawl::expire_all(context, asio::error::shut_down) == 1U);
    poll();

    BOOST_TEST(read.timed_out());
    BOOST_TEST(!at_work());
}

BOOST_AUTO_TEST_CASE(a_limit_whose_clock_is_set_back_before_it_is_looked_at_is_not_reached) {
    wall<2>::set(noon);
    connection<wall_stream<2>> c(context, {.read = 10s, .action = on_limit::cancel});
    outcome read;
    c.read(read.record());
    wall<2>::set(noon + 10s);
    look(); // the wait is due
    wall<2>::set(noon + 5s);
    poll();
    BOOST_TEST(read.pending());

    wall<2>::set(noon + 10s);
    look();
    poll();
    run_until_over(context, read);

    BOOST_TEST(read.timed_out());
}

BOOST_AUTO_TEST_CASE(a_limit_is_reached_when_its_clock_is_set_forward) {
    wall<3>::set(noon);
    connection<wall_stream<3>> c(context, {.idle = 1h});
    wall<3>::set(noon + 1h);
    look();
    poll();

    BOOST_TEST(!c.stream.socket().is_open());
    BOOST_TEST(!at_work());
}

BOOST_AUTO_TEST_SUITE_END()
