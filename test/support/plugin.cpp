// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A library that is loaded and unloaded while the program runs (service/plugin_test.cpp).

#include <pawl/alarm.hpp>
#include <pawl/debounce.hpp>
#include <pawl/delay_queue.hpp>
#include <pawl/event_feed.hpp>
#include <pawl/event_queue.hpp>
#include <pawl/expiring_map.hpp>
#include <pawl/group.hpp>
#include <pawl/heartbeat.hpp>
#include <pawl/hedge.hpp>
#include <pawl/interval_timer.hpp>
#include <pawl/pressure.hpp>
#include <pawl/rate_limiter.hpp>
#include <pawl/retry.hpp>
#include <pawl/scaled.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timeout.hpp>
#include <pawl/timeout_stream.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <utility>

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

namespace {

/// The patterns, and scaled durations, each with an operation that ends and one that is pending.
struct lodger {
    using function = std::function<void()>;

    auto one_end() {
        return [this](auto&&...) { ++ended; };
    }
    /// A function that is called once, although its object goes on.
    function first_call() {
        return [this, first = true]() mutable { ended += std::exchange(first, false); };
    }
    /// An operation for retry and hedge: the first ends, the others do not.
    auto attempts() {
        return [this](auto a) {
            pawl::steady_timer& timer = a.number() == 1 ? soon : late;
            return timer.async_wait(boost::asio::deferred);
        };
    }

    lodger(boost::asio::io_context& c, int& count)
        : ended(count), soon(c, 1ms), late(c, 1h), debounce(c, 1ms, first_call()),
          pending_debounce(c, 1h, [] {}), throttle(c, 1h,
                                                   [this, f = first_call()]() mutable {
                                                       f();
                                                       throttle();
                                                   }),
          heartbeat(c, {.interval = 1ms, .misses = 1000}, first_call(), [] {}),
          silence(
              c, {.interval = 1ms, .misses = 1}, [] {}, first_call()),
          limiter(c, {.tokens = 1, .period = 1ms, .burst = 1}),
          map(c, {.ttl = 1ms, .keep_expired = true}), queue(c), scaled_timer(c), pressure(c),
          scaled_alarm(c, first_call()) {
        pawl::retry(c, pawl::retry_policy{.limit = 1h}, attempts(), one_end());
        pawl::hedge(c, pawl::hedge_policy{.delay = 1h}, attempts(), one_end());
        // A retry that has failed once and pauses, and a hedge with two attempts that do not end.
        const auto never = [this](auto) { return late.async_wait(boost::asio::deferred); };
        pawl::retry(
            c,
            pawl::retry_policy{
                .first = 1h, .cap = 1h, .jitter = pawl::retry_jitter::none, .attempt_limit = 1ms},
            never, boost::asio::bind_cancellation_slot(leaves.slot(), [](auto&&...) {}));
        pawl::hedge(c, pawl::hedge_policy{.delay = 1ms}, never, [](auto&&...) {});
        debounce();
        pending_debounce();
        throttle();
        (void)limiter.try_acquire();
        limiter.async_acquire(one_end());
        map.insert(1, 1);
        map.insert(2, 2, 1h);
        map.async_pop_expired(one_end());
        map.async_pop_expired([](auto&&...) {});
        queue.push(1, 1ms);
        queue.push(2, 1h);
        queue.async_pop(one_end());
        queue.async_pop([](auto&&...) {});
        scaled_timer.expires_within(1ms, 1h);
        scaled_timer.async_wait(one_end());
        late.async_wait(pawl::timeout(pawl::scaled(1ms, 1h), one_end()));
        late.async_wait(pawl::timeout(pawl::scaled(1h, 2h), [](auto&&...) {}));
        scaled_alarm.arm_within(1ms, 1h);
        pressure.set(1);
    }
    lodger& operator=(lodger&&) = delete;
    ~lodger() { leaves.emit(boost::asio::cancellation_type::terminal); }

    int& ended;
    boost::asio::cancellation_signal leaves;
    pawl::steady_timer soon, late;
    pawl::debounce<function> debounce, pending_debounce;
    pawl::throttle<function> throttle;
    pawl::heartbeat<function, function> heartbeat, silence;
    pawl::rate_limiter limiter;
    pawl::expiring_map<int, int> map;
    pawl::delay_queue<int> queue;
    pawl::scaled_timer scaled_timer;
    pawl::pressure pressure;
    pawl::scaled_alarm<function> scaled_alarm;
};

} // namespace

/// Starts twelve operations that end, and others that do not.
extern "C" void* check_in(boost::asio::io_context& context, int& ended) {
    return new lodger(context, ended);
}

extern "C" void check_out(void* resident) { delete static_cast<lodger*>(resident); }
