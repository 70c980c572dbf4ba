// expect: pawl: the function of an alarm returns nothing
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/alarm.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

void f(boost::asio::io_context& context) {
    pawl::alarm alarm(context, []() -> boost::asio::awaitable<void> { co_return; });
}
