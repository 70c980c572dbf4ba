// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Random operations on timers of all backends, with random options. After each, a permanent reader,
// temporary readers, the statistics and a plain count of the operations must agree.

#define BOOST_TEST_MODULE books
#include <boost/test/unit_test.hpp>

#include "../support/seed.hpp"
#include "watch_support.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace watch_test {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using namespace std::chrono_literals;
using random_type = std::mt19937_64;

std::size_t upto(random_type& r, std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n)(r);
}

/// The plain count.
struct expected {
    std::uint64_t started = 0;   ///< waits
    std::uint64_t ended = 0;     ///< handlers that were invoked
    std::uint64_t succeeded = 0; ///< of these
    std::uint64_t moved = 0;
    std::uint64_t cancelled = 0; ///< by the results of calls
};

/// A timer of any backend.
struct any_timer {
    virtual ~any_timer() = default;
    virtual void start(expected& e, asio::cancellation_signal* signal, bool strand) = 0;
    virtual std::size_t set(std::chrono::microseconds delay) = 0;
    virtual std::size_t rearm(std::chrono::microseconds delay) = 0;
    virtual std::size_t cancel(bool one) = 0;
    virtual void move() = 0;
    virtual void name(const std::string& text) = 0;
    /// The timer may outlive its context, but a strand may not.
    virtual void leave_strand() = 0;
};

template <class Timer>
struct timer_of final : any_timer {
    explicit timer_of(asio::io_context& context)
        : timer(std::make_unique<Timer>(context)), strand(asio::make_strand(context)) {}

    void leave_strand() override { strand.reset(); }

    void start(expected& e, asio::cancellation_signal* signal, bool on_strand) override {
        ++e.started;
        const auto handler = [&e](error_code ec) {
            ++e.ended;
            e.succeeded += !ec;
        };
        if (signal != nullptr)
            timer->async_wait(asio::bind_cancellation_slot(signal->slot(), handler));
        else if (on_strand)
            timer->async_wait(asio::bind_executor(*strand, handler));
        else
            timer->async_wait(handler);
    }
    std::size_t set(std::chrono::microseconds delay) override {
        return timer->expires_after(delay);
    }
    std::size_t rearm(std::chrono::microseconds delay) override {
        return timer->rearm_after(delay);
    }
    std::size_t cancel(bool one) override { return one ? timer->cancel_one() : timer->cancel(); }
    void move() override { timer = std::make_unique<Timer>(std::move(*timer)); }
    void name(const std::string& text) override { pawl::set_name(*timer, text); }

    std::unique_ptr<Timer> timer;
    std::optional<asio::strand<asio::io_context::executor_type>> strand;
};

std::unique_ptr<any_timer> make(asio::io_context& context, std::size_t which) {
    switch (which) {
    case 0:
        return std::make_unique<timer_of<pawl::steady_timer>>(context);
    case 1:
        return std::make_unique<timer_of<pawl::compact_timer>>(context);
    case 2:
        return std::make_unique<timer_of<pawl::ring_timer>>(context);
    case 3:
        return std::make_unique<timer_of<pawl::coarse_timer>>(context);
    default:
        return std::make_unique<timer_of<pawl::system_timer>>(context);
    }
}

pawl::options options(random_type& r) {
    pawl::options o;
    o.shards = std::array{0U, 1U, 2U, 4U}[upto(r, 3)];
    o.batch_limit = std::array{1U, 2U, 256U}[upto(r, 2)];
    o.completions_per_turn = std::array{1U, 64U}[upto(r, 1)];
    o.max_pending = std::array<std::size_t, 3>{pawl::options::no_bound, 3, 10}[upto(r, 2)];
    o.locking = o.shards == 1 ? upto(r, 1) != 0 : true;
    o.on_shutdown =
        upto(r, 1) != 0 ? pawl::shutdown_policy::destroy : pawl::shutdown_policy::deliver;
    o.rings.delays = {{.delay = 1ms, .capacity = 8}, {.delay = 1h, .capacity = 4}};
    o.rings.round_up = true;
    o.rings.when_full = std::array{pawl::ring_overflow::grow, pawl::ring_overflow::expire_now,
                                   pawl::ring_overflow::flush_oldest}[upto(r, 2)];
    return o;
}

