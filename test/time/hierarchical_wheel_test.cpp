// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The promises that only this backend makes, and defects that only this one could have.
// test/conformance/backend_test.cpp has the promises of every backend.

#include <pawl/time/hierarchical_wheel.hpp>

#define BOOST_TEST_MODULE hierarchical_wheel
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "../support/invariants.hpp"
#include "../support/seed.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace pawl::time {

/// Accesses members that tests cannot reach from outside.
struct hierarchical_wheel_probe {
    static void set_next_sequence(hierarchical_wheel& wheel, std::uint64_t sequence) {
        wheel.starts_.next = sequence;
    }
    static std::uint32_t epochs(const hierarchical_wheel& wheel) { return wheel.sets_.most; }
    static std::uint32_t used(const hierarchical_wheel& wheel) { return wheel.sets_.used(); }
    static bool staging(const hierarchical_wheel& wheel) { return wheel.stage_.is_open(); }
    static std::uint32_t lists(const hierarchical_wheel& wheel) { return wheel.pool_.size(); }
    static std::uint32_t slots(const hierarchical_wheel& wheel) { return wheel.sets_.slots - 1; }
};

} // namespace pawl::time

using pawl::time::expire_result;
using pawl::time::geometry;
using pawl::time::hierarchical_wheel;
using pawl::time::hierarchical_wheel_probe;
using pawl::time::tick;
using pawl::time::timer_node;

static_assert(pawl::time::rewindable_backend<hierarchical_wheel>);
static_assert(pawl::time::reserving_backend<hierarchical_wheel>);
static_assert(!std::is_move_constructible_v<hierarchical_wheel>);

namespace {

/// Nodes that leave the wheel before they are destroyed.
struct fixture {
    fixture() { wheel.reserve_to_detach(nodes.size()); }

    std::vector<timer_node> nodes = std::vector<timer_node>(2000);
    hierarchical_wheel wheel;

    std::size_t index(const timer_node* node) const {
        return static_cast<std::size_t>(node - nodes.data());
    }

    /// Calls expire(now) with room for `limit` until nothing is left; returns the indices.
    std::vector<std::size_t> expire_all(tick now, std::size_t limit) {
        std::vector<timer_node*> out(limit);
        std::vector<std::size_t> indices;
        for (bool more = true; more;) {
            const expire_result result = wheel.expire(now, out);
            more = result.more;
            for (std::size_t i = 0; i != result.emitted; ++i)
                indices.push_back(index(out[i]));
            pawl_test::check_invariant(wheel);
        }
        return indices;
    }
};

std::vector<std::size_t> ascending(std::size_t count) {
    std::vector<std::size_t> indices(count);
    for (std::size_t i = 0; i != count; ++i)
        indices[i] = i;
    return indices;
}

} // namespace

BOOST_FIXTURE_TEST_CASE(rearming_to_later_writes_only_the_node, fixture) {
    for (std::size_t i = 0; i != 100; ++i)
        wheel.insert(nodes[i], tick{70});
    std::vector<timer_node> before = nodes;

    wheel.rearm(nodes[50], tick{1'000'000});

    BOOST_TEST((nodes[50].due == tick{1'000'000}));
    BOOST_TEST((nodes[50].order() == 100U));
    BOOST_TEST(nodes[50].link == before[50].link);
    BOOST_TEST(nodes[50].next == before[50].next);
    before[50] = nodes[50];
    BOOST_TEST(std::memcmp(before.data(), nodes.data(), nodes.size() * sizeof(timer_node)) == 0);
    pawl_test::check_invariant(wheel);
}

BOOST_FIXTURE_TEST_CASE(rearming_to_earlier_stays_within_a_slot_and_relinks_before_it, fixture) {
    wheel.insert(nodes[0], tick{100}); // level 1, slot 1: [64, 128)
    timer_node** const link = nodes[0].link;

    wheel.rearm(nodes[0], tick{64});
    BOOST_TEST(nodes[0].link == link);
    BOOST_TEST((wheel.next_wake() == tick{64}));

    wheel.rearm(nodes[0], tick{63});
    BOOST_TEST(nodes[0].link != link);
    BOOST_TEST((wheel.next_wake() == tick{63}));
    pawl_test::check_invariant(wheel);
    BOOST_TEST(expire_all(tick{62}, 8).empty());
    BOOST_TEST(expire_all(tick{63}, 8) == ascending(1));
}

