// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// A mutex that a context for one thread switches off, and that a process of one thread does not
/// pay for.
#ifndef PAWL_SERVICE_OPTIONAL_MUTEX_HPP
#define PAWL_SERVICE_OPTIONAL_MUTEX_HPP

#include <mutex>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

namespace pawl::detail {

/// True if the process is sure to have one thread. Then no other can appear while a lock of ours is
/// held: no foreign code runs under it.
[[nodiscard]] inline bool single_threaded() noexcept {
#if __has_include(<sys/single_threaded.h>)
    return __libc_single_threaded;
#else
    return false;
#endif
}

/// `Mutex`, where it is needed.
template <class Mutex = std::mutex>
class optional_mutex {
public:
    explicit optional_mutex(bool enabled) noexcept : enabled_(enabled) {}

    void lock() {
        if (enabled_ && !single_threaded()) {
            mutex_.lock();
            locked_ = true;
        }
    }
    void unlock() {
        if (locked_) {
            locked_ = false;
            mutex_.unlock();
        }
    }

    /// spin_mutex::give_way()
    void give_way() const noexcept {
        if (enabled_)
            mutex_.give_way();
    }

    /// By the thread that has locked it: it excludes another thread.
    [[nodiscard]] bool held() const noexcept { return locked_; }

private:
    Mutex mutex_;
    const bool enabled_;
    bool locked_ = false; ///< what unlock() has to undo; guarded by the mutex
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_OPTIONAL_MUTEX_HPP
