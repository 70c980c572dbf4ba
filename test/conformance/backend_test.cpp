// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Tests the promises of backend.hpp on every backend, on the hierarchical wheel in several
// geometries, on the oracle itself, and on rings as far as they apply. doc/testing.md lists the
// cases that comments cite by number.
//
// Rings hand out nodes within a window, one ring after the other, each in the order of
// registrations, and file overdue nodes for one tick. They have no never(), rewind(), refile() or
// any(). Their detached nodes may expire before they are popped, and next_wake() may come only to
// close a period. A test that needs the exact tick, the order, or one of these functions runs on
// `candidates`, the others on `every` structure.

#include <pawl/time/binary_wheel.hpp>
#include <pawl/time/hierarchical_wheel.hpp>

#define BOOST_TEST_MODULE backend
#include "../support/invariants.hpp"
#include "../support/ordered_map_backend.hpp"
#include "../support/reserve.hpp"
#include "../support/rings_backend.hpp"
#include "../support/seed.hpp"
#include "../support/typed_cases.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

using pawl::time::binary_wheel;
using pawl::time::expire_result;
using pawl::time::geometry;
using pawl::time::hierarchical_wheel;
using pawl::time::tick;
using pawl::time::timer_node;
using pawl_test::ordered_map_backend;
using pawl_test::rings_backend;

namespace {

template <int... Bits>
struct wheel_of {
    using backend = hierarchical_wheel;
    static geometry shape() { return geometry{Bits...}; }
};
struct binary {
    using backend = binary_wheel;
    static geometry shape() { return {}; }
};
struct oracle {
    using backend = ordered_map_backend;
    static geometry shape() { return {}; }
};
template <unsigned RatioBits, unsigned Marks>
struct rings_of {
    using backend = rings_backend;
    static rings_backend::shape shape() { return {RatioBits, Marks}; }
};
using candidates = pawl_test::types<oracle, binary, wheel_of<6>, wheel_of<1>, wheel_of<12>,
                                    wheel_of<8>, wheel_of<2, 5, 3>, wheel_of<11, 10, 10, 10>>;
// Two marks: long periods, in which a refiled node keeps its place. Many marks and few delays:
// short periods, with nodes that start at all times before they are filed.
using rings = pawl_test::types<rings_of<1, 2>, rings_of<4, 1024>>;
using every = decltype(candidates{} + rings{});

/// Hands out each node in its exact tick, in the order of due ticks. The others are rings.
template <class Backend>
constexpr bool exact = !std::is_same_v<Backend, rings_backend>;

/// The last tick in which a node that is filed at the position may be handed out.
template <class Backend>
std::uint64_t latest_for(const Backend& b, std::uint64_t due) {
    if constexpr (exact<Backend>)
        return std::max(due, b.now().count());
    else
        return b.latest(tick{due}).count();
}

/// Of the nodes that a late driver finds, those with lower ranks come first.
template <class Backend>
std::uint64_t rank(const timer_node& node) {
    return exact<Backend> ? node.due.count() : node.slot();
}

using indices = std::vector<std::size_t>;

// Plain functions, since thousands of instantiations of BOOST_TEST take minutes to compile. And not
// std::source_location, which clang 14 does not have.
void check(bool holds, int line = __builtin_LINE()) {
    BOOST_REQUIRE_MESSAGE(holds, "line " << line);
}

// For the same reason the callers make no vector.
void same(const indices& emitted, std::initializer_list<std::size_t> expected,
          int line = __builtin_LINE()) {
    if (!std::ranges::equal(emitted, expected))
        BOOST_TEST_MESSAGE("line " << line);
    BOOST_REQUIRE_EQUAL_COLLECTIONS(emitted.begin(), emitted.end(), expected.begin(),
                                    expected.end());
}

/// The calls that a backend got for a node.
struct promise {
    std::uint64_t due = 0;
    std::uint64_t latest = 0; ///< handed out by then if the driver obeys next_wake()
    bool filed = false;
};

template <class Backend>
struct bench_on {
    template <class Shape>
    bench_on(const Shape& shape, std::size_t count, tick start)
        : nodes(count), promised(count), backend(shape, start) {
        pawl_test::reserve(backend, count);
    }

