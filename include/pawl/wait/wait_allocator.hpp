// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The memory of waits whose handlers have no allocator of their own. Asio's recycling allocator
///   keeps two blocks of a thread, and those only while it runs a context; a server that sets
///   timeouts for a batch of requests asks the heap for nearly all of them.
///
/// Model
///   A thread keeps blocks that it frees, in lists by size, and gives them out again. What exceeds
///   the lists goes to the heap, as does everything of a thread that ends. What is larger than they
///   are made for, or over-aligned, is left to Asio's allocator.
///
/// Threads
///   A thread reads and writes only its own lists. A block may be freed by another thread than the
///   one that has allocated it.
///
/// Cost
///   A few instructions each; at most 8 KiB kept by a thread for each size of wait, 128 KiB in all.
///
/// Limits
///   A shared library whose code has freed waits stays loaded until those threads end. What a thread
///   frees for the first time after its own thread_local objects are gone is kept until the process
///   ends.
#ifndef PAWL_WAIT_WAIT_ALLOCATOR_HPP
#define PAWL_WAIT_WAIT_ALLOCATOR_HPP

#include <pawl/config.hpp>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/recycling_allocator.hpp>

#include <cstddef>
#include <new>

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

/// The blocks that this thread keeps.
class block_cache {
public:
    /// Blocks of at most so many bytes are kept.
    static constexpr std::size_t most_bytes = 512 - sizeof(void*);
    /// Whether anything is kept at all.
    static constexpr bool keeps = PAWL_DETAIL_THREAD_ENDS_ARE_TOLD;
    /// Bytes kept in each list, at most.
    static constexpr std::size_t most_kept = 8192;

    /// @throws std::bad_alloc
    [[nodiscard]] static void* allocate(std::size_t bytes) { return take(list_for(bytes)); }
    static void deallocate(void* memory, std::size_t bytes) noexcept {
        put(memory, list_for(bytes));
    }

    /// Gives all that this thread keeps back to the heap.
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

    // Not inlined, nor is the next one: a coroutine may go on in another thread, and compilers keep
    // the address of a thread's variable in a register.
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

    // With what malloc puts before it, a block fills a multiple of 32 bytes.
    static constexpr std::size_t step = 32;
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
        std::size_t room; ///< for so many more
    };
    struct memory {
        list lists[block_cache::lists];
        enum class phase : unsigned char { unused, used, ended } thread;
    };

    /// Empties the lists when the thread ends, and keeps them empty.
    struct at_thread_end {
        void touch() const noexcept {}
        ~at_thread_end() {
            clear();
            for (list& l : kept_.lists)
                l.room = 0;
            kept_.thread = memory::phase::ended;
        }
    };

    /// The list has no room, or has none yet, since this is the thread's first block.
    PAWL_DETAIL_NOINLINE static void put_in_full_list(void* p, std::size_t which) noexcept {
        if (!keeps || kept_.thread != memory::phase::unused)
            return ::operator delete(p);
        static thread_local const at_thread_end end;
        end.touch();
        kept_.thread = memory::phase::used;
        for (std::size_t each = 0; each != lists; ++each)
            kept_.lists[each].room = most_kept / (size_of(each) + overhead);
        put(p, which);
    }

    // What is kept must not be touched, but for its link: the leak detector follows it.
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

    // constinit, and destroyed by nobody: so it is read without asking whether it is there.
    static inline constinit thread_local memory kept_{};
};

/// The default allocator of waits, of operations under a limit, and of those that are refused.
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

/// Stands for no type in particular, as in std::allocator.
template <>
class wait_allocator<void> {
public:
    using value_type = void;

    wait_allocator() = default;
    template <class U>
    wait_allocator(const wait_allocator<U>&) noexcept {}

    template <class U>
    bool operator==(const wait_allocator<U>&) const noexcept {
        return true;
    }
};

/// The allocator of a handler; that of waits if it has none.
template <class Handler>
using handler_allocator = boost::asio::associated_allocator_t<Handler, wait_allocator<void>>;

template <class Handler>
[[nodiscard]] handler_allocator<Handler> get_handler_allocator(const Handler& handler) noexcept {
    return boost::asio::get_associated_allocator(handler, wait_allocator<void>());
}

} // namespace pawl::detail

#undef PAWL_POISONS_BLOCKS

#endif // PAWL_WAIT_WAIT_ALLOCATOR_HPP
