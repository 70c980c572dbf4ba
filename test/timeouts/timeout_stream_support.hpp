// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Shared by the tests of pawl::timeout_stream: connected pairs, outcomes of operations, and
//   sockets on which an operation takes forever.
//
// Model
//   Sockets over loopback, limits on manual_clock. Tests wait for events that must happen. Events
//   that must not happen have not happened when the context has no work left.

#ifndef PAWL_TEST_TIMEOUTS_TIMEOUT_STREAM_SUPPORT_HPP
#define PAWL_TEST_TIMEOUTS_TIMEOUT_STREAM_SUPPORT_HPP

#include "../support/asio_configuration.hpp"
#include "../support/seed.hpp"

#include <pawl/manual_clock.hpp>
#include <pawl/timeout_stream.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/system/error_code.hpp>
#include <boost/test/unit_test.hpp>

#if !defined(_WIN32)
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#endif

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pawl {

inline std::ostream& operator<<(std::ostream& out, on_limit action) {
    return out << (action == on_limit::close ? "close" : "cancel");
}
inline std::ostream& operator<<(std::ostream& out, limit_error report) {
    return out << (report == limit_error::timed_out ? "timed_out" : "beast_timeout");
}

} // namespace pawl

namespace stream_test {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;
using pawl::limit_error;
using pawl::manual_clock;
using pawl::on_limit;
using pawl::stream_limits;
using namespace std::chrono_literals;

using manual_stream = pawl::timeout_stream<tcp::socket, manual_clock>;
#if defined(_WIN32) // has no pairs of local sockets
using local_socket = tcp::socket;
#else
using local_socket = asio::local::stream_protocol::socket;
#endif
using local_stream = pawl::timeout_stream<local_socket, manual_clock>;

/// How long a test waits for an event before it reports a hang.
inline const auto patience = pawl_test::patience_or(20s);

inline const tcp::endpoint loopback{asio::ip::address_v4::loopback(), 0};

/// The outcome of one operation.
struct outcome {
    /// A completion handler.
    auto record() {
        return [this](const error_code& ec, std::size_t n = 0) {
            ++calls;
            code = ec;
            size = n;
        };
    }

    outcome() = default;
    /// Of the operation that `start` starts with a handler.
    template <class Start>
    explicit outcome(Start start) {
        start(record());
    }
    outcome(const outcome&) = delete;
    outcome& operator=(const outcome&) = delete;

    int calls = 0;
    error_code code;
    std::size_t size = 0;

    bool pending() const noexcept { return calls == 0; }
    bool succeeded() const noexcept { return calls == 1 && !code; }
    bool ended_with(const error_code& ec) const noexcept { return calls == 1 && code == ec; }
    bool aborted() const noexcept { return ended_with(asio::error::operation_aborted); }
    bool timed_out() const noexcept { return ended_with(beast::error::timeout); }
    /// Whether it ended because both ends of its connection were destroyed.
    bool ended_by_destruction() const noexcept {
        return aborted() || (pawl_test::io_uring && calls == 1 && code);
    }

    friend std::ostream& operator<<(std::ostream& out, const outcome& o) {
        return out << o.calls << " calls, " << o.code.message() << ", " << o.size << " bytes";
    }
};

inline error_code error_of(limit_error report) {
    if (report == limit_error::timed_out)
        return pawl::error::timed_out;
    return beast::error::timeout;
}

/// Runs everything that is ready.
inline void poll(asio::io_context& context) {
    context.restart();
    context.poll();
}

/// Lets time pass, and runs due waits.
inline void pass(asio::io_context& context, manual_clock::duration d) {
    manual_clock::advance(context, d);
    poll(context);
}

/// Runs the context until `done()`.
inline void run_until(asio::io_context& context, const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + patience;
    context.restart();
    while (!done()) {
        const auto left = end - std::chrono::steady_clock::now();
        BOOST_REQUIRE_MESSAGE(left > 0s, "it does not come");
        context.run_one_for(left);
        context.restart();
    }
}

/// Runs the context until an operation has ended.
inline const outcome& over(asio::io_context& context, const outcome& o) {
    run_until(context, [&] { return !o.pending(); });
    return o;
}

/// Lets `limit` pass. At that time, and not before, an operation must end with `how`.
inline void ends_after(asio::io_context& context, manual_clock::duration limit, const outcome& o,
                       const error_code& how = beast::error::timeout) {
    pass(context, limit - 1ns);
    BOOST_TEST(o.pending());

    pass(context, 1ns);
    BOOST_TEST(over(context, o).ended_with(how));
}

/// Lets `limit` pass. At that time, and not before, a stream must be closed.
template <class Stream>
void closes_after(asio::io_context& context, manual_clock::duration limit, const Stream& stream) {
    pass(context, limit - 1ns);
    BOOST_TEST(stream.socket().is_open());

    pass(context, 1ns);
    BOOST_TEST(!stream.socket().is_open());
}

/// What a test has besides streams.
struct fixture {
    /// Runs everything that is ready, if that ends.
    void poll() {
        context.restart();
        for (int units = 0; context.poll_one() != 0; ++units)
            BOOST_REQUIRE_LT(units, 100);
    }
    void pass(manual_clock::duration d) {
        manual_clock::advance(context, d);
        poll();
    }
    const outcome& over(const outcome& o) { return stream_test::over(context, o); }
    void ends_after(manual_clock::duration limit, const outcome& o,
                    const error_code& how = beast::error::timeout) {
        stream_test::ends_after(context, limit, o, how);
    }
    void closes_after(manual_clock::duration limit, const auto& stream) {
        stream_test::closes_after(context, limit, stream);
    }
    /// Whether run() would wait for something.
    bool at_work() {
        poll();
        return !context.stopped();
    }

