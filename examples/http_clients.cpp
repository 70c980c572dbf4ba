// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Real HTTP clients, most of them bad ones, that check the promises of http_server from another
// process. Each kind has its own end:
//
//   slow headers   send the header of a request a byte at a time        ended at --header-timeout
//   mute           connect and say nothing                              ended at --header-timeout
//   slow bodies    send a header, then the body a byte at a time        ended at --body-timeout
//   idle           get a response, then say nothing                     ended at --idle
//   deaf           ask for a large file and never read it               ended at --write-timeout
//   vanishing      leave in the middle of a request or of a response    no visible end
//   ordinary       get a file every now and then, to the end            every answer is 200, complete
//
// The checker shares nothing with the server: its own timers are Boost.Asio's. A client starts its
// clock just before it does what starts the limit. The server cannot have started earlier, so "early"
// needs no tolerance. Delays of the network and of this process count as lateness of the server; for a
// deaf client, so does the time until all buffers between the two are full.
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
#include <boost/asio/socket_base.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using clock_type = std::chrono::steady_clock;
using duration = clock_type::duration;
using milliseconds = std::chrono::milliseconds;

constexpr auto use_tuple = asio::as_tuple(asio::use_awaitable);

enum class kind { slow_header, mute, slow_body, idle, deaf, vanishing, ordinary };
constexpr std::array<std::string_view, 7> kind_names{
    "slow headers", "mute", "slow bodies", "idle", "deaf", "vanishing", "ordinary"};

struct settings {
    tcp::endpoint server;
    std::array<int, kind_names.size()> count{};
    milliseconds header{1000}, body{1000}, idle{1000}, write{1000};
    milliseconds pace{100};      ///< between two bytes of a slow client
    milliseconds tolerance{250}; ///< how late the server may be
    milliseconds length{2000};   ///< minimum length of the ordinary clients' part
    std::string file = "/index.html";
    std::string large_file = "/large";
    std::uint64_t seed = 0;

    [[nodiscard]] int number_of(kind k) const { return count[static_cast<std::size_t>(k)]; }
    /// When the server promises to end such a client; zero if it does not.
    [[nodiscard]] milliseconds limit_of(kind k) const {
        switch (k) {
        case kind::slow_header:
        case kind::mute:
            return header;
        case kind::slow_body:
            return body;
        case kind::idle:
            return idle;
        case kind::deaf:
            return write;
        default:
            return milliseconds(0);
        }
    }
};

struct client {
    client(asio::io_context& context, kind k) : what(k), socket(context), watchdog(context) {}

    const kind what;
    tcp::socket socket;
    asio::steady_timer watchdog;
    bool in_order = false;          ///< everything that the server sent was correct
    bool ended = false;             ///< by the server, at `end`
    clock_type::time_point begin{}; ///< when the limit starts
    clock_type::time_point end{};
};

class crowd {
public:
    crowd(asio::io_context& context, const settings& s)
        : context_(context), settings_(s), random_(s.seed), heartbeat_(context) {
        for (std::size_t k = 0; k < kind_names.size(); ++k)
            for (int i = 0; i < s.count[k]; ++i)
                clients_.emplace_back(context_, static_cast<kind>(k));
        for (client& c : clients_)
            queue_.push_back(&c);
        std::shuffle(queue_.begin(), queue_.end(), random_);
        bad_left_ = clients_.size() - static_cast<std::size_t>(s.number_of(kind::ordinary));
        left_ = clients_.size();
    }

    void start() {
        earliest_end_ = clock_type::now() + settings_.length;
        asio::co_spawn(context_, connect_all(), asio::detached);
        asio::co_spawn(context_, measure_own_delay(), asio::detached);
    }

    /// @return whether the server kept its promises.
    [[nodiscard]] bool report(std::ostream& out) const;

private:
    asio::awaitable<void> connect_all() {
        // In waves smaller than any listen queue: waiting there would count as lateness.
        constexpr std::size_t wave = 32;
        asio::steady_timer pause(context_);
        for (std::size_t i = 0; i < queue_.size(); ++i) {
            if (i % wave == wave - 1) {
                pause.expires_after(milliseconds(10));
                co_await pause.async_wait(use_tuple);
            }
            asio::co_spawn(context_, run(*queue_[i]), asio::detached);
        }
    }

