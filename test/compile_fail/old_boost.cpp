// expect among others: Pawl needs Boost 1.81 or newer
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The first thing that a user with Debian's default Boost sees is one sentence.
#include <boost/version.hpp>
#undef BOOST_VERSION
#define BOOST_VERSION 107400
#include <pawl/steady_timer.hpp>
