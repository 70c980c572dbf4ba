// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Thousands of real TCP clients that check the promises of idle_echo_server from another process.
//
//   talkers   send at random intervals, well within the timeout, to the end: none may be closed
//   silent    do so for a while, then fall silent: each must be closed, never early, hardly late
//   leavers   do so, then disconnect at a random moment, half of them by a reset
//
// The checker shares nothing with the server: its own timers are Boost.Asio's. Silence counts from
// just before the last bytes are handed to the system. The server cannot have started earlier, so
// "early" needs no tolerance. Delays of the network and of this process count as lateness of the
// server.
//
// Threads: one. A client is a coroutine.

#include "command_line.hpp"
#include "descriptor_limit.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/socket_base.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iomanip>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using clock_type = std::chrono::steady_clock;
using duration = clock_type::duration;
using milliseconds = std::chrono::milliseconds;

constexpr auto use_tuple = asio::as_tuple(asio::use_awaitable);

/// With more lateness than this, the run fails.
constexpr milliseconds tolerance{50};

/// Clients connect in waves, each smaller than any listen queue, over an eighth of the run. Otherwise
/// the time in the listen queue would count as lateness.
constexpr int wave = 32;

struct settings {
    tcp::endpoint server;
    milliseconds idle{};
    std::chrono::seconds length{};
    int talkers = 600;
    int silent = 1000;
    int leavers = 400;
    std::uint64_t seed = 0;
};

enum class kind { talker, silent, leaver };

enum class outcome {
    open,             ///< still open; at the end of the run: it never ended
    closed_by_server, ///< rightly or not
    kept,             ///< open at the end of the run, and the server still answered
    left,             ///< it disconnected
    wrong_echo,       ///< the server sent back something else
    not_connected     ///< it could not connect
};

struct client {
    client(asio::io_context& context, kind k) : what(k), socket(context), pause(context) {}

    const kind what;
    tcp::socket socket;
    asio::steady_timer pause;
    outcome result = outcome::open;
    clock_type::time_point last_send{}; ///< just before the bytes were handed to the system
    duration silence{};                 ///< from last_send until the end by the server was seen
};

class crowd {
public:
    crowd(asio::io_context& context, const settings& s)
        : context_(context), settings_(s), random_(s.seed), end_of_run_(context),
          heartbeat_(context) {
        add(kind::talker, s.talkers);
        add(kind::silent, s.silent);
        add(kind::leaver, s.leavers);
        queue_.reserve(clients_.size());
        for (client& c : clients_)
            queue_.push_back(&c);
        std::shuffle(queue_.begin(), queue_.end(), random_);
    }

    void start() {
        running_ = clients_.size();
        end_ = clock_type::now() + settings_.length;
        for (int i = 0; i < wave; ++i)
            asio::co_spawn(context_, connect(), asio::detached);
        asio::co_spawn(context_, watch_over_the_run(), asio::detached);
        asio::co_spawn(context_, measure_own_delay(), asio::detached);
    }

    /// @return whether the server kept its promises.
    [[nodiscard]] bool report(std::ostream& out) const;

private:
    using amount = std::ptrdiff_t;

    void add(kind k, int count) {
        for (int i = 0; i < count; ++i)
            clients_.emplace_back(context_, k);
    }

    [[nodiscard]] duration between(duration least, duration most) {
        return duration(
            std::uniform_int_distribution<duration::rep>(least.count(), most.count())(random_));
    }

    // --- what clients do ------------------------------------------------------------------------

    /// Connects one client of each wave until all are connected.
    asio::awaitable<void> connect() {
        const auto waves = static_cast<duration::rep>(clients_.size() / wave + 1);
        const auto interval = duration(settings_.length) / 8 / waves;
        asio::steady_timer next_wave(context_, clock_type::now());
        for (;;) {
            co_await next_wave.async_wait(use_tuple);
            next_wave.expires_at(next_wave.expiry() + interval);
            if (queue_.empty() || given_up_)
                co_return;
            client& c = *queue_.back();
            queue_.pop_back();
            auto [ec] = co_await c.socket.async_connect(settings_.server, use_tuple);
            if (ec) {
                note(ec);
                finish(c, outcome::not_connected);
                continue;
            }
            connected_in_ = clock_type::now() - (end_ - settings_.length);
            asio::co_spawn(context_, live(c), asio::detached);
        }
    }

    asio::awaitable<void> live(client& c) {
        // Silence begins a timeout before the end of the run, so that it must be closed within the run.
        const auto now = clock_type::now();
        const auto last_word =
            c.what == kind::silent ? end_ - settings_.idle - 5 * tolerance : end_;
        const auto quit =
            c.what == kind::talker
                ? end_
                : now + between(duration::zero(), std::max(last_word - now, duration{}));

        for (;;) {
            co_await say_something(c);
            if (c.result != outcome::open)
                break;
            c.pause.expires_after(between(settings_.idle / 20, settings_.idle * 2 / 5));
            if (c.what != kind::talker && c.pause.expiry() >= quit)
                break;
            if (c.what == kind::talker && clock_type::now() >= end_)
                break;
            co_await c.pause.async_wait(use_tuple);
        }

        if (c.result == outcome::open && !given_up_) {
            switch (c.what) {
            case kind::talker:
                c.result = outcome::kept; // answered after the end of the run
                break;
            case kind::silent:
                co_await wait_to_be_closed(c);
                break;
            case kind::leaver:
                co_await leave(c, quit);
                break;
            }
        }
        error_code ignored;
        c.socket.close(ignored);
        finish(c, c.result);
    }

