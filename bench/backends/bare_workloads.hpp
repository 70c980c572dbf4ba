// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   What a bare structure costs, without a service, handlers, locks or a clock. Each workload is
///   one kind of operation on N timers in random order.
///
/// Model
///   Delays are those of a server: timeouts of 30 to 60 s for timers that do not expire; random
///   delays within 1 s for those that do. Only the laps are timed, not the time between them.
#ifndef PAWL_BENCH_BACKENDS_BARE_WORKLOADS_HPP
#define PAWL_BENCH_BACKENDS_BARE_WORKLOADS_HPP

#include "structures.hpp"
#include "timers.hpp"

#include "../harness.hpp"
#include "../memory_workload.hpp"

#include <pawl/detail/time/list_pool.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <utility>

namespace bench::backends {

inline constexpr std::uint64_t timeout = 30'000;
inline constexpr std::uint64_t second = 1'000;

/// Up to this many timers, a run ends by expiring all of them, and the expiries are its checksum.
/// With more timers this would take longer than the rest of the run, so only the smaller sizes are
/// checked.
inline constexpr std::size_t most_drained = 100'000;

/// Expires everything that is filed. A ring must first get a mark that is late enough.
template <class S, class Sink>
void expire_everything(S& structure, tick now, Sink& out) {
    for (std::uint64_t n = 0; n < 3; ++n)
        structure.expire(after(now, n * 8 * timeout), out);
}

/// A structure and the timers that it may hold.
template <class S>
struct bench_of {
    using hook = typename S::hook;

    timers<hook> all;
    S structure;
    tally<hook> out{all};

    bench_of(const setup& s, std::size_t n, std::uint64_t delay)
        : all(s, n), structure(s, n, origin, delay) {}

    /// Timeouts of 30 to 60 s.
    void start_all(std::size_t pass, tick now = origin) {
        random_ticks delay(timeout, timeout);
        for (const auto i : visit_order(all.size(), pass))
            structure.start(all[i], after(now, delay()));
    }

    void cancel_all(std::size_t pass) {
        for (const auto i : visit_order(all.size(), pass))
            structure.cancel(all[i]);
    }

    /// Time passes. Only a ring has work to do: it releases the slots of cancelled timers.
    void pass_time(tick now) { structure.expire(now, out); }

