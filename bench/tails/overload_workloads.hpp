// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A soak: more work than the context can do, and what becomes of its timers, of its sockets, and
///   of threads that start waits; then the time after it.
///
/// Model
///   The main thread runs the context. A second thread posts requests, more than the context can
///   serve. With each of them it sends a byte over TCP to the same context, and it starts a wait.
///   The load ends when the last request has been served: until then the context is behind.
///   A second later, further timers show how late they are then. Each timer must complete once.
#ifndef PAWL_BENCH_TAILS_OVERLOAD_WORKLOADS_HPP
#define PAWL_BENCH_TAILS_OVERLOAD_WORKLOADS_HPP

#include "burst_workloads.hpp"
#include "load_workloads.hpp"
#include "percentiles.hpp"

#include "../expiry_workloads.hpp"
#include "../fleet.hpp"
#include "../harness.hpp"
#include "../libraries.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bench::tails {

/// The most memory that the process has had until now, in MiB.
inline double peak_memory() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        if (word == "VmHWM:") {
            double kib = 0;
            status >> kib;
            return kib / 1024;
        }
    }
    throw std::runtime_error("no VmHWM in /proc/self/status");
}

template <class Library>
class overload {
    using tcp = asio::ip::tcp;

public:
    explicit overload(const plan& what)
        : fleet_(what.size), load_(what.window), bursts_(static_cast<std::size_t>(load_ / gap)),
          left_(what.size + 1 + afterwards), done_(what.size) {
        // Before: the freed blocks of a million waits make the next large allocation take 0.2 s.
        late_.reserve(what.size);
        late_after_.reserve(afterwards);
        registered_.reserve(bursts_);
        echoed_.reserve(bursts_);
        for (beside_.reserve(bursts_); beside_.size() < bursts_;)
            beside_.emplace_back(fleet_.io);
    }

    sample run() {
        tcp::acceptor acceptor(fleet_.io, {asio::ip::address_v4::loopback(), 0});
        tcp::socket socket(outside_);
        socket.connect(acceptor.local_endpoint());
        socket.set_option(tcp::no_delay(true));
        socket.non_blocking(true);
        tcp::socket accepted = acceptor.accept();
        accepted.set_option(tcp::no_delay(true));
        const echo server(std::move(accepted));

        const auto first_due =
            detail::start_all(fleet_, load_, [this](index i, clock::time_point due) {
                return [this, i, due](const error_code& error) { complete(i, due, error); };
            });
        const auto begin = peak_memory();
        {
            const std::jthread second([&] { press(socket, first_due); });
            try {
                fleet_.io.run();
            } catch (...) {
                fleet_.io.stop();
                throw;
            }
        }
        const auto sum = seen;
        const percentiles during(std::move(late_));
        const percentiles after(std::move(late_after_));
        const percentiles registered(std::move(registered_));
        const percentiles echoed(std::move(echoed_));
        auto notes = during.notes();
        notes.insert(notes.end(), {{"afterwards p99.9", after.at(0.999)},
                                   {"afterwards max", after.max()},
                                   {"registration p99.9", registered.at(0.999)},
                                   {"echo p50", echoed.at(0.5)},
                                   {"echo p99.9", echoed.at(0.999)},
                                   {"behind at the end, ms", in_us(behind_) / 1000},
                                   {"MiB more", peak_memory() - begin}});
        return {during.at(0.999), sum, std::move(notes)};
    }

private:
    static constexpr double share = 1.1;
    static constexpr std::chrono::microseconds work{20};
    static constexpr std::size_t burst = 50;
    static constexpr auto gap = std::chrono::duration_cast<clock::duration>(work * (burst / share));
    static constexpr std::chrono::seconds settled{1}; ///< after the load
    static constexpr std::size_t afterwards = 500;    ///< timers, fewer than bursts

    void complete(index i, clock::time_point due, const error_code& error) {
        note_completion(i)(error);
        if (error)
            return;
        if (done_[i])
            throw std::runtime_error("a timer has completed twice");
        done_[i] = true;
        late_.push_back(lateness_of(due));
        end_one();
    }

    /// The last request has been served, which was posted at `end`.
    void settle(clock::time_point end) {
        behind_ = clock::now() - end;
        for (std::size_t n = 0; n != afterwards; ++n) {
            auto& timer = beside_[n];
            const auto due = clock::now() + settled + std::chrono::microseconds(100 * n);
            timer.expires_at(due);
            timer.async_wait([this, due](const error_code& error) {
                if (!error)
                    late_after_.push_back(lateness_of(due));
                end_one();
            });
        }
    }

    /// A timer, or the second thread, has ended.
    void end_one() {
        if (--left_ == 0)
            fleet_.io.stop();
    }

    /// The second thread.
    void press(tcp::socket& socket, clock::time_point begin) {
        const auto read = [&] {
            std::array<char, 256> buffer;
            error_code ec;
            for (auto n = socket.read_some(asio::buffer(buffer), ec); n != 0; --n)
                echoed_.push_back(in_us(clock::now() - begin - gap * echoed_.size()));
        };
        for (std::size_t n = 0; n < bursts_; ++n) {
            const auto next = begin + gap * n;
            while (clock::now() < next)
                read();
            for (std::size_t i = 0; i < burst; ++i)
                asio::post(fleet_.io, [] { spin_until(clock::now() + work); });
            error_code ec; // its buffer holds more than all of them
            socket.write_some(asio::buffer("p", 1), ec);
            const auto from = clock::now();
            beside_[n].expires_after(far_away);
            beside_[n].async_wait([](const error_code&) {});
            registered_.push_back(in_us(clock::now() - from));
        }
        asio::post(fleet_.io, [this, end = begin + load_] { settle(end); });
        while (echoed_.size() != bursts_ && !fleet_.io.stopped())
            read();
        asio::post(fleet_.io, [this] { end_one(); });
    }

    asio::io_context outside_; ///< not run: its side of the connection never waits
    fleet<Library> fleet_;
    const clock::duration load_;
    const std::size_t bursts_;
    std::vector<typename Library::timer> beside_; ///< of the second thread
    std::vector<double> registered_;              ///< the same, in us
    std::vector<double> echoed_;                  ///< the same
    std::size_t left_;
    std::vector<bool> done_;
    std::vector<double> late_;
    std::vector<double> late_after_;
    clock::duration behind_{}; ///< when the last request has been posted
};

} // namespace bench::tails

#endif // PAWL_BENCH_TAILS_OVERLOAD_WORKLOADS_HPP
