// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/time/binary_wheel.hpp>

#define BOOST_TEST_MODULE bit_bins
#include <boost/test/unit_test.hpp>

#include <cstdint>

using pawl::time::detail::bit_bins;

namespace {

constexpr std::uint64_t most = ~std::uint64_t{0};

bit_bins at(std::uint64_t position) {
    bit_bins bins;
    bins.restart(position);
    return bins;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_key_is_within_its_bin_and_bins_ascend_as_their_keys_do_G1) {
    for (std::uint64_t position = 0; position != 300; ++position) {
        const bit_bins bins = at(position);
        for (std::uint64_t key = position + 1; key != 300; ++key) {
            const unsigned bin = bins.bin_of(key);
            BOOST_REQUIRE(bins.begin(bin) <= key && key <= bins.last(bin));
            BOOST_REQUIRE(bins.begin(bin) > position);
            BOOST_REQUIRE_LE(bin, bins.bin_of(key + 1));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_key_stays_in_its_bin_until_the_position_enters_it_and_then_goes_down_G2_G3) {
    for (std::uint64_t key = 1; key != 200; ++key) {
        unsigned before = at(0).bin_of(key);
        std::uint64_t begin = at(0).begin(before);
        for (std::uint64_t position = 1; position != key; ++position) {
            const unsigned bin = at(position).bin_of(key);
            if (position < begin) {
                BOOST_REQUIRE_EQUAL(bin, before);
            } else {
                BOOST_REQUIRE_LT(bin, before);
                before = bin;
                begin = at(position).begin(bin);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(the_ends_of_the_line_are_like_any_other_place) {
    BOOST_TEST(at(0).bin_of(most) == 63U);
    BOOST_TEST(at(0).begin(63) == std::uint64_t{1} << 63);
    BOOST_TEST(at(0).last(63) == most);
    BOOST_TEST(at(most - 1).bin_of(most) == 0U);
    BOOST_TEST(at(most - 1).begin(0) == most);
    BOOST_TEST(at((std::uint64_t{1} << 63) - 1).bin_of(std::uint64_t{1} << 63) == 63U);
}

BOOST_AUTO_TEST_CASE(the_entered_bin_is_known_until_it_is_empty) {
    bit_bins bins = at(3);
    bins.occupied = 0b1'1000;
    BOOST_TEST(bins.entered() == bit_bins::none);

    bins.enter(3, 9);
    BOOST_TEST(bins.entered() == 3U);
    bins.occupied = 0b1'0010;
    BOOST_TEST(bins.entered() == bit_bins::none);
}

BOOST_AUTO_TEST_CASE(the_least_key_is_known_below_the_last_bin_that_was_entered_G4) {
    bit_bins bins = at(0);
    bins.note(70);
    bins.note(75);
    BOOST_TEST(bins.least_in(6) == 70U);
    bins.occupied = 0b100'0000;
    bins.enter(6, 64);

    BOOST_TEST(bins.least_in(7) == 128U); // its contents are unknown now
    bins.note(75);
    bins.note(77);
    BOOST_TEST(bins.least_in(3) == 75U);
    BOOST_TEST(bins.least_in(2) == 71U); // within the bin in any case
    bins.enter(3, 75);
    BOOST_TEST(bins.bin_of(77) == 2U);
}
