// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   An executor with a deadline, which this_deadline() finds in a coroutine.
///
/// Model
///   It wraps another executor and points at a scope. After the end of the scope, remaining copies
///   of the executor, for instance in a socket made within it, have no deadline.
///
/// Threads
///   As the inner executor. One thread may end the scope while another reads it.
///
/// Cost
///   One allocation for the scope. On an io_context, any_io_executor stores it without another one.
#ifndef PAWL_DETAIL_LIMIT_DEADLINE_EXECUTOR_HPP
#define PAWL_DETAIL_LIMIT_DEADLINE_EXECUTOR_HPP

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace pawl::detail {

/// State shared by the executors under one deadline.
template <class Clock>
struct deadline_scope {
    explicit deadline_scope(const typename Clock::time_point& t) noexcept : expiry(t) {}

    const typename Clock::time_point expiry;
    std::atomic<bool> over{false};
};

template <class Clock, class Inner>
class deadline_executor {
    using scope = deadline_scope<Clock>;

public:
    deadline_executor(const Inner& inner, std::shared_ptr<scope> s) noexcept
        : inner_(inner), scope_(std::move(s)) {}

    [[nodiscard]] typename Clock::time_point deadline() const noexcept {
        // relaxed: carries no other data
        return scope_->over.load(std::memory_order_relaxed) ? Clock::time_point::max()
                                                            : scope_->expiry;
    }

    template <class Property>
        requires boost::asio::can_query_v<const Inner&, Property>
    decltype(auto) query(const Property& p) const noexcept {
        return boost::asio::query(inner_, p);
    }

    template <class Property>
        requires boost::asio::can_require_v<const Inner&, Property>
    auto require(const Property& p) const {
        return with_inner(boost::asio::require(inner_, p));
    }

    template <class Property>
        requires boost::asio::can_prefer_v<const Inner&, Property>
    auto prefer(const Property& p) const {
        return with_inner(boost::asio::prefer(inner_, p));
    }

    template <class Function>
    void execute(Function&& f) const {
        inner_.execute(std::forward<Function>(f));
    }

    friend bool operator==(const deadline_executor& a, const deadline_executor& b) noexcept {
        return a.inner_ == b.inner_ && a.scope_ == b.scope_;
    }

private:
    template <class OtherInner>
    auto with_inner(const OtherInner& inner) const {
        return deadline_executor<Clock, OtherInner>(inner, scope_);
    }

    Inner inner_;
    std::shared_ptr<scope> scope_;
};

/// The deadline of `ex`.
template <class Clock>
[[nodiscard]] typename Clock::time_point
deadline_of(const boost::asio::any_io_executor& ex) noexcept {
    using native = boost::asio::io_context::executor_type;
    if (const auto* e = ex.target<deadline_executor<Clock, native>>())
        return e->deadline();
    using working = // what outstanding_work.tracked makes of it
        decltype(boost::asio::require(std::declval<const native&>(),
                                      boost::asio::execution::outstanding_work.tracked));
    if (const auto* e = ex.target<deadline_executor<Clock, working>>())
        return e->deadline();
    if (const auto* e = ex.target<deadline_executor<Clock, boost::asio::any_io_executor>>())
        return e->deadline();
    return Clock::time_point::max();
}

/// Puts coroutines under a deadline during its lifetime.
template <class Clock>
class deadline_guard {
public:
    explicit deadline_guard(const typename Clock::time_point& t)
        : scope_(std::make_shared<deadline_scope<Clock>>(t)) {}
    deadline_guard& operator=(deadline_guard&&) = delete;
    ~deadline_guard() { scope_->over.store(true, std::memory_order_relaxed); } // see deadline()

    /// `ex` with the deadline.
    [[nodiscard]] boost::asio::any_io_executor
    executor(const boost::asio::any_io_executor& ex) const {
        if (const auto* e = ex.target<boost::asio::io_context::executor_type>())
            return deadline_executor<Clock, boost::asio::io_context::executor_type>(*e, scope_);
        return deadline_executor<Clock, boost::asio::any_io_executor>(ex, scope_);
    }

private:
    std::shared_ptr<deadline_scope<Clock>> scope_;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_LIMIT_DEADLINE_EXECUTOR_HPP
