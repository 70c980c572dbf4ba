// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   libuv: a heap of timers that are part of the user's memory, in whole milliseconds. "If the
///   timer is already active, it is simply updated" (manual of uv_timer_start).
/// Threads
///   The loop's own thread only; nothing is locked.
#ifndef PAWL_BENCH_PEERS_LIBUV_LOOP_HPP
#define PAWL_BENCH_PEERS_LIBUV_LOOP_HPP

#include "loop.hpp"

#include <uv.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench::peers {

inline void uv_must(int result) {
    if (result < 0)
        throw std::runtime_error(std::string("libuv: ") + uv_strerror(result));
}

/// Rounded up, so that timers are not early.
inline std::uint64_t in_uv_time(clock::duration delay) {
    return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(delay).count());
}

class libuv_loop {
public:
    static constexpr std::size_t timer_bytes = sizeof(uv_timer_t);

    explicit libuv_loop(std::size_t n) : timers_(n) {
        uv_must(uv_loop_init(&loop_));
        for (std::size_t i = 0; i < n; ++i) {
            uv_must(uv_timer_init(&loop_, &timers_[i]));
            timers_[i].data = as_pointer(static_cast<index>(i));
        }
        uv_must(uv_check_init(&loop_, &turn_));
        turn_.data = this;
    }
    libuv_loop(const libuv_loop&) = delete;
    libuv_loop& operator=(const libuv_loop&) = delete;
    ~libuv_loop() {
        for (auto& t : timers_)
            uv_close(reinterpret_cast<uv_handle_t*>(&t), nullptr);
        uv_close(reinterpret_cast<uv_handle_t*>(&turn_), nullptr);
        uv_run(&loop_, UV_RUN_DEFAULT);
        uv_loop_close(&loop_);
    }

    void start(index i, clock::duration delay) {
        uv_must(uv_timer_start(
            &timers_[i], [](uv_timer_t* t) { note_expiry(as_index(t->data)); }, in_uv_time(delay),
            0));
    }

    void move(index i, clock::duration delay) {
        note_cut_short(i);
        start(i, delay);
    }

    void cancel(index i) {
        note_cut_short(i);
        uv_timer_stop(&timers_[i]);
    }

    template <class F>
    void turn(F f) {
        work_ = std::ref(f);
        uv_check_start(&turn_, [](uv_check_t* c) { // checks run after the poll, like I/O
            uv_check_stop(c);
            static_cast<libuv_loop*>(c->data)->work_();
        });
        uv_run(&loop_, UV_RUN_NOWAIT);
    }

    void watch(int fd, reader r) {
        auto& w = watched_.emplace_back();
        w.read = std::move(r);
        uv_must(uv_poll_init(&loop_, &w, fd));
        uv_must(uv_poll_start(&w, UV_READABLE, [](uv_poll_t* poll, int, int) {
            if (!static_cast<watched*>(poll)->read())
                uv_close(reinterpret_cast<uv_handle_t*>(poll), nullptr);
        }));
    }

    void run() { uv_run(&loop_, UV_RUN_DEFAULT); }

    /// Required by the manual after work of a millisecond or more.
    void update_now() { uv_update_time(&loop_); }

private:
    struct watched : uv_poll_t {
        reader read;
    };

    uv_loop_t loop_{};
    std::vector<uv_timer_t> timers_;
    std::deque<watched> watched_;
    uv_check_t turn_{};
    std::function<void()> work_;
};

} // namespace bench::peers

#endif // PAWL_BENCH_PEERS_LIBUV_LOOP_HPP
