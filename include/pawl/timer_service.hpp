// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::make_timer_service(), which sets the options of a timer service.
#ifndef PAWL_TIMER_SERVICE_HPP
#define PAWL_TIMER_SERVICE_HPP

#include <pawl/config.hpp>
#include <pawl/options.hpp>

#include <pawl/detail/service/clocks.hpp>
#include <pawl/detail/service/timer_service.hpp>

#include <boost/asio/execution_context.hpp>

namespace pawl {

namespace detail {

/// The service of a timer type, or of a clock with its usual traits.
template <class ClockOrTimer>
struct service_of {
    using type = timer_service<clock_behind<ClockOrTimer>>;
};

template <class Timer>
    requires requires { typename Timer::traits_type; }
struct service_of<Timer> {
    using type = timer_service<typename Timer::clock_type, typename Timer::traits_type>;
};

struct timer_service_already_exists : boost::asio::service_already_exists {
    [[nodiscard]] const char* what() const noexcept override {
        return "pawl::make_timer_service: the context already has a service for these timers; call "
               "it once, before the first of them is made";
    }
};

} // namespace detail

/// Makes a timer service in `context` with the given options.
///
/// @tparam ClockOrTimer the timer type; or, for timers on the default backend, just their clock.
/// @throws boost::asio::service_already_exists if the context already has it: call this before
///         making the first such timer.
/// @throws std::invalid_argument if an option is out of range; the text names it, its value and the
///         range.
/// @par Thread safety
/// May be called from any thread; one of several concurrent calls succeeds.
template <class ClockOrTimer = detail::steady_clock>
void make_timer_service(boost::asio::execution_context& context, const options& o) {
    try {
        boost::asio::make_service<typename detail::service_of<ClockOrTimer>::type>(context, o);
    } catch (const boost::asio::service_already_exists&) {
        throw detail::timer_service_already_exists();
    }
}

} // namespace pawl

#endif // PAWL_TIMER_SERVICE_HPP
