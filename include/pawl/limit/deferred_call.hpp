// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   One function object type for everything that is posted or dispatched. Asio instantiates some
///   kilobytes of code for each function object type that is given to an executor. With this type
///   it does so once per executor and allocator, not once per completion handler.
#ifndef PAWL_LIMIT_DEFERRED_CALL_HPP
#define PAWL_LIMIT_DEFERRED_CALL_HPP

#include <pawl/wait/claim.hpp>

namespace pawl::detail {

/// A function object that owns `object`. Calls `f(object, true)` when it is invoked, or `f(object,
/// false)` when it is destroyed without having been invoked. Copies share the object: exactly one
/// of these calls happens, once.
template <class Allocator>
class deferred_call {
public:
    using allocator_type = Allocator;
    using function = void (*)(void* object, bool called);

    deferred_call(void* object, function f, const Allocator& a) noexcept
        : object_(object), function_(f), alloc_(a) {}
    deferred_call(deferred_call&& other) noexcept = default;
    deferred_call(const deferred_call& other) = default;
    deferred_call& operator=(deferred_call&&) = delete;
    ~deferred_call() {
        object_.end([f = function_](void* object) { f(object, false); });
    }

    allocator_type get_allocator() const noexcept { return alloc_; }

    void operator()() const {
        if (void* const object = object_.take())
            function_(object, true);
    }

private:
    claim<void> object_;
    function function_;
    [[no_unique_address]] Allocator alloc_;
};

} // namespace pawl::detail

#endif // PAWL_LIMIT_DEFERRED_CALL_HPP
