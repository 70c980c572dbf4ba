// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The promises that only this backend makes, defects that only this one could have, and the defects
// of HiTime, whose idea it is. test/conformance/backend_test.cpp has the promises of every backend.

#include <pawl/time/binary_wheel.hpp>

#include <pawl/time/tick.hpp>

#include "../service/counted_new.hpp"
#include "support/invariants.hpp"

#define BOOST_TEST_MODULE binary_wheel
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace pawl::time {

/// Accesses members that tests cannot reach from outside.
struct binary_wheel_probe {
    static void set_next_sequence(binary_wheel& wheel, std::uint64_t sequence) {
        wheel.starts_.next = sequence;
    }
    static bool staging(const binary_wheel& wheel) {
        return wheel.stage().position != binary_wheel::closed;
    }
    static bool entered(const binary_wheel& wheel) {
        return wheel.time().entered() != detail::bit_bins::none;
    }
    /// The bit whose bin holds a node; nothing if it is due.
    static std::optional<unsigned> bit(const timer_node& node) {
        const unsigned bin = binary_wheel::bin_of(node);
        return bin >= binary_wheel::first_of_time ? std::optional(bin - binary_wheel::first_of_time)
                                                  : std::nullopt;
    }
    static constexpr unsigned epochs = detail::epochs::most;
    static std::uint32_t epochs_in_use(const binary_wheel& wheel) { return wheel.epochs_.used(); }
};

} // namespace pawl::time

using pawl::time::best_in_range;
using pawl::time::binary_wheel;
using pawl::time::binary_wheel_probe;
using pawl::time::expire_result;
using pawl::time::tick;
using pawl::time::timer_node;

using indices = std::vector<std::size_t>;

static_assert(pawl::time::rewindable_backend<binary_wheel>);
static_assert(!std::is_move_constructible_v<binary_wheel>);
static_assert(sizeof(void*) != 8 || sizeof(binary_wheel) <= 1228, "1.2 KiB");
static_assert(std::is_nothrow_constructible_v<binary_wheel, tick>);
static_assert(std::is_nothrow_constructible_v<binary_wheel::detached, const binary_wheel&>);

namespace {

struct fixture {
    std::vector<timer_node> nodes = std::vector<timer_node>(2000);
    binary_wheel wheel;

    std::size_t index(const timer_node* node) const {
        return static_cast<std::size_t>(node - nodes.data());
    }

    /// One call of expire(now) with room for `room`; its nodes are added to `emitted`.
    expire_result expire(std::uint64_t now, std::size_t room, indices& emitted) {
        std::vector<timer_node*> out(room);
        const expire_result result = wheel.expire(tick{now}, out);
        for (std::size_t i = 0; i != result.emitted; ++i)
            emitted.push_back(index(out[i]));
        return result;
    }

    /// Calls expire(now) until nothing is left.
    indices expire_all(std::uint64_t now, std::size_t room = 64) {
        indices emitted;
        for (std::size_t calls = 0; expire(now, room, emitted).more; ++calls) {
            BOOST_TEST_REQUIRE(calls < 130 * nodes.size(), "expire() does not come to an end");
            pawl_test::check_invariant(wheel);
        }
        pawl_test::check_invariant(wheel);
        return emitted;
    }

    void insert(std::size_t node, std::uint64_t due) { wheel.insert(nodes[node], tick{due}); }
};

indices ascending(std::size_t count) {
    indices result(count);
    std::iota(result.begin(), result.end(), std::size_t{0});
    return result;
}

} // namespace

