// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// What backend.hpp promises, asked of every backend, of the hierarchical wheel in several
// geometries, and of the oracle itself. The numbers in the comments are those of the list of cases
// in doc/testing.md.

#include <pawl/time/binary_wheel.hpp>
#include <pawl/time/hierarchical_wheel.hpp>

#include "../support/ordered_map_backend.hpp"
#include "../support/seed.hpp"

#define BOOST_TEST_MODULE backend
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

using pawl::time::binary_wheel;
using pawl::time::expire_result;
using pawl::time::geometry;
using pawl::time::hierarchical_wheel;
using pawl::time::tick;
using pawl::time::timer_node;
using pawl_test::ordered_map_backend;

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
using candidates = boost::mpl::list<oracle, binary, wheel_of<6>, wheel_of<1>, wheel_of<12>,
                                    wheel_of<8>, wheel_of<2, 5, 3>, wheel_of<11, 10, 10, 10>>;

using indices = std::vector<std::size_t>;

// Plain functions, since thousands of instantiations of BOOST_TEST take minutes to compile. And not
// std::source_location, which clang 14 does not have.
void check(bool holds, int line = __builtin_LINE()) {
    BOOST_REQUIRE_MESSAGE(holds, "line " << line);
}

void same(const indices& emitted, const indices& expected, int line = __builtin_LINE()) {
    if (emitted != expected)
        BOOST_TEST_MESSAGE("line " << line);
    BOOST_REQUIRE_EQUAL_COLLECTIONS(emitted.begin(), emitted.end(), expected.begin(),
                                    expected.end());
}

template <class Candidate>
struct bench {
    explicit bench(std::size_t count = 0, tick start = tick{})
        : nodes(count), backend(Candidate::shape(), start) {}

    /// One call with room for `limit`.
    bool expire(std::uint64_t now, std::size_t limit) {
        std::vector<timer_node*> out(limit);
        const expire_result result = backend.expire(tick{now}, out);
        for (std::size_t i = 0; i != result.emitted; ++i) {
            check(!out[i]->filed());
            check(out[i]->due.count() <= now);
            emitted.push_back(static_cast<std::size_t>(out[i] - nodes.data()));
        }
        backend.invariant();
        return result.more;
    }

    /// Everything that is due; answers the indices.
    std::vector<std::size_t> due(std::uint64_t now, std::size_t limit = 64) {
        emitted.clear();
        while (expire(now, limit)) {
        }
        return emitted;
    }

    void insert(std::size_t node, std::uint64_t due) { backend.insert(nodes[node], tick{due}); }
    void rearm(std::size_t node, std::uint64_t due) { backend.rearm(nodes[node], tick{due}); }

    std::vector<timer_node> nodes;
    typename Candidate::backend backend;
    std::vector<std::size_t> emitted;
};

} // namespace

// 3
BOOST_AUTO_TEST_CASE_TEMPLATE(timers_one_tick_apart_come_one_by_one, C, candidates) {
    bench<C> b(1024);
    for (std::size_t i = 0; i != 1024; ++i)
        b.insert(i, i + 1);

    for (std::size_t i = 0; i != 1024; ++i)
        same(b.due(i + 1), {i});
    check(b.backend.empty());
}

// 4, 18
BOOST_AUTO_TEST_CASE_TEMPLATE(a_timer_is_not_early_and_the_same_tick_can_be_asked_twice, C,
                              candidates) {
    bench<C> b(1);
    b.insert(0, 193);

    same(b.due(62), {});
    same(b.due(192), {});
    same(b.due(192), {});
    same(b.due(193), {0});
    same(b.due(193), {});
}

// 5, 20, 21
BOOST_AUTO_TEST_CASE_TEMPLATE(a_slot_serves_every_round_of_the_wheel, C, candidates) {
    bench<C> b(3);
    for (std::uint64_t round = 0; round != 40; ++round) {
        const std::uint64_t base = round * 64;
        b.insert(0, base + 10);
        b.insert(1, base + 10);
        b.insert(2, base + 74); // same slot, next round
        same(b.due(base + 9), {});
        same(b.due(base + 10), {0, 1});
        same(b.due(base + 63), {});
        b.backend.erase(b.nodes[2]);
    }
}

