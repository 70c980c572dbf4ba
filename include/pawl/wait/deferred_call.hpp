// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   What is posted or dispatched for an object of any type. Asio instantiates some kilobytes for
///   each type of function object that is given to an executor; for this one it does so once for
///   each executor and allocator, and not once for each completion handler.
#ifndef PAWL_WAIT_DEFERRED_CALL_HPP
#define PAWL_WAIT_DEFERRED_CALL_HPP

#include <utility>

namespace pawl::detail {

/// A function object that owns `object`: `f(object, true)` when it is called, `f(object, false)`
/// when it is destroyed without. Move-only.
template <class Allocator>
class deferred_call {
public:
    using allocator_type = Allocator;
    using function = void (*)(void* object, bool called);

    deferred_call(void* object, function f, const Allocator& a) noexcept
        : object_(object), function_(f), alloc_(a) {}
    deferred_call(deferred_call&& other) noexcept
        : object_(std::exchange(other.object_, nullptr)), function_(other.function_),
          alloc_(other.alloc_) {}
    deferred_call& operator=(deferred_call&&) = delete;
    ~deferred_call() {
        if (object_)
            function_(object_, false);
    }

    allocator_type get_allocator() const noexcept { return alloc_; }

    void operator()() { function_(std::exchange(object_, nullptr), true); }

private:
    void* object_;
    function function_;
    [[no_unique_address]] Allocator alloc_;
};

} // namespace pawl::detail

#endif // PAWL_WAIT_DEFERRED_CALL_HPP
