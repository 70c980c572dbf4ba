// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Names of timers move with the timers, and end with them.

#define BOOST_TEST_MODULE names
#include <boost/test/unit_test.hpp>

#include "../support/typed_cases.hpp"
#include "watch_support.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace watch_test {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using boost::test_tools::per_element;
using namespace std::chrono_literals;

constexpr auto ignore = [](error_code) {};

using every_timer = pawl_test::types<pawl::steady_timer, pawl::system_timer, pawl::compact_timer,
                                     pawl::coarse_timer, pawl::manual_timer>;

/// The names of a context's timers, sorted.
std::vector<std::string> names(asio::io_context& context) {
    std::vector<std::string> all;
    for (const pawl::named_timer& t : pawl::named_timers(context))
        all.emplace_back(t.name.view());
    std::sort(all.begin(), all.end());
    return all;
}
using list = std::vector<std::string>;

PAWL_TYPED_CASE(a_timer_that_has_never_waited_has_a_name, Timer, every_timer) {
    asio::io_context context;
    {
        Timer timer(context);
        pawl::set_name(timer, "idle");
        BOOST_TEST(names(context) == list{"idle"}, per_element());
        BOOST_TEST(pawl::named_timers(context).at(0).waits == 0U);
    }
    BOOST_TEST(names(context).empty());
}

PAWL_TYPED_CASE(an_event_has_the_name_of_its_timer, Timer, every_timer) {
    asio::io_context context;
    auto reader = pawl::event_feed(context).join();
    Timer named(context, 30min), other(context, 30min);
    pawl::set_name(named, "named");
    named.async_wait(ignore);
    other.async_wait(ignore);
    pawl::set_name(named, "renamed");
    named.cancel();
    pawl::set_name(named, "");
    named.async_wait(ignore);
    std::vector<std::string> told;
    for (const pawl::timer_event& e : read_all(reader).all)
        told.emplace_back(e.name.view());
    BOOST_TEST(told == (list{"named", "", "renamed", ""}), per_element());
    BOOST_TEST(names(context).empty());
}

PAWL_TYPED_CASE(a_name_moves_with_its_timer, Timer, every_timer) {
    asio::io_context context;
    Timer a(context, 1h), b(context, 1h);
    pawl::set_name(a, "a");
    pawl::set_name(b, "b");
    a.async_wait(ignore);
    Timer c(std::move(a));
    BOOST_TEST(names(context) == (list{"a", "b"}), per_element());
    b = std::move(c); // its name ends
    BOOST_TEST(names(context) == (list{"a"}), per_element());
    a = Timer(context); // has no name, and does not get one back
    BOOST_TEST(names(context) == (list{"a"}), per_element());
    auto reader = pawl::event_feed(context).join();
    b.cancel();
    BOOST_TEST(read_all(reader).all.at(0).name.view() == "a");
    BOOST_TEST(read_all(reader).all.empty());
}

BOOST_AUTO_TEST_CASE(a_name_moves_to_a_timer_of_another_context) {
    asio::io_context one, two;
    pawl::steady_timer a(one, 1h), b(two, 1h);
    pawl::set_name(a, "a");
    pawl::set_name(b, "b");
    b = std::move(a);
    BOOST_TEST(names(one) == (list{"a"}), per_element());
    BOOST_TEST(names(two).empty());
}

BOOST_AUTO_TEST_CASE(a_name_ends_with_its_timer_in_another_thread) {
    for (const unsigned shards : {1U, 4U}) {
        asio::io_context context;
        pawl::options o;
        o.shards = shards;
        pawl::make_timer_service(context, o);
        auto a = std::make_unique<pawl::steady_timer>(context, 1h);
        pawl::set_name(*a, "a");
        pawl::steady_timer b(context, 1h);
        pawl::set_name(b, "b");
        std::thread([&] { a.reset(); }).join();
        BOOST_TEST(names(context) == (list{"b"}), per_element());
    }
}

