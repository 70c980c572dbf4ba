// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A TCP session that ends when its peer has been silent for 30 s: one wait for the whole session,
// and one rearm_after() for each read.
//
// The sockets are real. The timer is mostly on pawl::manual_clock, so that minutes of silence pass
// at once; a server uses session<pawl::coarse_timer>.

#include "support.hpp"

#include <pawl/error.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio.hpp>
#include <boost/system/error_code.hpp>

#include <array>
#include <chrono>
#include <exception>
#include <iostream>

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using cookbook::check;
using namespace std::chrono_literals;

template <class Timer>
asio::awaitable<void> echo(tcp::socket& peer, Timer& silence, typename Timer::duration idle) {
    std::array<char, 1024> data;
    for (;;) {
        const auto size = co_await peer.async_read_some(asio::buffer(data), asio::use_awaitable);
        silence.rearm_after(idle); // moves the limit below
        co_await asio::async_write(peer, asio::buffer(data, size), asio::use_awaitable);
    }
}

/// Ends with an exception that has the reason: timed_out, eof, operation_aborted, ...
template <class Timer>
asio::awaitable<void> session(tcp::socket peer, typename Timer::duration idle) {
    Timer silence(peer.get_executor());
    co_await pawl::timeout(silence, idle, echo(peer, silence, idle));
}

using pawl::manual_clock;

asio::awaitable<void> say_a_word(tcp::socket& server) {
    std::array<char, 5> word{'h', 'e', 'l', 'l', 'o'};
    co_await asio::async_write(server, asio::buffer(word), asio::use_awaitable);
    co_await asio::async_read(server, asio::buffer(word), asio::use_awaitable);
}

asio::awaitable<void> talk(tcp::socket& server, asio::io_context& context) {
    for (int i = 0; i != 10; ++i) {
        co_await say_a_word(server);
        manual_clock::advance(context, 30s - 1ns);
    }
    co_await say_a_word(server);
    server.close();
}

asio::awaitable<void> fall_silent(tcp::socket& server, asio::io_context& context) {
    co_await say_a_word(server);
    manual_clock::advance(context, 30s);
    co_await server.async_wait(tcp::socket::wait_read,
                               asio::use_awaitable); // the end of the stream
}

asio::awaitable<void> say_nothing(tcp::socket& server, asio::io_context&) {
    co_await server.async_wait(tcp::socket::wait_read, asio::use_awaitable);
}

asio::awaitable<void> vanish(tcp::socket& server, asio::io_context&) {
    co_await say_a_word(server);
    server.set_option(tcp::socket::linger(true, 0)); // close() resets the connection
    server.close();
}

asio::cancellation_signal stop;

asio::awaitable<void> be_thrown_out(tcp::socket& server, asio::io_context&) {
    co_await say_a_word(server);
    stop.emit(asio::cancellation_type::terminal);
}

/// A session with one client. run() returns when both have ended and no timer is pending.
template <class Timer = pawl::manual_timer, class Client>
error_code ending_of_session_with(Client client, typename Timer::duration idle = 30s) {
    asio::io_context context;
    tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
    tcp::socket server(context);
    server.connect(acceptor.local_endpoint());

    error_code ending;
    asio::co_spawn(context, session<Timer>(acceptor.accept(), idle),
                   asio::bind_cancellation_slot(
                       stop.slot(), [&](std::exception_ptr e) { ending = cookbook::code_of(e); }));
    asio::co_spawn(context, client(server, context), cookbook::rethrow);
    const auto start = manual_clock::now();
    context.run();
    std::cout << "after " << (manual_clock::now() - start) / 1s << " s: " << ending.message()
              << '\n';
    return ending;
}

} // namespace

int main() {
    check(ending_of_session_with(talk) == asio::error::eof,
          "a peer that speaks in time is served for as long as it likes");
    check(ending_of_session_with(fall_silent) == pawl::error::timed_out,
          "a peer that falls silent is timed out");
    check(ending_of_session_with<pawl::steady_timer>(say_nothing, 20ms) == pawl::error::timed_out,
          "by the real clock, too");
    check(ending_of_session_with(say_nothing, 0s) == pawl::error::timed_out,
          "a limit of zero ends a silent session at once");
    check(ending_of_session_with(vanish) == asio::error::connection_reset,
          "a peer that vanishes ends the session, and leaves no timer behind");
    check(ending_of_session_with(be_thrown_out) == asio::error::operation_aborted,
          "a session that is cancelled from outside says so: that is no timeout");
    return cookbook::exit_status();
}
