// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   libev: a heap with four children per node; timers are part of the user's memory. Two of the
///   four ways of its manual ("Be smart about timeouts"): the second, ev_timer_again(), and the
///   third, in which moving a deadline only notes the time, and a timer that expires compares and
///   goes on. The third way works with the timers of any library.
/// Threads
///   The loop's own thread only; nothing is locked.
#ifndef PAWL_BENCH_PEERS_LIBEV_LOOP_HPP
#define PAWL_BENCH_PEERS_LIBEV_LOOP_HPP

#include "loop.hpp"

#include <ev.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace bench::peers {

inline ev_tstamp in_ev_time(clock::duration delay) {
    return std::chrono::duration<ev_tstamp>(delay).count();
}

/// @tparam Lazy whether deadlines are moved in the manual's third way
template <bool Lazy>
class libev_loop {
    struct eager_timer {
        ev_timer watcher;
    };
    struct lazy_timer {
        ev_timer watcher;
        ev_tstamp last_activity;
        ev_tstamp timeout;
    };
    using timer = std::conditional_t<Lazy, lazy_timer, eager_timer>;

public:
    static constexpr std::size_t timer_bytes = sizeof(timer);

    explicit libev_loop(std::size_t n) : loop_(ev_loop_new(EVFLAG_AUTO)), timers_(n) {
        if (loop_ == nullptr)
            throw std::runtime_error("libev: no loop");
        for (std::size_t i = 0; i < n; ++i) {
            ev_init(&timers_[i].watcher, expire);
            timers_[i].watcher.data = as_pointer(static_cast<index>(i));
        }
        ev_check_init(&turn_, [](struct ev_loop* loop, ev_check* c, int) {
            ev_check_stop(loop, c);
            static_cast<libev_loop*>(c->data)->work_();
        });
        turn_.data = this;
    }
    libev_loop(const libev_loop&) = delete;
    libev_loop& operator=(const libev_loop&) = delete;
    ~libev_loop() {
        for (auto& t : timers_)
            ev_timer_stop(loop_, &t.watcher);
        ev_loop_destroy(loop_);
    }

    void start(index i, clock::duration delay) {
        auto& t = timers_[i];
        if constexpr (Lazy) {
            t.timeout = in_ev_time(delay);
            t.last_activity = ev_now(loop_);
        }
        ev_timer_set(&t.watcher, in_ev_time(delay), 0.);
        ev_timer_start(loop_, &t.watcher);
    }

    void move(index i, clock::duration delay) {
        note_cut_short(i);
        auto& t = timers_[i];
        if constexpr (Lazy) {
            t.last_activity = ev_now(loop_);
        } else {
            t.watcher.repeat = in_ev_time(delay);
            ev_timer_again(loop_, &t.watcher);
        }
    }

    void cancel(index i) {
        note_cut_short(i);
        ev_timer_stop(loop_, &timers_[i].watcher);
    }

    template <class F>
    void turn(F f) {
        work_ = std::ref(f);
        ev_check_start(loop_, &turn_); // called after the poll, like I/O
        ev_run(loop_, EVRUN_NOWAIT);
    }

    void watch(int fd, reader r) {
        auto& w = watched_.emplace_back();
        w.read = std::move(r);
        ev_io_init(
            &w,
            [](struct ev_loop* loop, ev_io* io, int) {
                if (!static_cast<watched*>(io)->read())
                    ev_io_stop(loop, io);
            },
            fd, EV_READ);
        ev_io_start(loop_, &w);
    }

    void run() { ev_run(loop_, 0); }

    /// Required by the manual after long work.
    void update_now() { ev_now_update(loop_); }

private:
    static void expire(struct ev_loop* loop, ev_timer* w, int) {
        if constexpr (Lazy) {
            const auto& t = *reinterpret_cast<lazy_timer*>(w); // its first member
            const auto after = t.last_activity - ev_now(loop) + t.timeout;
            if (after > 0.) {
                ev_timer_set(w, after, 0.);
                ev_timer_start(loop, w);
                return;
            }
        } else
            ev_timer_stop(loop, w); // a moved timer would repeat
        note_expiry(as_index(w->data));
    }

    struct watched : ev_io {
        reader read;
    };

    struct ev_loop* loop_;
    std::vector<timer> timers_;
    std::deque<watched> watched_;
    ev_check turn_{};
    std::function<void()> work_;
};

} // namespace bench::peers

#endif // PAWL_BENCH_PEERS_LIBEV_LOOP_HPP
