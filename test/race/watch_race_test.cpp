// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Observers of timers against users of timers, in several threads. Run under ThreadSanitizer by
// .ci/run. After a lost wake-up an event does not come.

#include <pawl/event_feed.hpp>
#include <pawl/pawl.hpp>
#include <pawl/stats.hpp>

#define BOOST_TEST_MODULE watch_race
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "race/race_support.hpp"
#include "support/seed.hpp"
#include "watch/watch_support.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace watch_race {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using namespace std::chrono_literals;
using race_support::per_turn;
using race_support::shards;
using watch_test::kind;
using watch_test::seen;
using clock_type = std::chrono::steady_clock;
using random_type = std::mt19937_64;

const int rounds = static_cast<int>(pawl_test::steps(3000));
constexpr auto patience = 60s;
constexpr auto ignore = [](error_code) {};

std::size_t upto(random_type& r, std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n)(r);
}

pawl::options with(unsigned s, unsigned p) { return race_support::with(s, p, 100us); }

/// Waits until it holds; the test fails if that takes too long.
template <class Predicate>
void wait_until(const char* what, Predicate so) {
    const auto end = clock_type::now() + patience;
    while (!so()) {
        if (clock_type::now() > end)
            BOOST_FAIL("lost: " << what);
        std::this_thread::yield();
    }
}

/// Uses its own timers in all ways.
void use_timers(asio::io_context& context, asio::thread_pool& pool, random_type r) {
    std::array<std::optional<pawl::steady_timer>, 4> timers;
    const auto strand = asio::make_strand(context);
    for (int i = 0; i != rounds; ++i) {
        auto& t = timers[upto(r, 3)];
        if (!t)
            t.emplace(context);
        const std::chrono::microseconds delay(upto(r, 1) != 0 ? upto(r, 300) : 3600'000'000);
        switch (upto(r, 9)) {
        case 0:
        case 1:
            t->async_wait(ignore);
            break;
        case 2:
            t->async_wait(asio::bind_executor(strand, ignore));
            break;
        case 3:
            t->async_wait(asio::bind_executor(pool, ignore));
            break;
        case 4:
            t->expires_after(delay);
            break;
        case 5:
            t->rearm_after(delay);
            break;
        case 6:
            t->cancel();
            break;
        case 7:
            pawl::set_name(*t, upto(r, 1) != 0 ? std::to_string(i) : "");
            break;
        case 8: {
            pawl::steady_timer moved(std::move(*t));
            t = std::move(moved);
            break;
        }
        default:
            t.reset();
        }
    }
}

/// Readers join and leave, in all ways.
void follow(pawl::event_feed feed, asio::io_context& context, const std::atomic<bool>& over,
            random_type r) {
    asio::io_context mine;
    std::optional<pawl::event_feed::reader> reader;
    std::array<pawl::timer_event, 32> some;
    int pending = 0;
    while (!over) {
        switch (upto(r, 9)) {
        case 0:
            reader.emplace(feed.join(mine.get_executor()));
            break;
        case 1:
            reader.reset();
            break;
        case 2:
            if (reader)
                upto(r, 1) != 0 ? reader->suspend() : reader->resume();
            break;
        case 3:
            pawl::measure_times(context, upto(r, 1) != 0);
            break;
        case 4: {
            const auto s = pawl::stats(context).total();
            BOOST_REQUIRE(s.started == s.pending + s.expired + s.cancelled);
            break;
        }
        case 5:
            (void)pawl::named_timers(context);
            break;
        case 6:
            if (reader) {
                ++pending;
                reader->async_read(some, [&](error_code, pawl::read_result) { --pending; });
            }
            break;
        default:
            if (reader)
                (void)reader->try_read(some);
        }
        mine.restart();
        mine.poll();
    }
    reader.reset();
    mine.restart();
    mine.run();
    BOOST_REQUIRE(pending == 0); // each read ends
}

// Allowed, for a permanent reader: it reads or misses everything that was published. If it has
// missed nothing, each wait that was armed has ended once.
BOOST_DATA_TEST_CASE(readers_come_and_go_while_timers_are_used, shards* per_turn, s, p) {
    const std::uint64_t seed = pawl_test::seed();
    seen all;
    std::optional<pawl::event_feed> feed;
    {
        asio::thread_pool pool(2);
        std::optional<pawl::event_feed::reader> reader;
        {
            race_support::arena<> a(with(s, p), 2);
            feed.emplace(a.context, pawl::event_feed_options{.capacity = 1 << 15, .readers = 8});
            reader.emplace(feed->join());
            std::atomic<bool> over{false};
            std::thread reads([&] {
                while (!over) {
                    all.read(*reader);
                    std::this_thread::sleep_for(100us);
                }
            });
            std::thread looks([&] { follow(*feed, a.context, over, random_type(seed)); });
            race_support::in_threads(2, [&](int i) {
                use_timers(a.context, pool, random_type(seed + 1 + static_cast<unsigned>(i)));
            });
            a.finish();
            pool.join();
            over = true;
            reads.join();
            looks.join();
            all.read(*reader);
        }
        all.read(*reader);
    }
    BOOST_TEST(all.missed + all.all.size() == feed->published());
    if (all.missed == 0)
        BOOST_TEST(all.open() == 0U);
}