// --- the structure -------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(nothing_is_ever_allocated, fixture) {
    std::array<timer_node*, 64> out{};
    const std::size_t before = counted_new::calls.load();

    auto other = binary_wheel(tick{7});
    for (std::size_t i = 0; i != 1000; ++i)
        wheel.insert(nodes[i], tick{i % 7 == 0 ? 500 : i * i});
    for (int i = 0; i != 20; ++i)
        (void)wheel.expire(tick{600}, out);
    for (std::size_t i = 0; i != 1000; i += 10) {
        if (nodes[i].filed())
            wheel.rearm(nodes[i], tick{i * 3});
    }
    {
        binary_wheel::detached set(wheel);
        wheel.detach_all(set);
    }
    pawl_test::check_invariant(wheel);

    BOOST_TEST(counted_new::calls.load() == before);
    BOOST_TEST(other.empty());
}

BOOST_FIXTURE_TEST_CASE(every_node_is_in_the_bin_of_the_highest_bit_that_differs_from_now,
                        fixture) {
    const std::uint64_t now = 0b0101'0011;
    (void)expire_all(now);

    for (std::uint64_t due = now + 1; due != 300; ++due) {
        insert(0, due);
        BOOST_TEST(binary_wheel_probe::bit(nodes[0]).value() ==
                   static_cast<unsigned>(std::bit_width(due ^ now) - 1));
        wheel.erase(nodes[0]);
    }
}

BOOST_FIXTURE_TEST_CASE(a_bin_that_fits_goes_out_as_a_whole_and_in_order, fixture) {
    for (std::size_t i = 0; i != 100; ++i)
        insert(99 - i, 1024 + i * 10); // all in bin 10, the last one first
    indices emitted;

    const expire_result result = expire(5000, 100, emitted); // one handling for each is enough

    BOOST_TEST(!result.more);
    BOOST_TEST(emitted == [] {
        indices expected = ascending(100);
        std::reverse(expected.begin(), expected.end());
        return expected;
    }());
    BOOST_TEST((wheel.now() == tick{5000}));
}

BOOST_FIXTURE_TEST_CASE(part_of_a_bin_goes_out_if_the_bin_has_not_passed, fixture) {
    for (std::size_t i = 0; i != 100; ++i)
        insert(i, 1024 + i * 10);

    BOOST_TEST(expire_all(1500) == ascending(48));
    BOOST_TEST((wheel.now() == tick{1500}));
    BOOST_TEST((wheel.next_wake() > tick{1500}));
    BOOST_TEST((wheel.next_wake() <= tick{1504}));
    BOOST_TEST(expire_all(2014).size() == 52U);
}

