// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Every adapter around operations of connected sockets, on the system's clock: the behaviour that
//   the other tests show on manual_clock, in a server's environment.
//
// Model
//   There is no upper bound on time. The tests assert that nothing is early (P1), the results, and
//   that the socket continues normally.

#define BOOST_TEST_MODULE socket
#include <boost/test/unit_test.hpp>

#include "timeout_support.hpp"

#include "../support/asio_configuration.hpp"

#include <pawl/group.hpp>
#include <pawl/interval_timer.hpp>
#include <pawl/sleep.hpp>
#include <pawl/steady_timer.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect_pipe.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/stream_file.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/writable_pipe.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace {

using namespace timeouts;
using namespace asio::experimental::awaitable_operators;
using asio::awaitable;
using asio::use_awaitable;
using asio::ip::tcp;
using steady_clock = std::chrono::steady_clock;

constexpr auto short_time = 20ms;

/// With io_uring some units are Asio's own.
constexpr std::size_t of_pawl(std::size_t units) { return pawl_test::io_uring ? 0 : units; }

struct connected {
    connected() {
        tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
        here.connect(acceptor.local_endpoint());
        acceptor.accept(there);
    }

    /// Runs the coroutine to its end; an exception fails the test.
    void run(awaitable<void> coroutine) {
        std::optional<std::exception_ptr> end;
        asio::co_spawn(context, std::move(coroutine), [&](std::exception_ptr e) { end = e; });
        run_until(context, [&] { return end.has_value(); });
        if (*end)
            std::rethrow_exception(*end);
        BOOST_TEST(of_pawl(run_to_end(context)) == 0u); // nothing was left behind (P9)
    }

    /// The result of a read of one byte.
    awaitable<char> read() {
        char byte = 0;
        co_await here.async_read_some(asio::buffer(&byte, 1), use_awaitable);
        co_return byte;
    }

    awaitable<void> write(char byte) {
        co_await asio::async_write(there, asio::buffer(&byte, 1), use_awaitable);
    }

    asio::io_context context;
    tcp::socket here{context};
    tcp::socket there{context};
};

template <class T>
awaitable<error_code> code_of(awaitable<T> coroutine) {
    try {
        co_await std::move(coroutine);
    } catch (const system_error& e) {
        co_return e.code();
    }
    co_return error_code();
}

BOOST_FIXTURE_TEST_CASE(a_limit_ends_a_read_and_the_next_one_gets_the_data, connected) {
    using duration = steady_clock::duration;
    std::array<char, 16> data{};
    pawl::steady_timer timer(context);
    const auto point = [](duration d) { return steady_clock::now() + d; };

    // `limit(d, handler)` puts the handler under a limit of d.
    const auto check = [&](const error_code& expected, auto limit) {
        const auto read = [&](duration d, outcome& o) {
            here.async_read_some(asio::buffer(data), limit(d, record(o)));
            run_until(context, [&] { return !o.pending(); });
        };
        outcome silent;
        const auto due = point(short_time);
        read(short_time, silent);
        BOOST_TEST(silent.ended_with(expected, 0), silent);
        BOOST_TEST((steady_clock::now() >= due)); // P1

        outcome served;
        asio::write(there, asio::buffer("data", 4));
        read(1h, served);
        BOOST_TEST(served.ended_with(error_code(), 4), served);
        BOOST_TEST(of_pawl(run_to_end(context)) ==
                   0u); // no limit is left, or run() would take an hour
    };

    check(aborted, [](duration d, auto h) { return pawl::cancel_after(d, std::move(h)); });
    check(aborted, [&](duration d, auto h) { return pawl::cancel_at(point(d), std::move(h)); });
    check(aborted, [&](duration d, auto h) { return pawl::cancel_after(timer, d, std::move(h)); });
    check(aborted,
          [&](duration d, auto h) { return pawl::cancel_at(timer, point(d), std::move(h)); });
    check(timed_out, [](duration d, auto h) { return pawl::timeout(d, std::move(h)); });
    check(timed_out, [&](duration d, auto h) { return pawl::timeout_at(point(d), std::move(h)); });
    check(timed_out, [&](duration d, auto h) { return pawl::timeout(timer, d, std::move(h)); });
    check(timed_out,
          [&](duration d, auto h) { return pawl::timeout_at(timer, point(d), std::move(h)); });
    check(timed_out, [](duration d, auto h) {
        return pawl::timeout_at(pawl::deadline::after(d), std::move(h));
    });
}

