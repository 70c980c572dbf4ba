// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A token bucket: a burst at once, then one token per interval, first come first served. A waiter
// has a slot, which is the time of its token. A cancelled wait passes its slot on.
//
// There is no thread and no tick: a bucket without waiters costs nothing. The clock is a template
// parameter: std::chrono::steady_clock in a program, pawl::manual_clock here.

#include "support.hpp"

#include <pawl/basic_waitable_timer.hpp>
#include <pawl/deadline.hpp>
#include <pawl/error.hpp>
#include <pawl/manual_clock.hpp>
#include <pawl/sleep.hpp>
#include <pawl/timeout.hpp>

#include <boost/asio.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <iterator>
#include <list>
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

/// Outlives its waiters, which run on one strand.
template <class Clock>
class token_bucket {
public:
    using duration = typename Clock::duration;

    token_bucket(duration interval, int burst) : interval_(interval), burst_(burst) {
        if (interval <= duration::zero() || burst < 1)
            throw std::invalid_argument(
                "token_bucket: the interval must be positive, and the burst "
                "at least 1: there would be no limit, or no token ever");
    }

    asio::awaitable<void> take();

private:
    using timer = pawl::basic_waitable_timer<Clock>;
    struct place;

    const duration interval_;
    const int burst_;
    typename Clock::time_point next_slot_ = Clock::time_point::min();
    std::list<timer> queue_; // in the order of their slots, one interval apart
};

template <class Clock>
struct token_bucket<Clock>::place {
    place(token_bucket& b, const asio::any_io_executor& ex) : bucket(b) {
        const auto full = Clock::now() - (b.burst_ - 1) * b.interval_; // no more is saved up
        b.next_slot_ = std::max(b.next_slot_, full);
        turn = b.queue_.emplace(b.queue_.end(), ex, b.next_slot_);
        b.next_slot_ += b.interval_;
    }
    ~place() {
        if (!has_token) { // those behind move up, each to the slot of the one before it
            auto slot = turn->expiry();
            for (auto later = std::next(turn); later != bucket.queue_.end(); ++later) {
                const auto theirs = later->expiry();
                later->rearm_at(slot);
                slot = theirs;
            }
            bucket.next_slot_ = slot;
        }
        bucket.queue_.erase(turn);
    }
    token_bucket& bucket;
    typename std::list<timer>::iterator turn;
    bool has_token = false;
};

template <class Clock>
asio::awaitable<void> token_bucket<Clock>::take() {
    place mine(*this, co_await asio::this_coro::executor);
    co_await mine.turn->async_wait(asio::use_awaitable);
    mine.has_token = true;
}

// --- producers -----------------------------------------------------------------------------------

using pawl::manual_clock;
using bucket_type = token_bucket<manual_clock>;

struct sent {
    std::string who;
    manual_clock::time_point when;
};

/// A fleet of producers on one bucket.
struct fleet {
    bucket_type bucket; // before the context, which destroys those that still wait
    asio::io_context context{};
    std::vector<sent> log{};
    manual_clock::time_point start = manual_clock::now();

    asio::awaitable<void> produce(std::string name, int count) {
        for (int i = 0; i != count; ++i) {
            co_await bucket.take();
            log.push_back({name, manual_clock::now()});
            std::cout << "  " << name << " at " << (log.back().when - start) / 1ms << " ms\n";
        }
    }

    void add(std::string name, int count = 1) {
        asio::co_spawn(context, produce(std::move(name), count), cookbook::rethrow);
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
    fleet f{.bucket{100ms, 3}};
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
    fleet f{.bucket{100ms, 1}};
    asio::cancellation_signal stop;
    error_code of_b;
    f.add("a");
    asio::co_spawn(f.context, f.produce("b", 1),
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
    fleet f{.bucket{100ms, 1}};
    const auto take_until = [&](pawl::basic_deadline<manual_clock> d) {
        error_code result;
        asio::co_spawn(f.context, pawl::timeout_at(d, f.bucket.take()),
                       [&](std::exception_ptr e) { result = cookbook::code_of(e); });
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
    bucket_type bucket(100ms, 1);
    int tokens = 0;
    const auto take = [&](asio::io_context& context) {
        asio::co_spawn(context, bucket.take(), [&](std::exception_ptr) { ++tokens; });
        pass(context, 0s);
    };
    {
        asio::io_context context;
        for (int i = 0; i != 3; ++i)
            take(context);
    } // with two waits
    asio::io_context another;
    pass(another, 100ms);
    take(another);
    check(tokens == 2, "waits that are destroyed with their context give their slots back");
}

void a_bucket_without_a_limit_is_refused() {
    for (const auto& [interval, burst] : {std::pair(0ms, 1), std::pair(100ms, 0)}) {
        try {
            const bucket_type refused(interval, burst);
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
