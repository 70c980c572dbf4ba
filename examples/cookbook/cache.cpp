// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A cache whose entries expire when they have not been used for a while: pawl::expiring_map, with one
// alarm for all of them. A lookup compares times itself, so that an entry is gone to the nanosecond;
// the alarm only frees its memory, and may be late.
//
// The clock is a template parameter: std::chrono::steady_clock in a program, pawl::manual_clock
// here.

#include "support.hpp"

#include <pawl/expiring_map.hpp>
#include <pawl/manual_clock.hpp>

#include <boost/asio.hpp>

#include <chrono>
#include <cstddef>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

namespace asio = boost::asio;
using cookbook::check;
using cookbook::pass;
using namespace std::chrono_literals;

template <class Key, class Value, class Clock>
using cache = pawl::basic_expiring_map<Key, Value, Clock>;

/// Entries that were not used for `ttl` expire. Frees memory at most 16 times in a `ttl`.
pawl::expiring_map_options unused_for(std::chrono::nanoseconds ttl) {
    return {.ttl = ttl, .refresh_on_use = true, .slack = ttl / 16};
}

// --- its promises --------------------------------------------------------------------------------

using pawl::manual_clock;
using names = cache<std::string, std::string, manual_clock>;

void an_entry_lives_as_long_as_it_is_used() {
    asio::io_context context;
    names users(context, unused_for(1min));
    users.insert("ada", "Ada Lovelace");
    users.insert("alan", "Alan Turing");

    pass(context, 1min - 1ns);
    check(users.find("ada") != nullptr, "an entry is there until its time is up");
    pass(context, 1ns);
    check(users.find("alan") == nullptr, "and not a nanosecond longer");
    check(users.find("ada") != nullptr && *users.find("ada") == "Ada Lovelace", "a hit extends it");

    users.insert_or_assign("ada", "Countess of Lovelace");
    pass(context, 59s);
    check(*users.find("ada") == "Countess of Lovelace", "a value can be replaced");
    cookbook::pass_all(context);
    check(users.size() == 0 && context.stopped(), "an empty cache keeps nothing running");

    users.insert("alan", "Alan Turing");
    check(users.find("alan") != nullptr, "and can be filled again");
}

void a_hundred_thousand_entries_take_few_wake_ups() {
    constexpr int many = 100'000;
    asio::io_context context;
    cache<int, int, manual_clock> numbers(context, unused_for(10min));
    for (int i = 0; i != many; ++i) {
        numbers.insert(i, -i);
        manual_clock::advance(context, 1ms); // 100 s in all
    }
    pass(context, 5min);
    for (int i = 0; i < many; i += 2)
        static_cast<void>(numbers.find(i)); // all of these at once
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
    auto users = std::make_unique<names>(context, unused_for(1min));
    users->insert("ada", "Ada Lovelace");
    manual_clock::advance(context, 2min); // the sweep is due, and has not run
    users.reset();
    context.run();
    check(context.stopped(), "a cache may go while a sweep is due");
}

void no_time_to_live() {
    asio::io_context context;
    try {
        const names refused(context, unused_for(0s));
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
