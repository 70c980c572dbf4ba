// expect: geometry
// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Bad geometry is refused at compile time if it is known then.
#include <pawl/time/geometry.hpp>

constexpr pawl::time::geometry no_bits{0};
