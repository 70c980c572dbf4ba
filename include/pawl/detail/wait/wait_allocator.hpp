// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Memory for waits whose handlers have no associated allocator. Asio's recycling allocator keeps
///   two blocks per thread, and only while the thread runs a context: a server that sets timeouts
///   for a batch of requests would go to the heap for nearly all of them.
///
/// Model
///   Each thread keeps the blocks that it frees, in lists by size, and reuses them. Blocks beyond
///   the limit of a list go to the heap, and so do all blocks of a thread that has ended. Larger
///   and over-aligned blocks go to Asio's allocator.
///
/// Threads
///   A thread accesses only its own lists. A block may be freed by another thread than the one that
///   allocated it.
///
/// Cost
///   A few instructions per call. A thread keeps at most 8 KiB per block size, 256 KiB in all.
///
/// Limits
///   thread_end.hpp says what is lost when a shared library is unloaded.
#ifndef PAWL_DETAIL_WAIT_WAIT_ALLOCATOR_HPP
#define PAWL_DETAIL_WAIT_WAIT_ALLOCATOR_HPP

#include <pawl/detail/wait/thread_end.hpp>

#include <pawl/config.hpp>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/recycling_allocator.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define PAWL_POISONS_BLOCKS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PAWL_POISONS_BLOCKS
#endif
#endif
#if defined(PAWL_POISONS_BLOCKS)
#include <sanitizer/asan_interface.h>
#endif

namespace pawl::detail {

/// The free blocks of this thread.
class block_cache {
public:
    /// Largest block that is kept, in bytes.
    static constexpr std::size_t most_bytes = 512 - sizeof(void*);
    /// Whether blocks are kept at all.
    static constexpr bool keeps = PAWL_DETAIL_THREAD_ENDS_ARE_TOLD;
    /// Largest number of bytes kept in each list.
    static constexpr std::size_t most_kept = 8192;

    /// @throws std::bad_alloc
    [[nodiscard]] static void* allocate(std::size_t bytes) {
        PAWL_ASSERT(list_for(bytes) < lists && bytes <= size_of(list_for(bytes)));
        return take(list_for(bytes));
    }
    static void deallocate(void* memory, std::size_t bytes) noexcept {
        put(memory, list_for(bytes));
    }

    /// Returns all blocks of this thread to the heap.
    static void clear() noexcept {
        for (std::size_t which = 0; which != lists; ++which) {
            list& l = kept_.lists[which];
            while (block* const b = l.first) {
                unpoison(*b, which);
                l.first = b->next;
                ++l.room;
                ::operator delete(b);
            }
        }
    }

private:
    struct block {
        block* next;
    };

    // take() and put() must not be inlined: a coroutine may resume in another thread, and compilers
    // cache the address of a thread_local variable in a register.
    [[nodiscard]] PAWL_DETAIL_NOINLINE static void* take(std::size_t which) {
        list& l = kept_.lists[which];
        block* const b = l.first;
        if (!b)
            return ::operator new(size_of(which));
        unpoison(*b, which);
        l.first = b->next;
        ++l.room;
        return b;
    }

    PAWL_DETAIL_NOINLINE static void put(void* memory, std::size_t which) noexcept {
        list& l = kept_.lists[which];
        if (l.room == 0)
            return put_in_full_list(memory, which);
        --l.room;
        l.first = ::new (memory) block{l.first};
        poison(*l.first, which);
    }

    // Together with the header that malloc adds, a block fills a multiple of 16 bytes, which malloc
    // would round up to anyway.
    static constexpr std::size_t step = 16;
    static constexpr std::size_t overhead = sizeof(void*);
    static constexpr std::size_t lists = (most_bytes + overhead) / step;

    static constexpr std::size_t list_for(std::size_t bytes) noexcept {
        return (bytes + overhead - 1) / step;
    }
    static constexpr std::size_t size_of(std::size_t which) noexcept {
        return (which + 1) * step - overhead;
    }
    static_assert((most_bytes + overhead) % step == 0 && step - overhead >= sizeof(block));

    struct list {
        block* first;
        std::size_t room; ///< how many more blocks fit
    };
    struct memory {
        list lists[block_cache::lists];
        enum class phase : unsigned char { unused, used, ended } thread;
    };

    /// Empties the lists when the thread ends, and keeps them empty after that.
    friend class thread_end<block_cache>;
    static void thread_ends() noexcept {
        clear();
        for (list& l : kept_.lists)
            l.room = 0;
        kept_.thread = memory::phase::ended;
    }

