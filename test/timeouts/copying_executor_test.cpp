// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Waits, limits and streams whose handlers go to an executor that stores them in a std::function:
//   it copies them, may call several copies, and may destroy all of them uncalled. Each test runs
//   for both styles of executors.

#define BOOST_TEST_MODULE copying_executor
#include <boost/test/unit_test.hpp>

#include "timeout_stream_support.hpp"
#include "timeout_support.hpp"

#include "../support/copying_executors.hpp"

#include <pawl/cancel_after.hpp>
#include <pawl/event_feed.hpp>
#include <pawl/group.hpp>
#include <pawl/interval_timer.hpp>
#include <pawl/timeout.hpp>
#include <pawl/timeout_stream.hpp>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using pawl::manual_clock;
using pawl_test::prioritised_functions;
using stream_test::outcome;
using namespace std::chrono_literals;

using styles = std::tuple<pawl_test::executor_with_properties, pawl_test::networking_ts_executor>;

const error_code aborted = asio::error::operation_aborted;
const error_code timed_out = pawl::error::timed_out;

template <class Executor>
struct fixture {
    using timer =
        pawl::basic_waitable_timer<manual_clock, asio::wait_traits<manual_clock>, Executor>;
    using socket = asio::basic_stream_socket<asio::local::stream_protocol, Executor>;
    using stream = pawl::timeout_stream<socket, manual_clock>;

    /// Runs everything that is ready without the executor.
    void poll() {
        context.restart();
        context.poll();
    }
    /// Runs everything that is ready; so many copies of each function are called.
    void settle(int calls = 3) {
        do
            poll();
        while (functions.run_all(calls) != 0);
    }
    void pass(manual_clock::duration d) {
        manual_clock::advance(context, d);
        settle();
    }

    /// A copyable handler, which lives while `alive` is shared.
    auto record(outcome& o) {
        return [record = o.record(), a = alive](const error_code& ec, std::size_t n = 0) mutable {
            record(ec, n);
        };
    }
    [[nodiscard]] bool handlers_live() const { return alive.use_count() != 1; }

    asio::io_context context;
    prioritised_functions functions;
    const Executor executor{context, functions};
    const std::shared_ptr<int> alive = std::make_shared<int>();
};

/// A stream on such an executor, and its peer on another one.
template <class Executor>
struct connected : fixture<Executor> {
    connected() { asio::local::connect_pair(here.socket(), there); }

    void feed(const std::string& text) { asio::write(there, asio::buffer(text)); }
    template <class Token>
    void read(Token&& token) {
        here.async_read_some(asio::buffer(data), std::forward<Token>(token));
    }

    typename fixture<Executor>::stream here{this->executor};
    asio::local::stream_protocol::socket there{this->context};
    std::array<char, 8> data{};
};

} // namespace

// ---- waits ----------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(waits)