/// Reads in a thread of its own, and sleeps whenever there are no events.
class sleeper {
public:
    explicit sleeper(pawl::event_feed& feed)
        : reader_(std::in_place, feed.join(context_.get_executor())) {
        next();
        thread_ = std::thread([this] { context_.run(); });
    }
    ~sleeper() {
        asio::post(context_, [this] { reader_.reset(); });
        thread_.join();
    }

    /// Events that it got.
    std::atomic<std::uint64_t> told{0};

private:
    void next() {
        reader_->async_read(some_, [this](error_code ec, pawl::read_result got) {
            if (ec)
                return;
            told += got.count + got.missed;
            next();
        });
    }

    asio::io_context context_;
    std::optional<pawl::event_feed::reader> reader_;
    std::array<pawl::timer_event, 8> some_;
    std::thread thread_;
};

// Some events have names, several shards publish, and the reader is overtaken all the time.
BOOST_DATA_TEST_CASE(what_a_slow_reader_has_missed_is_exact, shards* per_turn, s, p) {
    race_support::arena<> a(with(s, p), 2);
    pawl::event_feed feed(a.context, {.capacity = 64, .readers = 4});
    auto reader = feed.join();
    asio::thread_pool pool(1);
    std::atomic<bool> over{false};
    std::uint64_t told = 0;
    const auto read = [&](std::size_t most) {
        std::array<pawl::timer_event, 70> some;
        const auto got = reader.try_read(std::span(some).first(most));
        told += got.count + got.missed;
        return got.status == pawl::read_status::messages;
    };
    std::thread reads([&, r = random_type(pawl_test::seed() + 7)]() mutable {
        while (!over)
            read(upto(r, 70));
    });
    race_support::in_threads(2, [&](int i) {
        use_timers(a.context, pool, random_type(pawl_test::seed() + static_cast<unsigned>(i)));
    });
    over = true;
    reads.join();
    a.finish();
    pool.join();
    while (read(70)) {
    }
    BOOST_TEST(told == feed.published());
}

// Allowed: it gets every event, without another one to follow.
BOOST_DATA_TEST_CASE(no_wake_up_is_lost, shards* per_turn, s, p) {
    const std::uint64_t seed = pawl_test::seed();
    race_support::arena<> a(with(s, p), 2);
    asio::thread_pool pool(1);
    pawl::event_feed feed(a.context);
    sleeper one(feed), two(feed);
    std::uint64_t expected = 0;
    std::thread([&] { // in a shard of its own, if there are several
        random_type r(seed);
        pawl::steady_timer timer(a.context, 1h);
        std::uint64_t waits = 0;
        for (int i = 0; i != rounds; ++i) {
            switch (waits == 0 ? 0 : upto(r, 3)) {
            case 0:
                waits == 0 ? (void)timer.expires_after(1h) : (void)0;
                upto(r, 1) != 0 ? timer.async_wait(ignore)
                                : timer.async_wait(asio::bind_executor(pool, ignore));
                ++waits;
                ++expected;
                break;
            case 1:
                timer.rearm_after(2h);
                ++expected;
                break;
            case 2:
                timer.cancel();
                waits = 0;
                ++expected;
                break;
            default: // moved, due, and each is started, maybe in the pool
                timer.rearm_after(0s);
                expected += 2 + waits;
                waits = 0;
            }
            for (const sleeper* who : {&one, &two})
                wait_until("a wake-up", [&] { return who->told == expected; });
            if (upto(r, 3) ==
                0) // so that the next event finds one reader falling asleep, and one asleep
                std::this_thread::sleep_for(std::chrono::microseconds(upto(r, 100)));
        }
        timer.cancel();
    })
        .join();
    a.finish();
    pool.join();
}

// The handler of a read may run, and start the next read, before the call that started it returns.
BOOST_DATA_TEST_CASE(reads_follow_each_other_in_many_threads, shards* per_turn, s, p) {
    race_support::arena<> a(with(s, p), 3);
    pawl::event_feed feed(a.context);
    auto reader = std::make_unique<pawl::event_feed::reader>(feed.join());
    std::array<pawl::timer_event, 4> some;
    std::atomic<std::uint64_t> told{0};
    std::atomic<bool> ended{false};
    const std::uint64_t wanted = 2 * static_cast<std::uint64_t>(rounds);
    struct again {
        pawl::event_feed::reader& reader;
        std::array<pawl::timer_event, 4>& some;
        std::atomic<std::uint64_t>& told;
        std::atomic<bool>& ended;
        std::uint64_t wanted;

        void operator()(error_code ec, pawl::read_result got) const {
            BOOST_REQUIRE(!ec);
            if (told += got.count + got.missed; told < wanted)
                reader.async_read(some, *this);
            else
                ended = true;
        }
    };
    reader->async_read(some, again{*reader, some, told, ended, wanted});
    race_support::in_threads(2, [&](int) {
        pawl::steady_timer timer(a.context, 1h);
        timer.async_wait(ignore);
        while (!ended) {
            timer.rearm_after(2h);
            std::this_thread::yield();
        }
    });
    reader.reset();
    BOOST_TEST(told >= wanted);
}

