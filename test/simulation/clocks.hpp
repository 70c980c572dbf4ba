// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The clocks of a simulation, and the kinds of timers on them.

#ifndef PAWL_TEST_SIMULATION_CLOCKS_HPP
#define PAWL_TEST_SIMULATION_CLOCKS_HPP

#include "simulation/virtual_time.hpp"

#include <pawl/coarse_timer.hpp>
#include <pawl/compact_timer.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/ring_timer.hpp>
#include <pawl/steady_timer.hpp>

#include <pawl/on_backend.hpp>

#include <pawl/time/binary_wheel.hpp>

#include <boost/asio/wait_traits.hpp>

#include <chrono>
#include <cstdint>
#include <limits>

namespace simulation {

inline constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t earliest = std::numeric_limits<std::int64_t>::min();

constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) noexcept {
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    return b > 0 ? latest : earliest;
}
constexpr std::int64_t saturating_subtract(std::int64_t a, std::int64_t b) noexcept {
    std::int64_t difference = 0;
    if (!__builtin_sub_overflow(a, b, &difference))
        return difference;
    return b < 0 ? latest : earliest;
}

/// A clock that follows the steady clock, and is ahead of it by `ahead`, in its own unit.
/// @tparam Tag distinguishes clocks.
template <int Tag, class Unit, bool Steady>
struct shifted_clock {
    using duration = std::chrono::duration<std::int64_t, Unit>;
    using rep = std::int64_t;
    using period = Unit;
    using time_point = std::chrono::time_point<shifted_clock>;
    static constexpr bool is_steady = Steady;

    static inline std::int64_t ahead = 0;

    static time_point now() noexcept {
        using from = std::chrono::nanoseconds;
        return time_point(duration(saturating_add(
            std::chrono::floor<duration>(from(virtual_time::steady)).count(), ahead)));
    }
};

using set_clock = shifted_clock<0, std::nano, false>;        ///< may be set at any time
using set_milli_clock = shifted_clock<1, std::milli, false>; ///< the same, with a coarse unit
using edge_clock = shifted_clock<2, std::nano, true>;        ///< steady, but anywhere in its range

/// A clock of a user's tests: it stands still until it is set.
struct mock_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<mock_clock>;
    static constexpr bool is_steady = false;

    static inline std::int64_t reading = 0;

    static time_point now() noexcept { return time_point(duration(reading)); }
};

/// How the traits of mock_clock wait for it.
enum class mock_wait { zero, one, negative, shortest, longest, honest };

struct mock_traits {
    static inline mock_wait mode = mock_wait::zero;

    static mock_clock::duration to_wait_duration(const mock_clock::duration& d) {
        using duration = mock_clock::duration;
        switch (mode) {
        case mock_wait::zero:
            return duration(0);
        case mock_wait::one:
            return duration(1);
        case mock_wait::negative:
            return duration(-1'000'000);
        case mock_wait::shortest:
            return duration::min();
        case mock_wait::longest:
            return duration::max();
        case mock_wait::honest:
            break;
        }
        return d;
    }
    static mock_clock::duration to_wait_duration(const mock_clock::time_point& t) {
        return to_wait_duration(t - mock_clock::now());
    }
};

/// The kinds of timers. `each_kind` has them all with their types.
enum class kind : std::uint8_t {
    steady,
    compact,
    ring,
    set,
    set_binary,
    set_milli,
    mock,
    manual,
    edge,
    edge_ring,
    coarse,
};
inline constexpr int kinds = 11;

namespace detail {

using boost::asio::wait_traits;
template <class Clock, class Backend>
using timer_on = pawl::basic_waitable_timer<Clock, pawl::on_backend<Backend, wait_traits<Clock>>>;

template <kind K>
struct timer_of;
template <>
struct timer_of<kind::steady> {
    using type = pawl::steady_timer;
};
template <>
struct timer_of<kind::compact> {
    using type = pawl::compact_timer;
};
template <>
struct timer_of<kind::ring> {
    using type = pawl::ring_timer;
};
template <>
struct timer_of<kind::set> {
    using type = pawl::basic_waitable_timer<set_clock>;
};
template <>
struct timer_of<kind::set_binary> {
    using type = timer_on<set_clock, pawl::time::binary_wheel>;
};
template <>
struct timer_of<kind::set_milli> {
    using type = pawl::basic_waitable_timer<set_milli_clock>;
};
template <>
struct timer_of<kind::mock> {
    using type = pawl::basic_waitable_timer<mock_clock, mock_traits>;
};
template <>
struct timer_of<kind::manual> {
    using type = pawl::manual_timer;
};
template <>
struct timer_of<kind::edge> {
    using type = pawl::basic_waitable_timer<edge_clock>;
};
template <>
struct timer_of<kind::edge_ring> {
    using type = timer_on<edge_clock, pawl::time::timeout_rings>;
};
template <>
struct timer_of<kind::coarse> {
    using type = pawl::coarse_timer;
};

} // namespace detail

template <kind K>
using timer_of = typename detail::timer_of<K>::type;

/// Calls `f.template operator()<K>()` for one kind that is known at run time.
template <int K = 0, class Function>
decltype(auto) with_kind(kind k, Function&& f) {
    if constexpr (K + 1 < kinds) {
        if (static_cast<int>(k) != K)
            return with_kind<K + 1>(k, f);
    }
    return f.template operator()<static_cast<kind>(K)>();
}

constexpr bool is_ring(kind k) noexcept { return k == kind::ring || k == kind::edge_ring; }
/// Whether its clock can be set back.
constexpr bool is_set(kind k) noexcept {
    return k == kind::set || k == kind::set_binary || k == kind::set_milli || k == kind::mock;
}

/// How much later than requested an expiry may be that is set as a duration from now.
constexpr std::int64_t slack_of(kind k) noexcept {
    return k == kind::coarse ? 3 * virtual_time::coarse_resolution : 0;
}

/// Nanoseconds in one unit of its clock.
constexpr std::int64_t unit_of(kind k) noexcept { return k == kind::set_milli ? 1'000'000 : 1; }

inline std::int64_t now_of(kind k) {
    return with_kind(k, []<kind K>() -> std::int64_t {
        return timer_of<K>::clock_type::now().time_since_epoch().count();
    });
}

} // namespace simulation

#endif
