// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Two threads in one io_context. Each moves the timeouts of its own half of the timers, in two
///   kinds of server:
///     two_threads      each thread polls the context every few operations and never sleeps
///     two_threads_run  both threads are in run(); a handler moves a few timeouts and posts its
///                      successor, as a connection's read is followed by the next. A thread that
///                      finds nothing to run sleeps, so much of this is the cost of waking it
///   The same work done by one thread is the note "ns with 1 thread"; "speed-up" is the gain by the
///   second thread.
///
/// Threads
///   One thread at a time works on a share, and so on its timers. A thread of its own makes the
///   timers of each share. Aborted handlers run in either thread and count in the `seen` of that
///   thread.
#ifndef PAWL_BENCH_THREAD_WORKLOADS_HPP
#define PAWL_BENCH_THREAD_WORKLOADS_HPP

#include "fleet.hpp"
#include "harness.hpp"
#include "libraries.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <limits>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace bench {

namespace detail {

/// Connections that one handler of two_threads_run serves.
inline constexpr std::size_t reads_per_handler = 16;

/// Some timers of a fleet, in random order, and the number of operations left.
template <class Library>
class share {
public:
    /// Takes the timers [first, last), and starts a wait on each.
    share(fleet<Library>& f, std::size_t first, std::size_t last)
        : fleet_(&f), timeouts_(around_timeout_for(f.size())) {
        for (const auto i : random_order(f.size(), 0))
            if (i >= first && i < last)
                mine_.push_back(i);
        for (const auto i : mine_)
            fleet_->wait_after(i, timeouts_());
    }

    void assign(std::size_t operations) { left_ = operations; }

    /// Does up to `limit` operations. True if some are left.
    bool work(std::size_t limit) {
        const auto count = std::min(limit, left_);
        for (std::size_t n = 0; n < count; ++n) {
            fleet_->wait_after(mine_[next_], timeouts_());
            if (++next_ == mine_.size())
                next_ = 0;
        }
        left_ -= count;
        return left_ != 0;
    }

private:
    fleet<Library>* fleet_;
    std::vector<index> mine_;
    random_durations timeouts_;
    std::size_t next_ = 0;
    std::size_t left_ = 0;
};

template <class Library>
using shares = std::span<share<Library>>;

/// The work of a thread on its shares: see two_threads above.
class polling {
public:
    explicit polling(std::size_t /*shares*/, const plan& what) : poll_every_(what.poll_every) {}

    template <class Library>
    void operator()(asio::io_context& io, shares<Library> own) {
        for (bool more = true; more;) {
            more = false;
            for (auto& each : own) {
                more |= each.work(poll_every_);
                io.poll();
            }
        }
    }

private:
    std::size_t poll_every_;
};

/// The same: see two_threads_run above.
class running {
public:
    explicit running(std::size_t shares, const plan&) : shares_left_(shares) {}

    template <class Library>
    void operator()(asio::io_context& io, shares<Library> own) {
        for (auto& each : own)
            asio::post(io, step<Library>{*this, io, each});
        io.run();
    }

private:
    template <class Library>
    struct step {
        running& self;
        asio::io_context& io;
        share<Library>& mine;

        void operator()() const {
            if (mine.work(reads_per_handler)) {
                asio::post(io, *this);
                return;
            }
            const auto left = self.shares_left_.fetch_sub(1, std::memory_order_relaxed);
            if (left == 1) // relaxed: a count
                io.stop();
        }
    };

    std::atomic<std::size_t> shares_left_;
};

/// Releases threads when all of them run at once. New threads often start on the core of their
/// creator and take turns there; measured that way, two threads would hardly ever contend. Passing
/// a turn around while spinning makes the system put them on different cores, if it has spare ones.
/// It gets a tenth of a second for that.
class meeting {
public:
    explicit meeting(std::size_t threads) : threads_(threads) {}

