// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/time/geometry.hpp>

#define BOOST_TEST_MODULE geometry
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

using pawl::time::geometry;

namespace {

constexpr geometry standard;

constexpr std::size_t level_of_key(const geometry& shape, std::uint64_t key) {
    return shape.level_of(shape.slot(key, 0));
}

/// Level of every tick at every boundary, a - 1, a and a + 1, for each level and slot.
constexpr bool levels_change_at_boundaries(const geometry& shape) {
    std::uint32_t first = 0;
    for (std::size_t level = 1; level != shape.levels(); ++level) {
        first += shape.slots(level - 1);
        for (std::uint64_t digit = 1; digit != shape.slots(level); ++digit) {
            const std::uint64_t a = digit << shape.shift(level);
            if (level_of_key(shape, a) != level || level_of_key(shape, a + 1) != level)
                return false;
            if (level_of_key(shape, a - 1) != (digit == 1 ? level - 1 : level))
                return false;
            if (shape.slot(a, 0) != first + digit)
                return false;
        }
    }
    return true;
}

constexpr bool slots_are_numbered_without_gaps(const geometry& shape) {
    std::uint32_t next = 0;
    for (std::size_t level = 0; level != shape.levels(); ++level) {
        if (shape.level_of(next) != level)
            return false;
        next += shape.slots(level);
        if (shape.level_of(next - 1) != level)
            return false;
    }
    return next == shape.slots();
}

/// begin() and last() bound exactly the keys that slot() puts into a slot.
constexpr bool a_slot_begins_and_ends_where_its_keys_do(const geometry& shape,
                                                        std::uint64_t position) {
    for (std::size_t level = 0; level != shape.levels(); ++level) {
        const std::uint64_t step = std::uint64_t{1} << shape.shift(level);
        const std::uint64_t key = (position | (step - 1)) + 1; // the next boundary of this level
        if (key <= position)
            break;
        const std::uint32_t slot = shape.slot(key, position);
        const std::uint64_t begin = shape.begin(slot, position);
        const std::uint64_t last = shape.last(slot, position);
        if (begin > key || last < key || shape.slot(begin, position) != slot ||
            shape.slot(last, position) != slot || shape.slot(begin - 1, position) == slot)
            return false;
        if (last != ~std::uint64_t{0} && shape.slot(last + 1, position) == slot)
            return false;
    }
    return true;
}

static_assert(standard.levels() == 11 && standard.slots() == 10 * 64 + 16);
static_assert(levels_change_at_boundaries(standard));
static_assert(levels_change_at_boundaries(geometry{4, 8, 5}));
static_assert(slots_are_numbered_without_gaps(standard));
static_assert(slots_are_numbered_without_gaps(geometry{12}));
static_assert(slots_are_numbered_without_gaps(geometry{1}));
static_assert(a_slot_begins_and_ends_where_its_keys_do(standard, 0));
static_assert(a_slot_begins_and_ends_where_its_keys_do(standard, 0x123456789abcdef0));
static_assert(a_slot_begins_and_ends_where_its_keys_do(geometry{3, 7}, (1ULL << 60) - 1));
static_assert(a_slot_begins_and_ends_where_its_keys_do(geometry{1}, ~0ULL - 5));

// The example in the header.
static_assert(geometry({4, 4, 4}).slot(0x123, 0x123) == 0x3);
static_assert(geometry({4, 4, 4}).slot(0x12b, 0x123) == 0xb);
static_assert(geometry({4, 4, 4}).slot(0x1f0, 0x123) == 16 + 0xf);
static_assert(geometry({4, 4, 4}).slot(0x900, 0x123) == 32 + 0x9);

std::string message_of(const std::vector<int>& bits, int width = 64) {
    try {
        const geometry shape(std::span<const int>(bits), width);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "accepted";
}

} // namespace

BOOST_AUTO_TEST_CASE(slots_are_the_same_when_they_are_computed_later) {
    const geometry shape{4, 8, 5};
    BOOST_CHECK(levels_change_at_boundaries(shape));
    BOOST_CHECK(slots_are_numbered_without_gaps(shape));
}

BOOST_AUTO_TEST_CASE(the_last_level_is_repeated_and_the_top_level_trimmed) {
    const geometry shape{8, 6};

    BOOST_TEST(shape.levels() == 11U); // 8, 9 times 6, 2
    BOOST_TEST(shape.slots(0) == 256U);
    BOOST_TEST(shape.slots(1) == 64U);
    BOOST_TEST(shape.slots(9) == 64U);
    BOOST_TEST(shape.slots(10) == 4U);
    BOOST_TEST(shape.shift(10) == 62);
}

BOOST_AUTO_TEST_CASE(the_last_tick_of_all_has_a_slot) {
    for (const geometry& shape : {geometry{}, geometry{1}, geometry{12}, geometry{5, 7, 3}}) {
        BOOST_TEST(shape.slot(~std::uint64_t{0}, 0) == shape.slots() - 1);
        BOOST_TEST(shape.slot(~std::uint64_t{0} - 1, 0) == shape.slots() - 1);
        BOOST_TEST(shape.last(shape.slots() - 1, 0) == ~std::uint64_t{0});
    }
}

BOOST_AUTO_TEST_CASE(a_narrow_key_has_fewer_levels) {
    const geometry shape({6}, 44);

    BOOST_TEST(shape.width() == 44);
    BOOST_TEST(shape.levels() == 8U);
    BOOST_TEST(shape.slots() == 7U * 64 + 4);
}

BOOST_AUTO_TEST_CASE(every_slot_number_fits_into_a_node_several_times) {
    const geometry most{12};

    BOOST_TEST(most.slots() == 5U * 4096 + 16);
    BOOST_TEST(most.slots() < 65536U / 3);
}

BOOST_AUTO_TEST_CASE(a_level_without_bits_or_with_too_many_is_refused_by_name_and_range) {
    for (const std::vector<int>& bits :
         {std::vector<int>{0}, std::vector<int>{6, 13}, std::vector<int>{6, -1, 6}}) {
        const std::string message = message_of(bits);
        BOOST_TEST(message.find("level_bits") != message.npos, message);
        BOOST_TEST(message.find("1 to 12") != message.npos, message);
    }
}

BOOST_AUTO_TEST_CASE(no_level_at_all_is_refused) {
    BOOST_TEST(message_of({}) == "pawl: level_bits: no level, at least 1 is needed");
}

BOOST_AUTO_TEST_CASE(levels_beyond_the_last_bit_are_refused) {
    BOOST_TEST(message_of({12, 12, 12, 12, 12, 4}) == "accepted");
    BOOST_TEST(message_of({12, 12, 12, 12, 12, 12}) == "accepted"); // trimmed
    BOOST_TEST(message_of({12, 12, 12, 12, 12, 12, 1}) ==
               "pawl: level_bits: 7 levels, but the first 6 cover the allowed 64 bits");
}

BOOST_AUTO_TEST_CASE(a_key_of_no_bits_or_too_many_is_refused) {
    BOOST_TEST(message_of({6}, 0) != "accepted");
    BOOST_TEST(message_of({6}, 65) != "accepted");
}
