// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// When the wheel wants to grow and when it may, and that whoever has it grow sees no difference,
// whatever is under way: most tests make the same calls on the oracle, which cannot grow. What every
// backend promises is in test/conformance/backend_test.cpp.

#include <pawl/time/growing_wheel.hpp>

#include "../service/counted_new.hpp"
#include "../support/backend_lockstep.hpp"
#include "../support/growing_backend.hpp"
#include "../support/ordered_map_backend.hpp"
#include "../support/seed.hpp"

#define BOOST_TEST_MODULE growing_wheel
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace pawl::time {

/// Reaches what the tests cannot reach from outside. So do the next two, in the wheels inside.
struct growing_wheel_probe {
    static binary_wheel& small(growing_wheel& wheel) { return wheel.small_; }
    static hierarchical_wheel& large(growing_wheel& wheel) { return *wheel.large_; }
    static bool grown(const growing_wheel& wheel) { return wheel.large_ != nullptr; }
};

struct binary_wheel_probe {
    static void set_next_sequence(binary_wheel& wheel, std::uint64_t sequence) {
        wheel.next_sequence_ = sequence;
    }
    static bool staging(const binary_wheel& wheel) {
        return wheel.stage().position != binary_wheel::closed;
    }
    /// Some of the nodes of a bin of the stage have been filed anew, and some have not.
    static bool entered_in_stage(const binary_wheel& wheel) {
        return wheel.stage().entered() != detail::bit_bins::none;
    }
    static bool entered_in_time(const binary_wheel& wheel) {
        return wheel.time().entered() != detail::bit_bins::none;
    }
};

struct hierarchical_wheel_probe {
    static bool staged(const hierarchical_wheel& wheel) {
        return wheel.stage_.first() != hierarchical_wheel::none;
    }
    /// Without what an allocator adds.
    static std::size_t bytes(const hierarchical_wheel& wheel) {
        return sizeof wheel + sizeof(detail::striped_list) *
                                  (wheel.time_.shape().slots() + wheel.stage_.shape().slots());
    }
};

} // namespace pawl::time

using pawl::time::binary_wheel_probe;
using pawl::time::expire_result;
using pawl::time::geometry;
using pawl::time::growing_wheel;
using pawl::time::growing_wheel_probe;
using pawl::time::hierarchical_wheel_probe;
using pawl::time::tick;
using pawl::time::timer_node;
using pawl_test::ordered_map_backend;

using indices = std::vector<std::size_t>;

static_assert(pawl::time::backend<growing_wheel>);
static_assert(!std::is_move_constructible_v<growing_wheel>);
static_assert(sizeof(void*) != 8 || sizeof(growing_wheel) <= 1228, "1.2 KiB");
static_assert(std::is_nothrow_constructible_v<growing_wheel, tick>);
static_assert(noexcept(std::declval<growing_wheel&>().grow(std::declval<growing_wheel::room>())));

namespace {

constexpr std::uint64_t never = tick::never().count();

// A plain function that says nothing as long as all is well: it is called millions of times.
void check(bool holds, int line = __builtin_LINE()) {
    if (!holds)
        BOOST_FAIL("line " << line);
}

indices ascending(std::size_t first, std::size_t end) {
    indices result(end - first);
    std::iota(result.begin(), result.end(), first);
    return result;
}
indices ascending(std::size_t count) { return ascending(0, count); }

/// A wheel and the oracle. Each call is made on both, with twin nodes.
struct pair {
    using detached = growing_wheel::detached;

    explicit pair(std::size_t count = 2000, std::uint64_t start = 0)
        : nodes(count), twins(count), dues(count), wheel(tick{start}), oracle({}, wheel.now()) {
        for (std::size_t i = 0; i != count; ++i) {
            nodes[i].set_user(user(i));
            twins[i].set_user(user(i));
        }
    }

    static unsigned user(std::size_t node) { return static_cast<unsigned>(node % 16); }
    std::size_t index(const timer_node& node) const {
        return static_cast<std::size_t>(&node - nodes.data());
    }

    void insert(std::size_t node, std::uint64_t due) {
        dues[node] = due;
        wheel.insert(nodes[node], tick{due});
        oracle.insert(twins[node], tick{due});
    }
    /// insert(), asking as an owner does. Whether it has grown.
    bool insert_and_let_grow(std::size_t node, std::uint64_t due) {
        const bool wanted = wheel.wants_to_grow();
        if (wanted)
            grow();
        insert(node, due);
        return wanted;
    }
    void refile(std::size_t node) {
        wheel.refile(nodes[node]);
        oracle.refile(twins[node]);
    }
    void rearm(std::size_t node, std::uint64_t due) {
        dues[node] = due;
        wheel.rearm(nodes[node], tick{due});
        oracle.rearm(twins[node], tick{due});
    }
    void erase(std::size_t node) {
        wheel.erase(nodes[node]);
        check(!nodes[node].filed());
        oracle.erase(twins[node]);
    }
    void erase_all() {
        while (timer_node* const node = wheel.any())
            erase(index(*node));
        check(wheel.empty() && oracle.empty());
        wheel.invariant();
    }
    void move(std::size_t from, std::size_t to) {
        dues[to] = dues[from];
        wheel.move_node(nodes[from], nodes[to]);
        oracle.move_node(twins[from], twins[to]);
        check(!nodes[from].filed() && nodes[to].filed());
        nodes[from].set_user(user(from));
        check(nodes[to].user() == user(from));
        nodes[to].set_user(user(to));
        twins[to].set_user(user(to));
    }

