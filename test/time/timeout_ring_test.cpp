// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The promises of timeout_ring to one thread, and the defects of the circular timeout buffer that
// one thread can see. test/race/timeout_ring_race_test.cpp has the promises to several threads.

#include <pawl/time/timeout_ring.hpp>

#include "../service/counted_new.hpp"
#include "../support/invariants.hpp"
#include "../support/seed.hpp"

#define BOOST_TEST_MODULE timeout_ring
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pawl::time {

/// Accesses members that tests cannot reach from outside.
struct timeout_ring_probe {
    using ring = timeout_ring<int>;
    using reservation = ring::reservation;
    using driving = ring::driving;

    static constexpr std::size_t slot_size = sizeof(ring::slot);
    static constexpr std::size_t reclaimed_at_once = ring::reclaimed_at_once;

    /// The two halves of a registration, between which a thread may be preempted.
    static reservation reserve(ring& r) { return r.reserve(); }
    static void publish(ring& r, const reservation& mine, int& item) { r.publish(mine, item); }

    static std::size_t marks(const ring& r) { return r.marks_.size(); }
    static void set_capacity(ring& r, std::size_t capacity) { r.capacity_ = capacity; }
    /// An unused ring in the state after so many registrations.
    static void set_age(ring& r, std::uint64_t registrations) {
        for (auto* each : {&r.tail_, &r.head_, &r.open_from_})
            each->store(registrations + 1);
    }
    static void set_head(ring& r, std::uint64_t head) { r.head_.store(head); }
    static std::uint64_t head(const ring& r) { return r.head_.load(); }
};

} // namespace pawl::time

// Every lock of a mutex by this program, from any library, goes through here.
static thread_local std::size_t locks = 0;
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    using function = int (*)(pthread_mutex_t*);
    static constinit std::atomic<function> real{nullptr}; // no guard: libc++'s locks a mutex
    if (!real.load())
        real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    ++locks;
    return real.load()(mutex);
}

using pawl::time::ring_position;
using pawl::time::ring_registration;
using pawl::time::ring_status;
using pawl::time::ring_sweep;
using pawl::time::ring_ticket;
using pawl::time::tick;
using pawl::time::timeout_ring;
using pawl::time::timeout_ring_probe;
using ring_type = timeout_ring<int>;
using ids = std::vector<int>;
namespace data = boost::unit_test::data;

static_assert(timeout_ring_probe::slot_size <= 24);
static_assert(std::is_trivially_copyable_v<ring_ticket> && sizeof(ring_ticket) == 8);
static_assert(std::is_trivially_copyable_v<ring_position>);
static_assert(!std::is_move_constructible_v<ring_type>);
static_assert(noexcept(std::declval<ring_type&>().try_register(std::declval<int&>())));
static_assert(noexcept(std::declval<ring_type&>().cancel(ring_ticket{})));

namespace {

/// A ring whose items know their number, its time, and its driver.
struct bench {
    explicit bench(std::uint64_t delay, std::size_t capacity, unsigned marks = 8,
                   std::uint64_t now = 0)
        : ring(delay, capacity, tick{now}, marks) {
        std::iota(items.begin(), items.end(), 0);
    }
    ~bench() { pawl_test::check_invariant(ring); }

    ring_registration add(int id) {
        const ring_registration r = ring.try_register(items[static_cast<std::size_t>(id)]);
        tickets[static_cast<std::size_t>(id)] = r.ticket;
        return r;
    }
    void add(int from, int to) {
        for (int id = from; id != to; ++id)
            BOOST_REQUIRE(add(id).status == ring_status::registered);
    }
    bool cancel(int id) {
        int* const item = ring.cancel(tickets[static_cast<std::size_t>(id)]);
        BOOST_REQUIRE(item == nullptr || item == &items[static_cast<std::size_t>(id)]);
        return item != nullptr;
    }
    void mark(std::uint64_t stamp) { ring.mark(tick{stamp}, ring.position()); }

    /// Adds the items that one call hands out to `emitted`.
    template <class Sweep>
    ring_sweep once(std::size_t room, Sweep sweep) {
        std::vector<int*> out(room);
        const ring_sweep result = sweep(std::span<int*>(out));
        for (std::size_t i = 0; i != result.emitted; ++i)
            emitted.push_back(*out[i]);
        return result;
    }
    ring_sweep expire(std::uint64_t now, std::size_t room) {
        return once(room, [&](auto out) { return ring.expire(tick{now}, out); });
    }
    ring_sweep force(std::size_t room) {
        return once(room, [&](auto out) { return ring.force(out); });
    }
    ring_sweep drain(ring_position upto, std::size_t room) {
        return once(room, [&](auto out) { return ring.drain(upto, out); });
    }

    /// Passes the time, and returns all due items.
    ids at(std::uint64_t now, std::size_t room = 64) {
        mark(now);
        emitted.clear();
        while (expire(now, room).more) {
        }
        pawl_test::check_invariant(ring);
        return std::exchange(emitted, {});
    }
    ids forced(std::size_t room) {
        emitted.clear();
        (void)force(room);
        return std::exchange(emitted, {});
    }

