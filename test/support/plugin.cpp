// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A library that is loaded and unloaded while the program runs (service/plugin_test.cpp).

#include <pawl/alarm.hpp>
#include <pawl/event_feed.hpp>
#include <pawl/event_queue.hpp>
#include <pawl/group.hpp>
#include <pawl/interval_timer.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>
#include <pawl/timeout_stream.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <array>
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

namespace {

using boost::asio::ip::tcp;

/// One of each of the other objects, with an operation that is pending, and one that has ended.
struct tenant {
    auto one_end() {
        return [this](auto&&...) { ++ended; };
    }
    tenant(boost::asio::io_context& c, int& count)
        : ended(count), timer(c, 1ms), endless(c, 1h), interval(c, 1ms), group(c), queue(c),
          reader(pawl::event_feed(c).join()), peer(c), stream(c) {
        tcp::acceptor acceptor(c, {boost::asio::ip::address_v4::loopback(), 0});
        peer.connect(acceptor.local_endpoint());
        acceptor.accept(stream.socket());
        stream.set_limits({.idle = 1h, .read = 1ms, .action = pawl::on_limit::cancel});
        stream.async_read_some(boost::asio::buffer(bytes), one_end());
        timer.async_wait(pawl::in_group(group, one_end()));
        endless.async_wait(pawl::in_group(group, [](boost::system::error_code) {}));
        interval.async_wait(one_end());
        (void)queue.once(1ms, [this] { ++ended; });
        (void)queue.every(1h, [] {});
        queue.async_wait([this](boost::system::error_code) { queue.process_events(); });
        reader.async_read(events, one_end());
    }

    int& ended;
    pawl::steady_timer timer, endless;
    pawl::interval_timer interval;
    pawl::group group;
    pawl::event_queue queue;
    pawl::event_feed::reader reader;
    std::array<pawl::timer_event, 8> events;
    tcp::socket peer;
    pawl::tcp_stream stream;
    std::array<char, 8> bytes{};
};

} // namespace

/// Starts five operations that end, and others that do not.
extern "C" void* move_in(boost::asio::io_context& context, int& ended) {
    return new tenant(context, ended);
}

extern "C" void move_out(void* resident) { delete static_cast<tenant*>(resident); }
