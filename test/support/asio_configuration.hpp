// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Differences by how Asio is configured, for its own timers and sockets as well as for Pawl's
/// (Boost 1.81).
#ifndef PAWL_TEST_SUPPORT_ASIO_CONFIGURATION_HPP
#define PAWL_TEST_SUPPORT_ASIO_CONFIGURATION_HPP

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

/// Without: only contexts that a thread of the program runs, one at a time. A thread_pool, the
/// system_context and contexts of user-defined types would need a thread of Asio's own, and throw.
#if defined(BOOST_ASIO_HAS_THREADS)
inline constexpr bool threads = true;
#else
inline constexpr bool threads = false;
#endif

} // namespace pawl_test

/// For a test case that depends on one of the three.
#define PAWL_NOT_ON_IO_URING                                                                       \
    BOOST_TEST_DECORATOR(*boost::unit_test::enable_if<!pawl_test::io_uring>())

/// For a test case with threads, with a context other than io_context, or that counts on the blocks
/// which Asio keeps for each thread.
#define PAWL_NEEDS_THREADS BOOST_TEST_DECORATOR(*boost::unit_test::enable_if<pawl_test::threads>())

/// For a test case with a context of a user-defined type. With io_uring (Boost 1.81 and 1.90) its
/// destructor may hang, as with Asio's own timers: it waits for a completion that a thread of Asio's
/// takes.
#define PAWL_NEEDS_A_CONTEXT_OF_ITS_OWN                                                            \
    BOOST_TEST_DECORATOR(*boost::unit_test::enable_if<pawl_test::threads && !pawl_test::io_uring>())

#endif // PAWL_TEST_SUPPORT_ASIO_CONFIGURATION_HPP
