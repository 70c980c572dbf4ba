// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Time points and durations: saturating arithmetic, and as text.
#ifndef PAWL_DETAIL_TIME_DURATIONS_HPP
#define PAWL_DETAIL_TIME_DURATIONS_HPP

#include <chrono>
#include <cstdint>
#include <ratio>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace pawl::detail {

template <class T>
inline constexpr bool is_duration = false;
template <class Rep, class Period>
inline constexpr bool is_duration<std::chrono::duration<Rep, Period>> = true;
template <class T>
inline constexpr bool is_time_point = false;
template <class Clock, class Duration>
inline constexpr bool is_time_point<std::chrono::time_point<Clock, Duration>> = true;

/// `t + d`, clamped to the range.
template <class Clock, class Duration>
[[nodiscard]] constexpr std::chrono::time_point<Clock, Duration>
saturating_sum(std::chrono::time_point<Clock, Duration> t, Duration d) noexcept {
    using time_point = std::chrono::time_point<Clock, Duration>;
    if (d > Duration::zero() && t > time_point::max() - d)
        return time_point::max();
    if (d < Duration::zero() && t < time_point::min() - d)
        return time_point::min();
    return t + d;
}

/// `a - b`, clamped to the range.
template <class Clock, class Duration>
[[nodiscard]] constexpr Duration
saturating_difference(std::chrono::time_point<Clock, Duration> a,
                      std::chrono::time_point<Clock, Duration> b) noexcept {
    const Duration x = a.time_since_epoch();
    const Duration y = b.time_since_epoch();
    if (y < Duration::zero() && x > Duration::max() + y)
        return Duration::max();
    if (y > Duration::zero() && x < Duration::min() + y)
        return Duration::min();
    return x - y;
}

/// `d` in another unit, rounded up and clamped to the range of that unit.
/// @throws std::invalid_argument if `d` is not a number.
template <class To, class Rep, class Period>
[[nodiscard]] constexpr To saturating_cast(const std::chrono::duration<Rep, Period>& d) {
    // The usual limits, `5s` in nanoseconds, become constants.
    if constexpr (std::is_same_v<typename To::rep, std::int64_t> &&
                  std::is_same_v<Rep, std::int64_t> &&
                  std::ratio_divide<Period, typename To::period>::den == 1) {
        using from = std::chrono::duration<Rep, Period>;
        if (d > std::chrono::duration_cast<from>(To::max()))
            return To::max();
        if (d < std::chrono::duration_cast<from>(To::min()))
            return To::min();
        return d;
    }
    if constexpr (std::chrono::treat_as_floating_point_v<Rep>) {
        if (d.count() != d.count())
            throw std::invalid_argument("pawl: a duration that is not a number (NaN)");
    }
    if constexpr (std::is_same_v<To, std::chrono::duration<Rep, Period>>)
        return d;
    // Compared as seconds, because the conversion between the units may overflow.
    using seconds = std::chrono::duration<double>;
    if (seconds(d) >= seconds(To::max()))
        return To::max();
    if (seconds(d) <= seconds(To::min()))
        return To::min();
    // Units such as 1/44100 s: std::chrono multiplies before it divides, which overflows after days.
    using factor = std::ratio_divide<Period, typename To::period>;
    using second = std::ratio_divide<std::ratio<1>, typename To::period>;
    if constexpr (std::is_integral_v<Rep> && factor::num != 1 && factor::den != 1 &&
                  second::den == 1) {
        const auto whole = std::chrono::duration_cast<std::chrono::seconds>(d);
        return std::chrono::duration_cast<To>(whole) + std::chrono::ceil<To>(d - whole);
    } else {
        return std::chrono::ceil<To>(d);
    }
}

/// A duration that converts from every other one by saturating_cast(). The conversion of std::chrono
/// overflows, which is undefined behaviour, before a function with a parameter of a duration is called.
template <class Duration>
struct saturated : Duration {
    constexpr saturated(const Duration& d) : Duration(saturating_cast<Duration>(d)) {}
    template <class Rep, class Period>
    constexpr saturated(const std::chrono::duration<Rep, Period>& d)
        : Duration(saturating_cast<Duration>(d)) {}
    template <class T>
        requires(!is_duration<T> && std::is_convertible_v<const T&, Duration>)
    constexpr saturated(const T& d) : Duration(d) {}
};

} // namespace pawl::detail

namespace pawl::time::detail {

/// A duration for the text of an exception: exact, in the largest unit up to the second that gives a whole number: `90 s`, `1500 ms`. Values
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

/// @throws std::invalid_argument if `max < min`
template <class Duration>
constexpr void require_range(const Duration& min, const Duration& max) {
    if (max < min)
        throw std::invalid_argument("pawl: a range of " + text_of(min) + " .. " + text_of(max) +
                                    " for an expiry: max must not be less than min");
}

} // namespace pawl::time::detail

#endif // PAWL_DETAIL_TIME_DURATIONS_HPP
