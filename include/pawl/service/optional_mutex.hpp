// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// A mutex that a context for one thread switches off, and that a process of one thread does not
/// pay for.
#ifndef PAWL_SERVICE_OPTIONAL_MUTEX_HPP
#define PAWL_SERVICE_OPTIONAL_MUTEX_HPP

#include <pawl/config.hpp>

#include <atomic>
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
///
/// Where it is switched off, it notices threads that should not be there: one that locks it while
/// another one runs a unit() of the context. It looks if PAWL_ASSERT does.
template <class Mutex = std::mutex>
class optional_mutex {
public:
    explicit optional_mutex(bool enabled) noexcept : enabled_(enabled) {}

    void lock() {
        if (!enabled_) {
            check();
        } else if (!single_threaded()) {
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

    /// While it lives, its thread runs the context.
    class unit {
    public:
        explicit unit(optional_mutex& m) noexcept : mutex_(m.enabled_ ? nullptr : &m) {
            if (!mutex_)
                return;
            mutex_->check();
            before_ = mutex_->runs_.load(std::memory_order_relaxed);
            mutex_->runs_.store(this_thread(), std::memory_order_relaxed);
        }
        unit(const unit&) = delete;
        unit& operator=(const unit&) = delete;
        ~unit() {
            if (mutex_)
                mutex_->runs_.store(before_, std::memory_order_relaxed);
        }

    private:
        optional_mutex* const mutex_;
        const void* before_ = nullptr; ///< the same thread, in a handler that runs the context
    };

private:
    static const void* this_thread() noexcept {
        static thread_local const char here = 0;
        return &here;
    }

    void check() const noexcept {
        [[maybe_unused]] const void* const other = runs_.load(std::memory_order_relaxed);
        PAWL_ASSERT((!other || other == this_thread()) &&
                    "pawl: options::locking is false, and two threads use the context at once: "
                    "leave it true, or give each thread a context of its own");
    }

    Mutex mutex_;
    const bool enabled_;
    bool locked_ = false;                    ///< what unlock() has to undo; guarded by the mutex
    std::atomic<const void*> runs_{nullptr}; ///< the thread, if it is not enabled
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_OPTIONAL_MUTEX_HPP
