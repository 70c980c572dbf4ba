// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Boost.JSON without its library: the headers of Boost are all that a build needs.
#include <boost/json/src.hpp>