BOOST_FIXTURE_TEST_CASE(rearming_to_later_writes_only_the_node, fixture) {
    for (std::size_t i = 0; i != 100; ++i)
        insert(i, 70);
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

BOOST_FIXTURE_TEST_CASE(rearming_to_earlier_stays_within_a_bin_and_relinks_before_it, fixture) {
    insert(0, 100); // bin 6: [64, 128)
    timer_node** const link = nodes[0].link;

    wheel.rearm(nodes[0], tick{64});
    BOOST_TEST(nodes[0].link == link);
    BOOST_TEST((wheel.next_wake() == tick{64}));

    wheel.rearm(nodes[0], tick{63});
    BOOST_TEST(nodes[0].link != link);
    BOOST_TEST((wheel.next_wake() == tick{63}));
    pawl_test::check_invariant(wheel);
    BOOST_TEST(expire_all(62).empty());
    BOOST_TEST(expire_all(63) == ascending(1));
}

BOOST_FIXTURE_TEST_CASE(what_is_due_never_is_not_due_at_the_end_of_time_either, fixture) {
    BOOST_TEST(expire_all(tick::never().count(), 16).empty());

    insert(0, tick::never().count());

    BOOST_TEST(expire_all(tick::never().count(), 16).empty());
    BOOST_TEST((wheel.next_wake() == tick::never()));
}

BOOST_FIXTURE_TEST_CASE(many_timers_that_are_never_due_cause_no_wake_up, fixture) {
    for (timer_node& node : nodes)
        wheel.insert(node, tick::never());

    BOOST_TEST((wheel.next_wake() == tick::never()));
    BOOST_TEST(expire_all(tick::never().count(), 16).empty());
    BOOST_TEST((wheel.next_wake() == tick::never()));
    BOOST_TEST(wheel.size() == nodes.size());
}

BOOST_FIXTURE_TEST_CASE(a_timer_that_was_due_and_is_due_later_is_waited_for_exactly, fixture) {
    insert(0, 0);
    BOOST_TEST((wheel.next_wake() == tick{0}));

    wheel.rearm(nodes[0], tick{777}); // stays in the present, and keeps its new due tick

    BOOST_TEST((wheel.next_wake() == tick{777}));
    BOOST_TEST(expire_all(776).empty());
    BOOST_TEST(expire_all(777) == ascending(1));
}

// --- order and bounded steps ---------------------------------------------------------------------

BOOST_DATA_TEST_CASE_F(fixture, a_crowd_at_one_tick_comes_in_start_order_however_small_the_steps,
                       boost::unit_test::data::make({1, 2, 7, 63, 64, 256, 1999}), room) {
    for (timer_node& node : nodes)
        wheel.insert(node, tick{5000});

    BOOST_TEST(expire_all(5000, static_cast<std::size_t>(room)) == ascending(nodes.size()));
    BOOST_TEST(wheel.empty());
}

BOOST_DATA_TEST_CASE_F(fixture, start_order_survives_lazy_rearming,
                       boost::unit_test::data::make({1, 100, 2000}), room) {
    for (timer_node& node : nodes)
        wheel.insert(node, tick{4096}); // its bin starts here
    for (std::size_t i = 0; i != 2000; ++i)
        wheel.rearm(nodes[i * 7 % 2000], tick{5000});
    indices expected(2000);
    for (std::size_t i = 0; i != 2000; ++i)
        expected[i] = i * 7 % 2000;

    BOOST_TEST(expire_all(5000, static_cast<std::size_t>(room)) == expected);
}

BOOST_DATA_TEST_CASE_F(fixture, start_order_survives_the_wrap_of_the_order_field,
                       boost::unit_test::data::make({2000, 16}), room) {
    binary_wheel_probe::set_next_sequence(wheel, (std::uint64_t{3} << 44) - 1000);

    for (timer_node& node : nodes)
        wheel.insert(node, tick{100});

    BOOST_TEST((nodes[999].order() == (std::uint64_t{1} << 44) - 1));
    BOOST_TEST((nodes[1000].order() == 0U));
    BOOST_TEST(expire_all(100, static_cast<std::size_t>(room)) == ascending(2000));
}

BOOST_FIXTURE_TEST_CASE(late_comers_that_fit_are_sorted_by_due_tick_although_room_was_used,
                        fixture) {
    for (std::size_t i = 0; i != 20; ++i)
        insert(i, i < 18 ? 70 : 64);
    indices emitted;
    (void)expire(64, 16, emitted); // enters the bin, and has no room left
    BOOST_TEST(binary_wheel_probe::entered(wheel));
    BOOST_TEST(emitted.empty());
    for (std::size_t i = 20; i != 31; ++i)
        insert(i, 50 - i); // increasingly late

    const expire_result first = expire(64, 16, emitted);
    BOOST_TEST(first.more);
    BOOST_TEST(emitted.empty()); // 4 are moved, 13 are due: left whole for the next call
    const expire_result second = expire(64, 16, emitted);

    BOOST_TEST(!second.more);
    BOOST_TEST(emitted == (indices{30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 18, 19}));
}

BOOST_FIXTURE_TEST_CASE(nodes_in_the_stage_can_be_erased_moved_and_rearmed, fixture) {
    for (std::size_t i = 0; i != 1000; ++i)
        insert(i, 10);
    indices emitted;
    while (emitted.empty())
        (void)expire(10, 16, emitted);
    BOOST_TEST(binary_wheel_probe::staging(wheel));
    indices expected;
    indices late;
    indices next;
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
            wheel.rearm(nodes[i], tick{10}); // to the end of the queue
            late.push_back(i);
            break;
        case 3:
            wheel.rearm(nodes[i], tick{11});
            next.push_back(i);
            break;
        default:
            expected.push_back(i);
        }
        if (i % 50 == 0)
            pawl_test::check_invariant(wheel);
    }
    expected.insert(expected.end(), late.begin(), late.end());

    BOOST_TEST(expire_all(10, 16) == expected);
    BOOST_TEST(expire_all(11, 16) == next);
    BOOST_TEST(wheel.empty());
}

