// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The texts of timing_wheel's exceptions: the function, the value, the allowed range, and the
///   remedy.
#ifndef PAWL_DETAIL_TIME_TIMING_WHEEL_ERROR_HPP
#define PAWL_DETAIL_TIME_TIMING_WHEEL_ERROR_HPP

#include <cstdint>
#include <stdexcept>
#include <string>

namespace pawl::time::detail::timing_wheel_error {

inline std::string call(const char* function) {
    return std::string("pawl: timing_wheel: ") + function + "(): ";
}

inline std::string text(std::uint64_t number) { return std::to_string(number); }

/// A time is shown as its count since the epoch of its clock.
template <class TimePoint>
std::string text(TimePoint time) {
    return std::to_string(time.time_since_epoch().count());
}

/// A bound of the allowed range, and its name.
template <class Value>
struct bound {
    Value value;
    const char* name;
};

template <class Value>
std::string outside(const char* function, const char* argument, Value value, bound<Value> least,
                    bound<Value> most) {
    return call(function) + argument + " is " + text(value) + ", allowed are " + text(least.value) +
           " (" + least.name + ") to " + text(most.value) + " (" + most.name + ")";
}

template <class Value>
[[noreturn]] void out_of_range(const char* function, const char* argument, Value value,
                               bound<Value> least, bound<Value> most, const char* advice = "") {
    throw std::out_of_range(outside(function, argument, value, least, most) + advice);
}

template <class Value, class TimePoint>
[[noreturn]] void time_is_over(const char* function, const char* argument, Value value,
                               TimePoint now) {
    throw std::out_of_range(call(function) + argument + " is " + text(value) +
                            ", but none is allowed: the clock is at " + text(now) +
                            " (TimePoint::max()), after which there is no time for alarms");
}

[[noreturn]] inline void no_alarm(const char* function) {
    throw std::invalid_argument(call(function) + "the handle is default constructed; "
                                                 "use one that add() has returned");
}

[[noreturn]] inline void other_wheel(const char* function, std::uint64_t generation) {
    throw std::invalid_argument(call(function) + "alarm " + std::to_string(generation) +
                                " is of another wheel; use the wheel that added it");
}

[[noreturn]] inline void gone(const char* function, std::uint64_t generation) {
    throw std::invalid_argument(call(function) + "alarm " + std::to_string(generation) +
                                " has fired or been removed; ask mem() where that is possible");
}

[[noreturn]] inline void called_by_handler(const char* function) {
    throw std::logic_error(call(function) + "called by a handler of the same wheel; "
                                            "call it after the outer call has returned");
}

} // namespace pawl::time::detail::timing_wheel_error

#endif // PAWL_DETAIL_TIME_TIMING_WHEEL_ERROR_HPP
