// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   How the program is built, for tests that do less under a sanitizer: they are five to fifteen
//   times slower there, and the build without one does everything.

#ifndef PAWL_TEST_SUPPORT_SANITIZED_HPP
#define PAWL_TEST_SUPPORT_SANITIZED_HPP

#if defined(__SANITIZE_ADDRESS__)
#define PAWL_TEST_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define PAWL_TEST_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PAWL_TEST_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define PAWL_TEST_THREAD_SANITIZER 1
#endif
#endif

#if !defined(PAWL_TEST_ADDRESS_SANITIZER)
#define PAWL_TEST_ADDRESS_SANITIZER 0
#endif
#if !defined(PAWL_TEST_THREAD_SANITIZER)
#define PAWL_TEST_THREAD_SANITIZER 0
#endif

namespace pawl_test {

inline constexpr bool address_sanitizer = PAWL_TEST_ADDRESS_SANITIZER != 0;
inline constexpr bool thread_sanitizer = PAWL_TEST_THREAD_SANITIZER != 0;
inline constexpr bool sanitized = address_sanitizer || thread_sanitizer;

} // namespace pawl_test

#endif
