// expect: pawl: call the coroutine
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/group.hpp>

#include <boost/asio/awaitable.hpp>

boost::asio::awaitable<void> step();

auto f(pawl::group& g) { return pawl::in_group(g, step); }
