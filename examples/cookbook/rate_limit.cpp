// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A token bucket that many producers share: a burst at once, then one token per interval, first
// come first served. A cancelled wait passes its place on.
//
// There is no thread and no tick: a bucket without waiters costs nothing. The clock is a template
// parameter: pawl::rate_limiter is on the steady clock, here it is pawl::manual_clock.

#include "support.hpp"

#include <pawl/deadline.hpp>
#include <pawl/error.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/rate_limiter.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using cookbook::check;
using cookbook::pass;
using cookbook::pass_all;
using namespace std::chrono_literals;

// --- producers -----------------------------------------------------------------------------------

using pawl::manual_clock;
using bucket_type = pawl::basic_rate_limiter<manual_clock>;

struct sent {
    std::string who;
    manual_clock::time_point when;
};

template <class Bucket, class Send>
asio::awaitable<void> produce(Bucket& bucket, int count, Send send) {
    for (int i = 0; i != count; ++i) {
        co_await bucket.async_acquire();
        send();
    }
}

/// A fleet of producers on one bucket.
struct fleet {
    asio::io_context context{};
    bucket_type bucket;
    std::vector<sent> log{};
    manual_clock::time_point start = manual_clock::now();

    /// A token per 100 ms.
    explicit fleet(int burst) : bucket(context, {.tokens = 10, .period = 1s, .burst = burst}) {}

    auto producer(std::string name, int count) {
        return produce(bucket, count, [this, name = std::move(name)] {
            log.push_back({name, manual_clock::now()});
            std::cout << "  " << name << " at " << (log.back().when - start) / 1ms << " ms\n";
        });
    }

    void add(std::string name, int count = 1) {
        asio::co_spawn(context, producer(std::move(name), count), cookbook::rethrow);
    }

    [[nodiscard]] std::string order() const {
        std::string names;
        for (const sent& s : log)
            names += s.who;
        return names;
    }

    /// Of any `burst + 1` tokens in a row, the last is at least an interval after the first.
    [[nodiscard]] bool keeps_to(manual_clock::duration interval, std::size_t burst) const {
        for (std::size_t i = burst; i < log.size(); ++i)
            if (log[i].when - log[i - burst].when < interval)
                return false;
        return true;
    }
};

void a_fleet_is_served_in_order_at_the_rate() {
    fleet f(3);
    for (const char* name : {"a", "b", "c", "d", "e"})
        f.add(name, 4);
    pass(f.context, 0s);
    check(f.order() == "abc", "the burst goes out at once");
    pass_all(f.context);

    check(f.order() == "abcdeabcdeabcdeabcde", "then whoever has waited longest comes first");
    check(f.keeps_to(100ms, 3), "no four within an interval");
    check(manual_clock::now() - f.start == 1700ms, "no token is lost: 20 take 17 intervals");

    pass(f.context, 24h);
    f.log.clear();
    f.add("f", 5);
    pass(f.context, 0s);
    check(f.order() == "fff", "a day of rest saves up one burst, and not more");
    pass_all(f.context);
    check(f.keeps_to(100ms, 3), "and then the rate holds");
}

void who_gives_up_hands_the_slot_on() {
    fleet f(1);
    asio::cancellation_signal stop;
    error_code of_b;
    f.add("a");
    asio::co_spawn(f.context, f.producer("b", 1),
                   asio::bind_cancellation_slot(
                       stop.slot(), [&](std::exception_ptr e) { of_b = cookbook::code_of(e); }));
    f.add("c");
    f.add("d");
    pass(f.context, 0s);
    check(f.order() == "a", "three wait");
    asio::post(f.context, [&] { stop.emit(asio::cancellation_type::terminal); });
    pass(f.context, 100ms); // b's token is there before this runs, and b has not run yet
    check(of_b == asio::error::operation_aborted && f.order() == "ac",
          "the token of a wait that is cancelled goes to the next one");
    f.add("e");
    pass_all(f.context);
    check(f.order() == "acde" && f.log.back().when - f.start == 300ms, "all others move up");
}

void waiting_can_have_a_limit() {
    fleet f(1);
    const auto take_until = [&](pawl::basic_deadline<manual_clock> d) {
        error_code result;
        f.bucket.async_acquire(pawl::timeout_at(d, [&](error_code ec) { result = ec; }));
        pass_all(f.context);
        return result;
    };
    using deadline = pawl::basic_deadline<manual_clock>;
    check(take_until(deadline::after(0s)) == pawl::error::timed_out,
          "with a limit of zero no token is taken");
    check(!take_until(deadline::after(10ms)), "so that it is there for the next one");
    check(take_until(deadline::after(10ms)) == pawl::error::timed_out,
          "who cannot wait long enough is told so");
}

void the_context_may_go_first() {
    std::unique_ptr<bucket_type> bucket;
    int tokens = 0;
    {
        asio::io_context context;
        bucket = std::make_unique<bucket_type>(context, pawl::rate_limit{.tokens = 10, .burst = 1});
        for (int i = 0; i != 3; ++i)
            bucket->async_acquire([&](error_code) { ++tokens; });
        pass(context, 0s);
    } // with two waits
    check(tokens == 1 && bucket->waiting() == 0,
          "waits that are destroyed with their context give their places back");
}

void a_bucket_without_a_limit_is_refused() {
    asio::io_context context;
    for (const pawl::rate_limit& bad :
         {pawl::rate_limit{.tokens = 0}, pawl::rate_limit{.burst = 0}}) {
        try {
            const bucket_type refused(context, bad);
            check(false, "it is refused");
        } catch (const std::invalid_argument& e) {
            check(true, e.what());
        }
    }
}

} // namespace

int main() {
    a_fleet_is_served_in_order_at_the_rate();
    who_gives_up_hands_the_slot_on();
    waiting_can_have_a_limit();
    the_context_may_go_first();
    a_bucket_without_a_limit_is_refused();
    return cookbook::exit_status();
}