    /// Has the wheel grow, of which nothing must be seen.
    void grow(int line = __builtin_LINE()) {
        check(wheel.may_grow(), line);
        const tick now = wheel.now();
        const auto fields = [this] {
            std::vector<std::tuple<bool, tick, std::uint64_t, unsigned>> all;
            for (const timer_node& node : nodes)
                all.emplace_back(node.filed(), node.due, node.order(), node.user());
            return all;
        };
        const auto before = fields();

        wheel.grow(growing_wheel::make_room());

        wheel.invariant();
        check(growing_wheel_probe::grown(wheel), line);
        check(!wheel.may_grow() && !wheel.wants_to_grow(), line);
        check(wheel.now() == now, line);
        check(fields() == before, line);
        same(line);
    }

    /// Whatever can be asked at any time.
    void same(int line = __builtin_LINE()) const {
        check(wheel.size() == oracle.size() && wheel.empty() == oracle.empty(), line);
        check(wheel.next_wake() >= wheel.now() && wheel.next_wake() <= oracle.next_wake(), line);
        check((wheel.any() == nullptr) == wheel.empty(), line);
    }

    /// One call of expire() with room for `room`; its nodes are added to `emitted`.
    bool expire(std::uint64_t now, std::size_t room, indices& emitted) {
        std::vector<timer_node*> out(room);
        std::vector<timer_node*> wanted(room);
        const tick before = wheel.now();
        const expire_result result = wheel.expire(tick{now}, out);
        const expire_result other =
            oracle.expire(tick{now}, std::span(wanted).first(result.emitted));
        check(other.emitted == result.emitted);
        check(result.more || !other.more);
        check(wheel.now() <= oracle.next_wake());
        oracle.follow(wheel.now()); // how far an incomplete call has come is not promised

        indices got;
        indices expected;
        std::ptrdiff_t late = 0;
        for (std::size_t i = 0; i != result.emitted; ++i) {
            const std::size_t node = index(*out[i]);
            check(!out[i]->filed() && out[i]->due == tick{dues[node]});
            check(out[i]->user() == user(node));
            check(out[i]->due <= std::max(tick{now}, before));
            late += out[i]->due <= before ? 1 : 0;
            got.push_back(node);
            expected.push_back(static_cast<std::size_t>(wanted[i] - twins.data()));
        }
        if (got != expected) { // then late-comers were sorted by their due ticks, as they may be
            std::sort(expected.begin(), expected.begin() + late, [this](auto a, auto b) {
                return std::tuple(dues[a], nodes[a].order()) <
                       std::tuple(dues[b], nodes[b].order());
            });
            check(got == expected);
        }
        emitted.insert(emitted.end(), got.begin(), got.end());
        same();
        return result.more;
    }

    /// Calls expire(now) until nothing is left.
    indices expire_all(std::uint64_t now, std::size_t room = 64) {
        indices emitted;
        // A node may be moved for each bit of its due tick and of its start before it is out.
        const std::size_t most = 130 * (wheel.size() + 1);
        for (std::size_t calls = 0; expire(now, room, emitted); ++calls) {
            check(calls != most);
            if (calls % 16 == 0)
                wheel.invariant();
        }
        wheel.invariant();
        return emitted;
    }

    /// Empties a set; the oracle is told. Answers the indices in ascending order: in which order
    /// the set is emptied is not promised.
    indices pop_all(detached& set) {
        indices popped;
        while (timer_node* const node = set.pop()) {
            check(!node->filed() && node->due == tick{dues[index(*node)]});
            check(node->user() == user(index(*node)));
            popped.push_back(index(*node));
            oracle.erase(twins[popped.back()]);
        }
        std::sort(popped.begin(), popped.end());
        return popped;
    }

    std::vector<timer_node> nodes;
    std::vector<timer_node> twins; // the oracle's
    std::vector<std::uint64_t> dues;
    growing_wheel wheel;
    ordered_map_backend oracle;
};

/// A detached set of each.
struct sets {
    explicit sets(pair& from) : wheel(from.wheel), oracle(from.oracle) {}
    void take(pair& from) {
        from.wheel.detach_all(wheel);
        from.oracle.detach_all(oracle);
        check(from.wheel.empty() && from.wheel.next_wake() == tick::never());
        from.wheel.invariant();
    }
    growing_wheel::detached wheel;
    ordered_map_backend::detached oracle;
};

constexpr std::uint64_t position = 1000;
constexpr std::uint64_t crowded = 1046; // 0b100'0001'0110: several moves away from there
constexpr std::uint64_t much_later = std::uint64_t{1} << 40;

/// Nodes of every kind, in a random order of starts.
void file_all_kinds(pair& both, std::size_t count) {
    std::mt19937_64 random(7);
    check(both.expire_all(position).empty());
    for (std::size_t i = 0; i != count; ++i) {
        switch (random() % 16) {
        case 0:
            both.insert(i, never);
            break;
        case 1: // lazily re-armed: stays where it is
            both.insert(i, 1030);
            both.rearm(i, crowded + random() % 3000);
            break;
        case 2:
            both.insert(i, 1030);
            both.rearm(i, never);
            break;
        case 3: // earlier, within what it was filed in, and into another
            both.insert(i, 5000);
            both.rearm(i, 4500);
            break;
        case 4:
            both.insert(i, 5000);
            both.rearm(i, crowded);
            break;
        case 5:
            both.insert(i, position - random() % 50);
            break;
        case 6: // was due, and is no more
            both.insert(i, position);
            both.rearm(i, crowded + 1);
            break;
        case 7:
            both.insert(i, position + random() % 100);
            break;
        case 8:
            both.insert(i, random() % much_later);
            break;
        case 9: // was never due
            both.insert(i, never);
            both.rearm(i, crowded);
            break;
        default:
            both.insert(i, crowded);
        }
    }
    both.wheel.invariant();
    both.same();
}

/// Expires all that ever will be, in several visits, and ends with an empty wheel.
void finish(pair& both, std::size_t room) {
    for (const std::uint64_t now : {crowded - 1, crowded, crowded + 1, std::uint64_t{4000},
                                    std::uint64_t{4500}, much_later, never})
        (void)both.expire_all(now, room);
    check(both.wheel.next_wake() == tick::never());
    for (const timer_node& node : both.nodes)
        check(!node.filed() || node.due == tick::never());
    both.erase_all();
}

} // namespace

