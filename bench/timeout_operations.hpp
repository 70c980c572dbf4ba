// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   One asynchronous operation that completes within a timeout of 30 s, in each way that a
///   coroutine or a completion handler can set one. The whole `co_await` or the whole operation is
///   compared.
#ifndef PAWL_BENCH_TIMEOUT_OPERATIONS_HPP
#define PAWL_BENCH_TIMEOUT_OPERATIONS_HPP

#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <boost/version.hpp>

#if BOOST_VERSION >= 108600
#include <boost/asio/cancel_after.hpp>
#endif

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

namespace bench {

namespace asio = boost::asio;
using boost::system::error_code;

inline constexpr std::chrono::seconds limit{30};

/// Completes after one trip through the scheduler.
class posted_operation {
public:
    explicit posted_operation(const asio::any_io_executor& ex) : start_{ex} {}

    template <class Token>
    auto operator()(Token&& token) {
        return asio::async_initiate<Token, void(error_code, std::size_t)>(start_, token);
    }

private:
    struct initiation {
        using executor_type = asio::any_io_executor; // Asio's cancel_after asks for it
        [[nodiscard]] executor_type get_executor() const noexcept { return ex; }

        template <class Handler>
        void operator()(Handler handler) const {
            const auto mine = asio::get_associated_executor(handler, ex);
            asio::post(mine, asio::append(std::move(handler), error_code(), std::size_t{1}));
        }

        asio::any_io_executor ex;
    };

    initiation start_;
};

class connected_sockets {
    using socket = asio::local::stream_protocol::socket;

protected:
    explicit connected_sockets(const asio::any_io_executor& ex) : reader_(ex), writer_(ex) {
        asio::local::connect_pair(reader_, writer_);
    }

    socket reader_;
    socket writer_;
};

/// Reads no bytes, which a socket does without a system call, so the operation completes at once.
class empty_read : connected_sockets {
public:
    explicit empty_read(const asio::any_io_executor& ex) : connected_sockets(ex) {}

    template <class Token>
    auto operator()(Token&& token) {
        return reader_.async_read_some(asio::mutable_buffer(), std::forward<Token>(token));
    }
};

/// Reads a byte that is already present: the operation completes after two system calls.
class ready_read : connected_sockets {
public:
    explicit ready_read(const asio::any_io_executor& ex) : connected_sockets(ex) {}

    template <class Token>
    auto operator()(Token&& token) {
        writer_.write_some(asio::buffer(byte_));
        return reader_.async_read_some(asio::buffer(byte_), std::forward<Token>(token));
    }

private:
    std::array<char, 1> byte_{};
};

// Each way has once(), for a coroutine, or start(), for a completion handler, or both.

/// No timeout, but the clock is read, as every timeout must.
struct bare {
    static void read_clock() {
        const auto now = std::chrono::steady_clock::now();
        asm volatile("" ::"r"(&now) : "memory"); // forces the read
    }

    template <class Operation>
    static asio::awaitable<std::size_t> once(Operation& op) {
        read_clock();
        co_return co_await op(asio::deferred);
    }

    template <class Operation, class Handler>
    static void start(Operation& op, Handler handler) {
        read_clock();
        op(std::move(handler));
    }
};

struct pawl_timeout {
    template <class Operation>
    static asio::awaitable<std::size_t> once(Operation& op) {
        co_return co_await op(pawl::timeout(limit));
    }

    template <class Operation, class Handler>
    static void start(Operation& op, const asio::any_io_executor& ex, Handler handler) {
        op(pawl::timeout(limit, asio::bind_executor(ex, std::move(handler))));
    }
};

/// Like pawl_timeout, with a timer that belongs to the connection.
struct pawl_own_timer {
    template <class Operation>
    static asio::awaitable<std::size_t> once(Operation& op, pawl::steady_timer& timer) {
        co_return co_await op(pawl::timeout(timer, limit));
    }

