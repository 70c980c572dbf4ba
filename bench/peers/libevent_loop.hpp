// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   libevent: a heap of timers, or a queue for each common timeout, in microseconds. Events are
///   made by event_new(), as its manual recommends, and re-armed by event_add(), which moves a
///   pending event.
/// Threads
///   A base has locks if evthread_use_pthreads() was called before the base was made, and the flags
///   of the base do not disable them.
#ifndef PAWL_BENCH_PEERS_LIBEVENT_LOOP_HPP
#define PAWL_BENCH_PEERS_LIBEVENT_LOOP_HPP

#include "loop.hpp"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

namespace bench::peers {

struct event_deleter {
    void operator()(event_base* b) const { event_base_free(b); }
    void operator()(event_config* c) const { event_config_free(c); }
    void operator()(event* e) const { event_free(e); }
};
template <class T>
using event_owner = std::unique_ptr<T, event_deleter>;

inline event_owner<event_base> make_event_base(bool locked) {
    [[maybe_unused]] static const int threads = evthread_use_pthreads();
    const event_owner<event_config> config(event_config_new());
    if (!config)
        throw std::bad_alloc();
    if (!locked)
        event_config_set_flag(config.get(), EVENT_BASE_FLAG_NOLOCK);
    event_owner<event_base> base(event_base_new_with_config(config.get()));
    if (!base)
        throw std::runtime_error("libevent: no event_base");
    return base;
}

inline timeval in_timeval(clock::duration delay) {
    const auto us = std::chrono::ceil<std::chrono::microseconds>(delay).count();
    return {static_cast<time_t>(us / 1'000'000), static_cast<suseconds_t>(us % 1'000'000)};
}

/// @tparam Locked whether other threads may use the base
/// @tparam Common whether to use common timeouts: few delays, many timers
template <bool Locked, bool Common = false>
class libevent_loop {
public:
    static constexpr std::size_t timer_bytes = sizeof(event); // on the heap, plus a pointer to it

    explicit libevent_loop(std::size_t n) : base_(make_event_base(Locked)) {
        events_.reserve(n);
        for (std::size_t i = 0; i < n; ++i)
            events_.push_back(
                make([](evutil_socket_t, short, void* id) { note_expiry(as_index(id)); },
                     as_pointer(static_cast<index>(i))));
        turn_ = make(
            [](evutil_socket_t, short, void* self) { static_cast<libevent_loop*>(self)->work_(); },
            this);
    }
    libevent_loop(const libevent_loop&) = delete;
    libevent_loop& operator=(const libevent_loop&) = delete;

    void start(index i, clock::duration delay) {
        if constexpr (Common) {
            if (delay != common_delay_) {
                const auto length = in_timeval(delay);
                common_ = event_base_init_common_timeout(base_.get(), &length);
                if (common_ == nullptr)
                    throw std::runtime_error("libevent: no common timeout");
                common_delay_ = delay;
            }
            event_add(events_[i].get(), common_);
        } else {
            const auto length = in_timeval(delay);
            event_add(events_[i].get(), &length);
        }
    }

    void move(index i, clock::duration delay) {
        note_cut_short(i);
        start(i, delay);
    }

    void cancel(index i) {
        note_cut_short(i);
        event_del(events_[i].get());
    }

    template <class F>
    void turn(F f) {
        work_ = std::ref(f);
        event_active(turn_.get(), EV_READ, 0);
        event_base_loop(base_.get(), EVLOOP_ONCE | EVLOOP_NONBLOCK);
    }

    void watch(int fd, reader r) {
        auto& w = watched_.emplace_back();
        w.read = std::move(r);
        w.readable = make(
            [](evutil_socket_t, short, void* self) {
                auto& mine = *static_cast<watched*>(self);
                if (!mine.read())
                    event_del(mine.readable.get());
            },
            &w, fd, EV_READ | EV_PERSIST);
        event_add(w.readable.get(), nullptr);
    }

    void run() { event_base_dispatch(base_.get()); }

    /// Required by the manual after long work.
    void update_now() { event_base_update_cache_time(base_.get()); }

private:
    struct watched {
        reader read;
        event_owner<event> readable;
    };

    event_owner<event> make(event_callback_fn call, void* user, int fd = -1, short what = 0) {
        event_owner<event> made(event_new(base_.get(), fd, what, call, user));
        if (!made)
            throw std::bad_alloc();
        return made;
    }

    event_owner<event_base> base_;
    std::vector<event_owner<event>> events_;
    event_owner<event> turn_;
    std::deque<watched> watched_;
    std::function<void()> work_;
    clock::duration common_delay_{};
    const timeval* common_ = nullptr;
};

} // namespace bench::peers

#endif // PAWL_BENCH_PEERS_LIBEVENT_LOOP_HPP
