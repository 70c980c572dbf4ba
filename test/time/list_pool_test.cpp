// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/detail/time/digit_slots.hpp>

#include "../support/invariants.hpp"

#define BOOST_TEST_MODULE list_pool
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

using pawl::time::timer_node;
using pawl::time::detail::list_pool;
using pawl::time::detail::slot_lists;
using pawl::time::detail::striped_list;

namespace {

std::uint32_t lent(const list_pool& pool) {
    return pawl::detail::invariant_of<list_pool>::lent(pool);
}

void grow(list_pool& pool) {
    list_pool::part part(pool.next_part());
    pool.add(part);
}

} // namespace

BOOST_AUTO_TEST_CASE(it_grows_by_four_lists_four_times_and_then_by_twice_as_many) {
    list_pool pool;
    std::vector<std::uint32_t> sizes{pool.size()};
    for (int i = 0; i != 12; ++i) {
        grow(pool);
        sizes.push_back(pool.size());
    }

    const std::vector<std::uint32_t> expected{0, 4, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 112};
    BOOST_TEST(sizes == expected);
}

BOOST_AUTO_TEST_CASE(each_list_is_lent_once_and_stays_where_it_is_while_the_pool_grows) {
    list_pool pool;
    std::vector<list_pool::index> taken;
    std::vector<const striped_list*> lists;
    std::set<const striped_list*> different;
    while (pool.size() < 1000) {
        grow(pool);
        while (taken.size() != pool.size()) {
            taken.push_back(pool.take());
            lists.push_back(&pool[taken.back()]);
            different.insert(lists.back());
            BOOST_TEST_REQUIRE(lists.back()->empty());
        }
    }

    BOOST_TEST(different.size() == taken.size());
    BOOST_TEST(lent(pool) == taken.size());
    for (std::size_t i = 0; i != taken.size(); ++i)
        BOOST_TEST_REQUIRE(&pool[taken[i]] == lists[i]);
}

BOOST_AUTO_TEST_CASE(it_has_as_many_lists_as_it_says_that_there_can_be_and_refuses_more) {
    list_pool pool;
    while (pool.size() < list_pool::most)
        grow(pool);
    list_pool::index last = list_pool::none;
    for (std::uint32_t i = 0; i != list_pool::most; ++i)
        last = pool.take();
    timer_node node;
    pool[last].push(node, 7);

    grow(pool);

    BOOST_TEST(pool.size() == list_pool::most);
    BOOST_TEST(lent(pool) == list_pool::most);
    BOOST_TEST(pool[last].any() == &node);
}

BOOST_AUTO_TEST_CASE(what_came_back_is_lent_first_the_last_of_them_before_the_others) {
    list_pool pool;
    grow(pool);
    const list_pool::index a = pool.take();
    const list_pool::index b = pool.take();
    pool.put(a);
    pool.put(b);
    BOOST_TEST(lent(pool) == 0U);

    BOOST_TEST(pool.take() == b);
    BOOST_TEST(pool.take() == a);
    BOOST_TEST(lent(pool) == 2U);
}

// Two threads have asked for the size at the same time.
BOOST_AUTO_TEST_CASE(a_part_that_does_not_fit_any_more_is_left_to_who_made_it) {
    list_pool pool;
    for (int i = 0; i != 3; ++i)
        grow(pool);
    list_pool::part first(pool.next_part());
    list_pool::part second(pool.next_part());
    BOOST_TEST(pool.size() == 12U);

    pool.add(first);
    BOOST_TEST(pool.size() == 16U);
    pool.add(second); // four lists instead of eight
    BOOST_TEST(pool.size() == 16U);
    pool.add(first); // has no lists left
    BOOST_TEST(pool.size() == 16U);
    grow(pool);
    BOOST_TEST(pool.size() == 24U);
}

BOOST_AUTO_TEST_CASE(a_slot_has_a_list_while_it_has_a_node) {
    list_pool pool;
    grow(pool);
    slot_lists slots(100, &pool);
    std::vector<timer_node> nodes(5);
    BOOST_TEST(slots.first() == slot_lists::none);

    slots.push(70, nodes[0], 1);
    slots.push(70, nodes[1], 2);
    slots.push(30, nodes[2], 3);
    BOOST_TEST(lent(pool) == 2U);
    BOOST_TEST(slots.first() == 30U);
    BOOST_TEST(slots.after(30) == 70U);
    BOOST_TEST(slots[70].count() == 2U);

    slots.erase(70, nodes[0]);
    BOOST_TEST(slots.occupied(70));
    slots.erase(70, nodes[1]);
    BOOST_TEST(!slots.occupied(70));
    BOOST_TEST(lent(pool) == 1U);

    BOOST_TEST(slots.pop() == &nodes[2]);
    BOOST_TEST(slots.pop() == nullptr);
    BOOST_TEST(slots.first() == slot_lists::none);
    BOOST_TEST(lent(pool) == 0U);
}

BOOST_AUTO_TEST_CASE(a_slot_that_is_walked_in_part_keeps_its_list) {
    list_pool pool;
    grow(pool);
    slot_lists slots(100, &pool);
    std::vector<timer_node> nodes(5);
    for (std::size_t i = 0; i != nodes.size(); ++i)
        slots.push(7, nodes[i], i);
    std::vector<const timer_node*> walked;
    const auto note = [&](timer_node& node) { walked.push_back(&node); };

    slots.walk(7, 3, note);
    BOOST_TEST(slots[7].count() == 2U);
    slots.walk(7, 2, note);

    BOOST_TEST(lent(pool) == 0U);
    BOOST_TEST(!slots.occupied(7));
    const std::vector<const timer_node*> expected{&nodes[4], &nodes[3], &nodes[2], &nodes[1],
                                                  &nodes[0]};
    BOOST_TEST(walked == expected, boost::test_tools::per_element());
}
