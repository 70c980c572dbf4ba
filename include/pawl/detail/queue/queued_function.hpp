// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A queued function: any callable that can be moved, to be invoked once or destroyed.
///
/// Cost
///   A trivially copyable function of at most 40 bytes, such as a lambda with a few references, is
///   stored inline. Any other one takes a block, from the threads' cache (wait/wait_allocator.hpp)
///   if it is small enough. So moving the object calls nothing of the function, and is allowed
///   under a lock.
#ifndef PAWL_DETAIL_QUEUE_QUEUED_FUNCTION_HPP
#define PAWL_DETAIL_QUEUE_QUEUED_FUNCTION_HPP

#include <pawl/config.hpp>

#include <pawl/detail/wait/wait_allocator.hpp>

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace pawl::detail {

class queued_function {
public:
    /// An empty object, as after a move.
    queued_function() noexcept = default;
    /// @throws std::bad_alloc, and what the function's own constructor throws.
    template <class F>
        requires(!std::is_same_v<std::decay_t<F>, queued_function>)
    explicit queued_function(F&& f) {
        using function = std::decay_t<F>;
        if constexpr (is_small<function>) {
            ::new (static_cast<void*>(room_)) function(std::forward<F>(f));
            does_ = &here<function>;
        } else {
            allocated_block<function, wait_allocator<function>> memory{wait_allocator<function>()};
            ::new (static_cast<void*>(room_)) function*(memory.make(std::forward<F>(f)));
            does_ = &elsewhere<function>;
        }
    }

    queued_function(queued_function&& other) noexcept : does_(std::exchange(other.does_, nullptr)) {
        std::memcpy(room_, other.room_, room_bytes);
    }
    /// @pre this object is empty.
    queued_function& operator=(queued_function&& other) noexcept {
        PAWL_ASSERT(!does_);
        does_ = std::exchange(other.does_, nullptr);
        std::memcpy(room_, other.room_, room_bytes);
        return *this;
    }
    ~queued_function() {
        if (does_)
            does_->destroy(room_);
    }

    /// @pre it was not moved from.
    void operator()() {
        PAWL_ASSERT(does_);
        does_->invoke(room_);
    }

private:
    static constexpr std::size_t room_bytes = 40; ///< makes a slot of a queue one cache line

    struct operations {
        void (*invoke)(void*);
        void (*destroy)(void*) noexcept;
    };

    template <class F>
    static constexpr bool is_small =
        sizeof(F) <= room_bytes && alignof(F) <= alignof(void*) && std::is_trivially_copyable_v<F>;

    template <class F>
    static constexpr operations here{[](void* room) { std::move (*static_cast<F*>(room))(); },
                                     [](void*) noexcept {}};

    /// The storage has a pointer to the function.
    template <class F>
    static constexpr operations elsewhere{
        [](void* room) { std::move (**static_cast<F**>(room))(); },
        [](void* room) noexcept {
            const allocated_object<F, wait_allocator<F>> last(wait_allocator<F>(),
                                                              **static_cast<F**>(room));
        }};

    const operations* does_ = nullptr;
    alignas(void*) std::byte room_[room_bytes];
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_QUEUE_QUEUED_FUNCTION_HPP
