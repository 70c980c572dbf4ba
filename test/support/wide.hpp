// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   An integer of 128 bits, for exact calculations of values that the library must get right in 64
//   bits. Compilers for 32 bits have none.

#ifndef PAWL_TEST_SUPPORT_WIDE_HPP
#define PAWL_TEST_SUPPORT_WIDE_HPP

#ifndef __SIZEOF_INT128__
#include <boost/multiprecision/cpp_int.hpp>
#endif

namespace pawl_test {

#ifdef __SIZEOF_INT128__
__extension__ using wide = __int128;
#else
using wide = boost::multiprecision::int128_t;
#endif

} // namespace pawl_test

#endif // PAWL_TEST_SUPPORT_WIDE_HPP
