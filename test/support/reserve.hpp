// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Purpose
//   Reserves room for the nodes of a backend, like the service, whether the backend needs any or
//   not.

#ifndef PAWL_TEST_SUPPORT_RESERVE_HPP
#define PAWL_TEST_SUPPORT_RESERVE_HPP

#include <pawl/time/backend.hpp>

#include <cstddef>

namespace pawl_test {

/// Afterwards so many nodes may be filed.
template <class Backend>
void reserve(Backend& backend, std::size_t nodes) {
    if constexpr (pawl::time::reserving_backend<Backend>) {
        while (!backend.has_room_for(nodes)) {
            typename Backend::room_part part(backend.next_room_part());
            backend.add_room(part);
        }
    }
}

/// Afterwards so many nodes may be filed when all have been detached.
template <class Backend>
void reserve_to_detach(Backend& backend, std::size_t nodes) {
    if constexpr (pawl::time::reserving_backend<Backend>) {
        while (!backend.has_room_to_detach(nodes)) {
            typename Backend::room_part part(backend.next_room_part());
            backend.add_room(part);
        }
    }
}

} // namespace pawl_test

#endif