// --- when ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(it_wants_to_grow_with_256_to_1024_nodes_and_with_no_other_number) {
    pair both(1'100);
    const auto as_it_should = [&] {
        const std::size_t size = both.wheel.size();
        return both.wheel.may_grow() && both.wheel.wants_to_grow() == (size >= 256 && size <= 1024);
    };

    BOOST_TEST(as_it_should());
    for (std::size_t i = 0; i != 1'100; ++i) {
        both.insert(i, i * i);
        BOOST_TEST(as_it_should());
    }
    for (std::size_t i = 0; i != 1'100; ++i) {
        both.erase(i);
        BOOST_TEST(as_it_should());
    }
}

BOOST_AUTO_TEST_CASE(once_it_has_grown_it_wants_nothing_more) {
    pair both(300);
    both.insert(0, 7);
    both.grow();

    for (std::size_t i = 1; i != 300; ++i) {
        both.insert(i, i * i);
        BOOST_TEST((!both.wheel.wants_to_grow() && !both.wheel.may_grow()));
    }
    for (std::size_t i = 0; i != 300; ++i) {
        both.erase(i);
        BOOST_TEST((!both.wheel.wants_to_grow() && !both.wheel.may_grow()));
    }
}

BOOST_AUTO_TEST_CASE(an_owner_who_asks_before_each_node_has_it_grow_once_with_256) {
    pair both;
    indices grew;
    for (std::size_t i = 0; i != 2000; ++i) {
        if (both.insert_and_let_grow(i, 100 + i * 7 % 1000))
            grew.push_back(i);
    }

    BOOST_TEST(grew == indices{256});
    BOOST_TEST(both.expire_all(2000, 256).size() == 2000U);
}

// It is not moved in one go, since that would take long. And not for long, since nothing is lost.
BOOST_AUTO_TEST_CASE(a_wheel_that_has_missed_its_time_works_and_wants_to_grow_when_it_is_smaller) {
    pair both(1800);
    std::optional<sets> set(std::in_place, both);
    for (std::size_t i = 0; i != 10; ++i)
        both.insert(i, 5);
    set->take(both);
    for (std::size_t i = 100; i != 1800; ++i) {
        BOOST_TEST(!both.insert_and_let_grow(i, i)); // a set is being drained
    }
    BOOST_TEST(both.pop_all(set->wheel) == ascending(10));
    BOOST_TEST(both.wheel.may_grow());
    BOOST_TEST(!both.wheel.wants_to_grow());

    BOOST_TEST(both.expire_all(774) == ascending(100, 775));
    BOOST_TEST(both.wheel.size() == 1025U);
    BOOST_TEST(!both.wheel.wants_to_grow());
    BOOST_TEST(both.expire_all(775) == indices{775});
    BOOST_TEST(both.wheel.wants_to_grow());
    BOOST_TEST(both.insert_and_let_grow(0, 2000));

    BOOST_TEST(both.expire_all(1999) == ascending(776, 1800));
    BOOST_TEST(both.expire_all(2000) == indices{0});
}

BOOST_AUTO_TEST_CASE(without_room_it_stays_as_it_is_and_wants_to_grow_with_one_node_more) {
    pair both(300);
    both.wheel.grow(nullptr); // too early to matter
    for (std::size_t i = 0; i != 256; ++i) {
        BOOST_TEST(!both.wheel.wants_to_grow());
        both.insert(i, i);
    }
    BOOST_TEST(both.wheel.wants_to_grow());

    both.wheel.grow(nullptr);

    BOOST_TEST((both.wheel.may_grow() && !both.wheel.wants_to_grow()));
    both.erase(0);
    both.insert(0, 1000);
    BOOST_TEST(!both.wheel.wants_to_grow());
    BOOST_TEST(both.insert_and_let_grow(256, 1001) == false);
    BOOST_TEST(both.wheel.wants_to_grow());
    BOOST_TEST(both.insert_and_let_grow(257, 1002));
    BOOST_TEST(both.expire_all(999) == ascending(1, 256));
    BOOST_TEST(both.expire_all(1002) == (indices{0, 256, 257}));
}

BOOST_AUTO_TEST_CASE(it_may_grow_with_more_nodes_than_it_wants_to) {
    pair both;
    for (std::size_t i = 0; i != 2000; ++i)
        both.insert(i, i / 10);

    both.grow();

    BOOST_TEST(both.expire_all(1000, 100) == ascending(2000));
}

// --- detached sets: when -------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(it_does_not_grow_while_a_set_has_nodes_and_may_when_that_is_popped_empty) {
    pair both;
    for (std::size_t i = 0; i != 300; ++i)
        both.insert(i, i * 10);
    sets set(both);
    BOOST_TEST(both.wheel.wants_to_grow()); // a set that has nothing is no obstacle
    set.take(both);
    for (std::size_t i = 300; i != 600; ++i)
        both.insert(i, i * 10);

    for (int left = 300; left != 0; --left) {
        BOOST_TEST((!both.wheel.may_grow() && !both.wheel.wants_to_grow()));
        timer_node* const node = set.wheel.pop();
        BOOST_REQUIRE(node != nullptr);
        both.oracle.erase(both.twins[both.index(*node)]);
    }
    BOOST_TEST(!both.wheel.may_grow()); // nobody has said that there is no more
    BOOST_TEST(set.wheel.pop() == nullptr);

    BOOST_TEST((both.wheel.may_grow() && both.wheel.wants_to_grow()));
    BOOST_TEST(set.wheel.pop() == nullptr); // is not counted again
    BOOST_TEST((both.wheel.may_grow() && both.wheel.wants_to_grow()));
    both.grow();
    BOOST_TEST(both.expire_all(6000) == ascending(300, 600));
}

