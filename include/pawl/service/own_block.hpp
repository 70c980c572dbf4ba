// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A block of memory inside an object, for Asio's allocations on its behalf, one at a time.
#ifndef PAWL_SERVICE_OWN_BLOCK_HPP
#define PAWL_SERVICE_OWN_BLOCK_HPP

#include <cstddef>
#include <memory>

namespace pawl::detail {

template <std::size_t Size>
struct own_block {
    alignas(std::max_align_t) std::byte bytes[Size];
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
        if (n * sizeof(T) <= sizeof(Block) && alignof(T) <= alignof(std::max_align_t))
            return reinterpret_cast<T*>(block_->bytes);
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* p, std::size_t n) noexcept {
        if (static_cast<void*>(p) != block_->bytes)
            std::allocator<T>().deallocate(p, n);
    }
    template <class U>
    bool operator==(const own_block_allocator<U, Block>& other) const noexcept {
        return block_ == other.block_;
    }

private:
    template <class, class>
    friend class own_block_allocator;

    Block* block_;
};

} // namespace pawl::detail

#endif // PAWL_SERVICE_OWN_BLOCK_HPP
