// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A cache whose entries expire when they have not been used for a while: one alarm per entry in a
// timing_wheel, and one pawl::alarm for all of them. A lookup compares times itself, so that an entry is
// gone to the nanosecond; the sweep only frees its memory, and may be late.
//
// The clock is a template parameter: std::chrono::steady_clock in a program, pawl::manual_clock
// here.

#include "support.hpp"

#include <pawl/alarm.hpp>
#include <pawl/manual_clock.hpp>

#include <pawl/time/timing_wheel.hpp>

#include <boost/asio.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

namespace {

namespace asio = boost::asio;
using cookbook::check;
using cookbook::pass;
using namespace std::chrono_literals;

/// For one thread or one strand.
template <class Key, class Value, class Clock>
class cache {
public:
    using duration = typename Clock::duration;
    using time_point = typename Clock::time_point;

    /// Sweeps at most 16 times in a `ttl`.
    cache(const asio::any_io_executor& ex, duration ttl)
        : ttl_(ttl > duration::zero()
                   ? ttl
                   : throw std::invalid_argument("cache: the time to live must be positive")),
          expiry_({ttl / 16 + duration(1)}, Clock::now()), sweep_(ex, [this] { sweep(); }) {}

    void put(const Key& key, Value value);
    [[nodiscard]] const Value* get(const Key& key);
    [[nodiscard]] std::size_t size() const { return entries_.size(); }

private:
    struct entry {
        Value value;
        pawl::timing_wheel_handle alarm;
    };

    void sleep();
    void sweep();

    const duration ttl_;
    std::unordered_map<Key, entry> entries_;
    pawl::timing_wheel<Key, time_point> expiry_;
    pawl::basic_alarm<std::function<void()>, Clock> sweep_;
};

template <class Key, class Value, class Clock>
const Value* cache<Key, Value, Clock>::get(const Key& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end() || expiry_.at(found->second.alarm) <= Clock::now())
        return nullptr; // the sweep may be late
    expiry_.reschedule(found->second.alarm, Clock::now() + ttl_);
    return &found->second.value;
}

template <class Key, class Value, class Clock>
void cache<Key, Value, Clock>::sleep() {
    if (const auto next = expiry_.next_alarm_fires_at()) // if empty, the context may stop
        sweep_.arm_at(*next);
}

template <class Key, class Value, class Clock>
void cache<Key, Value, Clock>::sweep() {
    expiry_.advance_clock(Clock::now(), [this](auto fired) { entries_.erase(fired.value); });
    sleep();
}

template <class Key, class Value, class Clock>
void cache<Key, Value, Clock>::put(const Key& key, Value value) {
    const auto at = Clock::now() + ttl_;
    if (const auto found = entries_.find(key); found != entries_.end()) {
        found->second.value = std::move(value);
        expiry_.reschedule(found->second.alarm, at);
        return;
    }
    const auto alarm = expiry_.add(at, key);
    entries_.emplace(key, entry{std::move(value), alarm});
    if (entries_.size() == 1)
        sleep();
}

// --- its promises --------------------------------------------------------------------------------

using pawl::manual_clock;
using names = cache<std::string, std::string, manual_clock>;

void an_entry_lives_as_long_as_it_is_used() {
    asio::io_context context;
    names users(context.get_executor(), 1min);
    users.put("ada", "Ada Lovelace");
    users.put("alan", "Alan Turing");

    pass(context, 1min - 1ns);
    check(users.get("ada") != nullptr, "an entry is there until its time is up");
    pass(context, 1ns);
    check(users.get("alan") == nullptr, "and not a nanosecond longer");
    check(users.get("ada") != nullptr && *users.get("ada") == "Ada Lovelace", "a hit extends it");

    users.put("ada", "Countess of Lovelace");
    pass(context, 59s);
    check(*users.get("ada") == "Countess of Lovelace", "a value can be replaced");
    cookbook::pass_all(context);
    check(users.size() == 0 && context.stopped(), "an empty cache keeps nothing running");

    users.put("alan", "Alan Turing");
    check(users.get("alan") != nullptr, "and can be filled again");
}

void a_hundred_thousand_entries_take_few_wake_ups() {
    constexpr int many = 100'000;
    asio::io_context context;
    cache<int, int, manual_clock> numbers(context.get_executor(), 10min);
    for (int i = 0; i != many; ++i) {
        numbers.put(i, -i);
        manual_clock::advance(context, 1ms); // 100 s in all
    }
    pass(context, 5min);
    for (int i = 0; i < many; i += 2)
        static_cast<void>(numbers.get(i)); // all of these at once
    check(numbers.size() == many, "a hundred thousand entries");

    int wake_ups = 0;
    std::size_t half = 0;
    for (; !context.stopped(); ++wake_ups) {
        manual_clock::advance_to_next(context);
        pass(context, 0s);
        if (numbers.size() == many / 2)
            half = numbers.size();
    }
    std::cout << "  " << wake_ups << " wake-ups\n";
    check(half == many / 2, "those that were not used go first");
    check(numbers.size() == 0 && wake_ups <= 16 * 2, "at most 16 wake-ups in a time to live");
}

void a_cache_may_go_while_entries_live() {
    asio::io_context context;
    auto users = std::make_unique<names>(context.get_executor(), 1min);
    users->put("ada", "Ada Lovelace");
    manual_clock::advance(context, 2min); // the sweep is due, and has not run
    users.reset();
    context.run();
    check(context.stopped(), "a cache may go while a sweep is due");
}

void no_time_to_live() {
    asio::io_context context;
    try {
        const names refused(context.get_executor(), 0s);
        check(false, "a time to live of zero is refused");
    } catch (const std::invalid_argument& e) {
        check(true, e.what());
    }
}

} // namespace

int main() {
    an_entry_lives_as_long_as_it_is_used();
    a_hundred_thousand_entries_take_few_wake_ups();
    a_cache_may_go_while_entries_live();
    no_time_to_live();
    return cookbook::exit_status();
}
