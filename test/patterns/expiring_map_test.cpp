// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   pawl::expiring_map and pawl::delay_queue: what is found, when it goes, who gets it, and that nothing is lost
//   when keys, values, memory or waits fail. A random test compares the map with a sorted list.

#define BOOST_TEST_MODULE expiring_map
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <pawl/delay_queue.hpp>
#include <pawl/expire_all.hpp>
#include <pawl/expiring_map.hpp>
#include <pawl/manual_clock.hpp>

#include "../support/asio_configuration.hpp"
#include "service/counted_new.hpp"
#include "support/seed.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace data = boost::unit_test::data;
using boost::system::error_code;
using namespace std::chrono_literals;
using pawl::manual_clock;
using options = pawl::expiring_map_options;

template <class Key, class Value, class Hash = boost::hash<Key>, class Equal = std::equal_to<Key>>
using map_of = pawl::basic_expiring_map<Key, Value, manual_clock, Hash, Equal>;
using map = map_of<int, std::string>;
template <class Value>
using queue_of = pawl::basic_delay_queue<Value, manual_clock>;

struct fixture {
    asio::io_context context;

    void poll() {
        do {
            context.restart();
            manual_clock::advance(context, 0s);
        } while (context.poll() != 0);
    }
    void pass(manual_clock::duration d) {
        manual_clock::advance(context, d);
        poll();
    }
    bool idle() {
        poll();
        return context.stopped();
    }
};

/// What a pop has given.
template <class Entry>
struct outcome {
    int calls = 0;
    error_code code;
    std::optional<Entry> entry;

    auto record() {
        return [this](error_code ec, std::optional<Entry> e) {
            ++calls;
            code = ec;
            entry = std::move(e);
        };
    }
    [[nodiscard]] bool pending() const { return calls == 0; }
    [[nodiscard]] bool gave(int key) const {
        return calls == 1 && !code && entry && std::cmp_equal(entry->first, key);
    }
    [[nodiscard]] bool aborted() const {
        return calls == 1 && code == asio::error::operation_aborted && !entry;
    }
};
using popped = outcome<map::value_type>;

template <class F>
bool refused(F f) {
    try {
        f();
    } catch (const std::invalid_argument& e) {
        return std::string_view(e.what()).starts_with("pawl: ");
    }
    return false;
}

// --- times ----------------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(an_entry_is_found_until_its_time_is_up_and_no_longer, fixture) {
    map m(context, {.ttl = 10s});
    BOOST_TEST(m.insert(1, "one").second);
    BOOST_TEST(*m.find(1) == "one");
    BOOST_TEST(!m.find(2));
    pass(10s - 1ns);
    BOOST_TEST(*m.find(1) == "one");
    pass(1ns);
    BOOST_TEST(!m.find(1));
    BOOST_TEST(m.empty());
    BOOST_TEST(idle());
}

BOOST_FIXTURE_TEST_CASE(an_entry_may_have_a_time_to_live_of_its_own, fixture) {
    map m(context, {.ttl = 10s, .refresh_on_use = true});
    m.insert(1, "one", 30s);
    m.insert(2, "two", 1s);
    m.insert(3, "three");
    m.insert(4, "four", manual_clock::duration::max());
    pass(1s);
    BOOST_TEST(!m.peek(2));
    pass(9s);
    BOOST_TEST(!m.peek(3));
    BOOST_TEST(m.find(1)); // for 30 s again
    pass(30s - 1ns);
    BOOST_TEST(m.peek(1));
    pass(1ns);
    BOOST_TEST(!m.peek(1));
    BOOST_TEST(idle()); // the last one never expires, and keeps nothing running
    BOOST_TEST(m.find(4));
}

BOOST_FIXTURE_TEST_CASE(a_use_refreshes_an_entry_if_the_map_says_so, fixture) {
    map fixed(context, {.ttl = 10s});
    map fresh(context, {.ttl = 10s, .refresh_on_use = true});
    for (map* m : {&fixed, &fresh}) {
        m->insert(1, "used");
        m->insert(2, "looked at");
    }
    pass(6s);
    for (map* m : {&fixed, &fresh}) {
        BOOST_TEST(m->find(1));
        BOOST_TEST(m->peek(2));
    }
    pass(4s);
    BOOST_TEST(!fixed.find(1));
    BOOST_TEST(!fresh.peek(2));
    BOOST_TEST(fresh.peek(1));
    pass(6s);
    BOOST_TEST(!fresh.peek(1));
}

BOOST_FIXTURE_TEST_CASE(a_lookup_that_knows_the_time_does_not_depend_on_the_alarm, fixture) {
    map fixed(context, {.ttl = 10s});
    map fresh(context, {.ttl = 10s, .refresh_on_use = true});
    fixed.insert(1, "one");
    fresh.insert(1, "one");
    manual_clock::advance(context, 10s - 1ns); // and the alarm has not gone off
    BOOST_TEST(fixed.find(1, manual_clock::now()));
    manual_clock::advance(context, 1ns);
    BOOST_TEST(!fixed.find(1, manual_clock::now()));
    BOOST_TEST(fixed.find(1)); // no clock is read
    BOOST_TEST(!fresh.find(1));
    BOOST_TEST(!fresh.touch(1, 1s));
    BOOST_TEST(fixed.size() == 1u);
    poll();
    BOOST_TEST(fixed.size() + fresh.size() == 0u);
}

BOOST_FIXTURE_TEST_CASE(a_touch_moves_the_expiry_earlier_or_later, fixture) {
    map m(context, {.ttl = 10s});
    m.insert(1, "one");
    m.insert(2, "two");
    BOOST_TEST(m.touch(1, 20s));
    BOOST_TEST(m.touch(2, 1s));
    BOOST_TEST(!m.touch(3, 1s));
    pass(1s);
    BOOST_TEST(!m.find(2));
    pass(19s - 1ns);
    BOOST_TEST(m.find(1));
    pass(1ns);
    BOOST_TEST(!m.find(1));
    BOOST_TEST(refused([&] { m.touch(1, 0s); }));
}

