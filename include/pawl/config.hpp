// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Pawl's requirements on the compiler and on Boost, and PAWL_ASSERT.
///
/// Every public header includes this one first, so that a missing requirement is the first error.
/// CMake compiles it when it configures, and repeats its message.
#ifndef PAWL_CONFIG_HPP
#define PAWL_CONFIG_HPP

// Apple's clang has its own version numbers. Apple's clang and MSVC are untested, but not rejected.
#if defined(__clang__) && !defined(__apple_build_version__) && __clang_major__ < 14
#error "Pawl needs clang 14 or newer: choose one, for instance with CXX=clang++-14."
#elif defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 12
#error "Pawl needs g++ 12 or newer: choose one, for instance with CXX=g++-12."
#elif defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#error "Pawl needs C++20: compile with -std=c++20 (g++, clang++) or /std:c++20 (MSVC)."
#elif !defined(__cpp_exceptions) && !defined(_CPPUNWIND)
#error "Pawl needs exceptions: compile without -fno-exceptions."
#elif defined(min) || defined(max)
#error "Pawl needs NOMINMAX: define it before <windows.h>, whose macros hide std::min and std::max."
#elif !__has_include(<boost/version.hpp>)
#error                                                                                             \
    "Pawl needs Boost 1.81 or newer: none was found on the include path; install it, or add its -I."
#else
#include <boost/version.hpp>
#if BOOST_VERSION < 108100
#error "Pawl needs Boost 1.81 or newer: an older one was found first on the include path."
#else
#define PAWL_DETAIL_ACCEPTED
#endif
#endif

#ifndef PAWL_DETAIL_ACCEPTED
// A missing file ends the compilation. Otherwise hundreds of errors would hide the one that
// matters.
#include <the_error_above_says_what_pawl_needs>
#endif

// Differences between compilers and systems. These macros are private to Pawl.
#if defined(__unix__) || defined(__APPLE__)
#define PAWL_DETAIL_POSIX 1
#else
#define PAWL_DETAIL_POSIX 0
#endif

#if defined(__GNUC__) // clang, too
#define PAWL_DETAIL_NOINLINE [[gnu::noinline]]
#define PAWL_DETAIL_COLD [[gnu::noinline, gnu::cold]]
#define PAWL_DETAIL_ALWAYS_INLINE [[gnu::always_inline]]
#elif defined(_MSC_VER)
#define PAWL_DETAIL_NOINLINE __declspec(noinline)
#define PAWL_DETAIL_COLD __declspec(noinline)
#define PAWL_DETAIL_ALWAYS_INLINE // __forceinline would take the place of `inline`
#else
#define PAWL_DETAIL_NOINLINE
#define PAWL_DETAIL_COLD
#define PAWL_DETAIL_ALWAYS_INLINE
#endif

// __atomic_load() and the like. std::atomic_ref does the same, but libc++ before 19 has none.
#if defined(__GNUC__)
#define PAWL_DETAIL_ATOMIC_BUILTINS 1
#else
#define PAWL_DETAIL_ATOMIC_BUILTINS 0
#endif

// MinGW-w64's g++ frees thread-local variables before it destroys them, so their contents would be
// lost.
#if defined(__MINGW32__) && !defined(__clang__)
#define PAWL_DETAIL_THREAD_ENDS_ARE_TOLD 0
#else
#define PAWL_DETAIL_THREAD_ENDS_ARE_TOLD 1
#endif

#if defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
#include <emmintrin.h> // clang-cl, too, has it
#endif

#include <cstddef>

// libstdc++ without futexes (MinGW-w64, version 12) loses wake-ups of std::atomic::wait(): the waiter
// reads the value before it takes the lock on which it sleeps, and the notifier does not take that
// lock.
#if defined(__GLIBCXX__) && !defined(_GLIBCXX_HAVE_LINUX_FUTEX)
#include <atomic> // may define the macro below
#include <chrono>
#include <thread>
#endif
#if defined(__GLIBCXX__) && !defined(_GLIBCXX_HAVE_LINUX_FUTEX) &&                                 \
    !defined(_GLIBCXX_HAVE_PLATFORM_WAIT)
#define PAWL_DETAIL_ATOMIC_WAIT_LOSES_WAKEUPS 1
#else
#define PAWL_DETAIL_ATOMIC_WAIT_LOSES_WAKEUPS 0
#endif

namespace pawl::detail {

/// Checks the invariants of a structure: test/support/invariants.hpp.
template <class Structure>
struct invariant_of;

/// Separates data that different threads write. Not std::hardware_destructive_interference_size,
/// which depends on compiler flags.
#if defined(__APPLE__) && defined(__aarch64__)
inline constexpr std::size_t cache_line = 128;
#else
inline constexpr std::size_t cache_line = 64;
#endif

/// Prefetches the cache line at `p` for reading. `p` may be any address. No effect if the compiler
/// has no prefetch.
inline void prefetch([[maybe_unused]] const void* p) noexcept {
#if defined(__GNUC__)
    __builtin_prefetch(p);
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
#endif
}

/// As prefetch(), for writing.
inline void prefetch_to_write([[maybe_unused]] const void* p) noexcept {
#if defined(__GNUC__)
    __builtin_prefetch(p, 1);
#else
    prefetch(p);
#endif
}

/// `a.wait(seen, order)`. Ended by `a.notify_all()`. It polls where the standard library loses wake-ups.
template <class Atomic, class T, class Order>
void atomic_wait(const Atomic& a, T seen, Order order) noexcept {
#if PAWL_DETAIL_ATOMIC_WAIT_LOSES_WAKEUPS
    for (int spins = 0; a.load(order) == seen; ++spins) {
        if (spins < 16)
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
#else
    a.wait(seen, order);
#endif
}

/// Tells the CPU that this thread spins.
inline void pause_processor() noexcept {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
    __builtin_ia32_pause();
#elif defined(__GNUC__) && defined(__aarch64__)
    asm volatile("isb" ::: "memory"); // yield does nothing on most cores
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
    _mm_pause();
#endif
}

} // namespace pawl::detail

/// Checks a precondition or an invariant; assert() by default. To report failures your own way,
/// define it before the first Pawl header, identically in every translation unit.
#ifndef PAWL_ASSERT
#include <cassert>
#define PAWL_ASSERT(...) assert((__VA_ARGS__))
#endif

/// Define it in all translation units of a test program, and in no other program: see
/// pawl::virtual_time. Types that differ then are in a namespace of their own.
#ifdef PAWL_VIRTUAL_TIME
#define PAWL_DETAIL_BUILD pawl::inline virtual_time_build
#define PAWL_DETAIL_DETAIL_BUILD pawl::detail::inline virtual_time_build
#else
#define PAWL_DETAIL_REAL_TIME // virtual_time.hpp detects a later definition by it
#define PAWL_DETAIL_BUILD pawl
#define PAWL_DETAIL_DETAIL_BUILD pawl::detail
#endif

#endif // PAWL_CONFIG_HPP
