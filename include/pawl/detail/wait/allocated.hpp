// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Owns the memory of an operation, allocated by the associated allocator of its handler. The
///   memory is freed before the handler is invoked.
#ifndef PAWL_DETAIL_WAIT_ALLOCATED_HPP
#define PAWL_DETAIL_WAIT_ALLOCATED_HPP

#include <memory>
#include <new>
#include <utility>

namespace pawl::detail {

/// Owns the memory of one object.
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

} // namespace pawl::detail

#endif // PAWL_DETAIL_WAIT_ALLOCATED_HPP