BOOST_FIXTURE_TEST_CASE(a_stale_reading_does_not_shorten_a_life, fixture) {
    map m(context, {.ttl = 10s, .refresh_on_use = true});
    const auto before = manual_clock::now();
    pass(5s);
    m.insert(1, "one");
    BOOST_TEST(m.find(1, before));
    pass(10s - 1ns);
    BOOST_TEST(m.peek(1));
    pass(1ns);
    BOOST_TEST(!m.peek(1));
}

BOOST_FIXTURE_TEST_CASE(an_insertion_keeps_what_is_there_and_an_assignment_replaces_it, fixture) {
    map m(context, {.ttl = 10s});
    m.insert(1, "one");
    m.insert(2, "two");
    pass(5s);
    BOOST_TEST(!m.insert(1, "uno").second);
    BOOST_TEST(*m.insert(1, "uno").first == "one");
    BOOST_TEST(!m.insert_or_assign(2, "due").second);
    BOOST_TEST(*m.find(2) == "due");
    BOOST_TEST(m.insert_or_assign(3, "tre").second);
    pass(5s);
    BOOST_TEST(!m.find(1));
    BOOST_TEST(m.find(2));
    m.insert_or_assign(2, "deux", 1s);
    pass(1s);
    BOOST_TEST(!m.find(2));
    pass(4s);
    BOOST_TEST(m.empty());
}

BOOST_FIXTURE_TEST_CASE(an_insertion_finds_no_entry_that_has_expired, fixture) {
    map m(context, {.ttl = 10s, .keep_expired = true});
    m.insert(1, "old");
    manual_clock::advance(context, 10s);
    BOOST_TEST(m.insert(1, "new").second);
    BOOST_TEST(*m.find(1) == "new");
    BOOST_TEST(m.expired_size() == 1u);
    popped p;
    m.async_pop_expired(p.record());
    poll();
    BOOST_TEST(p.gave(1));
    BOOST_TEST(p.entry->second == "old");
    pass(10s - 1ns);
    BOOST_TEST(m.find(1));
}

BOOST_FIXTURE_TEST_CASE(erased_entries_are_gone_and_an_empty_map_keeps_nothing_running, fixture) {
    map m(context, {.ttl = 10s, .capacity = 10});
    m.insert(1, "one");
    m.insert(2, "two");
    BOOST_TEST(!idle());
    BOOST_TEST(m.erase(1));
    BOOST_TEST(!m.erase(1));
    BOOST_TEST(!m.find(1));
    BOOST_TEST(!idle());
    BOOST_TEST(m.erase(2));
    BOOST_TEST(idle());
    for (int i = 0; i != 10; ++i)
        m.insert(i, "again");
    m.clear();
    BOOST_TEST(m.empty());
    BOOST_TEST(idle());
    m.insert(1, "one");
    pass(10s);
    BOOST_TEST(m.empty());
}