BOOST_FIXTURE_TEST_CASE(a_limit_ends_a_write_that_the_peer_does_not_take, connected) {
    const std::string much(64'000'000, 'x');
    std::size_t sent = 0;
    for (const bool tell_apart : {false, true}) {
        std::optional<error_code> told;
        const auto handler = [&](error_code ec, std::size_t n) {
            told = ec;
            sent += n;
        };
        const auto due = steady_clock::now() + short_time;
        if (tell_apart)
            asio::async_write(here, asio::buffer(much), pawl::timeout(short_time, handler));
        else
            asio::async_write(here, asio::buffer(much), pawl::cancel_after(short_time, handler));
        run_until(context, [&] { return told.has_value(); });
        BOOST_TEST(*told == (tell_apart ? timed_out : aborted));
        BOOST_TEST((steady_clock::now() >= due));
    }

    // The sent bytes have arrived, and no others.
    here.close();
    std::string all;
    error_code ec;
    asio::read(there, asio::dynamic_buffer(all), ec);
    BOOST_TEST(ec == asio::error::eof);
    BOOST_TEST(all.size() == sent);
}

BOOST_FIXTURE_TEST_CASE(a_coroutine_under_a_limit_or_a_deadline_ends_with_its_read, connected) {
    run([](connected& c) -> awaitable<void> {
        auto due = steady_clock::now() + short_time;
        BOOST_TEST(co_await code_of(pawl::timeout(short_time, c.read())) == timed_out);
        BOOST_TEST((steady_clock::now() >= due));

        due = steady_clock::now() + short_time;
        const auto d = pawl::deadline::after(short_time);
        BOOST_TEST(co_await code_of(pawl::with_deadline(d, c.read())) == timed_out);
        BOOST_TEST((steady_clock::now() >= due));
        BOOST_TEST(d.expired());
        // After the deadline the operation is not started: the byte stays in the socket.
        co_await c.write('a');
        BOOST_TEST(co_await code_of(pawl::with_deadline(d, c.read())) == timed_out);

        BOOST_TEST(co_await pawl::timeout(1h, c.read()) == 'a');
        co_await c.write('b');
        BOOST_TEST(co_await pawl::with_deadline(pawl::deadline::after(1h), c.read()) == 'b');
    }(*this));
}

// A request of two steps, neither of which knows the caller's limit.
BOOST_FIXTURE_TEST_CASE(a_deadline_travels_to_the_operations_of_a_call_chain, connected) {
    const auto step = [](connected& c) -> awaitable<char> {
        const auto left = co_await pawl::this_deadline();
        BOOST_TEST(!left.is_never());
        char byte = 0;
        co_await asio::async_read(c.here, asio::buffer(&byte, 1),
                                  pawl::timeout_at(left, use_awaitable));
        co_return byte;
    };
    const auto request = [&](connected& c) -> awaitable<std::string> {
        std::string answer;
        answer += co_await step(c);
        answer += co_await step(c);
        co_return answer;
    };
    run([](connected& c, const auto& call) -> awaitable<void> {
        co_await c.write('o');
        co_await c.write('k');
        BOOST_TEST(co_await pawl::with_deadline(pawl::deadline::after(1h), call(c)) == "ok");

        const auto due = steady_clock::now() + short_time;
        co_await c.write('o'); // and no more
        BOOST_TEST(co_await code_of(pawl::with_deadline(pawl::deadline::after(short_time),
                                                        call(c))) == timed_out);
        BOOST_TEST((steady_clock::now() >= due));
    }(*this, request));
}

