// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A TCP echo server that closes connections after some time of silence.
//
// Each connection has one timer, and one wait on it for its whole life, the watcher. A read that brings
// data moves the watcher's deadline by one rearm_after(), and does nothing else for the timeout. The
// timer is a coarse_timer: it may be some milliseconds late, and moving it is cheap. The watcher runs
// exactly once, and so does the bookkeeping:
//
//   success             the deadline has passed: close the connection
//   operation_aborted   the connection has ended, and serve() has cancelled the watcher
//   shut_down           stop() has woken all watchers with expire_all(): close the connection
//
// Threads: a connection's socket, timer and coroutine live on one strand; the acceptor and the signals
// share another one. State shared between strands is atomic.

#include "command_line.hpp"
#include "descriptor_limit.hpp"

#include <pawl/coarse_timer.hpp>
#include <pawl/expire_all.hpp>
#include <pawl/steady_timer.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto use_tuple = asio::as_tuple(asio::use_awaitable);

struct settings {
    tcp::endpoint endpoint;
    std::chrono::milliseconds idle{};
    int threads = 1;
};

/// One connection. Shared by its coroutine and its watcher; the last to end destroys it.
struct session {
    explicit session(tcp::socket accepted)
        : socket(std::move(accepted)), idle_timer(socket.get_executor()) {}

    tcp::socket socket;
    pawl::coarse_timer idle_timer;
    std::array<char, 1024> data{};
};

class server {
public:
    /// Listens.
    /// @throws boost::system::system_error if the endpoint is in use or cannot be bound.
    server(asio::io_context& context, const settings& s)
        : context_(context), idle_(s.idle), one_thread_(s.threads == 1), acceptor_(new_executor()),
          signals_(acceptor_.get_executor(), SIGINT, SIGTERM) {
        acceptor_.open(s.endpoint.protocol());
        // A restart need not wait for the system to forget the last run's connections.
        acceptor_.set_option(tcp::acceptor::reuse_address(true));
        acceptor_.bind(s.endpoint);
        acceptor_.listen();
    }

    [[nodiscard]] tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

    void start() {
        signals_.async_wait([this](error_code ec, int signal) {
            if (!ec)
                stop(signal);
        });
        asio::co_spawn(acceptor_.get_executor(), accept(), [](std::exception_ptr failure) {
            if (failure) // no memory for one more connection: cannot continue
                std::rethrow_exception(failure);
        });
    }

    /// Called when the context has no work left and its threads have ended.
    void print_summary(std::ostream& out) const {
        out << "accepted " << accepted_.load() << ", timed out " << timed_out_.load()
            << ", closed by peer " << closed_by_peer_.load() << ", closed at shutdown "
            << closed_at_shutdown_.load();
        if (accept_pauses_ != 0)
            out << ", pauses for want of resources " << accept_pauses_;
        out << std::endl;
    }

private:
    /// Operations on one executor do not race. One thread needs no strand.
    [[nodiscard]] asio::any_io_executor new_executor() {
        if (one_thread_)
            return context_.get_executor();
        return asio::make_strand(context_);
    }

    [[nodiscard]] bool stopping() const noexcept {
        return stopping_.load(std::memory_order_acquire); // pairs with stop()
    }

    static void count(std::atomic<std::size_t>& number) noexcept {
        // relaxed: read only when the threads that count have ended
        number.fetch_add(1, std::memory_order_relaxed);
    }

    asio::awaitable<void> accept() {
        pawl::steady_timer pause(acceptor_.get_executor());
        while (!stopping()) {
            auto [ec, socket] = co_await acceptor_.async_accept(new_executor(), use_tuple);
            if (!ec) {
                count(accepted_);
                auto s = std::make_shared<session>(std::move(socket));
                const auto executor = s->socket.get_executor();
                asio::co_spawn(executor, serve(std::move(s)), asio::detached);
            } else if (!stopping() && ec != asio::error::connection_aborted) {
                // Out of descriptors or memory. Retrying at once would spin until some connection ends. Logged once,
                // not per attempt.
                if (accept_pauses_++ == 0)
                    std::cerr << "cannot accept for now: " << ec.message() << std::endl;
                pause.expires_after(std::chrono::milliseconds(100));
                co_await pause.async_wait(use_tuple); // stop() ends it early
            }
        }
    }

