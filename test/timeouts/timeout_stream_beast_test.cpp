// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   pawl::tcp_stream in place of beast::tcp_stream: HTTP in both directions, WebSocket, TLS, and
//   limits that end them.

#define BOOST_TEST_MODULE timeout_stream_beast
#include <boost/test/unit_test.hpp>

#include <pawl/timeout.hpp>

#include "timeout_stream_support.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace {

using namespace stream_test;
namespace http = beast::http;
namespace ssl = asio::ssl;
namespace websocket = beast::websocket;
using asio::use_awaitable;
using pawl::tcp_stream;

constexpr auto use_tuple = asio::as_tuple(use_awaitable);
constexpr stream_limits generous{.idle = 30s, .read = 20s, .write = 20s, .handshake = 10s};

/// Runs a coroutine to its end, and rethrows its exception.
template <class... Coroutines>
void run(asio::io_context& context, Coroutines... coroutines) {
    std::size_t running = sizeof...(coroutines);
    std::exception_ptr failure;
    const auto over = [&](std::exception_ptr e) {
        --running;
        if (e && !failure)
            failure = e;
    };
    (asio::co_spawn(context, std::move(coroutines), over), ...);
    run_until(context, [&] { return running == 0 || failure; });
    if (failure)
        std::rethrow_exception(failure);
}

/// A client and a server over loopback.
template <class Stream>
struct pair_of {
    explicit pair_of(asio::io_context& context) : pair_of(socket_pair(context)) {}
    explicit pair_of(std::pair<tcp::socket, tcp::socket> sockets)
        : client(std::move(sockets.first)), server(std::move(sockets.second)) {
        client.set_limits(generous);
        server.set_limits(generous);
    }

    Stream client;
    Stream server;
};

/// Answers requests with their body until the client is done.
template <class Stream>
asio::awaitable<void> serve(Stream& stream, bool chunked = false) {
    beast::flat_buffer buffer;
    for (;;) {
        beast::get_lowest_layer(stream).expires_after(30s);
        http::request<http::string_body> request;
        auto [ec, size] = co_await http::async_read(stream, buffer, request, use_tuple);
        if (ec)
            co_return;
        http::response<http::string_body> response(http::status::ok, request.version());
        response.keep_alive(request.keep_alive());
        response.body() = request.body();
        response.chunked(chunked);
        if (!chunked)
            response.prepare_payload();
        co_await http::async_write(stream, response, use_awaitable);
        if (!request.keep_alive())
            co_return;
    }
}

template <class Stream>
asio::awaitable<std::string> post(Stream& stream, std::string body, bool chunked = false) {
    beast::get_lowest_layer(stream).expires_after(30s);
    http::request<http::string_body> request(http::verb::post, "/echo", 11);
    request.set(http::field::host, "localhost");
    request.body() = std::move(body);
    request.chunked(chunked);
    if (!chunked)
        request.prepare_payload();
    co_await http::async_write(stream, request, use_awaitable);
    beast::flat_buffer buffer;
    http::response<http::string_body> response;
    co_await http::async_read(stream, buffer, response, use_awaitable);
    co_return response.body();
}

/// Posts small and large bodies, then ends.
template <class Stream>
asio::awaitable<void> request_some(Stream& stream, bool chunked = false) {
    const std::string large(1 << 20, 'y');
    BOOST_TEST(co_await post(stream, "hello", chunked) == "hello");
    BOOST_TEST((co_await post(stream, large, chunked) == large));
    BOOST_TEST(co_await post(stream, "", chunked) == "");
    beast::close_socket(beast::get_lowest_layer(stream));
}

/// A context that presents a certificate of its own for localhost.
class identity {
public:
    identity() {
        const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                      &EVP_PKEY_free);
        const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
        BOOST_REQUIRE(key);
        BOOST_REQUIRE(certificate);
        X509* const x = certificate.get();
        X509_set_version(x, X509_VERSION_3);
        ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
        X509_gmtime_adj(X509_getm_notBefore(x), -3600);
        X509_gmtime_adj(X509_getm_notAfter(x), 24 * 3600);
        X509_set_pubkey(x, key.get());
        X509_NAME* const name = X509_get_subject_name(x);
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                   reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
        X509_set_issuer_name(x, name);
        BOOST_REQUIRE_NE(X509_sign(x, key.get(), EVP_sha256()), 0);
        BOOST_REQUIRE_EQUAL(SSL_CTX_use_certificate(server.native_handle(), x), 1);
        BOOST_REQUIRE_EQUAL(SSL_CTX_use_PrivateKey(server.native_handle(), key.get()), 1);
        X509_STORE_add_cert(SSL_CTX_get_cert_store(client.native_handle()), x);
        client.set_verify_mode(ssl::verify_peer);
    }

    ssl::context server{ssl::context::tls_server};
    ssl::context client{ssl::context::tls_client};
};

