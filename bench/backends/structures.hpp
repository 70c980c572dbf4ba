// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The structures under comparison, behind one interface: Pawl's own, and those of other
///   libraries.
///
/// Model
///   A structure S has
///
///       S::name, S::hook     its name; its part of a timer
///       S::bare              the type measured, without the parts that this bench adds
///       S(setup, n, now, d)  room for n timers; d is the delay of structures with a fixed one
///       start(hook, due), cancel(hook), rearm(hook, due)
///       expire(now, sink)    passes everything due by then to sink(hook&)
///       next_wake()          a tick before which expire() has nothing to hand out
///
///   as far as its workloads need these.
#ifndef PAWL_BENCH_BACKENDS_STRUCTURES_HPP
#define PAWL_BENCH_BACKENDS_STRUCTURES_HPP

#include "timers.hpp"

#include <pawl/time/binary_wheel.hpp>
#include <pawl/time/geometry.hpp>
#include <pawl/time/hierarchical_wheel.hpp>
#include <pawl/time/tick.hpp>
#include <pawl/time/timer_node.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace bench::backends {

/// A backend of Pawl, expired as in the service, with room for one batch at a time.
template <class Backend>
class backend_of_pawl {
public:
    using hook = pawl::time::timer_node;
    using bare = Backend;

    backend_of_pawl(const setup& s, std::size_t n, tick now, std::uint64_t)
        : backend_(pawl::time::geometry{}, now), most_(s.room) {
        if constexpr (pawl::time::reserving_backend<Backend>)
            backend_.reserve(n);
    }

    void start(hook& timer, tick due) { backend_.insert(timer, due); }
    void cancel(hook& timer) { backend_.erase(timer); }
    void rearm(hook& timer, tick due) { backend_.rearm(timer, due); }
    tick next_wake() const { return backend_.next_wake(); }

    template <class Sink>
    void expire(tick now, Sink& sink) {
        room_.resize(most_);
        for (bool more = true; more;) {
            const auto result = backend_.expire(now, room_);
            for (std::size_t i = 0; i < result.emitted; ++i)
                sink(*room_[i]);
            more = result.more;
        }
    }

private:
    Backend backend_;
    std::size_t most_;
    std::vector<hook*> room_;
};

struct hierarchical : backend_of_pawl<pawl::time::hierarchical_wheel> {
    static constexpr std::string_view name = "hierarchical";
    using backend_of_pawl::backend_of_pawl;
};

/// The same, used as in the service: a cancelled timer stays filed until it starts again, which
/// moves it, or until the wheel reaches it.
class kept : public backend_of_pawl<pawl::time::hierarchical_wheel> {
    using base = backend_of_pawl<pawl::time::hierarchical_wheel>;

public:
    static constexpr std::string_view name = "kept";
    using base::base;

    void start(hook& timer, tick due) {
        if (timer.filed())
            base::rearm(timer, due);
        else
            base::start(timer, due);
        timer.set_user(running);
    }
    void cancel(hook& timer) { timer.set_user(0); }

    template <class Sink>
    void expire(tick now, Sink& sink) {
        const auto running_only = [&](hook& timer) {
            if (timer.user() == running)
                sink(timer);
        };
        base::expire(now, running_only);
    }

private:
    static constexpr unsigned char running = 1;
};

struct binary : backend_of_pawl<pawl::time::binary_wheel> {
    static constexpr std::string_view name = "binary";
    using backend_of_pawl::backend_of_pawl;
};

/// The minimum that a linked timer needs.
struct links {
    links* prev;
    links* next;
    tick due;

    void unlink() noexcept {
        prev->next = next;
        next->prev = prev;
    }

    void link_before(links& other) noexcept {
        prev = other.prev;
        next = &other;
        prev->next = this;
        other.prev = this;
    }
};

/// One doubly linked list in start order: the minimum cost of starting and cancelling linked
/// timers. Works for timers of one delay only, because the first to start is the first to expire.
class plain_list {
public:
    static constexpr std::string_view name = "list";
    using hook = links;
    using bare = plain_list;

    plain_list(const setup&, std::size_t, tick, std::uint64_t) {}
    plain_list(const plain_list&) = delete;
    plain_list& operator=(const plain_list&) = delete;

    void start(hook& timer, tick due) {
        timer.due = due;
        timer.link_before(head_);
    }
    void cancel(hook& timer) { timer.unlink(); }
    void rearm(hook& timer, tick due) {
        cancel(timer);
        start(timer, due);
    }

    template <class Sink>
    void expire(tick now, Sink& sink) {
        while (head_.next != &head_ && head_.next->due <= now) {
            hook& first = *head_.next;
            first.unlink();
            sink(first);
        }
    }

private:
    links head_{&head_, &head_, tick{}};
};