    /// Sends a few bytes and checks the echo.
    asio::awaitable<void> say_something(client& c) {
        std::array<char, 48> said;
        std::array<char, 48> heard;
        const auto size = std::uniform_int_distribution<std::size_t>(1, said.size())(random_);
        for (std::size_t i = 0; i < size; ++i)
            said[i] = static_cast<char>('a' + random_() % 26);

        c.last_send = clock_type::now();
        auto [write_error, written] =
            co_await asio::async_write(c.socket, asio::buffer(said, size), use_tuple);
        if (write_error)
            co_return closed(c, write_error);
        auto [read_error, read] =
            co_await asio::async_read(c.socket, asio::buffer(heard, size), use_tuple);
        if (read_error)
            co_return closed(c, read_error);
        if (!std::equal(said.begin(), said.begin() + size, heard.begin()))
            c.result = outcome::wrong_echo;
    }

    asio::awaitable<void> wait_to_be_closed(client& c) {
        char unexpected = 0;
        auto [ec, size] =
            co_await c.socket.async_read_some(asio::buffer(&unexpected, 1), use_tuple);
        if (ec)
            closed(c, ec);
        else
            c.result = outcome::wrong_echo;
    }

    asio::awaitable<void> leave(client& c, clock_type::time_point when) {
        c.pause.expires_at(when);
        co_await c.pause.async_wait(use_tuple);
        error_code ignored;
        if (random_() % 2 == 0)
            c.socket.set_option(asio::socket_base::linger(true, 0), ignored); // a reset
        c.result = outcome::left;
    }

    /// The connection ended, and not by this side.
    void closed(client& c, error_code ec) {
        c.silence = clock_type::now() - c.last_send;
        if (given_up_)
            return;
        c.result = outcome::closed_by_server;
        if (ec != asio::error::eof)
            note(ec);
    }

    void finish(client& c, outcome result) {
        c.result = result;
        if (--running_ == 0) {
            end_of_run_.cancel();
            heartbeat_.cancel();
        }
    }

    void note(error_code ec) {
        if (first_error_.empty())
            first_error_ = ec.message();
    }

    // --- monitoring -----------------------------------------------------------------------------

    /// Ends the run if clients that should have been closed are not.
    asio::awaitable<void> watch_over_the_run() {
        end_of_run_.expires_at(end_ + settings_.idle + std::chrono::seconds(2));
        co_await end_of_run_.async_wait(use_tuple);
        given_up_ = true;
        for (client* c : queue_)
            c->result = outcome::not_connected;
        for (client& c : clients_) {
            error_code ignored;
            c.pause.cancel();
            c.socket.close(ignored);
        }
    }

    /// The worst lateness of this process itself; it cannot see closes any sooner.
    asio::awaitable<void> measure_own_delay() {
        while (running_ != 0 && !given_up_) {
            heartbeat_.expires_after(milliseconds(5));
            auto [ec] = co_await heartbeat_.async_wait(use_tuple);
            if (!ec)
                own_delay_ = std::max(own_delay_, clock_type::now() - heartbeat_.expiry());
        }
    }

    [[nodiscard]] amount count(kind k, outcome o) const {
        return std::count_if(clients_.begin(), clients_.end(),
                             [=](const client& c) { return c.what == k && c.result == o; });
    }

    asio::io_context& context_;
    const settings settings_;
    std::mt19937_64 random_;
    std::deque<client> clients_;
    std::vector<client*> queue_; // not connected yet
    std::size_t running_ = 0;
    bool given_up_ = false;
    clock_type::time_point end_{};
    asio::steady_timer end_of_run_;
    asio::steady_timer heartbeat_;
    duration own_delay_{};
    duration connected_in_{};
    std::string first_error_;
};

[[nodiscard]] double in_ms(duration d) {
    return std::chrono::duration<double, std::milli>(d).count();
}