    /// One call with room for `limit`.
    bool expire(std::uint64_t now, std::size_t limit) {
        std::vector<timer_node*> out(limit);
        const expire_result result = backend.expire(tick{now}, out);
        for (std::size_t i = 0; i != result.emitted; ++i) {
            emitted.push_back(let_go(*out[i]));
            check(out[i]->due.count() <= now);
        }
        pawl_test::check_invariant(backend);
        // A node may move from level to level before it is handed out, but not forever.
        fruitless = result.emitted == 0 && result.more ? fruitless + 1 : 0;
        check(fruitless < 1000);
        return result.more;
    }

    /// Expires everything that is due; returns the indices.
    const indices& due(std::uint64_t now, std::size_t limit = 64) {
        emitted.clear();
        while (expire(now, limit)) {
        }
        return emitted;
    }

    void insert(std::size_t node, std::uint64_t due) {
        promised[node] = {due, latest_for(backend, due), true};
        backend.insert(nodes[node], tick{due});
    }
    void rearm(std::size_t node, std::uint64_t due) {
        promised[node] = {due, latest_for(backend, due), true};
        backend.rearm(nodes[node], tick{due});
    }
    void detach_all(typename Backend::detached& set) {
        pawl_test::reserve_to_detach(backend, nodes.size());
        backend.detach_all(set);
    }
    void erase(std::size_t node) {
        promised[node].filed = false;
        backend.erase(nodes[node]);
        check(!nodes[node].filed());
    }
    void move(std::size_t from, std::size_t to) {
        promised[to] = std::exchange(promised[from], {});
        backend.move_node(nodes[from], nodes[to]);
    }

    /// The backend has released a node, once; returns its index.
    std::size_t let_go(const timer_node& node) {
        const auto i = static_cast<std::size_t>(&node - nodes.data());
        check(i < nodes.size() && std::exchange(promised[i].filed, false));
        check(!node.filed());
        check(node.due.count() == promised[i].due);
        return i;
    }

    std::uint64_t latest(std::size_t node) const { return promised[node].latest; }
    /// The maximum of all.
    std::uint64_t latest() const {
        std::uint64_t last = 0;
        for (const promise& p : promised)
            last = std::max(last, p.latest);
        return last;
    }
    std::uint64_t rank_of(std::size_t node) const { return rank<Backend>(nodes[node]); }

    std::vector<timer_node> nodes;
    std::vector<promise> promised;
    Backend backend;
    indices emitted;
    std::size_t fruitless = 0; ///< successive calls that found nothing and asked for another
};

/// Its behaviour depends on the backend only, so it is compiled once for each backend.
template <class Candidate>
struct bench : bench_on<typename Candidate::backend> {
    explicit bench(std::size_t count = 0, tick start = tick{})
        : bench_on<typename Candidate::backend>(Candidate::shape(), count, start) {}
};

} // namespace

// case 3
PAWL_TYPED_CASE(timers_one_tick_apart_come_one_by_one, C, candidates) {
    bench<C> b(1024);
    for (std::size_t i = 0; i != 1024; ++i)
        b.insert(i, i + 1);

    for (std::size_t i = 0; i != 1024; ++i)
        same(b.due(i + 1), {i});
    check(b.backend.empty());
}

// cases 4, 18
PAWL_TYPED_CASE(a_timer_is_not_early_and_the_same_tick_can_be_asked_twice, C, every) {
    bench<C> b(1);
    b.insert(0, 193);

    same(b.due(62), {});
    same(b.due(192), {});
    same(b.due(192), {});
    same(b.due(b.latest(0)), {0});
    same(b.due(b.latest(0)), {});
}

// cases 5, 20, 21
PAWL_TYPED_CASE(a_slot_serves_every_round_of_the_wheel, C, every) {
    bench<C> b(3);
    for (std::uint64_t round = 0; round != 40; ++round) {
        const std::uint64_t base = round * 64;
        b.insert(0, base + 10);
        b.insert(1, base + 10);
        b.insert(2, base + 74); // same slot, next round
        same(b.due(base + 9), {});
        same(b.due(b.latest(1)), {0, 1});
        same(b.due(base + 63), {});
        b.erase(2);
    }
}

