// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   pawl::timeout_stream over sockets: each limit alone and with others, its effect and its error,
//   cancellation, lifetime, tokens, and the cost of an operation.

#define BOOST_TEST_MODULE timeout_stream
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "../support/asio_configuration.hpp"
#include "timeout_stream_support.hpp"

#include "../service/counted_new.hpp"
#include "../support/seed.hpp"
#include "../support/system_timer.hpp"

#include <pawl/expire_all.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/beast/_experimental/test/stream.hpp>
#include <boost/beast/core/stream_traits.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace stream_test;
namespace data = boost::unit_test::data;

const auto actions = data::make({on_limit::close, on_limit::cancel});
const auto reports = data::make({limit_error::beast_timeout, limit_error::timed_out});

constexpr stream_limits cancelling{.action = on_limit::cancel};

/// Counts how it is read. It does not move.
struct counting_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<counting_clock>;
    static constexpr bool is_steady = true;

    static time_point now() noexcept {
        ++exact;
        return time_point(1s);
    }
    static time_point latest_now() noexcept {
        ++latest;
        return time_point(1s);
    }

    static inline int exact = 0;
    static inline int latest = 0;
};

BOOST_FIXTURE_TEST_SUITE(one_limit, fixture)

/// The pending operations when a limit of 10 s expires.
struct limited {
    std::string name;
    stream_limits limits;
    bool reads = true;
    bool writes = true; ///< 5 s after the read, if there is one
    bool all = false;   ///< the limit is that of expires_after()

    friend std::ostream& operator<<(std::ostream& out, const limited& l) { return out << l.name; }
};

const std::array all_limited{limited{"a read", {.read = 10s}, true, false},
                             limited{"a write", {.write = 10s}, false, true},
                             limited{"both directions, by idleness", {.idle = 10s}},
                             limited{"both directions, by expires_after()", {}, true, true, true}};

BOOST_DATA_TEST_CASE(what_is_pending_ends_when_its_limit_expires_and_not_before,
                     data::make(all_limited) * actions * reports, what, action, report) {
    auto limits = what.limits;
    limits.action = action;
    limits.report = report;
    connection<local_stream> c(context, limits);
    c.clog();
    if (what.all)
        c.stream.expires_after(10s);
    outcome read;
    outcome write;
    if (what.reads)
        c.read(read.record());
    if (what.reads && what.writes)
        pass(5s);
    if (what.writes)
        c.write(write.record());

    pass((what.reads && what.writes ? 5s : 10s) - 1ns);
    BOOST_TEST(read.pending());
    BOOST_TEST(write.pending());

    pass(1ns);
    if (what.reads)
        BOOST_TEST(over(read).ended_with(error_of(report)));
    if (what.writes)
        BOOST_TEST(over(write).ended_with(error_of(report)));
    BOOST_TEST(c.is_open() == (action == on_limit::cancel));
}

BOOST_DATA_TEST_CASE(a_connect_ends_when_the_handshake_limit_expires_and_not_before,
                     actions* reports, action, report) {
    pawl::timeout_stream<stalled_socket, manual_clock> stream(context);
    stream.set_limits({.handshake = 10s, .action = action, .report = report});
    ends_after(10s, start_connect(stream, loopback), error_of(report));
    BOOST_TEST(stream.socket().is_open() == (action == on_limit::cancel));
}

BOOST_AUTO_TEST_CASE(P9_a_read_of_a_socket_that_is_not_open_begins_no_idleness) {
    manual_stream stream(context);
    stream.set_limits({.idle = 1h});
    BOOST_TEST(!std::as_const(stream).lowest_layer().is_open());

    BOOST_TEST(over(start_read(stream)).ended_with(asio::error::bad_descriptor));
    BOOST_TEST(!at_work());
}

BOOST_AUTO_TEST_CASE(a_handshake_limit_that_is_changed_holds_for_a_pending_connect) {
    pawl::timeout_stream<stalled_socket, manual_clock> stream(context);
    stream.set_limits({.handshake = 10s});
    auto connect = start_connect(stream, loopback);

    stream.set_limits({.write = 1s, .handshake = 20s});

    ends_after(20s, connect);
}

BOOST_DATA_TEST_CASE(a_connect_to_a_range_ends_when_the_handshake_limit_expires, actions, action) {
    full_acceptor acceptor(context);
    manual_stream stream(context);
    stream.set_limits({.handshake = 10s, .action = action});
    const std::array endpoints{acceptor.endpoint(), acceptor.endpoint()};
    outcome connect;
    std::optional<tcp::endpoint> connected;
    stream.async_connect(endpoints, [&](error_code ec, const tcp::endpoint& ep) {
        connect.record()(ec);
        connected = ep;
    });

    ends_after(10s, connect);
    BOOST_TEST((connected == tcp::endpoint()));
}

BOOST_AUTO_TEST_CASE(a_connect_that_succeeds_leaves_the_other_limits_to_hold) {
    tcp::acceptor acceptor(context, loopback);
    manual_stream stream(context);
    stream.set_limits({.read = 20s, .handshake = 10s});
    BOOST_TEST(over(start_connect(stream, acceptor.local_endpoint())).succeeded());

    pass(1h);
    ends_after(20s, start_read(stream));
}

BOOST_AUTO_TEST_CASE(a_connect_that_has_timed_out_can_be_tried_again) {
    tcp::acceptor acceptor(context, loopback);
    full_acceptor full(context);
    manual_stream stream(context);
    stream.set_limits({.handshake = 10s});
    auto first = start_connect(stream, full.endpoint());
    pass(10s);
    BOOST_TEST(over(first).timed_out());

    BOOST_TEST(over(start_connect(stream, acceptor.local_endpoint())).succeeded());
}

BOOST_AUTO_TEST_CASE(bytes_in_either_direction_postpone_idleness) {
    connection c(context, {.idle = 10s});
    auto last = c.read();
    for (int i = 0; i < 3; ++i) { // in the end the read is older than the limit
        pass(9s);
        BOOST_TEST(over(c.write()).succeeded());
    }
    BOOST_TEST(last.pending());
    pass(9s);
    c.feed(1);
    BOOST_TEST(over(last).succeeded());

    ends_after(10s, c.read());
}

BOOST_AUTO_TEST_CASE(blocking_transfers_postpone_idleness_too) {
    connection c(context, {.idle = 10s});
    pass(9s);
    c.stream.write_some(asio::buffer(c.data));
    pass(9s);
    c.feed(1);
    error_code ec;
    BOOST_TEST(c.stream.read_some(asio::buffer(c.data), ec) == 1U);
    closes_after(10s, c.stream);
}

