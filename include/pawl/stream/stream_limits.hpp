// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// What a pawl::timeout_stream is told about its limits.
#ifndef PAWL_STREAM_STREAM_LIMITS_HPP
#define PAWL_STREAM_STREAM_LIMITS_HPP

#include <chrono>

namespace pawl {

/// What a limit that expires does.
enum class on_limit {
    close,  ///< closes the next layer, as Beast does; what is pending ends with it
    cancel, ///< cancels what the limit is for; the stream can go on
};

/// What an operation that a limit has ended reports.
enum class limit_error {
    beast_timeout, ///< `boost::beast::error::timeout`
    timed_out,     ///< `pawl::error::timed_out`
};

/// The limits of a pawl::timeout_stream. `duration::max()` is no limit; zero and less is none of the
/// time. They are nanoseconds: what does not fit, such as `std::chrono::hours::max()`, overflows before
/// it comes here, as with any `std::chrono` conversion; say `stream_limits::none`.
struct stream_limits {
    using duration = std::chrono::nanoseconds;
    static constexpr duration none = duration::max();

    duration idle = none;      ///< between two bytes, in whichever direction
    duration read = none;      ///< for one async_read_some()
    duration write = none;     ///< for one async_write_some()
    duration handshake = none; ///< for one async_connect(), and from limit_handshake() on
    on_limit action = on_limit::close;
    limit_error report = limit_error::beast_timeout;
};

} // namespace pawl

#endif // PAWL_STREAM_STREAM_LIMITS_HPP
