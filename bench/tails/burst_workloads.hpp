// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The delays of other work while very many timers expire at once, as after a network outage:
///   another thread that starts waits on timers of the same context, and a client whose connection
///   the same context serves.
///
/// Model
///   The timers are due at random times within one millisecond. The main thread runs the context. A
///   second thread measures on a fixed schedule, from `quiet` before the first timer is due to the
///   last handler. All scheduled events happen, late or not. Those during the expiry count; those
///   before it show the overhead of the machine and of the measurement.
///
/// Threads
///   Neither thread sleeps while it measures: two idle cores are needed.
#ifndef PAWL_BENCH_TAILS_BURST_WORKLOADS_HPP
#define PAWL_BENCH_TAILS_BURST_WORKLOADS_HPP

#include "../expiry_workloads.hpp"
#include "../fleet.hpp"
#include "../harness.hpp"
#include "../libraries.hpp"
#include "percentiles.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/system_error.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace bench::tails {

using namespace std::chrono_literals;

/// How long the second thread measures before the first timer is due.
inline constexpr auto quiet = 100ms;

/// Longer than any run: waits that the second thread starts do not expire.
inline constexpr auto far_away = 1h;

/// Timers that expire at once in the main thread, and a second thread beside it.
template <class Library>
class burst {
public:
    explicit burst(std::size_t timers) : fleet_(timers), left_(timers) {}

    asio::io_context& context() noexcept { return fleet_.io; }

    /// True if the last handler ran before t.
    [[nodiscard]] bool over_by(clock::time_point t) const noexcept {
        return over_.load(std::memory_order_acquire) && t > last_; // pairs with the last handler
    }

    /// Runs the context until `measure(first_due)`, in a thread of its own, has returned the
    /// latencies of its events.
    template <class Measure>
    sample run(Measure measure) {
        const auto first_due = detail::start_all(fleet_, 1ms, [this](index i, clock::time_point) {
            return [this, i](const error_code& error) noexcept {
                note_completion(i)(error);
                if (!error && --left_ == 0) {
                    last_ = clock::now();
                    over_.store(true, std::memory_order_release); // pairs with over_by()
                }
            };
        });
        const auto work = asio::make_work_guard(fleet_.io);
        std::vector<latency> all;
        std::exception_ptr failure;
        std::thread second([&] {
            try {
                std::this_thread::sleep_until(first_due - 2 * quiet);
                all = measure(first_due - quiet);
            } catch (...) {
                failure = std::current_exception();
            }
            fleet_.io.stop();
        });
        fleet_.io.run();
        second.join();
        if (failure)
            std::rethrow_exception(failure);

        const auto during = percentiles::between(all, first_due, last_);
        const auto before = percentiles::between(all, first_due - quiet, first_due);
        auto notes = during.notes();
        notes.emplace_back("p99.9 before", before.at(0.999));
        notes.emplace_back("events", static_cast<double>(during.count()));
        notes.emplace_back("expiry takes, ms", in_us(last_ - first_due) / 1000);
        const auto sum = seen;
        fleet_.cancel_all();
        return {during.at(0.999), sum, std::move(notes)};
    }

private:
    fleet<Library> fleet_;
    std::size_t left_; // used by the main thread, like last_
    clock::time_point last_;
    std::atomic<bool> over_{false};
};

/// The latency of a start: from its scheduled time until async_wait() has returned.
template <class Library>
sample registrations(const plan& what, double per_second) {
    burst<Library> all(what.size);
    // A timer for each wait, made in advance: enough for an expiry that takes 5 us per timer. If it
    // takes longer, they are reused.
    const auto seconds = 0.5 + static_cast<double>(what.size) * 5e-6;
    std::vector<typename Library::timer> timers;
    const auto count = static_cast<std::size_t>(seconds * per_second);
    timers.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
        timers.emplace_back(all.context());
    return all.run([&](clock::time_point begin) {
        const schedule when(begin, per_second);
        std::vector<latency> latencies;
        latencies.reserve(count);
        for (std::size_t n = 0; !all.over_by(when.at(n)); ++n) {
            spin_until(when.at(n));
            auto& timer = timers[n % count];
            timer.expires_after(far_away);
            timer.async_wait([](const error_code&) {});
            latencies.push_back({when.at(n), clock::now() - when.at(n)});
        }
        return latencies;
    });
}

/// The server's side of a connection: sends received bytes back.
class echo {
public:
    explicit echo(asio::ip::tcp::socket socket) : socket_(std::move(socket)) { read(); }

private:
    void read() {
        socket_.async_read_some(asio::buffer(buffer_), [this](const error_code& ec, std::size_t n) {
            if (ec)
                return;
            asio::async_write(socket_, asio::buffer(buffer_, n),
                              [this](const error_code& failure, std::size_t) {
                                  if (!failure)
                                      read();
                              });
        });
    }

    asio::ip::tcp::socket socket_;
    std::array<char, 4096> buffer_{};
};

/// A ping is a byte. Its latency is from its scheduled time until the echo is back. The client
/// sends the next ping even if the echo is not back.
class client {
public:
    /// @param s non-blocking from here on
    explicit client(asio::ip::tcp::socket& s) : socket_(s) { socket_.non_blocking(true); }

    /// Until over_by(t) is true for the time of the next ping, and all echoes are back.
    template <class OverBy>
    std::vector<latency> measure(const schedule& when, OverBy over_by) {
        std::vector<latency> all;
        std::size_t sent = 0;
        for (bool over = false; !over || all.size() != sent;) {
            const auto next = when.at(sent);
            over = over_by(next);
            if (!over && clock::now() >= next)
                sent += transferred(
                    [&](error_code& ec) { return socket_.write_some(asio::buffer("p", 1), ec); });
            auto back = transferred(
                [&](error_code& ec) { return socket_.read_some(asio::buffer(buffer_), ec); });
            const auto now = clock::now();
            for (; back != 0; --back) {
                const auto intended = when.at(all.size());
                all.push_back({intended, now - intended});
            }
        }
        return all;
    }

private:
    /// Bytes transferred; 0 if it would block.
    template <class Transfer>
    static std::size_t transferred(Transfer transfer) {
        error_code ec;
        const auto n = transfer(ec);
        if (ec && ec != asio::error::would_block)
            throw boost::system::system_error(ec, "ping-pong");
        return n;
    }

    asio::ip::tcp::socket& socket_;
    std::array<char, 4096> buffer_{};
};

template <class Library>
sample ping_pong(const plan& what, double per_second) {
    using asio::ip::tcp;
    burst<Library> all(what.size);
    asio::io_context outside; // not run: the client never waits
    tcp::acceptor acceptor(all.context(), {asio::ip::address_v4::loopback(), 0});
    tcp::socket socket(outside);
    socket.connect(acceptor.local_endpoint());
    socket.set_option(tcp::no_delay(true));
    tcp::socket accepted = acceptor.accept();
    accepted.set_option(tcp::no_delay(true));
    echo server(std::move(accepted));
    return all.run([&](clock::time_point begin) {
        spin_until(begin);
        return client(socket).measure(schedule(begin, per_second),
                                      [&](clock::time_point t) { return all.over_by(t); });
    });
}

} // namespace bench::tails

#endif // PAWL_BENCH_TAILS_BURST_WORKLOADS_HPP
