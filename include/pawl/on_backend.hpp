// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::on_backend: selects the time structure of a timer type.
#ifndef PAWL_ON_BACKEND_HPP
#define PAWL_ON_BACKEND_HPP

#include <pawl/config.hpp>

#include <pawl/time/hierarchical_wheel.hpp>

namespace pawl {

/// Wait traits that select another time structure than the default for a timer type.
///
/// Every timer type has the traits as a parameter, so a timer on another structure is the same
/// class template with the same members:
///
/// @code
/// using timer = pawl::basic_waitable_timer<
///     clock, pawl::on_backend<pawl::time::binary_wheel, boost::asio::wait_traits<clock>>>;
/// @endcode
///
/// Each combination of clock and traits has its own service in a context.
///
/// Every timer header includes this one. Include the header of the backend as well, here
/// <pawl/time/binary_wheel.hpp>.
///
/// @tparam Backend models `pawl::time::rewindable_backend`, or is `pawl::time::timeout_rings`
/// (include <pawl/ring_timer.hpp>).
/// @tparam WaitTraits how to wait for the clock, as with Asio.
template <class Backend, class WaitTraits>
struct on_backend : WaitTraits {
    using backend = Backend; ///< The time structure.
};

namespace detail {

/// Splits wait traits into the time structure and the traits proper.
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

#endif // PAWL_ON_BACKEND_HPP