    std::vector<int> items = std::vector<int>(10'000);
    std::vector<ring_ticket> tickets = std::vector<ring_ticket>(10'000);
    ids emitted;
    ring_type ring;
};

ids range(int from, int to) {
    ids all(static_cast<std::size_t>(to - from));
    std::iota(all.begin(), all.end(), from);
    return all;
}

auto says(const std::string& text) {
    return [text](const std::exception& e) {
        BOOST_TEST(std::string(e.what()).find(text) != std::string::npos, e.what());
        return std::string(e.what()).find(text) != std::string::npos;
    };
}

constexpr std::uint64_t last = ~std::uint64_t{0} - 1; // the tick before never

} // namespace

// --- registering and cancelling ------------------------------------------------------------------

// In the circular timeout buffer, full was "more than the capacity": a sixth item was admitted to a
// buffer of five, over a live timer.
BOOST_DATA_TEST_CASE(a_ring_is_full_at_its_capacity_and_not_one_later,
                     data::make({1, 2, 3, 5, 8, 64, 1000}), capacity) {
    bench b(10, static_cast<std::size_t>(capacity));

    b.add(0, capacity);
    const ring_registration refused = b.add(capacity);

    BOOST_TEST((refused.status == ring_status::full));
    BOOST_TEST(!refused.ticket);
    BOOST_TEST(!refused.first);
    BOOST_TEST(b.ring.size() == static_cast<std::size_t>(capacity));
    BOOST_TEST(b.ring.capacity() == static_cast<std::size_t>(capacity));
    BOOST_TEST(!b.ring.has_room());
    pawl_test::check_invariant(b.ring);
    b.mark(100);
    BOOST_TEST(b.at(200) == range(0, capacity)); // and nothing was lost
    BOOST_TEST(b.ring.has_room());
}

// In the circular timeout buffer, a refused item was counted for a moment, so that others were
// refused without need.
BOOST_AUTO_TEST_CASE(what_is_refused_leaves_no_trace) {
    bench b(10, 5);
    b.add(0, 5);

    for (int i = 0; i != 100; ++i)
        BOOST_TEST((b.add(7).status == ring_status::full));

    BOOST_TEST(b.ring.size() == 5U);
    BOOST_TEST(b.forced(1) == range(0, 1));
    BOOST_TEST((b.add(5).status == ring_status::registered));
}

BOOST_AUTO_TEST_CASE(a_timer_is_cancelled_once) {
    bench b(10, 5);
    b.add(0, 3);

    BOOST_TEST(b.cancel(1));
    BOOST_TEST(!b.cancel(1));

    b.mark(10);
    BOOST_TEST(b.at(20) == (ids{0, 2}));
    BOOST_TEST(!b.cancel(0)); // expired
    BOOST_TEST(!b.cancel(1));
    BOOST_TEST(b.ring.size() == 0U);
}

BOOST_AUTO_TEST_CASE(no_ticket_is_not_running) {
    bench b(10, 5);
    const ring_ticket none;

    BOOST_TEST(!none);
    BOOST_TEST(none.word() == 0U);
    BOOST_TEST(b.ring.cancel(none) == nullptr);
    BOOST_TEST(!b.ring.in_open_period(none));
    BOOST_TEST(b.ring.cancel(ring_ticket::from_word(~std::uint64_t{0})) == nullptr);
}

BOOST_AUTO_TEST_CASE(a_ticket_can_be_kept_as_a_word_that_leaves_a_bit_free) {
    bench b(10, 5);
    const ring_ticket ticket = b.add(0).ticket;

    BOOST_TEST(static_cast<bool>(ticket));
    BOOST_TEST((ring_ticket::from_word(ticket.word()) == ticket));
    BOOST_TEST((ticket.word() >> 63) == 0U);
    BOOST_TEST(b.ring.cancel(ring_ticket::from_word(ticket.word())) == &b.items[0]);
}

// In the circular timeout buffer a canceller of an earlier life hit the slot of a later one.
BOOST_DATA_TEST_CASE(a_stale_ticket_hits_nobody_however_often_its_slot_was_used,
                     data::make({1, 2, 3, 5, 8}), capacity) {
    bench b(10, static_cast<std::size_t>(capacity));
    std::vector<ring_ticket> stale;

    for (int id = 0; id != 200; ++id) {
        stale.push_back(b.add(id).ticket);
        for (std::size_t old = 0; old + 1 < stale.size(); ++old)
            BOOST_TEST(b.ring.cancel(stale[old]) == nullptr);
        if (id % 2 == 0)
            BOOST_TEST(b.forced(8) == (ids{id}));
        else
            BOOST_TEST(b.cancel(id));
    }
}

// In the circular timeout buffer all indexes were rebased when one passed the end.
BOOST_DATA_TEST_CASE(many_laps_change_nothing, data::make({1, 2, 3, 5, 7, 8}), capacity) {
    bench b(10, static_cast<std::size_t>(capacity));
    std::uint64_t now = 0;

    for (int lap = 0; lap != 500; ++lap) {
        const int begin = lap % 100 * 10;
        b.add(begin, begin + capacity);
        BOOST_TEST((b.add(9999).status == ring_status::full));
        b.mark(now += 10);
        BOOST_TEST(b.at(now + 10) == range(begin, begin + capacity));
        now += 10;
    }
}

BOOST_AUTO_TEST_CASE(tickets_are_good_up_to_the_last_of_their_58_bits) {
    bench b(10, 5);
    timeout_ring_probe::set_age(b.ring, (std::uint64_t{1} << 58) - 100);

    for (int i = 0; i != 90; ++i) {
        b.add(i);
        BOOST_TEST(b.ring.in_open_period(b.tickets[static_cast<std::size_t>(i)]));
        if (i % 3 == 0)
            BOOST_TEST(b.cancel(i));
        else
            BOOST_TEST(b.forced(2) == (ids{i}));
    }
}

// In the circular timeout buffer, cancelled items kept their slots for 10 to 20 s, and a full ring
// evicted live timers.
BOOST_AUTO_TEST_CASE(a_full_ring_frees_what_was_cancelled_in_front_by_itself) {
    bench b(10, 8);
    for (int i = 0; i != 1000; ++i) {
        b.add(i);
        if (i >= 5)
            BOOST_TEST(b.cancel(i - 5)); // in order: five are alive at any time
    }

    BOOST_TEST(b.ring.size() <= 8U);
    b.mark(10);
    BOOST_TEST(b.at(20) == range(995, 1000));
}

BOOST_AUTO_TEST_CASE(a_full_ring_frees_nothing_behind_a_live_timer) {
    bench b(10, 4);
    b.add(0, 4);
    for (int id : {1, 2, 3})
        BOOST_TEST(b.cancel(id));

    BOOST_TEST(!b.ring.has_room());
    BOOST_TEST((b.add(4).status == ring_status::full));
    BOOST_TEST(b.cancel(0));
    BOOST_TEST(b.ring.has_room());
    BOOST_TEST((b.add(4).status == ring_status::registered));
    BOOST_TEST(b.ring.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_registration_frees_a_bounded_number_of_slots) {
    constexpr std::size_t most = timeout_ring_probe::reclaimed_at_once;
    bench b(10, 1000);
    b.add(0, 1000);
    for (int i = 0; i != 1000; ++i)
        BOOST_TEST(b.cancel(i));

    BOOST_TEST((b.add(1000).status == ring_status::registered));

    BOOST_TEST(b.ring.size() == 1000 - most + 1);
}

BOOST_AUTO_TEST_CASE(a_full_ring_makes_room_while_somebody_drives) {
    bench b(10, 2);
    b.add(0, 2);
    b.cancel(0);
    const timeout_ring_probe::driving other(b.ring);

    const ring_registration r = b.add(2);

    BOOST_TEST(static_cast<bool>(other));
    BOOST_TEST((r.status == ring_status::registered));
}

BOOST_AUTO_TEST_CASE(what_was_registered_can_be_given_another_item) {
    bench b(10, 5);
    b.add(0, 3);
    BOOST_TEST(b.cancel(2));

    b.ring.replace(b.tickets[1], b.items[41]);
    b.ring.replace(b.tickets[2], b.items[42]); // is not running
    b.ring.replace(ring_ticket{}, b.items[43]);
    bench grown(10, 1);
    grown.add(0);
    BOOST_REQUIRE(grown.ring.grow(grown.ring.prepare_growth()));
    grown.add(1);
    b.ring.replace(grown.tickets[1], b.items[44]); // of a ring with more blocks

    b.mark(10);
    BOOST_TEST(b.at(20) == (ids{0, 41}));
    b.add(5);
    b.ring.replace(b.tickets[5], b.items[45]);
    BOOST_TEST(b.ring.cancel(b.tickets[5]) == &b.items[45]);
}

BOOST_AUTO_TEST_CASE(a_stale_ticket_replaces_nobody) {
    bench b(10, 1);
    b.add(0);
    b.cancel(0);
    b.add(1); // in the same slot

    b.ring.replace(b.tickets[0], b.items[40]);

    BOOST_TEST(b.forced(2) == (ids{1}));
}

BOOST_AUTO_TEST_CASE(the_oldest_is_the_first_that_was_not_cancelled) {
    bench b(10, 500);
    BOOST_TEST(b.ring.oldest() == nullptr);
    b.add(0, 300);
    BOOST_TEST(b.ring.oldest() == &b.items[0]);

    for (int i = 0; i != 299; ++i)
        b.cancel(i);

    BOOST_TEST(b.ring.oldest() == &b.items[299]);
    BOOST_TEST(b.ring.size() == 1U);
    b.cancel(299);
    BOOST_TEST(b.ring.oldest() == nullptr);
    BOOST_TEST(b.ring.size() == 0U);
}

BOOST_AUTO_TEST_CASE(arguments_out_of_range_are_named_with_value_and_range) {
    const tick now{};
    const auto text = [](auto make) {
        try {
            make();
        } catch (const std::invalid_argument& e) {
            return std::string(e.what());
        }
        return std::string("nothing was thrown");
    };

    BOOST_TEST(text([&] { ring_type(0, 5, now); }) ==
               "pawl: timeout_ring: delay is 0, allowed are 1 to 4611686018427387904");
    BOOST_TEST(text([&] { ring_type(ring_type::most_delay + 1, 5, now); }) ==
               "pawl: timeout_ring: delay is 4611686018427387905, allowed are 1 to "
               "4611686018427387904");
    BOOST_TEST(text([&] { ring_type(10, 0, now); }) ==
               "pawl: timeout_ring: capacity is 0, allowed are 1 to 2147483648");
    BOOST_TEST(text([&] { ring_type(10, ring_type::most_capacity + 1, now); }) ==
               "pawl: timeout_ring: capacity is 2147483649, allowed are 1 to 2147483648");
    BOOST_TEST(text([&] { ring_type(10, ~std::size_t{0}, now); }) ==
               "pawl: timeout_ring: capacity is " + std::to_string(~std::size_t{0}) +
                   ", allowed are 1 to 2147483648");
    BOOST_TEST(text([&] { ring_type(10, 5, now, 0); }) ==
               "pawl: timeout_ring: marks is 0, allowed are 1 to 1024");
    BOOST_TEST(text([&] { ring_type(10, 5, now, 1025); }) ==
               "pawl: timeout_ring: marks is 1025, allowed are 1 to 1024");
    pawl_test::check_invariant(ring_type(ring_type::most_delay, 1, now, 1024));
}

BOOST_AUTO_TEST_CASE(a_ring_knows_what_it_was_made_of) {
    const ring_type ring(100, 5, tick{7});
    const ring_type seed(20, 5, tick{7}, 1);

    BOOST_TEST(ring.delay() == 100U);
    BOOST_TEST(ring.marks() == 8U);
    BOOST_TEST(ring.period() == 13U); // 12.5, rounded up
    BOOST_TEST(seed.marks() == 1U);
    BOOST_TEST(seed.period() == 20U);
    BOOST_TEST(ring_type(1, 1, tick{}, 1024).period() == 1U);
}

// --- time ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(
    with_one_mark_a_timer_expires_on_the_second_tick_as_in_the_circular_timeout_buffer) {
    bench b(10, 5, 1);
    b.add(0);

    BOOST_TEST(b.at(10).empty());
    b.add(1);
    BOOST_TEST(b.at(20) == (ids{0}));
    BOOST_TEST(b.at(30) == (ids{1}));
}

// Pawl's window: [d, d + d/k], with a driver that wakes at next_wake().
BOOST_DATA_TEST_CASE(every_timer_expires_within_its_window,
                     data::make({1, 2, 7, 8, 10, 64, 100}) * data::make({1, 2, 3, 8, 1024}), delay,
                     marks) {
    const auto d = static_cast<std::uint64_t>(delay);
    bench b(d, 1000, static_cast<unsigned>(marks), 1000);
    std::uint64_t wake = b.ring.next_wake().count();
    std::vector<std::uint64_t> since;
    std::vector<std::uint64_t> age;

    for (std::uint64_t now = 1000; age.size() != 300 && now < 1000 + 5 * d + 600; ++now) {
        while (wake <= now) {
            for (const int id : b.at(now)) {
                BOOST_TEST(id == static_cast<int>(age.size()));
                age.push_back(now - since[static_cast<std::size_t>(id)]);
            }
            wake = b.ring.next_wake().count();
        }
        // A burst at each second tick, then silence, then one item at the end.
        for (std::size_t i = 0; i != 3 && since.size() < 299 && now % 2 == 0; ++i) {
            if (b.add(static_cast<int>(since.size())).first)
                wake = std::min(wake, b.ring.next_wake().count());
            since.push_back(now);
        }
        if (now == 1000 + 3 * d + 300) {
            if (b.add(static_cast<int>(since.size())).first)
                wake = std::min(wake, b.ring.next_wake().count());
            since.push_back(now);
        }
    }

    BOOST_TEST(age.size() == 300U);
    for (const std::uint64_t a : age) {
        BOOST_TEST(a >= d);
        BOOST_TEST(a <= d + b.ring.period());
    }
}

// The same at random, with cancels, forced sweeps, small rooms, and a late driver.
BOOST_DATA_TEST_CASE(nothing_is_early_or_lost_or_out_of_order_at_random,
                     data::make({1, 3, 8}) * data::make({false, true}), marks, punctual) {
    struct timer {
        int id;
        std::uint64_t since;
        ring_ticket ticket;
    };
    std::mt19937_64 random(pawl_test::seed());
    const auto upto = [&](std::uint64_t n) {
        return std::uniform_int_distribution<std::uint64_t>(0, n)(random);
    };
    constexpr std::uint64_t d = 50;
    ring_type ring(d, 200, tick{}, static_cast<unsigned>(marks));
    std::deque<timer> model;
    std::vector<int> items(10'000);
    std::iota(items.begin(), items.end(), 0);
    std::vector<ring_ticket> stale;
    int next = 0;
    std::uint64_t now = 0;
    tick wake = tick::never();
    std::size_t latest = 0;

    const auto check = [&](std::span<int*> out, bool forced) {
        for (const int* item : out) {
            BOOST_REQUIRE(!model.empty());
            BOOST_REQUIRE_EQUAL(*item, model.front().id);
            const std::uint64_t age = now - model.front().since;
            BOOST_REQUIRE(forced || age >= d);
            if (!forced)
                latest = std::max<std::size_t>(latest, age);
            stale.push_back(model.front().ticket);
            model.pop_front();
        }
    };
    const auto drive = [&] {
        ring.mark(tick{now}, ring.position());
        for (bool more = true; more;) {
            std::vector<int*> out(1 + upto(20));
            const ring_sweep s = ring.expire(tick{now}, out);
            check(std::span(out).first(s.emitted), false);
            more = s.more && (punctual || upto(3) != 0);
        }
        wake = ring.next_wake();
    };

    for (std::uint64_t step = pawl_test::steps(100'000); step != 0; --step) {
        switch (upto(9)) {
        case 0:
        case 1:
        case 2: {
            const int id = next++ % static_cast<int>(items.size());
            const ring_registration r = ring.try_register(items[static_cast<std::size_t>(id)]);
            if (r.status == ring_status::full) {
                BOOST_REQUIRE_EQUAL(ring.size(), ring.capacity());
                break;
            }
            model.push_back({id, now, r.ticket});
            if (r.first)
                wake = std::min(wake, ring.next_wake());
            break;
        }
        case 3:
        case 4:
            if (!model.empty()) {
                const auto at = model.begin() + static_cast<std::ptrdiff_t>(upto(model.size() - 1));
                int* const item = ring.cancel(at->ticket);
                BOOST_REQUIRE(item != nullptr);
                BOOST_REQUIRE_EQUAL(*item, at->id);
                stale.push_back(at->ticket);
                model.erase(at);
            }
            break;
        case 5:
            if (!stale.empty())
                BOOST_REQUIRE(ring.cancel(stale[upto(stale.size() - 1)]) == nullptr);
            break;
        case 6:
            if (!punctual || upto(50) == 0) {
                std::vector<int*> out(upto(3));
                const ring_sweep s = ring.force(out);
                check(std::span(out).first(s.emitted), true);
                wake = std::min(wake, ring.next_wake());
            }
            break;
        default: {
            const std::uint64_t to = now + upto(upto(5) == 0 ? 20 : 2);
            if (punctual) {
                while (wake <= tick{to}) {
                    now = std::max(now, wake.count());
                    drive();
                }
            } else if (upto(10) == 0) {
                drive();
            }
            now = to;
        }
        }
        if (step % 64 == 0)
            pawl_test::check_invariant(ring);
        BOOST_REQUIRE(ring.size() >= model.size());
    }
    if (punctual)
        BOOST_TEST(latest <= d + ring.period());
    for (int i = 0; i != 3; ++i) { // until the end: close the period, let it fall due, sweep
        now += d;
        std::vector<int*> out(1000);
        ring.mark(tick{now}, ring.position());
        check(std::span(out).first(ring.expire(tick{now}, out).emitted), false);
    }

    BOOST_TEST(model.empty());
    BOOST_TEST(ring.size() == 0U);
}

// In the circular timeout buffer, ticks came at a fixed rate. A tick that was late by 8 s made a
// timer of 10 s expire after 2.1 s.
BOOST_AUTO_TEST_CASE(a_late_tick_makes_nothing_early) {
    bench b(100, 5, 1);
    b.add(0); // at 0

    BOOST_TEST(b.at(180).empty()); // the tick of 100
    b.add(1);                      // at 181
    BOOST_TEST(b.at(200).empty()); // the next tick closes nothing: only 20 have passed
    BOOST_TEST(b.at(279).empty());
    BOOST_TEST(b.at(280) == (ids{0})); // closes the sub-period of 1
    BOOST_TEST(b.at(379).empty());
    BOOST_TEST(b.at(380) == (ids{1}));
}

BOOST_AUTO_TEST_CASE(ticks_that_come_too_often_shift_nothing) {
    bench b(80, 5); // sub-periods of 10
    b.add(0);

    for (std::uint64_t now = 0; now != 10; ++now) {
        BOOST_TEST(b.at(now).empty());
        BOOST_TEST(timeout_ring_probe::marks(b.ring) == 0U);
    }
    BOOST_TEST(b.at(10).empty());
    BOOST_TEST(timeout_ring_probe::marks(b.ring) == 1U);
    BOOST_TEST(b.at(89).empty());
    BOOST_TEST(b.at(90) == (ids{0}));
}

// In the circular timeout buffer a forced tick shifted the marks, and made other timers early.
BOOST_AUTO_TEST_CASE(a_forced_sweep_makes_no_other_timer_early) {
    bench b(80, 10);
    b.add(0, 2);
    b.mark(10);
    b.add(2, 6);
    BOOST_TEST((b.ring.next_wake() == tick{20})); // to close the open sub-period

    BOOST_TEST(b.forced(3) == range(0, 3)); // beyond the mark

    BOOST_TEST((b.ring.next_wake() == tick{20}));
    BOOST_TEST(b.at(19).empty());
    BOOST_TEST(b.at(20).empty());
    BOOST_TEST((b.ring.next_wake() == tick{100}));
    BOOST_TEST(b.at(99).empty());
    BOOST_TEST(b.at(100) == range(3, 6));
}

BOOST_AUTO_TEST_CASE(time_that_goes_back_makes_nothing_early) {
    bench b(80, 5);
    b.mark(1000);
    b.add(0);

    BOOST_TEST(b.at(0).empty());
    BOOST_TEST(b.at(900).empty());
    BOOST_TEST((b.ring.next_wake() == tick{1010}));
    BOOST_TEST(b.at(1010).empty());
    b.add(1);
    BOOST_TEST(b.at(5).empty());
    BOOST_TEST(b.at(1089).empty()); // closes the sub-period of 1
    BOOST_TEST(b.at(1090) == (ids{0}));
    BOOST_TEST(b.at(0).empty());
    BOOST_TEST(b.at(1168).empty());
    BOOST_TEST(b.at(1169) == (ids{1}));
}

BOOST_AUTO_TEST_CASE(a_position_that_is_out_of_date_marks_no_more_than_it_has_seen) {
    bench b(80, 10);
    const ring_position before = b.ring.position();
    b.add(0);
    const ring_position between = b.ring.position();
    b.add(1);

    b.ring.mark(tick{50}, before); // did not see the registration
    BOOST_TEST(timeout_ring_probe::marks(b.ring) == 0U);
    b.ring.mark(tick{60}, between);
    b.ring.mark(tick{1000}, before);
    b.ring.mark(tick{1000}, ring_position{});
    BOOST_TEST(timeout_ring_probe::marks(b.ring) == 1U);

    (void)b.expire(140, 10);
    BOOST_TEST(b.emitted == (ids{0}));
    BOOST_TEST((b.ring.next_wake() == tick{70})); // 1 still waits for its mark
    BOOST_TEST((before == b.ring.position()) == false);
}

BOOST_AUTO_TEST_CASE(the_first_timer_after_a_long_silence_is_not_late) {
    bench b(80, 5);
    b.mark(1'000'000); // without registrations, only the start moves
    BOOST_TEST((b.ring.next_wake() == tick::never()));

    const ring_registration first = b.add(0); // at 2'000'000
    BOOST_TEST(first.first);
    BOOST_TEST((b.ring.next_wake() == tick{1'000'010})); // at once: the sub-period is over
    b.mark(2'000'000);

    BOOST_TEST((b.ring.next_wake() == tick{2'000'080}));
    BOOST_TEST(b.at(2'000'079).empty());
    BOOST_TEST(b.at(2'000'080) == (ids{0}));
}

BOOST_AUTO_TEST_CASE(the_first_of_each_sub_period_is_told_so) {
    bench b(80, 10);

    BOOST_TEST(b.add(0).first);
    BOOST_TEST(!b.add(1).first);
    b.mark(9); // too early
    BOOST_TEST(!b.add(2).first);
    b.mark(10);
    BOOST_TEST(b.add(3).first);
    BOOST_TEST(!b.add(4).first);
    BOOST_TEST(b.forced(5).size() == 5U); // sweeps the open sub-period, too
    BOOST_TEST(b.add(5).first);
    BOOST_TEST(b.cancel(5));
    BOOST_TEST(b.at(11).empty()); // and again, over cancelled items
    BOOST_TEST((b.ring.next_wake() == tick::never()));
    BOOST_TEST(b.add(6).first);
}

BOOST_AUTO_TEST_CASE(a_driver_that_knows_the_latest_registration_may_come_late) {
    bench b(80, 10);
    b.add(0);
    b.add(1);
    b.ring.mark(tick{9}, tick{4}, b.ring.position()); // too early
    BOOST_TEST((b.ring.next_wake() == tick{10}));
    b.ring.mark(tick{70}, tick{4}, b.ring.position());
    BOOST_TEST((b.ring.next_wake() == tick{84}));
    BOOST_TEST(b.expire(83, 5).emitted == 0U);
    BOOST_TEST(b.expire(84, 5).emitted == 2U);
}

BOOST_AUTO_TEST_CASE(a_stamp_never_falls_so_that_nothing_is_early) {
    bench b(80, 10);
    b.add(0);
    b.ring.mark(tick{20}, tick{20}, b.ring.position());
    b.add(1);
    b.ring.mark(tick{30}, tick{5}, b.ring.position()); // 1 started long before it was registered
    BOOST_TEST(b.expire(99, 5).emitted == 0U);
    pawl_test::check_invariant(b.ring);
    BOOST_TEST(b.expire(100, 5).emitted == 2U);
}

// Wake-up invariant. A registration that is not the first relies on a wake-up that an earlier one
// has caused.
BOOST_AUTO_TEST_CASE(a_sub_period_that_others_have_emptied_is_still_waited_for) {
    bench b(80, 2);
    BOOST_TEST(b.add(0).first);
    b.add(1);
    b.cancel(0);
    b.cancel(1);

    BOOST_TEST(!b.add(2).first); // freed the two, but it is not the driver

    BOOST_TEST((b.ring.next_wake() == tick{10}));
    BOOST_TEST(b.at(10).empty());
    BOOST_TEST(b.at(90) == (ids{2}));
}

// A mark is never made while all places are taken and needed. If the sweep is behind, the front
// mark is given up, and its timers expire with the next.
BOOST_DATA_TEST_CASE(more_marks_than_there_is_room_for_make_nothing_early, data::make({1, 2, 8}),
                     marks) {
    bench b(80, 200, static_cast<unsigned>(marks));
    std::uint64_t now = 0;
    for (int i = 0; i != 100; ++i) {
        b.add(i);
        b.mark(now += b.ring.period()); // expire() is not called
        BOOST_TEST(timeout_ring_probe::marks(b.ring) <= static_cast<std::size_t>(marks) + 1);
    }
    pawl_test::check_invariant(b.ring);

    // Timer i was marked at (i + 1) * period. Timers that are due by then are at most one period
    // late:
    const std::uint64_t period = b.ring.period();
    BOOST_TEST(b.at(now) == range(0, 100 - static_cast<int>((80 + period - 1) / period)));
    for (int i = 100 - static_cast<int>((80 + period - 1) / period); i != 100; ++i) {
        const std::uint64_t due = static_cast<std::uint64_t>(i + 1) * period + 80;
        BOOST_TEST(b.at(due - 1).empty());
        BOOST_TEST(b.at(due) == (ids{i}));
    }
}

BOOST_AUTO_TEST_CASE(a_wait_is_exact_and_there_is_none_without_timers) {
    bench b(80, 20, 8, 5000);
    BOOST_TEST((b.ring.next_wake() == tick::never()));

    b.add(0);
    BOOST_TEST((b.ring.next_wake() == tick{5010}));
    b.mark(5012);
    BOOST_TEST((b.ring.next_wake() == tick{5092}));
    b.add(1);
    BOOST_TEST((b.ring.next_wake() == tick{5022}));
    b.mark(5022);
    BOOST_TEST((b.ring.next_wake() == tick{5092}));
    BOOST_TEST(b.at(5092) == (ids{0}));
    BOOST_TEST((b.ring.next_wake() == tick{5102}));
    BOOST_TEST(b.at(5102) == (ids{1}));
    BOOST_TEST((b.ring.next_wake() == tick::never()));
}

BOOST_AUTO_TEST_CASE(what_is_left_of_a_batch_is_due_at_once) {
    bench b(80, 20);
    b.add(0, 5);
    b.mark(10);

    BOOST_TEST(b.expire(90, 2).more);

    BOOST_TEST((b.ring.next_wake() == tick{90}));
    BOOST_TEST(b.at(90) == range(2, 5));
}

BOOST_AUTO_TEST_CASE(what_would_be_due_at_the_end_of_time_never_is) {
    for (const std::uint64_t delay :
         {std::uint64_t{1}, std::uint64_t{100}, ring_type::most_delay}) {
        const std::uint64_t period = (delay - 1) / 8 + 1;
        bench b(delay, 10, 8, last - delay - period);
        b.add(0);
        b.mark(last - delay); // due at `last`
        b.add(1);
        BOOST_TEST((b.ring.next_wake() <= tick{last}));
        b.mark(last); // 1 would be due beyond all ticks, or at never
        pawl_test::check_invariant(b.ring);

        BOOST_TEST(b.at(last - 1).empty());
        BOOST_TEST(b.at(last) == (ids{0}));
        BOOST_TEST((b.ring.next_wake() == tick::never()));
        BOOST_TEST(b.at(tick::never().count()).empty());
        b.add(2);
        BOOST_TEST(b.at(tick::never().count()).empty());
        BOOST_TEST(b.ring.size() == 2U);
        BOOST_TEST(b.cancel(1));
        BOOST_TEST(b.forced(2) == (ids{2})); // they are not lost
    }
}

BOOST_AUTO_TEST_CASE(a_timer_in_the_open_sub_period_may_begin_anew_where_it_is) {
    bench b(80, 20);
    b.add(0);
    BOOST_TEST(b.ring.in_open_period(b.tickets[0])); // starts again at 9
    b.mark(10);
    BOOST_TEST(!b.ring.in_open_period(b.tickets[0]));
    b.add(1);
    BOOST_TEST(b.ring.in_open_period(b.tickets[1]));

    BOOST_TEST(b.at(90) == (ids{0}));
}

// --- sweeping ------------------------------------------------------------------------------------

BOOST_DATA_TEST_CASE(a_batch_is_bounded_and_resumed, data::make({1, 2, 7, 63, 64, 256}), room) {
    bench b(80, 300);
    b.add(0, 300);
    for (int i = 0; i < 300; i += 3)
        b.cancel(i);
    b.mark(10);
    ids expected;
    for (int i = 0; i != 300; ++i) {
        if (i % 3 != 0)
            expected.push_back(i);
    }
    const auto step = static_cast<std::size_t>(room);

    std::size_t calls = 0;
    std::size_t size = b.ring.size();
    for (bool more = true; more; ++calls) {
        more = b.expire(90, step).more;
        BOOST_TEST(b.ring.size() == size - std::min(size, step)); // cancelled ones are counted
        BOOST_TEST(more == (size > step));
        size = b.ring.size();
        pawl_test::check_invariant(b.ring);
    }

    BOOST_TEST(b.emitted == expected);
    BOOST_TEST(calls == (300 + step - 1) / step);
}

BOOST_AUTO_TEST_CASE(without_room_nothing_happens_and_that_is_said) {
    bench b(80, 5);
    BOOST_TEST(!b.expire(90, 0).more);
    b.add(0, 2);
    b.mark(10);

    const ring_sweep s = b.expire(90, 0);

    BOOST_TEST(s.more);
    BOOST_TEST(!s.busy);
    BOOST_TEST(s.emitted == 0U);
    BOOST_TEST(!b.expire(89, 0).more);
    BOOST_TEST(b.ring.size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_timer_that_is_cancelled_between_two_batches_does_not_expire) {
    bench b(80, 10);
    b.add(0, 6);
    b.mark(10);
    BOOST_TEST(b.expire(90, 2).more);

    BOOST_TEST(!b.cancel(0));
    BOOST_TEST(b.cancel(2));
    BOOST_TEST(b.cancel(5));

    BOOST_TEST(b.at(90) == (ids{3, 4}));
}

// A thread between reserving and publishing stops the items behind it, and nothing else.
BOOST_AUTO_TEST_CASE(a_slot_that_is_not_published_delays_only_what_is_behind_it) {
    bench b(80, 5);
    b.add(0);
    const auto late = timeout_ring_probe::reserve(b.ring);
    b.add(2, 4);
    b.mark(10);

    const ring_sweep s = b.expire(90, 10);

    BOOST_TEST(b.emitted == (ids{0}));
    BOOST_TEST(s.more);
    BOOST_TEST((b.ring.next_wake() == tick{90}));
    BOOST_TEST(b.force(10).more);
    BOOST_TEST(b.ring.oldest() == nullptr);
    BOOST_TEST(b.cancel(3)); // others can be cancelled as before
    BOOST_TEST((b.add(4).status == ring_status::registered));
    BOOST_TEST((b.add(5).status == ring_status::registered));
    BOOST_TEST((b.add(6).status == ring_status::full)); // the slot is in use
    timeout_ring_probe::publish(b.ring, late, b.items[1]);
    BOOST_TEST(b.at(90) == (ids{1, 2}));
    BOOST_TEST(b.at(170) == (ids{4, 5}));
}

// The circular timeout buffer only proposes this.
BOOST_AUTO_TEST_CASE(what_was_cancelled_behind_the_limit_is_swept_and_drags_the_marks_along) {
    bench b(80, 20);
    b.add(0, 2);
    b.mark(10);
    b.add(2, 4);
    b.mark(20);
    b.add(4, 6);
    b.add(6);
    for (int id : {1, 2, 3, 4, 5})
        b.cancel(id);
    BOOST_TEST(timeout_ring_probe::marks(b.ring) == 2U);

    (void)b.expire(90, 20);

    BOOST_TEST(b.emitted == (ids{0}));
    BOOST_TEST(b.ring.size() == 1U);
    BOOST_TEST(timeout_ring_probe::marks(b.ring) == 0U);
    BOOST_TEST((b.ring.next_wake() == tick{30})); // the open sub-period began at 20, as before
    BOOST_TEST(b.ring.in_open_period(b.tickets[6]));
    BOOST_TEST(b.at(30).empty());
    BOOST_TEST(b.at(110) == (ids{6}));
}

BOOST_AUTO_TEST_CASE(a_cancelled_prefix_is_swept_before_anything_is_due) {
    bench b(80, 20);
    b.add(0, 10);
    b.mark(10);
    for (int i = 0; i != 9; ++i)
        b.cancel(i);

    BOOST_TEST(!b.expire(11, 4).more);
    BOOST_TEST(b.ring.size() == 6U); // bounded as well
    BOOST_TEST(!b.expire(11, 100).more);
    BOOST_TEST(b.ring.size() == 1U);
    b.cancel(9);
    (void)b.expire(11, 1);
    BOOST_TEST((b.ring.next_wake() == tick::never())); // nothing to wait for
}

BOOST_AUTO_TEST_CASE(a_forced_sweep_takes_the_oldest_whatever_their_age) {
    bench b(80, 10);
    b.add(0, 10);
    b.cancel(1);

    BOOST_TEST(b.forced(3) == (ids{0, 2}));
    BOOST_TEST(b.force(3).more);
    BOOST_TEST(b.emitted == range(3, 6));
    BOOST_TEST(!b.force(10).more);
    BOOST_TEST(b.ring.size() == 0U);
    BOOST_TEST(!b.force(10).more);
}

// According to the circular timeout buffer, all timers are reported once at the end, but not how.
BOOST_AUTO_TEST_CASE(a_closed_ring_refuses_and_is_drained_once) {
    bench b(80, 10);
    b.add(0, 4);
    b.mark(10);
    b.add(4, 6);
    b.cancel(2);
    const auto late = timeout_ring_probe::reserve(b.ring);
    BOOST_TEST(!b.ring.closed());

    b.ring.close();
    b.ring.close();
    BOOST_TEST(b.ring.closed());
    BOOST_TEST((b.add(7).status == ring_status::closed));
    const ring_position end = b.ring.position();
    BOOST_TEST(b.cancel(3)); // as usual

    BOOST_TEST(b.drain(end, 2).more);
    BOOST_TEST(b.drain(end, 100).more); // one is being registered
    BOOST_TEST(b.emitted == (ids{0, 1, 4, 5}));
    timeout_ring_probe::publish(b.ring, late, b.items[6]);
    BOOST_TEST(!b.drain(end, 100).more);
    BOOST_TEST(b.emitted == (ids{0, 1, 4, 5, 6}));
    BOOST_TEST(!b.drain(end, 100).more);
    BOOST_TEST(b.emitted.size() == 5U);
    BOOST_TEST((b.add(7).status == ring_status::closed));
    BOOST_TEST((b.ring.next_wake() == tick::never()));
}

BOOST_AUTO_TEST_CASE(draining_stops_at_its_position) {
    bench b(80, 10);
    b.add(0, 3);
    const ring_position upto = b.ring.position();
    b.add(3, 5);

    BOOST_TEST(!b.drain(upto, 100).more);

    BOOST_TEST(b.emitted == range(0, 3));
    BOOST_TEST(b.at(10).empty());
    BOOST_TEST(b.at(90) == range(3, 5));
}

BOOST_AUTO_TEST_CASE(a_second_driver_is_told_that_the_first_is_busy) {
    bench b(80, 5);
    b.add(0, 2);
    {
        const timeout_ring_probe::driving first(b.ring);
        const timeout_ring_probe::driving second(b.ring);
        BOOST_TEST(static_cast<bool>(first));
        BOOST_TEST(!second);

        b.mark(10);
        for (const ring_sweep s : {b.expire(90, 5), b.force(5), b.drain(b.ring.position(), 5)}) {
            BOOST_TEST(s.busy);
            BOOST_TEST(!s.more);
            BOOST_TEST(s.emitted == 0U);
        }
        BOOST_TEST(timeout_ring_probe::marks(b.ring) == 0U);
        BOOST_TEST(b.cancel(1)); // any thread may
        b.add(2);
    }

    BOOST_TEST(b.at(10).empty());
    BOOST_TEST(b.at(90) == (ids{0, 2}));
}

// --- growing -------------------------------------------------------------------------------------

BOOST_DATA_TEST_CASE(a_ring_grows_and_keeps_order_and_tickets, data::make({1, 2, 3, 5, 8}),
                     capacity) {
    bench b(80, static_cast<std::size_t>(capacity));
    std::vector<ring_ticket> stale;
    int id = 0;
    std::size_t expected = static_cast<std::size_t>(capacity);

    for (int growth = 0; growth != 8; ++growth) {
        while (b.add(id).status == ring_status::registered)
            ++id;
        BOOST_TEST(b.ring.size() == expected);
        auto room = b.ring.prepare_growth();
        BOOST_TEST(b.ring.capacity() == expected);
        BOOST_REQUIRE(b.ring.grow(std::move(room)));
        expected *= 2;
        BOOST_TEST(b.ring.capacity() == expected);
        pawl_test::check_invariant(b.ring);
    }
    const ids middle = b.forced(static_cast<std::size_t>(id) / 2);
    BOOST_TEST(middle == range(0, id / 2));
    BOOST_TEST(b.cancel(id - 1));
    BOOST_TEST(b.cancel(id / 2));
    const int first = id;
    for (; id != first + 3 * static_cast<int>(expected); ++id) { // three laps in the last block
        while (b.add(id).status == ring_status::full)
            (void)b.force(3);
        for (int old = 0; old < middle.back(); old += 7)
            BOOST_REQUIRE(!b.cancel(old));
    }
    while (b.force(100).more) {
    }

    ids rest = range(first / 2 + 1, id);
    rest.erase(std::find(rest.begin(), rest.end(), first - 1));
    BOOST_TEST(b.emitted == rest);
}

BOOST_AUTO_TEST_CASE(a_ring_grows_while_slots_of_the_old_block_are_not_published) {
    bench b(80, 2);
    b.add(0);
    const auto late = timeout_ring_probe::reserve(b.ring);
    BOOST_TEST(b.ring.grow(b.ring.prepare_growth()));
    b.add(2, 4);

    BOOST_TEST(b.force(10).more);
    BOOST_TEST(b.emitted == (ids{0}));
    timeout_ring_probe::publish(b.ring, late, b.items[1]);
    BOOST_TEST(!b.force(10).more);
    BOOST_TEST(b.emitted == range(0, 4));
}

BOOST_AUTO_TEST_CASE(a_ring_that_cannot_or_need_not_grow_stays_as_it_is) {
    bench b(80, 4);
    b.add(0, 3);
    BOOST_TEST(!b.ring.grow(b.ring.prepare_growth())); // there is room
    auto small = b.ring.prepare_growth();
    b.add(3);
    BOOST_TEST(!b.ring.grow(nullptr));
    BOOST_TEST(b.ring.grow(b.ring.prepare_growth()));
    BOOST_TEST(!b.ring.grow(std::move(small))); // there is room again
    small = timeout_ring<int>(80, 4, tick{}).prepare_growth();
    b.add(4, 8);
    BOOST_TEST(!b.ring.grow(std::move(small))); // of another size
    BOOST_TEST(b.ring.capacity() == 8U);
    auto late = b.ring.prepare_growth();
    b.ring.close();
    BOOST_TEST(!b.ring.grow(std::move(late)));
    BOOST_TEST(b.ring.capacity() == 8U);
    BOOST_TEST(b.forced(100) == range(0, 8)); // nothing was lost
}

BOOST_AUTO_TEST_CASE(no_ring_grows_beyond_the_most_capacity) {
    bench b(80, 4);

    timeout_ring_probe::set_capacity(b.ring, ring_type::most_capacity / 2 + 1);
    BOOST_TEST(b.ring.prepare_growth() == nullptr);
    timeout_ring_probe::set_capacity(b.ring, 4);
    BOOST_TEST(b.ring.prepare_growth() != nullptr);
}

BOOST_AUTO_TEST_CASE(a_growth_for_which_memory_is_lacking_changes_nothing) {
    bench b(80, 4);
    b.add(0, 4);

    counted_new::fuse.store(1);
    BOOST_CHECK_THROW((void)b.ring.prepare_growth(), std::bad_alloc);
    counted_new::fuse.store(counted_new::never);

    BOOST_TEST(b.ring.capacity() == 4U);
    BOOST_TEST((b.add(4).status == ring_status::full));
    BOOST_TEST(b.forced(10) == range(0, 4));
}

// --- allocations and locks that it avoids -------------------------------------------------------

BOOST_AUTO_TEST_CASE(no_lock_is_taken_and_nothing_is_allocated) {
    std::size_t before = locks;
    std::mutex control;
    { const std::lock_guard lock(control); }
    BOOST_TEST(locks == before + 1);
    bench b(80, 100);
    auto room = b.ring.prepare_growth();
    std::array<int*, 16> out{};
    std::size_t emitted = 0;
    before = locks;
    const std::size_t allocations = counted_new::calls.load();

    std::uint64_t now = 0;
    for (std::size_t i = 0; i != 5000; ++i) {
        const ring_registration r = b.ring.try_register(b.items[i]);
        if (r.status == ring_status::full && room != nullptr)
            (void)b.ring.grow(std::move(room));
        if (i % 3 == 0)
            (void)b.ring.cancel(r.ticket);
        if (i % 5 == 0) {
            b.ring.mark(tick{++now}, b.ring.position());
            emitted += b.ring.expire(tick{now}, out).emitted;
            (void)b.ring.next_wake();
        }
        if (i % 1000 == 0)
            emitted += b.ring.force(out).emitted;
    }
    b.ring.close();
    while (true) {
        const ring_sweep s = b.ring.drain(b.ring.position(), out);
        emitted += s.emitted;
        if (!s.more)
            break;
    }

    BOOST_TEST(locks == before);
    BOOST_TEST(counted_new::calls.load() == allocations);
    BOOST_TEST(emitted > 1000U);
}

// --- the invariant -------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(the_invariant_sees_a_ring_that_is_broken) {
    bench b(80, 4);
    b.add(0, 3);
    const std::uint64_t head = timeout_ring_probe::head(b.ring);

    timeout_ring_probe::set_head(b.ring, head + 1);
    BOOST_CHECK_EXCEPTION(pawl_test::check_invariant(b.ring), std::logic_error,
                          says("one-slot invariant: a timer is live"));
    timeout_ring_probe::set_head(b.ring, head + 4);
    BOOST_CHECK_EXCEPTION(pawl_test::check_invariant(b.ring), std::logic_error,
                          says("capacity invariant: more slots"));
    timeout_ring_probe::set_head(b.ring, head);
    {
        const timeout_ring_probe::driving mine(b.ring);
        BOOST_CHECK_EXCEPTION(pawl_test::check_invariant(b.ring), std::logic_error,
                              says("a driver is at work"));
    }
    const auto mine = timeout_ring_probe::reserve(b.ring);
    BOOST_CHECK_EXCEPTION(pawl_test::check_invariant(b.ring), std::logic_error, says("in no slot"));
    timeout_ring_probe::publish(b.ring, mine, b.items[3]);
    pawl_test::check_invariant(b.ring);
}
