// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// pawl::time::ring_ticket, ring_position and the results of the calls of a pawl::time::timeout_ring.
#ifndef PAWL_TIME_RING_VOCABULARY_HPP
#define PAWL_TIME_RING_VOCABULARY_HPP

#include <cstddef>
#include <cstdint>

namespace pawl::time {

template <class T>
class timeout_ring;

/// Names a registration, as long as its ring lives. A ticket does not know its ring: using it with
/// another ring is undefined.
class ring_ticket {
public:
    /// No registration.
    constexpr ring_ticket() = default;

    /// The ticket as a number less than 2^63; 0 for none.
    [[nodiscard]] constexpr std::uint64_t word() const noexcept { return word_; }

    /// The ticket whose word() was `word`.
    [[nodiscard]] static constexpr ring_ticket from_word(std::uint64_t word) noexcept {
        ring_ticket ticket;
        ticket.word_ = word;
        return ticket;
    }

    /// Whether it names a registration.
    explicit constexpr operator bool() const noexcept { return word_ != 0; }
    /// Whether both name the same registration, or none.
    friend constexpr bool operator==(const ring_ticket&, const ring_ticket&) = default;

private:
    std::uint64_t word_ = 0;
};

/// A position between two registrations.
class ring_position {
public:
    /// The position before all registrations.
    constexpr ring_position() = default;

    /// Whether they are the same position.
    friend constexpr bool operator==(const ring_position&, const ring_position&) = default;

private:
    template <class T>
    friend class timeout_ring;

    explicit constexpr ring_position(std::uint64_t number) noexcept : number_(number) {}

    std::uint64_t number_ = 0;
};

/// The result of a registration.
enum class ring_status {
    registered, ///< the timer is running
    full,       ///< all slots of the capacity are in use, possibly by cancelled timers
    closed,     ///< close() was called
};

/// The result of try_register().
struct ring_registration {
    ring_status status; ///< whether it was registered; if not, why
    ring_ticket ticket; ///< none, unless registered
    bool first;         ///< first in the open sub-period: the driver must call next_wake() again
};

/// The result of a sweep.
struct ring_sweep {
    std::size_t emitted; ///< items at the front of `out`; the caller owns them
    bool more;           ///< the end was not reached: call again. If nothing was emitted, let
                         ///< other threads run first: a registration may be unpublished
    bool busy;           ///< nothing was done: another thread is driving
};

} // namespace pawl::time

#endif // PAWL_TIME_RING_VOCABULARY_HPP
