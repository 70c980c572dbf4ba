// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A library that is loaded and unloaded while the program runs (service/plugin_test.cpp).

#include <pawl/steady_timer.hpp>

#include <boost/asio/io_context.hpp>

extern "C" int run_some_waits() {
    boost::asio::io_context context;
    pawl::steady_timer timer(context);
    int run = 0;
    for (int i = 0; i != 100; ++i)
        timer.async_wait([&](boost::system::error_code) { ++run; });
    context.run();
    return run;
}
