// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Durations in the texts of exceptions, in readable units.
#ifndef PAWL_DETAIL_TIME_DURATION_TEXT_HPP
#define PAWL_DETAIL_TIME_DURATION_TEXT_HPP

#include <chrono>
#include <cstdint>
#include <ratio>
#include <string>
#include <type_traits>
#include <utility>

namespace pawl::time::detail {

/// Exact, in the largest unit up to the second that gives a whole number: `90 s`, `1500 ms`. Values
/// that nanoseconds cannot express are given in the units of the clock.
template <class Rep, class Period>
std::string text_of(const std::chrono::duration<Rep, Period>& d) {
    constexpr std::int64_t second = std::nano::den;
    if constexpr (std::is_integral_v<Rep> && second % Period::den == 0 && Period::num <= second) {
        constexpr std::int64_t unit = second / Period::den * Period::num;
        if (std::cmp_less_equal(std::chrono::nanoseconds::min().count() / unit, d.count()) &&
            std::cmp_less_equal(d.count(), std::chrono::nanoseconds::max().count() / unit)) {
            const char* const names[] = {" ns", " us", " ms", " s"};
            std::int64_t count = static_cast<std::int64_t>(d.count()) * unit;
            int name = 0;
            for (; name < 3 && count % 1000 == 0; ++name)
                count /= 1000;
            return std::to_string(count) + names[name];
        }
    }
    return std::to_string(d.count()) + " units of the clock";
}

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_DURATION_TEXT_HPP