// 6, 7
BOOST_AUTO_TEST_CASE_TEMPLATE(no_tick_is_too_far, C, candidates) {
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
    b.backend.erase(b.nodes[65]);
}

// 9
BOOST_AUTO_TEST_CASE_TEMPLATE(a_due_timer_in_the_first_slot_of_a_level_can_be_erased, C,
                              candidates) {
    for (const std::uint64_t start : {64U, 4096U, 262144U}) {
        bench<C> b(2);
        b.insert(0, start);
        b.insert(1, start);
        same(b.due(start - 1), {});
        b.backend.erase(b.nodes[0]);
        same(b.due(start), {1});
        b.insert(0, start); // where the position is
        b.backend.erase(b.nodes[0]);
        same(b.due(start), {});
    }
}

// 10, 39
BOOST_AUTO_TEST_CASE_TEMPLATE(a_timer_can_be_rearmed_after_its_slot_has_begun, C, candidates) {
    bench<C> b(3);
    b.insert(0, 100);
    b.insert(1, 100);
    b.insert(2, 100);
    same(b.due(80), {});

    b.rearm(0, 90);
    b.rearm(1, 5000);
    b.rearm(2, 3); // in the past: at the next expire

    same(b.due(80), {2});
    same(b.due(89), {});
    same(b.due(90), {0});
    same(b.due(4999), {});
    same(b.due(5000), {1});
}