BOOST_AUTO_TEST_CASE(it_may_grow_when_a_set_was_destroyed_with_nodes_in_it) {
    pair both;
    {
        growing_wheel::detached set(both.wheel);
        for (std::size_t i = 0; i != 300; ++i)
            both.wheel.insert(both.nodes[i], tick{i});
        both.wheel.detach_all(set);
        BOOST_TEST(!both.wheel.may_grow());
    }
    BOOST_TEST(both.wheel.may_grow());
    for (std::size_t i = 0; i != 300; ++i) {
        BOOST_TEST(!both.nodes[i].filed());
        both.insert(i, 7);
    }
    BOOST_TEST(both.wheel.wants_to_grow());
    both.grow();
    BOOST_TEST(both.expire_all(7) == ascending(300));
}

BOOST_AUTO_TEST_CASE(a_set_that_was_never_filled_is_no_obstacle) {
    pair both;
    const growing_wheel::detached unused(both.wheel);
    {
        growing_wheel::detached gone(both.wheel);
        BOOST_TEST(gone.pop() == nullptr);
    }
    BOOST_TEST(both.wheel.may_grow());
    both.grow();
    both.insert(0, 1);
    BOOST_TEST(both.expire_all(1) == ascending(1));
}

BOOST_AUTO_TEST_CASE(a_set_of_an_empty_wheel_is_an_obstacle_until_it_has_said_so) {
    pair both;
    sets set(both);
    set.take(both);
    BOOST_TEST(!both.wheel.may_grow());
    BOOST_TEST(set.wheel.pop() == nullptr);
    BOOST_TEST(both.wheel.may_grow());
}

BOOST_AUTO_TEST_CASE(it_may_grow_when_the_last_of_several_sets_is_empty) {
    pair both;
    std::array<std::unique_ptr<sets>, 3> set;
    for (std::size_t i = 0; i != set.size(); ++i) {
        both.insert(i, 10 * i);
        set[i] = std::make_unique<sets>(both);
        set[i]->take(both);
    }

    BOOST_TEST(!both.wheel.may_grow());
    BOOST_TEST(both.pop_all(set[1]->wheel) == indices{1});
    BOOST_TEST(!both.wheel.may_grow());
    both.insert(1, 17);
    set[1]->take(both); // again
    BOOST_TEST(both.pop_all(set[0]->wheel) == indices{0});
    BOOST_TEST(!both.wheel.may_grow());
    BOOST_TEST(both.pop_all(set[2]->wheel) == indices{2});
    BOOST_TEST(!both.wheel.may_grow());
    BOOST_TEST(both.pop_all(set[1]->wheel) == indices{1});
    BOOST_TEST(both.wheel.may_grow());
}

// --- detached sets: what -------------------------------------------------------------------------

namespace {

/// Takes nodes out of two sets in every way there is, while others are filed in the wheel.
void use_two_sets(pair& both) {
    sets first(both);
    sets second(both);
    const auto no_due = [](std::size_t i) { return i % 10 == 9 || i % 20 == 6; };
    for (std::size_t i = 0; i != 100; ++i)
        both.insert(i, no_due(i) ? never : 1000 + i * i);
    first.take(both);
    for (std::size_t i = 100; i != 200; ++i)
        both.insert(i, no_due(i) ? never : 1000 + i);
    second.take(both);
    for (std::size_t i = 200; i != 300; ++i)
        both.insert(i, 2000);

    indices left[2];
    indices back;
    for (std::size_t i = 0; i != 200; ++i) {
        switch (i % 5) {
        case 0:
            both.erase(i);
            break;
        case 1: // back into the wheel, for the tick for which it was
            both.rearm(i, both.dues[i]);
            back.push_back(i);
            break;
        case 2: // the wheel cannot take it for one that may stay where it is
            both.rearm(i, 3000);
            back.push_back(i);
            break;
        case 3:
            both.move(i, i + 1000);
            left[i / 100].push_back(i + 1000);
            break;
        default:
            left[i / 100].push_back(i);
        }
        if (i % 20 == 0)
            both.wheel.invariant();
    }
    both.same();
    check(both.wheel.size() == 100 + back.size());
    for (indices& each : left)
        std::sort(each.begin(), each.end());

    indices late; // by turns, the second one first
    indices early;
    for (int i = 0; i != 10; ++i) {
        for (auto* const set : {&second, &first}) {
            timer_node* const node = set->wheel.pop();
            check(node != nullptr);
            (set == &first ? early : late).push_back(both.index(*node));
            both.oracle.erase(both.twins[both.index(*node)]);
        }
    }
    for (const std::size_t i : both.pop_all(first.wheel))
        early.push_back(i);
    for (const std::size_t i : both.pop_all(second.wheel))
        late.push_back(i);
    std::sort(early.begin(), early.end());
    std::sort(late.begin(), late.end());
    BOOST_TEST(early == left[0]);
    BOOST_TEST(late == left[1]);
    both.wheel.invariant();
    both.same();
    BOOST_TEST(both.wheel.size() == 100 + back.size());
}

} // namespace

