// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A server that shuts down: it stops accepting, lets sessions finish their current request, and ends
// those that take too long.
//
// Sockets and time are real: requests take some milliseconds, or forever.

#include "support.hpp"

#include <pawl/error.hpp>
#include <pawl/group.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <iostream>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using boost::system::system_error;
using clock_type = std::chrono::steady_clock;
using cookbook::check;
using namespace std::chrono_literals;

std::vector<error_code> log_of_sessions;
std::size_t begun = 0; // requests

void log_end(std::exception_ptr e) {
    log_of_sessions.push_back(cookbook::code_of(e));
    std::cout << "a session has ended: " << log_of_sessions.back().message() << '\n';
}

/// Takes a while, or forever if told to hang.
asio::awaitable<std::string> answer(std::string request) {
    ++begun;
    using timer = pawl::steady_timer;
    timer work(co_await asio::this_coro::executor,
               request == "hang\n" ? timer::duration::max() : timer::duration(50ms));
    co_await work.async_wait(asio::use_awaitable);
    co_return "done: " + request;
}

struct server {
    explicit server(asio::io_context& context) : accepting(context), sessions(context) {}

    pawl::group accepting;
    pawl::group sessions;
    pawl::group idle{sessions}; // those of them that wait for a request
};

asio::awaitable<void> session(tcp::socket peer, server& s) {
    std::string buffer;
    while (!s.idle.cancelled()) { // the next request may be in the buffer already
        const auto size = co_await asio::async_read_until(
            peer, asio::dynamic_buffer(buffer), '\n',
            pawl::timeout(30s, pawl::in_group(s.idle, asio::use_awaitable)));
        const std::string reply = co_await answer(buffer.substr(0, size)); // has no limit
        buffer.erase(0, size);
        co_await asio::async_write(peer, asio::buffer(reply),
                                   pawl::timeout(10s, asio::use_awaitable));
    }
}

asio::awaitable<void> accept(tcp::acceptor acceptor, server& s) {
    for (;;) {
        tcp::socket peer = co_await acceptor.async_accept(asio::use_awaitable);
        asio::co_spawn(acceptor.get_executor(), session(std::move(peer), s),
                       pawl::in_group(s.sessions, log_end));
    }
}

/// Returns whether all sessions have ended by themselves.
asio::awaitable<bool> shut_down(server& s, std::chrono::milliseconds grace) {
    constexpr auto token = asio::as_tuple(asio::use_awaitable);
    s.accepting.cancel(pawl::error::shutting_down); // the acceptor goes with its coroutine
    s.idle.cancel(pawl::error::shutting_down);      // reads of the next request, now and later
    auto [late] = co_await s.sessions.async_drained(pawl::timeout(grace, token));
    if (!late)
        co_return true;
    s.sessions.cancel(pawl::error::shutting_down); // the last resort
    co_await s.sessions.async_drained(pawl::timeout(1s, token));
    co_return false;
}

struct link {
    clock_type::time_point last_byte = clock_type::now(); // in either direction
    error_code failed;                                    // the first error
};

/// One direction of a relay. Ends with the stream, or when no byte has gone either way for a while: for
/// 30 s, and for 1 s once the server shuts down.
asio::awaitable<void> pump(tcp::socket& from, tcp::socket& to, link& l, server& s) {
    constexpr auto token = asio::as_tuple(asio::use_awaitable);
    std::array<char, 4096> data;
    for (;;) {
        const auto seen = l.last_byte;
        error_code failed;
        std::size_t size = 0;
        if (!s.idle.cancelled())
            std::tie(failed, size) = co_await from.async_read_some(
                asio::buffer(data), pawl::timeout_at(seen + 30s, pawl::in_group(s.idle, token)));
        else
            std::tie(failed, size) = co_await from.async_read_some(
                asio::buffer(data), pawl::timeout_at(seen + 1s, token));
        if (failed == pawl::error::shutting_down)
            continue; // nothing was read; from now on a short silence will do
        if (failed == pawl::error::timed_out && l.last_byte != seen)
            continue; // the other direction has moved
        if (failed == asio::error::eof)
            break;
        if (!failed)
            std::tie(failed, size) =
                co_await asio::async_write(to, asio::buffer(data, size), pawl::timeout(10s, token));
        if (failed) {
            if (!l.failed)
                l.failed = failed;
            throw system_error(failed); // ends the other direction as well
        }
        l.last_byte = clock_type::now(); // the write may have waited for the receiver
    }
    to.shutdown(tcp::socket::shutdown_send);
}

asio::awaitable<void> relay(tcp::socket client, tcp::socket upstream, server& s) {
    using namespace asio::experimental::awaitable_operators;
    link l;
    try {
        co_await (pump(client, upstream, l, s) && pump(upstream, client, l, s));
    } catch (const asio::multiple_exceptions&) { // not in the order of time
        throw system_error(l.failed);
    }
}

/// Reads until the connection ends, which the server must do.
asio::awaitable<std::string> talk(tcp::socket& peer, std::string_view request) {
    std::string all;
    co_await asio::async_write(peer, asio::buffer(request), asio::use_awaitable);
    (void)co_await asio::async_read(peer, asio::dynamic_buffer(all),
                                    asio::as_tuple(asio::use_awaitable));
    co_return all;
}

