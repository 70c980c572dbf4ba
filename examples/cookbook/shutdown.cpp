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
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
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

// [recipe]
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
// [recipe end]

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
    return cookbook::exit_status();
}