BOOST_AUTO_TEST_CASE(nodes_of_two_sets_can_be_erased_moved_and_rearmed_before_it_grows) {
    pair both;
    use_two_sets(both);

    BOOST_TEST(both.wheel.may_grow());
    both.grow();

    // Of the first 100, 1, 11, 16, 21 and 31 have come back for such a tick.
    BOOST_TEST(both.expire_all(1999, 16).size() == 5U + 15U);
    BOOST_TEST(both.expire_all(2000, 16).size() == 100U);
    finish(both, 16);
}

BOOST_AUTO_TEST_CASE(nodes_of_two_sets_can_be_erased_moved_and_rearmed_after_it_has_grown) {
    pair both;
    both.insert(500, 1);
    both.grow();
    BOOST_TEST(both.expire_all(1) == indices{500});

    use_two_sets(both);
    finish(both, 16);

    use_two_sets(both); // whatever was marked as in use has been given back
    finish(both, 1);
}

BOOST_AUTO_TEST_CASE(one_set_serves_before_and_after_growth) {
    pair both;
    sets set(both);
    for (int round = 0; round != 6; ++round) {
        for (std::size_t i = 0; i != 100; ++i)
            both.insert(i, both.wheel.now().count() + i);
        both.erase(7);
        set.take(both);
        BOOST_TEST(both.wheel.may_grow() == false);
        both.erase(8);
        BOOST_TEST(both.pop_all(set.wheel).size() == 98U);
        BOOST_TEST(set.wheel.pop() == nullptr);
        both.wheel.invariant();
        if (round == 2)
            both.grow();
    }
}

BOOST_AUTO_TEST_CASE(a_set_of_a_grown_wheel_that_vanishes_lets_go_of_its_nodes) {
    pair both;
    both.grow();
    {
        growing_wheel::detached set(both.wheel);
        for (std::size_t i = 0; i != 100; ++i)
            both.wheel.insert(both.nodes[i], tick{i * i});
        both.wheel.detach_all(set);
        BOOST_TEST(both.nodes[50].filed());
    }
    for (std::size_t i = 0; i != 100; ++i)
        BOOST_TEST(!both.nodes[i].filed());
}

BOOST_DATA_TEST_CASE(what_was_due_and_in_steps_is_detached_before_and_after_growth,
                     boost::unit_test::data::make({false, true}), grown) {
    pair both;
    if (grown)
        both.grow();
    file_all_kinds(both, 600);
    indices emitted;
    while (emitted.size() < 100)
        check(both.expire(crowded, 7, emitted));
    sets set(both);
    set.take(both);

    BOOST_TEST(both.pop_all(set.wheel).size() == 600 - emitted.size());
    both.insert(0, crowded + 7);
    BOOST_TEST((both.wheel.next_wake() == tick{crowded + 7}));
    BOOST_TEST(both.expire_all(crowded + 6).empty());
    BOOST_TEST(both.expire_all(crowded + 7) == ascending(1));
}

// --- growth in every state -----------------------------------------------------------------------

// After each number of calls of expire(), whatever these have left open.
BOOST_DATA_TEST_CASE(it_may_grow_after_any_call_of_expire_and_nobody_sees_a_difference,
                     boost::unit_test::data::make({1, 2, 3, 7, 16, 64, 300}), some) {
    const auto room = static_cast<std::size_t>(some);
    const std::size_t stride = room < 3 ? 7 : 1;
    bool staging = false;
    bool stage_entered = false;
    bool time_entered = false;
    bool incomplete = true;
    for (std::size_t calls = 0; incomplete; calls += stride) {
        pair both(300);
        file_all_kinds(both, 200);
        std::size_t next = 200;
        indices emitted;
        for (std::size_t i = 0; i != calls && incomplete; ++i)
            incomplete = both.expire(crowded, room, emitted);

        const auto& small = growing_wheel_probe::small(both.wheel);
        staging |= binary_wheel_probe::staging(small);
        stage_entered |= binary_wheel_probe::entered_in_stage(small);
        time_entered |= binary_wheel_probe::entered_in_time(small);
        both.grow();

        // What is filed now comes behind what was filed then.
        for (; next != 220; ++next) {
            both.insert(next, crowded);
            (void)both.expire(crowded, room, emitted);
            if (both.nodes[next].filed())
                both.rearm(next, next % 2 == 0 ? crowded : crowded + 3);
        }
        both.wheel.invariant();
        finish(both, room);
    }

    // Otherwise nothing was shown.
    BOOST_TEST(staging == (room < 200));
    BOOST_TEST(stage_entered == (room < 200));
    BOOST_TEST(time_entered == (room < 200));
}

BOOST_DATA_TEST_CASE(the_rest_of_a_tick_comes_in_start_order_and_before_what_is_filed_later,
                     boost::unit_test::data::make({1, 5, 32}) *
                         boost::unit_test::data::make({1, 100, 200}),
                     some, out_before) {
    const auto room = static_cast<std::size_t>(some);
    pair both;
    for (std::size_t i = 0; i != 256; ++i)
        both.insert(i, 5000);
    indices emitted;
    while (emitted.size() < static_cast<std::size_t>(out_before))
        (void)both.expire(5000, room, emitted);
    BOOST_TEST(emitted == ascending(emitted.size()));
    BOOST_TEST(binary_wheel_probe::staging(growing_wheel_probe::small(both.wheel)));

    both.grow();

    for (std::size_t i = 256; i != 300; ++i) {
        both.insert(i, 5000);
        (void)both.expire(5000, room, emitted);
    }
    for (const std::size_t i : both.expire_all(5000, room))
        emitted.push_back(i);
    BOOST_TEST(emitted == ascending(300));
}

