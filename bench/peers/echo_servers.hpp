// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   An echo server on each loop, written as in the library's manual: each connection has an idle
///   timeout, which each read moves. run() returns when all connections are closed.
#ifndef PAWL_BENCH_PEERS_ECHO_SERVERS_HPP
#define PAWL_BENCH_PEERS_ECHO_SERVERS_HPP

#include "libev_loop.hpp"
#include "libevent_loop.hpp"
#include "libuv_loop.hpp"
#include "loop.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <new>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace bench::peers {

using echo_buffer = std::array<char, 1024>;

/// @tparam Library of ../libraries.hpp
template <class Library>
class asio_echo {
    class connection {
    public:
        connection(asio::io_context& io, int fd, index id, clock::duration timeout)
            : socket_(io, asio::ip::tcp::v4(), fd), idle_(io), id_(id), timeout_(timeout) {
            wait();
            read();
        }

    private:
        void wait() {
            idle_.expires_after(timeout_);
            idle_.async_wait([this](const error_code& error) {
                if (error)
                    return;
                note_expiry(id_);
                socket_.close();
            });
        }

        void push_back() {
            if constexpr (requires(typename Library::timer& t) { t.rearm_after(timeout_); })
                idle_.rearm_after(timeout_);
            else
                wait();
        }

        void read() {
            socket_.async_read_some(
                asio::buffer(buffer_), [this](const error_code& error, std::size_t n) {
                    if (error)
                        return void(idle_.cancel());
                    push_back();
                    asio::async_write(socket_, asio::buffer(buffer_, n),
                                      [this](const error_code& failure, std::size_t) {
                                          if (failure)
                                              return void(idle_.cancel());
                                          read();
                                      });
                });
        }

        asio::ip::tcp::socket socket_;
        typename Library::timer idle_;
        index id_;
        clock::duration timeout_;
        echo_buffer buffer_;
    };

public:
    asio_echo(const std::vector<int>& fds, clock::duration timeout) {
        Library::set_up(io_);
        for (std::size_t i = 0; i < fds.size(); ++i)
            connections_.emplace_back(io_, fds[i], static_cast<index>(i), timeout);
    }

    void run() { io_.run(); }

private:
    asio::io_context io_;
    std::deque<connection> connections_;
};

class libuv_echo {
    class connection {
    public:
        connection(uv_loop_t& loop, int fd, index id, clock::duration timeout) : id_(id) {
            uv_must(uv_tcp_init(&loop, &tcp_));
            uv_must(uv_tcp_open(&tcp_, fd));
            uv_must(uv_timer_init(&loop, &idle_));
            tcp_.data = idle_.data = this;
            const auto ms = in_uv_time(timeout);
            uv_must(uv_timer_start(
                &idle_,
                [](uv_timer_t* t) {
                    auto& self = *static_cast<connection*>(t->data);
                    note_expiry(self.id_);
                    self.close();
                },
                ms, ms));
            uv_must(uv_read_start(
                stream(),
                [](uv_handle_t* h, std::size_t, uv_buf_t* into) {
                    auto& buffer = static_cast<connection*>(h->data)->buffer_;
                    *into = uv_buf_init(buffer.data(), static_cast<unsigned>(buffer.size()));
                },
                [](uv_stream_t* s, ssize_t n, const uv_buf_t*) {
                    static_cast<connection*>(s->data)->on_read(n);
                }));
        }

    private:
        uv_stream_t* stream() { return reinterpret_cast<uv_stream_t*>(&tcp_); }

        void on_read(ssize_t n) {
            if (n < 0)
                return close();
            if (n == 0)
                return; // there was nothing to read
            uv_timer_again(&idle_);
            // The buffer is free again when the client has received the whole echo, for which the
            // client waits.
            auto data = uv_buf_init(buffer_.data(), static_cast<unsigned>(n));
            uv_must(uv_write(&writing_, stream(), &data, 1, [](uv_write_t* w, int status) {
                if (status < 0)
                    static_cast<connection*>(w->handle->data)->close();
            }));
        }

        void close() {
            if (uv_is_closing(reinterpret_cast<uv_handle_t*>(&tcp_)))
                return;
            uv_close(reinterpret_cast<uv_handle_t*>(&tcp_), nullptr);
            uv_close(reinterpret_cast<uv_handle_t*>(&idle_), nullptr);
        }

        uv_tcp_t tcp_{};
        uv_timer_t idle_{};
        uv_write_t writing_{};
        index id_;
        echo_buffer buffer_;
    };

public:
    libuv_echo(const std::vector<int>& fds, clock::duration timeout) {
        uv_must(uv_loop_init(&loop_));
        for (std::size_t i = 0; i < fds.size(); ++i)
            connections_.emplace_back(loop_, fds[i], static_cast<index>(i), timeout);
    }
    libuv_echo(const libuv_echo&) = delete;
    libuv_echo& operator=(const libuv_echo&) = delete;
    ~libuv_echo() { uv_loop_close(&loop_); }

