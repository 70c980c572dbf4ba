// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::compact_timer, for processes with very many execution contexts.
#ifndef PAWL_COMPACT_TIMER_HPP
#define PAWL_COMPACT_TIMER_HPP

#include <pawl/basic_waitable_timer.hpp>
#include <pawl/on_backend.hpp>

#include <pawl/detail/service/clocks.hpp>

#include <pawl/time/binary_wheel.hpp>

#include <boost/asio/wait_traits.hpp>

namespace pawl {

/// A steady timer on pawl::time::binary_wheel: its time structure takes 1.2 KB of a context, however many
/// timers there are, and expire_all() allocates nothing. In exchange a timer may be moved once for each bit of
/// its delay before it expires: from ten thousand timers on, expiry costs two to four times as much as that of
/// pawl::steady_timer.
///
/// Members, errors and thread safety are those of basic_waitable_timer.
using compact_timer = basic_waitable_timer<
    detail::steady_clock,
    on_backend<time::binary_wheel, boost::asio::wait_traits<detail::steady_clock>>>;

} // namespace pawl

#endif // PAWL_COMPACT_TIMER_HPP