BOOST_FIXTURE_TEST_CASE(a_crowd_that_expires_at_once_goes_in_several_turns, fixture) {
    map_of<int, int> m(context, {.ttl = 10s});
    for (int i = 0; i != 10'000; ++i)
        m.insert(i, i);
    manual_clock::advance(context, 10s);
    std::size_t turns = 0;
    for (std::size_t left = m.size(); left != 0; ++turns) {
        manual_clock::advance(context, 0s);
        context.restart();
        context.poll_one();
        BOOST_REQUIRE(left - m.size() <= 64u);
        left = m.size();
    }
    BOOST_TEST(turns >= 10'000u / 64);
    BOOST_TEST(idle());
}

BOOST_FIXTURE_TEST_CASE(slack_saves_wake_ups, fixture) {
    map_of<int, int> m(context, {.ttl = 16s, .refresh_on_use = true, .slack = 1s});
    for (int i = 0; i != 1000; ++i) {
        m.insert(i, i);
        manual_clock::advance(context, 16ms);
    }
    int wake_ups = 0;
    for (; !idle(); ++wake_ups) {
        manual_clock::advance_to_next(context);
        for (int i = 0; i != 1000; ++i) {
            const auto* found = m.peek(i);
            BOOST_REQUIRE(!found || *found == i);
        }
    }
    BOOST_TEST(m.empty());
    BOOST_TEST(wake_ups <= 2 * 16 + 1);
}

BOOST_FIXTURE_TEST_CASE(an_insertion_arms_an_alarm_that_was_cancelled, fixture) {
    map m(context, {.ttl = 10s});
    m.insert(1, "one");
    pawl::cancel_all(context);
    BOOST_TEST(idle());
    pass(5s);
    m.insert(2, "two");
    pass(5s);
    BOOST_TEST(!m.find(1));
    BOOST_TEST(m.find(2));
}

BOOST_AUTO_TEST_CASE(a_map_may_outlive_its_context_and_go_while_an_alarm_is_due) {
    std::optional<map> m;
    {
        fixture f;
        m.emplace(f.context, options{.ttl = 10s});
        m->insert(1, "one");
        manual_clock::advance(f.context, 10s);
        m.reset();
        f.poll();
        m.emplace(f.context, options{.ttl = 10s, .keep_expired = true});
        m->insert(1, "one");
    }
    BOOST_TEST(m->find(1));
    m->insert(2, "two");
    BOOST_TEST(m->erase(1));
}

BOOST_FIXTURE_TEST_CASE(bad_options_are_refused_with_advice, fixture) {
    BOOST_TEST(refused([&] { map(context, {.ttl = 0s}); }));
    BOOST_TEST(refused([&] { map(context, {.ttl = -1s}); }));
    BOOST_TEST(refused([&] { map(context, {.ttl = 1s, .capacity = 0}); }));
    BOOST_TEST(refused([&] { map(context, {.ttl = 1s, .slack = -1ns}); }));
    map m(context, {.ttl = 1s});
    BOOST_TEST(refused([&] { m.insert(1, "one", 0s); }));
    BOOST_TEST(refused([&] { m.insert_or_assign(1, "one", -1s); }));
    BOOST_TEST(m.empty());
    BOOST_TEST(refused([&] { m.async_pop_expired([](auto&&...) {}); }));
    BOOST_TEST(idle());
}

// --- the bound ------------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(a_full_map_drops_what_was_not_used_for_longest, fixture) {
    map m(context, {.ttl = 1h, .capacity = 3});
    m.insert(1, "one");
    m.insert(2, "two");
    m.insert(3, "three");
    BOOST_TEST(m.find(1)); // a use
    BOOST_TEST(m.peek(2)); // none
    BOOST_TEST(*m.insert(4, "four").first == "four");
    BOOST_TEST(m.size() == 3u);
    BOOST_TEST(!m.peek(2));
    m.touch(3, 1h);
    m.insert_or_assign(1, "uno");
    m.insert(5, "five"); // 4 goes
    BOOST_TEST(!m.peek(4));
    BOOST_TEST(m.find(3, manual_clock::now()));
    m.insert(6, "six"); // 1 goes
    BOOST_TEST(!m.peek(1));
    BOOST_TEST(m.peek(3));
    BOOST_TEST(m.erase(3));
    m.insert(7, "seven");
    BOOST_TEST(m.peek(5));
}

BOOST_FIXTURE_TEST_CASE(a_map_of_one_keeps_the_newest, fixture) {
    map m(context, {.ttl = 10s, .capacity = 1, .keep_expired = true});
    for (int i = 0; i != 100; ++i)
        BOOST_TEST(*m.insert(i, std::to_string(i)).first == std::to_string(i));
    BOOST_TEST(m.size() == 1u);
    BOOST_TEST(m.expired_size() == 0u); // to be dropped is not to expire
    pass(10s);
    BOOST_TEST(m.expired_size() == 1u);
}

// --- keys -----------------------------------------------------------------------------------------

struct any_text_hash {
    using is_transparent = void;
    using is_avalanching = void;
    std::size_t operator()(std::string_view text) const {
        return boost::hash<std::string_view>()(text);
    }
};

BOOST_FIXTURE_TEST_CASE(keys_are_found_by_what_compares_with_them, fixture) {
    map_of<std::string, int, any_text_hash, std::equal_to<>> m(context, {.ttl = 10s});
    m.insert("a key that is longer than a short string", 1);
    const std::string_view key = "a key that is longer than a short string";
    const std::size_t before = counted_new::calls;
    BOOST_TEST(*m.find(key) == 1);
    BOOST_TEST(*m.find(key, manual_clock::now()) == 1);
    BOOST_TEST(*m.peek(key) == 1);
    BOOST_TEST(m.touch(key, 20s));
    BOOST_TEST(m.erase(key));
    BOOST_TEST(counted_new::calls - before == 0u); // no std::string was made

    map_of<std::string, int> plain(context, {.ttl = 10s});
    plain.insert("key", 1);
    BOOST_TEST(plain.find("key"));
    BOOST_TEST(plain.touch("key", 1s));
    BOOST_TEST(plain.erase("key"));
}

BOOST_FIXTURE_TEST_CASE(keys_and_values_need_not_be_copied, fixture) {
    using text = std::unique_ptr<std::string>;
    using moved = map_of<text, text>;
    moved m(context, {.ttl = 10s, .keep_expired = true});
    for (int i = 0; i != 100; ++i)
        m.insert(std::make_unique<std::string>("key"), std::make_unique<std::string>("value"));
    pass(10s);
    outcome<moved::value_type> p;
    m.async_pop_expired(p.record());
    poll();
    BOOST_TEST(*p.entry->first == "key");
    BOOST_TEST(*p.entry->second == "value");
}

/// Calls of user functions until one throws.
long fuse = -1;
void may_throw() {
    if (fuse >= 0 && fuse-- == 0)
        throw std::runtime_error("key");
}
struct bad_hash {
    std::size_t operator()(int key) const {
        may_throw();
        return static_cast<std::size_t>(key % 7); // many collisions
    }
};
struct bad_equal {
    bool operator()(int a, int b) const {
        may_throw();
        return a == b;
    }
};

BOOST_FIXTURE_TEST_CASE(keys_that_throw_change_nothing, fixture) {
    using bad_map = map_of<int, std::string, bad_hash, bad_equal>;
    bad_map m(context, {.ttl = 10s, .capacity = 200});
    const auto check = [&](int count) {
        fuse = -1;
        BOOST_REQUIRE(m.size() == static_cast<std::size_t>(count));
        for (int i = 0; i != count; ++i)
            BOOST_REQUIRE(*m.peek(i) == std::to_string(i));
    };
    int throws = 0;
    const auto try_each = [&](auto f, int count) {
        for (long calls = 0;; ++calls) {
            fuse = calls;
            try {
                f();
                break;
            } catch (const std::runtime_error&) {
                ++throws;
            }
            check(count);
        }
        fuse = -1;
    };
    for (int i = 0; i != 100; ++i) { // it grows meanwhile
        const std::string text = std::to_string(i);
        try_each([&] { BOOST_REQUIRE(!m.find(i)); }, i);
        try_each([&] { BOOST_REQUIRE(!m.erase(i)); }, i);
        try_each([&] { BOOST_REQUIRE(m.insert(i, text).second); }, i);
        check(i + 1);
        try_each([&] { BOOST_REQUIRE(!m.insert_or_assign(i, text).second); }, i + 1);
        try_each([&] { BOOST_REQUIRE(m.touch(i, 10s)); }, i + 1);
    }
    BOOST_TEST(throws > 500);
    fuse = 0; // expiry calls neither
    pass(10s);
    BOOST_TEST(m.empty());
    BOOST_TEST(fuse == 0);
    fuse = -1;
}

BOOST_FIXTURE_TEST_CASE(without_memory_nothing_changes_and_nothing_is_lost, fixture) {
    map_of<int, int> m(context, {.ttl = 10s, .capacity = 1000, .keep_expired = true});
    int failures = 0;
    const auto try_each = [&](auto f, auto check) {
        for (long calls = 0;; ++calls) {
            counted_new::fuse = calls;
            bool done = false;
            try {
                f();
                done = true;
            } catch (const std::bad_alloc&) {
                ++failures;
            }
            counted_new::fuse = counted_new::never;
            if (done)
                break;
            check();
        }
    };
    for (int i = 0; i != 200; ++i)
        try_each([&] { m.insert(i, -i); }, [&] { BOOST_REQUIRE(m.size() == std::size_t(i)); });
    for (int i = 0; i != 200; ++i)
        BOOST_REQUIRE(*m.peek(i) == -i);

    manual_clock::advance(context, 10s);
    try_each([&] { m.insert(0, 7); }, [&] { BOOST_REQUIRE(m.size() + m.expired_size() == 200u); });
    BOOST_TEST(*m.peek(0) == 7);
    try_each([&] { poll(); }, [&] { BOOST_REQUIRE(m.size() + m.expired_size() == 201u); });
    BOOST_TEST(failures > 200);
    BOOST_TEST(m.expired_size() == 200u);
    std::vector<int> keys;
    for (int i = 0; i != 200; ++i) {
        outcome<map_of<int, int>::value_type> p;
        try_each([&] { m.async_pop_expired(p.record()); }, [&] { poll(); });
        poll();
        BOOST_REQUIRE(p.entry.has_value());
        BOOST_REQUIRE(p.entry->second == -p.entry->first);
        keys.push_back(p.entry->first);
    }
    std::sort(keys.begin(), keys.end());
    for (int i = 0; i != 200; ++i)
        BOOST_REQUIRE(keys[static_cast<std::size_t>(i)] == i);
    pass(10s);
    BOOST_TEST(m.expired_size() == 1u);
}

// --- values that use the map ----------------------------------------------------------------------

struct last_words {
    std::function<void()> f;
    explicit last_words(std::function<void()> g) : f(std::move(g)) {}
    last_words(last_words&& other) noexcept : f(std::exchange(other.f, nullptr)) {}
    last_words& operator=(last_words&& other) noexcept {
        std::swap(f, other.f);
        return *this;
    }
    ~last_words() {
        if (f)
            f();
    }
};

BOOST_FIXTURE_TEST_CASE(a_value_may_use_the_map_as_it_is_destroyed, fixture) {
    map_of<int, last_words> m(context, {.ttl = 10s, .capacity = 50});
    int calls = 0;
    const auto words = [&](int i) {
        return last_words([&, i] {
            ++calls;
            BOOST_TEST(!m.peek(i));
            if (i >= 1000)
                return;
            m.erase(i + 1);
            m.insert(i + 1000, last_words([&] { ++calls; }));
        });
    };
    for (int i = 0; i != 40; ++i)
        m.insert(i, words(i));
    m.erase(20); // and so 21, and so on
    BOOST_TEST(m.size() == 40u);
    pass(10s);
    m.clear();
    BOOST_TEST(m.empty());
    for (int i = 0; i != 200; ++i) // dropped, as the map is full
        m.insert(i, words(i));
    m.clear();
    pass(10s);
    pass(10s);
    BOOST_TEST(m.empty());
    BOOST_TEST(calls > 240);
}

BOOST_FIXTURE_TEST_CASE(a_value_may_destroy_the_map_as_it_expires, fixture) {
    std::optional<map_of<int, last_words>> m;
    for (const int how : {0, 1, 2, 3}) {
        m.emplace(context, options{.ttl = 10s, .capacity = 2});
        m->insert(1, last_words([&] { m.reset(); }));
        m->insert(2, last_words([&] {}));
        switch (how) {
        case 0:
            pass(10s);
            break;
        case 1:
            m->erase(1);
            break;
        case 2:
            m->clear();
            break;
        default:
            m->insert(3, last_words([&] {}));
        }
        BOOST_TEST(!m.has_value());
        BOOST_TEST(idle());
    }
}

// --- pops -----------------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(expired_entries_are_popped_in_their_order_by_waits_in_theirs, fixture) {
    map m(context, {.ttl = 10s, .keep_expired = true});
    m.insert(3, "three", 3s);
    m.insert(1, "one", 1s);
    m.insert(2, "two", 2s);
    m.insert(4, "four", 3s); // after the other one
    std::array<popped, 5> p;
    m.async_pop_expired(p[0].record());
    m.async_pop_expired(p[1].record());
    poll();
    BOOST_TEST(p[0].pending());
    pass(1s);
    BOOST_TEST(p[0].gave(1));
    BOOST_TEST(p[0].entry->second == "one");
    BOOST_TEST(p[1].pending());
    pass(2s);
    BOOST_TEST(p[1].gave(2));
    BOOST_TEST(m.expired_size() == 2u);
    BOOST_TEST(m.empty());
    m.async_pop_expired(p[2].record());
    BOOST_TEST(p[2].pending()); // never inside
    m.async_pop_expired(p[3].record());
    m.async_pop_expired(p[4].record());
    poll();
    BOOST_TEST(p[2].gave(3));
    BOOST_TEST(p[3].gave(4));
    BOOST_TEST(p[4].pending());
    BOOST_TEST(!context.stopped()); // it waits
}

