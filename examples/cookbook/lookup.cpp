// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A server that looks up names for its clients, and ends in time although a lookup hangs. Nothing can
// cancel getaddrinfo().
//
// Sockets and time are real. The names are not: getaddrinfo() below knows one, and hangs for all others,
// as it does while no name server answers.

#include "lines.hpp"
#include "support.hpp"

#include <pawl/abandon.hpp>
#include <pawl/error.hpp>
#include <pawl/group.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using boost::system::system_error;
using cookbook::check;
using cookbook::read_line;
using namespace std::chrono_literals;

std::vector<error_code> log_of_sessions;
std::size_t begun = 0; // lookups

void log_end(std::exception_ptr e) {
    log_of_sessions.push_back(cookbook::code_of(e));
    std::cout << "a session has ended: " << log_of_sessions.back().message() << '\n';
}

/// Lookups are the work of this context, which is never destroyed: its destructor would wait for
/// getaddrinfo(). Its thread ends with the process.
asio::io_context& names() {
    static asio::io_context* const context = [] {
        auto* const made = new asio::io_context(1);
        std::thread([made, work = asio::make_work_guard(*made)] { made->run(); }).detach();
        return made;
    }();
    return *context;
}

asio::awaitable<std::string> answer(std::string host, std::chrono::milliseconds limit) {
    tcp::resolver resolver(names());
    try {
        const auto found =
            co_await resolver.async_resolve(host, "80", pawl::timeout(limit, pawl::abandon));
        co_return "200 " + found.begin()->endpoint().address().to_string();
    } catch (const system_error& e) {
        co_return e.code() == pawl::error::timed_out ? "504 too late" : "502 " + e.code().message();
    }
}

asio::awaitable<void> session(tcp::socket peer, std::chrono::milliseconds limit) {
    std::string buffer;
    const std::string host = co_await pawl::timeout(30s, read_line(peer, buffer));
    ++begun;
    const std::string reply = co_await answer(host, limit) + '\n';
    // Throws if the session was cancelled.
    co_await asio::async_write(peer, asio::buffer(reply), pawl::timeout(10s));
}

/// Returns whether all sessions have ended by themselves.
asio::awaitable<bool> shut_down(pawl::group& sessions, std::chrono::milliseconds grace) {
    constexpr auto token = asio::as_tuple(asio::use_awaitable);
    auto [late] = co_await sessions.async_drained(pawl::timeout(grace, token));
    if (!late)
        co_return true;
    sessions.cancel(pawl::error::shutting_down); // abandons lookups
    co_await sessions.async_drained(pawl::timeout(1s, token));
    co_return false;
}

/// A client that asks for a host, and a server that shuts down in the meantime.
class scene {
public:
    scene(std::string host, std::chrono::milliseconds limit, std::chrono::milliseconds grace) {
        log_of_sessions.clear();
        begun = 0;
        asio::io_context context;
        pawl::group sessions(context);
        tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
        tcp::socket client(context);
        client.connect(acceptor.local_endpoint());
        asio::co_spawn(context, session(acceptor.accept(), limit),
                       pawl::in_group(sessions, log_end));
        asio::co_spawn(context, ask(client, host), cookbook::rethrow);
        while (begun == 0)
            context.run_one();
        asio::co_spawn(context, shut_down(sessions, grace),
                       [&](std::exception_ptr e, bool by_themselves) {
                           cookbook::rethrow(e);
                           in_time = by_themselves;
                       });
        context.run(); // returns: the lookup is no work of this context
    }

    std::string reply;
    bool in_time = false;

private:
    /// Reads until the connection ends, which the server must do.
    asio::awaitable<void> ask(tcp::socket& server, std::string host) {
        co_await asio::async_write(server, asio::buffer(host + '\n'), asio::use_awaitable);
        (void)co_await asio::async_read(server, asio::dynamic_buffer(reply),
                                        asio::as_tuple(asio::use_awaitable));
    }
};

} // namespace

// --- in place of the system's functions ----------------------------------------------------------

extern "C" int getaddrinfo(const char* host, const char*, const addrinfo*, addrinfo** found) {
    while (std::string_view(host) != "known.example")
        std::this_thread::sleep_for(1h);
    static sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(0xC0'00'02'01); // 192.0.2.1
    static addrinfo result{};
    result.ai_family = AF_INET;
    result.ai_addrlen = sizeof address;
    result.ai_addr = reinterpret_cast<sockaddr*>(&address);
    *found = &result;
    return 0;
}
extern "C" void freeaddrinfo(addrinfo*) {}

int main() {
    {
        const scene s("known.example", 1min, 1min);
        check(s.in_time && s.reply == "200 192.0.2.1\n", "a name that is known is answered");
    }
    {
        const scene s("hangs.example", 100ms, 1min);
        check(s.in_time && s.reply == "504 too late\n",
              "a lookup that hangs is given up at its limit, and the client is told");
    }
    {
        const scene s("hangs.example", 1h, 100ms);
        check(!s.in_time && s.reply.empty(), "the end of a server ends it before its limit");
        check(log_of_sessions.size() == 1 &&
                  log_of_sessions[0] == make_error_code(pawl::error::shutting_down),
              "and the log says why");
    }
    return cookbook::exit_status(); // and the process ends, although two lookups hang
}
