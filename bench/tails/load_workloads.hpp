// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The lateness of timers in a busy server, and the cost of heartbeats in an idle one.
#ifndef PAWL_BENCH_TAILS_LOAD_WORKLOADS_HPP
#define PAWL_BENCH_TAILS_LOAD_WORKLOADS_HPP

#include "../expiry_workloads.hpp"
#include "../fleet.hpp"
#include "../harness.hpp"
#include "../libraries.hpp"
#include "burst_workloads.hpp"
#include "percentiles.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace bench::tails {

/// How late it is now, compared with `due`, in microseconds.
inline double lateness_of(clock::time_point due) {
    const auto late = clock::now() - due;
    if (late < clock::duration::zero())
        throw std::runtime_error("a timer is early");
    return in_us(late);
}

/// A server under load.
struct load {
    double share = 0.7;        ///< of the time of the threads, for requests and timers together
    std::size_t burst = 50;    ///< requests that are posted at once
    clock::duration handler{}; ///< how long the handler of a timer works
    unsigned threads = 1;      ///< that run the context
};

/// A thread that sends bursts of requests at a fixed rate, up to `last`. Each request is to keep the
/// server busy for `work`. What it is too busy to serve is done after `last`.
class requests {
public:
    static constexpr std::chrono::microseconds work{20};

    static void serve() { spin_until(clock::now() + work); }

    /// @param send sends the i-th request of a burst
    template <class Send>
    requests(std::size_t burst, double share, clock::time_point last, Send send)
        : thread_([=] {
              const auto gap = std::chrono::duration_cast<clock::duration>(
                  work * static_cast<double>(burst) / share);
              for (auto next = clock::now(); next < last; next += gap) {
                  if (gap > nap)
                      std::this_thread::sleep_until(next - nap);
                  spin_until(next);
                  for (std::size_t i = 0; i < burst; ++i)
                      send(i);
              }
          }) {}
    requests(asio::io_context& io, std::size_t burst, double share, clock::time_point last)
        : requests(burst, share, last, [&io](std::size_t) { asio::post(io, serve); }) {}

    requests(const requests&) = delete;
    requests& operator=(const requests&) = delete;
    ~requests() { thread_.join(); }

private:
    static constexpr std::chrono::microseconds nap{200}; ///< a sleep may end so much too late

    std::thread thread_;
};

/// Timers due at random times within `window`, while requests keep the threads busy.
template <class Library>
sample lateness(const plan& what, const load& l) {
    fleet<Library> f(what.size);
    std::vector<double> late(what.size);
    std::atomic<std::size_t> left{what.size};
    const auto first_due = detail::start_all(f, what.window, [&](index i, clock::time_point due) {
        return [&f, &late, &left, work = l.handler, i, due](const error_code& error) {
            note_completion(i)(error);
            if (error)
                return;
            late[i] = lateness_of(due);
            if (work != clock::duration::zero())
                spin_until(clock::now() + work);
            if (left.fetch_sub(1) == 1)
                f.io.stop();
        };
    });
    const stopwatch<thread_cpu> watch;
    const stopwatch<real_time> real;
    checksum sum;
    std::mutex summing;
    const auto run = [&] {
        f.io.run();
        const std::scoped_lock lock(summing);
        sum += std::exchange(seen, {});
    };
    {
        std::vector<std::jthread> others;
        for (unsigned n = 1; n < l.threads; ++n)
            others.emplace_back(run);
        const auto of_timers = l.handler * static_cast<double>(what.size) / what.window;
        const requests busy(f.io, l.burst, l.share * l.threads - of_timers,
                            first_due + what.window);
        run();
    }
    const auto busy = watch.elapsed_ns() / real.elapsed_ns();

    const percentiles all(std::move(late));
    auto notes = all.notes();
    notes.emplace_back("thread busy, %", 100 * busy);
    return {all.at(0.999), sum, std::move(notes)};
}

/// Timers with a period of one second and random phases. Each beats once a second, for as many
/// whole seconds as `window` has.
template <class Library>
class heartbeats {
public:
    explicit heartbeats(const plan& what)
        : fleet_(what.size), beats_(what.size),
          each_(static_cast<std::uint32_t>(
              std::max<std::chrono::milliseconds::rep>(1, what.window / period))) {
        late_.reserve(what.size * each_);
    }

    sample run() {
        const auto first_due = detail::start_all(fleet_, period, handler_of());
        const auto sleeps = detail::sleeps();
        const stopwatch<thread_cpu> watch;
        fleet_.io.run();
        const auto cpu_ns = watch.elapsed_ns();
        const auto seconds = std::chrono::duration<double>(clock::now() - first_due).count();
        const auto wakeups = (detail::sleeps() - sleeps) / seconds;

        const percentiles late(std::move(late_));
        return {cpu_ns / static_cast<double>(late.count()),
                seen,
                {{"wake-ups/s", wakeups},
                 {"CPU, % of a core", cpu_ns / seconds / 1e7},
                 {"late p50, us", late.at(0.5)},
                 {"late p99, us", late.at(0.99)},
                 {"late max, us", late.max()}}};
    }

private:
    static constexpr std::chrono::seconds period{1};

    auto handler_of() {
        return [this](index i, clock::time_point due) {
            return [this, i, due](const error_code& error) { beat(i, due, error); };
        };
    }

    void beat(index i, clock::time_point due, const error_code& error) {
        note_completion(i)(error);
        if (error)
            return;
        late_.push_back(lateness_of(due));
        if (++beats_[i] != each_)
            fleet_.wait_until(i, due + period, handler_of()(i, due + period));
    }

    fleet<Library> fleet_;
    std::vector<std::uint32_t> beats_;
    std::uint32_t each_;
    std::vector<double> late_;
};

/// Two threads run the context. In one of them at a time, a handler cancels a wait and continues to
/// work for a while: how long until the other thread runs the handler of that wait.
template <class Library>
class busy_handlers {
public:
    explicit busy_handlers(const plan& what)
        : fleet_(what.size), cancelled_at_(what.size), left_(what.size) {
        late_.reserve(what.size);
        for (index i = 0; i < what.size; ++i)
            fleet_.wait_until(i, clock::now() + far_away, handler_of(i));
    }

    sample run() {
        asio::post(fleet_.io, [this] { cancel(0); });
        checksum sum;
        {
            const std::jthread second([this, &sum] {
                fleet_.io.run();
                sum += seen;
            });
            fleet_.io.run();
        }
        sum += seen;
        const percentiles all(std::move(late_));
        return {all.at(0.99), sum, all.notes()};
    }

private:
    static constexpr std::chrono::microseconds work{200};

    auto handler_of(index i) {
        return [this, i](const error_code& error) {
            const auto late = in_us(clock::now() - cancelled_at_[i]);
            note_completion(i)(error);
            const std::scoped_lock lock(mutex_);
            late_.push_back(late);
            if (--left_ == 0)
                fleet_.io.stop();
        };
    }

    void cancel(index i) {
        const auto now = cancelled_at_[i] = clock::now();
        fleet_.timers[i].cancel();
        spin_until(now + work);
        if (i + 1 != fleet_.size())
            asio::post(fleet_.io, [this, i] { cancel(i + 1); });
    }

    fleet<Library> fleet_;
    std::vector<clock::time_point> cancelled_at_;
    std::mutex mutex_;
    std::size_t left_; // guarded, like late_
    std::vector<double> late_;
};

} // namespace bench::tails

#endif // PAWL_BENCH_TAILS_LOAD_WORKLOADS_HPP