    checksum drain(tick now, std::uint64_t cut_short = 0) {
        if (all.size() <= most_drained)
            expire_everything(structure, now, out);
        return out.sum(cut_short);
    }
};

inline double per_operation(const lap_watch& watch, std::size_t operations) {
    return watch.elapsed_ns() / static_cast<double>(operations);
}

struct start {
    template <class S>
    static sample run(const setup& s, const plan& what) {
        const auto rounds = passes_for(what);
        bench_of<S> b(s, what.size, timeout);
        lap_watch watch;
        for (std::size_t round = 0; round < rounds; ++round) {
            if (round != 0) {
                b.cancel_all(2 * round);
                b.pass_time(origin);
            }
            watch.begin();
            b.start_all(2 * round + 1);
            watch.end();
        }
        return {per_operation(watch, rounds * what.size), b.drain(origin), {}};
    }
};

struct cancel {
    template <class S>
    static sample run(const setup& s, const plan& what) {
        const auto rounds = passes_for(what);
        bench_of<S> b(s, what.size, timeout);
        lap_watch watch;
        for (std::size_t round = 0; round < rounds; ++round) {
            b.start_all(2 * round);
            watch.begin();
            b.cancel_all(2 * round + 1);
            watch.end();
            b.pass_time(origin);
        }
        return {per_operation(watch, rounds * what.size), b.drain(origin, rounds * what.size), {}};
    }
};

/// A lock that does nothing.
struct no_mutex {
    void lock() {}
    void unlock() {}
};

/// Requests that beat their timeouts. A pass over all takes half a timeout, so that no timer is due
/// before it is visited again.
///
/// @tparam Lock is held for each call. A mutex waits for all stores, so the cache misses of one
/// call do not overlap with those of the next. Without a mutex, code with fewer instructions and
/// stores has more misses in flight.
template <class Lock>
struct start_and_cancel {
    template <class S>
    static sample run(const setup& s, const plan& what) {
        const auto passes = passes_for(what);
        const auto every = std::max<std::size_t>(1, what.size / 64);
        bench_of<S> b(s, what.size, timeout);
        random_ticks delay(timeout, timeout);
        tick now = origin;
        Lock mutex;
        const auto pass = [&](std::size_t number) {
            const tick begin = now;
            std::size_t done = 0;
            auto until_expire = every;
            for (const auto i : visit_order(what.size, number)) {
                {
                    const std::lock_guard lock(mutex);
                    b.structure.cancel(b.all[i]);
                }
                {
                    const std::lock_guard lock(mutex);
                    b.structure.start(b.all[i], after(now, delay()));
                }
                if (--until_expire == 0) {
                    until_expire = every;
                    done += every;
                    now = after(begin, timeout / 2 * done / what.size);
                    b.pass_time(now);
                }
            }
        };
        b.start_all(0);
        b.pass_time(now);
        // Warm-up: a ring has slots to sweep only after a timeout has passed.
        std::size_t first = 1;
        for (const std::size_t end = first + (requires { S::fixed_delay; } ? 3 : 1); first < end;)
            pass(first++);

        lap_watch watch;
        watch.begin();
        for (std::size_t number = 0; number < passes; ++number)
            pass(first + number);
        watch.end();
        return {per_operation(watch, passes * what.size), b.drain(now, passes * what.size), {}};
    }
};

/// Deadlines that move by one timeout, all in the same direction.
template <bool Later>
struct rearm_one_way {
    template <class S>
    static sample run(const setup& s, const plan& what) {
        const auto rounds = passes_for(what);
        bench_of<S> b(s, what.size, timeout);
        random_ticks delay(timeout, timeout);
        lap_watch watch;
        for (std::size_t round = 0; round < rounds; ++round) {
            if (round != 0)
                b.cancel_all(2 * round);
            b.start_all(2 * round + 1, after(origin, Later ? 0 : timeout));
            const tick now = after(origin, Later ? timeout : 0);
            watch.begin();
            for (const auto i : visit_order(what.size, 2 * round))
                b.structure.rearm(b.all[i], after(now, delay()));
            watch.end();
        }
        return {per_operation(watch, rounds * what.size), b.drain(origin), {}};
    }
};

struct rearm_later : rearm_one_way<true> {};
struct rearm_earlier : rearm_one_way<false> {};

/// Deadlines that move in both directions.
struct rearm_random {
    template <class S>
    static sample run(const setup& s, const plan& what) {
        const auto passes = passes_for(what);
        bench_of<S> b(s, what.size, timeout);
        random_ticks delay(timeout, timeout, 1);
        b.start_all(0);
        lap_watch watch;
        watch.begin();
        for (std::size_t pass = 1; pass <= passes; ++pass)
            for (const auto i : visit_order(what.size, pass))
                b.structure.rearm(b.all[i], after(origin, delay()));
        watch.end();
        return {per_operation(watch, passes * what.size), b.drain(origin), {}};
    }
};

/// How time passes while all timers expire.
enum class expiry { in_ticks, at_once, in_ticks_after_rearm };

template <expiry How>
struct expire_all {
    template <class S>
    static sample run(const setup& s, const plan& what) {
        const auto rounds = passes_for(what);
        bench_of<S> b(s, what.size, 2 * second);
        random_ticks delay(1, second);
        lap_watch watch;
        tick now = origin;
        for (std::size_t round = 0; round < rounds; ++round) {
            tick last = file(b, round, now, delay);
            if constexpr (How == expiry::in_ticks_after_rearm) {
                for (const auto i : visit_order(what.size, round + 1))
                    b.structure.rearm(b.all[i], after(now, second + delay()));
                last = after(last, second);
            }
            watch.begin();
            if constexpr (How == expiry::at_once)
                now = last;
            else
                now = after(now, 1);
            for (; now < last; now = after(now, 1))
                b.structure.expire(now, b.out);
            b.structure.expire(now, b.out);
            watch.end();
        }
        return {per_operation(watch, rounds * what.size), b.out.sum(), {}};
    }

private:
    /// Starts all timers, due at random times within the second that follows `now`. A structure
    /// with one delay starts them during one second, and moves `now` to the end of that second, or
    /// a little later, when the ring has noticed it. Returns the tick in which all are due.
    template <class S>
    static tick file(bench_of<S>& b, std::size_t round, tick& now, random_ticks& delay) {
        const auto& order = visit_order(b.all.size(), round);
        if constexpr (requires { S::fixed_delay; }) {
            std::size_t next = 0;
            for (std::uint64_t ms = 1; ms <= second + b.structure.period(); ++ms) {
                for (; next < std::min(order.size(), order.size() * ms / second); ++next)
                    b.structure.start(b.all[order[next]], tick{});
                now = after(now, 1);
                b.structure.expire(now, b.out);
            }
            return after(now, 2 * second);
        } else {
            for (const auto i : order)
                b.structure.start(b.all[i], after(now, delay()));
            return after(now, second);
        }
    }
};

using expire_in_ticks = expire_all<expiry::in_ticks>;
using expire_after_rearm = expire_all<expiry::in_ticks_after_rearm>;
using jump = expire_all<expiry::at_once>;

/// Writes one random cache line for each timer: the floor of any structure that touches each timer
/// once.
struct random_write {
    static constexpr std::string_view name = "write";

