// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Shared by the programs about a whole service: time that passes, units that are counted, clocks
//   that are set.

#ifndef PAWL_TEST_SERVICE_WHOLE_SERVICE_HPP
#define PAWL_TEST_SERVICE_WHOLE_SERVICE_HPP

#include "service_support.hpp"

#include <chrono>
#include <cstddef>
#include <type_traits>

namespace service_test {

using pawl::manual_clock;
using pawl::manual_timer;

/// Lets time pass, and runs due waits.
inline void pass(asio::io_context& context, manual_clock::duration d) {
    manual_clock::advance(context, d);
    poll(context);
}

/// poll() that gives up after more units than any test here needs.
inline std::size_t units_of_poll(asio::io_context& context) {
    constexpr std::size_t many = 20;
    context.restart();
    std::size_t units = 0;
    while (units < many && context.poll_one() != 0)
        ++units;
    BOOST_REQUIRE_MESSAGE(units < many, "poll() does not end");
    return units;
}

inline pawl::options per_turn(unsigned n) {
    pawl::options o;
    o.precision = 1ns;
    o.completions_per_turn = n;
    return o;
}

/// Like a system clock: it can be set.
template <int Tag>
using wall = stepped_clock<std::integral_constant<int, Tag>, false>;

template <class Clock>
using timer_of = pawl::basic_waitable_timer<Clock>;

/// Makes the services of the context check the clock, as the driver does once a second.
inline void collect_and_poll(asio::io_context& context) {
    asio::use_service<pawl::detail::service_registry>(context).for_each(
        [](pawl::detail::registered_service& s) { s.clock_moved(); });
    poll(context);
}

inline constexpr auto noon = std::chrono::nanoseconds(1000h);

} // namespace service_test

#endif // PAWL_TEST_SERVICE_WHOLE_SERVICE_HPP
