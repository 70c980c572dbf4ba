// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The limit of open files is the first limit of the number of connections.

#ifndef PAWL_EXAMPLES_DESCRIPTOR_LIMIT_HPP
#define PAWL_EXAMPLES_DESCRIPTOR_LIMIT_HPP

#include <cstdint>

#if __has_include(<sys/resource.h>)
#include <sys/resource.h>
#endif

namespace example {

/// Raises the limit of open files as far as an ordinary user may.
/// @return the new limit; 0 if unknown.
inline std::uint64_t raise_descriptor_limit() noexcept {
#if __has_include(<sys/resource.h>)
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    const rlimit raised{limit.rlim_max, limit.rlim_max};
    return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
#else
    return 0;
#endif
}

} // namespace example

#endif // PAWL_EXAMPLES_DESCRIPTOR_LIMIT_HPP