/// Clients that send these requests, and a server that shuts down in the meantime.
class scene {
public:
    explicit scene(const std::vector<std::string_view>& requests) : replies(requests.size()) {
        log_of_sessions.clear();
        begun = 0;
        tcp::acceptor acceptor(context_, {asio::ip::address_v4::loopback(), 0});
        const auto where = acceptor.local_endpoint();
        std::vector<tcp::socket> clients;
        asio::co_spawn(context_, accept(std::move(acceptor), server_),
                       pawl::in_group(server_.accepting, asio::detached));
        for (std::size_t i = 0; i < requests.size(); ++i)
            clients.emplace_back(context_).connect(where);
        for (std::size_t i = 0; i < requests.size(); ++i)
            asio::co_spawn(context_, talk(clients[i], requests[i]),
                           [this, i](std::exception_ptr e, std::string reply) {
                               cookbook::rethrow(e);
                               replies[i] = std::move(reply);
                           });
        const auto waiting = static_cast<std::size_t>(std::ranges::count(requests, ""));
        // An inner group with members counts as one member.
        const std::size_t members = requests.size() + (waiting != 0 ? 1 : 0);
        while (begun != requests.size() - waiting || server_.sessions.size() != members)
            context_.run_one();
        asio::co_spawn(context_, shut_down(server_, 500ms),
                       [&](std::exception_ptr e, bool by_themselves) {
                           cookbook::rethrow(e);
                           in_time = by_themselves;
                           clients.emplace_back(context_).connect(where, refused);
                       });
        context_.run(); // returns: no work is left
    }

private:
    asio::io_context context_;
    server server_{context_};

public:
    std::vector<std::string> replies;
    bool in_time = false;
    error_code refused;
};

/// A client, a relay, and an upstream that sends back what it gets. The server shuts down after the first byte.
class relay_scene {
public:
    /// The client sends its next byte when the last one has come back, `bytes` in all. Then it waits for the end.
    relay_scene(int bytes, std::chrono::milliseconds grace) {
        log_of_sessions.clear();
        auto [client, inner] = connected_pair();
        auto [outer, upstream] = connected_pair();
        asio::co_spawn(context_, relay(std::move(inner), std::move(outer), server_),
                       pawl::in_group(server_.sessions, log_end));
        asio::co_spawn(context_, send_back(upstream), cookbook::rethrow);
        asio::co_spawn(context_, ping(client, bytes), cookbook::rethrow);
        if (bytes != 0)
            while (echoed == 0)
                context_.run_one();
        asio::co_spawn(context_, shut_down(server_, grace),
                       [&](std::exception_ptr e, bool by_themselves) {
                           cookbook::rethrow(e);
                           in_time = by_themselves;
                       });
        context_.run(); // returns: no work is left
    }

    int echoed = 0;
    bool in_time = false;

private:
    std::pair<tcp::socket, tcp::socket> connected_pair() {
        tcp::acceptor acceptor(context_, {asio::ip::address_v4::loopback(), 0});
        tcp::socket near(context_);
        near.connect(acceptor.local_endpoint());
        return {std::move(near), acceptor.accept()};
    }

    asio::awaitable<void> send_back(tcp::socket& peer) {
        constexpr auto token = asio::as_tuple(asio::use_awaitable);
        for (char byte = 0;;) {
            if (auto [end, n] = co_await peer.async_read_some(asio::buffer(&byte, 1), token); end)
                break;
            co_await asio::async_write(peer, asio::buffer(&byte, 1), token);
        }
        peer.close();
    }

    asio::awaitable<void> ping(tcp::socket& peer, int bytes) {
        constexpr auto token = asio::as_tuple(asio::use_awaitable);
        char byte = 'x';
        for (error_code end; !end;) {
            if (echoed < bytes)
                co_await asio::async_write(peer, asio::buffer(&byte, 1), token);
            std::tie(end, std::ignore) =
                co_await peer.async_read_some(asio::buffer(&byte, 1), token);
            echoed += end ? 0 : 1;
        }
        peer.close();
    }

    asio::io_context context_;
    server server_{context_};
};

} // namespace

int main() {
    const error_code shutting_down = pawl::error::shutting_down;
    {
        const scene s({"", "work\n", "work\nmore\n"});
        check(s.in_time, "all sessions end by themselves");
        check(s.replies[0].empty(), "a session without a request ends at once");
        check(s.replies[1] == "done: work\n", "a request that has come is answered");
        check(s.replies[2] == "done: work\n", "and none is begun after it");
        check(log_of_sessions[0] == shutting_down, "the log says why");
        check(log_of_sessions.size() == 3, "of each session");
        check(s.refused == asio::error::connection_refused, "clients are refused");
    }
    {
        const scene s({"work\n", "hang\n"});
        check(!s.in_time, "a request may take too long");
        check(s.replies[0] == "done: work\n", "others are answered meanwhile");
        check(s.replies[1].empty(), "it is ended");
        check(log_of_sessions.back() == shutting_down, "and the log says why");
    }
    check(scene({}).in_time, "without a session there is nothing to wait for");
    {
        const relay_scene s(100, 1min);
        check(s.in_time, "a relay ends after a short silence");
        check(s.echoed == 100, "and not before it");
        check(log_of_sessions.at(0) == pawl::error::timed_out, "the log says so");
    }
    check(relay_scene(0, 1min).in_time, "a silent relay ends");
    {
        const relay_scene s(std::numeric_limits<int>::max(), 100ms);
        check(!s.in_time && s.echoed > 0, "a relay that is never silent is ended");
        check(log_of_sessions.at(0) == shutting_down, "and the log says why");
    }
    return cookbook::exit_status();
}
