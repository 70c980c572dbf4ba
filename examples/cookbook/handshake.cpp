// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A server with a limit only for the first exchange after accept. A client that connects and sends
// nothing, or one byte at a time, is dropped. A client that has said hello may stay silent.

#include "lines.hpp"
#include "support.hpp"

#include <pawl/error.hpp>
#include <pawl/sleep.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <exception>
#include <string>
#include <utility>

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using cookbook::check;
using cookbook::read_line;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

asio::awaitable<void> write_line(tcp::socket& to, std::string line) {
    line += '\n';
    co_await asio::async_write(to, asio::buffer(line), asio::use_awaitable);
}

asio::awaitable<std::string> shake_hands(tcp::socket& peer, std::string& buffer) {
    const std::string name = co_await read_line(peer, buffer);
    co_await write_line(peer, "welcome");
    co_return name;
}

asio::awaitable<void> session(tcp::socket peer, clock_type::duration limit) {
    std::string buffer;
    const auto name = co_await pawl::timeout(limit, shake_hands(peer, buffer));
    for (;;) { // from here on without a limit
        const std::string line = co_await read_line(peer, buffer);
        co_await write_line(peer, name + " said " + line);
    }
}

// --- clients -------------------------------------------------------------------------------------

struct outcome {
    bool ended = false;
    error_code ending{};
    clock_type::duration lasted{};
};

asio::awaitable<void> say_nothing(tcp::socket server) {
    co_await server.async_wait(tcp::socket::wait_read, asio::use_awaitable);
}

asio::awaitable<void> say_a_byte_at_a_time(tcp::socket server) {
    for (error_code dropped; !dropped;) {
        asio::write(server, asio::buffer("h", 1), dropped);
        co_await pawl::sleep_for(20ms);
    }
}

asio::awaitable<void> say_hello_and_fall_silent(tcp::socket server, const outcome& other,
                                                const outcome& third) {
    std::string buffer;
    co_await write_line(server, "Ada");
    check(co_await read_line(server, buffer) == "welcome", "who says hello is welcome");

    while (!other.ended || !third.ended) // these came later, so Ada's limit passes before
        co_await pawl::sleep_for(5ms);

    co_await write_line(server, "sorry");
    check(co_await read_line(server, buffer) == "Ada said sorry", "and may be silent after it");
}

asio::awaitable<void> vanish(tcp::socket server) {
    asio::write(server, asio::buffer("A", 1));
    co_await pawl::sleep_for(1ms);
    server.set_option(tcp::socket::linger(true, 0)); // close() resets the connection
    server.close();
}

/// A session with one client.
template <class Client>
void visit(tcp::acceptor& acceptor, Client client, clock_type::duration limit, outcome& out,
           asio::cancellation_slot slot = {}) {
    const auto context = acceptor.get_executor();
    tcp::socket server(context);
    server.connect(acceptor.local_endpoint());
    const auto start = clock_type::now();
    asio::co_spawn(context, session(acceptor.accept(), limit),
                   asio::bind_cancellation_slot(slot, [&out, start](std::exception_ptr e) {
                       out = {true, cookbook::code_of(e), clock_type::now() - start};
                   }));
    asio::co_spawn(context, client(std::move(server)), cookbook::rethrow);
}

} // namespace

int main() {
    constexpr auto limit = 200ms;
    asio::io_context context;
    tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
    asio::cancellation_signal stop;
    outcome hello, silent, slow, vanished, no_time, stopped;

    const auto say_hello = [&](tcp::socket server) {
        return say_hello_and_fall_silent(std::move(server), silent, slow);
    };
    visit(acceptor, say_hello, limit, hello);
    visit(acceptor, say_nothing, limit, silent);
    visit(acceptor, say_a_byte_at_a_time, limit, slow);
    visit(acceptor, vanish, 1h, vanished);
    visit(acceptor, say_nothing, 0s, no_time);
    visit(acceptor, say_nothing, 1h, stopped, stop.slot());
    asio::post(context, [&] { stop.emit(asio::cancellation_type::terminal); });
    context.run();

    check(hello.ending == asio::error::eof, "a session lasts until its peer goes");
    check(silent.ending == pawl::error::timed_out && silent.lasted >= limit,
          "who says nothing is dropped when its time is up, and not before");
    check(slow.ending == pawl::error::timed_out && slow.lasted >= limit,
          "so is who says a byte at a time");
    check(vanished.ending == asio::error::connection_reset, "who vanishes is not timed out");
    check(no_time.ending == pawl::error::timed_out, "a limit of zero is over at once");
    check(stopped.ending == asio::error::operation_aborted,
          "a session that is cancelled from outside says so: that is no timeout");
    return cookbook::exit_status();
}