    asio::awaitable<void> run(client& c) {
        if (c.what == kind::deaf) { // otherwise the system would buffer much of it
            c.socket.open(settings_.server.protocol());
            c.socket.set_option(asio::socket_base::receive_buffer_size(4096));
        }
        c.begin = clock_type::now();
        const auto [ec] = co_await c.socket.async_connect(settings_.server, use_tuple);
        if (ec)
            note(ec);
        else
            co_await behave(c);
        error_code ignored;
        c.socket.close(ignored);

        if (c.what != kind::ordinary)
            --bad_left_;
        if (--left_ == 0)
            heartbeat_.cancel();
    }

    asio::awaitable<void> behave(client& c) {
        switch (c.what) {
        case kind::slow_header:
        case kind::slow_body:
            return be_slow(c);
        case kind::mute:
            return wait_for_end(c);
        case kind::idle:
            return be_idle(c);
        case kind::deaf:
            return be_deaf(c);
        case kind::vanishing:
            return vanish(c);
        case kind::ordinary:
            break;
        }
        return be_ordinary(c);
    }

    asio::awaitable<void> be_slow(client& c) {
        if (c.what == kind::slow_body) {
            c.begin = clock_type::now();
            co_await say(c, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9999\r\n\r\n");
        }
        asio::co_spawn(context_, drip(c), asio::detached);
        co_await wait_for_end(c);
    }

    asio::awaitable<void> be_idle(client& c) {
        c.begin = clock_type::now();
        const bool answered = co_await get(c); // inside an if, g++ 12 compiles it to a trap
        if (!answered)
            co_return;
        co_await wait_for_end(c);
    }

    /// A byte now and then, until the socket is closed.
    asio::awaitable<void> drip(client& c) {
        const std::string_view text =
            c.what == kind::slow_header ? "GET / HTTP/1.1\r\nHost: h\r\nX-Slow: " : "";
        asio::steady_timer pause(context_);
        for (std::size_t i = 0;; ++i) {
            const char byte = i < text.size() ? text[i] : 'x';
            const auto [ec, size] =
                co_await asio::async_write(c.socket, asio::buffer(&byte, 1), use_tuple);
            if (ec)
                break;
            pause.expires_after(settings_.pace);
            co_await pause.async_wait(use_tuple);
        }
    }

    /// The server may send the reason before it ends the connection, and nothing else.
    asio::awaitable<void> wait_for_end(client& c) {
        std::string heard;
        std::array<char, 512> data;
        give_up_later(c);
        for (;;) {
            const auto [ec, size] =
                co_await c.socket.async_read_some(asio::buffer(data), use_tuple);
            if (ec) {
                mark_end(c, ec);
                break;
            }
            heard.append(data.data(), size);
        }
        c.watchdog.cancel();
        c.in_order = heard.empty() || (c.what != kind::idle &&
                                       heard.starts_with("HTTP/1.1 408 Request Timeout\r\n"));
    }

    /// When all buffers are full, the server's data stops, and the end of the connection would be behind
    /// it. But if the server leaves a request unread, the system reports the end at once. So this sends one
    /// more request while the server is answering.
    asio::awaitable<void> be_deaf(client& c) {
        const std::string request = "GET " + settings_.large_file + " HTTP/1.1\r\nHost: h\r\n\r\n";
        c.begin = clock_type::now();
        give_up_later(c);
        co_await say(c, request);
        co_await c.socket.async_wait(tcp::socket::wait_read, use_tuple);
        co_await say(c, request);
        const auto [ec] = co_await c.socket.async_wait(tcp::socket::wait_error, use_tuple);
        mark_end(c, ec ? ec : asio::error::connection_reset);
        c.watchdog.cancel();
        c.in_order = true;
    }

    /// In one of four places, half of them by a reset.
    asio::awaitable<void> vanish(client& c) {
        constexpr std::array<std::string_view, 4> beginnings{
            "GET / HTTP/1.1\r\nHo",
            "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nxyz",
            "GET /slow?ms=100 HTTP/1.1\r\nHost: h\r\n\r\n", "GET "};
        const std::size_t place = vanished_++;
        std::string text(beginnings[place % 4]);
        if (place % 4 == 3)
            text += settings_.large_file + " HTTP/1.1\r\nHost: h\r\n\r\n";
        c.in_order = co_await say(c, text);
        asio::steady_timer pause(context_,
                                 milliseconds(std::uniform_int_distribution(0, 50)(random_)));
        co_await pause.async_wait(use_tuple);
        error_code ignored;
        if (place / 4 % 2 == 0) // drops the buffered data, and the server sees a reset
            c.socket.set_option(asio::socket_base::linger(true, 0), ignored);
    }

    asio::awaitable<void> be_ordinary(client& c) {
        const auto longest = std::min(settings_.idle / 2, milliseconds(200)).count();
        asio::steady_timer pause(context_);
        bool answered = true;
        while (answered && (bad_left_ != 0 || clock_type::now() < earliest_end_)) {
            const auto begin = clock_type::now();
            answered = co_await get(c);
            response_times_.push_back(clock_type::now() - begin);
            pause.expires_after(milliseconds(
                std::uniform_int_distribution<milliseconds::rep>(0, longest)(random_)));
            co_await pause.async_wait(use_tuple);
        }
        c.in_order = answered;
    }

    /// @return whether the answer was 200, complete.
    asio::awaitable<bool> get(client& c) {
        const std::string request = "GET " + settings_.file + " HTTP/1.1\r\nHost: h\r\n\r\n";
        co_await say(c, request);
        beast::flat_buffer buffer;
        http::response<http::string_body> response;
        const auto [ec, size] = co_await http::async_read(c.socket, buffer, response, use_tuple);
        if (ec)
            note(ec);
        co_return !ec && response.result() == http::status::ok && buffer.size() == 0;
    }

    asio::awaitable<bool> say(client& c, std::string_view text) {
        const auto [ec, size] = co_await asio::async_write(c.socket, asio::buffer(text), use_tuple);
        if (ec)
            note(ec);
        co_return !ec;
    }

    /// Pending operations end long after the server should have ended them.
    void give_up_later(client& c) {
        c.watchdog.expires_at(c.begin + settings_.limit_of(c.what) + settings_.tolerance +
                              std::chrono::seconds(3));
        c.watchdog.async_wait([&c](error_code ec) {
            error_code ignored;
            if (!ec)
                c.socket.cancel(ignored);
        });
    }

    static void mark_end(client& c, error_code ec) {
        c.end = clock_type::now();
        c.ended = ec != asio::error::operation_aborted;
    }

    void note(error_code ec) {
        if (first_error_.empty())
            first_error_ = ec.message();
    }

    /// Clients on an overloaded machine cannot judge the server.
    asio::awaitable<void> measure_own_delay() {
        while (left_ != 0) {
            heartbeat_.expires_after(milliseconds(5));
            co_await heartbeat_.async_wait(use_tuple);
            own_delay_ = std::max(own_delay_, clock_type::now() - heartbeat_.expiry());
        }
    }

    asio::io_context& context_;
    const settings& settings_;
    std::mt19937_64 random_;
    std::deque<client> clients_;
    std::vector<client*> queue_; ///< all, in random order
    std::size_t left_ = 0;
    std::size_t bad_left_ = 0; ///< all except the ordinary ones
    std::size_t vanished_ = 0;
    clock_type::time_point earliest_end_{};
    std::vector<duration> response_times_;
    asio::steady_timer heartbeat_;
    duration own_delay_{};
    std::string first_error_;
};

double in_ms(duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

/// Sorts. Prints three percentiles in milliseconds, or blanks.
void print_percentiles(std::ostream& out, std::vector<duration>& values) {
    std::sort(values.begin(), values.end());
    for (const std::size_t p : {50U, 99U, 100U}) {
        out << std::setw(9);
        if (values.empty())
            out << "";
        else
            out << in_ms(values[(values.size() * p + 99) / 100 - 1]);
    }
}

bool crowd::report(std::ostream& out) const {
    out << std::fixed << std::setprecision(1)
        << "clients       number   promise              kept  early   late: p50      p99      max "
           "ms\n";
    bool all_kept = true;
    for (std::size_t k = 0; k < kind_names.size(); ++k) {
        if (settings_.count[k] == 0)
            continue;
        const auto what = static_cast<kind>(k);
        const milliseconds limit = settings_.limit_of(what);
        int kept = 0;
        int early = 0;
        std::vector<duration> late;
        for (const client& c : clients_) {
            if (c.what != what)
                continue;
            bool in_time = true;
            if (limit.count() != 0) {
                const duration lateness = c.end - c.begin - limit;
                in_time =
                    c.ended && lateness >= duration::zero() && lateness <= settings_.tolerance;
                early += c.ended && lateness < duration::zero() ? 1 : 0;
                if (c.ended)
                    late.push_back(lateness);
            }
            kept += c.in_order && in_time ? 1 : 0;
        }
        all_kept = all_kept && kept == settings_.count[k];

        std::string promise = what == kind::ordinary ? "each answer is 200" : "none";
        if (limit.count() != 0)
            promise = "closed at " + std::to_string(limit.count()) + " ms";
        out << std::left << std::setw(13) << kind_names[k] << std::right << std::setw(7)
            << settings_.count[k] << "   " << std::left << std::setw(18) << promise << std::right
            << std::setw(7) << kept << std::setw(7);
        if (limit.count() != 0)
            out << early << "  ";
        else
            out << ""
                << "  ";
        print_percentiles(out, late);
        out << '\n';
    }
    if (!response_times_.empty()) {
        out << "ordinary clients: " << response_times_.size()
            << " answers within (p50, p99, max ms)";
        auto times = response_times_;
        print_percentiles(out, times);
        out << '\n';
    }
    out << "in time: at most " << settings_.tolerance.count()
        << " ms late, of which the clients' own delay was up to " << in_ms(own_delay_) << " ms\n";
    if (!first_error_.empty())
        out << "first error seen: " << first_error_ << '\n';
    if (!all_kept && own_delay_ > settings_.tolerance / 2)
        out << "this machine kept the clients themselves waiting: run again when it is less busy\n";
    out << (all_kept ? "clients: all as promised" : "clients: NOT as promised") << std::endl;
    return all_kept;
}

} // namespace

int main(int argc, char** argv) {
    settings s;
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;
    s.seed = std::random_device()();

    CLI::App app("HTTP clients that check what http_server promises, most of them bad ones.",
                 "http_clients");
    app.add_option("--host", host, "IP address of the server")
        ->capture_default_str()
        ->check([](const std::string& text) {
            error_code ec;
            asio::ip::make_address(text, ec);
            return ec ? "not an IP address: " + text : std::string();
        });
    app.add_option("--port", port, "TCP port of the server")->required();

    const auto duration_option = [&](const char* name, milliseconds& value, const char* text) {
        app.add_option_function<std::int64_t>(
               name, [&value](std::int64_t ms) { value = milliseconds(ms); }, text)
            ->option_text("DURATION=" + std::to_string(value.count()) + "ms")
            ->transform(example::as_milliseconds())
            ->check(CLI::Range(std::int64_t{1}, std::int64_t{3'600'000}));
    };
    duration_option("--header-timeout", s.header, "the server's --header-timeout");
    duration_option("--body-timeout", s.body, "the server's --body-timeout");
    duration_option("--idle", s.idle, "the server's --idle");
    duration_option("--write-timeout", s.write, "the server's --write-timeout");
    duration_option("--pace", s.pace, "between two bytes of a slow client");
    duration_option("--tolerance", s.tolerance, "how late the server may be");
    duration_option("--length", s.length,
                    "for how long the ordinary clients go on if no other is left");

    struct count_option {
        const char* name;
        const char* text;
    };
    constexpr std::array<count_option, kind_names.size()> options{{
        {"--slow-headers", "clients that send a header a byte at a time"},
        {"--mute", "clients that say nothing"},
        {"--slow-bodies", "clients that send a body a byte at a time"},
        {"--idlers", "clients that get one response, then say nothing"},
        {"--deaf", "clients that never read the file they ask for"},
        {"--vanishing", "clients that leave in the middle of something"},
        {"--ordinary", "clients that get a file now and then"},
    }};
    for (std::size_t k = 0; k < options.size(); ++k)
        app.add_option(options[k].name, s.count[k], std::string("number of ") + options[k].text)
            ->capture_default_str()
            ->check(CLI::Range(0, 1'000'000).description(""));
    app.add_option("--file", s.file, "what ordinary clients ask for")->capture_default_str();
    app.add_option("--large-file", s.large_file, "what deaf clients ask for; some megabytes")
        ->capture_default_str();
    app.add_option("--seed", s.seed, "seed of everything random; printed, and random by default");
    app.callback([&] {
        if (std::count(s.count.begin(), s.count.end(), 0) == std::ssize(s.count))
            throw CLI::ValidationError("--ordinary", "there must be at least one client");
    });
    if (const auto status = example::parse_command_line(app, argc, argv))
        return *status;

    s.server = {asio::ip::make_address(host), port};
    const int clients = std::accumulate(s.count.begin(), s.count.end(), 0);
    const auto wanted = static_cast<std::uint64_t>(clients) + 16;
    const auto limit = example::raise_descriptor_limit();
    if (limit != 0 && limit < wanted) {
        std::cerr << "http_clients: needs " << wanted << " open files, may have " << limit
                  << "; raise `ulimit -n`\n";
        return 1;
    }

    std::cout << clients << " clients of " << s.server << ", seed " << s.seed << std::endl;
    asio::io_context context(1);
    crowd c(context, s);
    c.start();
    context.run();
    return c.report(std::cout) ? 0 : 1;
}
