// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Counts the locks of shards that each thread takes: who counts what it does can tell one hold from the
//   next. To be included before any header of Pawl.

#ifndef PAWL_TEST_SUPPORT_COUNTED_LOCKS_HPP
#define PAWL_TEST_SUPPORT_COUNTED_LOCKS_HPP

#include <cstddef>

namespace counted_locks {

inline thread_local std::size_t taken = 0; ///< by this thread

} // namespace counted_locks

#define PAWL_DETAIL_LOCK_TAKEN() (++counted_locks::taken)

#endif // PAWL_TEST_SUPPORT_COUNTED_LOCKS_HPP
