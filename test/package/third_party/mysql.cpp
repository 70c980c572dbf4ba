// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Boost.MySQL on Pawl's timers, against a mariadbd: mysql SOCKET SERVER [ITS-ARGUMENT...]

#include "support.hpp"

#include <pawl/cancel_after.hpp>

#include <boost/mysql.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace {

using namespace third_party;
namespace mysql = boost::mysql;

template <class Connection>
asio::awaitable<std::uint64_t> number(Connection& connection, std::string query) {
    mysql::results result;
    co_await connection.async_execute(query, result, asio::use_awaitable);
    const mysql::field_view field = result.rows().at(0).at(0);
    co_return field.is_uint64() ? field.get_uint64()
                                : static_cast<std::uint64_t>(field.get_int64());
}

asio::awaitable<std::uint64_t> session(mysql::connection_pool& pool) {
    mysql::pooled_connection connection = co_await pool.async_get_connection(asio::use_awaitable);
    co_return co_await number(connection.get(), "SELECT CONNECTION_ID()");
}

asio::awaitable<void> program(server& s, std::string socket) {
    const auto executor = co_await asio::this_coro::executor;
    mysql::connect_params parameters;
    parameters.server_address.emplace_unix_path(socket);
    parameters.username = "root";
    parameters.ssl = mysql::ssl_mode::disable;

    auto connection = std::make_unique<mysql::any_connection>(executor);
    const auto connect = [&]() -> asio::awaitable<void> {
        connection = std::make_unique<mysql::any_connection>(executor);
        co_await connection->async_connect(parameters, asio::use_awaitable);
    };
    co_await until_it_works(connect); // the server takes a while to start
    check(co_await number(*connection, "SELECT 42") == 42, "connection: a query is answered");

    mysql::results result;
    std::string said;
    try { // the default token of Boost.MySQL, which throws what the server said
        co_await connection->async_execute("nonsense", result, pawl::timeout(5s));
    } catch (const mysql::error_with_diagnostics& e) {
        said = e.get_diagnostics().server_message();
    }
    check(!said.empty(), "connection: a limit without a token keeps the diagnostics: " + said);

    const error_code ec = co_await code_of(connection->async_execute(
        "SELECT SLEEP(1000)", result, pawl::timeout(100ms, asio::use_awaitable)));
    check(ec == pawl::error::timed_out, "cancelled: a query under pawl::timeout");
    const error_code aborted = co_await code_of([&]() -> asio::awaitable<void> {
        co_await connect();
        co_await connection->async_execute("SELECT SLEEP(1000)", result,
                                           pawl::cancel_after(100ms, asio::use_awaitable));
    }());
    check(aborted == asio::error::operation_aborted, "cancelled: a query under pawl::cancel_after");
    co_await connect();
    check(co_await number(*connection, "SELECT 43") == 43, "reconnect: after a cancelled query");

    mysql::pool_params options;
    options.server_address.emplace_unix_path(socket);
    options.username = "root";
    options.ssl = mysql::ssl_mode::disable;
    options.initial_size = 2;
    options.max_size = 4;
    options.connect_timeout = 2s;
    options.retry_interval = 50ms;
    options.ping_interval = 50ms;
    options.ping_timeout = 100ms;
    mysql::connection_pool pool(executor, std::move(options));
    std::optional<error_code> ended;
    pool.async_run([&](error_code e) { ended = e; });

    std::set<std::uint64_t> sessions;
    {
        std::vector<mysql::pooled_connection> taken;
        for (int i = 0; i != 4; ++i) {
            taken.push_back(co_await pool.async_get_connection(asio::use_awaitable));
            sessions.insert(co_await number(taken.back().get(), "SELECT CONNECTION_ID()"));
        }
        check(sessions.size() == 4, "pool: it gives four connections");
        const error_code none =
            co_await code_of(pool.async_get_connection(pawl::timeout(50ms, asio::use_awaitable)));
        // MySQL's own code for a cancelled operation, which pawl::timeout passes on unchanged.
        check(none == mysql::client_errc::no_connection_available,
              "pool: a fifth is waited for no longer than the limit");
        taken.pop_back();
        mysql::pooled_connection again = co_await pool.async_get_connection(asio::use_awaitable);
        check(co_await number(again.get(), "SELECT 44") == 44,
              "pool: one that is given back is given again");
    }
    int answers = 0;
    for (int i = 0; i != 50; ++i)
        asio::co_spawn(executor, session(pool),
                       [&](std::exception_ptr e, std::uint64_t) { answers += e ? -1000 : 1; });
    while (answers >= 0 && answers < 50)
        co_await pawl::sleep_for(5ms);
    check(answers == 50, "pool: fifty at once share four connections");

    for (bool all_new = false; !all_new;) { // until each old session was found dead by its ping
        s.freeze();
        co_await pawl::sleep_for(500ms);
        s.thaw();
        all_new = true;
        for (int i = 0; i != 4; ++i)
            co_await until_it_works([&]() -> asio::awaitable<void> {
                all_new = !sessions.contains(co_await session(pool)) && all_new;
            });
    }
    check(true, "health check: pings time out, and all sessions are new ones");

    s.kill();
    s.start();
    co_await until_it_works([&]() -> asio::awaitable<void> { co_await session(pool); });
    check(true, "reconnect: to a server that was killed");
    pool.cancel();
    while (!ended)
        co_await pawl::sleep_for(5ms);
    check(!*ended, "cancelled: async_run ends");
}

} // namespace

int main(int argc, char** argv) {
    return third_party::run(argc, argv, 2, [&](server& s) { return program(s, argv[1]); });
}
