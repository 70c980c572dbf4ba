// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The blocks of C++ in README.md and doc/ that are not whole programs, each in a place where it runs. check_code.py
// compares them with the pages.

#define BOOST_TEST_MODULE doc_excerpts

#include <pawl/abandon.hpp>
#include <pawl/debounce.hpp>
#include <pawl/delay_queue.hpp>
#include <pawl/event_feed.hpp>
#include <pawl/event_queue.hpp>
#include <pawl/expiring_map.hpp>
#include <pawl/heartbeat.hpp>
#include <pawl/hedge.hpp>
#include <pawl/interval_timer.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/pressure.hpp>
#include <pawl/rate_limiter.hpp>
#include <pawl/retry.hpp>
#include <pawl/ring_timer.hpp>
#include <pawl/stats.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>
#include <pawl/timeout_stream.hpp>
#include <pawl/timer_service.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/system/error_code.hpp>
#include <boost/test/unit_test.hpp>

#include "../support/asio_configuration.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::awaitable;
using asio::bind_executor;
using asio::co_spawn;
using asio::detached;
using asio::post;
using asio::use_awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

namespace {

/// A server's end and a client's end.
struct connected_pair {
    explicit connected_pair(asio::io_context& context) : server(context), client(context) {
        tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
        client.connect(acceptor.local_endpoint());
        acceptor.accept(server);
    }
    tcp::socket server;
    tcp::socket client;
};

void rethrow(std::exception_ptr e) {
    if (e)
        std::rethrow_exception(e);
}

} // namespace

// doc/migrating.md

namespace {

struct before {
    explicit before(asio::io_context& context) : idle_(context) {}
    void close() { ++closed; }

    // before: the old wait is aborted, and its handler has to tell that from an expiry
    void on_read() {
        idle_.expires_after(30s);
        idle_.async_wait([this](error_code ec) {
            if (ec != asio::error::operation_aborted)
                close();
        });
    }

    pawl::manual_timer idle_;
    int closed = 0;
};

struct after {
    explicit after(asio::io_context& context) : idle_(context, 30s) {
        idle_.async_wait([this](error_code ec) { closed += ec ? 0 : 1; });
    }

    // after: one wait for the connection, started with it as above, and cancelled when it ends
    void on_read() {
        idle_.rearm_after(30s); // 0: too late, the handler has started
    }

    pawl::manual_timer idle_;
    int closed = 0;
};

template <class Connection>
void check_moves_deadline() {
    asio::io_context context;
    Connection connection(context);
    for (int i = 0; i < 3; ++i) {
        connection.on_read();
        pawl::manual_clock::advance(context, 29s);
        context.poll();
    }
    BOOST_TEST(connection.closed == 0);
    pawl::manual_clock::advance(context, 1s);
    context.run();
    BOOST_TEST(connection.closed == 1);
}

awaitable<std::size_t> read_or_give_up(tcp::socket& socket, asio::mutable_buffer buffer) {
    try {
        co_return co_await socket.async_read_some(buffer, pawl::timeout(5s));
    } catch (const boost::system::system_error& e) {
        if (e.code() != pawl::error::timed_out)
            throw;
        co_return 0;
    }
}

awaitable<std::size_t> read_or_give_up_by_operator(tcp::socket& socket,
                                                   asio::mutable_buffer buffer) {
    using namespace asio::experimental::awaitable_operators;
    asio::steady_timer timer(socket.get_executor(), 5s);
    const auto result =
        co_await (socket.async_read_some(buffer, use_awaitable) || timer.async_wait(use_awaitable));
    co_return result.index() == 0 ? std::get<0>(result) : 0;
}

// The only line that has changed: it was beast::tcp_stream&.
awaitable<bool> read_request(pawl::tcp_stream& stream, http::request<http::string_body>& request) {
    beast::flat_buffer buffer;
    stream.expires_after(30s);
    try {
        co_await http::async_read(stream, buffer, request, use_awaitable);
    } catch (const boost::system::system_error& e) {
        if (e.code() != beast::error::timeout)
            throw;
        co_return false;
    }
    co_return true;
}

} // namespace

BOOST_AUTO_TEST_CASE(both_ways_to_move_a_deadline_do_the_same) {
    check_moves_deadline<before>();
    check_moves_deadline<after>();
}

