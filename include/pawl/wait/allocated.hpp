// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The memory of an operation: by the associated allocator of its handler, and freed before that
///   is invoked.
#ifndef PAWL_WAIT_ALLOCATED_HPP
#define PAWL_WAIT_ALLOCATED_HPP

#include <memory>

namespace pawl::detail {

/// Owns the memory of an object.
template <class T, class Allocator>
class allocated_block {
    using traits = typename std::allocator_traits<Allocator>::template rebind_traits<T>;
    using pointer = typename traits::pointer;

public:
    /// Allocates. @throws whatever the allocator throws.
    explicit allocated_block(const Allocator& a) : alloc_(a), block_(traits::allocate(alloc_, 1)) {}
    /// Takes over that of `object`.
    allocated_block(const Allocator& a, T& object) noexcept
        : alloc_(a), block_(std::pointer_traits<pointer>::pointer_to(object)) {}
    allocated_block(const allocated_block&) = delete;
    allocated_block& operator=(const allocated_block&) = delete;
    ~allocated_block() {
        if (block_)
            traits::deallocate(alloc_, block_, 1);
    }

    [[nodiscard]] void* address() const noexcept { return std::to_address(block_); }
    /// Leaves the memory to the object.
    void release() noexcept { block_ = nullptr; }

private:
    typename traits::allocator_type alloc_;
    pointer block_;
};

/// Owns an object in memory of its own.
template <class T, class Allocator>
class allocated_object {
public:
    /// Takes over `object`.
    allocated_object(const Allocator& a, T& object) noexcept
        : memory_(a, object), object_(object) {}
    allocated_object(const allocated_object&) = delete;
    allocated_object& operator=(const allocated_object&) = delete;
    ~allocated_object() { object_.~T(); }

private:
    allocated_block<T, Allocator> memory_;
    T& object_;
};

} // namespace pawl::detail

#endif // PAWL_WAIT_ALLOCATED_HPP