BOOST_FIXTURE_TEST_CASE(a_lone_timer_is_waited_for_without_a_stop_on_the_way, fixture) {
    const tick due{123'456'789};
    wheel.insert(nodes[0], due);
    BOOST_TEST((wheel.next_wake() == due));

    wheel.rearm(nodes[0], tick{987'654'321}); // stays in place, and keeps its new due tick
    BOOST_TEST((wheel.next_wake() == tick{987'654'321}));

    std::array<timer_node*, 2> out{}; // one to move it down, one to emit it
    const expire_result result = wheel.expire(tick{987'654'321}, out);
    BOOST_TEST(result.emitted + result.more == 1U);
}

BOOST_FIXTURE_TEST_CASE(many_timers_that_are_never_due_cause_no_wake_up, fixture) {
    for (timer_node& node : nodes)
        wheel.insert(node, tick::never());

    BOOST_TEST((wheel.next_wake() == tick::never()));
    BOOST_TEST(expire_all(tick::never(), 16).empty());
    BOOST_TEST((wheel.next_wake() == tick::never()));
    BOOST_TEST(wheel.size() == nodes.size());
}

BOOST_FIXTURE_TEST_CASE(what_was_due_never_may_become_due, fixture) {
    wheel.insert(nodes[0], tick::never());

    wheel.rearm(nodes[0], tick{50});

    BOOST_TEST((wheel.next_wake() == tick{50}));
    BOOST_TEST(expire_all(tick{50}, 16) == ascending(1));
}

BOOST_FIXTURE_TEST_CASE(what_is_due_never_is_not_due_at_the_end_of_time_either, fixture) {
    BOOST_TEST(expire_all(tick::never(), 16).empty());

    wheel.insert(nodes[0], tick::never());

    BOOST_TEST(expire_all(tick::never(), 16).empty());
    BOOST_TEST((wheel.next_wake() == tick::never()));
}

BOOST_DATA_TEST_CASE_F(fixture, a_crowd_at_one_tick_comes_in_start_order_however_small_the_steps,
                       boost::unit_test::data::make({1, 2, 7, 63, 64, 256, 1999}), limit) {
    for (timer_node& node : nodes)
        wheel.insert(node, tick{5000});

    BOOST_TEST(expire_all(tick{5000}, static_cast<std::size_t>(limit)) == ascending(nodes.size()));
    BOOST_TEST(wheel.empty());
}

BOOST_FIXTURE_TEST_CASE(no_call_handles_more_nodes_than_it_was_given_room_for, fixture) {
    for (timer_node& node : nodes)
        wheel.insert(node, tick{5000});
    std::array<timer_node*, 1> out{};

    // From level 2 each node moves to level 0, to the stage, then down at most 10 levels, and out.
    std::size_t calls = 1;
    while (wheel.expire(tick{5000}, out).more)
        ++calls;

    BOOST_TEST(calls >= 2 * nodes.size());
    BOOST_TEST(calls <= 10 * nodes.size());
}

BOOST_FIXTURE_TEST_CASE(a_crowd_that_is_in_order_is_not_sorted, fixture) {
    for (timer_node& node : nodes)
        wheel.insert(node, tick{100});
    std::array<timer_node*, 50> out{};
    std::vector<std::size_t> emitted;
    std::size_t calls = 0;
    for (bool more = true; more; ++calls) {
        const expire_result result = wheel.expire(tick{100}, out);
        more = result.more;
        for (std::size_t i = 0; i != result.emitted; ++i)
            emitted.push_back(index(out[i]));
    }

    BOOST_TEST(emitted == ascending(nodes.size()));
    // Each node was moved once, down to level 0, and handed out.
    BOOST_TEST(calls == 2 * nodes.size() / out.size());
}