BOOST_AUTO_TEST_CASE(a_read_under_a_limit_yields_what_was_read) {
    asio::io_context context;
    connected_pair sockets(context);
    std::array<char, 5> data{};
    std::size_t size = 0;
    const auto add = [&](std::exception_ptr e, std::size_t n) {
        rethrow(e);
        size += n;
    };
    asio::write(sockets.client, asio::buffer("hello12345", 10));

    co_spawn(context, read_or_give_up(sockets.server, asio::buffer(data)), add);
    context.run();
    context.restart();
    co_spawn(context, read_or_give_up_by_operator(sockets.server, asio::buffer(data)), add);
    context.run();

    BOOST_TEST(size == 10U);
}

BOOST_AUTO_TEST_CASE(a_request_is_read_from_a_tcp_stream) {
    asio::io_context context;
    connected_pair sockets(context);
    asio::write(sockets.client, asio::buffer(std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
    pawl::tcp_stream stream(std::move(sockets.server));
    http::request<http::string_body> request;
    bool has_request = false;
    co_spawn(context, read_request(stream, request), [&](std::exception_ptr e, bool got) {
        rethrow(e);
        has_request = got;
        stream.close();
    });
    context.run();
    BOOST_TEST(has_request);
    BOOST_TEST(request.target() == "/");
}

// doc/seeing-your-timers.md

namespace {

awaitable<void> answer_metrics(asio::io_context& context, tcp::socket client,
                               std::uint64_t requests) {
    std::string request;
    co_await asio::async_read_until(client, asio::dynamic_buffer(request, 8192), "\r\n\r\n",
                                    use_awaitable);

    std::string body = pawl::to_prometheus(pawl::stats(context));
    body += "# TYPE myserver_requests_total counter\n" // your own, in the same format
            "myserver_requests_total " +
            std::to_string(requests) + "\n";

    const std::string answer =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
        "Content-Length: " +
        std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
    co_await asio::async_write(client, asio::buffer(answer), use_awaitable);
}

} // namespace

BOOST_AUTO_TEST_CASE(metrics_of_ones_own_stand_beside_those_of_pawl) {
    asio::io_context context;
    connected_pair sockets(context);
    pawl::measure_times(context); // once, at the start

    pawl::steady_timer timer(context, 1ms);
    timer.async_wait([](error_code) {});
    context.run();
    context.restart();
    asio::write(sockets.client, asio::buffer(std::string("GET /metrics HTTP/1.1\r\n\r\n")));
    co_spawn(context, answer_metrics(context, std::move(sockets.server), 42), rethrow);
    context.run();

    std::string answer;
    error_code end;
    asio::read(sockets.client, asio::dynamic_buffer(answer), end);
    BOOST_TEST(answer.find("\nmyserver_requests_total 42\n") != std::string::npos);
    BOOST_TEST(answer.find("\npawl_") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_coroutine_reads_events_and_lists_named_timers) {
    asio::io_context context;
    pawl::steady_timer timer(context, 1h);
    pawl::set_name(timer, "upstream 3");
    pawl::event_feed feed(context);
    auto reader = feed.join();
    std::size_t count = 0;
    co_spawn(
        context,
        [&]() -> awaitable<void> {
            std::array<pawl::timer_event, 64> events;
            const pawl::read_result got = co_await reader.async_read(events, use_awaitable);
            count = got.count;
        },
        rethrow);
    timer.async_wait([](error_code) {});
    context.poll();

    std::ostringstream out;
    auto* const old = std::cout.rdbuf(out.rdbuf());
    for (const pawl::named_timer& t : pawl::named_timers(context))
        std::cout << t.name.view() << ": " << t.waits << " waits, " << t.left.count()
                  << " ns left\n";
    std::cout.rdbuf(old);

    BOOST_TEST(count == 1U);
    BOOST_TEST(out.str().starts_with("upstream 3: 1 waits, "));
}

// doc/event-queue.md

BOOST_AUTO_TEST_CASE(operations_of_asio_complete_as_events) {
    asio::io_context io;
    connected_pair sockets(io);
    pawl::event_queue events;
    std::array<char, 16> data{};
    const auto buffer = asio::buffer(data);
    auto& socket = sockets.server;
    std::size_t size = 0;
    bool has_run = false;
    bool was_posted = false;
    const auto on_read = [&](error_code, std::size_t n) { size = n; };
    const auto session = [&]() -> awaitable<void> {
        co_await post(use_awaitable);
        has_run = true;
    };

    socket.async_read_some(buffer, bind_executor(events.get_executor(), on_read));
    co_spawn(events.get_executor(), session(),
             detached);                       // runs a piece at a time, in process_events()
    post(events, [&] { was_posted = true; }); // from any thread

    asio::write(sockets.client, asio::buffer("hello", 5));
    io.run();
    while (events.process_events() != 0) {
    }
    BOOST_TEST(size == 5U);
    BOOST_TEST(has_run);
    BOOST_TEST(was_posted);
}

BOOST_AUTO_TEST_CASE(late_ticks_are_skipped_and_counted) {
    asio::io_context io;
    std::uint64_t steps = 0;
    const auto advance = [&](std::uint64_t n) { steps += n; };

    pawl::event_queue events({.capacity = 1000, .overflow = pawl::overflow_policy::coalesce});
    pawl::event_queue::timer timer = events.every(
        10ms, [&](const pawl::event_queue::event& e) { advance(1 + e.overruns); },
        pawl::missed_tick_policy::skip);

    while (steps == 0)
        events.wait_for(1s), events.process_events();
    timer.disarm();
    BOOST_TEST(steps >= 1U);
}

// doc/timeouts.md

namespace {

/// Rings once, when it is told to.
struct bell {
    asio::any_io_executor executor;
    std::function<void(error_code)> listener;

    template <class Handler>
    void listen(Handler handler) {
        auto shared = std::make_shared<Handler>(std::move(handler));
        listener = [shared](error_code ec) { std::move (*shared)(ec); };
    }
    void stop_listening() {
        if (auto told = std::exchange(listener, {}))
            post(executor, [told] { told(asio::error::operation_aborted); });
    }
};

struct start_listening {
    bell* b;
    using executor_type = asio::any_io_executor; // on it a limit keeps its time
    executor_type get_executor() const noexcept { return b->executor; }

    template <class Handler>
    void operator()(Handler handler) const {
        auto slot = asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected())
            slot.assign([b = b](asio::cancellation_type_t) { b->stop_listening(); });
        b->listen(std::move(handler));
    }
};

template <class Token>
auto async_listen(bell& b, Token&& token) {
    return asio::async_initiate<Token, void(error_code)>(start_listening{&b}, token);
}

struct request {
    int id;
    std::string url;
};
using row = int;
using page = std::string;
struct reply {
    row x;
    page y;
};

template <class Token>
auto query(int id, Token&& token) {
    return asio::async_initiate<Token, void(error_code, row)>(
        [id](auto handler) {
            auto executor = asio::get_associated_executor(handler);
            post(executor,
                 [id, h = std::move(handler)]() mutable { std::move(h)(error_code(), id + 1); });
        },
        token);
}
template <class Token>
auto fetch(std::string url, Token&& token) {
    return asio::async_initiate<Token, void(error_code, page)>(
        [url](auto handler) {
            auto executor = asio::get_associated_executor(handler);
            post(executor, [url, h = std::move(handler)]() mutable {
                std::move(h)(error_code(), "page " + url);
            });
        },
        token);
}

awaitable<reply> handle(request r, pawl::deadline d) {
    const row x =
        co_await query(r.id, pawl::timeout_at(d.within(2s), use_awaitable)); // 2 s, or what is left
    const page y = co_await fetch(r.url, pawl::timeout_at(d, use_awaitable)); // what is left
    co_return reply{x, y};
}

} // namespace

BOOST_AUTO_TEST_CASE(a_limit_in_a_coroutine_and_around_a_callback) {
    asio::io_context context;
    connected_pair sockets(context);
    auto& socket = sockets.server;
    std::array<char, 5> data{};
    const auto buffer = asio::buffer(data);
    std::size_t size = 0;
    asio::write(sockets.client, asio::buffer("hello12345", 10));
    co_spawn(
        context,
        [&]() -> awaitable<void> {
            std::size_t n = co_await socket.async_read_some(buffer, pawl::timeout(5s));
            size += n;
        },
        rethrow);
    context.run();
    context.restart();

    const auto close = [&] { socket.close(); };
    socket.async_read_some(buffer, pawl::timeout(5s, [&](error_code ec, std::size_t n) {
                               if (ec == pawl::error::timed_out)
                                   close();
                               size += n;
                           }));

    context.run();
    BOOST_TEST(size == 10U);
    BOOST_TEST(socket.is_open());
}

BOOST_AUTO_TEST_CASE(an_operation_of_ones_own_ends_by_its_limit_or_before) {
    asio::io_context context;
    bell b{context.get_executor(), {}};
    error_code got;
    async_listen(b, pawl::timeout(1ms, [&](error_code ec) { got = ec; }));
    context.run();
    BOOST_TEST(got == pawl::error::timed_out);
    context.restart();

    got = asio::error::eof;
    async_listen(b, pawl::timeout(1h, [&](error_code ec) { got = ec; }));
    std::exchange(b.listener, {})(error_code());
    context.run(); // returns: the limit has gone
    BOOST_TEST(!got);
}

BOOST_AUTO_TEST_CASE(a_deadline_is_shared_by_several_calls) {
    asio::io_context context;
    std::string text;
    co_spawn(context, handle({41, "x"}, pawl::deadline::after(1h)),
             [&](std::exception_ptr e, reply r) {
                 rethrow(e);
                 text = std::to_string(r.x) + " " + r.y;
             });
    context.run();
    BOOST_TEST(text == "42 page x");
}

BOOST_AUTO_TEST_CASE(a_stream_has_limits_of_its_own_and_a_total) {
    asio::io_context context;
    connected_pair sockets(context);
    auto& socket = sockets.server;
    beast::flat_buffer buffer;
    http::request<http::string_body> request;
    asio::write(sockets.client, asio::buffer(std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
    co_spawn(
        context,
        [&]() -> awaitable<void> {
            pawl::tcp_stream stream(std::move(socket));
            stream.set_limits({.idle = 60s, .write = 10s});
            stream.expires_after(5s); // absolute, for everything until then
            co_await http::async_read(stream, buffer, request, use_awaitable);
        },
        rethrow);
    context.run();
    BOOST_TEST(request.target() == "/");
}

BOOST_AUTO_TEST_CASE(an_interval_ticks_in_a_loop_and_under_operators) {
    using namespace asio::experimental::awaitable_operators;
    asio::io_context context;
    std::uint64_t reports = 0;
    const auto report = [&](std::uint64_t) {
        if (++reports == 3)
            context.stop();
    };
    co_spawn(
        context,
        [&]() -> awaitable<void> {
            constexpr auto skip = pawl::missed_tick_policy::skip;
            pawl::interval_timer ticks(context, 1ms, skip); // the first tick is due at once
            for (;;) {
                const std::uint64_t missed = co_await ticks.async_wait(use_awaitable);
                report(missed);
            }
        },
        rethrow);
    context.run();
    BOOST_TEST(reports == 3U);
    context.restart();

    const auto read = [&]() -> awaitable<void> {
        pawl::steady_timer never(context, pawl::steady_timer::time_point::max());
        co_await never.async_wait(use_awaitable);
    };
    std::size_t winner = 99;
    co_spawn(
        context,
        [&]() -> awaitable<void> {
            pawl::interval_timer ticks(context, 1ms);
            const auto first = co_await (ticks.async_wait(use_awaitable) || read());
            winner = first.index();
        },
        [&](std::exception_ptr e) {
            context.stop(); // the other coroutine ticks on
            rethrow(e);
        });
    context.run();
    BOOST_TEST(winner == 0U);
}

BOOST_AUTO_TEST_CASE(timeouts_shrink_under_pressure) {
    asio::io_context context;
    connected_pair sockets(context);
    auto& socket = sockets.server;
    std::array<char, 5> data{};
    const auto buffer = asio::buffer(data);
    const auto close_connection = [] { BOOST_ERROR("closed"); };
    const int open = 900, room = 1000;
    asio::write(sockets.client, asio::buffer("hello", 5));
    double set = 0;
    co_spawn(
        context,
        [&]() -> awaitable<void> {
            pawl::pressure pressure(context);
            pawl::scaled_alarm idle(context, close_connection);
            idle.arm_within(6s, 60s); // again for each read
            co_await socket.async_read_some(buffer, pawl::timeout(pawl::scaled(1s, 10s)));
            const double used = double(open) / room; // descriptors, memory, what you measure
            pressure.set(std::clamp(used, 0., 1.));
            set = pressure.value();
        },
        rethrow);
    context.run();
    BOOST_TEST(set == 0.9);
}

// doc/patterns.md

BOOST_AUTO_TEST_CASE(patterns_of_clients) {
    asio::io_context context;
    const std::array<int, 2> servers{3, 4};
    const auto ask_by = [](pawl::deadline d) -> awaitable<int> {
        if (d.is_never())
            throw std::logic_error("an attempt has a deadline");
        co_return 7;
    };
    int answers = 0;
    co_spawn(
        context,
        [&]() -> awaitable<void> {
            const auto ask = ask_by;
            pawl::retry_budget budget; // shared by all requests
            const pawl::retry_policy policy{.attempt_limit = 2s, .limit = 10s, .budget = &budget};
            int reply =
                co_await pawl::retry(policy, [&](pawl::attempt a) { return ask(a.deadline()); });
            answers += reply;
        },
        rethrow);
    co_spawn(
        context,
        [&]() -> awaitable<void> {
            const auto ask = [](int server) -> awaitable<int> { co_return server; };
            pawl::retry_budget budget;
            int reply =
                co_await pawl::hedge({.delay = 50ms, .budget = &budget},
                                     [&](pawl::attempt a) { return ask(servers[a.number() - 1]); });
            answers += reply;
        },
        rethrow);
    context.run();
    BOOST_TEST(answers == 10);
}

BOOST_AUTO_TEST_CASE(a_rate_limiter_serves_in_order_or_refuses) {
    asio::io_context context;
    int refused = 0;
    const auto too_many_requests = [&] { ++refused; };
    const auto serve = [&]() -> awaitable<void> {
        pawl::rate_limiter requests(context, {.tokens = 100, .period = 1s, .burst = 10});
        co_await requests.async_acquire();
        if (!requests.try_acquire())
            co_return too_many_requests();
        (void)requests.try_acquire(8);
        if (!requests.try_acquire())
            co_return too_many_requests();
    };
    co_spawn(context, serve, rethrow);
    context.run();
    BOOST_TEST(refused <= 1);
}

BOOST_AUTO_TEST_CASE(a_burst_of_triggers_is_one_call) {
    asio::io_context context;
    const int document = 1, progress = 2;
    int written = 0, drawn = 0;
    const auto write = [&](int what) { written += what; };
    const auto draw = [&](int what) { drawn += what; };
    pawl::debounce save(context, 300ms, [&] { write(document); }, {.max_wait = 5s});
    save(); // for each change
    pawl::throttle show(context, 100ms, [&] { draw(progress); });
    show(); // for each byte
    save.flush();
    context.run();
    BOOST_TEST(written == 1);
    BOOST_TEST(drawn == 2);
}

BOOST_AUTO_TEST_CASE(a_heartbeat_is_a_store_for_each_byte) {
    asio::io_context context;
    tcp::socket socket(context);
    const auto strand = asio::make_strand(context);
    const int ping = 1;
    const auto write = [](int) {};
    pawl::heartbeat beat(
        strand, {.interval = 30s, .misses = 3},
        [&] { write(ping); },     // nothing was sent for an interval
        [&] { socket.close(); }); // three intervals without a byte
    beat.received();              // after each read, whatever it was
    beat.sent();                  // with each write
    BOOST_TEST(beat.running());
}

namespace {

struct session {
    explicit session(std::string user) : name(std::move(user)) {}
    void use() { ++uses; }
    std::string name;
    int uses = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(keys_expire_and_values_come_later) {
    asio::io_context context;
    const std::string token = "1", other = "2", user = "ada", guest = "guest";
    pawl::expiring_map<std::string, session> sessions(
        context, {.ttl = 30min, .refresh_on_use = true, .capacity = 100'000});
    sessions.insert(token, session(user));
    sessions.insert(other, session(guest), 1min); // its own time to live
    if (session* s = sessions.find(token))
        s->use();
    BOOST_TEST(sessions.find(token)->uses == 1);

    using job = int;
    const job mine = 1, yours = 2;
    job ran = 0;
    const auto run = [&](job j) { ran = j; };
    co_spawn(
        context,
        [&]() -> awaitable<void> {
            pawl::delay_queue<job> later(context);
            const auto id = later.push(mine, 5s);
            later.push(yours, 1s);
            later.cancel(id); // true if it was not due yet
            const auto due = co_await later.async_pop(use_awaitable);
            run(due->second); // due->first is the id
        },
        rethrow);
    context.run_for(3s);
    BOOST_TEST(ran == 2);
}

// doc/timeouts.md

PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(what_cannot_be_cancelled_is_abandoned) {
    asio::io_context context;
    // Never destroyed: its destructor would wait for a lookup that hangs.
    static auto& names = *new asio::io_context;
    static std::thread resolves([work = asio::make_work_guard(names)] { names.run(); });
    const std::string host = "localhost";
    std::size_t found = 0;
    co_spawn(
        context,
        [&]() -> awaitable<void> {
            tcp::resolver resolver(names);
            auto hosts =
                co_await resolver.async_resolve(host, "80", pawl::timeout(2s, pawl::abandon));
            found = hosts.size();
        },
        rethrow);
    context.run();
    BOOST_TEST(found != 0U);
    names.stop();
    resolves.join();
}

// doc/performance.md

BOOST_AUTO_TEST_CASE(rings_have_a_delay_each) {
    asio::io_context context;

    pawl::options o;
    o.rings.delays = {{.delay = 5s}, {.delay = 30s, .capacity = 100'000}};
    pawl::make_timer_service<pawl::ring_timer>(
        context, o); // <ring_timer>: each timer type has options of its own

    pawl::ring_timer timer(context, 30s);
    error_code got;
    timer.async_wait([&](error_code ec) { got = ec; });
    timer.cancel();
    context.run();
    BOOST_TEST(got == asio::error::operation_aborted);
}