template <class SslStream>
struct secure_pair {
    secure_pair(asio::io_context& context, identity& id)
        : secure_pair(pair_of<tcp_stream>(context), id) {}
    secure_pair(pair_of<tcp_stream> p, identity& id)
        : client(std::move(p.client), id.client), server(std::move(p.server), id.server) {}

    SslStream client;
    SslStream server;
};

template <class SslStream>
asio::awaitable<void> handshake(SslStream& stream, ssl::stream_base::handshake_type role) {
    const auto scope =
        beast::get_lowest_layer(stream).limit_handshake(); // stream_limits::handshake, from now
    co_await stream.async_handshake(role, use_awaitable);
}

struct fixture {
    asio::io_context context;
};

BOOST_FIXTURE_TEST_SUITE(beast_over_timeout_stream, fixture)

BOOST_AUTO_TEST_CASE(the_lowest_layer_is_the_timeout_stream) {
    const auto lowest_is = []<class Lowest, class Stream>() {
        static_assert(std::is_same_v<beast::lowest_layer_type<Stream>, Lowest>);
    };
    lowest_is.operator()<tcp_stream, ssl::stream<tcp_stream>>();
    lowest_is.operator()<tcp_stream, beast::ssl_stream<tcp_stream>>();
    lowest_is.operator()<tcp_stream, websocket::stream<tcp_stream>>();
    lowest_is.operator()<tcp_stream, websocket::stream<ssl::stream<tcp_stream>>>();
    lowest_is.operator()<tcp::socket, pawl::timeout_stream<ssl::stream<tcp::socket>>>();
}

BOOST_AUTO_TEST_CASE(http_runs_in_both_directions) {
    pair_of<tcp_stream> p(context);
    run(context, serve(p.server), request_some(p.client));
}

BOOST_AUTO_TEST_CASE(http_runs_with_chunked_bodies) {
    pair_of<tcp_stream> p(context);
    run(context, serve(p.server, true), request_some(p.client, true));
}

BOOST_AUTO_TEST_CASE(a_header_that_comes_a_byte_at_a_time_times_out) {
    connection c(context, {.read = 10s});
    c.stream.expires_after(10s);
    beast::flat_buffer buffer;
    http::request<http::string_body> request;
    outcome read;
    http::async_read(c.stream, buffer, request, read.record());

    const std::string header = "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
    for (std::size_t i = 0; i < 10; ++i) {
        BOOST_TEST(read.pending());
        asio::write(c.peer, asio::buffer(header.data() + i, 1));
        poll(context);
        pass(context, 1s);
    }
    over(context, read);
    BOOST_TEST(read.timed_out());
    BOOST_TEST(!c.stream.socket().is_open());
}

BOOST_AUTO_TEST_CASE(a_body_that_stalls_times_out) {
    connection c(context, {.read = 10s, .report = limit_error::timed_out});
    asio::write(c.peer,
                asio::buffer(std::string("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nfour")));
    beast::flat_buffer buffer;
    http::request<http::string_body> request;
    outcome read;
    http::async_read(c.stream, buffer, request, read.record());
    poll(context);
    pass(context, 10s);
    over(context, read);
    BOOST_TEST(read.ended_with(pawl::error::timed_out));
}

BOOST_AUTO_TEST_CASE(a_response_that_nobody_reads_times_out) {
    connection<local_stream> c(context, {.write = 10s});
    c.clog();
    http::response<http::string_body> response(http::status::ok, 11);
    response.body() = std::string(1000, 'z');
    response.prepare_payload();
    outcome write;
    http::async_write(c.stream, response, write.record());
    pass(context, 10s);
    over(context, write);
    BOOST_TEST(write.timed_out());
}

template <class Next>
asio::awaitable<void> serve_websocket(websocket::stream<Next>& ws) {
    co_await ws.async_accept(use_awaitable);
    for (;;) {
        beast::flat_buffer buffer;
        auto [ec, size] = co_await ws.async_read(buffer, use_tuple);
        if (ec) {
            BOOST_TEST((ec == websocket::error::closed));
            co_return;
        }
        co_await ws.async_write(buffer.data(), use_awaitable);
    }
}

