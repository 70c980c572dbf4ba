// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// A mutex that single-threaded contexts switch off, and that costs nothing while the process has
/// one thread.
#ifndef PAWL_DETAIL_SERVICE_OPTIONAL_MUTEX_HPP
#define PAWL_DETAIL_SERVICE_OPTIONAL_MUTEX_HPP

#include <pawl/config.hpp>

#include <atomic>
#include <mutex>

#if PAWL_DETAIL_POSIX
#include <pthread.h>
#endif

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

namespace pawl::detail {

/// Whether the process certainly has one thread; may return false negatives. While one of our locks
/// is held this cannot change: no foreign code runs under it, except a clock under the driver's,
/// which does not start threads.
[[nodiscard]] inline bool single_threaded() noexcept {
#if __has_include(<sys/single_threaded.h>)
    return __libc_single_threaded;
#else
    return false;
#endif
}

/// An address that identifies this thread while it runs.
[[nodiscard]] inline const void* this_thread() noexcept {
#if PAWL_DETAIL_POSIX
    return reinterpret_cast<const void*>(::pthread_self()); // the same in each shared library
#else
    static thread_local const char here = 0;
    return &here;
#endif
}

/// A `Mutex` that locks only if needed.
///
/// If it is disabled, it detects misuse: a thread that locks it while another runs a unit() of the
/// context. The check is a PAWL_ASSERT.
template <class Mutex = std::mutex>
class optional_mutex {
public:
    explicit optional_mutex(bool enabled) noexcept : enabled_(enabled) {}

    PAWL_DETAIL_ALWAYS_INLINE void lock() {
        if (!enabled_) [[unlikely]] {
            check();
        } else if (!single_threaded()) {
            mutex_.lock();
            locked_ = true;
        }
    }
    PAWL_DETAIL_ALWAYS_INLINE void unlock() {
        if (locked_) {
            locked_ = false;
            mutex_.unlock();
        }
    }

    /// See spin_mutex::give_way().
    void give_way() const noexcept {
        if (enabled_)
            mutex_.give_way();
    }

    /// Called by the thread that has locked it: whether other threads are excluded.
    [[nodiscard]] bool held() const noexcept { return locked_; }

    /// Marks the thread as running the context.
    class unit {
    public:
        explicit unit(optional_mutex& m) noexcept : mutex_(m.enabled_ ? nullptr : &m) {
            if (!mutex_)
                return;
            mutex_->check();
            before_ = mutex_->runs_.load(std::memory_order_relaxed);
            mutex_->runs_.store(this_thread(), std::memory_order_relaxed);
        }
        unit& operator=(unit&&) = delete;
        ~unit() {
            if (mutex_)
                mutex_->runs_.store(before_, std::memory_order_relaxed);
        }

    private:
        optional_mutex* const mutex_;
        const void* before_ = nullptr; ///< this thread, if a handler runs the context
    };

private:
    void check() const noexcept {
        [[maybe_unused]] const void* const other = runs_.load(std::memory_order_relaxed);
        PAWL_ASSERT((!other || other == this_thread()) &&
                    "pawl: options::locking is false, and two threads use the context at once: "
                    "leave it true, or give each thread a context of its own");
    }

    Mutex mutex_;
    const bool enabled_;
    bool locked_ = false;                    ///< whether unlock() must unlock mutex_; guarded by it
    std::atomic<const void*> runs_{nullptr}; ///< the thread in a unit(), if disabled
};

/// Locks a mutex for its lifetime. A std::scoped_lock that g++ inlines, too.
template <class Mutex>
class locked {
public:
    PAWL_DETAIL_ALWAYS_INLINE explicit locked(Mutex& m) : mutex_(m) { m.lock(); }
    locked& operator=(locked&&) = delete;
    PAWL_DETAIL_ALWAYS_INLINE ~locked() { mutex_.unlock(); }

private:
    Mutex& mutex_;
};

/// Unlocks a mutex for its lifetime.
template <class Mutex>
class unlocked {
public:
    explicit unlocked(Mutex& m) : mutex_(m) { m.unlock(); }
    unlocked& operator=(unlocked&&) = delete;
    ~unlocked() { mutex_.lock(); } // does not throw: the thread does not hold it

private:
    Mutex& mutex_;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_OPTIONAL_MUTEX_HPP
