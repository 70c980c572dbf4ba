// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Reminders that outlive the processes that deliver them, and the machine. Redis keeps them in a
// sorted set. Any number of processes claim due reminders by a script; each process has one timer, for
// the next deadline. test/reminders/reminders_test.py kills some of them.
//
//     reminders SOCKET add ID MILLISECONDS TEXT      for a delay from now
//     reminders SOCKET work LEASE                    deliver until SIGTERM; LEASE in milliseconds
//     reminders SOCKET left                          prints how many are not delivered yet

#include "redis_connection.hpp"

#include <pawl/error.hpp>
#include <pawl/sleep.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <unistd.h>

namespace {

namespace asio = boost::asio;
using boost::system::system_error;
using cookbook::redis_connection;
using cookbook::redis_reply;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

// {...}: all of them on one node of a cluster.
const std::string due = "{reminders}:due";       // sorted by when an id is due, or its claim ends
const std::string texts = "{reminders}:texts";   // by id
const std::string claims = "{reminders}:claims"; // number of the last claim, by id
const std::string numbers = "{reminders}:numbers";
const std::string added = "{reminders}:added"; // a channel

/// Redis has the one clock that all processes share.
const std::string now = R"(
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
)";

const std::string add_script = now + R"(
local due, texts, added = KEYS[1], KEYS[2], KEYS[3]
local id, delay, text = ARGV[1], ARGV[2], ARGV[3]
if redis.call('HSETNX', texts, id, text) == 0 then return 0 end
redis.call('ZADD', due, now + delay, id)
redis.call('PUBLISH', added, delay)
return 1
)";

const std::string done_script = R"(
local due, texts, claims = KEYS[1], KEYS[2], KEYS[3]
local id, number = ARGV[1], ARGV[2]
if redis.call('HGET', claims, id) ~= number then return 0 end
redis.call('ZREM', due, id)
redis.call('HDEL', texts, id)
redis.call('HDEL', claims, id)
return 1
)";

/// A claimed reminder or, without an id, the time until the next one is due.
struct claim {
    std::string id{};
    std::string number{}; ///< greater than that of any earlier claim
    std::string text{};
    milliseconds wait{};
};

/// An answer from a Redis on this machine never takes that long.
constexpr auto answer_limit = 2s;

/// Maximum sleep, in case a message is lost.
constexpr auto longest_sleep = 10s;

class worker {
public:
    worker(const asio::any_io_executor& executor, std::string path, milliseconds lease)
        : path_(std::move(path)), lease_(lease), next_(executor) {}

    asio::awaitable<void> run();

private:
    asio::awaitable<void> serve(redis_connection& redis);
    asio::awaitable<claim> take(redis_connection& redis);
    void on_added(milliseconds delay);
    asio::awaitable<void> deliver(const claim& c);
    asio::awaitable<void> done(redis_connection& redis, const claim& c);

    std::string path_;
    milliseconds lease_;
    pawl::steady_timer next_;
    steady_clock::time_point soonest_{}; ///< earliest reminder added while Redis was asked
    bool is_deaf_ = false;               ///< the subscription is lost
};

/// Takes the first reminder if it is due, by a claim that ends by itself.
const std::string claim_script = now + R"(
local due, texts, claims, numbers, lease = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1]
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
if #first == 0 then return {-1} end
local id, wait = first[1], first[2] - now
if wait > 0 then return {wait} end
local number = redis.call('INCR', numbers)
redis.call('ZADD', due, now + lease, id) -- due again, should this process not come back
redis.call('HSET', claims, id, number)
return {0, id, tostring(number), redis.call('HGET', texts, id)}
)";

asio::awaitable<void> worker::serve(redis_connection& redis) {
    while (!is_deaf_) { // otherwise connect again
        soonest_ = steady_clock::time_point::max();
        const auto asked = steady_clock::now();
        const claim c = co_await take(redis);
        if (c.id.empty()) {
            const auto latest =
                steady_clock::now() + std::min<steady_clock::duration>(c.wait, longest_sleep);
            next_.expires_at(std::min(latest, soonest_));
            co_await next_.async_wait(asio::use_awaitable);
            continue;
        }
        try { // ends before the claim does, so that no two processes are at it
            co_await pawl::timeout_at(asked + lease_ * 3 / 4, deliver(c));
        } catch (const system_error& e) {
            if (e.code() != pawl::error::timed_out)
                throw;
            continue; // the claim will end, and the reminder be due again
        }
        co_await done(redis, c);
    }
}

/// Another process has added a reminder: the next deadline may be earlier.
void worker::on_added(milliseconds delay) {
    soonest_ = std::min(soonest_, steady_clock::now() + delay);
    if (soonest_ < next_.expiry())
        next_.rearm_at(soonest_);
}