BOOST_FIXTURE_TEST_CASE(what_is_rearmed_or_erased_behind_the_cascade_is_not_in_order, fixture) {
    for (timer_node& node : nodes)
        wheel.insert(node, tick{100});
    BOOST_TEST(expire_all(tick{70}, 16).empty()); // they are on level 0 now
    std::vector<std::size_t> expected;
    std::vector<std::size_t> late;
    for (std::size_t i = 0; i != nodes.size(); ++i) {
        if (i % 7 == 3) {
            wheel.rearm(nodes[i], tick{100}); // stays in place, moves to the end of the queue
            late.push_back(i);
        } else {
            expected.push_back(i);
        }
    }

    std::array<timer_node*, 16> out{};
    std::vector<std::size_t> emitted;
    while (emitted.size() < 32) {
        const expire_result result = wheel.expire(tick{100}, out);
        for (std::size_t k = 0; k != result.emitted; ++k)
            emitted.push_back(index(out[k]));
    }
    const auto begun = expected.begin() + static_cast<std::ptrdiff_t>(emitted.size());
    BOOST_TEST(emitted == std::vector<std::size_t>(expected.begin(), begun));
    expected.erase(expected.begin(), begun);
    for (std::size_t i = 0; i < expected.size(); i += 100) {
        wheel.erase(nodes[expected[i]]);
        expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(i));
    }
    expected.insert(expected.end(), late.begin(), late.end());
    BOOST_TEST(expire_all(tick{100}, 16) == expected);
}

BOOST_FIXTURE_TEST_CASE(what_is_filed_again_and_older_than_the_crowd_is_next, fixture) {
    wheel.insert(nodes[0], tick{50});
    for (std::size_t i = 1; i != nodes.size(); ++i)
        wheel.insert(nodes[i], tick{100});
    BOOST_TEST(expire_all(tick{50}, 16).size() == 1U);
    std::array<timer_node*, 16> out{};
    while (wheel.expire(tick{100}, out).emitted == 0) {
    }
    std::size_t next = 1;
    while (!nodes[next].filed())
        ++next;

    wheel.refile(nodes[0]);

    std::vector<std::size_t> expected{0};
    for (; next != nodes.size(); ++next)
        expected.push_back(next);
    BOOST_TEST(expire_all(tick{100}, 16) == expected);
}

BOOST_FIXTURE_TEST_CASE(an_erasure_takes_a_crowd_out_of_order, fixture) {
    for (timer_node& node : nodes)
        wheel.insert(node, tick{100});
    BOOST_TEST(expire_all(tick{70}, 16).empty());
    std::vector<std::size_t> expected = ascending(nodes.size());
    for (std::size_t i = 1900; i != 1905; ++i)
        wheel.erase(nodes[i]);
    expected.erase(expected.begin() + 1900, expected.begin() + 1905);

    BOOST_TEST(expire_all(tick{100}, 16) == expected);
}

// Ticks that are reached without a cascade, with one, and with two. With one, a crowd is in order.
BOOST_DATA_TEST_CASE_F(fixture, a_crowd_that_is_handed_out_can_be_erased_moved_and_rearmed,
                       boost::unit_test::data::make({10, 100, 5000}), due) {
    const tick crowd{static_cast<std::uint64_t>(due)};
    const tick later{crowd.count() + 1};
    for (std::size_t i = 0; i != 1000; ++i)
        wheel.insert(nodes[i], crowd);
    std::array<timer_node*, 16> out{};
    while (wheel.expire(crowd, out).emitted == 0) {
    }
    BOOST_TEST(hierarchical_wheel_probe::staging(wheel));
    std::vector<std::size_t> expected;
    std::vector<std::size_t> late;
    std::vector<std::size_t> next;
    for (std::size_t i = 0; i != 1000; ++i) {
        if (!nodes[i].filed())
            continue;
        switch (i % 5) {
        case 0:
            wheel.erase(nodes[i]);
            break;
        case 1:
            wheel.move_node(nodes[i], nodes[i + 1000]);
            expected.push_back(i + 1000);
            break;
        case 2:
            wheel.rearm(nodes[i], crowd); // to the end of the queue
            late.push_back(i);
            break;
        case 3:
            wheel.rearm(nodes[i], later);
            next.push_back(i);
            break;
        default:
            expected.push_back(i);
        }
        if (i % 50 == 0)
            pawl_test::check_invariant(wheel);
    }
    expected.insert(expected.end(), late.begin(), late.end());

    BOOST_TEST(expire_all(crowd, 16) == expected);
    BOOST_TEST(expire_all(later, 16) == next);
    BOOST_TEST(wheel.empty());
}

