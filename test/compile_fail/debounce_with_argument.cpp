// expect: pawl: the function of a debounce takes nothing
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/debounce.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>

void f(boost::asio::io_context& context) {
    pawl::debounce save(context, std::chrono::seconds(1), [](int /*revision*/) {});
}
