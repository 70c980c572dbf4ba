// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Boost.Asio's timers and Pawl's, on an io_context. Any thread may use them.
#ifndef PAWL_BENCH_PEERS_ASIO_LOOP_HPP
#define PAWL_BENCH_PEERS_ASIO_LOOP_HPP

#include "loop.hpp"

#include <pawl/alarm.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

namespace bench::peers {

/// A context, run in a handler at a time, or to its end.
class context_loop {
public:
    template <class F>
    void turn(F f) {
        io_.restart();
        asio::post(io_, std::ref(f));
        io_.poll();
    }

    void watch(int fd, reader r) {
        wait(watched_.emplace_back(asio::posix::stream_descriptor(io_, fd), std::move(r)));
    }

    void run() {
        io_.restart();
        io_.run();
    }

protected:
    asio::io_context io_;

private:
    using watched = std::pair<asio::posix::stream_descriptor, reader>;

    static void wait(watched& w) {
        w.first.async_wait(asio::posix::stream_descriptor::wait_read, [&w](const error_code& e) {
            if (!e && w.second())
                wait(w);
            else
                w.first.release(); // whoever opened it closes it
        });
    }

    std::deque<watched> watched_;
};

/// @tparam Library of ../libraries.hpp
template <class Library>
class asio_loop : public context_loop {
    using timer = typename Library::timer;

public:
    static constexpr std::size_t timer_bytes = sizeof(timer);

    explicit asio_loop(std::size_t n) {
        Library::set_up(io_);
        timers_.reserve(n);
        for (std::size_t i = 0; i < n; ++i)
            timers_.emplace_back(io_);
    }

    void start(index i, clock::duration delay) {
        timers_[i].expires_after(delay);
        timers_[i].async_wait([i](const error_code& error) {
            if (error)
                note_cut_short(i);
            else
                note_expiry(i);
        });
    }

    void move(index i, clock::duration delay) {
        if constexpr (requires(timer& t) { t.rearm_after(delay); }) {
            if (timers_[i].rearm_after(delay) != 0)
                note_cut_short(i);
        } else
            start(i, delay); // aborts the wait before
    }

    void cancel(index i) { timers_[i].cancel(); }

private:
    std::vector<timer> timers_;
};

struct expiry_noter {
    index id;
    void operator()() const { note_expiry(id); }
};

/// Pawl's alarms.
template <class Alarm>
class alarm_loop : public context_loop {
public:
    static constexpr std::size_t timer_bytes = sizeof(Alarm);

    explicit alarm_loop(std::size_t n) {
        alarms_.reserve(n);
        for (std::size_t i = 0; i < n; ++i)
            alarms_.emplace_back(io_.get_executor(), expiry_noter{static_cast<index>(i)});
    }

    void start(index i, clock::duration delay) { alarms_[i].arm_after(delay); }

    void move(index i, clock::duration delay) {
        note_cut_short(i);
        alarms_[i].arm_after(delay);
    }

    void cancel(index i) {
        if (alarms_[i].disarm())
            note_cut_short(i);
    }

private:
    std::vector<Alarm> alarms_;
};

} // namespace bench::peers

#endif // PAWL_BENCH_PEERS_ASIO_LOOP_HPP