BOOST_AUTO_TEST_CASE(idleness_closes_the_layer_even_if_nothing_is_pending) {
    connection c(context, {.idle = 10s, .report = limit_error::timed_out});
    closes_after(10s, c.stream);

    for (int i = 0; i < 2; ++i) {
        auto read = c.read();
        BOOST_TEST(read.pending()); // never within async_read_some()
        BOOST_TEST(over(read).ended_with(pawl::error::timed_out));
    }
}

BOOST_AUTO_TEST_CASE(idleness_that_cancels_with_nothing_pending_is_told_to_the_next_operation) {
    connection c(context, {.idle = 10s, .action = on_limit::cancel});
    pass(1h);
    BOOST_TEST(c.is_open());

    c.feed(1);
    BOOST_TEST(over(c.read()).timed_out());

    // the stream continues, with a new period
    BOOST_TEST(over(c.read()).succeeded());
    ends_after(10s, c.read());
}

BOOST_AUTO_TEST_CASE(idleness_counts_from_the_connect_and_only_while_the_layer_is_open) {
    tcp::acceptor acceptor(context, loopback);
    manual_stream stream(context);
    stream.set_limits({.idle = 10s});
    pass(1h);
    BOOST_TEST(over(start_connect(stream, acceptor.local_endpoint())).succeeded());
    pass(10s - 1ns);
    BOOST_TEST(stream.socket().is_open());

    stream.close();
    stream.socket().open(tcp::v4()); // is not checked before there is an operation
    pass(1h);
    BOOST_TEST(stream.socket().is_open());
}

BOOST_AUTO_TEST_CASE(a_socket_that_is_being_connected_does_not_idle) {
    pawl::timeout_stream<stalled_socket, manual_clock> stream(context);
    auto connect = start_connect(stream, loopback);
    stream.set_limits({.idle = 1s});
    pass(1h);
    BOOST_TEST(connect.pending());
}

BOOST_AUTO_TEST_CASE(a_socket_that_its_owner_has_closed_does_not_idle) {
    connection c(context, {.idle = 10s});
    c.stream.socket().close();
    pass(10s);
    BOOST_TEST(over(c.read()).ended_with(asio::error::bad_descriptor));
}

BOOST_AUTO_TEST_CASE(expires_after_counts_with_nothing_pending_and_until_it_is_set_anew) {
    connection c(context, cancelling);
    c.stream.expires_after(10s);
    pass(10s);
    c.feed(1);
    for (int i = 0; i < 2; ++i) {
        auto read = c.read();
        BOOST_TEST(read.pending()); // never within async_read_some()
        BOOST_TEST(over(read).timed_out());
    }

    c.stream.expires_after(10s);
    BOOST_TEST(over(c.read()).succeeded());
}

BOOST_AUTO_TEST_CASE(a_stream_that_is_used_too_late_is_closed) {
    connection c(context);
    c.stream.expires_after(10s);
    pass(10s);
    BOOST_TEST(c.is_open());
    BOOST_TEST(over(c.write()).timed_out());
    BOOST_TEST(!c.is_open());

    tcp::acceptor acceptor(context, loopback);
    BOOST_TEST(over(start_connect(c.stream, acceptor.local_endpoint())).timed_out());
    c.stream.expires_never();
    BOOST_TEST(over(start_connect(c.stream, acceptor.local_endpoint())).succeeded());
}

BOOST_AUTO_TEST_CASE(a_point_in_time_that_is_past_or_out_of_range_is_now_or_never) {
    connection c(context, cancelling);
    for (const auto& expired : {manual_clock::time_point::min(), manual_clock::now()}) {
        c.stream.expires_at(expired);
        BOOST_TEST(over(c.read()).timed_out());
    }
    c.stream.expires_after(manual_clock::duration::min());
    BOOST_TEST(over(c.read()).timed_out());

    c.stream.expires_after(manual_clock::duration::max());
    auto read = c.read();
    pass(1h);
    BOOST_TEST(read.pending());
}

BOOST_AUTO_TEST_CASE(a_limit_of_zero_or_less_still_lets_through_what_is_there) {
    connection c(context, {.read = -1s, .action = on_limit::cancel});
    auto none = c.read();
    pass(0s);
    BOOST_TEST(over(none).timed_out());
}

BOOST_DATA_TEST_CASE(what_runs_in_a_handshake_scope_ends_when_the_limit_expires, actions* reports,
                     action, report) {
    connection c(context, {.handshake = 10s, .action = action, .report = report});
    auto scope = c.stream.limit_handshake();
    c.feed(1);
    BOOST_TEST(over(c.read()).succeeded());
    pass(9s);
    ends_after(1s, c.read(), error_of(report));

    auto third = c.write();
    BOOST_TEST(third.pending());
    BOOST_TEST(over(third).ended_with(error_of(report)));
}

BOOST_DATA_TEST_CASE(what_runs_on_the_socket_itself_ends_with_the_handshake_limit, actions,
                     action) {
    connection c(context, {.handshake = 10s, .action = action});
    auto scope = c.stream.limit_handshake();
    ends_after(10s, c.wait(), asio::error::operation_aborted);
}

BOOST_AUTO_TEST_CASE(a_handshake_that_is_over_in_time_leaves_no_limit) {
    connection c(context, {.handshake = 10s});
    {
        auto scope = c.stream.limit_handshake();
        auto moved = std::move(scope);
    }
    auto read = c.read();
    pass(1h);
    BOOST_TEST(read.pending());
}

