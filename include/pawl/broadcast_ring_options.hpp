// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// The policies of a pawl::broadcast_ring.
#ifndef PAWL_BROADCAST_RING_OPTIONS_HPP
#define PAWL_BROADCAST_RING_OPTIONS_HPP

#include <pawl/config.hpp>

namespace pawl {

/// What happens to a new message if a slow reader leaves no room for it.
enum class slow_readers {
    lag,      ///< the oldest message is overwritten; the slow reader learns how many it missed
    drop_new, ///< the new message is dropped, and counted by the ring
    block,    ///< the writer waits until there is room
};

/// How many threads write at the same time.
enum class ring_writers {
    many, ///< any number, each with its own ring handle or with a shared one
    one,  ///< one at a time; writing needs no compare-exchange
};

} // namespace pawl

#endif // PAWL_BROADCAST_RING_OPTIONS_HPP
