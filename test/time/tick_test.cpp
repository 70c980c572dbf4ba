// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/time/tick.hpp>

#include "../support/seed.hpp"
#include "../support/wide.hpp"

#define BOOST_TEST_MODULE tick
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using pawl::time::tick;
using pawl::time::tick_origin;
using pawl::time::tick_scale;

namespace {

template <class Rep, class Period>
struct clock_of {
    using rep = Rep;
    using period = Period;
    using duration = std::chrono::duration<Rep, Period>;
    using time_point = std::chrono::time_point<clock_of>;
    static constexpr bool is_steady = true;
};

using nano_clock = clock_of<std::int64_t, std::nano>;
using second_clock = clock_of<std::int64_t, std::ratio<1>>;
using third_clock = clock_of<std::int64_t, std::ratio<1, 3>>;
using short_clock = clock_of<std::int32_t, std::milli>;
using unsigned_clock = clock_of<std::uint64_t, std::nano>;
using float_clock = clock_of<double, std::ratio<1>>;

nano_clock::time_point at(std::int64_t nanoseconds) {
    return nano_clock::time_point{nano_clock::duration{nanoseconds}};
}

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

const std::vector<std::int64_t> precisions{1,
                                           2,
                                           3,
                                           7,
                                           10,
                                           60,
                                           100,
                                           999,
                                           1000,
                                           1024,
                                           1'000'000,
                                           1'048'575,
                                           1'048'576,
                                           1'048'577,
                                           999'999'999,
                                           1'000'000'000,
                                           3'599'999'999'999,
                                           3'600'000'000'000};

/// The values where an off-by-one error of a division shows: around multiples and powers of two.
std::vector<std::int64_t> edges(std::int64_t divisor) {
    std::vector<std::int64_t> all{0, 1, 2, most, most - 1, most - 2};
    const auto around = [&](std::int64_t centre) {
        for (std::int64_t offset : {-1, 0, 1}) {
            if (centre <= most - 1 && centre + offset >= 0)
                all.push_back(centre + offset);
        }
    };
    for (int bit = 0; bit != 63; ++bit) {
        const std::int64_t power = std::int64_t{1} << bit;
        around(power);
        around(power / divisor * divisor);
        if (power <= most / divisor)
            around(power * divisor);
    }
    around(most / divisor * divisor);
    return all;
}

} // namespace

BOOST_AUTO_TEST_CASE(never_is_later_than_every_other_tick) {
    static_assert(tick{} == tick{0});
    static_assert(tick{1} < tick{2});
    static_assert(tick{std::numeric_limits<std::uint64_t>::max() - 1} < tick::never());
    BOOST_TEST(tick::never().count() == std::numeric_limits<std::uint64_t>::max());
}

BOOST_DATA_TEST_CASE(division_by_multiplication_is_exact_at_every_edge,
                     boost::unit_test::data::make(precisions), precision) {
    const tick_scale<nano_clock> scale{std::chrono::nanoseconds{precision}};

    for (const std::int64_t count : edges(precision)) {
        const std::int64_t quotient = count / precision;
        const std::int64_t rounded = quotient + (count % precision != 0 ? 1 : 0);
        BOOST_REQUIRE_EQUAL(scale.floor(at(count)).count(), static_cast<std::uint64_t>(quotient));
        if (count != most)
            BOOST_REQUIRE_EQUAL(scale.ceil(at(count)).count(), static_cast<std::uint64_t>(rounded));
    }
}

BOOST_AUTO_TEST_CASE(division_by_multiplication_is_exact_for_random_numbers) {
    std::mt19937_64 random(pawl_test::seed());

    for (int i = 0; i != 200'000; ++i) {
        const std::uint64_t divisor = 1 + random() % (std::uint64_t{1} << (1 + random() % 52));
        const std::uint64_t dividend = random() >> (1 + random() % 63);
        BOOST_REQUIRE_EQUAL(pawl::time::detail::reciprocal(divisor).divide(dividend),
                            dividend / divisor);
    }
}