    void run() { uv_run(&loop_, UV_RUN_DEFAULT); }

private:
    uv_loop_t loop_{};
    std::deque<connection> connections_;
};

/// On bufferevents; each read moves their read timeout.
template <bool Locked>
class libevent_echo {
    struct freed {
        void operator()(bufferevent* b) const { bufferevent_free(b); }
    };

    class connection {
    public:
        connection(event_base& base, int fd, index id, clock::duration timeout)
            : stream_(bufferevent_socket_new(
                  &base, fd, BEV_OPT_CLOSE_ON_FREE | (Locked ? BEV_OPT_THREADSAFE : 0))),
              id_(id) {
            if (!stream_)
                throw std::bad_alloc();
            bufferevent_setcb(
                stream_.get(),
                [](bufferevent* b, void*) {
                    evbuffer_add_buffer(bufferevent_get_output(b), bufferevent_get_input(b));
                },
                nullptr,
                [](bufferevent*, short what, void* user) {
                    auto& self = *static_cast<connection*>(user);
                    if ((what & BEV_EVENT_TIMEOUT) != 0)
                        note_expiry(self.id_);
                    self.stream_.reset();
                },
                this);
            const auto length = in_timeval(timeout);
            bufferevent_set_timeouts(stream_.get(), &length, nullptr);
            bufferevent_enable(stream_.get(), EV_READ | EV_WRITE);
        }

    private:
        std::unique_ptr<bufferevent, freed> stream_;
        index id_;
    };

public:
    libevent_echo(const std::vector<int>& fds, clock::duration timeout)
        : base_(make_event_base(Locked)) {
        for (std::size_t i = 0; i < fds.size(); ++i)
            connections_.emplace_back(*base_, fds[i], static_cast<index>(i), timeout);
    }

    void run() { event_base_dispatch(base_.get()); }

private:
    event_owner<event_base> base_;
    std::deque<connection> connections_;
};

/// libev has no streams: its user reads and writes the socket.
template <bool Lazy>
class libev_echo {
    class connection {
    public:
        connection(struct ev_loop* loop, int fd, index id, clock::duration timeout)
            : id_(id), timeout_(in_ev_time(timeout)) {
            ev_io_init(
                &io_,
                [](struct ev_loop* l, ev_io* w, int) {
                    static_cast<connection*>(w->data)->on_readable(l);
                },
                fd, EV_READ);
            ev_io_start(loop, &io_);
            ev_init(&idle_, [](struct ev_loop* l, ev_timer* w, int) {
                static_cast<connection*>(w->data)->on_timer(l);
            });
            io_.data = idle_.data = this;
            if constexpr (Lazy) {
                last_activity_ = ev_now(loop);
                on_timer(loop);
            } else {
                idle_.repeat = timeout_;
                ev_timer_again(loop, &idle_);
            }
        }

    private:
        void on_readable(struct ev_loop* loop) {
            const auto n = ::read(io_.fd, buffer_.data(), buffer_.size());
            if (n < 0 && errno == EAGAIN)
                return;
            if (n <= 0)
                return close(loop);
            if constexpr (Lazy)
                last_activity_ = ev_now(loop);
            else
                ev_timer_again(loop, &idle_);
            // A ping always fits into the socket's buffer, because its client waits for the echo
            // before it sends another.
            if (::send(io_.fd, buffer_.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL) != n)
                close(loop);
        }

        void on_timer(struct ev_loop* loop) {
            if constexpr (Lazy) {
                const auto after = last_activity_ - ev_now(loop) + timeout_;
                if (after > 0.) {
                    ev_timer_set(&idle_, after, 0.);
                    return ev_timer_start(loop, &idle_);
                }
            }
            note_expiry(id_);
            close(loop);
        }

        void close(struct ev_loop* loop) {
            ev_timer_stop(loop, &idle_);
            ev_io_stop(loop, &io_);
            ::close(io_.fd);
        }

        ev_io io_{};
        ev_timer idle_{};
        index id_;
        ev_tstamp timeout_;
        ev_tstamp last_activity_ = 0;
        echo_buffer buffer_;
    };

public:
    libev_echo(const std::vector<int>& fds, clock::duration timeout)
        : loop_(ev_loop_new(EVFLAG_AUTO)) {
        if (loop_ == nullptr)
            throw std::runtime_error("libev: no loop");
        for (std::size_t i = 0; i < fds.size(); ++i)
            connections_.emplace_back(loop_, fds[i], static_cast<index>(i), timeout);
    }
    libev_echo(const libev_echo&) = delete;
    libev_echo& operator=(const libev_echo&) = delete;
    ~libev_echo() { ev_loop_destroy(loop_); }

    void run() { ev_run(loop_, 0); }

private:
    struct ev_loop* loop_;
    std::deque<connection> connections_;
};

} // namespace bench::peers

#endif // PAWL_BENCH_PEERS_ECHO_SERVERS_HPP
