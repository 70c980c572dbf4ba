// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The libraries and settings under comparison, behind one interface: a timer type, how its
///   service is set up, and how a server pushes a deadline back. All use their default executor,
///   any_io_executor.
#ifndef PAWL_BENCH_LIBRARIES_HPP
#define PAWL_BENCH_LIBRARIES_HPP

#include "harness.hpp"

#include <pawl/coarse_timer.hpp>
#include <pawl/compact_timer.hpp>
#include <pawl/ring_timer.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timer_service.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

namespace bench {

namespace asio = boost::asio;
using boost::system::error_code;
using clock = std::chrono::steady_clock;

/// The counts of the handlers that ran in this thread.
inline constinit thread_local checksum seen;

/// The handler of every wait: as large as the usual lambda that captures `this`. It only touches
/// `seen`, so that the timer is measured and not the work of the handler.
inline auto note_completion(std::size_t id) {
    return [id](const error_code& error) noexcept {
        ++(error ? seen.cut_short : seen.expired);
        seen.ids += id + 1;
    };
}

/// boost::asio::steady_timer: a heap per context; a deadline is moved by aborting the wait and
/// starting another one.
struct asio_steady {
    using timer = asio::steady_timer;

    static void set_up(asio::io_context&) {}

    static void push_back(timer& t, clock::duration timeout, std::size_t id) {
        t.expires_after(timeout);
        t.async_wait(note_completion(id));
    }
};

/// pawl::steady_timer with default options.
struct pawl_default {
    using timer = pawl::steady_timer;

    static void set_up(asio::io_context&) {}

    static void push_back(auto& t, clock::duration timeout, std::size_t id) {
        const auto moved = t.rearm_after(timeout);
        seen.cut_short += moved;
        seen.ids += moved * (id + 1);
    }
};

/// The same, more precise than the default's 1 ms.
template <int Microseconds>
struct pawl_to : pawl_default {
    static void set_up(asio::io_context& io) {
        pawl::options o;
        o.precision = std::chrono::microseconds(Microseconds);
        pawl::make_timer_service(io, o);
    }
};

/// For a context that one thread runs and that prefers throughput to fairness.
struct pawl_64 : pawl_default {
    static void set_up(asio::io_context& io) {
        pawl::options o;
        o.completions_per_turn = 64;
        o.locking = false;
        pawl::make_timer_service(io, o);
    }
};

/// For a context that several threads run: each makes its timers in a shard of its own.
struct pawl_two_shards : pawl_default {
    static void set_up(asio::io_context& io) {
        pawl::options o;
        o.shards = 2;
        pawl::make_timer_service(io, o);
    }
};

/// With a pawl::event_feed whose reader, in another thread, reads all events.
struct pawl_read : pawl_default {
    static void set_up(asio::io_context& io);
};

/// On the coarse clock. Only setting a deadline reads the clock.
struct pawl_coarse : pawl_default {
    using timer = pawl::coarse_timer;
};

/// On the binary wheel.
struct pawl_compact : pawl_default {
    using timer = pawl::compact_timer;
};

/// In rings, one for each delay that a workload has.
struct pawl_ring : pawl_default {
    using timer = pawl::ring_timer;

    static void set_up(asio::io_context& io) {
        using namespace std::chrono_literals;
        pawl::options o;
        o.rings.delays = {{.delay = 2s}, {.delay = 30s}, {.delay = 300s}};
        pawl::make_timer_service<timer>(io, o);
    }
};

/// No library: the cost of moving a deadline in memory. As large as a pawl::steady_timer; it reads
/// one word, writes one word, and reads the clock. Its waits never expire.
struct bare_deadline {
    class timer {
        using handler = decltype(note_completion(0));

    public:
        explicit timer(asio::io_context&) noexcept {}

        void expires_after(clock::duration timeout) noexcept { expiry_ = clock::now() + timeout; }
        void async_wait(const handler& h) noexcept {
            std::construct_at(&handler_, h);
            waits_ = 1;
        }
        std::size_t rearm_after(clock::duration timeout) noexcept {
            __builtin_prefetch(this, 1); // before the clock, which waits for earlier reads
            expires_after(timeout);
            return waits_;
        }
        void cancel() noexcept {
            if (std::exchange(waits_, 0) != 0)
                handler_(asio::error::operation_aborted);
        }

    private:
        clock::time_point expiry_;
        std::size_t waits_ = 0;
        handler handler_ = note_completion(0);
        [[maybe_unused]] std::byte
            rest_[sizeof(pawl::steady_timer) - 2 * sizeof(std::size_t) - sizeof(handler)]{};
    };
    static_assert(sizeof(timer) == sizeof(pawl::steady_timer));

    static void set_up(asio::io_context&) {}
    static void push_back(timer& t, clock::duration timeout, std::size_t id) {
        pawl_default::push_back(t, timeout, id);
    }
};

} // namespace bench

#endif // PAWL_BENCH_LIBRARIES_HPP
