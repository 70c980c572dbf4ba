// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// The version of Pawl. The build reads it from this file.
#ifndef PAWL_VERSION_HPP
#define PAWL_VERSION_HPP

#define PAWL_VERSION_MAJOR 0
#define PAWL_VERSION_MINOR 1
#define PAWL_VERSION_PATCH 0

/// The version as one number: 1.2.3 is 10203.
#define PAWL_VERSION (PAWL_VERSION_MAJOR * 10000 + PAWL_VERSION_MINOR * 100 + PAWL_VERSION_PATCH)

#define PAWL_DETAIL_STRING_OF(text) #text
#define PAWL_DETAIL_VERSION_STRING(major, minor, patch)                                            \
    PAWL_DETAIL_STRING_OF(major) "." PAWL_DETAIL_STRING_OF(minor) "." PAWL_DETAIL_STRING_OF(patch)

/// The version as text: "1.2.3".
#define PAWL_VERSION_STRING                                                                        \
    PAWL_DETAIL_VERSION_STRING(PAWL_VERSION_MAJOR, PAWL_VERSION_MINOR, PAWL_VERSION_PATCH)

#endif // PAWL_VERSION_HPP