BOOST_FIXTURE_TEST_CASE(a_cancelled_pop_takes_nothing_and_the_next_one_gets_it, fixture) {
    for (const auto type : {asio::cancellation_type::terminal, asio::cancellation_type::partial,
                            asio::cancellation_type::total}) {
        map m(context, {.ttl = 10s, .keep_expired = true});
        std::array<popped, 2> p;
        asio::cancellation_signal signal;
        m.async_pop_expired(asio::bind_cancellation_slot(signal.slot(), p[0].record()));
        m.async_pop_expired(p[1].record());
        m.insert(1, "one");
        signal.emit(type); // its handler has not run when the entry expires
        pass(10s);
        BOOST_TEST(p[0].aborted());
        BOOST_TEST(p[1].gave(1));
    }
}

BOOST_FIXTURE_TEST_CASE(a_cancelled_pop_is_passed_by_also_before_its_handler_runs, fixture) {
    map m(context, {.ttl = 10s, .keep_expired = true});
    std::array<popped, 3> p;
    asio::cancellation_signal signal;
    m.async_pop_expired(asio::bind_cancellation_slot(signal.slot(), p[0].record()));
    m.insert(1, "one");
    manual_clock::advance(context, 10s);
    // The wait is cancelled, and then given the entry by an insertion: the entry wins.
    signal.emit(asio::cancellation_type::total);
    m.insert(1, "uno");
    poll();
    BOOST_TEST(p[0].gave(1));
    m.async_pop_expired(p[1].record());
    pass(10s);
    BOOST_TEST(p[1].gave(1));
    BOOST_TEST(p[1].entry->second == "uno");
}