BOOST_AUTO_TEST_CASE(a_handshake_scope_may_outlive_its_stream) {
    std::optional<connection<>> c(std::in_place, context, stream_limits{.handshake = 10s});
    auto scope = c->stream.limit_handshake();
    c.reset();
    pass(10s);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(several_limits, fixture)

BOOST_DATA_TEST_CASE(a_limit_of_one_direction_that_cancels_leaves_the_other_alone,
                     data::make({true, false}), reads) {
    stream_limits limits = cancelling;
    (reads ? limits.read : limits.write) = 10s;
    connection<local_stream> c(context, limits);
    c.clog();
    auto read = c.read();
    auto write = c.write();

    ends_after(10s, reads ? read : write);
    BOOST_TEST((reads ? write : read).pending());

    c.unclog();
    c.feed(1);
    BOOST_TEST(over(reads ? write : read).succeeded());
    BOOST_TEST(over(reads ? c.read() : c.write()).succeeded());
}

BOOST_DATA_TEST_CASE(what_is_to_have_a_limit_is_refused_beyond_max_pending, actions, action) {
    const error_code no_room = asio::error::no_buffer_space;
    pawl::options o;
    o.max_pending = 1;
    pawl::make_timer_service<manual_clock>(context, o);
    pawl::manual_timer taken(context, 1h);
    taken.async_wait([](error_code) {});
    connection reads(context, {.read = 10s, .action = action});
    connection idles(context, {.idle = 10s, .action = action});
    connection late(context, {.action = action});
    auto pending = late.read();
    late.stream.expires_after(10s);
    for (connection<>* c : {&reads, &idles}) {
        c->feed(1); // what is started would succeed
        auto read = c->read();
        BOOST_TEST(read.pending());
        BOOST_TEST(over(read).ended_with(no_room));
        BOOST_TEST(c->stream.socket().is_open() == (action == on_limit::cancel));
    }
    BOOST_TEST(over(pending).ended_with(no_room));

    taken.cancel();
    poll();
    for (connection<>* c : {&reads, &idles}) {
        BOOST_TEST(over(c->read()).ended_with(action == on_limit::close ? no_room : error_code()));
        c->stream.close();
        poll();
    }
    pass(10s); // now the deadline that was refused has come
    const error_code expected = action == on_limit::close ? no_room : beast::error::timeout;
    BOOST_TEST(over(late.read()).ended_with(expected));
}

BOOST_AUTO_TEST_CASE(a_limit_that_closes_is_reported_by_both_directions) {
    connection<local_stream> c(context, {.read = 10s, .write = 1h});
    c.clog();
    auto read = c.read();
    auto write = c.write();
    pass(10s);
    BOOST_TEST(over(read).timed_out());
    BOOST_TEST(over(write).timed_out());
}

/// The shortest limit decides, whichever it is.
BOOST_DATA_TEST_CASE(the_earliest_limit_decides, data::xrange(4), shortest) {
    stream_limits limits{.idle = 20s, .read = 20s, .handshake = 20s};
    (shortest == 0 ? limits.idle : shortest == 1 ? limits.read : limits.handshake) = 10s;
    connection c(context, limits);
    const auto scope = c.stream.limit_handshake();
    c.stream.expires_after(shortest == 3 ? 10s : 20s);
    if (shortest >= 2)
        c.stream.set_limits({.idle = 20s, .read = 20s, .handshake = 10s});
    ends_after(10s, c.read());
}

BOOST_AUTO_TEST_CASE(limits_that_are_changed_hold_for_what_is_pending) {
    connection c(context, {.read = 10s, .action = on_limit::cancel});
    auto read = c.read();
    pass(9s);
    c.stream.set_limits({.read = 10s, .action = on_limit::cancel}); // from now on
    pass(9s);
    BOOST_TEST(read.pending());
    c.stream.set_limits({.read = 1s, .report = limit_error::timed_out});
    ends_after(1s, read, pawl::error::timed_out);
    BOOST_TEST(!c.is_open());
}

BOOST_AUTO_TEST_CASE(expires_after_moves_the_deadline_of_what_is_pending_later_and_earlier) {
    connection c(context, cancelling);
    auto read = c.read();
    pass(1h);
    c.stream.expires_after(10s);
    pass(9s);
    c.stream.expires_after(20s);
    pass(19s);
    BOOST_TEST(read.pending());
    c.stream.expires_never();
    pass(1h);
    BOOST_TEST(read.pending());
    c.stream.expires_after(20s);
    c.stream.expires_after(5s);
    ends_after(5s, read);
}

BOOST_AUTO_TEST_CASE(an_idle_limit_that_is_changed_counts_from_the_last_byte) {
    connection c(context, {.idle = 20s});
    pass(8s);
    c.stream.set_limits({.idle = 10s});
    closes_after(2s, c.stream);

    connection later(context); // without a limit no byte is noted
    later.feed(1);
    over(later.read());
    pass(8s);
    later.stream.set_limits({.idle = 10s});
    closes_after(10s, later.stream);
}

/// The meaning of a stream's limits, without a timer: all of them are checked after each step.
struct limits_model {
    using time_point = manual_clock::time_point;
    static constexpr time_point never = time_point::max();

    struct operation {
        bool pending = false;
        time_point deadline = never;
    };

    static time_point in(stream_limits::duration d) {
        return d == stream_limits::none ? never : manual_clock::now() + d;
    }

    void set(const stream_limits& l) {
        limits = l;
        read.deadline = in(l.read);
        write.deadline = in(l.write);
        if (l.idle == stream_limits::none)
            idles = missed = false;
        else if (!idles && !missed)
            begin_idling();
    }

    /// @return whether the operation is refused.
    bool start(operation& op, stream_limits::duration limit) {
        if (total <= manual_clock::now())
            return true;
        if (limits.idle != stream_limits::none && !idles) {
            begin_idling();
            if (std::exchange(missed, false))
                return true;
        }
        op = {true, in(limit)};
        return false;
    }

    void move_bytes() { moved = manual_clock::now(); }

    void end_expired() {
        const time_point now = manual_clock::now();
        bool all = total <= now;
        if (idles && moved + limits.idle <= now) {
            all = true;
            idles = read.pending || write.pending;
            missed = !idles;
            moved = now;
        }
        for (operation* op : {&read, &write})
            op->pending = op->pending && !all && now < op->deadline;
    }

    void begin_idling() {
        idles = true;
        move_bytes();
    }

    stream_limits limits;
    operation read;
    operation write;
    time_point total = never;
    time_point moved{};
    bool idles = false;
    bool missed = false; ///< idleness that was not reported yet
};

/// For any events in any order, each operation ends when the model expects it. The write never
/// completes.
BOOST_AUTO_TEST_CASE(limits_hold_in_any_order_of_events) {
    std::mt19937_64 random(pawl_test::seed());
    const auto below = [&](std::uint64_t n) { return random() % n; };
    const auto duration = [&] {
        return below(3) == 0 ? stream_limits::none : stream_limits::duration(1s * (1 + below(10)));
    };
    connection<local_stream> c(context, cancelling);
    c.clog();
    limits_model model;
    outcome read;
    outcome write;
    read.calls = write.calls = 1; // no operation is pending

    const auto start = [&](outcome& o, limits_model::operation& op, bool reads) {
        if (o.pending())
            return;
        const bool refused = model.start(op, reads ? model.limits.read : model.limits.write);
        o.calls = 0;
        if (reads)
            c.read(o.record());
        else
            c.write(o.record());
        if (refused)
            over(o);
        BOOST_REQUIRE_EQUAL(o.timed_out(), refused);
    };
    for (std::uint64_t step = pawl_test::steps(20'000); step != 0; --step) {
        switch (below(8)) {
        case 0: {
            const stream_limits limits{.idle = duration(),
                                       .read = duration(),
                                       .write = duration(),
                                       .action = on_limit::cancel};
            c.stream.set_limits(limits);
            model.set(limits);
            break;
        }
        case 1: {
            const auto d = duration();
            c.stream.expires_after(d);
            model.total = limits_model::in(d);
            break;
        }
        case 2:
            start(write, model.write, false);
            break;
        case 3:
            if (read.pending()) {
                c.feed(1);
                over(read);
                BOOST_REQUIRE(read.succeeded());
                model.read.pending = false;
                model.move_bytes();
            }
            break;
        case 4:
        case 5:
            start(read, model.read, true);
            break;
        default:
            manual_clock::advance(context, 500ms * below(7));
        }
        poll();
        model.end_expired();
        if (!model.read.pending)
            over(read);
        if (!model.write.pending)
            over(write);
        BOOST_REQUIRE_EQUAL(read.pending(), model.read.pending);
        BOOST_REQUIRE_EQUAL(write.pending(), model.write.pending);
        BOOST_REQUIRE(read.calls == 1 ? !read.code || read.timed_out() : true);
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(results, fixture)

BOOST_DATA_TEST_CASE(a_result_that_was_there_before_the_limit_expired_is_passed_on, actions,
                     action) {
    connection c(context, {.read = 10s, .action = action});
    c.feed(5);
    auto read = c.read(); // has its data, and is queued
    manual_clock::advance(context, 10s);
    BOOST_TEST(over(read).succeeded());
    BOOST_TEST(read.size == 5U);
}

BOOST_AUTO_TEST_CASE(an_error_before_the_limit_is_passed_on) {
    connection c(context, {.read = 10s});
    c.peer.close();
    BOOST_TEST(over(c.read()).ended_with(asio::error::eof));
}

BOOST_AUTO_TEST_CASE(an_outer_cancellation_is_told_apart_from_a_limit) {
    connection<local_stream> c(context, {.read = 10s, .write = 10s, .action = on_limit::cancel});
    c.clog();
    asio::cancellation_signal stop_read;
    outcome read;
    c.read(asio::bind_cancellation_slot(stop_read.slot(), read.record()));
    auto write = c.write();

    stop_read.emit(asio::cancellation_type::total);
    BOOST_TEST(over(read).aborted());
    BOOST_TEST(write.pending());

    pass(10s);
    BOOST_TEST(over(write).timed_out());
    BOOST_TEST(read.calls == 1);
}

BOOST_AUTO_TEST_CASE(a_cancellation_that_comes_late_touches_no_other_operation) {
    std::optional<connection<>> c(std::in_place, context);
    asio::cancellation_signal stop;
    outcome first;
    c->feed(1);
    c->read(asio::bind_cancellation_slot(stop.slot(), first.record()));
    over(first);
    auto second = c->read();

    stop.emit(asio::cancellation_type::terminal);
    poll();
    BOOST_TEST(first.succeeded());
    BOOST_TEST(second.pending());

    c.reset();
    stop.emit(asio::cancellation_type::terminal);
    poll();
    stop.emit(asio::cancellation_type::terminal);
    BOOST_TEST(second.ended_by_destruction());
}

BOOST_AUTO_TEST_CASE(a_connect_can_be_cancelled) {
    full_acceptor acceptor(context);
    manual_stream stream(context);
    stream.set_limits({.handshake = 10s});
    asio::cancellation_signal stop;
    outcome connect;
    stream.async_connect(acceptor.endpoint(),
                         asio::bind_cancellation_slot(stop.slot(), connect.record()));
    stop.emit(asio::cancellation_type::terminal);
    BOOST_TEST(over(connect).aborted());
}

BOOST_AUTO_TEST_CASE(cancel_and_close_end_what_is_pending_as_aborted) {
    connection c(context, {.idle = 1h, .read = 10s, .write = 10s});
    for (const bool closes : {false, true}) {
        auto read = c.read();
        closes ? c.stream.close() : c.stream.cancel();
        BOOST_TEST(read.pending());
        BOOST_TEST(over(read).aborted());
        BOOST_TEST(c.is_open() == !closes);
    }
    BOOST_TEST(!at_work()); // close() has ended the limits, too: nothing is outstanding
}

/// A read and a write of no bytes, that have ended.
struct nothing_moved {
    nothing_moved(fixture& f, manual_stream& stream) : read(read_nothing(stream)) {
        stream.async_write_some(std::array<asio::const_buffer, 2>{}, write.record());
        BOOST_TEST(read.pending());
        BOOST_TEST(write.pending());
        f.poll();
    }
    outcome read;
    outcome write;
};

BOOST_AUTO_TEST_CASE(operations_of_length_zero_have_no_limits_of_their_own) {
    connection c(context, {.read = -1s, .write = -1s, .action = on_limit::cancel});
    const auto [read, write] = nothing_moved(*this, c.stream);
    BOOST_TEST(read.succeeded());
    BOOST_TEST(write.succeeded());
    pass(1h);
    BOOST_TEST(!at_work()); // no limit is watched

    // It may start while another read is pending: ssl::stream does so.
    c.stream.set_limits(cancelling);
    c.stream.expires_after(10s);
    auto stuck = c.read();
    auto other = c.read_nothing();
    poll();
    BOOST_TEST(other.succeeded());
    BOOST_TEST(stuck.pending());
    manual_clock::advance(context, 10s);
    auto late = c.read_nothing(); // the other read gets the error
    BOOST_TEST(over(stuck).timed_out());
    BOOST_TEST(late.succeeded());
}

BOOST_DATA_TEST_CASE(an_operation_of_length_zero_is_told_of_a_limit_that_has_expired,
                     actions* reports, action, report) {
    const stream_limits limits{.idle = 10s, .handshake = 10s, .action = action, .report = report};
    { // for everything
        connection c(context, limits);
        c.stream.expires_at(manual_clock::now());
        const auto [read, write] = nothing_moved(*this, c.stream);
        BOOST_TEST(read.ended_with(error_of(report)));
        BOOST_TEST(write.ended_with(error_of(report)));
        BOOST_TEST(c.is_open() == (action == on_limit::cancel));
        if (action == on_limit::cancel) {
            c.stream.expires_never();
            BOOST_TEST(nothing_moved(*this, c.stream).read.succeeded());
        }
    }
    { // of a handshake
        connection c(context, limits);
        const auto scope = c.stream.limit_handshake();
        BOOST_TEST(nothing_moved(*this, c.stream).write.succeeded());
        pass(10s);
        BOOST_TEST(nothing_moved(*this, c.stream).write.ended_with(error_of(report)));
    }
    { // of idleness: reported once, or always if the stream is closed
        connection c(context, limits);
        BOOST_TEST(nothing_moved(*this, c.stream).read.succeeded());
        pass(10s);
        const auto [read, write] = nothing_moved(*this, c.stream);
        BOOST_TEST(read.ended_with(error_of(report)));
        if (action == on_limit::cancel)
            BOOST_TEST(write.succeeded());
        else
            BOOST_TEST(write.ended_with(error_of(report)));
    }
}

BOOST_DATA_TEST_CASE(expire_all_and_cancel_all_end_what_has_a_limit, data::make({false, true}),
                     cancels) {
    connection limited(context, {.read = 10s, .action = on_limit::cancel});
    connection free(context, cancelling);
    connection idle(context, {.idle = 10s});
    auto read = limited.read();
    auto other = free.read();

    cancels ? pawl::cancel_all(context) : pawl::expire_all(context, pawl::error::shutting_down);
    poll();
    BOOST_TEST(over(read).timed_out()); // whatever the code
    BOOST_TEST(other.pending());
    BOOST_TEST(!idle.is_open());
}

BOOST_AUTO_TEST_CASE(limits_are_outstanding_work_until_they_are_taken_back) {
    connection c(context, {.read = 10s});
    c.feed(1);
    over(c.read());
    BOOST_TEST(at_work()); // the wait for the limit of the read
    c.stream.set_limits({});
    BOOST_TEST(!at_work());

    c.stream.expires_after(10s);
    BOOST_TEST(!at_work()); // no operation is pending
    c.feed(1);
    auto second = c.read();
    BOOST_TEST(second.pending());
    BOOST_TEST(at_work());
    c.stream.expires_never();
    BOOST_TEST(!at_work());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(lifetime, fixture)

BOOST_AUTO_TEST_CASE(destruction_ends_what_is_pending_as_aborted) {
    outcome read;
    outcome write;
    {
        connection<local_stream> c(context,
                                   {.idle = 10s, .read = 10s, .write = 10s, .handshake = 10s});
        c.clog();
        c.read(read.record());
        c.write(write.record());
    }
    BOOST_TEST(read.pending());
    context.run();
    BOOST_TEST(read.ended_by_destruction());
    BOOST_TEST(write.ended_by_destruction());
}

BOOST_AUTO_TEST_CASE(a_stream_may_be_destroyed_by_its_own_handler) {
    auto c = std::make_unique<connection<>>(context, stream_limits{.idle = 20s, .read = 10s});
    outcome read;
    c->read([&](error_code ec, std::size_t n) {
        c.reset();
        read.record()(ec, n);
    });
    pass(10s);
    BOOST_TEST(over(read).timed_out());
    context.run();
}

BOOST_AUTO_TEST_CASE(abandoned_operations_leave_nothing_behind) {
    const auto sentry = std::make_shared<int>();
    {
        asio::io_context doomed;
        auto c = std::make_shared<connection<local_stream>>(
            doomed, stream_limits{.idle = 20s, .read = 10s, .write = 10s});
        c->clog();
        const auto keep = [c, sentry](error_code, std::size_t) { BOOST_ERROR("called"); };
        c->read(keep);
        c->write(keep);
        auto other = std::make_shared<connection<>>(doomed);
        other->stream.expires_at(manual_clock::now());
        other->read([other, sentry](error_code, std::size_t) { BOOST_ERROR("called"); });
        auto connecting =
            std::make_shared<pawl::timeout_stream<stalled_socket, manual_clock>>(doomed);
        connecting->set_limits({.handshake = 10s});
        connecting->async_connect(loopback,
                                  [connecting, sentry](error_code) { BOOST_ERROR("called"); });
        stream_test::poll(context);
    }
    BOOST_TEST(sentry.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(a_stream_can_be_moved_with_operations_pending) {
    connection<local_stream> c(context, {.read = 10s, .write = 10s});
    c.clog();
    auto read = c.read();
    auto write = c.write();
    local_stream moved(std::move(c.stream));
    connection<local_stream> target(context);
    auto replaced = target.read();
    target.stream = std::move(moved);
    BOOST_TEST(over(replaced).aborted());

    BOOST_TEST(target.stream.limits().read.count() == stream_limits::duration(10s).count());
    pass(10s);
    BOOST_TEST(over(read).timed_out());
    BOOST_TEST(over(write).timed_out());
    BOOST_TEST(!target.is_open());
}

BOOST_AUTO_TEST_CASE(a_stream_that_was_moved_from_has_its_executor_still) {
    connection<local_stream> c(context, {.read = 10s});
    const auto ex = c.stream.get_executor();
    auto read = c.read();
    {
        std::optional<local_stream> second(std::move(c.stream));
        BOOST_TEST((c.stream.get_executor() == ex));
        local_stream third(std::move(*second));
        local_stream of_nothing(std::move(*second)); // of one that was moved from
        BOOST_TEST((second->get_executor() == ex));
        BOOST_TEST((of_nothing.get_executor() == ex));
        second.reset(); // and closes nothing
        BOOST_TEST(third.socket().is_open());
        c.stream = std::move(third);
        BOOST_TEST((third.get_executor() == ex));
    }
    poll();
    BOOST_TEST(read.pending());
    BOOST_TEST(c.is_open());
    c.stream = local_stream(context);
    BOOST_TEST(over(read).aborted());
    static_assert(sizeof(local_stream) <= sizeof(std::shared_ptr<int>) + sizeof(void*));
}

BOOST_AUTO_TEST_CASE(release_socket_gives_an_open_socket_without_limits) {
    connection c(context, {.idle = 10s, .read = 10s});
    auto read = c.read();
    tcp::socket socket = c.stream.release_socket();
    BOOST_TEST(over(read).aborted());
    pass(1h);
    BOOST_TEST(socket.is_open());
    c.feed(3);
    BOOST_TEST(socket.read_some(asio::buffer(c.data)) == 3U);
    context.restart();
    context.run(); // no work is outstanding
}

BOOST_AUTO_TEST_CASE(a_stream_is_made_of_whatever_the_next_layer_is_made_of) {
    const manual_stream of_context(context);
    const manual_stream of_executor(context.get_executor());
    const manual_stream of_protocol(context, tcp::v4());
    const manual_stream of_endpoint(context, loopback);
    BOOST_TEST(!of_executor.socket().is_open());
    BOOST_TEST(of_endpoint.socket().is_open());

    using on_context = tcp::socket::rebind_executor<asio::io_context::executor_type>::other;
    pawl::timeout_stream<on_context, manual_clock> native(context, tcp::v4());
    native.set_limits({.read = 10s});
    const manual_stream converted(std::move(native));
    BOOST_TEST(converted.socket().is_open());
    BOOST_TEST(converted.limits().read.count() == stream_limits::duration(10s).count());
    static_assert(!std::is_convertible_v<asio::io_context&, manual_stream>);
    static_assert(std::is_nothrow_move_constructible_v<manual_stream>);
    static_assert(std::is_nothrow_move_assignable_v<manual_stream>);
}

// only with Boost {
BOOST_AUTO_TEST_CASE(it_is_a_stream_to_beast) {
    static_assert(beast::is_async_stream<pawl::tcp_stream>::value);
    static_assert(beast::is_sync_stream<pawl::tcp_stream>::value);
    static_assert(std::is_same_v<beast::lowest_layer_type<pawl::tcp_stream>, pawl::tcp_stream>);
    static_assert(std::is_same_v<beast::executor_type<pawl::tcp_stream>, asio::any_io_executor>);
    connection c(context);
    beast::close_socket(beast::get_lowest_layer(c.stream));
    BOOST_TEST(!c.is_open());
}
// } only with Boost

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(connects, fixture)

BOOST_AUTO_TEST_CASE(all_forms_of_async_connect_have_a_default_token) {
    using socket = asio::deferred_t::as_default_on_t<tcp::socket>;
    tcp::acceptor acceptor(context, loopback);
    const tcp::endpoint there = acceptor.local_endpoint();
    const std::vector<tcp::endpoint> range{there};
    const auto no_condition = [](error_code, const tcp::endpoint&) { return true; };
    std::deque<pawl::timeout_stream<socket, manual_clock>> streams;
    int connected = 0;
    const auto start = [&](const auto&... arguments) {
        streams.emplace_back(context).async_connect(arguments...)(
            [&](error_code ec, const auto&...) { connected += !ec; });
    };
    start(there);
    start(range);
    start(range, no_condition);
    start(range.begin(), range.end());
    start(range.begin(), range.end(), no_condition);
    run_until(context, [&] { return connected == 5; });
    BOOST_TEST(connected == 5);
}

BOOST_AUTO_TEST_CASE(a_range_that_has_nothing_is_not_found) {
    manual_stream stream(context);
    stream.set_limits({.handshake = 1h});
    BOOST_TEST(over(start_connect(stream, std::vector<tcp::endpoint>{}))
                   .ended_with(asio::error::not_found));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(tokens, fixture)

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(all_tokens_work) {
    connection c(context, {.read = 10s});
    c.feed(4);
    int calls = 0;
    const asio::mutable_buffer byte(c.data.data(), 1);

    c.stream.async_read_some(byte, [&, only = std::make_unique<int>()](error_code, std::size_t n) {
        calls += static_cast<int>(n);
    });
    run_until(context, [&] { return calls == 1; });

    auto operation = c.stream.async_read_some(byte, asio::deferred);
    std::move(operation)([&](error_code, std::size_t n) { calls += static_cast<int>(n); });
    run_until(context, [&] { return calls == 2; });

    auto future = c.stream.async_read_some(byte, asio::use_future);
    run_until(context, [&] { return future.wait_for(0s) == std::future_status::ready; });
    BOOST_TEST(future.get() == 1U);

    asio::thread_pool elsewhere(1);
    std::atomic<bool> there = false;
    c.stream.async_read_some(
        byte, asio::bind_executor(elsewhere.get_executor(), [&](error_code ec, std::size_t) {
            there = !ec && elsewhere.get_executor().running_in_this_thread();
        }));
    run_until(context, [&] {
        asio::post(context, [] {}); // otherwise run_until() would wait for this context
        return there.load();
    });

    bool done = false;
    asio::co_spawn(
        context,
        [&]() -> asio::awaitable<void> {
            c.feed(1);
            BOOST_TEST(co_await c.stream.async_read_some(byte, asio::use_awaitable) == 1U);
            manual_clock::advance(context, 0s);
            c.stream.expires_after(-1s);
            auto [ec, n] =
                co_await c.stream.async_read_some(byte, asio::as_tuple(asio::use_awaitable));
            BOOST_TEST((ec == beast::error::timeout));
            done = true;
        },
        asio::detached);
    run_until(context, [&] { return done; });
}

BOOST_AUTO_TEST_CASE(a_default_token_comes_with_the_executor) {
    using token = asio::as_tuple_t<asio::use_awaitable_t<>>;
    using stream_type = token::as_default_on_t<manual_stream>;
    auto [here, peer] = socket_pair(context);
    stream_type stream(std::move(here));
    stream.set_limits({.read = 10s});
    std::array<char, 8> data{};
    std::optional<error_code> result;
    asio::co_spawn(
        context,
        [&]() -> asio::awaitable<void> {
            auto [ec, n] = co_await stream.async_read_some(asio::buffer(data));
            result = ec;
        },
        asio::detached);
    poll();
    pass(10s);
    run_until(context, [&] { return result.has_value(); });
    BOOST_TEST((*result == beast::error::timeout));
}

BOOST_AUTO_TEST_CASE(a_default_token_is_told_apart_from_a_condition) {
    using token = asio::as_tuple_t<asio::use_awaitable_t<>>;
    token::as_default_on_t<manual_stream> stream(context);
    tcp::acceptor acceptor(context, loopback);
    const std::vector there{acceptor.local_endpoint()};
    const auto any = [](error_code, const tcp::endpoint&) { return true; };
    BOOST_TEST(over(start_connect(stream, there)).succeeded());

    int connected = 0;
    asio::co_spawn(
        context,
        [&]() -> asio::awaitable<void> {
            stream.close();
            connected += !std::get<0>(co_await stream.async_connect(there));
            stream.close();
            connected += !std::get<0>(co_await stream.async_connect(there, any));
            stream.close();
            connected += !std::get<0>(co_await stream.async_connect(there[0]));
        },
        asio::detached);
    run_until(context, [&] { return connected == 3; });
}

BOOST_AUTO_TEST_CASE(read_or_write_of_awaitable_operators_cancels_the_other) {
    using namespace asio::experimental::awaitable_operators;
    connection c(context, {.read = 10s, .write = 10s, .action = on_limit::cancel});
    std::size_t winner = 2;
    asio::co_spawn(
        context,
        [&]() -> asio::awaitable<void> {
            const auto result =
                co_await (c.read(asio::use_awaitable) || c.write(asio::use_awaitable));
            winner = result.index();
        },
        asio::detached);
    run_until(context, [&] { return winner != 2; });
    BOOST_TEST(winner == 1U);
    ends_after(10s, c.read()); // no other read is pending
}

BOOST_AUTO_TEST_CASE(a_refusal_goes_through_the_executor_of_the_handler) {
    connection c(context);
    c.stream.expires_at(manual_clock::now());
    asio::io_context elsewhere;
    outcome read;
    c.read(asio::bind_executor(elsewhere, read.record()));
    poll();
    BOOST_TEST(read.pending());
    elsewhere.run();
    BOOST_TEST(read.timed_out());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(cost, fixture)

BOOST_AUTO_TEST_CASE(a_read_that_completes_reads_the_clock_and_does_not_touch_the_timer,
                     *boost::unit_test::enable_if<system_timer::seen>()) {
    using counted = pawl::timeout_stream<tcp::socket, counting_clock>;
    connection<counted> c(context, {.idle = 1min, .read = 10s, .write = 10s});
    int left = 1000;
    c.feed(1000);
    const asio::mutable_buffer byte(c.data.data(), 1);
    std::function<void()> next = [&] {
        c.stream.async_read_some(byte, [&](error_code, std::size_t) {
            if (--left > 0)
                next();
        });
    };
    next();
    run_until(context, [&] { return left == 990; }); // everything that is allocated once exists

    const auto allocations = counted_new::calls.load();
    counting_clock::exact = counting_clock::latest = 0;
    run_until(context, [&] { return left == 0; });
    // One reading at the start and one at the end; moving or setting a timer reads it, too.
    BOOST_TEST(counting_clock::exact + counting_clock::latest <= 2 * 990);
    BOOST_TEST(counted_new::calls.load() == allocations);
}

BOOST_AUTO_TEST_CASE(a_stream_reads_the_clock_only_for_limits_that_it_has) {
    using clock = counting_clock;
    using counted = pawl::timeout_stream<tcp::socket, clock>;
    connection<counted> c(context);
    const asio::mutable_buffer byte(c.data.data(), 1);
    const auto read = [&](auto... readings) {
        outcome o;
        clock::exact = clock::latest = 0;
        c.feed(1);
        c.stream.async_read_some(byte, o.record());
        if constexpr (sizeof...(readings) != 0) // the timer reads it, too
            BOOST_TEST((std::pair(clock::exact, clock::latest) == std::pair(readings...)));
        BOOST_TEST(over(o).succeeded());
    };
    read();
    c.feed(1);
    BOOST_TEST(c.stream.read_some(byte) == 1U);
    over(read_nothing(c.stream));
    BOOST_TEST(clock::exact == 0);
    BOOST_TEST(clock::latest == 0);

    c.stream.set_limits({.write = 10s});
    read(0, 0);
    c.stream.set_limits({.read = 10s});
    read(); // starts the wait
    read(0, 1);
    c.stream.expires_after(1h); // may have passed when an operation starts
    read(1, 0);
}

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(a_stream_needs_one_allocation_and_its_limits_none) {
    auto sockets = socket_pair(context);
    auto other = socket_pair(context);
    manual_stream first(std::move(other.first)); // makes the service
    first.set_limits({.idle = 1h});

    const auto before = counted_new::calls.load();
    manual_stream stream(std::move(sockets.first));
    BOOST_TEST(counted_new::calls.load() == before + 1);
    // The wait gets a block that the thread has cached.
    stream.set_limits({.idle = 1h, .read = 1h, .write = 1h, .handshake = 1h});
    stream.expires_after(1min);
    BOOST_TEST(counted_new::calls.load() == before + 1);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(layers, fixture)

// only with Boost {
BOOST_AUTO_TEST_CASE(the_next_layer_need_not_be_a_socket) {
    using layer = beast::test::stream;
    using stream_type = pawl::timeout_stream<layer, manual_clock>;
    static_assert(std::is_same_v<beast::lowest_layer_type<stream_type>, layer>);
    static_assert(beast::is_async_stream<stream_type>::value);
    stream_type stream(context);
    layer peer(context);
    stream.next_layer().connect(peer);
    stream.set_limits({.read = 10s});
    peer.write_some(asio::buffer("x", 1));
    BOOST_TEST(over(start_read(stream)).succeeded());

    ends_after(10s, start_read(stream));
    BOOST_TEST(over(start_read(stream)).timed_out());
}
// } only with Boost

BOOST_AUTO_TEST_CASE(a_timeout_stream_can_be_on_a_timeout_stream) {
    auto [here, peer] = socket_pair(context);
    pawl::timeout_stream<manual_stream, manual_clock> stream(std::move(here));
    stream.set_limits({.read = 10s, .action = on_limit::cancel});
    stream.next_layer().set_limits(
        {.read = 5s, .action = on_limit::cancel, .report = limit_error::timed_out});
    ends_after(5s, start_read(stream), pawl::error::timed_out);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(threads)

/// Streams on strands of two threads, with limits so short that they coincide with the ends of
/// operations. Allowed outcomes of a read: its byte, or a timeout. Afterwards no work is
/// outstanding.
PAWL_NEEDS_THREADS
BOOST_DATA_TEST_CASE(limits_that_meet_completions_end_each_operation_once, actions, action) {
    constexpr int rounds = 200;
    asio::io_context context(2);
    std::atomic<int> over = 0;
    std::atomic<int> wrong = 0;

    struct session {
        connection<pawl::tcp_stream> c;
        int left = rounds;
    };
    std::vector<std::shared_ptr<session>> sessions;
    const auto make = [&] {
        auto [here, peer] = socket_pair(context);
        tcp::socket on_strand(asio::make_strand(context), tcp::v4(), here.release());
        return std::make_shared<session>(
            session{connection<pawl::tcp_stream>({std::move(on_strand), std::move(peer)})});
    };
    for (int i = 0; i < 8; ++i) {
        sessions.push_back(make());
        sessions.back()->c.stream.set_limits({.idle = 2ms, .read = 1ms, .action = action});
    }
    std::function<void(std::shared_ptr<session>)> step = [&](std::shared_ptr<session> s) {
        if (s->left-- == 0) {
            s->c.stream.close();
            ++over;
            return;
        }
        if (s->left % 3 != 0)
            s->c.feed(1);
        s->c.read([&, s](error_code ec, std::size_t n) {
            ++over;
            if (ec ? ec != beast::error::timeout : n == 0)
                ++wrong;
            step(s);
        });
    };
    for (const auto& s : sessions)
        asio::post(s->c.stream.get_executor(), [&, s] { step(s); });
    std::thread other([&] { context.run(); });
    context.run();
    other.join();

    BOOST_TEST(over == 8 * (rounds + 1));
    BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(no_limit_acts_early) {
    asio::io_context context;
    connection<pawl::tcp_stream> c(context, {.read = 3ms, .action = on_limit::cancel});
    for (int i = 0; i < 20; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        BOOST_TEST(over(context, c.read()).timed_out());
        BOOST_TEST((std::chrono::steady_clock::now() - begin >= 3ms));
    }
}

BOOST_AUTO_TEST_SUITE_END()

// ---- the least rate ---------------------------------------------------------------------------------

/// Ten bytes a second, measured over ten. A byte is worth 100 ms.
constexpr pawl::min_rate slow{.bytes_per_second = 10, .grace = 10s};

struct rated : fixture {
    /// Whether a read gets so many bytes, which the peer sends after a silence.
    bool receives(connection<>& c, manual_clock::duration silence, std::size_t size) {
        auto read = c.read();
        pass(silence);
        if (read.pending())
            c.feed(size);
        return over(read).succeeded() && read.size == size;
    }
    /// Begins the transfer.
    void begin(connection<>& c) { BOOST_TEST(receives(c, 0s, 1)); }
};

BOOST_FIXTURE_TEST_SUITE(least_rate, rated)

BOOST_DATA_TEST_CASE(a_peer_that_drips_is_ended_when_it_has_used_up_its_grace, reports, report) {
    connection<> c(context, {.idle = 1h, .min_rate = slow, .report = report});
    BOOST_TEST(receives(c, 50min, 1)); // no transfer yet
    BOOST_TEST(receives(c, 4s, 1));
    BOOST_TEST(receives(c, 4s, 1));
    ends_after(2s + 2 * 100ms, c.read(), error_of(report));
    BOOST_TEST(!c.is_open());
}

BOOST_AUTO_TEST_CASE(a_peer_that_is_slow_but_keeps_the_rate_is_not_ended) {
    connection<> c(context, {.min_rate = slow});
    for (int i = 0; i != 1000; ++i)
        BOOST_REQUIRE(receives(c, 6300ms, 64));
    // A burst buys the grace, and no more.
    for (int i = 0; i != 10; ++i)
        BOOST_REQUIRE(receives(c, 0s, 64));
    ends_after(10s, c.read());
}

// Compared with a credit of milliseconds.
BOOST_AUTO_TEST_CASE(at_random_a_peer_is_ended_when_its_credit_is_used_up_and_not_before) {
    std::mt19937_64 random(pawl_test::seed());
    const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    for (auto steps = pawl_test::steps(30); steps != 0; --steps) {
        connection<> c(context, {.min_rate = slow});
        bool transfer = false;
        std::chrono::milliseconds credit = 10s;
        for (int i = 0; i != 60; ++i) {
            if (below(12) == 0) { // an answer
                over(c.write());
                transfer = false;
            }
            pass(std::chrono::seconds(below(20))); // nothing is pending
            const std::chrono::milliseconds silence(below(transfer ? 9000 : 100'000));
            if (transfer && silence >= credit) {
                ends_after(credit, c.read());
                break;
            }
            const unsigned size = 1 + below(60);
            BOOST_TEST_REQUIRE(receives(c, silence, size));
            credit = transfer
                         ? std::min<std::chrono::milliseconds>(10s, credit - silence + size * 100ms)
                         : 10s;
            transfer = true;
        }
    }
}

BOOST_AUTO_TEST_CASE(a_transfer_ends_when_bytes_move_the_other_way) {
    connection<> c(context, {.min_rate = slow});
    begin(c);
    over(c.write());
    BOOST_TEST(receives(c, 1h, 1)); // the next request may take its time

    auto read = c.read(); // also with a read that is pending already
    pass(9s);
    over(c.write());
    pass(1h);
    BOOST_TEST(read.pending());
    c.feed(1);
    BOOST_TEST(over(read).succeeded());

    c.stream.write_some(asio::buffer(c.data));
    BOOST_TEST(receives(c, 1h, 1));
}

BOOST_AUTO_TEST_CASE(time_in_which_nothing_is_pending_is_not_counted_against_the_peer) {
    connection<> c(context, {.min_rate = slow});
    begin(c);
    pass(1h);
    ends_after(10s, c.read());
}

#if !defined(_WIN32)
// The transfer began with the first byte: a client that sent requests and read nothing stayed.
BOOST_DATA_TEST_CASE(a_peer_that_does_not_take_what_is_written_is_ended_too,
                     data::make({true, false}), takes_some) {
    connection<local_stream> c(context, {.min_rate = slow});
    if (takes_some)
        over(c.write());
    c.clog();
    ends_after(10s, c.write());
}

BOOST_AUTO_TEST_CASE(a_least_rate_that_cancels_leaves_the_other_direction_alone) {
    connection<local_stream> c(context, {.min_rate = slow, .action = on_limit::cancel});
    c.clog();
    auto read = c.read();
    ends_after(10s, c.write());
    BOOST_TEST(read.pending());
}
#endif

BOOST_AUTO_TEST_CASE(a_least_rate_that_cancels_leaves_a_stream_that_can_be_used) {
    connection<> c(context, {.min_rate = slow, .action = on_limit::cancel});
    begin(c);
    ends_after(10s, c.read());
    BOOST_TEST(receives(c, 1h, 1)); // a new transfer
}

BOOST_AUTO_TEST_CASE(a_least_rate_can_be_taken_back_and_is_refused_without_a_grace) {
    connection<> c(context, {.min_rate = slow});
    begin(c);
    auto read = c.read();
    for (const auto grace : {0ns, -1ns, std::chrono::nanoseconds::min()})
        BOOST_CHECK_THROW(
            c.stream.set_limits({.min_rate = {.bytes_per_second = 1, .grace = grace}}),
            std::invalid_argument);
    BOOST_TEST((c.stream.limits().min_rate.grace == 10s));
    pass(9s);
    c.stream.set_limits({.min_rate = {.bytes_per_second = 0, .grace = 0s}});
    pass(1h);
    BOOST_TEST(read.pending());
    c.stream.close();
    poll();
}

// The credit overflowed.
BOOST_AUTO_TEST_CASE(a_least_rate_with_an_endless_grace_ends_nothing) {
    for (const pawl::stream_limits::duration grace :
         {pawl::stream_limits::duration(std::chrono::hours::max()),
          pawl::stream_limits::duration(pawl::stream_limits::none - 1ns)}) {
        connection<> c(context, {.min_rate = {.bytes_per_second = 1, .grace = grace}});
        for (int i = 0; i != 4; ++i)
            BOOST_TEST(receives(c, 1000h, 1));
    }
}

// They were free: a program that cancels its reads now and then never ended a client that drips.
BOOST_DATA_TEST_CASE(reads_that_end_without_a_byte_use_up_the_grace_too, data::make({false, true}),
                     by_limit) {
    connection<> c(context,
                   {.read = by_limit ? 3s : 1h, .min_rate = slow, .action = on_limit::cancel});
    begin(c);
    for (int i = 0; i != 3; ++i) {
        auto read = c.read();
        pass(3s);
        if (!by_limit)
            c.stream.cancel();
        over(read);
        BOOST_TEST((by_limit ? read.timed_out() : read.aborted()));
    }
    ends_after(1s, c.read());
}

// Without other limits the stream stopped watching.
BOOST_AUTO_TEST_CASE(a_least_rate_holds_for_a_pending_operation_when_other_limits_are_changed) {
    const std::array<void (*)(manual_stream&), 3> changes{
        [](manual_stream& s) { s.expires_never(); },
        [](manual_stream& s) { s.set_limits({.min_rate = slow}); },
        [](manual_stream& s) { s.set_limits({.read = 1h, .min_rate = slow}); }};
    for (const auto change : changes) {
        connection<> c(context, {.min_rate = slow});
        begin(c);
        auto read = c.read();
        change(c.stream);
        ends_after(10s, read);
    }
}

BOOST_AUTO_TEST_CASE(a_least_rate_that_is_changed_holds_for_a_pending_operation_from_then_on) {
    for (const auto grace : {5s, 20s}) {
        connection<> c(context, {.min_rate = slow});
        begin(c);
        auto read = c.read();
        pass(3s);
        c.stream.set_limits({.min_rate = {.bytes_per_second = 10, .grace = grace}});
        ends_after(grace, read);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
