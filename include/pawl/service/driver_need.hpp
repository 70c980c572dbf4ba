// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// What a shard says of its need for the driver, without knowing it.
#ifndef PAWL_SERVICE_DRIVER_NEED_HPP
#define PAWL_SERVICE_DRIVER_NEED_HPP

namespace pawl::detail {

/// Whom the driver is needed for.
enum class driver_need {
    nobody,
    soon,    ///< somebody who is about to queue a unit: until that is done, the driver comes again
    in_time, ///< armed waits
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_DRIVER_NEED_HPP