// After a lack of memory for a later shard, the earlier ones are reported a second time.
BOOST_AUTO_TEST_CASE(a_shard_that_is_reported_twice_is_watched_once) {
    asio::io_context context;
    auto reader = pawl::event_feed(context).join();
    pawl::steady_timer timer(context, 1h);
    pawl::set_name(timer, "a");
    const auto& hub = pawl::detail::hub_service::of(context);
    asio::use_service<pawl::detail::service_registry>(context).for_each(
        [&](pawl::detail::registered_service& service) {
            for (pawl::detail::observed_shard* const shard : service.observed_shards())
                hub->add(*shard);
        });
    timer.async_wait(ignore);
    BOOST_TEST(read_all(reader).all.at(0).name.view() == "a");
    BOOST_TEST(names(context) == list{"a"}, per_element());
}

// Each thread has a shard of its own, up to four; with 0 a shard is added when its thread comes.
BOOST_AUTO_TEST_CASE(a_reader_knows_each_timer_by_its_name_while_threads_and_shards_come) {
    constexpr std::size_t threads = 8, waits = 200;
    for (const unsigned shards : {0U, 4U}) {
        asio::io_context context;
        pawl::make_timer_service(context, {.shards = shards});
        auto reader = pawl::event_feed(context, {.capacity = 256}).join();
        std::deque<pawl::steady_timer> timers;
        const auto comes = [&] {
            auto& timer = timers.emplace_back(context, 1h);
            pawl::set_name(timer, std::to_string(timers.size()));
            for (std::size_t i = 0; i != waits; ++i) {
                timer.async_wait(ignore);
                timer.cancel();
            }
        };
        auto all = std::async(std::launch::async, [&] {
            for (std::size_t i = 0; i != threads; ++i)
                std::thread(comes).join();
        });
        seen s;
        while (all.wait_for(0s) != std::future_status::ready)
            s.read(reader);
        s.read(reader);

        std::map<std::uint64_t, std::string> known;
        for (const auto& timer : timers)
            known[pawl::timer_id(timer)] = std::to_string(known.size() + 1);
        BOOST_TEST(std::all_of(s.all.begin(), s.all.end(), [&](const pawl::timer_event& e) {
            return e.name.view() == known.at(e.timer);
        }));
        BOOST_TEST(s.all.size() + s.missed == 2 * threads * waits); // armed, cancelled
        BOOST_TEST(s.all.back().name.view() == std::to_string(threads));
    }
}

BOOST_AUTO_TEST_CASE(another_timer_at_the_same_address_has_no_name) {
    asio::io_context context;
    std::optional<pawl::steady_timer> timer(std::in_place, context, 1h);
    pawl::set_name(*timer, "first");
    timer.emplace(context, 1h);
    timer->async_wait(ignore);
    BOOST_TEST(names(context).empty());
}

BOOST_AUTO_TEST_CASE(names_are_cut_between_characters) {
    const auto cut = [](std::string_view text) {
        return std::string(pawl::timer_name(text).view());
    };
    BOOST_TEST(cut("").empty());
    BOOST_TEST(cut("12345678901234567890123") == "12345678901234567890123");
    BOOST_TEST(cut("123456789012345678901234") == "12345678901234567890123");
    // Characters of two, three and four bytes, none of which fits at the end.
    BOOST_TEST(cut("1234567890123456789012\xc3\xa9") == "1234567890123456789012");
    BOOST_TEST(cut("1234567890123456789012\xe2\x82\xac") == "1234567890123456789012");
    BOOST_TEST(cut("12345678901234567890\xf0\x9f\x95\xb0!") == "12345678901234567890");
    BOOST_TEST(cut("123456789012345678901\xc3\xa9!") == "123456789012345678901\xc3\xa9");
    BOOST_TEST(cut(std::string("a\0b", 3)) == std::string("a\0b", 3));
}

