// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include <pawl/time/tick.hpp>

#include "../support/seed.hpp"

#define BOOST_TEST_MODULE slack
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

using pawl::time::best_in_range;
using pawl::time::tick;

namespace {

constexpr std::uint64_t most = tick::never().count();

constexpr std::uint64_t best(std::uint64_t now, std::uint64_t min, std::uint64_t max) {
    return best_in_range(tick{now}, tick{min}, tick{max}).count();
}

/// Tries all of them.
std::uint64_t best_by_search(std::uint64_t now, std::uint64_t min, std::uint64_t max) {
    if (max <= now)
        return max;
    std::uint64_t found = std::max(min, now + 1);
    for (std::uint64_t at = found; at <= max; ++at) {
        if (std::countr_zero(at) >= std::countr_zero(found))
            found = at;
    }
    return found;
}

} // namespace

static_assert(best(0, 100, 200) == 128);

BOOST_AUTO_TEST_CASE(every_small_range_gives_the_roundest_tick_in_it) {
    for (std::uint64_t now = 0; now != 70; ++now) {
        for (std::uint64_t min = 0; min != 70; ++min) {
            for (std::uint64_t max = min; max != 70; ++max)
                BOOST_REQUIRE_EQUAL(best(now, min, max), best_by_search(now, min, max));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_range_of_one_tick_leaves_no_choice) {
    for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{12345},
                                   std::uint64_t{1} << 63, most - 1, most}) {
        BOOST_TEST(best(0, at, at) == at);
        BOOST_TEST(best(at, at, at) == at);
        BOOST_TEST(best(most, at, at) == at);
    }
}

BOOST_AUTO_TEST_CASE(a_range_that_has_begun_is_used_from_the_next_tick_on) {
    BOOST_TEST(best(64, 10, 70) == 68U);
    BOOST_TEST(best(63, 10, 70) == 64U);
    BOOST_TEST(best(69, 10, 70) == 70U);
    BOOST_TEST(best(0, 0, 1) == 1U);
}

BOOST_AUTO_TEST_CASE(a_range_that_has_passed_is_due_at_once) {
    BOOST_TEST(best(70, 10, 70) <= 70U);
    BOOST_TEST(best(most, 10, 70) <= 70U);
    BOOST_TEST(best(most - 1, 0, most - 1) == most - 1);
    BOOST_TEST(best(0, 0, 0) == 0U);
}

BOOST_AUTO_TEST_CASE(whoever_may_wait_for_ever_still_comes_unless_it_need_not_begin) {
    BOOST_TEST(best(0, 1, most) == std::uint64_t{1} << 63);
    BOOST_TEST(best(0, (std::uint64_t{1} << 63) + 1, most) == std::uint64_t{3} << 62);
    BOOST_TEST(best(0, most - 1, most) == most - 1);
    BOOST_TEST(best(most - 1, 0, most) == most);
    BOOST_TEST(best(most, 0, most) == most);
    BOOST_TEST(best(0, most, most) == most);
}

BOOST_AUTO_TEST_CASE(the_answer_is_in_the_range_and_no_neighbour_is_rounder) {
    std::mt19937_64 random(pawl_test::seed());
    for (int i = 0; i != 100'000; ++i) {
        const std::uint64_t min = random() >> (random() % 64);
        const std::uint64_t max = min + std::min(random() >> (random() % 64), most - min);
        const std::uint64_t now = std::min(random() >> (random() % 64), max);

        const std::uint64_t chosen = best(now, min, max);

        BOOST_REQUIRE_GE(chosen, min);
        BOOST_REQUIRE_LE(chosen, max);
        if (max == now)
            continue;
        BOOST_REQUIRE_GT(chosen, now);
        // The next tick that is as round, on either side, is outside.
        const std::uint64_t step = std::uint64_t{1} << std::countr_zero(chosen);
        BOOST_REQUIRE(max - chosen < step);
        BOOST_REQUIRE(chosen - std::max(min, now + 1) < step);
    }
}

