// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Boost.JSON without its library, so that a build only needs the headers of Boost.
#include <boost/json/src.hpp>
