// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   timeout_ring: as a structure beside the others, against the atomic operations that it needs,
///   and used by several threads against a wheel behind a mutex.
///
/// Threads
///   A thread has timers of its own. A thread that has done a 64th of a pass drives the ring: time
///   passes with the operations, so that a pass over all timers takes half the delay.
#ifndef PAWL_BENCH_BACKENDS_RING_WORKLOADS_HPP
#define PAWL_BENCH_BACKENDS_RING_WORKLOADS_HPP

#include "bare_workloads.hpp"
#include "timers.hpp"

#include "../harness.hpp"
#include "../thread_workloads.hpp"

#include <pawl/time/geometry.hpp>
#include <pawl/time/hierarchical_wheel.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timeout_ring.hpp>
#include <pawl/time/timer_node.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

namespace bench::backends {

/// Slots for n timers whose timeouts are cancelled after at most one delay: a cancelled timer keeps
/// its slot until the delay is over.
inline std::size_t ring_capacity(std::size_t n) { return std::bit_ceil(n * 5 / 2); }

class ring {
public:
    static constexpr std::string_view name = "ring";
    static constexpr bool fixed_delay = true;
    struct hook {
        pawl::time::ring_ticket ticket;
    };
    using bare = pawl::time::timeout_ring<hook>;

    ring(const setup& s, std::size_t n, tick now, std::uint64_t delay)
        : ring_(delay, ring_capacity(n), now), most_(s.room) {}

    /// All timers have the delay of the ring.
    void start(hook& timer, tick) {
        const auto made = ring_.try_register(timer);
        if (made.status != pawl::time::ring_status::registered)
            throw std::runtime_error("the ring is full");
        timer.ticket = made.ticket;
    }
    void cancel(hook& timer) { ring_.cancel(timer.ticket); }

    std::uint64_t period() const { return ring_.period(); }

    template <class Sink>
    void expire(tick now, Sink& sink) {
        room_.resize(most_);
        ring_.mark(now, ring_.position());
        for (bool more = true; more;) {
            const auto swept = ring_.expire(now, room_);
            for (std::size_t i = 0; i < swept.emitted; ++i)
                sink(*room_[i]);
            more = swept.more;
        }
    }

private:
    bare ring_;
    std::size_t most_;
    std::vector<hook*> room_;
};

/// The work of a ring for a pair of cancel and registration, without the sweep, which is a note.
/// And the minimum for a ring that any thread may use: exchange the word of a slot, and take a
/// number. The slots have the same number and size.
///
/// `Apart`: the next timer is known only after the number has been taken. So the cache misses of
/// one pair do not overlap with those of the next, as in a server that does other work in
/// between. Otherwise code with fewer instructions has more misses in flight.
template <bool Apart>
struct register_and_cancel {
    /// Returns 0, but the compiler and the CPU need `number` to know that.
    static std::uint64_t hold_up(std::uint64_t number) { return Apart ? number >> 63 : 0; }

    static sample run_ring(const setup& s, const plan& what) {
        constexpr std::uint64_t ticks_per_pass = 4;
        const auto passes = passes_for(what);
        bench_of<ring> b(s, what.size, 2 * ticks_per_pass);
        tick now = origin;
        lap_watch pairs;
        lap_watch sweep;
        std::uint64_t last_number = 0;
        const auto pass = [&](std::size_t number) {
            const std::span order = visit_order(what.size, number);
            for (std::size_t t = 0; t < ticks_per_pass; ++t) {
                const auto first = what.size * t / ticks_per_pass;
                const auto last = what.size * (t + 1) / ticks_per_pass;
                pairs.begin();
                for (const auto i : order.subspan(first, last - first)) {
                    auto& timer = b.all[static_cast<index>(i + hold_up(last_number))];
                    b.structure.cancel(timer);
                    b.structure.start(timer, tick{});
                    last_number = timer.ticket.word();
                }
                pairs.end();
                now = after(now, 1);
                sweep.begin();
                b.pass_time(now);
                sweep.end();
            }
        };
        b.start_all(0);
        b.pass_time(now);
        for (std::size_t number = 1; number < 4; ++number)
            pass(number); // warm-up, until there are slots to sweep
        pairs = {};
        sweep = {};
        for (std::size_t number = 0; number < passes; ++number)
            pass(number + 4);
        return {per_operation(pairs, passes * what.size),
                b.drain(now, passes * what.size),
                {{"ns of sweeping per pair", per_operation(sweep, passes * what.size)}}};
    }

