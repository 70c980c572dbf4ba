// SPDX-License-Identifier: BSL-1.0
// Copyright (c) 2026 The Pawl authors

// Boost.Test without its library, compiled once for all programs of a platform for which there is none.

#include <boost/test/included/unit_test.hpp>
