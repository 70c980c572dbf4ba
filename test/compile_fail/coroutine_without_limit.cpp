// expect: pawl: the limit comes first
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/timeout.hpp>

#include <boost/asio/awaitable.hpp>

boost::asio::awaitable<void> step();

auto f() { return pawl::timeout(step()); }
