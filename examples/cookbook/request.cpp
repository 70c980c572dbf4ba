// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A server with a limit per request, for everything that the request leads to. When the time is up,
// the answer is an error, on a connection that stays open.
//
// A request is a line, "<limit in ms> <item>". The answer comes from another server, in two questions;
// the second may use only part of the time.

#include "lines.hpp"
#include "support.hpp"

#include <pawl/deadline.hpp>
#include <pawl/error.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using boost::system::system_error;
using cookbook::check;
using cookbook::read_line;
using namespace std::chrono_literals;

/// On its own connection: one that was abandoned with an answer pending is useless.
asio::awaitable<std::string> ask(tcp::endpoint where, std::string question) {
    tcp::socket server(co_await asio::this_coro::executor);
    co_await server.async_connect(where, asio::use_awaitable);
    co_await asio::async_write(server, asio::buffer(question + '\n'), asio::use_awaitable);
    std::string buffer;
    co_return co_await read_line(server, buffer);
}

asio::awaitable<std::string> look_up(tcp::endpoint shop, std::string item, pawl::deadline d) {
    const std::string price = co_await ask(shop, "price " + item);
    std::string rating = "unrated"; // nice to have: may take a quarter of what is left
    try {
        rating =
            co_await pawl::timeout_at(d.within(d.remaining() / 4), ask(shop, "rating " + item));
    } catch (const system_error& e) {
        if (e.code() != pawl::error::timed_out)
            throw;
    }
    co_return price + ' ' + rating;
}

asio::awaitable<std::string> answer(tcp::endpoint shop, std::string item, pawl::deadline d) {
    try {
        co_return "200 " + co_await pawl::timeout_at(d, look_up(shop, item, d));
    } catch (const system_error& e) {
        co_return e.code() == pawl::error::timed_out ? "504 too late" : "502 " + e.code().message();
    }
}

asio::awaitable<void> session(tcp::socket peer, tcp::endpoint shop) {
    for (std::string buffer;;) {
        std::istringstream request(co_await read_line(peer, buffer));
        int limit = 0;
        std::string item;
        std::string reply = "400 write <limit in ms> <item>";
        if (request >> limit >> item)
            reply = co_await answer(shop, item, pawl::deadline::after(limit * 1ms));
        // Its own limit, because the request's may be over. Throws if the session was cancelled.
        co_await asio::async_write(peer, asio::buffer(reply + '\n'), pawl::timeout(5s));
    }
}

// --- the other server, and the client ------------------------------------------------------------

asio::cancellation_signal stop;
std::vector<std::string> questions;

asio::awaitable<void> answer_questions(tcp::socket peer) {
    std::string buffer;
    const std::string question = co_await read_line(peer, buffer);
    questions.push_back(question);
    if (question == "price ghost")
        co_return; // no answer
    if (question == "price last")
        stop.emit(asio::cancellation_type::terminal); // the first server stops in the meantime
    if (question.ends_with("safe") || question == "rating lamp")
        co_await peer.async_wait(tcp::socket::wait_read, asio::use_awaitable); // forever
    const std::string reply = question.starts_with("price") ? "20\n" : "4.5\n";
    co_await asio::async_write(peer, asio::buffer(reply), asio::use_awaitable);
}

asio::awaitable<void> run_shop(tcp::acceptor& acceptor) {
    for (;;) {
        tcp::socket peer = co_await acceptor.async_accept(asio::use_awaitable);
        asio::co_spawn(acceptor.get_executor(), answer_questions(std::move(peer)),
                       [](const std::exception_ptr&) {}); // the client may disconnect
    }
}

asio::awaitable<void> client(tcp::socket& server, tcp::acceptor& shop) {
    std::string buffer;
    const auto request = [&](std::string line) -> asio::awaitable<std::string> {
        co_await asio::async_write(server, asio::buffer(line + '\n'), asio::use_awaitable);
        std::string reply = co_await read_line(server, buffer);
        std::cout << line << ": " << reply << '\n';
        co_return reply;
    };
    check(co_await request("10000 chair") == "200 20 4.5", "a request in time is answered");

    auto start = std::chrono::steady_clock::now();
    check(co_await request("100 safe") == "504 too late", "one that is too late is answered, too");
    check(std::chrono::steady_clock::now() - start >= 100ms, "and not before its time is up");

    start = std::chrono::steady_clock::now();
    check(co_await request("1200 lamp") == "200 20 unrated", "a part that is late is left out");
    check(std::chrono::steady_clock::now() - start >= 300ms, "and not before its time is up");

    const auto before = questions.size();
    check(co_await request("0 chair") == "504 too late", "a limit of zero is over at once");
    check(questions.size() == before, "and nobody is asked");

    check(co_await request("10000 ghost") == "502 End of file", "who vanishes is not late");
    check((co_await request("soon chair")).starts_with("400"), "a limit that is none is refused");

    error_code end;
    try {
        co_await request("10000 last");
    } catch (const system_error& e) {
        end = e.code();
    }
    check(end == asio::error::eof, "a server that stops does not answer that the time was up");
    shop.close();
}

} // namespace

int main() {
    asio::io_context context;
    const tcp::endpoint any(asio::ip::address_v4::loopback(), 0);
    tcp::acceptor shop(context, any);
    tcp::acceptor acceptor(context, any);
    tcp::socket server(context);
    server.connect(acceptor.local_endpoint());

    error_code ending;
    asio::co_spawn(context, run_shop(shop), [](const std::exception_ptr&) {}); // closed at the end
    asio::co_spawn(context, session(acceptor.accept(), shop.local_endpoint()),
                   asio::bind_cancellation_slot(
                       stop.slot(), [&](std::exception_ptr e) { ending = cookbook::code_of(e); }));
    asio::co_spawn(context, client(server, shop), cookbook::rethrow);
    context.run();
    check(ending == asio::error::operation_aborted, "and its session says why it has ended");
    return cookbook::exit_status();
}