BOOST_FIXTURE_TEST_CASE(a_cancelled_pop_that_goes_with_its_own_context_takes_nothing, fixture) {
    map m(context, {.ttl = 10s, .keep_expired = true});
    m.insert(1, "a");
    popped gone;
    {
        asio::io_context other;
        asio::cancellation_signal stop;
        m.async_pop_expired(
            asio::bind_executor(other, asio::bind_cancellation_slot(stop.slot(), gone.record())));
        stop.emit(asio::cancellation_type::terminal);
        poll();
    }
    BOOST_TEST(gone.pending());
    popped next;
    m.async_pop_expired(next.record());
    pass(10s);
    BOOST_TEST(next.gave(1));
}

BOOST_FIXTURE_TEST_CASE(entries_that_expired_come_in_order_also_if_one_makes_room, fixture) {
    map m(context, {.ttl = 10s, .capacity = 3, .keep_expired = true});
    m.insert(1, "a", 1s);
    m.insert(2, "b", 2s);
    m.insert(3, "c");
    manual_clock::advance(context, 2s); // the alarm is late
    m.insert(2, "d");
    BOOST_TEST(m.expired_size() == 2u);
    for (const int key : {1, 2}) {
        popped p;
        m.async_pop_expired(p.record());
        poll();
        BOOST_TEST(p.gave(key));
        BOOST_TEST((p.entry && p.entry->second == (key == 1 ? "a" : "b")));
    }
}

BOOST_FIXTURE_TEST_CASE(an_entry_that_expired_is_kept_also_if_the_map_is_full, fixture) {
    map m(context, {.ttl = 10s, .capacity = 2, .keep_expired = true});
    m.insert(1, "a", 1s);
    m.insert(2, "b");
    manual_clock::advance(context, 1s); // the alarm is late
    m.insert(3, "c");
    BOOST_TEST(m.expired_size() == 1u);
    BOOST_TEST(m.size() == 2u);
    m.insert(4, "d"); // drops the oldest, which has not expired
    BOOST_TEST(m.expired_size() == 1u);
    BOOST_TEST(!m.peek(2));
}

BOOST_FIXTURE_TEST_CASE(a_cancel_after_the_entry_was_given_loses_nothing, fixture) {
    map m(context, {.ttl = 10s, .keep_expired = true});
    m.insert(1, "one");
    pass(10s);
    popped p;
    asio::cancellation_signal signal;
    m.async_pop_expired(asio::bind_cancellation_slot(signal.slot(), p.record()));
    signal.emit(asio::cancellation_type::terminal);
    poll();
    BOOST_TEST(p.gave(1));
    signal.emit(asio::cancellation_type::terminal); // after its end
}

BOOST_FIXTURE_TEST_CASE(waits_that_were_cancelled_do_not_pile_up, fixture) {
    map m(context, {.ttl = 10s, .keep_expired = true});
    std::size_t live = 0;
    for (int i = 0; i != 200; ++i) {
        popped p;
        asio::cancellation_signal signal;
        m.async_pop_expired(asio::bind_cancellation_slot(signal.slot(), p.record()));
        signal.emit(asio::cancellation_type::total);
        poll();
        BOOST_REQUIRE(p.aborted());
        if (i == 100)
            live = counted_new::live;
    }
    BOOST_TEST(counted_new::live <= live + 8);
}

BOOST_FIXTURE_TEST_CASE(pops_are_aborted_when_the_map_goes, fixture) {
    popped p, q;
    {
        map m(context, {.ttl = 10s, .keep_expired = true});
        m.async_pop_expired(p.record());
        m.async_pop_expired(q.record());
    }
    BOOST_TEST(p.pending());
    poll();
    BOOST_TEST(p.aborted());
    BOOST_TEST(q.aborted());
    BOOST_TEST(context.stopped());
}

