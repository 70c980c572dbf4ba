// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::stream_limits: the limits of a pawl::timeout_stream.
#ifndef PAWL_STREAM_LIMITS_HPP
#define PAWL_STREAM_LIMITS_HPP

#include <pawl/config.hpp>

#include <chrono>

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

/// The limits of a pawl::timeout_stream. `duration::max()` means no limit; zero or less means that
/// the limit has passed at once. The unit is nanoseconds: a larger duration, such as
/// `std::chrono::hours::max()`, overflows in the conversion, as with any `std::chrono` type. Use
/// `stream_limits::none` instead.
struct stream_limits {
    using duration = std::chrono::nanoseconds;
    static constexpr duration none = duration::max();

    duration idle = none;      ///< between two bytes, in either direction
    duration read = none;      ///< for one async_read_some()
    duration write = none;     ///< for one async_write_some()
    duration handshake = none; ///< for one async_connect(), and for limit_handshake()
    on_limit action = on_limit::close;
    limit_error report = limit_error::beast_timeout;
};

} // namespace pawl

#endif // PAWL_STREAM_LIMITS_HPP