BOOST_DATA_TEST_CASE(a_tick_that_has_begun_is_never_before_the_time_point_it_stands_for,
                     boost::unit_test::data::make(precisions), precision) {
    const tick_scale<nano_clock> scale{std::chrono::nanoseconds{precision}};

    for (const std::int64_t count : edges(precision)) {
        const auto begin = scale.time_of(scale.ceil(at(count)));
        BOOST_REQUIRE(begin >= at(count));
        BOOST_REQUIRE(begin == nano_clock::time_point::max() ||
                      begin - at(count) < std::chrono::nanoseconds{precision});
        BOOST_REQUIRE(scale.time_of(scale.floor(at(count))) <= at(count));
    }
}

BOOST_AUTO_TEST_CASE(what_lies_before_the_epoch_is_tick_zero) {
    const tick_scale<nano_clock> scale{1ms};

    BOOST_TEST(scale.ceil(at(-1)).count() == 0U);
    BOOST_TEST(scale.floor(at(-1)).count() == 0U);
    BOOST_TEST(scale.ceil(nano_clock::time_point::min()).count() == 0U);
    BOOST_TEST(scale.floor(nano_clock::time_point::min()).count() == 0U);
}

BOOST_AUTO_TEST_CASE(the_last_time_point_is_never_and_the_one_before_it_is_not) {
    for (const auto precision : precisions) {
        const tick_scale<nano_clock> scale{std::chrono::nanoseconds{precision}};

        BOOST_TEST((scale.ceil(nano_clock::time_point::max()) == tick::never()));
        BOOST_TEST((scale.ceil(at(most - 1)) < tick::never()));
        BOOST_TEST((scale.floor(nano_clock::time_point::max()) < tick::never()));
    }
}

BOOST_AUTO_TEST_CASE(a_tick_beyond_the_clock_is_its_last_time_point) {
    const tick_scale<nano_clock> scale{1ms};

    BOOST_TEST((scale.time_of(tick::never()) == nano_clock::time_point::max()));
    BOOST_TEST((scale.time_of(tick{most / 1'000'000 + 1}) == nano_clock::time_point::max()));
    BOOST_TEST((scale.time_of(tick{most / 1'000'000}) == at(most / 1'000'000 * 1'000'000)));
}

BOOST_AUTO_TEST_CASE(a_clock_coarser_than_the_precision_has_ticks_of_its_own_unit) {
    const tick_scale<second_clock> scale{1ms};
    const second_clock::time_point five{std::chrono::seconds{5}};

    BOOST_TEST(scale.ceil(five).count() == 5U);
    BOOST_TEST(scale.floor(five).count() == 5U);
    BOOST_TEST((scale.time_of(tick{5}) == five));
}

BOOST_AUTO_TEST_CASE(a_precision_that_is_no_multiple_of_the_unit_is_shortened) {
    const tick_scale<third_clock> scale{1s - 1ns}; // two thirds of a second
    const third_clock::time_point five{third_clock::duration{5}};

    BOOST_TEST(scale.ceil(five).count() == 3U);
    BOOST_TEST(scale.floor(five).count() == 2U);
}