    template <class Operation, class Handler>
    static void start(Operation& op, pawl::steady_timer& timer, Handler handler) {
        op(pawl::timeout(timer, limit, std::move(handler)));
    }
};

template <class Operation>
asio::awaitable<std::size_t> as_coroutine(Operation& op) {
    co_return co_await op(asio::deferred);
}

/// The timeout of a coroutine.
struct pawl_coroutine {
    template <class Operation>
    static asio::awaitable<std::size_t> once(Operation& op) {
        co_return co_await pawl::timeout(limit, as_coroutine(op));
    }
};

#if BOOST_VERSION >= 108600
/// Asio's own limit, from Boost 1.86 on.
struct asio_cancel_after {
    static constexpr bool of_asio = true;

    template <class Operation>
    static asio::awaitable<std::size_t> once(Operation& op) {
        co_return co_await op(asio::cancel_after(limit));
    }

    template <class Operation, class Handler>
    static void start(Operation& op, const asio::any_io_executor& ex, Handler handler) {
        op(asio::cancel_after(limit, asio::bind_executor(ex, std::move(handler))));
    }
};
#endif

/// The way of Asio's documentation.
struct asio_or {
    static constexpr bool of_asio = true;

    template <class Operation>
    static asio::awaitable<std::size_t> once(Operation& op, asio::steady_timer& timer) {
        using namespace asio::experimental::awaitable_operators;
        timer.expires_after(limit);
        auto first = co_await (as_coroutine(op) || timer.async_wait(asio::use_awaitable));
        co_return first.index() == 0 ? std::get<0>(first) : 0;
    }
};

/// A hand-written way with low cost: a timer whose handler cancels the operation, and a state that
/// the two share, because either may end last.
struct asio_by_hand {
    static constexpr bool of_asio = true;

    struct state {
        explicit state(const asio::any_io_executor& ex) : timer(ex) {}

        asio::steady_timer timer;
        asio::cancellation_signal signal;
        bool over = false;
    };

    static std::shared_ptr<state> begin(const asio::any_io_executor& ex) {
        auto shared = std::make_shared<state>(ex);
        shared->timer.expires_after(limit);
        shared->timer.async_wait([shared](const error_code& ec) {
            if (!ec && !shared->over)
                shared->signal.emit(asio::cancellation_type::terminal);
        });
        return shared;
    }

    static void end(state& shared) {
        shared.over = true;
        shared.timer.cancel();
    }

    template <class Operation>
    static asio::awaitable<std::size_t> once(Operation& op, const asio::any_io_executor& ex) {
        const auto shared = begin(ex);
        const auto n =
            co_await op(asio::bind_cancellation_slot(shared->signal.slot(), asio::use_awaitable));
        end(*shared);
        co_return n;
    }

    template <class Operation, class Handler>
    static void start(Operation& op, const asio::any_io_executor& ex, Handler handler) {
        const auto shared = begin(ex);
        op(asio::bind_cancellation_slot(
            shared->signal.slot(),
            [shared, handler = std::move(handler)](const error_code& ec, std::size_t n) mutable {
                end(*shared);
                std::move(handler)(ec, n);
            }));
    }
};

/// Calls Way::once() or Way::start() with the arguments that it takes.
template <class Way>
class caller {
public:
    explicit caller(const asio::any_io_executor& ex) : ex_(ex), timer_(ex), pawl_timer_(ex) {}

    template <class Operation>
    asio::awaitable<std::size_t> operator()(Operation& op) {
        if constexpr (requires { Way::once(op, timer_); })
            return Way::once(op, timer_);
        else if constexpr (requires { Way::once(op, pawl_timer_); })
            return Way::once(op, pawl_timer_);
        else if constexpr (requires { Way::once(op, ex_); })
            return Way::once(op, ex_);
        else
            return Way::once(op);
    }

    template <class Operation, class Handler>
    void start(Operation& op, Handler handler) {
        if constexpr (requires { Way::start(op, pawl_timer_, handler); })
            Way::start(op, pawl_timer_, std::move(handler));
        else if constexpr (requires { Way::start(op, ex_, handler); })
            Way::start(op, ex_, std::move(handler));
        else
            Way::start(op, std::move(handler));
    }

private:
    asio::any_io_executor ex_;
    asio::steady_timer timer_;
    pawl::steady_timer pawl_timer_;
};

} // namespace bench

#endif // PAWL_BENCH_TIMEOUT_OPERATIONS_HPP
