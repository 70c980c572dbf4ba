// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Thread-local objects with destructors, for threads that are out of memory: C libraries allocate
///   when such a destructor is registered, and glibc ends the process if it cannot.
#ifndef PAWL_WAIT_THREAD_END_HPP
#define PAWL_WAIT_THREAD_END_HPP

#include <cstdlib>

namespace pawl::detail {

/// Whether there is memory to register the destructor of a thread-local object, which is some 30
/// bytes. To be called before, once per thread.
[[nodiscard]] inline bool can_register_thread_end() noexcept {
    // Larger than the blocks that malloc sets aside for requests of the same size once they are
    // freed: calloc() finds no memory there.
    void* const probe = std::malloc(4096);
    std::free(probe);
    return probe != nullptr;
}

} // namespace pawl::detail

#endif // PAWL_WAIT_THREAD_END_HPP