// 11
BOOST_AUTO_TEST_CASE_TEMPLATE(minutes_in_milliseconds_are_exact, C, candidates) {
    bench<C> b(4);
    b.insert(0, 150'000);
    b.insert(1, 500);
    b.insert(2, 65'536 + 70'000);
    b.insert(3, 86'400'000);

    std::map<std::size_t, std::uint64_t> when;
    for (std::uint64_t now = 0; now <= 86'400'000; now += now < 200'000 ? 100 : 100'000) {
        for (const std::size_t i : b.due(now))
            when[i] = now;
    }

    check(when[0] == 150'000U);
    check(when[1] == 500U);
    check(when[2] == 135'600U);
    check(when[3] == 86'400'000U);
}

// 13
BOOST_AUTO_TEST_CASE_TEMPLATE(a_timer_is_filed_anew_from_every_position, C, candidates) {
    bench<C> b(2);
    std::uint64_t now = 0;
    for (std::uint64_t round = 0; round != 300; ++round) {
        b.insert(0, now + 4);
        b.insert(1, now + 260);
        b.rearm(1, now + 257);
        same(b.due(now + 3), {});
        same(b.due(now + 4), {0});
        same(b.due(now + 256), {});
        same(b.due(now + 257), {1});
        now += 257;
    }
}

// 14
BOOST_AUTO_TEST_CASE_TEMPLATE(a_random_delay_is_met_exactly, C, candidates) {
    std::mt19937_64 random(pawl_test::seed());
    bench<C> b(1);
    for (int i = 0; i != 10'000; ++i) {
        const std::uint64_t now = b.backend.now().count();
        const std::uint64_t delay = 1 + random() % (std::uint64_t{1} << (random() % 20));
        b.insert(0, now + delay);
        same(b.due(now + delay - 1), {});
        same(b.due(now + delay), {0});
    }
}

// 15
BOOST_AUTO_TEST_CASE_TEMPLATE(next_wake_is_never_late_and_leads_to_every_timer, C, candidates) {
    bench<C> b(3);
    check(b.backend.next_wake() == tick::never());
    b.insert(0, 10);
    check(b.backend.next_wake() == tick{10});
    b.backend.erase(b.nodes[0]);
    check(b.backend.next_wake() == tick::never());

    b.insert(0, 7);
    b.insert(1, 700);
    b.insert(2, 7'000'000);
    std::map<std::size_t, std::uint64_t> when;
    int wakes = 0;
    while (b.backend.next_wake() != tick::never()) {
        const std::uint64_t now = b.backend.next_wake().count();
        for (const std::size_t i : b.due(now))
            when[i] = now;
        ++wakes;
    }

    check(when[0] == 7U);
    check(when[1] == 700U);
    check(when[2] == 7'000'000U);
    check(wakes <= 6);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(next_wake_is_now_while_anything_overdue_is_filed, C, candidates) {
    bench<C> b(1);
    same(b.due(500), {});
    b.insert(0, 30);

    check(b.backend.next_wake() == tick{500});
    same(b.due(500), {0});
}

// 16
BOOST_AUTO_TEST_CASE_TEMPLATE(a_limited_expire_resumes_keeps_order_and_takes_new_timers, C,
                              candidates) {
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

BOOST_AUTO_TEST_CASE_TEMPLATE(with_room_for_one_everything_comes_in_order, C, candidates) {
    bench<C> b(300);
    for (std::size_t i = 0; i != 300; ++i)
        b.insert(i, 1 + (i * 7) % 30 * 11);

    b.due(1000, 1);

    check(b.emitted.size() == 300U);
    for (std::size_t i = 1; i != 300; ++i) {
        const auto before = std::pair(b.nodes[b.emitted[i - 1]].due, b.emitted[i - 1]);
        check(before < std::pair(b.nodes[b.emitted[i]].due, b.emitted[i]));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(without_room_nothing_happens, C, candidates) {
    bench<C> b(1);
    b.insert(0, 5);

    check(b.expire(5, 0));
    check(b.nodes[0].filed());
    same(b.due(5), {0});
}

BOOST_AUTO_TEST_CASE_TEMPLATE(while_expire_is_incomplete_every_node_is_found, C, candidates) {
    bench<C> b(400);
    for (std::size_t i = 0; i != 200; ++i)
        b.insert(i, 5000 + i % 3);
    std::size_t erased = 0;
    std::size_t later = 0;

    for (std::size_t i = 0; b.expire(6000, 3); i = (i + 17) % 200) {
        if (!b.nodes[i].filed())
            continue;
        if (i % 3 == 0) {
            b.backend.erase(b.nodes[i]);
            ++erased;
        } else if (i % 3 == 1) {
            b.rearm(i, 7000);
        } else {
            b.backend.move_node(b.nodes[i], b.nodes[i + 200]);
        }
        b.backend.invariant();
    }
    later = b.backend.size();

    check(later > 0U);
    check(erased > 0U);
    check(b.emitted.size() + erased + later == 200U);
    same(b.due(6999), {});
    check(b.due(7000).size() == later);
}

// 19
BOOST_AUTO_TEST_CASE_TEMPLATE(the_position_need_not_start_at_zero, C, candidates) {
    bench<C> b(2, tick{1'234'567'890'123});
    check(b.backend.now() == tick{1'234'567'890'123});
    b.insert(0, 1'234'567'890'124);
    b.insert(1, 5);

    same(b.due(1'234'567'890'123), {1});
    same(b.due(1'234'567'890'124), {0});
}

// 21, 61
BOOST_AUTO_TEST_CASE_TEMPLATE(equal_ticks_keep_start_order_across_levels, C, candidates) {
    bench<C> b(100);
    const std::uint64_t due = 5000;
    std::size_t next = 0;
    // Filed from ever nearer, so that each time another level is chosen.
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

BOOST_AUTO_TEST_CASE_TEMPLATE(rearming_is_a_new_start, C, candidates) {
    bench<C> b(3);
    b.insert(0, 50);
    b.insert(1, 100);
    b.insert(2, 100);

    b.rearm(0, 100);
    b.rearm(1, 100);

    same(b.due(100), {2, 0, 1});
}

// 23
BOOST_AUTO_TEST_CASE_TEMPLATE(everything_can_be_detached_at_once, C, candidates) {
    bench<C> b(400);
    for (std::size_t i = 0; i != 400; ++i)
        b.insert(i, i == 7 ? tick::never().count() : i * i * i);
    (void)b.expire(50'000'000, 100); // leave it incomplete
    const std::size_t before = b.backend.size();

    typename C::backend::detached set(b.backend);
    b.backend.detach_all(set);

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

BOOST_AUTO_TEST_CASE_TEMPLATE(detached_nodes_can_be_erased_moved_and_rearmed, C, candidates) {
    bench<C> b(8);
    for (std::size_t i = 0; i != 4; ++i)
        b.insert(i, 1000 * i);
    typename C::backend::detached set(b.backend);
    b.backend.detach_all(set);
    b.insert(5, 30);

    b.backend.erase(b.nodes[0]);
    b.backend.move_node(b.nodes[1], b.nodes[6]);
    b.rearm(2, 40);
    b.backend.invariant();

    check(b.backend.size() == 2U);
    check(set.pop() == &b.nodes[6]);
    check(set.pop() == &b.nodes[3]);
    check(set.pop() == nullptr);
    same(b.due(100), {5, 2});
}

BOOST_AUTO_TEST_CASE_TEMPLATE(after_a_rewind_nodes_keep_due_and_order, C, candidates) {
    bench<C> b(4, tick{1000});
    b.insert(0, 1500);
    b.insert(1, 1200);
    b.insert(2, 1200);
    b.insert(3, 900);
    typename C::backend::detached set(b.backend);

    b.backend.detach_all(set);
    b.backend.rewind(tick{100});
    while (timer_node* node = set.pop())
        b.backend.refile(*node);

    check(b.backend.now() == tick{100});
    same(b.due(899), {});
    same(b.due(900), {3});
    same(b.due(1200), {1, 2});
    same(b.due(1500), {0});
}

// 41
BOOST_AUTO_TEST_CASE_TEMPLATE(a_timer_filed_as_due_can_be_rearmed_twice, C, candidates) {
    bench<C> b(1);
    same(b.due(1000), {});
    b.insert(0, 1000);
    b.rearm(0, 1010);
    b.rearm(0, 1005);

    same(b.due(1004), {});
    same(b.due(1005), {0});
}

BOOST_AUTO_TEST_CASE_TEMPLATE(time_does_not_go_back, C, candidates) {
    bench<C> b(1);
    same(b.due(1000), {});
    b.insert(0, 1001);

    same(b.due(10), {});
    check(b.backend.now() == tick{1000});
    same(b.due(1001), {0});
}

BOOST_AUTO_TEST_CASE_TEMPLATE(moving_keeps_the_place_and_the_owners_bits, C, candidates) {
    bench<C> b(4);
    b.nodes[0].set_user(9);
    b.insert(0, 100);
    b.insert(1, 100);

    b.backend.move_node(b.nodes[0], b.nodes[2]);

    check(!b.nodes[0].filed());
    check(b.nodes[0].due == tick{});
    check(b.nodes[2].user() == 9U);
    b.backend.move_node(b.nodes[3], b.nodes[0]); // not filed: nothing to do but to copy
    same(b.due(100), {2, 1});
    check(b.nodes[2].user() == 9U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(any_finds_every_node_until_none_is_left, C, candidates) {
    bench<C> b(300);
    for (std::size_t i = 0; i != 300; ++i)
        b.insert(i, i == 8 ? tick::never().count() : 10 + i % 7 * 100);
    (void)b.expire(10, 5);
    (void)b.expire(10, 5);

    while (timer_node* node = b.backend.any())
        b.backend.erase(*node);

    check(b.backend.empty());
    b.backend.invariant();
}

// Ours: the clock of a machine that was asleep.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_jump_of_a_day_expires_in_order_and_in_steps, C, candidates) {
    std::mt19937_64 random(pawl_test::seed());
    bench<C> b(3000);
    for (std::size_t i = 0; i != 3000; ++i)
        b.insert(i, 1 + random() % 86'400'000);

    std::size_t calls = 1;
    while (b.expire(86'400'000, 256))
        ++calls;

    check(calls > 3000U / 256U); // the structure stops, and goes on where it has stopped
    check(b.emitted.size() == 3000U);
    for (std::size_t i = 1; i != 3000; ++i)
        check(b.nodes[b.emitted[i - 1]].due <= b.nodes[b.emitted[i]].due);
}
