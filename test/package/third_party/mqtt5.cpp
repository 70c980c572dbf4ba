// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Boost.MQTT5 on Pawl's timers, against a mosquitto: mqtt5 PORT SERVER [ITS-ARGUMENT...]

#include "support.hpp"

#include <pawl/cancel_after.hpp>

#include <boost/mqtt5.hpp>

#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace {

using namespace third_party;
namespace mqtt = boost::mqtt5;
constexpr auto no_resend = asio::cancellation_type::partial | asio::cancellation_type::total;

/// Counts the client's reports on its connection.
struct counting_logger {
    struct counts {
        int connected = 0;
        int lost = 0;
    };
    std::shared_ptr<counts> seen = std::make_shared<counts>();

    void at_connack(mqtt::reason_code code, bool, const mqtt::connack_props&) {
        seen->connected += !code;
    }
    void at_transport_error(error_code) { ++seen->lost; }
};

using client_type = mqtt::mqtt_client<asio::ip::tcp::socket, std::monostate, counting_logger>;

// Arguments are named variables: g++ 12 constructs an aggregate twice if it is a temporary of a
// co_await.

asio::awaitable<void> subscribe(client_type& client) {
    const mqtt::subscribe_topic topic{"t", {mqtt::qos_e::exactly_once, mqtt::no_local_e::no}};
    const mqtt::subscribe_props properties;
    co_await client.async_subscribe(topic, properties, asio::use_awaitable);
}

template <mqtt::qos_e Qos, class Token>
auto publish(client_type& client, std::string text, Token token) {
    return client.async_publish<Qos>("t", std::move(text), mqtt::retain_e::no,
                                     mqtt::publish_props(), std::move(token));
}

/// Publishes, and waits until the message comes back.
asio::awaitable<std::string> there_and_back(client_type& client, std::string text) {
    for (;;) {
        try {
            co_await publish<mqtt::qos_e::at_least_once>(client, text, asio::use_awaitable);
            for (;;) {
                auto [topic, payload, properties] = co_await client.async_receive(
                    pawl::timeout(2s, no_resend, asio::use_awaitable));
                if (payload == text)
                    co_return payload;
            }
        } catch (const system_error& e) {
            if (e.code() != mqtt::client::error::session_expired &&
                e.code() != pawl::error::timed_out)
                throw;
        }
        co_await subscribe(client); // the broker has forgotten the subscription
    }
}

asio::awaitable<void> program(server& s, std::string port) {
    const auto executor = co_await asio::this_coro::executor;
    counting_logger logger;
    client_type client(executor, std::monostate{}, logger);
    client.brokers("127.0.0.1:" + port, 1883).credentials("pawl").keep_alive(1);
    std::optional<error_code> ended;
    client.async_run([&](error_code ec) { ended = ec; });

    co_await subscribe(client);
    check(co_await there_and_back(client, "one") == "one", "connection: a message comes back");
    co_await publish<mqtt::qos_e::exactly_once>(client, "two", asio::use_awaitable);
    const auto second = co_await client.async_receive(asio::use_awaitable);
    check(std::get<1>(second) == "two", "connection: exactly once, as well");

    const error_code nothing =
        co_await code_of(client.async_receive(pawl::timeout(100ms, asio::use_awaitable)));
    check(nothing == pawl::error::timed_out, "cancelled: a receive under pawl::timeout");
    const error_code aborted =
        co_await code_of(client.async_receive(pawl::cancel_after(100ms, asio::use_awaitable)));
    check(aborted == asio::error::operation_aborted,
          "cancelled: a receive under pawl::cancel_after");

    const auto before = *logger.seen;
    s.freeze();
    std::optional<error_code> late; // maybe reported only after the connection is back
    asio::co_spawn(co_await asio::this_coro::executor,
                   code_of(publish<mqtt::qos_e::at_least_once>(
                       client, "late", pawl::timeout(200ms, no_resend, asio::use_awaitable))),
                   [&](std::exception_ptr, error_code ec) { late = ec; });
    while (logger.seen->lost == before.lost)
        co_await pawl::sleep_for(10ms);
    check(true, "health check: keep-alive times out");
    s.thaw();
    check(co_await there_and_back(client, "thawed") == "thawed",
          "reconnect: after it speaks again");
    check(logger.seen->connected > before.connected, "reconnect: it was another connection");
    while (!late)
        co_await pawl::sleep_for(10ms);
    check(*late == pawl::error::timed_out,
          "cancelled: a publication to a broker that said nothing");

    s.kill();
    s.start();
    check(co_await there_and_back(client, "restarted") == "restarted",
          "reconnect: to a broker that was killed");
    co_await client.async_disconnect(asio::use_awaitable);
    while (!ended)
        co_await pawl::sleep_for(5ms);
    check(true, "async_run ends after async_disconnect");
}

} // namespace

int main(int argc, char** argv) {
    return third_party::run(argc, argv, 2, [&](server& s) { return program(s, argv[1]); });
}
