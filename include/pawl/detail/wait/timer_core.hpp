// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The part of a timer that its shard knows: its place in the time structure, and its waits.
///
/// Model
///   One node of the time structure plus a circular list of waits in start order. All waits of a
///   timer share its expiry: the time structure files timers, not waits.
///
/// Threads
///   Guarded by the shard's lock, except waited_on().
#ifndef PAWL_DETAIL_WAIT_TIMER_CORE_HPP
#define PAWL_DETAIL_WAIT_TIMER_CORE_HPP

#include <pawl/detail/wait/wait_operation.hpp>

#include <pawl/time/timer_node.hpp>

#include <pawl/config.hpp>

#include <type_traits>
#include <utility>

#if !PAWL_DETAIL_ATOMIC_BUILTINS
#include <atomic>
#endif

namespace pawl::detail {

#if !PAWL_DETAIL_ATOMIC_BUILTINS && !defined(__cpp_lib_atomic_ref)
#error "Pawl needs std::atomic_ref: use a newer standard library."
#endif

/// A word that one thread writes and reads freely, while others may load() it. relaxed: it guards
/// no data. Not shared if T is larger than a word, or aligned to less than its size.
template <class T>
class shared_word {
    static constexpr bool one_word =
        std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(void*) && alignof(T) == sizeof(T);

public:
    explicit shared_word(const T& word) noexcept : word_(const_cast<T&>(word)) {}

    [[nodiscard]] T load() const noexcept {
        if constexpr (!one_word) {
            return word_;
        } else {
#if PAWL_DETAIL_ATOMIC_BUILTINS
            T value;
            __atomic_load(&word_, &value, __ATOMIC_RELAXED);
            return value;
#else
            return std::atomic_ref<T>(word_).load(std::memory_order_relaxed);
#endif
        }
    }
    void store(T value) const noexcept {
        if constexpr (!one_word) {
            word_ = value;
        } else {
#if PAWL_DETAIL_ATOMIC_BUILTINS
            __atomic_store(&word_, &value, __ATOMIC_RELAXED);
#else
            std::atomic_ref<T>(word_).store(value, std::memory_order_relaxed);
#endif
        }
    }

private:
    T& word_;
};

class timer_core : public time::timer_node {
public:
    /// The newest wait, whose `next` is the oldest; nullptr if there is none.
    [[nodiscard]] wait_operation* newest() const noexcept { return newest_; }
    [[nodiscard]] wait_operation* oldest() const noexcept {
        return newest_ ? newest_->next : nullptr;
    }
    void set_newest(wait_operation* op) noexcept { shared_word(newest_).store(op); }

    /// Whether there are waits. May be called without the lock, by a thread that may cancel them.
    [[nodiscard]] bool waited_on() const noexcept { return shared_word(newest_).load() != nullptr; }

    /// Appends a wait.
    void append(wait_operation& op) noexcept {
        op.next = newest_ ? std::exchange(newest_->next, &op) : &op;
        set_newest(&op);
        op.set_owner(this);
    }

    /// Removes a wait. O(1) for the oldest, O(waits) otherwise.
    /// @pre it is one of the waits of this timer.
    void remove(wait_operation& op) noexcept {
        PAWL_ASSERT(newest_);
        if (op.next == &op) [[likely]]
            return set_newest(nullptr);
        wait_operation* before = newest_;
        while (before->next != &op) {
            before = before->next;
            PAWL_ASSERT(before != newest_); // else it is not here
        }
        before->next = op.next;
        if (newest_ == &op)
            set_newest(before);
    }

    /// Calls `f(wait_operation&)` for each wait, oldest first. `f` may remove its argument.
    template <class Function>
    void for_each_wait(Function f) const {
        wait_operation* const last = newest_;
        wait_operation* ahead = oldest();
        while (ahead) {
            wait_operation& op = *ahead;
            ahead = &op == last ? nullptr : op.next;
            PAWL_ASSERT(ahead != &op);
            f(op);
        }
    }

    /// Prefetches the newest wait, usually the only one.
    void prefetch_wait() const noexcept { pawl::detail::prefetch_to_write(newest_); }

private:
    wait_operation* newest_ = nullptr;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_WAIT_TIMER_CORE_HPP
