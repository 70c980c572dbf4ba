// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// The number of allocated blocks without cached ones, so that a leak shows.
#ifndef PAWL_TEST_FAULT_LIVE_BLOCKS_HPP
#define PAWL_TEST_FAULT_LIVE_BLOCKS_HPP

#include <pawl/detail/wait/wait_allocator.hpp>

#include "service/counted_new.hpp"

#include <cstddef>

namespace fault {

/// Also releases the memory that this thread caches for waits, so that they have to allocate.
[[nodiscard]] inline std::size_t live_blocks() {
    pawl::detail::block_cache::clear();
    return counted_new::live;
}

} // namespace fault

#endif // PAWL_TEST_FAULT_LIVE_BLOCKS_HPP