BOOST_FIXTURE_TEST_CASE(a_map_may_go_in_the_handler_of_a_pop, fixture) {
    std::optional<map> m;
    m.emplace(context, options{.ttl = 10s, .keep_expired = true});
    int calls = 0;
    popped p;
    m->async_pop_expired([&](error_code ec, const auto& entry) {
        ++calls;
        BOOST_TEST(!ec);
        BOOST_TEST(entry->first == 1);
        m.reset();
    });
    m->async_pop_expired(p.record());
    m->insert(1, "one");
    pass(10s);
    BOOST_TEST(calls == 1);
    BOOST_TEST(p.aborted());
}

BOOST_FIXTURE_TEST_CASE(expire_all_ends_a_pop_with_its_error, fixture) {
    map m(context, {.ttl = 10s, .keep_expired = true});
    popped p, q;
    m.async_pop_expired(p.record());
    pawl::expire_all(context, asio::error::shut_down);
    poll();
    BOOST_TEST((p.calls == 1 && p.code == asio::error::shut_down && !p.entry));
    m.async_pop_expired(q.record());
    pawl::expire_all(context, error_code());
    poll();
    BOOST_TEST(q.aborted());
}

// Regression: it waited for ever, although an entry had expired.
BOOST_DATA_TEST_CASE_F(fixture, a_pop_arms_an_alarm_that_was_cancelled_or_refused,
                       data::make({1U, 2U, 4U}), shards) {
    constexpr int most = 4;
    pawl::make_timer_service<pawl::manual_timer>(
        context, pawl::options{.shards = shards, .max_pending = most});
    map m(context, {.ttl = 10s, .keep_expired = true});
    queue_of<int> q(context);
    pawl::manual_timer others(context);
    for (const int id : {0, 1, 2}) {
        others.expires_after(1s);
        for (int i = 0; i != (id == 2 ? most : 0); ++i)
            others.async_wait([](error_code) {});
        m.insert(id, "");
        q.push(id, 10s);
        if (id != 2)
            BOOST_TEST((id == 0 ? pawl::cancel_all(context) : pawl::expire_all(context)) == 2U);
        pass(2s);
        popped p;
        outcome<queue_of<int>::value_type> r;
        std::thread([&] { // of another shard
            m.async_pop_expired(p.record());
            q.async_pop(r.record());
        })
            .join();
        pass(9s); // options have a precision
        BOOST_TEST(p.gave(id));
        BOOST_TEST(r.gave(id));
        BOOST_TEST(idle());
    }
}

/// cancel_all() and expire_all() go from shard to shard. The alarm of the map is in the first one, what
/// `elsewhere` does in the second.
template <class Clock>
struct two_shards {
    explicit two_shards(std::chrono::nanoseconds ttl) {
        pawl::make_timer_service<Clock>(context, {.shards = 2});
        m.emplace(context, options{.ttl = ttl, .keep_expired = true});
        m->insert(1, "one");
    }
    void pop() { m->async_pop_expired(p.emplace_back().record()); }
    void end_all(bool cancels) { // in the shard of this thread
        asio::use_service<pawl::timer_service<Clock>>(context).enter().expire_all(
            asio::error::operation_aborted,
            cancels ? pawl::detail::wait_ending::cancelled : pawl::detail::wait_ending::early);
    }
    bool idle() {
        context.restart();
        context.poll();
        return context.stopped();
    }
    template <class F>
    static void elsewhere(F f) {
        std::thread(f).join();
    }

    asio::io_context context;
    std::deque<popped> p;
    std::optional<pawl::basic_expiring_map<int, std::string, Clock>> m;
};

// Regression: it waited for ever.
BOOST_DATA_TEST_CASE(a_pop_that_starts_behind_cancel_all_or_expire_all_is_served,
                     data::make({false, true}), cancels) {
    two_shards<std::chrono::steady_clock> t(1ms);
    t.elsewhere([&] { t.pop(); });
    t.end_all(cancels);
    t.context.run();
    BOOST_TEST(t.p[0].gave(1));
}

template <class Clock>
void check_work(bool cancels, bool inserts) {
    two_shards<Clock> t(1h);
    t.elsewhere([&] { t.pop(); });
    t.end_all(cancels);
    BOOST_TEST(!t.idle()); // the pop
    t.elsewhere([&] { t.end_all(cancels); });
    BOOST_TEST(t.idle());
    BOOST_TEST(t.p[0].aborted());
    if (inserts)
        t.m->insert(2, "two");
    else
        t.elsewhere([&] { t.pop(), t.end_all(cancels); });
    BOOST_TEST(!t.idle()); // the alarm
    BOOST_TEST(pawl::cancel_all(t.context) == 1U);
    BOOST_TEST(t.idle());
    BOOST_TEST(pawl::cancel_all(t.context) == 0U);
}
BOOST_DATA_TEST_CASE(an_alarm_ended_before_a_pop_is_no_work_until_the_next_insertion_or_pop,
                     data::make({false, true}) * data::make({false, true}), cancels, inserts) {
    check_work<std::chrono::steady_clock>(cancels, inserts);
    check_work<manual_clock>(cancels, inserts);
}

BOOST_AUTO_TEST_CASE(a_pop_is_destroyed_with_its_context) {
    const auto token = std::make_shared<int>(0);
    std::optional<map> m;
    {
        fixture f;
        m.emplace(f.context, options{.ttl = 10s, .keep_expired = true});
        m->insert(1, "one");
        m->async_pop_expired([token](error_code, const auto&) { BOOST_ERROR("called"); });
        m->async_pop_expired([token](error_code, const auto&) { BOOST_ERROR("called"); });
        manual_clock::advance(f.context, 10s);
        m->insert(1, "uno"); // gives it the old one
        BOOST_TEST(token.use_count() == 3);
    }
    BOOST_TEST(token.use_count() == 1);
    m.reset();
}

