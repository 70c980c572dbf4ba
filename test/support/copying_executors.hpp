// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Executors that store functions in a std::function, like the loops of graphical programs, and
//   like Asio's example cpp03/invocation/prioritised_handlers: one with properties, and one like
//   those of the Networking TS. Their functions must be copyable, and are copied.
//
// Threads
//   One.

#ifndef PAWL_TEST_SUPPORT_COPYING_EXECUTORS_HPP
#define PAWL_TEST_SUPPORT_COPYING_EXECUTORS_HPP

#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <utility>

namespace pawl_test {

/// Functions that wait until the program asks for them.
class prioritised_functions {
public:
    /// By value, and copied once more.
    void add(int priority, std::function<void()> f) { waiting_.emplace(priority, f); }

    [[nodiscard]] std::size_t size() const noexcept { return waiting_.size(); }

    /// Runs all present functions and those that they add, highest priority first, then first come
    /// first served.
    /// @param calls number of copies of each function that are called.
    /// @return the number of functions.
    std::size_t run_all(int calls = 1) {
        std::size_t count = 0;
        for (; !waiting_.empty(); ++count) {
            const auto first = waiting_.begin();
            const std::function<void()> f = first->second;
            waiting_.erase(first);
            for (int i = 0; i != calls; ++i) {
                const auto copy = f;
                copy();
            }
        }
        return count;
    }

    /// Destroys all uncalled.
    void clear() { waiting_.clear(); }

private:
    std::multimap<int, std::function<void()>, std::greater<>> waiting_;
};

/// An executor of the style of properties.
class executor_with_properties {
public:
    executor_with_properties(boost::asio::io_context& context, prioritised_functions& functions,
                             int priority = 0) noexcept
        : context_(&context), functions_(&functions), priority_(priority) {}

    boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept {
        return *context_;
    }
    static constexpr boost::asio::execution::blocking_t
    query(boost::asio::execution::blocking_t) noexcept {
        return boost::asio::execution::blocking.never;
    }
    executor_with_properties require(boost::asio::execution::blocking_t::never_t) const noexcept {
        return *this;
    }

    template <class F>
    void execute(F f) const {
        functions_->add(priority_, std::move(f));
    }

    friend bool operator==(const executor_with_properties&,
                           const executor_with_properties&) noexcept = default;

private:
    boost::asio::io_context* context_;
    prioritised_functions* functions_;
    int priority_;
};

/// An executor of the style of the Networking TS.
class networking_ts_executor {
public:
    networking_ts_executor(boost::asio::io_context& context, prioritised_functions& functions,
                           int priority = 0) noexcept
        : context_(&context), functions_(&functions), priority_(priority) {}

    boost::asio::io_context& context() const noexcept { return *context_; }
    void on_work_started() const noexcept { context_->get_executor().on_work_started(); }
    void on_work_finished() const noexcept { context_->get_executor().on_work_finished(); }

    template <class F, class Allocator>
    void dispatch(F f, const Allocator&) const {
        functions_->add(priority_, std::move(f));
    }
    template <class F, class Allocator>
    void post(F f, const Allocator&) const {
        functions_->add(priority_, std::move(f));
    }
    template <class F, class Allocator>
    void defer(F f, const Allocator&) const {
        functions_->add(priority_, std::move(f));
    }

    friend bool operator==(const networking_ts_executor&,
                           const networking_ts_executor&) noexcept = default;

private:
    boost::asio::io_context* context_;
    prioritised_functions* functions_;
    int priority_;
};

} // namespace pawl_test

#endif // PAWL_TEST_SUPPORT_COPYING_EXECUTORS_HPP