// cases 6, 7
PAWL_TYPED_CASE(no_tick_is_too_far, C, candidates) {
    bench<C> b(66);
    for (std::size_t bit = 0; bit != 64; ++bit)
        b.insert(bit, std::uint64_t{1} << bit);
    b.insert(64, tick::never().count() - 1);
    b.insert(65, tick::never().count());

    for (std::size_t bit = 0; bit != 64; ++bit) {
        same(b.due((std::uint64_t{1} << bit) - 1), {});
        same(b.due(std::uint64_t{1} << bit), {bit});
    }
    same(b.due(tick::never().count() - 2), {});
    same(b.due(tick::never().count()), {64});
    check(b.nodes[65].filed());
    check(b.backend.next_wake() == tick::never());
    b.erase(65);
}

// case 9
PAWL_TYPED_CASE(a_due_timer_in_the_first_slot_of_a_level_can_be_erased, C, every) {
    for (const std::uint64_t start : {64U, 4096U, 262144U}) {
        bench<C> b(2);
        b.insert(0, start);
        b.insert(1, start);
        same(b.due(start - 1), {});
        b.erase(0);
        same(b.due(b.latest(1)), {1});
        b.insert(0, b.backend.now().count());
        b.erase(0);
        same(b.due(b.latest(0)), {});
    }
}

// cases 10, 39
PAWL_TYPED_CASE(a_timer_can_be_rearmed_after_its_slot_has_begun, C, every) {
    bench<C> b(3);
    b.insert(0, 100);
    b.insert(1, 100);
    b.insert(2, 100);
    same(b.due(80), {});

    b.rearm(0, 90);
    b.rearm(1, 5000);
    b.rearm(2, 3); // in the past: at the next expire

    same(b.due(b.latest(2)), {2});
    same(b.due(89), {});
    same(b.due(b.latest(0)), {0});
    same(b.due(4999), {});
    same(b.due(b.latest(1)), {1});
}

