// expect: pawl: a limit or group needs an operation
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/group.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

boost::asio::awaitable<void> f(pawl::group& g) {
    co_await pawl::in_group(g, boost::asio::use_awaitable);
}