bool crowd::report(std::ostream& out) const {
    constexpr std::array kinds{kind::talker, kind::silent, kind::leaver};
    constexpr std::array names{"talkers", "silent", "leavers"};
    constexpr std::array columns{outcome::closed_by_server, outcome::kept, outcome::left,
                                 outcome::wrong_echo,       outcome::open, outcome::not_connected};

    out << std::left << std::setw(10) << "" << std::right << std::setw(12) << "connections"
        << std::setw(18) << "closed by server" << std::setw(8) << "kept" << std::setw(8) << "left"
        << std::setw(13) << "echo errors" << std::setw(12) << "never ended" << std::setw(15)
        << "not connected" << '\n';
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        const amount total = std::count_if(clients_.begin(), clients_.end(),
                                           [&](const client& c) { return c.what == kinds[i]; });
        out << std::left << std::setw(10) << names[i] << std::right << std::setw(12) << total;
        constexpr std::array widths{18, 8, 8, 13, 12, 15};
        for (std::size_t j = 0; j < columns.size(); ++j)
            out << std::setw(widths[j]) << count(kinds[i], columns[j]);
        out << '\n';
    }
    const amount in_order = count(kind::talker, outcome::kept) +
                            count(kind::silent, outcome::closed_by_server) +
                            count(kind::leaver, outcome::left);

    std::vector<duration> late;
    for (const client& c : clients_)
        if (c.what == kind::silent && c.result == outcome::closed_by_server)
            late.push_back(c.silence - settings_.idle);
    std::sort(late.begin(), late.end());
    const amount early =
        std::count_if(late.begin(), late.end(), [](duration d) { return d < duration::zero(); });
    const amount too_late =
        std::count_if(late.begin(), late.end(), [](duration d) { return d > tolerance; });

    out << std::fixed << std::setprecision(2);
    if (!late.empty()) {
        const auto percentile = [&](std::size_t p) {
            return in_ms(late[(late.size() * p + 99) / 100 - 1]);
        };
        out << "silent ones closed, ms after the timeout: p50 " << percentile(50) << "  p90 "
            << percentile(90) << "  p99 " << percentile(99) << "  max " << percentile(100)
            << "; early: " << early << "; more than " << tolerance.count()
            << " ms late: " << too_late << '\n';
    }
    out << "all connected within " << in_ms(connected_in_)
        << " ms; the clients' own worst scheduling delay: " << in_ms(own_delay_) << " ms\n";
    if (!first_error_.empty())
        out << "first error seen: " << first_error_ << '\n';

    const bool kept_its_promises =
        in_order == static_cast<amount>(clients_.size()) && early == 0 && too_late == 0;
    if (!kept_its_promises && own_delay_ > tolerance / 2)
        out << "this machine kept the clients themselves waiting for " << in_ms(own_delay_)
            << " ms: run the demo again when it is less busy\n";
    out << (kept_its_promises ? "clients: all as promised" : "clients: NOT as promised")
        << std::endl;
    return kept_its_promises;
}

} // namespace

int main(int argc, char** argv) {
    settings s;
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;
    std::int64_t idle_ms = 2000;
    std::int64_t seconds = 8;
    s.seed = std::random_device()();

    CLI::App app("Thousands of TCP clients that check what idle_echo_server promises.",
                 "demo_clients");
    app.add_option("--host", host, "IP address of the server")
        ->capture_default_str()
        ->check([](const std::string& text) {
            error_code ec;
            asio::ip::make_address(text, ec);
            return ec ? "not an IP address: " + text : std::string();
        });
    app.add_option("--port", port, "TCP port of the server")->required();
    app.add_option("--idle-ms", idle_ms, "the server's idle timeout, 200 ms to 1 h")
        ->option_text("DURATION=2000")
        ->transform(example::as_milliseconds())
        ->check(CLI::Range(std::int64_t{200}, std::int64_t{3'600'000}));
    const auto up_to_a_million = CLI::Range(0, 1'000'000).description("");
    app.add_option("--talkers", s.talkers, "clients that keep talking")
        ->capture_default_str()
        ->check(up_to_a_million);
    app.add_option("--silent", s.silent, "clients that fall silent")
        ->capture_default_str()
        ->check(up_to_a_million);
    app.add_option("--leavers", s.leavers, "clients that disconnect")
        ->capture_default_str()
        ->check(up_to_a_million);
    app.add_option("--seconds", seconds, "how long they talk; at least twice the timeout")
        ->capture_default_str()
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{86'400}).description(""));
    app.add_option("--seed", s.seed, "seed of everything random; printed, and random by default");
    app.callback([&] {
        if (s.talkers + s.silent + s.leavers == 0)
            throw CLI::ValidationError("--silent", "there must be at least one client");
        if (seconds * 1000 < 2 * idle_ms)
            throw CLI::ValidationError("--seconds", "must be at least twice the timeout");
    });
    if (const auto status = example::parse_command_line(app, argc, argv))
        return *status;

    s.server = {asio::ip::make_address(host), port};
    s.idle = milliseconds(idle_ms);
    s.length = std::chrono::seconds(seconds);

    const auto wanted = static_cast<std::uint64_t>(s.talkers + s.silent + s.leavers) + 16;
    const auto limit = example::raise_descriptor_limit();
    if (limit != 0 && limit < wanted) {
        std::cerr << "demo_clients: needs " << wanted << " open files, may have " << limit
                  << "; raise `ulimit -n`\n";
        return 1;
    }

    std::cout << s.talkers + s.silent + s.leavers << " clients of " << s.server << ", timeout "
              << s.idle.count() << " ms, for " << seconds << " s, seed " << s.seed << std::endl;
    asio::io_context context(1);
    crowd c(context, s);
    c.start();
    context.run();
    return c.report(std::cout) ? 0 : 1;
}