BOOST_FIXTURE_TEST_CASE(a_read_or_a_sleep_whichever_is_first, connected) {
    run([](connected& c) -> awaitable<void> {
        const auto due = steady_clock::now() + short_time;
        const auto silent = co_await (c.read() || pawl::sleep_for(short_time));
        BOOST_TEST(silent.index() == 1u);
        BOOST_TEST((steady_clock::now() >= due));

        co_await c.write('a');
        const auto served = co_await (c.read() || pawl::sleep_for(1h)); // which is over then, too
        BOOST_TEST(served.index() == 0u);

        const auto then = steady_clock::now() + short_time;
        co_await c.write('b');
        BOOST_TEST(co_await (c.read() && pawl::sleep_until(then)) == 'b');
        BOOST_TEST((steady_clock::now() >= then));
    }(*this));
}

BOOST_FIXTURE_TEST_CASE(an_interval_beats_until_the_peer_has_answered, connected) {
    const auto heartbeat = [](tcp::socket& socket, pawl::interval_timer& ticks) -> awaitable<void> {
        for (;;) {
            co_await ticks.async_wait(use_awaitable);
            co_await asio::async_write(socket, asio::buffer("h", 1), use_awaitable);
        }
    };
    // Answers the third beat.
    const auto peer = [](tcp::socket& socket) -> awaitable<void> {
        std::array<char, 3> beats{};
        co_await asio::async_read(socket, asio::buffer(beats), use_awaitable);
        BOOST_TEST(std::string(beats.data(), beats.size()) == "hhh");
        co_await asio::async_write(socket, asio::buffer("y", 1), use_awaitable);
    };
    run([](connected& c, const auto& beat, const auto& answer) -> awaitable<void> {
        const auto begin = steady_clock::now();
        pawl::interval_timer ticks(c.context, 5ms);
        const auto result = co_await ((beat(c.here, ticks) || c.read()) && answer(c.there));
        BOOST_TEST(result.index() == 1u);
        BOOST_TEST((steady_clock::now() >= begin + 10ms)); // the first is due at once
    }(*this, heartbeat, peer));
}

BOOST_FIXTURE_TEST_CASE(a_tick_that_was_not_awaited_to_its_end_is_not_taken, connected) {
    run([](connected& c) -> awaitable<void> {
        const auto first = steady_clock::now() + 1h;
        pawl::interval_timer ticks(c.context, first, 1h);
        co_await c.write('a');
        const auto result = co_await (ticks.async_wait(use_awaitable) || c.read());
        BOOST_TEST(result.index() == 1u);
        BOOST_TEST((ticks.next_tick() == first));
    }(*this));
}

// ---- files: with io_uring -----------------------------------------------------------------------------

#if defined(BOOST_ASIO_HAS_FILE) && defined(BOOST_ASIO_HAS_IO_URING)

BOOST_AUTO_TEST_CASE(a_read_of_a_file_ends_in_time_or_at_its_limit) {
    asio::io_context context;
    asio::writable_pipe there(context);
    asio::readable_pipe here(context);
    asio::connect_pipe(here, there);
    asio::stream_file file(context, ::dup(here.native_handle())); // may never have a byte
    std::array<char, 8> buffer{};
    outcome late, in_time, of_group;

    const auto begin = steady_clock::now();
    file.async_read_some(asio::buffer(buffer), pawl::timeout(short_time, record(late)));
    run_until(context, [&] { return !late.pending(); });
    BOOST_TEST((steady_clock::now() >= begin + short_time));
    BOOST_TEST(late.ended_with(timed_out), late);

    there.write_some(asio::buffer("abc", 3));
    file.async_read_some(asio::buffer(buffer), pawl::timeout(1h, record(in_time)));
    run_until(context, [&] { return !in_time.pending(); });
    BOOST_TEST(in_time.ended_with({}, 3), in_time);

    pawl::group group(context);
    file.async_read_some(asio::buffer(buffer), pawl::in_group(group, record(of_group)));
    asio::post(context, [&] { group.cancel(); });
    run_until(context, [&] { return !of_group.pending(); });
    BOOST_TEST(of_group.ended_with(aborted), of_group);
    run_to_end(context);
}

#endif

} // namespace
