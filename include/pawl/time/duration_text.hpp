// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   Durations in the texts of exceptions, as a reader would write them.
#ifndef PAWL_TIME_DURATION_TEXT_HPP
#define PAWL_TIME_DURATION_TEXT_HPP

#include <chrono>
#include <ratio>
#include <string>

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

/// The same for any clock, if nanoseconds can say it.
template <class Rep, class Period>
std::string text_of(const std::chrono::duration<Rep, Period>& d) {
    using std::chrono::nanoseconds;
    using seconds = std::chrono::duration<double>;
    if constexpr (std::ratio_greater_equal_v<Period, std::nano>) {
        constexpr seconds limit = nanoseconds::max() / 2;
        if (-limit < seconds(d) && seconds(d) < limit)
            return text_of(std::chrono::duration_cast<nanoseconds>(d));
    }
    return std::to_string(d.count()) + " units of the clock";
}

} // namespace pawl::time::detail

#endif // PAWL_TIME_DURATION_TEXT_HPP
