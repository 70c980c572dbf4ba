// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// The stories told about seed 000, from its text and its defects, replayed on timeout_ring. Those
// that need threads or handlers are written down below, each under its name; every other one is run
// by an adapter, and none is left out.

#include <pawl/time/timeout_ring.hpp>

#include "../support/vectors.hpp"

#define BOOST_TEST_MODULE timeout_ring_vectors
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using pawl::time::ring_registration;
using pawl::time::ring_status;
using pawl::time::ring_sweep;
using pawl::time::ring_ticket;
using pawl::time::tick;
using pawl::time::timeout_ring;
using pawl_test::json::array;
using pawl_test::json::object;
using pawl_test::json::value;

namespace {

constexpr std::uint64_t tick_length = 100; // the seed's 10 s, so that 0.1 s can be told

/// The seed: one delay of one tick, two marks, and a handler that is called for what has expired.
class seed {
public:
    struct timer {
        std::string id;
        ring_ticket ticket{};
        std::function<void()> handler = [] {};
    };

    explicit seed(std::size_t slots) : ring(tick_length, slots, tick{}, 1) {}

    /// What the seed answers: the index of the slot. Pawl may have more slots than it admits timers
    /// to, so the index is counted off here.
    value add(timer& t) {
        const ring_registration r = ring.try_register(t);
        if (r.status != ring_status::registered)
            return r.status == ring_status::full ? "full" : "closed";
        t.ticket = r.ticket;
        return registered_++ % ring.capacity();
    }
    bool cancel(timer& t) { return ring.cancel(t.ticket) != nullptr; }

    /// Tells the time, and handles what has expired. Returns the names.
    array tell(std::uint64_t now) {
        ring.mark(tick{now}, ring.position());
        return handle([&](auto out) { return ring.expire(tick{now}, out); });
    }
    array tick_on() { return tell(now_ += tick_length); }
    array shut_down() {
        ring.close();
        return handle([&](auto out) { return ring.drain(ring.position(), out); });
    }

    timeout_ring<timer> ring;

private:
    template <class Sweep>
    array handle(Sweep sweep) {
        array ids;
        std::array<timer*, 2> out{}; // less than most stories need: more calls than one
        ring_sweep s{0, true, false};
        while (s.more) {
            s = sweep(std::span<timer*>(out));
            for (timer* const t : std::span(out).first(s.emitted)) {
                ids.emplace_back(t->id);
                t->handler();
            }
        }
        return ids;
    }

    std::uint64_t now_ = 0;
    std::size_t registered_ = 0;
};

/// Runs the steps of a story that one thread can tell.
class storyteller {
public:
    explicit storyteller(std::size_t slots) : seed_(slots) {}

