// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/detail/wait/wait_allocator.hpp>

#define BOOST_TEST_MODULE wait_allocator
#include <boost/test/unit_test.hpp>

#include "service/counted_new.hpp"

#if PAWL_DETAIL_POSIX
#include <pthread.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using pawl::detail::block_cache;
using pawl::detail::wait_allocator;

constexpr std::size_t beyond_any_list = 10'000;

template <std::size_t Size>
struct sized {
    std::byte bytes[Size];
};

struct alignas(256) over_aligned {
    std::byte bytes[256];
};

struct clean {
    clean() { block_cache::clear(); }
    ~clean() { block_cache::clear(); }
};

const boost::unit_test::enable_if<block_cache::keeps> if_kept;

BOOST_FIXTURE_TEST_SUITE(all, clean)

BOOST_AUTO_TEST_CASE(it_is_an_allocator_that_can_be_rebound) {
    using traits = std::allocator_traits<wait_allocator<void>>;
    static_assert(std::is_same_v<traits::rebind_alloc<int>, wait_allocator<int>>);
    static_assert(traits::is_always_equal::value);
    BOOST_TEST((wait_allocator<int>() == wait_allocator<char>(wait_allocator<void>())));
    std::vector<int, wait_allocator<int>> numbers;
    for (int i = 0; i < 1000; ++i) // cached blocks, and larger ones
        numbers.push_back(i);
    BOOST_TEST(numbers.back() == 999);
}

BOOST_AUTO_TEST_CASE(P8_a_freed_block_is_used_again_without_the_heap, *if_kept) {
    wait_allocator<sized<48>> alloc;
    auto* const first = alloc.allocate(1);
    alloc.deallocate(first, 1);
    const auto before = counted_new::calls.load();
    for (int i = 0; i < 1000; ++i) {
        auto* const again = alloc.allocate(1);
        again->bytes[47] = std::byte{1}; // all of it is usable
        BOOST_REQUIRE(again == first);
        alloc.deallocate(again, 1);
    }
    BOOST_TEST(counted_new::calls.load() == before);
}

// Asio's allocator is excluded: its heap use is not counted here.
template <class T>
void check_that_it_is_kept() {
    wait_allocator<T> alloc;
    T* const first = alloc.allocate(1);
    alloc.deallocate(first, 1);
    const auto before = counted_new::calls.load();

    void* const again = block_cache::allocate(sizeof(T));

    BOOST_TEST(again == static_cast<void*>(first));
    BOOST_TEST(counted_new::calls.load() == before);
    block_cache::deallocate(again, sizeof(T));
}

BOOST_AUTO_TEST_CASE(P8_a_block_of_the_largest_size_or_alignment_is_kept_too, *if_kept) {
    check_that_it_is_kept<sized<block_cache::most_bytes>>();
    check_that_it_is_kept<std::max_align_t>();
}

BOOST_AUTO_TEST_CASE(P8_a_burst_of_waits_is_kept, *if_kept) {
    wait_allocator<sized<56>> alloc;
    std::vector<sized<56>*> blocks(128);
    const auto allocate = [&] {
        for (auto*& b : blocks)
            b = alloc.allocate(1);
        BOOST_TEST(std::set(blocks.begin(), blocks.end()).size() == blocks.size());
    };
    const auto free = [&] {
        for (auto* b : blocks)
            alloc.deallocate(b, 1);
    };
    allocate();
    free();
    const std::set<sized<56>*> known(blocks.begin(), blocks.end());
    allocate();
    BOOST_TEST((known == std::set(blocks.begin(), blocks.end())));
    free();
}

BOOST_AUTO_TEST_CASE(P8_a_thread_keeps_8_KiB_of_a_size_at_most, *if_kept) {
    for (const std::size_t size : {1u, 24u, 25u, 56u, 100u, 256u, 504u}) {
        std::vector<void*> blocks(beyond_any_list);
        const auto before = counted_new::live.load();
        const auto asked = counted_new::asked.load();
        for (auto*& b : blocks)
            b = block_cache::allocate(size);
        // Together with the header that malloc adds, a multiple of 16 bytes.
        BOOST_TEST((counted_new::asked - asked) / blocks.size() + sizeof(void*) <
                   size + sizeof(void*) + 16);
        for (auto* b : blocks)
            block_cache::deallocate(b, size);
        const auto kept = static_cast<std::size_t>(counted_new::live - before);
        BOOST_TEST(kept > 0u);
        BOOST_TEST(kept * size <= block_cache::most_kept);
        block_cache::clear();
        BOOST_TEST(counted_new::live == before);
    }
}