// Allowed: a read ends once, with events or with operation_aborted; after the latter the events
// come later.
BOOST_DATA_TEST_CASE(reads_are_cancelled_while_events_come, shards* per_turn, s, p) {
    const std::uint64_t seed = pawl_test::seed();
    race_support::arena<> a(with(s, p), 3);
    pawl::event_feed feed(a.context, {.capacity = 1 << 14, .readers = 4});
    const auto strand = asio::make_strand(a.context);
    struct on_strand {
        std::optional<pawl::event_feed::reader> reader;
        std::array<pawl::timer_event, 8> some;
        asio::cancellation_signal signal;
        std::uint64_t told = 0;
        int begun = 0, ended = 0;
    } state;
    state.reader.emplace(feed.join(strand));
    std::atomic<bool> over{false};
    std::thread uses([&] {
        pawl::steady_timer timer(a.context, 1h);
        timer.async_wait(ignore);
        while (!over) {
            timer.rearm_after(2h);
            std::this_thread::sleep_for(20us);
        }
    });
    random_type r(seed);
    for (int i = 0; i != rounds; ++i) {
        const std::size_t what = upto(r, 4);
        asio::post(strand, [&, what] {
            switch (what) {
            case 0:
                state.signal.emit(asio::cancellation_type::total);
                break;
            case 1:
                state.reader->suspend();
                state.reader->resume();
                break;
            case 2:
                state.reader.emplace(feed.join(strand));
                break;
            default:
                ++state.begun;
                state.reader->async_read(
                    state.some,
                    asio::bind_cancellation_slot(
                        state.signal.slot(),
                        asio::bind_executor(strand, [&](error_code ec, pawl::read_result got) {
                            ++state.ended;
                            BOOST_REQUIRE((!ec || ec == asio::error::operation_aborted));
                            BOOST_REQUIRE((!ec || got.count == 0));
                            state.told += got.count;
                        })));
            }
        });
        if (upto(r, 3) == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(upto(r, 60)));
    }
    over = true;
    uses.join();
    asio::post(strand, [&] { state.reader.reset(); });
    a.finish();
    BOOST_TEST(state.begun == state.ended);
}

// Allowed: the reader reads events, then learns that the feed is closed; handlers in flight
// elsewhere may or may not be invoked, and may or may not get events.
BOOST_DATA_TEST_CASE(a_context_ends_while_readers_in_other_threads_look, shards* per_turn, s, p) {
    for (int i = 0; i != rounds / 20; ++i) {
        asio::thread_pool pool(2);
        asio::io_context mine;
        std::optional<pawl::event_feed::reader> sleeps, polls;
        std::atomic<int> closed{0};
        std::array<pawl::timer_event, 16> of_sleeper;
        std::thread one, two;
        struct again {
            pawl::event_feed::reader& reader;
            std::span<pawl::timer_event> some;
            std::atomic<int>& closed;
            void operator()(error_code ec, pawl::read_result) const {
                if (!ec)
                    return reader.async_read(some, *this);
                BOOST_REQUIRE((ec == asio::error::eof));
                ++closed;
            }
        };
        {
            asio::io_context context;
            pawl::make_timer_service(context, with(s, p));
            pawl::event_feed feed(context);
            pawl::measure_times(context);
            sleeps.emplace(feed.join(mine.get_executor()));
            polls.emplace(feed.join(mine.get_executor()));
            sleeps->async_read(of_sleeper, again{*sleeps, of_sleeper, closed});
            one = std::thread([&] { mine.run(); });
            two = std::thread([&] {
                std::array<pawl::timer_event, 16> some;
                while (polls->try_read(some).status != pawl::read_status::closed)
                    std::this_thread::yield();
                ++closed;
            });
            std::vector<std::unique_ptr<pawl::steady_timer>> timers;
            for (int k = 0; k != 20; ++k) {
                timers.push_back(std::make_unique<pawl::steady_timer>(
                    context, std::chrono::microseconds(k % 2 != 0 ? 0 : 3600'000'000)));
                timers.back()->async_wait(asio::bind_executor(pool, ignore));
            }
            context.run_for(200us);
        }
        one.join();
        two.join();
        pool.join();
        BOOST_TEST(closed == 2);
    }
}

} // namespace
} // namespace watch_race