    /// The list is full, or this is the first block that the thread frees.
    PAWL_DETAIL_NOINLINE static void put_in_full_list(void* p, std::size_t which) noexcept {
        if (!keeps || kept_.thread != memory::phase::unused || !thread_end<block_cache>::expect())
            return ::operator delete(p);
        kept_.thread = memory::phase::used;
        for (std::size_t each = 0; each != lists; ++each)
            kept_.lists[each].room = most_kept / (size_of(each) + overhead);
        put(p, which);
    }

    // Poisons everything but the link, which the leak detector follows.
    static void poison([[maybe_unused]] block& b, [[maybe_unused]] std::size_t which) noexcept {
#if defined(PAWL_POISONS_BLOCKS)
        __asan_poison_memory_region(&b + 1, size_of(which) - sizeof(block));
#endif
    }
    static void unpoison([[maybe_unused]] block& b, [[maybe_unused]] std::size_t which) noexcept {
#if defined(PAWL_POISONS_BLOCKS)
        __asan_unpoison_memory_region(&b + 1, size_of(which) - sizeof(block));
#endif
    }

    // constinit and trivially destructible: an access needs no initialisation check.
    static inline constinit thread_local memory kept_{};
};

/// The default allocator of waits, of operations under a limit, and of refused operations. That of
/// `void` is for rebinding, as std::allocator<void>.
template <class T>
class wait_allocator {
public:
    using value_type = T;

    wait_allocator() = default;
    template <class U>
    wait_allocator(const wait_allocator<U>&) noexcept {}

    [[nodiscard]] T* allocate(std::size_t n) {
        if (kept(n))
            return static_cast<T*>(block_cache::allocate(n * sizeof(T)));
        return boost::asio::recycling_allocator<T>().allocate(n);
    }
    void deallocate(T* p, std::size_t n) noexcept {
        if (kept(n))
            block_cache::deallocate(p, n * sizeof(T));
        else
            boost::asio::recycling_allocator<T>().deallocate(p, n);
    }

    template <class U>
    bool operator==(const wait_allocator<U>&) const noexcept {
        return true;
    }

private:
    static constexpr bool kept(std::size_t n) noexcept {
        return alignof(T) <= alignof(std::max_align_t) && n <= block_cache::most_bytes / sizeof(T);
    }
};

/// The associated allocator of a handler, wait_allocator by default.
template <class Handler>
using handler_allocator = boost::asio::associated_allocator_t<Handler, wait_allocator<void>>;

template <class Handler>
[[nodiscard]] handler_allocator<Handler> get_handler_allocator(const Handler& handler) noexcept {
    return boost::asio::get_associated_allocator(handler, wait_allocator<void>());
}

/// Owns the memory of one object: an operation, whose memory is freed before its handler is invoked.
template <class T, class Allocator>
class allocated_block {
    using traits = typename std::allocator_traits<Allocator>::template rebind_traits<T>;
    using pointer = typename traits::pointer;

public:
    /// Allocates. @throws whatever the allocator throws.
    explicit allocated_block(const Allocator& a) : alloc_(a), block_(traits::allocate(alloc_, 1)) {}
    /// Takes over the memory of `object`.
    allocated_block(const Allocator& a, T& object) noexcept
        : alloc_(a), block_(std::pointer_traits<pointer>::pointer_to(object)) {}
    allocated_block& operator=(allocated_block&&) = delete;
    ~allocated_block() {
        if (block_)
            traits::deallocate(alloc_, block_, 1);
    }

    /// Constructs the object, and leaves the memory to it. Strong exception guarantee.
    template <class... Args>
    [[nodiscard]] T* make(Args&&... args) {
        void* const memory = std::to_address(block_);
        T* const object = ::new (memory) T(std::forward<Args>(args)...);
        block_ = nullptr;
        return object;
    }

private:
    typename traits::allocator_type alloc_;
    pointer block_;
};

/// Owns an object and its memory.
template <class T, class Allocator>
class allocated_object {
public:
    /// Takes over `object`.
    allocated_object(const Allocator& a, T& object) noexcept
        : memory_(a, object), object_(object) {}
    allocated_object& operator=(allocated_object&&) = delete;
    ~allocated_object() { object_.~T(); }

private:
    allocated_block<T, Allocator> memory_;
    T& object_;
};

/// Destroys and frees `object`, whose handler this is.
/// @return the handler: it goes last, because it may own the memory resource of its allocator.
template <class Handler, class T>
[[nodiscard]] Handler take_handler(Handler& handler, T& object) {
    const allocated_object last(get_handler_allocator(handler), object);
    return Handler(std::move(handler));
}

} // namespace pawl::detail

#undef PAWL_POISONS_BLOCKS

#endif // PAWL_DETAIL_WAIT_WAIT_ALLOCATOR_HPP
