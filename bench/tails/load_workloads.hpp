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
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
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

/// A second thread that posts requests at random times (a Poisson process), up to `last`. Each
/// keeps the context busy for `work`, together for a share `load` of the time. If the machine is
/// too busy to serve them, it catches up after `last`.
class requests {
public:
    requests(asio::io_context& io, double load, clock::time_point last)
        : thread_([&io, load, last] {
              std::exponential_distribution<double> gap(
                  load / std::chrono::duration<double>(work).count());
              std::mt19937_64 random{2026};
              for (auto next = clock::now(); next < last;) {
                  spin_until(next);
                  asio::post(io, [] { spin_until(clock::now() + work); });
                  next += std::chrono::nanoseconds(std::llround(gap(random) * 1e9));
              }
          }) {}

    requests(const requests&) = delete;
    requests& operator=(const requests&) = delete;
    ~requests() { thread_.join(); }

private:
    static constexpr std::chrono::microseconds work{70};

    std::thread thread_;
};

/// Timers due at random times within `window`, while requests keep the thread busy.
template <class Library>
sample lateness(const plan& what, double load) {
    fleet<Library> f(what.size);
    std::vector<double> late;
    late.reserve(what.size);
    const auto first_due = detail::start_all(f, what.window, [&](index i, clock::time_point due) {
        return [&f, &late, i, due](const error_code& error) {
            note_completion(i)(error);
            if (error)
                return;
            late.push_back(lateness_of(due));
            if (late.size() == f.size())
                f.io.stop();
        };
    });
    const stopwatch<thread_cpu> watch;
    const stopwatch<real_time> real;
    if (load > 0) {
        const requests busy(f.io, load, first_due + what.window);
        f.io.run();
    } else {
        f.io.run();
    }
    const auto busy = watch.elapsed_ns() / real.elapsed_ns();

    const percentiles all(std::move(late));
    auto notes = all.notes();
    notes.emplace_back("thread busy, %", 100 * busy);
    return {all.at(0.999), seen, std::move(notes)};
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
