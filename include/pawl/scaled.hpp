// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::scaled: a duration that the pressure of a context chooses.
#ifndef PAWL_SCALED_HPP
#define PAWL_SCALED_HPP

#include <pawl/config.hpp>

#include <pawl/detail/time/durations.hpp>

#include <chrono>

namespace pawl {

namespace detail {
template <class Clock>
struct limit_within;
} // namespace detail

/// `max` at pressure 0, `min` at pressure 1, and between them in proportion. In place of a duration
/// as a limit, and as stream_limits::idle. See pawl::pressure, whose header it needs.
struct scaled {
    /// @throws std::invalid_argument if `most < least`, or one of them is not a number.
    constexpr scaled(detail::saturated<std::chrono::nanoseconds> least,
                     detail::saturated<std::chrono::nanoseconds> most)
        : min(least), max(most) {
        time::detail::require_range(min, max);
    }

    /// @cond
    template <class Clock>
    [[nodiscard]] constexpr auto limit() const noexcept {
        static_assert(
            requires { sizeof(detail::limit_within<Clock>); },
            "pawl: a scaled limit needs <pawl/pressure.hpp>");
        return detail::limit_within<Clock>{min, max};
    }
    /// @endcond

    const std::chrono::nanoseconds min; ///< As given.
    const std::chrono::nanoseconds max; ///< As given.
};

} // namespace pawl

#endif // PAWL_SCALED_HPP
