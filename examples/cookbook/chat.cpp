// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A chat server on several threads: each session on its own strand, with a writer that is woken when there
// is something to write, and a limit on how many lines a client may send per second.
//
// Sockets, threads and time are real.

#include "lines.hpp"
#include "support.hpp"

#include <pawl/error.hpp>
#include <pawl/group.hpp>
#include <pawl/rate_limiter.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using clock_type = std::chrono::steady_clock;
using cookbook::check;
using cookbook::read_line;
using namespace std::chrono_literals;

class session;

/// Who is there. Any thread may call it.
class room {
public:
    void join(std::shared_ptr<session> s) {
        const std::lock_guard lock(mutex_);
        sessions_.push_back(std::move(s));
    }
    void leave(const session* s) {
        const std::lock_guard lock(mutex_);
        std::erase_if(sessions_, [s](const auto& other) { return other.get() == s; });
    }
    void say(const std::string& line);
    std::size_t size() {
        const std::lock_guard lock(mutex_);
        return sessions_.size();
    }

private:
    std::mutex mutex_;
    std::vector<std::shared_ptr<session>> sessions_;
};

class session : public std::enable_shared_from_this<session> {
public:
    session(tcp::socket peer, room& r, const pawl::rate_limit& lines)
        : peer_(std::move(peer)), room_(r), lines_(peer_.get_executor(), lines),
          has_output_(peer_.get_executor(), pawl::steady_timer::time_point::max()) {}

    /// From any thread.
    void deliver(std::string line) {
        asio::post(peer_.get_executor(),
                   [self = shared_from_this(), line = std::move(line)]() mutable {
                       if (self->output_.size() == max_output)
                           self->peer_.close(); // it does not read
                       else
                           self->output_.push_back(std::move(line));
                       self->has_output_.cancel_one(); // wakes the writer
                   });
    }

    asio::awaitable<void> run() {
        using namespace asio::experimental::awaitable_operators;
        const auto self = shared_from_this();
        room_.join(self);
        const std::unique_ptr<session, leave> on_end(this);
        co_await (read() && write()); // the first one that fails ends the other
    }

private:
    struct leave {
        void operator()(session* s) const { s->room_.leave(s); }
    };

    asio::awaitable<void> read() {
        std::string buffer;
        for (;;) {
            const std::string line = co_await pawl::timeout(60s, read_line(peer_, buffer));
            co_await lines_.async_acquire(); // meanwhile TCP holds the client back
            room_.say(line);
        }
    }

    asio::awaitable<void> write() {
        for (;;) {
            // Throws if the session is cancelled, and not if deliver() wakes it.
            while (output_.empty())
                co_await has_output_.async_wait(asio::as_tuple(asio::use_awaitable));
            const std::string line = std::move(output_.front()) + '\n';
            output_.pop_front();
            co_await asio::async_write(peer_, asio::buffer(line),
                                       pawl::timeout(10s, asio::use_awaitable));
        }
    }

    static constexpr std::size_t max_output = 1000;
    tcp::socket peer_; // made for the strand of this session
    room& room_;
    pawl::rate_limiter lines_;
    std::deque<std::string> output_;
    pawl::steady_timer has_output_; // a condition variable: it never expires
};

void room::say(const std::string& line) {
    const std::lock_guard lock(mutex_);
    for (const auto& s : sessions_)
        s->deliver(line);
}

asio::awaitable<void> accept(tcp::acceptor acceptor, room& r, pawl::rate_limit lines,
                             pawl::group& sessions) {
    for (;;) {
        const auto strand = asio::make_strand(acceptor.get_executor());
        tcp::socket peer = co_await acceptor.async_accept(strand, asio::use_awaitable);
        const auto s = std::make_shared<session>(std::move(peer), r, lines);
        asio::co_spawn(strand, s->run(), pawl::in_group(sessions, asio::detached));
    }
}

/// Sends lines, and reads as many as all clients send. Returns how many it got.
asio::awaitable<int> chat(tcp::socket peer, int lines, int expected) {
    std::string all;
    for (int i = 0; i < lines; ++i)
        all += "line\n";
    co_await asio::async_write(peer, asio::buffer(all), asio::use_awaitable);
    std::string buffer;
    int got = 0;
    for (; got < expected; ++got)
        co_await read_line(peer, buffer);
    co_return got;
}

} // namespace

int main() {
    constexpr int clients = 4;
    constexpr int lines = 50;
    asio::thread_pool threads(4);
    room r;
    pawl::group accepting(threads);
    pawl::group sessions(threads);
    tcp::acceptor acceptor(threads, {asio::ip::address_v4::loopback(), 0});
    const auto where = acceptor.local_endpoint();
    asio::co_spawn(threads, accept(std::move(acceptor), r, {.tokens = 1000, .burst = 10}, sessions),
                   pawl::in_group(accepting, asio::detached));
    std::vector<tcp::socket> peers;
    while (peers.size() != clients)
        peers.emplace_back(asio::make_strand(threads)).connect(where);
    while (r.size() != clients)
        std::this_thread::yield();

    int complete = 0;
    const auto begin = clock_type::now();
    std::vector<std::future<int>> counts;
    for (auto& peer : peers) {
        const auto strand = peer.get_executor();
        counts.push_back(asio::co_spawn(strand, chat(std::move(peer), lines, clients * lines),
                                        asio::use_future));
    }
    for (auto& count : counts)
        complete += count.get() == clients * lines ? 1 : 0;
    const auto took = clock_type::now() - begin;
    accepting.cancel(pawl::error::shutting_down);
    sessions.cancel(pawl::error::shutting_down);
    threads.join();

    check(complete == clients, "each client has got each line");
    check(took >= 39ms, "no faster than its rate"); // 50 lines, 10 of them at once
    check(r.size() == 0, "all sessions have ended");
    return cookbook::exit_status();
}
