// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// What is allocated and not kept for later, so that a leak shows.
#ifndef PAWL_TEST_FAULT_LIVE_BLOCKS_HPP
#define PAWL_TEST_FAULT_LIVE_BLOCKS_HPP

#include <pawl/wait/wait_allocator.hpp>

#include "service/counted_new.hpp"

#include <cstddef>

namespace fault {

/// Also gives back what this thread keeps for waits, so that they have to allocate.
[[nodiscard]] inline std::size_t live_blocks() {
    pawl::detail::block_cache::clear();
    return counted_new::live;
}

} // namespace fault

#endif // PAWL_TEST_FAULT_LIVE_BLOCKS_HPP