BOOST_DATA_TEST_CASE_F(fixture, whatever_is_filed_while_a_crowd_is_handed_out_comes_behind_it,
                       boost::unit_test::data::make({10, 100, 5000}), due) {
    const tick crowd{static_cast<std::uint64_t>(due)};
    for (std::size_t i = 0; i != 1000; ++i)
        wheel.insert(nodes[i], crowd);
    std::array<timer_node*, 16> out{};
    std::vector<std::size_t> emitted;

    for (std::size_t next = 1000; next != 2000;) {
        const expire_result result = wheel.expire(crowd, out);
        for (std::size_t i = 0; i != result.emitted; ++i)
            emitted.push_back(index(out[i]));
        for (int i = 0; i != 10 && next != 2000; ++i)
            wheel.insert(nodes[next++], crowd);
    }
    for (const std::size_t i : expire_all(crowd, 16))
        emitted.push_back(i);

    BOOST_TEST(emitted == ascending(2000));
}

BOOST_DATA_TEST_CASE_F(fixture, start_order_survives_the_wrap_of_the_order_field,
                       boost::unit_test::data::make({2000, 16}), limit) {
    hierarchical_wheel_probe::set_next_sequence(wheel, (std::uint64_t{3} << 44) - 1000);

    for (timer_node& node : nodes)
        wheel.insert(node, tick{100});

    BOOST_TEST((nodes[999].order() == (std::uint64_t{1} << 44) - 1));
    BOOST_TEST((nodes[1000].order() == 0U));
    BOOST_TEST(expire_all(tick{100}, static_cast<std::size_t>(limit)) == ascending(2000));
}

