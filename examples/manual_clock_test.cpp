// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A test of a timeout of half an hour that takes microseconds. The component under test has its timer as
// a template parameter: pawl::steady_timer in the program, pawl::manual_timer in its test.

#include <pawl/manual_clock.hpp>
#include <pawl/steady_timer.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <functional>
#include <iostream>
#include <string>
#include <utility>

using namespace std::chrono_literals;

namespace {

// --- the component under test -------------------------------------------------------------------

/// Calls back once, after touch() has not been called for `idle`.
template <class Timer>
class idle_monitor {
public:
    using duration = typename Timer::duration;

    idle_monitor(boost::asio::io_context& context, duration idle, std::function<void()> on_idle)
        : timer_(context, idle), idle_(idle) {
        timer_.async_wait([on_idle = std::move(on_idle)](boost::system::error_code ec) {
            if (!ec) // operation_aborted: the monitor is gone
                on_idle();
        });
    }

    /// @return false if it is too late: the callback has started.
    [[nodiscard]] bool touch() { return timer_.rearm_after(idle_) != 0; }

private:
    Timer timer_;
    duration idle_;
};

template class idle_monitor<pawl::steady_timer>; // the type for the program compiles as well

// --- its tests ----------------------------------------------------------------------------------

using monitor = idle_monitor<pawl::manual_timer>;

int failures = 0;

void check(bool condition, const char* promise) {
    std::cout << (condition ? "  ok      " : "  FAILED  ") << promise << '\n';
    failures += condition ? 0 : 1;
}

/// Moves the clock, then runs what became due. advance() itself runs no handler.
void pass(boost::asio::io_context& context, pawl::manual_clock::duration d) {
    pawl::manual_clock::advance(context, d);
    context.poll();
}

void a_silent_peer_is_idle_at_its_timeout_and_not_a_nanosecond_before() {
    boost::asio::io_context context;
    int calls = 0;
    const monitor m(context, 30min, [&] { ++calls; });

    pass(context, 30min - 1ns);
    check(calls == 0, "not idle one nanosecond before the timeout");

    pass(context, 1ns);
    check(calls == 1, "idle at the timeout");

    pass(context, 24h);
    check(calls == 1, "idle once only");
}

void a_touch_postpones_the_timeout() {
    boost::asio::io_context context;
    int calls = 0;
    monitor m(context, 30min, [&] { ++calls; });

    bool in_time = true;
    for (int i = 0; i < 1000; ++i) {
        pass(context, 29min);
        in_time = in_time && m.touch();
    }

    check(in_time && calls == 0, "a thousand touches in twenty days keep it alive");
    check(pawl::manual_clock::advance_to_next(context) == 30min, "the deadline is 30 minutes away");
    context.poll();
    check(calls == 1, "idle 30 minutes after the last touch");
    check(!m.touch(), "a touch that comes too late is told so");
}

void a_touch_wins_until_the_callback_has_begun() {
    boost::asio::io_context context;
    int calls = 0;
    monitor m(context, 30min, [&] { ++calls; });

    pawl::manual_clock::advance(context, 30min); // due and queued, but not run yet
    const bool in_time = m.touch();
    context.poll();

    check(in_time && calls == 0, "a touch recalls a timeout that is queued");
}

void a_monitor_that_is_gone_does_not_call_back() {
    boost::asio::io_context context;
    int calls = 0;
    {
        const monitor m(context, 30min, [&] { ++calls; });
    }

    pass(context, 24h);

    check(calls == 0, "a monitor that is gone does not call back");
    check(pawl::manual_clock::advance_to_next(context) == 0ns, "and leaves nothing pending");
}

void timeouts_happen_in_the_order_of_their_deadlines() {
    boost::asio::io_context context;
    std::string order;
    const monitor late(context, 3h, [&] { order += 'c'; });
    const monitor early(context, 1h, [&] { order += 'a'; });
    const monitor middle(context, 2h, [&] { order += 'b'; });

    auto total = 0ns;
    for (auto step = 1ns; step != 0ns; context.poll())
        total += step = pawl::manual_clock::advance_to_next(context);

    check(order == "abc", "in the order of their deadlines");
    check(total == 3h, "three steps from deadline to deadline make three hours");
}

} // namespace

int main() {
    const auto start = std::chrono::steady_clock::now();

    a_silent_peer_is_idle_at_its_timeout_and_not_a_nanosecond_before();
    a_touch_postpones_the_timeout();
    a_touch_wins_until_the_callback_has_begun();
    a_monitor_that_is_gone_does_not_call_back();
    timeouts_happen_in_the_order_of_their_deadlines();

    const auto took = std::chrono::steady_clock::now() - start;
    std::cout << failures << " failed; tested "
              << pawl::manual_clock::now().time_since_epoch() / 24h << " days of timeouts in "
              << took / 1us << " microseconds\n";
    return failures == 0 ? 0 : 1;
}
