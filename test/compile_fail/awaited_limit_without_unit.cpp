// expect: pawl: a limit is a duration with a unit
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/timeout.hpp>

#include <boost/asio/awaitable.hpp>

boost::asio::awaitable<void> f() { co_await pawl::timeout(5); }
