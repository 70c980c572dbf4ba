// expect among others: pawl: put as_tuple inside
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// As by an adapter of the user's own with as_tuple around it; Pawl knows only Asio's.
#include <pawl/group.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <tuple>

struct start {
    using executor_type = boost::asio::any_io_executor;
    executor_type get_executor() const noexcept { return {}; }

    void operator()(auto handler) const { std::move(handler)({{}, 1}); }
};

using result = std::tuple<boost::system::error_code, int>;

void f(pawl::group& g) {
    auto token = pawl::in_group(g, [](result) {});
    boost::asio::async_initiate<decltype(token), void(result)>(start(), token);
}
