// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Differences if Asio runs on io_uring, for its own timers and sockets as well as for Pawl's
/// (Boost 1.81).
#ifndef PAWL_TEST_SUPPORT_IO_URING_HPP
#define PAWL_TEST_SUPPORT_IO_URING_HPP

#include <boost/asio/detail/config.hpp>

namespace pawl_test {

/// - A unit of run_one() may be Asio's own: each timer that becomes its earliest one posts a
///   submission.
/// - A socket is closed in the background: a pending read ends with eof if the peer closes, too.
/// - A user-defined context may wait forever in its destructor: its thread and that destructor both
///   take completions from the ring.
#if defined(BOOST_ASIO_HAS_IO_URING) && defined(BOOST_ASIO_DISABLE_EPOLL)
inline constexpr bool io_uring = true;
#else
inline constexpr bool io_uring = false;
#endif

} // namespace pawl_test

/// For a test case that depends on one of the three.
#define PAWL_NOT_ON_IO_URING                                                                       \
    BOOST_TEST_DECORATOR(*boost::unit_test::enable_if<!pawl_test::io_uring>())

#endif // PAWL_TEST_SUPPORT_IO_URING_HPP
