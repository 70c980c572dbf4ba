// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Counts the mutexes that each thread locks: who counts what it does can tell one hold from the next.
//   For one translation unit of a program only, and not for ThreadSanitizer, which has that function.

#ifndef PAWL_TEST_SUPPORT_COUNTED_LOCKS_HPP
#define PAWL_TEST_SUPPORT_COUNTED_LOCKS_HPP

#include <dlfcn.h>
#include <pthread.h>

#include <cstddef>

namespace counted_locks {

inline thread_local std::size_t taken = 0; ///< by this thread

} // namespace counted_locks

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    using function = int (*)(pthread_mutex_t*);
    static const auto lock = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    ++counted_locks::taken;
    return lock(mutex);
}

#endif // PAWL_TEST_SUPPORT_COUNTED_LOCKS_HPP