BOOST_AUTO_TEST_CASE(it_may_grow_in_the_middle_of_a_bin) {
    pair both;
    for (std::size_t i = 0; i != 200; ++i)
        both.insert(i, 1024 + i);
    indices emitted;
    BOOST_TEST(both.expire(1100, 16, emitted)); // 16 of them are moved
    BOOST_TEST(binary_wheel_probe::entered_in_time(growing_wheel_probe::small(both.wheel)));
    BOOST_TEST(emitted.empty());

    both.grow();

    BOOST_TEST(both.expire_all(1100, 16) == ascending(77));
    BOOST_TEST(both.expire_all(2000, 16) == ascending(77, 200));
}

BOOST_AUTO_TEST_CASE(what_was_lazily_rearmed_comes_at_its_new_tick_and_not_before) {
    pair both;
    for (std::size_t i = 0; i != 200; ++i)
        both.insert(i, 100);
    for (std::size_t i = 0; i != 200; ++i)
        both.rearm(i, i % 2 == 0 ? 1'000'000 + i : 64 + i / 4); // later; earlier, some of it

    both.grow();

    BOOST_TEST((both.wheel.next_wake() == tick{64}));
    BOOST_TEST(both.expire_all(63).empty());
    for (std::uint64_t now = 64; now != 114; ++now)
        BOOST_TEST(both.expire_all(now).size() == 2U);
    BOOST_TEST((both.wheel.next_wake() > tick{113}));
    for (std::size_t i = 0; i != 200; i += 2) {
        BOOST_TEST(both.expire_all(1'000'000 + i - 1).empty());
        BOOST_TEST(both.expire_all(1'000'000 + i) == indices{i});
    }
}

BOOST_AUTO_TEST_CASE(what_is_never_due_stays_so_and_can_be_rearmed) {
    pair both;
    for (std::size_t i = 0; i != 200; ++i) {
        both.insert(i, i % 2 == 0 ? never : 20);
        if (i % 2 != 0)
            both.rearm(i, never); // stays in a bin of time
    }

    both.grow();

    BOOST_TEST((both.wheel.next_wake() == tick::never()));
    BOOST_TEST(both.expire_all(never).empty());
    BOOST_TEST((both.wheel.next_wake() == tick::never()));
    for (std::size_t i = 0; i != 200; ++i)
        both.rearm(i, never - 1);
    BOOST_TEST(both.expire_all(never) == ascending(200));
}

BOOST_AUTO_TEST_CASE(what_is_overdue_is_due_at_once) {
    pair both;
    BOOST_TEST(both.expire_all(500).empty());
    for (std::size_t i = 0; i != 10; ++i)
        both.insert(i, 490 + i);

    both.grow();

    BOOST_TEST((both.wheel.next_wake() == tick{500}));
    both.insert(10, 500);
    both.insert(11, 480);
    indices expected{11};
    for (std::size_t i = 0; i != 11; ++i)
        expected.push_back(i);
    BOOST_TEST(both.expire_all(500) == expected);
}

BOOST_DATA_TEST_CASE(an_empty_wheel_may_grow_at_any_position,
                     boost::unit_test::data::make({std::uint64_t{0}, std::uint64_t{1},
                                                   std::uint64_t{63}, std::uint64_t{1} << 44,
                                                   std::uint64_t{1} << 63, never - 3, never - 1}),
                     start) {
    pair both(10, start);
    both.grow();
    BOOST_TEST((both.wheel.now() == tick{start}));
    BOOST_TEST((both.wheel.next_wake() == tick::never()));

    both.insert(0, never);
    both.insert(1, start);
    both.insert(2, never - 1);
    both.insert(3, start == 0 ? 0 : start - 1);

    BOOST_TEST((both.wheel.next_wake() == tick{start}));
    BOOST_TEST(both.expire_all(never).size() == 3U);
    BOOST_TEST((both.wheel.now() == tick{never - 1}));
    BOOST_TEST(both.nodes[0].filed());
}

BOOST_DATA_TEST_CASE(a_wheel_may_grow_at_the_end_of_time,
                     boost::unit_test::data::make({never - 1, never - 2, never - 40, never}),
                     start) {
    pair both(100, start);
    for (std::size_t i = 0; i != 60; ++i)
        both.insert(i, i % 4 == 0 ? never : never - 1 - i % 4 * 7);

    both.grow();

    for (std::size_t i = 60; i != 80; ++i)
        both.insert(i, never - 1 - i % 3);
    indices emitted;
    for (const std::uint64_t now : {never - 20, never - 8, never - 2, never - 1, never}) {
        for (const std::size_t i : both.expire_all(now, 16))
            emitted.push_back(i);
    }
    BOOST_TEST(emitted.size() == 65U);
    BOOST_TEST((both.wheel.now() == tick{never - 1}));
    BOOST_TEST((both.wheel.next_wake() == tick::never()));
    both.erase_all();
}

// Before, in the middle of, and after the start whose number a node cannot hold.
BOOST_DATA_TEST_CASE(start_order_survives_the_wrap_of_the_order_field_and_growth_about_it,
                     boost::unit_test::data::make({50, 99, 100, 101, 150}) *
                         boost::unit_test::data::make({16, 300}),
                     started, some) {
    const auto room = static_cast<std::size_t>(some);
    pair both;
    binary_wheel_probe::set_next_sequence(growing_wheel_probe::small(both.wheel),
                                          (std::uint64_t{3} << 44) - 100);
    for (std::size_t i = 0; i != 200; ++i) {
        if (i == static_cast<std::size_t>(started))
            both.grow();
        both.insert(i, 5000);
    }

    BOOST_TEST((both.nodes[99].order() == (std::uint64_t{1} << 44) - 1));
    BOOST_TEST((both.nodes[100].order() == 0U));
    BOOST_TEST(both.expire_all(5000, room) == ascending(200));
}