BOOST_FIXTURE_TEST_CASE(pops_work_with_coroutines_and_futures, fixture) {
    map m(context, {.ttl = 10s, .keep_expired = true});
    m.insert(1, "one");
    m.insert(2, "two");
    std::string text;
    asio::co_spawn(
        context,
        [&]() -> asio::awaitable<void> {
            const auto entry = co_await m.async_pop_expired(asio::use_awaitable);
            text = entry->second;
        },
        asio::detached);
    poll();
    auto future = m.async_pop_expired(asio::use_future);
    pass(10s);
    BOOST_TEST(text == "one");
    BOOST_TEST(future.get()->second == "two");
}

BOOST_FIXTURE_TEST_CASE(the_handler_of_a_pop_runs_on_its_executor, fixture) {
    asio::io_context other;
    map m(context, {.ttl = 10s, .keep_expired = true});
    m.insert(1, "one");
    popped p;
    m.async_pop_expired(asio::bind_executor(other.get_executor(), p.record()));
    pass(10s);
    BOOST_TEST(p.pending());
    BOOST_TEST(other.run() != 0u); // its work
    BOOST_TEST(p.gave(1));
}

// --- the queue ------------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(a_queue_gives_values_in_the_order_of_their_expiry, fixture) {
    queue_of<std::string> q(context);
    BOOST_TEST(q.empty());
    q.push("c", 3s);
    q.push("a", 1s);
    q.push("b", 1s);
    const auto id = q.push("never", manual_clock::duration::max());
    BOOST_TEST(q.size() == 4u);
    std::string order;
    std::function<void()> pop = [&] {
        q.async_pop([&](error_code ec, auto entry) {
            if (ec)
                return;
            order += entry->second;
            pop();
        });
    };
    pop();
    pass(1s - 1ns);
    BOOST_TEST(order.empty());
    pass(1ns);
    BOOST_TEST(order == "ab");
    q.push("0", 0s);
    BOOST_TEST(order == "ab"); // never inside
    poll();
    BOOST_TEST(order == "ab0");
    q.push("1", -1h);
    poll();
    BOOST_TEST(order == "ab01");
    pass(2s);
    BOOST_TEST(order == "ab01c");
    BOOST_TEST(q.size() == 1u);
    BOOST_TEST(q.cancel(id));
    BOOST_TEST(q.empty());
}

BOOST_FIXTURE_TEST_CASE(values_without_a_delay_come_in_the_order_of_push, fixture) {
    queue_of<int> q(context);
    q.push(1, -1s);
    q.push(2, 0s);
    q.push(3, std::chrono::hours::min());
    for (const int value : {1, 2, 3}) {
        outcome<queue_of<int>::value_type> p;
        q.async_pop(p.record());
        poll();
        BOOST_TEST((p.entry && p.entry->second == value));
    }
}

BOOST_FIXTURE_TEST_CASE(a_cancelled_value_does_not_come_and_a_due_one_is_not_cancelled, fixture) {
    queue_of<std::string> q(context);
    const auto a = q.push("a", 1s);
    const auto b = q.push("b", 1s);
    BOOST_TEST(a != b);
    BOOST_TEST(q.cancel(a));
    BOOST_TEST(!q.cancel(a));
    BOOST_TEST(!q.cancel(12345));
    manual_clock::advance(context, 1s);
    BOOST_TEST(!q.cancel(b)); // the alarm is late
    poll();
    BOOST_TEST(!q.cancel(b));
    BOOST_TEST(q.size() == 1u);
    outcome<queue_of<std::string>::value_type> p;
    q.async_pop(p.record());
    poll();
    BOOST_TEST((p.entry && p.entry->first == b && p.entry->second == "b"));
    BOOST_TEST(idle());
}

// --- the model ------------------------------------------------------------------------------------

struct model {
    struct entry {
        int value;
        manual_clock::duration ttl;
        manual_clock::time_point due;
        int filed; ///< numbers what restarts its life
        int used;
    };
    options o;
    std::map<int, entry> entries;
    std::deque<std::pair<int, int>> expired;
    std::deque<int> waits; ///< numbers
    std::map<int, std::pair<int, int>> given;
    int counter = 0;

    using iterator = std::map<int, entry>::iterator;

    iterator least_used() {
        return std::min_element(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
            return a.second.used < b.second.used;
        });
    }
    static bool is_over(iterator i) { return i->second.due <= manual_clock::now(); }
    void expire(iterator i) {
        if (o.keep_expired)
            expired.emplace_back(i->first, i->second.value);
        entries.erase(i);
    }
    void serve() {
        for (; !expired.empty() && !waits.empty(); waits.pop_front(), expired.pop_front())
            given[waits.front()] = expired.front();
    }
    void restart(entry& e, manual_clock::duration ttl) {
        e.ttl = ttl;
        e.due = manual_clock::now() + ttl;
        e.filed = e.used = ++counter;
    }
    bool put(int key, int value, manual_clock::duration ttl, bool replaces) {
        auto i = entries.find(key);
        if (i != entries.end() && is_over(i)) {
            o.keep_expired ? polled() : expire(i);
            i = entries.end();
        } else if (i == entries.end() && o.keep_expired && entries.size() >= o.capacity &&
                   is_over(least_used())) {
            polled();
        }
        if (i != entries.end()) {
            if (replaces) {
                i->second.value = value;
                restart(i->second, ttl);
            }
            return false;
        }
        restart(entries[key], ttl);
        entries[key].value = value;
        if (entries.size() > o.capacity)
            entries.erase(least_used());
        return true;
    }
    std::optional<int> find(int key, bool knows_the_time) {
        const auto i = entries.find(key);
        if (i == entries.end() ||
            ((o.refresh_on_use || knows_the_time) && i->second.due <= manual_clock::now()))
            return {};
        i->second.used = ++counter;
        if (o.refresh_on_use && manual_clock::now() + i->second.ttl > i->second.due)
            restart(i->second, i->second.ttl);
        return i->second.value;
    }
    void polled() {
        std::vector<std::tuple<manual_clock::time_point, int, int>> due;
        for (const auto& [key, e] : entries)
            if (e.due <= manual_clock::now())
                due.emplace_back(e.due, e.filed, key);
        std::sort(due.begin(), due.end());
        for (const auto& d : due)
            expire(entries.find(std::get<2>(d)));
        serve();
    }
};

