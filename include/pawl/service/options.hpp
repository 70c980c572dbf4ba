// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Options of the timer service of one execution context. The defaults need no reading.
#ifndef PAWL_SERVICE_OPTIONS_HPP
#define PAWL_SERVICE_OPTIONS_HPP

#include <pawl/config.hpp>

#include <pawl/time/duration_text.hpp>
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
    /// Their handlers are invoked on the thread that destroys the context, and not through their
    /// executors, which run nothing any more: with `operation_aborted`, or, if they had ended and only
    /// their handlers had not begun, with what they had ended with. Such a handler must not throw.
    deliver,
};

/// What becomes of a wait for which its ring has no room.
enum class ring_overflow {
    /// The ring takes twice the memory, from the global heap. One of 2^31 slots cannot, and does as
    /// with `reject`.
    grow,
    /// async_wait() completes with `boost::asio::error::no_buffer_space`; a re-arm throws a
    /// `boost::system::system_error` with that code, and moves nothing.
    reject,
    /// The wait completes with success at once, before its expiry.
    expire_now,
    /// The oldest wait in the ring completes with success at once, before its expiry.
    flush_oldest,
};

/// The rings of ring_timer.
struct ring_options {
    /// One delay.
    struct ring {
        /// The delay of its timers, 1 ns to 10 years; rounded up to whole options::precision.
        std::chrono::nanoseconds delay{};

        /// How many slots it has to begin with, 1 to 2^31; per shard. A timer takes at most one for
        /// each period (see `marks`) in which it is started or moved, until that is over: one that is
        /// moved all the time has up to `marks` + 1.
        std::size_t capacity = 1024;
    };

    /// At most 1000, each delay once.
    std::vector<ring> delays;

    /// k: the delay is divided into so many periods, 1 to 1024. A timer expires within `delay` to
    /// `delay + delay / k` and one options::precision.
    unsigned marks = 8;

    /// What becomes of a wait for which there is no room.
    ring_overflow when_full = ring_overflow::grow;

    /// Whether a delay that no ring has is served by the ring with the next longer one. If not, it
    /// is an error.
    bool round_up = false;
};

/// Options of a timer service. Pass them to make_timer_service() before the first timer of the
/// context is made.
struct options {
    /// Length of a tick, 1 ns to 1 h. A wait completes at most this much late, plus the load.
    /// Longer ticks gather more expiries into one wake-up. Clocks with coarser units round it up to
    /// one unit.
    std::chrono::nanoseconds precision = std::chrono::milliseconds(1);

    /// Bits per level of the timing wheel, lowest level first; 2^bits slots each. The last one is
    /// repeated until 64 bits are covered. Fewer bits save memory, more bits save moves.
    time::geometry level_bits = {};

    /// Number of shards, 1 to 256; or 0: one for each thread that makes timers, up to the number of
    /// processors, made when the thread makes its first one. Each has its own lock and wheel; a timer
    /// belongs to the one of the thread that makes it. More than one lets threads run side by side. Start
    /// order among equal deadlines (P7) then holds per shard.
    unsigned shards = 1;

    /// How many timers may be moved or collected while a lock is held, 1 to 65536.
    unsigned batch_limit = 256;

    /// How many completions may run in one run_one() unit, 1 to 64. One is Asio's behaviour. More
    /// cost less each, and I/O that is ready waits for that many handlers;
    /// a handler that blocks, or that runs the context itself, holds up the others of its unit.
    unsigned completions_per_turn = 1;

    /// false promises that one thread at a time uses the context and all its timers: no locks are
    /// taken.
    bool locking = true;

    /// What happens to pending waits when the context is destroyed.
    shutdown_policy on_shutdown = shutdown_policy::destroy;

    /// For the service of ring_timer; others have no rings.
    ring_options rings = {};
};

namespace detail {

inline constexpr unsigned most_shards = 256; ///< of options::shards

/// @throws std::invalid_argument that names the option, its value and the allowed range.
template <class = void> // who makes no timer need not compile it
void validate(const options& o) {
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
}

} // namespace detail
} // namespace pawl

#endif // PAWL_SERVICE_OPTIONS_HPP