    /// `again`: each pass counts as one operation on all timers; otherwise only the last pass
    /// counts.
    static sample run(const setup& s, const plan& what, bool again) {
        const auto passes = passes_for(what);
        const timers<tick> all(s, what.size);
        tally<tick> out(all);
        lap_watch watch;
        for (std::size_t pass = 0; pass < passes; ++pass) {
            watch.begin();
            for (const auto i : visit_order(what.size, pass))
                all[i] = after(origin, pass);
            watch.end();
            if (again || (pass + 1 == passes && what.size <= most_drained))
                for (std::size_t i = 0; i < what.size; ++i)
                    out(all[static_cast<index>(i)]);
        }
        return {per_operation(watch, passes * what.size), out.sum(), {}};
    }
};

/// Takes each timer once from one of several lists, as many as a slot of the wheel has. All lists
/// are walked in turn, and the next timer of each is prefetched: the floor of any structure that
/// finds timers by links. A wheel does this once when it hands a timer out, and once for each time
/// that it moved the timer before.
struct linked_walk {
    static constexpr std::string_view name = "links";

    struct hook {
        hook* next;
        tick due;
    };

    static sample run(const setup& s, const plan& what) {
        constexpr std::size_t lists = pawl::time::detail::striped_list::stripes;
        const auto passes = passes_for(what);
        const timers<hook> all(s, what.size);
        tally<hook> out(all);
        lap_watch watch;
        for (std::size_t pass = 0; pass < passes; ++pass) {
            std::array<hook*, lists> heads{};
            std::size_t at = 0;
            for (const auto i : visit_order(what.size, pass)) {
                all[i].next = std::exchange(heads[at], &all[i]);
                at = at + 1 == lists ? 0 : at + 1;
            }
            watch.begin();
            for (auto left = what.size; left != 0;) {
                at = at == 0 ? lists - 1 : at - 1;
                hook* const timer = heads[at];
                if (timer == nullptr)
                    continue;
                __builtin_prefetch(timer->next, 1);
                heads[at] = timer->next;
                timer->due = after(origin, pass);
                out(*timer);
                --left;
            }
            watch.end();
        }
        return {per_operation(watch, passes * what.size), out.sum(), {}};
    }
};

/// Bytes that a structure needs for each timer: inside the timer and in the structure.
struct memory {
    template <class S>
    static sample run(const setup& s, const plan& what) {
        using hook = typename S::hook;
        timers<hook> all(s, what.size);
        constexpr auto own = static_cast<double>(sizeof(typename S::bare));
        const auto before = bench::detail::heap_in_use();
        S structure(s, what.size, origin, timeout);
        const auto empty = bench::detail::heap_in_use() - before + own;
        random_ticks delay(timeout, timeout);
        for (const auto i : visit_order(what.size, 0))
            structure.start(all[i], after(origin, delay()));
        const auto full = bench::detail::heap_in_use() - before + own;

        tally<hook> out(all);
        expire_everything(structure, origin, out);
        constexpr auto in_a_timer = static_cast<double>(sizeof(hook));
        return {in_a_timer + full / static_cast<double>(what.size),
                out.sum(),
                {{"bytes in a timer", in_a_timer}, {"bytes of the structure, empty", empty}}};
    }
};

} // namespace bench::backends

#endif // PAWL_BENCH_BACKENDS_BARE_WORKLOADS_HPP