BOOST_FIXTURE_TEST_CASE(whatever_is_filed_while_a_crowd_is_handed_out_comes_behind_it, fixture) {
    for (std::size_t i = 0; i != 1000; ++i)
        insert(i, 10);
    indices emitted;

    for (std::size_t next = 1000; next != 2000;) {
        (void)expire(10, 16, emitted);
        for (int i = 0; i != 10 && next != 2000; ++i)
            insert(next++, 10);
    }
    for (const std::size_t i : expire_all(10, 16))
        emitted.push_back(i);

    BOOST_TEST(emitted == ascending(2000));
}

BOOST_FIXTURE_TEST_CASE(late_comers_behind_a_crowd_keep_start_order, fixture) {
    for (std::size_t i = 0; i != 100; ++i)
        insert(i, 10);
    indices emitted;
    while (emitted.empty())
        (void)expire(10, 16, emitted);

    for (std::size_t i = 100; i != 110; ++i)
        insert(i, 110 - i); // increasingly late
    while (expire(10, 16, emitted).more) {
    }

    BOOST_TEST(emitted == ascending(110));
}

BOOST_FIXTURE_TEST_CASE(a_node_that_is_refiled_while_younger_ones_are_staged_comes_next, fixture) {
    for (std::size_t i = 0; i != 1000; ++i)
        insert(i, 10);
    wheel.erase(nodes[3]); // keeps its due tick and its order
    indices emitted;
    while (emitted.size() < 100)
        (void)expire(10, 16, emitted);
    const std::size_t before = emitted.size();

    wheel.refile(nodes[3]);
    pawl_test::check_invariant(wheel);
    while (expire(10, 16, emitted).more) {
    }

    BOOST_TEST(emitted.size() == 1000U);
    BOOST_TEST(emitted[before] == 3U);
}

// Regression, found by the differential test: the wake-up was computed from the two lowest bins,
// while older nodes were still in an entered one above them.
BOOST_FIXTURE_TEST_CASE(an_entered_bin_is_not_waited_past, fixture) {
    for (std::size_t i = 0; i != 100; ++i)
        insert(i, 1030);
    indices emitted;
    (void)expire(1024, 16, emitted); // 16 of them are moved
    BOOST_TEST(binary_wheel_probe::entered(wheel));
    for (std::size_t i = 0; i != 100; ++i) {
        if (binary_wheel_probe::bit(nodes[i]) == 2U)
            wheel.rearm(nodes[i], tick{5000}); // stay, but need no wake-up
    }
    insert(200, 1040);

    BOOST_TEST((wheel.next_wake() == wheel.now()));
    BOOST_TEST(expire_all(1030).size() == 84U);
}

// The cost of one list per bit: all nodes that share a bin with the first one are moved before it
// is handed out.
BOOST_FIXTURE_TEST_CASE(P6_a_bin_is_moved_whole_in_steps_of_as_many_nodes_as_there_is_room_for,
                        fixture) {
    constexpr std::uint64_t begin = std::uint64_t{1} << 20;
    constexpr std::size_t room = 64;
    for (std::size_t i = 0; i != 1000; ++i)
        insert(i, begin + 7 * i);
    const auto bits = [this] {
        std::vector<std::optional<unsigned>> all;
        for (std::size_t i = 0; i != 1000; ++i)
            all.push_back(nodes[i].filed() ? binary_wheel_probe::bit(nodes[i]) : std::nullopt);
        return all;
    };

    indices emitted;
    std::size_t moved = 0;
    while (emitted.empty()) {
        const auto before = bits();
        const bool more = expire(begin, room, emitted).more;
        BOOST_TEST_REQUIRE(more == emitted.empty());
        const auto after = bits();
        std::size_t handled = 0;
        for (std::size_t i = 0; i != 1000; ++i)
            handled += before[i] != after[i];
        BOOST_TEST(handled <= room);
        moved += handled;
        pawl_test::check_invariant(wheel);
    }

    BOOST_TEST(emitted == ascending(1));
    BOOST_TEST(moved == 1000U);
}