asio::awaitable<claim> worker::take(redis_connection& redis) {
    const std::vector<std::string> words{
        "EVAL", claim_script, "4", due, texts, claims, numbers, std::to_string(lease_.count())};
    const redis_reply reply = co_await pawl::timeout(answer_limit, redis.command(words));
    claim c;
    c.wait = milliseconds(reply.list.at(0).integer);
    if (c.wait == 0ms) {
        c.id = reply.list.at(1).text;
        c.number = reply.list.at(2).text;
        c.text = reply.list.at(3).text;
    } else if (c.wait < 0ms) { // there is none
        c.wait = longest_sleep;
    }
    co_return c;
}

asio::awaitable<void> worker::done(redis_connection& redis, const claim& c) {
    const std::vector<std::string> words{"EVAL", done_script, "3",  due,
                                         texts,  claims,      c.id, c.number};
    const redis_reply reply = co_await pawl::timeout(answer_limit, redis.command(words));
    std::cout << (reply.integer == 1 ? "done " : "stale ") + c.id + ' ' + c.number + '\n'
              << std::flush;
}

/// Stands for an e-mail: two lines, and between them as many milliseconds as the text says. The
/// receiver gets the number, and may refuse one that is lower than an earlier one.
asio::awaitable<void> worker::deliver(const claim& c) {
    std::cout << "begin " + c.id + ' ' + c.number + ' ' + std::to_string(getpid()) + '\n'
              << std::flush;
    co_await pawl::sleep_for(milliseconds(std::stoi(c.text)));
    std::cout << "end " + c.id + ' ' + c.number + '\n' << std::flush;
}

/// Serves until it is cancelled, and reconnects whenever Redis has gone.
asio::awaitable<void> worker::run() {
    const auto executor = co_await asio::this_coro::executor;
    for (;;) {
        std::string failure = "nothing is heard of Redis";
        try {
            redis_connection commands(executor, path_);
            redis_connection messages(executor, path_);
            is_deaf_ = false;
            messages.subscribe(
                added, [this] { on_added(0ms); }, // added before, and not heard
                [this](const std::string& delay) { on_added(milliseconds(std::stoll(delay))); },
                [this] {
                    is_deaf_ = true;
                    next_.rearm_after(0ms);
                });
            co_await serve(commands);
        } catch (const std::exception& e) {
            failure = e.what();
        }
        if ((co_await asio::this_coro::cancellation_state).cancelled() !=
            asio::cancellation_type::none)
            co_return;
        std::cerr << "reminders: " + failure + "; again in 100 ms\n";
        co_await pawl::sleep_for(100ms);
    }
}

// --- the program ---------------------------------------------------------------------------------

int misused() {
    std::cerr << "usage: reminders SOCKET add ID MILLISECONDS TEXT\n"
                 "       reminders SOCKET work LEASE\n"
                 "       reminders SOCKET left\n"
                 "LEASE is 100 ms at least; TEXT: how many milliseconds delivery takes\n";
    return 2;
}

/// -1 if the text is not a number, or is less than `least`.
int number(std::string_view text, int least) {
    int result = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), result);
    return ec == std::errc() && end == text.data() + text.size() && result >= least ? result : -1;
}

int work(const std::string& path, milliseconds lease) {
    asio::io_context context(1);
    worker w(context.get_executor(), path, lease);
    asio::cancellation_signal stop;
    asio::signal_set signals(context, SIGINT, SIGTERM);
    signals.async_wait([&](boost::system::error_code ec, int) {
        if (!ec)
            stop.emit(asio::cancellation_type::terminal);
    });
    std::exception_ptr failure;
    asio::co_spawn(context, w.run(),
                   asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr e) {
                       failure = e;
                       signals.cancel();
                   }));
    context.run();
    if (failure) {
        try {
            std::rethrow_exception(failure);
        } catch (const system_error& e) {
            if (e.code() != asio::error::operation_aborted) // cancelled in the pause of run()
                throw;
        }
    }
    return 0;
}

/// Sends one command, and prints the integer in the answer.
int ask(const std::string& path, const std::vector<std::string>& words) {
    asio::io_context context(1);
    redis_connection redis(context.get_executor(), path);
    std::exception_ptr failure;
    redis_reply reply;
    asio::co_spawn(context, pawl::timeout(answer_limit, redis.command(words)),
                   [&](std::exception_ptr e, redis_reply r) {
                       failure = e;
                       reply = std::move(r);
                       redis.close(); // otherwise run() would wait for more from Redis
                   });
    context.run();
    if (failure)
        std::rethrow_exception(failure);
    std::cout << reply.integer << '\n';
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    try {
        if (words.size() == 3 && words[1] == "work" && number(words[2], 100) > 0)
            return work(words[0], milliseconds(number(words[2], 100)));
        if (words.size() == 5 && words[1] == "add" && number(words[3], 0) >= 0 &&
            number(words[4], 0) >= 0)
            return ask(words[0],
                       {"EVAL", add_script, "3", due, texts, added, words[2], words[3], words[4]});
        if (words.size() == 2 && words[1] == "left")
            return ask(words[0], {"ZCARD", due});
    } catch (const std::exception& e) {
        std::cerr << "reminders: " << e.what() << '\n';
        return 1;
    }
    return misused();
}