    /// `Fill`: also fills the slot of the number.
    template <bool Fill>
    static sample run_atomics(const setup& s, const plan& what) {
        struct slot {
            std::atomic<std::uint64_t> state;
            std::atomic<std::uint64_t*> item;
        };
        constexpr std::uint64_t done = 0;
        const auto passes = passes_for(what);
        const timers<std::uint64_t> all(s, what.size);
        std::vector<slot> slots(ring_capacity(what.size));
        std::atomic<std::uint64_t> tail{0};
        std::uint64_t cancelled = 0;
        std::uint64_t last_number = 0;
        const auto pass = [&](std::size_t number) {
            // relaxed: there is one thread, and no order costs less
            for (const auto i : visit_order(what.size, number)) {
                auto& ticket = all[static_cast<index>(i + hold_up(last_number))];
                auto& old = slots[ticket & (slots.size() - 1)];
                if (old.state.exchange(done, std::memory_order_relaxed) == ticket)
                    ++cancelled;
                ticket = tail.fetch_add(1, std::memory_order_relaxed);
                last_number = ticket;
                if constexpr (Fill) {
                    auto& fresh = slots[ticket & (slots.size() - 1)];
                    fresh.item.store(&ticket, std::memory_order_relaxed);
                    fresh.state.store(ticket, std::memory_order_relaxed);
                }
            }
        };
        for (std::size_t number = 0; number < 4; ++number)
            pass(number); // warm-up
        lap_watch watch;
        watch.begin();
        for (std::size_t number = 0; number < passes; ++number)
            pass(number + 4);
        watch.end();
        if (Fill && cancelled < passes * what.size)
            throw std::logic_error("a slot was lost");
        tally<std::uint64_t> out(all);
        for (std::size_t i = 0; i < what.size && what.size <= most_drained; ++i)
            out(all[static_cast<index>(i)]);
        return {per_operation(watch, passes * what.size),
                out.sum(passes * what.size),
                {{"ns of sweeping per pair", 0}}};
    }
};

namespace detail {

/// A ring that several threads use. Its functions return how many timers have ended.
class shared_ring {
public:
    static constexpr std::string_view name = "ring";
    using hook = ring::hook;

    shared_ring(const setup& s, std::size_t n)
        : room_(s.room), ring_(128, ring_capacity(n), tick{}) {}

    std::size_t start(hook& timer) {
        for (std::size_t expired = 0;;) {
            const auto made = ring_.try_register(timer);
            if (made.status == pawl::time::ring_status::registered) {
                timer.ticket = made.ticket;
                return expired;
            }
            // The other thread sleeps, and has not released slots that it took one delay ago.
            expired += pass_time();
            std::this_thread::yield();
        }
    }

    std::size_t cancel(hook& timer) { return ring_.cancel(timer.ticket) != nullptr; }
    std::size_t pass_time() { return pass_time(1); }
    std::size_t drain() { return pass_time(1024) + pass_time(1024); }

private:
    std::size_t pass_time(std::uint64_t ticks) {
        thread_local std::vector<hook*> room;
        room.resize(room_);
        const auto position = ring_.position();
        // relaxed: a count; a mark that is stamped late makes no timer early
        const tick now{now_.fetch_add(ticks, std::memory_order_relaxed) + ticks};
        ring_.mark(now, position);
        std::size_t expired = 0;
        bool more = true;
        // Bounded: if an unfinished registration of another thread stops the sweep, do not retry
        // forever.
        for (auto calls = ring_.size() / room_ + 1; more && calls != 0; --calls) {
            const auto swept = ring_.expire(now, room);
            expired += swept.emitted;
            more = swept.more;
        }
        return expired;
    }

    std::size_t room_;
    pawl::time::timeout_ring<hook> ring_;
    alignas(64) std::atomic<std::uint64_t> now_{0};
};

/// The same with a wheel behind a mutex. Its timers do not expire before the end of the run.
class locked_wheel {
public:
    static constexpr std::string_view name = "locked_wheel";
    using hook = pawl::time::timer_node;

    locked_wheel(const setup& s, std::size_t n) : room_(s.room) { wheel_.reserve(n); }