BOOST_AUTO_TEST_CASE(starts_are_counted_on) {
    pair both;
    for (std::size_t i = 0; i != 20; ++i)
        both.insert(i, 10);
    both.rearm(3, 10);

    both.grow();
    both.insert(20, 10);
    both.rearm(4, 10);

    BOOST_TEST(both.nodes[3].order() == 20U);
    BOOST_TEST(both.nodes[20].order() == 21U);
    BOOST_TEST(both.nodes[4].order() == 22U);
    BOOST_TEST(both.expire_all(10) ==
               (indices{0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 3, 20, 4}));
}

BOOST_AUTO_TEST_CASE(nodes_can_be_moved_and_keep_the_owners_bits_before_and_after_growth) {
    pair both(900);
    for (std::size_t i = 0; i != 200; ++i)
        both.insert(i, 1000 + i % 7);
    for (std::size_t i = 0; i != 200; i += 2)
        both.move(i, i + 300);

    both.grow();

    for (std::size_t i = 0; i != 200; ++i)
        both.move(i % 2 == 0 ? i + 300 : i, i + 600);
    both.wheel.move_node(both.nodes[0], both.nodes[1]); // not filed: nothing but a copy
    both.wheel.invariant();
    for (std::size_t i = 600; i != 800; i += 20)
        both.rearm(i, 2000);
    BOOST_TEST(both.expire_all(1999, 16).size() == 190U);
    BOOST_TEST(both.expire_all(2000, 16).size() == 10U);
}