BOOST_AUTO_TEST_CASE_TEMPLATE(P3_a_wait_completes_once_whatever_copies_are_called, Executor,
                              styles) {
    fixture<Executor> f;
    pawl::manual_timer bound(f.context);
    typename fixture<Executor>::timer own(f.executor);
    outcome a, b, c;
    bound.expires_after(1s);
    own.expires_after(1s);
    bound.async_wait(asio::bind_executor(f.executor, f.record(a)));
    own.async_wait(f.record(b));
    own.async_wait(f.record(c));
    BOOST_TEST(own.cancel_one() == 1U);

    f.pass(1s);

    BOOST_TEST(a.succeeded());
    BOOST_TEST(b.aborted());
    BOOST_TEST(c.succeeded());
    BOOST_TEST(!f.handlers_live());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(P4_a_cancel_wins_until_the_first_copy_is_called, Executor, styles) {
    fixture<Executor> f;
    typename fixture<Executor>::timer timer(f.executor);
    outcome o;
    timer.expires_after(1s);
    timer.async_wait(f.record(o));
    manual_clock::advance(f.context, 1s);
    f.poll();
    BOOST_REQUIRE_EQUAL(f.functions.size(), 1U); // it is queued

    BOOST_TEST(timer.cancel() == 1U);
    f.settle();

    BOOST_TEST(o.aborted());
    BOOST_TEST(timer.cancel() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(P4_a_wait_that_is_pulled_back_is_left_alone_by_further_copies,
                              Executor, styles) {
    fixture<Executor> f;
    typename fixture<Executor>::timer timer(f.executor);
    outcome o;
    timer.expires_after(1s);
    timer.async_wait(f.record(o));
    manual_clock::advance(f.context, 1s);
    f.poll();
    BOOST_REQUIRE_EQUAL(f.functions.size(), 1U);

    BOOST_TEST(timer.rearm_after(1s) == 1U);
    f.settle();
    BOOST_TEST(o.pending());
    f.pass(1s);

    BOOST_TEST(o.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(P3_a_wait_is_destroyed_with_the_last_copy, Executor, styles) {
    fixture<Executor> f;
    typename fixture<Executor>::timer timer(f.executor);
    outcome o;
    timer.expires_after(1s);
    timer.async_wait(f.record(o));
    manual_clock::advance(f.context, 1s);
    f.poll();
    BOOST_REQUIRE_EQUAL(f.functions.size(), 1U);

    f.functions.clear();

    BOOST_TEST(!f.handlers_live());
    BOOST_TEST(timer.cancel() == 0U);
    BOOST_TEST(o.pending());
}

/// An executor that may lack memory for outstanding work.
class executor_without_memory : public pawl_test::executor_with_properties {
    using base = pawl_test::executor_with_properties;

public:
    executor_without_memory(const base& ex, const bool& lacks) noexcept
        : base(ex), lacks_(&lacks) {}

    using base::require;
    executor_without_memory require(asio::execution::blocking_t::never_t) const noexcept {
        return *this;
    }
    executor_without_memory require(asio::execution::outstanding_work_t::tracked_t) const {
        if (*lacks_)
            throw std::bad_alloc();
        return *this;
    }

    friend bool operator==(const executor_without_memory&,
                           const executor_without_memory&) noexcept = default;

private:
    const bool* lacks_;
};

BOOST_AUTO_TEST_CASE(P3_a_wait_that_is_pulled_back_and_finds_no_memory_goes_on) {
    fixture<pawl_test::executor_with_properties> f;
    bool lacks_memory = false;
    pawl::manual_timer timer(f.context);
    outcome o;
    timer.expires_after(1s);
    timer.async_wait(
        asio::bind_executor(executor_without_memory(f.executor, lacks_memory), f.record(o)));
    manual_clock::advance(f.context, 1s);
    f.poll();
    BOOST_REQUIRE_EQUAL(timer.rearm_after(1s), 1U);

    lacks_memory = true;
    BOOST_CHECK_THROW(f.functions.run_all(), std::bad_alloc);
    BOOST_TEST(o.pending());
    lacks_memory = false;
    f.pass(1s);

    BOOST_TEST(o.succeeded());
    BOOST_TEST(!f.handlers_live());
}

BOOST_AUTO_TEST_SUITE_END()

// ---- limits ---------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(limits)

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_that_beats_its_limit_tells_its_handler_once, Executor,
                              styles) {
    fixture<Executor> f;
    timeouts::operation op(f.context.get_executor());
    pawl::manual_timer timer(f.context);
    outcome o;
    op.async_run(pawl::timeout(timer, 1s, asio::bind_executor(f.executor, f.record(o))));

    op.post({}, 7);
    f.settle();

    BOOST_TEST(o.succeeded());
    BOOST_TEST(o.size == 7U);
    BOOST_TEST(!f.handlers_live());
    f.pass(1s);
    BOOST_TEST(op.signals().empty());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_limit_that_is_reached_ends_its_operation_once, Executor, styles) {
    using enum timeouts::operation::obedience;
    for (const auto how : {completes_in_the_signal, posts}) {
        fixture<Executor> f;
        timeouts::operation op(f.context.get_executor(), how, aborted, 3);
        timeouts::operation other(f.context.get_executor(), how, aborted, 4);
        pawl::manual_timer timer(f.context), other_timer(f.context);
        outcome told, cancelled;
        op.async_run(pawl::timeout(timer, 1s, asio::bind_executor(f.executor, f.record(told))));
        other.async_run(pawl::cancel_after(other_timer, 1s,
                                           asio::bind_executor(f.executor, f.record(cancelled))));

        f.pass(1s);

        BOOST_TEST(told.ended_with(timed_out));
        BOOST_TEST(told.size == 3U);
        BOOST_TEST(cancelled.ended_with(aborted));
        BOOST_TEST(op.signals().size() == 1U);
        BOOST_TEST(other.signals().size() == 1U);
        BOOST_TEST(!f.handlers_live());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_whose_copies_are_destroyed_ends_its_limit, Executor,
                              styles) {
    fixture<Executor> f;
    timeouts::operation op(f.context.get_executor());
    pawl::manual_timer timer(f.context);
    outcome o;
    op.async_run(pawl::timeout(timer, 1s, asio::bind_executor(f.executor, f.record(o))));
    op.post({}, 7);
    BOOST_REQUIRE_EQUAL(f.functions.size(), 1U);

    f.functions.clear();

    BOOST_TEST(!f.handlers_live());
    f.pass(1s);
    BOOST_TEST(op.signals().empty());
    BOOST_TEST(o.pending());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_limit_that_is_reached_within_the_start_acts_after_it, Executor,
                              styles) {
    fixture<Executor> f;
    timeouts::operation op(f.context.get_executor(), timeouts::operation::obedience::posts, aborted,
                           0);
    pawl::manual_timer timer(f.context);
    outcome o;
    op.at_start = [&] { f.pass(1s); };
    op.async_run(pawl::timeout(timer, 1s, asio::bind_executor(f.executor, f.record(o))));
    BOOST_TEST(op.signals().empty());

    f.settle();

    BOOST_TEST(o.ended_with(timed_out));
    BOOST_TEST(op.signals().size() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_that_is_not_started_says_so_once, Executor, styles) {
    fixture<Executor> f;
    timeouts::operation op(f.context.get_executor());
    outcome o;
    op.async_run(pawl::timeout_at(pawl::deadline(std::chrono::steady_clock::time_point()),
                                  asio::bind_executor(f.executor, f.record(o))));

    f.settle();

    BOOST_TEST(o.ended_with(timed_out));
    BOOST_TEST(op.started() == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_member_of_a_group_is_cancelled_once, Executor, styles) {
    fixture<Executor> f;
    timeouts::operation op(f.context.get_executor(), timeouts::operation::obedience::posts, aborted,
                           3);
    pawl::group group(f.context);
    outcome member, drained;
    op.async_run(pawl::in_group(group, asio::bind_executor(f.executor, f.record(member))));
    group.async_drained(asio::bind_executor(f.executor, f.record(drained)));

    group.cancel(pawl::error::shutting_down);
    f.settle();

    BOOST_TEST(member.ended_with(pawl::error::shutting_down));
    BOOST_TEST(op.signals().size() == 1U);
    BOOST_TEST(drained.succeeded());
    BOOST_TEST(!f.handlers_live());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_tick_is_delivered_once, Executor, styles) {
    fixture<Executor> f;
    pawl::basic_interval_timer<manual_clock> ticks(f.context, manual_clock::now() + 1s, 1s);
    outcome tick;
    ticks.async_wait(asio::bind_executor(f.executor, f.record(tick)));

    f.pass(1s);

    BOOST_TEST(tick.succeeded());
    BOOST_TEST((ticks.next_tick() == manual_clock::now() + 1s));
    BOOST_TEST(!f.handlers_live());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_read_of_a_feed_tells_its_handler_once, Executor, styles) {
    fixture<Executor> f;
    auto reader = pawl::event_feed(f.context).join();
    pawl::steady_timer timer(f.context, 1h);
    std::array<pawl::timer_event, 8> events;
    std::vector<std::size_t> counts;
    const auto read = [&] {
        reader.async_read(
            events, asio::bind_executor(f.executor, [&, a = f.alive](error_code ec, auto got) {
                BOOST_TEST(!ec);
                counts.push_back(got.count);
            }));
    };

    read(); // of what is to come
    f.settle();
    BOOST_TEST(counts.empty());
    timer.async_wait([](error_code) {});
    f.settle();
    timer.cancel();
    read(); // of what is there
    BOOST_TEST(counts.size() == 1U);
    f.settle();

    BOOST_TEST(counts == (std::vector<std::size_t>{1, 1}), boost::test_tools::per_element());
    BOOST_TEST(!f.handlers_live());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_socket_on_such_an_executor_has_limits, Executor, styles) {
    connected<Executor> f;
    pawl::manual_timer timer(f.context), other_timer(f.context);
    outcome read, ended;

    f.here.socket().async_read_some(asio::buffer(f.data), pawl::timeout(timer, 1s, f.record(read)));
    f.feed("abc");
    f.settle();
    f.here.socket().async_read_some(asio::buffer(f.data),
                                    pawl::cancel_after(other_timer, 1s, f.record(ended)));
    f.pass(1s);

    BOOST_TEST(read.succeeded());
    BOOST_TEST(read.size == 3U);
    BOOST_TEST(ended.aborted());
}

BOOST_AUTO_TEST_SUITE_END()

// ---- streams --------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(streams)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_read_tells_its_handler_once, Executor, styles) {
    connected<Executor> f;
    f.here.set_limits({.read = 1s});
    outcome first, second, empty;

    f.read(f.record(first));
    f.feed("abc");
    f.settle();
    f.read(f.record(second)); // one at a time: the first one has ended
    f.here.async_read_some(asio::mutable_buffer(), f.record(empty));
    f.settle();

    BOOST_TEST(first.succeeded());
    BOOST_TEST(first.size == 3U);
    BOOST_TEST(second.pending());
    BOOST_TEST(empty.succeeded());
    f.feed("de");
    f.settle();
    BOOST_TEST(second.size == 2U);
    BOOST_TEST(!f.handlers_live());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(copies_do_not_hide_what_ended_an_operation, Executor, styles) {
    for (const auto action : {pawl::on_limit::close, pawl::on_limit::cancel}) {
        connected<Executor> f;
        f.here.set_limits({.read = 1s, .action = action});
        outcome read, next;

        f.read(f.record(read));
        f.pass(1s);
        f.read(f.record(next));
        f.pass(1s);

        BOOST_TEST(read.timed_out());
        BOOST_TEST(next.timed_out()); // refused, if the first limit has closed the stream
        BOOST_TEST(!f.handlers_live());
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_is_limited_until_the_first_copy_is_called, Executor,
                              styles) {
    connected<Executor> f;
    f.here.set_limits({.read = 1s, .action = pawl::on_limit::cancel});
    outcome read;
    f.read(f.record(read));
    f.here.socket().cancel();
    f.poll();
    BOOST_REQUIRE_EQUAL(f.functions.size(), 1U); // queued

    manual_clock::advance(f.context, 1s);
    f.poll();
    BOOST_REQUIRE_EQUAL(f.functions.size(), 2U); // and the limit is queued, too
    f.settle();

    BOOST_TEST(read.aborted()); // it came first
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_whose_copies_are_destroyed_is_over, Executor, styles) {
    connected<Executor> f;
    f.here.set_limits({.read = 1s, .action = pawl::on_limit::cancel});
    outcome lost, next;
    f.read(f.record(lost));
    f.feed("abc");
    f.poll();
    BOOST_REQUIRE_EQUAL(f.functions.size(), 1U);

    f.functions.clear();
    BOOST_TEST(!f.handlers_live());
    f.read(f.record(next));
    f.pass(1s);

    BOOST_TEST(lost.pending());
    BOOST_TEST(next.timed_out());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancellation_slot_ends_an_operation, Executor, styles) {
    connected<Executor> f;
    f.here.set_limits({.read = 1s});
    asio::cancellation_signal signal;
    outcome read;
    f.read(asio::bind_cancellation_slot(signal.slot(), f.record(read)));

    signal.emit(asio::cancellation_type::terminal);
    f.settle();
    signal.emit(asio::cancellation_type::terminal);

    BOOST_TEST(read.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_connect_tells_its_handler_once, Executor, styles) {
    using tcp_stream =
        pawl::timeout_stream<asio::basic_stream_socket<asio::ip::tcp, Executor>, manual_clock>;
    fixture<Executor> f;
    asio::ip::tcp::acceptor acceptor(f.context, stream_test::loopback);
    tcp_stream stream(f.executor);
    stream.set_limits({.handshake = 1s});
    outcome one, range;

    stream.async_connect(acceptor.local_endpoint(), f.record(one));
    while (one.pending())
        f.settle();
    stream.close();
    const std::array endpoints{acceptor.local_endpoint()};
    stream.async_connect(endpoints,
                         [&, a = f.alive](const error_code& ec, const asio::ip::tcp::endpoint&) {
                             range.record()(ec);
                         });
    while (range.pending())
        f.settle();

    BOOST_TEST(one.succeeded());
    BOOST_TEST(range.succeeded());
    BOOST_TEST(!f.handlers_live());
}

BOOST_AUTO_TEST_SUITE_END()
