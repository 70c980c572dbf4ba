// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The n-th allocation fails, for every n until no allocation fails, while observers arrive, name,
// measure and read, and while timers, services and shards are made that they observe. A function
// that then throws bad_alloc can be repeated, and nothing stays unobserved.

#define BOOST_TEST_MODULE watch_allocation
#include <boost/test/unit_test.hpp>

#include "fault/live_blocks.hpp"
#include "service/counted_new.hpp"
#include "watch/watch_support.hpp"

#include <boost/asio/io_context.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <vector>

namespace fault {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using namespace std::chrono_literals;
using watch_test::kind;
using watch_test::read_all;

constexpr auto ignore = [](error_code) {};

/// Calls `attempt(state)` on a new `State`, with the n-th allocation failing, for n = 0, 1, ... until it
/// succeeds; then `verify(state)`, which may do it again, with memory. Nothing may leak.
template <class State, class Attempt, class Verify>
void with_failing_allocations(Attempt attempt, Verify verify) {
    for (long n = 0;; ++n) {
        const std::size_t before = live_blocks();
        bool succeeded = false;
        {
            State state;
            counted_new::fuse = n;
            try {
                attempt(state);
                succeeded = true;
            } catch (const std::bad_alloc&) {
            }
            counted_new::fuse = counted_new::never;
            verify(state, succeeded);
        }
        if (n > 0) // objects that exist once per process have been made by then
            BOOST_TEST(live_blocks() == before);
        if (succeeded)
            return;
        BOOST_REQUIRE_LT(n, 1000);
    }
}

struct plain {
    asio::io_context context;
};

struct with_timers : plain {
    with_timers() {
        pawl::options o;
        o.shards = 2;
        pawl::make_timer_service(context, o);
        std::thread([this] { there.emplace(context, 1h); }).join();
        here.emplace(context, 1h);
        small.emplace(context, 1h);
    }
    std::optional<pawl::steady_timer> here, there;
    std::optional<pawl::compact_timer> small;
};

struct with_reader : with_timers {
    pawl::event_feed feed{context};
    pawl::event_feed::reader reader = feed.join();
};

void check_all_are_seen(with_timers& s) {
    auto reader = pawl::event_feed(s.context).join();
    s.here->async_wait(ignore);
    s.there->async_wait(ignore);
    s.small->async_wait(ignore);
    BOOST_TEST(read_all(reader).count(kind::armed) == 3U);
    pawl::expire_all(s.context);
    s.context.run();
}

BOOST_AUTO_TEST_CASE(a_feed_and_its_reader_are_made_or_not) {
    with_failing_allocations<with_timers>(
        [](with_timers& s) { (void)pawl::event_feed(s.context).join(); },
        [](with_timers& s, bool) {
            BOOST_TEST(pawl::event_feed(s.context).readers() == 0U);
            check_all_are_seen(s);
        });
}

BOOST_AUTO_TEST_CASE(a_feed_with_options_is_made_or_not) {
    with_failing_allocations<plain>(
        [](plain& s) { pawl::event_feed(s.context, {.capacity = 64, .readers = 2}); },
        [](plain& s, bool) {
            pawl::event_feed feed(s.context, {.capacity = 64, .readers = 2});
            BOOST_TEST(feed.readers() == 0U);
        });
}

BOOST_AUTO_TEST_CASE(times_are_measured_or_not) {
    with_failing_allocations<with_timers>(
        [](with_timers& s) { pawl::measure_times(s.context); },
        [](with_timers& s, bool succeeded) {
            BOOST_TEST(pawl::stats(s.context).measured == succeeded);
            pawl::measure_times(s.context);
            for (auto* t : {&*s.here, &*s.there}) {
                t->expires_after(0s);
                t->async_wait(ignore);
            }
            s.context.run();
            BOOST_TEST(pawl::stats(s.context).handler_time.count() == 2U);
        });
}

BOOST_AUTO_TEST_CASE(a_name_is_given_or_not) {
    with_failing_allocations<with_timers>(
        [](with_timers& s) { pawl::set_name(*s.there, "there"); },
        [](with_timers& s, bool succeeded) {
            BOOST_TEST(pawl::named_timers(s.context).size() == (succeeded ? 1U : 0U));
            pawl::set_name(*s.there, "there");
            pawl::steady_timer moved(std::move(*s.there));
            BOOST_TEST(pawl::named_timers(s.context).size() == 1U);
        });
}

BOOST_AUTO_TEST_CASE(a_new_name_replaces_the_old_one_or_not) {
    with_failing_allocations<with_timers>(
        [](with_timers& s) {
            if (pawl::named_timers(s.context).empty()) {
                const long fuse = counted_new::fuse.exchange(counted_new::never);
                pawl::set_name(*s.here, "old");
                counted_new::fuse = fuse;
            }
            pawl::set_name(*s.here, "new");
        },
        [](with_timers& s, bool succeeded) {
            const auto all = pawl::named_timers(s.context);
            if (!all.empty())
                BOOST_TEST(all.at(0).name.view() == (succeeded ? "new" : "old"));
        });
}

BOOST_AUTO_TEST_CASE(a_service_that_is_made_while_watched_is_watched_in_the_end) {
    struct state : plain {
        pawl::event_feed feed{context};
        pawl::event_feed::reader reader = feed.join();
    };
    with_failing_allocations<state>(
        [](state& s) { pawl::steady_timer(s.context, 1h).async_wait(ignore); },
        [](state& s, bool) {
            (void)read_all(s.reader);
            pawl::steady_timer timer(s.context, 1h);
            timer.async_wait(ignore);
            BOOST_TEST(read_all(s.reader).count(kind::armed) == 1U);
        });
}

BOOST_AUTO_TEST_CASE(a_shard_that_is_made_while_watched_is_watched_in_the_end) {
    struct state : plain {
        state() {
            pawl::options o;
            o.shards = 0;
            pawl::make_timer_service(context, o);
            std::thread([this] {
                pawl::steady_timer first(context);
            }).join(); // has the first shard
            reader.emplace(pawl::event_feed(context).join());
        }
        std::optional<pawl::event_feed::reader> reader;
    };
    with_failing_allocations<state>(
        [](state& s) { pawl::steady_timer(s.context, 1h).async_wait(ignore); },
        [](state& s, bool) {
            (void)read_all(*s.reader);
            pawl::steady_timer timer(s.context, 1h);
            timer.async_wait(ignore);
            BOOST_TEST(read_all(*s.reader).count(kind::armed) == 1U);
        });
}

BOOST_AUTO_TEST_CASE(a_wait_that_does_not_start_balances_the_books) {
    with_failing_allocations<with_reader>(
        [](with_reader& s) {
            for (auto* t : {&*s.here, &*s.there})
                t->async_wait(ignore);
        },
        [](with_reader& s, bool) {
            const auto seen = read_all(s.reader);
            const auto stats = pawl::stats(s.context).total();
            BOOST_TEST(seen.count(kind::armed) == stats.started);
            BOOST_TEST(seen.open() == stats.armed);
            BOOST_TEST(seen.open() == s.here->cancel() + s.there->cancel());
            s.context.run();
        });
}

BOOST_AUTO_TEST_CASE(a_read_is_started_or_not_and_can_be_repeated) {
    struct a_read {
        std::array<pawl::timer_event, 8> events;
        int calls = 0;
    };
    struct state : with_reader {
        a_read first, second;
    };
    with_failing_allocations<state>(
        [](state& s) {
            s.reader.async_read(s.first.events,
                                [&](error_code, pawl::read_result) { ++s.first.calls; });
        },
        [](state& s, bool succeeded) {
            s.context.poll();
            BOOST_TEST(s.first.calls == 0);
            if (!succeeded)
                s.reader.async_read(s.second.events,
                                    [&](error_code, pawl::read_result) { ++s.second.calls; });
            s.here->async_wait(ignore);
            s.context.restart();
            s.context.poll();
            BOOST_TEST(s.first.calls == (succeeded ? 1 : 0));
            BOOST_TEST(s.second.calls == (succeeded ? 0 : 1));
            s.here->cancel();
            s.context.run();
        });
}

BOOST_AUTO_TEST_CASE(a_sleeping_reader_is_woken_without_memory) {
    with_reader s;
    std::array<pawl::timer_event, 8> events;
    int calls = 0;
    s.here->async_wait(ignore);
    (void)read_all(s.reader);
    s.reader.async_read(events, [&](error_code, pawl::read_result) { ++calls; });
    s.context.poll();
    counted_new::fuse = 0;
    s.here->cancel();
    s.context.poll();
    counted_new::fuse = counted_new::never;
    BOOST_TEST(calls == 1);
}

// Statistics and lists of names only read.
BOOST_AUTO_TEST_CASE(statistics_are_taken_or_not) {
    with_failing_allocations<with_reader>(
        [](with_reader& s) {
            (void)pawl::to_json(pawl::stats(s.context));
            (void)pawl::to_prometheus(pawl::stats(s.context));
            (void)pawl::named_timers(s.context);
        },
        [](with_reader& s, bool) { check_all_are_seen(s); });
}

BOOST_AUTO_TEST_CASE(P8_to_publish_and_to_read_allocates_nothing) {
    asio::io_context context;
    pawl::event_feed feed(context, {.capacity = 64, .readers = 2});
    auto reader = feed.join();
    pawl::steady_timer timer(context, 1h);
    pawl::set_name(timer, "busy");
    timer.async_wait(ignore);
    std::array<pawl::timer_event, 64> some;
    const std::size_t before = counted_new::calls;
    for (int i = 0; i != 1000; ++i) {
        timer.rearm_after(1h);
        (void)reader.try_read(some);
    }
    for (int i = 0; i != 1000; ++i)
        timer.rearm_after(2h); // without reads the oldest events are overwritten
    BOOST_TEST(counted_new::calls == before);
    BOOST_TEST(feed.published() >= 1900U);
    timer.cancel();
    context.run();
}

} // namespace
} // namespace fault