BOOST_AUTO_TEST_CASE(sizes_do_not_mix) {
    for (std::size_t size = 1; size <= block_cache::most_bytes; ++size) {
        void* const small = block_cache::allocate(size);
        block_cache::deallocate(small, size);
    }
    for (std::size_t size = 1; size <= block_cache::most_bytes; ++size) {
        void* const block = block_cache::allocate(size);
        std::uninitialized_fill_n(static_cast<unsigned char*>(block), size, 0xff); // for ASan
        BOOST_TEST(reinterpret_cast<std::uintptr_t>(block) % alignof(std::max_align_t) == 0u);
        block_cache::deallocate(block, size);
    }
}

BOOST_AUTO_TEST_CASE(what_is_large_or_over_aligned_or_an_array_comes_from_the_heap) {
    const auto before = counted_new::live.load();
    wait_allocator<sized<block_cache::most_bytes + 1>> large;
    large.deallocate(large.allocate(1), 1);
    wait_allocator<over_aligned> aligned;
    auto* const a = aligned.allocate(1);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(a) % 256 == 0u);
    aligned.deallocate(a, 1);
    wait_allocator<sized<100>> array;
    array.deallocate(array.allocate(6), 6);
    BOOST_TEST(counted_new::live == before);
}

BOOST_AUTO_TEST_CASE(a_thread_that_ends_keeps_nothing) {
    const auto before = counted_new::live.load();
    std::thread([] {
        std::vector<void*> blocks(100);
        for (auto*& b : blocks)
            b = block_cache::allocate(100);
        for (auto* b : blocks)
            block_cache::deallocate(b, 100);
    }).join();
    BOOST_TEST(counted_new::live == before);
}

/// Frees a block, and allocates and frees another one, when its thread ends.
struct last_words {
    void* block = nullptr;
    ~last_words() {
        block_cache::deallocate(block, 100);
        block_cache::deallocate(block_cache::allocate(100), 100);
    }
};

// If the end of a thread is not reported, the thread's variable has been destroyed before its
// destructor runs.
BOOST_AUTO_TEST_CASE(blocks_may_be_freed_after_the_thread_has_given_up_those_it_kept, *if_kept) {
    const auto before = counted_new::live.load();
    std::thread([] {
        static thread_local last_words words; // made before the rest of the cache, so it ends later
        words.block = block_cache::allocate(100);
        block_cache::deallocate(block_cache::allocate(100), 100);
    }).join();
    BOOST_TEST(counted_new::live == before);
}

#if PAWL_DETAIL_POSIX
// Threads that exit() does not end may run on; the thread that calls it keeps nothing. Made first, so it ends last.
struct after_exit {
    ~after_exit() {
        const auto before = counted_new::live.load();
        block_cache::deallocate(block_cache::allocate(100), 100);
        if (counted_new::live == before)
            return;
        std::fputs("error: in \"exit\": a block was kept\n", stderr);
        std::abort();
    }
};
[[gnu::init_priority(200)]] const after_exit last_check;

// The keys of a thread are looked at after its variables, and here this one after that of the cache.
BOOST_AUTO_TEST_CASE(blocks_may_be_freed_by_the_last_key_of_a_thread, *if_kept) {
    void* const first = block_cache::allocate(100);
    block_cache::deallocate(first, 100); // makes the key of the cache
    pthread_key_t last;
    BOOST_REQUIRE(pthread_key_create(&last, [](void* block) {
                      block_cache::deallocate(block, 100);
                      block_cache::deallocate(block_cache::allocate(100), 100);
                  }) == 0);
    const auto before = counted_new::live.load();
    std::thread([&] {
        block_cache::deallocate(block_cache::allocate(100), 100);
        pthread_setspecific(last, block_cache::allocate(100));
    }).join();
    BOOST_TEST(counted_new::live == before);
    pthread_key_delete(last);
}
#endif

BOOST_AUTO_TEST_CASE(a_block_may_be_freed_by_another_thread) {
    const auto before = counted_new::live.load();
    void* const block = block_cache::allocate(100);
    std::thread([&] { block_cache::deallocate(block, 100); }).join();
    BOOST_TEST(counted_new::live == before);
}

BOOST_AUTO_TEST_CASE(P8_without_memory_nothing_is_lost, *if_kept) {
    counted_new::fuse = 0;
    BOOST_CHECK_THROW((void)block_cache::allocate(100), std::bad_alloc);
    counted_new::fuse = counted_new::never;
    void* const block = block_cache::allocate(100);
    block_cache::deallocate(block, 100);
    counted_new::fuse = 0;
    BOOST_TEST(block_cache::allocate(100) == block);
    counted_new::fuse = counted_new::never;
    block_cache::deallocate(block, 100);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
