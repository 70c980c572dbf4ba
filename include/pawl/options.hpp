// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::options: the settings of one timer service. The defaults suit most programs.
///
/// CONTRIBUTING.md says what a new option needs.
#ifndef PAWL_OPTIONS_HPP
#define PAWL_OPTIONS_HPP

#include <pawl/config.hpp>

#include <pawl/detail/time/durations.hpp>
#include <pawl/time/geometry.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace pawl {

/// What happens to pending waits when their execution context is destroyed.
enum class shutdown_policy {
    /// Their handlers are destroyed and not invoked, as Asio does.
    destroy,
    /// Their handlers are invoked on the thread that destroys the context, because their executors
    /// no longer run anything. A wait that had already ended reports its own result; every other
    /// wait reports `operation_aborted`. The handlers must not throw.
    deliver,
};

/// What happens to a wait if its ring is full.
enum class ring_overflow {
    /// The ring doubles its memory, from the global heap. A ring of 2^31 slots cannot grow and
    /// behaves as with `reject`.
    grow,
    /// async_wait() completes with `boost::asio::error::no_buffer_space`. A re-arm throws a
    /// `boost::system::system_error` with that code and moves nothing.
    reject,
    /// The wait completes with success immediately, before its expiry.
    expire_now,
    /// The oldest wait in the ring completes with success immediately, before its expiry.
    flush_oldest,
};

/// The rings of pawl::ring_timer.
struct ring_options {
    /// One ring.
    struct ring {
        /// Delay of the timers in this ring: 1 ns to 10 years, rounded up to a multiple of
        /// options::precision.
        std::chrono::nanoseconds delay{};

        /// Initial number of slots per shard, 1 to 2^31. A timer takes at most one slot in each
        /// period (see `marks`) in which it is started or moved, and frees it when the delay has
        /// passed. A timer that is moved all the time holds up to `marks` + 1 slots.
        std::size_t capacity = 1024;
    };

    /// The rings: at most 1000, with distinct delays.
    std::vector<ring> delays;

    /// Number of periods that a delay is divided into, 1 to 1024. A timer expires between `delay`
    /// and `delay + delay / marks`, plus one options::precision.
    unsigned marks = 8;

    /// What happens to a wait if its ring is full.
    ring_overflow when_full = ring_overflow::grow;

    /// If true, a delay without a ring of its own uses the ring with the next longer delay. If
    /// false, such a delay is an error.
    bool round_up = false;
};

/// Options of a timer service. Pass them to make_timer_service() before you make the first timer of
/// the context.
struct options {
    /// Length of a tick, 1 ns to 1 h. A wait completes at most one tick late, plus the time that
    /// the executor takes. Longer ticks put more expiries into one wake-up. A clock with coarser
    /// units rounds the precision up to one unit.
    std::chrono::nanoseconds precision = std::chrono::milliseconds(1);

    /// Bits per level of the timing wheel, lowest level first. A level has 2^bits slots. The last
    /// value is repeated until the levels cover 64 bits. Fewer bits save memory; more bits save
    /// moves between levels.
    time::geometry level_bits = {};

    /// Number of shards, 1 to 256. A shard has its own lock and its own wheel; a timer belongs to
    /// the shard of the thread that makes it. With 0, each thread that makes timers gets a shard
    /// when it makes its first timer, up to the number of processors. Several shards let threads
    /// run in parallel. The order among equal deadlines (P7 in doc/guarantees.md) then holds per
    /// shard.
    unsigned shards = 1;

    /// Maximum number of timers that are moved or collected under one hold of a lock, 1 to 65536.
    unsigned batch_limit = 256;

    /// Maximum number of completions in one run_one() unit, 1 to 64. With 1, as in Asio, each
    /// completion is a unit, except in a context that is behind (P6). More completions per unit
    /// cost less each, but ready I/O waits for all of them. A handler that blocks, or that runs the
    /// context itself, delays the others of its unit.
    unsigned completions_per_turn = 1;

    /// If false, shards and drivers take no locks. The program then promises that only one thread
    /// at a time uses the context and its timers.
    bool locking = true;

    /// Maximum number of pending waits, at least 1, in all shards together. By default there is no
    /// bound. A wait of a timer, a limit, a stream or an interval counts until its handler begins,
    /// an alarm while it is armed or due. What would exceed the bound is refused:
    /// async_wait() completes with `boost::asio::error::no_buffer_space`; an operation under a limit
    /// is not started, and completes with that error; arming an alarm returns false. Moving,
    /// cancelling and expiring is never refused. A refused wait does not count.
    std::size_t max_pending = no_bound;

    static constexpr std::size_t no_bound = ~std::size_t{0}; ///< the default of max_pending

    /// What happens to pending waits when the context is destroyed.
    shutdown_policy on_shutdown = shutdown_policy::destroy;

    /// Rings for pawl::ring_timer. Other services ignore them.
    ring_options rings = {};
};

namespace detail {

inline constexpr unsigned most_shards = 256; ///< upper limit of options::shards

/// @return `o`
/// @throws std::invalid_argument that names the option, its value and the allowed range.
template <class = void> // a template, so that a program without timers does not compile it
const options& validated(const options& o) {
    using std::chrono::nanoseconds;
    const auto text = [](auto value) {
        if constexpr (std::is_same_v<decltype(value), nanoseconds>)
            return time::detail::text_of(value);
        else
            return std::to_string(value);
    };
    const auto check = [text](const char* name, auto value, auto low, auto high) {
        if (value < low || value > high)
            throw std::invalid_argument(std::string("pawl::options::") + name + " is " +
                                        text(value) + "; it must be between " + text(low) +
                                        " and " + text(high));
    };
    check("precision", o.precision, nanoseconds(1), nanoseconds(std::chrono::hours(1)));
    if (o.level_bits.width() != 64)
        throw std::invalid_argument("pawl::options::level_bits covers " +
                                    std::to_string(o.level_bits.width()) +
                                    " bits; it must cover 64: leave the width out");
    check("shards", o.shards, 0u, most_shards);
    check("batch_limit", o.batch_limit, 1u, 65536u);
    check("completions_per_turn", o.completions_per_turn, 1u, 64u);
    check("max_pending", o.max_pending, std::size_t{1}, options::no_bound);
    if (o.on_shutdown != shutdown_policy::destroy && o.on_shutdown != shutdown_policy::deliver)
        throw std::invalid_argument("pawl::options::on_shutdown must be destroy or deliver");

    check("rings.marks", o.rings.marks, 1u, 1024u);
    check("rings.delays.size()", o.rings.delays.size(), std::size_t{0}, std::size_t{1000});
    if (o.rings.when_full < ring_overflow::grow || o.rings.when_full > ring_overflow::flush_oldest)
        throw std::invalid_argument("pawl::options::rings.when_full must be grow, reject, "
                                    "expire_now or flush_oldest");
    for (auto r = o.rings.delays.begin(); r != o.rings.delays.end(); ++r) {
        check("rings.delays[].delay", r->delay, nanoseconds(1),
              nanoseconds(std::chrono::years(10)));
        check("rings.delays[].capacity", r->capacity, std::size_t{1}, std::size_t{1} << 31);
        if (std::any_of(o.rings.delays.begin(), r,
                        [r](const ring_options::ring& q) { return q.delay == r->delay; }))
            throw std::invalid_argument("pawl::options::rings.delays has the delay " +
                                        text(r->delay) + " twice; each must be there once");
    }
    return o;
}

} // namespace detail
} // namespace pawl

#endif // PAWL_OPTIONS_HPP
