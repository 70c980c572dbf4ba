// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::stream_limits: the limits of a pawl::timeout_stream.
#ifndef PAWL_STREAM_LIMITS_HPP
#define PAWL_STREAM_LIMITS_HPP

#include <pawl/config.hpp>

#include <pawl/scaled.hpp>

#include <pawl/detail/time/durations.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>

namespace pawl {

/// What happens when a limit expires.
enum class on_limit {
    close,  ///< closes the next layer, as Beast does; pending operations end
    cancel, ///< cancels the operations under the limit; the stream stays usable
};

/// The error that an operation reports if a limit ended it.
enum class limit_error {
    beast_timeout, ///< `boost::beast::error::timeout`
    timed_out,     ///< `pawl::error::timed_out`
};

/// The least rate at which the peer must send, and receive, while a transfer is under way. Ends
/// clients that drip: they keep a connection busy with a byte now and then.
///
/// Each direction is measured for itself. A transfer ends when bytes move in the other direction.
/// What is received is a transfer from its first byte on, not in the silence before a request; what
/// is sent, from the first write. Only the time of pending operations counts, and `grace` of it is
/// free. Each byte adds `1 s / bytes_per_second`, up to `grace` again. When it is used up, the
/// pending operation has reached a limit. So a peer that keeps the rate over each `grace` is never
/// ended.
///
/// A peer that pauses within a transfer for longer than `grace` is: set this for protocols of
/// requests and responses, or while a message is incomplete. A write makes progress when the kernel
/// has room again: `grace` must allow the peer to take a third of the send buffer.
///
/// After Apache's RequestReadTimeout and Kestrel's MinDataRate.
struct min_rate {
    std::uint64_t bytes_per_second = 0;                                          ///< 0 is no limit
    detail::saturated<std::chrono::nanoseconds> grace = std::chrono::seconds(5); ///< above 0
};

/// A limit for silence: a duration, or pawl::scaled. `scaled(10s, stream_limits::none)` applies under
/// pressure only.
struct idle_limit : detail::saturated<std::chrono::nanoseconds> {
    /// That duration, at each pressure.
    template <std::convertible_to<detail::saturated<std::chrono::nanoseconds>> Duration>
    constexpr idle_limit(const Duration& d) : saturated(d) {}
    /// Between two durations.
    constexpr idle_limit(const scaled& s) noexcept
        : saturated(std::max(s.max, zero())),
          shorter(std::max(s.max, zero()) - std::max(s.min, zero())) {}

    /// The limit at pressure 1.
    [[nodiscard]] constexpr std::chrono::nanoseconds least() const noexcept {
        return *this <= shorter ? zero() : *this - shorter;
    }

    /// How much pressure takes from it. Not the rest, so that what changes the duration by a
    /// reference to its base, as `*= 2` does, leaves a plain limit plain.
    std::chrono::nanoseconds shorter{};
};

/// The limits of a pawl::timeout_stream, as nanoseconds, converted from any duration. `none`, or
/// more than that, means no limit; zero or less means that the limit has passed at once.
/// @throws std::invalid_argument in the conversion, if a duration is not a number.
struct stream_limits {
    using duration = detail::saturated<std::chrono::nanoseconds>;
    static constexpr std::chrono::nanoseconds none = std::chrono::nanoseconds::max();

    idle_limit idle = none;    ///< between two bytes, in either direction; may be pawl::scaled
    duration read = none;      ///< for one async_read_some()
    duration write = none;     ///< for one async_write_some()
    duration handshake = none; ///< for one async_connect(), and for limit_handshake()
    pawl::min_rate min_rate{}; ///< while bytes are to move
    on_limit action = on_limit::close;
    limit_error report = limit_error::beast_timeout;
};

} // namespace pawl

#endif // PAWL_STREAM_LIMITS_HPP
