// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Durations in the texts of exceptions, as a reader would write them.
#ifndef PAWL_TIME_DURATION_TEXT_HPP
#define PAWL_TIME_DURATION_TEXT_HPP

#include <chrono>
#include <cstdint>
#include <ratio>
#include <string>
#include <type_traits>
#include <utility>

namespace pawl::time::detail {

/// Exact, in the largest unit up to the second that gives a whole number: `90 s`, `1500 ms`.
inline std::string text_of(std::chrono::nanoseconds d) {
    const char* const units[] = {" ns", " us", " ms", " s"};
    auto count = d.count();
    int unit = 0;
    for (; unit < 3 && count % 1000 == 0; ++unit)
        count /= 1000;
    return std::to_string(count) + units[unit];
}

/// The same for any clock whose time nanoseconds can say.
template <class Rep, class Period>
std::string text_of(const std::chrono::duration<Rep, Period>& d) {
    constexpr std::int64_t second = std::nano::den;
    if constexpr (std::is_integral_v<Rep> && second % Period::den == 0 && Period::num <= second) {
        constexpr std::int64_t unit = second / Period::den * Period::num;
        constexpr std::int64_t most = std::chrono::nanoseconds::max().count() / unit;
        if (std::cmp_less_equal(-most, d.count()) && std::cmp_less_equal(d.count(), most))
            return text_of(std::chrono::nanoseconds(static_cast<std::int64_t>(d.count()) * unit));
    }
    return std::to_string(d.count()) + " units of the clock";
}

} // namespace pawl::time::detail

#endif // PAWL_TIME_DURATION_TEXT_HPP
