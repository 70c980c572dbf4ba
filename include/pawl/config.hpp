// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// What Pawl asks of the compiler and of Boost, and PAWL_ASSERT.
#ifndef PAWL_CONFIG_HPP
#define PAWL_CONFIG_HPP

#include <boost/version.hpp>

#if defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#error "Pawl needs C++20: compile with -std=c++20 (g++, clang++) or /std:c++20 (MSVC)."
#endif

#if BOOST_VERSION < 108100
#error "Pawl needs Boost 1.81 or newer: an older one was found first on the include path."
#endif

#if !defined(__cpp_exceptions) && !defined(_CPPUNWIND)
#error "Pawl needs exceptions: compile without -fno-exceptions."
#endif

/// Checks a precondition or an invariant. Define it before the first Pawl header, in every
/// translation unit alike, to have it reported your way; by default it is assert().
#ifndef PAWL_ASSERT
#include <cassert>
#define PAWL_ASSERT(...) assert((__VA_ARGS__))
#endif

#endif // PAWL_CONFIG_HPP
