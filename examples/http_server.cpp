// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// An HTTP/1.1 server on Boost.Beast, with a time limit for every step.
//
//   /...          the files below --root, without hidden ones
//   /echo         POST: returns the body
//   /slow?ms=N    GET: an answer after N milliseconds
//   /timers       GET: a page that shows the server's timers, live
//   /metrics      GET: the same in numbers, for Prometheus and `./dev top`
//
// --timer selects the timers of the limits: pawl::tcp_stream and pawl::steady_timer, or
// beast::tcp_stream and asio::steady_timer. The calls are the same, with two exceptions. Pawl's stream
// is set to survive a limit, so that a slow client can be answered. And idle connections have an alarm
// that is scaled: it has less time if connections run short, and pawl::expire_all() can end these and no
// others. http_server/session.hpp describes a connection.
//
// On SIGTERM or SIGINT the server drains: it accepts no more connections, closes those without a
// request, lets the others finish, and cuts off after --drain what has not finished.
//
// Threads: each connection lives on one strand; the acceptor and the signals share another one. State
// shared between strands is in `environment` and `connections`.

#include "command_line.hpp"
#include "descriptor_limit.hpp"
#include "http_server/access_log.hpp"
#include "http_server/churn.hpp"
#include "http_server/connections.hpp"
#include "http_server/session.hpp"
#include "http_server/settings.hpp"
#include "http_server/timer_watch.hpp"

#include <pawl/steady_timer.hpp>
#include <pawl/timeout_stream.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <boost/system/system_error.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace example;

struct on_pawl {
    using stream = pawl::tcp_stream;
    using timer = pawl::steady_timer;
};

struct on_asio {
    using stream = beast::tcp_stream;
    using timer = asio::steady_timer;
};

/// @tparam Session serves a connection; made from an environment, a socket and Arguments&.
template <class Session, class Timer, class... Arguments>
class server {
public:
    /// Listens.
    /// @throws boost::system::system_error if the endpoint is in use or cannot be bound.
    server(asio::io_context& context, environment& e, Arguments&... arguments)
        : context_(context), environment_(e), arguments_(arguments...), acceptor_(new_executor()),
          signals_(acceptor_.get_executor(), SIGINT, SIGTERM) {
        acceptor_.open(e.options.endpoint.protocol());
        // A restart need not wait for the system to forget the last run's connections.
        acceptor_.set_option(tcp::acceptor::reuse_address(true));
        acceptor_.bind(e.options.endpoint);
        acceptor_.listen();
    }

    [[nodiscard]] tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

    void start() {
        const auto rethrow = [](std::exception_ptr failure) {
            if (failure) // no memory for one more connection: cannot continue
                std::rethrow_exception(failure);
        };
        asio::co_spawn(acceptor_.get_executor(), accept(), rethrow);
        asio::co_spawn(acceptor_.get_executor(), stop(), rethrow);
        if (environment_.options.churn != 0)
            asio::co_spawn(new_executor(), churn(environment_), rethrow);
    }

private:
    static constexpr auto use_tuple = asio::as_tuple(asio::use_awaitable);

    /// Operations on one executor do not race. One thread needs no strand.
    [[nodiscard]] asio::any_io_executor new_executor() {
        if (environment_.options.threads == 1)
            return context_.get_executor();
        return asio::make_strand(context_);
    }

    asio::awaitable<void> accept() {
        Timer pause(acceptor_.get_executor());
        bool complained = false;
        while (!environment_.ending()) {
            auto [ec, socket] = co_await acceptor_.async_accept(new_executor(), use_tuple);
            if (!ec) {
                auto s = std::apply(
                    [&](auto&... arguments) {
                        return std::make_shared<Session>(environment_, std::move(socket),
                                                         arguments...);
                    },
                    arguments_);
                const auto executor = s->get_executor();
                asio::co_spawn(executor, Session::run(std::move(s)), asio::detached);
            } else if (!environment_.ending() && ec != asio::error::connection_aborted) {
                // Out of descriptors or memory. Retrying at once would spin until some connection ends. Logged once,
                // not per attempt.
                if (!std::exchange(complained, true))
                    std::cerr << "cannot accept for now: " << ec.message() << std::endl;
                pause.expires_after(std::chrono::milliseconds(100));
                if constexpr (std::is_same_v<Timer, pawl::steady_timer>)
                    environment_.watch->name(pause, "pause of the acceptor");
                co_await pause.async_wait(use_tuple);
            }
        }
    }

