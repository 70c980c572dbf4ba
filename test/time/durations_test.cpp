// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Arithmetic on time points at the ends of their range, compared with a wider integer.

#define BOOST_TEST_MODULE durations
#include <boost/test/unit_test.hpp>

#include <pawl/detail/time/durations.hpp>

#include "../support/wide.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>

namespace {

using clock = std::chrono::steady_clock;
using duration = std::chrono::nanoseconds;
using time_point = std::chrono::time_point<clock, duration>;
using pawl_test::wide;

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();

/// Both ends, the middle, the values where sums and differences start to leave the range, and their
/// neighbours.
constexpr std::array<std::int64_t, 21> counts{least,
                                              least + 1,
                                              least + 2,
                                              least / 2 - 1,
                                              least / 2,
                                              least / 2 + 1,
                                              -1000,
                                              -2,
                                              -1,
                                              0,
                                              1,
                                              2,
                                              1000,
                                              most / 2 - 1,
                                              most / 2,
                                              most / 2 + 1,
                                              most / 2 + 2,
                                              most - 1000,
                                              most - 2,
                                              most - 1,
                                              most};

std::int64_t within_range(wide count) {
    return static_cast<std::int64_t>(std::clamp(count, wide{least}, wide{most}));
}

} // namespace

BOOST_AUTO_TEST_CASE(a_sum_stops_at_the_ends_of_the_range) {
    for (const auto a : counts) {
        for (const auto b : counts)
            BOOST_CHECK_EQUAL(pawl::detail::saturating_sum(time_point(duration(a)), duration(b))
                                  .time_since_epoch()
                                  .count(),
                              within_range(wide{a} + b));
    }
}

BOOST_AUTO_TEST_CASE(a_difference_stops_at_the_ends_of_the_range) {
    for (const auto a : counts) {
        for (const auto b : counts)
            BOOST_CHECK_EQUAL(pawl::detail::saturating_difference(time_point(duration(a)),
                                                                  time_point(duration(b)))
                                  .count(),
                              within_range(wide{a} - b));
    }
}

BOOST_AUTO_TEST_CASE(a_duration_in_a_finer_unit_stops_at_the_ends_of_the_range) {
    constexpr std::int64_t unit = 1'000'000'000;
    for (const auto count : counts) {
        for (const auto s : {count, count / unit - 1, count / unit, count / unit + 1})
            BOOST_CHECK_EQUAL(
                pawl::detail::saturating_cast<duration>(std::chrono::duration<std::int64_t>(s))
                    .count(),
                within_range(wide{s} * unit));
    }
}

BOOST_AUTO_TEST_CASE(a_duration_in_samples_or_frames_is_exact_in_the_whole_range) {
    // std::chrono multiplied by 10^7 before it divided by 441: 242 days were in the past.
    const auto check = [](auto unit) {
        using from = decltype(unit);
        constexpr std::int64_t num = from::period::num;
        constexpr std::int64_t den = from::period::den;
        constexpr std::int64_t end = most / 1'000'000'000 / num * den;
        for (const std::int64_t count : {end, end - 1, end / 2 + 1, end / 100, std::int64_t{1}}) {
            for (const std::int64_t signed_count : {count, -count}) {
                const wide exact = wide{signed_count} * num * 1'000'000'000;
                const wide up = exact / den + (exact % den > 0 ? 1 : 0);
                BOOST_CHECK_EQUAL(
                    pawl::detail::saturating_cast<duration>(from(signed_count)).count(),
                    within_range(up));
            }
        }
        BOOST_CHECK_EQUAL(pawl::detail::saturating_cast<duration>(from::max()).count(), most);
        BOOST_CHECK(pawl::detail::saturating_cast<duration>(from::min()) == duration::min());
    };
    check(std::chrono::duration<std::int64_t, std::ratio<1, 44'100>>());
    check(std::chrono::duration<std::int64_t, std::ratio<1, 60>>());
    check(std::chrono::duration<std::int64_t, std::ratio<1'001, 30'000>>());
}