BOOST_AUTO_TEST_CASE(the_position_can_be_set_back_before_and_after_growth) {
    pair both(400, 10'000);
    const auto set_back = [&](std::uint64_t now) {
        sets set(both);
        set.take(both);
        both.wheel.rewind(tick{now});
        both.oracle.rewind(tick{now});
        BOOST_TEST((both.wheel.now() == tick{now}));
        const indices popped = both.pop_all(set.wheel); // ascending: the order of the first starts
        for (const std::size_t i : popped)
            both.refile(i);
        both.wheel.invariant();
        return popped.size();
    };
    for (std::size_t i = 0; i != 200; ++i)
        both.insert(i, 10'000 + i / 20 * 100);
    for (std::size_t i = 0; i < 200; i += 9)
        both.rearm(i, both.dues[i]);

    BOOST_TEST(set_back(400) == 200U);
    both.grow();
    BOOST_TEST((both.wheel.now() == tick{400}));
    BOOST_TEST(both.expire_all(10'100, 16).size() == 40U);
    BOOST_TEST(set_back(7) == 160U);
    BOOST_TEST((both.wheel.now() == tick{7}));

    BOOST_TEST(both.expire_all(10'199).empty());
    BOOST_TEST(both.expire_all(10'200, 16).size() == 20U);
    BOOST_TEST(set_back(20'000) == 140U);
    BOOST_TEST(both.expire_all(20'000, 300).size() == 140U);
}

BOOST_AUTO_TEST_CASE(an_empty_grown_wheel_can_be_set_to_any_position) {
    pair both(10);
    both.grow();
    for (const std::uint64_t now : {std::uint64_t{500}, std::uint64_t{3}, never}) {
        both.wheel.rewind(tick{now});
        both.oracle.rewind(tick{std::min(now, never - 1)});
        BOOST_TEST((both.wheel.now() == tick{std::min(now, never - 1)}));
        both.insert(0, now);
        both.wheel.invariant();
        both.erase(0);
    }
}

BOOST_AUTO_TEST_CASE(any_finds_every_node_before_and_after_growth) {
    for (const bool grown : {false, true}) {
        pair both;
        file_all_kinds(both, 300);
        indices emitted;
        while (emitted.empty())
            (void)both.expire(crowded, 5, emitted);
        if (grown)
            both.grow();

        std::size_t found = 0;
        for (; const timer_node* const node = both.wheel.any(); ++found)
            both.erase(both.index(*node));

        BOOST_TEST(found == 300 - emitted.size());
        BOOST_TEST(both.wheel.empty());
        both.wheel.invariant();
    }
}

BOOST_AUTO_TEST_CASE(a_lone_timer_is_waited_for_exactly_before_and_after_growth) {
    for (std::uint64_t start = 0; start < 100'000; start += 997) {
        for (const std::uint64_t delay : {1U, 63U, 64U, 30'000U, 123'456'789U}) {
            pair both(2, start);
            both.insert(0, start + delay);
            BOOST_REQUIRE((both.wheel.next_wake() == tick{start + delay}));
            both.rearm(0, start + 2 * delay); // stays where it is, and yet
            BOOST_REQUIRE((both.wheel.next_wake() == tick{start + 2 * delay}));
            both.grow();
            BOOST_REQUIRE((both.wheel.next_wake() == tick{start + 2 * delay}));
            both.rearm(0, start + 3 * delay);
            BOOST_REQUIRE((both.wheel.next_wake() == tick{start + 3 * delay}));
            both.rearm(0, start + delay);
            BOOST_REQUIRE((both.wheel.next_wake() == tick{start + delay}));
            BOOST_REQUIRE(both.expire_all(start + delay) == indices{0});
        }
    }
}

// --- the grown wheel -----------------------------------------------------------------------------

// A crowd that was filed in order, and comes down in an odd number of moves, is handed out as it is.
// Any other one is sorted, in the stage, which is as small as the wheel.
BOOST_DATA_TEST_CASE(a_large_crowd_at_one_tick_comes_in_start_order_and_in_bounded_steps,
                     boost::unit_test::data::make({0, 192}) *
                         boost::unit_test::data::make({0100, 0110}),
                     moved, octal) {
    const auto due = static_cast<std::uint64_t>(octal);
    std::vector<timer_node> nodes(100'000);
    growing_wheel wheel;
    for (std::size_t i = 0; i != nodes.size(); ++i) {
        if (i == static_cast<std::size_t>(moved))
            wheel.grow(growing_wheel::make_room());
        wheel.insert(nodes[i], tick{due});
    }
    wheel.invariant();

    std::array<timer_node*, 256> out{};
    std::size_t calls = 0;
    std::size_t emitted = 0;
    bool staged = false;
    for (bool more = true; more; ++calls) {
        const expire_result result = wheel.expire(tick{due}, out);
        more = result.more;
        for (std::size_t i = 0; i != result.emitted; ++i)
            check(out[i] == &nodes[emitted++]);
        staged |= hierarchical_wheel_probe::staged(growing_wheel_probe::large(wheel));
        if (calls % 500 == 0)
            wheel.invariant();
    }

    BOOST_TEST(emitted == nodes.size());
    BOOST_TEST(staged == (moved != 0 || due != 0100));
    // One move for each digit that is not 0, one into the stage, there one for each 3 of 17 bits,
    // and out.
    BOOST_TEST(calls >= 2 * nodes.size() / out.size());
    BOOST_TEST(calls <= (staged ? 10 : 2) * nodes.size() / out.size() + 1);
}

BOOST_AUTO_TEST_CASE(growth_takes_39_KB_and_only_making_room_allocates) {
    std::vector<timer_node> nodes(200);
    std::array<timer_node*, 64> out{};
    growing_wheel wheel;
    growing_wheel::detached set(wheel);
    const auto use = [&] {
        for (std::size_t i = 0; i != 200; ++i)
            wheel.insert(nodes[i], tick{i % 7 == 0 ? 500 : i * i});
        for (int i = 0; i != 20; ++i)
            (void)wheel.expire(tick{600}, out);
        for (std::size_t i = 0; i != 200; i += 10) {
            if (nodes[i].filed())
                wheel.rearm(nodes[i], tick{i * 3});
        }
    };
    const auto drain = [&] {
        wheel.detach_all(set);
        while (set.pop() != nullptr) {
        }
    };
    const std::size_t before = counted_new::calls.load();
    const std::size_t live = counted_new::live.load();
    use();
    BOOST_TEST(counted_new::calls.load() == before);
    {
        const auto unused = growing_wheel::make_room();
        BOOST_TEST(counted_new::live.load() > live);
    }
    BOOST_TEST(counted_new::live.load() == live);

    auto room = growing_wheel::make_room();
    BOOST_TEST(hierarchical_wheel_probe::bytes(*room) > 56'000U);
    BOOST_TEST(hierarchical_wheel_probe::bytes(*room) <= 58'000U);
    const std::size_t made = counted_new::calls.load();
    wheel.grow(std::move(room));
    drain();
    use();
    drain();
    BOOST_TEST(counted_new::calls.load() == made);
    wheel.invariant();
}

// --- random calls --------------------------------------------------------------------------------

namespace {

/// Counts the wheels that have grown.
struct counted_growth : pawl_test::grown_sometime {
    using grown_sometime::grown_sometime;
    ~counted_growth() { grown += growing_wheel_probe::grown(*this) ? 1 : 0; }
    static inline std::size_t grown = 0;
};

} // namespace

// Many short runs, so that it often grows, and with all kinds of things under way.
BOOST_AUTO_TEST_CASE(a_wheel_that_grows_at_some_moment_emits_what_the_oracle_emits) {
    using pawl_test::random_choices;
    random_choices random(pawl_test::seed());
    const std::uint64_t steps = pawl_test::steps(400'000);

    std::size_t runs = 0;
    for (std::uint64_t done = 0; done < steps; ++runs) {
        const std::uint64_t run = 1 + random.below(400);
        const std::size_t timers = 1 + random.below(300);
        pawl_test::backend_lockstep<counted_growth, random_choices> both(random, geometry{},
                                                                         timers);
        for (std::uint64_t i = 0; i != run; ++i)
            both.step();
        both.finish();
        done += run;
    }
    BOOST_TEST_MESSAGE(counted_growth::grown << " of " << runs << " have grown");
    BOOST_TEST(counted_growth::grown >= runs / 2);
}

// --- the invariant -------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(the_invariant_detects_damage_in_the_wheel_that_is_in_use_and_in_the_other) {
    const auto says = [](const char* text) {
        return [text](const std::logic_error& error) {
            return std::string(error.what()).find(text) != std::string::npos;
        };
    };
    std::vector<timer_node> nodes(100);
    growing_wheel wheel;
    for (std::size_t i = 0; i != 50; ++i)
        wheel.insert(nodes[i], tick{100 + i});
    const auto damage = [&](const char* wheel_in_use) {
        const timer_node intact = nodes[20];
        nodes[20].due = tick{5};
        BOOST_CHECK_EXCEPTION(wheel.invariant(), std::logic_error, says("due = 5"));
        BOOST_CHECK_EXCEPTION(wheel.invariant(), std::logic_error, says(wheel_in_use));
        nodes[20] = intact;
        BOOST_CHECK_NO_THROW(wheel.invariant());
    };

    damage("binary_wheel");
    wheel.grow(growing_wheel::make_room());
    damage("hierarchical_wheel");

    auto& left = growing_wheel_probe::small(wheel);
    left.insert(nodes[50], tick{200});
    left.insert(nodes[51], tick{200});
    BOOST_CHECK_EXCEPTION(wheel.invariant(), std::logic_error, says("G1: 2 nodes"));
    left.erase(nodes[50]);
    left.erase(nodes[51]);
    BOOST_CHECK_NO_THROW(wheel.invariant());
}
