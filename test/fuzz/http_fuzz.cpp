// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The example server, as somebody at the other end of a connection sees it. The bytes are sent as
// they are; '\0' and the byte after it are an action instead: time passes, the client stops reading
// or sending. Time is virtual. Checked: each answer is HTTP, with a status that the server has; the
// totals agree with the answers; nothing from outside of the root is sent; the connection ends by
// its limits, whatever the client does.

#include "http_server/connections.hpp"
#include "http_server/session.hpp"
#include "http_server/settings.hpp"
#include "http_server/timer_watch.hpp"
#include "support/lockstep.hpp"

#include <pawl/steady_timer.hpp>
#include <pawl/timeout_stream.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using pawl_test::expect;

std::chrono::steady_clock::time_point now{1h};

} // namespace

// Without a timerfd, Asio compares its timers with their clock each time that it polls.
std::chrono::steady_clock::time_point std::chrono::steady_clock::now() noexcept { return ::now; }
extern "C" int timerfd_create(int, int) noexcept {
    errno = EINVAL;
    return -1;
}

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using session = example::session<pawl::tcp_stream, pawl::steady_timer>;

constexpr std::string_view secret = "not-to-be-served";

/// The folder that is served, beside and below which there are files that are not.
struct folder {
    folder() {
        std::string name = "/tmp/pawl-http-fuzz-XXXXXX";
        if (::mkdtemp(name.data()) == nullptr)
            std::abort();
        path = name;
        std::filesystem::create_directories(path + "/root/.git");
        for (const char* const file : {"/secret", "/root/.git/config", "/root/.env"})
            std::ofstream(path + file) << secret;
        std::ofstream(path + "/root/index.html") << "the index\n";
        std::ofstream(path + "/root/large") << std::string(200'000, 'x'); // in pieces
    }
    ~folder() { std::filesystem::remove_all(path); }
    std::string path;
};

class client {
public:
    explicit client(const example::settings& s)
        : settings_(s), list_(100), environment_{settings_, list_} {
        environment_.watch = &watch_.emplace(context_, settings_);
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
            std::abort();
        mine_ = ends[0];
        const int small = 4096; // so that a client that does not read soon blocks
        ::setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
        auto served = std::make_shared<session>(
            environment_, asio::ip::tcp::socket(context_, asio::ip::tcp::v4(), ends[1]));
        asio::co_spawn(context_, session::run(std::move(served)), asio::detached);
    }
    client& operator=(client&&) = delete;
    ~client() { ::close(mine_); }

    void send(std::string_view bytes) {
        while (!bytes.empty() && open_) {
            const auto n = ::send(mine_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (n > 0)
                bytes.remove_prefix(static_cast<std::size_t>(n));
            else if (errno != EAGAIN || !run())
                return; // the server has closed, or does not read
        }
    }

    void act(std::uint8_t what) {
        switch (what % 8) {
        case 0:
            send(std::string_view("\0", 1));
            break;
        case 1:
            run();
            break;
        case 2:
            pass(100ms);
            break;
        case 3:
            pass(1s);
            break;
        case 4:
            pass(20s);
            break;
        case 5:
            open_ = false;
            ::shutdown(mine_, SHUT_WR);
            break;
        case 6:
            reads_ = false;
            break;
        case 7:
            reads_ = true;
            break;
        }
    }

    /// Does nothing more, until the limits have ended the connection.
    void finish(std::string_view sent) {
        // Each request has a limit, and so has what is before and after it. Only a tab that reads stays.
        const auto count = [](std::string_view text, std::string_view part) {
            std::size_t n = 0;
            for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; ++at)
                ++n;
            return n;
        };
        run();
        for (std::size_t steps = 60 * (count(sent, "HTTP/1.") + 2); !over() && steps != 0; --steps)
            pass(5s);
        if (!over()) {
            expect(received_.find("text/event-stream") != received_.npos, "a limit never expires");
            ::shutdown(mine_, SHUT_WR);
            reads_ = true;
            for (int i = 0; i != 100 && !over(); ++i)
                pass(1s);
        }
        expect(over(), "the connection does not end with its client");
        reads_ = true;
        read();
        check(sent);
    }

private:
    [[nodiscard]] bool over() const { return list_.accepted() != 0 && list_.empty(); }

    /// @return whether anything was done.
    bool run() {
        std::size_t n = context_.poll();
        while (read())
            n += context_.poll();
        context_.restart();
        return n != 0;
    }
    bool read() {
        if (!reads_)
            return false;
        std::array<char, 16'384> buffer;
        const auto n = ::recv(mine_, buffer.data(), buffer.size(), 0);
        if (n > 0)
            received_.append(buffer.data(), static_cast<std::size_t>(n));
        return n > 0;
    }
    void pass(std::chrono::nanoseconds d) {
        now += d;
        run();
    }

    void check(std::string_view sent) const {
        if (sent.find(secret) == sent.npos) // it may have asked for an echo
            expect(received_.find(secret) == received_.npos, "a secret is sent");
        if (sent.find("HEAD") != sent.npos) // such an answer has no body
            return;

        static constexpr std::array statuses{100, 200, 400, 403, 404, 405, 408, 413, 431, 503};
        std::size_t whole = 0;
        std::string_view rest = received_;
        while (!rest.empty()) {
            http::response_parser<http::string_body> answer;
            answer.body_limit(boost::none);
            answer.eager(true);
            boost::system::error_code ec;
            const std::size_t n = answer.put(asio::buffer(rest), ec);
            if (ec == http::error::need_more)
                ec = {};
            expect(!ec, "an answer is not HTTP", ec.value());
            if (!answer.is_header_done())
                break;
            const auto status = static_cast<int>(answer.get().result_int());
            expect(std::find(statuses.begin(), statuses.end(), status) != statuses.end(),
                   "an answer of an unknown status", status);
            rest.remove_prefix(n);
            if (answer.need_eof()) // a tab
                rest = {};
            else if (!answer.is_done())
                break;
            whole += status == 100 ? 0 : 1;
            expect(answer.keep_alive() || status == 100 || rest.empty(),
                   "there is something after the last answer");
        }
        const auto& counted = list_.total().answers;
        const std::size_t answers = std::accumulate(counted.begin(), counted.end(), std::size_t{0});
        expect(answers <= whole && whole <= answers + 1, "answers counted and received", answers,
               whole);
    }

    const example::settings& settings_;
    std::optional<example::timer_watch> watch_; // outlives the context's work
    asio::io_context context_{1};
    example::connections list_;
    example::environment environment_;
    int mine_ = -1;
    bool open_ = true; ///< sends
    bool reads_ = true;
    std::string received_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const folder files;
    static const example::settings settings = [] {
        example::settings s;
        s.root = files.path + "/root";
        s.endpoint.address(asio::ip::make_address("127.0.0.1"));
        s.max_header = 512;
        s.max_body = 600;
        s.min_rate = 1;
        return s;
    }();

    const std::string_view all(reinterpret_cast<const char*>(data), size);
    client c(settings);
    for (std::string_view rest = all; !rest.empty();) {
        const std::string_view piece = rest.substr(0, rest.find('\0'));
        c.send(piece);
        rest.remove_prefix(piece.size());
        if (rest.size() > 1)
            c.act(static_cast<std::uint8_t>(rest[1]));
        rest.remove_prefix(std::min<std::size_t>(rest.size(), 2));
    }
    c.finish(all);
    return 0;
}
