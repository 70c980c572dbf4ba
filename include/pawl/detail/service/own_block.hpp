// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A block of memory inside an object, for Asio's allocations on its behalf, one at a time. A block with a member `owned`
///   is on the heap: once that is false, whoever frees the memory deletes the block.
///
/// Threads
///   The block has no count and no lock. The owner starts a new use only after the last one has
///   ended, and in an order that threads agree on: Asio frees the block before it invokes the
///   handler, so the handler and what happens after it may. Debug builds assert it.
#ifndef PAWL_DETAIL_SERVICE_OWN_BLOCK_HPP
#define PAWL_DETAIL_SERVICE_OWN_BLOCK_HPP

#include <pawl/config.hpp>

#include <cstddef>
#include <memory>

namespace pawl::detail {

template <std::size_t Size>
struct own_block {
    alignas(std::max_align_t) std::byte bytes[Size - 1];
    /// Also kept where nothing is asserted: a program may have translation units of both kinds.
    bool used = false;
};

/// Allocates the block, which must be free; larger requests go to the heap.
template <class T, class Block>
class own_block_allocator {
public:
    using value_type = T;

    explicit own_block_allocator(Block& block) noexcept : block_(&block) {}
    template <class U>
    own_block_allocator(const own_block_allocator<U, Block>& other) noexcept
        : block_(other.block_) {}

    [[nodiscard]] T* allocate(std::size_t n) {
        static_assert(!outlives_owner || sizeof(T) <= sizeof(Block::bytes)); // P8: cannot fail
        if (n * sizeof(T) <= sizeof(Block::bytes) && alignof(T) <= alignof(std::max_align_t)) {
            PAWL_ASSERT(!block_->used);
            block_->used = true;
            return reinterpret_cast<T*>(block_->bytes);
        }
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* p, std::size_t n) noexcept {
        if (static_cast<void*>(p) != block_->bytes) {
            std::allocator<T>().deallocate(p, n);
            return;
        }
        PAWL_ASSERT(block_->used);
        block_->used = false;
        if constexpr (outlives_owner) {
            if (!block_->owned)
                delete block_;
        }
    }
    template <class U>
    bool operator==(const own_block_allocator<U, Block>& other) const noexcept {
        return block_ == other.block_;
    }

private:
    template <class, class>
    friend class own_block_allocator;

    static constexpr bool outlives_owner = requires(Block& b) { b.owned; };

    Block* block_;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_SERVICE_OWN_BLOCK_HPP
