// expect: pawl: the limit comes first
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/timeout.hpp>

#include <boost/asio/use_awaitable.hpp>

#include <chrono>

auto f() { return pawl::timeout(boost::asio::use_awaitable, std::chrono::seconds(5)); }
