// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::on_backend, which chooses the time structure of a timer type.
#ifndef PAWL_SERVICE_ON_BACKEND_HPP
#define PAWL_SERVICE_ON_BACKEND_HPP

#include <pawl/config.hpp>

#include <pawl/time/hierarchical_wheel.hpp>

namespace pawl {

/// Wait traits that put the waits of a timer type into another time structure than the default.
///
/// The traits are a parameter of every timer already, so a timer on another structure is the same
/// class template with the same members:
///
/// @code
/// using timer = pawl::basic_waitable_timer<
///     clock, pawl::on_backend<pawl::time::binary_wheel, boost::asio::wait_traits<clock>>>;
/// @endcode
///
/// Each combination of clock and traits has a service of its own in a context.
///
/// It comes with each header of a timer. The backend's own header has to be included, too, in this
/// case <pawl/time/binary_wheel.hpp>.
///
/// @tparam Backend models `pawl::time::backend`, or is `pawl::time::timeout_rings`,
///         for which <pawl/ring_timer.hpp> has to be included.
/// @tparam WaitTraits how the clock is waited for, as with Asio.
template <class Backend, class WaitTraits>
struct on_backend : WaitTraits {
    using backend = Backend; ///< The time structure.
};

namespace detail {

/// The time structure that wait traits name, and the traits without that.
template <class WaitTraits>
struct backend_choice {
    using backend = time::hierarchical_wheel;
    using traits = WaitTraits;
};

template <class Backend, class WaitTraits>
struct backend_choice<on_backend<Backend, WaitTraits>> {
    using backend = Backend;
    using traits = WaitTraits;
};

} // namespace detail
} // namespace pawl

#endif // PAWL_SERVICE_ON_BACKEND_HPP