    asio::awaitable<void> serve(std::shared_ptr<session> s) {
        s->idle_timer.expires_after(idle_);
        s->idle_timer.async_wait([this, s](error_code ec) { end(*s, ec); });

        // stopping() is read after the watcher's deadline was set. stop() sets it before it wakes the
        // watchers. So stop() either wakes this watcher, or is noticed here.
        while (!stopping()) {
            auto [read_error, size] =
                co_await s->socket.async_read_some(asio::buffer(s->data), use_tuple);
            if (read_error)
                break;
            if (s->idle_timer.rearm_after(idle_) == 0 || stopping())
                break; // the watcher has closed the connection, or is about to
            auto [write_error, written] =
                co_await asio::async_write(s->socket, asio::buffer(s->data, size), use_tuple);
            if (write_error)
                break;
        }
        s->idle_timer.cancel();
    }

    /// The watcher's handler: every connection ends here.
    void end(session& s, error_code ec) {
        if (!ec)
            count(timed_out_);
        else if (stopping())
            count(closed_at_shutdown_);
        else
            count(closed_by_peer_);

        error_code ignored;
        s.socket.close(ignored); // ends a pending read or write of serve()
    }

    void stop(int signal) {
        std::cerr << "stopping on " << (signal == SIGINT ? "SIGINT" : "SIGTERM") << std::endl;
        error_code ignored;
        signals_.clear(ignored);                          // a second signal kills at once
        stopping_.store(true, std::memory_order_release); // pairs with stopping()
        acceptor_.close(ignored);
        pawl::expire_all(context_, asio::error::shut_down);
    }

    asio::io_context& context_;
    const std::chrono::milliseconds idle_;
    const bool one_thread_;
    tcp::acceptor acceptor_;
    asio::signal_set signals_;
    std::atomic<bool> stopping_ = false;

    std::atomic<std::size_t> accepted_ = 0;
    std::atomic<std::size_t> timed_out_ = 0;
    std::atomic<std::size_t> closed_by_peer_ = 0;
    std::atomic<std::size_t> closed_at_shutdown_ = 0;
    std::size_t accept_pauses_ = 0; // of the acceptor's strand
};

void run(const settings& s) {
    asio::io_context context(s.threads);
    server echo(context, s);
    echo.start();
    std::cout << "listening on " << echo.endpoint() << std::endl; // flushed: scripts wait for it

    {
        std::vector<std::jthread> others;
        for (int i = 1; i < s.threads; ++i)
            others.emplace_back([&] { context.run(); });
        try {
            context.run();
        } catch (...) {
            context.stop(); // otherwise the other threads would continue
            throw;
        }
    }
    echo.print_summary(std::cerr);
}

} // namespace

int main(int argc, char** argv) {
    settings s;
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;
    std::int64_t idle_ms = 30'000;

    CLI::App app("A TCP echo server that closes connections which send nothing for a while.",
                 "idle_echo_server");
    app.add_option("--address", address, "IPv4 or IPv6 address to listen on")
        ->capture_default_str()
        ->check([](const std::string& text) {
            error_code ec;
            asio::ip::make_address(text, ec);
            return ec ? "not an IP address: " + text : std::string();
        });
    app.add_option("--port", port, "TCP port to listen on, 0 for any that is free")
        ->capture_default_str();
    app.add_option("--idle", idle_ms, "silence after which a connection is closed, 1 ms to 24 h")
        ->option_text("DURATION=30s   (1500, 1500ms, 30s, 5min, 1h)")
        ->transform(example::as_milliseconds())
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{24 * 3'600'000}));
    app.add_option("--threads", s.threads, "threads that serve, 1 to 256")
        ->option_text("INT=1")
        ->check(CLI::Range(1, 256));
    if (const auto status = example::parse_command_line(app, argc, argv))
        return *status;

    s.endpoint = {asio::ip::make_address(address), port};
    s.idle = std::chrono::milliseconds(idle_ms);
    example::raise_descriptor_limit();
    try {
        run(s);
        return 0;
    } catch (const boost::system::system_error& e) {
        std::cerr << "cannot listen on " << s.endpoint << ": " << e.code().message() << std::endl;
    } catch (const std::exception& e) {
        std::cerr << "idle_echo_server: " << e.what() << std::endl;
    }
    return 1;
}