/// The hashed timing wheel of many servers: one list for each slot; a timer stays in its slot for
/// as many rounds as its delay needs. 4096 slots.
class list_wheel {
public:
    static constexpr std::string_view name = "list_wheel";
    using hook = links;
    using bare = list_wheel;

    list_wheel(const setup&, std::size_t, tick now, std::uint64_t) : slots_(slots), now_(now) {
        for (auto& slot : slots_)
            slot.prev = slot.next = &slot;
    }

    void start(hook& timer, tick due) {
        timer.due = std::max(due, after(now_, 1));
        timer.link_before(slots_[timer.due.count() % slots]);
    }
    void cancel(hook& timer) { timer.unlink(); }
    void rearm(hook& timer, tick due) {
        cancel(timer);
        start(timer, due);
    }

    template <class Sink>
    void expire(tick now, Sink& sink) {
        const auto steps = std::min<std::uint64_t>(now.count() - now_.count(), slots);
        for (std::uint64_t step = 1; step <= steps; ++step) {
            links& slot = slots_[(now_.count() + step) % slots];
            for (links* timer = slot.next; timer != &slot;) {
                links& each = *std::exchange(timer, timer->next);
                if (each.due <= now) {
                    each.unlink();
                    sink(each);
                }
            }
        }
        now_ = now;
    }

private:
    static constexpr std::uint64_t slots = 4096;

    std::vector<links> slots_;
    tick now_;
};

/// A binary heap of (due, timer) in an array, in which each timer knows its place, like Asio's
/// timer_queue.
class heap {
public:
    static constexpr std::string_view name = "heap";
    using bare = heap;
    struct hook {
        std::size_t place = 0;
    };

    heap(const setup&, std::size_t n, tick, std::uint64_t) { entries_.reserve(n); }

    void start(hook& timer, tick due) {
        entries_.emplace_back();
        up(entries_.size() - 1, {due, &timer});
    }

    void cancel(hook& timer) {
        const entry last = entries_.back();
        entries_.pop_back();
        if (last.timer != &timer)
            settle(timer.place, last);
    }

    void rearm(hook& timer, tick due) { settle(timer.place, {due, &timer}); }

    template <class Sink>
    void expire(tick now, Sink& sink) {
        while (!entries_.empty() && entries_.front().due <= now) {
            hook& first = *entries_.front().timer;
            cancel(first);
            sink(first);
        }
    }

private:
    struct entry {
        tick due;
        hook* timer = nullptr;
    };

    void put(std::size_t place, const entry& e) {
        entries_[place] = e;
        e.timer->place = place;
    }

    /// Puts `e` at `place`, then moves it up or down to where it belongs.
    void settle(std::size_t place, const entry& e) {
        if (place != 0 && e.due < entries_[(place - 1) / 2].due)
            up(place, e);
        else
            down(place, e);
    }

    void up(std::size_t place, const entry& e) {
        while (place != 0 && e.due < entries_[(place - 1) / 2].due) {
            put(place, entries_[(place - 1) / 2]);
            place = (place - 1) / 2;
        }
        put(place, e);
    }

    void down(std::size_t place, const entry& e) {
        for (;;) {
            std::size_t child = 2 * place + 1;
            if (child >= entries_.size())
                break;
            if (child + 1 < entries_.size() && entries_[child + 1].due < entries_[child].due)
                ++child;
            if (e.due <= entries_[child].due)
                break;
            put(place, entries_[child]);
            place = child;
        }
        put(place, e);
    }

    std::vector<entry> entries_;
};

/// A balanced tree of (due, timer), in which each timer knows its place.
class ordered_set {
public:
    static constexpr std::string_view name = "std_set";
    using bare = ordered_set;
    struct hook;
    using entry = std::pair<tick, hook*>;
    struct hook {
        std::set<entry>::iterator place;
    };

    ordered_set(const setup&, std::size_t, tick, std::uint64_t) {}

    void start(hook& timer, tick due) { timer.place = entries_.emplace(due, &timer).first; }
    void cancel(hook& timer) { entries_.erase(timer.place); }
    void rearm(hook& timer, tick due) {
        auto node = entries_.extract(timer.place);
        node.value().first = due;
        timer.place = entries_.insert(std::move(node)).position;
    }
    tick next_wake() const { return entries_.empty() ? tick::never() : entries_.begin()->first; }

    template <class Sink>
    void expire(tick now, Sink& sink) {
        while (!entries_.empty() && entries_.begin()->first <= now) {
            hook& first = *entries_.begin()->second;
            entries_.erase(entries_.begin());
            sink(first);
        }
    }

private:
    std::set<entry> entries_;
};

} // namespace bench::backends

#endif // PAWL_BENCH_BACKENDS_STRUCTURES_HPP
