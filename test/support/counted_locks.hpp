// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Counts the locks of shards that each thread takes, so that a test can distinguish one hold from
//   the next. And lets a test intervene between two holds of one call. Include it before any header
//   of Pawl.

#ifndef PAWL_TEST_SUPPORT_COUNTED_LOCKS_HPP
#define PAWL_TEST_SUPPORT_COUNTED_LOCKS_HPP

#include <cstddef>
#include <functional>
#include <utility>

namespace counted_locks {

inline thread_local std::size_t taken = 0;               ///< by this thread
inline thread_local std::function<void()> between_holds; ///< called once, by this thread

inline void gives_way() {
    if (const auto f = std::exchange(between_holds, nullptr))
        f();
}

} // namespace counted_locks

#define PAWL_DETAIL_LOCK_TAKEN() (++counted_locks::taken)
#define PAWL_DETAIL_LOCK_GIVES_WAY() counted_locks::gives_way()

#endif // PAWL_TEST_SUPPORT_COUNTED_LOCKS_HPP
