// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// How many connections a process may have is, first of all, how many files it may open.

#ifndef PAWL_EXAMPLES_DESCRIPTOR_LIMIT_HPP
#define PAWL_EXAMPLES_DESCRIPTOR_LIMIT_HPP

#include <cstdint>

#if __has_include(<sys/resource.h>)
#include <sys/resource.h>
#endif

namespace example {

/// Raises the limit of open files as far as the system lets an ordinary user.
/// @return the limit now in force; 0 if it is not known.
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