// Prometheus refuses all statistics of a process if one name in them is not UTF-8, and names may
// come from a peer.
BOOST_AUTO_TEST_CASE(a_name_is_utf8_whatever_it_is_made_of) {
    const auto kept = [](std::string_view text) {
        return std::string(pawl::timer_name(text).view());
    };
    for (const std::string_view text :
         {"\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
          "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) // the first and last ones of each length
        BOOST_TEST(kept(text) == text);
    BOOST_TEST(kept(std::string(100, '\x80')) == std::string(23, '?'));
    BOOST_TEST(kept("a\xff!") == "a?!");
    BOOST_TEST(kept("\xc3") == "?");        // cut off
    BOOST_TEST(kept("\xe2\x82.") == "??."); // the same, in the middle
    BOOST_TEST(kept("\xf0\x9f\x95") == "???");
    BOOST_TEST(kept("\xc0\xaf \xc1\xbf") == "?? ??"); // longer than necessary
    BOOST_TEST(kept("\xe0\x9f\xbf") == "???");
    BOOST_TEST(kept("\xf0\x8f\xbf\xbf") == "????");
    BOOST_TEST(kept("\xed\xa0\x80") == "???");           // a surrogate
    BOOST_TEST(kept("\xf4\x90\x80\x80\xf5") == "?????"); // beyond the last character
    BOOST_TEST(kept(std::string(22, 'x') + "\xff\xff") == std::string(22, 'x') + "?");
}

BOOST_AUTO_TEST_CASE(named_timers_tell_what_is_left) {
    asio::io_context context;
    pawl::manual_timer soon(context, 3s), overdue(context, 1s);
    pawl::set_name(soon, "soon");
    pawl::set_name(overdue, "overdue");
    soon.async_wait(ignore);
    soon.async_wait(ignore);
    overdue.async_wait(ignore);
    pawl::manual_clock::advance(context, 2s);
    for (const pawl::named_timer& t : pawl::named_timers(context)) {
        const bool is_soon = t.name.view() == "soon";
        BOOST_TEST(t.waits == (is_soon ? 2U : 1U));
        BOOST_TEST(t.left.count() == std::chrono::nanoseconds(is_soon ? 1s : -1s).count());
    }
}

PAWL_TYPED_CASE(a_named_timer_that_never_expires_has_all_the_time_there_is, Timer, every_timer) {
    asio::io_context context;
    Timer never(context, Timer::time_point::max());
    pawl::set_name(never, "never");
    never.async_wait(ignore);
    const auto found = pawl::named_timers(context);
    BOOST_TEST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found[0].waits == 1U);
    BOOST_TEST(found[0].left.count() >= std::chrono::nanoseconds(24h * 365 * 50).count());
}

BOOST_AUTO_TEST_CASE(hundreds_of_names_in_shards_are_all_listed) {
    asio::io_context context;
    pawl::options o;
    o.shards = 2;
    pawl::make_timer_service(context, o);
    std::vector<std::unique_ptr<pawl::steady_timer>> timers;
    list expected;
    const auto make = [&] {
        for (int i = 0; i != 200; ++i) {
            expected.push_back(std::to_string(timers.size()));
            timers.push_back(std::make_unique<pawl::steady_timer>(context, 1h));
            pawl::set_name(*timers.back(), expected.back());
        }
    };
    make();
    std::thread(make).join();
    std::sort(expected.begin(), expected.end());
    BOOST_TEST(names(context) == expected, per_element());
}

BOOST_AUTO_TEST_CASE(a_named_timer_outlives_its_context) {
    std::optional<pawl::steady_timer> timer;
    {
        asio::io_context context;
        timer.emplace(context, 1h);
        pawl::set_name(*timer, "survivor");
        timer->async_wait(ignore);
    }
    pawl::steady_timer other(std::move(*timer));
    BOOST_TEST(other.cancel() == 0U);
}

BOOST_AUTO_TEST_CASE(a_context_that_ends_has_no_names_any_more) {
    std::optional<pawl::steady_timer> timer;
    list left{"unknown"};
    {
        asio::io_context context;
        timer.emplace(context, 1h);
        pawl::set_name(*timer, "early");
        std::shared_ptr<void> last(nullptr, [&](void*) {
            pawl::set_name(*timer, "late");
            left = names(context);
        });
        asio::post(context, [last = std::move(last)] {});
    }
    BOOST_TEST(left.empty());
}

BOOST_AUTO_TEST_CASE(a_context_without_names_has_none) {
    asio::io_context context;
    BOOST_TEST(names(context).empty());
    pawl::steady_timer timer(context, 1h);
    timer.async_wait(ignore);
    BOOST_TEST(names(context).empty());
}

} // namespace
} // namespace watch_test