BOOST_AUTO_TEST_CASE(timers_whose_ranges_overlap_meet) {
    // A thousand connections within a second, 30 s of time-out with an eighth of slack, in ms.
    std::uint64_t wakes = 0;
    std::uint64_t last = 0;
    for (std::uint64_t start = 1'000'000; start != 1'001'000; ++start) {
        const std::uint64_t due = best(start, start + 30'000, start + 33'750);
        wakes += due != last ? 1 : 0;
        last = due;
    }

    BOOST_TEST(wakes <= 2U);
}

namespace {

struct range {
    std::uint64_t min;
    std::uint64_t max;
};

struct wake_ups {
    std::size_t taken = 0;
    std::size_t least = 0; ///< minimum with all ranges known in advance
};

/// The minimum number of ticks that meets all ranges.
std::size_t least(std::vector<range> ranges) {
    std::ranges::sort(ranges, {}, &range::max);
    std::size_t count = 0;
    std::uint64_t last = 0;
    for (const range& r : ranges) {
        if (r.min > last || count == 0) {
            last = r.max;
            ++count;
        }
    }
    return count;
}

/// 1000 timers of 1 to 60 s, in ms, for ten minutes; each restarts when it fires. One start in
/// `exact` has no slack, if `exact` is not 0; the others have a twentieth of their delay.
/// `looking`: prefers a tick of the range that is already taken, which needs an index of all timers
/// by tick.
wake_ups of_a_thousand_timers(unsigned exact, bool looking) {
    std::mt19937_64 random(1);
    using start = std::tuple<std::uint64_t, int>;
    std::priority_queue<start, std::vector<start>, std::greater<>> starts;
    for (int i = 0; i != 1000; ++i)
        starts.emplace(random() % 5000, i);
    std::map<std::uint64_t, int> pending;
    std::vector<range> ranges;
    wake_ups result;
    for (;;) {
        const auto [now, timer] = starts.top();
        if (now >= 600'000)
            break;
        starts.pop();
        if (const auto fires = pending.find(now); fires != pending.end() && --fires->second == 0) {
            pending.erase(fires);
            ++result.taken;
        }
        const std::uint64_t delay = 1000 + random() % 59'001;
        const std::uint64_t slack = exact != 0 && random() % exact == 0 ? 0 : delay / 20;
        const range r{now + delay, now + delay + slack};
        std::uint64_t due = best(now, r.min, r.max);
        if (looking && !pending.contains(due)) {
            if (const auto taken = pending.lower_bound(r.min);
                taken != pending.end() && taken->first <= r.max)
                due = taken->first;
        }
        ranges.push_back(r);
        ++pending[due];
        starts.emplace(due, timer);
    }
    result.least = least(std::move(ranges));
    return result;
}

/// The choice ignores other timers. This is the cost:
void check_cost_of_not_looking(unsigned exact, unsigned least_percent, unsigned most_percent) {
    const wake_ups round = of_a_thousand_timers(exact, false);
    const wake_ups looking = of_a_thousand_timers(exact, true);
    BOOST_TEST_MESSAGE(round.taken << " wake-ups, " << looking.taken << " looking at the others, "
                                   << round.least << " knowing everything beforehand");
    BOOST_TEST(round.taken * 100 >= looking.taken * least_percent);
    BOOST_TEST(round.taken * 100 <= looking.taken * most_percent);
    BOOST_TEST(round.taken * 10 <= round.least * 17);
}

} // namespace

BOOST_AUTO_TEST_CASE(where_all_have_slack_looking_at_the_other_timers_would_gain_nothing) {
    check_cost_of_not_looking(0, 98, 102);
}

BOOST_AUTO_TEST_CASE(where_one_start_in_ten_has_none_it_would_gain_a_fifth) {
    check_cost_of_not_looking(10, 115, 130);
}