    void attend(std::size_t thread) {
        const auto begin = clock::now();
        auto last = begin;
        for (std::size_t quick_rounds = 0; await_turn(thread);) {
            const auto now = clock::now();
            quick_rounds = now - last < std::chrono::microseconds(20) ? quick_rounds + 1 : 0;
            last = now;
            if (quick_rounds == 100 || now - begin > std::chrono::milliseconds(100))
                over_.store(true, std::memory_order_relaxed); // relaxed: carries no data
            turn_.fetch_add(1, std::memory_order_relaxed);    // relaxed: the same
        }
    }

private:
    /// False if the meeting is over.
    bool await_turn(std::size_t thread) const {
        while (!over_.load(std::memory_order_relaxed))
            if (turn_.load(std::memory_order_relaxed) % threads_ == thread)
                return true;
        return false;
    }

    std::size_t threads_;
    std::atomic<std::size_t> turn_{0};
    std::atomic<bool> over_{false};
};

struct outcome {
    double ns = 0;     ///< real time of all threads together
    double cpu_ns = 0; ///< CPU time, summed over the threads
    checksum sum;      ///< counts of the handlers
};

/// Runs job(t) in so many threads t.
template <class Job>
outcome run_threads(std::size_t count, Job job) {
    meeting all_run(count);
    std::mutex mutex;
    outcome all;
    double begin = std::numeric_limits<double>::max();
    double end = 0;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < count; ++t)
        threads.emplace_back([&, t] {
            all_run.attend(t);
            const stopwatch<thread_cpu> cpu;
            const auto my_begin = real_time::now_ns();
            job(t);
            const auto my_end = real_time::now_ns();
            const std::lock_guard lock(mutex);
            begin = std::min(begin, my_begin);
            end = std::max(end, my_end);
            all.cpu_ns += cpu.elapsed_ns();
            all.sum += seen;
        });
    for (auto& thread : threads)
        thread.join();
    all.ns = end - begin;
    return all;
}

/// Makes n timers, each half in a thread of its own. Both threads are alive at the same time, so
/// that their shards differ.
template <class Library>
void make_timers_in_two_threads(fleet<Library>& f, std::size_t n) {
    f.timers.reserve(n);
    std::thread([&] {
        f.add(n / 2);
        std::thread([&] { f.add(n - n / 2); }).join();
    }).join();
}

/// One thread works on both halves, or two on one each. The times are per operation.
template <class Library, class Job>
outcome both_halves(std::size_t threads, const plan& what) {
    fleet<Library> f(0);
    make_timers_in_two_threads(f, what.size);
    std::vector<share<Library>> all;
    all.emplace_back(f, 0, what.size / 2);
    all.emplace_back(f, what.size / 2, what.size);

    const auto per_thread = all.size() / threads;
    std::vector<shares<Library>> assignment;
    for (std::size_t t = 0; t < threads; ++t)
        assignment.push_back(shares<Library>(all).subspan(t * per_thread, per_thread));

    const auto run = [&](std::size_t operations) {
        for (auto& each : all)
            each.assign(operations / all.size());
        Job job(all.size(), what);
        f.io.restart();
        auto result = run_threads(threads, [&](std::size_t t) { job(f.io, assignment[t]); });
        f.drain();
        return result;
    };
    const auto warm_up = run(what.size);
    const auto operations = std::max(what.size, what.operations);
    auto result = run(operations);
    f.cancel_all();
    result.ns /= static_cast<double>(operations);
    result.cpu_ns /= static_cast<double>(operations);
    result.sum += warm_up.sum;
    result.sum += seen; // drained by the main thread
    return result;
}

} // namespace detail

template <class Library, class Job>
sample two_threads_with(const plan& what) {
    const auto one = detail::both_halves<Library, Job>(1, what);
    const auto two = detail::both_halves<Library, Job>(2, what);
    auto sum = one.sum;
    sum += two.sum;
    return {two.ns,
            sum,
            {{"ns with 1 thread", one.ns},
             {"speed-up", one.ns / two.ns},
             {"cores in use", two.cpu_ns / two.ns}}};
}

template <class Library>
sample two_threads(const plan& what) {
    return two_threads_with<Library, detail::polling>(what);
}

template <class Library>
sample two_threads_run(const plan& what) {
    return two_threads_with<Library, detail::running>(what);
}

} // namespace bench

#endif // PAWL_BENCH_THREAD_WORKLOADS_HPP
