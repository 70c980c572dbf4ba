// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Boost.JSON without its library, compiled once for all programs that read test vectors.

#include <boost/json/src.hpp>
