// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Timeouts that do not expire, as in rearm_workloads.hpp, but set where a server sets them: in
///   handlers of a running context. One thread runs it, or two.
///
/// Model
///   The timers are divided among `poll_every` reads, the number of handlers that one turn of a
///   busy loop finds. Each read does one operation with its next timer, in random order, and posts
///   itself. All figures include the cost of a posted handler; the variant `post` has nothing else.
///
/// Threads
///   A read is queued or runs once at a time, so its timers have one user.
///
/// Cost
///   As in rearm_workloads.hpp, except that up to `poll_every` aborted handlers are not counted,
///   because the context stops after the last operation.
#ifndef PAWL_BENCH_HANDLER_WORKLOADS_HPP
#define PAWL_BENCH_HANDLER_WORKLOADS_HPP

#include "fleet.hpp"
#include "harness.hpp"
#include "libraries.hpp"
#include "rearm_workloads.hpp"
#include "thread_workloads.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <vector>

namespace bench {

namespace detail {

/// The operation of a read on the next of its timers: `rearm(fleet, i, timeout)`.
template <class Library, class Timeouts, class Rearm>
class reads {
public:
    /// Starts a wait on each timer of `f`.
    /// @param timeouts_of makes the timeouts of the read with the given number
    template <class TimeoutsOf>
    reads(fleet<Library>& f, std::size_t count, TimeoutsOf timeouts_of, Rearm rearm)
        : fleet_(f), rearm_(rearm) {
        make_orders(f.size());
        const auto at_once = std::min(count, f.size());
        for (std::size_t r = 0; r < at_once; ++r)
            all_.emplace_back(*this, timeouts_of(r));
        for (std::size_t pass = 0; pass < all_.front().orders.size(); ++pass)
            for (const auto i : random_order(f.size(), pass))
                all_[i % at_once].orders[pass].push_back(i);
        for (std::size_t i = 0; i < f.size(); ++i)
            f.wait_after(static_cast<index>(i), all_[i % at_once].timeouts());
    }

    /// Queues the reads. The context stops when each read has done this many passes over its
    /// timers.
    void start(std::size_t passes) {
        unfinished_.store(all_.size(), std::memory_order_relaxed); // relaxed: nothing runs yet
        fleet_.io.restart();
        for (auto& each : all_) {
            each.left = passes * each.orders.front().size();
            asio::post(fleet_.io, step{each});
        }
    }

private:
    /// On cache lines of its own, because two threads work on neighbours.
    struct alignas(128) read {
        read(reads& of, Timeouts t) : all(&of), timeouts(t) {}

        reads* all;
        Timeouts timeouts;
        std::array<std::vector<index>, 3> orders; // of successive passes: see random_order()
        std::size_t pass = 0;
        std::size_t at = 0;
        std::size_t left = 0;
    };

    struct step {
        read& mine;

        void operator()() const {
            auto& all = *mine.all;
            const auto& order = mine.orders[mine.pass];
            all.rearm_(all.fleet_, order[mine.at], mine.timeouts());
            if (++mine.at == order.size()) {
                mine.at = 0;
                mine.pass = (mine.pass + 1) % mine.orders.size();
            }
            if (--mine.left != 0)
                asio::post(all.fleet_.io, *this);
            else if (all.unfinished_.fetch_sub(1, std::memory_order_relaxed) ==
                     1) // relaxed: a count
                all.fleet_.io.stop();
        }
    };

    fleet<Library>& fleet_;
    Rearm rearm_;
    std::vector<read> all_;
    std::atomic<std::size_t> unfinished_{0};
};

/// The reads of one kind of server: how far they push their deadlines back, and by which calls.
template <class Library, class TimeoutsOf, class Rearm>
auto make_reads(fleet<Library>& f, const plan& what, TimeoutsOf timeouts_of, Rearm rearm) {
    using timeouts = decltype(timeouts_of(std::size_t{}));
    return reads<Library, timeouts, Rearm>(f, what.poll_every, timeouts_of, rearm);
}

template <class Library, class TimeoutsOf, class Rearm>
sample rearm_all_in_handlers(const plan& what, TimeoutsOf timeouts_of, Rearm rearm) {
    const auto passes = passes_for(what);
    fleet<Library> f(what.size);
    auto all = make_reads(f, what, timeouts_of, rearm);
    all.start(1); // warm-up
    f.io.run();

    all.start(passes);
    const stopwatch<thread_cpu> watch;
    f.io.run();
    const auto elapsed = watch.elapsed_ns();

    f.cancel_all();
    return {elapsed / static_cast<double>(passes * what.size), seen, {}};
}

template <class Library, class TimeoutsOf, class Rearm>
sample rearm_all_in_two_threads(const plan& what, TimeoutsOf timeouts_of, Rearm rearm) {
    const auto passes = passes_for(what);
    fleet<Library> f(0);
    make_timers_in_two_threads(f, what.size);
    auto all = make_reads(f, what, timeouts_of, rearm);
    const auto run = [&](std::size_t times) {
        all.start(times);
        return run_threads(2, [&](std::size_t) { f.io.run(); });
    };
    const auto warm_up = run(1);
    const auto two = run(passes);

    f.cancel_all();
    auto sum = seen;
    sum += warm_up.sum;
    sum += two.sum;
    return {two.ns / static_cast<double>(passes * what.size),
            sum,
            {{"cores in use", two.cpu_ns / two.ns}}};
}

/// Request timeouts: see churn().
inline auto request_timeouts(const plan& what) {
    return [n = what.size](std::size_t read) { return around_timeout_for(n, read); };
}

/// Idle timeouts: see idle_rearm().
inline auto idle_timeouts(const plan& what) {
    return [n = what.size](std::size_t) { return constant_timeout_for(n); };
}

/// No timer: the handler counts as if it had moved a deadline.
inline constexpr auto only_count = [](auto&, index i, clock::duration) {
    note_completion(i)(asio::error::operation_aborted);
};

} // namespace detail

template <class Library>
sample churn_in_handlers(const plan& what) {
    return detail::rearm_all_in_handlers<Library>(what, detail::request_timeouts(what),
                                                  detail::wait_again);
}

template <class Library>
sample idle_rearm_in_handlers(const plan& what) {
    return detail::rearm_all_in_handlers<Library>(what, detail::idle_timeouts(what),
                                                  detail::push_back<Library>);
}

template <class Library>
sample churn_in_two_threads(const plan& what) {
    return detail::rearm_all_in_two_threads<Library>(what, detail::request_timeouts(what),
                                                     detail::wait_again);
}

/// The floor: handlers that post themselves.
inline sample only_posts(const plan& what) {
    return detail::rearm_all_in_handlers<bare_deadline>(what, detail::idle_timeouts(what),
                                                        detail::only_count);
}

inline sample only_posts_in_two_threads(const plan& what) {
    return detail::rearm_all_in_two_threads<bare_deadline>(what, detail::idle_timeouts(what),
                                                           detail::only_count);
}

} // namespace bench

#endif // PAWL_BENCH_HANDLER_WORKLOADS_HPP
