// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The state word of one wait and every legal transition of it. No other file changes a state.
///
/// Model
///   The "Running/Exp" protocol of the timeout ring that Pawl grew from, made safe. `armed` and
///   `due` are Running; leaving them decides who completes the wait, and with what. A carrier is
///   whatever is on its way to run the wait: its entry in the due queue and, later, the function
///   object queued on the executor of its handler. Exp, "the expiry side has let go of the memory",
///   is the carrier arriving. The cancel of the only wait of a timer may just be noted in an entry
///   of the due queue (due_queue.hpp), so that it need not fetch the wait.
///
///     transition  from            to         who                      carrier
///     arm         idle            armed      the initiating function  -
///     fall_due    armed           due        expiry                   made, unless one is left
///     pull_back   due             armed      re-arm                   stays on its way
///     cancel      armed           cancelled  cancel, destruction,     made, unless one is left
///                                            expire_all
///     cancel      due             cancelled  cancel, destruction      the same one
///     cancel      armed           cancelled  the entry of a noted     that entry
///                                            cancel, when it is taken
///     withdraw    armed           idle       the object that the wait -
///                                            is part of
///     arrive      due, cancelled  started    the carrier              consumed
///     arrive      armed           armed      the carrier              pinned until park
///     park        armed           armed      the carrier              consumed
///
/// Invariants
///   I1  A wait has at most one carrier. A wait that was pulled back and falls due again before its
///       carrier has arrived is run by that carrier: no second one can hold a dangling pointer.
///   I2  While a wait has a carrier, only the carrier may free it. A wait without one is `armed`,
///       and is reachable from its timer, or, if its cancel is noted, from that entry only.
///   I3  `started` is final; it is entered where the handler is about to be invoked, not where it
///       is queued. Until then cancel and re-arm win.
///
/// Threads
///   A plain word: every transition happens under the lock of the wait's shard. An atomic word
///   would save no lock, because each transition also moves the wait between lists that the lock
///   guards.
#ifndef PAWL_WAIT_WAIT_STATE_HPP
#define PAWL_WAIT_WAIT_STATE_HPP

#include <pawl/config.hpp>

#include <cstdint>

namespace pawl::detail {

/// Where a wait is between its start and the invocation of its handler.
enum class wait_phase : std::uint8_t {
    idle,      ///< constructed, not yet known to a shard
    armed,     ///< waiting for its deadline
    due,       ///< its deadline has passed; the handler has not begun and can be called off
    cancelled, ///< ended by somebody, who chose the result; its timer does not know it any more
    started,   ///< the handler is being invoked; nobody can influence it any more
};

/// The state of one wait. Guarded by the lock of its shard.
class wait_state {
public:
    [[nodiscard]] wait_phase phase() const noexcept { return phase_; }

    /// A carrier is on its way (I1).
    [[nodiscard]] bool carried() const noexcept { return carried_; }

    /// The wait has neither been run nor cancelled.
    [[nodiscard]] bool pending() const noexcept {
        return phase_ == wait_phase::armed || phase_ == wait_phase::due;
    }

    void arm() noexcept {
        PAWL_ASSERT(phase_ == wait_phase::idle);
        phase_ = wait_phase::armed;
    }

    /// @return true if the caller must put the wait into the due queue.
    [[nodiscard]] bool fall_due() noexcept {
        PAWL_ASSERT(phase_ == wait_phase::armed);
        phase_ = wait_phase::due;
        return take_carrier();
    }

    void pull_back() noexcept {
        PAWL_ASSERT(phase_ == wait_phase::due && carried_);
        phase_ = wait_phase::armed;
    }

    /// @return true if the caller must put the wait into the due queue.
    [[nodiscard]] bool cancel() noexcept {
        PAWL_ASSERT(pending());
        phase_ = wait_phase::cancelled;
        return take_carrier();
    }

    /// Ends a wait that nobody is to be told of.
    /// @return false if it cannot be: it is over already, or has a carrier (I2).
    [[nodiscard]] bool withdraw() noexcept {
        if (phase_ != wait_phase::armed || carried_)
            return false;
        phase_ = wait_phase::idle;
        return true;
    }

    /// The carrier is where the handler can be invoked.
    /// @return true if the carrier now owns the wait and must complete it; false if the wait was
    ///         pulled back: it stays pinned in memory until the carrier calls park().
    [[nodiscard]] bool arrive() noexcept {
        PAWL_ASSERT(carried_);
        if (phase_ == wait_phase::armed)
            return false;
        PAWL_ASSERT(phase_ == wait_phase::due || phase_ == wait_phase::cancelled);
        phase_ = wait_phase::started;
        return true;
    }

    /// The carrier of a pulled back wait ends.
    void park() noexcept {
        PAWL_ASSERT(carried_ && phase_ == wait_phase::armed);
        carried_ = false;
    }

private:
    [[nodiscard]] bool take_carrier() noexcept {
        const bool had_one = carried_;
        carried_ = true;
        return !had_one;
    }

    wait_phase phase_ = wait_phase::idle;
    bool carried_ = false;
};

} // namespace pawl::detail

#endif // PAWL_WAIT_WAIT_STATE_HPP
