// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A client that loads an echo server, the same for each server: connections over loopback, each
///   with one ping in flight, and a few that are silent until the server closes them.
#ifndef PAWL_BENCH_PEERS_ECHO_CLIENT_HPP
#define PAWL_BENCH_PEERS_ECHO_CLIENT_HPP

#include "../harness.hpp"
#include "../libraries.hpp"
#include "loop.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <sys/epoll.h>
#include <system_error>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace bench::peers {

inline constexpr std::size_t silent_clients = 10;
inline constexpr std::size_t ping_bytes = 64;

/// A descriptor, closed by the destructor.
class descriptor {
public:
    explicit descriptor(int fd) : fd_(fd) {
        if (fd < 0)
            throw std::system_error(errno, std::generic_category());
    }
    descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    descriptor& operator=(descriptor&&) = delete;
    ~descriptor() {
        if (fd_ >= 0)
            ::close(fd_);
    }

    [[nodiscard]] int get() const { return fd_; }

private:
    int fd_;
};

struct connections {
    std::vector<int> server; ///< non-blocking; the server closes them
    std::vector<descriptor> client;
};

inline connections connect_over_loopback(std::size_t n) {
    using asio::ip::tcp;
    asio::io_context io;
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    connections all;
    for (std::size_t i = 0; i < n; ++i) {
        tcp::socket ends[] = {tcp::socket(io), tcp::socket(io)};
        ends[0].connect(acceptor.local_endpoint());
        acceptor.accept(ends[1]);
        for (auto& end : ends) {
            end.set_option(tcp::no_delay(true));
            end.native_non_blocking(true);
        }
        all.client.emplace_back(ends[0].release());
        all.server.push_back(ends[1].release());
    }
    return all;
}

/// Sends a ping on each connection, and the next one as soon as the echo has come back.
class echo_client {
public:
    /// @param active number of connections that are not silent; they come first
    echo_client(std::vector<descriptor> ends, std::size_t active)
        : ends_(std::move(ends)), active_(active), received_(ends_.size()) {
        ping_.fill('p');
        for (std::size_t i = 0; i < ends_.size(); ++i) {
            epoll_event event{};
            event.events = EPOLLIN;
            event.data.u64 = i;
            if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, ends_[i].get(), &event) != 0)
                throw std::system_error(errno, std::generic_category());
        }
        for (std::size_t i = 0; i < active_; ++i)
            send(i);
    }

    /// Runs until then.
    void run(clock::time_point end) {
        for (auto now = clock::now(); now < end; now = clock::now())
            look(std::chrono::ceil<std::chrono::milliseconds>(end - now));
    }

    void wait_for_silent_ones() {
        const auto end = clock::now() + std::chrono::seconds(30);
        while (closed_ < ends_.size() - active_) {
            if (clock::now() > end)
                throw std::runtime_error("the server does not close silent connections");
            look(std::chrono::milliseconds(100));
        }
    }

    [[nodiscard]] double requests() const { return requests_; }

private:
    void look(std::chrono::milliseconds timeout) {
        std::array<epoll_event, 256> events;
        const auto count =
            ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                         static_cast<int>(timeout.count()));
        for (int e = 0; e < count; ++e)
            receive(events[static_cast<std::size_t>(e)].data.u64);
    }

    void receive(std::size_t i) {
        std::array<char, ping_bytes> bytes;
        const auto n = ::read(ends_[i].get(), bytes.data(), bytes.size());
        if (n < 0)
            throw std::system_error(errno, std::generic_category(), "echo client");
        if (n == 0) {
            if (i < active_)
                throw std::runtime_error("the server closed a connection that was not silent");
            ++closed_;
            ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, ends_[i].get(), nullptr);
            return;
        }
        if (std::memcmp(bytes.data(), ping_.data(), static_cast<std::size_t>(n)) != 0)
            throw std::runtime_error("the echo is not what was sent");
        received_[i] += static_cast<std::size_t>(n);
        if (received_[i] == ping_bytes) {
            received_[i] = 0;
            requests_ += 1;
            send(i);
        }
    }

    void send(std::size_t i) {
        if (::write(ends_[i].get(), ping_.data(), ping_.size()) !=
            static_cast<ssize_t>(ping_.size()))
            throw std::system_error(errno, std::generic_category(), "echo client");
    }

    descriptor epoll_{::epoll_create1(EPOLL_CLOEXEC)};
    std::vector<descriptor> ends_;
    std::size_t active_;
    std::vector<std::size_t> received_; // bytes of the ping in flight
    std::array<char, ping_bytes> ping_{};
    double requests_ = 0;
    std::size_t closed_ = 0;
};

/// CPU time of another thread, which must not have ended.
inline double cpu_ns_of(std::thread& thread) {
    clockid_t id{};
    timespec t{};
    if (::pthread_getcpuclockid(thread.native_handle(), &id) != 0 || ::clock_gettime(id, &t) != 0)
        throw std::runtime_error("no CPU time of the server's thread");
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

/// A server in a thread of its own, with `what.size` active clients and a number of silent ones.
/// @tparam Server takes descriptors and an idle timeout; run() returns when all connections are
/// closed. It notes silent ones as expiries.
template <class Server>
sample echo(const plan& what) {
    using namespace std::chrono_literals;
    seen = {};
    auto all = connect_over_loopback(what.size + silent_clients);
    checksum sum;
    double value = 0;
    double per_second = 0;
    double share = 0;
    {
        struct joined {
            std::thread thread;
            ~joined() { thread.join(); }
        } serving{std::thread([&] {
            seen = {};
            Server(all.server, 1s).run();
            sum = seen;
        })};
        echo_client client(std::move(all.client), what.size); // closed before the thread is joined
        client.run(clock::now() + what.window / 10);          // warm-up

        const auto requests = client.requests();
        const auto cpu = cpu_ns_of(serving.thread);
        const stopwatch<real_time> watch;
        client.run(clock::now() + what.window);
        const auto elapsed = watch.elapsed_ns();
        const auto used = cpu_ns_of(serving.thread) - cpu;
        const auto done = client.requests() - requests;
        value = used / done;
        per_second = done * 1e9 / elapsed;
        share = 100 * used / elapsed;

        client.wait_for_silent_ones();
    }
    return {value,
            sum,
            {{"requests/s", per_second},
             {"server, ns CPU per request", value},
             {"server's CPU, %", share}}};
}

} // namespace bench::peers

#endif // PAWL_BENCH_PEERS_ECHO_CLIENT_HPP
