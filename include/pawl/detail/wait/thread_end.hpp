// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Tells a cache that its thread ends. C++ has thread-local objects with destructors for this,
///   but C libraries allocate when such a destructor is registered, and glibc ends the process if
///   there is no memory. POSIX reports it. Not on Apple's systems: they keep thread-local
///   variables under keys, too, and free them before the keys of the program are looked at.
///
/// Threads
///   Each thread calls its own function. When the program exits, or unloads the shared library that
///   this is part of, only the thread that does so: what other threads keep is lost.
#ifndef PAWL_DETAIL_WAIT_THREAD_END_HPP
#define PAWL_DETAIL_WAIT_THREAD_END_HPP

#include <pawl/config.hpp>

#if PAWL_DETAIL_POSIX && !defined(__APPLE__)
#define PAWL_KEYS_TELL
#include <atomic>

#include <pthread.h>
#endif

namespace pawl::detail {

/// @tparam Cache has `static void thread_ends() noexcept`.
template <class Cache>
class thread_end {
public:
    /// Has Cache::thread_ends() called when this thread ends.
    /// @return false if it will not be called: out of memory, or out of POSIX keys.
    [[nodiscard]] static bool expect() noexcept {
#if defined(PAWL_KEYS_TELL)
        return valid_.load(std::memory_order_relaxed) && pthread_setspecific(key_, &owner_) == 0;
#else
        static thread_local const at_thread_end end;
        end.touch();
        return true;
#endif
    }

private:
#if defined(PAWL_KEYS_TELL)
    // Not members of key_owner: its destructor changes valid_, and compilers drop stores to an
    // object that ends.
    static inline constinit std::atomic<bool> valid_{false};
    static inline pthread_key_t key_;

    struct key_owner {
        key_owner() noexcept {
            const auto end = [](void*) { Cache::thread_ends(); };
            valid_.store(pthread_key_create(&key_, end) == 0, std::memory_order_relaxed);
        }
        key_owner& operator=(key_owner&&) = delete;
        /// In the thread that exits or unloads: its keys are not looked at any more.
        ~key_owner() {
            if (!valid_.exchange(false, std::memory_order_relaxed))
                return;
            if (pthread_getspecific(key_))
                Cache::thread_ends();
            pthread_key_delete(key_);
        }
    };

    // Made first, and thus destroyed last: Asio's system_context, which it makes before main(), too,
    // is destroyed earlier, and the threads that end with it have their caches emptied.
    [[gnu::init_priority(1000)]] static inline const key_owner owner_;
#else
    struct at_thread_end {
        void touch() const noexcept {}
        ~at_thread_end() { Cache::thread_ends(); }
    };
#endif
};

} // namespace pawl::detail

#undef PAWL_KEYS_TELL

#endif // PAWL_DETAIL_WAIT_THREAD_END_HPP