BOOST_AUTO_TEST_CASE(a_map_does_what_its_model_does) {
    std::mt19937_64 random(pawl_test::seed());
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const std::uint64_t rounds = pawl_test::steps(200);
    for (std::uint64_t round = 0; round != rounds; ++round) {
        fixture f;
        model o{{.ttl = manual_clock::duration(1 + below(20))}, {}, {}, {}, {}};
        o.o.refresh_on_use = below(2) == 0;
        o.o.keep_expired = below(2) == 0;
        if (below(2) == 0)
            o.o.capacity = static_cast<std::size_t>(1 + below(20));
        map_of<int, int> m(f.context, o.o);
        std::map<int, std::pair<int, int>> given;
        const int keys = 1 + below(200);
        int wait = 0;
        for (int step = 0; step != 1000; ++step) {
            const int key = below(keys);
            const auto ttl = manual_clock::duration(1 + below(30));
            switch (below(10)) {
            case 0:
                BOOST_REQUIRE(m.insert(key, step).second == o.put(key, step, o.o.ttl, false));
                break;
            case 1:
                BOOST_REQUIRE(m.insert(key, step, ttl).second == o.put(key, step, ttl, false));
                break;
            case 2:
                BOOST_REQUIRE(m.insert_or_assign(key, step, ttl).second ==
                              o.put(key, step, ttl, true));
                break;
            case 3:
            case 4: {
                const bool knows = below(2) == 0;
                const int* const found = knows ? m.find(key, manual_clock::now()) : m.find(key);
                const auto expected = o.find(key, knows);
                BOOST_REQUIRE((found != nullptr) == expected.has_value());
                BOOST_REQUIRE((!found || *found == *expected));
                break;
            }
            case 5: {
                const auto i = o.entries.find(key);
                const bool alive = i != o.entries.end() && i->second.due > manual_clock::now();
                BOOST_REQUIRE(m.touch(key, ttl) == alive);
                if (alive)
                    o.restart(i->second, ttl);
                break;
            }
            case 6:
                BOOST_REQUIRE(m.erase(key) == (o.entries.erase(key) != 0));
                break;
            case 7:
                if (o.o.keep_expired) {
                    m.async_pop_expired([&given, n = ++wait](error_code ec, auto entry) {
                        if (!ec)
                            given[n] = *entry;
                    });
                    o.waits.push_back(wait);
                    o.serve();
                }
                break;
            default:
                manual_clock::advance(f.context, manual_clock::duration(below(8)));
                if (below(3) == 0) // the alarm is late
                    break;
                f.poll();
                o.polled();
                BOOST_REQUIRE((given == o.given));
            }
            BOOST_REQUIRE(m.size() == o.entries.size());
            BOOST_REQUIRE(m.expired_size() == o.expired.size());
            const auto i = o.entries.find(key);
            BOOST_REQUIRE((m.peek(key) != nullptr) == (i != o.entries.end()));
            if (below(300) == 0) {
                m.clear();
                o.entries.clear();
            }
        }
    }
}

// --- threads --------------------------------------------------------------------------------------

// The map is on a strand, the handlers are not; signals are emitted on the strand. Allowed for each pop: an entry,
// or operation_aborted. Each entry is popped once, or left in the map.
PAWL_NEEDS_THREADS
BOOST_AUTO_TEST_CASE(pops_whose_handlers_run_anywhere_do_not_race_with_the_map) {
    using shared = pawl::expiring_map<int, int>;
    constexpr int many = 2000;
    std::vector<std::atomic<int>> seen(many);
    std::atomic<int> aborted{0};
    std::atomic<int> got{0};
    std::size_t left = 0;
    std::deque<asio::cancellation_signal> signals(many);
    {
        asio::thread_pool pool(3);
        const auto strand = asio::make_strand(pool);
        std::optional<shared> m;
        m.emplace(asio::any_io_executor(strand), options{.ttl = 1ms, .keep_expired = true});
        for (int i = 0; i != many; ++i)
            asio::post(strand, [&, i] {
                auto handler = [&](error_code ec, std::optional<shared::value_type> entry) {
                    if (ec) {
                        ++aborted;
                        return;
                    }
                    ++got;
                    ++seen[static_cast<std::size_t>(entry->first)];
                };
                m->insert(i, i, std::chrono::microseconds(1 + i % 50));
                const auto n = static_cast<std::size_t>(i);
                m->async_pop_expired(asio::bind_cancellation_slot(
                    signals[n].slot(), asio::bind_executor(pool.get_executor(), handler)));
                if (i % 3 == 0)
                    signals[n / 2].emit(asio::cancellation_type::total);
            });
        asio::post(strand, [&] {
            left = m->size() + m->expired_size();
            m.reset();
        });
        pool.join();
    }
    BOOST_TEST(got + aborted == many);
    BOOST_TEST(static_cast<std::size_t>(got) + left == std::size_t{many});
    for (const auto& s : seen)
        BOOST_REQUIRE(s.load() <= 1);
}

} // namespace