    value run(const object& step) {
        const std::string op = pawl_test::json::value_to<std::string>(step.at("op"));
        if (op == "create")
            return nullptr; // by the constructor, with the same number
        if (op == "tick")
            return seed_.tick_on();
        if (op == "count")
            return seed_.ring.size();
        if (op == "shutdown")
            return seed_.shut_down();
        seed::timer& timer = timers_[pawl_test::json::value_to<std::string>(step.at("id"))];
        timer.id = pawl_test::json::value_to<std::string>(step.at("id"));
        if (op == "register")
            return seed_.add(timer);
        if (op == "cancel")
            return seed_.cancel(timer);
        throw std::runtime_error("unknown op: " + op);
    }

private:
    seed seed_;
    std::map<std::string, seed::timer> timers_;
};

// --- stories with threads or handlers ------------------------------------------------------------

/// The handler is still running when another thread cancels: the answer is false, and comes before
/// the handler ends. As written, the seed sleeps for ever.
void cancel_during_handler_must_not_hang(std::size_t slots) {
    seed s(slots);
    std::atomic<bool> running{false};
    std::atomic<bool> answered{false};
    bool answer = true;
    seed::timer a{"a"};
    a.handler = [&] {
        running.store(true);
        while (!answered.load())
            std::this_thread::yield();
    };
    (void)s.add(a);

    std::thread canceller([&] {
        while (!running.load())
            std::this_thread::yield();
        answer = s.cancel(a);
        answered.store(true);
    });
    BOOST_TEST(s.tick_on().empty());
    BOOST_TEST(s.tick_on() == (array{"a"}));
    canceller.join();

    BOOST_TEST(!answer);
}

/// As written, a self-deadlock.
void cancel_inside_own_handler(std::size_t slots) {
    seed s(slots);
    bool answer = true;
    seed::timer a{"a"};
    a.handler = [&] { answer = s.cancel(a); };
    (void)s.add(a);

    (void)s.tick_on();
    BOOST_TEST(s.tick_on() == (array{"a"}));

    BOOST_TEST(!answer);
}

void register_inside_handler(std::size_t slots) {
    seed s(slots);
    seed::timer b{"b"};
    seed::timer a{"a"};
    a.handler = [&] { (void)s.add(b); };
    (void)s.add(a);
    (void)s.tick_on();
    BOOST_TEST(s.tick_on() == (array{"a"}));

    array both = s.tick_on();
    for (const value& id : s.tick_on())
        both.push_back(id);

    BOOST_TEST(both == (array{"b"}));
}

/// Exactly one of: one cancel is true, or the handler runs. Eight cancel, while a tick expires.
void cancel_from_many_threads(std::size_t slots) {
    constexpr int cancellers = 8;
    constexpr int rounds = 200;
    seed s(slots);
    std::atomic<int> handled{0};
    std::atomic<int> cancelled{0};
    std::atomic<int> round{0};
    std::atomic<int> done{0};
    seed::timer a{"a"};
    a.handler = [&] { handled.fetch_add(1); };

    std::vector<std::thread> threads;
    for (int i = 0; i != cancellers; ++i) {
        threads.emplace_back([&] {
            for (int mine = 1; mine <= rounds; ++mine) {
                while (round.load() != mine)
                    std::this_thread::yield();
                cancelled.fetch_add(s.cancel(a) ? 1 : 0);
                done.fetch_add(1);
            }
        });
    }
    bool exactly_one = true;
    for (int i = 1; i <= rounds; ++i) {
        handled.store(0);
        cancelled.store(0);
        done.store(0);
        (void)s.add(a);
        (void)s.tick_on();
        round.store(i);
        (void)s.tick_on();
        while (done.load() != cancellers)
            std::this_thread::yield();
        exactly_one = exactly_one && handled.load() + cancelled.load() == 1;
    }
    for (std::thread& t : threads)
        t.join();

    BOOST_TEST(exactly_one);
}

/// In tenths of a second. The seed expired a after 2.1 s.
void late_tick_does_not_shorten(std::size_t slots) {
    seed s(slots);
    seed::timer before{"before"};
    seed::timer a{"a"};
    (void)s.add(before); // at 0 s
    (void)s.add(a);      // at 17.9 s

    BOOST_TEST(s.tell(180).empty()); // the tick of 10 s
    BOOST_TEST(s.tell(200).empty());
    BOOST_TEST(s.tell(278).empty()); // 27.9 s is the earliest for a
    BOOST_TEST(s.tell(280) == (array{"before", "a"}));
}

const std::map<std::string, void (*)(std::size_t)> told_here{
    {"cancel_during_handler_must_not_hang", cancel_during_handler_must_not_hang},
    {"cancel_inside_own_handler", cancel_inside_own_handler},
    {"register_inside_handler", register_inside_handler},
    {"cancel_from_many_threads", cancel_from_many_threads},
    {"late_tick_does_not_shorten", late_tick_does_not_shorten},
};

void check(const pawl_test::test_vector& story) {
    const auto slots = story.config.at("slots").to_number<std::size_t>();
    if (const auto at = told_here.find(story.name); at != told_here.end()) {
        at->second(slots);
        return;
    }

    storyteller teller(slots);
    pawl_test::replay(
        story, [&](const object& step) { return teller.run(step); },
        [&](std::size_t step, const std::string& returned, const std::string& expected) {
            BOOST_ERROR("step " << step << " returned " << returned << " instead of " << expected);
        });
    BOOST_TEST(!story.expected.empty());
}

} // namespace

BOOST_DATA_TEST_CASE(the_story_ends_as_told,
                     boost::unit_test::data::make(pawl_test::load_vectors("timeout_ring.json")),
                     story) {
    check(story);
}

BOOST_AUTO_TEST_CASE(what_is_told_here_is_a_story) {
    std::size_t known = 0;
    for (const pawl_test::test_vector& story : pawl_test::load_vectors("timeout_ring.json"))
        known += told_here.count(story.name);
    BOOST_TEST(known == told_here.size());
}
