// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Shows for every memory order in a header that it is needed: the scenarios find no error with
//   the orders as written, and a bad execution for each order that is weakened alone. An order that
//   is added later is a site like the others, so it needs a scenario or must be relaxed.

#ifndef PAWL_TEST_ORDERS_ORDERS_SUPPORT_HPP
#define PAWL_TEST_ORDERS_ORDERS_SUPPORT_HPP

#include "support/explored.hpp"
#include "support/seed.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace orders {

struct named_scenario {
    std::string_view name;
    explored::scenario body;
    std::vector<bool> sites{}; ///< sites that it uses; found by running it
};

/// The exploration is complete up to so many deviations from the default answers.
constexpr unsigned deviations = 3;

/// As written, no scenario has a bad execution.
inline void all_is_well_as_written(const std::vector<explored::site>& sites,
                                   const std::vector<named_scenario>& scenarios) {
    const std::uint64_t seed = pawl_test::seed();
    const std::uint64_t random = pawl_test::steps(1000);
    for (const named_scenario& each : scenarios) {
        const explored::findings found = explored::explore(
            each.body,
            {.deviations = deviations, .random = random, .seed = seed, .shortest_first = false},
            sites);
        std::cout << each.name << ": " << found.executions << " executions" << std::endl;
        BOOST_TEST(!found.bad.has_value());
        if (found.bad)
            BOOST_ERROR(each.name << ": " << found.bad->what << '\n' << found.bad->trace);
    }
}

/// The scenario in which this order is needed; its bad execution is printed with
/// --log_level=message.
inline std::string_view needed_in(const std::vector<explored::site>& sites,
                                  const std::vector<named_scenario>& scenarios,
                                  const explored::weakening& weak, std::string& what) {
    for (unsigned bound = 0; bound <= deviations; ++bound) {
        for (const named_scenario& each : scenarios) {
            if (!each.sites[weak.site])
                continue;
            const explored::findings found = explored::explore(
                each.body, {.deviations = bound, .shortest_first = false}, sites, weak);
            if (found.bad) {
                what = found.bad->what + " (deviations: " + std::to_string(bound) + ")";
                BOOST_TEST_MESSAGE(each.name << ": " << found.bad->what << '\n'
                                             << found.bad->trace);
                return each.name;
            }
        }
    }
    return {};
}

/// Each order that is weakened alone has a bad execution. Prints the table of them.
/// @param argued the beginnings of statements whose order C++ needs, but whose bad execution is
///               beyond the limits of the explorer (see there). Each must be such a statement.
inline void each_order_is_needed(const std::vector<explored::site>& sites,
                                 std::vector<named_scenario> scenarios,
                                 const std::vector<std::string_view>& argued = {}) {
    for (named_scenario& each : scenarios)
        each.sites = explored::explore(each.body, {.deviations = 2}, sites).sites;
    for (const explored::weakening& weak : explored::weaknesses(sites)) {
        const explored::site& where = sites[weak.site];
        std::string what;
        const std::string_view scenario = needed_in(sites, scenarios, weak, what);
        std::cout << where.file << ':' << where.line << ": " << where.text << "\n    "
                  << explored::name_of(where.written) << " -> " << explored::name_of(weak.to)
                  << ": " << (scenario.empty() ? "nothing happens" : scenario) << ": " << what
                  << std::endl;
        const bool is_argued =
            std::any_of(argued.begin(), argued.end(),
                        [&](std::string_view text) { return where.text.starts_with(text); });
        BOOST_TEST((!is_argued || scenario.empty()),
                   where.text << " is explored: no need to argue");
        BOOST_TEST((is_argued || !scenario.empty()),
                   where.file << ':' << where.line << ": no scenario needs "
                              << explored::name_of(where.written) << " rather than "
                              << explored::name_of(weak.to) << ": " << where.text);
    }
}

} // namespace orders

#endif