// case 11
PAWL_TYPED_CASE(minutes_in_milliseconds_are_met, C, every) {
    bench<C> b(4);
    b.insert(0, 150'000);
    b.insert(1, 500);
    b.insert(2, 65'536 + 70'000);
    b.insert(3, 86'400'000);

    std::size_t met = 0;
    std::uint64_t before = 0;
    while (before < b.latest()) {
        const std::uint64_t now = before + (before < 200'000 ? 100 : 100'000);
        for (const std::size_t i : b.due(now)) {
            check(before < b.latest(i)); // there was no other tick
            ++met;
        }
        before = now;
    }

    check(met == 4U);
}

// case 13
PAWL_TYPED_CASE(a_timer_is_filed_anew_from_every_position, C, every) {
    bench<C> b(2);
    std::uint64_t now = 0;
    for (std::uint64_t round = 0; round != 300; ++round) {
        b.insert(0, now + 4);
        b.insert(1, now + 260);
        b.rearm(1, now + 257);
        same(b.due(now + 3), {});
        same(b.due(b.latest(0)), {0});
        same(b.due(now + 256), {});
        same(b.due(b.latest(1)), {1});
        now = b.latest(1);
    }
}

// case 14
PAWL_TYPED_CASE(a_random_delay_is_met, C, every) {
    std::mt19937_64 random(pawl_test::seed());
    bench<C> b(1);
    for (int i = 0; i != 10'000; ++i) {
        const std::uint64_t now = b.backend.now().count();
        const std::uint64_t delay = 1 + random() % (std::uint64_t{1} << (random() % 20));
        b.insert(0, now + delay);
        same(b.due(now + delay - 1), {});
        same(b.due(b.latest(0)), {0});
    }
}

// In rings, the last timer that starts in a period delays the first one.
PAWL_TYPED_CASE(a_timer_is_not_kept_by_those_that_start_after_it, C, every) {
    bench<C> b(256);
    std::size_t met = 0;
    for (std::uint64_t now = 0; now != 1024; ++now) {
        for (const std::size_t i : b.due(now)) {
            check(now <= b.latest(i));
            ++met;
        }
        if (now < 256)
            b.insert(now, now + 256);
    }
    check(met == 256U);
}

// case 15
PAWL_TYPED_CASE(next_wake_is_exact_for_one_timer_and_never_for_none, C, candidates) {
    bench<C> b(1);
    check(b.backend.next_wake() == tick::never());
    b.insert(0, 10);
    check(b.backend.next_wake() == tick{10});
    b.erase(0);
    check(b.backend.next_wake() == tick::never());
}

PAWL_TYPED_CASE(next_wake_is_never_late_and_leads_to_every_timer, C, every) {
    bench<C> b(4);
    check(b.backend.next_wake() == tick::never());
    b.insert(3, 100);
    b.erase(3);
    b.insert(0, 7);
    b.insert(1, 700);
    b.insert(2, 7'000'000);
    indices met;
    int wakes = 0;
    while (b.backend.next_wake() != tick::never()) {
        const std::uint64_t now = b.backend.next_wake().count();
        for (const std::size_t i : b.due(now)) {
            check(now <= b.latest(i));
            met.push_back(i);
        }
        check(++wakes <= 6);
    }

    same(met, {0, 1, 2});
}

PAWL_TYPED_CASE(next_wake_is_now_while_anything_overdue_is_filed, C, candidates) {
    bench<C> b(1);
    same(b.due(500), {});
    b.insert(0, 30);

    check(b.backend.next_wake() == tick{500});
    same(b.due(500), {0});
}

// case 16
PAWL_TYPED_CASE(a_limited_expire_resumes_keeps_order_and_takes_new_timers, C, candidates) {
    bench<C> b(1024);
    for (std::size_t i = 0; i != 512; ++i)
        b.insert(i, 1 + i / 100);
    std::size_t next = 512;

    while (b.expire(2000, 10)) {
        if (next != 612) {
            b.insert(next, 1000); // later than all the others
            ++next;
        }
    }

    check(b.backend.empty());
    check(b.emitted.size() == next);
    for (std::size_t i = 0; i != next; ++i)
        check(b.emitted[i] == i);
}

PAWL_TYPED_CASE(while_expire_is_incomplete_the_clock_goes_on_and_timers_start, C, every) {
    bench<C> b(1024);
    for (std::size_t i = 0; i != 512; ++i)
        b.insert(i, 1 + i / 100);
    std::size_t next = 512;

    std::uint64_t now = 2000;
    for (; b.expire(now, 10); now = std::max(now, b.latest(next - 1))) {
        if (next != 612) {
            b.insert(next, 1000); // due at once
            ++next;
        }
    }

    check(b.backend.empty());
    check(b.emitted.size() == next);
}

PAWL_TYPED_CASE(with_room_for_one_everything_comes_in_order, C, every) {
    bench<C> b(300);
    for (std::size_t i = 0; i != 300; ++i)
        b.insert(i, 1 + (i * 7) % 30 * 11);

    b.due(std::max<std::uint64_t>(1000, b.latest()), 1);

    check(b.emitted.size() == 300U);
    for (std::size_t i = 1; i != 300; ++i) {
        const auto before = std::pair(b.rank_of(b.emitted[i - 1]), b.emitted[i - 1]);
        check(before < std::pair(b.rank_of(b.emitted[i]), b.emitted[i]));
    }
}

PAWL_TYPED_CASE(without_room_nothing_happens, C, every) {
    bench<C> b(1);
    b.insert(0, 5);

    check(b.expire(b.latest(0), 0));
    check(b.nodes[0].filed());
    same(b.due(b.latest(0)), {0});
}

PAWL_TYPED_CASE(while_expire_is_incomplete_every_node_is_found, C, every) {
    bench<C> b(400);
    for (std::size_t i = 0; i != 200; ++i)
        b.insert(i, 5000 + i % 3);
    const std::uint64_t now = std::max<std::uint64_t>(6000, b.latest());
    std::size_t erased = 0;
    std::size_t later = 0;

    for (std::size_t i = 0; b.expire(now, 3); i = (i + 17) % 200) {
        if (!b.nodes[i].filed())
            continue;
        if (i % 3 == 0) {
            b.erase(i);
            ++erased;
        } else if (i % 3 == 1) {
            b.rearm(i, now + 1000);
        } else {
            b.move(i, i + 200);
        }
        pawl_test::check_invariant(b.backend);
    }
    later = b.backend.size();

    check(later > 0U);
    check(erased > 0U);
    check(b.emitted.size() + erased + later == 200U);
    same(b.due(now + 999), {});
    check(b.due(b.latest()).size() == later);
}

// case 19
PAWL_TYPED_CASE(the_position_need_not_start_at_zero, C, candidates) {
    bench<C> b(2, tick{1'234'567'890'123});
    check(b.backend.now() == tick{1'234'567'890'123});
    b.insert(0, 1'234'567'890'124);
    b.insert(1, 5);

    same(b.due(1'234'567'890'123), {1});
    same(b.due(1'234'567'890'124), {0});
}

// cases 21, 61
PAWL_TYPED_CASE(equal_ticks_keep_start_order_across_levels, C, candidates) {
    bench<C> b(100);
    const std::uint64_t due = 5000;
    std::size_t next = 0;
    // Filed from ever shorter distances, so that each time another level is chosen.
    for (const std::uint64_t now : {0U, 904U, 4096U, 4903U, 4992U, 4999U, 5000U}) {
        same(b.due(now - (now == due ? 1 : 0)), {});
        for (int i = 0; i != 10; ++i)
            b.insert(next++, due);
    }

    b.due(due, 7);

    check(b.emitted.size() == next);
    for (std::size_t i = 0; i != next; ++i)
        check(b.emitted[i] == i);
}

PAWL_TYPED_CASE(rearming_is_a_new_start, C, candidates) {
    bench<C> b(3);
    b.insert(0, 50);
    b.insert(1, 100);
    b.insert(2, 100);

    b.rearm(0, 100);
    b.rearm(1, 100);

    same(b.due(100), {2, 0, 1});
}

// case 23
PAWL_TYPED_CASE(everything_can_be_detached_at_once, C, candidates) {
    bench<C> b(400);
    for (std::size_t i = 0; i != 400; ++i)
        b.insert(i, i == 7 ? tick::never().count() : i * i * i);
    (void)b.expire(50'000'000, 100); // leave it incomplete
    const std::size_t before = b.backend.size();

    typename C::backend::detached set(b.backend);
    b.detach_all(set);

    check(b.backend.empty());
    check(b.backend.next_wake() == tick::never());
    same(b.due(60'000'000), {});
    std::size_t popped = 0;
    while (timer_node* node = set.pop()) {
        check(!node->filed());
        ++popped;
    }
    check(popped == before);
}

PAWL_TYPED_CASE(a_detached_node_is_popped_unless_it_has_gone_before, C, every) {
    bench<C> b(800);
    for (std::size_t i = 0; i != 400; ++i)
        b.insert(i, i * i * i);
    (void)b.expire(50'000'000, 100); // leave it incomplete
    const std::size_t before = b.backend.size();

    typename C::backend::detached set(b.backend);
    b.detach_all(set);

    const std::size_t emitted = b.emitted.size();
    std::size_t gone = 0;
    for (std::size_t i = 0; const timer_node* node = set.pop(); i = (i + 17) % 400) {
        b.let_go(*node);
        ++gone;
        if (b.nodes[i].filed() && i % 2 == 0) {
            b.erase(i);
            ++gone;
        } else if (b.nodes[i].filed()) {
            b.move(i, i + 400);
        }
        (void)b.expire(60'000'000, 1);
    }
    check(set.pop() == nullptr);
    const std::size_t expired = b.emitted.size() - emitted;
    check(exact<typename C::backend> ? expired == 0 : expired > 0);
    check(gone + expired == before);
    check(b.backend.empty());

    b.insert(0, 60'000'001);
    same(b.due(60'000'000), {});
    same(b.due(b.latest(0)), {0});
}

PAWL_TYPED_CASE(detached_nodes_can_be_erased_moved_and_rearmed, C, every) {
    bench<C> b(8);
    for (std::size_t i = 0; i != 4; ++i)
        b.insert(i, 1000 * i);
    typename C::backend::detached set(b.backend);
    b.detach_all(set);
    b.insert(5, 30);

    b.erase(0);
    b.move(1, 6);
    b.rearm(2, 40);
    pawl_test::check_invariant(b.backend);

    check(b.backend.size() == (exact<typename C::backend> ? 2U : 4U)); // those of the set, too
    check(set.pop() == &b.nodes[6]);
    check(set.pop() == &b.nodes[3]);
    check(set.pop() == nullptr);
    check(b.backend.size() == 2U);
    same(b.due(std::max<std::uint64_t>(100, b.latest(2))), {5, 2});
}

PAWL_TYPED_CASE(a_detached_node_that_is_filed_for_the_same_tick_anew_leaves_the_set, C, every) {
    bench<C> b(3);
    for (std::size_t i = 0; i != 3; ++i)
        b.insert(i, 1000);
    typename C::backend::detached first(b.backend);
    b.detach_all(first);
    b.rearm(1, 1000);
    typename C::backend::detached second(b.backend);
    if constexpr (!exact<typename C::backend>) { // the others have one set at a time
        b.detach_all(second);
        b.rearm(1, 1000);
    }

    std::size_t popped = 0;
    while (const timer_node* node = first.pop())
        popped += b.let_go(*node) == 1 ? 10 : 1;
    check(popped == 2U);
    check(second.pop() == nullptr);
    pawl_test::check_invariant(b.backend);
    check(b.backend.size() == 1U);
    same(b.due(b.latest(1)), {1});
}

PAWL_TYPED_CASE(after_a_rewind_nodes_keep_due_and_order, C, candidates) {
    bench<C> b(4, tick{1000});
    b.insert(0, 1500);
    b.insert(1, 1200);
    b.insert(2, 1200);
    b.insert(3, 900);
    typename C::backend::detached set(b.backend);

    b.detach_all(set);
    b.backend.rewind(tick{100});
    while (timer_node* node = set.pop())
        b.backend.refile(*node);

    check(b.backend.now() == tick{100});
    same(b.due(899), {});
    same(b.due(900), {3});
    same(b.due(1200), {1, 2});
    same(b.due(1500), {0});
}

// case 41
PAWL_TYPED_CASE(a_timer_filed_as_due_can_be_rearmed_twice, C, every) {
    bench<C> b(1);
    same(b.due(1000), {});
    b.insert(0, 1000);
    b.rearm(0, 1010);
    b.rearm(0, 1005);

    same(b.due(1004), {});
    same(b.due(b.latest(0)), {0});
}

PAWL_TYPED_CASE(time_does_not_go_back, C, every) {
    bench<C> b(1);
    same(b.due(1000), {});
    b.insert(0, 1001);

    same(b.due(10), {});
    check(b.backend.now() == tick{1000});
    same(b.due(b.latest(0)), {0});
}

PAWL_TYPED_CASE(moving_keeps_the_place_and_the_owners_bits, C, every) {
    bench<C> b(4);
    b.nodes[0].set_user(9);
    b.insert(0, 100);
    b.insert(1, 100);

    b.move(0, 2);

    check(!b.nodes[0].filed());
    check(b.nodes[0].due == tick{});
    check(b.nodes[2].user() == 9U);
    b.move(3, 0); // not filed: only copies
    same(b.due(b.latest(1)), {2, 1});
    check(b.nodes[2].user() == 9U);
}

PAWL_TYPED_CASE(any_finds_every_node_until_none_is_left, C, candidates) {
    bench<C> b(300);
    for (std::size_t i = 0; i != 300; ++i)
        b.insert(i, i == 8 ? tick::never().count() : 10 + i % 7 * 100);
    (void)b.expire(10, 5);
    (void)b.expire(10, 5);

    while (timer_node* node = b.backend.any())
        b.backend.erase(*node);

    check(b.backend.empty());
    pawl_test::check_invariant(b.backend);
}

// Our own case: the clock of a machine that was asleep.
PAWL_TYPED_CASE(a_jump_of_a_day_expires_in_order_and_in_steps, C, every) {
    std::mt19937_64 random(pawl_test::seed());
    bench<C> b(3000);
    for (std::size_t i = 0; i != 3000; ++i)
        b.insert(i, 1 + random() % 86'400'000);

    const std::uint64_t now = std::max<std::uint64_t>(86'400'000, b.latest());
    std::size_t calls = 1;
    while (b.expire(now, 256))
        ++calls;

    check(calls > 3000U / 256U); // the structure stops, and continues at the same place
    check(b.emitted.size() == 3000U);
    for (std::size_t i = 1; i != 3000; ++i)
        check(b.rank_of(b.emitted[i - 1]) <= b.rank_of(b.emitted[i]));
}

namespace {

/// Random calls on a backend. A punctual driver comes at each next_wake(), the other one at random
/// times. Ends with an empty backend.
template <class Backend>
void walk(bench_on<Backend>& b, std::uint64_t steps, bool punctual, std::mt19937_64& random) {
    const auto below = [&](std::uint64_t bound) { return random() % bound; };
    const auto some_ticks = [&] { return below(std::uint64_t{1} << below(20)); };
    std::uint64_t clock = b.backend.now().count();
    const bool in_time = punctual || exact<Backend>;
    const auto drive = [&] {
        b.due(clock, 1 + below(8));
        check(b.backend.next_wake() > tick{clock});
        for (const promise& p : b.promised)
            check(!p.filed || !in_time || p.latest > clock);
    };

    for (; steps != 0; --steps) {
        const std::size_t i = below(b.nodes.size());
        const std::size_t j = below(b.nodes.size());
        const bool filed = b.nodes[i].filed();
        const std::uint64_t dice = below(16);
        if (dice < 8) {
            // Overdue, near, far, or a delay that rings have.
            const std::uint64_t due =
                below(4) != 0 ? clock - std::min(clock, below(4) * below(50)) + some_ticks()
                              : b.backend.now().count() + (std::uint64_t{1} << below(20));
            filed ? b.rearm(i, due) : b.insert(i, due);
        } else if (dice == 8) {
            if (filed)
                b.erase(i);
        } else if (dice < 11) {
            if (!b.nodes[j].filed())
                b.move(i, j);
        } else if (dice < 13) {
            b.expire(clock, 1 + below(4));
        } else {
            const std::uint64_t end = clock + some_ticks();
            while (punctual && b.backend.next_wake() <= tick{end}) {
                clock = std::max(clock, b.backend.next_wake().count());
                drive();
            }
            clock = end;
            if (!punctual && below(4) == 0)
                drive();
        }

        std::size_t size = 0;
        const tick wake = b.backend.next_wake();
        for (const promise& p : b.promised) {
            size += p.filed ? 1U : 0U;
            check(!p.filed ||
                  (in_time ? wake <= tick{std::max(p.latest, clock)} : wake != tick::never()));
        }
        check(b.backend.size() == size && b.backend.empty() == (size == 0));
    }

    // In one visit, which is late.
    clock = std::max(clock, b.latest()) + (std::uint64_t{1} << 22);
    drive();
    check(b.backend.empty() && b.backend.next_wake() == tick::never());
}

} // namespace

PAWL_TYPED_CASE(whatever_is_called_each_timer_comes_once_and_none_is_early_or_late, C, every) {
    std::mt19937_64 random(pawl_test::seed());
    const std::uint64_t steps = pawl_test::steps(20'000);
    for (int run = 0; run != 40; ++run) {
        bench<C> b(std::size_t{1} << run % 8, tick{run / 8 % 2 == 0 ? 0 : random() >> 2});
        walk(b, steps / 40, run % 3 != 0, random);
    }
}
