// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The initiation of an asynchronous operation that is a function and an executor, which is that
///   of handlers without one.
#ifndef PAWL_DETAIL_LIMIT_INITIATION_HPP
#define PAWL_DETAIL_LIMIT_INITIATION_HPP

#include <pawl/config.hpp>

#include <utility>

namespace pawl::detail {

/// Calls `function(handler)`. The executor must exist until then.
template <class Executor, class Function>
class initiation {
public:
    using executor_type = Executor;

    initiation(const Executor& ex, Function f) : executor_(&ex), function_(std::move(f)) {}

    [[nodiscard]] const executor_type& get_executor() const noexcept { return *executor_; }

    template <class Handler>
    void operator()(Handler&& handler) const {
        function_(std::forward<Handler>(handler));
    }

private:
    const Executor* executor_;
    Function function_;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_LIMIT_INITIATION_HPP
