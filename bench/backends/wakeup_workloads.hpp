// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   How often an otherwise idle process wakes up for its timers: a count, exact and the same on
///   every machine.
///
/// Model
///   A driver sleeps until next_wake(), calls expire(), and sleeps again: one stop. A wheel may
///   stop when no timer is due, in order to refile timers. Every run checks that each timer fires
///   when it should.
#ifndef PAWL_BENCH_BACKENDS_WAKEUP_WORKLOADS_HPP
#define PAWL_BENCH_BACKENDS_WAKEUP_WORKLOADS_HPP

#include "bare_workloads.hpp"
#include "structures.hpp"
#include "timers.hpp"

#include "../harness.hpp"

#include <pawl/time/tick.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace bench::backends {

namespace detail {

/// Timers, and a driver that counts its stops.
template <class S>
class sleeper {
public:
    sleeper(const setup& s, std::size_t n) : all_(s, n), structure_(s, n, origin, 0), due_(n) {}

    tick now() const { return now_; }
    std::uint64_t fired() const { return sum_.expired; }
    double stops_per_timer() const {
        return static_cast<double>(stops_) / static_cast<double>(fired());
    }
    const checksum& sum() const { return sum_; }

    void forget_counts() {
        sum_ = {};
        stops_ = 0;
    }

    /// Starts a timer that may fire from `earliest` to `latest`, at the best tick of this range.
    void start(index i, tick earliest, tick latest) {
        due_[i] = pawl::time::best_in_range(now_, earliest, latest);
        structure_.start(all_[i], due_[i]);
    }
    void start(index i, std::uint64_t delay) { start(i, after(now_, delay), after(now_, delay)); }

    /// Sleeps until the next stop. on_fired(i) may restart timer i.
    template <class OnFired>
    void next_stop(OnFired on_fired) {
        now_ = structure_.next_wake();
        ++stops_;
        pass_time(0);
        for (const auto i : fired_)
            on_fired(i);
    }

    void pass_time(std::uint64_t ticks) {
        now_ = after(now_, ticks);
        fired_.clear();
        const auto fire = [this](const typename S::hook& timer) {
            const auto i = all_.number(timer);
            if (now_ != due_[i])
                throw std::logic_error("a timer fired early or late");
            sum_ += {1, 0, i + now_.count()};
            fired_.push_back(i);
        };
        structure_.expire(now_, fire);
    }

private:
    timers<typename S::hook> all_;
    S structure_;
    std::vector<tick> due_;
    std::vector<index> fired_; ///< in the last stop
    tick now_ = origin;
    checksum sum_;
    std::uint64_t stops_ = 0;
};

/// Delays, of which as many are between 10 and 100 ms as between 1 and 10 s. Each timer has its own
/// series, so the order of the timers of one tick does not matter.
class log_uniform_delays {
public:
    log_uniform_delays(std::size_t timers, double low, double high) : low_(low), high_(high) {
        random_ticks seed(1, 0xffffffff);
        for (std::size_t i = 0; i < timers; ++i)
            series_.emplace_back(0, one, seed() << 32 | seed());
    }

    std::uint64_t operator()(index i) {
        const auto fraction = static_cast<double>(series_[i]()) / static_cast<double>(one);
        return static_cast<std::uint64_t>(std::llround(low_ * std::pow(high_ / low_, fraction)));
    }

private:
    static constexpr std::uint64_t one = 1 << 30;

    double low_;
    double high_;
    std::vector<random_ticks> series_;
};

} // namespace detail

/// A few timers of 1 ms to 60 s.
struct sparse_wakeups {
    template <class S>
    static sample run(const setup& s, const plan& what) {
        detail::sleeper<S> driver(s, what.size);
        detail::log_uniform_delays delay(what.size, 1, 60'000);
        const auto start = [&](index i) { driver.start(i, delay(i)); };
        for (std::size_t i = 0; i < what.size; ++i)
            start(static_cast<index>(i));
        while (driver.fired() < what.operations / 10)
            driver.next_stop(start);
        return {driver.stops_per_timer(), driver.sum(), {}};
    }
};

/// One timer of 30 s, alone, started at different times.
struct lone_wakeups {
    template <class S>
    static sample run(const setup& s, const plan& what) {
        detail::sleeper<S> driver(s, 1);
        random_ticks pause(0, 1 << 20);
        while (driver.fired() < what.operations / 10) {
            driver.pass_time(pause());
            driver.start(0, timeout);
            for (const auto before = driver.fired(); driver.fired() == before;)
                driver.next_stop([](index) {});
        }
        return {driver.stops_per_timer(), driver.sum(), {}};
    }
};

/// Timers of 1 to 60 s that may fire later by a percentage of their delay.
template <unsigned Percent>
struct slack {
    template <class S>
    static sample run(const setup& s, const plan& what) {
        detail::sleeper<S> driver(s, what.size);
        detail::log_uniform_delays delay(what.size, 1'000, 60'000);
        const auto start = [&](index i) {
            const auto least = delay(i);
            driver.start(i, after(driver.now(), least),
                         after(driver.now(), least + least * Percent / 100));
        };
        for (std::size_t i = 0; i < what.size; ++i)
            start(static_cast<index>(i));
        const auto run_until = [&](std::size_t expiries) {
            while (driver.fired() < expiries)
                driver.next_stop(start);
        };
        run_until(what.size); // all started at once: runs until this no longer shows
        driver.forget_counts();
        run_until(std::max(what.operations / 10, what.size));
        // No checksum: the variants are meant to do different work.
        return {1000 * driver.stops_per_timer(), {}, {}};
    }
};

} // namespace bench::backends

#endif // PAWL_BENCH_BACKENDS_WAKEUP_WORKLOADS_HPP
