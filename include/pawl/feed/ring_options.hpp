// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// What users choose of a pawl::broadcast_ring.
#ifndef PAWL_FEED_RING_OPTIONS_HPP
#define PAWL_FEED_RING_OPTIONS_HPP

#include <pawl/config.hpp>

namespace pawl {

/// What happens to a message for which there is no room, because a reader is slow.
enum class slow_readers {
    lag,      ///< the oldest message is overwritten: a slow reader is told how many it has missed
    drop_new, ///< the new message is dropped, and counted by the ring
    block,    ///< the writer waits until there is room
};

/// How many threads write at the same time.
enum class ring_writers {
    many, ///< any number, each with a ring handle of its own or sharing one
    one,  ///< one at a time: no compare-exchange in writing
};

} // namespace pawl

#endif // PAWL_FEED_RING_OPTIONS_HPP
