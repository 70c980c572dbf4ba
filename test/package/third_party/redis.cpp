// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Boost.Redis on Pawl's timers, against a redis-server: redis SOCKET SERVER [ITS-ARGUMENT...]

#include "support.hpp"

#include <boost/redis.hpp>
#include <boost/redis/src.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace {

using namespace third_party;
namespace redis = boost::redis;

template <class Connection>
asio::awaitable<std::string> ping(Connection& connection, const std::string& text) {
    redis::request request;
    request.push("PING", text);
    redis::response<std::string> response;
    co_await connection.async_exec(request, response, asio::use_awaitable);
    co_return std::get<0>(response).value();
}

asio::awaitable<void> program(server& s, std::string socket) {
    const auto executor = co_await asio::this_coro::executor;
    redis::config config;
    config.unix_socket = socket;
    config.connect_timeout = 2s;
    config.health_check_interval = 200ms;
    config.reconnect_wait_interval = 20ms;

    int pong_timeouts = 0;
    redis::connection connection(
        executor, redis::logger(redis::logger::level::debug, [&](auto, std::string_view line) {
            pong_timeouts += line.find("Pong timeout") != line.npos;
        }));
    std::optional<error_code> ended;
    connection.async_run(config, [&](error_code ec) { ended = ec; });

    check(co_await ping(connection, "hello") == "hello", "connection: a request is answered");
    co_await until_it_works([&]() -> asio::awaitable<void> {
        using namespace asio::experimental::awaitable_operators;
        const auto both = co_await (ping(connection, "a") && ping(connection, "b"));
        if (both != std::tuple<std::string, std::string>("a", "b"))
            throw std::logic_error("answers are exchanged");
    });
    check(true, "requests at once share one connection");

    { // waits for an element of a list: no answer comes
        redis::connection blocked(executor, redis::logger(redis::logger::level::disabled));
        auto patient = config;
        patient.health_check_interval = 0s; // a ping would wait behind it
        bool is_over = false;
        blocked.async_run(patient, [&](error_code) { is_over = true; });
        redis::request pop;
        pop.push("BLPOP", "nothing", 0);
        redis::generic_response element;
        error_code ec = co_await code_of(
            blocked.async_exec(pop, element, pawl::timeout(100ms, asio::use_awaitable)));
        check(ec == pawl::error::timed_out, "cancelled: a request under pawl::timeout");
        redis::request push;
        push.push("RPUSH", "nothing", "something");
        co_await connection.async_exec(push, redis::ignore, asio::use_awaitable);
        check(co_await ping(blocked, "after") == "after",
              "cancelled: the connection is good for the next request");

        asio::cancellation_signal signal;
        std::optional<error_code> told;
        redis::generic_response other;
        blocked.async_exec(pop, other,
                           asio::bind_cancellation_slot(
                               signal.slot(), [&](error_code e, std::size_t) { told = e; }));
        co_await pawl::sleep_for(50ms);
        signal.emit(asio::cancellation_type::terminal);
        while (!told)
            co_await pawl::sleep_for(5ms);
        check(*told == asio::error::operation_aborted, "cancelled: a request through its slot");
        blocked.cancel();
        while (!is_over)
            co_await pawl::sleep_for(5ms);
    }

    check(pong_timeouts == 0, "health check: none has timed out so far");
    s.freeze();
    redis::request request;
    request.get_config().cancel_on_connection_lost = true;
    request.push("PING", "frozen");
    const error_code lost =
        co_await code_of(connection.async_exec(request, redis::ignore, asio::use_awaitable));
    check(!!lost,
          "health check: a request to a server that answers nothing fails: " + lost.message());
    check(pong_timeouts > 0, "health check: it has timed out");
    s.thaw();
    const auto answers = [&]() -> asio::awaitable<void> { co_await ping(connection, "again"); };
    co_await until_it_works(answers);
    check(true, "reconnect: after the server answers again");

    s.kill();
    s.start();
    co_await until_it_works(answers);
    check(true, "reconnect: to a server that was killed");
    check(!ended, "async_run goes on");
    connection.cancel();
    while (!ended)
        co_await pawl::sleep_for(5ms);
    check(*ended == asio::error::operation_aborted, "cancelled: async_run ends");
}

} // namespace

int main(int argc, char** argv) {
    return third_party::run(argc, argv, 2, [&](server& s) { return program(s, argv[1]); });
}
