// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Boost.Test without its library, compiled once for all programs of a platform that has no such
// library.

#include <boost/test/included/unit_test.hpp>