BOOST_AUTO_TEST_CASE(more_sets_can_be_drained_at_once_than_slot_numbers_can_tell_apart) {
    hierarchical_wheel wheel(geometry{12});
    const std::uint32_t count = hierarchical_wheel_probe::epochs(wheel) + 2;
    std::vector<timer_node> nodes(4 * count);
    wheel.reserve(nodes.size());
    std::vector<std::unique_ptr<hierarchical_wheel::detached>> sets;

    for (std::uint32_t i = 0; i != count; ++i) {
        for (std::uint32_t k = 0; k != 4; ++k)
            wheel.insert(nodes[4 * i + k], k == 3 ? tick::never() : tick{k * 10'000});
        sets.push_back(std::make_unique<hierarchical_wheel::detached>(wheel));
        wheel.detach_all(*sets.back());
        pawl_test::check_invariant(wheel);
    }
    for (std::uint32_t i = 0; i != count; ++i) {
        wheel.erase(nodes[4 * i + (i % 2 == 0 ? 0 : 3)]); // filed, or due never
        wheel.rearm(nodes[4 * i + 1], tick{7});
    }
    pawl_test::check_invariant(wheel);

    BOOST_TEST(wheel.size() == count);
    for (const auto& set : sets) {
        BOOST_TEST(set->pop() != nullptr);
        BOOST_TEST(set->pop() != nullptr);
        BOOST_TEST(set->pop() == nullptr);
    }
    pawl_test::check_invariant(wheel);
    BOOST_TEST(wheel.size() == count);
}

// More sets than the wheel can tell apart, each with nodes that are due, staged and due never. Nodes leave
// sets by every way; sets end in any order, and others take their places.
BOOST_AUTO_TEST_CASE(a_node_of_any_of_many_sets_leaves_it_and_the_rest_stays) {
    constexpr std::size_t of_each = 240;
    for (const geometry& shape : {geometry{}, geometry{12}}) {
        std::mt19937_64 random(pawl_test::seed());
        hierarchical_wheel wheel(shape);
        const std::size_t count = hierarchical_wheel_probe::epochs(wheel) + 3;
        std::vector<timer_node> nodes(2 * count * of_each);
        std::vector<std::size_t> home(nodes.size()); // the number of its set; 0: none
        wheel.reserve(nodes.size());
        std::vector<std::unique_ptr<hierarchical_wheel::detached>> sets;
        std::uint64_t now = 1;
        std::size_t next = 0;
        const auto detach = [&] {
            const std::size_t first = next;
            for (; next != first + of_each; ++next) {
                const std::size_t kind = (next - first) % 3;
                wheel.insert(nodes[next], kind == 0   ? tick{now}
                                          : kind == 1 ? tick{now + random() % 1'000'000}
                                                      : tick::never());
                home[next] = sets.size() + 1;
            }
            const std::size_t gap = first + of_each / 2; // what is due must be sorted, in the stage
            wheel.erase(nodes[gap]);
            home[gap] = 0;
            std::array<timer_node*, 2> out;
            std::size_t emitted = 0;
            while (emitted == 0) // sorting takes several steps
                emitted = wheel.expire(tick{now}, out).emitted;
            for (std::size_t i = 0; i != emitted; ++i)
                home[static_cast<std::size_t>(out[i] - nodes.data())] = 0;
            BOOST_TEST(hierarchical_wheel_probe::staging(wheel));
            sets.push_back(std::make_unique<hierarchical_wheel::detached>(wheel));
            wheel.reserve_to_detach(nodes.size());
            const std::uint32_t used = hierarchical_wheel_probe::used(wheel);
            const bool more = used != hierarchical_wheel_probe::epochs(wheel);
            const auto never = nodes[first + 2].slot();
            wheel.detach_all(*sets.back());
            BOOST_TEST(hierarchical_wheel_probe::used(wheel) == used + (more ? 1 : 0));
            BOOST_TEST((nodes[first + 2].slot() == never) == more); // it was not visited
            BOOST_TEST(wheel.size() == 0U);
            pawl_test::check_invariant(wheel);
            ++now;
        };
        const auto drain = [&](std::size_t number) {
            std::vector<std::size_t> left;
            while (timer_node* const node = sets[number - 1]->pop()) {
                const auto i = static_cast<std::size_t>(node - nodes.data());
                BOOST_TEST(home[i] == number);
                BOOST_TEST(!node->filed());
                home[i] = 0;
            }
            BOOST_TEST(std::count(home.begin(), home.end(), number) == 0);
            pawl_test::check_invariant(wheel);
        };
        const auto leave = [&] {
            for (std::size_t i = 0; i != next; ++i) {
                if (home[i] == 0 || random() % 3 != 0)
                    continue;
                BOOST_TEST(nodes[i].filed());
                wheel.erase(nodes[i]);
                home[i] = 0;
            }
            pawl_test::check_invariant(wheel);
        };
        while (sets.size() != count)
            detach();
        leave();
        for (std::size_t k = 0; k != count; ++k) { // from the middle on, so that gaps come about
            drain((k + count / 2) % count + 1);
            if (k % 3 == 0)
                detach();
            if (k % 16 == 0)
                leave();
        }
        for (std::size_t number = count; number != sets.size(); ++number)
            drain(number + 1);
        BOOST_TEST(hierarchical_wheel_probe::used(wheel) == 1U);
        BOOST_TEST(std::count_if(nodes.begin(), nodes.end(),
                                 [](const timer_node& n) { return n.filed(); }) == 0);
    }
}

// After a set-back nodes are refiled with their old starts, while others are handed out.
BOOST_FIXTURE_TEST_CASE(a_node_that_is_older_than_what_was_handed_out_of_a_crowd_comes_next,
                        fixture) {
    wheel.insert(nodes[0], tick{10});
    hierarchical_wheel::detached set(wheel);
    wheel.detach_all(set);
    for (std::size_t i = 1; i != 200; ++i)
        wheel.insert(nodes[i], tick{10});
    wheel.erase(nodes[100]); // the crowd must be sorted, in the stage
    std::vector<timer_node*> out(16);
    while (wheel.expire(tick{10}, out).emitted == 0) {
    }

    BOOST_REQUIRE(set.pop() == &nodes[0]);
    wheel.refile(nodes[0]);

    pawl_test::check_invariant(wheel);
    BOOST_CHECK_EQUAL(expire_all(tick{10}, 16).at(0), 0U);
}

BOOST_FIXTURE_TEST_CASE(a_detached_set_that_vanishes_lets_go_of_its_nodes, fixture) {
    for (std::size_t i = 0; i != 100; ++i)
        wheel.insert(nodes[i], tick{i * i});
    {
        hierarchical_wheel::detached set(wheel);
        wheel.detach_all(set);
        BOOST_TEST(nodes[50].filed());
    }

    for (std::size_t i = 0; i != 100; ++i)
        BOOST_TEST(!nodes[i].filed());
}

BOOST_FIXTURE_TEST_CASE(a_drained_set_can_be_used_again, fixture) {
    hierarchical_wheel::detached set(wheel);
    for (int round = 0; round != 200; ++round) {
        for (std::size_t i = 0; i != 40; ++i)
            wheel.insert(nodes[i], tick{i * 100});
        wheel.erase(nodes[7]);
        wheel.detach_all(set);
        wheel.erase(nodes[8]);
        std::size_t count = 0;
        while (set.pop() != nullptr)
            ++count;
        BOOST_TEST(count == 38U);
        pawl_test::check_invariant(wheel);
        BOOST_TEST(wheel.has_room_to_detach(nodes.size())); // the set counts only once
    }
}

// ---- lists ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(an_empty_wheel_has_no_lists_and_a_crowd_one_for_each_slot) {
    hierarchical_wheel wheel;
    BOOST_TEST(hierarchical_wheel_probe::lists(wheel) == 0U);
    BOOST_TEST(!wheel.has_room_for(1));

    wheel.reserve(1);
    BOOST_TEST(hierarchical_wheel_probe::lists(wheel) == 4U);
    wheel.reserve(10);
    BOOST_TEST(hierarchical_wheel_probe::lists(wheel) == 12U);
    wheel.reserve(1'000'000);
    const std::uint32_t lists = hierarchical_wheel_probe::lists(wheel);
    BOOST_TEST(lists >= hierarchical_wheel_probe::slots(wheel));
    BOOST_TEST(lists <= hierarchical_wheel_probe::slots(wheel) + 128);
    wheel.reserve(1'000'000'000);
    BOOST_TEST(hierarchical_wheel_probe::lists(wheel) == lists);
}

// While the set keeps lists, the wheel needs more for a crowd. Its owner must be told, or it files nodes for which
// there is no list.
BOOST_AUTO_TEST_CASE(a_detached_set_takes_room_from_the_wheel_and_gives_it_back) {
    constexpr std::size_t crowd = 1'000'000;
    hierarchical_wheel wheel;
    std::vector<timer_node> nodes(300);
    wheel.reserve(crowd); // a list for each slot
    for (std::size_t i = 0; i != nodes.size(); ++i)
        wheel.insert(nodes[i], tick{i * i * i});
    hierarchical_wheel::detached set(wheel);
    const std::size_t lists = hierarchical_wheel_probe::lists(wheel);
    BOOST_TEST(wheel.has_room_for(crowd));

    wheel.detach_all(set);
    BOOST_TEST(!wheel.has_room_for(crowd));
    BOOST_TEST(!wheel.has_room_for(lists));
    BOOST_TEST(wheel.has_room_for(lists - 1));

    while (set.pop() != nullptr) {
    }
    BOOST_TEST(wheel.has_room_for(crowd));
}

// The last node of a slot that is entered needs another slot before its own is empty.
BOOST_AUTO_TEST_CASE(as_many_nodes_as_were_reserved_can_be_anywhere_and_move_anywhere) {
    for (std::size_t count = 1; count != 40; ++count) {
        hierarchical_wheel wheel;
        wheel.reserve(count);
        std::vector<timer_node> nodes(count);
        for (std::size_t i = 0; i != count; ++i)
            wheel.insert(nodes[i], tick{std::uint64_t{1} << (7 + i)}); // each in a slot of its own
        for (std::size_t i = 0; i != count; ++i)
            wheel.rearm(nodes[i], tick{(std::uint64_t{1} << (6 + i)) + i % 3});
        pawl_test::check_invariant(wheel);

        std::vector<timer_node*> out(1);
        for (std::size_t emitted = 0; emitted != count;) {
            emitted += wheel.expire(tick::never(), out).emitted;
            pawl_test::check_invariant(wheel);
        }
        BOOST_TEST(wheel.empty());
    }
}

// All slots of the set keep their lists, because a node is left in each; and all nodes that have
// left are filed in as many others.
BOOST_AUTO_TEST_CASE(what_leaves_a_set_finds_a_place_though_the_slots_of_the_set_keep_theirs) {
    constexpr std::size_t slots = std::size_t{10} * 63; // of ten levels, all but the first
    hierarchical_wheel wheel;
    std::vector<timer_node> nodes(2 * slots);
    wheel.reserve(nodes.size());
    const auto due = [](std::size_t i) {
        return tick{std::uint64_t{i / 2 % 63 + 1} << (6 * (i / 126))};
    };
    for (std::size_t i = 0; i != nodes.size(); ++i)
        wheel.insert(nodes[i], due(i));
    hierarchical_wheel::detached set(wheel);
    wheel.reserve_to_detach(nodes.size());

    wheel.detach_all(set);
    for (std::size_t i = 0; i < nodes.size(); i += 2)
        wheel.rearm(nodes[i], due(i));
    pawl_test::check_invariant(wheel);

    BOOST_TEST(wheel.size() == slots);
    std::size_t left = 0;
    while (timer_node* const node = set.pop()) {
        BOOST_TEST_REQUIRE((node - nodes.data()) % 2 == 1);
        wheel.refile(*node);
        ++left;
    }
    BOOST_TEST(left == slots);
    pawl_test::check_invariant(wheel);
}

BOOST_AUTO_TEST_CASE(a_crowd_can_be_detached_again_and_again_before_the_first_set_is_empty) {
    for (const geometry& shape : {geometry{1}, geometry{6}, geometry{12}}) {
        hierarchical_wheel wheel(shape);
        std::vector<timer_node> nodes(70'000); // more than the possible lists
        wheel.reserve(nodes.size());
        const std::uint32_t count = std::min(hierarchical_wheel_probe::epochs(wheel) + 1, 6U);
        std::vector<std::unique_ptr<hierarchical_wheel::detached>> sets;
        const auto due = [](std::size_t i) { return tick{i * i * i * i * i / 3 + 1}; };
        for (std::size_t i = 0; i != nodes.size(); ++i)
            wheel.insert(nodes[i], due(i));
        for (std::uint32_t n = 0; n != count; ++n) {
            sets.push_back(std::make_unique<hierarchical_wheel::detached>(wheel));
            wheel.reserve_to_detach(nodes.size());
            wheel.detach_all(*sets.back());
            for (std::size_t i = 0; i != nodes.size(); ++i)
                if (i % (n + 2) != 0)
                    wheel.rearm(nodes[i], due(i));
            pawl_test::check_invariant(wheel);
        }

        std::size_t popped = 0;
        for (const auto& set : sets)
            while (set->pop() != nullptr)
                ++popped;
        BOOST_TEST(popped + wheel.size() == nodes.size());
        pawl_test::check_invariant(wheel);
    }
}

BOOST_FIXTURE_TEST_CASE(the_invariant_detects_damage_and_names_the_operands, fixture) {
    for (std::size_t i = 0; i != 100; ++i)
        wheel.insert(nodes[i], tick{100 + i});
    pawl_test::check_invariant(wheel);
    const auto says = [](const char* text) {
        return [text](const std::logic_error& error) {
            return std::string(error.what()).find(text) != std::string::npos;
        };
    };
    const timer_node intact = nodes[20];

    nodes[20].set_slot(3);
    BOOST_CHECK_EXCEPTION(pawl_test::check_invariant(wheel), std::logic_error,
                          says("node.slot = 3"));
    nodes[20] = intact;

    nodes[20].due = tick{5};
    BOOST_CHECK_EXCEPTION(pawl_test::check_invariant(wheel), std::logic_error, says("due = 5"));
    nodes[20] = intact;

    nodes[20].link = &nodes[21].next;
    BOOST_CHECK_EXCEPTION(pawl_test::check_invariant(wheel), std::logic_error,
                          says("back-link invariant"));
    nodes[20] = intact;

    *nodes[20].link = nodes[20].next; // unlinked without the wheel's knowledge
    if (nodes[20].next != nullptr)
        nodes[20].next->link = nodes[20].link;
    BOOST_CHECK_EXCEPTION(pawl_test::check_invariant(wheel), std::logic_error,
                          says("count invariant"));
}