BOOST_AUTO_TEST_CASE(a_short_representation_saturates_at_its_own_end) {
    const tick_scale<short_clock> scale{10ms};
    using point = short_clock::time_point;
    constexpr std::int32_t last = std::numeric_limits<std::int32_t>::max();

    BOOST_TEST((scale.ceil(point::max()) == tick::never()));
    BOOST_TEST(scale.ceil(point{short_clock::duration{last - 1}}).count() == 214'748'365U);
    BOOST_TEST((scale.time_of(tick{214'748'365}) == point::max()));
    BOOST_TEST((scale.time_of(tick{214'748'364}).time_since_epoch().count() == 2'147'483'640));
}

BOOST_AUTO_TEST_CASE(an_unsigned_clock_is_exact_in_its_upper_half) {
    const tick_scale<unsigned_clock> scale{1us};
    constexpr std::uint64_t count = std::numeric_limits<std::uint64_t>::max() - 1;
    const unsigned_clock::time_point late{unsigned_clock::duration{count}};

    BOOST_TEST(scale.floor(late).count() == count / 1000);
    BOOST_TEST(scale.ceil(late).count() == count / 1000 + 1);
    BOOST_TEST((scale.ceil(unsigned_clock::time_point::max()) == tick::never()));
}

BOOST_AUTO_TEST_CASE(a_floating_clock_passes_through_nanoseconds_and_saturates) {
    const tick_scale<float_clock> scale{1ms};
    const auto after = [](double seconds) {
        return float_clock::time_point{float_clock::duration{seconds}};
    };

    BOOST_TEST(scale.ceil(after(-1)).count() == 0U);
    BOOST_TEST(scale.ceil(after(0.0005)).count() == 1U);
    BOOST_TEST(scale.floor(after(0.0005)).count() == 0U);
    BOOST_TEST(scale.ceil(after(1e-15)).count() == 1U);
    BOOST_TEST((scale.ceil(float_clock::time_point::max()) == tick::never()));
    BOOST_TEST((scale.ceil(after(std::numeric_limits<double>::infinity())) == tick::never()));
    BOOST_TEST(scale.ceil(after(std::numeric_limits<double>::quiet_NaN())).count() == 0U);
    BOOST_TEST((scale.time_of(tick::never()) == float_clock::time_point::max()));
    BOOST_TEST(scale.time_of(tick{1500}).time_since_epoch().count() == 1.5,
               boost::test_tools::tolerance(1e-12));
}

namespace {

using pawl_test::wide;

/// A scale that starts at the clock's first time point agrees with exact arithmetic for `count`.
template <class Clock>
void require_exact(const tick_scale<Clock>& scale, wide divisor, typename Clock::rep count) {
    using limits = std::numeric_limits<typename Clock::rep>;
    const auto floor = [divisor](wide n) { return n / divisor - (n % divisor < 0 ? 1 : 0); };
    const wide first = floor(limits::min());
    const typename Clock::time_point t{typename Clock::duration{count}};
    const auto as_tick = [first](wide n) { return tick{static_cast<std::uint64_t>(n - first)}; };

    BOOST_REQUIRE((scale.floor(t) == as_tick(floor(count))));
    if (count != limits::max()) {
        const wide up = floor(wide{count} + divisor - 1);
        BOOST_REQUIRE((scale.ceil(t) == as_tick(up)));
        BOOST_REQUIRE((scale.time_of(as_tick(up)).time_since_epoch().count() ==
                       std::min(up * divisor, wide{limits::max()})));
    }
    BOOST_REQUIRE((scale.time_of(as_tick(floor(count))).time_since_epoch().count() ==
                   std::max(floor(count) * divisor, wide{limits::min()})));
}

} // namespace

BOOST_DATA_TEST_CASE(a_scale_from_the_first_time_point_on_is_exact_at_every_edge,
                     boost::unit_test::data::make(precisions), precision) {
    const tick_scale<nano_clock> scale{std::chrono::nanoseconds{precision}, tick_origin::least};

    for (const std::int64_t count : edges(precision)) {
        require_exact(scale, precision, count);
        require_exact(scale, precision, -count);
        require_exact(scale, precision, ~count); // min() among them
    }
    BOOST_TEST((scale.ceil(nano_clock::time_point::max()) == tick::never()));
    BOOST_TEST((scale.time_of(tick::never()) == nano_clock::time_point::max()));
}

BOOST_AUTO_TEST_CASE(a_scale_from_the_first_time_point_on_is_exact_for_random_numbers) {
    std::mt19937_64 random(pawl_test::seed());

    for (int i = 0; i != 100'000; ++i) {
        const std::chrono::nanoseconds precision((1 + random() % 3'600'000'000'000) >>
                                                 random() % 42);
        if (precision == 0ns)
            continue;
        const std::int64_t ms = std::max<std::int64_t>(precision / 1ms, 1);
        const auto count = static_cast<std::int64_t>(random()) >> random() % 64;
        require_exact(tick_scale<nano_clock>{precision, tick_origin::least}, precision.count(),
                      count);
        require_exact(tick_scale<short_clock>{precision, tick_origin::least}, ms,
                      static_cast<std::int32_t>(count));
        require_exact(tick_scale<unsigned_clock>{precision, tick_origin::least}, precision.count(),
                      static_cast<std::uint64_t>(count));
    }
}

BOOST_AUTO_TEST_CASE(a_floating_clock_is_told_apart_before_its_epoch_as_well) {
    const tick_scale<float_clock> scale{1ms, tick_origin::least};
    const auto after = [](double seconds) {
        return float_clock::time_point{float_clock::duration{seconds}};
    };
    const std::uint64_t epoch = scale.floor(after(0)).count();

    BOOST_TEST(scale.ceil(after(0)).count() == epoch);
    BOOST_TEST(scale.ceil(after(0.0015)).count() == epoch + 2);
    BOOST_TEST(scale.floor(after(0.0015)).count() == epoch + 1);
    BOOST_TEST(scale.ceil(after(-0.0015)).count() == epoch - 1);
    BOOST_TEST(scale.floor(after(-0.0015)).count() == epoch - 2);
    BOOST_TEST(scale.ceil(after(-1e-12)).count() == epoch);
    BOOST_TEST(scale.floor(after(-1e-12)).count() == epoch - 1);
    const tick_scale<float_clock> fine{1ns, tick_origin::least};
    BOOST_TEST(fine.floor(after(-1e-12)).count() + 1 == fine.floor(after(0)).count());
    BOOST_TEST(scale.floor(after(-1e300)).count() == 0U);
    BOOST_TEST((scale.ceil(after(1e300)) == tick::never()));
    BOOST_TEST(scale.time_of(tick{epoch - 1500}).time_since_epoch().count() == -1.5,
               boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(a_duration_is_named_exactly_in_the_largest_unit_that_fits) {
    using pawl::time::detail::text_of;
    using namespace std::chrono_literals;
    BOOST_TEST(text_of(0ns) == "0 s");
    BOOST_TEST(text_of(90s) == "90 s");
    BOOST_TEST(text_of(1500ms) == "1500 ms");
    BOOST_TEST(text_of(-2us) == "-2 us");
    BOOST_TEST(text_of(1s + 1ns) == "1000000001 ns");
    BOOST_TEST(text_of(std::chrono::nanoseconds::max()) == "9223372036854775807 ns");
    BOOST_TEST(text_of(std::chrono::hours(24 * 365 * 400)) == "3504000 units of the clock");
    using std::chrono::duration;
    BOOST_TEST(text_of(duration<int, std::pico>(1001)) == "1001 units of the clock");
    BOOST_TEST(text_of(duration<long, std::ratio<1, 3>>(1)) == "1 units of the clock");
    BOOST_TEST(text_of(duration<long, std::tera>(1)) == "1 units of the clock");
    BOOST_TEST(text_of(duration<double>(0.5)) == "0.500000 units of the clock");
    BOOST_TEST(text_of(duration<unsigned char, std::deci>(7)) == "700 ms");
    BOOST_TEST(text_of(duration<std::uint64_t>(~std::uint64_t{0})) ==
               "18446744073709551615 units of the clock");
    BOOST_TEST(text_of(std::chrono::nanoseconds::min()) == "-9223372036854775808 ns");
}

BOOST_DATA_TEST_CASE(a_precision_out_of_range_is_refused_by_name,
                     boost::unit_test::data::make({std::int64_t{0}, std::int64_t{-1},
                                                   std::int64_t{3'600'000'000'001}}),
                     precision) {
    const auto names_it = [&](const std::invalid_argument& error) {
        const std::string what = error.what();
        return what.find("precision") != what.npos &&
               what.find(std::to_string(precision)) != what.npos &&
               what.find("1 ns to 3600 s") != what.npos;
    };

    BOOST_CHECK_EXCEPTION(tick_scale<nano_clock>{std::chrono::nanoseconds{precision}},
                          std::invalid_argument, names_it);
}