    std::size_t start(hook& timer) {
        const std::lock_guard lock(mutex_);
        wheel_.insert(timer, after(wheel_.now(), never_reached));
        return 0;
    }
    std::size_t cancel(hook& timer) {
        const std::lock_guard lock(mutex_);
        wheel_.erase(timer);
        return 1;
    }
    std::size_t pass_time() { return expire(1).emitted; }
    std::size_t drain() {
        std::size_t expired = 0;
        for (bool more = true; more;) {
            const auto result = expire(never_reached);
            expired += result.emitted;
            more = result.more;
        }
        return expired;
    }

private:
    static constexpr std::uint64_t never_reached = std::uint64_t{1} << 40;

    pawl::time::expire_result expire(std::uint64_t ticks) {
        const std::lock_guard lock(mutex_);
        return wheel_.expire(after(wheel_.now(), ticks), room_);
    }

    std::mutex mutex_;
    pawl::time::hierarchical_wheel wheel_;
    std::vector<hook*> room_;
};

} // namespace detail

/// Connections of several threads. Each cancels its timeout and starts another one.
template <std::size_t Threads>
struct registering_threads {
    template <class Shared>
    static sample run(const setup& s, const plan& what) {
        const timers<typename Shared::hook> all(s, what.size);
        Shared shared(s, what.size);
        bench::detail::meeting all_run(Threads);
        std::vector<outcome> outcomes(Threads);
        std::vector<std::thread> threads;
        for (std::size_t t = 0; t < Threads; ++t)
            threads.emplace_back([&, t] {
                share<Shared> mine(shared, all, t);
                all_run.attend(t);
                const stopwatch<thread_cpu> cpu;
                outcomes[t].begin = real_time::now_ns();
                for (std::size_t n = 0; n < passes_for(what); ++n)
                    mine.pass(n + 2);
                outcomes[t].end = real_time::now_ns();
                outcomes[t].cpu_ns = cpu.elapsed_ns();
                outcomes[t].ended = mine.ended();
            });
        for (auto& thread : threads)
            thread.join();

        outcome sum = outcomes.front();
        for (std::size_t t = 1; t < Threads; ++t) {
            sum.begin = std::min(sum.begin, outcomes[t].begin);
            sum.end = std::max(sum.end, outcomes[t].end);
            sum.cpu_ns += outcomes[t].cpu_ns;
            sum.ended += outcomes[t].ended;
        }
        const auto ns = sum.end - sum.begin;
        const auto pairs = static_cast<double>(passes_for(what) * what.size);
        // Each start has one end: cancelled, or expired if the other thread was far ahead.
        return {ns / pairs,
                {shared.drain() + sum.ended, 0, 0},
                {{"million pairs/s", 1000 * pairs / ns}, {"cores in use", sum.cpu_ns / ns}}};
    }

private:
    struct outcome {
        double begin = 0;
        double end = 0;
        double cpu_ns = 0;
        std::uint64_t ended = 0;
    };

    /// The objects of one thread.
    template <class Shared>
    class share {
    public:
        share(Shared& shared, const timers<typename Shared::hook>& all, std::size_t thread)
            : shared_(&shared), all_(&all) {
            for (std::size_t n = 0; n < mine_.size(); ++n)
                for (const auto i : visit_order(all.size(), n))
                    if (i % Threads == thread)
                        mine_[n].push_back(i);
            for (const auto i : mine_[0])
                ended_ += shared.start(all[i]);
            pass(1); // warm-up
        }

        void pass(std::size_t number) {
            for (const auto i : mine_[number % mine_.size()]) {
                ended_ += shared_->cancel((*all_)[i]);
                ended_ += shared_->start((*all_)[i]);
                if (--until_tick_ == 0) {
                    until_tick_ = every();
                    ended_ += shared_->pass_time();
                }
            }
        }

        std::uint64_t ended() const { return ended_; }

    private:
        std::size_t every() const { return std::max<std::size_t>(1, all_->size() / 64); }

        Shared* shared_;
        const timers<typename Shared::hook>* all_;
        std::array<std::vector<index>, 3> mine_;
        std::uint64_t ended_ = 0;
        std::size_t until_tick_ = every();
    };
};

} // namespace bench::backends

#endif // PAWL_BENCH_BACKENDS_RING_WORKLOADS_HPP