    /// Waits for a signal, then drains.
    asio::awaitable<void> stop() {
        const auto [ec, signal] = co_await signals_.async_wait(use_tuple);
        if (ec)
            co_return;
        const auto begin = std::chrono::steady_clock::now();
        std::cerr << "draining on " << (signal == SIGINT ? "SIGINT" : "SIGTERM") << std::endl;
        error_code ignored;
        signals_.clear(ignored);                                      // a second one kills at once
        environment_.stopping.store(true, std::memory_order_release); // pairs with ending()
        acceptor_.close(ignored);
        if (environment_.watch != nullptr)
            environment_.watch->end_all();

        // Polling every few milliseconds; the connections need not notify.
        Timer pause(acceptor_.get_executor());
        while (!environment_.list.empty()) {
            Session::drain_idle(context_, environment_.list);
            if (std::chrono::steady_clock::now() - begin >= environment_.options.drain) {
                environment_.list.cut_off_all();
                break;
            }
            pause.expires_after(std::chrono::milliseconds(5));
            co_await pause.async_wait(use_tuple);
        }
    }

    asio::io_context& context_;
    environment& environment_;
    std::tuple<Arguments&...> arguments_;
    tcp::acceptor acceptor_;
    asio::signal_set signals_;
};

void print_summary(std::ostream& out, const connections& c) {
    const tally& t = c.total();
    out << "accepted " << c.accepted() << " connections, at most " << c.most_at_once()
        << " at once\nrequests " << t.requests << "; answers";
    for (const std::size_t digit : {2U, 4U, 5U})
        out << (digit == 2 ? " " : ", ") << digit << "xx " << t.answers[digit];
    out << "\ntimeouts:";
    for (std::size_t i = 0; i < limit_names.size(); ++i)
        out << (i == 0 ? " " : ", ") << limit_names[i] << ' ' << t.timeouts[i];
    out << "\nrequests malformed or too large " << t.malformed
        << "; connections broken off in the middle of a handshake, request or answer "
        << t.broken_off << "\ndrained: idle " << t.drained_idle << ", busy " << t.drained_busy
        << ", cut off " << t.forced << std::endl;
}

/// Runs until the server has drained.
template <class Timers, class Stream, class... Arguments>
void serve(environment& e, Arguments&... arguments) {
    using session_type = session<Stream, typename Timers::timer>;
    std::optional<timer_watch> watch; // outlives the work left in the context
    asio::io_context context(e.options.threads);
    if (std::is_same_v<Timers, on_pawl>) {
        e.watch = &watch.emplace(context, e.options);
        e.list.press_on(context);
    }
    server<session_type, typename Timers::timer, Arguments...> s(context, e, arguments...);
    s.start();
    std::cout << "listening on " << s.endpoint() << std::endl; // flushed: scripts wait for it

    std::vector<std::jthread> others;
    for (int i = 1; i < e.options.threads; ++i)
        others.emplace_back([&] { context.run(); });
    try {
        context.run();
    } catch (...) {
        context.stop(); // otherwise the other threads would continue
        throw;
    }
}

template <class Timers>
void serve_plain_or_tls(environment& e, asio::ssl::context* tls) {
    if (tls == nullptr)
        serve<Timers, typename Timers::stream>(e);
    else
        serve<Timers, beast::ssl_stream<typename Timers::stream>>(e, *tls);
}

[[nodiscard]] std::string root_from(const std::string& path) {
    std::error_code bad;
    const auto root = std::filesystem::canonical(path, bad);
    if (!bad && !std::filesystem::is_directory(root, bad) && !bad)
        bad = std::make_error_code(std::errc::not_a_directory);
    if (bad)
        throw std::runtime_error("cannot serve " + path + ": " + bad.message());
    return root == root.root_path() ? std::string() : root.string();
}

[[nodiscard]] asio::ssl::context tls_from(const std::string& certificate, const std::string& key) {
    asio::ssl::context tls(asio::ssl::context::tls_server);
    tls.set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
    const std::string* current = &certificate;
    try {
        tls.use_certificate_chain_file(certificate);
        current = &key;
        tls.use_private_key_file(key, asio::ssl::context::pem);
    } catch (const boost::system::system_error& failure) {
        throw std::runtime_error("cannot use " + *current + ": " + failure.code().message());
    }
    return tls;
}

} // namespace