void run(std::uint64_t seed, std::uint64_t steps) {
    random_type r(seed);
    BOOST_TEST_CONTEXT("seed " << seed) {
        expected e;
        seen s;
        std::optional<pawl::event_feed> feed;
        std::optional<pawl::event_feed::reader> reader;
        std::vector<std::unique_ptr<any_timer>> survivors; // timers that outlive their context
        std::deque<asio::cancellation_signal> signals(3);
        bool slow = false; // the reader has missed some events
        {
            asio::io_context context;
            const pawl::options o = options(r);
            pawl::make_timer_service(context, o);
            pawl::make_timer_service<pawl::ring_timer>(context, o);
            feed.emplace(context, pawl::event_feed_options{.capacity = 64, .readers = 4});
            reader.emplace(feed->join());
            std::optional<pawl::event_feed::reader> guest;
            std::uint64_t guest_passed = 0;
            std::vector<std::unique_ptr<any_timer>> timers;

            for (std::uint64_t i = 0; i != steps; ++i) {
                const std::chrono::microseconds delay(upto(r, 3) == 0 ? 3600'000'000 * upto(r, 1)
                                                                      : upto(r, 2000));
                const auto at = timers.empty() ? 0 : upto(r, timers.size() - 1);
                switch (timers.empty() ? 0 : upto(r, 13)) {
                case 0:
                    if (timers.size() < 20) {
                        const auto in = [&] { timers.push_back(make(context, upto(r, 4))); };
                        if (o.locking && upto(r, 3) == 0)
                            std::thread(in).join(); // in a shard of its own, if there are several
                        else
                            in();
                    }
                    break;
                case 1:
                case 2:
                case 3: {
                    asio::cancellation_signal* const signal =
                        upto(r, 3) == 0 ? &signals[upto(r, 2)] : nullptr;
                    timers[at]->start(e, signal, upto(r, 2) == 0);
                    break;
                }
                case 4:
                    e.cancelled += timers[at]->set(delay);
                    break;
                case 5:
                case 6:
                    e.moved += timers[at]->rearm(delay);
                    break;
                case 7:
                    e.cancelled += timers[at]->cancel(upto(r, 1) != 0);
                    break;
                case 8:
                    timers[at]->move();
                    break;
                case 9:
                    timers[at]->name(upto(r, 2) == 0 ? "" : std::to_string(i));
                    break;
                case 10:
                    signals[upto(r, 2)].emit(asio::cancellation_type::terminal);
                    break;
                case 11:
                    if (upto(r, 9) == 0)
                        pawl::expire_all(context);
                    else if (upto(r, 4) == 0)
                        timers.erase(timers.begin() + static_cast<std::ptrdiff_t>(at));
                    break;
                case 12:
                    if (guest) {
                        guest.reset();
                    } else if (upto(r, 1) != 0) {
                        guest.emplace(feed->join());
                        guest_passed = feed->published();
                    } else {
                        pawl::measure_times(context, upto(r, 1) != 0);
                    }
                    break;
                default:
                    context.restart();
                    upto(r, 1) != 0 ? context.poll_one() : context.run_for(1ms);
                }
                if (guest && upto(r, 3) != 0) {
                    const seen guest_sees = read_all(*guest);
                    for (const auto& event : guest_sees.all)
                        BOOST_REQUIRE(event.lateness.count() >= 0);
                    guest_passed += guest_sees.all.size() + guest_sees.missed;
                    BOOST_TEST(guest_passed == feed->published());
                }
                if (upto(r, 30) != 0)
                    s.read(*reader);
                slow = slow || s.missed != 0;

                // Published equals read plus missed.
                if (upto(r, 5) == 0) {
                    s.read(*reader);
                    slow = slow || s.missed != 0;
                    BOOST_TEST(s.all.size() + s.missed == feed->published());
                    const auto stats = pawl::stats(context).total();
                    BOOST_TEST(stats.started == stats.pending + stats.expired + stats.cancelled);
                    BOOST_TEST(stats.started == e.started);
                    BOOST_TEST(stats.moved == e.moved);
                    if (!slow) {
                        BOOST_TEST(s.count(kind::armed) == e.started);
                        BOOST_TEST(s.count(kind::moved) == e.moved);
                        // A cancelled wait is pending until its handler starts.
                        BOOST_TEST(s.count(kind::cancelled) >= stats.cancelled);
                        BOOST_TEST(s.open() + s.count(kind::cancelled) ==
                                   stats.pending + stats.cancelled);
                        BOOST_TEST(s.count(kind::started) == stats.expired);
                        BOOST_TEST(s.count(kind::overflowed) == stats.overflowed);
                        BOOST_TEST(s.count(kind::cancelled) >= e.cancelled);
                        BOOST_TEST(e.succeeded >= s.count(kind::started)); // expire_all(), too
                    }
                }
            }
            s.read(*reader);
            slow = slow || s.missed != 0;
            if (upto(r, 1) != 0)
                survivors = std::move(timers);
            for (const auto& timer : survivors)
                timer->leave_strand();
        }
        s.read(*reader);
        BOOST_TEST(s.all.size() + s.missed == feed->published());
        if (!slow && s.missed == 0) {
            BOOST_TEST(s.count(kind::armed) == e.started);
            BOOST_TEST(s.open() == 0U); // nothing is left
        }
    }
}

BOOST_AUTO_TEST_CASE(the_books_balance_after_random_operations) {
    const std::uint64_t seed = pawl_test::seed();
    const std::uint64_t seeds = pawl_test::steps(100);
    for (std::uint64_t i = 0; i != seeds; ++i)
        run(seed + i, 400);
}

} // namespace
} // namespace watch_test