template <class Next>
asio::awaitable<void> use_websocket(websocket::stream<Next>& ws) {
    co_await ws.async_handshake("localhost", "/", use_awaitable);
    co_await ws.async_ping({}, use_awaitable);
    for (const std::string& text : {std::string("hello"), std::string(100'000, 'y')}) {
        co_await ws.async_write(asio::buffer(text), use_awaitable);
        beast::flat_buffer buffer;
        co_await ws.async_read(buffer, use_awaitable);
        BOOST_TEST((beast::buffers_to_string(buffer.data()) == text));
    }
    auto [ec] = co_await ws.async_close(websocket::close_code::normal, use_tuple); // teardown
    BOOST_TEST((!ec || ec == ssl::error::stream_truncated));
    BOOST_TEST(!beast::get_lowest_layer(ws).socket().is_open());
}

BOOST_AUTO_TEST_CASE(websocket_echoes_pings_and_closes) {
    pair_of<tcp_stream> p(context);
    websocket::stream<tcp_stream> client(std::move(p.client));
    websocket::stream<tcp_stream> server(std::move(p.server));
    server.set_option(websocket::stream_base::timeout::suggested(beast::role_type::server));
    run(context, serve_websocket(server), use_websocket(client));
    BOOST_TEST(!beast::get_lowest_layer(server).socket().is_open());
}

// A Beast operation that waits for another one keeps the slot of its handler, as one of Asio's, and
// clears it when it continues: here between the end of its limit and the emission.
BOOST_AUTO_TEST_CASE(a_websocket_operation_that_waits_for_another_may_be_under_a_limit) {
    pair_of<tcp_stream> p(context);
    websocket::stream<tcp_stream> client(std::move(p.client));
    websocket::stream<tcp_stream> server(std::move(p.server));
    run(context, client.async_handshake("localhost", "/", use_awaitable),
        server.async_accept(use_awaitable));
    pawl::manual_timer timer(context);
    outcome write;
    outcome ping;
    server.async_write(asio::buffer("hello", 5), write.record());
    server.async_ping({}, pawl::timeout(timer, 1s, ping.record()));
    manual_clock::advance(context, 2s);
    run_until(context, [&] { return !write.pending() && !ping.pending(); });
    BOOST_TEST(write.succeeded(), write);
    BOOST_TEST((ping.succeeded() || ping.ended_with(pawl::error::timed_out)), ping);
}

// The peer does not close.
BOOST_AUTO_TEST_CASE(a_teardown_ends_when_the_stream_idles_and_is_closed) {
    connection c(context, {.idle = 10s});
    outcome teardown;
    async_teardown(beast::role_type::server, c.stream, teardown.record());
    pass(context, 10s - 1ns);
    BOOST_TEST(teardown.pending());
    pass(context, 1ns);
    over(context, teardown);
    BOOST_TEST(teardown.ended_with(asio::error::bad_descriptor), teardown);
}

// The blocking client has a thread and a context of its own; the two meet in their sockets only.
BOOST_AUTO_TEST_CASE(a_blocking_websocket_echoes_and_closes) {
    tcp::acceptor acceptor(context, loopback);
    auto echoed = std::async(std::launch::async, [at = acceptor.local_endpoint()] {
        asio::io_context none;
        websocket::stream<tcp_stream> client(none);
        beast::get_lowest_layer(client).connect(at);
        client.handshake("localhost", "/");
        client.write(asio::buffer("hello", 5));
        beast::flat_buffer buffer;
        client.read(buffer);
        error_code ec;
        client.close(websocket::close_code::normal, ec); // teardown
        return std::tuple(beast::buffers_to_string(buffer.data()), ec,
                          beast::get_lowest_layer(client).socket().is_open());
    });
    websocket::stream<tcp_stream> server(acceptor.accept());
    run(context, serve_websocket(server));
    const auto [text, ec, open] = echoed.get();
    BOOST_TEST(text == "hello");
    BOOST_TEST(ec == error_code());
    BOOST_TEST(!open);
    BOOST_TEST(!beast::get_lowest_layer(server).socket().is_open());
}

BOOST_AUTO_TEST_CASE(a_websocket_that_idles_is_closed) {
    connection c(context, {.idle = 10s});
    websocket::stream<manual_stream> ws(std::move(c.stream));
    outcome accept;
    ws.async_accept(accept.record());
    poll(context);
    pass(context, 10s);
    over(context, accept);
    BOOST_TEST(accept.timed_out());
}

BOOST_AUTO_TEST_CASE(http_runs_over_asio_s_tls) {
    identity id;
    secure_pair<ssl::stream<tcp_stream>> p(context, id);
    run(context, handshake(p.server, ssl::stream_base::server),
        handshake(p.client, ssl::stream_base::client));
    run(context, serve(p.server), request_some(p.client));
}

BOOST_AUTO_TEST_CASE(beast_s_tls_runs) {
    identity id;
    secure_pair<beast::ssl_stream<tcp_stream>> p(context, id);
    run(context, handshake(p.server, ssl::stream_base::server),
        handshake(p.client, ssl::stream_base::client));
    std::array<char, 5> data{};
    outcome read;
    outcome write;
    asio::async_read(p.server, asio::buffer(data), read.record());
    asio::async_write(p.client, asio::buffer("hello", 5), write.record());
    over(context, read);
    over(context, write);
    BOOST_TEST(std::string(data.data(), data.size()) == "hello");
}

BOOST_AUTO_TEST_CASE(websocket_runs_over_tls) {
    identity id;
    secure_pair<ssl::stream<tcp_stream>> p(context, id);
    websocket::stream<ssl::stream<tcp_stream>> client(std::move(p.client));
    websocket::stream<ssl::stream<tcp_stream>> server(std::move(p.server));
    run(context, handshake(server.next_layer(), ssl::stream_base::server),
        handshake(client.next_layer(), ssl::stream_base::client));
    run(context, serve_websocket(server), use_websocket(client));
}

BOOST_AUTO_TEST_CASE(a_tls_handshake_that_stalls_is_ended_by_limit_handshake) {
    identity id;
    auto sockets = socket_pair(context);
    ssl::stream<manual_stream> stream(std::move(sockets.first), id.server);
    stream.next_layer().set_limits({.read = 1h, .handshake = 10s});
    outcome handshake;
    const auto scope = stream.next_layer().limit_handshake();
    stream.async_handshake(ssl::stream_base::server, handshake.record());
    poll(context);
    pass(context, 10s - 1ns);
    BOOST_TEST(handshake.pending());
    pass(context, 1ns);
    over(context, handshake);
    BOOST_TEST(handshake.timed_out());
}

/// The reverse: limits on the data that TLS delivers, with a handshake that the stream does not
/// see.
BOOST_AUTO_TEST_CASE(a_timeout_stream_can_be_on_tls) {
    using stream_type = pawl::timeout_stream<ssl::stream<tcp::socket>, manual_clock>;
    identity id;
    auto sockets = socket_pair(context);
    stream_type client(std::move(sockets.first), id.client);
    stream_type server(std::move(sockets.second), id.server);
    run(
        context,
        [&] {
            return server.next_layer().async_handshake(ssl::stream_base::server, use_awaitable);
        }(),
        [&] {
            return client.next_layer().async_handshake(ssl::stream_base::client, use_awaitable);
        }());
    server.set_limits({.read = 10s, .action = on_limit::cancel});
    std::array<char, 16> data{};
    asio::write(client, asio::buffer("hello", 5));
    outcome first;
    server.async_read_some(asio::buffer(data), first.record());
    over(context, first);
    BOOST_TEST(first.size == 5U);
    outcome second;
    server.async_read_some(asio::buffer(data), second.record());
    poll(context);
    pass(context, 10s);
    over(context, second);
    BOOST_TEST(second.timed_out());
    BOOST_TEST(server.lowest_layer().is_open());
}

BOOST_AUTO_TEST_CASE(a_tls_handshake_below_the_stream_is_ended_by_limit_handshake) {
    identity id;
    auto sockets = socket_pair(context);
    pawl::timeout_stream<ssl::stream<tcp::socket>, manual_clock> stream(std::move(sockets.first),
                                                                        id.server);
    stream.set_limits({.handshake = 10s, .action = on_limit::cancel});
    outcome handshake;
    const auto scope = stream.limit_handshake();
    stream.next_layer().async_handshake(ssl::stream_base::server, handshake.record());
    poll(context);
    pass(context, 10s);
    over(context, handshake);
    BOOST_TEST(handshake.aborted());
    outcome read;
    std::array<char, 16> data{};
    stream.async_read_some(asio::buffer(data), read.record());
    over(context, read);
    BOOST_TEST(read.timed_out());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
