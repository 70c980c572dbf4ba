// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Replaces operator new of the program, to count allocations and to make a chosen one fail.
//   Include it in one translation unit of a program only.

#ifndef PAWL_TEST_SERVICE_COUNTED_NEW_HPP
#define PAWL_TEST_SERVICE_COUNTED_NEW_HPP

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace counted_new {

inline constexpr long never = std::numeric_limits<long>::max();

inline std::atomic<std::size_t> calls{0}; ///< of operator new, by all threads
inline std::atomic<std::size_t> asked{0}; ///< bytes, in all those calls
inline std::atomic<std::size_t> live{0};  ///< blocks
inline std::atomic<long> fuse{never};     ///< number of calls that succeed before one throws
inline std::atomic<long> spare{never};    ///< the fuse after that

inline void count(std::size_t size) {
    calls.fetch_add(1);
    asked.fetch_add(size);
    if (fuse.load() != never && fuse.fetch_sub(1) == 0) {
        fuse.store(spare);
        throw std::bad_alloc();
    }
}

[[gnu::noinline]] inline void* keep(void* memory) {
    if (memory == nullptr)
        throw std::bad_alloc();
    live.fetch_add(1);
    return memory;
}

[[gnu::noinline]] inline void release(void* memory) noexcept {
    if (memory != nullptr)
        live.fetch_sub(1);
    std::free(memory);
}

#if defined(_WIN32) // has no aligned_alloc(), and frees what is aligned in another way
inline void* aligned(std::size_t align, std::size_t size) { return _aligned_malloc(size, align); }
[[gnu::noinline]] inline void release_aligned(void* memory) noexcept {
    if (memory != nullptr)
        live.fetch_sub(1);
    _aligned_free(memory);
}
#else
inline void* aligned(std::size_t align, std::size_t size) {
    return std::aligned_alloc(align, (size + align - 1) / align * align);
}
inline void release_aligned(void* memory) noexcept { release(memory); }
#endif

} // namespace counted_new

[[gnu::noinline]] void* operator new(std::size_t size) {
    counted_new::count(size);
    return counted_new::keep(std::malloc(size != 0 ? size : 1));
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t align) {
    counted_new::count(size);
    return counted_new::keep(counted_new::aligned(static_cast<std::size_t>(align), size));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { counted_new::release(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    counted_new::release(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
    counted_new::release_aligned(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    counted_new::release_aligned(memory);
}

// The usual ones for arrays call those above; those of AddressSanitizer do not.
[[gnu::noinline]] void* operator new[](std::size_t size) { return operator new(size); }
[[gnu::noinline]] void* operator new[](std::size_t size, std::align_val_t align) {
    return operator new(size, align);
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept { counted_new::release(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept {
    counted_new::release(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept {
    counted_new::release_aligned(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    counted_new::release_aligned(memory);
}

#endif // PAWL_TEST_SERVICE_COUNTED_NEW_HPP