BOOST_FIXTURE_TEST_CASE(the_room_that_a_move_leaves_is_used, fixture) {
    constexpr std::size_t room = 7;
    for (std::size_t i = 0; i != 10; ++i)
        insert(i, 128 + i);
    indices emitted;
    BOOST_TEST(expire(200, room, emitted).emitted == 0U); // moves seven
    BOOST_TEST(expire(200, room, emitted).emitted == 4U); // moves three
    while (expire(200, room, emitted).more)
        BOOST_TEST_REQUIRE(emitted.size() < 10U);
    BOOST_TEST(emitted == ascending(10));
}

// --- detaching -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(more_sets_can_be_drained_at_once_than_epochs_can_tell_apart) {
    binary_wheel wheel;
    const unsigned count = binary_wheel_probe::epochs + 2;
    std::vector<timer_node> nodes(4 * count);
    std::vector<std::unique_ptr<binary_wheel::detached>> sets;

    for (unsigned i = 0; i != count; ++i) {
        for (unsigned k = 0; k != 4; ++k)
            wheel.insert(nodes[4 * i + k], k == 3 ? tick::never() : tick{k * 10'000});
        sets.push_back(std::make_unique<binary_wheel::detached>(wheel));
        wheel.detach_all(*sets.back());
        pawl_test::check_invariant(wheel);
    }
    for (unsigned i = 0; i != count; ++i) {
        wheel.erase(nodes[4 * i]);
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

BOOST_FIXTURE_TEST_CASE(a_detached_set_that_vanishes_lets_go_of_its_nodes, fixture) {
    for (std::size_t i = 0; i != 100; ++i)
        insert(i, i * i);
    {
        binary_wheel::detached set(wheel);
        wheel.detach_all(set);
        BOOST_TEST(nodes[50].filed());
    }

    for (std::size_t i = 0; i != 100; ++i)
        BOOST_TEST(!nodes[i].filed());
}

BOOST_FIXTURE_TEST_CASE(a_drained_set_can_be_used_again, fixture) {
    binary_wheel::detached set(wheel);
    for (int round = 0; round != 200; ++round) {
        for (std::size_t i = 0; i != 40; ++i)
            insert(i, i * 100);
        wheel.erase(nodes[7]);
        wheel.detach_all(set);
        wheel.erase(nodes[8]);
        std::size_t count = 0;
        while (set.pop() != nullptr)
            ++count;
        BOOST_TEST(count == 38U);
        BOOST_TEST(binary_wheel_probe::epochs_in_use(wheel) == 1U);
        pawl_test::check_invariant(wheel);
    }
}

BOOST_FIXTURE_TEST_CASE(a_set_is_emptied_from_what_is_due_to_what_never_is, fixture) {
    insert(0, tick::never().count());
    insert(1, 1'000'000);
    insert(2, 5);
    insert(3, 0);
    binary_wheel::detached set(wheel);

    wheel.detach_all(set);

    for (const std::size_t i : {3U, 2U, 1U, 0U})
        BOOST_TEST(set.pop() == &nodes[i]);
}

// --- the defects of HiTime -----------------------------------------------------------------------

// 1: Time went back to a value before the last one, which became the clock, and a timer for 17
// expired at 1.
BOOST_FIXTURE_TEST_CASE(time_that_goes_back_makes_nothing_early, fixture) {
    BOOST_TEST(expire_all(16).empty());
    insert(0, 17);

    BOOST_TEST(expire_all(0).empty());
    BOOST_TEST((wheel.now() == tick{16}));
    BOOST_TEST(expire_all(1).empty());
    BOOST_TEST(expire_all(17) == ascending(1));
}

// 2: One tick before 2^31, the wait for a timer of one tick was 2^31 ticks.
BOOST_AUTO_TEST_CASE(a_timer_across_any_power_of_two_is_waited_for_exactly) {
    for (unsigned bit = 0; bit != 64; ++bit) {
        const std::uint64_t power = std::uint64_t{1} << bit;
        binary_wheel wheel(tick{power - 1});
        timer_node node;
        wheel.insert(node, tick{power});
        BOOST_TEST((wheel.next_wake() == tick{power}));
        BOOST_TEST(binary_wheel_probe::bit(node).value() == bit); // defect 10: a word has 64 bits

        std::array<timer_node*, 1> out{};
        BOOST_TEST(wheel.expire(tick{power}, out).emitted == 1U);
    }
}

// 3: The wait ignored a pass that was left incomplete, and a pass without room never ended.
BOOST_FIXTURE_TEST_CASE(a_pass_that_is_left_incomplete_is_due_now, fixture) {
    for (std::size_t i = 0; i != 500; ++i)
        insert(i, 2 + i % 50);
    insert(500, 1000);
    indices emitted;

    while (expire(100, 7, emitted).more) {
        BOOST_TEST((wheel.next_wake() == wheel.now()));
        const expire_result without_room = expire(100, 0, emitted);
        BOOST_TEST(without_room.more);
        BOOST_TEST((wheel.next_wake() == wheel.now()));
    }

    BOOST_TEST(emitted.size() == 500U);
    BOOST_TEST((wheel.next_wake() == tick{1000}));
}

// 4: Setting a range for a running timer overwrote its tick and left the timer in place: for [100,
// 200], it expired at 8.
BOOST_FIXTURE_TEST_CASE(a_range_can_be_given_to_a_timer_that_is_running, fixture) {
    insert(0, 5);

    wheel.rearm(nodes[0], best_in_range(wheel.now(), tick{100}, tick{200}));

    BOOST_TEST((nodes[0].due == tick{128}));
    BOOST_TEST((wheel.next_wake() == tick{128}));
    for (const std::uint64_t now : {5U, 8U, 99U, 127U})
        BOOST_TEST(expire_all(now).empty());
    BOOST_TEST(expire_all(128) == ascending(1));
}

// 5: The wait for a timer that had expired and had not been taken was infinite.
BOOST_FIXTURE_TEST_CASE(what_is_due_and_not_yet_taken_is_waited_for_no_longer, fixture) {
    BOOST_TEST(expire_all(30).empty());
    insert(0, 20);
    BOOST_TEST((wheel.next_wake() == tick{30}));

    std::array<timer_node*, 1> out{};
    BOOST_TEST(wheel.expire(tick{40}, std::span(out).first(0)).more);
    BOOST_TEST((wheel.next_wake() == wheel.now()));
    BOOST_TEST(wheel.expire(tick{40}, out).emitted == 1U);
    BOOST_TEST((wheel.next_wake() == tick::never()));
}

// 6: The answer of an empty structure was "never" minus the present.
BOOST_FIXTURE_TEST_CASE(an_empty_wheel_waits_for_ever_at_any_time, fixture) {
    BOOST_TEST((wheel.next_wake() == tick::never()));
    (void)expire_all(12345);
    BOOST_TEST((wheel.next_wake() == tick::never()));
}

// Without room, expire() must not loop over the nodes that it keeps.
BOOST_FIXTURE_TEST_CASE(the_end_of_time_is_never_reached, fixture) {
    wheel.insert(nodes[0], tick::never());

    const expire_result result = wheel.expire(tick::never(), {});

    BOOST_TEST(result.emitted == 0U);
    BOOST_TEST(!result.more);
    BOOST_TEST((wheel.now() < tick::never()));
    BOOST_TEST(nodes[0].filed());
    BOOST_TEST((binary_wheel(tick::never()).now() < tick::never()));
}

// 7: It started at 0, so the wait for a first timer in milliseconds since boot or 1970 took days.
BOOST_AUTO_TEST_CASE(the_first_timer_is_waited_for_exactly_however_old_the_clock_is) {
    binary_wheel wheel(tick{1'767'225'600'123});
    timer_node node;

    wheel.insert(node, tick{1'767'225'600'223});

    BOOST_TEST((wheel.next_wake() == tick{1'767'225'600'223}));
    wheel.erase(node);
}

// 8: A lone timer of 30 s in milliseconds cost 8.5 wake-ups on average.
BOOST_AUTO_TEST_CASE(a_lone_timer_costs_one_wake_up) {
    std::array<timer_node*, 4> out{};
    for (std::uint64_t start = 0; start < 100'000; start += 37) {
        binary_wheel wheel(tick{start});
        timer_node node;
        wheel.insert(node, tick{start + 30'000});

        const tick wake = wheel.next_wake();
        const expire_result result = wheel.expire(wake, out);

        BOOST_REQUIRE((wake == tick{start + 30'000}));
        BOOST_REQUIRE_EQUAL(result.emitted, 1U);
        BOOST_REQUIRE(!result.more);
    }
}

// 8: Many timers that are moved all the time, like idle timeouts, also keep the number of wake-ups
// small.
BOOST_FIXTURE_TEST_CASE(idle_timeouts_that_are_rearmed_wake_up_rarely, fixture) {
    for (std::size_t i = 0; i != 1000; ++i)
        insert(i, 30'000);
    std::size_t wakes = 0;
    std::size_t emitted = 0;
    for (std::uint64_t now = 1; now != 120'000; ++now) {
        if (now < 60'000)
            wheel.rearm(nodes[now % 1000], tick{now + 30'000}); // each once a second
        if (wheel.next_wake() <= tick{now}) {
            ++wakes;
            emitted += expire_all(now).size();
        }
    }

    BOOST_TEST(emitted == 1000U);
    BOOST_TEST(wakes <= 1100U);
}

// 9: A million timers of one bin were refiled in one call, which took 8 to 35 ms.
BOOST_DATA_TEST_CASE_F(fixture, a_crowd_is_filed_anew_in_bounded_steps,
                       boost::unit_test::data::make({1, 16, 256}), room) {
    const std::uint64_t due = 0b1010'1010'1010;
    for (timer_node& node : nodes)
        wheel.insert(node, tick{due});
    const auto step = static_cast<std::size_t>(room);
    indices emitted;

    // At most 6 bits of the tick, the present, 11 bits of the start sequence, and the end.
    std::size_t calls = 1;
    while (expire(due, step, emitted).more)
        ++calls;

    BOOST_TEST(emitted == ascending(2000));
    BOOST_TEST(calls >= 2 * 2000 / step);
    BOOST_TEST(calls <= 20 * 2000 / step);
}

// --- the invariant -------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(the_invariant_detects_damage_and_names_the_operands, fixture) {
    for (std::size_t i = 0; i != 100; ++i)
        insert(i, 100 + i);
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

    nodes[20].link = &nodes[19].next;
    BOOST_CHECK_EXCEPTION(pawl_test::check_invariant(wheel), std::logic_error,
                          says("back-link invariant"));
    nodes[20] = intact;

    *nodes[20].link = nodes[20].next; // unlinked without the wheel's knowledge
    if (nodes[20].next != nullptr)
        nodes[20].next->link = nodes[20].link;
    BOOST_CHECK_EXCEPTION(pawl_test::check_invariant(wheel), std::logic_error, says("the size"));
}