    asio::io_context context;
};

/// Starts an operation of a stream.
template <class Stream>
outcome start_read(Stream& stream) {
    return outcome([&](auto handler) {
        static std::array<char, 64> data;
        stream.async_read_some(asio::buffer(data), handler);
    });
}
template <class Stream>
outcome start_connect(Stream& stream, const tcp::endpoint& to) {
    return outcome([&](auto handler) { stream.async_connect(to, handler); });
}
template <class Stream>
outcome start_connect(Stream& stream, const std::vector<tcp::endpoint>& range) {
    return outcome([&](auto handler) {
        stream.async_connect(range, [=](error_code ec, const tcp::endpoint&) { handler(ec); });
    });
}
/// One that moves no bytes.
template <class Stream>
outcome read_nothing(Stream& stream) {
    return outcome([&](auto handler) { stream.async_read_some(asio::mutable_buffer(), handler); });
}

/// Two connected sockets.
template <class Socket = tcp::socket>
std::pair<Socket, Socket> socket_pair(asio::io_context& context) {
    Socket here(context);
    if constexpr (std::is_same_v<typename Socket::protocol_type, tcp>) {
        tcp::acceptor acceptor(context, loopback);
        here.connect(acceptor.local_endpoint());
        return {std::move(here), acceptor.accept()};
    }
#if !defined(_WIN32)
    else {
        Socket there(context);
        asio::local::connect_pair(here, there);
        return {std::move(here), std::move(there)};
    }
#endif
}

/// A stream, and its connected peer.
template <class Stream = manual_stream>
struct connection {
    using socket_type = typename Stream::socket_type;

    explicit connection(asio::io_context& context, const stream_limits& limits = {})
        : connection(socket_pair<socket_type>(context)) {
        stream.set_limits(limits);
    }
    explicit connection(std::pair<socket_type, socket_type> sockets)
        : stream(std::move(sockets.first)), peer(std::move(sockets.second)) {}

    /// Makes the peer send so many bytes, if the stream is open.
    void feed(std::size_t size) {
        error_code ignored;
        asio::write(peer, asio::buffer(std::string(size, 'x')), ignored);
    }

    /// Writes until nothing more fits, so that the next write takes forever. Over TCP it might fit
    /// a little later, when an acknowledgement arrives.
    void clog()
        requires(!std::is_same_v<typename socket_type::protocol_type, tcp>)
    {
        stream.socket().non_blocking(true);
        const std::string chunk(1 << 16, 'x');
        error_code ec;
        while (!ec)
            stream.socket().write_some(asio::buffer(chunk), ec);
        BOOST_REQUIRE_EQUAL(ec, asio::error::would_block);
    }

    /// Reads at the peer the bytes that clog() has written, until a write fits again.
    void unclog() {
        std::string chunk(1 << 16, 'x');
        peer.non_blocking(true);
        error_code ec;
        while (!ec)
            peer.read_some(asio::buffer(chunk), ec);
    }

    template <class Token>
    auto read(Token&& token) {
        return stream.async_read_some(asio::buffer(data), std::forward<Token>(token));
    }
    template <class Token>
    auto write(Token&& token) {
        return stream.async_write_some(asio::buffer(data), std::forward<Token>(token));
    }
    outcome read() {
        return outcome([this](auto handler) { this->read(handler); });
    }
    outcome write() {
        return outcome([this](auto handler) { this->write(handler); });
    }
    /// Of the socket itself: for bytes to read.
    outcome wait() {
        return outcome([this](auto handler) {
            stream.socket().async_wait(socket_type::wait_read, std::move(handler));
        });
    }
    outcome read_nothing() { return stream_test::read_nothing(stream); }
    [[nodiscard]] bool is_open() const { return stream.socket().is_open(); }

    Stream stream;
    socket_type peer;
    std::array<char, 64> data{};
};

/// A socket whose async_connect() takes forever: it listens, and waits for a connection.
class stalled_socket : public tcp::socket {
public:
    using tcp::socket::socket;

    template <class Handler>
    void async_connect(const tcp::endpoint&, Handler&& handler) {
        if (!is_open())
            open(tcp::v4());
        bind(loopback);
        BOOST_REQUIRE_EQUAL(::listen(native_handle(), 1), 0);
        async_wait(wait_read, std::forward<Handler>(handler));
    }
};

/// An acceptor whose backlog is full: a connect to it takes forever.
class full_acceptor {
public:
    explicit full_acceptor(asio::io_context& context) : acceptor_(context) {
        acceptor_.open(tcp::v4());
        acceptor_.bind(loopback);
        acceptor_.listen(0);
        for (int i = 0; i < 4; ++i)
            waiting_.emplace_back(context).async_connect(endpoint(), [](error_code) {});
    }

    [[nodiscard]] tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

private:
    tcp::acceptor acceptor_;
    std::list<tcp::socket> waiting_;
};

} // namespace stream_test

#endif // PAWL_TEST_TIMEOUTS_TIMEOUT_STREAM_SUPPORT_HPP
