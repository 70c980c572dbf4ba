// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A library that is loaded and unloaded while the program runs (service/plugin_test.cpp).

#include <pawl/alarm.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>

extern "C" int run_some_waits() {
    boost::asio::io_context context;
    pawl::steady_timer timer(context);
    int run = 0;
    for (int i = 0; i != 100; ++i)
        timer.async_wait([&](boost::system::error_code) { ++run; });
    context.run();
    return run;
}

namespace {

using namespace std::chrono_literals;

/// What the library has in a context of the program.
struct guest {
    guest(boost::asio::io_context& context, int& count)
        : ended(count), timer(context, 2ms), endless(context, 1h),
          alarm(context, [this] { end(); }) {
        timer.async_wait([this](boost::system::error_code) { end(); });
        endless.async_wait(pawl::timeout(3ms, [this](boost::system::error_code) { end(); }));
        alarm.arm_after(1ms);
    }

    /// A handler may leave the service with a new deadline.
    void end() {
        if (++ended >= 2) {
            alarm.arm_after(0ms);
            alarm.disarm();
        }
    }

    int& ended;
    pawl::steady_timer timer, endless;
    pawl::alarm<std::function<void()>> alarm;
};

} // namespace

/// Starts three waits in a context of the program.
extern "C" void* visit(boost::asio::io_context& context, int& ended) {
    return new guest(context, ended);
}

/// Ends them; the handlers of two are still to be run.
extern "C" void part(void* visitor) {
    auto* const g = static_cast<guest*>(visitor);
    g->timer.cancel();
    g->endless.cancel();
    g->alarm.disarm();
}

extern "C" void leave(void* visitor) { delete static_cast<guest*>(visitor); }
