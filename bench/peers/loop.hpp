// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The interface of an event loop with timers for the comparison. The adapters are asio_loop.hpp,
///   libuv_loop.hpp, libevent_loop.hpp and libev_loop.hpp.
///
/// Model
///   A server uses its timers in handlers, and so does each workload: `turn(f)` runs f in a handler
///   of the loop and lets the loop turn once without waiting. f does about as much as the handlers
///   of one turn. So a loop that reads its clock once per turn has the same advantage here as in a
///   server.
#ifndef PAWL_BENCH_PEERS_LOOP_HPP
#define PAWL_BENCH_PEERS_LOOP_HPP

#include "../fleet.hpp"
#include "../libraries.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace bench::peers {

/// Sees each expiry, for workloads that need more than the checksum.
class witness {
public:
    virtual void expired(index id) = 0;

protected:
    ~witness() = default;
};

inline constinit thread_local witness* watching = nullptr;

class watched_by {
public:
    explicit watched_by(witness& w) { watching = &w; }
    watched_by(const watched_by&) = delete;
    watched_by& operator=(const watched_by&) = delete;
    ~watched_by() { watching = nullptr; }
};

inline void note_expiry(index id) {
    ++seen.expired;
    seen.ids += id + 1;
    if (watching != nullptr)
        watching->expired(id);
}

/// A wait that was cancelled or moved. The aborted handler notes it, if there is one.
inline void note_cut_short(index id) {
    ++seen.cut_short;
    seen.ids += id + 1;
}

/// The number of a timer, stored in the user pointer of C libraries.
inline void* as_pointer(index id) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(id));
}
inline index as_index(void* user) {
    return static_cast<index>(reinterpret_cast<std::uintptr_t>(user));
}

/// What a loop does when a descriptor can be read.
/// @return whether to go on
using reader = std::function<bool()>;

/// A loop with N numbered timers. Delays count from the time that the library takes for now.
template <class L>
concept loop =
    std::constructible_from<L, std::size_t> && requires(L l, index i, clock::duration d) {
        l.start(i, d); // a timer that is not pending
        l.move(i, d);  // a pending timer, in the way that the manual recommends
        l.cancel(i);   // a pending timer
        l.turn([] {});
        l.watch(0, reader());
        l.run(); // until no timer is pending, and no descriptor is watched
        {
            L::timer_bytes
        } -> std::convertible_to<std::size_t>; // memory that the user needs for a timer
    };

} // namespace bench::peers

#endif // PAWL_BENCH_PEERS_LOOP_HPP
