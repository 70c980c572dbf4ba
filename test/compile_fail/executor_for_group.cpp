// expect: pawl: the first argument of in_group is a pawl::group
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/group.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

boost::asio::awaitable<void> f(boost::asio::any_io_executor ex) {
    co_await boost::asio::post(ex, pawl::in_group(ex, boost::asio::use_awaitable));
}