int main(int argc, char** argv) {
    settings s;
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;
    std::string timer = "pawl";
    bool tls = false;
    std::string certificate;
    std::string key;
    std::string log_file;

    CLI::App app("An HTTP/1.1 server whose every step has a limit in time.", "http_server");
    app.add_option("--address", address, "IPv4 or IPv6 address to listen on")
        ->capture_default_str()
        ->check([](const std::string& text) {
            error_code ec;
            asio::ip::make_address(text, ec);
            return ec ? "not an IP address: " + text : std::string();
        });
    app.add_option("--port", port, "TCP port to listen on, 0 for any that is free")
        ->capture_default_str();
    app.add_option("--root", s.root, "folder whose files are served, but no .hidden ones")
        ->required();
    app.add_option("--threads", s.threads, "threads that serve, 1 to 256")
        ->option_text("INT=1")
        ->check(CLI::Range(1, 256));
    app.add_option("--timer", timer, "what the limits stand on: pawl or asio")
        ->capture_default_str()
        ->check(CLI::IsMember({"pawl", "asio"}).description(""));
    auto* const tls_option = app.add_flag("--tls", tls, "serve HTTPS");
    for (const auto& [name, file, text] :
         {std::tuple("--cert", &certificate, "certificate chain, a PEM file"),
          std::tuple("--key", &key, "its private key, a PEM file")}) {
        auto* const option = app.add_option(name, *file, text)->needs(tls_option);
        tls_option->needs(option);
    }

    const auto limit_option = [&](const char* name, settings::milliseconds& value,
                                  const char* text) {
        app.add_option_function<std::int64_t>(
               name, [&value](std::int64_t ms) { value = settings::milliseconds(ms); }, text)
            ->option_text("DURATION=" + std::to_string(value.count() / 1000) + "s")
            ->transform(example::as_milliseconds())
            ->check(CLI::Range(std::int64_t{1}, std::int64_t{24 * 3'600'000}));
    };
    limit_option("--idle", s.idle,
                 "longest silence between a response and a request; up to a sixteenth late");
    limit_option("--header-timeout", s.header,
                 "longest time for the header of a request, and for a TLS handshake");
    limit_option("--body-timeout", s.body, "longest time for the body of a request");
    app.add_option("--min-rate", s.min_rate,
                   "least rate of the body of a request, bytes per second; only with Pawl's timers")
        ->option_text("INT=0")
        ->check(CLI::Range(0, 1'000'000'000));
    limit_option("--grace", s.grace, "time over which --min-rate is measured");
    limit_option("--write-timeout", s.write,
                 "longest time for which a client may take nothing of a response");
    limit_option("--request-timeout", s.request,
                 "longest time from the end of a header to the end of the response");
    limit_option("--drain", s.drain,
                 "longest time that running requests have after SIGTERM or SIGINT");
    if (const auto files = example::raise_descriptor_limit(); files != 0)
        s.max_connections = files;
    app.add_option("--max-connections", s.max_connections,
                   "connections for which there is room: from half of it on, idle ones have less "
                   "time, down to a tenth of --idle; by default the limit of open files")
        ->option_text("INT")
        ->check(CLI::Range(1, 1'000'000'000));
    app.add_option("--max-header", s.max_header, "largest header, bytes")
        ->option_text("INT=8192")
        ->check(CLI::Range(64, 1'048'576));
    app.add_option("--max-body", s.max_body, "largest body of a request, bytes")
        ->option_text("INT=1048576")
        ->check(CLI::Range(0, 1'073'741'824));
    app.add_option("--tabs", s.tabs, "tabs that may have /timers open at a time, 0 to 1024")
        ->option_text("INT=32")
        ->check(CLI::Range(0, 1024));
    app.add_flag("--expose-timers", s.expose_timers,
                 "show /timers and /metrics on addresses that other machines reach, too");
    app.add_flag("--measure-times", s.measure_times,
                 "measure lateness and the time of handlers for /metrics from the beginning");
    auto* const churn_option =
        app.add_option("--churn", s.churn,
                       "deadlines to move each second, for /timers to show, 0 to 10000000")
            ->option_text("INT=0")
            ->check(CLI::Range(0, 10'000'000));
    app.callback([&] {
        if (timer != "pawl" && churn_option->count() != 0)
            throw CLI::ValidationError("--churn", "needs --timer pawl");
    });
    app.add_option("--access-log", log_file, "file to append the access log to, - for stderr");
    app.footer("Durations: 1500, 1500ms, 30s, 5min, 1h; from 1 ms to 24 h.");
    if (const auto status = example::parse_command_line(app, argc, argv))
        return *status;

    s.endpoint = {asio::ip::make_address(address), port};
    try {
        s.root = root_from(s.root);
        std::ofstream file;
        if (!log_file.empty() && log_file != "-") {
            file.open(log_file, std::ios::app);
            if (!file)
                throw std::runtime_error("cannot write to " + log_file);
        }
        access_log log(file.is_open() ? file : std::cerr);
        connections list(s.max_connections);
        environment e{.options = s, .list = list, .log = log_file.empty() ? nullptr : &log};
        std::unique_ptr<asio::ssl::context> context;
        if (tls)
            context = std::make_unique<asio::ssl::context>(tls_from(certificate, key));

        (timer == "pawl" ? serve_plain_or_tls<on_pawl>
                         : serve_plain_or_tls<on_asio>)(e, context.get());
        print_summary(std::cerr, list);
        return list.total().forced == 0 ? 0 : 1;
    } catch (const boost::system::system_error& failure) {
        std::cerr << "cannot listen on " << s.endpoint << ": " << failure.code().message()
                  << std::endl;
    } catch (const std::exception& failure) {
        std::cerr << "http_server: " << failure.what() << std::endl;
    }
    return 1;
}
